"""A cluster made by hand is looked at, taken over role by role and given back: no job, file or way in is lost.

One story: each test stands on the one before.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import strategy
from running.ansible_run import PROJECT, Run, of_scenario
from running.ssh_config import STATE, Cluster
from testing import hand_made
from testing.hand_made import CONTROLLER, OWN_KEY, SCENARIO, Node
from testing.waiting import wait_for

# In this order they are taken over, and in the other one given back.
ROLES = ["repositories", "base", "hosts", "time", "munge", "firewall", "infiniband", "lmod", "ssh", "slurm"]
# What a first run would lose, and refuses. The nodes that it leaves as they are.
REFUSED = {
    "hosts": ["/etc/hosts has 1 lines that nobody declared", "192.0.2.77 license.example.edu license", "hosts_extra"],
    "firewall": [
        "iptables.service is active, enabled",
        "ipv4 nat -A POSTROUTING -s 192.0.2.0/24 -j MASQUERADE",
        "ipv4 filter -A INPUT -p tcp -m tcp --dport 9998 -j ACCEPT",
        "-e firewall_replace_ok=true",
    ],
    "lmod": ["/opt/site/modulefiles", "lmod_modulepath_extra"],
    "ssh": ["allowgroups is hal-users root, would be not set", "ssh_settings_extra"],
    "slurm": ["user slurm has number 64030 here and slurm_uid is 450", "set slurm_uid: 64030, for all nodes"],
}
# What it leaves as it is and says so, while it goes on.
WAITS = {
    "base": ["SELinux is Permissive now, permissive in /etc/selinux/config, declared enforcing"],
    "munge": ["the same on all; it is kept, and new nodes get it"],
    "infiniband": [
        "hal-mgmt1: opensm is not started here",
        "hal02: opensm is not stopped here",
        "infiniband_takeover_ok: true",
    ],
}
# Files of a daemon that is only stopped.
SWITCHED_OFF = ("/etc/sysconfig/iptables", "/etc/systemd/system/iptables.service")
ALONE = {"firewall": ["hal-login"], "infiniband": ["hal02"]}
# Of the slurm.conf by hand: where the jobs are, and how long slurmctld knows of one that ended.
SLURM = {"StateSaveLocation": "/srv/slurm/state", "MinJobAge": 86400}
# What an administrator declares or permits then.
WAYS_ON: dict[str, dict[str, Any]] = {
    "hosts": {"hosts_extra": [{"address": "192.0.2.77", "names": ["license.example.edu", "license"]}]},
    "firewall": {"firewall_replace_ok": True},
    "infiniband": {"infiniband_takeover_ok": True},
    "lmod": {"lmod_modulepath_extra": ["/opt/site/modulefiles"]},
    "ssh": {"ssh_settings_extra": {"AllowGroups": ["root", "hal-users"]}},
    "slurm": {"slurm_uid": 64030, "slurm_gid": 64030, "slurm_settings_site": SLURM},
}


def declared(roles: list[str]) -> dict[str, Any]:
    """What stands in the site's variables when these roles are taken over."""
    found = {name: value for role in roles for name, value in WAYS_ON.get(role, {}).items()}
    if "ssh" in roles:
        found["ssh_authorized_keys_allowed"] = {"root": [OWN_KEY.with_suffix(".pub").read_text().strip()]}
    return found


def roll_out(role: str, *, with_the_way_on: bool = True) -> Run:
    """Roll a role out, as the last one of those that are managed."""
    managed = ROLES[: ROLES.index(role) + 1]
    given = {"managed_roles": managed, **declared(managed if with_the_way_on else managed[:-1])}
    return of_scenario(SCENARIO).playbook("playbooks/site.yml", "--tags", role, mitogen=strategy.chosen(), **given)


def originals(cluster: Cluster) -> dict[str, list[dict[str, Any]]]:
    """What hal-audit says that the nodes keep."""
    program = str(Path(sys.executable).with_name("hal-audit"))
    argv = [program, "originals", "-i", str(SCENARIO / "hal.yml"), "--json", cluster.slice("nodeset")]
    argv += ["--", "--extra-vars", f"virtual_name={SCENARIO.name}"]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return found


def give_back(role: str, nodes: list[str]) -> Run:
    """Give a role back: look at the plan, then the same with its code."""
    play = "playbooks/giveback.yml"
    given: dict[str, Any] = {"giveback_role": role, "giveback_nodes": " or ".join(nodes)}
    shown = of_scenario(SCENARIO).playbook(play, **given)
    codes = set(re.findall(r"giveback_code=([0-9A-Z]{4}-[0-9A-Z]{4})", shown.output))
    assert len(codes) == 1, shown.explain()
    return of_scenario(SCENARIO).playbook(play, **given, giveback_code=codes.pop())


