"""What was declared is reached from another node, and nothing else is."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from running.ansible_run import PROJECT, of_scenario
from testinfra.host import Host
from testing.promises import Rollout
from testing.waiting import wait_for

SERVER, LOGIN, OTHER, PORTAL = "hal01", "hal-login", "hal-mgmt1", "hal-mgmt2"
SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
UNDECLARED, SLURMD, SRUN = 9999, 6818, 61500
IFCFG = "/etc/sysconfig/network-scripts/ifcfg-eth0"
Node = Callable[[str], Host]
Site = Callable[..., Any]

ANSWER = """
import os, socket, sys, time
listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listening.bind(("0.0.0.0", int(sys.argv[1])))
listening.listen(64)
while True:
    connection, _ = listening.accept()
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.1)
    connection.sendall(b"hello")
    connection.close()
"""
ASK = """
import socket, sys
try:
    print(socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=600).recv(5).decode())
except OSError as error:
    print(error)
"""

# Of so many connections wait until some are there, say how many are a little later, and hold them. At its end all are
# reset.
HOLD = """
import socket, struct, sys, time
address, port, number, least = sys.argv[1], *map(int, sys.argv[2:])
held = [socket.socket() for _ in range(number)]
for one in held:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.setblocking(False)
    one.connect_ex((address, port))
def is_there(one):
    try:
        return bool(one.getpeername())
    except OSError:
        return False
while sum(map(is_there, held)) < least:
    time.sleep(0.1)
time.sleep(5)
print(sum(map(is_there, held)), flush=True)
time.sleep(3600)
"""


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


def addresses(site: Site, name: str) -> dict[str, str]:
    found: dict[str, str] = next(host["addresses"] for host in site("hosts") if host["name"] == name)
    return found


def until(host: Host, condition: str) -> None:
    """Wait for what a node says itself."""
    host.check_output(f"timeout 600 sh -c {shlex.quote(f'until {condition}; do sleep 0.1; done')}")


@contextmanager
def listener(host: Host, port: int, after: str = "/") -> Iterator[None]:
    """A program of nobody's that listens on all addresses of a node, and answers once the file `after` is there."""
    unit = f"listener-{port}"
    host.check_output(f"/usr/bin/systemd-run --quiet --unit={unit} python3 -c {shlex.quote(ANSWER)} {port} {after}")
    try:
        until(host, f"ss -ltn | grep -q ':{port} '")
        yield
    finally:
        host.check_output(f"systemctl stop {unit}")


@contextmanager
def holding(host: Host, address: str, port: int, number: int, least: int) -> Iterator[int]:
    """Connections that a node asks for and holds; how many it got, when it got so many."""
    words = f"python3 -c {shlex.quote(HOLD)} {address} {port} {number} {least} >/run/held"
    host.check_output(f"/usr/bin/systemd-run --quiet --unit=holding sh -c {shlex.quote(words)}")
    try:
        until(host, "[ -s /run/held ]")
        yield int(host.file("/run/held").content_string)
    finally:
        host.check_output("systemctl stop holding && rm /run/held")


def ask(host: Host, address: str, port: int) -> str:
    answer: str = host.check_output(f"python3 -c {shlex.quote(ASK)} {address} {port}")
    return answer.strip()


def test_an_undeclared_port_is_closed_and_a_declared_one_open(node: Node, site: Site) -> None:
    management = addresses(site, SERVER)["management"]
    for port, expected in ((UNDECLARED, "No route to host"), (SLURMD, "hello"), (SRUN, "hello")):
        with listener(node(SERVER), port):
            assert ask(node(SERVER), "127.0.0.1", port) == "hello"
            assert expected in ask(node(OTHER), management, port)


def test_processes_of_jobs_find_each_other(node: Node, site: Site) -> None:
    """A node of Slurm may come in on any high port; this is the only one here, so the rule itself is looked at."""
    rules = node(SERVER).check_output("nft list chain inet firewalld filter_IN_management_allow")
    assert f"ip saddr {addresses(site, SERVER)['management']} tcp dport 1024-65535 accept" in rules
    with listener(node(SERVER), UNDECLARED):
        assert ask(node(OTHER), addresses(site, SERVER)["ipoib"], UNDECLARED) == "hello"


