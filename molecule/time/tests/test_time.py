"""All nodes have one time: what chronyd does, not what its file says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host
from testing.promises import Rollout

SERVERS = ["hal-mgmt1", "hal-mgmt2"]
FOLLOWER = "hal01"
OWN_CLOCK = "7F7F0101"  # reference id of chronyd's own clock
Node = Callable[[str], Host]
Site = Callable[..., Any]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


def addresses(site: Site, names: list[str]) -> list[str]:
    return [host["address"] for host in site("hosts") if host["name"] in names]


def sources(host: Host) -> list[str]:
    """Addresses of the servers that it asks."""
    return [line.split(",")[2] for line in host.check_output("chronyc -n -c sources").splitlines()]


def tracking(host: Host) -> list[str]:
    fields: list[str] = host.check_output("chronyc -n -c tracking").split(",")
    return fields


def test_a_follower_asks_the_time_servers_and_follows_one(node: Node, site: Site) -> None:
    assert sorted(sources(node(FOLLOWER))) == sorted(addresses(site, SERVERS))
    assert tracking(node(FOLLOWER))[1] in addresses(site, SERVERS)


def test_the_servers_ask_each_other_and_one_leads(node: Node, site: Site) -> None:
    for name, other in (SERVERS, SERVERS[::-1]):
        assert sources(node(name)) == addresses(site, [other])
    leaders = [name for name in SERVERS if tracking(node(name))[0] == OWN_CLOCK]
    followers = [name for name in SERVERS if tracking(node(name))[1] in addresses(site, SERVERS)]
    assert len(leaders) >= 1
    assert sorted(leaders + followers) == SERVERS


@pytest.mark.parametrize("name", [*SERVERS, FOLLOWER])
def test_chronyd_runs_and_starts_at_boot_and_is_synchronised(node: Node, name: str) -> None:
    service = node(name).service("chronyd")
    assert service.is_running
    assert service.is_enabled
    leap = tracking(node(name))[-1]
    assert leap == "Normal"
    assert abs(float(tracking(node(name))[4])) < 0.1


def test_the_server_of_another_site_is_forgotten(node: Node) -> None:
    assert "192.0.2.1" not in sources(node(FOLLOWER))


def test_only_the_management_network_is_served(node: Node, site: Site) -> None:
    """Asked from the follower: the server answers on one network and not on the other."""
    host = node(FOLLOWER)
    server = next(entry for entry in site("hosts") if entry["name"] == "hal-mgmt1")["addresses"]
    ask = "chronyd -Q -t 6 -u chrony 'server {} iburst maxsamples 1' 2>&1"
    assert "System clock wrong by" in host.run(ask.format(server["management"])).stdout
    assert "System clock wrong by" not in host.run(ask.format(server["ipoib"])).stdout


def test_a_follower_does_not_serve(node: Node) -> None:
    assert node(FOLLOWER).socket("udp://0.0.0.0:123").is_listening is False


def test_faults_of_the_running_daemon_are_reported_and_mended(node: Node, rollout: Rollout, site: Site) -> None:
    host = node(FOLLOWER)
    # The file stays right: only the daemon knows.
    host.check_output("chronyc add server 192.0.2.1")
    for address in addresses(site, SERVERS):
        host.check_output(f"chronyc delete {address}")
    assert rollout.broken_promises("time", FOLLOWER) == [
        "a time server answers",
        "chronyd asks exactly the declared servers",
    ]
    host.check_output("sed -i 's/^server .*/server 192.0.2.1/' /etc/chrony.conf && systemctl restart chronyd")
    assert "clock follows a declared server" in rollout.broken_promises("time", FOLLOWER)

    host.check_output(
        "printf '[Service]\\nExecStart=/bin/sleep infinity\\n' >/etc/systemd/system/ntpd.service"
        " && systemctl daemon-reload && systemctl start ntpd && systemctl disable --quiet --now chronyd"
    )
    broken = rollout.broken_promises("time", FOLLOWER)
    assert {"chronyd runs", "chronyd starts at boot", "no second daemon sets the clock [ntpd]"} <= set(broken)
    assert rollout.promises("time", FOLLOWER)["clock is close to its server"]["status"] == "unknown"

    done = rollout.converge("--limit", FOLLOWER)
    assert done.status == 0, done.explain()
    assert not host.service("ntpd").is_running
    assert rollout.broken_promises("time", FOLLOWER) == []


def test_a_clock_that_is_off_is_reported(rollout: Rollout) -> None:
    """The clock of a container cannot be moved, so the tolerance is."""
    result = rollout.promises("time", FOLLOWER, time_max_offset_seconds=-1)["clock is close to its server"]
    assert result["status"] == "fail"


def test_a_network_that_the_model_does_not_have_is_refused(rollout: Rollout) -> None:
    done = rollout.converge(time_allowed_networks=["managment"])
    assert done.status != 0
    assert "time_allowed_networks names managment; the model has" in done.words
