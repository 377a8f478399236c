"""hal_network, each step by itself: what is refused, what is kept for the way back, what is said to the controller."""

from __future__ import annotations

import copy
import os
import stat
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hal_node.network.files import files_of, settings
from ansible.module_utils.hal_node.network.live import addresses, bond, default_routes, differences, foreign, links

from .test_phases import OURS, Node, Refused, node, started, with_mtu

__all__ = ["node"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def folder(node: Node, name: str) -> Path:
    """A folder or file of the module, by the name that it has there."""
    return Path(vars(node.module)[name])


def everything(node: Node) -> dict[str, str]:
    return {str(path.relative_to(node.root)): path.read_text() for path in node.root.rglob("*") if path.is_file()}


# ---------------------------------------------------------------- writing
def test_a_node_with_its_cables_changed_is_refused_with_all_of_them(node: Node) -> None:
    for device, wanted, there in (("eno1", "02:00:00:00:00:0A", "02:00:00:00:00:0b"), ("eno2", "02:0c", "02:0D")):
        next(one for one in node.devices if one["name"] == device)["mac"] = wanted
        node.now["links"][device] = {**node.now["links"][device], "mac": there}
    with pytest.raises(Refused) as refused:
        node.phase("write")
    assert str(refused.value) == (
        "eno1 has the MAC 02:00:00:00:00:0b, the model says 02:00:00:00:00:0a; eno2 has the MAC 02:0d, the model says"
        " 02:0c. ifup would leave it down: nothing was written. Is the cable in another port, or the model wrong?"
    )
    assert everything(node) == {}


def test_a_node_without_network_scripts_is_refused(node: Node) -> None:
    node.scripts.rmdir()
    with pytest.raises(Refused, match=f"^there is no {node.scripts}: the package initscripts brings it$"):
        node.phase("write")


def test_a_default_route_that_would_be_dropped_is_refused_with_the_ways_out(node: Node) -> None:
    node.now["routes"] = {"eno2": ["10.2.0.254"], "eno1": ["10.1.0.254"], "eno3": ["10.3.0.254"]}
    with pytest.raises(Refused) as refused:
        node.phase("write")
    assert str(refused.value) == (
        "eno1, eno2 has the default route, and no network of this node has a gateway in the model: after the next boot"
        " there would be none. Nothing was written. Declare `gateway` of a network in cluster.yml, or"
        " `network_default_route: []` for a node that needs none"
    )


def test_what_is_written_is_said_with_before_and_after_and_check_mode_writes_nothing(node: Node) -> None:
    (node.scripts / "ifcfg-eno1").write_text("DEVICE=eno1 # für\n")
    (node.scripts / "ifcfg-Wired").write_text("DEVICE=eno2\n")
    before = sorted(os.listdir(node.scripts))
    one, other, gone = (str(node.scripts / f"ifcfg-{name}") for name in ("eno1", "eno2", "Wired"))
    texts = [device["text"] for device in node.devices]
    wanted = {
        "changed": True, "pending": [], "held": [], "withdrawn": ["ifcfg-Wired"],
        "diff": [
            {"before_header": one, "after_header": one, "before": "DEVICE=eno1 # für\n", "after": texts[0]},
            {"before_header": other, "after_header": other, "before": "", "after": texts[1]},
            {"before_header": gone, "after_header": gone, "before": "DEVICE=eno2\n", "after": ""},
        ],
    }  # fmt: skip
    (node.scripts / "ifcfg-eno1").chmod(0o644)
    assert node.phase("write", check=True) == wanted
    assert sorted(os.listdir(node.scripts)) == before
    assert not folder(node, "BEFORE").exists()
    assert node.phase("write") == wanted
    assert sorted(os.listdir(node.scripts)) == ["ifcfg-eno1", "ifcfg-eno2"]
    nothing = {"changed": False, "pending": [], "held": [], "withdrawn": [], "diff": []}
    assert node.phase("write") == node.phase("write", check=True) == nothing


def test_files_of_a_bond_that_the_connection_needs_stay_with_those_of_its_members(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = [node.device(name, None, master="bond0") for name in ("eno2", "eno3")]
    bonded = node.device("bond0", "10.1.0.5/24", members=["eno2", "eno3"], bond_mode="802.3ad")
    node.devices = [bonded, *ports]
    node.now["links"]["bond0"] = node.now["links"]["eno1"]
    node.now["addresses"] = {"bond0": [{"address": "10.1.0.5/24"}]}
    (node.scripts / "ifcfg-other").write_text("DEVICE=eno3\n")
    (node.scripts / "ifcfg-more").write_text("DEVICE=eno8\nMASTER=bond0\n")
    said = node.phase("write")
    assert (said["held"], said["withdrawn"], said["changed"]) == (["bond0"], [], False)
    assert [(one["name"], one["contact"]) for one in said["pending"]] == [("bond0", True)]
    said = node.phase("write", contact_ok=True)
    assert (said["held"], said["withdrawn"]) == ([], ["ifcfg-more", "ifcfg-other"])
    names = ["ifcfg-bond0.absent", "ifcfg-eno2.absent", "ifcfg-eno3.absent", "ifcfg-more", "ifcfg-other"]
    assert sorted(os.listdir(folder(node, "SAVED") / "bond0")) == names


def test_files_get_to_the_disk_only_when_some_were_written(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[Any] = []
    monkeypatch.setattr(node.module, "settle", lambda *given: settled.append(given))
    node.phase("write", check=True)
    assert settled == []
    node.phase("write")
    node.phase("write")
    assert settled == [(str(folder(node, "BEFORE")), str(node.scripts))]


def test_what_is_kept_is_root_s_and_the_oldest_and_forgotten_when_it_is_in_force(node: Node) -> None:
    (node.scripts / "ifcfg-eno2").write_text("DEVICE=eno2\nMTU=1400\n")
    with_mtu(node, "eno2", 9000)
    old = os.umask(0)
    try:
        node.phase("write")
    finally:
        os.umask(old)
    saved, before = folder(node, "SAVED") / "eno2", folder(node, "BEFORE")
    assert [mode(path) for path in (saved, before)] == [0o700, 0o700]
    assert sorted(os.listdir(saved.parent)) == ["eno2"]
    (node.scripts / "ifcfg-eno2").write_text("DEVICE=eno2\nMTU=1300\n")
    node.phase("write")
    for path in (saved, before):
        assert (path / "ifcfg-eno2").read_text() == "DEVICE=eno2\nMTU=1400\n"
    node.now["links"]["eno2"] = {**node.now["links"]["eno2"], "mtu": 9000}
    node.phase("write", check=True)
    assert saved.exists()
    node.module.__dict__["forget"](["eno2"])
    assert (saved.exists(), before.exists()) == (False, True)


def test_a_file_that_there_was_none_of_is_remembered_so_and_only_once(node: Node) -> None:
    with_mtu(node, "eno2", 9000)
    node.phase("write")
    saved = folder(node, "SAVED") / "eno2"
    assert (os.listdir(saved), (saved / "ifcfg-eno2.absent").read_bytes()) == (["ifcfg-eno2.absent"], b"")
    (node.scripts / "ifcfg-eno2").write_text(f"{OURS}MTU=1\n")
    node.phase("write")
    assert os.listdir(saved) == ["ifcfg-eno2.absent"]
    assert node.module.__dict__["text_in_force"](node.devices[1]) == ""


# ---------------------------------------------------------------- a change
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
    assert (node.called, folder(node, "ROLLBACK").exists(), folder(node, "CHANGED").exists()) == (
        ["ip -o route get 10.1.0.1"],
        False,
        False,
    )
    assert node.phase("apply") == wanted
    assert folder(node, "CHANGED").read_text() == "eno2\n"


def test_the_interface_of_the_connection_is_changed_with_permission(node: Node) -> None:
    with_mtu(node, "eno1", 9000)
    node.phase("write", contact_ok=True)
    said = node.phase("apply")
    assert (said["changed"], said["started"], [one["name"] for one in said["pending"]]) == (False, [], ["eno1"])
    said = node.phase("apply", contact_ok=True)
    assert (said["changed"], said["started"], said["pending"]) == (True, ["eno1"], [])


def test_without_a_connection_it_is_not_said_where_it_came_in(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node.module, "ssh_connection", lambda: None)
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
        folder(node, name).write_text("of an earlier change\n")
    left = Path(f"{folder(node, 'ROLLBACK')}.new")
    (left / "files").mkdir(parents=True)
    (left / "files/ifcfg-left").touch()
    old = os.umask(0)
    try:
        assert node.phase("apply")["started"] == ["eno2", "eno3"]
    finally:
        os.umask(old)
    rollback = folder(node, "ROLLBACK")
    files = {path.name: path.read_text() for path in (rollback / "files").iterdir()}
    assert files == {"ifcfg-eno2": "DEVICE=eno2\n", "ifcfg-Wired": "DEVICE=eno3\nMTU=1\n"}
    assert (rollback / "absent").read_text() == "ifcfg-eno3\n"
    assert (mode(rollback / "files"), sorted(os.listdir(rollback))) == (0o700, ["absent", "files"])
    assert [folder(node, name).exists() for name in ("SAID", "DONE", "SEEN")] == [False] * 3
    kept = folder(node, "LIVE").read_text().splitlines()
    assert [line for line in kept if "mtu" in line] == ["eno2 mtu 1500", "eno3 mtu 1500"]
    assert folder(node, "CHANGED").read_text() == "eno2\neno3\n"
    assert not left.exists()


def test_a_folder_of_the_run_is_made_for_root_alone(node: Node) -> None:
    node.devices[1]["mtu"] = 9000
    old = os.umask(0)
    try:
        assert node.phase("apply")["started"] == ["eno2"]
    finally:
        os.umask(old)
    assert mode(folder(node, "RUN")) == 0o700


def test_an_older_change_that_is_open_is_told_with_what_puts_it_back(node: Node) -> None:
    folder(node, "ROLLBACK").mkdir()
    node.devices[1]["mtu"] = 9000
    with pytest.raises(Refused) as refused:
        node.phase("apply")
    assert str(refused.value) == (
        f"{folder(node, 'ROLLBACK')} is there: an earlier change was neither confirmed nor put back."
        " `systemctl start hal-network-rollback.service` puts it back"
    )


# ---------------------------------------------------------------- its end
def test_in_check_mode_nothing_is_confirmed(node: Node) -> None:
    started(node)
    folder(node, "DONE").touch()
    for _ in range(3):
        assert node.phase("confirm", check=True) == {"changed": False, "confirmed": False}
    assert not folder(node, "SEEN").exists()


def test_what_was_not_begun_and_waits_is_in_nobody_s_way(node: Node) -> None:
    started(node)
    with_mtu(node, "eno1", 9000)
    folder(node, "DONE").touch()
    assert [node.phase("confirm")["confirmed"] for _ in range(2)] == [False, True]
    assert not (folder(node, "SAVED") / "eno2").exists()
    assert not folder(node, "CONFIRMED").exists()


def test_where_nothing_was_begun_it_is_too_late_and_all_is_as_before(node: Node) -> None:
    with pytest.raises(Refused) as refused:
        node.phase("confirm")
    assert str(refused.value) == (
        "too late: nothing was begun, all is as before, since nobody confirmed in time. ifdown and ifup said: nothing"
    )


def test_what_was_said_last_is_told_and_all_that_was_put_back(node: Node) -> None:
    folder(node, "RUN").mkdir(parents=True)
    folder(node, "CHANGED").write_text("eno2\neno3\n")
    folder(node, "SAID").write_text("half\n")
    words = "too late: eno2 and eno3 was put back as before, since nobody confirmed in time. ifdown and ifup said: "
    for name, text, said in (("SAID", " half \n", "half"), ("DONE", "whole\n", "whole"), ("DONE", " \n", "nothing")):
        folder(node, name).write_text(text)
        with pytest.raises(Refused) as refused:
            node.phase("confirm")
        assert str(refused.value) == words + said


def test_a_timer_that_comes_first_in_the_last_moment_is_too_late(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    started(node)
    folder(node, "DONE").touch()
    node.phase("confirm")

    rename = os.rename

    def first(one: str, _other: str) -> None:
        rename(one, folder(node, "UNDONE"))
        raise OSError(2, "No such file or directory")

    monkeypatch.setattr(node.module.__dict__["os"], "rename", first)
    with pytest.raises(Refused, match=r"^too late: eno2 was put back as before"):
        node.phase("confirm")


def test_whatever_is_not_in_force_is_put_back_with_all_its_reasons(node: Node) -> None:
    started(node)
    for name in ("eno1", "eno2"):
        node.now["links"][name] = {**node.now["links"][name], "up": False, "mtu": 1}
    folder(node, "DONE").write_text("RTNETLINK\n")
    with pytest.raises(Refused, match=r"^eno2 is down, has MTU 1, not 9000: files and interfaces are put back"):
        node.phase("confirm")


# ---------------------------------------------------------------- what the kernel has
@pytest.mark.parametrize("firewall", [None, "/bin/firewall-cmd"])
def test_without_a_firewall_that_runs_no_zone_is_kept(
    hal_network: ModuleType, monkeypatch: pytest.MonkeyPatch, firewall: str | None
) -> None:
    monkeypatch.setattr(hal_network, "run", lambda *_: "")
    module = SimpleNamespace(
        params={"devices": [{"name": "eno1", "master": None}]},
        get_bin_path=lambda _: firewall,
        run_command=lambda _: (252, "not running", ""),
    )
    link = {"up": True, "mtu": 9, "master": "bond7"}
    now = {"links": {"eno1": link}, "addresses": {}, "modes": {}, "bonds": {}}
    assert hal_network.live(module, now, ["eno1"]) == ["eno1 flush", "eno1 mtu 9", "eno1 up"]
    assert hal_network.live(module, now, ["eno2"]) == []


def test_a_route_is_without_the_words_that_ip_does_not_take(
    hal_network: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def run(_: Any, *argv: str) -> str:
        asked.append(argv)
        return "10.0.0.0/8 via 10.1.0.1 dead linkdown offload metric 5 \\ nexthop\n1.2.3.4 scope link\n"

    monkeypatch.setattr(hal_network, "run", run)
    found = hal_network.routes(None, "dev", "eno1")
    assert found == ["10.0.0.0/8 via 10.1.0.1 metric 5 nexthop", "1.2.3.4 scope link"]
    assert asked == [("ip", "-o", "-4", "route", "show", "dev", "eno1")]


def test_what_ip_prints_beside_links_addresses_and_routes_is_passed_over() -> None:
    rest = "mtu 9000 qdisc mq master br0 state UP\\    link/ether 02:0a brd ff:ff"
    text = f"nothing\n2: vlan7@eno1: <UP,LOWER_UP> {rest}\n3: tun0: <NOARP> mtu 1400\\    link/none\nend\n"
    plain = {"mtu": 1400, "up": False, "mac": None, "master": None}
    assert links(text + "4: x: <SUPER> mtu 5 link/ether 02:0b\n") == {
        "vlan7": {"up": True, "mtu": 9000, "mac": "02:0a", "master": "br0"},
        "tun0": plain, "x": {**plain, "mtu": 5, "mac": "02:0b"},
    }  # fmt: skip
    lines = "2: eno1    inet 10.1.0.5/24 brd 10.1.0.255 scope global eno1\\  valid\n2: eno1    inet6 fe80::1/64 scope\n"
    assert addresses(lines + "3: lo inet 127.0.0.1/8 scope host lo\n") == {
        "eno1": [{"address": "10.1.0.5/24", "broadcast": "10.1.0.255"}],
        "lo": [{"address": "127.0.0.1/8", "broadcast": None}],
    }
    routed = "10.0.0.0/8 via 1.1.1.1 dev eno9\ndefault via 10.1.0.254\ndefault via 10.1.0.1 dev a\ndefault dev a\n\n"
    assert default_routes(routed) == {"a": ["10.1.0.1", None]}
    assert bond("Bonding Mode: something new\nSlave Interface: a \nMII Status: up\nSlave Interface: b\n") == {
        "mode": "something new", "members": ["a", "b"],
    }  # fmt: skip
    assert bond("") == {"mode": None, "members": []}


def test_an_interface_without_a_mac_on_one_side_is_not_another_port() -> None:
    for wanted, there in ((None, {"mac": "02:0a"}), ("02:0A", {"mac": None}), ("02:0A", {"mac": "02:0a"}), ("", None)):
        assert foreign({"name": "a", "mac": wanted}, there) is None


def test_a_bond_of_which_the_kernel_has_nothing_differs_in_all(node: Node) -> None:
    device = {"name": "b", "members": ["x", "y"], "bond_mode": "802.3ad", "address": None}
    now = {**copy.deepcopy(node.now), "links": {"b": node.now["links"]["eno1"]}, "routes": {"b": [None]}}
    assert differences(device, now) == [
        "is a bond in mode None, not 802.3ad",
        "has the members none, not x, y",
        "has the default route by no gateway, not by none",
    ]


# ---------------------------------------------------------------- files
def test_files_of_interfaces_are_read_whatever_is_in_them(tmp_path: Path) -> None:
    (tmp_path / "ifcfg-b").write_bytes(b"A=\xfc\n")
    (tmp_path / "ifcfg-a").write_text("B=1\n")
    (tmp_path / "route-a").write_text("C=1\n")
    (tmp_path / "ifcfg-folder").mkdir()
    (tmp_path / "ifcfg-gone").symlink_to("nowhere")
    found = files_of(str(tmp_path))
    assert list(found.items()) == [("ifcfg-a", "B=1\n"), ("ifcfg-b", "A=�\n")]
    assert settings(" A= 1 \n#B=2\nC D=3\nE==4\n\nA_1=\n") == {"A": "1", "E": "=4", "A_1": ""}