def test_the_portal_reaches_programs_of_jobs(node: Node, site: Site) -> None:
    """Jupyter in a job, to which Open OnDemand hands a user's browser on; nobody else comes in there."""
    management = addresses(site, SERVER)["management"]
    with listener(node(SERVER), 20123):
        assert ask(node(PORTAL), management, 20123) == "hello"
        assert "No route to host" in ask(node(OTHER), management, 20123)


def test_ports_follow_the_services_of_the_model(node: Node, site: Site) -> None:
    """slurmdbd is on the management node and slurmctld on the login node: each has its own port open."""
    for name, port, other in ((OTHER, 6819, 6817), (LOGIN, 6817, 6819)):
        address = addresses(site, name)["management"]
        with listener(node(name), port), listener(node(name), other):
            assert ask(node(SERVER), address, port) == "hello"
            assert "No route to host" in ask(node(SERVER), address, other)


def test_one_node_cannot_hold_all_connections_of_the_server_of_images(node: Node, site: Site) -> None:
    """By the network in which everything is let in neither."""
    with listener(node(OTHER), 80, after="/run/images"):
        for network in ("management", "ipoib"):
            address = addresses(site, OTHER)[network]
            with holding(node(SERVER), address, 80, 12, 8) as taken, holding(node(LOGIN), address, 80, 3, 3) as others:
                assert (taken, others) == (8, 3)


@pytest.mark.parametrize("name", [SERVER, LOGIN, OTHER])
def test_interfaces_are_where_they_belong_and_the_rest_is_closed(node: Node, name: str) -> None:
    active = node(name).check_output("firewall-cmd --get-active-zones").split()
    assert [word for word in active if word != "(default)"] == [
        "ipoib",
        "interfaces:",
        "ib0",
        "management",
        "interfaces:",
        "eth0",
    ]
    assert node(name).check_output("firewall-cmd --get-default-zone") == "other"
    assert node(name).check_output("firewall-cmd --zone=other --list-ports").split() == ["22/tcp"]
    assert node(name).service("firewalld").is_enabled


def test_what_was_set_up_by_hand_is_gone(node: Node) -> None:
    assert "old" not in node(SERVER).check_output("firewall-cmd --permanent --get-zones").split()
    assert "9999" not in node(SERVER).check_output("firewall-cmd --zone=management --list-ports")


def test_the_file_of_an_interface_names_its_zone(node: Node) -> None:
    """What ifup of Enterprise Linux 7 would tell firewalld at the next boot."""
    assert node(SERVER).file(IFCFG).content_string == "DEVICE=eth0\nONBOOT=yes\nZONE=management\n"


