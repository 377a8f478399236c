"""Members, mounts and attributes, as Scale's commands and the kernel show them; what is broken is named.

Each run of Ansible takes its time: what is planted is looked at on all nodes at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running.ansible_run import Ansible, of_scenario
from testinfra.host import Host
from testing.waiting import wait_for

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
ROLE, ADMIN, NODES = "spectrum_scale", "hal-mgmt1", ["hal-mgmt1", "hal01", "hal02"]
WELL: dict[str, dict[str, Any]] = {name: {} for name in NODES}
CLIENTS = {"maxFilesToCache": "131072", "maxStatCache": "131072", "maxMBpS": "24000", "pagepool": "4294967296"}
CLIENTS |= {"workerThreads": "512", "verbsRdma": "enable", "verbsPorts": "mlx5_0/1"}
AS_DECLARED, EFFECTIVE = "attributes are as declared", "daemon runs with what is configured"
GPL = "layer for the declared kernel is built"
BIN = "/usr/lpp/mmfs/bin"
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def ansible() -> Ansible:
    return of_scenario(SCENARIO)


def observed(ansible: Ansible) -> dict[str, dict[str, Any]]:
    """By node, what was seen of each promise that does not hold."""
    done = ansible.module(ROLE, "hal_expect", {"role": ROLE, "report_only": True})
    assert done.status == 0, done.output
    return {
        node: {one["id"]: one["observed"] for one in result["results"] if one["status"] in ("fail", "unknown")}
        for node, result in done.results.items()
    }


def table(host: Host, command: str, column: int) -> dict[str, list[str]]:
    """Rows of -Y output by one of their fields, without what comes before the seventh."""
    lines = [line.split(":") for line in host.check_output(f"{BIN}/{command} -Y").splitlines()]
    return {words[column]: words[6:] for words in lines if len(words) > 6 and words[2] == "0"}


def running(host: Host) -> dict[str, str]:
    """What the daemon of a node runs with."""
    return {name: words[1] for name, words in table(host, "mmdiag --config", 6).items()}


def shown(host: Host, unit: str, name: str) -> str:
    """A property of a unit."""
    line: str = host.check_output(f"systemctl show --property {name} {unit}")
    return line.partition("=")[2]


def says(host: Host, command: str, words: str) -> None:
    """Have a command of Slurm, which is not rolled out here, answer with these words."""
    host.check_output(f"printf '#!/bin/sh\\necho {words}\\n' >/usr/bin/{command} && chmod 0755 /usr/bin/{command}")


@pytest.mark.parametrize("name", NODES)
def test_a_node_is_a_member_and_its_daemon_active(node: Node, name: str) -> None:
    state = table(node(name), "mmgetstate", 6)
    assert list(state) == [f"{name}.hal.example"]
    assert state[f"{name}.hal.example"][2] == "active"
    assert node(name).service("mmautoload").is_enabled
    licences = node(ADMIN).check_output(f"{BIN}/mmlslicense -L")
    assert f"{name}.hal.example" in licences
    assert [line.split()[1:3] for line in licences.splitlines() if line.strip().startswith(f"{name}.")] == [
        ["client", "client"]
    ]


def test_every_node_is_in_the_cluster_once(node: Node) -> None:
    """The reinstalled one was not added again, though its daemon has another name than it has itself."""
    lines = node(ADMIN).check_output(f"{BIN}/mmlscluster -Y").splitlines()
    names = [line.split(":")[7] for line in lines if line.startswith("mmlscluster:clusterNode:0:")]
    assert sorted(names) == [f"{name}.hal.example" for name in ("flash1", "flash2", ADMIN, "hal01-ib", "hal02")]


def test_a_file_that_one_node_writes_is_read_by_the_others(node: Node) -> None:
    node("hal01").check_output("echo from hal01 >/home/witness")
    for name in NODES:
        assert node(name).check_output("cat /home/witness") == "from hal01"
        assert node(name).mount_point("/home").filesystem == "fuse.gpfs"
        assert "rw" in node(name).mount_point("/home").options
    node("hal02").check_output("rm /home/witness")
    assert not node("hal01").file("/home/witness").exists


@pytest.mark.parametrize("name", NODES)
def test_the_daemon_runs_with_what_is_declared(node: Node, name: str) -> None:
    shown = running(node(name))
    assert {attribute: shown[attribute] for attribute in CLIENTS} == CLIENTS


def test_what_was_set_by_hand_before_is_withdrawn(node: Node) -> None:
    """prepare.yml gave hal01 other values."""
    lines = [line.split(":") for line in node(ADMIN).check_output(f"{BIN}/mmlsconfig -Y").splitlines()]
    of_hal01 = {words[6]: words[7] for words in lines if len(words) > 8 and "hal01" in words[8].split(",")}
    assert (of_hal01["pagepool"], of_hal01["maxFilesToCache"]) == ("4G", "128K")
    assert ["autoload", "yes", ""] in [words[6:9] for words in lines]


def test_the_layer_is_built_for_the_kernel_that_runs(node: Node) -> None:
    for name in NODES:
        kernel = node(name).check_output("uname -r")
        assert node(name).check_output(f"modinfo -F vermagic /lib/modules/{kernel}/extra/mmfs26.ko").startswith(kernel)


def test_slurmd_and_the_health_check_come_after_the_mounts(node: Node) -> None:
    host = node("hal01")
    before = shown(host, "hal-spectrum-scale.service", "Before").split()
    assert {"slurmd.service", "hal-node-health.service"} <= set(before)
    assert not {"sshd.service", "systemd-user-sessions.service"} & set(before)
    assert host.service("hal-spectrum-scale").is_enabled
    assert host.file("/etc/systemd/system/slurmd.service.d/80-spectrum-scale.conf").contains("After=hal-spectrum-scale")
    assert not node(ADMIN).file("/etc/systemd/system/slurmd.service.d/80-spectrum-scale.conf").exists
    after = shown(host, "gpfs.service", "After").split()
    assert {"network-online.target", "rdma.service"} <= set(after)


def test_promises_hold_and_only_what_needs_permission_is_remarked_on(ansible: Ansible) -> None:
    remarks = {
        "servers of the arrays are as declared": [
            "nsdMaxWorkerThreads on flash1,flash2 is DEFAULT, declared 1024",
            "nsdMinWorkerThreads on flash1,flash2 is DEFAULT, declared 48",
            "workerThreads on flash1,flash2 is DEFAULT, declared 512",
        ],
        "log sizes are the declared ones": ["home: logfileSize is 4194304, declared 64M"],
    }
    assert observed(ansible) == {**WELL, ADMIN: remarks}


def test_what_somebody_broke_is_named_and_mended_and_permissions_are_kept(node: Node, ansible: Ansible) -> None:
    """In one go, since each rollout takes its time."""
    admin, first, second = node(ADMIN), node("hal01"), node("hal02")
    playbook = SCENARIO / "converge.yml"
    kernel = second.check_output("uname -r")
    admin.check_output(f"{BIN}/mmchconfig pagepool=1G,ignorePrefetchLUNCount=yes -i -N hal02")
    admin.check_output(f"{BIN}/mmchconfig workerThreads=1024,prefetchThreads=100 -N hal02")
    number = table(admin, "mmgetstate -N hal01", 6)["hal01.hal.example"][1]
    first.check_output("systemctl stop gpfs && virtual-scale forget")
    second.check_output(f"{BIN}/mmumount home && mv /lib/modules/{kernel}/extra /lib/modules/extra.away")

    broken = observed(ansible)
    assert broken[ADMIN][AS_DECLARED] == [
        "pagepool on hal02 is 1G, declared 4G",
        "workerThreads on hal02 is 1024, declared 512",
    ]
    assert broken[ADMIN]["no attribute of a client was set by hand"] == [
        "ignorePrefetchLUNCount is yes on hal02, which nobody declared",
        "prefetchThreads is 100 on hal02, which nobody declared",
    ]
    assert broken["hal01"]["this node knows its cluster"] is False
    unmounted = {"file system is mounted [home]", "file system can be written [home]"}
    assert set(broken["hal02"]) == {EFFECTIVE, GPL} | unmounted
    # Nobody declared prefetchThreads: no daemon is restarted for it.
    assert broken["hal02"][EFFECTIVE] == ["workerThreads: configured 1024, runs with 512"]
    assert broken["hal02"][GPL] == [f"no GPL layer for kernel {kernel}"]

    # A reinstalled node, while every other node with jobs is down.
    second.check_output("systemctl stop gpfs virtual-scale.socket")
    done = ansible.playbook(playbook, "--limit", "hal01")
    second.check_output("systemctl start virtual-scale.socket")
    assert done.status == 0, done.explain()
    assert table(first, "mmgetstate", 6)["hal01.hal.example"][1] == number
    assert first.mount_point("/home").exists

    # Permission for hal01 alone, where a job runs. workerThreads is declared now as somebody set it on hal02, whose
    # daemon starts.
    says(first, "scontrol", "NodeName=hal01 State=MIXED+DRAIN")
    says(first, "squeue", "4711")
    wanted: dict[str, Any] = {"maxFilesToCache": "128K", "maxStatCache": "128K", "maxMBpS": None, "pagepool": "4G"}
    wanted["workerThreads"] = 1024
    started = shown(admin, "gpfs", "ActiveEnterTimestampMonotonic")
    permitted = "{{ inventory_hostname == 'hal01' }}"
    given: dict[str, Any] = {"spectrum_scale_client_attributes": wanted, "spectrum_scale_restart_ok": permitted}

    # What somebody has set is shown first, also where another version is installed than declared.
    configured = admin.check_output(f"{BIN}/mmlsconfig -Y")
    other: dict[str, Any] = {"spectrum_scale_version": "5.9.9-9"}
    refused = ansible.playbook(playbook, "--check", **given, **other)
    assert refused.status != 0
    assert "would be overwritten: pagepool on hal02: 4G instead of 1G Nothing was changed." in refused.words
    code = re.search(r"-e spectrum_scale_attributes_confirm=([0-9a-f]{4}-[0-9a-f]{4})", refused.words)
    assert code, refused.words
    refused = ansible.playbook(playbook, **given, spectrum_scale_attributes_confirm="0000-0000")
    assert code[1] in refused.words
    given["spectrum_scale_attributes_confirm"] = code[1]
    seen = ansible.playbook(playbook, "--check", "--diff", **given, **other)
    assert seen.status == 0, seen.explain()
    assert "installed, declared 5.9.9-9" in seen.words
    assert "+clients pagepool = 4G" in seen.words
    assert admin.check_output(f"{BIN}/mmlsconfig -Y") == configured

    done = ansible.playbook(playbook, **given)
    assert done.status == 0, done.explain()
    pending = "workerThreads: configured 1024, runs with 512"
    assert f"{ADMIN}: {pending}. Not effective without spectrum_scale_restart_ok" in done.words
    assert f"hal01: {pending}. Not restarted: jobs 4711 run here; drain the node first" in done.words
    assert "nsdMaxWorkerThreads on flash1,flash2: 1024 instead of DEFAULT" in done.words
    assert "Not changed without spectrum_scale_servers_managed" in done.words
    assert "Not changed without spectrum_scale_log_size_ok" in done.words
    assert shown(admin, "gpfs", "ActiveEnterTimestampMonotonic") == started
    assert second.file(f"/lib/modules/{kernel}/extra/mmfs26.ko").exists
    assert second.mount_point("/home").exists
    assert running(second)["pagepool"] == CLIENTS["pagepool"]
    assert [running(node(name))["workerThreads"] for name in NODES] == ["512", "512", "1024"]
    # Null is the default again, at once.
    assert running(second)["maxMBpS"] == "2048"

    # With every permission, as declared; the job is done.
    says(first, "squeue", "")
    allowed: dict[str, Any] = {
        f"spectrum_scale_{name}": True for name in ("restart_ok", "servers_managed", "log_size_ok")
    }
    done = ansible.playbook(playbook, **allowed)
    first.check_output("rm /usr/bin/squeue /usr/bin/scontrol")
    assert done.status == 0, done.explain()
    admin.check_output(f"{BIN}/mmchconfig ignorePrefetchLUNCount=DEFAULT -i -N hal02")
    admin.check_output(f"{BIN}/mmchconfig prefetchThreads=DEFAULT -N hal02")
    assert observed(ansible) == WELL
    for name in NODES:
        assert {attribute: running(node(name))[attribute] for attribute in CLIENTS} == CLIENTS
        assert node(name).mount_point("/home").exists
    assert table(admin, "mmlsfs home", 7)["logfileSize"][2] == str(64 << 20)
    servers = [line for line in admin.check_output(f"{BIN}/mmlsconfig -Y").splitlines() if "flash1" in line]
    assert any(":nsdMaxWorkerThreads:1024:" in line for line in servers)


def test_a_layer_that_is_missing_is_built_before_the_daemon_starts(node: Node) -> None:
    """What a boot into another kernel meets."""
    host = node("hal02")
    kernel = host.check_output("uname -r")
    host.check_output(f"systemctl stop gpfs && rm -r /lib/modules/{kernel}/extra && systemctl start gpfs")
    assert host.file(f"/lib/modules/{kernel}/extra/mmfs26.ko").exists
    host.check_output("hal-spectrum-scale mount 30 home=/home")


def test_what_hangs_or_died_or_is_old_is_named_and_holds_nobody_up(node: Node, ansible: Ansible) -> None:
    """A daemon that died leaves a mount, a file system hangs, the layer is older than its sources."""
    first, second = node("hal01"), node("hal02")
    kernel = second.check_output("uname -r")
    second.check_output(f"touch -d '2 years ago' /lib/modules/{kernel}/extra/mmfs26.ko")
    second.check_output("virtual-scale hang home")
    first.check_output("virtual-scale die")
    wait_for(
        "the daemon's end", lambda: first.run("systemctl is-active gpfs").stdout.strip(), lambda one: one == "failed"
    )
    try:
        broken = observed(ansible)
        assert second.run("timeout 120 hal-spectrum-scale mount 5 home=/home").rc == 0
    finally:
        second.check_output("virtual-scale resume home")
    old = [f"the GPL layer for kernel {kernel} is older than package gpfs.gpl"]
    assert broken["hal02"].pop(GPL) == old
    assert list(broken["hal02"]) == ["file system answers [home]"]
    assert broken["hal01"]["daemon is active"] == "down"
    assert "file system answers [home]" in broken["hal01"]
    second.check_output(f"{BIN}/mmbuildgpl")
    for host in (first, second):
        host.check_output("systemctl start gpfs && hal-spectrum-scale mount 30 home=/home")
    assert observed(ansible) == WELL


def test_waiting_for_mounts_comes_to_an_end(node: Node) -> None:
    """What a boot meets while the daemon is down."""
    host = node("hal02")
    host.check_output("systemctl stop gpfs")
    said = host.run("hal-spectrum-scale mount 30 home=/home")  # one of its questions is answered in time
    assert said.rc == 1
    assert "not mounted after 30 s: home: the daemon is down" in said.stderr
    host.check_output("systemctl start gpfs && hal-spectrum-scale mount 30 home=/home")
    assert host.mount_point("/home").exists
