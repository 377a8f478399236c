"""hal_node.network.back: what has to be kept for the way back."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible.module_utils.hal_node.network import kernel
from ansible.module_utils.hal_node.network.back import commands

from .node import ANSWERS, call, now


def test_the_way_back_has_what_the_kernel_had_in_the_order_in_which_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    state = now()
    state["bonds"]["eno1"] = {"mode": "active-backup", "members": ["eno7", "eno8"]}
    module = call()
    module.run_command = lambda argv, **_: (" ".join(argv) not in ANSWERS, ANSWERS.get(" ".join(argv), ""), "")
    monkeypatch.setattr(kernel, "run", lambda _, *argv, **__: ANSWERS.get(" ".join(argv), ""))
    assert commands(module, state, ["bond0", "eno1", "ib0"]) == [
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


@pytest.mark.parametrize("firewall", [None, "/bin/firewall-cmd"])
def test_without_a_firewall_that_runs_no_zone_is_kept(monkeypatch: pytest.MonkeyPatch, firewall: str | None) -> None:
    monkeypatch.setattr(kernel, "run", lambda *_: "")
    module = SimpleNamespace(
        params={"devices": [{"name": "eno1", "master": None}]},
        get_bin_path=lambda _: firewall,
        run_command=lambda _: (252, "not running", ""),
    )
    link = {"up": True, "mtu": 9, "master": "bond7"}
    now = {"links": {"eno1": link}, "addresses": {}, "modes": {}, "bonds": {}}
    assert commands(module, now, ["eno1"]) == ["eno1 flush", "eno1 mtu 9", "eno1 up"]
    assert commands(module, now, ["eno2"]) == []
