"""What is handed on as a value is not changed behind anybody's back."""

from __future__ import annotations

import ast
import dataclasses
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
VALUES = {
    "hal_audit.differing": "Undecided",
    "hal_audit.findings": "Accepted Finding",
    "hal_audit.inputs": "RoleText",
    "hal_audit.naming": "Wanted",
    "hal_audit.plan": "Undecided",
    "hal_audit.plays": "Known",
    "hal_audit.questions": "Role",
    "hal_audit.recording": "LoadedRole Owner Run",
    "hal_audit.report": "Group",
    "hal_audit.resources.model": "Call Resource Units",
    "hal_bmc.models": "Boot Clock Firmware Identity Seen Sensor Target",
    "hal_bmc.operations": "Limits",
    "hal_bmc.retry": "Patience",
    "hal_bmc.settings": "Shown",
    "hal_bmc.turns": "Turns",
    "hal_certificates.register": "Issued",
    "hal_certificates.tls": "TlsAuthority",
    "hal_cuda.findings": "Finding",
    "hal_cuda.toolkits": "Node Wanted",
    "hal_environments.lock": "Lock Package",
    "hal_environments.specs": "Specs",
    "hal_expect.prepare": "Prepared",
    "hal_expect.roles": "Layers",
    "hal_firewall.openings": "Opening Ports",
    "hal_firewall.shares": "Share",
    "hal_firewall.there": "Look",
    "hal_firewall.zones": "Zone",
    "hal_inventory.capture.adopt": "Adoption Row Told",
    "hal_inventory.capture.edit": "Value",
    "hal_inventory.capture.machine": "Fault Machine",
    "hal_inventory.capture.nodes": "_Entry",
    "hal_inventory.capture.profiles": "_Kind",
    "hal_inventory.capture.tools.dmidecode": "System",
    "hal_inventory.capture.tools.ibstat": "Port",
    "hal_inventory.capture.tools.ip": "Link",
    "hal_inventory.capture.tools.lsblk": "Disk",
    "hal_inventory.capture.tools.lscpu": "Processors",
    "hal_inventory.capture.tools.nvidia_smi": "Gpu Gpus",
    "hal_inventory.capture.tools.redfish": "Machine",
    "hal_inventory.capture.work": "Proposed Seen",
    "hal_inventory.cli.capture": "Verdict",
    "hal_inventory.cli.output": "Answer Facts Table Tree",
    "hal_inventory.cli.validate": "Verdict",
    "hal_inventory.connection": "Connection",
    "hal_inventory.errors": "Finding",
    "hal_inventory.model": "FabricLink FabricPort FabricSwitch FileSystemUse Network Node Placeholder Site",
    "hal_inventory.sources": "Source",
    "hal_inventory.users": "User",
    "hal_network.ifcfg": "Device Policy",
    "hal_packages.declared": "Origin Repository Site _Task",
    "hal_packages.lock": "LockFile",
    "hal_packages.repodata": "Metadata",
    "hal_packages.universe": "Found Solution",
    "hal_provision.boot": "Installer",
    "hal_provision.building": "Machine",
    "hal_provision.dhcp": "Served Server",
    "hal_provision.images": "Manifest",
    "hal_provision.kickstart": "Place Policy Server Source",
    "hal_provision.nodes": "BootNode",
    "hal_provision.tokens": "Token",
    "hal_reimage.bmc": "Machine",
    "hal_reimage.command": "Asked Connected Result _Begun",
    "hal_reimage.engine": "Limits",
    "hal_reimage.record": "Drained Image Plan Record Run",
    "hal_reimage.remote": "Done",
    "hal_reimage.rollout": "Playbook",
    "hal_reimage.server": "Ordering",
    "hal_reimage.show": "Shown",
    "hal_reimage.slurm": "TestJob",
    "hal_reimage.slurm_text": "Listed Ran",
    "hal_reimage.world": "Installation Job SlurmNode World",
    "hal_rollout.processes": "Here",
    "hal_rollout.refusals": "Said",
    "hal_singularity.conf": "Directive",
}


def written(path: Path) -> Iterator[str]:
    """Return the names of a file's classes that are said to be frozen, whatever they are then."""
    for one in ast.parse(path.read_text()).body:
        if isinstance(one, ast.ClassDef) and any("frozen" in ast.unparse(each) for each in one.decorator_list):
            yield one.name


@pytest.mark.parametrize("module", VALUES)
def test_a_value_stays_as_it_is(module: str) -> None:
    for name in VALUES[module].split():
        made = getattr(importlib.import_module(module), name)
        one = object.__new__(made)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, dataclasses.fields(made)[0].name, "another")


def test_no_value_is_forgotten() -> None:
    files = sorted(PROJECT.glob("hal_*/**/*.py"))
    dotted = {
        ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__"): path for path in files
    }
    found = {module: " ".join(sorted(written(path))) for module, path in dotted.items()}
    assert {module: names for module, names in found.items() if names} == VALUES
