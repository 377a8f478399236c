"""hal_network as it is called: its arguments and their defaults, the programs that it runs, files and processes."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.unit.modules import Ran, as_program

from .test_phases import Node, Refused, node, with_mtu

__all__ = ["node"]
GIVEN = {"name": "eno1", "network": "management", "path": "/etc/x", "text": "DEVICE=eno1\n"}


def test_as_a_program_it_asks_for_what_it_needs() -> None:
    assert as_program("hal_network") == {"failed": True, "msg": "missing required arguments: devices, phase"}


@pytest.fixture
def ran(hal_network: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    """The module whose phases say what they were given."""
    for name in ("write", "apply", "confirm"):
        monkeypatch.setattr(
            hal_network,
            name,
            lambda module, name=name: {"phase": name, "params": module.params, "check": module.check_mode},
        )
    return Ran(hal_network, lambda argv: (0, "", ""), monkeypatch, capsys)


def test_each_phase_gets_what_is_declared_and_permits_nothing_unasked(ran: Ran) -> None:
    plain = dict.fromkeys(("address", "mtu", "mac", "gateway", "mode", "master", "bond_mode"))
    devices: list[dict[str, Any]] = [{**plain, "members": [], **GIVEN}]
    for phase in ("write", "apply", "confirm"):
        params: dict[str, Any] = {"phase": phase, "devices": devices, "contact_ok": False, "wait_seconds": 105}
        params |= {"no_default_route_ok": False, "ipoib_ok": False}
        assert ran(phase=phase, devices=[GIVEN]) == {"phase": phase, "params": params, "check": False}
    assert ran(check=True, phase="write", devices=[GIVEN])["check"] is True


@pytest.mark.parametrize("name", sorted(GIVEN))
def test_an_interface_without_a_part_is_refused(ran: Ran, name: str) -> None:
    given = {key: value for key, value in GIVEN.items() if key != name}
    said = f"missing required arguments: {name} found in devices"
    assert ran(phase="write", devices=[given]) == {"failed": True, "msg": said}


def test_another_phase_is_refused(ran: Ran) -> None:
    said = "value of phase must be one of: write, apply, confirm, got: undo"
    assert ran(phase="undo", devices=[]) == {"failed": True, "msg": said}


def test_a_program_has_to_be_there_and_to_succeed_unless_somebody_says_otherwise(hal_network: ModuleType) -> None:
    asked: list[Any] = []

    def command(argv: list[str], **words: Any) -> tuple[int, str, str]:
        asked.append((argv, words))
        return 0, "said", "not this"

    def found(name: str, required: bool) -> str:
        assert required
        return f"/sbin/{name}"

    module = SimpleNamespace(run_command=command, get_bin_path=found)
    assert hal_network.run(module, "ip", "-o", "link") == "said"
    hal_network.run(module, "ip", check_rc=False)
    environment = {"environ_update": {"LC_ALL": "C"}}
    assert asked == [
        (["/sbin/ip", "-o", "link"], {"check_rc": True, **environment}),
        (["/sbin/ip"], {"check_rc": False, **environment}),
    ]


def test_a_change_begins_with_its_timer_and_an_older_unit_need_not_be_there(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def run(_module: Any, *argv: str, **more: Any) -> str:
        asked.append((" ".join(argv), more))
        return ""

    monkeypatch.setattr(node.module, "run", run)
    with_mtu(node, "eno2", 9000)
    node.phase("write")
    asked.clear()
    assert node.phase("apply")["started"] == ["eno2"]
    change = "systemd-run --quiet --unit=hal-network-change /bin/sh /usr/libexec/hal-network/change eno2"
    assert asked[-3:] == [
        ("systemctl restart hal-network-rollback.timer", {}),
        ("systemctl reset-failed hal-network-change.service", {"check_rc": False}),
        (change, {}),
    ]


def test_a_change_that_is_not_in_force_is_put_back_at_once(node: Node) -> None:
    with_mtu(node, "eno2", 9000)
    node.phase("write")
    node.phase("apply")
    Path(vars(node.module)["DONE"]).write_text("ifup said this\n")
    node.called.clear()
    with pytest.raises(Refused) as refused:
        node.phase("confirm")
    said = "eno2 has MTU 1500, not 9000: files and interfaces are put back as they were. ifdown and ifup said:"
    assert str(refused.value) == f"{said} ifup said this"
    assert node.called[-1] == "systemctl start --no-block hal-network-rollback.service"


def test_files_that_were_got_to_the_disk_are_closed(
    hal_network: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("")
    (tmp_path / "a/gone").symlink_to("nowhere")
    synced: list[str] = []
    monkeypatch.setattr(hal_network.os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    before = len(os.listdir("/proc/self/fd"))
    hal_network.settle(str(tmp_path / "a"), str(tmp_path / "none"))
    assert sorted(synced) == [f"{tmp_path}/a", f"{tmp_path}/a/b", f"{tmp_path}/a/b/file"]
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_the_kernel_has_is_asked_of_ip_and_read_of_bonds(
    hal_network: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = "2: ib0: <BROADCAST,UP,LOWER_UP> mtu 2044 qdisc mq state UP mode DEFAULT group default qlen 256\\"
    asked: list[str] = []

    def run(_module: Any, *argv: str) -> str:
        asked.append(" ".join(argv))
        return link + "    link/ether 52:54:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n" if argv[-1] == "link" else ""

    files = {"/sys/class/net/ib0/mode": b"datagram\n"}
    monkeypatch.setattr(hal_network, "run", run)
    monkeypatch.setattr(hal_network, "content_of", files.get)
    found = hal_network.look(None)
    assert asked == ["ip -o link", "ip -o -4 addr", "ip -4 route show default"]
    assert (list(found["links"]), found["modes"], found["bonds"]) == (["ib0"], {"ib0": "datagram"}, {})
    files["/proc/net/bonding/ib0"] = b"Bonding Mode: fault-tolerance (active-backup)\n"
    assert list(hal_network.look(None)["bonds"]) == ["ib0"]


def test_the_connection_is_that_of_the_nearest_process_above_that_has_one(
    hal_network: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """sudo and Ansible's own processes hand it on or not."""
    for pid, parent, environ in ((30, 20, b"A=1\0"), (20, 10, b"B=2\0SSH_CONNECTION=1 2 3 4\0"), (10, 1, b"")):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "environ").write_bytes(environ)
        (folder / "stat").write_text(f"{pid} (a) b) S {parent} 1 1\n")
    monkeypatch.setattr(hal_network.os, "getpid", lambda: 30)
    opened = lambda path, mode: (tmp_path / path.removeprefix("/proc/")).open(mode)  # noqa: E731
    monkeypatch.setattr(hal_network, "open", opened, raising=False)
    assert hal_network.ssh_connection() == "1 2 3 4"
    (tmp_path / "20/environ").write_bytes(b"B=2\0")
    assert hal_network.ssh_connection() is None
    (tmp_path / "20/stat").unlink()
    assert hal_network.ssh_connection() is None
