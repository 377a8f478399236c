"""hal_node.network.change, on a node that is a folder and a kernel that is a dictionary: begun, confirmed, put back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.network import change

from .node import Node, Refused, confirmed, folder, mode, started, with_mtu


def test_a_connection_confirms_that_was_made_after_the_end(node: Node) -> None:
    started(node)
    done = node.root / "run/hal/network/done"
    # The kernel is as declared already, but another interface may be next.
    assert node.phase("confirm") == {"changed": False, "confirmed": False}
    done.write_text("")
    # Whoever comes first and finds it done may have logged in before.
    assert node.phase("confirm") == {"changed": False, "confirmed": False}
    assert (node.state / "rollback").is_dir()
    assert node.phase("confirm") == {"changed": True, "confirmed": True}
    assert not (node.state / "rollback").exists()
    assert node.called[-1] == "systemctl stop hal-network-rollback.timer"


def test_the_next_change_does_not_end_with_the_last_one(node: Node) -> None:
    started(node)
    confirmed(node)
    node.devices[1] = node.device("eno2", "10.2.0.5/24", mtu=1400)
    assert node.phase("apply")["started"] == ["eno2"]
    assert not node.phase("confirm")["confirmed"]
    node.now["links"]["eno2"] = {**node.now["links"]["eno2"], "mtu": 1400}
    confirmed(node)


def test_a_left_over_of_a_confirmation_does_not_stand_in_the_way(node: Node) -> None:
    (node.state / "rollback.confirmed/files").mkdir(parents=True)
    started(node)
    confirmed(node)


def test_what_hinders_a_confirmation_is_said(node: Node) -> None:
    started(node)
    (node.root / "run/hal/network/done").write_text("")
    node.phase("confirm")
    (node.state / "rollback.confirmed/files").mkdir(parents=True)
    with pytest.raises(Refused, match=r"eno2 cannot be confirmed: .*not empty"):
        node.phase("confirm")


def test_who_confirms_after_the_timer_is_too_late(node: Node) -> None:
    started(node)
    (node.state / "rollback").rename(node.state / "undone")
    with pytest.raises(Refused) as refused:
        node.phase("confirm")
    assert str(refused.value) == (
        "too late: eno2 was put back as before, since nobody confirmed in time. ifdown and ifup said: nothing"
    )


@pytest.mark.parametrize("left", ["rollback", "undone"])
def test_no_change_begins_while_an_older_one_is_open(node: Node, left: str) -> None:
    (node.state / left).mkdir()
    with pytest.raises(Refused, match=f"{left} is there: an earlier change was neither confirmed nor put back"):
        started(node)
    assert not [line for line in node.called if line.startswith("systemd-run")]


def test_the_way_back_is_on_the_disk_before_the_change_begins(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    (node.scripts / "ifcfg-eno2").write_text("DEVICE=eno2\n")

    def synced(handle: int) -> None:
        node.called.append("fsync " + os.readlink(f"/proc/self/fd/{handle}"))

    monkeypatch.setattr(os, "fsync", synced)
    started(node)
    timer = node.called.index("systemctl restart hal-network-rollback.timer")
    assert {
        f"fsync {node.state}",
        f"fsync {node.state}/rollback/files",
        f"fsync {node.state}/rollback/files/ifcfg-eno2",
        f"fsync {node.state}/before/ifcfg-eno2",
        f"fsync {node.scripts}/ifcfg-eno2",
    } <= set(node.called[:timer])


@pytest.mark.parametrize(("there", "begun"), [(["eno3", "eno4"], ["bond0"]), (["eno3"], [])])
def test_a_bond_begins_when_all_its_members_are_there(node: Node, there: list[str], begun: list[str]) -> None:
    """ifup makes the bond itself, but of one port."""
    members = [node.device(name, None, master="bond0") for name in ("eno3", "eno4")]
    bond = node.device("bond0", "192.0.2.5/25", members=["eno3", "eno4"], bond_mode="802.3ad")
    node.devices = [bond, node.devices[0], *members]
    node.now["links"] = dict.fromkeys(["eno1", *there], node.now["links"]["eno1"])
    assert node.phase("apply")["started"] == begun


def test_a_change_is_said_and_in_check_mode_not_begun(node: Node) -> None:
    for name in ("eno1", "eno2"):
        with_mtu(node, name, 9000)
    node.devices.append(node.device("eno9", None))
    node.phase("write", contact_ok=True)
    pending = {one["name"]: one for one in node.phase("write")["pending"]}
    wanted = {
        "changed": True, "started": ["eno2"], "server_address": "10.1.0.5", "server_device": "eno1",
        "pending": [pending["eno1"], pending["eno9"]],
    }  # fmt: skip
    node.called.clear()
    assert node.phase("apply", check=True) == wanted
    assert (node.called, folder("ROLLBACK").exists(), folder("CHANGED").exists()) == (
        ["ip -o route get 10.1.0.1"],
        False,
        False,
    )
    assert node.phase("apply") == wanted
    assert folder("CHANGED").read_text() == "eno2\n"


def test_the_interface_of_the_connection_is_changed_with_permission(node: Node) -> None:
    with_mtu(node, "eno1", 9000)
    node.phase("write", contact_ok=True)
    said = node.phase("apply")
    assert (said["changed"], said["started"], [one["name"] for one in said["pending"]]) == (False, [], ["eno1"])
    said = node.phase("apply", contact_ok=True)
    assert (said["changed"], said["started"], said["pending"]) == (True, ["eno1"], [])


def test_without_a_connection_it_is_not_said_where_it_came_in(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "ssh_connection", lambda: None)
    said = node.phase("apply")
    assert (said["server_address"], said["server_device"], said["started"]) == (None, None, [])


def test_all_that_the_way_back_needs_is_there(node: Node) -> None:
    (node.scripts / "ifcfg-eno2").write_text("DEVICE=eno2\n")
    (node.scripts / "ifcfg-Wired").write_text("DEVICE=eno3\nMTU=1\n")
    node.devices.append(node.device("eno3", None))
    for name in ("eno2", "eno3"):
        with_mtu(node, name, 9000)
    node.phase("write")
    for name in ("SAID", "DONE", "SEEN", "LIVE"):
        folder(name).write_text("of an earlier change\n")
    left = Path(f"{folder('ROLLBACK')}.new")
    (left / "files").mkdir(parents=True)
    (left / "files/ifcfg-left").touch()
    old = os.umask(0)
    try:
        assert node.phase("apply")["started"] == ["eno2", "eno3"]
    finally:
        os.umask(old)
    rollback = folder("ROLLBACK")
    files = {path.name: path.read_text() for path in (rollback / "files").iterdir()}
    assert files == {"ifcfg-eno2": "DEVICE=eno2\n", "ifcfg-Wired": "DEVICE=eno3\nMTU=1\n"}
    assert (rollback / "absent").read_text() == "ifcfg-eno3\n"
    assert (mode(rollback / "files"), sorted(os.listdir(rollback))) == (0o700, ["absent", "files"])
    assert [folder(name).exists() for name in ("SAID", "DONE", "SEEN")] == [False] * 3
    kept = folder("LIVE").read_text().splitlines()
    assert [line for line in kept if "mtu" in line] == ["eno2 mtu 1500", "eno3 mtu 1500"]
    assert folder("CHANGED").read_text() == "eno2\neno3\n"
    assert not left.exists()


def test_a_folder_of_the_run_is_made_for_root_alone(node: Node) -> None:
    node.devices[1]["mtu"] = 9000
    old = os.umask(0)
    try:
        assert node.phase("apply")["started"] == ["eno2"]
    finally:
        os.umask(old)
    assert mode(folder("RUN")) == 0o700


def test_an_older_change_that_is_open_is_told_with_what_puts_it_back(node: Node) -> None:
    folder("ROLLBACK").mkdir()
    node.devices[1]["mtu"] = 9000
    with pytest.raises(Refused) as refused:
        node.phase("apply")
    assert str(refused.value) == (
        f"{folder('ROLLBACK')} is there: an earlier change was neither confirmed nor put back."
        " `systemctl start hal-network-rollback.service` puts it back"
    )


def test_in_check_mode_nothing_is_confirmed(node: Node) -> None:
    started(node)
    folder("DONE").touch()
    for _ in range(3):
        assert node.phase("confirm", check=True) == {"changed": False, "confirmed": False}
    assert not folder("SEEN").exists()


def test_what_was_not_begun_and_waits_is_in_nobody_s_way(node: Node) -> None:
    started(node)
    with_mtu(node, "eno1", 9000)
    folder("DONE").touch()
    assert [node.phase("confirm")["confirmed"] for _ in range(2)] == [False, True]
    assert not (folder("SAVED") / "eno2").exists()
    assert not folder("CONFIRMED").exists()


def test_where_nothing_was_begun_it_is_too_late_and_all_is_as_before(node: Node) -> None:
    with pytest.raises(Refused) as refused:
        node.phase("confirm")
    assert str(refused.value) == (
        "too late: nothing was begun, all is as before, since nobody confirmed in time. ifdown and ifup said: nothing"
    )


def test_what_was_said_last_is_told_and_all_that_was_put_back(node: Node) -> None:
    folder("RUN").mkdir(parents=True)
    folder("CHANGED").write_text("eno2\neno3\n")
    folder("SAID").write_text("half\n")
    words = "too late: eno2 and eno3 was put back as before, since nobody confirmed in time. ifdown and ifup said: "
    for name, text, said in (("SAID", " half \n", "half"), ("DONE", "whole\n", "whole"), ("DONE", " \n", "nothing")):
        folder(name).write_text(text)
        with pytest.raises(Refused) as refused:
            node.phase("confirm")
        assert str(refused.value) == words + said


def test_a_timer_that_comes_first_in_the_last_moment_is_too_late(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    started(node)
    folder("DONE").touch()
    node.phase("confirm")

    rename = os.rename

    def first(one: str, _other: str) -> None:
        rename(one, folder("UNDONE"))
        raise OSError(2, "No such file or directory")

    monkeypatch.setattr(os, "rename", first)
    with pytest.raises(Refused, match=r"^too late: eno2 was put back as before"):
        node.phase("confirm")


def test_whatever_is_not_in_force_is_put_back_with_all_its_reasons(node: Node) -> None:
    started(node)
    for name in ("eno1", "eno2"):
        node.now["links"][name] = {**node.now["links"][name], "up": False, "mtu": 1}
    folder("DONE").write_text("RTNETLINK\n")
    with pytest.raises(Refused, match=r"^eno2 is down, has MTU 1, not 9000: files and interfaces are put back"):
        node.phase("confirm")


def test_a_change_begins_with_its_timer_and_an_older_unit_need_not_be_there(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def run(_module: Any, *argv: str, **more: Any) -> str:
        asked.append((" ".join(argv), more))
        return ""

    monkeypatch.setattr(change, "run", run)
    with_mtu(node, "eno2", 9000)
    node.phase("write")
    asked.clear()
    assert node.phase("apply")["started"] == ["eno2"]
    begun = "systemd-run --quiet --unit=hal-network-change /bin/sh /usr/libexec/hal-network/change eno2"
    assert asked[-3:] == [
        ("systemctl restart hal-network-rollback.timer", {}),
        ("systemctl reset-failed hal-network-change.service", {"check_rc": False}),
        (begun, {}),
    ]


def test_a_change_that_is_not_in_force_is_put_back_at_once(node: Node) -> None:
    with_mtu(node, "eno2", 9000)
    node.phase("write")
    node.phase("apply")
    folder("DONE").write_text("ifup said this\n")
    node.called.clear()
    with pytest.raises(Refused) as refused:
        node.phase("confirm")
    said = "eno2 has MTU 1500, not 9000: files and interfaces are put back as they were. ifdown and ifup said:"
    assert str(refused.value) == f"{said} ifup said this"
    assert node.called[-1] == "systemctl start --no-block hal-network-rollback.service"
