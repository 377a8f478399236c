"""An instance's emulated BMCs: what they are made from, where they are, and that nothing of them stays behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bmc.spec import read_fleet
from bmc.state import State
from testbed import bmcs, nodes
from testbed.errors import VirtualNodesError
from testbed.machines import Machines

from hal_inventory.derive.inventory import pack
from hal_inventory.derive.slices import derive
from hal_inventory.load import load
from hal_inventory.packed import host_vars
from tests.unit.virtual_hal.testbed.test_nodes import document

ROOT = Path(__file__).resolve().parents[4]

OPENBMC = {"kind": "openbmc", "address": "10.64.1.101"}
FACTS = {"serial": "S1", "model": "IBM Power System AC922 8335-GTH", "memory_mb": 262144, "cpus": {"total": 160}}


def plan(enabled: bool = True, networks: dict[str, Any] | None = None, **node: Any) -> nodes.Plan:
    """Return the plan of one node with a BMC."""
    made = document(bmcs={"enabled": enabled})
    made["nodes"][0].update(FACTS, bmc=OPENBMC, **node)
    if networks is not None:
        made["networks"] = networks
    return nodes.read_plan(json.dumps(made))


def test_bmcs_are_made_from_the_models_facts() -> None:
    told = bmcs.fleet("virtual", plan(macs={"management": "02:48:41:4c:02:01", "bmc": "02:48:41:4c:03:01"}).bmc_specs())
    fleet = read_fleet(json.dumps(told), "the plan")  # by the reader of those who serve
    assert fleet.hardware == "nodes"
    spec = fleet.bmcs[0]
    assert (spec.name, spec.kind, spec.address, spec.serial) == ("hal01", "openbmc", "10.64.1.101", "S1")
    assert (spec.memory_mb, spec.cpus, spec.gpus) == (262144, 160, 2)
    assert spec.macs["bmc"] == "02:48:41:4c:03:01"


def test_a_node_tells_its_bmc_why_it_ends_only_where_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "capture", lambda *_, **__: "")
    monkeypatch.setattr(Path, "read_bytes", lambda _: b"a key")
    found = {on: nodes._files(plan(on, gpus=[]), plan(on, gpus=[]).nodes[0]) for on in (True, False)}
    hook = found[True][bmcs.SHUTDOWN_HOOK]
    assert hook[0] == 0o755, "systemd runs no other"
    assert bmcs.SHUTDOWN_HOOK not in found[False]


def test_the_reference_site_has_a_bmc_for_each_of_its_servers() -> None:
    # As the virtual source has it: a real site contacts no address that is a placeholder.
    site = replace(load(ROOT / "inventory/hal/cluster.yml"), virtual=True)
    made = document(bmcs={"enabled": True}, networks=derive(site, "networks", {}))
    made["nodes"] = [values["hal_node"] for values in host_vars(pack(site)).values()]
    served = nodes.read_plan(json.dumps(made))
    assert served.bmc_network == "bmc"
    fleet = read_fleet(json.dumps(bmcs.fleet("virtual", served.bmc_specs())), "the plan")
    kinds = [spec.kind for spec in fleet.bmcs]
    assert {kind: kinds.count(kind) for kind in kinds} == {"supermicro": 3, "ipmi": 2, "openbmc": 17}
    assert fleet.named("hal05").model_dump(include={"address", "serial", "gpus", "cpus"}) == {
        "address": "10.64.1.105",
        "serial": "PLACEHOLDER-HAL05",
        "gpus": 4,
        "cpus": 160,
    }


def test_only_an_instance_that_asks_for_bmcs_has_them() -> None:
    assert plan(enabled=False).bmc_network is None
    assert nodes.read_plan(json.dumps(document())).bmc_network is None
    assert plan().bmc_network == "bmc"


def test_a_node_without_a_bmc_is_left_out() -> None:
    made = document(bmcs={"enabled": True})
    made["nodes"] = [{**made["nodes"][0], **FACTS, "bmc": OPENBMC}, {**made["nodes"][0], "name": "hal02", "bmc": None}]
    assert [spec["name"] for spec in nodes.read_plan(json.dumps(made)).bmc_specs()] == ["hal01"]


@pytest.mark.parametrize(
    ("networks", "message"),
    [
        (
            {"management": {"cidr": "10.64.0.0/24"}, "ipoib": {"cidr": "10.64.2.0/24"}},
            "bmcs: no node has a BMC with an address in a network of the plan",
        ),
        (
            {"management": {"cidr": "10.64.0.0/24"}, "bmc": {"cidr": "10.9.1.0/24"}, "ipoib": {"cidr": "10.64.2.0/24"}},
            "hal01: its BMC's 10.64.1.101 is not in bmc 10.9.1.0/24",
        ),
    ],
)
def test_a_plan_whose_bmcs_would_be_nowhere_is_refused(networks: dict[str, Any], message: str) -> None:
    with pytest.raises(VirtualNodesError) as caught:
        plan(networks=networks)
    assert str(caught.value) == f"plan of the nodes: {message}"


def test_the_container_has_an_address_that_nobody_has() -> None:
    assert bmcs.address("10.64.1.0/24", ["10.64.1.101"]) == "10.64.1.254"
    assert bmcs.address("10.64.1.0/24", ["10.64.1.254", "10.64.1.253"]) == "10.64.1.252"
    assert bmcs.address("10.64.1.0/30", ["10.64.1.1"]) == "10.64.1.2"
    with pytest.raises(VirtualNodesError, match=r"^network 10\.64\.1\.0/30: no address is left"):
        bmcs.address("10.64.1.0/30", ["10.64.1.1", "10.64.1.2"])


def test_the_container_is_removed_with_its_instance() -> None:
    options = bmcs.options("virtual", nodes.LABEL, "bmc", "10.64.1.254")
    assert "--name=virtual-bmcs" in options
    assert "--label=hal.virtual=virtual" in options  # what destroy finds containers by
    assert "--label=hal.node=bmcs" in options
    assert "--network=virtual-bmc:ip=10.64.1.254,interface_name=eth0" in options


def test_all_addresses_are_given_at_once_and_twice_is_no_mistake() -> None:
    assert bmcs.address_commands(["10.64.1.101", "10.64.1.102"], "10.64.1.0/24") == (
        "address replace 10.64.1.101/24 dev eth0\naddress replace 10.64.1.102/24 dev eth0\n"
    )


def test_the_process_that_serves_is_told_whose_network_it_listens_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path))
    words = bmcs.serve_command("mini", 4711)
    assert words[-5:] == ["bmc", "--instance", "mini", "serve", "--network-of=4711"]
    assert f"HAL_CACHE_DIR={tmp_path}" in words  # sudo keeps no environment


# What `podman` would be asked, in order


class Podman:
    """Plays podman: remembers what it is asked, and answers as if the container ran."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, argv: Any, stdin: bytes | None = None) -> str:
        self.asked.append([str(word) for word in argv[1:]])
        return "4711\n" if "ps" in self.asked[-1] else ""


