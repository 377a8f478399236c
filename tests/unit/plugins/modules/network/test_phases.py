"""hal_network from the first file to the confirmation, on a node that is a folder and a kernel that is a dictionary."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import pytest

CONNECTION = "10.1.0.1 33 10.1.0.5 22"
OURS = "# Written by the role network; changes made here are lost.\n"


PERMISSIONS = ("contact_ok", "ipoib_ok", "no_default_route_ok")


class Refused(Exception):
    """What fail_json would say."""


class Node:
    """Two interfaces that are as declared; the connection came in by eno1."""

    def __init__(self, module: ModuleType, root: Path) -> None:
        self.module, self.root, self.called = module, root, list[str]()
        self.scripts, self.state = root / "etc/sysconfig/network-scripts", root / "var/lib/hal/network"
        self.scripts.mkdir(parents=True)
        self.state.mkdir(parents=True)
        up = {"up": True, "mtu": 1500, "mac": None, "master": None}
        self.now: dict[str, Any] = {
            "links": {"eno1": up, "eno2": up, "eno3": up},
            "addresses": {
                "eno1": [{"address": "10.1.0.5/24", "broadcast": None}],
                "eno2": [{"address": "10.2.0.5/24", "broadcast": None}],
            },
            "routes": {},
            "modes": {},
            "bonds": {},
        }
        self.devices = [self.device("eno1", "10.1.0.5/24"), self.device("eno2", "10.2.0.5/24")]

    def device(self, name: str, address: str | None, extra: str = "", **more: Any) -> dict[str, Any]:
        text, path = f"{OURS}DEVICE={name}\n{extra}", str(self.scripts / f"ifcfg-{name}")
        plain: dict[str, Any] = {"mtu": None, "mac": None, "gateway": None, "mode": None, "master": None, "members": []}
        return {"name": name, "address": address, "text": text, "path": path, **plain, **more}

    def phase(self, name: str, *, check: bool = False, **params: Any) -> dict[str, Any]:
        def fail(msg: str) -> NoReturn:
            raise Refused(msg)

        def run(argv: list[str], **_: Any) -> tuple[int, str, str]:
            self.called.append(" ".join(argv))
            return 1 if argv[0] == "firewall-cmd" else 0, "", ""

        module = SimpleNamespace(
            params={"devices": self.devices, **dict.fromkeys(PERMISSIONS, False), **params},
            check_mode=check,
            fail_json=fail,
            run_command=run,
            get_bin_path=lambda name, required=False: name,
            tmpdir=str(self.root),
            atomic_move=os.rename,
            load_file_common_arguments=dict,
            set_fs_attributes_if_different=self.attributes,
        )
        result: dict[str, Any] = getattr(self.module, name)(module)
        return result

    @staticmethod
    def attributes(wanted: dict[str, Any], changed: bool) -> bool:
        """Give the mode, as AnsibleModule does; the test's user need not be root."""
        assert (wanted["owner"], wanted["group"]) == ("root", "root")
        path, mode = Path(wanted["path"]), int(wanted["mode"], 8)
        differs = path.stat().st_mode & 0o7777 != mode
        path.chmod(mode)
        return changed or differs

    def text(self, name: str) -> str:
        return (self.scripts / name).read_text()


@pytest.fixture
def node(hal_network: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    made = Node(hal_network, tmp_path / "root")
    monkeypatch.setattr(hal_network, "look", lambda _: copy.deepcopy(made.now))
    monkeypatch.setattr(hal_network, "ssh_connection", lambda: CONNECTION)
    return made


def with_mtu(node: Node, name: str, mtu: int) -> None:
    for device in node.devices:
        if device["name"] == name:
            device["mtu"], device["text"] = mtu, f"{device['text']}MTU={mtu}\n"


# ---------------------------------------------------------------- files
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


# ---------------------------------------------------------------- a change
def confirmed(node: Node) -> None:
    (node.root / "run/hal/network/done").write_text("")
    assert [node.phase("confirm")["confirmed"] for _ in range(2)] == [False, True]


def started(node: Node) -> None:
    """A change of eno2 that is at work."""
    with_mtu(node, "eno2", 9000)
    node.phase("write")
    assert node.phase("apply")["started"] == ["eno2"]
    node.now["links"]["eno2"] = {**node.now["links"]["eno2"], "mtu": 9000}


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
    saved = Path(vars(node.module)["SAVED"]) / "eno2"
    assert (saved / "ifcfg-Wired_2").read_text() == "DEVICE=eno2\nMTU=1400\n"
