"""hal_slurm_place: a new configuration comes in place at once where nothing depends on the present one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.unit.modules import Answer, Ran, loaded

OLD, NEW = "ClusterName=old\n", "ClusterName=hal\n"


class Node:
    """A node with a slurm.conf in place and another that waits; its units are as told."""

    def __init__(self, folder: Path, *patched: Any) -> None:
        self.conf, self.staged = folder / "slurm.conf", folder / "next"
        self.conf.write_text(OLD)
        self.staged.mkdir()
        (self.staged / "slurm.conf").write_text(NEW)
        self.units = dict[str, str]()
        patched[0].setattr("ansible.module_utils.hal_node.slurm.placed.PROC", str(folder / "proc"))
        (folder / "proc").mkdir()
        patched[0].setattr("ansible.module_utils.hal_node.slurm.process.time.sleep", lambda _: None)
        self.ran = Ran(loaded("hal_slurm_place"), self.answer, *patched)

    def answer(self, argv: list[str]) -> Answer:
        state = self.units.get(argv[-1].partition(".")[0], "inactive")
        return (0, f"ActiveState={state}\n", "") if state else (1, "", "Connection timed out")

    def __call__(self, *daemons: str, check: bool = False, **given: Any) -> dict[str, Any]:
        files = {"files": [str(self.conf)], "staged_dir": str(self.staged)}
        return self.ran(check, daemons=list(daemons), **files, **given)


@pytest.fixture
def node(tmp_path: Path, patched: tuple[Any, Any]) -> Node:
    return Node(tmp_path, *patched)


def test_where_there_are_commands_alone_it_comes_in_place(node: Node) -> None:
    wanted = {"changed": True, "placed": [str(node.conf)], "waits": ""}
    assert node(check=True) == wanted
    assert node.conf.read_text() == OLD
    assert node() == wanted
    assert node.conf.read_text() == NEW
    assert node() == {"changed": False, "placed": [], "waits": ""}


def test_it_waits_for_a_slurmctld_that_is_not_in_the_run(node: Node) -> None:
    for other in ("none", hashlib.sha1(OLD.encode()).hexdigest()):
        assert node(read_elsewhere=other)["waits"].startswith("slurmctld has another slurm.conf")
        assert node.conf.read_text() == OLD
    assert node(read_elsewhere=hashlib.sha1(NEW.encode()).hexdigest())["placed"] == [str(node.conf)]
    assert node(read_elsewhere="none")["waits"] == "", "it is in place"


def test_a_new_node_has_commands_before_slurmctld_is_asked(node: Node) -> None:
    node.conf.unlink()
    assert node(read_elsewhere="none")["placed"] == [str(node.conf)]


def test_a_foreign_file_of_a_daemon_that_is_not_there_is_replaced(node: Node) -> None:
    assert node("slurmctld", "slurmd")["placed"] == [str(node.conf)]


@pytest.mark.parametrize("state", ["active", "activating", "reloading", "deactivating"])
def test_what_runs_keeps_its_files(node: Node, state: str) -> None:
    node.units["slurmd"] = state
    assert node("slurmctld", "slurmd") == {"changed": False, "placed": [], "waits": "slurmd runs"}
    assert node.conf.read_text() == OLD


def test_a_systemd_that_does_not_answer_does_not_say_that_nothing_runs(node: Node) -> None:
    node.units["slurmctld"] = ""
    assert node("slurmctld")["waits"].startswith("systemd did not answer, asked 3 times")


def test_saved_jobs_and_steps_keep_the_files_of_daemons_that_do_not_run(node: Node, tmp_path: Path) -> None:
    state = tmp_path / "state"
    node.conf.write_text(f"StateSaveLocation={state}\n")
    assert node("slurmctld", check=True)["waits"] == ""
    state.mkdir()
    (state / "job_state").write_text("")
    assert node("slurmctld")["waits"] == f"{state}/job_state has jobs that slurmctld saved"
    for number, name in ((7, "sleep"), (8, "slurmstepd")):
        process = tmp_path / f"proc/{number}"
        process.mkdir()
        (process / "comm").write_text(f"{name}\n")
        steps = "steps of jobs run here without slurmd" if name == "slurmstepd" else ""
        assert node("slurmd", check=True)["waits"] == steps


def test_in_check_mode_what_would_be_written_counts(node: Node) -> None:
    (node.staged / "slurm.conf").unlink()
    assert node(check=True)["placed"] == []
    planned = [{"path": str(node.staged / "slurm.conf"), "content": NEW}]
    assert node(check=True, planned=planned)["placed"] == [str(node.conf)]
    assert node(planned=planned)["placed"] == []
