"""plugins/modules/hal_environment.py: what it asks of hal-environment, and what it says of the answer."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils import basic

MODULE = Path(__file__).resolve().parents[4] / "plugins/modules/hal_environment.py"
DECLARED = [{"id": "python/3.8"}, {"id": "r/4"}]
DONE = {"changed": True, "installed": ["r/4"], "repaired": [], "switched": [], "removed": [], "kept": [], "mended": []}
Run = Callable[..., tuple[str, dict[str, Any]]]


class Ended(Exception):
    """What the module returned."""


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hal_environment_module", MODULE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A hal-environment that notes how it was called and says what is in `answer`, `errors` and `status`."""
    path = tmp_path / "hal-environment"
    folder = quote(str(tmp_path))
    path.write_text(
        f'#!/bin/sh\necho "$@" >{folder}/called\ncat >{folder}/asked\ncat {folder}/errors >&2\ncat {folder}/answer\n'
        f"exit $(cat {folder}/status)\n"
    )
    path.chmod(0o755)
    says(path, json.dumps(DONE))
    return path


def says(program: Path, answer: str, errors: str = "", status: int = 0) -> None:
    for name, text in (("answer", answer), ("errors", errors), ("status", str(status))):
        (program.parent / name).write_text(text)


@pytest.fixture
def run(program: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the module: how it ended, and with what."""

    def exit_json(self: object, **result: Any) -> None:
        raise Ended("exit", result)

    def fail_json(self: object, msg: str, **result: Any) -> None:
        raise Ended("fail", {"msg": msg, **result})

    monkeypatch.setattr(basic.AnsibleModule, "exit_json", exit_json)
    monkeypatch.setattr(basic.AnsibleModule, "fail_json", fail_json)

    def call(check: bool = False, **parameters: Any) -> tuple[str, dict[str, Any]]:
        given = {"owner": "hal", "environments": DECLARED, "program": str(program), "_ansible_check_mode": check}
        named = {name: value for name, value in {**given, **parameters}.items() if value is not None}
        arguments = json.dumps({"ANSIBLE_MODULE_ARGS": named}).encode()
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", arguments)
        with pytest.raises(Ended) as ended:
            loaded().main()
        how, result = ended.value.args
        return str(how), dict(result)

    return call


def test_it_asks_for_what_is_declared_and_gives_the_answer(run: Run, program: Path) -> None:
    assert run(remove_ok=True, used=["r/3"], told={"r/4": "x"}) == ("exit", DONE)
    assert json.loads((program.parent / "asked").read_text()) == {
        "owner": "hal",
        "environments": DECLARED,
        "remove_ok": True,
        "used": ["r/3"],
        "told": {"r/4": "x"},
    }
    assert (program.parent / "called").read_text() == "apply\n"


def test_nothing_is_removed_unless_it_is_asked_for(run: Run, program: Path) -> None:
    run()
    asked = json.loads((program.parent / "asked").read_text())
    assert (asked["remove_ok"], asked["used"], asked["told"]) == (False, [], {})


def test_a_check_only_looks(run: Run, program: Path) -> None:
    assert run(check=True) == ("exit", DONE)
    assert (program.parent / "called").read_text() == "apply --check\n"


def test_the_last_line_is_the_answer(run: Run, program: Path) -> None:
    says(program, f"downloading\n{json.dumps(DONE)}\n\n")
    assert run() == ("exit", DONE)


def test_a_problem_is_said_with_the_last_steps_and_what_was_done(run: Run, program: Path) -> None:
    steps = [f"step {number}" for number in range(25)]
    says(program, json.dumps({**DONE, "problem": "no room"}), "\n".join(steps), 1)
    assert run() == ("fail", {"msg": "no room", "steps": steps[5:], **DONE})


@pytest.mark.parametrize(
    ("answer", "errors", "said"),
    [
        ("", "", "no word"),
        ("", "Traceback\n", "Traceback"),
        ("words\n", "", "words"),
        ("words\n", "first\nlast\n", "first\nlast"),
        ("", "x" * 600, "x" * 500),
    ],
)
def test_a_program_without_an_answer_is_quoted(run: Run, program: Path, answer: str, errors: str, said: str) -> None:
    says(program, answer, errors, 7)
    assert run() == ("fail", {"msg": f"{program} ended with 7: {said}"})


def test_on_a_bare_node_a_check_says_what_would_come_and_a_rollout_what_is_missing(run: Run, tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    nothing: dict[str, Any] = {name: [] for name in ("repaired", "switched", "removed", "kept", "mended")}
    assert run(check=True, program=missing) == (
        "exit", {"changed": True, "installed": ["python/3.8", "r/4"], **nothing}
    )  # fmt: skip
    assert run(check=True, program=missing, environments=[]) == ("exit", {"changed": False, "installed": [], **nothing})
    assert run(program=missing) == ("fail", {"msg": f"{missing} is not there: roll out the role environments"})


@pytest.mark.parametrize("left_out", ["owner", "environments"])
def test_whose_they_are_and_which_has_to_be_said(run: Run, left_out: str) -> None:
    how, result = run(**{left_out: None})
    assert (how, result["msg"]) == ("fail", f"missing required arguments: {left_out}")
