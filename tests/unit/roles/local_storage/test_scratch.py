"""hal-scratch-clean: when it is not known what may go nothing goes, and a name that is swapped leads nowhere else."""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.hal_node.storage.conftest import PROJECT
from tests.unit.interpreters import EVERY, LAB, LOCAL, beside, interpreter

PROGRAM = PROJECT / "roles/local_storage/files/scratch_clean.py"
sys.path[:0] = [str(PROGRAM.parent), str(LAB)]

scratch_clean = importlib.import_module("scratch_clean")

# What the program calls; the scenario has no Slurm, this is the only stand-in.
SQUEUE = """#!/bin/sh
echo "$@" >>{folder}/asked
{does}
"""


class Node:
    """A folder for scratch, and a squeue that says something."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.record, self.permitted = folder, folder / "permitted", True
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        (self.scratch / "old").write_text("x")
        time.sleep(0.05)

    def run(
        self, does: str, *words: str, python: str = LOCAL, locale: str = "C.UTF-8", **changes: Any
    ) -> subprocess.CompletedProcess[str]:
        squeue = self.folder / "squeue"
        squeue.write_text(SQUEUE.format(folder=self.folder, does=does))
        squeue.chmod(0o755)
        own = {"device": "", "beside": str(self.scratch)}
        declared = {"mount": str(self.scratch), "days": 0, "node": "hal05", "slurm": True, **own, **changes}
        (self.folder / "config.json").write_text(json.dumps(declared))
        places = ["--config", str(self.folder / "config.json"), "--record", str(self.record)]
        if self.permitted:
            self.record.write_text(scratch_clean.code_of(declared) + "\n")
        argv = [*beside(python), str(PROGRAM), *places, *words]
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "LC_ALL": locale}
        return subprocess.run(argv, capture_output=True, encoding="utf-8", check=False, env=environment)

    @property
    def left(self) -> list[str]:
        return sorted(str(path.relative_to(self.scratch)) for path in self.scratch.rglob("*"))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize("version", EVERY)
def test_old_files_go_when_nobody_has_a_job(node: Node, version: str) -> None:
    python = interpreter(version)
    done = node.run("exit 0", python=python)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 files (0 MiB) and 0 folders removed" in done.stdout
    assert node.left == []
    assert "--nodelist hal05" in (node.folder / "asked").read_text()


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (
            "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1",
            "Unable to contact",
        ),
        ("exit 124", "no answer (status 124)"),
        ("echo alice", "something else than user ids"),
    ],
)
def test_without_an_answer_of_slurm_nothing_goes(node: Node, does: str, said: str) -> None:
    done = node.run(does, "--patience", "0")
    assert done.returncode == 3
    assert "nothing more is removed: squeue" in done.stderr
    assert said in done.stderr
    assert node.left == ["old"]


def test_slurm_is_asked_again_when_it_is_being_restarted(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = node.folder / "asked"
    squeue = node.folder / "squeue"
    squeue.write_text(SQUEUE.format(folder=node.folder, does=f'[ "$(wc -l <{asked})" -ge 3 ] && echo 5002'))
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(node.folder), prepend=os.pathsep)
    monkeypatch.setattr(scratch_clean, "PAUSE_SECONDS", 0)
    jobs = functools.partial(scratch_clean.users_with_jobs, "hal05")
    assert 5002 in scratch_clean.patient(jobs, 60)
    assert len(asked.read_text().splitlines()) == 3


def test_before_slurm_is_installed_nothing_goes_and_nothing_has_failed(node: Node) -> None:
    """A first rollout at the hour of the clean-up: the unit would count as failed until the next night."""
    done = node.run("exit 127")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Slurm is not installed here" in done.stdout
    assert node.left == ["old"]


def test_files_of_users_with_a_job_are_spared(node: Node) -> None:
    done = node.run(f"echo {os.getuid()}; echo 5002")
    assert done.returncode == 0
    assert node.left == ["old"]


@pytest.mark.parametrize(
    ("job_of", "subuid", "left"),
    [
        (65534, "nobody:{me}:1", ["old"]),
        (65534, "alice:7:1\n65534:{me}:2", ["old"]),
        (4242424242, "alice:{me}:1", ["old"]),  # nobody knows now whether that is alice
        (65534, "alice:{me}:1", []),
        (65534, "nobody:{after}:9\nnobody:{me}\nnobody:{me}:many", []),
        (65534, None, []),
    ],
)
def test_files_of_a_user_s_containers_are_spared(
    node: Node, monkeypatch: pytest.MonkeyPatch, job_of: int, subuid: str | None, left: list[str]
) -> None:
    """Whoever runs this stands for a subordinate id of the user nobody."""
    ranges = node.folder / "subuid"
    if subuid is not None:
        ranges.write_text(subuid.format(me=os.getuid(), after=os.getuid() + 1) + "\n")
    monkeypatch.setattr(scratch_clean, "SUBUID", str(ranges))
    squeue = node.folder / "squeue"
    squeue.write_text(SQUEUE.format(folder=node.folder, does=f"echo {job_of}"))
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(node.folder), prepend=os.pathsep)
    jobs = functools.partial(scratch_clean.users_with_jobs, "hal05")
    scratch_clean.Cleaner(str(node.scratch), 0, jobs, time.time() + 100).run()
    assert node.left == left


def test_a_dry_run_shows_and_removes_nothing(node: Node) -> None:
    done = node.run("exit 0", "--dry-run")
    assert done.stdout.splitlines() == [
        str(node.scratch / "old"),
        f"{node.scratch}: 1 files (0 MiB) and 0 folders would be removed",
    ]
    assert node.left == ["old"]


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_the_names_of_files_drive_no_terminal(node: Node, version: str, locale: str) -> None:
    """A user chooses them, and root reads the list; nothing of a name is lost in it."""
    names = {
        b"a\x1b]0;x\x07": rb"a\x1b]0;x\x07",
        b"b\nroot": rb"b\x0aroot",
        b"c\\x1b": rb"c\\x1b",
        b"d\xff": rb"d\xff",
        "e\x9b\u202e\u2028".encode(): rb"e\u009b\u202e\u2028",
        "größe".encode(): "größe".encode(),
        b"z\xc3\x28": rb"z\xc3(",
    }
    for name in names:
        Path(os.fsdecode(os.fsencode(node.scratch) + b"/" + name)).write_text("x")
    time.sleep(0.05)
    done = node.run("exit 0", "--dry-run", python=interpreter(version), locale=locale)
    *shown, last = done.stdout.splitlines()
    assert sorted(shown) == sorted(f"{node.scratch}/{line.decode()}" for line in [*names.values(), b"old"])
    assert last == f"{node.scratch}: {len(names) + 1} files (0 MiB) and 0 folders would be removed"


def test_what_squeue_and_a_name_say_in_an_error_drives_no_terminal(node: Node) -> None:
    done = node.run(r"printf 'a\nno \033[2J\302\233\377 answer\n' >&2; exit 1", "--dry-run")
    assert (done.returncode, done.stderr) == (3, "nothing more is removed: squeue: no \\x1b[2J\\u009b\\xff answer\n")


def test_what_a_process_has_open_is_spared(node: Node) -> None:
    with (node.scratch / "old").open():
        assert node.run("exit 0").returncode == 0
    assert node.left == ["old"]


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"device": "/dev/null"}, "scratch is not on /dev/null"),
        ({"device": "/dev/disk/by-id/none"}, "/dev/disk/by-id/none: No such file or directory"),
        ({"beside": "/proc"}, "scratch is not on the file system of /proc"),
    ],
)
def test_what_is_not_this_node_s_own_scratch_is_not_cleaned(node: Node, declared: dict[str, str], says: str) -> None:
    """Its disk is not mounted, or a file system of the cluster is mounted there."""
    done = node.run("exit 0", **declared)
    assert (done.returncode, node.left) == (3, ["old"])
    assert says in done.stderr


def test_a_link_in_place_of_scratch_is_refused(node: Node) -> None:
    precious = node.folder / "precious"
    precious.mkdir()
    (precious / "kept").write_text("x")
    link = node.folder / "link"
    link.symlink_to(precious)
    assert node.run("exit 0", mount=str(link)).returncode == 3
    assert (precious / "kept").exists()


def test_young_files_are_spared(node: Node) -> None:
    node.run("exit 0", days=1)
    assert node.left == ["old"]


def test_a_folder_swapped_for_a_link_leads_nowhere(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between looking at a name and opening it, its owner makes it a link to somebody else's folder."""
    precious = node.folder / "precious"
    precious.mkdir()
    (precious / "kept").write_text("x")
    victim = node.scratch / "dir"
    victim.mkdir()
    real = os.open

    def swap(path: Any, *words: Any, **more: Any) -> int:
        if path == "dir":
            victim.rmdir()
            victim.symlink_to(precious)
        return real(path, *words, **more)

    cleaner = scratch_clean.Cleaner(str(node.scratch), 0, frozenset, time.time() + 100)
    monkeypatch.setattr(os, "open", swap)
    cleaner.run()
    assert (precious / "kept").exists()
    assert len(cleaner.problems) == 1


