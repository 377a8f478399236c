"""A node, as the audit's tests have it, whose roles are rolled out and given back."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.originals.back import give_back
from ansible.module_utils.hal_node.originals.store import keep

from tests.unit.hal_node.audit.conftest import ROLLED_OUT, FakeNode, entry
from tests.unit.hal_node.audit.conftest import hal as hal
from tests.unit.modules import loaded

CONF = "/etc/chrony.conf"


def wants(*resources: str, role: str = "time", **declared: Any) -> list[dict[str, Any]]:
    """Resources of a role, as they are sent."""
    return [{"resource": one, "declared": declared, "role": role} for one in resources]


def kept(hal: FakeNode, resources: list[dict[str, Any]], *, check: bool = False, **more: Any) -> dict[str, Any]:
    """Keep what is there of resources."""
    said: dict[str, Any] = keep({"node": "hal05", "resources": resources, "most_mib": 1, **more}, hal.node, check)
    return said


def planned(hal: FakeNode, role: str = "time") -> dict[str, Any]:
    """Ask what giving back would do, as the module answers."""
    request = {"state": "planned", "node": "hal05", "role": role}
    said: dict[str, Any] = loaded("hal_originals").answer(request, check=True, node=hal.node)
    assert said["changed"] is False  # Ansible's word: nothing of ours may have its name
    return said


def given_back(hal: FakeNode, role: str = "time", **more: Any) -> dict[str, Any]:
    """Give a role back."""
    fingerprint = planned(hal, role)["fingerprint"]
    said: dict[str, Any] = give_back({"node": "hal05", "role": role, "fingerprint": fingerprint, **more}, hal.node)
    return said


def rolled_out(hal: FakeNode, *resources: str, role: str = "time", **declared: Any) -> None:
    """Record that a role made these what they are."""
    hal.seal(*(entry(one, declared=declared, role=role) for one in resources), roles=ROLLED_OUT)


def as_it_is(path: Path) -> tuple[Any, ...]:
    """All that has to be the same again."""
    status = path.lstat()
    inside: Any = None
    if stat.S_ISLNK(status.st_mode):
        inside = os.readlink(path)
    elif stat.S_ISREG(status.st_mode):
        inside = path.read_bytes()
    return status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, inside


@pytest.fixture
def systemd(hal: FakeNode) -> list[list[str]]:
    """A systemd that does what it is told; what that was."""
    told: list[list[str]] = []

    def systemctl(words: list[str]) -> tuple[int, str, str]:
        if words[:3] == ["show", "--property", "Id,RefuseManualStop"]:
            names = words[words.index("--") + 1 :]
            held = [hal.units.get(name, {}).get("RefuseManualStop", "no") for name in names]
            return 0, "\n\n".join(f"Id={n}\nRefuseManualStop={h}" for n, h in zip(names, held, strict=True)), ""
        if words[0] == "show":
            return 0, "\n\n".join(hal.unit(name) for name in words[words.index("--") + 1 :]) + "\n", ""
        told.append(words)
        what = {
            "stop": {"ActiveState": "inactive"},
            "start": {"ActiveState": "active"},
            "enable": {"UnitFileState": "enabled"},
            "disable": {"UnitFileState": "disabled"},
            "mask": {"LoadState": "masked", "UnitFileState": "masked"},
            "unmask": {"LoadState": "loaded", "UnitFileState": "disabled"},
        }
        if words[0] in what:
            hal.units.setdefault(words[1], {}).update(what[words[0]])
        return 0, "", ""

    hal.programs["systemctl"] = systemctl
    return told
