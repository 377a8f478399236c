"""The server as nodes see it: who gets an answer of DHCP, who gets which files, and that nothing is armed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from promises import Rollout
from testinfra.host import Host

SERVER = "hal-mgmt1"
Node = Callable[[str], Host]
Site = Callable[..., Any]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


def boot_of(site: Site, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in site("boot") if one["name"] == name)
    return found


def address(site: Site, name: str) -> str:
    return str(boot_of(site, name)["addresses"]["management"])


def url(site: Site, path: str) -> str:
    return f"http://{address(site, SERVER)}:8480{path}"


def asked(host: Host, mac: str) -> str:
    return str(host.run("cd /srv && python3 -m bmc.dhcp_client eth0 %s", mac).stdout)


def status_of(host: Host, where: str) -> str:
    words = "curl --silent --noproxy '*' --output /dev/null --write-out '%%{http_code}' %s"
    return str(host.check_output(words, where))


def test_a_node_of_the_model_gets_its_address_and_its_own_configuration(node: Node, site: Site) -> None:
    said = asked(node("hal01"), boot_of(site, "hal01")["macs"]["management"])
    assert f"{address(site, 'hal01')} of {address(site, SERVER)}" in said
    assert f"option 209: {url(site, '/boot/hal01')}" in said


@pytest.mark.parametrize("mac", ["02:00:00:00:00:98", "02:00:00:00:00:99"])
def test_a_stranger_gets_no_answer(node: Node, mac: str) -> None:
    assert asked(node("hal01"), mac) == f"{mac}: no answer on eth0\n"


def test_a_node_gets_its_own_files_and_nobody_elses(node: Node, site: Site) -> None:
    assert "no entry here" in node("hal01").check_output("curl --silent --noproxy '*' %s", url(site, "/boot/hal01"))
    assert status_of(node("hal02"), url(site, "/boot/hal01")) == "404"


def test_nothing_is_armed_and_arming_one_node_changes_no_other(node: Node, site: Site) -> None:
    server, first, second = node(SERVER), node("hal01"), node("hal02")
    assert json.loads(server.check_output("hal-provision status"))["armed"] == []
    order = {
        "node": "hal01",
        "address": address(site, "hal01"),
        "what": "a test",
        "config": "DEFAULT a\nLABEL a\nKERNEL http://x/y\n",
        "files": {},
        "token_sha256": "0" * 64,
        "expires": int(server.check_output("date +%s")) + 600,
    }
    before = second.check_output("curl --silent --noproxy '*' %s", url(site, "/boot/hal02"))
    server.check_output("printf %%s %s | hal-provision arm hal01", json.dumps(order))
    try:
        assert first.check_output("curl --silent --noproxy '*' %s", url(site, "/boot/hal01")).startswith("DEFAULT a")
        assert second.check_output("curl --silent --noproxy '*' %s", url(site, "/boot/hal02")) == before
    finally:
        server.check_output("hal-provision disarm hal01")
    assert "no entry here" in first.check_output("curl --silent --noproxy '*' %s", url(site, "/boot/hal01"))


def test_an_armed_node_and_a_changed_lease_break_promises(node: Node, rollout: Rollout) -> None:
    server = node(SERVER)
    assert rollout.broken_promises("provision_server", SERVER) == []
    server.check_output("sed -i.kept 's/hal01/hal02/' /etc/hal/dnsmasq-hosts/hal01")
    broken = rollout.broken_promises("provision_server", SERVER)
    assert any(one.startswith("each node's lease is the model's") for one in broken)
    assert "exactly the nodes of the model are known" in broken
    done = rollout.converge()
    assert done.status == 0, done.output
    assert rollout.broken_promises("provision_server", SERVER) == []


def test_the_service_is_not_root(node: Node) -> None:
    server = node(SERVER)
    pid = server.check_output("systemctl show -p MainPID hal-provision").partition("=")[2]
    assert server.check_output("stat -c %%U /proc/%s", pid) == "hal-provision"
