"""hal-reimage as an administrator and the controller run it, under the Pythons of nodes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.reimage.record import Drained, Step, stamp
from tests.unit.hal_cluster.provision.conftest import PROJECT, node
from tests.unit.interpreters import EVERY, LAB, interpreter
from tests.unit.roles.provision_server.reimages import done, failed, record
from tests.unit.roles.provision_server.test_store import WORDS, an_order, settings_of

FILES = PROJECT / "roles/provision_server/files"
LONG_SECONDS = 600
LEFT = (
    "A playbook that still drives it stops by itself, the next time it looks."
    " What was disarmed boots its disk from its next start on.\n"
)
SCONTROL = """#!/bin/sh
[ "$LC_ALL" = C ] || exit 9
printf '%s|' "$@" >>{folder}/asked; echo >>{folder}/asked
[ ! -e {folder}/down ] || {{ echo 'slurm_load_node error: Unable to contact slurm controller' >&2; exit 1; }}
[ ! -e {folder}/refuses ] || case " $* " in *" $(cat {folder}/refuses) "*) echo refused >&2; exit 1 ;; esac
case "$1 $2" in
  '--oneliner show') [ -e {folder}/$4 ] || {{ echo "Node $4 not found"; exit 1; }}; cat {folder}/$4 ;;
  'show reservation') [ -e {folder}/$3 ] || {{ echo "Reservation $3 not found"; exit 1; }} ;;
  'delete ReservationName=hal-reimage-hal05')
    [ -e {folder}/ended ] || {{ echo 'Requested reservation is in use' >&2; exit 1; }} ;;
  "update NodeName=hal04") echo 'slurm_update error: Invalid node state specified' >&2; exit 1 ;;
esac
"""


class Program:
    """hal-reimage and hal-provision with a folder of their own."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.python = folder, python
        self.settings = settings_of(folder, [node(f"hal{at:02}", at) for at in range(1, 9)])
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ("timeout", "cat", "sh"):  # and no scontrol
            (self.bin / name).symlink_to(shutil.which(name) or name)
        self.environment = {"LC_ALL": "C", "PATH": str(self.bin), "PYTHONPATH": str(LAB)}

    def argv(self, *words: str, program: str = "reimage_cli") -> list[str]:
        return [self.python, "-B", str(FILES / f"{program}.py"), "--settings", str(self.settings), *words]

    def run(self, *words: str, data: object = None, program: str = "reimage_cli", **environment: str) -> Any:
        return subprocess.run(
            self.argv(*words, program=program),
            input=data if isinstance(data, bytes) else json.dumps(data).encode(),
            capture_output=True,
            timeout=LONG_SECONDS,
            check=False,
            env={**self.environment, **environment},
        )

    def ok(self, *words: str, data: object = None, **more: str) -> str:
        ran = self.run(*words, data=data, **more)
        assert ran.returncode == 0, ran.stderr.decode()
        return str(ran.stdout.decode())

    def write(self, data: dict[str, Any]) -> dict[str, Any]:
        stored = json.loads(self.ok("read", data["node"]))["nodes"].get(data["node"], {"revision": 0})
        found: dict[str, Any] = json.loads(
            self.ok("write", data["node"], data={**data, "revision": stored["revision"]})
        )
        return found

    def looked(self, name: str, ago: float) -> None:
        """Its controller wrote its record, or looked at it, so long ago, and then no more."""
        for file in (f"{name}.json", f".driven-{name}"):
            with contextlib.suppress(FileNotFoundError):
                os.utime(self.folder / "records" / file, (time.time() - ago,) * 2)

    def slurm(self, **nodes: str) -> None:
        """Slurm's commands are on this machine, and it knows these nodes."""
        program = self.bin / "scontrol"
        program.write_text(SCONTROL.format(folder=self.bin))
        program.chmod(0o755)
        for name, state in nodes.items():
            (self.bin / name).write_text(f"NodeName={name} Arch=ppc64le State={state} Reason=x [root@2026-11-22]\n")

    def asked(self) -> list[str]:
        return (self.bin / "asked").read_text().splitlines() if (self.bin / "asked").exists() else []

    def arm(self, name: str) -> None:
        order = an_order(node(name, int(name[3:])), expires=int(time.time()) + 3600)
        self.ok("arm", name, data=order, program="provision_cli")

    def boots(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ok("status", name, program="provision_cli"))["nodes"][name]
        return found


