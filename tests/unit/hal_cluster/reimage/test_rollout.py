"""Playbooks as processes of their own: who is in which batch, what came of it, and what is left behind."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.reimage import rollout
from hal_cluster.reimage.rollout import Playbook, Playbooks, results_of

ROOT = Path(__file__).resolve().parents[4]
LONG_SECONDS = 600
SECRET = "wq8-Tramway-lan7"
# In place of ansible-playbook: writes down how it was called, waits until it may go on, and ends as it is told.
PROGRAM = """
import json, os, sys, time
from pathlib import Path
here = Path(__file__).parent
argv = sys.argv[1:]
nodes = argv[argv.index("--limit") + 1].split(",")
said = {
    "argv": argv, "nodes": nodes, "pid": os.getpid(), "cwd": os.getcwd(), "environment": dict(os.environ),
    "stdin": sys.stdin.read(),
}
if "--extra-vars" in argv:
    file = Path(argv[argv.index("--extra-vars") + 1][1:])
    said |= {"file": str(file), "mode": file.stat().st_mode, "folder_mode": file.parent.stat().st_mode & 0o777}
    said["variables"] = json.loads(file.read_text())
new = here / (".called-%d" % os.getpid())
new.write_text(json.dumps(said))
number = 1
while True:
    try:
        os.link(new, here / ("called-%d.json" % number))
        break
    except FileExistsError:  # of one that was called before, or at once
        number += 1
new.unlink()
print("on", nodes, flush=True)
while not (here / "go").exists():
    time.sleep(0.01)
told = json.loads((here / "told").read_text()) if (here / "told").exists() else {}
outcome = {name: told.get(name, {"well": True, "tasks": 3, "why": ""}) for name in nodes if told.get(name) != "none"}
if told.get("outcome", True):
    Path(os.environ["HAL_OUTCOME"]).write_text(json.dumps(outcome))
sys.exit(told.get("status", 0))
"""


def until(said: Callable[[], Any]) -> Any:
    """Return what is said once it is something."""
    end = time.monotonic() + LONG_SECONDS
    while not (found := said()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
    return found


class Rollouts:
    """A program in place of ansible-playbook, and who asks for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "program.py").write_text(PROGRAM)
        self.coming = 0

    def playbooks(self, together: float = 0, **changes: Any) -> Playbooks:
        program = [sys.executable, str(self.folder / "program.py")]
        variables = {"vault_bmc_password": SECRET, "site": ["a", 1]}
        made = Playbooks(
            changes.get("converge", Playbook(program, self.folder / "site.yml", variables)),
            Playbook(program, self.folder / "gates.yml", variables),
            self.folder / "state" / "reimage",
            changes.get(
                "environment", {"PATH": os.environ["PATH"], "TMPDIR": str(self.folder / "tmp"), "ONLY": "this"}
            ),
            self.folder,
            together_seconds=together,
            limit_seconds=changes.get("limit", LONG_SECONDS),
            to_come=lambda kind: self.coming,
        )
        (self.folder / "tmp").mkdir(exist_ok=True)
        return made

    def called(self, number: int = 1) -> dict[str, Any]:
        """Return how the program was called, once it was."""
        path = self.folder / f"called-{number}.json"
        until(path.exists)
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def go(self, **told: Any) -> None:
        """Let the program end."""
        (self.folder / "told").write_text(json.dumps(told))
        (self.folder / "go").touch()

    def logs(self) -> list[Path]:
        return sorted((self.folder / "state" / "reimage").iterdir())


@pytest.fixture
def rollouts(tmp_path: Path) -> Rollouts:
    """A folder to roll out from."""
    return Rollouts(tmp_path)


def result(ask: Callable[[str], str | None], node: str) -> str:
    """Return what came of a node."""
    found: list[str] = []

    def asked() -> bool:
        said = ask(node)
        found.extend([] if said is None else [said])
        return bool(found)

    until(asked)
    return found[0]


# --- who is together


def test_a_node_alone_is_rolled_out_at_once(rollouts: Rollouts) -> None:
    rollouts.go()
    playbooks = rollouts.playbooks(together=LONG_SECONDS)
    assert result(playbooks.converge, "hal05") == ""
    called = rollouts.called()
    assert called["nodes"] == ["hal05"]
    assert called["argv"][-1].endswith("site.yml")


