"""What all roles of a host declare now, loaded by Ansible, against its record: who took over, and who is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.manager import VariableManager

from hal_cluster.audit.findings import Finding
from hal_cluster.audit.redeclare import declared_now

pytestmark = pytest.mark.usefixtures("plugins_of_ansible")


def group(name: str, gid: int = 5) -> dict[str, Any]:
    return {"name": f"Make {name}", "ansible.builtin.group": {"name": name, "gid": gid}}


class Host:
    """A host whose roles a test writes; its record has what a test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loader = DataLoader()
        self.loader.set_basedir(str(folder))
        inventory = InventoryManager(self.loader, sources=None, parse=False)
        inventory.add_host("n1")
        self.task = SimpleNamespace(_variable_manager=VariableManager(self.loader, inventory))

    def role(self, name: str, *tasks: dict[str, Any], text: str = "") -> None:
        path = self.folder / "roles" / name / "tasks" / "main.yml"
        path.parent.mkdir(parents=True)
        path.write_text(text or yaml.safe_dump(list(tasks)))

    def found(
        self, changed: Sequence[str], every: Sequence[str], entries: Sequence[Any], *, only: Sequence[str] = ()
    ) -> list[Finding]:
        recorded: dict[str, Any] = {name: {"commit": "abc"} for name in ("web", "base", "time", "gone")}
        recorded["nowhere"] = {}
        examination = SimpleNamespace(loader=self.loader, roles=[*every], only=tuple(only))
        return list(declared_now(self.task, "n1")(examination, changed, every, recorded, entries))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def recorded(role: str, name: str, gid: int = 5, task: str = "Old") -> dict[str, Any]:
    path = f"{role}|{role}/tasks/main.yml"
    declared = {"state": "present", "gid": gid}
    return {"resource": f"group:{name}", "role": role, "task": f"{path}|{task}", "declared": declared}


def short(found: list[Finding]) -> list[tuple[str, str, str, str]]:
    return [(one.kind, one.resource, one.role, one.summary) for one in found]


def test_only_roles_whose_inputs_changed_are_compared(host: Host) -> None:
    host.role("web", group("a", 6))
    host.role("base", group("b", 6))
    entries = [recorded("web", "a"), recorded("base", "b")]
    words = "the declared gid has changed"
    assert short(host.found(["web"], ["web", "base"], entries)) == [("declared-differently", "group:a", "web", words)]
    both = host.found(["base", "web"], ["web", "base"], entries)
    assert [one.resource for one in both] == ["group:b", "group:a"]
    assert host.found([], ["web", "base"], entries) == []


def test_what_another_role_declares_now_is_not_left_alone(host: Host) -> None:
    host.role("web", group("b"))
    host.role("base", group("a"), group("both"))
    host.role("time", group("both"))
    entries = [recorded("web", name) for name in ("a", "both", "c")]
    found = host.found(["web"], ["web", "base", "time"], [*entries, recorded("web", "b")])
    gone = "no task manages it any more: its task is gone"
    taken = "the role base declares it now"
    assert short(found) == [
        ("declared-differently", "group:a", "base", taken),
        ("declared-differently", "group:both", "base", taken),
        ("orphaned", "group:c", "web", gone),
    ]
    first = host.found(["web", "time"], ["web", "base", "time"], entries)
    assert [one.role for one in first if one.resource == "group:both"] == ["time"]


def test_what_a_role_had_that_the_host_has_no_more_is_left_unless_few_roles_were_asked_for(host: Host) -> None:
    host.role("web", group("a"))
    entries = [recorded("gone", "x"), recorded("web", "a")]
    words = "no task manages it any more: the node no longer has the role gone"
    assert short(host.found([], ["web"], entries)) == [("orphaned", "group:x", "gone", words)]
    assert host.found([], ["web"], entries, only=["web"]) == []


@pytest.mark.parametrize("text", ["- name: [", "- name: x\n  no_such_module_of_anybody: {}\n", "a: b\n"])
def test_a_role_that_cannot_be_loaded_is_said_and_does_not_end_the_audit(host: Host, text: str) -> None:
    host.role("web", text=text)
    host.role("base", group("b", 6))
    web, base = host.found(["web", "base"], ["web", "base"], [recorded("web", "a"), recorded("base", "b")])
    assert (web.kind, web.resource, web.status) == ("inputs-changed", "role:web", "unknown")
    assert web.summary.startswith("inputs of role web changed since commit abc; its tasks cannot be loaded: ")
    assert (base.kind, base.resource) == ("declared-differently", "group:b")


def test_a_role_that_is_not_there_cannot_be_loaded_and_one_without_a_commit_has_none(host: Host) -> None:
    (one,) = host.found(["nowhere"], ["nowhere"], [])
    assert one.summary.startswith("inputs of role nowhere changed since commit (none); its tasks cannot be loaded: ")
