"""The modules of the audit themselves: what they take, what they say of faults, and what they never repeat."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils import basic
from ansible.module_utils.hal_node.audit.module import one_line
from ansible.module_utils.hal_node.audit.seal import SealError
from ansible.module_utils.hal_node.rollout_lock import RolloutError

PROJECT = Path(__file__).resolve().parents[4]
Run = Callable[..., tuple[int, dict[str, Any]]]


def loaded(name: str) -> ModuleType:
    """A module of the project as a node has it."""
    spec = importlib.util.spec_from_file_location(f"{name}_module", PROJECT / f"plugins/modules/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def logged() -> list[str]:
    """What was written into the log of the node."""
    return []


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], logged: list[str]) -> Run:
    """A function: module and arguments -> (status, what it printed)."""

    def run(module: ModuleType, check: bool = False, **arguments: Any) -> tuple[int, dict[str, Any]]:
        given = {"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_check_mode": check}}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps(given).encode())
        monkeypatch.setattr(basic.AnsibleModule, "log", lambda _self, message, log_args=None: logged.append(message))
        with pytest.raises(SystemExit) as ended:
            module.main()
        return int(ended.value.code or 0), json.loads(capsys.readouterr().out)

    return run


def test_an_audit_asks_for_what_it_was_told_and_hands_on_the_answer(run: Run, logged: list[str]) -> None:
    module, asked = loaded("hal_audit"), []

    def look(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request)
        return {"differences": []}

    module.look = look  # type: ignore[attr-defined]
    assert run(module, node="hal05", check=True) == (0, {"changed": False, "invocation": {}, "differences": []})
    nothing: dict[str, Any] = {name: [] for name in ("questions", "roles", "watched", "accepted", "checks")}
    nothing |= {"record": "", "planned": [], "planned_key": "", "tree": False, "deep": False}
    assert asked == [{"node": "hal05", **nothing}]
    assert [words.partition(" ")[2] for words in logged] == ["looks at this node"]  # first is how Ansible calls it


def test_an_audit_needs_a_node_and_knows_its_checks(run: Run) -> None:
    module = loaded("hal_audit")
    module.look = dict  # type: ignore[attr-defined]
    status, answer = run(module)
    assert (status, answer["msg"]) == (1, "missing required arguments: node")
    status, answer = run(module, node="hal05", checks=["uid_0", "kernel", "packages", "clock"])
    assert status == 0
    status, answer = run(module, node="hal05", checks=["other"])
    assert status == 1
    assert (
        "value of checks must be one or more of: uid_0, kernel, packages, clock. Got no match for: other"
        in answer["msg"]
    )


def test_a_record_is_sealed_as_it_was_told_and_never_in_check_mode(run: Run) -> None:
    module, asked = loaded("hal_record"), []

    def seal(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request)
        return {"serial": 5}

    module.seal = seal  # type: ignore[attr-defined]
    request: dict[str, Any] = {"node": "hal05", "run": {"id": "r"}}
    assert run(module, **request) == (0, {"changed": False, "invocation": {}, "serial": 5, "released": False})
    empty: dict[str, Any] = {"entries": [], "roles": {}, "reached": [], "skipped": [], "windows": [], "handled": []}
    assert asked == [{**request, **empty, "copy": "", "rollout": ""}]
    _status, answer = run(module, check=True, **request)
    assert answer["skipped"] is True
    assert len(asked) == 1
    for name in ("node", "run"):
        status, answer = run(module, **{key: value for key, value in request.items() if key != name})
        assert (status, answer["msg"]) == (1, f"missing required arguments: {name}")


def test_the_rollout_lets_the_node_go_with_its_record_and_a_fault_of_that_is_none_of_the_record(run: Run) -> None:
    module, asked = loaded("hal_record"), []

    def release(rollout: str) -> bool:
        asked.append(rollout)
        if rollout == "broken":
            raise RolloutError("it cannot be written")
        return True

    module.seal = lambda _request: {}  # type: ignore[attr-defined]
    module.release = release  # type: ignore[attr-defined]
    told = {"node": "hal05", "run": {"id": "r"}}
    said = [run(module, **told, rollout=rollout)[1]["released"] for rollout in ("", "x", "broken")]
    assert (said, asked) == ([False, True, False], ["x", "broken"])


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("hal_audit", "look", "this node could not be audited"),
        ("hal_record", "seal", "the record of this node was not written"),
    ],
)
def test_a_fault_is_one_line_without_what_it_quotes(run: Run, name: str, function: str, words: str) -> None:
    module = loaded(name)

    def broken(_request: dict[str, Any]) -> None:
        raise KeyError("hunter2")

    setattr(module, function, broken)
    status, answer = run(module, node="hal05", run={})
    assert status == 1
    if name == "hal_audit":
        status, answer = run(module, node="hal05")
    place, _, number = answer["msg"].rpartition(":")
    assert place == f"{words}: KeyError, {name}.py"
    assert number.isdigit()
    assert answer["invocation"] == {}
    assert "hunter2" not in json.dumps(answer)


def test_why_a_record_was_not_written_is_said_in_its_own_words(run: Run) -> None:
    module = loaded("hal_record")

    def refuse(_request: dict[str, Any]) -> None:
        raise SealError("the disk is full")

    module.seal = refuse  # type: ignore[attr-defined]
    status, answer = run(module, node="hal05", run={})
    assert (status, answer["failed"], answer["msg"], answer["invocation"]) == (1, True, "the disk is full", {})


def test_an_error_says_what_the_system_says() -> None:
    error = FileNotFoundError(2, "No such file or directory", "hunter2")
    assert one_line("it failed", error) == "it failed: FileNotFoundError (No such file or directory)"
    assert one_line("it failed", ValueError("hunter2")) == "it failed: ValueError"
