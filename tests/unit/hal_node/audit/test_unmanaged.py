"""/etc and /boot beside what roles manage: what is found there, and what a later run takes for its own.

A node's change times are the kernel's: tests turn the node's clock, never those.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit import tree as trees

from tests.unit.hal_node.audit.conftest import ROLLED_OUT, FakeNode, entry

LATER = 3600


@pytest.fixture
def hal(hal: FakeNode) -> FakeNode:
    """A node whose /etc and /boot are as an installation left them, sealed an hour after that."""
    for path, text in {
        "/etc/pam.d/sshd": "auth required pam_sepermit.so\n",
        "/etc/hosts.deny": "#\n",
        "/etc/fstab": "/dev/sda1 / xfs defaults 0 0\n",
        "/etc/adjtime": "0.0 0 0.0\n",
        "/etc/crontab": "x\n",
        "/etc/gone.d/a": "a\n",
        "/etc/gone.d/b": "b\n",
        "/boot/vmlinuz": "kernel\n",
    }.items():
        hal.write(path, text)
    hal.write("/etc/shadow", "root:$6$salt$hash:18000:0:99999:7:::\nalice:$6$a$b:18000:0:99999:7:::\n", 0o600)
    hal.write("/etc/gshadow", "root:::\nwheel:!::alice\n", 0o600)
    hal.path("/etc/mtab").symlink_to("../proc/self/mounts")
    hal.now = time.time() + LATER
    hal.seal(roles=ROLLED_OUT)
    return hal


def found(hal: FakeNode, **more: Any) -> list[tuple[str, str, str]]:
    """What an audit finds, in short; it could read everything."""
    answer = hal.look(tree=True, **more)
    assert answer["problems"] == []
    return [(one["path"], one["kind"], one["attribute"]) for one in answer["unmanaged"]]


def one(hal: FakeNode, path: str) -> dict[str, Any]:
    """What an audit says of a path."""
    every: list[dict[str, Any]] = hal.look(tree=True)["unmanaged"]
    (finding,) = [each for each in every if each["path"] == path]
    return finding


def rolled_out(hal: FakeNode, *entries: dict[str, Any], packages: bool = False) -> None:
    """Seal a run whose tasks changed something since the first one, by the clock of the file system, which is real."""
    begin, end = hal.now - LATER - 1, time.time() + 1
    run = {"id": "run", "commit": "abc1234", "started": begin - 60, "now": hal.now, "changes": [[begin, end]]}
    hal.seal(*entries, run=run, windows=[[begin, end]] if packages else [])


# ---------------------------------------------------------------- what is found
def test_what_is_as_it_was_sealed_is_no_finding(hal: FakeNode) -> None:
    assert found(hal) == []
    assert hal.look(tree=True)["counts"]["unmanaged_files"] > 10
    assert hal.look()["counts"]["unmanaged_files"] == 0


def test_what_appeared_changed_and_went_is_named_with_how(hal: FakeNode) -> None:
    hal.write("/etc/ld.so.preload", "/tmp/x.so\n")
    hal.write("/etc/pam.d/sshd", "auth sufficient pam_permit.so\n")
    hal.write("/etc/fstab", hal.path("/etc/fstab").read_text() + "mallory:/x /x nfs defaults 0 0\n")
    hal.write("/boot/vmlinuz", "KERNEL\n")  # of the same size
    hal.path("/etc/hosts.deny").unlink()
    hal.path("/etc/adjtime").chmod(0o666)
    hal.path("/etc/mtab").unlink()
    hal.path("/etc/mtab").symlink_to("/tmp/mtab")
    hal.path("/etc/crontab").unlink()
    hal.path("/etc/crontab").mkdir()
    assert found(hal) == [
        ("/boot/vmlinuz", "changed", "keyed"),
        ("/etc/adjtime", "mode", "mode"),
        ("/etc/crontab", "type", "type"),
        ("/etc/fstab", "changed", "keyed"),
        ("/etc/hosts.deny", "missing", "state"),
        ("/etc/ld.so.preload", "extra", "state"),
        ("/etc/mtab", "target", "target"),
        ("/etc/pam.d/sshd", "changed", "keyed"),
    ]
    assert (one(hal, "/etc/adjtime")["should"], one(hal, "/etc/adjtime")["is"]) == ("0644", "0666")
    assert (one(hal, "/etc/mtab")["should"], one(hal, "/etc/mtab")["is"]) == ("../proc/self/mounts", "/tmp/mtab")


def test_since_when_is_the_change_time_and_of_what_is_gone_that_of_its_folder(hal: FakeNode) -> None:
    hal.write("/etc/pam.d/sshd", "x\n")
    os.utime(hal.path("/etc/pam.d/sshd"), (5, 7))  # touch -d
    hal.path("/etc/hosts.deny").unlink()
    assert one(hal, "/etc/pam.d/sshd")["when"] == int(hal.path("/etc/pam.d/sshd").stat().st_ctime)
    assert one(hal, "/etc/hosts.deny")["when"] == int(hal.path("/etc").stat().st_ctime)


def test_a_file_that_was_edited_and_put_back_is_as_it_was(hal: FakeNode) -> None:
    before = hal.path("/etc/pam.d/sshd").read_text()
    hal.write("/etc/pam.d/sshd", "x\n")
    hal.write("/etc/pam.d/sshd", before)
    assert found(hal) == []


def test_of_a_folder_that_is_gone_or_new_not_each_file_is_told(hal: FakeNode) -> None:
    for path in ("/etc/gone.d/a", "/etc/gone.d/b"):
        hal.path(path).unlink()
    hal.path("/etc/gone.d").rmdir()
    hal.path("/etc/new.d/empty").mkdir(parents=True)
    assert found(hal) == [("/etc/gone.d", "missing", "state")]
    assert one(hal, "/etc/gone.d")["note"] == "with 2 files and folders in it"
    hal.write("/etc/new.d/a", "")
    assert found(hal)[1:] == [("/etc/new.d/a", "extra", "state")]


def test_which_package_has_it(hal: FakeNode) -> None:
    hal.write("/etc/pam.d/sshd", "x\n")
    hal.write("/etc/hosts.deny", "x\n")
    said = {"/etc/pam.d/sshd": "hal-package\topenssh-server\n"}

    def rpm(words: list[str]) -> tuple[int, str, str]:
        out = ""
        for path in words[3:]:
            mine = said.get(path.removeprefix(str(hal.root)))
            marked = "\\t" in words[2]
            out += (mine if marked else "hal-package\n") if mine else f"file {path} is not owned by any package\n"
        return 1, out, ""

    hal.programs["rpm"] = lambda words: rpm(words) if words[0] == "-qf" else hal.rpm(words)
    hal.calls.clear()
    assert {each["path"]: each["package"] for each in hal.look(tree=True)["unmanaged"]} == {
        "/etc/pam.d/sshd": "openssh-server",
        "/etc/hosts.deny": "",
    }
    asked = [words[4:] for words in hal.calls if words[:2] == ["rpm", "-qf"]]
    assert [len(paths) for paths in asked] == [2, 1], "of what differs only"


def test_without_rpm_the_findings_are_there_and_the_owner_is_not_known(hal: FakeNode) -> None:
    hal.write("/etc/hosts.deny", "x\n")
    hal.programs["rpm"] = lambda words: (1, "", "rpmdb broken")
    answer = hal.look(tree=True)
    assert [each["path"] for each in answer["unmanaged"]] == ["/etc/hosts.deny"]
    assert any("whose files below /etc and /boot are is not known" in words for words in answer["problems"])


# ---------------------------------------------------------------- what is no finding of this kind
def test_what_a_role_manages_is_its_own_finding_alone(hal: FakeNode) -> None:
    hal.seal(
        entry("file:/etc/hosts.deny", declared={"state": "present", "type": "file"}),
        entry("file:/etc/away", declared={"state": "absent"}),
        entry("service:chronyd.service", declared={"enabled": True}),
    )
    hal.write("/etc/hosts.deny", "x\n")
    hal.write("/etc/away", "")
    link = hal.path("/etc/systemd/system/multi-user.target.wants/chronyd.service")
    link.parent.mkdir(parents=True)
    link.symlink_to("/usr/lib/systemd/system/chronyd.service")
    assert found(hal) == []
    link.with_name("miner.service").symlink_to("/tmp/miner.service")
    assert found(hal) == [(f"{link.parent}/miner.service".removeprefix(str(hal.root)), "extra", "state")]
    users = hal.path("/etc/systemd/user/chronyd.service")
    users.parent.mkdir()
    users.symlink_to("/tmp/miner.service")
    assert ("/etc/systemd/user/chronyd.service", "extra", "state") in found(hal), "a unit of users has another name"


def test_the_rest_of_a_file_in_which_a_role_has_a_line_is_compared(hal: FakeNode) -> None:
    hal.seal(
        entry("mount:/scratch", declared={"state": "mounted"}),
        entry("line:/etc/hosts.deny#1", declared={"state": "present", "lines": ["#"]}),
        entry("file:/etc/pam.d/sshd", declared={"state": "present", "type": "file", "content": False}),
    )
    hal.write("/etc/fstab", "x\n")
    hal.write("/etc/hosts.deny", "#\nx\n")
    hal.write("/etc/pam.d/sshd", "x\n", 0o666)
    assert found(hal) == [
        ("/etc/fstab", "changed", "keyed"),
        ("/etc/hosts.deny", "changed", "keyed"),
        ("/etc/pam.d/sshd", "changed", "keyed"),  # its mode is its role's
    ]
    assert one(hal, "/etc/fstab")["within"] == ["mount:/scratch"]
    assert one(hal, "/etc/hosts.deny")["within"] == ["line:/etc/hosts.deny#1"]


def test_what_goes_with_a_folder_of_a_role_says_so(hal: FakeNode) -> None:
    hal.seal(entry("file:/etc/gone.d", declared={"state": "present", "type": "directory"}))
    for name in ("a", "b"):
        hal.path(f"/etc/gone.d/{name}").unlink()
    assert one(hal, "/etc/gone.d/a")["within"] == []
    hal.path("/etc/gone.d").rmdir()
    assert one(hal, "/etc/gone.d/a")["within"] == ["file:/etc/gone.d"]


def test_what_changes_by_itself_may(hal: FakeNode) -> None:
    hal.write("/etc/adjtime", "5.0 0 0.0\n")
    hal.write("/etc/ld.so.cache", "x")
    hal.write("/etc/lvm/archive/vg_00001.vg", "x")
    hal.write("/etc/passwd-", "x")
    assert found(hal) == []
    hal.path("/etc/adjtime").unlink()
    assert found(hal) == []


def test_a_pattern_of_what_changes_goes_no_deeper() -> None:
    from ansible.module_utils.hal_node.audit.changing import changes_itself

    assert changes_itself("/boot/initramfs-4.18.0kdump.img")
    assert changes_itself("/etc/cups/subscriptions.conf.O")
    assert not changes_itself("/boot/initramfs-x/kdump.img")
    assert not changes_itself("/etc/cron.d/passwd-")


def test_a_file_that_another_part_of_the_audit_told_is_not_told_twice(hal: FakeNode) -> None:
    hal.write("/etc/cron.d/x", "")
    assert found(hal, watched=[{"path": "/etc/cron.d"}]) == []
    assert found(hal) == [("/etc/cron.d/x", "extra", "state")]


def test_some_roles_only_look_at_nothing_else(hal: FakeNode) -> None:
    hal.write("/etc/hosts.deny", "x\n")
    assert hal.look(roles=["time"])["unmanaged"] == []


# ---------------------------------------------------------------- user databases
def test_a_user_added_to_wheel_is_named_by_the_entry(hal: FakeNode) -> None:
    hal.write("/etc/group", hal.path("/etc/group").read_text().replace("wheel:x:10:alice", "wheel:x:10:alice,mallory"))
    hal.write("/etc/gshadow", "root:::\nwheel:!::alice,mallory\n", 0o600)
    group = one(hal, "/etc/group")
    assert (group["kind"], group["attribute"]) == ("changed", "entries")
    assert group["should"] == ["wheel: gid 10, members alice"]
    assert group["is"] == ["wheel: gid 10, members alice mallory"]
    assert one(hal, "/etc/gshadow")["is"] == ["wheel: no password fits, administrators none, members alice mallory"]


def test_accounts_and_their_passwords_are_told_without_a_hash(hal: FakeNode) -> None:
    hal.write("/etc/passwd", hal.path("/etc/passwd").read_text() + "toor:x:0:0::/root:/bin/bash\n")
    hal.write(
        "/etc/shadow", "root:$6$salt$OTHER:18000:0:99999:7:::\nalice:$6$a$b:18000:0:99999:7:::\ntoor::::::::\n", 0o600
    )
    assert one(hal, "/etc/passwd")["is"] == ["toor: uid 0, gid 0, home /root, shell /bin/bash"]
    shadow = one(hal, "/etc/shadow")
    assert shadow["should"] == ["root: password set"]
    assert shadow["is"] == ["root: another password", "toor: no password is asked"]
    stored = hal.record().decode() + repr(hal.look(tree=True))
    assert not any(secret in stored for secret in ("$6$", "$hash", "OTHER"))


def test_a_person_may_set_a_password_and_nobody_else_may_for_who_had_none(hal: FakeNode) -> None:
    hal.write("/etc/shadow", "root:$6$salt$hash:18000:0:99999:7:::\nalice:$6$a$c:19000:0:99999:7:::\n", 0o600)
    assert found(hal) == []
    hal.write("/etc/shadow", "root:$6$salt$hash:18000:0:99999:7:::\nalice:!$6$a$c:19000:0:99999:7:::\n", 0o600)
    assert one(hal, "/etc/shadow")["is"] == ["alice: no password fits"]


def test_what_is_said_of_entries_and_how_many_files_is_bounded(hal: FakeNode) -> None:
    many = "".join(f"x{number}:x:{2000 + number}:1::/{'y' * 400}:/bin/sh\n" for number in range(50))
    hal.write("/etc/passwd", hal.path("/etc/passwd").read_text() + many)
    lines = one(hal, "/etc/passwd")["is"]
    assert (len(lines), lines[-1], max(map(len, lines))) == (41, "... 10 more", 303)
    for number in range(230):
        hal.write(f"/etc/many/{number:03}", "")
    answer = hal.look(tree=True)
    assert (len(answer["unmanaged"]), answer["more"]["unmanaged"]) == (200, 31)


def test_what_a_site_accepts_does_not_fill_the_list(hal: FakeNode) -> None:
    """What came before the rest of a list that is cut would hide it."""
    for number in range(205):
        hal.write(f"/etc/crl/{number:03}", "x\n")
    hal.write("/etc/pam.d/sshd", "x\n")
    full = hal.look(tree=True)
    assert (len(full["unmanaged"]), full["more"]["unmanaged"]) == (200, 6)
    answer = hal.look(tree=True, accepted=["/etc/crl/*"])
    assert [one["path"] for one in answer["unmanaged"]] == ["/etc/pam.d/sshd"]
    assert answer["more"]["unmanaged"] == 0


def test_a_uid_that_is_no_number_ends_neither_an_audit_nor_a_run(hal: FakeNode) -> None:
    passwd = hal.path("/etc/passwd").read_text()
    hal.write("/etc/passwd", f"{passwd}x:x:\u00b2:\u00b2::/:/bin/sh\ny:x:{'9' * 5000}:0::/:/bin/sh\nz:x:+0:0:\x0c:/:\n")
    assert hal.look(checks=["uid_0"])["checks"][0]["observed"] == ["root", "z"]
    assert "z: uid +0, gid 0, home /, shell " in one(hal, "/etc/passwd")["is"]
    assert [one for one in found(hal) if one[0] == "/etc/passwd"] == [("/etc/passwd", "changed", "entries")]
    hal.seal()
    assert [one for one in found(hal) if one[0] == "/etc/passwd"] == [("/etc/passwd", "changed", "entries")]


def test_the_order_of_entries_does_not_matter_and_a_user_of_a_role_is_that_role_s(hal: FakeNode) -> None:
    lines = hal.path("/etc/passwd").read_text().splitlines()
    hal.write("/etc/passwd", "\n".join(reversed(lines)) + "\n")
    assert found(hal) == []
    hal.seal(entry("user:alice", declared={"state": "present"}))
    hal.write("/etc/passwd", hal.path("/etc/passwd").read_text().replace("/home/alice", "/tmp"))
    assert found(hal) == []


# ---------------------------------------------------------------- what a later run keeps
def test_a_run_keeps_what_somebody_else_changed_as_it_was(hal: FakeNode) -> None:
    hal.write("/etc/pam.d/sshd", "x\n")
    hal.write("/etc/ld.so.preload", "x\n")
    hal.path("/etc/hosts.deny").unlink()
    hal.write("/etc/group", hal.path("/etc/group").read_text().replace("alice\n", "alice,mallory\n"))
    before = found(hal)
    assert len(before) == 4
    hal.seal(entry("file:/etc/hosts"), windows=[[5, 10]])
    assert found(hal) == before


def test_a_run_takes_what_its_tasks_changed(hal: FakeNode) -> None:
    hal.write("/etc/pam.d/sshd", "x\n")
    hal.write("/etc/new", "x\n")
    assert len(found(hal)) == 2
    begin = time.time() - hal.now  # by the controller's clock, which is another
    run = {"id": "run", "started": hal.now - 60, "now": 5000.0, "changes": [[5000 + begin - 1, 5000 + begin + 1]]}
    hal.seal(run=run)
    assert found(hal) == []
    hal.write("/etc/new", "y\n")
    assert found(hal) == [("/etc/new", "changed", "keyed")]


def test_what_a_run_names_is_its_own_whenever_it_was_changed(hal: FakeNode) -> None:
    hal.write("/etc/hosts.deny", "x\n")
    hal.path("/etc/pam.d/sshd").unlink()
    hal.path("/etc/gone.d/a").unlink()
    hal.seal(
        entry("line:/etc/hosts.deny#1", declared={"state": "present", "lines": ["x"]}),
        entry("file:/etc/pam.d", declared={"state": "absent"}),
        entry("file:/etc/gone.d/a", declared={"state": "absent"}, changed=False),
    )
    hal.seal(reached=["time|roles/time/tasks/configure.yml|Write it"])  # they are nobody's any more
    assert ("/etc/hosts.deny", "changed", "keyed") not in found(hal)
    assert not any(path.startswith("/etc/pam.d/") for path, _kind, _attribute in found(hal))


def test_a_module_that_begins_late_takes_what_the_tasks_changed(hal: FakeNode) -> None:
    hal.write("/etc/new", "x\n")
    begin = hal.path("/etc/new").stat().st_ctime
    hal.now = begin + 60  # after a minute a busy machine begins what it was told then
    hal.seal(run={"id": "run", "started": begin - 60, "now": begin, "changes": [[begin - 1, begin]]})
    hal.now += LATER
    assert found(hal) == []


def test_what_a_role_does_not_manage_any_more_and_took_away_is_gone(hal: FakeNode) -> None:
    """Its task named it while it was there, and names it no more: a repository that a site no longer declares."""
    task = "time|roles/time/tasks/configure.yml|Write it"
    hal.seal(entry("repository:/etc/hosts.deny#old", declared={"state": "present", "settings": {}}), roles=ROLLED_OUT)
    hal.path("/etc/hosts.deny").unlink()
    hal.path("/etc/crontab").unlink()
    hal.seal(reached=[task])
    assert found(hal) == [("/etc/crontab", "missing", "state")], "that one was nobody's"


def test_what_went_in_the_time_of_packages_may_have_gone_with_one(hal: FakeNode) -> None:
    hal.path("/etc/hosts.deny").unlink()
    hal.path("/etc/gone.d/a").unlink()
    rolled_out(hal)
    assert len(found(hal)) == 2, "no package came or went"
    hal.owned.add("/etc/hosts.deny")  # its package is there, so it went otherwise
    rolled_out(hal, packages=True)
    assert found(hal) == [("/etc/hosts.deny", "missing", "state")]


def test_a_run_takes_of_user_databases_only_what_it_made(hal: FakeNode) -> None:
    passwd = hal.path("/etc/passwd").read_text()
    hal.write(
        "/etc/passwd",
        passwd + "mallory:x:0:0::/:/bin/bash\nbob:x:1001:10::/home/bob:/bin/bash\nmysql:x:27:27::/:/sbin/nologin\n",
    )
    hal.write("/etc/group", "root:x:0:mallory\nalice:x:1000:\nwheel:x:10:alice,bob\nmysql:x:27:\n")
    hal.write("/etc/shadow", hal.path("/etc/shadow").read_text() + "mallory::::::::\nmysql:!!:18000::::::\n", 0o600)
    rolled_out(hal, entry("user:bob", declared={"state": "present", "groups": ["wheel"]}), packages=True)
    assert one(hal, "/etc/passwd")["is"] == ["mallory: uid 0, gid 0, home /, shell /bin/bash"]
    passwd += "eve:x:800:0::/:/bin/sh\nmal:x:801:10::/:/bin/sh\nned:x:802:6::/:/bin/sh\nftp:x:14:50::/:/sbin/nologin\n"
    hal.write("/etc/passwd", passwd)
    rolled_out(hal, packages=True)
    assert [line.split(":")[0] for line in one(hal, "/etc/passwd")["is"]] == ["eve", "mal", "ned"], "root, wheel, disk"
    assert one(hal, "/etc/group")["is"] == ["root: gid 0, members mallory"]
    assert one(hal, "/etc/shadow")["is"] == ["mallory: no password is asked"]


def test_what_went_with_a_package_did_though_a_task_changed_its_folder_after_that(hal: FakeNode) -> None:
    hal.path("/etc/hosts.deny").unlink()
    hal.write("/etc/motd", "x\n")
    begin, end = time.time() - 1, time.time() + 1
    run = {"id": "run", "started": begin - 3600, "now": hal.now, "changes": [[begin, end]]}
    hal.seal(run=run)
    assert found(hal) == [("/etc/hosts.deny", "missing", "state")], "no package went"
    hal.seal(run=run, windows=[[begin - 900, begin - 800]])
    assert found(hal) == []


def test_the_user_of_a_package_is_its_own_though_a_task_changed_the_file_after_that(hal: FakeNode) -> None:
    hal.write("/etc/passwd", hal.path("/etc/passwd").read_text() + "mysql:x:27:27::/:/sbin/nologin\n")
    begin, end = time.time() - 1, time.time() + 1
    run = {"id": "run", "started": begin - 3600, "now": hal.now, "changes": [[begin, end]]}
    hal.seal(run=run)
    assert one(hal, "/etc/passwd")["is"] == ["mysql: uid 27, gid 27, home /, shell /sbin/nologin"], "no package came"
    hal.seal(run={**run, "changes": []}, windows=[[begin - 900, begin - 800]])
    assert found(hal) == [("/etc/passwd", "changed", "entries")], "somebody else changed it after that"
    hal.seal(run=run, windows=[[begin - 900, begin - 800]])
    assert found(hal) == []


def test_a_record_from_before_says_that_nothing_is_kept_yet(hal: FakeNode) -> None:
    import json

    record = json.loads(hal.record())
    del record["tree"]
    hal.write("/var/lib/hal/record.json", json.dumps(record), 0o600)
    answer = hal.look(tree=True)
    assert answer["problems"] == ["what /etc and /boot hold is not in the record yet: the next rollout keeps it"]
    hal.seal(entry("file:/etc/ssh/sshd_config"))
    assert hal.look(tree=True)["problems"] == answer["problems"], "first contact rolls out no role as a whole"
    hal.seal(roles=ROLLED_OUT)
    assert found(hal) == []


# ---------------------------------------------------------------- what is read, and what cannot be
def test_a_file_with_the_stamps_that_are_kept_is_read_only_in_depth(
    hal: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_words: Any) -> str:
        raise OSError(5, "it was read")

    monkeypatch.setattr(trees._Walk, "_digest", read)
    assert found(hal) == []
    hal.write("/etc/hosts.deny", "x\n")
    assert hal.look(tree=True)["problems"] == ["/etc/hosts.deny: Input/output error"]
    deep = hal.look(tree=True, deep=True)["problems"]
    assert "/etc/pam.d/sshd: Input/output error" in deep


def test_in_depth_a_content_is_seen_that_left_no_stamp(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    hal.programs["nice"] = lambda words: (0, "", "")
    monkeypatch.setattr(trees._Walk, "_digest", lambda *_words: "0" * 32)
    assert found(hal) == []
    assert ("/etc/pam.d/sshd", "changed", "keyed") in found(hal, deep=True)


def test_the_stamp_of_a_file_that_was_just_written_is_not_trusted(hal: FakeNode) -> None:
    import json

    hal.write("/etc/hosts.deny", "a\n")
    hal.now = hal.path("/etc/hosts.deny").stat().st_ctime
    rolled_out(hal)
    kept = json.loads(hal.record())["tree"]["paths"]
    assert kept["/etc/hosts.deny"].split(" ")[4] == "-"
    hal.now += LATER
    hal.seal()
    stamp = hal.path("/etc/hosts.deny").stat().st_ctime
    assert json.loads(hal.record())["tree"]["paths"]["/etc/hosts.deny"].split(" ")[4] == str(int(stamp * 1000000))


def test_with_another_key_only_stamps_tell(hal: FakeNode) -> None:
    hal.write("/var/lib/hal/record.key", os.urandom(32), 0o600)
    assert found(hal) == []
    hal.write("/etc/hosts.deny", "!\n")
    answer = hal.look(tree=True)
    assert answer["unmanaged"] == []
    assert "whether the content of 1 files below /etc and /boot is as it was is not known" in answer["problems"][0]
    hal.write("/etc/hosts.deny", "longer\n")
    assert found(hal) == [("/etc/hosts.deny", "changed", "keyed")]
    hal.write("/etc/hosts.deny", "!\n")
    hal.seal()
    assert found(hal) == [("/etc/hosts.deny", "changed", "keyed")], "a new key hides nothing"
    assert "the key of its hash was lost" in one(hal, "/etc/hosts.deny")["note"]


def test_a_record_whose_tree_is_damaged_is_refused(hal: FakeNode) -> None:
    for tree, words in (
        ([], '"tree" is not a mapping'),
        ({"paths": []}, '"tree.paths" is not a mapping'),
        ({"paths": {}}, '"tree.databases" is not a mapping'),
        ({"paths": {"/etc/x": "f 644"}, "databases": {}}, '"tree.paths" has a line that is not ours'),
        ({"paths": {"etc/x": "d 755 0:0"}, "databases": {}}, '"tree.paths" has a line that is not ours'),
        ({"paths": {}, "databases": {"/etc/group": []}}, '"tree.databases" has what is not a mapping of texts'),
        ({"paths": {}, "databases": {}}, '"tree.key_id" is not text'),
        ({"paths": {}, "databases": {}, "key_id": ""}, ""),
    ):
        assert trees.wrong(tree) == words


def test_what_is_mounted_below_is_not_looked_at(hal: FakeNode) -> None:
    hal.write(
        "/proc/self/mountinfo",
        "1 1 0:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:2 / /etc/away rw - nfs4 a:/b rw\n"
        "3 1 0:3 / /etc/disk rw - xfs /dev/sdb rw\n",
    )
    hal.write("/etc/away/x", "")
    hal.write("/etc/disk/x", "")
    assert found(hal) == []


def test_not_everything_seen_is_not_gone(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MOST_PATHS", 3)
    answer = hal.look(tree=True)
    assert answer["unmanaged"] == []
    assert answer["problems"] == ["/etc: more than 3 files; not all were looked at"]


def test_names_that_are_no_text_and_what_never_answers(hal: FakeNode) -> None:
    with open(os.fsencode(hal.path("/etc")) + b"/\xff", "w"):
        pass
    os.mkfifo(hal.path("/etc/fifo"))
    assert found(hal) == [("/etc/\\xff", "extra", "state"), ("/etc/fifo", "extra", "state")]
    assert one(hal, "/etc/fifo")["is"] == "fifo"


def test_nothing_of_a_secret_file_is_kept_in_the_clear(hal: FakeNode) -> None:
    import hashlib

    hal.write("/etc/secret", "hunter2\n", 0o600)
    rolled_out(hal)
    assert hashlib.sha256(b"hunter2\n").hexdigest()[:32] not in hal.record().decode()


def test_paths_below(tmp_path: Path) -> None:
    from ansible.module_utils.hal_node.audit.kinds.registry import kind_named

    def path_of(kind: str, name: str, declared: dict[str, str]) -> str:
        return str(kind_named(kind).path(name, declared))

    assert path_of("sysctl", "vm.x", {}) == "/etc/sysctl.conf"
    assert path_of("sysctl", "vm.x", {"file": "/etc/sysctl.d/a"}) == "/etc/sysctl.d/a"
    assert path_of("repository", "/etc/yum.repos.d/a.repo#a", {}) == "/etc/yum.repos.d/a.repo"
    assert path_of("package", "a", {}) == ""