def test_what_somebody_opens_is_reported_and_withdrawn(node: Node, rollout: Rollout, site: Site) -> None:
    """In one rollout, which leaves a kept zone alone and breaks no connection."""
    host, address = node(SERVER), addresses(site, SERVER)["management"]
    host.check_output(
        f"firewall-cmd --quiet --zone=management --add-port={UNDECLARED}/tcp"
        " && firewall-cmd --quiet --zone=management --add-service=ftp"
        f" && firewall-cmd --quiet --zone=management --remove-port={SLURMD}/tcp"
        " && firewall-cmd --quiet --zone=trusted --change-interface=ib0"
        " && firewall-cmd --quiet --zone=dmz --add-source=192.0.2.0/24"
        " && firewall-cmd --quiet --permanent --zone=dmz --add-source=192.0.2.0/24"
        " && firewall-cmd --quiet --direct --add-rule ipv4 filter INPUT 0 -p tcp --dport 9998 -j ACCEPT"
        " && printf '<zone><short>late</short></zone>\\n' >/etc/firewalld/zones/late.xml"
        f" && sed -i /ZONE/d {IFCFG}"
    )
    promises = rollout.promises("firewall", SERVER, firewall_kept_zones=["dmz"])
    assert sorted(name for name, one in promises.items() if one["status"] == "fail") == [
        "interfaces stay in their zones after a boot [management]",
        "no zone that nobody declared waits for the next reload",
        "nothing else is open",
        "what is declared is open",
    ]
    assert set(promises["nothing else is open"]["observed"]) == {
        "direct rule ipv4 filter INPUT 0 -p tcp --dport 9998 -j ACCEPT",
        f"management port {UNDECLARED}/tcp",
        "management service ftp",
        "trusted interface ib0",
        "trusted target ACCEPT",
    }
    with listener(host, UNDECLARED, after="/run/go"):
        question = f"python3 -c {shlex.quote(ASK)} {address} {UNDECLARED} >/run/answer"
        node(OTHER).check_output(f"/usr/bin/systemd-run --quiet --unit=asking sh -c {shlex.quote(question)}")
        until(host, f"ss -tn | grep -q ':{UNDECLARED} '")
        done = rollout.converge("--limit", SERVER, firewall_kept_zones=["dmz"])
        assert done.status == 0, done.explain()
        assert "No route to host" in ask(node(OTHER), address, UNDECLARED)
        host.check_output("touch /run/go")
        until(node(OTHER), "[ -s /run/answer ]")
        assert node(OTHER).file("/run/answer").content_string.strip() == "hello"
    assert "192.0.2.0/24" in host.check_output("firewall-cmd --zone=dmz --list-sources")
    assert rollout.broken_promises("firewall", SERVER) == [  # nobody keeps the zone now
        "no zone that nobody declared waits for the next reload",
        "nothing else is open",
    ]


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("zones/management.xml", '<zone><port port="9" protocol="tpc"/></zone>', "INVALID_PROTOCOL"),
        ("direct.xml", '<direct><rule ipv="ipv9" table="x" chain="x" priority="0">x</rule></direct>', "INVALID_IPV"),
    ],
)
def test_what_firewalld_cannot_read_replaces_nothing(node: Node, path: str, text: str, why: str) -> None:
    listing = "find /etc/firewalld -type f -exec sha1sum {} + | sort"
    before = node(SERVER).check_output(listing)
    ansible = of_scenario(SCENARIO)
    # The good one comes first, and is not written either.
    good = {"path": "/etc/firewalld/zones/another.xml", "content": "<zone/>"}
    done = ansible.module(SERVER, "hal_files", {"files": [good, {"path": f"/etc/firewalld/{path}", "content": text}]})
    assert done.status != 0
    assert "firewall-offline-cmd refuses /etc/firewalld/" in done.output
    assert f"/etc/firewalld/{path}" in done.output
    assert why in done.output
    assert node(SERVER).check_output(listing) == before


def test_direct_rules_of_others_stay_beside_ours_as_long_as_they_are_kept(node: Node, rollout: Rollout) -> None:
    host, theirs = node(OTHER), "ipv4 filter INPUT 1 -p tcp --dport 9998 -j ACCEPT"
    ours = host.check_output("firewall-cmd --permanent --direct --get-all-rules").splitlines()
    host.check_output(f"firewall-cmd --quiet --permanent --direct --add-rule {theirs} && firewall-cmd --quiet --reload")
    assert rollout.broken_promises("firewall", OTHER) == ["nothing else is open"]
    for kept, rules in (["ipv4 filter INPUT 1 .*9998.*"], [*ours, theirs]), ([], ours):
        done = rollout.converge("--limit", OTHER, firewall_kept_direct_rules=kept, firewall_replace_ok=not kept)
        assert done.status == 0, done.explain()
        for where in ("", "--permanent"):
            shown = host.check_output(f"firewall-cmd {where} --direct --get-all-rules").splitlines()
            assert sorted(shown) == sorted(rules)


# What shows whether anybody changed something.
STATE = """
iptables-save | grep ^-A
systemctl is-active firewalld iptables
systemctl is-enabled firewalld iptables
find /etc/firewalld /var/lib/hal/firewall/open -type f -exec sha1sum {} + | sort
"""
# iptables with NAT, as iptables-services of CentOS 7 has it: a service that is active once its rules are loaded
BY_HAND = """
set -e
systemctl disable --quiet --now firewalld
rm -r /var/lib/hal/firewall
iptables -t nat -A POSTROUTING -s 192.0.2.0/24 -j MASQUERADE
iptables -A INPUT -p tcp --dport 9998 -j ACCEPT
echo '<zone target="ACCEPT"><source address="192.0.2.0/24"/></zone>' >/etc/firewalld/zones/old.xml
cat >/etc/systemd/system/iptables.service <<'END'
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
[Install]
WantedBy=multi-user.target
END
systemctl enable --quiet --now iptables
"""
AS_BEFORE = """
rm /etc/systemd/system/iptables.service
systemctl daemon-reload
iptables -D INPUT -p tcp --dport 9998 -j ACCEPT
iptables -t nat -D POSTROUTING -s 192.0.2.0/24 -j MASQUERADE
true
"""


