"""hal_scale_config and the program of the role, with stand-ins for mm commands that print captures."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import Any

import pytest
import yaml
from ansible.module_utils import basic
from ansible.module_utils.hal_node.scale import ask as hal_scale_ask

from tests.unit.hal_node.scale.conftest import captures as captures  # a fixture

PROJECT = Path(__file__).resolve().parents[4]
MODULE = PROJECT / "plugins/modules/hal_scale_config.py"
PROGRAM = PROJECT / "roles/spectrum_scale/files/spectrum_scale.py"
EXPECT = PROJECT / "roles/spectrum_scale/expect.yml"
CLIENTS = {"nodes": ["hal01", "hal02", "hal03", "hal77"], "attributes": {"pagepool": "4G", "workerThreads": 512}}
NOWHERE: dict[str, Any] = {"addresses": {}}
GONE = "hal77 is not in the cluster\n"
Run = Callable[..., dict[str, Any]]


def of_node(name: str, *attributes: str) -> str:
    """What the role says of a node and what is declared for it."""
    return json.dumps({"name": name, "addresses": [], "attributes": attributes})


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
        "mmdiag": "mmdiag_config",
        "mmlsfs": "mmlsfs",
    }
    for name, capture in said.items():
        write(tmp_path / name, f"exec cat {quote(str(captures / capture))}.txt")
    write(tmp_path / "mmlsnodeclass", f'exec cat {quote(str(captures))}/mmlsnodeclass"$(echo $1 | sed s/--/_/)".txt')
    write(tmp_path / "mmchconfig", f'echo "$@" >>{tmp_path / "called"}')
    monkeypatch.setattr(hal_scale_ask, "FOLDER", str(tmp_path))  # the module's
    monkeypatch.setattr("hal_node.scale.ask.FOLDER", str(tmp_path))  # the program's
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
        module = load(MODULE)
        monkeypatch.setattr(module, "RECORD", str(commands / "state/set.json"))
        with pytest.raises(Ended) as ended:
            module.main()
        result: dict[str, Any] = ended.value.args[0]
        return result

    return call


def code_of(refused: dict[str, Any]) -> str:
    """The code that a refusal shows."""
    found = re.search(r"-e spectrum_scale_attributes_confirm=([0-9a-f]{4}-[0-9a-f]{4})$", refused["msg"])
    assert refused["failed"]
    assert found, refused["msg"]
    return found[1]


def called(commands: Path) -> list[str]:
    return (commands / "called").read_text().splitlines() if (commands / "called").exists() else []


def test_only_what_differs_is_set_and_what_waits_is_said(run: Run, commands: Path) -> None:
    servers = {"nodes": ["flash1", "flash2"], "attributes": {"nsdBufSpace": 60}}
    declared: dict[str, Any] = {
        "attributes": {"autoload": True},
        "classes": {"clients": CLIENTS, "servers": servers},
        "report_only": ["servers"],
    }
    result = run(**declared, confirm=code_of(run(**declared)))
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


def test_a_node_that_the_cluster_knows_by_the_address_of_its_daemon_gets_its_attributes(
    run: Run, commands: Path, captures: Path
) -> None:
    write(commands / "mmlscluster", f"exec cat {quote(str(captures / 'mmlscluster_ipoib.txt'))}")
    clients = {"nodes": ["hal01", "hal02"], "attributes": {"workerThreads": 512}}
    result = run(classes={"clients": clients}, addresses={"hal02": ["10.64.0.102", "10.64.2.102"]})
    assert called(commands) == ["workerThreads=512 -N hal01,node2-ib"]
    assert result["missing"] == []


def test_no_value_of_somebody_else_s_is_overwritten_before_it_was_shown(run: Run, commands: Path) -> None:
    """Of mmlsconfig's capture: hal03 has a page pool of its own, the cluster one of 1G, autoload is as it was made."""
    declared: dict[str, Any] = {
        "attributes": {"autoload": True, "nsdBufSpace": 60},
        "classes": {"clients": {"nodes": ["hal01", "hal03"], "attributes": {"pagepool": "8G", "maxStatCache": 1000}}},
    }
    refused = run(**declared)
    assert refused["others"] == [
        "nsdBufSpace on flash1,flash2: 60 instead of 70",
        "pagepool on hal01: 8G instead of 4G",
        "pagepool on hal03: 8G instead of 3500m",
    ]
    assert all(f"  {line}\n" in refused["msg"] for line in refused["others"])
    code = code_of(refused)
    assert code_of(run(**declared, confirm="0000-0000")) == code
    # The code of something else is none.
    other = {**declared, "attributes": {"autoload": True}}
    assert code_of(run(**other, confirm=code)) != code
    assert called(commands) == []

    accepted = run(**declared, confirm=f" {code.upper()} ")
    assert accepted["others"] == refused["others"]
    assert called(commands) == [
        "autoload=yes",
        "nsdBufSpace=60 -i",
        "maxStatCache=1000 -N hal01,hal03",
        "pagepool=8G -i -N hal01,hal03",
    ]