def test_nodes_that_come_while_others_are_on_their_way_are_one_playbook(rollouts: Rollouts) -> None:
    playbooks = rollouts.playbooks(together=LONG_SECONDS)
    rollouts.coming = 2
    assert playbooks.converge("hal06") is None
    rollouts.coming = 1
    assert playbooks.converge("hal05") is None
    assert playbooks.converge("hal06") is None
    assert not list(rollouts.folder.glob("called-*"))
    rollouts.coming = 0
    assert playbooks.converge("hal07") is None
    rollouts.go()
    assert rollouts.called()["nodes"] == ["hal05", "hal06", "hal07"]
    assert [result(playbooks.converge, node) for node in ("hal05", "hal06", "hal07")] == ["", "", ""]
    assert len(list(rollouts.folder.glob("called-*"))) == 1


def test_who_comes_late_is_in_the_next(rollouts: Rollouts) -> None:
    playbooks = rollouts.playbooks()
    assert playbooks.converge("hal05") is None
    assert rollouts.called(1)["nodes"] == ["hal05"]
    assert playbooks.converge("hal06") is None
    assert playbooks.converge("hal07") is None
    assert playbooks.converge("hal05") is None, "that it is asked for again does not take it into the next"
    rollouts.go()
    assert result(playbooks.converge, "hal05") == ""
    assert result(playbooks.converge, "hal06") == ""
    assert rollouts.called(2)["nodes"] == ["hal06", "hal07"]
    assert result(playbooks.converge, "hal07") == ""


def test_a_node_whose_reimage_ended_is_not_in_the_next(rollouts: Rollouts) -> None:
    playbooks = rollouts.playbooks()
    for node in ("hal05", "hal06", "hal07"):
        assert playbooks.converge(node) is None
    rollouts.called(1)
    playbooks.leave("hal06")
    playbooks.leave("hal05")  # it is rolled out just now: nothing is taken from under it
    rollouts.go()
    assert result(playbooks.converge, "hal07") == ""
    assert (rollouts.called(1)["nodes"], rollouts.called(2)["nodes"]) == (["hal05"], ["hal07"])


def test_the_oldest_waits_no_longer_than_it_may(rollouts: Rollouts) -> None:
    rollouts.go()
    rollouts.coming = 5
    assert result(rollouts.playbooks(together=0.05).converge, "hal05") == ""
    assert rollouts.called()["nodes"] == ["hal05"]


def test_gates_and_rollouts_do_not_wait_for_each_other(rollouts: Rollouts) -> None:
    playbooks = rollouts.playbooks()
    assert playbooks.converge("hal05") is None
    assert playbooks.gates("hal06") is None
    called = [rollouts.called(number) for number in (1, 2)]
    rollouts.go()
    assert {(one["argv"][-1].split("/")[-1], one["nodes"][0]) for one in called} == {
        ("site.yml", "hal05"),
        ("gates.yml", "hal06"),
    }
    assert result(playbooks.gates, "hal06") == ""
    assert result(playbooks.converge, "hal05") == ""


def test_a_result_is_given_once_and_asking_again_begins_anew(rollouts: Rollouts) -> None:
    rollouts.go()
    playbooks = rollouts.playbooks()
    assert result(playbooks.converge, "hal05") == ""
    assert result(playbooks.converge, "hal05") == ""
    assert len(list(rollouts.folder.glob("called-*"))) == 2


# --- how it is called


def test_secrets_go_by_a_pipe_of_the_owners_and_are_in_no_file(rollouts: Rollouts) -> None:
    playbooks = rollouts.playbooks()
    assert playbooks.converge("hal05") is None
    called = rollouts.called()
    assert called["variables"] == {"vault_bmc_password": SECRET, "site": ["a", 1]}
    assert (called["mode"], called["folder_mode"]) == (stat.S_IFIFO | 0o600, 0o700)
    assert SECRET not in " ".join(called["argv"])
    assert SECRET not in json.dumps(called["environment"])
    until(lambda: not Path(called["file"]).exists())  # who reads it a second time is told so, and does not wait
    files = [one for one in rollouts.folder.rglob("*") if "called-" not in one.name and one.is_file()]
    assert any(one.suffix == ".log" for one in files)
    assert not [one for one in files if SECRET in one.read_text()]
    rollouts.go()
    assert result(playbooks.converge, "hal05") == ""
    assert [one.suffix for one in rollouts.logs()] == [".log"]
    assert list((rollouts.folder / "tmp").iterdir()) == []


