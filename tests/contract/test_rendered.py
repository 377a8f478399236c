"""What templates become says what the model and the defaults say: settings that no program asks for."""

from __future__ import annotations

import re
from collections import Counter

from hal_inventory.load import load
from tests.contract.project import PROJECT
from tests.contract.rendering import Rendered
from tests.contract.rules import daemons, selinux
from tests.contract.rules.centos7_systemd import directives


def rendered(name: str) -> list[Rendered]:
    """Each text that a template becomes; one that became none fails."""
    found = [one for texts in daemons.texts_of(PROJECT).values() for one in texts if one.path == f"roles/{name}"]
    assert found
    assert [one.fault for one in found if one.fault] == []
    return found


def words(text: str) -> Counter[str]:
    """The lines without comments, and how often each is there."""
    return Counter(" ".join(line.split()) for line in text.splitlines() if line.strip() and line[0] != "#")


def test_chronyd_follows_the_time_servers_and_sets_the_hardware_clock() -> None:
    for one in rendered("time/templates/chrony.conf.j2"):
        servers = {"hal-mgmt1": "10.64.0.11", "hal-mgmt2": "10.64.0.12"}
        others = [f"server {address} iburst" for name, address in servers.items() if name != one.host]
        serves = ["allow 10.64.0.0/24", "local stratum 10 orphan"] if one.host in servers else []
        keeps = ["driftfile /var/lib/chrony/drift", "makestep 1.0 3", "rtcsync", "logdir /var/log/chrony"]
        assert words(one.text) == Counter([*others, *keeps, *serves]), one.host


def test_every_daemon_that_writes_a_log_of_slurm_opens_it_anew() -> None:
    writers = [unit for unit in selinux.table()["paths"]["/var/log/slurm/"]["makes"] if unit.endswith(".service")]
    for one in rendered("slurm/templates/logrotate.j2"):
        (named,) = re.findall(r"for unit in (.*); do", one.text)
        assert sorted(f"{unit}.service" for unit in named.split()) == sorted(writers)
        assert "kill --kill-who=main --signal=USR2 $unit" in one.text
        assert {"weekly", "rotate 12", "compress", "missingok", "sharedscripts", "postrotate"} <= set(words(one.text))


def test_interfaces_are_put_back_at_boot_when_a_change_was_not_confirmed() -> None:
    for one in rendered("network/templates/hal-network-rollback.service.j2"):
        found = {(section, name, value) for _, section, name, value in directives(one.text)}
        for left in ("rollback", "undone"):
            assert ("Unit", "ConditionPathExists", f"|/var/lib/hal/network/{left}") in found
        assert ("Unit", "Before", "network.service NetworkManager.service") in found


def test_the_database_answers_this_node_alone() -> None:
    for one in rendered("slurm/templates/mariadb.cnf.j2"):
        assert words(one.text)["bind-address = 127.0.0.1"] == 1
        assert words(one.text)["innodb_lock_wait_timeout = 900"] == 1


def test_sshd_lets_in_by_certificates_and_by_nothing_weaker() -> None:
    for one in rendered("ssh/templates/sshd_config.j2"):
        found = words(one.text)
        for line in (
            "HostKey /etc/ssh/ssh_host_ed25519_key",
            "HostCertificate /etc/ssh/ssh_host_ed25519_key-cert.pub",
            "TrustedUserCAKeys /etc/ssh/user_ca.pub",
            "RevokedKeys /etc/ssh/revoked_keys",
            "PermitRootLogin prohibit-password",
            "PubkeyAuthentication yes",
            "ChallengeResponseAuthentication no",
            "KerberosAuthentication no",
            "GSSAPIAuthentication no",
            "HostbasedAuthentication no",
            "PermitEmptyPasswords no",
            "UsePAM yes",
        ):
            assert found[line] == 1, line


def test_every_node_has_its_address_in_each_network() -> None:
    suffixes = {"management": "", "ipoib": "-ib", "bmc": "-bmc", "access": "-access"}
    nodes = load(PROJECT / "inventory/hal/cluster.yml").nodes.values()
    expected = {
        (str(address), f"{node.name}{suffixes[network]}")
        for node in nodes
        for network, address in node.addresses.items()
        if network in suffixes
    }
    assert len(expected) > 2 * len(nodes)
    for one in rendered("hosts/templates/hosts.j2"):
        lines = [line.split() for line in one.text.splitlines() if line and line[0] != "#" and "localhost" not in line]
        assert {(line[0], name) for line in lines for name in line[1:]} >= expected
