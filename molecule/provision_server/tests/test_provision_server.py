"""The server as nodes see it: who gets an answer of DHCP, who gets which files, and that nothing is armed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host
from testing.promises import Rollout

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


def arm(server: Host, site: Site, name: str, token: str = "word") -> None:
    order = {
        "node": name,
        "address": address(site, name),
        "what": "a test",
        "config": "DEFAULT a\nLABEL a\nKERNEL http://x/y\n",
        "files": {"kickstart.cfg": "text\n"},
        "token_sha256": hashlib.sha256(token.encode()).hexdigest(),
        "expires": int(server.check_output("date +%s")) + 600,
    }
    server.check_output("printf %%s %s | hal-provision arm %s", json.dumps(order), name)


def boots(host: Host, site: Site, name: str) -> str:
    return str(host.check_output("curl --silent --noproxy '*' %s", url(site, f"/boot/{name}")))


def test_nothing_is_armed_and_arming_one_node_changes_no_other(node: Node, site: Site) -> None:
    server, first, second = node(SERVER), node("hal01"), node("hal02")
    assert json.loads(server.check_output("hal-provision status"))["armed"] == []
    before = boots(second, site, "hal02")
    arm(server, site, "hal01")
    try:
        assert boots(first, site, "hal01").startswith("DEFAULT a")
        assert boots(second, site, "hal02") == before
    finally:
        server.check_output("hal-provision disarm hal01")
    assert "no entry here" in boots(first, site, "hal01")


def test_what_began_boots_its_disk_and_breaks_a_promise_until_somebody_has_seen_it(
    node: Node, site: Site, rollout: Rollout
) -> None:
    server, first = node(SERVER), node("hal01")
    authority = server.check_output("cat /etc/hal/provision-authority.pem")
    begin = (
        "printf %%s %s >/root/authority.pem && curl --silent --noproxy '*' --cacert /root/authority.pem"
        " --request POST --header 'X-HAL-Token: word' https://%s:8481/node/hal01/begin"
    )
    arm(server, site, "hal01")
    try:
        assert first.check_output(begin, authority, address(site, SERVER)) == "ok"
        assert "no entry here" in boots(first, site, "hal01")
        broken = ["every installation that began has ended"]
        assert rollout.broken_promises("provision_server", SERVER) == broken
        assert first.check_output(begin, authority, address(site, SERVER)) == "refused"
        assert server.check_output("hal-provision disarm hal01") == "hal01: disarmed"
        assert rollout.broken_promises("provision_server", SERVER) == broken
    finally:
        server.check_output("hal-provision disarm hal01")
    assert rollout.broken_promises("provision_server", SERVER) == []


def test_the_record_of_a_reimage_is_roots_and_the_service_reads_it(node: Node, site: Site, rollout: Rollout) -> None:
    server, path = node(SERVER), "/var/lib/hal-reimage/hal01.json"
    record = {
        "format": 1, "node": "hal01", "revision": 0, "step": "drain", "since": "2026-11-22T18:05:10Z", "state": "going",
        "waiting": "2 jobs", "reason": "", "ended": "", "drained_before": None, "old_boot_id": "", "host_key": "",
        "called_before": "", "job": "", "seconds": {},
        "plan": {
            "serial": "S1", "disk": "0x1", "wipe": [], "fingerprint": "x", "previous": "",
            "image": {"folder": "an-image", "sha256": "x", "arch": "ppc64le", "kernel": "4.18.0"},
        },
        "run": {
            "code": "K7QX-M2VD", "by": "a test", "began": "2026-11-22T18:05:10Z", "by_slurm": True,
            "next_state": "RESUME", "nodes": ["hal01"], "call": "1f",
        },
    }  # fmt: skip
    asks = "curl --silent --noproxy '*' %s"
    assert node("hal01").check_output(asks, url(site, "/node/hal01/reboot")) == "reboot"
    try:
        server.check_output("printf %%s %s | hal-reimage write hal01", json.dumps(record))
        assert server.check_output("stat --format '%%a %%U %%G' %s", path) == "640 root hal-provision"
        server.check_output("runuser -u hal-provision -- test -r %s", path)
        for place in (path, "/var/lib/hal-reimage"):
            assert server.run("runuser -u hal-provision -- test -w %s", place).rc == 1
        assert node("hal01").check_output(asks, url(site, "/node/hal01/reboot")) == "reimage"
        assert status_of(node("hal02"), url(site, "/node/hal01/reboot")) == "404"
        assert "2/11 drain" in server.check_output("hal-reimage status")
        assert rollout.broken_promises("provision_server", SERVER) == []
        server.check_output("truncate --size 10 %s", path)
        assert node("hal01").check_output(asks, url(site, "/node/hal01/reboot")) == "reboot"
        assert rollout.broken_promises("provision_server", SERVER) == ["every record of a reimage can be read"]
    finally:
        server.check_output("rm --force %s", path)


def test_a_changed_lease_and_a_strange_folder_are_mended(node: Node, rollout: Rollout) -> None:
    node(SERVER).check_output("sed -i 's/hal01/hal02/' /etc/hal/dnsmasq-hosts/hal01")
    node(SERVER).check_output("mkdir /etc/hal/provision-nodes/stray")
    done = rollout.converge()
    assert done.status == 0, done.output
    assert rollout.broken_promises("provision_server", SERVER) == []


def test_what_somebody_else_set_up_is_not_taken_over(node: Node, rollout: Rollout) -> None:
    server = node(SERVER)
    server.check_output("echo address=/lab/10.0.0.1 >/etc/dnsmasq.d/lab.conf")
    try:
        done = rollout.converge()
        assert done.status != 0
        assert "hal-mgmt1 has a DHCP server, or a dnsmasq, that is not this role" in done.words
        assert "/etc/dnsmasq.d/lab.conf:1:address=" in done.words
        broken = ["nothing else answers DHCP here or configures dnsmasq"]
        assert rollout.broken_promises("provision_server", SERVER) == broken
    finally:
        server.check_output("rm /etc/dnsmasq.d/lab.conf")
    assert rollout.broken_promises("provision_server", SERVER) == []


@pytest.mark.parametrize(
    ("given", "path", "why"),
    [
        ({"provision_server_tftp_root": '/var/lib/tft"p'}, "/etc/dnsmasq.d/hal.conf", 'missing "'),
        ({"provision_server_images_folder": '/srv/im"ages'}, "/etc/httpd/conf.d/hal-images.conf", "Alias takes"),
    ],
)
def test_a_file_that_its_program_cannot_read_replaces_nothing(
    node: Node, rollout: Rollout, given: dict[str, str], path: str, why: str
) -> None:
    """Asked before the file is replaced: a reboot between the two would leave the site without the service."""
    server = node(SERVER)
    before = server.file(path).content_string
    try:
        done = rollout.converge(**given)
        assert done.status != 0
        assert "failed to validate" in done.words
        assert why in done.words
        assert server.file(path).content_string == before
    finally:
        server.check_output("rm --force --recursive '/srv/im\"ages'")


def test_the_service_is_not_root(node: Node) -> None:
    server = node(SERVER)
    pid = server.check_output("systemctl show -p MainPID hal-provision").partition("=")[2]
    assert server.check_output("stat -c %%U /proc/%s", pid) == "hal-provision"
