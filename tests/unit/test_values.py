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
    "hal_cluster.audit.differing": "Undecided",
    "hal_cluster.audit.findings": "Accepted Finding",
    "hal_cluster.audit.inputs": "RoleText",
    "hal_cluster.audit.plan": "Undecided",
    "hal_cluster.audit.plays": "Known",
    "hal_cluster.audit.questions": "Role",
    "hal_cluster.audit.recording": "LoadedRole Owner Run",
    "hal_cluster.audit.report": "Group",
    "hal_cluster.audit.resources.model": "Call Resource Units",
    "hal_cluster.bmc.models": "Boot Clock Firmware Identity Seen Sensor Target",
    "hal_cluster.bmc.operations": "Limits",
    "hal_cluster.bmc.retry": "Patience",
    "hal_cluster.bmc.settings": "Shown",
    "hal_cluster.bmc.turns": "Turns",
    "hal_cluster.certificates.register": "Issued",
    "hal_cluster.certificates.tls": "TlsAuthority",
    "hal_cluster.rules.cuda.findings": "Finding",
    "hal_cluster.rules.cuda.toolkits": "Node Wanted",
    "hal_cluster.environments.lock": "Lock Package",
    "hal_cluster.environments.specs": "Specs",
    "hal_cluster.expect.prepare": "Prepared",
    "hal_cluster.expect.roles": "Layers",
    "hal_cluster.rules.firewall.openings": "Opening Ports",
    "hal_cluster.rules.firewall.shares": "Share",
    "hal_cluster.rules.firewall.there": "Look",
    "hal_cluster.rules.firewall.zones": "Zone",
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
    "hal_cluster.inventory.capture": "Verdict",
    "hal_inventory.output": "Answer Facts Table Tree",
    "hal_cluster.inventory.validate": "Verdict",
    "hal_inventory.connection": "Connection",
    "hal_inventory.errors": "Finding",
    "hal_inventory.model": "FabricLink FabricPort FabricSwitch FileSystemUse Network Node Placeholder Site",
    "hal_inventory.sources": "Source",
    "hal_inventory.users": "User",
    "hal_cluster.rules.network": "Device Policy",
    "hal_cluster.packages.declared": "Origin Repository Site _Task",
    "hal_cluster.packages.lock": "LockFile",
    "hal_cluster.packages.repodata": "Metadata",
    "hal_cluster.packages.universe": "Found Solution",
    "hal_cluster.provision.boot": "Installer",
    "hal_cluster.provision.building": "Machine",
    "hal_cluster.provision.dhcp": "Served Server",
    "hal_cluster.provision.images": "Manifest",
    "hal_cluster.provision.kickstart": "Place Server Source",
    "hal_cluster.provision.nodes": "BootNode",
    "hal_cluster.provision.tokens": "Token",
    "hal_cluster.reimage.bmc": "Machine",
    "hal_cluster.reimage.asked": "Asked Connected",
    "hal_cluster.reimage.command": "Result _Begun",
    "hal_cluster.reimage.settings": "Settings",
    "hal_cluster.reimage.record": "Drained Image Plan Record Run",
    "hal_cluster.reimage.remote": "Done",
    "hal_cluster.reimage.rollout": "Playbook",
    "hal_cluster.reimage.server": "Ordering",
    "hal_cluster.reimage.show": "Shown",
    "hal_cluster.reimage.slurm": "TestJob",
    "hal_cluster.reimage.slurm_text": "Listed Ran",
    "hal_cluster.reimage.stepping": "Limits",
    "hal_cluster.reimage.world": "Installation Job SlurmNode World",
    "hal_cluster.rollout.processes": "Here",
    "hal_cluster.rollout.naming": "Wanted",
    "hal_cluster.rollout.refusals": "Said",
    "hal_cluster.rules.singularity.conf": "Directive",
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