def test_many_variables_come_whole(rollouts: Rollouts) -> None:
    rollouts.go()
    many = {f"variable_{number}": "x" * 100 for number in range(10_000)}  # a pipe holds 64 KiB
    program = [sys.executable, str(rollouts.folder / "program.py")]
    playbooks = rollouts.playbooks(converge=Playbook(program, rollouts.folder / "site.yml", many))
    assert result(playbooks.converge, "hal05") == ""
    assert rollouts.called()["variables"] == many


def test_without_variables_there_is_nothing_to_read(rollouts: Rollouts) -> None:
    rollouts.go()
    program = [sys.executable, str(rollouts.folder / "program.py")]
    playbooks = rollouts.playbooks(converge=Playbook(program, rollouts.folder / "site.yml"))
    assert result(playbooks.converge, "hal05") == ""
    assert "--extra-vars" not in rollouts.called()["argv"]


@pytest.mark.parametrize("reads", [0, 1])
def test_who_ends_before_it_has_read_all_is_not_waited_for(rollouts: Rollouts, reads: int) -> None:
    code = f"import sys; open(sys.argv[sys.argv.index('--extra-vars') + 1][1:]).read({reads}); sys.exit(4)"
    if not reads:
        code = "raise SystemExit(4)"
    many = {"site": "x" * 1_000_000}
    playbooks = rollouts.playbooks(converge=Playbook([sys.executable, "-c", code], rollouts.folder / "site.yml", many))
    said = result(playbooks.converge, "hal05")
    (log,) = rollouts.logs()
    assert said == f"the playbook did not reach it (exit status 4); {log}"


PLAY = """
- hosts: hal05,hal06
  gather_facts: false
  strategy: free
  tasks:
    - ansible.builtin.assert:
        that:
          - vault_bmc_password == "%s"
          - site == ["a", 1]
"""


def test_ansible_reads_them_from_there(rollouts: Rollouts) -> None:
    """Once, whatever of it works on how many nodes: there is no second time."""
    (rollouts.folder / "site.yml").write_text(PLAY % SECRET)
    (rollouts.folder / "hal.yml").write_text(f"plugin: hal\ncluster: {ROOT / 'inventory/hal/cluster.yml'}\n")
    program = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(rollouts.folder / "hal.yml")]
    variables = {"vault_bmc_password": SECRET, "site": ["a", 1], "ansible_connection": "local"}
    own = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_CALLBACKS_ENABLED": "hal_outcome"}
    playbooks = rollouts.playbooks(
        LONG_SECONDS,
        converge=Playbook(program, rollouts.folder / "site.yml", variables),
        environment={"PATH": os.environ["PATH"], "HOME": str(rollouts.folder), **own},
    )
    rollouts.coming = 1
    playbooks.converge("hal05")
    rollouts.coming = 0
    assert [result(playbooks.converge, node) for node in ("hal05", "hal06")] == ["", ""], rollouts.logs()[0].read_text()


def test_logs_of_long_ago_are_removed_and_nothing_else(rollouts: Rollouts) -> None:
    rollouts.go()
    playbooks = rollouts.playbooks()
    folder = rollouts.folder / "state" / "reimage"
    folder.mkdir(parents=True)
    old = ["20261001T000000Z-converge-hal05.log", "20261001T000000Z-gates-hal[05-06].outcome", "notes.log", "turns"]
    for name, days in [*((name, 31) for name in old), ("20261101T000000Z-converge-hal05.log", 29)]:
        (folder / name).touch()
        os.utime(folder / name, (time.time() - days * 86400,) * 2)
    assert result(playbooks.converge, "hal05") == ""
    left = {one.name for one in rollouts.logs() if not one.name.endswith("Z-converge-hal05.log")}
    assert left == {"notes.log", "turns"}
    assert len([one for one in rollouts.logs() if one.name.endswith("Z-converge-hal05.log")]) == 2