@pytest.fixture(params=EVERY)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Program:
    return Program(tmp_path, interpreter(request.param))


def now(**changes: Any) -> dict[str, Any]:
    return record(**{"since": stamp(time.time() - 125), **changes})


# ---------------------------------------------------------------- write, read


def test_the_controller_writes_and_reads(program: Program) -> None:
    data = record(waiting="größe")
    wrote = program.run("write", "hal05", data=data)
    assert (wrote.returncode, wrote.stderr) == (0, b"")
    assert json.loads(wrote.stdout) == {**data, "revision": 1}
    (program.folder / "records/hal06.json").write_text("{")
    read = json.loads(program.ok("read"))
    assert read["nodes"] == {"hal05": {**data, "revision": 1}}
    assert read["problems"] == {"hal06": f"{program.folder}/records/hal06.json: is damaged; no JSON"}
    assert json.loads(program.ok("read", "hal07", "hal05"))["nodes"].keys() == {"hal05"}
    assert json.loads(program.ok("read", "hal07")) == {"nodes": {}, "problems": {}}


def test_who_read_another_revision_is_told_apart(program: Program) -> None:
    program.write(record())
    again = program.run("write", "hal05", data=record(waiting="late"))
    assert (again.returncode, again.stdout) == (3, b"")
    said = b"hal05: its record has revision 1, and this was made of 0: somebody else wrote it meanwhile\n"
    assert again.stderr == said


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "hal05: no record on standard input; JSON"),
        (b"\xff", "hal05: no record on standard input; JSON"),
        (b"{}", "hal05: that is not a record of a reimage: format is None, and this program knows 1: another release"),
        (b" " * 262145, "hal05: more than 262144 bytes on standard input are not a record"),
    ],
)
def test_what_is_no_record_is_refused(program: Program, data: bytes, words: str) -> None:
    ran = program.run("write", "hal05", data=data)
    assert (ran.returncode, ran.stdout, ran.stderr.decode()) == (2, b"", f"{words}\n")
    assert list((program.folder / "records").iterdir()) == []


def test_an_account_without_rights_gets_one_line(program: Program) -> None:
    (program.folder / "records").rename(program.folder / "elsewhere")
    for words in (("status",), ("read",), ("write", "hal05")):
        ran = program.run(*words, data=record())
        assert (ran.returncode, ran.stderr.count(b"\n")) == (2, 1), words
        assert b"records" in ran.stderr


# ---------------------------------------------------------------- status, show


def test_status_says_where_nodes_are(program: Program) -> None:
    assert program.ok("status") == "no reimage is under way\n"
    for at in (5, 6, 7):
        program.write(now(name=f"hal{at:02}", waiting="größe"))
    program.write(failed("hal01", ended=stamp(time.time() + 3600)))  # the clock went back: no time has passed
    lines = program.ok("status").splitlines()
    assert lines[1].split("  ", 1)[0] == "hal[05-07]"
    assert lines[1].endswith(" min    größe")
    assert lines[2].startswith("hal01       failed: 6/11 install  0 s ago  no call home within 30 min")
    assert "hal01" not in program.ok("status", "hal05")
    ran = program.run("status", "hal09")
    assert (ran.returncode, ran.stderr) == (
        2,
        b"hal09: this server has no such node; it knows those of cluster.yml with a MAC\n",
    )


SILENT = 21 * 60
LEFT_ALONE = "nobody has driven it for 21 min: give the same command again to go on, or: hal-reimage abort hal05"


def words(told: str) -> str:
    """What is said, however it is broken into lines."""
    return " ".join(told.split())