def test_the_cluster_s_value_counts_where_nodes_get_another(run: Run, commands: Path) -> None:
    """`mmchconfig pagepool=1G` by an administrator, years ago, for all nodes."""
    declared = {"classes": {"clients": {"nodes": ["login"], "attributes": {"pagepool": "4G"}}}}
    refused = run(**declared, addresses={"login": ["10.64.0.103"]})
    assert refused["others"] == ["pagepool on hal03: 4G instead of 3500m"]
    rows = ["mmlsconfig::HEADER:version:reserved:reserved:configParameter:value:nodeList:"]
    rows += ["mmlsconfig::0:1:::pagepool:1G::"]
    write(commands / "mmlsconfig", "".join(f"echo {quote(row)};" for row in rows))
    refused = run(**declared, addresses={"login": ["10.64.0.103"]})
    assert refused["others"] == ["pagepool on hal03: 4G instead of 1G"]
    # A node that was just added has nothing that anybody has set there.
    added = run(**declared, addresses={"login": ["10.64.0.103"]}, added=True)
    assert (added["others"], called(commands)) == ([], ["pagepool=4G -i -N hal03"])


def test_what_an_earlier_rollout_has_declared_is_ours(run: Run, commands: Path) -> None:
    def clients(pool: str) -> dict[str, Any]:
        return {"clients": {"nodes": ["hal01", "hal02"], "attributes": {"pagepool": pool}}}

    assert run(classes=clients("4G"))["changed"] is False  # it is so already
    assert run(classes=clients("8G"))["changes"] == {"clients": ["pagepool on hal01,hal02: 8G instead of 4G"]}
    record = json.loads((commands / "state/set.json").read_text())
    assert record == {"": {}, "hal01": {"pagepool": "8G"}, "hal02": {"pagepool": "8G"}}
    # A node that is added is remembered beside the others, and what cannot be read is nobody's.
    run(classes={"hal03": {"nodes": ["hal03"], "attributes": {"workerThreads": 1}}}, added=True)
    assert json.loads((commands / "state/set.json").read_text()) == {**record, "hal03": {"workerthreads": "1"}}
    (commands / "state/set.json").write_text("{")
    assert run(classes=clients("2G"))["others"] == ["pagepool on hal01,hal02: 2G instead of 4G"]


def test_check_mode_says_the_same_and_sets_nothing(run: Run, commands: Path) -> None:
    code = code_of(run(check=True, classes={"clients": CLIENTS}))
    result = run(check=True, classes={"clients": CLIENTS}, confirm=code)
    assert not (commands / "state").exists()
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
        ({"attributes": {"pagepol": 1}}, "pagepol is not a known attribute; did you mean pagepool"),
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
    code = code_of(run(classes={"clients": CLIENTS}))
    write(
        commands / "mmchconfig",
        "echo 'mmchconfig: Incorrect node hal01 specified.' >&2; echo 'mmchconfig: Command failed."
        " Examine previous error messages to determine cause.' >&2; exit 1",
    )
    result = run(classes={"clients": CLIENTS}, confirm=code)
    assert result["failed"]
    assert result["msg"].endswith("mmchconfig: Incorrect node hal01 specified.")