def nothing_is_lost(node: Node, cluster: Cluster) -> None:
    """Fail if jobs, what users and administrators have, or the way in is not there as before."""
    story = hand_made.recalled()
    assert hand_made.jobs(node) == story["jobs"]
    assert hand_made.job_processes(node) == story["job_processes"] != ""
    assert hand_made.of_users(node) == story["of_users"]
    assert [name for name in cluster.slice("nodes") if not hand_made.lets_in(cluster, name)] == []


def finished(node: Node, job: str) -> None:
    """Return when a job has ended well, and its output is there."""
    wait_for(
        f"job {job}",
        lambda: hand_made.jobs(node).get(job),
        lambda state: state not in ("PENDING", "RUNNING", "COMPLETING"),
    )
    hand_made.remember(jobs={**hand_made.recalled()["jobs"], job: hand_made.jobs(node)[job]})
    assert hand_made.recalled()["jobs"][job] == "COMPLETED"


def submitted(node: Node, name: str) -> str:
    """Submit a job as alice does, and return its id when it has ended well."""
    host = node(CONTROLLER)
    job: str = host.check_output(
        "runuser -u alice -- sbatch --parsable --chdir=/home/alice --nodelist=hal02 "
        f"--job-name={name} --output={name}.out --wrap 'echo done'"
    )
    finished(node, job)
    return job


# ---------------------------------------------------------------- look
def test_a_look_shows_what_is_foreign_and_writes_nothing(node: Node, cluster: Cluster, tmp_path: Path) -> None:
    names = cluster.slice("nodes")
    assert [name for name in names if node(name).run("test -e /var/lib/hal").rc == 0] == [], "nobody was here before"
    hand_made.remember(
        written={name: hand_made.written(node(name)) for name in names},
        units={name: hand_made.units(node(name)) for name in names},
        jobs=hand_made.jobs(node),
        of_users=hand_made.of_users(node),
        job_processes=hand_made.job_processes(node),
        processes={name: hand_made.processes(node(name)) for name in names},
        master=hand_made.master(node),
    )
    assert sorted(hand_made.jobs(node).values()) == ["PENDING", "RUNNING"]
    assert [name for name in names if not hand_made.lets_in(cluster, name)] == []
    before = {name: (hand_made.tree(node(name)), hand_made.processes(node(name))) for name in names}

    document = tmp_path / "document.json"
    done = of_scenario(SCENARIO).playbook(
        *("playbooks/takeover.yml", "-u", "root", "--private-key", str(OWN_KEY)),
        environment={"HAL_AUDIT_DOCUMENT": str(document)},
        takeover_known_hosts=str(STATE / "known_hosts"),
        takeover_roles=ROLES,
    )
    assert document.exists(), done.explain()
    assert {name: (hand_made.tree(node(name)), hand_made.processes(node(name))) for name in names} == before
    nothing_is_lost(node, cluster)

    found = json.loads(document.read_text())
    foreign = {(one["role"], one["resource"]) for one in found["findings"]}
    assert {
        ("repositories", "expectation:repositories: no repository file that nobody declared"),
        ("firewall", "expectation:firewall: no second firewall [iptables]"),
        ("infiniband", "expectation:infiniband: no subnet manager where the model has none"),
        ("hosts", "file:/etc/hosts"),
        ("time", "file:/etc/chrony.conf"),
        ("munge", "role:munge"),  # whose key is kept shows in a run
        ("ssh", "file:/etc/ssh/sshd_config"),
        ("slurm", "file:/etc/slurm/slurm.conf"),
        ("base", "expectation:base: SELinux mode after a reboot"),
    } <= foreign, sorted(foreign)
    assert {one["role"] for one in found["takeover"]} == set(ROLES)
    assert "somebody made in 2019" not in json.dumps(found) + done.output


# ---------------------------------------------------------------- role by role
@pytest.mark.parametrize("role", ROLES)
def test_what_would_be_lost_is_refused_or_waits(role: str, node: Node, cluster: Cluster) -> None:
    """Without what the run says; what nobody would lose is taken over at once."""
    alone = ALONE.get(role, cluster.slice("nodes"))
    was = {name: (hand_made.written(node(name)), hand_made.units(node(name))) for name in alone}
    run = roll_out(role, with_the_way_on=False)
    assert (run.status == 0) == (role not in REFUSED), run.explain()
    for words in REFUSED.get(role, WAITS.get(role, [])):
        assert words in run.words, run.explain()
    if role in WAYS_ON:
        assert {name: (hand_made.written(node(name)), hand_made.units(node(name))) for name in alone} == was
        nothing_is_lost(node, cluster)
        run = roll_out(role)
        assert (run.status == 0) == (role != "slurm"), run.explain()
        assert role != "slurm" or "slurmctld needs a restart: 1 job runs in the cluster" in run.words, run.explain()
    nothing_is_lost(node, cluster)