def test_a_node_whose_controller_died_is_told_from_one_that_is_driven(program: Program) -> None:
    program.write(now())
    mark = program.folder / "records/.driven-hal05"
    program.looked("hal05", SILENT)  # no mark yet: the record itself says when
    assert LEFT_ALONE in words(program.ok("status"))
    program.ok("read")
    program.ok("read", "hal05")
    assert not mark.exists(), "who only reads drives nothing"
    assert program.ok("driven", "hal05", "hal06") == ""
    assert mark.stat().st_size == 0
    assert not (program.folder / "records/.driven-hal06").exists()
    for told in (program.ok("status"), program.ok("status", "hal05"), program.ok("show", "hal05")):
        assert "nobody" not in told
    program.looked("hal05", SILENT)
    for told in (program.ok("status"), program.ok("status", "hal05"), program.ok("show", "hal05")):
        assert LEFT_ALONE in words(told)
    program.ok("driven", "hal05")
    assert "nobody" not in program.ok("status")
    program.looked("hal05", SILENT)
    program.write(now(waiting="another"))  # a record that is written is looked at
    assert "nobody" not in program.ok("status")


def test_a_record_without_a_mark_is_given_the_same_time(program: Program) -> None:
    program.write(now())
    program.looked("hal05", SILENT - 120)
    assert "nobody" not in program.ok("status") + program.ok("show", "hal05")


def test_of_what_ended_nobody_is_missed_and_nothing_is_marked(program: Program) -> None:
    program.write(failed())
    program.ok("driven", "hal05")
    assert not (program.folder / "records/.driven-hal05").exists()
    program.looked("hal05", SILENT)
    assert "nobody" not in program.ok("status") + program.ok("show", "hal05")


def test_a_mark_that_cannot_be_left_is_said(program: Program) -> None:
    program.write(now())
    mark = program.folder / "records/.driven-hal05"
    mark.symlink_to(program.folder / "other")
    ran = program.run("driven", "hal05")
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr.decode().startswith(f"{mark}: cannot be written: ")
    assert not (program.folder / "other").exists()


def test_show_says_what_the_server_has_the_node_boot(program: Program) -> None:
    assert program.ok("show", "hal05") == "hal05: no reimage of it is known\n"
    program.write(now())
    program.looked("hal05", 7260)
    program.ok("driven", "hal05")
    told = program.ok("show", "hal05")
    assert "  server      it boots its disk\n" in told
    assert "  record      revision 1, written 2 h 1 min ago, driven " in told
    program.arm("hal05")
    assert "  server      it boots the installer until 20" in program.ok("show", "hal05")
    program.slurm(hal05="IDLE+DRAIN")
    program.ok("abort", "hal05")
    assert "  server      it boots its disk\n" in program.ok("show", "hal05")


def test_nodes_whose_turn_has_not_come_are_shown_with_those_before_them(program: Program) -> None:
    call = {"nodes": ("hal05", "hal06", "hal07")}
    program.write(now(run=call))
    program.write(done("hal07", run={"code": "2222-3333"}))
    told = program.ok("status")
    assert [line.split()[:2] for line in told.splitlines()[1:3]] == [["hal05", "6/11"], ["hal[06-07]", "waiting"]]
    assert "a turn after hal05" in told
    assert "hal07" not in program.ok("status", "hal06")
    assert "waiting" in program.ok("status", "hal06")
    assert program.ok("show", "hal06") == "hal06: waiting for a turn after hal05\n"
    assert program.ok("show", "hal07").startswith("hal07: waiting for a turn after hal05\nhal07: done since ")
    program.write(failed(run=call))
    assert program.ok("show", "hal06") == "hal06: no reimage of it is known\n"


