"""MUNGE works between nodes. Nothing here reads roles/munge/expect.yml."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from testinfra.host import Host

Node = Callable[[str], Host]
NODES = ("hal-login", "hal01")


@pytest.mark.parametrize(("maker", "reader"), [NODES, NODES[::-1]])
def test_a_credential_of_one_node_is_believed_by_the_other(node: Node, maker: str, reader: str) -> None:
    credential = node(maker).check_output("echo from %s | munge", maker)
    answer = node(reader).run("echo '%s' | unmunge", credential.strip())
    assert answer.rc == 0, answer.stdout
    assert "STATUS:          Success (0)" in answer.stdout.replace("STATUS:           ", "STATUS:          ")
    assert answer.stdout.rstrip().endswith(f"from {maker}")


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


def test_munged_runs_and_returns_after_a_reboot(node: Node) -> None:
    for name in NODES:
        service = node(name).service("munge")
        assert service.is_running
        assert service.is_enabled


def test_munged_reads_the_key_that_is_there(node: Node) -> None:
    """A daemon that still ran with the key planted before would be older than the key file."""
    for name in NODES:
        host = node(name)
        started = host.check_output('date +%s -d "$(systemctl show -p ExecMainStartTimestamp --value munge)"')
        written = host.check_output("stat -c %Y /etc/munge/munge.key")
        assert int(started) >= int(written) - 1


def test_the_key_is_not_in_the_journal(node: Node) -> None:
    for name in NODES:
        host = node(name)
        key = host.check_output("od -An -tx1 -v /etc/munge/munge.key | tr -d ' \\n'")
        assert len(key) == 256
        assert host.run("journalctl --no-pager | grep -qF %s", key[:64]).rc == 1
