"""The management node and the login node are lost and made again, empty. What users had is there again.

First what a restore refuses, then the two nodes. The last file of the scenario: it takes nodes apart.
"""

from __future__ import annotations

import base64
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from backup_cluster import (
    KEEP,
    SCENARIO,
    STORE,
    Node,
    accounted,
    code_of,
    job,
    made_anew,
    newest,
    play,
    restore,
    save,
    status,
    submit,
)
from running.ansible_run import PROJECT, Run
from testinfra.host import Host
from testing.waiting import wait_for

ROWS = ("JobID", "User", "Account", "State", "ExitCode", "AllocTRES")


def state_of(login: Host, number: str) -> str:
    return job(login, number).get("JobState", "")


def pids(host: Host) -> str:
    return str(host.check_output("systemctl show --property MainPID,ExecMainStartTimestamp slurmdbd mariadb munge"))


def refused(host: Host, words: str, run: Run) -> None:
    """Assert that a restore says so in one line and that no daemon noticed it."""
    assert run.status != 0
    assert words in run.words, run.explain()
    assert not host.run("ls -d /var/tmp/hal-restore-* 2>/dev/null").stdout


def test_a_restore_refuses_what_it_should(database: Host, login: Host, server: Host, tmp_path: Path) -> None:
    assert save(database).rc == 0
    name = newest(server, "hal-mgmt1")
    path = f"{STORE}/hal-mgmt1/{name}"
    before = pids(database)

    refused(database, f"newest first: {name}", restore("hal-mgmt1"))
    refused(database, "There is no archive hal-mgmt1-x", restore("hal-mgmt1", restore_archive="hal-mgmt1-x"))
    refused(database, "names 2 nodes; archives are of one node", restore("hal-mgmt1:hal-login", restore_archive=name))

    size = int(server.check_output(f"stat -c %s {path}"))
    server.check_output(f"cp -p {path} /run/whole && truncate -s {size // 2} {path}")
    try:
        truncated = restore("hal-mgmt1", restore_archive=name)
    finally:
        server.check_output(f"cp -p /run/whole {path}")
    words = f"{name} is damaged: {size // 2} bytes that are not what was stored. Nothing was touched."
    refused(database, words, truncated)

    make = ["sh", str(PROJECT / "roles/backup/files/make_key_pair.sh"), str(tmp_path / "other"), "another site"]
    subprocess.run(make, check=True, capture_output=True)
    other = (tmp_path / "other" / "private.asc").read_text()
    wrong = restore("hal-mgmt1", restore_archive=name, backup_private_key=other)
    refused(database, f"{name} was encrypted for key ", wrong)
    assert "the private key given is of" in wrong.words
    assert other.splitlines()[5] not in wrong.output

    foreign = tmp_path / newest(server, "hal-login")
    foreign.write_bytes(base64.b64decode(server.check_output(f"base64 -w0 {STORE}/hal-login/{foreign.name}")))
    stranger = restore("hal-mgmt1", restore_archive=str(foreign))
    refused(database, "is an archive of hal-login of site hal, not of hal-mgmt1 of site hal", stranger)

    # A copy alone, with nothing of the store beside it: anybody has the public key.
    alone = tmp_path / name
    alone.write_bytes(base64.b64decode(server.check_output(f"base64 -w0 {path}")))
    unsigned = restore("hal-mgmt1", restore_archive=str(alone))
    refused(database, f"{name} may be from anybody: nobody signed it.", unsigned)
    chosen = {"restore_archive": str(alone), "restore_sources": ["munge_key"]}
    permitted = restore("hal-mgmt1", restore_unsigned_ok=True, **chosen)
    refused(database, "SIGNED BY NOBODY that this controller knows", permitted)
    assert code_of(permitted)

    # The same under a newer name: who has the store has its signature as well.
    newer, folder = "hal-mgmt1-20991231T000000Z.tar.gz.gpg", f"{STORE}/hal-mgmt1"
    server.check_output(f"cp -p {path} {folder}/{newer} && cp -p {path}.json {folder}/{newer}.json")
    try:
        refused(database, f"{newer} was made at ", restore("hal-mgmt1", restore_archive=newer))
    finally:
        server.check_output(f"rm {folder}/{newer} {folder}/{newer}.json")

    # Something happens after the archive was made.
    number = submit(login, "--nodelist=hal01 --begin=now+1hour")
    row = wait_for("accounting", lambda: login.check_output(f"sacct -a -X -n -P -j {number} -o JobID"), bool)
    assert row == number
    later = restore("hal-mgmt1", restore_archive=name)
    assert "slurm_database: " in later.words
    assert "NEWER than the archive; stops slurmdbd meanwhile" in later.words
    refused(database, "slurm_database on hal-mgmt1 changed after the archive was made", later)
    login.check_output(f"scancel {number}")

    assert pids(database) == before
    assert int(server.check_output(f"find {STORE} -name '*.part' | wc -l")) == 0