def watching(program: Program) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        program.argv("status", "--watch"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=program.environment,
        # As from a terminal, whatever started this: what runs in the background ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )


def line_of(running: subprocess.Popen[bytes]) -> str:
    """Return the next line without its time."""
    assert running.stdout is not None
    return running.stdout.readline().decode().partition(" ")[2]


def test_who_watches_gets_a_line_for_each_change_until_nothing_goes(program: Program) -> None:
    assert program.ok("status", "--watch") == "no reimage is under way\n"
    program.write(done("hal01"))
    program.write(now())
    running = watching(program)
    try:
        assert line_of(running) == "hal05: 6/11 install: the call home\n"
        program.write(now(seconds={"drain": 1.0}))  # no change that anybody sees
        program.write(now(step=Step.START, waiting=""))
        assert line_of(running) == "hal05: 7/11 start\n"
        program.write(failed(reason="größe"))
        assert line_of(running) == "hal05: failed at 6/11 install: größe\n"
        assert running.communicate(timeout=LONG_SECONDS) == (b"", b"")
        assert running.returncode == 0
    finally:
        running.kill()


def is_told_of_the_other(program: Program, running: subprocess.Popen[bytes], call: dict[str, Any]) -> None:
    """hal06 has its turn after hal05, ends, and then so does whoever watches."""
    assert line_of(running) == "hal06: waiting for a turn\n"
    program.write(now(name="hal06", run=call))
    assert line_of(running) == "hal06: 6/11 install: the call home\n"
    program.write(done("hal06", run=call))
    assert line_of(running) == "hal06: done\n"
    assert running.communicate(timeout=LONG_SECONDS) == (b"", b"")


def test_who_watches_does_not_leave_between_two_nodes_of_a_call(program: Program) -> None:
    call = {"nodes": ("hal05", "hal06")}
    program.write(done(run=call, ended=stamp(time.time())))
    running = watching(program)
    try:
        is_told_of_the_other(program, running, call)
        assert running.returncode == 0
    finally:
        running.kill()


def test_who_watches_does_not_leave_after_a_failure_that_others_go_on_after(program: Program) -> None:
    call = {"nodes": ("hal05", "hal06"), "go_on": True}
    program.write(failed(run=call, ended=stamp(time.time() - 7200)))  # the controller's clock is wrong
    running = watching(program)
    try:
        is_told_of_the_other(program, running, call)
    finally:
        running.kill()
    program.write(failed(run={**call, "go_on": False}))
    assert program.ok("status", "--watch") == "no reimage is under way\n"


def test_a_node_is_where_the_living_call_has_it(program: Program) -> None:
    """Three nodes of a call whose controller died, taken up by another in another order, one after the other."""
    nodes = ("hal05", "hal06", "hal07")
    for name in nodes:
        program.write(now(name=name, run={"nodes": nodes, "call": "first"}))
        program.looked(name, SILENT)
    assert words(program.ok("status")).count("hal[05-07]") == 1
    program.write(now(name="hal06", step=Step.BOOT, waiting="", run={"nodes": nodes, "call": "second"}))
    told = program.ok("status").splitlines()[1:]
    assert [line.split()[:2] for line in told] == [["hal06", "5/11"], ["hal[05,07]", "waiting"]], told
    assert "a turn after hal06" in told[1]
    program.looked("hal06", SILENT)  # that one died, too: each is where it was left
    found = re.findall(r"^(hal\S+) +(\S+)", program.ok("status"), re.M)
    assert sorted(found) == [("hal06", "5/11"), ("hal[05,07]", "6/11")]
    program.looked("hal06", 0)
    program.write(now(name="hal07", waiting="another", run={"code": "2222-3333"}))  # taken away by a third
    told = program.ok("status").splitlines()[1:]
    assert [line.split()[:2] for line in told] == [["hal07", "6/11"], ["hal06", "5/11"], ["hal05", "waiting"]], told


def test_who_watches_what_nobody_drives_is_told_so_and_waits_no_longer(program: Program) -> None:
    program.write(now())
    program.write(now(name="hal06"))
    program.looked("hal05", SILENT)
    running = watching(program)
    try:
        assert line_of(running).startswith("hal05: 6/11 install: the call home: nobody has driven it since 20")
        assert line_of(running) == "hal06: 6/11 install: the call home\n"
        program.write(now(name="hal06", waiting="another"))  # hal06 is driven: there is something to wait for
        assert line_of(running) == "hal06: 6/11 install: another\n"
        program.looked("hal06", SILENT)
        assert line_of(running).startswith("hal06: 6/11 install: another: nobody has driven it since 20")
        assert running.communicate(timeout=LONG_SECONDS) == (b"", b"nobody drives hal[05-06] any more\n")
        assert running.returncode == 4
    finally:
        running.kill()


def test_who_no_longer_wants_to_watch_ends_it(program: Program) -> None:
    program.write(now())
    running = watching(program)
    try:
        assert line_of(running)
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=LONG_SECONDS) == (b"", b"")
        assert running.returncode == 130
    finally:
        running.kill()


