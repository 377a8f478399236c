"""Readers against captured output of real systems; captures/README.md says of which."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.expect import kernel as kernel
from ansible.module_utils.hal_node.expect import mounts as mounts
from ansible.module_utils.hal_node.expect import packages as packages
from ansible.module_utils.hal_node.expect import ports as ports
from ansible.module_utils.hal_node.expect import services as services
from ansible.module_utils.hal_node.expect.commands import interpret
from ansible.module_utils.hal_node.expect.values import Reading, Unreadable

UNITS = [
    "asleep.service",
    "broken.service",
    "crond.service",
    "nickname.service",
    "nosuch.service",
    "sshd-keygen.service",
    "sshd.service",
    "sshd.socket",
]


def outcome(reading: Reading | Unreadable) -> tuple[Any, ...]:
    """A reading in short: (exists, value), with '-' for no value; or ('unknown', reason)."""
    if isinstance(reading, Unreadable):
        return "unknown", reading.reason
    return reading.exists, reading.value if reading.has_value else "-"


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (
            "sshd",
            {
                "running": (True, True),
                "enabled": (True, True),
                "masked": (True, False),
                "substate": (True, "running"),
                "LimitMEMLOCK": (True, "8388608"),
            },
        ),
        (
            "crond",
            {"running": (True, True), "enabled": (True, False), "masked": (True, True), "load": (True, "masked")},
        ),
        ("broken", {"running": (True, False), "enabled": (True, True), "active": (True, "failed")}),
        ("asleep", {"running": (True, False), "enabled": (True, True), "active": (True, "inactive")}),
        ("nickname", {"running": (True, False), "enabled": (True, True)}),
        ("sshd-keygen", {"running": (True, True), "enabled": (True, False), "unit_file": (True, "static")}),
        (
            "nosuch",
            {
                "running": (False, False),
                "enabled": (False, False),
                "active": (False, "-"),
                "LimitMEMLOCK": (False, "-"),
            },
        ),
        ("sshd.socket", {"running": (False, False), "load": (False, "-")}),
    ],
)
def test_units_in_every_state(
    monkeypatch: pytest.MonkeyPatch, captures: Path, unit: str, expected: dict[str, Any]
) -> None:
    asked: list[list[str]] = []

    def answer(argv: list[str], _timeout: float) -> tuple[int, str, str]:
        asked.append(argv)
        return 0, (captures / "systemctl_show.txt").read_text(), ""

    monkeypatch.setattr(services, "run", answer)
    wanted = [{"name": unit, "read": read} for read in expected]
    rest = [{"name": name} for name in UNITS]  # as the capture has them, so that the blocks are these
    readings = services.read_services(wanted + rest)[: len(wanted)]
    assert [outcome(reading) for reading in readings] == list(expected.values())
    assert len(asked) == 1
    assert asked[0][asked[0].index("--") + 1 :] == UNITS


@pytest.mark.parametrize(
    ("unit", "read", "words"),
    [
        ("broken", "running", "broken is failed (failed)"),
        ("crond", "enabled", "the unit file of crond is masked"),
        ("sshd-keygen", "enabled", "the unit file of sshd-keygen is static"),
        ("nosuch", "running", "there is no unit nosuch"),
        ("sshd", "running", ""),
    ],
)
def test_the_report_says_what_is_behind_a_false(captures: Path, unit: str, read: str, words: str) -> None:
    blocks = dict(zip(UNITS, services.parse((captures / "systemctl_show.txt").read_text()), strict=True))
    assert services.reading_of(unit, read, blocks[services.unit_name(unit)]).note == words


def test_without_systemd_every_unit_is_unknown(monkeypatch: pytest.MonkeyPatch, captures: Path) -> None:
    words = (captures / "systemctl_show_no_systemd.txt").read_text()
    monkeypatch.setattr(services, "run", lambda argv, timeout: (1, "", words))
    reading = services.read_services([{"name": "sshd"}])[0]
    assert outcome(reading) == ("unknown", "systemctl shows no units (status 1)")
    assert "System has not been booted with systemd" in reading.detail


@pytest.mark.parametrize(
    ("name", "read", "words"),
    [
        ("a b", "running", "not a unit name"),
        ("--all", "running", "not a unit name"),
        ("*", "running", "not a unit name"),
        ("sshd", "runing", 'has no "runing"'),
        ("sshd", "NoSuchProperty", "no property NoSuchProperty"),
    ],
)
def test_a_misspelt_unit_question_is_unknown(monkeypatch: pytest.MonkeyPatch, name: str, read: str, words: str) -> None:
    state = "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\n"
    monkeypatch.setattr(services, "run", lambda argv, timeout: (0, state, ""))
    assert words in outcome(services.read_services([{"name": name, "read": read}])[0])[1]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"name": "chrony"}, (True, "3.4-1.el7")),
        ({"name": "chrony", "read": "version"}, (True, "3.4")),
        ({"name": "chrony", "read": "release"}, (True, "1.el7")),
        ({"name": "chrony", "read": "arch"}, (True, "noarch")),
        ({"name": "chrony.noarch"}, (True, "3.4-1.el7")),
        ({"name": "chrony", "read": "installed"}, (True, True)),
        ({"name": "kernel-like"}, (True, ["4.18.0-80.7.2.el7", "4.18.0-80.7.1.el7"])),
        ({"name": "nosuch"}, (False, "-")),
        ({"name": "nosuch", "read": "installed"}, (False, False)),
        ({"name": "never-asked"}, ("unknown", "rpm said nothing about never-asked")),
        ({"name": "-e x"}, ("unknown", 'not a package name: "-e x"')),
    ],
)
def test_packages(
    monkeypatch: pytest.MonkeyPatch, captures: Path, request_: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    calls: list[list[str]] = []

    def answer(argv: list[str], _timeout: float) -> tuple[int, str, str]:
        calls.append(argv)
        return 1, (captures / "rpm_q.txt").read_text(), ""

    monkeypatch.setattr(packages, "run", answer)
    assert outcome(packages.read_packages([request_, {"name": "chrony"}])[0]) == expected
    assert len(calls) == 1


def test_without_rpm_every_package_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_argv: list[str], _timeout: float) -> tuple[int, str, str]:
        raise Unreadable("there is no program rpm")

    monkeypatch.setattr(packages, "run", refuse)
    assert outcome(packages.read_packages([{"name": "chrony"}])[0]) == ("unknown", "there is no program rpm")


@pytest.fixture
def net(tmp_path: Path, captures: Path) -> str:
    for name in ("tcp", "tcp6", "udp", "udp6"):
        (tmp_path / name).write_text((captures / f"proc_net_{name}.txt").read_text())
    return str(tmp_path)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"port": 22}, (True, True)),
        ({"port": "22", "read": "addresses"}, (True, ["0.0.0.0", "::"])),
        ({"port": 22, "protocol": "udp"}, (False, False)),
        ({"port": 6817, "read": "addresses"}, (True, ["127.0.0.1"])),
        ({"port": 6817, "address": "127.0.0.1"}, (True, True)),
        ({"port": 6817, "address": "0.0.0.0"}, (False, False)),
        ({"port": 6818, "protocol": "tcp4"}, (False, False)),
        ({"port": 6818, "protocol": "tcp6", "read": "addresses"}, (True, ["::1"])),
        ({"port": 6818, "address": "0:0:0:0:0:0:0:1"}, (True, True)),
        ({"port": 6819, "address": "127.0.0.1"}, (True, True)),
        ({"port": 42672}, (False, False)),  # the client's end of a connection does not listen
        ({"port": 123, "protocol": "udp", "read": "addresses"}, (True, ["0.0.0.0"])),
        ({"port": 323, "protocol": "udp", "read": "addresses"}, (True, ["127.0.0.1", "::1"])),
        ({"port": 9999, "protocol": "udp"}, (False, False)),  # connected, not open to all
        ({"port": 9999, "protocol": "udp", "read": "addresses"}, (False, "-")),
        ({"port": 0}, ("unknown", "port has to be a number from 1 to 65535")),
        ({"port": "ssh"}, ("unknown", "port has to be a number from 1 to 65535")),
        ({"port": 22, "address": "here"}, ("unknown", 'not an IP address: "here"')),
    ],
)
def test_ports(net: str, request_: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert outcome(ports.read_ports([request_], net)[0]) == expected


def test_a_kernel_without_ipv6_has_no_such_sockets_but_one_without_ipv4_is_unknown(net: str) -> None:
    os.unlink(os.path.join(net, "tcp6"))
    assert outcome(ports.read_ports([{"port": 22, "read": "addresses"}], net)[0]) == (True, ["0.0.0.0"])
    os.unlink(os.path.join(net, "tcp"))
    assert outcome(ports.read_ports([{"port": 22}], net)[0])[0] == "unknown"


def test_addresses_are_words_in_the_byte_order_of_the_machine() -> None:
    line = "header\n 0: 7F000001:0016 00000000:0000 0A x\n"
    assert ports.parse(line, "0A", "big") == [("127.0.0.1", 22)]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"path": "/"}, (True, True)),
        ({"path": "/", "read": "fstype"}, (True, "ext4")),
        ({"path": "/mnt/two words/", "read": "source"}, (True, "sp ace")),
        ({"path": "/mnt/twice", "read": "fstype"}, (True, "ramfs")),
        ({"path": "/mnt/scratch", "read": "options"}, (True, ["ro", "relatime", "size=1024k"])),
        ({"path": "/mnt/two words", "read": "options"}, (True, ["rw", "nosuid", "relatime", "size=1024k"])),
        ({"path": "/mnt/none"}, (False, False)),
        ({"path": "/mnt/none", "read": "options"}, (False, "-")),
        ({"path": "mnt"}, ("unknown", "path has to be absolute: mnt")),
    ],
)
def test_mounts(captures: Path, request_: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert outcome(mounts.read_mounts([request_], str(captures / "mountinfo.txt"))[0]) == expected


def test_a_file_system_that_became_read_only_is_not_writable_whatever_its_mount_says() -> None:
    assert mounts.effective("rw,relatime", "ro,data=ordered") == ["relatime", "ro", "data=ordered"]


@pytest.fixture
def sysfs(tmp_path: Path) -> str:
    """As the kernel has them: see /sys/module; a built-in module has no initstate."""
    for name, content in {
        "nvidia/initstate": "live\n",
        "nvidia/version": "440.64.00\n",
        "nvidia/parameters/modeset": "Y\n",
        "half/initstate": "coming\n",
        "ipv6/parameters/disable": "0\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"name": "nvidia"}, (True, True)),
        ({"name": "nvidia", "read": "version"}, (True, "440.64.00")),
        ({"name": "nvidia", "parameter": "modeset"}, (True, "Y")),
        ({"name": "nvidia", "parameter": "none"}, (False, "-")),
        ({"name": "half"}, (False, False)),
        ({"name": "ipv6"}, (True, True)),
        ({"name": "ipv6", "read": "version"}, (True, "-")),
        ({"name": "nouveau"}, (False, False)),
        ({"name": "nouveau", "read": "version"}, (False, "-")),
        ({"name": "nouveau", "parameter": "modeset"}, (False, "-")),
        ({"name": "../nvidia"}, ("unknown", 'not a module name: "../nvidia"')),
    ],
)
def test_kernel_modules(sysfs: str, request_: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert outcome(kernel.read_modules([request_], sysfs)[0]) == expected


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("net.ipv4.ip_forward", "net/ipv4/ip_forward"),
        ("net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
        ("net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
    ],
)
def test_sysctl_names_are_those_of_sysctl_d(name: str, path: str) -> None:
    assert kernel.sysctl_path(name) == path


def test_sysctls(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "range").write_text("32768\t60999\n")
    readings = kernel.read_sysctls([{"name": "net.range"}, {"name": "net.none"}], str(tmp_path))
    assert [outcome(reading) for reading in readings] == [(True, "32768 60999"), (False, "-")]
    assert readings[0].items == ["32768", "60999"]
    for name in ("../../etc/passwd", "net/../../secret", "/etc/passwd", "a b"):
        assert outcome(kernel.read_sysctls([{"name": name}], str(tmp_path))[0]) == (
            "unknown",
            f'not a sysctl name: "{name}"',
        )


@pytest.mark.parametrize(
    ("request_", "status", "out", "expected"),
    [
        ({}, 0, "one\ntwo\n", (True, "one\ntwo")),
        ({"lines": True}, 0, "one\n\ntwo\n", (True, ["one", "two"])),
        ({}, 0, "\n", (False, "")),
        ({"exit": True}, 3, "x", (True, 3)),
        ({}, 1, "plausible", ("unknown", "tool ended with status 1")),
        ({"accept_exit": [0, 1]}, 1, "plausible", (True, "plausible")),
        ({"json": True}, 0, '{"a": {"b": [1, 2]}}', (True, {"a": {"b": [1, 2]}})),
        ({"json": True, "key": "a.b.1"}, 0, '{"a": {"b": [1, 2]}}', (True, 2)),
        ({"json": True, "key": "a.c"}, 0, '{"a": {"b": 1}}', (False, "-")),
        ({"json": True, "key": "a"}, 0, '{"a": null}', (False, "-")),
        ({"json": True}, 0, "error", ("unknown", "tool did not print JSON")),
        ({"select": "MemTotal:\\s+(\\d+) kB"}, 0, "MemTotal:  26 kB\nMemFree: 1 kB\n", (True, "26")),
        ({"select": "Mem.*"}, 0, "MemTotal:  26 kB\nMemFree: 1 kB\n", (True, ["MemTotal:  26 kB", "MemFree: 1 kB"])),
        ({"select": "Mem"}, 0, "MemTotal:  26 kB\n", (False, "-")),
    ],
)
def test_finished_commands(request_: dict[str, Any], status: int, out: str, expected: tuple[Any, ...]) -> None:
    try:
        reading = interpret(request_, "tool", status, out, "")
    except Unreadable as error:
        reading = error
    assert outcome(reading) == expected