def test_what_others_set_up_is_shown_and_stays_until_it_may_go(node: Node, rollout: Rollout, site: Site) -> None:
    """On a node that this role never was on."""
    host = node(LOGIN)
    host.check_output(BY_HAND)
    before = host.run(STATE).stdout
    with listener(host, 8443):
        refused = rollout.converge("--limit", LOGIN)
        assert refused.status != 0
        for part in (
            "iptables.service is active, enabled",
            "ipv4 nat -A POSTROUTING -s 192.0.2.0/24 -j MASQUERADE",
            "ipv4 filter -A INPUT -p tcp -m tcp --dport 9998 -j ACCEPT",
            "old target ACCEPT; old source 192.0.2.0/24",
            "8443/tcp, where python3 listens, would be closed",
            "-e firewall_replace_ok=true",
        ):
            assert part in refused.words, refused.explain()
        assert host.run(STATE).stdout == before
        assert ask(node(OTHER), addresses(site, LOGIN)["management"], 8443) == "hello"

        done = rollout.converge("--limit", LOGIN, firewall_replace_ok=True)
        assert done.status == 0, done.explain()
        assert "No route to host" in ask(node(OTHER), addresses(site, LOGIN)["management"], 8443)
    assert "old" not in host.check_output("firewall-cmd --get-zones").split()
    assert not host.service("iptables").is_enabled
    host.check_output(AS_BEFORE)
    assert rollout.broken_promises("firewall", LOGIN) == []


LOCKING_OUT = """
set -e
systemctl disable --quiet --now firewalld
mkdir -p /run/systemd/system/firewalld.service.d
cat >/run/systemd/system/firewalld.service.d/fault.conf <<'END'
[Service]
ExecStartPost=/usr/sbin/nft 'add table inet fault'
ExecStartPost=/usr/sbin/nft 'add chain inet fault input { type filter hook input priority -10; }'
ExecStartPost=/usr/sbin/nft 'add rule inet fault input tcp dport 22 tcp flags & (syn|ack) == syn drop'
ExecStopPost=-/usr/sbin/nft 'delete table inet fault'
END
systemctl daemon-reload
"""


def console(name: str, script: str) -> str:
    """What a shell script prints at the console of a node: not over SSH."""
    argv = [str(PROJECT / "molecule/virtual_hal/podman"), "exec", f"{SCENARIO.name}-{name}", "sh", "-c", script]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


@contextmanager
def locking_out(name: str) -> Iterator[str]:
    """A firewalld that shuts out whoever comes anew, while it runs; what there is before it starts."""
    console(name, LOCKING_OUT)
    try:
        yield console(name, STATE)
    finally:
        console(name, "rm -r /run/systemd/system/firewalld.service.d && systemctl daemon-reload")


# Without an open connection: as when it was closed meanwhile, or the run was ended.
@pytest.mark.parametrize("environment", [{}, {"ANSIBLE_SSH_ARGS": "-o ControlMaster=no -o ControlPath=none"}])
def test_a_firewall_that_locks_out_is_taken_back(rollout: Rollout, environment: dict[str, str]) -> None:
    with locking_out(OTHER) as before:
        done = of_scenario(SCENARIO).playbook(
            SCENARIO / "converge.yml", "--limit", OTHER, environment=environment, firewall_rollback_seconds=60
        )
        assert done.status != 0
        if not environment:
            assert f"{OTHER} lets nobody in with its new firewall" in done.words, done.explain()
        wait_for("the former firewall", lambda: console(OTHER, STATE), before.__eq__, 600)
        assert "inactive" in before
    done = rollout.converge("--limit", OTHER)
    assert done.status == 0, done.explain()
    assert rollout.broken_promises("firewall", OTHER) == []


def test_a_stopped_firewall_is_reported_and_started(node: Node, rollout: Rollout) -> None:
    host = node(SERVER)
    host.check_output("systemctl disable --quiet --now firewalld")
    promises = rollout.promises("firewall", SERVER)
    assert promises["firewalld runs"]["status"] == "fail"
    assert promises["nothing else is open"]["status"] == "unknown"
    done = rollout.converge("--limit", SERVER)  # which ends with the promises
    assert done.status == 0, done.explain()
    assert host.service("firewalld").is_running
    assert host.service("firewalld").is_enabled