def test_a_folder_that_is_moved_away_while_it_is_cleaned_takes_nothing_along(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is asked for in the folder that is open, wherever a path would lead by now."""
    precious = node.folder / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    victim = node.scratch / "dir"
    victim.mkdir()
    (victim / "file").write_text("x")
    real = os.lstat

    def swap(path: Any, *words: Any, **more: Any) -> os.stat_result:
        if path == "file" and victim.exists() and not victim.is_symlink():
            victim.rename(node.scratch / "moved")
            victim.symlink_to(precious)
        return real(path, *words, **more)

    cleaner = scratch_clean.Cleaner(str(node.scratch), 0, frozenset, time.time() + 100)
    monkeypatch.setattr(os, "lstat", swap)
    cleaner.run()
    assert (precious / "file").exists()


def test_jobs_that_begin_meanwhile_are_heard_of(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    for at in range(3):
        (node.scratch / f"file{at}").write_text("x")
    answers = iter([frozenset(), frozenset({os.getuid()})])
    monkeypatch.setattr(scratch_clean, "ASK_SECONDS", -1)
    last: list[frozenset[int]] = []

    def jobs() -> frozenset[int]:
        last.append(next(answers, frozenset({os.getuid()})))
        return last[-1]

    scratch_clean.Cleaner(str(node.scratch), 0, jobs, time.time() + 100).run()
    assert len(node.left) == 4


def test_a_mount_below_is_left_alone(node: Node) -> None:
    below = node.scratch / "below"
    below.mkdir()
    (below / "kept").write_text("x")
    cleaner = scratch_clean.Cleaner(str(node.scratch), 0, frozenset, time.time() + 100, mounts=frozenset({str(below)}))
    cleaner.run()
    assert node.left == ["below", "below/kept"]
    assert scratch_clean.mount_points("36 35 0:1 / /a\\040b rw - tmpfs x rw\n") == {"/a b"}


# ---------------------------------------------------------------- permission
def code_in(text: str) -> str:
    """The code that a line shows."""
    found = re.search(r"local_storage_scratch_confirmed: ([0-9a-f]{4}-[0-9a-f]{4}) in group_vars", text)
    assert found, text
    return found[1]


@pytest.mark.parametrize("version", EVERY)
def test_nothing_goes_before_it_was_shown_and_permitted_by_its_code(node: Node, version: str) -> None:
    python = interpreter(version)
    node.permitted = False
    done = node.run("exit 0", python=python)
    assert (done.returncode, node.left) == (0, ["old"])
    assert "is off, nothing is removed: nobody has permitted its rules" in done.stdout

    shown = node.run("exit 0", "--permit", "", python=python)
    assert "now 1 files (0 MiB) and 0 folders (" in shown.stdout
    code = code_in(shown.stdout)
    assert node.run("exit 0", "--permit", "0000-0000", python=python).stdout == shown.stdout
    assert node.run("exit 0", "--permission", python=python).stdout.startswith("nobody has permitted to remove from ")
    assert not node.record.exists()
    assert node.left == ["old"]

    assert node.run("exit 0", "--permit", f" {code.upper()} ", python=python).stdout == "permitted\n"
    assert node.run("exit 0", "--permit", code, python=python).stdout == ""
    assert node.run("exit 0", "--permission", python=python).stdout == ""
    assert node.run("exit 0", python=python).returncode == 0
    assert node.left == []


@pytest.mark.parametrize("changed", [{"days": 1}, {"slurm": False}, {"device": "/dev/null"}])
def test_other_rules_need_another_code(node: Node, changed: dict[str, Any]) -> None:
    node.permitted = False
    code = code_in(node.run("exit 0", "--permit", "").stdout)
    assert node.run("exit 0", "--permit", code).stdout == "permitted\n"
    assert node.run("exit 0", "--permission", **changed).stdout.startswith("nobody has permitted")
    assert node.run("exit 0", "--permit", code, **changed).stdout not in ("", "permitted\n")
    assert node.run("exit 0", **changed).returncode == 0
    assert node.left == ["old"]


def test_the_code_is_the_same_on_every_node(node: Node) -> None:
    """Else 16 nodes would need 16 codes. Nodes' disks have other names."""
    rules = {"mount": "/scratch", "days": 30, "slurm": True}
    codes = [
        scratch_clean.code_of({**rules, "node": name, "device": device, "beside": "/"})
        for name, device in (("hal01", "/dev/disk/by-id/wwn-1"), ("hal02", "/dev/disk/by-id/wwn-2"))
    ]
    assert codes[0] == codes[1]
    assert codes[0] != scratch_clean.code_of({**rules, "node": "hal01", "device": "", "beside": "/"})


def test_scratch_without_files_needs_no_code(node: Node) -> None:
    node.permitted = False
    (node.scratch / "old").unlink()
    assert node.run("exit 0", "--permit", "").stdout == "permitted\n"
    (node.scratch / "new").write_text("x")
    assert node.run("exit 0", "--permission").stdout == ""


@pytest.mark.parametrize("does", ["exit 1", "exit 127", "echo alice"])
def test_what_would_go_is_shown_without_slurm_too(node: Node, does: str) -> None:
    node.permitted = False
    shown = node.run(does, "--permit", "")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "(Slurm did not answer: those of users with a job are spared then): now 1 files" in shown.stdout
    spared = node.run(f"echo {os.getuid()}", "--permit", "")
    assert "for 0 days: now 0 files (0 MiB) and 0 folders. " in spared.stdout


def test_scratch_that_is_not_the_node_s_own_is_not_permitted_and_the_rollout_goes_on(node: Node) -> None:
    node.permitted = False
    done = node.run("exit 0", "--permit", "", beside="/proc")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert "is off:" in done.stdout
    assert "is not on the file system of /proc" in done.stdout
    assert not node.record.exists()


def test_a_record_that_cannot_be_read_permits_nothing(node: Node) -> None:
    node.permitted = False
    node.record.mkdir()
    done = node.run("exit 0")
    assert (done.returncode, node.left) == (3, ["old"])
