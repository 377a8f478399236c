"""Members, mounts and attributes, as Scale's commands and the kernel show them; what is broken is named."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from promises import Rollout
from testinfra.host import Host

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
ROLE, ADMIN, NODES = "spectrum_scale", "hal-mgmt1", ["hal-mgmt1", "hal-login", "hal01", "hal02"]
CLIENTS = {"maxFilesToCache": "131072", "maxStatCache": "131072", "maxMBpS": "24000", "pagepool": "4294967296"}
CLIENTS |= {"workerThreads": "512", "verbsRdma": "enable", "verbsPorts": "mlx5_0/1"}
AS_DECLARED, EFFECTIVE = "attributes are as declared", "daemon runs with what is configured"
BIN = "/usr/lpp/mmfs/bin"
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


def observed(rollout: Rollout, node: str, **variables: Any) -> dict[str, Any]:
    """What was seen of each promise that does not hold."""
    results = rollout.promises(ROLE, node, **variables)
    return {name: one["observed"] for name, one in results.items() if one["status"] in ("fail", "unknown")}


def table(host: Host, command: str, column: int) -> dict[str, list[str]]:
    """Rows of -Y output by one of their fields, without what comes before the seventh."""
    lines = [line.split(":") for line in host.check_output(f"{BIN}/{command} -Y").splitlines()]
    return {words[column]: words[6:] for words in lines if len(words) > 6 and words[2] == "0"}


def running(host: Host) -> dict[str, str]:
    """What the daemon of a node runs with."""
    return {name: words[1] for name, words in table(host, "mmdiag --config", 6).items()}


def shown(host: Host, unit: str, name: str) -> str:
    """A property of a unit."""
    return host.check_output(f"systemctl show --property {name} {unit}").partition("=")[2]


def wait(what: Callable[[], bool], seconds: int = 30) -> None:
    """Return when it is so."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not so after {seconds} s"
        time.sleep(1)


@pytest.fixture
def mended(rollout: Rollout) -> Iterator[None]:
    """Leave everything as declared."""
    yield
    done = rollout.converge(spectrum_scale_restart_ok=True, spectrum_scale_log_size_ok=True)
    assert done.status == 0, done.explain()


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
    """The reinstalled one was not added again."""
    lines = node(ADMIN).check_output(f"{BIN}/mmlscluster -Y").splitlines()
    names = [line.split(":")[7] for line in lines if line.startswith("mmlscluster:clusterNode:0:")]
    assert sorted(names) == sorted(f"{name}.hal.example" for name in [*NODES, "flash1", "flash2"])


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
    lines = node(ADMIN).check_output(f"{BIN}/mmlsconfig pagepool,maxFilesToCache,autoload")
    assert "2G" not in lines
    assert "8000" not in lines
    assert "autoload yes" in lines


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
    assert not node("hal-login").file("/etc/systemd/system/slurmd.service.d/80-spectrum-scale.conf").exists
    after = shown(host, "gpfs.service", "After").split()
    assert {"network-online.target", "rdma.service"} <= set(after)


def test_promises_hold_and_only_what_needs_permission_is_remarked_on(rollout: Rollout) -> None:
    assert [observed(rollout, name) for name in NODES if name != ADMIN] == [{}, {}, {}]
    assert observed(rollout, ADMIN) == {
        "servers of the arrays are as declared": [
            "nsdMaxWorkerThreads on flash1,flash2 is DEFAULT, declared 1024",
            "nsdMinWorkerThreads on flash1,flash2 is DEFAULT, declared 48",
            "workerThreads on flash1,flash2 is DEFAULT, declared 512",
        ],
        "log sizes are the declared ones": ["home: logfileSize is 4194304, declared 64M"],
    }


def test_servers_are_changed_only_with_permission(node: Node, rollout: Rollout) -> None:
    done = rollout.converge("--limit", ADMIN)
    assert done.status == 0, done.explain()
    assert "nsdMaxWorkerThreads on flash1,flash2: 1024 instead of DEFAULT" in done.words
    assert "1024" not in node(ADMIN).check_output(f"{BIN}/mmlsconfig nsdMaxWorkerThreads")
    done = rollout.converge("--limit", ADMIN, spectrum_scale_servers_managed=True)
    assert done.status == 0, done.explain()
    assert "1024" in node(ADMIN).check_output(f"{BIN}/mmlsconfig nsdMaxWorkerThreads")
    assert AS_DECLARED not in observed(rollout, ADMIN, spectrum_scale_servers_managed=True)


def test_a_log_size_is_changed_only_with_permission(node: Node, rollout: Rollout) -> None:
    promise = "log sizes are the declared ones"
    assert observed(rollout, ADMIN)[promise] == ["home: logfileSize is 4194304, declared 64M"]
    done = rollout.converge("--limit", ADMIN)
    assert "Not changed without spectrum_scale_log_size_ok" in done.words
    done = rollout.converge("--limit", ADMIN, spectrum_scale_log_size_ok=True)
    assert done.status == 0, done.explain()
    assert table(node(ADMIN), "mmlsfs home", 7)["logfileSize"][2] == str(64 << 20)
    assert promise not in observed(rollout, ADMIN)


