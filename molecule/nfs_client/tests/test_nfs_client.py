"""Mounts as the kernel has them, with servers that answer, hang and stop: nobody waits in vain, each fault is named."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host
from testing.promises import Rollout

SERVER, SECOND, CLIENT = "hal-data", "hal-dtn", "hal-mgmt1"
INTERNAL = "server answers [internal]"
AUTOMOUNT = "file system is mounted at the first access [internal]"
DECLARED = "mounts are the declared ones"
OTHERS = "nothing else is mounted by NFS"
OLD = "192.0.2.1:/old /mnt/old nfs4 rw,noauto 0 0"
LOGIN_SECONDS = 2
Node = Callable[[str], Host]
Site = Callable[..., Any]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


def server(host: Host, sign: str) -> None:
    """Stop (without a word), or continue, the process in the kernel's place."""
    host.check_output(f"kill -{sign} $(cat /run/virtual-nfsd/pid)")


@pytest.fixture
def hung(node: Node) -> Iterator[None]:
    """The server of /internal takes connections and answers nothing."""
    server(node(SERVER), "STOP")
    yield
    server(node(SERVER), "CONT")


@pytest.fixture
def stopped(node: Node) -> Iterator[None]:
    """The server of /internal refuses connections."""
    node(SERVER).check_output("systemctl stop nfs-server")
    yield
    node(SERVER).check_output("systemctl start nfs-server")


def observed(rollout: Rollout, name: str = CLIENT, **variables: Any) -> dict[str, Any]:
    """What was seen of each promise that does not hold."""
    results = rollout.promises("nfs_client", name, **variables)
    return {one: result["observed"] for one, result in results.items() if result["status"] in ("fail", "unknown")}


def mounts(host: Host) -> dict[str, tuple[str, str]]:
    """Source and type of each mount of NFS, from the kernel."""
    rows = [line.split() for line in host.file("/proc/self/mounts").content_string.splitlines()]
    return {row[1]: (row[0], row[2]) for row in rows if row[2] == "fuse.nfs"}


def seconds_of_a_login(host: Host) -> float:
    """How long a login shell takes, as a user sees it."""
    begun = time.monotonic()
    host.check_output("bash -lc 'cd; id -un; exit'")
    return time.monotonic() - begun


def test_the_first_rollout_takes_nothing_away_that_it_does_not_declare(node: Node, rollout: Rollout) -> None:
    fstab = node(CLIENT).file("/etc/fstab").content_string
    assert "soft" not in fstab
    assert "tmpfs /mnt/scratch tmpfs size=1m 0 0" in fstab
    assert OLD in fstab
    assert observed(rollout) == {OTHERS: ["/mnt/old is mounted by NFS, or in /etc/fstab"]}
    assert observed(rollout, nfs_client_mounts_kept={"/mnt": "a vendor's"}) == {}
    done = rollout.converge("--limit", CLIENT, nfs_client_withdraw_ok=True)
    assert done.status == 0, done.explain()
    assert OLD not in node(CLIENT).file("/etc/fstab").content_string
    assert OLD in node(CLIENT).check_output("cat /etc/fstab.*~"), "the former file is kept"


def test_clients_mount_what_the_model_says_at_the_first_access(node: Node, site: Site) -> None:
    model = site("file_systems")
    host = node(CLIENT)
    host.check_output("stat -f /internal /transfer")
    assert mounts(host) == {
        "/internal": (f"{model['internal']['address']}:/internal", "fuse.nfs"),
        "/transfer": (f"{model['transfer']['address']}:/transfer", "fuse.nfs"),
    }
    node(SERVER).check_output("stat -f /transfer")
    assert list(mounts(node(SERVER))) == ["/transfer"], "a server does not mount from itself"
    assert mounts(node(SECOND)) == {}


def test_what_one_node_writes_the_others_read(node: Node) -> None:
    node(SERVER).check_output("install -d -m 1777 /internal/all && echo from the server >/internal/all/a")
    host = node(CLIENT)
    assert host.check_output("cat /internal/all/a") == "from the server"
    host.check_output(
        "echo from a client >/internal/all/b && mkdir /internal/all/d && mv /internal/all/b /internal/all/d/c"
    )
    assert node(SERVER).check_output("cat /internal/all/d/c") == "from a client"
    size = host.check_output("head -c 300000 /dev/urandom >/internal/all/big && sha256sum </internal/all/big")
    assert node(SERVER).check_output("sha256sum </internal/all/big") == size


def test_a_boot_does_not_wait_for_servers(node: Node) -> None:
    host = node(CLIENT)
    lines = [line.split() for line in host.file("/etc/fstab").content_string.splitlines()]
    options = {line[1]: line[3].split(",") for line in lines if line[2] == "nfs4"}
    assert sorted(options) == ["/internal", "/transfer"]
    for words in options.values():
        assert {"_netdev", "nofail", "noauto", "x-systemd.automount", "hard"} <= set(words)
    wanted = host.check_output("systemctl show --property=Wants --property=Requires remote-fs.target")
    assert "internal.automount" in wanted
    assert "internal.mount" not in wanted, "the mount itself is not a part of the boot"
    assert host.service("remote-fs.target").is_enabled
    shown = host.check_output("systemctl show --property=Before internal.automount").partition("=")[2].split()
    assert "slurmd.service" in shown
    assert host.check_output("systemctl show --property=TimeoutUSec internal.mount") == "TimeoutUSec=30s"


