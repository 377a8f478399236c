"""Names lead where the model says, on every node, whatever stood there before."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host
from testing.promises import Rollout

NODES = ["hal-login", "hal-mgmt2", "hal01", "hal02"]
Node = Callable[[str], Host]
Site = Callable[..., Any]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


def leads_to(host: Host, name: str) -> str | None:
    """Address that a program gets for a name, from the file alone: the containers' own name service knows names too."""
    lines = host.run(f"getent -s files ahostsv4 {name}").stdout.splitlines()
    return lines[0].split()[0] if lines else None


@pytest.mark.parametrize("name", NODES)
def test_every_node_is_known_by_name_on_every_network(node: Node, site: Site, name: str) -> None:
    wanted = {}
    for entry in site("hosts"):
        for network, suffix in {"management": "", "ipoib": "-ib", "bmc": "-bmc", "access": "-access"}.items():
            if network in entry["addresses"]:
                wanted[f"{entry['name']}{suffix}"] = entry["addresses"][network]
                wanted[f"{entry['name']}{suffix}.{site('site')['domain']}"] = entry["addresses"][network]
    assert len(wanted) >= 2 * len(NODES)
    assert {other: leads_to(node(name), other) for other in wanted} == wanted


@pytest.mark.parametrize("name", NODES)
def test_stale_names_are_gone(node: Node, name: str) -> None:
    assert [leads_to(node(name), stale) for stale in ("hal17", "retired")] == [None, None]
    assert "10.99." not in node(name).check_output("getent -s files hosts")


@pytest.mark.parametrize("name", NODES)
def test_a_node_knows_itself_by_its_name_and_not_as_loopback(node: Node, site: Site, name: str) -> None:
    host = node(name)
    address = next(entry["address"] for entry in site("hosts") if entry["name"] == name)
    assert host.check_output("hostname") == name
    assert host.check_output("hostname --fqdn") == f"{name}.{site('site')['domain']}"
    assert leads_to(host, name) == address
    assert leads_to(host, "localhost") == "127.0.0.1"


def test_names_of_the_site_are_there(node: Node) -> None:
    assert leads_to(node("hal01"), "license") == "192.0.2.20"


def test_the_resolver_is_left_alone(node: Node) -> None:
    assert "role" not in node("hal01").check_output("cat /etc/resolv.conf")


def test_faults_are_mended_without_asking_another_node(node: Node, site: Site, rollout: Rollout) -> None:
    host = node("hal01")
    host.check_output("sed -i -e '/ hal02$/d' -e '1i 127.0.1.1 hal01' /etc/hosts")
    done = rollout.converge("--limit", "hal01")
    assert done.status == 0, done.explain()
    assert [leads_to(host, entry["name"]) for entry in site("hosts")] == [entry["address"] for entry in site("hosts")]
    assert rollout.broken_promises("hosts", "hal01") == []


def test_lines_of_others_stay_until_they_are_declared_or_permitted_to_go(node: Node, rollout: Rollout) -> None:
    host = node("hal-login")
    host.check_output("hostname planted && printf '192.0.2.77 printer  # 2019\\n10.99.0.1 hal02\\n' >>/etc/hosts")
    before = host.check_output("cat /etc/hosts")
    declared = [{"address": "192.0.2.77", "names": ["printer"]}]
    for more in ({}, {"hosts_extra": declared}):
        refused = rollout.converge("--limit", "hal-login", **more)
        assert refused.status != 0
        assert "10.99.0.1 hal02" in refused.words, refused.explain()
        assert "-e hosts_withdraw_ok=true" in refused.words
        assert ("hosts_extra: [{address: 192.0.2.77, names: [printer]}]" in refused.words) is (not more)
        assert host.check_output("hostname; cat /etc/hosts") == f"planted\n{before}", "the look comes before all else"

    done = rollout.converge("--limit", "hal-login", hosts_extra=declared, hosts_withdraw_ok=True)
    assert done.status == 0, done.explain()
    assert leads_to(host, "printer") == "192.0.2.77"
    assert "10.99." not in host.check_output("cat /etc/hosts")

    # What the role wrote itself goes without a word.
    done = rollout.converge("--limit", "hal-login")
    assert done.status == 0, done.explain()
    assert leads_to(host, "printer") is None


def test_names_of_arrays_and_of_machines_outside_are_there(node: Node, site: Site) -> None:
    wanted = {name: one["address"] for part in ("arrays", "external") for name, one in site(part).items()}
    assert {"flash1", "flash2", "grafana"} <= set(wanted)
    assert {name: leads_to(node("hal01"), name) for name in wanted} == wanted


def test_an_addition_may_not_take_a_nodes_name(rollout: Rollout) -> None:
    done = rollout.converge(hosts_extra=[{"address": "192.0.2.1", "names": ["hal02"]}])
    assert done.status != 0
    assert "hosts_extra gives another address to hal02" in done.words
