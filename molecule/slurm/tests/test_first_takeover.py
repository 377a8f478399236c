"""A Slurm that others configured is met: what would be lost is refused, and nothing is touched until nothing is lost.

Each test leaves the cluster as converge made it. They come before test_reconcile, which adds a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from testinfra.host import Host
from testing.slurm_cluster import Node, as_user, job_state, pid, roll_out, setting
from testing.waiting import wait_for

CONF, NEXT = "/etc/slurm/slurm.conf", "/var/lib/hal/slurm/next/slurm.conf"
RECORD = "/var/lib/hal/slurm/slurmctld"
UNITS = {"hal-login": ["slurmctld"], "hal-mgmt1": ["mariadb", "slurmdbd"], "hal01": ["slurmd"], "hal02": ["slurmd"]}


def state(node: Node) -> dict[str, list[str]]:
    """What a rollout that refuses leaves: daemons, their files, the user."""
    return {
        name: [
            *(pid(node(name), unit) for unit in units),
            node(name).check_output("sha256sum /etc/slurm/* /etc/my.cnf.d/* 2>/dev/null; id slurm"),
        ]
        for name, units in UNITS.items()
    }


@pytest.fixture
def waiting(login: Host) -> Iterator[str]:
    """A job of alice's that waits."""
    job = as_user(login, "alice", "sbatch --parsable --hold --output=/dev/null --wrap true").stdout.strip()
    assert job_state(login, job) == "PENDING"
    yield job
    login.run(f"scancel {job}")


@contextmanager
def replaced(host: Host, path: str, text: str, mode: str = "0755") -> Iterator[None]:
    """A file with another text, and what was there again."""
    host.check_output(f"[ ! -e {path} ] || mv {path} {path}.kept")
    try:
        host.check_output(f"printf '%s\\n' '{text}' >{path} && chmod {mode} {path}")
        yield
    finally:
        host.check_output(f"rm -f {path}; [ ! -e {path}.kept ] || mv {path}.kept {path}")


# ---------------------------------------------------------------- refused before anything is changed
def test_another_release_is_not_upgraded(node: Node) -> None:
    before = state(node)
    refused = roll_out(slurm_version="22.05.9")
    assert refused.status != 0
    for name in ("slurmctld", "slurmd", "slurmdbd"):
        assert f"{name} 22.05.8 is installed, and slurm_version is 22.05.9" in refused.words, refused.explain()
    assert state(node) == before


def test_slurm_s_number_is_not_changed_under_its_daemons(node: Node) -> None:
    before = state(node)
    refused = roll_out(slurm_uid=451, slurm_gid=451)
    assert refused.status != 0
    assert "user slurm has number 450 here and slurm_uid is 451; process" in refused.words, refused.explain()
    assert "(slurmctld) runs as it" in refused.words
    assert "set slurm_uid: 450, for all nodes" in refused.words
    assert state(node) == before


def test_a_mariadb_that_would_not_start_again_is_not_restarted(node: Node) -> None:
    """CentOS 7's own release says what it is; the log is the one of the database that runs."""
    database = node("hal-mgmt1")
    before = state(node)
    old = '#!/bin/sh\necho "/usr/libexec/mysqld  Ver 5.5.68-MariaDB for Linux on x86_64 (MariaDB Server)"'
    with replaced(database, "/usr/libexec/mysqld", old):
        refused = roll_out(slurm_database_log_file_mb=32)
    assert refused.status != 0
    said = (
        "MariaDB 5.5.68-MariaDB has a log of 16 MB (/var/lib/mysql/ib_logfile0), and slurm_database_log_file_mb is 32"
    )
    assert said in refused.words, refused.explain()
    assert state(node) == before


def test_users_without_an_account_are_not_shut_out(node: Node, login: Host) -> None:
    """slurmctld runs without AccountingStorageEnforce, and somebody without an account has a job."""
    try:
        login.check_output(f"sed -i /^AccountingStorageEnforce/d {CONF} && systemctl restart slurmctld")
        wait_for("slurmctld", lambda: login.run("scontrol ping").stdout, lambda said: " UP" in said)
        sbatch = "sbatch --parsable --hold --partition=gpu --output=/dev/null --wrap true"
        job = wait_for("job", lambda: as_user(login, "nobody", sbatch).stdout.strip(), bool)
        before = state(node)
        refused = roll_out()
        assert refused.status != 0
        assert "is new here, and 1 user with jobs" in refused.words, refused.explain()
        assert "no account (nobody)" in refused.words
        assert state(node) == before
        assert job_state(login, job) == "PENDING"
        login.check_output(f"scancel {job}")
    finally:
        login.check_output(f"cp {NEXT} {CONF} && systemctl restart slurmctld")
        wait_for("slurmctld", lambda: login.run("scontrol ping").stdout, lambda said: " UP" in said)


# ---------------------------------------------------------------- what runs, and what was written since
def test_a_first_takeover_loses_no_job_that_waits(node: Node, login: Host, waiting: str) -> None:
    """No record, and a slurm.conf that was edited after slurmctld's start: it has the new value, slurmctld has not."""
    place = "/var/spool/slurmctld-new"
    site = {"StateSaveLocation": place}
    before = pid(login, "slurmctld")
    try:
        login.check_output(f"rm {RECORD}/* && sed -i 's|^StateSaveLocation=.*|StateSaveLocation={place}|' {CONF}")
        edited = login.check_output(f"cat {CONF}")
        refused = roll_out(slurm_restart_ok=True, slurm_settings_site=site)
        assert refused.status != 0
        lost = "1 job waits in the cluster, and it would lose them: repeat when there is none, no permission overrides"
        assert lost in refused.words, refused.explain()
        assert f"StateSaveLocation: /var/spool/slurmctld -> {place}" in refused.words
        assert (pid(login, "slurmctld"), job_state(login, waiting)) == (before, "PENDING")
        assert login.check_output(f"cat {CONF}") == edited
        assert f"StateSaveLocation={place}" in login.file(NEXT).content_string
    finally:
        login.check_output(f"sed -i 's|^StateSaveLocation=.*|StateSaveLocation=/var/spool/slurmctld|' {CONF}")
    back = roll_out()
    assert back.status == 0, back.explain()
    assert (pid(login, "slurmctld"), job_state(login, waiting)) == (before, "PENDING"), "what runs is what is declared"
    login.check_output(f"rm -r {place}")


def test_a_first_takeover_restarts_nothing_over_a_running_job(login: Host, submit: Callable[..., str]) -> None:
    job = submit("--nodelist=hal01")
    before = pid(login, "slurmctld")
    login.check_output(f"rm {RECORD}/*")
    refused = roll_out(slurm_restart_ok=True, slurm_settings_site={"MaxJobCount": 10001})
    assert refused.status != 0
    assert "it was started before the toolkit kept what it reads, so no permission overrides this" in refused.words
    assert (pid(login, "slurmctld"), job_state(login, job), setting(login, "MaxJobCount")) == (
        before,
        "RUNNING",
        "10000",
    )
    back = roll_out()
    assert back.status == 0, back.explain()
    assert (pid(login, "slurmctld"), job_state(login, job)) == (before, "RUNNING")
