"""hal_node.network.pending: what is not in force, and why."""

from __future__ import annotations

import pytest
from ansible.module_utils.hal_node.network import contact
from ansible.module_utils.hal_node.network.pending import pending_of

from .node import call, now


def test_where_nothing_is_known_every_interface_is_that_of_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact, "ssh_connection", lambda: None)
    assert [(one["name"], one["contact"]) for one in pending_of(call(), now())] == [
        ("bond0", True),
        ("ib0", True),
    ]


def test_a_bond_waits_as_one_with_its_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact, "ssh_connection", lambda: "10.1.0.1 33 10.1.0.5 22")
    assert pending_of(call(), now()) == [
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
