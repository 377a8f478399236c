"""Every name of a machine that a role writes or gives to a command leads somewhere: it is in /etc/hosts of that node.

Names of other domains are the business of the site's name servers, which roles leave alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from hal_inventory.load import load
from tests.contract import declared
from tests.contract.project import PROJECT
from tests.contract.rendering import REAL
from tests.contract.rules import daemons

MODEL = load(PROJECT / "inventory/hal/cluster.yml")
MACHINES = [*MODEL.nodes, *MODEL.arrays, *MODEL.external]
# A machine's name, with what may follow it in a network, and with the domain or without.
NAME = re.compile(
    rf"(?<![\w.@/-])(?:{'|'.join(map(re.escape, MACHINES))})(?:-[a-z0-9]+)?(?:\.{re.escape(MODEL.domain)})?(?![\w.=/-])"
)
HOSTS = "roles/hosts/templates/hosts.j2"


def in_hosts() -> set[str]:
    """Names of /etc/hosts as role hosts writes it; the same on each node."""
    texts = {
        one.text for found in daemons.texts_of(PROJECT).values() for one in found if one.path == HOSTS and not one.given
    }
    lines = [line.partition("#")[0].split() for text in texts for line in text.splitlines()]
    return {name for words in lines for name in words[1:]}


def named() -> Iterator[tuple[str, str]]:
    """Yield (name, where) for each that a text, a command or a promise of the reference site's nodes has."""
    for found in daemons.texts_of(PROJECT).values():
        for one in found:
            if one.path != HOSTS and one.site == REAL:
                yield from ((name, one.path) for name in NAME.findall(one.text))
    for call in declared.of_project(PROJECT).calls:
        yield from ((name, f"{call.path}:{call.line}") for name in NAME.findall(json.dumps(call.arguments)))
    for asked in declared.promised(PROJECT):
        yield from (
            (name, f"{asked.path}:{asked.line}") for name in NAME.findall(json.dumps(asked.question, default=str))
        )


def test_every_name_of_a_machine_is_in_the_hosts_file() -> None:
    known, asked = in_hosts(), list(named())
    assert set(MODEL.nodes) <= known
    assert {"hal01", "hal-mgmt1", "flash1"} <= {name for name, _ in asked}, "roles name machines"
    assert sorted({(name, where) for name, where in asked if name not in known}) == []


def test_arrays_and_machines_outside_are_in_the_hosts_file() -> None:
    assert {*MODEL.arrays, *(f"{name}.{MODEL.domain}" for name in MODEL.arrays), *MODEL.external} <= in_hosts()
