"""What a run that succeeds must not take over, hide, show or forget."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit import files as hal_audit_files
from ansible.module_utils.hal_node.audit import record as hal_audit_record
from ansible.module_utils.hal_node.audit import seal as hal_audit_seal
from ansible.module_utils.hal_node.audit.kinds.account import Accounts

from hal_cluster.audit import examine
from tests.unit.hal_node.audit.conftest import FakeNode, entry, kinds

CONF = "file:/etc/chrony.conf"
UNIT = "service:chronyd.service"
DROP_IN = "/run/systemd/system/chronyd.service.d/x.conf"
SHA1 = hashlib.sha1(b"server a\n").hexdigest()
PRESENT = {"state": "present"}


def written(hal: FakeNode, text: str = "server a\n", mode: int = 0o644) -> None:
    hal.write("/etc/chrony.conf", text, mode)


def with_acl(hal: FakeNode, *lines: str) -> None:
    path = hal.path("/etc/chrony.conf")
    text = "\n".join([f"# file: {path}", "user::rw-", *lines, "group::r--", "other::r--"]) + "\n\n"
    hal.programs["getfacl"] = lambda words: (0, text, "")


@pytest.mark.parametrize("changed", [False, True])
def test_an_acl_that_a_run_passes_by_stays_a_finding(hal: FakeNode, changed: bool) -> None:
    one = entry(CONF, declared={**PRESENT, "mode": "0644", "sha1": SHA1}, changed=changed)
    written(hal)
    with_acl(hal)
    hal.seal(one)
    with_acl(hal, "user:bob:rw-", "mask::rw-")
    for _ in range(2):
        assert kinds(hal.look()) == [(CONF, "acl", "acl")]
        hal.seal(one)
    with_acl(hal)
    assert hal.look()["differences"] == []


def test_a_mode_that_nobody_declares_is_what_the_run_made_or_what_it_was(hal: FakeNode) -> None:
    written(hal)
    hal.seal(entry(CONF, declared={**PRESENT, "sha1": SHA1}))
    written(hal, mode=0o666)
    hal.seal(entry(CONF, declared={**PRESENT, "sha1": SHA1}, changed=False))
    assert kinds(hal.look()) == [(CONF, "mode", "mode")]
    hal.seal(entry(CONF, declared={**PRESENT, "sha1": SHA1}, changed=True))
    assert hal.look()["differences"] == []


def test_content_that_nobody_declares_is_not_taken_over(hal: FakeNode) -> None:
    one = entry(CONF, declared={**PRESENT, "mode": "0644"}, changed=False)
    written(hal)
    hal.seal(one)
    since = json.loads(hal.record())["entries"][0]["observed_since"]
    written(hal, "server bad\n")
    hal.seal(one)
    assert kinds(hal.look()) == [(CONF, "changed", "sha256")]
    assert hal.look()["differences"][0]["diff"]
    assert json.loads(hal.record())["entries"][0]["observed_since"] == since
    hal.seal({**one, "changed": True})
    assert hal.look()["differences"] == []


def test_a_file_that_became_private_has_a_keyed_hash(hal: FakeNode) -> None:
    written(hal)
    hal.seal(entry(CONF, declared=PRESENT, changed=False))
    written(hal, mode=0o600)
    hal.seal(entry(CONF, declared={**PRESENT, "mode": "0600"}, changed=False))
    assert b"sha256" not in hal.record()
    assert hal.look()["differences"] == []


@pytest.mark.parametrize("changed", [False, True])
def test_drop_ins_and_masks_that_a_run_passes_by_stay_findings(hal: FakeNode, changed: bool) -> None:
    one = entry(UNIT, declared={"state": "started", "enabled": True}, changed=changed)
    hal.units["chronyd.service"] = {}
    hal.seal(one)
    hal.write(DROP_IN, "[Service]\n")
    hal.units["chronyd.service"] = {"DropInPaths": DROP_IN}
    hal.seal(one)
    assert kinds(hal.look()) == [(UNIT, "drop_ins", "drop_ins")]
    hal.units["chronyd.service"] = {"LoadState": "masked"}
    hal.seal(one)
    assert (UNIT, "masked", "masked") in kinds(hal.look())


def test_drop_ins_and_unit_files_of_the_project_are_taken_over(hal: FakeNode) -> None:
    unit = entry(UNIT, declared={"state": "started"}, changed=False)
    mine = "/etc/systemd/system/chronyd.service"
    hal.units["chronyd.service"] = {}
    hal.seal(unit)
    hal.write(DROP_IN, "[Service]\n")
    hal.write(mine, "[Service]\n")
    hal.units["chronyd.service"] = {"DropInPaths": DROP_IN, "FragmentPath": mine}
    hal.seal(entry(f"file:{DROP_IN}", declared=PRESENT), entry(f"file:{mine}", declared=PRESENT), unit)
    assert hal.look()["differences"] == []
    hal.path(DROP_IN).unlink()
    hal.units["chronyd.service"] = {"FragmentPath": mine}
    hal.seal(entry(f"file:{DROP_IN}", declared={"state": "absent"}), unit)
    assert hal.look()["differences"] == []


def test_a_setting_that_somebody_added_to_a_repository_stays_a_finding(hal: FakeNode) -> None:
    path = "/etc/yum.repos.d/a.repo"
    one = entry(f"repository:{path}#a", declared={**PRESENT, "gpgcheck": "1"}, changed=False)
    hal.write(path, "[a]\ngpgcheck=1\n")
    hal.seal(one)
    hal.write(path, "[a]\ngpgcheck=1\nsslverify=0\n")
    hal.seal(one)
    assert kinds(hal.look()) == [(one["resource"], "changed", "sslverify")]


def test_a_package_updated_by_hand_is_accepted_by_a_rollout(hal: FakeNode) -> None:
    one = entry("package:chrony", declared=PRESENT, changed=False)
    hal.seal(one)
    hal.packages["chrony"] = ("(none)", "3.5", "1.el7", "x86_64", 5)
    assert kinds(hal.look()) == [("package:chrony", "version", "version")]
    hal.seal(one)
    assert hal.look()["differences"] == []


def test_what_changed_says_is_checked(hal: FakeNode) -> None:
    with pytest.raises(Exception, match='"changed" is neither true nor false'):
        hal.seal(entry(CONF, changed="maybe"))


def test_a_role_that_never_completed_has_no_inputs_yet(hal: FakeNode) -> None:
    hal.seal(roles={"time": {"inputs_hash": "1", "tasks": ["t"], "complete": False}})
    role = json.loads(hal.record())["roles"]["time"]
    assert (role["inputs_hash"], role["begun"], role["tasks"]) == ("", "1", ["t"])
    assert examine._inputs_of(role) != {"1"}
    hal.seal(roles={"time": {"inputs_hash": "1", "tasks": ["t"]}})
    role = json.loads(hal.record())["roles"]["time"]
    assert examine._inputs_of(role) == {"1"}


def test_texts_of_private_files_are_not_in_the_record(hal: FakeNode) -> None:
    hal.write("/etc/private", "token hunter2\n", 0o600)
    hal.write("/var/spool/cron/root", "#Ansible: j\n@daily run hunter2\n", 0o600)
    hal.seal(
        entry("line:/etc/private#0", declared={**PRESENT, "lines": ["token hunter2"]}),
        entry("line:/etc/private#1", declared={**PRESENT, "block": "token hunter2"}),
        entry("line:/etc/private#2", declared={"state": "absent", "regexp": "^Banner"}),
        entry("cron:root#j", declared={**PRESENT, "job": "run hunter2 "}),
    )
    assert b"hunter" not in hal.record()
    assert hal.look()["differences"] == []
    hal.write("/etc/private", "Banner\ntoken hunter3\n", 0o600)
    hal.write("/var/spool/cron/root", "#Ansible: j\n@daily run hunter3\n", 0o600)
    answer = hal.look()
    assert [one[0] for one in kinds(answer)] == ["cron:root#j", *(f"line:/etc/private#{i}" for i in range(3))]
    cron = answer["differences"][0]
    assert (cron["should"], cron["is"]) == ("(secret)", "(secret)")
    assert "hunter" not in json.dumps(answer)


@pytest.mark.parametrize(
    ("path", "mode", "usual"),
    [("record.key", 0o644, 0o600), ("content", 0o755, 0o700), ("record.json", 0o640, 0o600), ("", 0o711, 0o700)],
)
def test_whatever_of_ours_others_may_read_is_said_and_repaired(hal: FakeNode, path: str, mode: int, usual: int) -> None:
    hal.seal(entry("hostname:static"))
    target = hal.path(f"/var/lib/hal/{path}")
    target.chmod(mode)
    assert f"has mode {mode:04o}, it should have {usual:04o}" in hal.look()["record"]["problem"]
    hal.seal(entry("hostname:static"))
    assert hal.look()["record"]["problem"] == ""


def test_another_owner_of_the_record_is_said(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    hal.seal(entry("hostname:static"))
    real = hal_audit_record.os.stat

    class Other:
        st_mode, st_uid = 0o100600, 4711

    def stat(path: Any, **more: Any) -> Any:
        return Other() if bytes(path).endswith(b"record.key") else real(path, **more)

    monkeypatch.setattr(hal_audit_record.os, "stat", stat)
    said = hal_audit_record.exposed(hal.node)
    assert said.endswith("record.key belongs to the user with number 4711, it should be root's")


def test_every_spelling_of_uid_0(hal: FakeNode) -> None:
    hal.write("/etc/passwd", "root:x:0:0::/root:/bin/sh\ntoor:x:000:0::/root:/bin/sh\na:x:10:0::/:/x\n")
    assert Accounts(hal.node).with_uid_0() == ["root", "toor"]
    passwd = hal.path("/etc/passwd").read_text()
    odd = "b:x:+0:0:\x0c\x85\u2028:/:\n c:x:\v-0:0::/:\nd:x:0:0\ne:x:0:0:::/:::\na:x:0:0::/:\n"
    other = "v:x:\u00b2:0::/:\nw:x:0x0:0::/:\nx:x:0\n#y:x:0:0::/:\nz:x::0::/:\n"
    hal.write("/etc/passwd", passwd + odd + other)
    assert Accounts(hal.node).with_uid_0() == ["a", "b", "c", "d", "e", "root", "toor"]


@pytest.mark.parametrize("how", ["gone", "not usable", "another"])
def test_hashes_of_another_key_are_unreadable_and_not_changed(hal: FakeNode, how: str) -> None:
    repository = "repository:/etc/yum.repos.d/a.repo#a"
    line, job = "line:/etc/private#0", "cron:root#j"
    written(hal, mode=0o600)
    hal.write("/etc/private", "a\n", 0o600)
    hal.write("/var/spool/cron/root", "#Ansible: j\n@daily run\n", 0o600)
    hal.write("/etc/yum.repos.d/a.repo", "[a]\npassword=hunter2\n")
    hal.seal(
        entry(CONF, declared={**PRESENT, "sha1": SHA1}),
        entry(line, declared={**PRESENT, "lines": ["a"]}),
        entry(job, declared={**PRESENT, "job": "run"}),
        entry(repository, declared=PRESENT),
    )
    assert hal.look()["differences"] == []
    key = hal.path("/var/lib/hal/record.key")
    key.unlink()
    if how != "gone":
        key.write_bytes(b"k" * (32 if how == "another" else 5))
        key.chmod(0o600)
    problems = hal.seal(entry("hostname:static"))["problems"]
    if how == "another":
        assert problems == []
    else:
        assert problems == [
            f"record.key was {how}; a new one is made, secrets recorded before cannot be compared",
        ]
    found = hal.look()["differences"]
    assert {(one["resource"], one["kind"]) for one in found} == {
        (name, "unreadable") for name in (CONF, line, job, repository)
    }
    assert {one["note"] for one in found} == {"its hash was made with another key"}
    written(hal, "another size\n", 0o600)
    assert (CONF, "changed", "size") in kinds(hal.look())
    key.unlink()
    assert {one["kind"] for one in hal.look()["differences"] if one["resource"] != CONF} == {"unreadable"}


def test_a_first_record_makes_a_key_without_a_word(hal: FakeNode) -> None:
    assert hal.seal(entry("hostname:static"))["problems"] == []


def test_without_getfacl_a_seal_says_so(hal: FakeNode) -> None:
    written(hal)
    hal.missing.add("getfacl")
    assert hal.seal(entry(CONF))["problems"] == ["ACLs of 1 files are not recorded: there is no program getfacl"]
    assert hal.look()["problems"] == []
    hal.missing.clear()
    hal.seal(entry(CONF, changed=False))
    hal.missing.add("getfacl")
    assert hal.look()["problems"] == ["ACLs of 1 files cannot be compared: there is no program getfacl"]


def test_what_lies_in_a_closed_folder_is_private(hal: FakeNode) -> None:
    hal.write("/etc/closed/a/x", "token hunter2\n")
    hal.path("/etc/closed").chmod(0o700)
    hal.path("/etc/link").symlink_to("closed/a")
    hal.seal(
        entry("file:/etc/closed/a/x"),
        entry("file:/etc/link/x"),
        entry("line:/etc/closed/a/x#0", declared={**PRESENT, "lines": ["token hunter2"]}),
    )
    assert b"hunter" not in hal.record()
    assert b"sha256" not in hal.record()
    assert list(hal.path("/var/lib/hal/content").iterdir()) == []
    assert hal.look()["differences"] == []
    hal.write("/etc/closed/a/x", "token hunter3\n")
    assert "hunter" not in json.dumps(hal.look())


def test_a_diff_is_not_shown_of_what_lies_in_a_closed_folder(hal: FakeNode) -> None:
    hal.write("/etc/closed/x", "a\n")
    hal.path("/etc/closed").chmod(0o755)
    hal.seal(entry("file:/etc/closed/x"))
    hal.write("/etc/closed/x", "b\n")
    assert "diff" in hal.look()["differences"][0]
    hal.path("/etc/closed").chmod(0o700)
    assert "diff" not in hal.look()["differences"][0]


def test_an_owner_that_nobody_declares_stays_a_finding(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    one = entry(CONF, declared={**PRESENT, "sha1": SHA1}, changed=False)
    written(hal)
    hal.seal(one)
    monkeypatch.setattr(hal_audit_files, "user_name", lambda number: "mallory")
    hal.seal(one)
    assert kinds(hal.look()) == [(CONF, "owner", "owner")]


def test_what_cannot_be_read_for_one_run_is_not_forgotten(hal: FakeNode) -> None:
    unit = entry(UNIT, declared={"state": "started"}, changed=False)
    hal.units["chronyd.service"] = {}
    hal.seal(unit)
    hal.missing.add("systemctl")
    hal.seal(unit)
    hal.missing.clear()
    hal.units["chronyd.service"] = {"LoadState": "masked"}
    hal.seal(unit)
    assert (UNIT, "masked", "masked") in kinds(hal.look())


def test_folders_are_followed_up_to_the_real_root_and_no_further() -> None:
    from ansible.module_utils.hal_node.audit.node import Node, folders_open

    assert folders_open("/etc/passwd", Node()) is True
    assert folders_open("/root/x", Node()) is bool(Path("/root").stat().st_mode & 0o001)


def test_a_key_that_cannot_be_read_is_not_replaced(hal: FakeNode) -> None:
    """Another one would make strangers of all hashes that were kept with it."""
    written(hal)
    hal.seal(entry(CONF, declared={**PRESENT, "sha1": SHA1}))
    key = hal.path("/var/lib/hal/record.key")
    key.unlink()
    key.symlink_to(key.name)  # a loop: neither there nor gone
    with pytest.raises(hal_audit_seal.SealError, match="the key of this node cannot be written: Too many levels"):
        hal.seal(entry(CONF, declared={**PRESENT, "sha1": SHA1}))
    assert key.is_symlink()
