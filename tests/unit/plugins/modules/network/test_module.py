"""What hal_network decides on a node: what the connection needs, what has to be kept for the way back."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

SCRIPTS = "/etc/sysconfig/network-scripts"
ANSWERS = {
    "ip -o route get 192.0.2.9": "192.0.2.9 via 10.1.0.254 dev eno2 src 10.1.0.5 uid 0 \\    cache\n",
    "ip -o route get 10.1.0.1": "10.1.0.1 dev eno1 src 10.1.0.5 uid 0 \\    cache\n",
    "ip -o -4 route show dev eno1": (
        "default via 10.1.0.254 proto static \n"
        "10.1.0.0/24 proto kernel scope link\n"
        "10.9.0.0/16 via 10.1.0.9 linkdown \n"
    ),
    "ip -o -4 route show default": (
        "default via 10.1.0.254 dev eno1 proto static \n"
        "default metric 9 \\\tnexthop via 10.8.0.1 dev eno8 weight 1 \\\tnexthop via 10.8.0.2 dev eno8 weight 1 \n"
    ),
    "firewall-cmd --state": "running\n",
    "firewall-cmd --get-zone-of-interface=eno1": "management\n",
}


def declared(name: str, **more: Any) -> dict[str, Any]:
    text = f"# Written by the role network\nDEVICE={name}\n"
    plain: dict[str, Any] = {
        "master": None,
        "members": [],
        "gateway": None,
        "path": f"{SCRIPTS}/ifcfg-{name}",
        "text": text,
    }
    return {"name": name, **plain, **more}


DEVICES = [
    declared("bond0", members=["eno2", "eno3"], bond_mode="802.3ad", address="192.0.2.5/25"),
    declared("eno1", address="10.1.0.5/24"),
    declared("eno2", master="bond0"),
    declared("eno3", master="bond0"),
    declared("ib0", address="10.1.2.5/24", mode="connected"),
]


def link(**changes: Any) -> dict[str, Any]:
    return {"up": True, "mtu": 1500, "mac": None, "master": None, **changes}


def now() -> dict[str, Any]:
    """A node on which no bond was made yet, and IPoIB is in its old mode."""
    return {
        "links": {"eno1": link(), "eno2": link(up=False), "eno3": link(), "ib0": link(mtu=2044)},
        "addresses": {
            "eno1": [{"address": "10.1.0.5/24", "broadcast": "10.1.0.255"}],
            "ib0": [{"address": "10.1.2.5/24", "broadcast": None}],
        },
        "routes": {},
        "modes": {"ib0": "datagram"},
        "bonds": {},
    }


def call(**params: Any) -> SimpleNamespace:
    """As AnsibleModule, with an ip that knows ANSWERS."""

    def run_command(argv: list[str], **_: Any) -> tuple[int, str, str]:
        out = ANSWERS.get(" ".join(argv))
        return (0, out, "") if out is not None else (2, "", "RTNETLINK answers: Network is unreachable")

    return SimpleNamespace(
        params={"devices": DEVICES, **params}, run_command=run_command, get_bin_path=lambda name, required=False: name
    )


@pytest.mark.parametrize(
    ("connection", "needed"),
    [
        ("10.1.0.1 33 10.1.0.5 22", {"eno1"}),
        ("192.0.2.9 33 10.1.0.5 22", {"eno1", "bond0"}),  # answers go out by a member of the bond
        ("10.9.9.9 33 10.1.0.5 22", {"eno1"}),  # there is no way back to it, says ip
        ("10.9.9.9 33 10.8.8.8 22", None),
        (None, None),
    ],
)
def test_what_the_connection_needs(
    hal_network: ModuleType, monkeypatch: pytest.MonkeyPatch, connection: str | None, needed: set[str] | None
) -> None:
    monkeypatch.setattr(hal_network, "ssh_connection", lambda: connection)
    assert hal_network.contact_heads(call(), now()) == needed


@pytest.mark.parametrize(
    ("client", "routes", "needed"),
    [
        ("192.0.2.9", {}, {"eno1", "bond0", "ib0"}),  # ifup of ib0 would replace the route of the answers
        ("192.0.2.9", {"ib0": ["10.1.2.254"]}, {"eno1", "bond0"}),  # it has it already
        ("10.1.0.1", {}, {"eno1"}),  # on the same network nobody needs a gateway
    ],
)
def test_what_takes_the_default_route_is_needed_by_answers_that_go_by_it(
    hal_network: ModuleType, monkeypatch: pytest.MonkeyPatch, client: str, routes: dict[str, Any], needed: set[str]
) -> None:
    monkeypatch.setattr(hal_network, "ssh_connection", lambda: f"{client} 33 10.1.0.5 22")
    devices = [*DEVICES[:-1], {**DEVICES[-1], "gateway": "10.1.2.254"}]
    assert hal_network.contact_heads(call(devices=devices), {**now(), "routes": routes}) == needed


def test_where_nothing_is_known_every_interface_is_that_of_the_connection(
    hal_network: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hal_network, "ssh_connection", lambda: None)
    assert [(one["name"], one["contact"]) for one in hal_network.pending_of(call(), now())] == [
        ("bond0", True),
        ("ib0", True),
    ]


def test_a_bond_waits_as_one_with_its_members(hal_network: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hal_network, "ssh_connection", lambda: "10.1.0.1 33 10.1.0.5 22")
    assert hal_network.pending_of(call(), now()) == [
        {
            "name": "bond0",
            "why": [
                "does not exist",
                "eno2 is down",
                "eno2 is a member of no bond, not a member of bond0",
                "eno3 is a member of no bond, not a member of bond0",
            ],
            "contact": False,
            "ipoib": False,
        },
        {"name": "ib0", "why": ["is in datagram mode, not connected"], "contact": False, "ipoib": True},
    ]


def test_the_way_back_has_what_the_kernel_had_in_the_order_in_which_it_works(
    hal_network: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = now()
    state["bonds"]["eno1"] = {"mode": "active-backup", "members": ["eno7", "eno8"]}
    module = call()
    module.run_command = lambda argv, **_: (" ".join(argv) not in ANSWERS, ANSWERS.get(" ".join(argv), ""), "")
    monkeypatch.setattr(hal_network, "run", lambda _, *argv, **__: ANSWERS.get(" ".join(argv), ""))
    assert hal_network.live(module, state, ["bond0", "eno1", "ib0"]) == [
        "bond0 absent",
        "ib0 mode datagram",
        "eno1 alone",
        "eno2 alone",
        "eno3 alone",
        "ib0 alone",
        "eno1 bond active-backup eno7 eno8",
        "eno1 flush",
        "eno1 mtu 1500",
        "eno1 up",
        "eno1 addr 10.1.0.5/24 brd 10.1.0.255",
        "eno2 flush",
        "eno2 mtu 1500",
        "eno2 down",
        "eno3 flush",
        "eno3 mtu 1500",
        "eno3 up",
        "ib0 flush",
        "ib0 mtu 2044",
        "ib0 up",
        "ib0 addr 10.1.2.5/24",
        "route 10.9.0.0/16 via 10.1.0.9 dev eno1",
        # Whatever interface they are of: ifup replaces the one that there is.
        "route default via 10.1.0.254 dev eno1 proto static",
        "route default metric 9 nexthop via 10.8.0.1 dev eno8 weight 1 nexthop via 10.8.0.2 dev eno8 weight 1",
        "eno1 zone management",
        "eno2 zone",
        "eno3 zone",
        "ib0 zone",
    ]


def test_the_oldest_file_is_kept_while_its_interface_waits(hal_network: ModuleType, tmp_path: Path) -> None:
    """A file that was written and never in force is no state to go back to."""
    path = tmp_path / "ifcfg-ib0"
    saved = Path(hal_network.SAVED) / "ib0"
    for content in ("in force\n", "written, never in force\n"):
        path.write_text(content)
        hal_network.keep(str(path), content.encode(), "ib0", {"ib0"})
    assert (saved / "ifcfg-ib0").read_text() == "in force\n"
    hal_network.keep(str(tmp_path / "ifcfg-new"), None, "ib0", {"ib0"})
    assert (saved / "ifcfg-new.absent").exists()
    hal_network.keep(str(path), b"", "eno1", {"ib0"})  # as its file says: nothing to go back to
    assert not (saved.parent / "eno1").exists()
    hal_network.forget({"ib0"})
    assert not saved.exists()