def test_its_log_is_the_owners_and_has_what_it_printed(rollouts: Rollouts) -> None:
    rollouts.go(hal06={"well": False, "tasks": 1, "why": "Check mounts: no /home"})
    playbooks = rollouts.playbooks(together=LONG_SECONDS)
    rollouts.coming = 1
    playbooks.gates("hal05")
    rollouts.coming = 0
    assert result(playbooks.gates, "hal05") == ""
    said = result(playbooks.gates, "hal06")
    (log, *_) = rollouts.logs()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700
    assert log.name.endswith("Z-gates-hal05.log")
    assert log.read_text() == "on ['hal05']\n"
    assert said == f"Check mounts: no /home; {rollouts.logs()[-1]}"


def test_it_has_the_given_environment_and_nothing_to_read(rollouts: Rollouts) -> None:
    rollouts.go()
    assert result(rollouts.playbooks().converge, "hal05") == ""
    called = rollouts.called()
    assert called["stdin"] == ""
    assert called["cwd"] == str(rollouts.folder)
    assert set(called["environment"]) - {"LC_CTYPE"} == {"PATH", "TMPDIR", "ONLY", "HAL_OUTCOME"}


def test_a_program_that_is_not_there_is_a_failure_of_each(rollouts: Rollouts) -> None:
    playbooks = rollouts.playbooks(converge=Playbook(["/nonexistent"], rollouts.folder / "site.yml"))
    assert result(playbooks.converge, "hal05") == "converge could not be started: No such file or directory"


def test_a_folder_of_logs_that_cannot_be_made_is_a_failure(rollouts: Rollouts) -> None:
    (rollouts.folder / "state").write_text("a file")
    assert result(rollouts.playbooks().converge, "hal05").startswith("converge could not be started: ")


def test_variables_that_cannot_be_written_are_a_failure_and_no_silence(rollouts: Rollouts) -> None:
    wrong = Playbook([sys.executable, "-c", ""], rollouts.folder / "site.yml", {"site": object()})
    said = result(rollouts.playbooks(converge=wrong).converge, "hal05")
    assert said == "converge could not be started: TypeError: Object of type object is not JSON serializable"


# --- what came of it


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"hal05": {"well": True, "tasks": 9, "why": ""}}, ""),
        ({"hal05": {"well": False, "tasks": 9, "why": "Mount: no"}, "status": 2}, "Mount: no; LOG"),
        ({"hal05": {"well": False, "tasks": 9, "why": ""}, "status": 2}, "it failed (exit status 2); LOG"),
        ({"hal05": {"well": True, "tasks": 0, "why": ""}}, "nothing was done there; LOG"),
        ({"hal05": "none", "status": 4}, "the playbook did not reach it (exit status 4); LOG"),
        ({"hal05": "none"}, "the playbook did not reach it (exit status 0); LOG"),
        ({"outcome": False, "status": 1}, "the playbook did not reach it (exit status 1); LOG"),
        ({"outcome": False}, "the playbook did not reach it (exit status 0); LOG"),
    ],
)
def test_a_node_is_well_only_when_it_was_reached_and_ended_well(
    rollouts: Rollouts, told: dict[str, Any], said: str
) -> None:
    rollouts.go(**told)
    found = result(rollouts.playbooks().converge, "hal05")
    assert found == said.replace("LOG", str(rollouts.logs()[0]))


def test_others_failures_are_not_a_nodes_own(tmp_path: Path) -> None:
    (tmp_path / "outcome").write_text(
        json.dumps(
            {
                "hal05": {"well": True, "tasks": 4, "why": ""},
                "hal06": {"well": False, "tasks": 4, "why": "x"},
                "localhost": {"well": False, "tasks": 1, "why": "y"},
            }
        )
    )
    assert results_of(["hal05", "hal06"], tmp_path / "outcome", 2, Path("log")) == {"hal05": "", "hal06": "x; log"}


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', '{"hal05": {}}', '{"hal05": []}'])
def test_an_outcome_that_says_nothing_is_a_failure(tmp_path: Path, text: str) -> None:
    (tmp_path / "outcome").write_text(text)
    said = results_of(["hal05"], tmp_path / "outcome", 0, Path("log"))["hal05"]
    assert said == "the playbook did not reach it (exit status 0); log"


# --- one that hangs

