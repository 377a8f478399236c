"""hal_scale_config and the program of the role, with stand-ins for mm commands that print captures."""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils import basic, hal_scale_ask

PROJECT = Path(__file__).resolve().parents[3]
MODULE = PROJECT / "plugins/modules/hal_scale_config.py"
PROGRAM = PROJECT / "roles/spectrum_scale/files/spectrum_scale.py"
CLIENTS = {"nodes": ["hal01", "hal02", "hal03", "hal77"], "attributes": {"pagepool": "4G", "workerThreads": 512}}
Run = Callable[..., dict[str, Any]]


class Ended(Exception):
    """What the module returned."""


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def commands(tmp_path: Path, captures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the commands; `called` is what mmchconfig was called with."""
    said = {
        "mmlsconfig": "mmlsconfig_nodes",
        "mmlscluster": "mmlscluster_hal",
        "mmlsnodeclass": "mmlsnodeclass",
        "mmdiag": "mmdiag_config",
        "mmlsfs": "mmlsfs",
    }
    for name, capture in said.items():
        write(tmp_path / name, f"exec cat {captures / capture}.txt")
    write(tmp_path / "mmchconfig", f'echo "$@" >>{tmp_path / "called"}')
    monkeypatch.setattr(hal_scale_ask, "FOLDER", str(tmp_path))
    return tmp_path


def write(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


@pytest.fixture
def run(commands: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the module and gives what it returned."""

    def end(self: object, **result: Any) -> None:
        raise Ended(result)

    monkeypatch.setattr(basic.AnsibleModule, "exit_json", end)
    monkeypatch.setattr(basic.AnsibleModule, "fail_json", lambda self, **result: end(self, failed=True, **result))

    def call(check: bool = False, **arguments: Any) -> dict[str, Any]:
        given: Mapping[str, Any] = {**arguments, "_ansible_check_mode": check}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": given}).encode())
        with pytest.raises(Ended) as ended:
            load(MODULE).main()
        result: dict[str, Any] = ended.value.args[0]
        return result

    return call


def called(commands: Path) -> list[str]:
    return (commands / "called").read_text().splitlines() if (commands / "called").exists() else []


def test_only_what_differs_is_set_and_what_waits_is_said(run: Run, commands: Path) -> None:
    servers = {"nodes": ["flash1", "flash2"], "attributes": {"nsdBufSpace": 60}}
    result = run(
        attributes={"autoload": True}, classes={"clients": CLIENTS, "servers": servers}, report_only=["servers"]
    )
    assert called(commands) == ["autoload=yes", "workerThreads=512 -N hal01,hal02,hal03", "pagepool=4G -i -N hal03"]
    assert result["changed"]
    assert result["changes"]["clients"] == [
        "pagepool on hal03: 4G instead of 3500m",
        "workerThreads on hal01,hal02,hal03: 512 instead of DEFAULT",
    ]
    assert result["pending"] == {"clients": ["workerThreads on hal01,hal02,hal03: 512 instead of DEFAULT"]}
    assert result["differences"] == {"servers": ["nsdBufSpace on flash1,flash2: 60 instead of 70"]}
    assert result["missing"] == ["hal77"]
    assert "clients pagepool = 3500m\n" in result["diff"]["before"]
    assert "clients pagepool = 4G\n" in result["diff"]["after"]


def test_check_mode_says_the_same_and_sets_nothing(run: Run, commands: Path) -> None:
    result = run(check=True, classes={"clients": CLIENTS})
    assert result["changed"]
    assert [call.split()[0] for call in result["calls"]] == ["mmchconfig", "mmchconfig"]
    assert called(commands) == []


def test_what_is_declared_already_changes_nothing(run: Run, commands: Path) -> None:
    clients = {"nodes": ["hal01", "hal02"], "attributes": {"pagepool": "4G"}}
    assert run(attributes={"autoload": False}, classes={"clients": clients})["changed"] is False
    assert called(commands) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"attributes": {"pagepol": 1}}, "pagepol is no attribute that is known here; did you mean pagepool"),
        ({"classes": {"a": {"attributes": {}}}}, "class a: write nodes and attributes, not attributes"),
        (
            {"classes": {name: {"nodes": ["hal01"], "attributes": {}} for name in "ab"}},
            "hal01 is in the classes a and b; leave it in one",
        ),
        ({"report_only": ["servers"]}, "report_only: there is no class servers"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_asked(
    run: Run, commands: Path, arguments: dict[str, Any], said: str
) -> None:
    (commands / "mmlsconfig").unlink()
    result = run(**arguments)
    assert result["failed"]
    assert said in result["msg"]


def test_a_failed_call_ends_it_with_scales_words(run: Run, commands: Path) -> None:
    write(
        commands / "mmchconfig",
        "echo 'mmchconfig: Incorrect node hal01 specified.' >&2; echo 'mmchconfig: Command failed."
        " Examine previous error messages to determine cause.' >&2; exit 1",
    )
    result = run(classes={"clients": CLIENTS})
    assert result["failed"]
    assert result["msg"].endswith("mmchconfig: Incorrect node hal01 specified.")


def test_a_command_that_hangs_is_ended_with_what_it_started(commands: Path) -> None:
    write(commands / "mmlsconfig", "sleep 60 & sleep 60")
    began = time.monotonic()
    with pytest.raises(hal_scale_ask.ScaleError, match="mmlsconfig -Y did not answer within 1 s"):
        hal_scale_ask.ask(["mmlsconfig", "-Y"], 1)
    assert time.monotonic() - began < 10


def test_a_command_that_is_not_there_is_said(commands: Path) -> None:
    with pytest.raises(hal_scale_ask.ScaleError, match="mmnothing: No such file"):
        hal_scale_ask.ask(["mmnothing"])


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["effective", "hal01"], 0, ""),
        (["effective", "hal03"], 0, "pagepool: configured 3500m, runs with 4294967296\n"),
        (["members", "hal01", "hal77"], 0, "hal77 is not in the cluster\n"),
        (
            ["config", json.dumps({"attributes": {"autoload": True}, "classes": {"clients": CLIENTS}})],
            0,
            "autoload is no, declared yes\npagepool on hal03 is 3500m, declared 4G\n"
            "workerThreads on hal01,hal02,hal03 is DEFAULT, declared 512\n",
        ),
        (
            ["by-hand", json.dumps({"attributes": {"maxFilesToCache": 1}, "classes": {"clients": CLIENTS}})],
            0,
            "maxMBpS is 24000 on hal02, which nobody declared\n"
            "verbsPorts is mlx5_0/1 mlx5_3/1 on hal01,hal02,hal03, which nobody declared\n",
        ),
        (
            ["file-systems", json.dumps({"FS1": {"blockSize": "1024K", "logfileSize": "32M", "x": 1}})],
            0,
            "FS1: blockSize is 4194304, declared 1024K\nFS1: x is not shown, declared 1\n",
        ),
        (["nonsense"], 3, PROGRAM.read_text().partition('"""')[2].partition('"""')[0] + "\n"),
    ],
)
def test_the_program_prints_a_line_for_each_difference(
    commands: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int, said: str
) -> None:
    assert load(PROGRAM).main(words) == status
    assert capsys.readouterr().out == said


def test_the_program_says_that_scale_does_not_answer(commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(commands / "mmdiag", "echo 'mmdiag: GPFS is down on this node.' >&2; exit 1")
    assert load(PROGRAM).main(["effective", "hal01"]) == 3
    out, err = capsys.readouterr()
    assert (out, err) == ("", "mmdiag --config -Y: mmdiag: GPFS is down on this node.\n")


def test_waiting_for_a_mount_ends_in_time_and_says_why(commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = "mmgetstate::HEADER:version:reserved:reserved:nodeName:nodeNumber:state:"
    write(commands / "mmgetstate", f"echo '{header}'; echo 'mmgetstate::0:1:::hal01:4:arbitrating:'")
    began = time.monotonic()
    assert load(PROGRAM).main(["mount", "2", "home=/nowhere"]) == 1
    assert time.monotonic() - began < 10
    assert "not mounted after 2 s: home: the daemon is arbitrating" in capsys.readouterr().err