def test_an_attribute_that_somebody_set_on_one_node_is_named_and_taken_back(
    node: Node, rollout: Rollout, mended: None
) -> None:
    node(ADMIN).check_output(f"{BIN}/mmchconfig pagepool=1G,ignorePrefetchLUNCount=yes -i -N hal02")
    broken = observed(rollout, ADMIN)
    assert broken[AS_DECLARED] == ["pagepool on hal02 is 1G, declared 4G"]
    assert broken["no attribute of a client was set by hand"] == [
        "ignorePrefetchLUNCount is yes on hal02, which nobody declared"
    ]
    done = rollout.converge("--limit", ADMIN)
    assert done.status == 0, done.explain()
    assert AS_DECLARED not in observed(rollout, ADMIN)
    assert running(node("hal02"))["pagepool"] == CLIENTS["pagepool"]
    node(ADMIN).check_output(f"{BIN}/mmchconfig ignorePrefetchLUNCount=DEFAULT -i -N hal02")


def test_an_attribute_waits_for_the_daemon_until_its_restart_is_permitted(
    node: Node, rollout: Rollout, mended: None
) -> None:
    node(ADMIN).check_output(f"{BIN}/mmchconfig workerThreads=1024 -N hal02")
    assert observed(rollout, "hal02")[EFFECTIVE] == ["workerThreads: configured 1024, runs with 512"]
    assert EFFECTIVE not in observed(rollout, "hal01")
    started = shown(node("hal02"), "gpfs", "ActiveEnterTimestampMonotonic")
    done = rollout.converge("--limit", "hal02")
    assert done.status == 0, done.explain()
    assert "workerThreads: configured 1024, runs with 512" in done.words
    assert "without spectrum_scale_restart_ok" in done.words
    assert shown(node("hal02"), "gpfs", "ActiveEnterTimestampMonotonic") == started
    # In the words of Slurm, which is not rolled out here: a job on this node, then no answer.
    for line, said in (("echo 4711", "jobs 4711 run here; drain"), ("exit 1", "Slurm does not say whether jobs run")):
        node("hal02").check_output(f"printf '#!/bin/sh\\n{line}\\n' >/usr/bin/squeue && chmod 0755 /usr/bin/squeue")
        try:
            done = rollout.converge("--limit", "hal02", spectrum_scale_restart_ok=True)
        finally:
            node("hal02").check_output("rm /usr/bin/squeue")
        assert done.status == 0, done.explain()
        assert said in done.words
    assert shown(node("hal02"), "gpfs", "ActiveEnterTimestampMonotonic") == started
    done = rollout.converge("--limit", "hal02", spectrum_scale_restart_ok=True)
    assert done.status == 0, done.explain()
    assert running(node("hal02"))["workerThreads"] == "1024"
    assert EFFECTIVE not in observed(rollout, "hal02")
    assert node("hal02").mount_point("/home").exists


def test_what_is_withdrawn_goes_back_to_the_default(node: Node, rollout: Rollout) -> None:
    wanted = {
        "maxMBpS": None,
        "pagepool": "4G",
        "maxFilesToCache": "128K",
        "maxStatCache": "128K",
        "workerThreads": 512,
    }
    done = rollout.converge("--limit", ADMIN, spectrum_scale_client_attributes=wanted)
    assert done.status == 0, done.explain()
    assert "24000" not in node(ADMIN).check_output(f"{BIN}/mmlsconfig maxMBpS")
    done = rollout.converge("--limit", ADMIN)
    assert "24000" in node(ADMIN).check_output(f"{BIN}/mmlsconfig maxMBpS")


def test_a_reinstalled_node_comes_back_without_any_other_client(node: Node, rollout: Rollout) -> None:
    node("hal01").check_output("systemctl stop gpfs && virtual-scale forget")
    number = table(node(ADMIN), "mmgetstate -N hal01", 6)["hal01.hal.example"][1]
    assert observed(rollout, "hal01")["this node knows its cluster"] is False
    node("hal02").check_output("systemctl stop gpfs virtual-scale.socket")
    try:
        done = rollout.converge("--limit", "hal01")
    finally:
        node("hal02").check_output("systemctl start virtual-scale.socket gpfs")
    assert done.status == 0, done.explain()
    assert "Add a node that was never in it" not in [
        line for line in done.output.splitlines() if line.startswith("changed")
    ]
    assert table(node("hal01"), "mmgetstate", 6)["hal01.hal.example"][1] == number
    assert node("hal01").mount_point("/home").exists
    wait(lambda: node("hal02").mount_point("/home").exists)
    assert observed(rollout, "hal01") == {}