def test_what_root_of_a_broken_into_node_stored_is_not_restored(database: Host, server: Host) -> None:
    """It declares what it likes, its own key signs it, and the store takes it. The node was made anew meanwhile."""
    evil, job = "/etc/cron.d/hal-evil", "/usr/libexec/hal-backup/backup_job.py"
    database.check_output(f"echo '* * * * * root touch /run/owned' >{evil}")
    change = (
        "import json; job = json.load(open('/etc/hal-backup/job.json'));"
        "job['sources'] = [{'name': 'node_record', 'kind': 'files', 'paths': ['/etc/cron.d'], 'stops': ['sshd']}];"
        "json.dump(job, open('/run/evil.json', 'w'))"
    )
    database.check_output(f'python3 -c "{change}" && python3 -B {job} /run/evil.json save && rm {evil} /run/evil.json')
    name = newest(server, "hal-mgmt1")
    try:
        words = "node_record: /etc in the archive is not in what backup_sources declares. Nothing was touched."
        anybody = {"restore_unsigned_ok": True, "restore_revoked_ok": True}
        permissions: list[dict[str, Any]] = [{}, anybody, {"restore_sources": ["node_record"]}]
        for permission in permissions:
            refused(database, words, restore("hal-mgmt1", restore_archive=name, **permission))
        assert not database.file(evil).exists
    finally:
        server.check_output(f"rm {STORE}/hal-mgmt1/{name} {STORE}/hal-mgmt1/{name}.json")
    assert save(database).rc == 0


def test_a_key_that_was_revoked_signed_nothing(database: Host, server: Host) -> None:
    """As playbooks/revoke.yml leaves it, for a node whose disk is in other hands."""
    key = PROJECT / ".state/virtual/ca/backup/signers/hal-mgmt1" / f"{status(database)['signer']}.pem"
    name = newest(server, "hal-mgmt1")
    key.rename(f"{key}.revoked")
    try:
        words = f"{name} may be from anybody: it was signed by a key that was revoked since."
        refused(database, words, restore("hal-mgmt1", restore_archive=name, restore_unsigned_ok=True))
        permitted = restore("hal-mgmt1", restore_archive=name, restore_revoked_ok=True)
        refused(database, "SIGNED BY A KEY THAT WAS REVOKED", permitted)
        again = play(SCENARIO / "tests/backup.yml", "--limit", "hal-mgmt1")
        assert again.status != 0
        assert "The key by which hal-mgmt1 signs archives was revoked" in again.words, again.explain()
    finally:
        key.with_name(f"{key.name}.revoked").rename(key)


def test_what_is_newer_is_replaced_when_that_is_permitted(database: Host, login: Host, server: Host) -> None:
    """On a running node: what was done since is set aside, and accounting goes on with what was then."""
    ask = "sacctmgr -nP show account later format=Account"
    assert save(database).rc == 0
    login.check_output("sacctmgr --immediate add account later")
    assert login.check_output(ask) == "later"
    permitted: dict[str, Any] = {
        "restore_archive": newest(server, "hal-mgmt1"),
        "restore_sources": ["slurm_database"],
        "restore_newer_ok": True,
    }
    shown = restore("hal-mgmt1", **permitted)
    assert "NEWER than the archive; stops slurmdbd meanwhile" in shown.words
    done = restore("hal-mgmt1", restore_confirm=code_of(shown), **permitted)
    assert done.status == 0, done.explain()
    assert database.service("slurmdbd").is_running
    wait_for("accounting", lambda: login.run("sacctmgr -n show cluster").rc, lambda status: bool(status == 0))
    assert login.check_output(ask) == ""
    former = re.search(r"what was there is database (\w+)", done.words)
    assert former, done.explain()
    count = f'SELECT COUNT(*) FROM {former.group(1)}.acct_table WHERE name = "later"'
    assert database.check_output(f"mysql --batch --skip-column-names --execute='{count}'") == "1"
    assert "slurm_acct_db_restoring" not in database.check_output("mysql --batch --execute='SHOW DATABASES'")
    assert not database.run("ls -d /var/tmp/hal-restore-* 2>/dev/null").stdout


def restored(name: str, archive: str, sources: list[str], **permission: bool) -> None:
    """Show, check, refuse, restore: as an administrator does it."""
    chosen: dict[str, Any] = {"restore_archive": archive, "restore_sources": sources, **permission}
    shown = restore(name, **chosen)
    assert shown.status != 0
    code = code_of(shown)
    checked = restore(name, "--check", **chosen)
    assert checked.status == 0, checked.explain()
    assert checked.changes == {}
    other = restore(name, restore_confirm="00000000", **chosen)
    assert other.status != 0
    assert "another plan than the one with code 00000000" in other.words
    done = restore(name, restore_confirm=code, **chosen)
    assert done.status == 0, done.explain()
    for source in sources:
        assert f"{source}: " in done.words