@contextlib.contextmanager
def terminal(program: Program, columns: int, *words: str, **environment: str) -> Iterator[Callable[[str], str]]:
    """Run it on a terminal; gives a function that reads until it says something."""
    import fcntl
    import struct
    import termios

    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**program.environment, "TERM": "xterm", **environment}
    running = subprocess.Popen(program.argv(*words), stdin=its, stdout=its, stderr=its, env=env)
    os.close(its)
    seen = ""

    def until(what: str) -> str:
        nonlocal seen
        while what not in seen:
            try:
                seen += os.read(ours, 65536).decode()
            except OSError:  # it ended
                break
        found, seen = seen, ""
        assert what in found, found
        return found

    try:
        yield until
    finally:
        running.terminate()
        running.wait(LONG_SECONDS)
        os.close(ours)


def test_on_a_terminal_it_is_coloured_and_as_wide_as_the_terminal(program: Program) -> None:
    program.write(failed(reason="some words " * 20))
    with terminal(program, 110, "status") as until:
        found = until("hal-reimage abort hal05").splitlines()
    assert found[1].startswith("\033[31mhal05")
    assert 100 < len(found[1].removeprefix("\033[31m").removesuffix("\033[0m")) <= 110, found
    with terminal(program, 110, "status", NO_COLOR="1") as until:
        assert "\033" not in until("hal-reimage abort hal05")


def test_on_a_terminal_it_is_drawn_again_until_nothing_goes(program: Program) -> None:
    program.write(now())
    with terminal(program, 100, "status", "--watch") as until:
        assert "\033[H\033[J" in until("the call home")
        program.write(now(waiting="another"))
        until("another")
        program.write(failed())
        until("hal-reimage abort hal05")
    program.write(now())
    program.looked("hal05", SILENT)
    with terminal(program, 200, "status", "--watch") as until:
        assert LEFT_ALONE in until("nobody drives hal05 any more")


# ---------------------------------------------------------------- abort


def test_an_abort_ends_it_takes_the_order_back_and_drains(program: Program) -> None:
    program.slurm(hal05="MIXED")
    program.write(now(step=Step.ARM))
    program.arm("hal05")
    program.arm("hal06")
    assert program.ok("abort", "hal05", SUDO_USER="alice") == (
        "hal05: aborted by alice at step arm\n"
        "hal05: disarmed\n"
        "hal05: drained in Slurm: hal-reimage: aborted by alice at step arm\n" + LEFT
    )
    stored = json.loads(program.ok("read", "hal05"))["nodes"]["hal05"]
    assert (stored["state"], stored["revision"]) == ("aborted", 2)
    assert (program.boots("hal05")["armed"], program.boots("hal06")["armed"]) == (False, True)
    assert program.asked() == [
        "--oneliner|show|node|hal05|",
        "update|NodeName=hal05|State=DRAIN|Reason=hal-reimage: aborted by alice at step arm|",
        "show|reservation|hal-reimage-hal05|",
    ]
    again = program.run("abort", "hal05")
    assert (again.returncode, again.stdout) == (2, b"")
    assert again.stderr.startswith(b"hal05: its last reimage is over: aborted at 20")
    assert len(program.asked()) == 3


@pytest.mark.parametrize("step", list(Step))
def test_whose_bmc_may_have_been_told_to_boot_from_the_network_is_said_with_what_takes_it_back(
    program: Program, step: Step
) -> None:
    program.slurm(hal05="DRAIN")
    program.write(now(step=step))
    said = program.ok("abort", "hal05")
    back = "ansible-playbook playbooks/power.yml -e power_nodes=hal05 -e power_action=boot -e power_boot=none\n"
    assert (back in said) == (step in (Step.BOOT, Step.INSTALL))
    assert said.endswith(LEFT)


def test_the_trail_says_who_aborted_it(program: Program) -> None:
    program.write(now(step=Step.WAITING))
    program.ok("abort", "hal05", SUDO_USER="alice")
    lines = [json.loads(line) for line in (program.folder / "state/audit.jsonl").read_text().splitlines()]
    assert [line["result"] for line in lines][-1] == "aborted by alice at step waiting"


