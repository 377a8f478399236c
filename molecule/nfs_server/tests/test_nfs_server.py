"""What the server lets clients do, asked of exportfs and by a client that mounts; what is wrong is named and mended.

Each test goes on where the one before it has ended: a rollout takes longer than all else here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host
from testing.promises import Rollout

SERVER, CLIENT = "hal-data", "hal-mgmt1"
MOUNT = "/mnt/try"
EXPORTED = "what is declared is exported"
OTHERS = "nothing else is exported"
KEPT = "/var/lib/hal/nfs_server/before"
THREADS = "threads and versions are in effect"
ALICE, USERS = 5001, 5000
Node = Callable[[str], Host]
Site = Callable[..., Any]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


@pytest.fixture(scope="module")
def export(site: Site) -> dict[str, Any]:
    entry: dict[str, Any] = site("file_systems")["internal"]
    return entry


@pytest.fixture
def mounted(node: Node, export: dict[str, Any]) -> Iterator[Host]:
    """The client, with the export mounted by hand."""
    client = node(CLIENT)
    client.check_output(f"mkdir -p {MOUNT} && mount -t nfs4 -o soft,timeo=30 {export['address']}:/internal {MOUNT}")
    yield client
    client.run(f"umount -l {MOUNT}")


def exports(host: Host) -> list[str]:
    """One export a line."""
    return sorted(" ".join(line.split()) for line in host.check_output("exportfs -v").replace("\n\t", " ").splitlines())


def process(host: Host) -> str:
    """Which server it is: another one after a restart."""
    pid: str = host.check_output("cat /run/virtual-nfsd/pid")
    return pid


def observed(rollout: Rollout, **variables: Any) -> dict[str, Any]:
    """What was seen of each promise that does not hold."""
    results = rollout.promises("nfs_server", SERVER, **variables)
    return {name: one["observed"] for name, one in results.items() if one["status"] in ("fail", "unknown")}


def as_alice(command: str) -> str:
    return f"setpriv --reuid {ALICE} --regid {USERS} --clear-groups sh -c '{command}'"


def test_the_first_rollout_cuts_nobody_off(node: Node, rollout: Rollout, export: dict[str, Any]) -> None:
    """The server ran before, with exports of its own and the number of threads and the versions that EL7 has.

    A line for the declared folder and client is no longer there: it would be a second one.
    """
    host = node(SERVER)
    assert [line.partition("(")[0] for line in exports(host)] == [
        f"/internal {export['cidr']}",
        "/srv/secret <world>",
        "/srv/vendor <world>",
    ]
    assert observed(rollout) == {
        THREADS: "8 threads, versions 2,3,4",
        OTHERS: [
            "/srv/secret is exported to everybody",
            "/srv/vendor is exported to everybody",
            "/etc/exports: /srv/secret *(rw,no_root_squash)",
            "/etc/exports.d/vendor.exports: /srv/vendor *(ro)",
        ],
    }
    planted = f"/srv/secret *(rw,no_root_squash)\n/internal {export['cidr']}(ro)\n"
    assert host.file(f"{KEPT}/exports").content_string == planted
    assert "RPCNFSDARGS" in host.file(f"{KEPT}/nfs").content_string
    assert host.file(KEPT).mode == 0o700


def test_other_exports_are_named_and_mended_and_withdrawn_by_permission(
    node: Node, rollout: Rollout, export: dict[str, Any]
) -> None:
    host, cidr = node(SERVER), export["cidr"]
    before = process(host)
    host.check_output(f"exportfs -u {cidr}:/internal")
    assert observed(rollout)[EXPORTED] == [f"/internal is not exported to {cidr}"]
    for client in (cidr, "*"):
        host.check_output(f"exportfs -i -o rw,no_root_squash,no_subtree_check '{client}:/internal'")
    host.check_output("sed -i /sec=sys/d /etc/exports")  # for the next boot, or for whoever says `exportfs -r`
    # Neither a line of others that is broken nor one that somebody has withdrawn is the role's.
    host.check_output("echo '/srv/broken *(nonsense)' >>/etc/exports; exportfs -u '*:/srv/vendor'")
    broken = observed(rollout)
    assert broken[EXPORTED] == [f"/internal to {cidr}: no_root_squash, declared root_squash"]
    assert "/internal is exported to everybody" in broken[OTHERS]
    assert "the next boot exports what is declared" in broken

    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert process(host) == before
    assert "Not restarted without nfs_server_restart_ok" in done.words
    assert "/srv/secret is exported to everybody" in done.words
    assert sorted(observed(rollout)) == sorted([OTHERS, THREADS])
    assert [line.partition("(")[0] for line in exports(host)] == [
        f"/internal {cidr}",
        "/internal <world>",
        "/srv/secret <world>",
    ]

    done = rollout.converge(nfs_server_restart_ok=True, nfs_server_withdraw_ok=True)
    assert done.status == 0, done.explain()
    assert process(host) != before
    assert host.check_output("cat /proc/fs/nfsd/threads /proc/fs/nfsd/versions") == "32\n-2 -3 +4 +4.1 -4.2"
    assert observed(rollout) == {}
    assert host.file(f"{KEPT}/vendor.exports").content_string == "/srv/vendor *(ro)\n"
    assert "/srv/secret" in host.file(f"{KEPT}/exports").content_string, "it is what was there first"
    host.check_output("grep -q /srv/broken /etc/exports.*~")


def test_the_declared_file_system_is_exported_and_nothing_else(node: Node, export: dict[str, Any]) -> None:
    (line,) = exports(node(SERVER))
    path, _, rest = line.partition(" ")
    client, _, options = rest.rstrip(")").partition("(")
    assert (path, client) == (export["export"], export["cidr"])
    assert {"rw", "sync", "root_squash", "no_subtree_check", "sec=sys"} <= set(options.split(","))
    assert not node(SERVER).file("/etc/exports.d/vendor.exports").exists
    assert node(SERVER).service("nfs-server").is_enabled


def test_a_client_writes_as_its_users_and_its_root_is_nobody(node: Node, mounted: Host) -> None:
    server = node(SERVER)
    server.check_output(f"install -d -o {ALICE} -g {USERS} /internal/team && install -d -m 1777 /internal/all")
    mounted.check_output(as_alice(f"echo from a client >{MOUNT}/team/file"))
    assert (
        server.check_output("stat -c %u:%g /internal/team/file; cat /internal/team/file") == "5001:5000\nfrom a client"
    )
    assert mounted.run(f"touch {MOUNT}/file").rc != 0
    mounted.check_output(f"touch {MOUNT}/all/of-root")
    assert server.check_output("stat -c %u /internal/all/of-root") == "65534"
    assert "Permission denied" in mounted.run(f"touch {MOUNT}/team/of-root").stderr


def test_another_network_may_not_mount(node: Node, site: Site) -> None:
    """Asked by the same client, through its other interface."""
    address = next(entry for entry in site("hosts") if entry["name"] == SERVER)["addresses"]["ipoib"]
    refused = node(CLIENT).run(f"mkdir -p {MOUNT} && mount -t nfs4 -o soft,timeo=30 {address}:/internal {MOUNT}")
    assert refused.rc == 32
    assert "access denied by server" in refused.stderr


def test_a_server_that_does_not_serve_is_named_and_started(node: Node, rollout: Rollout) -> None:
    host = node(SERVER)
    host.check_output("rpc.nfsd 0")
    assert observed(rollout) == {"NFS server listens": False, THREADS: "not running"}
    host.check_output("systemctl disable --quiet --now nfs-server")
    host.check_output("rm /etc/systemd/system/nfs-server.service.d/90-hal.conf && systemctl daemon-reload")
    broken = observed(rollout)
    assert broken["NFS server runs"] == "inactive"
    assert broken["NFS server starts at boot"] is False
    assert "server waits for the disks at boot [/internal]" in broken
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert observed(rollout) == {}
    waits = host.check_output("systemctl show --property=RequiresMountsFor nfs-server").partition("=")[2]
    assert "/internal" in waits.split()


def test_options_change_without_a_restart(node: Node, rollout: Rollout, mounted: Host) -> None:
    host = node(SERVER)
    before = process(host)
    mounted.check_output(as_alice(f"touch {MOUNT}/team/before"))
    read_only = {"internal": ["ro", "sync", "root_squash", "no_subtree_check", "sec=sys"]}
    done = rollout.converge(nfs_server_options_by_file_system=read_only)
    assert done.status == 0, done.explain()
    assert mounted.run(as_alice(f"touch {MOUNT}/team/after")).rc != 0
    assert mounted.check_output(f"ls {MOUNT}/team") == "before\nfile"
    # A running server learns of it without a rollout as well, from the file that the rollout has written.
    host.check_output("sed -i 's/(ro,/(rw,/' /etc/exports && exportfs -ra")
    mounted.check_output(as_alice(f"touch {MOUNT}/team/after"))
    assert process(host) == before


def test_a_folder_whose_disks_are_gone_is_not_exported(node: Node, rollout: Rollout, export: dict[str, Any]) -> None:
    """The RAID set of the model is a file system in memory here."""
    host, required = node(SERVER), {"nfs_server_mounts_required": True}
    host.check_output("systemctl stop nfs-server && umount /internal")
    assert observed(rollout, **required)["disks of an export are mounted [/internal]"] is False
    done = rollout.converge(**required)
    assert done.status != 0
    assert "Nothing is mounted at /internal, where the model has a RAID set" in done.words

    host.check_output("mount -t tmpfs -o size=1m,mode=0755 disks /internal")
    done = rollout.converge(**required)
    assert done.status == 0, done.explain()
    assert observed(rollout, **required) == {}
    assert "mountpoint=/internal" in host.check_output("cat /etc/exports")

    # nfs-utils itself lets nobody in while it is not mounted.
    host.check_output("systemctl stop nfs-server && umount /internal && systemctl start nfs-server")
    refused = node(CLIENT).run(
        f"mkdir -p {MOUNT} && mount -t nfs4 -o soft,timeo=30 {export['address']}:/internal {MOUNT}"
    )
    assert refused.rc == 32
    assert list(observed(rollout, **required)) == ["disks of an export are mounted [/internal]"]


def test_a_server_of_nothing_is_named_and_stopped_by_permission(
    node: Node, rollout: Rollout, export: dict[str, Any]
) -> None:
    """As if the model had given its file system to another node."""
    host = node(SERVER)
    before = process(host)
    done = rollout.converge(__nfs_server_exports=[])
    assert done.status == 0, done.explain()
    assert process(host) == before
    assert observed(rollout, __nfs_server_exports=[]) == {
        "nothing is served where the model has nothing [running]": True,
        "nothing is served where the model has nothing [enabled]": True,
        OTHERS: [f"/internal is exported to {export['cidr']}"],  # until the next boot
    }
    done = rollout.converge(__nfs_server_exports=[], nfs_server_withdraw_ok=True)
    assert done.status == 0, done.explain()
    assert observed(rollout, __nfs_server_exports=[]) == {}
    assert exports(host) == []


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"nfs_server_threads": 0}, "nfs_server_threads is 0; write 1 to 1024"),
        (
            {"nfs_server_options": ["rw", "sync", "no_root_sqash"]},
            "internal: no_root_sqash is not an option of exports(5)",
        ),
        (
            {"nfs_server_options_by_file_system": {"internl": ["ro"]}},
            "nfs_server_options_by_file_system names internl; the model's NFS file systems are internal",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(rollout: Rollout, variables: dict[str, Any], said: str) -> None:
    done = rollout.converge(**variables)
    assert done.status != 0
    assert said in done.words
