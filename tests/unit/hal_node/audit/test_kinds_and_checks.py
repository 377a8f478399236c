"""Lines, the kernel, mounts and names as they are observed; standing checks; what hides secrets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit import secrets as secrets
from ansible.module_utils.hal_node.audit.checks import clock, kernel, make_checks, uid_0
from ansible.module_utils.hal_node.audit.kinds.hostname import observe_hostname
from ansible.module_utils.hal_node.audit.kinds.kernel_module import observe_kernel_module
from ansible.module_utils.hal_node.audit.kinds.line import near, observe_line
from ansible.module_utils.hal_node.audit.kinds.mount import PASSING, Mounts, parse_fstab
from ansible.module_utils.hal_node.audit.kinds.registry import KINDS
from ansible.module_utils.hal_node.audit.kinds.selinux import observe_selinux
from ansible.module_utils.hal_node.audit.kinds.sysctl import observe_sysctl, saved_sysctl
from ansible.module_utils.hal_node.audit.node import iso
from ansible.module_utils.hal_node.audit.observe import Once, Survey
from ansible.module_utils.hal_node.expect.values import Unreadable

from tests.unit.hal_node.audit.conftest import FakeNode, refused

PRESENT = {"state": "present"}
KEY = b"k" * 32


def test_every_file_of_a_kind_is_in_the_registry_and_every_kind_has_a_name_of_its_own() -> None:
    folder = Path(__file__).resolve().parents[4] / "hal_node/audit/kinds"
    files = {path.stem for path in folder.glob("[!_]*.py")} - {"kind", "registry"}
    assert {type(kind).__module__.rpartition(".")[2] for kind in KINDS} == files
    assert len({kind.name for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize(
    ("declared", "text", "expected"),
    [
        ({"lines": ["a 1", "b"]}, "b\na 2\n", {"state": "absent", "lines": ["b"], "near": ["a 2"]}),
        ({"lines": ["a", "b"]}, "b\na\n", {**PRESENT, "lines": ["a", "b"]}),
        ({"block": "a\nb\nc\nd"}, "c\n", {"state": "absent", "near": ["a", "b", "d"]}),
        ({"block": "a\nb\nc\nd\ne"}, "c\n", {"state": "absent", "near": ["a", "b", "d"]}),
        ({"block": "\na \n"}, "x\na\n", {**PRESENT, "block": "\na \n"}),
        ({"block": "a"}, None, {"state": "absent"}),
        ({"regexp": "a"}, "a1\na2\na3\na4\n", {**PRESENT, "near": ["a1", "a2", "a3"]}),
        ({"regexp": "^$"}, None, {**PRESENT, "near": [""]}),
        ({"lines_keyed": [secrets.keyed(KEY, "a")]}, "a\n\n", {**PRESENT, "lines_keyed": [secrets.keyed(KEY, "a")]}),
        ({"lines_keyed": [secrets.keyed(KEY, "")]}, "a\n\n", {"state": "absent", "lines_keyed": []}),
    ],
)
def test_what_a_file_has_of_declared_lines(declared: Any, text: str | None, expected: Any) -> None:
    assert observe_line(declared, text, KEY, public=True) == expected
    hidden = {name: value for name, value in expected.items() if name != "near"}
    assert observe_line(declared, text, KEY, public=False) == hidden


def test_without_a_key_no_keyed_line_is_there() -> None:
    declared = {"lines_keyed": [secrets.keyed(b"", "a")]}
    assert observe_line(declared, "a\n", b"", public=True) == {"state": "absent", "lines_keyed": []}


def test_lines_that_begin_alike_are_three_at_most() -> None:
    lines = ["", " # a=0", "a:1", "ab", "a 2", "a", "a 4"]
    assert near(["a = 9"], lines) == [" # a=0", "a:1", "a 2"]
    assert near(["#b"], ["b", "c"]) == ["b"]


def test_a_kernel_setting_is_what_is_saved_and_what_is_live(hal: FakeNode) -> None:
    hal.write("/proc/sys/vm/a", "1\t2\n")
    hal.write("/etc/sysctl.conf", "vm.a=3\n")
    hal.write("/x.conf", "vm.b=4\n")
    assert observe_sysctl("vm.a", {}, hal.node) == {
        **{**PRESENT, "file": "/etc/sysctl.conf", "value": "1 2", "saved": "3"},
    }
    assert observe_sysctl("vm.a", {"file": "/x.conf"}, hal.node) == {**PRESENT, "file": "/x.conf", "value": "1 2"}
    assert observe_sysctl("vm.b", {"file": "/x.conf"}, hal.node) == {"state": "absent", "file": "/x.conf", "saved": "4"}
    assert refused(observe_sysctl, "a b", {}, hal.node) == ('not a sysctl name: "a b"', "")
    assert refused(observe_kernel_module, "a b", hal.node) == ('not a module name: "a b"', "")
    hal.path("/sys/module/a_b").mkdir(parents=True)
    assert observe_kernel_module("a-b", hal.node) == {"loaded": True}
    assert observe_kernel_module("c", hal.node) == {"loaded": False}


def test_lines_of_sysctl_files_that_are_none_are_passed_by() -> None:
    assert saved_sysctl("a b = 5\n\n#vm.a=1\n;vm.a=2\nvm.a\n - vm/a = 6  7 \n", "vm.a") == "6 7"


@pytest.mark.parametrize("option", PASSING)
def test_options_that_are_another_after_each_mount_are_left_out(hal: FakeNode, option: str) -> None:
    hal.write("/proc/self/mountinfo", f"1 1 0:1 / /a rw - nfs4 s:/x vers=4,{option}=1,b\n")
    assert Mounts(hal.node).observe("/a/") == {
        **{"state": "mounted", "source": "s:/x", "fstype": "nfs4", "options": ["b", "rw", "vers=4"]},
    }


def test_mounts_are_live_or_saved_or_absent(hal: FakeNode) -> None:
    hal.write("/proc/self/mountinfo", "1 1 0:1 / / rw - ext4 /dev/sda1 rw\n")
    hal.write("/etc/fstab", "s:/b /b/ nfs\ns:/c /c\n/dev/sda1 / ext4 ro 0 0\n")
    mounts = Mounts(hal.node)
    root = {"state": "mounted", "source": "/dev/sda1", "fstype": "ext4", "options": ["rw"]}
    assert mounts.observe("/") == {**root, "saved": "ro /dev/sda1 ext4"}
    assert mounts.observe("/b") == {"state": "unmounted", "saved": "defaults s:/b nfs"}
    assert mounts.observe("/c") == {"state": "absent"}
    assert parse_fstab("a\\134b /x\\011y t o\n#a /b t o\n") == {"/x\ty": "o a\\b t"}
    for name in ("/proc/self/mountinfo", "/etc/fstab"):
        hal.path(name).unlink()
    assert Mounts(hal.node).observe("/") == {"state": "absent"}


def test_the_host_name_is_the_first_line_that_is_none_of_words(hal: FakeNode) -> None:
    hal.write("/etc/hostname", "# x\n\n hal05 \nother\n")
    assert observe_hostname(hal.node) == {"name": "hal05"}
    hal.write("/etc/hostname", "# x\n")
    assert observe_hostname(hal.node) == {"state": "absent"}
    hal.path("/etc/hostname").unlink()
    assert observe_hostname(hal.node) == {"state": "absent"}


@pytest.mark.parametrize(
    ("enforce", "live"), [(None, "disabled"), ("1\n", "enforcing"), ("0", "permissive"), ("", "permissive")]
)
def test_selinux_as_configured_and_as_in_force(hal: FakeNode, enforce: str | None, live: str) -> None:
    if enforce is not None:
        hal.write("/sys/fs/selinux/enforce", enforce)
    assert observe_selinux(hal.node) == {"state": "absent", "live": live}
    hal.write("/etc/selinux/config", "SELINUXTYPE=targeted\nSELINUX\n SELINUX = Enforcing # x\n")
    assert observe_selinux(hal.node) == {"mode": "enforcing", "live": live}


def test_the_kernel_of_the_next_boot() -> None:
    two = {"kernel": {"3.10.0-9.x": 1, "1:3.10.0-10.x": 1}, "kernel-core": {"2-1.x": 1}}
    newer = "another kernel is installed than runs: it takes a reboot"
    assert kernel(two, "3.10.0-9.x") == ("fail", "3.10.0-9.x", "3.10.0-10.x", newer)
    assert kernel(two, "3.10.0-10.x") == ("pass", "3.10.0-10.x", "3.10.0-10.x", "")
    none = "no kernel is installed as a package: there is none newer to boot"
    assert kernel({"bash": {"1": 1}}, "4") == ("pass", "4", None, none)


def test_who_has_uid_0() -> None:
    assert uid_0(["root"]) == ("pass", ["root"], ["root"], "")
    assert uid_0(["root", "toor"]) == ("fail", ["root", "toor"], ["root"], "users with uid 0")


def test_a_clock_that_went_back() -> None:
    record = {"sealed_at": iso(1000)}
    assert clock(700, record, None) == ("pass", iso(700), None, "")
    words = f"the clock went back: the record was sealed at {iso(1000)}"
    assert clock(699, record, 5000) == ("fail", iso(699), f"after {iso(1000)}", words)
    words = f"the clock went back: a package was installed at {iso(5000)}"
    assert clock(900, record, 5000) == ("fail", iso(900), f"after {iso(5000)}", words)
    assert refused(clock, 5, None, None)[0] == "there is neither a record nor a package to compare the clock with"


def test_checks_come_in_the_order_that_they_are_asked_for(hal: FakeNode) -> None:
    survey = Survey(hal.node, KEY)
    found = make_checks(["packages", "none", "uid_0", "kernel", "clock"], survey, None, ["a-1-1.x"], "")
    now = iso(hal.now)
    none = "no kernel is installed as a package: there is none newer to boot"
    assert [tuple(one[name] for name in ("check", "status", "observed", "expected", "reason")) for one in found] == [
        ("packages", "fail", ["a-1-1.x"], [], "no run installed them"),
        ("none", "unknown", None, None, 'there is no check "none"'),
        ("uid_0", "pass", ["root"], ["root"], ""),
        ("kernel", "pass", "3.10.0-1062.el7.x86_64", None, none),
        ("clock", "pass", now, None, ""),
    ]
    (found,) = make_checks(["packages"], survey, None, [], "")
    assert (found["status"], found["observed"], found["reason"]) == ("pass", [], "")
    (found,) = make_checks(["packages"], survey, None, [], "not recorded")
    assert (found["status"], found["reason"]) == ("unknown", "not recorded")
    hal.path("/proc/sys/kernel/osrelease").unlink()
    assert make_checks(["kernel"], survey, None, [], "")[0]["observed"] == os.uname()[2]
    hal.missing.add("rpm")
    (found,) = make_checks(["clock"], Survey(hal.node, KEY), None, [], "")
    assert found["reason"] == "there is neither a record nor a package to compare the clock with"
    hal.missing.clear()
    hal.packages["late"] = ("(none)", "1", "1", "x", int(hal.now) + 301)
    assert make_checks(["clock"], Survey(hal.node, KEY), None, [], "")[0]["status"] == "fail"


def test_a_key_is_told_by_eight_digits_and_only_a_whole_one_is_used(hal: FakeNode) -> None:
    assert (secrets.id_of(KEY), secrets.id_of(b"")) == ("5e318f8c", "")
    for content, key in ((b"k" * 32, KEY), (b"k" * 31, b""), (b"k" * 33, b"")):
        hal.write("/var/lib/hal/record.key", content)
        assert secrets.read_key(hal.node) == key
    hal.path("/var/lib/hal/record.key").unlink()
    assert secrets.read_key(hal.node) == b""
    assert len({secrets.make_key() for _ in range(2)}) == 2


@pytest.mark.parametrize(
    ("name", "value", "keyed"),
    [("keyed", 5, True), ("sha1_keyed", 5, True), ("x", "keyed 5", True), ("x", "keyed", False), ("x", 5, False)],
)
def test_what_is_a_keyed_hash(name: str, value: Any, keyed: bool) -> None:
    assert secrets.is_keyed(name, value) is keyed


def test_texts_are_concealed_line_by_line() -> None:
    hashed = [secrets.keyed(KEY, "a"), secrets.keyed(KEY, "b")]
    assert secrets.conceal_texts(KEY, {"block": "a \n\nb", "regexp": "x", "mode": 1}) == {
        "mode": 1,
        "lines_keyed": hashed,
    }
    assert secrets.conceal_texts(KEY, {"lines": ["a", "b "], "regexp": "x"}, True) == {
        "regexp": "x",
        "lines_keyed": hashed,
    }
    assert secrets.conceal_texts(KEY, {"job": " a "}, True) == {"job_keyed": hashed[0]}
    assert secrets.conceal(KEY, {"sha1": "a", "mode": 1}, True) == {"mode": 1, "sha1_keyed": hashed[0]}
    assert secrets.conceal(KEY, {"sha1": "a", "mode": 1}, False) == {"mode": 1, "sha1": "a"}
    assert secrets.conceal(KEY, {"sha1": "", "mode": 1}, False) == {"mode": 1}


def test_what_is_asked_once_answers_everybody() -> None:
    asked = []

    def read(value: Any) -> Any:
        asked.append(value)
        if value == "bad":
            raise Unreadable("reason")
        return {}

    good, bad = Once(read, "good"), Once(read, "bad")
    first = good.get()
    assert first == {}
    assert good.get() is first
    assert [refused(bad.get) for _ in range(2)] == [("reason", "")] * 2
    assert asked == ["good", "bad"]
