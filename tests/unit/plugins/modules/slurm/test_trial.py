"""hal_slurm_trial with daemons that are shell scripts: they are given the texts, judged, and gone afterwards."""

from __future__ import annotations

import errno
import getpass
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.modules import PROJECT, Ran, loaded

READY = "echo 'slurmctld: Running as primary controller'"
TEXTS = {
    "slurm.conf": f"ClusterName=hal\nSlurmctldHost=hal-login\nSlurmUser={getpass.getuser()}\nNodeName=hal[01-02]\n",
    "gres.conf": "NodeName=hal01 Name=gpu File=/dev/nvidia0\n",
    "cgroup.conf": "ConstrainCores=yes\n",
}


class Slurm:
    """Programs of Slurm, a folder with its configuration, and a folder for temporary files."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.etc, self.temporary = root, root / "etc", root / "tmp"
        self.etc.mkdir()
        self.temporary.mkdir()
        module = loaded("hal_slurm_trial")
        monkeypatch.setattr(module.tempfile, "tempdir", str(self.temporary))
        self.ran = Ran(module, lambda _argv: (0, "slurm 22.05.8\n", ""), monkeypatch, capsys)

    def program(self, name: str, *lines: str) -> Path:
        """Make a daemon that does this; what it did is in the folder `root`."""
        path = self.root / name
        path.write_text("\n".join(["#!/bin/sh", f"cd {self.root}", *lines]) + "\n")
        path.chmod(0o755)
        self.ran.programs[name] = str(path)
        return path

    def arguments(self, *daemons: str, texts: dict[str, str] = TEXTS, **more: Any) -> dict[str, Any]:
        files = [{"path": str(self.etc / name), "content": text} for name, text in texts.items()]
        return {"daemons": list(daemons), "node": "hal01", "files": files, **more}

    def __call__(self, *daemons: str, check: bool = False, **more: Any) -> dict[str, Any]:
        """Run the module; whatever it says, it leaves no folder and no file."""
        before = sorted(self.etc.iterdir())
        answer = self.ran(check=check, **self.arguments(*daemons, **more))
        assert list(self.temporary.iterdir()) == []
        assert sorted(self.etc.iterdir()) == before
        return answer


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Slurm:
    return Slurm(tmp_path, monkeypatch, capsys)


def alive(path: Path) -> list[int]:
    """The processes that still run a program."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(path).encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def session(pid: int) -> int | None:
    """The session of a process; None where it has ended meanwhile."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def gone(path: Path) -> bool:
    """Whether all of them end; minutes only for what hangs."""
    end = time.time() + 120
    while alive(path) and time.time() < end:
        time.sleep(0.05)
    return not alive(path)


@pytest.mark.parametrize("check", [False, True])
def test_a_daemon_reads_the_texts_of_an_instance_of_its_own_and_is_ended(slurm: Slurm, check: bool) -> None:
    (slurm.etc / "acct_gather.conf").write_text("x")
    (slurm.etc / "slurmdbd.conf").write_text("StoragePass=secret")
    program = slurm.program(
        "slurmctld",
        'echo "$@" >asked',
        "conf=$(dirname $SLURM_CONF)",
        "stat -c %a $conf $conf/state >modes; ls $conf >names; cp $SLURM_CONF $conf/gres.conf .",
        "trap 'echo ended >ended; exit 0' TERM",
        READY,
        "while :; do sleep 0.05; done",
    )
    assert slurm("slurmctld", check=check) == {"changed": False, "judged": ["slurmctld"], "why": []}
    assert gone(program)
    asked = (slurm.root / "asked").read_text().split()
    folder = Path(asked[-1]).parent
    assert asked == ["-D", "-c", "-i", "-f", f"{folder}/slurm.conf"]
    assert folder.parent == slurm.temporary
    assert (slurm.root / "modes").read_text().split() == ["700", "700"]
    names = (slurm.root / "names").read_text().split()
    assert names == ["acct_gather.conf", "cgroup.conf", "gres.conf", "said", "slurm.conf", "spool", "state"]
    own = (slurm.root / "slurm.conf").read_text()
    assert f"StateSaveLocation={folder}/state\n" in own
    assert "hal-login" not in own
    assert (slurm.root / "gres.conf").read_text() == TEXTS["gres.conf"]
    assert (slurm.root / "ended").exists(), "it was asked to end, not killed"


def test_slurmd_only_prints_what_it_would_have(slurm: Slurm) -> None:
    slurm.program("slurmd", 'echo "$@" >asked')
    assert slurm("slurmd")["judged"] == ["slurmd"]
    assert (slurm.root / "asked").read_text().split()[:4] == ["-D", "-G", "-N", "hal01"]


@pytest.mark.parametrize("check", [False, True])
def test_a_refusal_is_one_line_with_the_place_in_the_file_that_would_be(slurm: Slurm, check: bool) -> None:
    slurm.program(
        "slurmctld",
        "echo 'slurmctld: error: Configured MailProg is invalid'",
        "echo 'slurmctld: error: Parsing error at unrecognized key: NodeNam'",
        f'echo "slurmctld: error: could not stat $(dirname $SLURM_CONF)/x, Bad \033[31m"; {READY}',
        "echo 'slurmctld: fatal: Duplicated NodeName hal02 in the config file'; exit 1",
    )
    slurm.program("slurmd", "touch asked")
    answer = slurm("slurmctld", "slurmd", check=check)
    assert answer["failed"]
    assert answer["msg"] == (
        "slurmctld 22.05.8 refuses the new configuration, and no file was replaced: Parsing error at unrecognized key: "
        "NodeNam; Duplicated NodeName hal02 in the config file (slurm.conf line 4: NodeName=hal[01-02])"
    )
    assert answer["log"][0] == "slurmctld: error: Configured MailProg is invalid"
    assert "\033" not in str(answer)
    assert not (slurm.root / "asked").exists()


def test_what_the_files_have_already_is_not_read_again(slurm: Slurm) -> None:
    program = slurm.program("slurmctld", "touch asked", READY)
    for name, text in TEXTS.items():
        (slurm.etc / name).write_text(text)
    assert slurm("slurmctld") == {"changed": False, "judged": [], "why": ["the files have these texts already"]}
    assert not (slurm.root / "asked").exists()
    (slurm.etc / "cgroup.conf").write_text("ConstrainCores=no\n")
    assert slurm("slurmctld")["judged"] == ["slurmctld"]
    assert gone(program)


def test_before_the_package_and_its_user_are_there_nothing_is_judged(slurm: Slurm) -> None:
    answer = slurm("slurmctld")
    assert answer["why"] == ["slurmctld did not judge the new configuration: it is not installed"]
    slurm.program("slurmctld", READY)
    for name in ("nobody-has-this-name", "grün", "4294967294"):
        answer = slurm("slurmctld", texts={**TEXTS, "slurm.conf": f"SlurmUser={name}\n"})
        assert f"{name} as SlurmUser, and there is no such user yet" in answer["why"][0]
    assert "warnings" not in answer


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            ["echo 'slurmd: error: Waiting for gres.conf file /dev/nvidia0'", "sleep 600"],
            "a device is not there: Waiting",
        ),
        (["echo 'slurmd: starting'", "sleep 600"], "no end in 1 s; it said last: starting"),
        (["trap '' TERM", "echo 'slurmd: starting'", "while :; do sleep 0.1; done"], "it said last: starting"),
        (["exit 3"], "exit status 3; it said last: nothing"),
        (["echo 'slurmd: fatal: cannot bind: Address already in use'; exit 1"], "Address already in use"),
    ],
)
def test_what_says_nothing_of_the_texts_is_a_warning_and_leaves_nothing_behind(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, lines: list[str], words: str
) -> None:
    monkeypatch.setattr(slurm.ran.module, "ENDING_SECONDS", 1)
    program = slurm.program("slurmd", "echo x >>times", *lines)
    answer = slurm("slurmd", wait_seconds=1)
    assert answer["judged"] == []
    assert words in answer["why"][0]
    assert answer["warnings"] == answer["why"]
    assert gone(program)
    again = "Address already in use" in words
    assert (slurm.root / "times").read_text() == "x\n" * (2 if again else 1)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["exit 3"], "exit status 3; it said last: nothing"),
        (["echo 'slurmctld: error: cannot do this'; exit 1"], "exit status 1; it said last: cannot do this"),
        (["echo 'slurmctld: started'; kill -SEGV $$"], "ended by signal 11; it said last: started"),
        (["echo 'slurmctld: started'; kill -ABRT $$"], "ended by signal 6; it said last: started"),
    ],
)
def test_a_slurmctld_that_does_not_come_up_is_a_refusal(slurm: Slurm, lines: list[str], words: str) -> None:
    slurm.program("slurmctld", *lines)
    slurm.program("slurmd", "touch asked")
    answer = slurm("slurmctld", "slurmd")
    assert answer["failed"]
    assert answer["msg"] == (
        f"slurmctld 22.05.8 does not start with the new configuration, and no file was replaced: {words}"
    )
    assert not (slurm.root / "asked").exists()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["echo 'slurmctld: error: write: No space left on device'; exit 1"], "exit status 1; it said last: write: No"),
        (["echo 'slurmctld: fatal: malloc: Cannot allocate memory'; exit 1"], "exit status 1; it said last: malloc"),
        (["kill -KILL $$"], "ended by signal 9"),
        (["kill -TERM $$"], "ended by signal 15"),
        (["exit 0"], "exit status 0"),
        (["exec /nowhere/slurmctld"], "exit status 127"),
    ],
)
def test_a_slurmctld_that_ends_for_something_else_judges_nothing(slurm: Slurm, lines: list[str], words: str) -> None:
    slurm.program("slurmctld", *lines)
    answer = slurm("slurmctld")
    assert "failed" not in answer
    assert answer["judged"] == []
    assert words in answer["why"][0]
    assert answer["warnings"] == answer["why"]


def test_a_slurmctld_that_was_ready_was_judged_however_it_ends(slurm: Slurm) -> None:
    slurm.program("slurmctld", READY, "kill -SEGV $$")
    assert slurm("slurmctld")["judged"] == ["slurmctld"]


def full(*_words: Any, **_more: Any) -> Any:
    """What the system says no to."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "what",
    [
        *("tempfile.mkdtemp", "os.symlink", "os.mkdir", "read", "free_ports", "subprocess.Popen"),
        "Trial.as_user",  # in the child: Python 3 has an error of its own for that
        "AnsibleModule.run_command",
    ],
)
def test_what_the_system_refuses_is_a_warning_of_one_node(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    (slurm.etc / "acct_gather.conf").write_text("x")
    slurm.program("slurmctld", READY)
    place: Any = slurm.ran.module
    *way, name = what.split(".")
    for step in way:
        place = getattr(place, step)
    with monkeypatch.context() as one:
        one.setattr(place, name, full)
        answer = slurm("slurmctld")
    assert "failed" not in answer
    assert answer["judged"] == []
    assert answer["why"][0].startswith("slurmctld did not judge the new configuration: the trial could not be made: ")
    assert answer["warnings"] == answer["why"]


def test_what_a_daemon_left_in_its_session_is_ended_with_it(slurm: Slurm) -> None:
    child = slurm.program("child", "while :; do sleep 0.05; done")
    slurm.program("slurmctld", f"{child} >/dev/null &", "trap 'exit 0' TERM", READY, "while :; do sleep 0.05; done")
    assert slurm("slurmctld")["judged"] == ["slurmctld"]
    assert gone(child)


@pytest.fixture
def as_process(slurm: Slurm) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Return a function that runs the module in a process of its own."""
    started: list[subprocess.Popen[bytes]] = []
    code = (
        "import os, sys, runpy, ansible.module_utils; from ansible.module_utils import basic;"
        f"ansible.module_utils.__path__.append({str(PROJECT / 'plugins/module_utils')!r});"
        f"os.environ['PATH'] = {str(slurm.root)!r} + ':' + os.environ['PATH']; os.environ['TMPDIR'] = sys.argv[2];"
        "path = sys.argv[1]; del sys.argv[1:]; runpy.run_path(path, run_name='__main__')"
    )

    def run() -> subprocess.Popen[bytes]:
        given = json.dumps({"ANSIBLE_MODULE_ARGS": slurm.arguments("slurmctld")}).encode()
        module = PROJECT / "plugins/modules/hal_slurm_trial.py"
        process = subprocess.Popen(
            [sys.executable, "-c", code, module, slurm.temporary], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdin is not None
        process.stdin.write(given)
        process.stdin.close()
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_daemon_ends_when_the_module_is_killed(
    slurm: Slurm, as_process: Callable[[], subprocess.Popen[bytes]], how: signal.Signals
) -> None:
    program = slurm.program("slurmctld", "[ $1 = -V ] && echo slurm 22.05.8 && exit", "while :; do sleep 0.05; done")
    process = as_process()
    end = time.time() + 120
    while not any(session(pid) not in (None, os.getsid(0)) for pid in alive(program)) and time.time() < end:
        time.sleep(0.05)
    process.send_signal(how)
    process.wait()
    assert gone(program)