@pytest.fixture
def podman(monkeypatch: pytest.MonkeyPatch) -> Podman:
    """What plays podman, without networks and without anybody who serves."""
    played = Podman()
    monkeypatch.setattr(nodes, "capture", played)
    monkeypatch.setattr(nodes, "_network", lambda plan, name: played.asked.append(["network", name]))
    monkeypatch.setattr(bmcs, "start", lambda *words: played.asked.append(["serve", str(words[1]), words[2][0]]))
    monkeypatch.setattr(bmcs, "wait_for_end", lambda instance: played.asked.append(["wait for the end"]))
    monkeypatch.setattr(bmcs, "serving", lambda instance: False)
    return played


def first(words: list[str]) -> str:
    """Return the first word of a call."""
    return words[0]


def test_network_container_and_process_are_made_in_this_order(podman: Podman) -> None:
    assert nodes._bmcs(plan(), None) == ["virtual-bmcs"]
    asked = ["network", "wait for the end", "create", "start", "ps", "serve"]
    assert [first(words) for words in podman.asked] == asked
    assert podman.asked[2][-3:] == ["localhost/hal-node:x", "sleep", "infinity"]
    assert podman.asked[5] == ["serve", "4711", "10.64.1.101"]


def test_what_runs_is_left_alone(podman: Podman, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes._bmcs(plan(), None)
    made = next(word for word in podman.asked[2] if word.startswith("--label=hal.definition=")).rpartition("=")[2]
    known = {"state": "running", "definition": made, "id": "x"}
    podman.asked.clear()
    monkeypatch.setattr(bmcs, "serving", lambda instance: True)
    assert nodes._bmcs(plan(), known) == []
    assert [first(words) for words in podman.asked] == ["network"]
    podman.asked.clear()
    monkeypatch.setattr(bmcs, "serving", lambda instance: False)  # the process was killed
    assert nodes._bmcs(plan(), known) == []
    assert [first(words) for words in podman.asked] == ["network", "ps", "serve"]


@pytest.mark.parametrize(("state", "definition"), [("running", "another"), ("exited", None)])
def test_a_container_of_another_model_or_a_stopped_one_is_made_anew(
    podman: Podman, state: str, definition: str | None
) -> None:
    nodes._bmcs(plan(), None)
    made = next(word for word in podman.asked[2] if word.startswith("--label=hal.definition=")).rpartition("=")[2]
    podman.asked.clear()
    known = {"state": state, "definition": definition or made, "id": "x"}
    assert nodes._bmcs(plan(), known) == ["virtual-bmcs"]
    assert [first(words) for words in podman.asked][:4] == ["network", "rm", "wait for the end", "create"]


def test_who_says_something_else_is_not_ready_and_is_ended_as_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def as_root(argv: Any, env: Any = None) -> list[str]:
        asked.append(list(argv))
        return list(argv)

    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(bmcs, "READY_SECONDS", 2)
    monkeypatch.setattr(bmcs, "need", lambda program, package: program)
    monkeypatch.setattr(bmcs, "capture", lambda argv, stdin=None: "")
    monkeypatch.setattr(bmcs, "as_root", as_root)
    told = ["sh", "-c", "echo served already; exec sleep 600"]
    monkeypatch.setattr(bmcs, "serve_command", lambda instance, pid: told)
    with pytest.raises(VirtualNodesError, match=r"^emulated BMCs of mini: "):
        bmcs.start("mini", 1, ["10.64.1.101"], "10.64.1.0/24", {})
    assert asked[-1][:3] == ["kill", "-TERM", "--"]
    process = asked[-1][3].removeprefix("-")
    state = Path(f"/proc/{process}/stat")
    while state.exists() and state.read_text().split()[2] != "Z":  # its parent, this test, has not asked for its status
        time.sleep(0.05)


def test_what_bmcs_switched_off_or_left_in_firmware_is_started_by_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(bmcs, "as_root", list)
    place = bmcs.folder("mini")
    assert bmcs.kept_off("mini", ["hal01"]) == set()
    states = {
        "hal01": State(power=True),
        "hal02": State(power=False),
        "hal03": State(power=True, in_firmware=True),
        "hal04": State(power=False),  # runs
    }
    place.mkdir(parents=True)
    for name, state in states.items():
        (place / f"{name}.json").write_text(state.model_dump_json(indent=1))
    assert bmcs.kept_off("mini", ["hal01", "hal02", "hal03", "new"]) == {"hal02", "hal03"}


@pytest.mark.root  # to make a network namespace
def test_a_node_boots_over_the_network_as_it_is_plugged_in() -> None:
    macs = {"management": "02:48:41:4c:02:01"}
    spec = read_fleet(json.dumps(bmcs.fleet("virtual", plan(macs=macs).bmc_specs())), "the plan").bmcs[0]
    assert spec.boot is not None
    assert spec.boot.model_dump() == {
        "arch": "ppc64le",
        "kernel": "4.18.0-80.7.2.el7",
        "image": "localhost/hal-node:x",
        "network": "virtual-management",
        "address": "10.64.0.101",
        "disks": {},
    }
    assert plan(macs={}).bmc_specs()[0]["boot"] is None
    machine = plan(macs=macs).model_copy(update={"machines": Machines(nodes=frozenset(["hal01"]), image="x")})
    assert machine.bmc_specs()[0]["boot"] is None


# The same without podman: a process with a network of its own plays the container


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """A process with a network of its own, and eth0 in it."""
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path))
    links = "ip link set lo up && ip link add eth0 type veth peer name eth1 && ip link set eth0 up"
    script = f"{links} && echo up && exec sleep infinity"
    pipe = subprocess.PIPE
    with subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "up\n":
                pytest.skip("this machine allows no network namespaces, or its kernel has no veth")
            yield process
        finally:
            process.kill()  # or a test that fails would wait for it
    bmcs.remove("mini")