# ---------------------------------------------------------------- Slurm waits for jobs
def test_slurm_goes_on_as_it_was_while_a_job_runs(node: Node, cluster: Cluster) -> None:
    """The rollout of the test before has ended with this: files wait, daemons that have jobs are those of before."""
    host, story = node(CONTROLLER), hand_made.recalled()
    assert hand_made.processes(host)["slurmctld"] == story["processes"][CONTROLLER]["slurmctld"]
    assert hand_made.processes(node("hal01"))["slurmd"] == story["processes"]["hal01"]["slurmd"]
    assert "by hand since 2019" in host.file("/etc/slurm/slurm.conf").content_string
    assert host.file("/var/lib/hal/slurm/next/slurm.conf").exists


def test_slurm_is_taken_over_when_no_job_runs(node: Node, cluster: Cluster) -> None:
    """The administrator closes the partition, so that what waits goes on waiting."""
    host = node(CONTROLLER)
    first, second = sorted(hand_made.jobs(node), key=int)
    host.check_output("scontrol update PartitionName=gpu State=DOWN")
    node("hal01").check_output("runuser -u alice -- touch /home/alice/end")
    finished(node, first)
    assert hand_made.jobs(node) == {first: "COMPLETED", second: "PENDING"}
    assert node("hal01").file("/home/alice/first.out").content_string == "begun\ndone\n"

    done = roll_out("slurm")
    assert done.status == 0, done.explain()
    finished(node, second)
    assert node("hal02").file("/home/alice/second.out").content_string == "begun\ndone\n"
    submitted(node, "third")
    shown = host.check_output("scontrol show config")
    assert re.search(r"^StateSaveLocation += /srv/slurm/state$", shown, re.MULTILINE)
    assert re.search(r"^AccountingStorageType += accounting_storage/slurmdbd$", shown, re.MULTILINE)


# ---------------------------------------------------------------- given back
def test_what_was_replaced_is_listed(node: Node, cluster: Cluster) -> None:
    kept = {(name, one["thing"]) for name, things in originals(cluster).items() for one in things}
    written = {
        (name, f"file:{line.split()[0]}")
        for name, lines in hand_made.recalled()["written"].items()
        for line in lines
        if line.startswith("/")
    }
    # Not of these roles; or left where it is, and only switched off.
    left = {
        path
        for path in hand_made.WRITTEN
        if path.startswith(("/opt", "/scratch", "/etc/cron.d", "/root", *SWITCHED_OFF))
    }
    nobodys = {("hal-data", "file:/etc/munge/munge.key")}  # it has no Slurm
    assert {one for one in written if one[1].removeprefix("file:") not in left} - nobodys <= kept
    assert node(CONTROLLER).check_output("stat --format=%a /var/lib/hal/originals") == "700"


@pytest.mark.parametrize("role", ROLES[::-1])
def test_given_back(role: str, node: Node, cluster: Cluster) -> None:
    keepers = [name for name, things in originals(cluster).items() if any(role in one["roles"] for one in things)]
    assert keepers
    done = give_back(role, keepers)
    assert done.status == 0, done.explain()
    assert [name for name in cluster.slice("nodes") if not hand_made.lets_in(cluster, name)] == []
    assert hand_made.of_users(node) == hand_made.recalled()["of_users"]


def test_all_is_as_it_was_made_by_hand(node: Node, cluster: Cluster) -> None:
    story = hand_made.recalled()
    for name in cluster.slice("nodes"):
        assert (name, hand_made.written(node(name))) == (name, story["written"][name])
        assert (name, hand_made.units(node(name))) == (name, story["units"][name])
    assert hand_made.master(node) == story["master"]
    assert "MASQUERADE" in node(CONTROLLER).check_output("iptables -t nat -S POSTROUTING")
    kept = [one for things in originals(cluster).values() for one in things]
    assert [one for one in kept if one["roles"]] == []
    assert {one["was"] for one in kept} <= {"nothing"}, "folders with logs, and packages that others need"


def test_slurm_by_hand_runs_jobs_again_and_none_was_lost(node: Node) -> None:
    fourth = submitted(node, "fourth")
    story = hand_made.recalled()
    assert set(story["jobs"].values()) == {"COMPLETED"}
    assert sorted(story["jobs"], key=int)[-1] == fourth
    assert len(story["jobs"]) == 4
    outputs = "cat /home/alice/*.out"
    assert node("hal01").check_output(outputs) == "begun\ndone"
    assert sorted(node("hal02").check_output(outputs).split()) == ["begun", "done", "done", "done"]
