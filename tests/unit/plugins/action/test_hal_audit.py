"""What the controller's part of hal_audit, hal_record and hal_subids does with what a node says, and returns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from hal_cluster.audit import active
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.store import Store, pack, unpack, write_json
from hal_cluster.rules.singularity.ledger import read
from tests.unit.modules import loaded

DRIFT = Finding("n1", "mode", "file:/x").document()
WARNING = {**DRIFT, "kind": "expectation", "severity": "warning"}
UNSEEN = {**DRIFT, "status": "unknown"}
Execute = Callable[..., Any]


def action(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(ActionBase, "run", lambda *_: {"base": True})
    monkeypatch.setattr(active, "_taking_part", {"hal_printable", "hal_audit_report"})
    return loaded(name, "action")


def run(module: ModuleType, execute: Execute, arguments: dict[str, Any], *, check_mode: bool = False) -> dict[str, Any]:
    plugin = module.ActionModule.__new__(module.ActionModule)
    plugin._task = SimpleNamespace(args=arguments, check_mode=check_mode, diff=False, get_vars=lambda: {"own": 1})
    plugin._loader = "loader"
    plugin._execute_module = execute
    result: dict[str, Any] = plugin.run(task_vars={"inventory_hostname": "n1"})
    return result


@pytest.mark.parametrize("name", ["hal_audit", "hal_record", "hal_subids", "hal_network"])
def test_no_action_sends_files_or_runs_in_the_background(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = action(name, monkeypatch).ActionModule
    assert (plugin.TRANSFERS_FILES, plugin._supports_async) == (False, False)
    assert plugin._supports_check_mode is (name != "hal_record")


class Examined:
    """Stands for hal_cluster.audit.examine.Examination: a node's findings are what its answer is."""

    def __init__(self, *asked: Any) -> None:
        self.asked = asked

    def arguments(self) -> dict[str, Any]:
        return {"node": self.asked[0], "roles": list(self.asked[4])}

    def payload(self, reply: dict[str, Any], declared: Any) -> dict[str, Any]:
        assert callable(declared)
        return {"findings": reply["findings"], "asked": self.asked}

    def unreachable(self, reason: str) -> dict[str, Any]:
        return {"findings": [{**UNSEEN, "summary": reason}]}

    def unreadable(self, reason: str) -> dict[str, Any]:
        return {"findings": [{**UNSEEN, "summary": f"unreadable: {reason}"}]}


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    module = action("hal_audit", monkeypatch)
    monkeypatch.setattr(module, "Examination", Examined)

    def audited(answer: Any, **arguments: Any) -> dict[str, Any]:
        def execute(module_name: str, module_args: dict[str, Any], task_vars: dict[str, Any]) -> Any:
            assert (module_name, module_args) == ("hal_audit", {"node": "n1", "roles": arguments.get("roles", [])})
            assert task_vars == {"inventory_hostname": "n1"}
            if isinstance(answer, Exception):
                raise answer
            return {"findings": answer}

        return run(module, execute, arguments)

    return audited


@pytest.mark.parametrize(
    ("found", "failed", "words"),
    [
        ([], False, "as declared"),
        ([WARNING], False, "1 finding, see the report below"),
        ([UNSEEN], True, "1 finding, see the report below"),
        ([DRIFT, WARNING], True, "2 findings, see the report below"),
    ],
)
def test_a_node_fails_if_its_audit_is_not_clean(audit: Any, found: Any, failed: bool, words: str) -> None:
    result = audit(found)
    assert (result.get("failed", False), result["changed"], result["msg"]) == (failed, False, words)
    assert "unreachable" not in result
    assert result["invocation"]["audit"]["findings"] == found
    assert result["base"] is True


def test_an_audit_asks_for_the_roles_that_were_named(audit: Any) -> None:
    asked = audit([], roles=["time", "ssh"])["invocation"]["audit"]["asked"]
    node, _loader, _all_variables, variables_of_the_task, roles = asked
    assert (node, variables_of_the_task, roles) == ("n1", {"own": 1}, ("time", "ssh"))


def test_a_node_that_does_not_answer_is_unreachable_and_no_failure(audit: Any) -> None:
    result = audit(AnsibleConnectionFailure("no route"))
    assert (result["unreachable"], "failed" in result, result["changed"]) == (True, False, False)
    assert result["invocation"]["audit"]["findings"][0]["summary"] == "no route"


@pytest.mark.parametrize("error", [AuditError("odd"), AnsibleError("odd"), OSError("odd")])
def test_an_audit_that_cannot_be_made_is_a_finding(audit: Any, error: Exception) -> None:
    result = audit(error)
    assert (result["failed"], "unreachable" in result) == (True, False)
    assert result["invocation"]["audit"]["findings"][0]["summary"] == "unreadable: odd"


def spooled(store: Store, number: int) -> Path:
    path = store.spool(f"r{number}", "n1")
    spool: dict[str, Any] = {name: [] for name in ("entries", "reached", "skipped", "windows", "handled")}
    run = {"id": f"r{number}", "commit": "abc", "started": 1.0}
    write_json(path, {"format": 1, "node": "n1", "run": run, "roles": {}, **spool})
    return path


