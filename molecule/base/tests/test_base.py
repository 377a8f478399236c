"""What every node has in common is in effect, not only written down; and a second manager is noticed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testinfra.host import Host
from testing.promises import Rollout

NODES = ["hal-mgmt2", "hal01"]
PACKAGES = ["bash-completion", "lsof", "rsync", "tmux", "unzip", "wget"]
PUPPET_STATE = "/opt/puppetlabs/puppet/cache/state"
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


@pytest.fixture
def puppet(node: Node) -> Iterator[Host]:
    """hal01 with a Puppet agent that runs and starts at boot; without one after the test."""
    host = node("hal01")
    host.check_output("dnf --quiet --assumeyes install puppet-agent && systemctl enable --quiet --now puppet")
    yield host
    host.check_output(
        f"systemctl disable --quiet --now puppet; rm -rf {PUPPET_STATE} /etc/cron.d/puppet;"
        " dnf --quiet --assumeyes remove puppet-agent"
    )


@pytest.fixture
def selinux_says(node: Node) -> Iterator[Callable[[str], None]]:
    """Return a function that has hal01's getenforce say a mode; all is as before after the test."""
    host, program, config = node("hal01"), "/usr/local/bin/getenforce", "/etc/selinux/config"
    host.check_output(f"cp {config} {config}.before")
    yield lambda mode: host.check_output(f"printf '#!/bin/sh\necho {mode}\n' >{program} && chmod 755 {program}")
    host.check_output(f"rm -f {program}; mv {config}.before {config}")


@pytest.mark.parametrize("name", NODES)
def test_packages_are_installed(node: Node, name: str) -> None:
    assert node(name).run("rpm -q --queryformat '%{name} ' " + " ".join(PACKAGES)).stdout.split() == PACKAGES


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("net.core.somaxconn", ["4096"]),
        ("net.ipv4.tcp_rmem", ["4096", "87380", "16777216"]),
        ("net.ipv4.tcp_wmem", ["4096", "65536", "16777216"]),
    ],
)
def test_a_kernel_setting_is_in_effect(node: Node, name: str, setting: str, words: list[str]) -> None:
    assert node(name).check_output(f"sysctl -n {setting}").split() == words


def test_kernel_settings_survive_a_boot(node: Node) -> None:
    host = node("hal01")
    host.check_output("sysctl -w net.core.somaxconn=77")
    host.check_output("/lib/systemd/systemd-sysctl || true")  # what runs at boot; what is not ours to set fails there
    assert host.check_output("sysctl -n net.core.somaxconn") == "4096"


@pytest.mark.parametrize("name", NODES)
def test_a_withdrawn_setting_is_gone_and_other_lines_stay(node: Node, name: str) -> None:
    saved = node(name).check_output("cat /etc/sysctl.conf")
    assert "tcp_keepalive_time" not in saved
    assert "net.ipv4.tcp_syn_retries=5" in saved.replace(" ", "").splitlines()
    assert saved.count("net.core.somaxconn") == 1


def test_a_new_session_has_the_declared_limits(node: Node) -> None:
    host = node("hal01")
    assert host.check_output("runuser -l bob -c 'ulimit -Sn'") == "4096"
    assert host.check_output("runuser -l alice -c 'ulimit -Sn'") == "2048"


def test_hardware_threads_are_set_on_power_and_nowhere_else(node: Node) -> None:
    assert node("hal01").check_output("ppc64_cpu --smt") == "SMT=4"
    assert node("hal01").service("hal-smt").is_enabled
    assert not node("hal-mgmt2").file("/etc/systemd/system/hal-smt.service").exists


@pytest.mark.parametrize("name", NODES)
def test_the_clock_shows_the_time_of_the_zone(node: Node, name: str) -> None:
    assert node(name).check_output("date +%Z") in ("CST", "CDT")


@pytest.mark.parametrize("name", NODES)
def test_the_journal_is_on_disk(node: Node, name: str) -> None:
    host = node(name)
    host.check_output("logger -t promise kept-over-a-boot")
    host.check_output("/usr/bin/journalctl --sync")
    kept = host.check_output("journalctl --directory=/var/log/journal --identifier=promise --output=cat")
    assert "kept-over-a-boot" in kept


