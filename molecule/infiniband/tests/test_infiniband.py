"""Links, subnet manager and cables, as the real programs show them on the emulated fabric; what is broken is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host
from testing.promises import Rollout

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
SETUP = SCENARIO.parent / "virtual_hal/setup"
MANAGER = "hal-mgmt1"
NODES = ["hal01", "hal02"]
CABLES = "every cable is where it is declared"
STANDBY, MASTER = "2", "3"  # as saquery prints the states of subnet managers
ONE_MASTER = "this is the only master of the fabric"
Node = Callable[[str], Host]
Site = Callable[..., Any]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


def fabric(*words: str) -> str:
    """Break or mend the emulated fabric, as an administrator does it."""
    command = [sys.executable, str(SETUP), "fabric", "--instance", os.environ["MOLECULE_SCENARIO_NAME"], *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


@pytest.fixture
def mended(node: Node) -> Iterator[None]:
    """Leave the fabric as declared."""
    yield
    fabric("restore")
    wait_for_links(node)


def ibstat(host: Host) -> dict[str, str]:
    """The fields of the node's port."""
    lines = host.check_output("ibstat mlx5_0 1").splitlines()
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def wait_for_links(node: Node) -> None:
    """Return when the subnet manager has brought every port up."""
    for _ in range(30):
        if all(ibstat(node(name))["State"] == "Active" for name in (MANAGER, *NODES)):
            return
        time.sleep(1)
    raise AssertionError("the links did not come up")


def observed(rollout: Rollout, node: str) -> dict[str, Any]:
    """What was seen of each promise that does not hold."""
    results = rollout.promises("infiniband", node)
    return {name: one["observed"] for name, one in results.items() if one["status"] in ("fail", "unknown")}


@pytest.mark.parametrize("name", [MANAGER, *NODES])
def test_every_port_is_as_declared(node: Node, site: Site, name: str) -> None:
    (port,) = site("fabric.ports", node=name)
    shown = ibstat(node(name))
    assert shown["State"] == "Active"
    assert shown["Physical state"] == "LinkUp"
    assert shown["Rate"] == "100"
    assert shown["Link layer"] == "InfiniBand"
    assert shown["Port GUID"] == port["guid"]
    assert node(name).service("rdma").is_enabled


def test_the_only_subnet_manager_is_the_declared_one(node: Node, site: Site) -> None:
    (port,) = site("fabric.ports", node=MANAGER)
    said = node("hal01").check_output("sminfo")
    found = re.search(r"sm guid (0x[0-9a-f]+), .* priority 15 state 3 SMINFO_MASTER", said)
    assert found, said
    assert int(found[1], 16) == int(port["guid"], 16)
    assert node(MANAGER).check_output("saquery SMIR").count("SMInfoRecord") == 1
    for name in NODES:
        assert not node(name).service("opensm").is_running
        assert node(name).service("opensm").is_masked


def test_the_switch_sees_every_declared_cable(node: Node, site: Site) -> None:
    """The arrays' as well, to which nobody logs in."""
    shown = node(MANAGER).check_output("iblinkinfo --switches-only --line")
    for cable in site("fabric.cables"):
        ends = rf"\s{cable['switch_port']}\[ .*Active/  LinkUp.*{cable['guid']} .*{cable['owner']} mlx5_"
        assert re.search(ends, shown), f"{cable} is not in:\n{shown}"
    assert shown.count("LinkUp") == len(site("fabric.cables"))


def test_promises_hold_and_were_read(rollout: Rollout) -> None:
    for name in (MANAGER, *NODES):
        results = rollout.promises("infiniband", name)
        assert results["link has its rate [mlx5_0/1]"]["observed"] == "100"
        assert rollout.broken_promises("infiniband", name) == []


def test_a_port_that_is_down_is_named(rollout: Rollout, mended: None) -> None:
    fabric("down", "hal02")
    assert observed(rollout, "hal02") == {
        "link is up [mlx5_0/1]": "Polling",
        "port is active [mlx5_0/1]": "Down",
    }
    assert observed(rollout, MANAGER) == {CABLES: ["hal02 mlx5_0/1 is not in the fabric, declared edr1/2"]}


def test_a_link_with_less_than_its_rate_is_named(rollout: Rollout, mended: None) -> None:
    fabric("slow", "hal01", "--gbps", "56")
    fabric("slow", "hal02", "--gbps", "25")
    assert observed(rollout, "hal01") == {"link has its rate [mlx5_0/1]": "56"}
    assert observed(rollout, "hal02") == {"link has its rate [mlx5_0/1]": "25"}
    assert observed(rollout, MANAGER) == {
        CABLES: [
            "hal01 mlx5_0/1 on edr1/1 runs at 4xFDR, declared 100 Gb/s",
            "hal02 mlx5_0/1 on edr1/2 runs at 1xEDR, declared 100 Gb/s",
        ]
    }