def test_promises_hold_and_were_read(rollout: Rollout) -> None:
    for name in (CLIENT, SERVER):
        assert rollout.promises("nfs_client", name)["server answers [transfer]"]["observed"] == "yes"
        assert observed(rollout, name) == {}


def test_a_server_that_hangs_is_named_and_hangs_nobody_else(node: Node, rollout: Rollout, hung: None) -> None:
    host = node(CLIENT)
    begun = time.monotonic()
    assert observed(rollout) == {INTERNAL: "no answer within 5 s"}
    assert time.monotonic() - begun < 25
    assert seconds_of_a_login(host) < LOGIN_SECONDS
    done = rollout.converge("--limit", CLIENT)
    assert done.status == 0, done.explain()
    assert "no answer within 5 s" in done.words
    host.check_output("stat -f /transfer")


def test_hard_mounts_lose_nothing(node: Node) -> None:
    """A program writes while the server is away, waits, and goes on."""
    host = node(CLIENT)
    node(SERVER).check_output("systemctl stop nfs-server")
    try:
        host.check_output("rm -f /root/done; (echo kept >/internal/all/kept; echo $? >/root/done) >/dev/null 2>&1 &")
        time.sleep(3)
        assert not host.file("/root/done").exists, "it did not wait"
    finally:
        node(SERVER).check_output("systemctl start nfs-server")
    host.check_output("timeout 30 sh -c 'until [ -s /root/done ]; do sleep 0.2; done'")
    assert host.check_output("cat /root/done") == "0"
    assert node(SERVER).check_output("cat /internal/all/kept") == "kept"


def test_a_server_that_is_gone_keeps_nobody_out(node: Node, rollout: Rollout, stopped: None) -> None:
    """Not mounted, and it cannot be: whoever looks there gets an error, a login does not look."""
    host = node(CLIENT)
    host.check_output("umount -l /internal")
    assert seconds_of_a_login(host) < LOGIN_SECONDS
    begun = time.monotonic()
    assert host.run("ls /internal").rc != 0
    assert time.monotonic() - begun < 35
    assert list(observed(rollout)) == [INTERNAL]


def test_a_stale_handle_is_named(node: Node, rollout: Rollout, site: Site) -> None:
    host = node(CLIENT)
    host.check_output("stat -f /internal")
    node(SERVER).check_output(f"exportfs -u {site('file_systems')['internal']['cidr']}:/internal")
    assert observed(rollout) == {INTERNAL: "Stale file handle"}
    node(SERVER).check_output("exportfs -ra")
    host.check_output("umount -l /internal")
    assert observed(rollout) == {}


def test_a_mount_that_is_missing_is_named_and_mended(node: Node, rollout: Rollout) -> None:
    host = node(CLIENT)
    host.check_output("systemctl stop internal.automount internal.mount")
    broken = observed(rollout)
    assert broken == {AUTOMOUNT: False, INTERNAL: "nothing is mounted"}
    done = rollout.converge("--limit", CLIENT)
    assert done.status == 0, done.explain()
    assert observed(rollout) == {}


def test_a_mount_by_hand_is_named_and_taken_away(node: Node, rollout: Rollout, site: Site) -> None:
    host = node(CLIENT)
    source = f"{site('file_systems')['transfer']['address']}:/transfer"
    host.check_output(f"mkdir -p /mnt/hand && mount -t nfs4 -o hard {source} /mnt/hand")
    host.check_output("(cd /mnt/hand && exec sleep 600) >/dev/null 2>&1 & sleep 1")
    assert observed(rollout) == {OTHERS: ["/mnt/hand is mounted by NFS, or in /etc/fstab"]}
    done = rollout.converge("--limit", CLIENT, nfs_client_withdraw_ok=True)
    assert "Not detached without nfs_client_unmount_ok" in done.words
    assert "/mnt/hand" in mounts(host)
    done = rollout.converge("--limit", CLIENT, nfs_client_withdraw_ok=True, nfs_client_unmount_ok=True)
    assert done.status == 0, done.explain()
    assert "/mnt/hand" not in mounts(host)
    host.run("pkill -x sleep")
    assert observed(rollout) == {}
    assert "mnt-hand.mount" not in host.check_output("systemctl --failed --no-legend")


