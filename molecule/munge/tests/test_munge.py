"""MUNGE works between nodes. Nothing here reads roles/munge/expect.yml."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from running.ansible_run import PROJECT, Run, of_scenario
from testinfra.host import Host
from testing.promises import Rollout

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


# ---------------------------------------------------------------- keys of before
KEY = "/etc/munge/munge.key"


def sums(node: Node) -> list[str]:
    return [node(name).file(KEY).sha256sum for name in NODES]


def plant(host: Host, text: str) -> None:
    """A key that somebody made, and munged with it."""
    host.check_output("printf %s >%s && systemctl restart munge", (text * 8)[:128], KEY)


def rolled_out(node: Node, *words: str, **given: bool) -> Run:
    """A rollout that shows no key; without a permission unless it is given."""
    keys = [node(name).run("od -An -tx1 -v %s | tr -d ' \\n'", KEY).stdout for name in NODES]
    keys += [node(name).run("base64 -w0 %s", KEY).stdout for name in NODES]
    done = Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])).converge(
        "-vvv", *words, **{"munge_rotation_ok": False, **given}
    )
    assert not any(key and key[:24] in done.output for key in keys)
    return done


def test_the_key_of_a_cluster_is_kept_and_a_new_node_gets_it(node: Node) -> None:
    """As on a cluster in production: the vault's key is another, and the daemon that jobs need is not restarted."""
    theirs = "the key of the cluster since 2019; "
    for name in NODES:
        plant(node(name), theirs)
    before = sums(node)
    running = [node(name).check_output("systemctl show -p MainPID munge") for name in NODES]
    done = rolled_out(node)
    assert done.status == 0, done.explain()
    assert "hal01,hal-login had their own munge key, the same on all; it is kept" in done.words, done.words
    assert sums(node) == before
    assert [node(name).check_output("systemctl show -p MainPID munge") for name in NODES] == running

    # Reinstalled; with --limit the others are in no play.
    for words in ((), ("--limit", "hal01")):
        node("hal01").check_output(f"systemctl stop munge; rm {KEY}")
        done = rolled_out(node, *words)
        assert done.status == 0, done.explain()
        assert sums(node) == before
        assert_believed(node("hal01"), node("hal-login"))


def test_a_key_that_differs_is_replaced_by_permission_alone(node: Node) -> None:
    plant(node("hal01"), "hal01 got another one somehow; ")
    before = sums(node)
    done = rolled_out(node)
    assert done.status != 0
    assert "hal01 has a key that is not munge_key" in done.words
    assert "-e munge_rotation_ok=true" in done.words
    assert sums(node) == before

    done = rolled_out(node, munge_rotation_ok=True)
    assert done.status == 0, done.explain()
    assert not set(sums(node)) & set(before)
    assert_believed(node("hal01"), node("hal-login"))


def test_a_node_that_the_cluster_does_not_believe_gets_its_key(node: Node) -> None:
    """Slurmctld's node has munge_key. Nothing is lost on the other, but for jobs that run there."""
    for words in ((), ("--limit", "hal01")):
        plant(node("hal01"), "hal01 got another one again; ")
        before = sums(node)
        stands_in = "cp /usr/bin/sleep /run/slurmstepd && systemd-run --unit=step /run/slurmstepd 600"
        node("hal01").check_output(stands_in)
        done = rolled_out(node, *words)
        node("hal01").check_output("systemctl stop step")
        assert done.status != 0
        assert "hal01 has a key that is not munge_key; hal-login munge_key; jobs run on hal01" in done.words
        assert sums(node) == before

        done = rolled_out(node, *words)
        assert done.status == 0, done.explain()
        assert "hal01 gets munge_key: the cluster has it" in done.words
        assert len(set(sums(node))) == 1
        assert_believed(node("hal01"), node("hal-login"))


def test_munged_returns_after_a_reboot(node: Node) -> None:
    """systemd goes down and comes up, with /run empty: what runs then is what the boot started.

    The last test, because the journal does not come back either.
    """
    scenario = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
    node("hal01").check_output("touch /run/before-the-reboot")
    podman = [str(PROJECT / "molecule/virtual_hal/podman"), "stop", f"{scenario.name}-hal01"]
    subprocess.run(podman, check=True, capture_output=True)
    started = of_scenario(scenario).playbook("molecule/virtual_hal/create.yml")  # starts what is stopped, and waits
    assert started.status == 0, started.explain()

    assert not node("hal01").file("/run/before-the-reboot").exists
    assert node("hal01").service("munge").is_running
    assert_believed(node("hal01"), node("hal-login"))
    assert_believed(node("hal-login"), node("hal01"))