def test_swapped_cables_are_named(node: Node, rollout: Rollout, mended: None) -> None:
    fabric("swap", "hal01", "hal02")
    wait_for_links(node)
    assert observed(rollout, "hal01") == {}
    assert observed(rollout, MANAGER) == {
        CABLES: [
            "hal01 mlx5_0/1 is on edr1/2, declared edr1/1",
            "hal02 mlx5_0/1 is on edr1/1, declared edr1/2",
        ]
    }


def test_a_replaced_adapter_is_named(node: Node, rollout: Rollout, mended: None) -> None:
    fabric("replace", "hal01", "--guid", "0x506b4b0300c2b2f0")
    wait_for_links(node)
    assert observed(rollout, "hal01") == {"adapter is the declared one [mlx5_0/1]": "0x506b4b0300c2b2f0"}
    assert observed(rollout, MANAGER) == {
        CABLES: [
            "hal01 mlx5_0/1 is not in the fabric, declared edr1/1; there is hal01 mlx5_0 (0x506b4b0300c2b2f0),"
            " which the model does not have"
        ]
    }


def test_errors_of_a_port_are_named(rollout: Rollout, mended: None) -> None:
    fabric("errors", "hal01", "--count", "11")
    assert observed(rollout, "hal01") == {"errors of a port [mlx5_0/1 SymbolErrorCounter]": "11"}


def test_a_second_subnet_manager_is_named_and_mended(node: Node, rollout: Rollout, mended: None) -> None:
    host = node("hal02")
    host.check_output("systemctl unmask opensm && systemctl disable --now opensm 2>/dev/null; dnf -q -y install opensm")
    # It asks the master every second, and takes over the first time without an answer: by default that is a minute.
    options = r"sm_priority 3\nsminfo_polling_timeout 1000\npolling_retry_number 1\n"
    host.check_output(f"printf '{options}' >/etc/rdma/opensm.conf && systemctl start opensm")
    wait_for_managers(node, 2)
    assert rollout.promises("infiniband", MANAGER)[ONE_MASTER]["observed"] == [
        "a subnet manager runs on hal02 mlx5_0/1: standby, priority 3"
    ]
    assert set(observed(rollout, "hal02")) == {
        "no subnet manager where the model has none",
        "no subnet manager can be started where the model has none",
    }
    node(MANAGER).check_output("systemctl stop opensm")
    wait_for_managers(node, 1)
    broken = observed(rollout, MANAGER)
    assert broken["opensm runs"] is False
    assert broken[ONE_MASTER][-1] == f"the master is hal02, declared {MANAGER}"

    done = rollout.converge()
    assert done.status == 0, done.explain()
    wait_for_links(node)
    wait_for_managers(node, 1)
    assert rollout.broken_promises("infiniband", MANAGER) == []
    assert rollout.broken_promises("infiniband", "hal02") == []


def test_a_fabric_is_not_taken_over_without_permission(node: Node, rollout: Rollout, mended: None) -> None:
    """As before a first rollout: another server's subnet manager is the only one, and its links go on."""
    manager, host = node(MANAGER), node("hal02")
    host.check_output("systemctl unmask opensm; dnf -q -y install opensm")
    host.check_output("printf 'sm_priority 3\\n' >/etc/rdma/opensm.conf && systemctl start opensm")
    manager.check_output("systemctl disable --now opensm 2>/dev/null && rm /etc/rdma/opensm.conf")
    wait_for_master(node, "priority 3 ")

    done = rollout.converge(infiniband_takeover_ok=False)
    assert done.status == 0, done.explain()
    assert done.changes == {}
    assert f"{MANAGER}: opensm is not started here: hal02 mlx5_0/1 is master: LID " in done.words
    assert "hal02: opensm is not stopped here: hal02 mlx5_0/1 is master: LID " in done.words
    assert f"With infiniband_takeover_ok: true {MANAGER} takes the fabric over" in done.words
    assert host.service("opensm").is_running
    assert not host.service("opensm").is_masked
    assert not manager.service("opensm").is_running
    assert not manager.file("/etc/rdma/opensm.conf").exists

    # Permission for the other server alone: nobody could take over, so it goes on.
    done = rollout.converge("--limit", "hal02", infiniband_takeover_ok=True, __infiniband_takeover_seconds=2)
    assert done.status == 0, done.explain()
    assert done.changes == {}
    assert "hal02: opensm goes on here until one of ours is master: hal02 mlx5_0/1 is master: LID " in done.words
    assert host.service("opensm").is_running

    done = rollout.converge(infiniband_takeover_ok=True)
    assert done.status == 0, done.explain()
    wait_for_master(node, "priority 15 ")
    wait_for_managers(node, 1)
    wait_for_links(node)
    assert not host.service("opensm").is_running
    for name in (MANAGER, "hal02"):
        assert rollout.broken_promises("infiniband", name) == []