def inside(owner: subprocess.Popen[str], *words: str) -> str:
    """Return what a command prints in the owner's network."""
    command = ["nsenter", f"--net=/proc/{owner.pid}/ns/net", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.root  # a network of its own
def test_bmcs_answer_at_their_addresses_and_end_with_the_container(owner: subprocess.Popen[str]) -> None:
    told = bmcs.fleet("mini", plan().bmc_specs())
    bmcs.start("mini", owner.pid, ["10.64.1.101"], "10.64.1.0/24", told)
    assert bmcs.serving("mini")
    shown = json.loads(inside(owner, "ip", "-json", "address", "show", "eth0"))[0]["addr_info"]
    assert {(one["local"], one["prefixlen"]) for one in shown if one["family"] == "inet"} == {("10.64.1.101", 24)}
    root = inside(owner, "curl", "--silent", "--insecure", "https://10.64.1.101/redfish/v1/")
    assert json.loads(root)["Id"] == "RootService"
    owner.kill()
    assert bmcs.remove("mini") == [str(bmcs.folder("mini"))]
    assert not bmcs.folder("mini").exists()
    assert not bmcs.serving("mini")
    assert bmcs.remove("mini") == []


@pytest.mark.root  # a network of its own
def test_who_cannot_serve_says_why(owner: subprocess.Popen[str]) -> None:
    told = bmcs.fleet("mini", [{**plan().bmc_specs()[0], "kind": "ilo"}])
    with pytest.raises(VirtualNodesError) as caught:
        bmcs.start("mini", owner.pid, ["10.64.1.101"], "10.64.1.0/24", told)
    assert str(caught.value).startswith("emulated BMCs of mini: setup: ")
    assert "bmcs.0.kind: Input should be 'openbmc'" in str(caught.value)


@pytest.mark.root  # a network of its own
def test_podman_is_run_in_the_network_of_this_machine(owner: subprocess.Popen[str]) -> None:
    program = (
        "import os\n"
        "from bmc.hardware import VirtualNode\n"
        "from bmc.serve import enter_network\n"
        "kept = os.open('/proc/self/ns/net', os.O_RDONLY | os.O_CLOEXEC)\n"
        f"enter_network({owner.pid})\n"
        "print(os.readlink('/proc/thread-self/ns/net'))\n"
        "print(VirtualNode('mini', kept)._run(['readlink', '/proc/self/ns/net']), end='')\n"
    )
    shared = str(Path(bmcs.__file__).parent.parent)
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": shared})
    theirs = os.readlink(f"/proc/{owner.pid}/ns/net")
    assert said.stdout.splitlines() == [theirs, os.readlink("/proc/self/ns/net")]
