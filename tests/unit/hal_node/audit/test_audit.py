"""A node is sealed, something is done to it, and the audit says exactly that."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit import files as hal_audit_files
from ansible.module_utils.hal_node.audit import look as hal_audit_look
from ansible.module_utils.hal_node.audit.kinds.service import monotonic_seconds
from ansible.module_utils.hal_node.slurm import accounting as hal_slurm_accounting
from ansible.module_utils.hal_node.slurm.accounting import columns

from tests.unit.hal_node.audit.conftest import FakeNode, entry, kinds

CONF = "file:/etc/chrony.conf"
DROP_IN = "/etc/systemd/system/chronyd.service.d/a.conf"
TASK = "time|roles/time/tasks/configure.yml|Write it"
PRESENT = {"state": "present"}
REPOSITORY = "/etc/yum.repos.d/hal.repo"
ENTRIES = [
    entry(CONF, declared={**PRESENT, "mode": "0644"}),
    entry("file:/etc/secret", declared={**PRESENT, "mode": "0600"}),
    entry("file:/etc/folder", declared={**PRESENT, "type": "directory"}),
    entry("file:/etc/link", declared={**PRESENT, "type": "link", "target": "chrony.conf"}),
    entry("file:/etc/not-here", declared={"state": "absent"}),
    entry("line:/etc/sshd_config#0", declared={**PRESENT, "lines": ["PermitRootLogin no"]}),
    entry("line:/etc/sshd_config#1", declared={"state": "absent", "regexp": "^Banner"}),
    entry("package:chrony", declared=PRESENT),
    entry("package:telnet", declared={"state": "absent"}),
    entry("service:chronyd.service", declared={"state": "started", "enabled": True}),
    entry("sysctl:vm.swappiness", declared={"value": "1", "saved": "1", "file": "/etc/sysctl.d/hal.conf"}),
    entry("mount:/scratch", declared={"state": "mounted", "saved": "noatime /dev/sdb1 xfs"}),
    entry("user:alice", declared={**PRESENT, "uid": 1000}),
    entry("group:wheel", declared=PRESENT),
    entry("cron:root#check", declared={**PRESENT, "job": "/bin/true"}),
    entry("kernel-module:nvidia", declared={"loaded": True}),
    entry(f"repository:{REPOSITORY}#hal", declared={**PRESENT, "gpgcheck": "1", "enabled": "true"}),
    entry("rpm-key:352c64e5", declared=PRESENT),
    entry("hostname:static", declared={"name": "hal05"}),
    entry("selinux:mode", declared={"mode": "enforcing"}),
    entry("database:slurm", declared=PRESENT),
    entry("database-user:slurm@localhost", declared=PRESENT),
    entry("slurm-qos:long", declared={**PRESENT, "priority": 10, "max_wall": "24:00:00"}),
]
MOUNTS = "1 1 0:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:2 / /scratch rw,noatime - xfs /dev/sdb1 rw\n"


@pytest.fixture
def whole(hal: FakeNode) -> FakeNode:
    """A node with a resource of every kind, sealed."""
    for path, text in {
        "/etc/chrony.conf": "server a\n",
        "/etc/sshd_config": "PermitRootLogin no\n",
        "/etc/sysctl.d/hal.conf": "vm.swappiness = 1\n",
        "/etc/fstab": "/dev/sdb1 /scratch xfs noatime 0 0\n",
        "/etc/selinux/config": "SELINUX=enforcing\n",
        REPOSITORY: "[hal]\nname=HAL\ngpgcheck=1\nenabled=1\npassword=hunter2\n"
        "baseurl=https://hal:hunter4@mirror.example/7\n",
        "/proc/sys/vm/swappiness": "1\n",
        "/proc/self/mountinfo": MOUNTS,
        "/sys/module/nvidia/initstate": "live\n",
        "/sys/fs/selinux/enforce": "1",
        "/var/spool/cron/root": "#Ansible: check\n*/5 * * * * /bin/true\n",
        DROP_IN: "[Service]\nNice=1\n",
    }.items():
        hal.write(path, text)
    hal.write("/etc/secret", "hunter2\n", 0o600)
    hal.path("/etc/folder").mkdir()
    hal.path("/etc/link").symlink_to("chrony.conf")
    hal.keys.append("352c64e5")
    hal.units["chronyd.service"] = {"DropInPaths": DROP_IN}
    hal.programs["getfacl"] = lambda words: (0, "", "")
    databases = {"SHOW DATABASES": "slurm\n"}
    hal.programs["mysql"] = lambda words: (0, databases.get(words[-1].split("=")[1], "slurm@localhost\n"), "")
    hal.programs["sacctmgr"] = lambda words: (0, QOS, "")
    sealed = hal.seal(*ENTRIES)
    assert sealed["problems"] == []
    assert sealed["observed"] == len(ENTRIES)
    return hal


LONG = {"Name": "long", "Priority": "10", "MaxWall": "1-00:00:00", "UsageFactor": "1.000000"}
QOS = "|".join(LONG.get(name, "") for name in columns(hal_slurm_accounting.QOS, ["Name"])) + "\n"


def again(path: str, text: str, mode: int = 0o644) -> Callable[[FakeNode], Any]:
    return lambda hal: hal.write(path, text, mode)


def acl(hal: FakeNode) -> None:
    hal.path("/etc/chrony.conf").chmod(0o664)
    path = hal.path("/etc/chrony.conf")
    text = f"# file: {path}\n# owner: root\nuser::rw-\nuser:bob:rw-\ngroup::r--\nmask::rw-\nother::r--\n\n"
    hal.programs["getfacl"] = lambda words: (0, text, "")


def relink(hal: FakeNode) -> None:
    hal.path("/etc/link").unlink()
    hal.path("/etc/link").symlink_to("secret")


def remove(path: str) -> Callable[[FakeNode], Any]:
    return lambda hal: hal.path(path).unlink()


def unit(**state: str) -> Callable[[FakeNode], Any]:
    return lambda hal: hal.units["chronyd.service"].update(state)


def package(name: str, *version: Any) -> Callable[[FakeNode], Any]:
    def change(hal: FakeNode) -> None:
        hal.packages.pop(name, None)
        if version:
            hal.packages[name] = (*version, "x86_64", 5)

    return change


def program(name: str, status: int, out: str) -> Callable[[FakeNode], Any]:
    return lambda hal: hal.programs.update({name: lambda words: (status, out, "")})


FAULTS: dict[str, tuple[Callable[[FakeNode], Any], tuple[str, str, str]]] = {
    "content": (again("/etc/chrony.conf", "server b\n"), (CONF, "changed", "sha256")),
    "mode": (lambda hal: hal.path("/etc/chrony.conf").chmod(0o666), (CONF, "mode", "mode")),
    "acl": (acl, (CONF, "acl", "acl")),
    "missing": (remove("/etc/sshd_config.d/none"), ("", "", "")),
    "secret": (again("/etc/secret", "hunter3\n", 0o600), ("file:/etc/secret", "changed", "keyed")),
    "secret exposed": (lambda hal: hal.path("/etc/secret").chmod(0o644), ("file:/etc/secret", "mode", "mode")),
    "folder": (lambda hal: hal.path("/etc/folder").rmdir(), ("file:/etc/folder", "missing", "state")),
    "link": (relink, ("file:/etc/link", "target", "target")),
    "present": (again("/etc/not-here", ""), ("file:/etc/not-here", "present", "state")),
    "line": (again("/etc/sshd_config", "PermitRootLogin yes\n"), ("line:/etc/sshd_config#0", "missing", "lines")),
    "pattern": (
        again("/etc/sshd_config", "Banner x\nPermitRootLogin no\n"),
        ("line:/etc/sshd_config#1", "present", "regexp"),
    ),
    "package gone": (package("chrony"), ("package:chrony", "missing", "state")),
    "package updated": (package("chrony", "(none)", "3.5", "1.el7"), ("package:chrony", "version", "version")),
    "package present": (package("telnet", "1", "1", "1"), ("package:telnet", "present", "state")),
    "stopped": (unit(ActiveState="inactive"), ("service:chronyd.service", "state", "state")),
    "disabled": (unit(UnitFileState="disabled"), ("service:chronyd.service", "enabled", "enabled")),
    "masked": (
        unit(LoadState="masked", UnitFileState="masked", FragmentPath="/dev/null"),
        ("service:chronyd.service", "masked", "masked"),
    ),
    "drop-in changed": (again(DROP_IN, "[Service]\n"), ("service:chronyd.service", "drop_ins", "drop_ins")),
    "drop-in gone": (unit(DropInPaths=""), ("service:chronyd.service", "drop_ins", "drop_ins")),
    "other unit file": (unit(FragmentPath="/etc/x"), ("service:chronyd.service", "changed", "fragment")),
    "unit gone": (lambda hal: hal.units.clear(), ("service:chronyd.service", "missing", "state")),
    "sysctl live": (again("/proc/sys/vm/swappiness", "60\n"), ("sysctl:vm.swappiness", "live", "value")),
    "sysctl saved": (again("/etc/sysctl.d/hal.conf", ""), ("sysctl:vm.swappiness", "saved", "saved")),
    "unmounted": (again("/proc/self/mountinfo", MOUNTS.splitlines()[0]), ("mount:/scratch", "missing", "state")),
    "mount options": (
        again("/proc/self/mountinfo", MOUNTS.replace(",noatime", "")),
        ("mount:/scratch", "options", "options"),
    ),
    "fstab": (again("/etc/fstab", "/dev/sdb1 /scratch xfs defaults 0 0\n"), ("mount:/scratch", "saved", "saved")),
    "uid": (
        again("/etc/passwd", "root:x:0:0::/root:/bin/bash\nalice:x:0:1000::/home/alice:/bin/bash\n"),
        ("user:alice", "changed", "uid"),
    ),
    "user gone": (again("/etc/passwd", "root:x:0:0::/root:/bin/bash\n"), ("user:alice", "missing", "state")),
    "gid": (again("/etc/group", "root:x:0:\nalice:x:1000:\nwheel:x:11:alice\n"), ("group:wheel", "changed", "gid")),
    "job": (
        again("/var/spool/cron/root", "#Ansible: check\n*/5 * * * * /bin/false\n"),
        ("cron:root#check", "changed", "job"),
    ),
    "module": (remove("/sys/module/nvidia/initstate"), ("", "", "")),
    "module unloaded": (
        lambda hal: hal.path("/sys/module/nvidia").rename(hal.path("/x")),
        ("kernel-module:nvidia", "live", "loaded"),
    ),
    "repository": (
        again(
            REPOSITORY,
            "[hal]\nname=HAL\ngpgcheck=0\nenabled=1\npassword=hunter2\nbaseurl=https://hal:hunter4@mirror.example/7\n",
        ),
        (f"repository:{REPOSITORY}#hal", "changed", "gpgcheck"),
    ),
    "repository's password": (
        again(
            REPOSITORY,
            "[hal]\nname=HAL\ngpgcheck=1\nenabled=1\npassword=hunter3\nbaseurl=https://hal:hunter4@mirror.example/7\n",
        ),
        (f"repository:{REPOSITORY}#hal", "changed", "password"),
    ),
    "password in a repository's address": (
        again(
            REPOSITORY,
            "[hal]\nname=HAL\ngpgcheck=1\nenabled=1\npassword=hunter2\nbaseurl=https://hal:hunter5@mirror.example/7\n",
        ),
        (f"repository:{REPOSITORY}#hal", "changed", "baseurl"),
    ),
    "rpm key": (lambda hal: hal.keys.clear(), ("rpm-key:352c64e5", "missing", "state")),
    "host name": (again("/etc/hostname", "hal06\n"), ("hostname:static", "changed", "name")),
    "selinux live": (again("/sys/fs/selinux/enforce", "0"), ("selinux:mode", "live", "live")),
    "database": (program("mysql", 0, "slurm@localhost\n"), ("database:slurm", "missing", "state")),
    "qos": (program("sacctmgr", 0, QOS.replace("10", "20")), ("slurm-qos:long", "changed", "priority")),
    "slurmdbd down": (program("sacctmgr", 1, ""), ("slurm-qos:long", "unreadable", "")),
}
FAULTS = {name: one for name, one in FAULTS.items() if one[1][0]}


def test_what_was_sealed_is_clean(whole: FakeNode) -> None:
    answer = whole.look(checks=["uid_0", "kernel", "packages", "clock"])
    assert answer["differences"] == []
    assert answer["problems"] == []
    assert [one["status"] for one in answer["checks"]] == ["pass"] * 4
    assert answer["counts"]["resources"] == len(ENTRIES)
    assert b"hunter" not in whole.record()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_with_its_owner_and_nothing_else(whole: FakeNode, name: str) -> None:
    fault, expected = FAULTS[name]
    fault(whole)
    answer = whole.look()
    assert kinds(answer) == [expected]
    assert answer["differences"][0]["task"] == TASK
    assert answer["differences"][0]["source"] == "roles/time/tasks/configure.yml:2"
    assert "hunter" not in json.dumps(answer)
    whole.seal(*ENTRIES)  # sealed in that state it is still not as declared, or it is the new truth
    assert whole.look()["counts"]["resources"] == len(ENTRIES)


@pytest.mark.parametrize(
    "name",
    [
        *("mode", "folder", "link", "present", "line", "pattern", "package gone", "package present", "stopped"),
        *("disabled", "sysctl live", "sysctl saved", "unmounted", "mount options", "fstab", "uid", "user gone"),
        *("job", "repository", "module unloaded", "rpm key", "host name", "database", "qos"),
    ],
)
def test_what_is_sealed_in_a_wrong_state_is_a_difference_at_once(whole: FakeNode, name: str) -> None:
    fault, expected = FAULTS[name]
    fault(whole)
    whole.seal(*ENTRIES)
    assert kinds(whole.look()) == [expected]


def test_a_new_time_stamp_and_an_edit_put_back_are_no_drift(whole: FakeNode) -> None:
    whole.write("/etc/chrony.conf", "server b\n")
    whole.write("/etc/chrony.conf", "server a\n")
    os.utime(whole.path("/etc/chrony.conf"), (1, 1))
    assert whole.look()["differences"] == []


def test_a_diff_of_what_everybody_may_read(whole: FakeNode) -> None:
    whole.write("/etc/chrony.conf", "server b\n")
    (difference,) = whole.look()["differences"]
    assert difference["diff"] == ["--- recorded", "+++ now", "@@ -1 +1 @@", "-server a", "+server b"]
    whole.path("/etc/chrony.conf").chmod(0o600)
    assert not any("diff" in one for one in whole.look()["differences"])


def test_a_stored_content_that_is_damaged_is_not_shown(whole: FakeNode) -> None:
    for path in whole.path("/var/lib/hal/content").iterdir():
        path.write_text("other")
    whole.write("/etc/chrony.conf", "server b\n")
    assert "diff" not in whole.look()["differences"][0]


def test_stored_contents_are_only_of_what_is_recorded(whole: FakeNode) -> None:
    def stored() -> set[str]:
        return {path.name for path in whole.path("/var/lib/hal/content").iterdir()}

    entries = json.loads(whole.record())["entries"]
    assert stored() == {one["observed"]["sha256"] for one in entries if "sha256" in one["observed"]}
    whole.write("/etc/chrony.conf", b"\xff\n")
    whole.seal(ENTRIES[0])
    assert stored() == set()


def test_a_long_diff_is_cut(hal: FakeNode) -> None:
    hal.write("/etc/chrony.conf", "".join(f"{i}\n" for i in range(500)))
    hal.seal(entry(CONF))
    hal.write("/etc/chrony.conf", "x" * 5000 + "\n")
    (difference,) = hal.look()["differences"]
    assert len(difference["diff"]) == 40
    assert difference["diff"][-1] == "... 465 more lines"


def test_owner_and_group(whole: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hal_audit_files, "user_name", lambda number: "mallory")
    found = kinds(whole.look())
    assert (CONF, "owner", "owner") in found
    assert {one[1] for one in found} == {"owner"}


@pytest.mark.root  # who sets this flag
def test_an_immutable_file(hal: FakeNode, tmp_path: Path) -> None:
    import array
    import fcntl

    path = hal.write("/etc/chrony.conf", "server a\n")
    hal.seal(entry(CONF))
    descriptor = os.open(path, os.O_RDONLY)
    flags = array.array("l", [0])
    try:
        fcntl.ioctl(descriptor, hal_audit_files.GET_FLAGS, flags, True)
        set_flags = hal_audit_files.GET_FLAGS ^ 0xC0000003 if hal_audit_files.GET_FLAGS > 0x80000000 else 0
        fcntl.ioctl(descriptor, set_flags, array.array("l", [flags[0] | 0x10]))
    except OSError as error:
        os.close(descriptor)
        pytest.skip(f"this file system or user cannot: {error}")
    try:
        assert kinds(hal.look()) == [(CONF, "immutable", "immutable")]
    finally:
        fcntl.ioctl(descriptor, set_flags, flags)
        os.close(descriptor)
    assert hal.look()["differences"] == []


def test_only_some_roles(whole: FakeNode) -> None:
    assert whole.look(roles=["ssh"])["counts"]["resources"] == 0
    assert whole.look(roles=["time"])["counts"]["resources"] == len(ENTRIES)


def test_a_file_of_which_only_attributes_are_managed(hal: FakeNode) -> None:
    hal.write("/var/log/x.log", "1\n")
    log = entry("file:/var/log/x.log", declared={**PRESENT, "content": False, "mode": "0644"})
    hal.seal(log)
    hal.write("/var/log/x.log", "1\n2\n")
    assert hal.look()["differences"] == []
    hal.path("/var/log/x.log").chmod(0o600)
    assert kinds(hal.look()) == [("file:/var/log/x.log", "mode", "mode")]
    # Another task of the run writes it: then its content counts, in whichever order.
    for both in ((log, entry(log["resource"], declared=PRESENT)), (entry(log["resource"], declared=PRESENT), log)):
        hal.write("/var/log/x.log", "1\n")
        hal.seal(*both)
        hal.write("/var/log/x.log", "2\n")
        assert kinds(hal.look()) == [("file:/var/log/x.log", "changed", "sha256")]


def test_a_checksum_of_what_the_task_wrote(hal: FakeNode) -> None:
    import hashlib

    for mode in (0o644, 0o600):
        hal.write("/etc/chrony.conf", "server a\n", mode)
        right = entry(CONF, declared={**PRESENT, "sha1": hashlib.sha1(b"server a\n").hexdigest()})
        wrong = entry(CONF, declared={**PRESENT, "sha1": "0" * 40})
        hal.seal(right)
        assert hal.look()["differences"] == []
        assert (b'"sha1"' in hal.record()) == (mode == 0o644)
        hal.seal(wrong)
        (difference,) = hal.look()["differences"]
        assert (difference["kind"], difference["note"]) == ("changed", "not what its task wrote")


def test_a_secret_entry_shows_nothing(hal: FakeNode) -> None:
    hal.write("/etc/x", "token hunter2\n")
    hal.write("/var/spool/cron/root", "#Ansible: j\n@daily run hunter2\n")
    hal.seal(
        entry("file:/etc/x", secret=True),
        entry("line:/etc/x#0", secret=True, declared={**PRESENT, "lines": ["token hunter2"]}),
        entry("cron:root#j", secret=True, declared={**PRESENT, "job": "run hunter2"}),
    )
    assert b"hunter" not in hal.record()
    assert list(hal.path("/var/lib/hal/content").iterdir()) == []
    assert hal.look()["differences"] == []
    hal.write("/etc/x", "token hunter3\n")
    hal.write("/var/spool/cron/root", "#Ansible: j\n@daily run hunter3\n")
    answer = hal.look()
    assert [one[0] for one in kinds(answer)] == ["cron:root#j", "file:/etc/x", "line:/etc/x#0"]
    assert "hunter" not in json.dumps(answer)


def test_configured_but_not_effective(hal: FakeNode) -> None:
    def start(epoch: float) -> None:
        since_boot = monotonic_seconds() - (hal.now - epoch)
        hal.units["chronyd.service"] = {"ExecMainStartTimestampMonotonic": str(int(since_boot * 1e6))}

    def written(epoch: float, text: str) -> None:
        hal.write("/etc/chrony.conf", text)
        os.utime(hal.path("/etc/chrony.conf"), (epoch, epoch))

    one = entry(CONF, units=["chronyd.service", "gone.service"])
    stale = [(CONF, "not-effective", "units")]
    start(hal.now - 100)
    written(hal.now - 200, "a\n")
    hal.seal(one)
    assert hal.look()["differences"] == []
    written(hal.now - 50, "b\n")
    hal.seal(one)
    assert kinds(hal.look()) == stale
    assert hal.look()["differences"][0]["note"] == "chronyd.service runs with what was there before"
    written(hal.now - 500, "b\n")  # an older time stamp does not make it effective
    assert kinds(hal.look()) == stale
    start(hal.now - 10)
    assert hal.look()["differences"] == []
    written(hal.now - 5, "b\n")  # nor does a newer one make it stale
    hal.seal(one)
    assert hal.look()["differences"] == []
    written(hal.now - 4, "c\n")
    hal.seal(one, handled=["chronyd.service"])
    assert hal.look()["differences"] == []
    hal.units["chronyd.service"]["ActiveState"] = "inactive"
    hal.seal(one)
    assert hal.look()["differences"] == []


def test_orphans_are_said_until_they_are_gone(whole: FakeNode) -> None:
    tasks = {"time": {"inputs_hash": "1", "tasks": ["time|roles/time/tasks/configure.yml|Another"]}}
    whole.seal(roles=tasks)
    answer = whole.look()
    assert {one["kind"] for one in answer["differences"]} == {"orphaned"}
    # What its task had made sure is not there has nothing to clean up.
    gone = {"file:/etc/not-here", "line:/etc/sshd_config#1", "package:telnet"}
    assert {one["resource"] for one in answer["differences"]} == {one["resource"] for one in ENTRIES} - gone
    note = next(one["note"] for one in answer["differences"] if one["resource"] == CONF)
    assert note.startswith("its task is gone (since 20")
    whole.path("/etc/chrony.conf").unlink()
    assert CONF not in {one["resource"] for one in whole.look()["differences"]}
    whole.seal(roles=tasks)
    assert CONF.encode() not in whole.record()
    whole.seal(*ENTRIES[5:])
    assert CONF not in {one["resource"] for one in whole.look()["differences"]}


def test_watched_folders(whole: FakeNode) -> None:
    for name in ("mine.repo", "packaged.repo", "known.repo", "readme.txt"):
        whole.write(f"/etc/yum.repos.d/{name}", "")
    whole.write("/home/alice/.ssh/authorized_keys", "")
    whole.write("/opt/modules/a/b/1.0", "")
    os.mkfifo(whole.path("/etc/yum.repos.d/pipe.repo"))
    whole.owned.add("/etc/yum.repos.d/packaged.repo")
    watched = [
        {
            "path": "/etc/yum.repos.d",
            "names": ["*.repo"],
            "accepted": ["/etc/yum.repos.d/known.*"],
            "what": "repositories",
        },
        {"path": "/home/*/.ssh", "names": ["authorized_keys*"], "what": "keys"},
        {"path": "/opt/modules/**", "what": "modulefiles"},
        {"path": "/no/such", "what": "x"},
    ]
    answer = whole.look(watched=watched)
    assert [(one["path"], one["what"], one["type"]) for one in answer["extra"]] == [
        ("/etc/yum.repos.d/mine.repo", "repositories", "file"),
        ("/etc/yum.repos.d/pipe.repo", "repositories", "fifo"),
        ("/home/alice/.ssh/authorized_keys", "keys", "file"),
        ("/opt/modules/a/b/1.0", "modulefiles", "file"),
    ]
    assert answer["counts"]["watched_files"] == 7
    assert answer["problems"] == []
    assert sum(call[:2] == ["rpm", "-qf"] for call in whole.calls) == 1


def test_the_link_that_masks_a_unit_is_its_role_s_when_it_declares_that(whole: FakeNode) -> None:
    for name in ("opensm", "other"):
        whole.units[f"{name}.service"] = {"LoadState": "masked", "UnitFileState": "masked"}
        os.makedirs(whole.path("/etc/systemd/system"), exist_ok=True)
        os.symlink("/dev/null", whole.path(f"/etc/systemd/system/{name}.service"))
    whole.seal(entry("service:opensm.service", declared={"masked": True}))
    whole.seal(entry("service:other.service", declared={"enabled": False}))
    answer = whole.look(watched=[{"path": "/etc/systemd/system", "names": ["o*.service"], "what": "units"}])
    assert [one["path"] for one in answer["extra"]] == ["/etc/systemd/system/other.service"]


def test_a_file_that_a_role_took_away_is_reported_once(whole: FakeNode) -> None:
    gone = entry("file:/etc/yum.repos.d/old.repo", declared={"state": "absent"})
    whole.seal(gone)
    whole.write("/etc/yum.repos.d/old.repo", "")
    answer = whole.look(watched=[{"path": "/etc/yum.repos.d", "names": ["*.repo"], "what": "repositories"}])
    assert [one["kind"] for one in answer["differences"] if one["resource"] == gone["resource"]] == ["present"]
    assert answer["extra"] == []


def test_one_call_a_program(whole: FakeNode) -> None:
    whole.calls.clear()
    whole.look(checks=["uid_0", "kernel", "packages", "clock"])
    asked = [" ".join(call[:2]) for call in whole.calls]
    assert sorted(asked) == sorted(set(asked) | {"mysql --batch"}) or asked.count("mysql --batch") == 2
    assert asked.count("rpm -qa") == 1
    assert asked.count("systemctl show") == 1
    assert sum(call[0] == "getfacl" for call in whole.calls) == 1


def test_packages_that_no_run_installed(whole: FakeNode) -> None:
    whole.packages["ncat"] = ("(none)", "6.40", "19.el7", "x86_64", int(whole.now))
    answer = whole.look(checks=["packages"])
    assert answer["packages"] == {"extra": ["ncat-6.40-19.el7.x86_64"], "unknown": ""}
    assert answer["checks"][0]["status"] == "fail"
    whole.seal(windows=[[whole.now - 1000, whole.now - 900]])
    assert whole.look()["packages"]["extra"] == ["ncat-6.40-19.el7.x86_64"]
    # The controller's clock is an hour behind: its window is shifted.
    run = {"id": "r", "commit": "", "started": whole.now - 3660, "now": whole.now - 3600}
    whole.seal(windows=[[whole.now - 3610, whole.now - 3600]], run=run)
    assert whole.look()["packages"]["extra"] == []


def test_software_of_recorded_packages(whole: FakeNode) -> None:
    assert whole.look()["software"] == {"chrony": "3.4-1.el7.x86_64"}


def test_lists_are_bounded_and_that_is_said(hal: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hal_audit_look, "MOST_DIFFERENCES", 3)
    hal.seal(*[entry(f"file:/etc/{i}", declared=PRESENT) for i in range(5)])
    for number in range(250):
        hal.write(f"/etc/cron.d/{number}", "")
    answer = hal.look(watched=[{"path": "/etc/cron.d", "what": "jobs"}])
    assert (len(answer["differences"]), len(answer["extra"])) == (3, 200)
    assert answer["more"] == {
        "differences": 2,
        "planned": 0,
        "extra": 50,
        "packages": 0,
        "unmanaged": 0,
        "package_files": 0,
    }


def test_questions_are_answered_in_the_same_call(hal: FakeNode) -> None:
    answer = hal.look(questions=[{"id": "x", "sysctl": {"name": "kernel.ostype"}, "equal": "Linux"}])
    assert [one["status"] for one in answer["answers"]] == ["pass"]
    assert answer["counts"]["questions"] == 1


def test_a_kind_that_this_version_does_not_know_is_unreadable(hal: FakeNode) -> None:
    hal.seal(entry("teapot:x"))
    notes = [one["note"] for one in hal.look()["differences"]]
    assert notes == ['this version cannot look at resources of kind "teapot"']


def test_a_role_that_did_not_complete_keeps_its_older_inputs(hal: FakeNode) -> None:
    hal.seal(roles={"time": {"inputs_hash": "1", "tasks": []}})
    hal.seal(roles={"time": {"inputs_hash": "2", "tasks": [], "complete": False}})
    role = json.loads(hal.record())["roles"]["time"]
    assert (role["inputs_hash"], role["begun"]) == ("1", "2")
    hal.seal(roles={"time": {"inputs_hash": "2", "tasks": []}})
    role = json.loads(hal.record())["roles"]["time"]
    assert (role["inputs_hash"], role.get("begun")) == ("2", None)


def test_a_record_that_is_lost_goes_on_from_the_controllers_copy(hal: FakeNode) -> None:
    hal.write("/etc/chrony.conf", "server one\n")
    hal.seal(entry(CONF, units=["chronyd.service"]), handled=["chronyd.service"])
    before = json.loads(hal.record())
    copy = hal.seal(entry("sysctl:vm.swappiness"))["record"]
    hal.path("/var/lib/hal/record.json").unlink()
    hal.now += 10
    sealed = hal.seal(entry("sysctl:vm.swappiness"), copy=copy)
    assert sealed["problems"] == [
        "the record was gone (there is no record on the node): the controller's copy is taken up"
    ]
    after = json.loads(hal.record())
    assert (after["serial"], after["effective"]) == (3, before["effective"])
    assert [one for one in after["entries"] if one["resource"] == CONF] == before["entries"]


def test_whether_a_daemon_was_told_before_the_first_record_is_not_guessed(hal: FakeNode) -> None:
    hal.write("/etc/chrony.conf", "server one\n")
    os.utime(hal.path("/etc/chrony.conf"), (hal.now - 90, hal.now - 90))
    since_boot = monotonic_seconds() - 120
    hal.units["chronyd.service"] = {"ExecMainStartTimestampMonotonic": str(int(since_boot * 1e6))}
    hal.seal(entry(CONF, units=["chronyd.service"]))
    assert hal.look()["differences"] == []