@pytest.mark.slow
def test_the_management_node_is_lost_and_restored(node: Node, login: Host, server: Host) -> None:
    ended = submit(login, "--nodelist=hal01 --gres=gpu:v100:1", seconds=1)
    wait_for("job", lambda: state_of(login, ended), lambda state: bool(state == "COMPLETED"))
    running = submit(login, "--nodelist=hal01 --gres=gpu:v100:2")
    wait_for("job", lambda: state_of(login, running), lambda state: bool(state == "RUNNING"))
    pending = submit(login, f"--nodelist=hal01 --dependency=afterok:{running}")
    own = [f"{ended}|alice|isl|COMPLETED|0:0|", f"{running}|alice|isl|RUNNING|0:0|"]
    wait_for(
        "accounting",
        lambda: accounted(login, *ROWS),
        lambda rows: all(any(row.startswith(one) for row in rows) for one in own),
    )
    host = node("hal-mgmt1")
    assert save(host).rc == 0
    archive = newest(server, "hal-mgmt1")
    jobs = accounted(login, *ROWS)
    ask = (
        "sacctmgr -nP show assoc format=Cluster,Account,User,Share,QOS; sacctmgr -nP show qos format=Name,Flags,MaxWall"
    )
    limits = login.check_output(ask)
    assert "alice" in limits
    assert "prolonged" in limits
    key = host.file("/etc/munge/munge.key").sha256sum

    made_anew("hal-mgmt1")
    assert not host.file("/etc/munge").exists, "it is empty"
    assert not host.file("/var/lib/mysql").exists
    below = play(SCENARIO / "base.yml", "--limit", "hal-mgmt1")
    assert below.status == 0, below.explain()
    restored("hal-mgmt1", archive, ["slurm_database", "munge_key"])
    assert not host.service("slurmdbd").is_running, "it must not start before its database is there"
    for playbook in ("slurm.yml", "tests/backup.yml"):
        done = play(SCENARIO / playbook, "--limit", "hal-mgmt1")
        assert done.status == 0, done.explain()

    assert host.file("/etc/munge/munge.key").sha256sum == key
    credential = host.check_output("munge -n").strip()
    assert "Success (0)" in login.check_output("echo '%s' | unmunge", credential)
    assert accounted(login, *ROWS) == jobs
    assert login.check_output(ask) == limits
    assert state_of(login, running) == "RUNNING"
    assert job(login, running)["Restarts"] == "0"
    assert state_of(login, pending) == "PENDING"
    # And it is accounting again: the end of the running job arrives.
    login.check_output(f"scancel {pending} {running}")
    wait_for(
        "accounting",
        lambda: login.check_output(f"sacct -a -X -n -P -j {running} -o State"),
        lambda state: str(state).startswith("CANCELLED"),
    )


@pytest.mark.slow
def test_the_login_node_is_lost_and_restored(node: Node, login: Host, server: Host) -> None:
    running = submit(login, "--nodelist=hal01 --gres=gpu:v100:2")
    wait_for("job", lambda: state_of(login, running), lambda state: bool(state == "RUNNING"))
    pending = submit(login, f"--nodelist=hal01 --dependency=afterok:{running}")
    step = node("hal01").check_output("pgrep -x slurmstepd")
    public = login.check_output("cat /etc/ssh/ssh_host_ed25519_key.pub").split()[1]
    # Until slurmctld has written what it knows.
    saved = "/var/spool/slurmctld"
    wait_for("state", lambda: login.run(f"ls {saved}/hash.*/job.{pending}").rc, lambda status: bool(status == 0))
    wait_for("state", lambda: login.run(f"find {saved}/job_state -newer {saved}/hash.{int(pending) % 10}").stdout, bool)
    assert save(login).rc == 0
    archive = newest(server, "hal-login")

    made_anew("hal-login")
    assert not login.file("/var/spool/slurmctld").exists, "it is empty"
    below = play(SCENARIO / "base.yml", "--limit", "hal-login")
    assert below.status == 0, below.explain()
    # The new installation made host keys of its own, which are newer.
    restored("hal-login", archive, ["slurm_state", "munge_key", "host_keys"], restore_newer_ok=True)
    assert not login.service("slurmctld").is_running
    for playbook in ("base.yml", "slurm.yml", "tests/backup.yml"):
        done = play(SCENARIO / playbook, "--limit", "hal-login")
        assert done.status == 0, done.explain()

    assert login.check_output("cat /etc/ssh/ssh_host_ed25519_key.pub").split()[1] == public
    assert state_of(login, running) == "RUNNING"
    assert job(login, running)["Restarts"] == "0"
    assert node("hal01").check_output("pgrep -x slurmstepd") == step, "the same process"
    assert state_of(login, pending) == "PENDING"
    assert job(login, pending)["Reason"] == "Dependency"
    assert submit(login, "--nodelist=hal01 --begin=now+1hour") == str(int(pending) + 1), "job ids go on counting"
    assert server.run(f"{KEEP} check").rc == 0


@pytest.fixture(autouse=True, scope="module")
def no_jobs(node: Node) -> None:
    """What tests of other files left in the queue is not meant here."""
    node("hal-login").check_output("scancel --user=alice")