def test_a_file_system_that_is_not_mounted_is_named_and_mounted(node: Node, rollout: Rollout) -> None:
    host = node("hal02")
    host.check_output(f"{BIN}/mmumount home")
    broken = observed(rollout, "hal02")
    assert set(broken) == {"file system is mounted [home]", "file system can be written [home]"}
    done = rollout.converge("--limit", "hal02")
    assert done.status == 0, done.explain()
    assert host.mount_point("/home").exists


def test_a_file_system_that_hangs_is_named_in_time(node: Node, rollout: Rollout) -> None:
    host = node("hal02")
    host.check_output("virtual-scale hang home")
    began = time.monotonic()
    try:
        results = rollout.promises(ROLE, "hal02")
        took = time.monotonic() - began
        assert host.run("timeout 20 hal-spectrum-scale mount 5 home=/home").rc == 0
        logged_in = host.run("true").rc
    finally:
        host.check_output("virtual-scale resume home")
    assert results["file system answers [home]"]["status"] == "unknown"
    assert results["file system is mounted [home]"]["status"] == "pass"
    assert logged_in == 0
    assert took < 60
    assert observed(rollout, "hal02") == {}


def test_a_daemon_that_died_is_named_and_started(node: Node, rollout: Rollout) -> None:
    host = node("hal01")
    host.check_output("virtual-scale die")
    wait(lambda: host.run("systemctl is-active gpfs").stdout.strip() == "failed")
    broken = observed(rollout, "hal01")
    assert broken["daemon is active"] == "down"
    assert "file system answers [home]" in broken
    done = rollout.converge("--limit", "hal01")
    assert done.status == 0, done.explain()
    assert observed(rollout, "hal01") == {}


def test_a_layer_for_another_kernel_is_named_and_built_again(node: Node, rollout: Rollout) -> None:
    host, promise = node("hal02"), "layer for the declared kernel is built"
    kernel = host.check_output("uname -r")
    host.check_output(f"mv /lib/modules/{kernel}/extra /lib/modules/extra.away")
    assert observed(rollout, "hal02")[promise] == [f"no GPL layer for kernel {kernel}"]
    # At boot the unit of the daemon builds it.
    host.check_output("systemctl restart gpfs")
    assert promise not in observed(rollout, "hal02")
    host.check_output(f"rm -r /lib/modules/{kernel}/extra")
    done = rollout.converge("--limit", "hal02")
    assert done.status == 0, done.explain()
    assert host.file(f"/lib/modules/{kernel}/extra/mmfs26.ko").exists
    host.check_output(f"touch -d '2 years ago' /lib/modules/{kernel}/extra/mmfs26.ko")
    assert observed(rollout, "hal02")[promise] == [f"the GPL layer for kernel {kernel} is older than package gpfs.gpl"]
    done = rollout.converge("--limit", "hal02")
    assert promise not in observed(rollout, "hal02")


def test_waiting_for_mounts_comes_to_an_end(node: Node) -> None:
    """What a boot meets while the daemon is down."""
    host = node("hal02")
    host.check_output("systemctl stop gpfs")
    began = time.monotonic()
    said = host.run("hal-spectrum-scale mount 6 home=/home")
    assert time.monotonic() - began < 20
    assert said.rc == 1
    assert "not mounted after 6 s: home: the daemon is down" in said.stderr
    host.check_output("systemctl start gpfs && hal-spectrum-scale mount 30 home=/home")
    assert host.mount_point("/home").exists


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"spectrum_scale_license_accept": False}, "spectrum_scale_license_accept is false: Spectrum Scale is not"),
        (
            {"spectrum_scale_client_attributes": {"maxFileToCache": 1}},
            "maxFileToCache is no attribute that is known here; did you mean maxFilesToCache",
        ),
        ({"spectrum_scale_server_attributes": {"nsdBufSpace": 90}}, "nsdBufSpace is 90; write 10 to 70"),
        (
            {"spectrum_scale_client_attributes": {"pagepool": "100G"}},
            "Spectrum Scale on hal-mgmt1 needs 102439 MB (pagepool 102400 MB +",
        ),
        ({"spectrum_scale_memory_percent": 90}, "spectrum_scale_memory_percent (90; 1 to 75)"),
        ({"spectrum_scale_admins": []}, "write at least one node of the group spectrum_scale"),
    ],
)
def test_what_makes_no_sense_is_refused(rollout: Rollout, variables: dict[str, Any], said: str) -> None:
    done = rollout.converge("--limit", ADMIN, **variables)
    assert done.status != 0
    assert said in done.words


def test_a_cache_without_effect_is_remarked_on(rollout: Rollout) -> None:
    done = rollout.converge("--limit", ADMIN, "--check", spectrum_scale_version="5.0.1-2")
    assert "maxStatCache 128K has no effect on Linux without LROC before 5.0.2, and this is 5.0.1-2" in done.words