def selinux(rollout: Rollout, mode: str) -> dict[str, tuple[str, str, str]]:
    """What the role says of SELinux on hal01 when `mode` is declared: {id: (status, severity, observed)}."""
    results = rollout.promises("base", "hal01", base_selinux_mode=mode)
    return {
        name.removeprefix("SELinux mode "): (result["status"], result["severity"], result["observed"])
        for name, result in results.items()
        if name.startswith("SELinux mode")
    }


@pytest.fixture
def denied(node: Node) -> Iterator[str]:
    """The audit log of a permissive hal01 on which two daemons were denied something; what it says in a rollout."""
    avc = 'type=AVC msg=audit(1.2:{}): avc:  denied  {{ read }} for  pid=7 comm="{}" name="x" tclass=file permissive=1'
    lines = "\n".join(avc.format(number, name) for number, name in enumerate(["sshd", "httpd", "httpd"]))
    node("hal01").check_output(f"mkdir -p /var/log/audit && echo '{lines}' >/var/log/audit/audit.log")
    yield "denied in /var/log/audit/audit.log: httpd (2), sshd (1)"
    node("hal01").check_output("rm /var/log/audit/audit.log")


@pytest.mark.parametrize("live", ["Permissive", "Enforcing"])
def test_selinux_does_not_become_stricter_without_permission(
    node: Node, rollout: Rollout, selinux_says: Callable[[str], None], denied: str, live: str
) -> None:
    """A node of old with a file that says permissive: a mode that one changed by hand is lost at the next boot."""
    host = node("hal01")
    host.check_output("sed -i 's/^SELINUX=.*/SELINUX=permissive/' /etc/selinux/config")
    selinux_says(live)
    before = host.check_output("sha256sum /etc/selinux/config")
    done = rollout.converge("--limit", "hal01", base_selinux_mode="enforcing")
    assert done.status == 0, done.explain()
    assert done.changes == {}
    assert (
        f"hal01: SELinux is {live} now, permissive in /etc/selinux/config, declared enforcing; {denied}. Neither is"
        " changed without base_selinux_stricter_ok: true; or declare base_selinux_mode: permissive" in done.words
    )
    assert host.check_output("sha256sum /etc/selinux/config") == before
    assert selinux(rollout, "enforcing")["after a reboot"] == ("fail", "warning", "permissive")


def test_a_node_without_selinux_is_not_given_one_without_permission(
    node: Node, rollout: Rollout, selinux_says: Callable[[str], None]
) -> None:
    host = node("hal01")
    host.check_output("sed -i 's/^SELINUX=.*/SELINUX=disabled/' /etc/selinux/config")
    selinux_says("Disabled")
    booleans = {"use_nfs_home_dirs": True}
    done = rollout.converge("--limit", "hal01", base_selinux_mode="enforcing", base_selinux_booleans=booleans)
    assert done.status == 0, done.explain()
    assert done.changes == {}
    assert "the boot into it labels every file first, which may take long" in done.words
    assert host.file("/etc/selinux/config").contains("SELINUX=disabled")


def test_a_mode_of_selinux_that_needs_a_boot_is_written_and_said_to_be_pending(
    node: Node, rollout: Rollout, selinux_says: Callable[[str], None]
) -> None:
    """The role as on a site whose nodes came without SELinux, which is what this kernel is."""
    selinux_says("Disabled")
    done = rollout.converge(
        "--limit",
        "hal01",
        base_selinux_mode="enforcing",
        base_selinux_stricter_ok=True,
        base_packages_extra=["libselinux-python"],
    )
    assert done.status == 0, done.explain()
    assert "pending reboot: Disabled now, enforcing after it" in done.words
    assert "SELINUX=enforcing" in node("hal01").check_output("cat /etc/selinux/config").splitlines()
    pending = "pending reboot: Disabled now, enforcing after it"
    assert selinux(rollout, "enforcing") == {
        "in effect": ("pass", "warning", pending),
        "waits for no reboot": ("fail", "warning", pending),
        "after a reboot": ("pass", "warning", "enforcing"),
    }

    # What is not in the file, and what could be set at once, waits for no boot: it is wrong.
    assert selinux(rollout, "permissive") == {
        "in effect": ("fail", "warning", "Disabled"),
        "waits for no reboot": ("pass", "warning", "Disabled"),
        "after a reboot": ("fail", "warning", "enforcing"),
    }
    selinux_says("Permissive")
    assert selinux(rollout, "enforcing")["in effect"] == ("fail", "warning", "Permissive")
    node("hal01").check_output("sed -i 's/^SELINUX=.*/SELINUX=disabled/' /etc/selinux/config")
    pending = "pending reboot: Permissive now, disabled after it"
    assert selinux(rollout, "disabled")["waits for no reboot"] == ("fail", "warning", pending)
    selinux_says("Disabled")
    assert {status for status, _severity, _seen in selinux(rollout, "disabled").values()} == {"pass"}


