"""hal_node.network.write: which files are written, which stay as they are, what is kept of them for the way back."""

from __future__ import annotations

import os
from typing import Any

import pytest
from ansible.module_utils.hal_node.network import write
from ansible.module_utils.hal_node.network.kept import forget, text_in_force

from .node import OURS, Node, Refused, confirmed, everything, folder, mode, with_mtu


def test_the_file_of_the_contact_stays_until_it_may_change(node: Node) -> None:
    """At the next boot nobody stands ready to put it back."""
    with_mtu(node, "eno1", 9000)
    (node.scripts / "ifcfg-eno1").write_text("DEVICE=eno1\nBOOTPROTO=dhcp\n")
    (node.scripts / "ifcfg-Wired_1").write_text("DEVICE=eno1\n")
    left = node.phase("write")
    assert (left["held"], left["withdrawn"]) == (["eno1"], [])
    assert node.text("ifcfg-eno1") == "DEVICE=eno1\nBOOTPROTO=dhcp\n"
    assert node.text("ifcfg-Wired_1") == "DEVICE=eno1\n"
    assert node.text("ifcfg-eno2").startswith(OURS)
    assert not node.phase("write")["changed"]
    permitted = node.phase("write", contact_ok=True)
    assert (permitted["held"], permitted["withdrawn"]) == ([], ["ifcfg-Wired_1"])
    assert "MTU=9000" in node.text("ifcfg-eno1")


def test_the_file_of_a_contact_that_is_as_declared_is_written(node: Node) -> None:
    """It says what is in force already."""
    (node.scripts / "ifcfg-eno1").write_text("DEVICE=eno1\nBOOTPROTO=dhcp\n")
    assert node.phase("write")["held"] == []
    assert node.text("ifcfg-eno1").startswith(OURS)


@pytest.mark.parametrize(
    ("mode", "mtu", "up", "kept"),
    [
        ("connected", 65520, True, True),
        ("connected", 2044, True, True),
        ("datagram", 4092, True, True),
        ("datagram", 2044, True, False),  # as declared
        ("connected", 65520, False, False),  # nobody uses it
        (None, 65520, True, False),  # the driver says no mode: no port of IPoIB
    ],
)
def test_ipoib_that_is_up_keeps_mode_and_mtu_until_it_may_change(
    node: Node, mode: str | None, mtu: int, up: bool, kept: bool
) -> None:
    node.devices[1] = node.device("eno2", "10.2.0.5/24", "CONNECTED_MODE=no\nMTU=2044\n", mode="datagram", mtu=2044)
    node.now["links"]["eno2"] = {**node.now["links"]["eno2"], "mtu": mtu, "up": up}
    node.now["modes"] = {"eno2": mode} if mode else {}
    (node.scripts / "ifcfg-eno2").write_text("DEVICE=eno2\nCONNECTED_MODE=yes\n")
    left = node.phase("write", contact_ok=True)
    assert left["held"] == (["eno2"] if kept else [])
    assert (node.text("ifcfg-eno2") == "DEVICE=eno2\nCONNECTED_MODE=yes\n") == kept
    assert [one["ipoib"] for one in left["pending"]] in ([kept], [])
    if kept:
        assert node.phase("apply", contact_ok=True)["started"] == []
        assert node.phase("write", ipoib_ok=True)["held"] == []
        assert "CONNECTED_MODE=no" in node.text("ifcfg-eno2")
        assert node.phase("apply", ipoib_ok=True)["started"] == ["eno2"]


def test_a_file_that_others_may_write_is_closed_whatever_is_in_it(node: Node) -> None:
    node.phase("write")
    assert not node.phase("write")["changed"]
    (node.scripts / "ifcfg-eno2").chmod(0o666)
    assert node.phase("write")["changed"]
    assert oct((node.scripts / "ifcfg-eno2").stat().st_mode & 0o7777) == "0o644"


def test_what_somebody_else_wrote_is_kept_for_ever(node: Node) -> None:
    (node.scripts / "ifcfg-eno1").write_text("DNS1=192.0.2.53\n")
    (node.scripts / "ifcfg-old").write_text("DEVICE=eno1\nONBOOT=no\n")
    node.phase("write")
    for name in ("eno1", "eno2"):  # once more; of eno2 there was no file
        with_mtu(node, name, 1500)
    assert node.phase("write")["changed"]
    before = {path.name: path.read_text() for path in (node.state / "before").iterdir()}
    assert before == {"ifcfg-eno1": "DNS1=192.0.2.53\n", "ifcfg-old": "DEVICE=eno1\nONBOOT=no\n"}
    assert not (node.scripts / "ifcfg-old").exists()