def test_one_whose_turn_had_not_come_stays_in_slurm_as_it_was(program: Program) -> None:
    program.slurm(hal05="IDLE")
    program.write(now(step=Step.WAITING))
    assert "Slurm was not asked to do anything yet" in program.ok("abort", "hal05")
    assert program.asked() == []


def test_one_that_an_administrator_had_drained_keeps_his_reason(program: Program) -> None:
    program.slurm(hal05="IDLE+DRAIN")
    program.write(now(step=Step.DRAIN, drained_before=Drained("it is größer", "bob")))
    program.ok("abort", "hal05", SUDO_USER="alice", LC_ALL="POSIX")  # scontrol is asked in English
    reason = "hal-reimage: aborted by alice at step drain (bob had drained it before: it is gr er)"
    assert program.asked()[1] == f"update|NodeName=hal05|State=DRAIN|Reason={reason}|"


@pytest.mark.parametrize(
    "state", ["MIXED+DRAIN+REBOOT_REQUESTED", "DOWN+DRAIN+REBOOT_ISSUED", "REBOOT", "MIXED@+DRAIN"]
)
def test_a_reboot_is_taken_back_before_it_is_drained(program: Program, state: str) -> None:
    """It would end the drain, whatever its nextstate. Meanwhile no job comes."""
    program.slurm(hal05=state)
    program.write(now(step=Step.DRAIN, run={"by_slurm": True}))
    told = "hal05: its reboot was taken back, drained in Slurm: hal-reimage: aborted by alice at step drain\n"
    assert told in program.ok("abort", "hal05", SUDO_USER="alice")
    held = "ReservationName=hal-reimage-abort-hal05|"
    assert program.asked() == [
        "--oneliner|show|node|hal05|",
        f"create|reservation|{held}StartTime=now|Duration=5|Nodes=hal05|Users=root|Flags=MAINT,IGNORE_JOBS|",
        "update|NodeName=hal05|State=RESUME|",
        "update|NodeName=hal05|State=DRAIN|Reason=hal-reimage: aborted by alice at step drain|",
        f"delete|{held}",
        "show|reservation|hal-reimage-hal05|",
    ]


def test_the_test_job_and_what_kept_others_away_from_it_go(program: Program) -> None:
    program.slurm(hal05="IDLE+MAINT+RESERVED")
    program.write(now(step=Step.JOB, job="12"))
    (program.bin / "hal-reimage-hal05").write_text("")
    scancel = program.bin / "scancel"
    told = f"printf '%s|' scancel \"$@\" >>{program.bin}/asked; echo >>{program.bin}/asked"
    scancel.write_text(f"#!/bin/sh\n{told}\n: >{program.bin}/ended\n")
    scancel.chmod(0o755)
    program.ok("abort", "hal05", SUDO_USER="alice")
    assert [line.split("|Reason")[0] for line in program.asked()] == [
        "--oneliner|show|node|hal05|",
        "update|NodeName=hal05|State=DRAIN",  # first: what ends opens the node to nobody
        "show|reservation|hal-reimage-hal05|",
        "scancel|--name|hal-reimage-hal05|--nodelist|hal05|",
        "delete|ReservationName=hal-reimage-hal05|",
    ]


def test_one_that_cannot_be_resumed_is_failed(program: Program) -> None:
    program.slurm(hal05="INVAL+DRAIN+REBOOT_ISSUED")
    (program.bin / "refuses").write_text("State=RESUME")
    program.write(now(step=Step.DRAIN, run={"by_slurm": True}))
    assert "hal05: its reboot was taken back, failed in Slurm: " in program.ok("abort", "hal05", SUDO_USER="alice")
    assert program.asked()[3] == "update|NodeName=hal05|State=FAIL|Reason=hal-reimage: aborted by alice at step drain|"