def test_a_puppet_agent_stops_the_play_and_beside_one_that_is_allowed_they_are_mended(
    node: Node, rollout: Rollout, puppet: Host
) -> None:
    host = node("hal01")
    host.check_output("sysctl -w net.core.somaxconn=128")
    host.check_output("echo net.ipv4.tcp_wmem = 1 2 3 >/etc/sysctl.d/zz-later.conf")
    host.check_output("echo net.ipv4.tcp_keepalive_time = 1 >>/etc/sysctl.conf")
    host.check_output("echo '* soft nofile 128' >/etc/security/limits.d/99-later.conf")
    host.check_output("ln -sf /usr/share/zoneinfo/Asia/Tokyo /etc/localtime")
    host.check_output("rpm -e lsof")
    host.check_output("ppc64_cpu --smt=1 && systemctl disable --quiet hal-smt")
    host.check_output("rm /etc/systemd/journald.conf.d/90-hal.conf && systemctl restart systemd-journald")

    done = rollout.converge()
    assert done.status != 0
    assert "A Puppet agent still manages hal01: service puppet is running; service puppet starts at boot." in done.words
    assert "systemctl disable --now puppet" in done.words
    assert "base_puppet_coexist: true" in done.words
    assert "fatal: [hal-mgmt2]" not in done.output
    assert host.check_output("sysctl -n net.core.somaxconn") == "128", "the play went on"

    # What others wrote to win over us, and the threads of a running node, are for an administrator.
    host.check_output("rm /etc/sysctl.d/zz-later.conf /etc/security/limits.d/99-later.conf && ppc64_cpu --smt=4")
    done = rollout.converge("--limit", "hal01", base_puppet_coexist=True)
    assert done.status == 0, done.explain()
    results = rollout.promises("base", "hal01", base_puppet_coexist=True).values()
    wrong = [(result["id"], result["severity"]) for result in results if result["status"] in ("fail", "unknown")]
    assert wrong == [("no Puppet agent works beside these roles", "warning")]


def test_an_agent_without_a_service_is_noticed(rollout: Rollout, puppet: Host) -> None:
    puppet.check_output(
        f"systemctl disable --quiet --now puppet && mkdir -p {PUPPET_STATE}"
        f" && touch {PUPPET_STATE}/last_run_summary.yaml {PUPPET_STATE}/agent_catalog_run.lock"
    )
    puppet.check_output("echo '*/30 * * * * root /opt/puppetlabs/bin/puppet agent --onetime' >/etc/cron.d/puppet")
    result = rollout.promises("base", "hal01")["no Puppet agent manages this node"]
    assert result["status"] == "fail"
    signs = str(result["observed"])
    assert "service" not in signs
    assert "cron runs it: /etc/cron.d/puppet" in signs
    assert f"a run is under way: {PUPPET_STATE}/agent_catalog_run.lock" in signs
    assert "it last ran at " in signs


def test_an_agent_that_is_disabled_or_long_gone_is_no_manager(rollout: Rollout, puppet: Host) -> None:
    puppet.check_output(f"mkdir -p {PUPPET_STATE} && touch {PUPPET_STATE}/agent_disabled.lock")
    assert rollout.broken_promises("base", "hal01") == []
    # The lock holds the agent; "puppet apply" does not look at it.
    puppet.check_output("echo '0 * * * * root /opt/puppetlabs/bin/puppet apply /srv/site.pp' >/etc/cron.d/puppet")
    assert rollout.broken_promises("base", "hal01") != []
    puppet.check_output(
        f"systemctl disable --quiet --now puppet; rm {PUPPET_STATE}/agent_disabled.lock /etc/cron.d/puppet;"
        f" touch -d '2 days ago' {PUPPET_STATE}/last_run_summary.yaml"
    )
    assert rollout.broken_promises("base", "hal01") == []