def test_a_default_route_is_not_dropped_by_forgetting_it(node: Node) -> None:
    node.now["routes"] = {"eno1": ["10.1.0.254"]}
    with pytest.raises(
        Refused, match="eno1 has the default route, and no network of this node has a gateway in the mod"
    ):
        node.phase("write", contact_ok=True)
    assert not list(node.scripts.iterdir())
    assert node.phase("write", contact_ok=True, no_default_route_ok=True)["changed"]  # network_default_route: []


@pytest.mark.parametrize(
    ("device", "gateway"),
    [("eno1", "10.1.0.9"), ("eno9", None)],  # another one is declared; it is of an interface that is left alone
)
def test_a_default_route_that_is_not_dropped(node: Node, device: str, gateway: str | None) -> None:
    node.now["routes"] = {device: ["10.1.0.254"]}
    node.devices[0]["gateway"] = gateway
    assert node.phase("write")["changed"]


def test_what_the_kernel_does_not_show_waits_until_it_was_read(node: Node) -> None:
    node.phase("write")
    node.devices[1] = node.device("eno2", "10.2.0.5/24", "ETHTOOL_OPTS=x\n")
    why = ["has not read ETHTOOL_OPTS of its file"]
    waiting = [{"name": "eno2", "why": why, "contact": False, "ipoib": False}]
    assert node.phase("write")["pending"] == waiting
    assert node.phase("write")["pending"] == waiting  # the file is written now, and was not read yet
    assert node.phase("apply")["started"] == ["eno2"]
    confirmed(node)
    assert node.phase("write")["pending"] == []


def test_of_a_file_owner_and_mode_are_declared_and_nothing_else(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its SELinux context is the policy's."""
    wanted: list[dict[str, Any]] = []

    def attributes(asked: dict[str, Any], changed: bool) -> bool:
        wanted.append(asked)
        return changed

    monkeypatch.setattr(node, "attributes", attributes)
    node.phase("write")
    rest = dict.fromkeys(("seuser", "serole", "setype", "selevel", "attributes"))
    given = {"owner": "root", "group": "root", "mode": "0644", "unsafe_writes": False, **rest}
    assert wanted == [{"path": str(node.scripts / f"ifcfg-{name}"), **given} for name in ("eno1", "eno2")]


def test_a_file_that_is_taken_away_is_kept_for_the_way_back(node: Node) -> None:
    with_mtu(node, "eno2", 9000)
    (node.scripts / "ifcfg-Wired_2").write_text("DEVICE=eno2\nMTU=1400\n")
    assert node.phase("write")["withdrawn"] == ["ifcfg-Wired_2"]
    assert not (node.scripts / "ifcfg-Wired_2").exists()
    saved = folder("SAVED") / "eno2"
    assert (saved / "ifcfg-Wired_2").read_text() == "DEVICE=eno2\nMTU=1400\n"


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
    assert not folder("BEFORE").exists()
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
    assert sorted(os.listdir(folder("SAVED") / "bond0")) == names


def test_files_get_to_the_disk_only_when_some_were_written(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[Any] = []
    monkeypatch.setattr(write, "settle", lambda *given: settled.append(given))
    node.phase("write", check=True)
    assert settled == []
    node.phase("write")
    node.phase("write")
    assert settled == [(str(folder("BEFORE")), str(node.scripts))]


def test_what_is_kept_is_root_s_and_the_oldest_and_forgotten_when_it_is_in_force(node: Node) -> None:
    (node.scripts / "ifcfg-eno2").write_text("DEVICE=eno2\nMTU=1400\n")
    with_mtu(node, "eno2", 9000)
    old = os.umask(0)
    try:
        node.phase("write")
    finally:
        os.umask(old)
    saved, before = folder("SAVED") / "eno2", folder("BEFORE")
    assert [mode(path) for path in (saved, before)] == [0o700, 0o700]
    assert sorted(os.listdir(saved.parent)) == ["eno2"]
    (node.scripts / "ifcfg-eno2").write_text("DEVICE=eno2\nMTU=1300\n")
    node.phase("write")
    for path in (saved, before):
        assert (path / "ifcfg-eno2").read_text() == "DEVICE=eno2\nMTU=1400\n"
    node.now["links"]["eno2"] = {**node.now["links"]["eno2"], "mtu": 9000}
    node.phase("write", check=True)
    assert saved.exists()
    forget(["eno2"])
    assert (saved.exists(), before.exists()) == (False, True)


def test_a_file_that_there_was_none_of_is_remembered_so_and_only_once(node: Node) -> None:
    with_mtu(node, "eno2", 9000)
    node.phase("write")
    saved = folder("SAVED") / "eno2"
    assert (os.listdir(saved), (saved / "ifcfg-eno2.absent").read_bytes()) == (["ifcfg-eno2.absent"], b"")
    (node.scripts / "ifcfg-eno2").write_text(f"{OURS}MTU=1\n")
    node.phase("write")
    assert os.listdir(saved) == ["ifcfg-eno2.absent"]
    assert text_in_force(node.devices[1]) == ""
