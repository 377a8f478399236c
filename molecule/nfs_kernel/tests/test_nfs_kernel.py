"""The kernel's own NFS server and client, in virtual machines: what containers cannot show of the two roles.

Each test goes on where the one before it has ended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from promises import Rollout
from testinfra.host import Host

SERVER, CLIENT = "store01", "client01"
SOURCE = "10.65.77.13:/srv/internal"
ANSWERS = "server answers [internal]"
DECLARED = "mounts are the declared ones"
OTHER_MOUNTS = "nothing else is mounted by NFS"
OTHER_EXPORTS = "nothing else is exported"
THREADS = "threads and versions are in effect"
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


@pytest.fixture
def silent(node: Node) -> Iterator[None]:
    """The server hears its client and answers nothing: as with a cable that is out, no connection is refused."""
    node(SERVER).check_output("ip route add blackhole 10.65.77.1/32")
    yield
    node(SERVER).check_output("ip route del blackhole 10.65.77.1/32")


def observed(rollout: Rollout, role: str, name: str) -> dict[str, Any]:
    """What was seen of each promise that does not hold."""
    results = rollout.promises(role, name)
    return {one: result["observed"] for one, result in results.items() if result["status"] in ("fail", "unknown")}


def mounts(host: Host) -> dict[str, tuple[str, set[str]]]:
    """Source and options of each mount of NFS, from the kernel."""
    rows = [line.split() for line in host.file("/proc/self/mounts").content_string.splitlines()]
    return {row[1]: (row[0], set(row[3].split(","))) for row in rows if row[2] == "nfs4"}


def test_the_first_rollout_cuts_nobody_off(node: Node, rollout: Rollout) -> None:
    server, client = node(SERVER), node(CLIENT)
    client.check_output("echo still here >/mnt/old/file")
    assert server.check_output("cat /srv/old/file") == "still here"
    assert observed(rollout, "nfs_server", SERVER) == {
        THREADS: "8 threads, versions 4",
        OTHER_EXPORTS: [
            "/srv/old is exported to 10.66.77.0/24",
            "/etc/exports: /srv/old 10.66.77.0/24(rw,sync)",
        ],
    }
    assert observed(rollout, "nfs_client", CLIENT) == {
        OTHER_MOUNTS: ["/mnt/old is mounted by NFS, or in /etc/fstab"],
    }


def test_by_permission_the_kernel_serves_what_is_declared_and_nothing_else(node: Node, rollout: Rollout) -> None:
    server, client = node(SERVER), node(CLIENT)
    permissions = ("nfs_server_restart_ok", "nfs_server_withdraw_ok", "nfs_client_withdraw_ok")
    done = rollout.converge(**dict.fromkeys(permissions, True))
    assert done.status == 0, done.explain()
    assert observed(rollout, "nfs_server", SERVER) == {}
    assert observed(rollout, "nfs_client", CLIENT) == {}
    assert server.check_output("cat /proc/fs/nfsd/threads") == "32"
    assert server.check_output("pgrep -c -x nfsd") == "32", "threads of the kernel"
    assert {"-3", "+4", "+4.1"} <= set(server.check_output("cat /proc/fs/nfsd/versions").split())
    assert client.check_output("grep /mnt/old /proc/self/mounts /etc/fstab || :") == ""


def test_the_kernels_client_mounts_as_declared(node: Node) -> None:
    client = node(CLIENT)
    client.check_output("echo from a client >/internal/file")
    source, options = mounts(client)["/internal"]
    assert source == SOURCE
    wanted = {"rw", "nosuid", "nodev", "vers=4.1", "hard", "proto=tcp", "timeo=600", "retrans=2", "sec=sys"}
    assert wanted <= options
    assert node(SERVER).check_output("stat -c %u /srv/internal/file; cat /srv/internal/file") == "65534\nfrom a client"


def test_a_file_system_below_an_export_belongs_to_its_mount(node: Node, rollout: Rollout) -> None:
    client = node(CLIENT)
    assert client.check_output("ls /internal/deep") == "lost+found"
    assert mounts(client)["/internal/deep"][0] == f"{SOURCE}/deep"
    assert observed(rollout, "nfs_client", CLIENT) == {}


def test_another_network_may_not_mount(node: Node) -> None:
    refused = node(CLIENT).run("mkdir -p /mnt/try && mount -t nfs4 -o soft,timeo=30 10.66.77.13:/srv/internal /mnt/try")
    assert refused.rc == 32
    assert "No such file or directory" in refused.stderr or "access denied" in refused.stderr, refused.stderr


def test_what_the_kernel_holds_otherwise_is_named_and_mounted_anew(node: Node, rollout: Rollout) -> None:
    client = node(CLIENT)
    client.check_output("umount /internal/deep; systemctl stop internal.automount internal.mount")
    client.check_output(f"mount -t nfs4 -o rw,soft,vers=4.2,nodev {SOURCE} /internal && ls /internal/deep")
    said = "/internal is mounted with soft, declared hard, vers=4.2, declared vers=4.1, no nosuid"
    assert observed(rollout, "nfs_client", CLIENT)[DECLARED] == [said]
    done = rollout.converge("--limit", CLIENT)
    assert done.status == 0, done.explain()
    assert observed(rollout, "nfs_client", CLIENT) == {}
    assert {"hard", "vers=4.1", "nosuid"} <= mounts(client)["/internal"][1]


def test_a_server_that_is_silent_is_named_and_nothing_is_lost(node: Node, rollout: Rollout, silent: None) -> None:
    """A program that writes meanwhile waits; who does not look there does not."""
    client = node(CLIENT)
    client.check_output("rm -f /root/done; (echo kept >/internal/kept; echo $? >/root/done) >/dev/null 2>&1 &")
    begun = time.monotonic()
    assert observed(rollout, "nfs_client", CLIENT) == {ANSWERS: "no answer within 5 s"}
    client.check_output("bash -lc 'cd; id -un; exit'")
    assert time.monotonic() - begun < 60
    assert not client.file("/root/done").exists, "it did not wait"


def test_what_waited_goes_on(node: Node, rollout: Rollout) -> None:
    node(CLIENT).check_output("timeout 120 sh -c 'until [ -s /root/done ]; do sleep 0.2; done'")
    assert node(CLIENT).check_output("cat /root/done") == "0"
    assert node(SERVER).check_output("cat /srv/internal/kept") == "kept"
    assert observed(rollout, "nfs_client", CLIENT) == {}
