"""What a firewall.yml says becomes ports and sources; what is wrong with it is said."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.rules.firewall.openings import FirewallError, Ports, opening, parse_ports

ENTRY: dict[str, Any] = {"id": "ssh", "ports": ["22/tcp"], "why": "the way in"}


def test_an_entry_is_for_everybody_in_management_unless_it_says_more() -> None:
    made = opening(ENTRY)
    assert (made.ports, made.networks, made.sources) == ((Ports("tcp", 22, 22),), ("management",), None)


def test_an_address_has_as_many_connections_as_it_likes_unless_a_number_is_said() -> None:
    assert [opening({**ENTRY, **more}).each for more in ({}, {"each": None}, {"each": 1}, {"each": "99999"})] == [
        None, None, 1, 99_999,
    ]  # fmt: skip


def test_addresses_are_folded_and_cover_no_other() -> None:
    made = opening({**ENTRY, "from": [f"10.64.0.{at}" for at in range(101, 117)]})
    assert made.sources is not None
    assert [str(one) for one in made.sources] == [
        "10.64.0.101/32",
        "10.64.0.102/31",
        "10.64.0.104/29",
        "10.64.0.112/30",
        "10.64.0.116/32",
    ]


def test_nobody_may_come_in_where_the_list_is_empty() -> None:
    assert opening({**ENTRY, "from": []}).sources == ()


@pytest.mark.parametrize(
    "text", ["22", "0/tcp", "70000/tcp", "20-10/tcp", "22/sctp", "22/tcp ", "{{ x }}/tcp", 22, None]
)
def test_what_is_no_port_is_refused(text: object) -> None:
    with pytest.raises(FirewallError, match="is not a port; write 22/tcp"):
        parse_ports(text)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("ssh", "an entry is a mapping of id, ports, why, networks, from, each, when, not 'ssh'"),
        ({**ENTRY, "port": 22}, "ssh: unknown field port; there are id, ports, why, networks, from, each, when"),
        *(
            ({**ENTRY, "each": each}, f"ssh: each is {each!r}; write how many connections of one address: 1 or more")
            for each in (0, -1, "", "8.0", 1.5, [8], "many", 100_000, "8\n")
        ),
        (
            {**ENTRY, "ports": ["80/tcp", "69/udp"], "each": 8},
            "ssh: each is for connections, and 69/udp has none; make two entries of it",
        ),
        ({"id": "ssh", "ports": ["22/tcp"]}, "ssh: why is missing"),
        ({"ports": ["22/tcp"], "why": "x"}, "an entry: id is missing"),
        ({**ENTRY, "ports": ["ssh"]}, 'ssh: "ssh" is not a port; write 22/tcp, 60000-61000/tcp or 123/udp'),
        ({**ENTRY, "ports": {"22": "tcp"}}, "ssh: {'22': 'tcp'} is neither text nor a list"),
        ({**ENTRY, "from": ["10.1.0.1/24"]}, 'ssh: "10.1.0.1/24" is neither an address nor a network'),
    ],
)
def test_a_slip_is_named(entry: Any, message: str) -> None:
    with pytest.raises(FirewallError) as caught:
        opening(entry)
    assert str(caught.value) == message