def test_a_mount_of_another_server_and_a_line_by_hand_are_named_and_mended(
    node: Node, rollout: Rollout, site: Site
) -> None:
    host = node(CLIENT)
    model = site("file_systems")
    other = f"{model['transfer']['address']}:/transfer"
    host.check_output("systemctl stop internal.automount internal.mount")
    host.check_output(f"mount -t nfs4 -o ro {other} /internal && sed -i 's/,hard,/,soft,/' /etc/fstab")
    assert observed(rollout)[DECLARED] == [
        f"/internal is mounted from {other}, declared {model['internal']['address']}:/internal",
        "/internal has another line in /etc/fstab",
        "/transfer has another line in /etc/fstab",
    ]
    # This one was there before the role: it is left until that is permitted.
    mine = f"{model['internal']['address']}:/internal"
    line = f"{mine} /transfer nfs4 rw,hard,noauto 0 0"
    host.check_output("systemctl stop transfer.automount transfer.mount")
    host.check_output(f"sed -i 's|.* /transfer .*|{line}|' /etc/fstab && mount /transfer")
    done = rollout.converge("--limit", CLIENT)
    assert done.status == 0, done.explain()
    said = f"/transfer belongs to somebody else, from {mine}, declared {other}"
    assert observed(rollout) == {OTHERS: [said]}
    assert (mounts(host)["/internal"][0], mounts(host)["/transfer"][0]) == (mine, mine)
    assert line in host.file("/etc/fstab").content_string
    done = rollout.converge("--limit", CLIENT, nfs_client_withdraw_ok=True)
    assert done.status == 0, done.explain()
    assert observed(rollout) == {}
    assert (mounts(host)["/internal"][0], mounts(host)["/transfer"][0]) == (mine, other)
    assert line in host.check_output("cat /etc/fstab.*~"), "the former file is kept"


def test_a_server_binds_its_own_folder_as_long_as_the_model_says_so(node: Node, rollout: Rollout) -> None:
    """As if the model had its export at another place."""
    own = {"name": "own", "path": "/srv/own", "source": "/internal", "unit": "srv-own", "own": True}
    variables = {"__nfs_client_binds": [own]}
    name = "the node's own folder is where the model has it [own]"
    assert observed(rollout, SERVER, **variables) == {name: False}
    done = rollout.converge("--limit", SERVER, **variables)
    assert done.status == 0, done.explain()
    assert observed(rollout, SERVER, **variables) == {}
    host = node(SERVER)
    assert host.check_output("stat -c %i /srv/own") == host.check_output("stat -c %i /internal")
    # The model has it from another node now, and somebody works there: nothing is done, and the run goes on.
    line = "/internal /srv/own none bind,nofail,x-hal.nfs_client 0 0"
    assert line in host.file("/etc/fstab").content_string
    remote = {**own, "source": f"{SECOND}:/transfer", "type": "nfs4", "options": ["rw", "hard"], "own": False}
    both = "{{ (__nfs_client_all | rejectattr('own') | list) + [" + json.dumps(remote) + "] }}"
    host.check_output("(cd /srv/own && exec sleep 600) >/dev/null 2>&1 & sleep 1")
    done = rollout.converge("--limit", SERVER, __nfs_client_mounts=both)
    assert done.status == 0, done.explain()
    assert "Not detached without nfs_client_unmount_ok" in done.words
    assert line in host.file("/etc/fstab").content_string
    assert f"{SECOND}:/transfer" not in host.file("/etc/fstab").content_string
    host.check_output("pkill -x sleep")
    # The model has it no more. Nobody's permission is asked: the role has made it.
    host.check_output("mkdir -p /srv/site && echo '/internal /srv/site none bind,noauto 0 0' >>/etc/fstab")
    assert observed(rollout, SERVER) == {DECLARED: ["/srv/own is not in the model any more"]}
    done = rollout.converge("--limit", SERVER)
    assert done.status == 0, done.explain()
    assert observed(rollout, SERVER) == {}
    assert not host.mount_point("/srv/own").exists
    assert "/srv/own" not in host.file("/etc/fstab").content_string
    assert "/internal /srv/site none bind,noauto 0 0" in host.file("/etc/fstab").content_string, "a site's own"


def test_what_does_not_come_back_after_a_boot_is_named(node: Node, rollout: Rollout) -> None:
    host = node(CLIENT)
    host.check_output(
        "systemctl disable --quiet remote-fs.target && rm /etc/systemd/system/internal.mount.d/90-hal.conf"
    )
    host.check_output("systemctl daemon-reload")
    assert sorted(observed(rollout)) == ["automounts come back after a boot", "mount has its time limit [internal]"]
    done = rollout.converge("--limit", CLIENT)
    assert done.status == 0, done.explain()
    assert observed(rollout) == {}


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"nfs_client_options": ["rw", "soft"]}, "internal: soft loses what was written when the server is slow"),
        (
            {"nfs_client_options": ["rw", "hard", "vers=3"]},
            "internal: hal-data serves version 4 alone (docs/nfs.md); say vers=4.1",
        ),
        ({"nfs_client_answer_seconds": 60}, "nfs_client_answer_seconds is 60; write 1 to 20"),
        (
            {"nfs_client_mounts_kept": {"/internal": "mine"}},
            "nfs_client_mounts_kept names /internal, which the model has",
        ),
        (
            {"nfs_client_options_by_file_system": {"homes": []}},
            "names homes; the model's NFS file systems are internal, transfer",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(rollout: Rollout, variables: dict[str, Any], said: str) -> None:
    done = rollout.converge("--limit", CLIENT, **variables)
    assert done.status != 0
    assert said in done.words