def wait_for_master(node: Node, words: str) -> None:
    """Return when sminfo on hal01 says this of the master."""
    for _ in range(120):
        shown = node("hal01").run("sminfo 2>&1 || :").stdout
        if words in shown and "SMINFO_MASTER" in shown:
            return
        time.sleep(0.5)
    raise AssertionError(shown)


def test_another_stack_is_refused_before_anything_is_installed(node: Node, rollout: Rollout) -> None:
    """MLNX_OFED under the distribution's declared stack, by what its program says; and the other way round."""
    host = node("hal01")
    host.check_output(
        "printf '#!/bin/sh\\necho MLNX_OFED_LINUX-4.6-1.0.1.1:\\n' >/usr/bin/ofed_info && chmod 755 /usr/bin/ofed_info"
    )
    try:
        done = rollout.converge("--limit", "hal01")
    finally:
        host.check_output("rm /usr/bin/ofed_info")
    assert done.status != 0
    assert done.changes == {}
    assert "hal01 has MLNX_OFED_LINUX-4.6-1.0.1.1, and infiniband_stack is inbox" in done.words
    done = rollout.converge("--limit", "hal01", **archive(host, "4.7-3.2.9.1"))
    host.check_output("rm -r /srv/ofed")
    assert done.status != 0
    assert done.changes == {}
    assert re.search(r"hal01 has rdma-core-\S+ \(rdma.service is enabled\), and infiniband_stack is mlnx", done.words)
    assert "Drain the node, and give infiniband_restart_ok: true" in done.words


def wait_for_managers(node: Node, count: int) -> None:
    """Return when the subnet administration knows of this many subnet managers, and each has found its place."""
    for _ in range(40):
        shown = node(MANAGER).run("saquery SMIR 2>&1 || :").stdout
        states = re.findall(r"SMState\.+(\d)", shown)
        if len(states) == count and set(states) <= {STANDBY, MASTER}:
            return
        time.sleep(0.5)
    raise AssertionError(shown)


def test_other_settings_wait_for_permission(node: Node, rollout: Rollout) -> None:
    host = node(MANAGER)
    before = host.check_output("pgrep --oldest opensm-launch")
    done = rollout.converge("--limit", MANAGER, infiniband_opensm_priority=14)
    assert done.status == 0, done.explain()
    assert host.check_output("pgrep --oldest opensm-launch") == before
    result = rollout.promises("infiniband", MANAGER, infiniband_opensm_priority=14)["subnet manager has its priority"]
    assert (result["status"], result["observed"]) == ("fail", "15")
    done = rollout.converge("--limit", MANAGER, infiniband_opensm_priority=15, infiniband_restart_ok=True)
    assert done.status == 0, done.explain()
    assert host.check_output("pgrep --oldest opensm-launch") != before
    wait_for_links(node)


def test_what_cannot_be_read_is_not_taken_for_well(node: Node, rollout: Rollout) -> None:
    node("hal01").check_output("mv /usr/sbin/ibstat /usr/sbin/ibstat.away")
    try:
        results = rollout.promises("infiniband", "hal01")
    finally:
        node("hal01").check_output("mv /usr/sbin/ibstat.away /usr/sbin/ibstat")
    assert {one["status"] for name, one in results.items() if name.endswith("[mlx5_0/1]")} == {"unknown"}


def test_what_does_not_start_at_boot_is_named_and_mended(node: Node, rollout: Rollout) -> None:
    node(MANAGER).check_output("systemctl disable rdma opensm")
    assert observed(rollout, MANAGER) == {"drivers are loaded at boot": False, "opensm starts at boot": False}
    done = rollout.converge("--limit", MANAGER)
    assert done.status == 0, done.explain()
    assert node(MANAGER).service("rdma").is_enabled
    assert node(MANAGER).service("opensm").is_enabled
    assert observed(rollout, MANAGER) == {}


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"infiniband_gpudirect": True}, "whose drivers have no interface to the memory of GPUs"),
        ({"infiniband_opensm_priority": 16}, "infiniband_opensm_priority is 16; write 0 to 15, for 1 subnet managers"),
        (
            {"infiniband_subnet_managers": ["hal-mgmt2"]},
            "infiniband_subnet_managers names hal-mgmt2, which has no port",
        ),
        ({"infiniband_error_limits": {"SymbolErrorCounter": "many"}}, "write 0 or more for each counter"),
    ],
)
def test_what_makes_no_sense_is_refused(rollout: Rollout, variables: dict[str, Any], said: str) -> None:
    done = rollout.converge("--limit", MANAGER, **variables)
    assert done.status != 0
    assert said in done.words


