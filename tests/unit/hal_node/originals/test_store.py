"""What is on a node is kept before roles change it."""

from __future__ import annotations

import os
import stat
from typing import Any

import pytest
from ansible.module_utils.hal_node.originals import store
from ansible.module_utils.hal_node.originals.listing import listed
from ansible.module_utils.hal_node.originals.store import (
    OriginalsError,
    Refused,
    losing,
    things_of,
    wanted_of,
)

from tests.unit.hal_node.audit.conftest import ROLLED_OUT, FakeNode, entry
from tests.unit.hal_node.originals.conftest import CONF, as_it_is, given_back, kept, rolled_out, wants


@pytest.mark.parametrize(
    ("resource", "declared", "things"),
    [
        ("file:/etc/x", {}, ["file:/etc/x"]),
        ("line:/etc/fstab#0a", {}, ["file:/etc/fstab"]),
        ("line:/sys/fs/selinux/booleans/x#0a", {}, ["line:/sys/fs/selinux/booleans/x"]),
        ("repository:/etc/yum.repos.d/a.repo#a", {}, ["file:/etc/yum.repos.d/a.repo"]),
        ("cron:root#nightly", {}, ["file:/var/spool/cron/root"]),
        ("sysctl:vm.swappiness", {"file": "/etc/sysctl.d/x"}, ["file:/etc/sysctl.d/x", "sysctl:vm.swappiness"]),
        ("sysctl:vm.swappiness", {}, ["file:/etc/sysctl.conf", "sysctl:vm.swappiness"]),
        ("mount:/home", {}, ["file:/etc/fstab", "mount:/home"]),
        ("hostname:static", {}, ["file:/etc/hostname", "hostname:static"]),
        ("package:chrony", {}, ["package:chrony"]),
        ("slurm-qos:long", {}, []),
        ("file:/var/lib/hal/network", {}, []),
        ("file:/var/lib/hal-backup", {}, ["file:/var/lib/hal-backup"]),
        ("database:slurm_acct_db", {}, []),
    ],
)
def test_a_resource_is_in_things(resource: str, declared: dict[str, Any], things: list[str]) -> None:
    assert things_of(resource, declared) == things


def test_who_writes_a_line_writes_the_file() -> None:
    resources = wants("file:/etc/fstab", content=False) + wants("line:/etc/fstab#0a", role="nfs_client")
    wanted = wanted_of(resources)["file:/etc/fstab"]
    assert wanted.content
    assert wanted.roles == {"time", "nfs_client"}
    assert not wanted_of(resources[:1])["file:/etc/fstab"].content


def test_what_is_kept_is_root_s_alone_and_whole(hal: FakeNode) -> None:
    hal.write(CONF, "server a\n", 0o640)
    before = as_it_is(hal.path(CONF))
    said = kept(hal, wants(f"file:{CONF}", "file:/etc/new", "package:chrony"))
    assert said["kept"] == [f"file:{CONF}", "package:chrony"]
    assert (said["absent"], said["lost"]) == (1, [])
    folder = hal.path("/var/lib/hal/originals")
    modes = {str(one.relative_to(folder)): stat.S_IMODE(one.lstat().st_mode) for one in [folder, *folder.rglob("*")]}
    (content,) = (folder / "content").iterdir()
    assert modes == {".": 0o700, "content": 0o700, f"content/{content.name}": 0o600, "index.json": 0o600}
    assert content.read_bytes() == b"server a\n"
    assert "server a" not in (folder / "index.json").read_text()
    assert as_it_is(hal.path(CONF)) == before


def test_the_first_version_counts(hal: FakeNode) -> None:
    hal.write(CONF, "first\n")
    kept(hal, wants(f"file:{CONF}"))
    hal.write(CONF, "ours\n")
    assert kept(hal, wants(f"file:{CONF}", role="other"))["kept"] == []
    (one,) = listed(hal.node)
    assert (one["thing"], one["roles"], one["was"], one["now"]) == (
        f"file:{CONF}",
        ["other", "time"],
        f"file 0644 {hal.path(CONF).owner()}:{hal.path(CONF).group()}, 6 bytes",
        "changed",
    )


