"""playbooks/reboot.yml while slurmctld restarts: it goes on asking, until the node is ready or the time is over.

And while a rollout holds the node: it leaves that alone. The playbook as it is, over local connections; scontrol and
squeue are programs that fail as Slurm 22.05 does while slurmctld is away; who holds the node is in a folder of the
test. Decisions: tests/unit/hal_cluster/reimage/test_reboot.py. A real reboot over a real slurmctld:
molecule/slurm/tests/test_reboot.py.
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

from hal_cluster.reimage.record import Image, Plan, Record, Run, Step
from tests.unit.interpreters import LOCAL
from tests.unit.playing import UNRECORDED, play

ROOT = Path(__file__).resolve().parents[4]
AWAY = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
NODE = "NodeName=hal05 State={state} SlurmdStartTime=2026-11-21T08:01:02"
DRAINED = " Reason=hal-reboot: test [root@2026-11-21T08:00:00]"
SCONTROL = """#!/bin/sh
cd {folder} || exit
case $* in
*State=DRAIN*) echo '{drained}' >node ;;
*State=RESUME*) echo '{idle}' >node ;;
*"show node"*) cat node ;;
esac
"""
# Answers one after the other, the last one for ever. An empty one is none. At "rollout" one begins; there is no job.
SQUEUE = """#!/bin/sh
cd {folder} || exit
answer=$(head -n 1 answers)
[ "$(wc -l <answers)" -eq 1 ] || sed -i 1d answers
[ -n "$answer" ] || {{ echo '{away}' >&2; exit 1; }}
[ "$answer" != rollout ] || {{ mv begins.json hal-rollout/holder.json; answer=none; }}
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
    """Return a function: the node as slurmctld has it first, what squeue answers -> the playbook's run."""

    def run(node: str, jobs: list[str], *arguments: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        (tmp_path / "node").write_text(f"{node}\n")
        (tmp_path / "answers").write_text("".join(f"{line}\n" for line in jobs))
        for name, program in (("scontrol", SCONTROL), ("squeue", SQUEUE)):
            (tmp_path / name).write_text(program.format(folder=tmp_path, away=AWAY, drained=READY, idle=IDLE))
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


FIRST = 4  # squeue is asked for the plan, as it begins, before the drain and after it
WAITS = "hal05: waits for job 42 of alice (ends by 2026-11-21T09:00:00)"


def at(step: Step, **known: Any) -> dict[str, Any]:
    """What the task before a step registered."""
    plan = Plan("hal05", "", "", Image("", "", "", ""))
    record = Record("hal05", plan, Run("", "", ""), step, in_slurm=True, old_boot_id="2026-11-21T07:00:00", **known)
    return {"record": record.to_json()}


def test_jobs_are_waited_for_through_a_restart_of_slurmctld(reboot: Reboot) -> None:
    run = reboot(IDLE, [*[JOB] * FIRST, "", JOB, "none"], reboot_wait_seconds=30)
    assert words(run).count(WAITS) == 2
    assert (
        f"hal05: waits for an answer: squeue hal05 RUNNING,SUSPENDED,COMPLETING,CONFIGURING,STOPPED: {AWAY}"
        in words(run)
    )
    # So far it came: Ansible does not reboot what it runs on.
    assert "Running ansible.builtin.reboot with local connection would reboot the control node" in words(run)


def test_a_restart_of_slurmctld_after_the_reboot_is_waited_for_too(reboot: Reboot) -> None:
    """It does not answer when it is asked whether slurmd is back; and not, whether the node is usable."""
    started = at(Step.START)
    back = reboot(READY, ["", "none"], "--start-at-task", "Wait until slurmd has registered", __reboot_drained=started)
    assert "hal05: waits for an answer: squeue" in words(back)
    assert "TASK [Check that it keeps what its roles promise]" in words(back)  # none was named, so it ends there
    task = "Give it back, or keep it drained for whoever drained it"
    given = reboot(READY, ["none", "", "none"], "--start-at-task", task, __reboot_started=at(Step.RETURN))
    assert given.returncode == 0, words(given)
    assert "hal05: waits for an answer: squeue" in words(given)
    assert "hal05: rebooted, takes jobs again" in words(given)


def test_a_slurmctld_that_stays_away_is_what_it_says(reboot: Reboot) -> None:
    run = reboot(IDLE, [*[JOB] * FIRST, ""], reboot_wait_seconds=5)
    assert run.returncode != 0
    assert "hal05 was not rebooted: squeue hal05 RUNNING" in words(run)
    said = "If it was drained, it stays drained; the same command continues, scontrol update NodeName=hal05"
    assert f"{AWAY}. {said}" in words(run)


def test_jobs_that_do_not_end_are_named(reboot: Reboot) -> None:
    run = reboot(IDLE, [JOB], reboot_wait_seconds=1)
    assert run.returncode != 0
    assert "hal05 was not rebooted: waited 0 min for job 42 of alice" in words(run)
    assert "It stays drained" in words(run)
    assert "TASK [Reboot]" not in words(run)


def test_a_drain_that_would_leave_too_few_is_refused_before_anything_is_done(reboot: Reboot) -> None:
    refused = "hal05: not drained: 0 nodes would be left for jobs, at least 1 have to stay; 0 of 1 are away already"
    run = reboot(IDLE, ["none"], reboot_keep_nodes=1)
    assert run.returncode != 0
    assert refused in words(run)
    assert "TASK [Drain it and wait for its jobs]" not in words(run)
    shown = reboot(IDLE, ["none"], "--check", reboot_keep_nodes=1)
    assert shown.returncode == 0, words(shown)
    assert "hal05: drain, reboot after 0 jobs, give back" in words(shown)
    assert refused in words(shown)


def test_check_mode_drains_nobody_wherever_the_play_starts(reboot: Reboot, tmp_path: Path) -> None:
    run = reboot(IDLE, ["none"], "--check", "--start-at-task", "Drain it and wait for its jobs")
    assert "skipped=1" in words(run)
    assert (tmp_path / "node").read_text() == f"{IDLE}\n"


def test_a_step_goes_on_from_what_the_one_before_returned_and_from_nothing_else(reboot: Reboot) -> None:
    begin = ("--start-at-task", "Wait until slurmd has registered")
    run = reboot(READY, ["none"], *begin, __reboot_drained=at(Step.DRAIN))
    assert run.returncode != 0
    assert "step start takes the record that step drain returned" in words(run)


def test_a_rollout_that_began_while_jobs_were_waited_for_is_left_alone(reboot: Reboot) -> None:
    run = reboot(IDLE, [*[JOB] * FIRST, "rollout", "none"], reboot_wait_seconds=30)
    assert run.returncode != 0
    assert HELD in words(run)
    assert WAITS in words(run)
    assert "TASK [Reboot]" not in words(run)


def test_a_node_of_a_controller_that_is_gone_is_rebooted_when_somebody_says_so(reboot: Reboot) -> None:
    held = reboot(IDLE, ["rollout", "none"])
    assert held.returncode != 0
    assert HELD in words(held)
    assert "TASK [Drain it and wait for its jobs]" not in words(held)
    permitted = reboot(IDLE, ["none"], rollout_take_over=True)
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
