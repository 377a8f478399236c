"""Values stay as they were made, and only those that are worked on can be changed."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import is_dataclass
from types import ModuleType

import pytest

PACKAGES = (
    "hal_bmc",
    "hal_certificates",
    "hal_cuda",
    "hal_firewall",
    "hal_inventory",
    "hal_modules",
    "hal_provision",
    "hal_reimage",
    "hal_secrets",
    "hal_singularity",
)
FROZEN = (
    "hal_bmc.models",
    "hal_bmc.operations",
    "hal_bmc.retry",
    "hal_bmc.settings",
    "hal_bmc.turns",
    "hal_certificates.register",
    "hal_certificates.tls",
    "hal_cuda.findings",
    "hal_cuda.toolkits",
    "hal_firewall.openings",
    "hal_firewall.zones",
    "hal_inventory.capture.adopt",
    "hal_inventory.capture.machine",
    "hal_inventory.capture.nodes",
    "hal_inventory.capture.profiles",
    "hal_inventory.capture.tools.dmidecode",
    "hal_inventory.capture.tools.ibstat",
    "hal_inventory.capture.tools.ip",
    "hal_inventory.capture.tools.lsblk",
    "hal_inventory.capture.tools.lscpu",
    "hal_inventory.capture.tools.nvidia_smi",
    "hal_inventory.capture.tools.redfish",
    "hal_inventory.cli.capture",
    "hal_inventory.cli.output",
    "hal_inventory.cli.validate",
    "hal_inventory.errors",
    "hal_inventory.model",
    "hal_inventory.sources",
    "hal_inventory.users",
    "hal_provision.boot",
    "hal_provision.building",
    "hal_provision.dhcp",
    "hal_provision.images",
    "hal_provision.kickstart",
    "hal_provision.nodes",
    "hal_provision.tokens",
    "hal_reimage.command",
    "hal_reimage.engine",
    "hal_reimage.record",
    "hal_reimage.remote",
    "hal_reimage.server",
    "hal_reimage.show",
    "hal_reimage.slurm",
    "hal_reimage.slurm_text",
    "hal_reimage.world",
    "hal_singularity.conf",
)
CHANGING = {
    "hal_inventory.capture.edit": ["Editor"],
    "hal_inventory.capture.tools.indented": ["Section"],
    "hal_inventory.capture.work": ["Proposal", "Work"],
    "hal_inventory.reader": ["Document", "Mapping", "Scalar", "Sequence"],
    "hal_inventory.shape": ["LeftOut"],
    "hal_reimage.bmc": ["Bmcs"],
    "hal_reimage.rollout": ["_Kind"],
}
SLOTS = {
    "hal_inventory.model": ["FabricLink", "FabricPort", "FileSystemUse", "Network", "Node", "Placeholder", "Site"],
    "hal_inventory.users": ["User"],
    "hal_provision.boot": ["Installer"],
    "hal_provision.building": ["Machine"],
    "hal_provision.dhcp": ["Served", "Server"],
    "hal_provision.kickstart": ["Place", "Policy", "Server", "Source"],
    "hal_provision.nodes": ["BootNode"],
    "hal_reimage.engine": ["Limits"],
    "hal_reimage.record": ["Drained", "Image", "Plan", "Record", "Run"],
    "hal_reimage.remote": ["Done"],
    "hal_reimage.show": ["Shown"],
    "hal_reimage.slurm": ["TestJob"],
    "hal_reimage.slurm_text": ["Listed", "Ran"],
    "hal_reimage.world": ["Installation", "Job", "SlurmNode"],
}
ORDERED = {"hal_firewall.openings": ["Ports"], "hal_inventory.errors": ["Finding"]}


def dataclasses_of(module: ModuleType) -> dict[str, type]:
    own = {
        name: one for name, one in vars(module).items() if inspect.isclass(one) and one.__module__ == module.__name__
    }
    return {name: one for name, one in own.items() if is_dataclass(one)}


@pytest.mark.parametrize("name", [*FROZEN, *CHANGING])
def test_a_dataclass_is_as_fixed_as_it_is_meant_to_be(name: str) -> None:
    found = dataclasses_of(importlib.import_module(name))
    assert found
    parameters = {one: getattr(kind, "__dataclass_params__") for one, kind in found.items()}  # noqa: B009  untyped
    assert sorted(one for one, said in parameters.items() if not said.frozen) == CHANGING.get(name, [])
    assert sorted(one for one, said in parameters.items() if said.order) == ORDERED.get(name, [])
    assert sorted(one for one, kind in found.items() if "__slots__" in vars(kind)) == SLOTS.get(name, [])


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_with_fixed_values_is_left_out(package: str) -> None:
    root = importlib.import_module(package)
    names = [one.name for one in pkgutil.walk_packages(root.__path__, f"{package}.")]
    modules = [importlib.import_module(one) for one in names if not one.endswith("__main__")]
    fixed = {
        one.__name__
        for one in modules
        if any(vars(kind)["__dataclass_params__"].frozen for kind in dataclasses_of(one).values())
    }
    assert fixed <= {*FROZEN, *CHANGING}
