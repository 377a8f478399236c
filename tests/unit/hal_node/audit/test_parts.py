"""Parsers and small decisions, fed real output (captures/README.md) and what is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit.checks import clock, kernel
from ansible.module_utils.hal_node.audit.files import parse_acls
from ansible.module_utils.hal_node.audit.kinds.account import table
from ansible.module_utils.hal_node.audit.kinds.cron import job
from ansible.module_utils.hal_node.audit.kinds.line import observe_line
from ansible.module_utils.hal_node.audit.kinds.mount import parse_fstab
from ansible.module_utils.hal_node.audit.kinds.package import pinned
from ansible.module_utils.hal_node.audit.kinds.repository import sections
from ansible.module_utils.hal_node.audit.kinds.service import attributes_of, monotonic_seconds, started_at
from ansible.module_utils.hal_node.audit.kinds.slurm import is_over, same_field
from ansible.module_utils.hal_node.audit.kinds.sysctl import saved_sysctl
from ansible.module_utils.hal_node.audit.node import as_bytes, from_iso, iso, shown_name
from ansible.module_utils.hal_node.audit.packages import Installed, explain, parse, unexplained
from ansible.module_utils.hal_node.expect.services import parse as parse_units
from ansible.module_utils.hal_node.expect.values import Unreadable


def test_acls_are_what_is_beyond_the_mode(captures: Path) -> None:
    acls = parse_acls((captures / "getfacl.txt").read_text())
    assert acls[b"/tmp/plain"] == ["group::r--", "mask::r--", "user:nobody:r--"]
    assert acls["/tmp/uml-ü".encode()] == ["group::r--", "group:daemon:rw-", "mask::rw-"]
    assert "default:user:nobody:r--" in acls[b"/tmp/a b"]
    assert "group::r-x" not in acls[b"/tmp/a b"]  # without a mask it is the mode's
    assert len(acls) == 3


def test_escaped_names_of_acls() -> None:
    assert parse_acls("# file: /a\\012\\377\nuser:x:r--\nmask::r--\n") == {b"/a\n\xff": ["mask::r--", "user:x:r--"]}


def test_units(captures: Path) -> None:
    units = {one["Id"]: one for one in parse_units((captures / "systemctl_show.txt").read_text())}
    path = "/etc/systemd/system/crond.service.d/nice.conf"
    assert attributes_of(units["crond.service"], {path: "0011"}) == {
        "state": "started",
        "enabled": True,
        "masked": False,
        "fragment": "/lib/systemd/system/crond.service",
        "drop_ins": [f"{path} 0011"],
    }
    assert attributes_of(units["no-such.service"], {}) == {"state": "absent"}
    assert attributes_of(units["sshd.service"], {})["masked"] is True
    assert attributes_of(units["sshd.service"], {})["enabled"] is False
    assert attributes_of(units["systemd-journald.service"], {})["enabled"] == "static"
    assert isinstance(attributes_of({}, {}), Unreadable)


def test_since_when_a_unit_runs(captures: Path) -> None:
    units = {one["Id"]: one for one in parse_units((captures / "systemctl_show.txt").read_text())}
    boot = 1_000_000 - monotonic_seconds()
    started = started_at(units["crond.service"], 1_000_000)
    assert started is not None
    assert abs(started - (boot + 15268.21633)) < 1
    assert started_at(units["no-such.service"], 1_000_000) is None
    assert started_at(units["tmp.mount"], 1_000_000) is None  # no process: nothing that could be stale
    assert started_at(Unreadable("x"), 1_000_000) is None


def test_packages(captures: Path) -> None:
    out = (captures / "rpm_qa.txt").read_text()
    installed = parse(
        out + "hal-package\tgpg-pubkey\t(none)\tF4A80EB5\t53a7ff4b\t(none)\t1\n"
        "hal-package\tbind\t32\t9.11\t1.el7\tx86_64\t1\nerror: something\n"
        "hal-package\tkernel\t(none)\t3\t1\tx86_64\t5\nhal-package\tkernel\t(none)\t3\t2\tx86_64\t6\n"
    )
    assert installed.keys == {"f4a80eb5"}
    assert installed.named("which") == {"5.7-1.deb12.el7.noarch": 1795227062}
    assert installed.named("which.noarch") == installed.named("which")
    assert installed.named("which.x86_64") == {}
    assert list(installed.named("bind")) == ["32:9.11-1.el7.x86_64"]
    assert installed.explained()["kernel"] == "3-1.x86_64 3-2.x86_64"
    with pytest.raises(Unreadable, match="rpm does not know a single package"):
        parse("error: cannot open Packages database\n")


@pytest.mark.parametrize("wanted", ["1:2.3-4.el7.x86_64", "2.3-4.el7.x86_64", "1:2.3-4.el7", "2.3-4.el7", "2.3"])
def test_a_pinned_version_may_leave_parts_out(wanted: str) -> None:
    assert pinned(wanted, ["9-9.x86_64", "1:2.3-4.el7.x86_64"])


@pytest.mark.parametrize("wanted", ["2.3-5.el7", "2", "2.3-4", "2:2.3-4.el7.x86_64"])
def test_another_version_is_not_the_pinned_one(wanted: str) -> None:
    assert not pinned(wanted, ["1:2.3-4.el7.x86_64"])


def test_packages_are_explained_by_the_windows_of_runs() -> None:
    old = {"kept": "1-1.x", "gone": "1-1.x", "updated": "1-1.x", "by-hand": "1-1.x"}
    installed = Installed(
        {
            "kept": {"1-1.x": 1},
            "updated": {"2-1.x": 100},
            "by-hand": {"2-1.x": 300},
            "new": {"1-1.x": 101},
            "strange": {"1-1.x": 300},
            "named": {"1-1.x": 300},
        },
        set(),
    )
    assert explain(None, installed, [], set()) == installed.explained()
    explained = explain(old, installed, [(90, 110)], {"named"})
    assert explained == {"kept": "1-1.x", "updated": "2-1.x", "by-hand": "1-1.x", "new": "1-1.x", "named": "1-1.x"}
    assert unexplained(explained, installed, set()) == ["by-hand-2-1.x", "strange-1-1.x"]
    assert unexplained(explained, installed, {"strange"}) == ["by-hand-2-1.x"]


@pytest.mark.parametrize(
    ("declared", "text", "state"),
    [
        ({"lines": ["a", "b "]}, "b\nx\na\n", "present"),
        ({"lines": ["a", "b"]}, "a\n", "absent"),
        ({"lines": ["1048576"]}, "10485760\n", "absent"),
        ({"lines": ["a"]}, None, "absent"),
        ({"state": "absent", "lines": ["a", "b"]}, "b\n", "present"),
        ({"state": "absent", "lines": ["a"]}, "aa\n", "absent"),
        ({"block": "# B\nx\n# E"}, "0\n# B\nx\n# E\n", "present"),
        ({"block": "# B\nx\n# E"}, "0\n# B\ny\nx\n# E\n", "absent"),
        ({"state": "absent", "regexp": "^a"}, "ba\n", "absent"),
        ({"state": "absent", "regexp": "^a"}, "ab\n", "present"),
        ({"state": "absent", "regexp": "("}, "ab\n", "unknown"),
        ({"state": "present"}, "anything", "present"),
        ({"state": "present"}, None, "absent"),
    ],
)
def test_lines_are_compared_whole(declared: dict[str, Any], text: str | None, state: str) -> None:
    assert observe_line(declared, text, b"", public=True)["state"] == state


def test_what_a_line_was_changed_to_is_near() -> None:
    declared = {"lines": ["PermitRootLogin no"]}
    assert observe_line(declared, "#PermitRootLogin yes\nx\n", b"", public=True)["near"] == ["#PermitRootLogin yes"]
    assert "near" not in observe_line(declared, "PermitRootLogin yes\n", b"", public=False)


def test_saved_sysctls() -> None:
    text = "# vm.a = 0\nvm.a=1\n; x\n-net/ipv4/b = 3\t4\nvm.a = 2\nbroken\n= 3\n"
    assert saved_sysctl(text, "vm.a") == "2"
    assert saved_sysctl(text, "net.ipv4.b") == "3 4"
    assert saved_sysctl(text, "vm.c") is None


def test_fstab() -> None:
    text = "# x\n/dev/sda1 / xfs defaults 0 0\nnfs:/a /mnt/with\\040blank nfs4 ro,_netdev\nshort /x\n"
    assert parse_fstab(text) == {"/": "defaults /dev/sda1 xfs", "/mnt/with blank": "ro,_netdev nfs:/a nfs4"}


def test_tables_keep_whole_lines_and_the_first_of_a_name() -> None:
    assert table("root:x:0:0::/:/x\nroot:x:5:0::/:/x\n+::::::\nshort:x\na:x:1:1::/:/x\n", 7) == [
        ["root", "x", "0", "0", "", "/", "/x"],
        ["a", "x", "1", "1", "", "/", "/x"],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#Ansible: x\n*/5 * * * * run it\n", {"state": "present", "schedule": "*/5 * * * *", "job": "run it"}),
        ("#Ansible: x\n@daily run it\n", {"state": "present", "schedule": "@daily", "job": "run it"}),
        ("#Ansible: x\n#@daily run it\n", {"state": "absent"}),
        ("#Ansible: xy\n@daily run it\n", {"state": "absent"}),
        ("#Ansible: x\n", {"state": "absent"}),
        ("#Ansible: x\nodd\n", {"state": "present", "schedule": "", "job": "odd"}),
    ],
)
def test_jobs_of_cron(text: str, expected: dict[str, Any]) -> None:
    assert job(text, "x") == expected


def test_sections_of_repository_files() -> None:
    text = "stray=1\n# c\n[a]\nName = A\nbaseurl=http://x\n  http://y\n[b]\nenabled=0\n"
    assert sections(text) == {"a": {"name": "A", "baseurl": "http://x\nhttp://y"}, "b": {"enabled": "0"}}


@pytest.mark.parametrize(
    ("packages", "running", "status"),
    [
        ({}, "3.10.0-1.el7.x86_64", "pass"),
        ({"kernel": {"3.10.0-1.el7.x86_64": 1}}, "3.10.0-1.el7.x86_64", "pass"),
        ({"kernel": {"3.10.0-9.el7.x86_64": 1, "3.10.0-10.el7.x86_64": 1}}, "3.10.0-9.el7.x86_64", "fail"),
        ({"kernel-core": {"4-1.x": 1}}, "5-1.x", "fail"),
    ],
)
def test_the_kernel_that_runs_is_the_newest_installed(packages: Any, running: str, status: str) -> None:
    assert kernel(packages, running)[0] == status


def test_the_clock_is_behind_nothing_that_happened() -> None:
    record = {"sealed_at": iso(1000)}
    assert clock(1000 - 299, record, None)[0] == "pass"
    assert clock(1000 - 301, record, None)[0] == "fail"
    assert clock(500, None, 900)[0] == "fail"
    assert clock(500, {"sealed_at": "odd"}, 400)[0] == "pass"
    with pytest.raises(Unreadable):
        clock(500, None, None)


@pytest.mark.parametrize(
    ("kind", "key", "wanted", "seen", "equal"),
    [
        ("slurm-qos", "max_wall", "24:00:00", "1-00:00:00", True),
        ("slurm-qos", "max_wall", "24:00:00", "2-00:00:00", False),
        ("slurm-qos", "flags", ["DenyOnLimit", "PartitionTimeLimit"], "PartitionTimeLimit,DenyOnLimit", True),
        ("slurm-qos", "priority", 10, "10", True),
        ("slurm-user", "accounts", ["b", "a"], ["a", "b"], True),
        ("slurm-user", "accounts", ["a"], ["a", "b"], False),
        ("slurm-reservation", "nodes", "hal[01-02]", "hal01,hal02", True),
        ("slurm-reservation", "users", ["root"], ["alice"], False),
        ("slurm-reservation", "end", "2027-01-10 08:00:00", "2027-01-10T08:00:00", True),
    ],
)
def test_fields_of_slurm_compare_in_any_spelling(kind: str, key: str, wanted: Any, seen: Any, equal: bool) -> None:
    assert same_field(kind, key, wanted, seen) is equal


def test_a_reservation_that_is_over() -> None:
    assert is_over({"end": "2020-01-01T00:00:00"}, 2e9)
    assert not is_over({"end": "2120-01-01T00:00:00"}, 2e9)
    assert not is_over({}, 2e9)


def test_names_and_times() -> None:
    assert shown_name(b"/a\xff\n") == "/a\\xff\\x0a"
    assert shown_name("größe".encode()) == "größe"
    assert as_bytes("größe") == "größe".encode()
    assert re.match(r"2026-11-21T\d\d:\d\d:00Z$", iso(1795233660))
    assert from_iso(iso(1795233660)) == 1795233660
    assert from_iso("yesterday") is None