# Starts a process as ansible-playbook does its own, and both wait until they may go. "deaf": they do not hear TERM.
HANGS = """
import os, signal, sys, time
from pathlib import Path
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
here = Path(os.environ["HERE"])
below = os.fork()
if below:
    (here / "new").write_text("%d %d" % (os.getpid(), below))
    (here / "new").rename(here / "pids")
while not (here / "go").exists():
    time.sleep(0.05)
"""


@pytest.mark.parametrize(
    ("words", "variables"),
    [([], {}), (["deaf"], {}), ([], {"site": 1})],
    ids=["it listens", "it is deaf", "it reads no variables"],
)
def test_one_that_hangs_is_ended_with_all_it_started_and_the_next_has_its_turn(
    rollouts: Rollouts, monkeypatch: pytest.MonkeyPatch, words: list[str], variables: dict[str, Any]
) -> None:
    monkeypatch.setattr(rollout, "_GRACE_SECONDS", 0.5 if words else LONG_SECONDS)
    hangs = Playbook([sys.executable, "-c", HANGS, *words], rollouts.folder / "site.yml", variables)
    playbooks = rollouts.playbooks(LONG_SECONDS, converge=hangs, limit=6.0, environment={"HERE": str(rollouts.folder)})
    rollouts.coming = 1
    assert playbooks.converge("hal05") is None
    rollouts.coming = 0
    said = result(playbooks.converge, "hal06")
    assert said == f"did not end within 0.1 min; {rollouts.logs()[0]}"
    assert playbooks.converge("hal05") == said
    pids = (rollouts.folder / "pids").read_text().split()
    until(lambda: all(_over(int(pid)) for pid in pids))
    assert [one.suffix for one in rollouts.logs()] == [".log"]
    (rollouts.folder / "pids").unlink()
    playbooks._limit = LONG_SECONDS
    assert playbooks.converge("hal07") is None
    until((rollouts.folder / "pids").exists)
    rollouts.go()
    assert result(playbooks.converge, "hal07").startswith("the playbook did not reach it (exit status 0)")


def test_a_run_that_is_stopped_ends_its_playbooks_with_all_they_started(
    rollouts: Rollouts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes to the process group of the terminal only, and each playbook has its own."""

    class Late(subprocess.Popen[bytes]):
        """A child that is well on its way before its parent is told."""

        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            time.sleep(0.5)

    monkeypatch.setattr(subprocess, "Popen", Late)
    hangs = Playbook([sys.executable, "-c", HANGS], rollouts.folder / "site.yml")
    playbooks = rollouts.playbooks(converge=hangs, environment={"HERE": str(rollouts.folder)})
    assert playbooks.converge("hal05") is None
    until((rollouts.folder / "pids").exists)
    assert os.getpgid(int((rollouts.folder / "pids").read_text().split()[0])) != os.getpgid(0)
    rollout.end_running()
    assert "(exit status -15)" in result(playbooks.converge, "hal05")
    until(lambda: all(_over(int(pid)) for pid in (rollouts.folder / "pids").read_text().split()))
    rollout.end_running()


# --- ends with who started it

PARENT = """
import sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from hal_cluster.reimage.rollout import Playbook, Playbooks
folder = Path({folder!r})
book = Playbook([sys.executable, str(folder / "program.py")], folder / "site.yml")
playbooks = Playbooks(book, book, folder / "logs", {{"TMPDIR": {folder!r}}}, folder)
while True:
    playbooks.converge("hal05")
    time.sleep(0.01)
"""


def test_a_playbook_ends_when_who_started_it_is_killed(rollouts: Rollouts) -> None:
    text = PARENT.format(root=str(ROOT), folder=str(rollouts.folder))
    environment = {**os.environ, "TMPDIR": str(rollouts.folder)}  # what one that is killed leaves there
    with subprocess.Popen([sys.executable, "-c", text], env=environment) as parent:
        called = rollouts.called()
        assert Path(f"/proc/{called['pid']}").exists()
        parent.send_signal(signal.SIGKILL)
        parent.wait(LONG_SECONDS)
    try:
        until(lambda: _over(called["pid"]))
    finally:
        rollouts.go()  # one that goes on ends now


def _over(pid: int) -> bool:
    """Return whether a process is no more, or only waits for someone to ask how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