def test_no_job_comes_while_its_reboot_is_taken_back_or_nothing_is_done(program: Program) -> None:
    program.slurm(hal05="DOWN+DRAIN+REBOOT_ISSUED", hal06="DOWN+DRAIN+REBOOT_ISSUED")
    for name, refused, left in (("hal05", "reservation", 2), ("hal06", "State=DRAIN", 5)):
        (program.bin / "refuses").write_text(refused)
        (program.bin / "asked").unlink(missing_ok=True)
        program.write(now(name=name, step=Step.DRAIN))
        ran = program.run("abort", name)
        assert (ran.returncode, ran.stderr.decode()) == (2, f"{name}: not drained in Slurm: refused\n")
        assert len(program.asked()) == left  # the reservation goes all the same, and nothing is resumed without it


def test_a_reason_is_one_line_that_scontrol_takes(program: Program) -> None:
    program.slurm(hal05="IDLE")
    program.write(now(step=Step.DRAIN, drained_before=Drained('a "b" \\[c]\n' + "x" * 400, "bob")))
    program.ok("abort", "hal05", SUDO_USER="alice")
    said = program.asked()[1].split("Reason=")[1].rstrip("|")
    assert said.startswith("hal-reimage: aborted by alice at step drain (bob had drained it before: a b (c) xxx")
    assert (len(said), said[-4:]) == (240, "x...")


def test_one_whose_disk_was_erased_is_told_and_stays_known(program: Program) -> None:
    program.write(now())
    program.arm("hal05")
    began = {"node": "hal05", "began": "2026-11-22T18:05:10Z", "what": "image compute-1"}
    (program.folder / "state/calls/hal05").write_text(json.dumps(began))
    told = "its disk was erased, and it boots nothing or half a system: installation began at 2026-11-22T18:05:10Z"
    assert f"hal05: disarmed; {told}" in program.ok("abort", "hal05")
    program.write(failed())  # its order was taken back before
    assert f"hal05: was not armed; {told}" in program.ok("abort", "hal05")
    assert program.boots("hal05")["unfinished"].startswith("installation began")  # as long as nobody disarms it again


def test_what_fails_of_one_keeps_nothing_else_from_being_done(program: Program) -> None:
    program.slurm(hal03="IDLE", hal04="IDLE", hal05="IDLE", hal06="IDLE")
    for name in ("hal01", "hal03", "hal04", "hal05", "hal06"):
        program.write(now(name=name))
        program.arm(name)
    (program.folder / "records/hal05.json").write_text("{")
    token = program.folder / "state/spool/hal03"
    token.mkdir()  # what cannot be removed
    ran = program.run("abort", *(f"hal0{at}" for at in range(1, 7)), SUDO_USER="alice")
    assert ran.returncode == 2
    lines = ran.stdout.decode()
    aborted = "aborted by alice at step install"
    assert "hal01: Slurm does not know it\n" in lines
    assert f"hal03: drained in Slurm: hal-reimage: {aborted}\n" in lines
    assert "hal05: drained in Slurm: hal-reimage: aborted by alice\n" in lines  # its record is damaged
    assert f"hal06: drained in Slurm: hal-reimage: {aborted}\n" in lines
    assert lines.endswith(LEFT)
    wrong = ran.stderr.decode().splitlines()
    assert wrong == [
        "hal02: no reimage of it is known",
        f"hal03: {token}: cannot be removed: Is a directory",
        "hal04: not drained in Slurm: slurm_update error: Invalid node state specified",
        f"{program.folder}/records/hal05.json: is damaged; no JSON",
    ]
    assert json.loads(program.ok("status", program="provision_cli"))["armed"] == ["hal03"]


def test_slurm_that_does_not_answer_is_said(program: Program) -> None:
    program.slurm(hal05="IDLE")
    (program.bin / "down").write_text("")
    program.write(now())
    ran = program.run("abort", "hal05")
    assert (ran.returncode, ran.stderr) == (
        2,
        b"hal05: not drained in Slurm: slurm_load_node error: Unable to contact slurm controller\n",
    )


def test_no_token_is_shown(program: Program) -> None:
    program.write(now())
    program.arm("hal05")
    for words in (("status",), ("show", "hal05"), ("read",), ("abort", "hal05")):
        ran = program.run(*words)
        assert WORDS.encode() not in ran.stdout + ran.stderr
