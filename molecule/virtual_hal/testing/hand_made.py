"""The cluster that prepare.yml has set up by hand: what has to be there all the time, and what has to come back."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from running.ssh_config import STATE, Cluster
from testinfra.host import Host

Node = Callable[[str], Host]
SCENARIO = Path(os.environ.get("MOLECULE_SCENARIO_DIRECTORY", Path(__file__).parents[2] / "takeover"))
CONTROLLER = "hal-login"
OWN_KEY = STATE / "takeover" / "own_key"
STORY = STATE / "takeover" / "story.json"

UNITS = (
    "chronyd",
    "munge",
    "sshd",
    "crond",
    "iptables",
    "firewalld",
    "opensm",
    "slurmctld",
    "slurmd",
    "mariadb",
    "slurmdbd",
)
# What somebody wrote, where it is. Units of the toolkit's own are in none of these folders before it comes.
WRITTEN = (
    "/etc/yum.repos.d/site.repo",
    "/etc/hosts",
    "/etc/chrony.conf",
    "/etc/sysconfig/chronyd",
    "/etc/selinux/config",
    "/etc/munge/munge.key",
    "/etc/cron.d/site-report",
    "/root/.ssh/authorized_keys",
    "/etc/ssh/sshd_config",
    "/etc/sysconfig/iptables",
    "/etc/systemd/system/iptables.service",
    "/etc/rdma/opensm.conf",
    "/opt/site/modulefiles/fold/1.0.lua",
    "/etc/profile.d/00-modulepath.sh",
    "/scratch/alice/result",
    "/etc/slurm/slurm.conf",
    "/etc/slurm/gres.conf",
)
# Every path with type, mode, owner, times and where a link leads, and the digest of each file. Left out: what rpm
# shares between its processes changes with each question to it; chronyd and Slurm write in their own time.
TREE = """cd /
set -f
folders="etc root home opt scratch usr/local var/lib var/spool/cron"
leave_out="-not -path var/lib/rpm* -not -path var/lib/chrony*"
find $folders -xdev $leave_out -printf '%p %y %m %U:%G %s %T@ %l\\n' | sort
find $folders -xdev -type f $leave_out -exec sha256sum {} + | sort
"""


def tree(host: Host) -> str:
    """Everything below the folders in which somebody configures a node."""
    return str(host.run(TREE).stdout)


def written(host: Host) -> list[str]:
    """Each file of WRITTEN that is there: mode, owner, size and time as stat has them, and its digest."""
    paths = " ".join(WRITTEN)
    look = f"stat --format='%n %a %U:%G %s %.6Y' {paths} 2>/dev/null; sha256sum {paths} 2>/dev/null"
    return list(host.run(look).stdout.splitlines())


def units(host: Host) -> dict[str, str]:
    """Whether each unit runs and starts at boot; without those that are not there."""
    look = "systemctl is-active {0}; systemctl is-enabled {0}"
    shown = {name: host.run(look.format(name)).stdout.split() for name in UNITS}
    return {name: " ".join(words) for name, words in shown.items() if words not in (["inactive"], ["unknown"])}


def processes(host: Host) -> dict[str, str]:
    """The process of each unit that runs."""
    pids = {name: str(host.check_output(f"systemctl show --property MainPID {name}")) for name in UNITS}
    return {name: pid for name, pid in pids.items() if pid not in ("", "MainPID=0", "0")}


def jobs(node: Node) -> dict[str, str]:
    """The state of each job that slurmctld knows, by id."""
    shown = node(CONTROLLER).check_output("squeue --noheader --states=all --format='%i %T'")
    return dict(line.split() for line in shown.splitlines())


def of_users(node: Node) -> dict[str, str]:
    """What users and administrators have: cron jobs, files, modules."""
    look = (
        "cat /etc/cron.d/site-report; crontab -u alice -l; cat /scratch/alice/result; "
        "runuser -u alice -- bash -lc 'module load fold && echo $FOLD'"
    )
    return {name: node(name).check_output(look) for name in (CONTROLLER, "hal01", "hal02")}


def job_processes(node: Node) -> str:
    """The processes of jobs on the node where one runs from the beginning."""
    return str(node("hal01").run("pgrep -u alice -f slurm_script").stdout)


def lets_in(cluster: Cluster, name: str) -> bool:
    """Whether the administrator's own key still opens a node."""
    known = (f"UserKnownHostsFile={STATE / 'known_hosts'}", f"HostKeyAlias={name}")
    options = ("IdentitiesOnly=yes", "ControlPath=none", "BatchMode=yes", *known)
    argv = ["ssh", "-F", "none", "-i", str(OWN_KEY), *(word for option in options for word in ("-o", option))]
    argv += [f"root@{cluster.node(name)['addresses']['management']}", "true"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode == 0


def master(node: Node) -> str:
    """Who is master of the fabric, as a node asks it: the line of sminfo without its counter."""
    return str(node("hal02").check_output("sminfo").partition("activity")[0])


def remember(**what: Any) -> None:
    """Keep what a later test of the story compares with."""
    STORY.write_text(json.dumps({**recalled(), **what}))


def recalled() -> Mapping[str, Any]:
    """What an earlier test of the story has kept."""
    return json.loads(STORY.read_text()) if STORY.exists() else {}
