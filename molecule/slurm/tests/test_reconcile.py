"""Changes over a running cluster: what takes effect, what waits for jobs, and that no job is lost.

Each test leaves the cluster as converge made it, but for the last, which adds a node.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from testinfra.host import Host
from testing.slurm_cluster import PROJECT, SCENARIO, Node, job_state, pid, playbook, roll_out, setting
from testing.waiting import wait_for

Submit = Callable[..., str]


def test_a_restart_waits_for_the_running_job_and_is_done_after_it(node: Node, login: Host, submit: Submit) -> None:
    """MaxJobCount needs a restart of slurmctld. An account that was changed by hand is put back in the same run."""
    job = submit("--nodelist=hal01 --gres=gpu:v100:1")
    before = {name: pid(node(name), unit) for name, unit in (("hal-login", "slurmctld"), ("hal01", "slurmd"))}
    login.check_output("sacctmgr --immediate modify qos where name=prolonged set MaxWall=30-0 Flags=DenyOnLimit")
    login.check_output("sacctmgr --immediate add qos byhand")

    refused = roll_out(slurm_settings_site={"MaxJobCount": 10001})
    assert refused.status != 0, "a pending restart has to be seen"
    assert "slurmctld needs a restart: 1 job runs there" in refused.output
    assert "MaxJobCount: (not set) -> 10001" in refused.output
    assert "configuration is in place" in refused.output
    assert "+MaxJobCount=10001" in refused.output
    assert "MaxJobCount=10001" in login.file("/var/lib/hal/slurm/next/slurm.conf").content_string
    files = {name: node(name).file("/etc/slurm/slurm.conf") for name in ("hal-login", "hal-mgmt1", "hal01")}
    has_it = {name: "MaxJobCount" in file.content_string for name, file in files.items()}
    assert has_it == {"hal-login": False, "hal-mgmt1": False, "hal01": True}, "slurmd needs nothing for it"
    login.check_output("scontrol reconfigure")
    assert setting(login, "MaxJobCount") == "10000"
    assert before == {"hal-login": pid(login, "slurmctld"), "hal01": pid(node("hal01"), "slurmd")}
    assert job_state(login, job) == "RUNNING"
    # One that crashes finds its own file, too.
    login.check_output(
        "systemctl kill --signal=KILL slurmctld; systemctl reset-failed slurmctld; systemctl start slurmctld"
    )
    wait_for("slurmctld", lambda: login.run("scontrol ping").stdout, lambda said: " UP" in said)
    assert (setting(login, "MaxJobCount"), job_state(login, job)) == ("10000", "RUNNING")
    before["hal-login"] = pid(login, "slurmctld")
    qos = login.check_output("sacctmgr -nP show qos format=Name,Flags,MaxWall").splitlines()
    assert "prolonged|DenyOnLimit,PartitionTimeLimit|7-00:00:00" in qos
    assert "byhand||" in qos, "what nobody declared is left alone"

    login.check_output(f"scancel {job}")
    wait_for("job", lambda: login.check_output("squeue --noheader"), lambda text: not text)
    done = roll_out(slurm_settings_site={"MaxJobCount": 10001})
    assert done.status == 0, done.explain()
    assert setting(login, "MaxJobCount") == "10001"
    assert {"MaxJobCount=10001" in file.content_string for file in files.values()} == {True}
    assert pid(login, "slurmctld") != before["hal-login"]
    assert pid(node("hal01"), "slurmd") == before["hal01"], "slurmd does not need MaxJobCount"
    login.check_output("sacctmgr --immediate delete qos where name=byhand")


@pytest.mark.slow
def test_nodes_and_slurmctld_keep_to_one_decision_though_a_job_ends_or_begins_meanwhile(
    node: Node, login: Host, squeue_that_says: Callable[[str, str], None]
) -> None:
    """Each node's line changes, so its slurmd has to be down while slurmctld restarts, and only then."""

    def state() -> list[str]:
        return str(login.check_output("sinfo --noheader --partition gpu --Node --format '%N|%T|%m'")).splitlines()

    before = wait_for("nodes", state, lambda lines: [line.split("|")[1] for line in lines] == ["idle", "idle"])
    daemons = [("hal-login", "slurmctld"), ("hal01", "slurmd"), ("hal02", "slurmd")]
    pids = [pid(node(name), unit) for name, unit in daemons]

    squeue_that_says("1", "")
    ended = roll_out(slurm_memory_reserve_mb=30000)
    assert ended.status != 0, "a pending restart has to be seen"
    assert [pid(node(name), unit) for name, unit in daemons] == pids
    assert "this run decided before, when jobs ran or were not known, that it does not: repeat" in ended.words
    assert state() == before

    squeue_that_says("", "1")
    began = roll_out(slurm_memory_reserve_mb=30000)
    assert began.status == 0, began.explain()
    assert not {*pids} & {pid(node(name), unit) for name, unit in daemons}
    memory = int(before[0].split("|")[2]) - (30000 - 22144)
    assert state() == [f"hal01|idle|{memory}", f"hal02|idle|{memory}"]

    squeue_that_says("", "")
    back = roll_out()
    assert back.status == 0, back.explain()
    assert state() == before


def test_a_node_is_added_and_a_setting_taken_without_losing_a_job(node: Node, login: Host, submit: Submit) -> None:
    """First a reconfigure, which needs no permission; then, with permission, the restarts that a new node needs."""
    # What the test before may have left: only KillWait is to be new.
    jobs = int(setting(login, "MaxJobCount"))
    site = {} if jobs == 10000 else {"MaxJobCount": jobs}
    job = submit("--nodelist=hal01 --gres=gpu:v100:2")
    before = pid(login, "slurmctld")
    reconfigured = roll_out(slurm_settings_site={**site, "KillWait": 31})
    assert reconfigured.status == 0, reconfigured.explain()
    assert setting(login, "KillWait") == "31 sec"
    assert pid(login, "slurmctld") == before
    assert job_state(login, job) == "RUNNING"

    for path, limit in ((PROJECT / "molecule/virtual_hal/create.yml", ""), (SCENARIO / "prepare.yml", "hal03")):
        made = playbook(path, *(["--limit", limit] if limit else []), source="grown.yml")
        assert made.status == 0, made.explain()
    done = roll_out(source="grown.yml", slurm_restart_ok=True)
    assert done.status == 0, done.explain()
    assert done.output.count("slurmctld needs") == 0
    shown = login.check_output("sinfo --noheader --partition gpu --Node --format '%N|%T'").splitlines()
    assert shown == ["hal01|mixed", "hal02|idle", "hal03|idle"]
    assert job_state(login, job) == "RUNNING"
    words = login.check_output(f"scontrol --oneliner show job {job}").split()
    assert {"Restarts=0", "NodeList=hal01", "Requeue=1"} <= set(words)
    assert setting(login, "MaxJobCount") == "10000"
    steps = node("hal01").check_output("pgrep -x slurmstepd | wc -l")
    assert int(steps) >= 1

    # One node alone, and nothing left to do there.
    only = roll_out("--limit", "hal03", source="grown.yml")
    assert only.status == 0, only.explain()
    assert only.recap["hal03"]["changed"] == 0
    assert "hal01 " not in only.output
