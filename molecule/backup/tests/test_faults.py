"""What goes wrong is one line that says what, and a promise that does not hold. Each test leaves all as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from backup_cluster import KEEP, SCENARIO, STORE, save, status, store
from testinfra.host import Host
from testing.promises import Rollout

Broken = Callable[..., list[str]]


@pytest.fixture
def broken() -> Broken:
    """Return a function: a node -> ids of its promises that do not hold."""
    rollout = Rollout(SCENARIO)

    def ask(name: str, **variables: object) -> list[str]:
        return rollout.broken_promises("backup", name, **variables)

    return ask


@contextmanager
def planted(host: Host, fault: str, undo: str) -> Iterator[None]:
    """A fault, and its end."""
    host.check_output(fault)
    try:
        yield
    finally:
        host.check_output(undo)


def edited(path: str, edit: str) -> tuple[str, str]:
    """Commands that change a file and put it back."""
    return f"cp -p {path} /run/edited && sed -i '{edit}' {path}", f"mv /run/edited {path}"


def fails(host: Host, server: Host, words: str) -> None:
    """Assert that a backup says why it fails, leaves nothing on either side, and keeps what was stored before."""
    before = store(server)["nodes"]["hal-mgmt1"]["archives"]
    assert save(host).rc != 0
    error = status(host)["error"]
    assert words in error
    assert "\n" not in error
    assert store(server)["nodes"]["hal-mgmt1"]["archives"] == before
    assert status(host)["archive"] == before[0]
    assert server.check_output(f"find {STORE} -name '*.part'") == ""
    assert host.check_output("find /var/lib/hal-backup -name 'run-*'") == ""


def test_a_server_that_is_down(database: Host, server: Host, broken: Broken) -> None:
    with planted(database, *edited("/etc/hal-backup/job.json", r"s/\"address\": \".*\"/\"address\": \"10.65.56.99\"/")):
        fails(database, server, "hal-data did not take the archive: ssh: connect to host 10.65.56.99 port 22:")
        assert broken("hal-mgmt1") == ["the last backup was not killed", "the last backup went well"]
    assert save(database).rc == 0
    assert broken("hal-mgmt1") == []


def test_a_store_without_room(database: Host, server: Host, broken: Broken) -> None:
    more = edited("/etc/hal-backup/store.json", r"s/\"reserve_mb\": \"*[0-9]*\"*/\"reserve_mb\": 900000000/")
    with planted(server, *more):
        fails(database, server, "hal-data did not take the archive: ssh: no room for hal-mgmt1-")
    assert broken("hal-data", backup_store_reserve_mb=900000000) == ["there is room for more archives"]
    assert broken("hal-mgmt1", backup_reserve_mb=900000000) == [
        "the last backup was not killed",
        "the last backup went well",
        "there is room for making an archive",
    ]
    assert save(database).rc == 0


def test_a_disk_that_is_full_in_the_middle(database: Host, server: Host) -> None:
    """A real one with 16 kB left, which is less than the archive; the check that comes first is made to miss it."""
    folder, full = f"{STORE}/hal-mgmt1", "/dev/shm/full"
    fill = f"{{ dd if=/dev/zero of={full}.rest bs=64k 2>/dev/null || true; }} && truncate -s -16K {full}.rest"
    link = f"mkdir -m 700 {full} && chown hal-backup {full} && {fill} && mv {folder} /run/real && ln -s {full} {folder}"
    miss = edited("/etc/hal-backup/store.json", r"s/\"reserve_mb\": \"*[0-9]*\"*/\"reserve_mb\": -100/")
    with planted(server, link, f"rm -rf {folder} {full} {full}.rest && mv /run/real {folder}"), planted(server, *miss):
        assert save(database).rc != 0
        assert "the disk is full: nothing is stored" in status(database)["error"]
        assert server.check_output(f"find {full} -type f -name '*.gpg*'") == ""
    assert save(database).rc == 0


def test_a_database_that_does_not_answer(database: Host, server: Host) -> None:
    with planted(database, "systemctl stop slurmdbd mariadb", "systemctl start mariadb slurmdbd"):
        fails(database, server, "mysqldump:")
    assert save(database).rc == 0


def test_what_is_wrong_in_the_store_is_seen_from_the_server(server: Host, broken: Broken) -> None:
    folder = f"{STORE}/hal-mgmt1"
    cut = f"cp -a {folder} /run/whole && truncate -s -1 {folder}/*.gpg"
    with planted(server, cut, f"rm -r {folder} && mv /run/whole {folder}"):
        assert server.run("systemctl start hal-backup-check.service").rc != 0
        assert broken("hal-data") == [
            "every node that is saved has an archive of the last days [hal-mgmt1]",
            "no archive is damaged",
        ]
    server.check_output(f"{KEEP} check")
    with planted(server, f"mv {STORE}/hal-login /run/", f"mv /run/hal-login {STORE}/"):
        assert broken("hal-data") == ["every node that is saved has an archive of the last days [hal-login]"]
    with planted(server, f"mv {STORE}/controller /run/", f"mv /run/controller {STORE}/"):
        assert broken("hal-data") == ["the site's authorities are saved"]


def test_what_a_killed_run_or_an_administrator_left_is_set_aside(server: Host, broken: Broken) -> None:
    """Nothing is written beside it. It stays until somebody looked at it, and is seen from the server."""
    folder, name = f"{STORE}/hal-login", "hal-login-20200101T000000Z.tar.gz.gpg"
    with planted(server, f"echo no archive >{folder}/{name}", f"rm -r {folder}/aside"):
        assert server.run(f"{KEEP} check").rc == 0
        assert server.check_output(f"cat {folder}/aside/{name}") == "no archive"
        assert store(server)["nodes"]["hal-login"]["aside"] == [name]
        assert broken("hal-data") == ["no archive lies aside that nobody said anything about"]
    assert broken("hal-data") == []


def test_what_a_restore_would_refuse_is_told_on_the_night_that_it_is_saved(
    database: Host, server: Host, broken: Broken
) -> None:
    """It is stored all the same: by hand it can be opened."""
    before = store(server)["nodes"]["hal-mgmt1"]["archives"]
    with planted(database, "ln -s /var/log /var/lib/hal/logs", "rm /var/lib/hal/logs"):
        assert save(database).rc != 0
        said = "is stored, and a restore would refuse it: node_record: /var/lib/hal/logs in the archive is a link that"
        assert said in status(database)["error"]
        assert broken("hal-mgmt1") == ["the last backup was not killed", "the last backup went well"]
    assert len(store(server)["nodes"]["hal-mgmt1"]["archives"]) == len(before) + 1
    assert save(database).rc == 0
