"""Archives are made, sent, whole and closed. Nothing here reads roles/backup/expect.yml."""

from __future__ import annotations

import base64
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from backup_cluster import STORE, Node, newest, play, save, status, store
from running.ansible_run import PROJECT
from testinfra.host import Host

STATE = PROJECT / ".state" / "virtual"
SAVED = {
    "hal-login": {"munge_key", "slurm_state", "node_record", "host_keys"},
    "hal-mgmt1": {"munge_key", "slurm_database", "node_record"},
}


def contents(server: Host, node: str, folder: Path) -> tarfile.TarFile:
    """Open a node's newest archive with nothing of ours: gpg, the site's private key, tar."""
    encoded = server.check_output(f"base64 -w0 {STORE}/{node}/{newest(server, node)}")
    home = folder / "home"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet"]
    subprocess.run([*gpg, "--import", str(STATE / "backup/private.asc")], check=True, capture_output=True)
    sealed = subprocess.run(["base64", "-d"], input=encoded.encode(), check=True, capture_output=True).stdout
    plain = folder / "archive.tar.gz"
    subprocess.run([*gpg, "--output", str(plain), "--decrypt"], input=sealed, check=True, capture_output=True)
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "gpg-agent"], check=True)
    return tarfile.open(plain)


def text(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(name)
    assert member is not None
    return member.read()


@pytest.mark.parametrize("name", sorted(SAVED))
def test_a_node_saves_every_night_what_it_alone_has(node: Node, name: str) -> None:
    host = node(name)
    assert host.service("hal-backup.timer").is_enabled
    assert host.service("hal-backup.timer").is_running
    timer = host.check_output("/usr/bin/systemctl show --property TimersCalendar --value hal-backup.timer")
    assert f"*-*-* {'02:30' if name == 'hal-mgmt1' else '02:45'}:00" in timer
    state = status(host)
    assert set(state["sources"]) == SAVED[name]
    assert state["error"] == ""
    assert 300 < state["certificate_days_left"] <= 365


def test_the_archives_hold_what_the_nodes_have(node: Node, server: Host, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with contents(server, "hal-mgmt1", tmp_path / "a") as archive:
        key = node("hal-mgmt1").check_output("base64 -w0 /etc/munge/munge.key")
        read = subprocess.run(
            ["base64", "-w0"], input=text(archive, "munge_key/etc/munge/munge.key"), capture_output=True, check=True
        )
        assert read.stdout.decode() == key
        assert archive.getmember("munge_key/etc/munge/munge.key").uname == "munge"
        dump = text(archive, "slurm_database/dump.sql").decode()
        assert "CREATE TABLE `hal_job_table`" in dump
        assert "-- Dump completed" in dump
    (tmp_path / "b").mkdir()
    with contents(server, "hal-login", tmp_path / "b") as archive:
        assert archive.getmember("slurm_state/state/clustername").uname == "slurm"
        public = node("hal-login").check_output("cat /etc/ssh/ssh_host_ed25519_key.pub")
        assert text(archive, "host_keys/etc/ssh/ssh_host_ed25519_key.pub").decode().strip() == public


@pytest.mark.parametrize("name", sorted(SAVED))
def test_an_archive_is_signed_by_the_key_that_the_controller_has(
    node: Node, server: Host, tmp_path: Path, name: str
) -> None:
    """Asked of openssl: over the line that says whose the archive is, when it was made, and what it is."""
    path = f"{STORE}/{name}/{newest(server, name)}"
    beside = json.loads(server.check_output(f"cat {path}.json"))
    with contents(server, name, tmp_path) as archive:
        made = json.loads(text(archive, "MANIFEST.json"))["made"]
    digest = server.check_output(f"sha256sum {path}").split()[0]
    (tmp_path / "signature").write_bytes(base64.b64decode(beside["signature"]))
    key = STATE / "ca/backup/signers" / name / f"{status(node(name))['signer']}.pem"
    ask = ["openssl", "dgst", "-sha256", "-verify", str(key), "-signature", str(tmp_path / "signature")]
    for line, answer in ((f"hal {name} {made} {digest}", 0), (f"hal {name} {made + 1} {digest}", 1)):
        done = subprocess.run(ask, input=f"hal-backup {line}\n".encode(), check=False, capture_output=True)
        assert done.returncode == answer, done.stdout


def test_the_key_that_signs_is_its_owners_alone(node: Node) -> None:
    for name in SAVED:
        assert node(name).check_output("stat -c '%a %U' /etc/hal-backup/signing_key") == "600 root"


def test_the_authorities_of_the_site_are_saved(server: Host, tmp_path: Path) -> None:
    with contents(server, "controller", tmp_path) as archive:
        for name in ("host_ca", "user_ca", "admin", "tls_ca", "tls_ca.pem"):
            path = STATE / "ca" / name
            assert text(archive, f"controller{path.resolve()}") == path.read_bytes()


def test_an_archive_of_everything_now(server: Host) -> None:
    """playbooks/backup.yml, as before a risky change and from the controller's crontab."""
    before = {name: newest(server, name) for name in (*SAVED, "controller")}
    done = play(PROJECT / "playbooks/backup.yml")
    assert done.status == 0, done.explain()
    after = {name: newest(server, name) for name in before}
    assert all(after[name] > before[name] for name in before), after
    for name in SAVED:
        assert after[name] in done.words
    assert store(server)["damaged"] == 0


def test_nothing_readable_leaves_a_node(node: Node, server: Host) -> None:
    """Not the key, not in the archives, not in what was left on the nodes, not in the journal."""
    key = node("hal-mgmt1").check_output("base64 -w0 /etc/munge/munge.key")[:40]
    assert server.run(f"grep -rqF '{key}' {STORE}").rc == 1
    for name in SAVED:
        left = node(name).check_output("find /var/lib/hal-backup -type f -printf '%f\\n' | sort").split()
        assert left == ["lock", "status.json"]
        assert node(name).check_output("stat -c %a /var/lib/hal-backup") == "700"
    assert server.check_output(f"stat -c '%a %U' {STORE}") == "700 hal-backup"
    assert server.run(f"file {STORE}/hal-mgmt1/*.gpg").stdout.count("PGP") >= 1


def test_no_password_is_in_a_list_of_processes(database: Host) -> None:
    """Every mysqldump of a backup, as everybody on the node can see it."""
    database.check_output(
        "mv /usr/bin/mysqldump /usr/bin/mysqldump.real; printf '%s\\n' '#!/bin/sh'"
        ' \'tr "\\\\0" " " </proc/$$/cmdline >/run/seen; exec mysqldump.real "$@"\' >/usr/bin/mysqldump;'
        " chmod 755 /usr/bin/mysqldump"
    )
    try:
        assert save(database).rc == 0
        seen = database.check_output("cat /run/seen")
    finally:
        database.check_output("mv /usr/bin/mysqldump.real /usr/bin/mysqldump; rm -f /run/seen")
    assert "slurm_acct_db" in seen
    assert "pass" not in seen
    password = database.check_output("sed -n 's/^StoragePass=//p' /etc/slurm/slurmdbd.conf")
    assert len(password) >= 12
    assert password not in seen


def ask(host: Host, words: str, address: str, account: str = "hal-backup") -> Any:
    """Use the node's key for something else."""
    return host.run(
        "ssh -F /dev/null -o BatchMode=yes -o UserKnownHostsFile=none -o HostKeyAlias=hal-data"
        f" -i /etc/hal-backup/id_ed25519 {account}@{address} '{words}' </dev/null || exit 1"
    )


def test_a_nodes_key_can_add_archives_and_nothing_else(node: Node, server: Host, site: Any) -> None:
    address = next(host["address"] for host in site("hosts") if host["name"] == "hal-data")
    host = node("hal-mgmt1")
    own = newest(server, "hal-mgmt1")
    others = newest(server, "hal-login")
    before = store(server)["nodes"]
    for words in ("id", f"cat {STORE}/hal-login/{others}", f"rm {STORE}/hal-mgmt1/{own}", ""):
        done = ask(host, words, address)
        assert done.rc == 1
        assert done.stderr.strip().endswith("only 'put NAME SIZE SHA256' is answered here")
    assert "is not a name of an archive of hal-mgmt1" in ask(host, f"put {others} 1 {'0' * 64}", address).stderr
    assert "is there already" in ask(host, f"put {own} 1 {'0' * 64}", address).stderr
    old = f"hal-mgmt1-20200101T000000Z.tar.gz.gpg 1 {'0' * 64}"
    assert "and the store's clock says" in ask(host, f"put {old}", address).stderr, "of today, as an old one"
    assert "Permission denied" in ask(host, "id", address, account="root").stderr
    assert store(server)["nodes"] == before


def test_the_store_reads_its_archives_again(server: Host) -> None:
    assert server.service("hal-backup-check.timer").is_running
    assert server.run("systemctl start hal-backup-check.service").rc == 0
    assert "every archive is whole" in server.check_output("journalctl --no-pager --unit hal-backup-check")
