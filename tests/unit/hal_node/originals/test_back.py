"""What was on a node before roles changed it comes back as it was."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from typing import Any

import pytest
from ansible.module_utils.hal_node.originals.back import give_back
from ansible.module_utils.hal_node.originals.listing import listed
from ansible.module_utils.hal_node.originals.store import (
    OriginalsError,
)

from tests.unit.hal_node.audit.conftest import ROLLED_OUT, FakeNode, entry
from tests.unit.hal_node.originals.conftest import CONF, as_it_is, given_back, kept, planned, rolled_out, wants


def test_files_come_back_as_they_were(hal: FakeNode, systemd: list[list[str]]) -> None:
    conf = hal.write(CONF, "theirs\n", 0o640)
    os.utime(conf, ns=(10**18, 10**18 + 123456789))
    link = hal.path("/etc/link")
    link.symlink_to("nowhere")
    folder = hal.path("/etc/chrony.d")
    folder.mkdir(mode=0o700)
    os.utime(folder, ns=(10**18, 10**18 + 7))
    before = [as_it_is(one) for one in (conf, link, folder)]
    paths = [CONF, "/etc/link", "/etc/chrony.d", "/etc/chrony.d/new", "/srv/a/b"]
    kept(hal, wants(*(f"file:{path}" for path in paths)))
    hal.write(CONF, "ours\n", 0o644)
    link.unlink()
    hal.write("/etc/link", "ours\n")
    hal.write("/etc/chrony.d/new", "ours\n")
    folder.chmod(0o755)
    hal.write("/srv/a/b", "ours\n")
    rolled_out(hal, *(f"file:{path}" for path in paths))

    said = planned(hal)
    user = f"{conf.owner()}:{conf.group()}"
    assert said["steps"] == [
        [f"file:{CONF}", f"back to file 0640 {user}, 7 bytes"],
        ["file:/etc/chrony.d", f"back to directory 0700 {user}"],
        ["file:/etc/chrony.d/new", "remove"],
        ["file:/etc/link", f"back to link 0777 {user}"],
        ["file:/srv", "remove"],
        ["file:/srv/a", "remove"],
        ["file:/srv/a/b", "remove"],
    ]
    assert (said["changed_since"], said["stays"], said["jobs"]) == ([], [], [])
    assert conf.read_text() == "ours\n", "a plan changes nothing"

    done = given_back(hal)
    assert done["left"] == []
    assert [as_it_is(one) for one in (conf, link, folder)] == before
    assert not hal.path("/srv").exists()
    assert listed(hal.node) == []
    assert list(hal.path("/var/lib/hal/originals/content").iterdir()) == []
    assert systemd == []


def test_the_record_forgets_the_role_and_the_audit_finds_nothing(hal: FakeNode, systemd: list[list[str]]) -> None:
    hal.write(CONF, "theirs\n")
    hal.write("/etc/other", "x\n")
    hal.seal(entry("file:/etc/other", role="base"), roles={"base": {"inputs_hash": "1", "tasks": []}})
    kept(hal, wants(f"file:{CONF}"))
    hal.write(CONF, "ours\n")
    rolled_out(hal, f"file:{CONF}")
    serial = json.loads(hal.record())["serial"]
    done = given_back(hal)
    record = json.loads(hal.record())
    assert [one["resource"] for one in record["entries"]] == ["file:/etc/other"]
    assert list(record["roles"]) == ["base"]
    assert done["serial"] == record["serial"] == serial + 1
    seen = hal.look(tree=True)
    assert (seen["differences"], seen["unmanaged"], seen["extra"]) == ([], [], [])


def test_what_somebody_changed_since_is_not_lost_without_a_word(hal: FakeNode, systemd: list[list[str]]) -> None:
    hal.write(CONF, "theirs\n")
    hal.write("/etc/hosts", "theirs\n")
    kept(hal, wants(f"file:{CONF}") + wants("line:/etc/hosts#0a"))
    hal.write(CONF, "ours\n")
    hal.write("/etc/hosts", "theirs\nours\n")
    hal.seal(
        entry(f"file:{CONF}"),
        entry("line:/etc/hosts#0a", declared={"state": "present", "lines": ["ours"]}),
        roles=ROLLED_OUT,
    )
    assert planned(hal)["changed_since"] == []
    hal.write(CONF, "an administrator's, a month later\n")
    hal.write("/etc/hosts", "theirs\nours\nan administrator's\n")
    assert planned(hal)["changed_since"] == [
        "file:/etc/chrony.conf: sha256 changed since role time rolled it out",
        "file:/etc/hosts: changed since the last rollout",
    ]
    with pytest.raises(OriginalsError, match="others changed what would be given back; nothing was changed"):
        given_back(hal)
    assert hal.path(CONF).read_text() == "an administrator's, a month later\n"
    given_back(hal, changed_ok=True)
    assert hal.path(CONF).read_text() == "theirs\n"
    assert hal.path("/etc/hosts").read_text() == "theirs\n"


def test_lines_of_a_file_that_no_record_keeps_are_not_known_to_be_ours(hal: FakeNode, systemd: list[list[str]]) -> None:
    hal.write("/var/spool/cron/root", "theirs\n")
    kept(hal, wants("line:/var/spool/cron/root#0a"))
    hal.write("/var/spool/cron/root", "theirs\nours\n")
    rolled_out(hal, "line:/var/spool/cron/root#0a", state="present", lines=["ours"])
    assert planned(hal)["changed_since"] == [
        "file:/var/spool/cron/root: whether others wrote into it since is not known"
    ]


def test_without_a_record_nobody_knows_who_was_last(hal: FakeNode, systemd: list[list[str]]) -> None:
    hal.write(CONF, "theirs\n")
    kept(hal, wants(f"file:{CONF}"))
    hal.write(CONF, "ours\n")
    (line,) = planned(hal)["changed_since"]
    assert line == f"file:{CONF}: the record of this node cannot be used, so who changed it last is not known"


def test_a_plan_holds_for_what_was_shown(hal: FakeNode, systemd: list[list[str]]) -> None:
    hal.write(CONF, "theirs\n")
    kept(hal, wants(f"file:{CONF}"))
    hal.write(CONF, "ours\n")
    rolled_out(hal, f"file:{CONF}")
    old = planned(hal)["fingerprint"]
    hal.write(CONF, "ours\n", 0o600)
    with pytest.raises(OriginalsError, match="it is not as it was shown any more; nothing was changed"):
        give_back({"node": "hal05", "role": "time", "fingerprint": old, "changed_ok": True}, hal.node)


@pytest.mark.parametrize("order", [("time", "base"), ("base", "time")])
def test_what_two_roles_have_comes_back_with_the_last(
    hal: FakeNode, systemd: list[list[str]], order: tuple[str, str]
) -> None:
    hal.write("/etc/fstab", "theirs\n")
    resources = wants("line:/etc/fstab#0a", "file:/srv/x", "file:/srv/x/time")
    resources += wants("line:/etc/fstab#0b", "file:/srv/x/base", role="base")
    kept(hal, resources)
    hal.write("/etc/fstab", "theirs\na\nb\n")
    hal.write("/srv/x/time", "ours\n")
    hal.write("/srv/x/base", "ours\n")
    hal.seal(
        *(entry(one["resource"], role=one["role"]) for one in resources if one["resource"].startswith("file:")),
        entry("line:/etc/fstab#0a", declared={"state": "present", "lines": ["a"]}),
        entry("line:/etc/fstab#0b", declared={"state": "present", "lines": ["b"]}, role="base"),
        roles=ROLLED_OUT,
    )
    first, last = order
    assert f"file:/etc/fstab: role {last} still has it" in planned(hal, first)["stays"]
    done = given_back(hal, first)
    assert (done["left"], done["stayed"]) == ([], [])
    assert hal.path("/etc/fstab").read_text() == "theirs\na\nb\n"
    assert hal.path(f"/srv/x/{last}").exists()
    assert not hal.path(f"/srv/x/{first}").exists()
    given_back(hal, last)
    assert hal.path("/etc/fstab").read_text() == "theirs\n"
    assert not hal.path("/srv").exists()
    assert listed(hal.node) == []


def test_a_folder_with_data_of_a_daemon_stays_until_it_is_empty(hal: FakeNode, systemd: list[list[str]]) -> None:
    kept(hal, wants("file:/srv/spool"))
    hal.write("/srv/spool/state", "a daemon's\n")
    rolled_out(hal, "file:/srv/spool")
    done = given_back(hal)
    assert done["left"] == []
    assert done["stayed"] == [
        "file:/srv/spool: it is not empty, and stays",
        "file:/srv: it is not empty, and stays",
    ]
    assert hal.path("/srv/spool/state").read_text() == "a daemon's\n"
    hal.path("/srv/spool/state").unlink()
    assert given_back(hal, "base")["stayed"] == []
    assert not hal.path("/srv").exists()


def test_units_come_back_and_jobs_are_not_disturbed(hal: FakeNode, systemd: list[list[str]]) -> None:
    hal.units["ntpd.service"] = {}
    hal.units["chronyd.service"] = {"ActiveState": "inactive", "UnitFileState": "disabled"}
    hal.units["slurmd.service"] = {"ActiveState": "inactive", "UnitFileState": "disabled"}
    units = ["service:ntpd.service", "service:chronyd.service", "service:slurmd.service"]
    kept(hal, wants(*units))
    hal.units["ntpd.service"] = {"ActiveState": "inactive", "UnitFileState": "masked", "LoadState": "masked"}
    hal.units["chronyd.service"], hal.units["slurmd.service"] = {}, {}
    rolled_out(hal, *units)
    hal.write("/proc/77/comm", "slurmstepd\n")
    assert planned(hal)["jobs"] == ["slurmd.service"]
    with pytest.raises(OriginalsError, match="jobs run on this node, and these would be stopped: slurmd"):
        given_back(hal)
    assert systemd == []
    hal.write("/proc/77/comm", "bash\n")
    assert given_back(hal)["left"] == []
    assert systemd == [
        ["disable", "chronyd.service"],
        ["stop", "chronyd.service"],
        ["disable", "slurmd.service"],
        ["stop", "slurmd.service"],
        ["daemon-reload"],
        ["unmask", "ntpd.service"],
        ["enable", "ntpd.service"],
        ["start", "ntpd.service"],
    ]


def test_what_jobs_of_other_nodes_need_is_named(hal: FakeNode, systemd: list[list[str]]) -> None:
    units = ["service:opensm.service", "service:slurmctld.service", "service:chronyd.service"]
    for unit in units:
        hal.units[unit.partition(":")[2]] = {"ActiveState": "inactive", "UnitFileState": "disabled"}
    kept(hal, wants(*units))
    for unit in units:
        hal.units[unit.partition(":")[2]] = {}
    rolled_out(hal, *units)
    assert planned(hal)["serving"] == ["opensm.service", "slurmctld.service"]


def test_a_mask_goes_where_no_unit_was(hal: FakeNode, systemd: list[list[str]]) -> None:
    gone = {"LoadState": "not-found", "ActiveState": "inactive", "UnitFileState": ""}
    hal.units["opensm.service"] = dict(gone)
    kept(hal, wants("service:opensm.service"))
    hal.units["opensm.service"] = {"ActiveState": "inactive", "LoadState": "masked", "UnitFileState": "masked"}
    rolled_out(hal, "service:opensm.service")
    assert planned(hal)["steps"] == [["service:opensm.service", "unmask"]]
    assert given_back(hal)["left"] == []
    assert ["unmask", "opensm.service"] in systemd


def test_what_systemd_does_not_stop_by_hand_is_said_and_no_failure(hal: FakeNode, systemd: list[list[str]]) -> None:
    hal.units["rdma.service"] = {"ActiveState": "inactive", "UnitFileState": "disabled"}
    kept(hal, wants("service:rdma.service"))
    hal.units["rdma.service"] = {"RefuseManualStop": "yes"}
    rolled_out(hal, "service:rdma.service")
    plan = planned(hal)
    assert plan["stays"] == ["service:rdma.service: systemd does not stop it by hand: it runs until the node is booted"]
    assert plan["steps"] == [["service:rdma.service", "disable"]]
    assert given_back(hal)["left"] == []
    assert ["stop", "rdma.service"] not in systemd


def test_a_daemon_is_told_that_its_file_is_back(hal: FakeNode, systemd: list[list[str]]) -> None:
    hal.write(CONF, "theirs\n")
    hal.units["chronyd.service"] = {}
    kept(hal, wants(f"file:{CONF}", "service:chronyd.service"))
    hal.write(CONF, "ours\n")
    hal.seal(entry(f"file:{CONF}", units=["chronyd.service"]), entry("service:chronyd.service"), roles=ROLLED_OUT)
    assert ["service:chronyd.service", "restart"] in planned(hal)["steps"]
    given_back(hal)
    assert ["restart", "chronyd.service"] in systemd


def test_packages_come_back_where_they_can(hal: FakeNode, systemd: list[list[str]]) -> None:
    called: list[list[str]] = []

    def rpm(words: list[str]) -> tuple[int, str, str]:
        if words[0] != "--erase":
            return hal.rpm(words)
        called.append(words)
        if words[1] == "base" and "new" in hal.packages:
            return 1, "", "error: Failed dependencies:\n\tbase is needed by (installed) new-2.0-1.el7.noarch\n"
        if words[1] == "needed":
            return 1, "", "error: Failed dependencies:\n\tneeded is needed by (installed) slurm\n"
        del hal.packages[words[1]]
        return 0, "", ""

    def yum(words: list[str]) -> tuple[int, str, str]:
        called.append(words)
        hal.packages["old"] = ("(none)", "1.0", "1.el7", "noarch", 1000)
        return 0, "", ""

    hal.programs.update(rpm=rpm, yum=yum)
    hal.packages["old"] = ("(none)", "1.0", "1.el7", "noarch", 1000)
    kept(hal, wants("package:base", "package:new", "package:needed", "package:old"))
    for name in ("base", "old", "new", "needed"):
        hal.packages[name] = ("(none)", "2.0", "1.el7", "noarch", 2000)
    rolled_out(hal, "package:base", "package:new", "package:needed", "package:old")
    done = given_back(hal)
    erased = ["base", "needed", "new", "base", "needed", "needed"]  # again while one of them goes
    assert called == [*(["--erase", one] for one in erased), ["--assumeyes", "downgrade", "old-1.0-1.el7.noarch"]]
    assert done["left"] == []
    assert done["stayed"] == ["package:needed: others need it, and it stays: (installed) slurm"]
    assert [(one["thing"], one["roles"]) for one in listed(hal.node)] == [("package:needed", [])]
    hal.programs["rpm"] = lambda words: (
        (0, hal.packages.pop("needed") and "", "") if words[0] == "--erase" else hal.rpm(words)
    )
    assert given_back(hal, "base")["done"] == ["package:needed: remove"], "what stayed goes with the next role"


def test_what_a_program_says_it_did_is_looked_at(hal: FakeNode, systemd: list[list[str]]) -> None:
    hal.units["chronyd.service"] = {"ActiveState": "inactive", "UnitFileState": "disabled"}
    kept(hal, wants("service:chronyd.service"))
    hal.units["chronyd.service"] = {}
    rolled_out(hal, "service:chronyd.service")
    told = hal.programs["systemctl"]
    hal.programs["systemctl"] = lambda words: told(words) if words[0] == "show" else (0, "", "")
    assert given_back(hal)["left"] == ["service:chronyd.service: it is still not as it was"]


def test_a_folder_in_which_files_came_back_has_its_time_again(hal: FakeNode, systemd: list[list[str]]) -> None:
    folder = hal.path("/etc/plain")
    folder.mkdir()
    os.utime(folder, ns=(10**18, 10**18))
    kept(hal, wants("file:/etc/plain", "file:/etc/plain/new"))
    hal.write("/etc/plain/new", "ours\n")
    rolled_out(hal, "file:/etc/plain", "file:/etc/plain/new")
    given_back(hal)
    assert folder.lstat().st_mtime_ns == 10**18


@pytest.mark.root
def test_owners_come_back(hal: FakeNode, systemd: list[list[str]]) -> None:
    conf = hal.write(CONF, "theirs\n", 0o4750)
    os.chown(conf, 1234, 2345)
    conf.chmod(0o4750)
    kept(hal, wants(f"file:{CONF}"))
    conf.unlink()
    hal.write(CONF, "ours\n")
    rolled_out(hal, f"file:{CONF}")
    given_back(hal)
    status = conf.lstat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 2345, 0o4750)


def test_what_is_in_force_comes_back(hal: FakeNode, systemd: list[list[str]]) -> None:
    hal.write("/proc/sys/vm/swappiness", "60\n")
    kept(hal, wants("sysctl:vm.swappiness", file="/etc/sysctl.d/hal.conf"))
    hal.write("/proc/sys/vm/swappiness", "10\n")
    hal.write("/etc/sysctl.d/hal.conf", "vm.swappiness = 10\n")
    rolled_out(hal, "sysctl:vm.swappiness", file="/etc/sysctl.d/hal.conf", saved="10", value="10")
    assert given_back(hal)["left"] == []
    assert hal.path("/proc/sys/vm/swappiness").read_text() == "60\n"
    assert not hal.path("/etc/sysctl.d").exists()


def test_what_is_not_put_back_is_named(hal: FakeNode, systemd: list[list[str]]) -> None:
    kept(hal, wants("user:alice"))
    passwd = hal.path("/etc/passwd")
    passwd.write_text(passwd.read_text().replace("/bin/bash\n", "/bin/zsh\n"))
    (line,) = planned(hal)["stays"]
    assert line.startswith("user:alice: it was ")
    assert "shell /bin/bash" in line


def test_a_file_that_is_gone_and_was_not_kept_stays_away(hal: FakeNode, systemd: list[list[str]]) -> None:
    """Its mode alone was managed, so its content is not in the store."""
    hal.write("/var/log/x", "theirs\n")
    hal.write(CONF, "theirs\n")
    kept(hal, wants("file:/var/log/x", content=False) + wants(f"file:{CONF}"))
    rolled_out(hal, "file:/var/log/x", content=False)
    hal.path("/var/log/x").unlink()
    hal.write(CONF, "ours\n")
    said = planned(hal)
    assert said["stays"] == ["file:/var/log/x: the file is gone, and its content was not kept: put it back by hand"]
    assert [thing for thing, _what in said["steps"]] == [f"file:{CONF}"]
    assert given_back(hal, changed_ok=True)["left"] == []
    assert hal.path(CONF).read_text() == "theirs\n"
    assert not hal.path("/var/log/x").exists()


def test_what_could_not_be_put_back_is_kept_on(
    hal: FakeNode, systemd: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hal.write(CONF, "theirs\n")
    kept(hal, wants(f"file:{CONF}"))
    hal.write(CONF, "ours\n")
    rolled_out(hal, f"file:{CONF}")
    real: Callable[..., None] = os.rename

    def full(source: Any, target: Any) -> None:
        if os.fsdecode(target).endswith(CONF):
            raise OSError(28, "No space left on device")
        real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", full)
        assert given_back(hal)["left"] == [f"file:{CONF}: No space left on device"]
    assert hal.path(CONF).read_text() == "ours\n"
    assert [one["thing"] for one in listed(hal.node)] == [f"file:{CONF}"]
    assert planned(hal, "ssh")["steps"] == [], "another role does not fail for it"
    assert [one.name for one in hal.path("/etc").glob(".hal-*")] == []
    given_back(hal, changed_ok=True)
    assert hal.path(CONF).read_text() == "theirs\n"


def test_extended_attributes_come_back(hal: FakeNode, systemd: list[list[str]]) -> None:
    conf = hal.write(CONF, "theirs\n")
    try:
        os.setxattr(conf, "user.origin", b"site\0")
    except OSError:
        pytest.skip("this file system has no extended attributes of users")
    kept(hal, wants(f"file:{CONF}"))
    conf.unlink()
    os.setxattr(hal.write(CONF, "ours\n"), "user.hal", b"1")
    rolled_out(hal, f"file:{CONF}")
    given_back(hal)
    assert {name: os.getxattr(conf, name) for name in os.listxattr(conf) if name.startswith("user.")} == {
        "user.origin": b"site\0"
    }
