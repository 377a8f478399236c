"""playbooks/reboot.yml while slurmctld restarts: it goes on asking, until the node is ready or the time is over.

And while a rollout holds the node: it leaves that alone. The playbook and hal_slurm_node as they are, over local
connections; scontrol and squeue are programs that fail as Slurm 22.05 does while slurmctld is away; who holds the node
is in a folder of the test. A real reboot over a real slurmctld: molecule/slurm/tests/test_reboot.py.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from tests.unit.interpreters import LOCAL
from tests.unit.playing import UNRECORDED, play

ROOT = Path(__file__).resolve().parents[4]
AWAY = "slurm_load_node error: Unable to contact slurm controller (connect failure)"
NODE = "NodeName=hal05 State={state} SlurmdStartTime=2026-11-21T08:01:02"
DRAINED = " Reason=hal-reboot: test [root@2026-11-21T08:00:00]"
# Answers one after the other, the last one for ever. An empty one is none. At "rollout" one begins; there is no job.
PROGRAM = """#!/bin/sh
case $* in *update*) exit 0 ;; esac
name={folder}/$(basename "$0")
answer=$(head -n 1 "$name.answers")
[ "$(wc -l <"$name.answers")" -eq 1 ] || sed -i 1d "$name.answers"
[ -n "$answer" ] || {{ echo '{away}' >&2; exit 1; }}
[ "$answer" != rollout ] || {{ mv {folder}/begins.json {folder}/hal-rollout/holder.json; answer=none; }}
[ "$answer" = none ] || echo "$answer"
"""
CALLBACKS = f"{UNRECORDED},hal_audit_report"
LIBRARY = f"{ROOT}/tests/unit/hal_cluster/rollout/modules:{ROOT}/plugins/modules"
HOLDER = {
    **{"run": "r", "user": "alice", "host": "ctl9", "machine": "x", "boot": "x", "namespace": "x", "pid": 4711},
    **{"start": 1, "since": 1795233600, "command": "ansible-playbook"},
}
HELD = "alice on ctl9 (process 4711) has held it for a rollout since 2026-11-21 04:00 UTC: ansible-playbook. Wait"
Reboot = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def reboot(tmp_path: Path) -> Reboot:
    """Return a function: what scontrol answers, what squeue answers -> the playbook's run."""

    def run(nodes: list[str], jobs: list[str], *arguments: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        for name, answers in (("scontrol", nodes), ("squeue", jobs)):
            (tmp_path / f"{name}.answers").write_text("".join(f"{line}\n" for line in answers))
            (tmp_path / name).write_text(PROGRAM.format(folder=tmp_path, away=AWAY))
            (tmp_path / name).chmod(0o755)
        (tmp_path / "hal-rollout").mkdir(exist_ok=True)
        (tmp_path / "begins.json").write_text(json.dumps(HOLDER))
        (tmp_path / "systemctl").write_text("#!/bin/sh\n")
        (tmp_path / "systemctl").chmod(0o755)  # should Ansible ever reboot what it runs on
        named = {
            "reboot_nodes": "hal05",
            "reboot_keep_nodes": 0,
            "reboot_wait_seconds": 3,
            "reboot_poll_seconds": 1,
            "reboot_roles": [],
            "ansible_connection": "local",
            "ansible_become": False,
            "ansible_python_interpreter": LOCAL,
        }
        named_so = ["--extra-vars", json.dumps({**named, **variables}), *arguments]
        path = f"{tmp_path}:{os.environ['PATH']}"
        own = {"ANSIBLE_LIBRARY": LIBRARY, "STAND_IN_NODE": str(tmp_path), "PATH": path}
        return play("playbooks/reboot.yml", *named_so, ANSIBLE_CALLBACKS_ENABLED=CALLBACKS, **own)

    return run


IDLE = NODE.format(state="IDLE")
READY = NODE.format(state="IDLE+DRAIN") + DRAINED
JOB = "42|alice|2026-11-21T09:00:00"


def words(run: subprocess.CompletedProcess[str]) -> str:
    return " ".join(run.stdout.split()) + run.stderr


def test_jobs_are_waited_for_through_a_restart_of_slurmctld(reboot: Reboot) -> None:
    """Asked: the plan, twice for the drain, then the wait: no answer, a job, no job."""
    run = reboot([IDLE, IDLE, READY, "", READY, READY], [JOB, JOB, JOB, "none"])
    assert "Wait for the jobs of hal05 (2 retries left)" in words(run)
    # So far it came: Ansible does not reboot what it runs on.
    assert "Running ansible.builtin.reboot with local connection would reboot the control node" in words(run)


def test_a_restart_of_slurmctld_after_the_reboot_is_waited_for_too(reboot: Reboot) -> None:
    """Asked: whether slurmd is back (no answer); then twice by what gives it back, whether it is usable (no answer)."""
    was = {"ours": True, "slurmd_start": "2026-11-21T07:00:00", "reason": "hal-reboot: test"}
    back = reboot(["", READY], ["none"], "--start-at-task", "Wait until slurmd has registered", __reboot_was=was)
    assert "Wait until slurmd has registered (60 retries left)" in words(back)
    assert "TASK [Check that it keeps what its roles promise]" in words(back)  # none was named, so it ends there
    given = reboot([READY, IDLE, "", IDLE], ["none"], "--start-at-task", "Give it back", __reboot_was=was)
    assert given.returncode == 0, words(given)
    assert "Wait until slurmctld sends it jobs (60 retries left)" in words(given)
    assert "hal05: rebooted, takes jobs again" in words(given)


def test_a_slurmctld_that_stays_away_is_what_it_says(reboot: Reboot) -> None:
    run = reboot([IDLE, IDLE, READY, ""], [JOB], reboot_wait_seconds=1)
    assert run.returncode != 0
    assert f"hal05 was not rebooted: scontrol --oneliner show: {AWAY}. It stays drained" in words(run)


def test_jobs_that_do_not_end_are_named(reboot: Reboot) -> None:
    run = reboot([IDLE, IDLE, READY], [JOB], reboot_wait_seconds=1)
    assert run.returncode != 0
    assert "hal05 was not rebooted: 42 still on it. It stays drained" in words(run)


def test_a_rollout_that_began_while_jobs_were_waited_for_is_left_alone(reboot: Reboot) -> None:
    run = reboot([IDLE, IDLE, READY], [JOB, JOB, JOB, "rollout", "none"])
    assert run.returncode != 0
    assert HELD in words(run)
    assert "Wait for the jobs of hal05 (3 retries left)" in words(run)
    assert "TASK [Reboot]" not in words(run)


def test_a_node_of_a_controller_that_is_gone_is_rebooted_when_somebody_says_so(reboot: Reboot) -> None:
    held = reboot([IDLE], ["rollout", "none"])
    assert held.returncode != 0
    assert HELD in words(held)
    assert "TASK [Drain them]" not in words(held)
    permitted = reboot([IDLE, IDLE, READY], ["none"], rollout_take_over=True)
    assert "TASK [Reboot]" in words(permitted)  # so far it came
    assert HELD not in words(permitted)


@pytest.mark.parametrize(
    ("away", "down", "said"),
    [
        (False, False, "hal05: is well"),
        (True, False, "hal05: takes jobs again; it was away for: broken fan"),  # a drain, or FAIL
        (False, True, "hal05: takes jobs again; it was away for: broken fan"),
    ],
)
def test_resume_says_what_it_ended(away: bool, down: bool, said: str) -> None:
    tasks = yaml.safe_load((ROOT / "playbooks/resume.yml").read_text())[0]["tasks"]
    message = next(task for task in tasks if task["name"] == "Say how it ended")["ansible.builtin.debug"]["msg"]
    was = {"away": away, "down": down, "drained": False, "reason": "broken fan"}
    told = {"inventory_hostname": "hal05", "ansible_check_mode": False, "__resume_was": was}
    assert Templar(DataLoader(), variables=told).template(message).strip() == said
