"""Scenarios' lists of faults: what is planted, and when a test of the list is green."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from testing import faults

FAULT = {"promise": "chronyd runs", "role": "time", "node": "hal01", "plant": "systemctl stop chronyd"}
PASSED = {"role": "time", "id": "chronyd runs", "status": "pass", "observed": True, "reason": ""}
FAILED = {**PASSED, "status": "fail", "observed": False}


def asked(*results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"before": {"results": [PASSED]}, "plant": {"rc": 0}, "ask": {"results": list(results)}}


def test_a_fault_that_the_promise_notices_is_green() -> None:
    assert faults.unnoticed(FAULT, asked(PASSED, FAILED)) == ""


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ({}, "hal01: does not hold before: systemctl stop chronyd\nnothing was asked"),
        (asked(), "hal01: not fail after: systemctl stop chronyd\nnothing was asked"),
        (
            {**asked(FAILED), "before": {"results": [PASSED, {**FAILED, "reason": "differs"}]}},
            "hal01: does not hold before: systemctl stop chronyd\n"
            "chronyd runs: pass, observed True \nchronyd runs: fail, observed False differs",
        ),
        (asked(PASSED), "hal01: not fail after: systemctl stop chronyd\nchronyd runs: pass, observed True "),
        (
            asked({**PASSED, "status": "unknown", "reason": "no systemd"}),
            "hal01: not fail after: systemctl stop chronyd\nchronyd runs: unknown, observed True no systemd",
        ),
        ({**asked(FAILED), "plant": {"failed": True, "stderr": "no such unit"}}, "plant on hal01: no such unit"),
        ({**asked(FAILED), "undo": {"failed": True, "msg": "rc 1"}}, "undo on hal01: rc 1"),
        ({"plant": {"unreachable": True, "msg": "no route"}}, "plant on hal01: no route"),
    ],
)
def test_what_proves_nothing_is_told(tasks: dict[str, Any], said: str) -> None:
    assert faults.unnoticed(FAULT, tasks) == said


def test_a_fault_may_keep_the_promise_from_being_read() -> None:
    fault = {**FAULT, "finds": "unknown"}
    assert faults.unnoticed(fault, asked({**PASSED, "status": "unknown"})) == ""
    assert faults.unnoticed(fault, asked(FAILED)).startswith("hal01: not unknown after: ")


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        ([PASSED], [PASSED], []),
        ([PASSED, {**FAILED, "id": "never fits"}], [PASSED], []),
        ([PASSED], [FAILED], ["chronyd runs: fail, observed False "]),
        (
            [PASSED, {**PASSED, "role": "slurm"}],
            [PASSED, {**FAILED, "role": "slurm"}],
            ["chronyd runs: fail, observed False "],
        ),
        ([PASSED], [], ["nothing was asked"]),
        ([], [PASSED], ["nothing held at first"]),
        ([FAILED], [FAILED], ["nothing held at first"]),
    ],
)
def test_what_held_at_first_and_does_not_again_is_left_of_it(
    first: list[Any], last: list[Any], said: list[str]
) -> None:
    assert faults.left({"results": first}, {"results": last}) == said


def test_a_node_that_is_gone_is_left_of_it() -> None:
    gone = {"unreachable": True, "msg": "no route"}
    assert faults.left({"results": [PASSED]}, gone) == ["no route"]
    assert faults.left({}, {}) == ["nothing held at first"]


def test_a_play_for_each_fault_between_two_looks_at_each_node() -> None:
    other = {"promise": "time", "role": "time", "node": "hal02", "declared": {"x": 1}}
    planted = {**FAULT, "first": "true", "keep": ["/a b"], "undo": "true", "declared": {"y": 2}}
    one, two, first, second, *last = faults.plays([planted, other])
    assert [task["name"] for task in first["tasks"]] == ["save", "first", "before", "plant", "ask", "put back", "undo"]
    assert [task["name"] for task in second["tasks"]] == ["before", "ask"]
    assert [task["vars"].get("y") for task in first["tasks"] if "vars" in task] == [2, 2]
    assert [task["vars"].get("x") for task in second["tasks"]] == [None, 1]
    look = {"roles": ["time"], "report_only": True}
    assert [(play["name"], play["hosts"], play["tasks"][0]["hal_expect"]) for play in (one, two, *last)] == [
        ("hal01 at first", "hal01", look),
        ("hal02 at first", "hal02", look),
        ("hal01", "hal01", look),
        ("hal02", "hal02", look),
    ]


def test_a_run_without_an_account_of_itself_is_told_by_each_test() -> None:
    for printed in ("ERROR! no such host", '{\n"plays": [', '{\n"stats": {}}'):
        results = faults.results_of(printed)
        assert faults.unnoticed(FAULT, results[""]) == f"run on hal01: {printed}"
    asked_once = {"play": {"name": "0"}, "tasks": [{"task": {"name": "ask"}, "hosts": {"a": {"n": 1}}}]}
    told = "[WARNING]: x\n" + json.dumps({"plays": [asked_once]}, indent=4)
    assert faults.results_of(told) == {"0": {"ask": {"n": 1}}}


def test_what_is_kept_is_as_it_was(tmp_path: Path) -> None:
    """Content, mode, links, what was not there: the commands that nodes run, here."""
    folder, link, gone = tmp_path / "a b", tmp_path / "link", tmp_path / "gone"
    folder.mkdir()
    (folder / "file").write_text("before")
    (folder / "file").chmod(0o640)
    link.symlink_to("nowhere")
    keep = [str(folder), str(link), str(gone)]
    save, _, plant, _, put_back = list(faults.plays([{**FAULT, "keep": keep, "plant": "true"}]))[1]["tasks"]

    def run(task: Any) -> None:
        command = task["ansible.builtin.shell"]["cmd"].removeprefix("{% raw %}").removesuffix("{% endraw %}")
        command = command.replace("/run/hal-fault.tar", str(tmp_path / "kept.tar"))
        subprocess.run(["sh", "-c", command], check=True, env={"PATH": os.environ["PATH"]})

    run(save)
    (folder / "file").write_text("after")
    (folder / "file").chmod(0o666)
    (folder / "more").touch()
    link.unlink()
    link.write_text("a file")
    gone.write_text("now it is")
    run(put_back)
    assert (folder / "file").read_text() == "before"
    assert (folder / "file").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b", "link"]
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert link.readlink() == Path("nowhere")
    for task in (plant, put_back):  # nothing is saved now
        with pytest.raises(subprocess.CalledProcessError):
            run(task)
    assert [path.name for path in folder.iterdir()] == ["file"]