def record(
    store: Store, monkeypatch: pytest.MonkeyPatch, answer: Any, told: list[Any] | None = None, **more: str
) -> dict[str, Any]:
    def execute(module_name: str, module_args: dict[str, Any], task_vars: dict[str, Any]) -> Any:
        assert (module_name, task_vars) == ("hal_record", {"inventory_hostname": "n1"})
        if told is not None:
            told.append(module_args)
        return answer(len(told or []))

    arguments = {"folders": {"n1": str(store.folder), "n2": "/nowhere"}, "run": "r2", **more}
    return run(action("hal_record", monkeypatch), execute, arguments)


def sealed(number: int) -> dict[str, Any]:
    content = json.dumps({"node": "n1", "serial": number}).encode()
    return {
        **{"record": pack(content), "digest": hashlib.sha256(content).hexdigest(), "observed": number},
        "problems": [f"p{number}"] if number == 1 else None,
        "released": number == 2,
    }


def test_a_node_is_told_of_each_run_and_its_record_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "audit")
    told: list[Any] = []
    spools = [spooled(store, number) for number in (1, 2)]
    result = record(store, monkeypatch, sealed, told, rollout="r9")
    assert result == {"base": True, "changed": False, "observed": 2, "problems": ["p1"], "released": True}
    assert [one.get("rollout") for one in told] == [None, "r9"], "it holds the node until all is told"
    assert [one["copy"] and unpack(one["copy"]) for one in told] == [
        "",
        json.dumps({"node": "n1", "serial": 1}).encode(),
    ]
    assert json.loads(store.record("n1").read_bytes()) == {"node": "n1", "serial": 2}
    assert [path.exists() for path in spools] == [False, False]


def test_a_node_that_does_not_say_how_much_it_observed_observed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "audit")
    spooled(store, 2)
    answer = {name: value for name, value in sealed(2).items() if name != "observed"}
    assert record(store, monkeypatch, lambda _number: answer)["observed"] == 0


def test_nothing_to_tell_is_nothing_observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = record(Store(tmp_path / "audit"), monkeypatch, sealed)
    assert result == {"base": True, "changed": False, "observed": 0, "problems": [], "released": False}


@pytest.mark.parametrize("answer", [{"failed": True, "msg": "full", "record": "x"}, {"msg": "full"}])
def test_a_node_that_stored_nothing_keeps_its_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]
) -> None:
    store = Store(tmp_path / "audit")
    spool = spooled(store, 2)
    result = record(store, monkeypatch, lambda _number: answer)
    assert (result["failed"], result["msg"], spool.exists(), store.record("n1").exists()) == (True, "full", True, False)


def test_a_record_that_arrives_damaged_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "audit")
    spool = spooled(store, 2)
    result = record(store, monkeypatch, lambda number: {**sealed(number), "record": "x"})
    assert (result["failed"], "damaged" in result["msg"], spool.exists()) == (True, True, True)


USER = {"name": "alice", "uid": 1000, "slot": 3, "enabled": True}
OTHER = {"name": "bob", "uid": 1001}
GIVEN = {3: {"name": "alice", "uid": 1000}}


@pytest.mark.parametrize(
    ("first", "check_mode", "failed", "before", "after"),
    [
        (None, False, False, GIVEN, GIVEN),
        (False, False, False, GIVEN, GIVEN),
        (False, False, True, GIVEN, GIVEN),
        (True, False, False, {}, GIVEN),
        ("yes", False, False, {}, GIVEN),
        (True, False, True, {}, {}),
        (False, True, False, {}, {}),
        (True, True, False, {}, {}),
    ],
)
def test_a_slot_is_given_before_a_node_has_it_and_after_the_first_took_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: Any, check_mode: bool, failed: bool, before: Any, after: Any
) -> None:
    ledger = tmp_path / "ledger.json"
    seen = []

    def execute(task_vars: dict[str, Any]) -> dict[str, Any]:
        assert task_vars == {"inventory_hostname": "n1"}
        seen.append(read(ledger))
        return {"changed": True, "failed": failed}

    arguments: dict[str, Any] = {"users": [USER, OTHER], "ledger": str(ledger)}
    if first is not None:
        arguments["first"] = first
    result = run(action("hal_subids", monkeypatch), execute, arguments, check_mode=check_mode)
    assert result == {"base": True, "changed": True, "failed": failed}
    assert (seen, read(ledger)) == ([before], after)


def test_a_slot_of_somebody_else_is_refused_before_the_node_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(**_: Any) -> None:
        pytest.fail("the node was asked though the slot is somebody else's")

    module = action("hal_subids", monkeypatch)
    arguments = {"users": [USER], "ledger": str(tmp_path / "ledger.json")}
    assert run(module, lambda **_: {}, arguments) == {"base": True}
    arguments["users"] = [{**OTHER, "slot": 3}]
    result = run(module, execute, arguments)
    assert (result["failed"], result["changed"]) == (True, False)
    assert "slot 3 was given to alice" in result["msg"]