# What MLNX_OFED's installer leaves behind, as far as the role looks at it; it does nothing else.
INSTALLER = """#!/bin/sh
# Stand-in of the virtual HAL for the installer of MLNX_OFED.
echo "$@" >/root/mlnxofedinstall.arguments
printf '#!/bin/sh\\necho MLNX_OFED_LINUX-%s:\\n' "$(cat version)" >/usr/bin/ofed_info
chmod 0755 /usr/bin/ofed_info
while [ $# -gt 0 ]; do [ "$1" != --kernel ] || kernel=$2; shift; done
mkdir -p "/lib/modules/$kernel/extra/mlnx-ofa_kernel/drivers/net/ethernet/mellanox/mlx5/core"
touch "/lib/modules/$kernel/extra/mlnx-ofa_kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko"
printf '[Service]\\nType=oneshot\\nRemainAfterExit=yes\\nExecStart=/bin/true\\n[Install]\\nWantedBy=sysinit.target\\n' \
  >/usr/lib/systemd/system/openibd.service
systemctl daemon-reload
"""


def archive(host: Host, version: str) -> dict[str, Any]:
    """Leave an archive of a stand-in for OFED on the node; return the variables that name it."""
    name = f"MLNX_OFED_LINUX-{version}-rhel7.6alternate-ppc64le"
    host.check_output(
        f"mkdir -p /srv/ofed/{name} && cd /srv/ofed && printf {version} >{name}/version"
        f" && cat >{name}/mlnxofedinstall <<'EOF'\n{INSTALLER}EOF\n"
        f"chmod 0755 {name}/mlnxofedinstall && tar czf {name}.tgz {name}"
    )
    return {
        "infiniband_stack": "mlnx_ofed",
        "infiniband_mlnx_ofed_version": version,
        "infiniband_mlnx_ofed_url": f"file:///srv/ofed/{name}.tgz",
        "infiniband_mlnx_ofed_sha256": host.check_output(f"sha256sum /srv/ofed/{name}.tgz").split()[0],
        "infiniband_mlnx_ofed_build_packages": ["rsync"],
    }


def test_ofed_is_built_for_the_declared_kernel_and_changed_only_with_permission(node: Node, rollout: Rollout) -> None:
    """By a stand-in for its installer: what the role asks of it, and when."""
    host, declared = node("hal02"), "declared OFED is installed, with drivers for the declared kernel"
    first = archive(host, "4.7-3.2.9.1")
    assert rollout.promises("infiniband", "hal02", **first)[declared]["observed"] == [
        "MLNX_OFED 4.7-3.2.9.1 is not installed",
        "its drivers are not built for kernel 4.18.0-80.7.2.el7.ppc64le",
    ]
    done = rollout.converge("--limit", "hal02", infiniband_restart_ok=True, **first)
    assert done.status == 0, done.explain()
    assert host.file("/root/mlnxofedinstall.arguments").content_string == (
        "--force --without-fw-update --distro rhel7.6alternate --add-kernel-support"
        " --kernel 4.18.0-80.7.2.el7.ppc64le --kernel-sources /usr/src/kernels/4.18.0-80.7.2.el7.ppc64le\n"
    )
    assert host.service("openibd").is_enabled
    host.check_output("rm /root/mlnxofedinstall.arguments")
    done = rollout.converge("--limit", "hal02", **first)
    assert (done.status, done.changes) == (0, {}), done.explain()
    assert rollout.broken_promises("infiniband", "hal02", **first) == []

    second = archive(host, "4.9-0.1.7.0")
    done = rollout.converge("--limit", "hal02", **second)
    assert done.status == 0, done.explain()
    assert "Not changed without infiniband_restart_ok" in done.words
    assert not host.file("/root/mlnxofedinstall.arguments").exists
    assert rollout.promises("infiniband", "hal02", **second)[declared]["observed"] == (
        ["MLNX_OFED_LINUX-4.7-3.2.9.1 is installed, declared MLNX_OFED_LINUX-4.9-0.1.7.0"]
    )
    done = rollout.converge("--limit", "hal02", infiniband_restart_ok=True, **second)
    assert done.status == 0, done.explain()
    assert host.check_output("ofed_info -s") == "MLNX_OFED_LINUX-4.9-0.1.7.0:"


def test_an_ofed_that_nobody_can_fetch_is_refused(rollout: Rollout) -> None:
    done = rollout.converge("--limit", "hal02", infiniband_stack="mlnx_ofed")
    assert done.status != 0
    assert (
        "infiniband_stack is mlnx_ofed, so say where its archive is (infiniband_mlnx_ofed_url: nothing)" in done.words
    )
