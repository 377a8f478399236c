"""A configuration that only Slurm can judge is refused before a file is replaced: daemons, files and jobs stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from testinfra.host import Host
from testing.slurm_cluster import Node, job_state, pid, roll_out

NODES = ("hal-login", "hal-mgmt1", "hal01", "hal02")
UNITS = {"hal-login": "slurmctld", "hal01": "slurmd", "hal02": "slurmd"}
HAL = {"cpus": 160, "sockets": 2, "cores_per_socket": 20, "threads_per_core": 4, "memory_mb": 240000, "features": []}
TWICE = [
    {"names": "hal[01-02]", "address_pattern": "10.65.7.[101-102]", "gres": "gpu:v100:4", **HAL},
    {"names": "hal02", "address_pattern": "10.65.7.102", "gres": "", **HAL},
]
FPGA = [{"nodes": "hal[01-02]", "name": "fpga", "type": "u50", "file": "/dev/null", "cores": "0-19"}]


def state(node: Node) -> dict[str, list[str]]:
    """What a node has and runs: its files with their times, its daemon, and what a trial could have left."""
    return {
        name: [
            node(name).check_output("cd /etc/slurm && stat -c '%n %Y %i' *.conf && sha256sum *.conf"),
            pid(node(name), UNITS[name]) if name in UNITS else "",
            node(name).check_output(
                "ls -d /tmp/[h]al-slurm-trial-* 2>/dev/null; pgrep -f '[h]al-slurm-trial-' || true"
            ),
        ]
        for name in NODES
    }


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            {"__slurm_nodes": TWICE},
            ["slurmctld 22.05.8 refuses the new configuration, and no file was replaced", "Duplicated NodeName hal02"],
        ),
        (
            {"slurm_settings_site": {"SchedulerType": "sched/backfil"}},
            ["cannot find sched plugin for sched/backfil", ": SchedulerType=sched/backfil)"],
        ),
        (
            {"__slurm_devices": FPGA},
            ["slurmd 22.05.8 refuses the new configuration", "gres.conf line 2: NodeName=hal[01-02] Name=fpga"],
        ),
    ],
    ids=["two nodes of one name", "a plugin that is not there", "a device that slurm.conf does not know"],
)
def test_what_slurm_refuses_reaches_nobody(
    node: Node, login: Host, submit: Callable[..., str], wrong: dict[str, Any], says: list[str]
) -> None:
    job = submit("--nodelist=hal01 --gres=gpu:v100:1")
    before = state(node)
    for arguments in (["--check"], []):
        refused = roll_out(*arguments, **wrong)
        assert refused.status != 0, "a configuration that Slurm refuses has to fail"
        for words in says:
            assert words in refused.words, refused.explain()
        assert "Write directories and configuration" not in refused.output, "the run ended for every node"
        assert state(node) == before
    assert job_state(login, job) == "RUNNING"
    assert "hal-login is UP" in login.check_output("scontrol ping")
    assert login.check_output("sinfo --noheader --partition gpu --Node --format '%N %t' | head -1") == "hal01 mix"


def test_the_running_slurmctld_did_not_hear_of_it(node: Node, login: Host) -> None:
    """A right configuration is judged too: nothing of the private instance shows in logs, state or ports."""
    log = login.check_output("stat -c %s /var/log/slurm/slurmctld.log")
    before = state(node)
    tried = roll_out("--check", slurm_settings_site={"KillWait": 31})
    assert tried.status == 0, tried.explain()
    assert "did not judge" not in tried.words, "a trial that judges nothing leaves nothing either"
    assert state(node) == before
    told = login.check_output(f"tail -c +{int(log) + 1} /var/log/slurm/slurmctld.log")
    assert "Running as primary controller" not in told
    assert "Terminate signal" not in told
    assert login.check_output("cat /var/spool/slurmctld/clustername") == "hal"