def test_what_a_rollout_made_is_ours(hal: FakeNode) -> None:
    hal.write(CONF, "ours\n")
    rolled_out(hal, f"file:{CONF}", "mount:/home")
    assert kept(hal, wants(f"file:{CONF}", "mount:/home", "file:/etc/fstab"))["kept"] == []
    assert listed(hal.node) == []


def test_the_copy_of_the_record_counts_where_the_node_s_is_lost(hal: FakeNode) -> None:
    hal.write(CONF, "ours\n")
    packed = hal.seal(entry(f"file:{CONF}"), roles=ROLLED_OUT)["record"]
    hal.path("/var/lib/hal/record.json").unlink()
    assert kept(hal, wants(f"file:{CONF}"), copy=packed)["kept"] == []


def test_what_is_too_large_is_refused_before_anything_is_kept(hal: FakeNode) -> None:
    hal.write("/srv/image", b"x" * (1024 * 1024 + 1))
    hal.write(CONF, "small\n")
    resources = wants("file:/srv/image", f"file:{CONF}")
    with pytest.raises(Refused) as error:
        kept(hal, resources)
    assert str(error.value) == "file:/srv/image: 2 MiB: more than originals_most_mib (1) has room for"
    assert not hal.path("/var/lib/hal/originals/index.json").exists()
    assert list(hal.path("/var/lib/hal/originals/content").iterdir()) == []
    said = kept(hal, resources, lost_ok=True)
    assert (said["kept"], said["lost"]) == ([f"file:{CONF}"], [str(error.value)])
    assert kept(hal, resources, most_mib=2)["kept"] == ["file:/srv/image"]


def test_a_file_of_which_only_the_mode_is_managed_may_be_of_any_size(hal: FakeNode) -> None:
    hal.write("/var/log/x", b"x" * (1024 * 1024 + 1))
    assert kept(hal, wants("file:/var/log/x", content=False))["kept"] == ["file:/var/log/x"]
    assert list(hal.path("/var/lib/hal/originals/content").iterdir()) == []


def test_what_cannot_be_read_is_not_fine(hal: FakeNode) -> None:
    os.mkfifo(hal.write("/etc/x", "").parent / "pipe")
    hal.missing.add("rpm")
    with pytest.raises(Refused) as error:
        kept(hal, wants("file:/etc/pipe", "package:chrony"))
    assert error.value.lines == [
        f"file:/etc/pipe: it could not be read: {hal.path('/etc/pipe')} is a fifo, which cannot be kept",
        "package:chrony: it could not be read: there is no program rpm",
    ]


def test_check_mode_keeps_nothing_and_says_what_it_would(hal: FakeNode) -> None:
    hal.write(CONF, "theirs\n")
    assert kept(hal, wants(f"file:{CONF}"), check=True)["kept"] == [f"file:{CONF}"]
    assert not hal.path("/var/lib/hal").exists()


def test_a_folder_that_goes_is_kept_with_all_in_it(hal: FakeNode) -> None:
    hal.write("/opt/old/a/b", "1\n")
    hal.path("/opt/old/link").symlink_to("a")
    assert kept(hal, wants("file:/opt/old", state="absent"))["kept"] == [
        "file:/opt/old",
        "file:/opt/old/a",
        "file:/opt/old/a/b",
        "file:/opt/old/link",
    ]


@pytest.mark.parametrize("together", [True, False])
def test_a_folder_that_goes_takes_files_along_of_which_only_the_mode_is_managed(
    hal: FakeNode, systemd: list[list[str]], together: bool
) -> None:
    folder = hal.write("/etc/old/a", "theirs\n").parent
    runs = [wants("file:/etc/old/a", content=False, state="present"), wants("file:/etc/old", state="absent")]
    for resources in [[*runs[1], *runs[0]]] if together else runs:
        kept(hal, resources)
    (folder / "a").unlink()
    folder.rmdir()
    given_back(hal, changed_ok=True)
    assert (folder / "a").read_text() == "theirs\n"


