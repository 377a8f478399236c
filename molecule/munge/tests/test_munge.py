"""MUNGE works between nodes. Nothing here reads roles/munge/expect.yml."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_run import PROJECT, of_scenario
from testinfra.host import Host

Node = Callable[[str], Host]
NODES = ("hal-login", "hal01")


def assert_believed(maker: Host, reader: Host) -> None:
    """Make a credential on one node and have the other read it."""
    credential = maker.check_output("echo a few words | munge").strip()
    answer = reader.run("echo '%s' | unmunge", credential)
    assert answer.rc == 0, answer.stdout
    assert "STATUS: Success (0)" in " ".join(answer.stdout.split())
    assert answer.stdout.rstrip().endswith("a few words")


@pytest.mark.parametrize(("maker", "reader"), [NODES, NODES[::-1]])
def test_a_credential_of_one_node_is_believed_by_the_other(node: Node, maker: str, reader: str) -> None:
    assert_believed(node(maker), node(reader))


def test_a_credential_that_was_touched_is_refused(node: Node) -> None:
    credential = node("hal-login").check_output("munge -n").strip()
    broken = credential[:20] + ("A" if credential[20] != "A" else "B") + credential[21:]
    assert node("hal01").run("echo '%s' | unmunge", broken).rc != 0


def test_keys_are_equal_and_only_munge_reads_them(node: Node) -> None:
    sums = {node(name).file("/etc/munge/munge.key").sha256sum for name in NODES}
    assert len(sums) == 1
    for name in NODES:
        key = node(name).file("/etc/munge/munge.key")
        assert (key.user, key.mode, key.size) == ("munge", 0o400, 128)
        assert node(name).run("runuser -u nobody -- cat /etc/munge/munge.key").rc != 0


def test_munged_reads_the_key_that_is_there(node: Node) -> None:
    """A daemon that still ran with the key planted before would be older than the key file."""
    for name in NODES:
        host = node(name)
        started = host.check_output('date +%s -d "$(systemctl show -p ExecMainStartTimestamp munge | cut -d= -f2-)"')
        written = host.check_output("stat -c %Y /etc/munge/munge.key")
        assert int(started) >= int(written) - 1


def test_the_key_is_not_in_the_journal(node: Node) -> None:
    for name in NODES:
        host = node(name)
        key = host.check_output("od -An -tx1 -v /etc/munge/munge.key | tr -d ' \\n'")
        assert len(key) == 256
        assert host.run("journalctl --no-pager | grep -qF %s", key[:64]).rc == 1


def test_munged_returns_after_a_reboot(node: Node) -> None:
    """systemd goes down and comes up, with /run empty: what runs then is what the boot started.

    The last test, because the journal does not come back either.
    """
    scenario = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
    node("hal01").check_output("touch /run/before-the-reboot")
    podman = [str(PROJECT / "molecule/shared/podman"), "stop", f"{scenario.name}-hal01"]
    subprocess.run(podman, check=True, capture_output=True)
    started = of_scenario(scenario).playbook("molecule/shared/create.yml")  # starts what is stopped, and waits for it
    assert started.status == 0, started.explain()

    assert not node("hal01").file("/run/before-the-reboot").exists
    assert node("hal01").service("munge").is_running
    assert_believed(node("hal01"), node("hal-login"))
    assert_believed(node("hal-login"), node("hal01"))
