"""What hal_network decides on a node: what the connection needs, what has to be kept for the way back."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

PATH = Path(__file__).resolve().parents[3] / "plugins" / "modules" / "hal_network.py"
ANSWERS = {
    "ip -o route get 192.0.2.9": "192.0.2.9 via 10.1.0.254 dev eno2 src 10.1.0.5 uid 0 \\    cache\n",
    "ip -o route get 10.1.0.1": "10.1.0.1 dev eno1 src 10.1.0.5 uid 0 \\    cache\n",
    "ip -4 route show dev eno1": "default via 10.1.0.254 proto static \n10.1.0.0/24 proto kernel scope link\n",
}
DEVICES = [
    {"name": "bond0", "master": None, "members": ["eno2", "eno3"], "bond_mode": "802.3ad", "address": "192.0.2.5/25"},
    {"name": "eno1", "master": None, "members": [], "address": "10.1.0.5/24"},
    {"name": "eno2", "master": "bond0", "members": []},
    {"name": "eno3", "master": "bond0", "members": []},
    {"name": "ib0", "master": None, "members": [], "address": "10.1.2.5/24", "mode": "connected"},
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


@pytest.fixture
def hal_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, whose folders are a test's own."""
    spec = importlib.util.spec_from_file_location("hal_network_module", PATH)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    monkeypatch.setattr(loaded, "SAVED", str(tmp_path / "saved"))
    return loaded


def call(**params: Any) -> SimpleNamespace:
    """As AnsibleModule, with an ip that knows ANSWERS."""

    def run_command(argv: list[str], **_: Any) -> tuple[int, str, str]:
        out = ANSWERS.get(" ".join(argv))
        return (0, out, "") if out is not None else (2, "", "RTNETLINK answers: Network is unreachable")

    return SimpleNamespace(
        params={"devices": DEVICES, **params}, run_command=run_command, get_bin_path=lambda name, required: name
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
        },
        {"name": "ib0", "why": ["is in datagram mode, not connected"], "contact": False},
    ]


def test_the_way_back_has_what_the_kernel_had_in_the_order_in_which_it_works(hal_network: ModuleType) -> None:
    state = now()
    state["bonds"]["eno1"] = {"mode": "active-backup", "members": ["eno7", "eno8"]}
    module = call()
    module.run_command = lambda argv, **_: (0, ANSWERS.get(" ".join(argv), ""), "")
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
        "route default via 10.1.0.254 proto static dev eno1",
    ]


def test_the_oldest_file_is_kept_while_its_interface_waits(hal_network: ModuleType, tmp_path: Path) -> None:
    """A file that was written and never in force is no state to go back to."""
    path = tmp_path / "ifcfg-ib0"
    saved = tmp_path / "saved/ib0"
    for content in ("in force\n", "written, never in force\n"):
        path.write_text(content)
        hal_network.keep(str(path), content.encode(), "ib0", {"ib0"})
    assert (saved / "ifcfg-ib0").read_text() == "in force\n"
    hal_network.keep(str(tmp_path / "ifcfg-new"), None, "ib0", {"ib0"})
    assert (saved / "ifcfg-new.absent").exists()
    hal_network.keep(str(path), b"", "eno1", {"ib0"})  # as its file says: nothing to go back to
    assert not (tmp_path / "saved/eno1").exists()
    hal_network.forget({"ib0"})
    assert not saved.exists()