def test_a_question_that_hangs_is_ended_with_what_it_started(commands: Path) -> None:
    write(commands / "mmlsconfig", f"sleep 600 >/dev/null 2>&1 & echo $! >{commands / 'started'}; wait")
    with pytest.raises(hal_scale_ask.ScaleError, match="mmlsconfig -Y did not answer within 5 s"):
        hal_scale_ask.ask(["mmlsconfig", "-Y"], 5)
    wait_for_end((commands / "started").read_text().strip())


def wait_for_end(process: str) -> None:
    """Return when a process has ended, whether or not somebody has taken note of it."""
    end = time.monotonic() + 600
    with suppress(FileNotFoundError, ProcessLookupError):  # gone, before or while it is read
        while Path("/proc", process, "stat").read_text().rpartition(") ")[2][0] != "Z":
            assert time.monotonic() < end, f"process {process} goes on"
            time.sleep(0.05)


def test_a_change_that_takes_long_is_left_to_end_and_nothing_is_changed_beside_it(
    run: Run, commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = code_of(run(classes={"clients": CLIENTS}))
    monkeypatch.setattr(hal_scale_ask, "CHANGE_SECONDS", 0.5)
    gate, log = commands / "gate", commands / "called"
    os.mkfifo(gate)
    # What it says when nobody reads it any more does not end it.
    write(commands / "mmchconfig", f'read go <{gate}; echo on; echo still >&2; echo "$@" >>{log}')
    result = run(classes={"clients": CLIENTS}, confirm=code)
    assert result["failed"]
    found = re.fullmatch(
        r"mmchconfig workerThreads=512 -N hal01,hal02,hal03 still runs after 0 s \(process (\d+)\) and was not stopped:"
        r" run this again when it has ended",
        result["msg"],
    )
    assert found, result["msg"]
    process = found[1]

    second = run(classes={"clients": CLIENTS})
    assert second["failed"]
    assert second["msg"] == (
        f"mmchconfig runs already (process {process}): nothing was changed; run this again when it has ended"
    )
    assert called(commands) == []

    gate.write_text("go\n")
    wait_for_end(process)
    assert called(commands) == ["workerThreads=512 -N hal01,hal02,hal03"]


def test_a_command_that_is_not_there_is_said(commands: Path) -> None:
    with pytest.raises(hal_scale_ask.ScaleError, match="mmnothing: No such file"):
        hal_scale_ask.ask(["mmnothing"])


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["effective", of_node("hal01", "pagepool")], 0, ""),
        (["effective", of_node("hal03", "pagepool")], 0, "pagepool: configured 3500m, runs with 4294967296\n"),
        (["effective", of_node("hal03", "workerThreads")], 0, ""),
        (["pending", of_node("hal03", "pagepool")], 0, ""),
        (["members", json.dumps({"hal01": [], "hal77": ["10.64.0.77"], "login": ["10.64.0.103"]})], 0, GONE),
        (
            ["config", json.dumps({**NOWHERE, "attributes": {"autoload": True}, "classes": {"clients": CLIENTS}})],
            0,
            "autoload is no, declared yes\npagepool on hal03 is 3500m, declared 4G\n"
            "workerThreads on hal01,hal02,hal03 is DEFAULT, declared 512\n",
        ),
        (
            ["by-hand", json.dumps({**NOWHERE, "attributes": {"maxFilesToCache": 1}, "classes": {"clients": CLIENTS}})],
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
    assert load(PROGRAM).main(["effective", of_node("hal01", "pagepool")]) == 3
    out, err = capsys.readouterr()
    assert (out, err) == ("", "mmdiag --config -Y: mmdiag: GPFS is down on this node.\n")


def test_all_questions_of_a_call_have_one_limit_together(
    commands: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each one answers in its own time here; one after the other they do not."""
    program = load(PROGRAM)
    monkeypatch.setattr(program, "TOGETHER_SECONDS", 2)
    for name in ("mmlscluster", "mmlsconfig", "mmlsnodeclass", "mmdiag"):
        answer = (commands / name).read_text().partition("\n")[2]
        write(commands / name, f"sleep 0.9; {answer}")
    assert program.main(["effective", of_node("hal01", "pagepool")]) == 3
    late = r"did not answer within|was not asked: the questions before it took"
    # Never the fourth, mmdiag: those before it take longer than all may.
    assert re.fullmatch(rf"mmls\w+ .*({late}) \d+ s\n", capsys.readouterr().err)


@pytest.mark.parametrize("capture", ["mmgetstate.txt", "mmgetstate_52.txt"])
def test_the_promise_of_an_active_daemon_reads_the_column_of_its_state(captures: Path, capture: str) -> None:
    (entry,) = (one for one in yaml.safe_load(EXPECT.read_text()) if one["id"] == "daemon is active")
    lines = (captures / capture).read_text().splitlines()
    seen = [found[1] for found in (re.fullmatch(entry["command"]["select"], line) for line in lines) if found]
    assert seen == ["active"]
    header = next(line for line in lines if ":HEADER:" in line).split(":")
    row = next(line for line in lines if ":0:" in line).split(":")
    assert row[header.index("state")] == "active"


def test_a_promise_waits_longer_than_the_program_asks() -> None:
    """Else it is killed before it can say which question was not answered."""
    program = load(PROGRAM)
    one = {"members": program.SECONDS}  # a single question
    for entry in yaml.safe_load(EXPECT.read_text()):
        argv = entry.get("command", {}).get("argv", [])
        if argv[:1] == ["{{ __spectrum_scale_program }}"]:
            least = one.get(argv[1], program.TOGETHER_SECONDS)
            assert entry["command"].get("timeout_seconds", 20) >= least + 5, entry["id"]


def test_values_by_a_class_that_every_cluster_has_are_read(commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = "mmlsconfig::HEADER:version:reserved:reserved:configParameter:value:nodeList:"
    write(commands / "mmlsconfig", f"echo {header}; echo mmlsconfig::0:1:::nsdMaxWorkerThreads:1024:nsdNodes:")
    servers = {"nodes": ["flash1", "flash2"], "attributes": {"nsdMaxWorkerThreads": 1024}}
    assert (
        load(PROGRAM).main(["config", json.dumps({**NOWHERE, "attributes": {}, "classes": {"servers": servers}})]) == 0
    )
    assert capsys.readouterr().out == ""


def test_what_a_daemon_did_not_take_is_no_reason_for_a_second_restart(
    commands: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = load(PROGRAM)
    monkeypatch.setattr(program, "NOT_TAKEN", str(tmp_path / "state/not_taken.json"))
    header = "mmdiag:config:HEADER:version:reserved:reserved:name:value:changed:"

    def said(word: str, files: int) -> str:
        write(commands / "mmdiag", f"echo {header}; echo mmdiag:config:0:1:::maxFilesToCache:{files}::")
        assert program.main([word, of_node("hal01", "maxFilesToCache")]) == 0
        return capsys.readouterr().out

    line = "maxFilesToCache: configured 131072, runs with 4000\n"
    assert said("pending", 4000) == line
    assert said("restarted", 4000) == line
    assert said("pending", 4000) == ""
    assert said("effective", 4000) == line
    # The daemon may adjust a value to what it finds: it is the configured one that counts.
    assert said("pending", 5000) == ""
    # Another value is another matter, and so is this one after a start that took it.
    capture = (commands / "mmlsconfig").read_text()
    write(
        commands / "mmlsconfig",
        "echo mmlsconfig::HEADER:version:reserved:reserved:configParameter:value:nodeList:;"
        "echo mmlsconfig::0:1:::maxFilesToCache:9000::",
    )
    assert said("pending", 4000) == "maxFilesToCache: configured 9000, runs with 4000\n"
    assert said("restarted", 9000) == ""
    (commands / "mmlsconfig").write_text(capture)
    assert said("pending", 4000) == line


def test_waiting_for_a_mount_ends_and_says_why(commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = "mmgetstate::HEADER:version:reserved:reserved:nodeName:nodeNumber:state:"
    write(commands / "mmgetstate", f"echo '{header}'; echo 'mmgetstate::0:1:::hal01:4:arbitrating:'")
    assert load(PROGRAM).main(["mount", "2", "home=/nowhere"]) == 1
    assert "not mounted after 2 s: home: the daemon is arbitrating" in capsys.readouterr().err