@pytest.mark.parametrize(("declared", "things"), [({"content": False}, ["/etc/old", "/etc/old/a"]), ({}, ["/etc/old"])])
def test_of_a_folder_that_goes_what_a_rollout_wrote_is_ours_and_what_it_gave_a_mode_is_not(
    hal: FakeNode, declared: dict[str, Any], things: list[str]
) -> None:
    hal.write("/etc/old/a", "x\n")
    rolled_out(hal, "file:/etc/old/a", state="present", **declared)
    assert kept(hal, wants("file:/etc/old", state="absent"))["kept"] == [f"file:{path}" for path in things]


def test_a_folder_with_too_much_in_it_is_refused(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    hal.write("/opt/old/a", "1\n")
    hal.write("/opt/old/b", "1\n")
    monkeypatch.setattr(store, "MOST_TREE", 1)
    with pytest.raises(Refused, match="file:/opt/old: /opt/old has more than 1 files in it"):
        kept(hal, wants("file:/opt/old", state="absent"))


def test_of_a_folder_that_stays_only_itself_is_kept(hal: FakeNode) -> None:
    hal.write("/opt/old/a", "1\n")
    assert kept(hal, wants("file:/opt/old", type="directory"))["kept"] == ["file:/opt/old"]


def test_an_index_that_cannot_be_used_stops_a_rollout(hal: FakeNode) -> None:
    kept(hal, wants(f"file:{CONF}"))
    hal.path("/var/lib/hal/originals/index.json").write_text("{")
    with pytest.raises(OriginalsError, match=r"index\.json cannot be used\. It says what was on this node"):
        kept(hal, wants(f"file:{CONF}"))


def test_an_index_of_another_installation_is_not_of_this_node(hal: FakeNode) -> None:
    hal.write(CONF, "theirs\n")
    kept(hal, wants(f"file:{CONF}"))
    hal.write("/etc/machine-id", "f" * 32 + "\n")
    assert listed(hal.node) == []


@pytest.mark.parametrize(
    ("thing", "was", "declared", "line"),
    [
        ("package:x", {"state": "present", "version": ["1-1.x"]}, {"state": "present"}, ""),
        (
            "package:x",
            {"state": "present", "version": ["1-1.x"]},
            {"state": "absent"},
            "package x 1-1.x goes: it comes back if a repository has that version",
        ),
        (
            "package:x",
            {"state": "present", "version": ["1-1.x"]},
            {"state": "present", "version": ["2-1.x"]},
            "package x 1-1.x becomes 2-1.x: it comes back if a repository has that version",
        ),
        ("package:x", {"state": "present", "version": ["2-1.x"]}, {"state": "present", "version": ["2-1.x"]}, ""),
        ("user:slurm", {"state": "absent"}, {"state": "present", "uid": 64030}, ""),
        ("user:slurm", {"state": "present", "uid": 64030}, {"state": "present", "uid": 64030}, ""),
        (
            "user:slurm",
            {"state": "present", "uid": 991},
            {"state": "present", "uid": 64030},
            "user:slurm: uid 991 is changed, and not put back: note it",
        ),
        ("file:/etc/x", {"state": "present", "mode": "0600"}, {"state": "present", "mode": "0644"}, ""),
    ],
)
def test_what_cannot_come_back_is_said(thing: str, was: dict[str, Any], declared: dict[str, Any], line: str) -> None:
    assert losing(thing, was, declared) == line


def test_the_store_is_not_written_for_nothing(hal: FakeNode) -> None:
    assert listed(hal.node) == []
    assert not hal.path("/var/lib/hal").exists()
