"""A proposal answers placeholders, keeps the rest as it is written, and overwrites nothing that was declared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hal_inventory.capture.document import CaptureFileError, parse_capture
from hal_inventory.capture.propose import propose
from hal_inventory.capture.work import Proposal
from hal_inventory.load import load_bytes

HAL = Path(__file__).parents[4] / "inventory/hal/cluster.yml"
Captured = Callable[[str], str]
Machine = Callable[..., dict[str, Any]]
EMBER = """\
# A small site.
format: 1
name: ember
domain: ember.example
networks:
  management: {kind: ethernet, cidr: 10.20.0.0/24}
  bmc: {kind: bmc, cidr: 10.20.1.0/24}
profiles:
  server:
    model: !placeholder a server   # what it says on the front
    arch: ppc64le
    cpus: {model: POWER9, sockets: 2, cores_per_socket: !placeholder 20, threads_per_core: 4}
    memory_mb: !placeholder 131072
    bmc: openbmc
    kernel: 4.18.0-80.7.2.el7
nodes:
  front:
    role: login
    profile: server
    serial: !placeholder FRONT  # on the back
    addresses: {management: 10.20.0.1, bmc: 10.20.1.1}
    macs: {management: !placeholder "02:00:00:00:00:01"}

  node[1-3]:   # three of a kind
    role: compute
    profile: server
    serial: [ABC1, !placeholder "NODE[2-3]"]
    addresses:
      management: 10.20.0.[11-13]
      bmc: 10.20.1.[11-13]
    # the last line
"""


def link(name: str, mac: str) -> str:
    return f"2: {name}: <BROADCAST,UP,LOWER_UP> mtu 1500 state UP \\    link/ether {mac} brd ff:ff:ff:ff:ff:ff\n"


def address(name: str, text: str) -> str:
    return f"2: {name}    inet {text}/24 scope global {name}\\       valid_lft forever\n"


def proposal(*captures: dict[str, Any], model: str = EMBER, node: str | None = None) -> Proposal:
    read = [(f"{at}.json", parse_capture(json.dumps(one).encode(), f"{at}.json")) for at, one in enumerate(captures)]
    return propose(model.encode(), "cluster.yml", read, node=node)


def changed(done: Proposal) -> list[str]:
    """Return the lines that a diff takes away and adds."""
    return [line for line in done.diff.splitlines()[2:] if line[:1] in "+-"]


def told(done: Proposal) -> list[str]:
    return [str(finding) for finding in done.findings]


def test_placeholders_that_a_machine_answers_go_and_the_rest_stays_as_written(
    machine: Machine, captured: Captured
) -> None:
    done = proposal(
        machine(
            "front.ember.example",
            {"/proc/device-tree/model": "9006-12P", "/proc/device-tree/system-id": "1309AGA"},
            lscpu=captured("lscpu/ac922.txt"),
            ip_link=link("em1", "70:E2:84:14:33:65"),
            ip_address=address("em1", "10.20.0.1"),
            ipmitool=captured("ipmitool/lan_print.txt"),
            uname="4.18.0-80.7.2.el7.ppc64le\n",
        )
    )
    assert told(done) == []
    assert changed(done) == [
        "-    model: !placeholder a server   # what it says on the front",
        '+    model: "9006-12P"   # what it says on the front',
        "-    cpus: {model: POWER9, sockets: 2, cores_per_socket: !placeholder 20, threads_per_core: 4}",
        "+    cpus: {model: POWER9, sockets: 2, cores_per_socket: 16, threads_per_core: 4}",
        "-    serial: !placeholder FRONT  # on the back",
        '+    serial: "1309AGA"  # on the back',
        '-    macs: {management: !placeholder "02:00:00:00:00:01"}',
        '+    macs: {management: "70:e2:84:14:33:65", bmc: "00:1e:67:58:97:56"}',
    ]
    assert done.diff.startswith("--- a/cluster.yml\n+++ b/cluster.yml\n")
    assert {(one.field, one.value) for one in done.proposed} >= {("nodes.front.serial", "1309AGA")}


def test_one_node_of_a_range_is_answered_and_the_others_keep_their_placeholders(machine: Machine) -> None:
    done = proposal(machine("node2", {"/proc/device-tree/system-id": "IBM,02ABC2"}, lscpu="x"))
    assert changed(done) == [
        '-    serial: [ABC1, !placeholder "NODE[2-3]"]',
        "+    serial: [",
        "+        ABC1,                # node1",
        "+        ABC2,                # node2",
        "+        !placeholder NODE3,  # node3",
        "+      ]",
    ]


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (
            "    serial:\n      - ABC1  #\n      - !placeholder NODE2  # two\n      - !placeholder NODE3  #\n",
            ["-      - !placeholder NODE2  # two", "+      - XYZ2  # two"],
        ),
        (
            "    serial:\n      - ABC1\n      - !placeholder NODE[2-3]  # two\n",
            [
                "-      - ABC1",
                "-      - !placeholder NODE[2-3]  # two",
                "+      [",
                "+          ABC1,                # node1",
                "+          XYZ2,                # node2",
                "+          !placeholder NODE3,  # node3",
                "+        ]  # two",
            ],
        ),
    ],
)
def test_a_list_that_is_written_line_by_line_keeps_its_comments(
    machine: Machine, written: str, lines: list[str]
) -> None:
    model = EMBER.replace('    serial: [ABC1, !placeholder "NODE[2-3]"]\n', written)
    done = proposal(machine("node2", {"/proc/device-tree/system-id": "XYZ2"}), model=model)
    assert changed(done) == lines


def test_a_placeholder_that_turns_out_right_loses_its_tag_only(machine: Machine) -> None:
    both = [machine(f"node{at}", {"/proc/device-tree/system-id": f"NODE{at}"}) for at in (2, 3)]
    assert changed(proposal(*both)) == [
        '-    serial: [ABC1, !placeholder "NODE[2-3]"]',
        '+    serial: [ABC1, "NODE[2-3]"]',
    ]


def test_parts_that_are_not_declared_are_added_below_the_entry(machine: Machine, captured: Captured) -> None:
    gpu = captured("nvidia_smi/ac922_first_of_four.txt").replace(
        "Attached GPUs                       : 4", "Attached GPUs : 1"
    )
    gpus = "    gpus: [{index: 0, type: v100, model: V100, memory_mb: 16384, socket: 0}]\n"
    model = EMBER.replace("    bmc: openbmc\n", f"    bmc: openbmc\n{gpus}")
    node1 = machine("node1", ibstat=captured("ibstat/active.txt"), lsblk=captured("lsblk/nvme.txt"), nvidia_smi=gpu)
    done = proposal(node1, model=model)
    added = [line[1:] for line in changed(done)]
    assert added[:6] == [
        "    port_guids:",
        "      hfi1_0/1: [",
        '          "0x0011750101670fb0",                     # node1',
        "          !placeholder PLACEHOLDER-NODE2-HFI1_0-1,  # node2",
        "          !placeholder PLACEHOLDER-NODE3-HFI1_0-1,  # node3",
        "        ]",
    ]
    assert "    gpu_uuids:" in added
    assert '      "0": [' in added
    assert done.diff.index("hfi1_0/1") < done.diff.index("# the last line")
    after = load_bytes(applied(model, done), "x")
    assert after.nodes["node1"].parts["disks"] == {"nvme0n1": "eui.002538b321c5527c"}
    assert after.nodes["node2"].parts["disks"] == {"nvme0n1": "PLACEHOLDER-NODE2-NVME0N1"}
    assert "disks" in {one.field.split(".")[2] for one in after.placeholders}


def applied(text: str, done: Proposal) -> bytes:
    """Return the text with the diff applied, by reading its new side: hunks are of this text and in order."""
    lines, result, at = text.splitlines(keepends=True), [], 0
    for line in done.diff.splitlines(keepends=True)[2:]:
        if line.startswith("@@"):
            start = int(line.split()[1].split(",")[0][1:]) - 1
            result += lines[at:start]
            at = start
        elif line[0] == "+":
            result.append(line[1:])
        else:
            result += [line[1:]] if line[0] == " " else []
            at += 1
    return "".join(result + lines[at:]).encode()


def test_what_somebody_declared_is_not_overwritten(machine: Machine, captured: Captured) -> None:
    done = proposal(
        machine(
            "node1",
            {"/proc/device-tree/system-id": "XYZ9"},
            lscpu=captured("lscpu/sockets_swapped.txt"),
            uname="4.14.0-115.el7a.ppc64le",
        )
    )
    assert told(done) == [
        "cluster.yml:27: nodes.node[1-3].serial: node1 has ABC1 here; 0.json says XYZ9",
        "cluster.yml:12: profiles.server.cpus.sockets: is 2; 0.json says 10",
        "cluster.yml:12: profiles.server.cpus.threads_per_core: is 4; 0.json says 8",
        "cluster.yml:15: profiles.server.kernel: is 4.18.0-80.7.2.el7; 0.json says 4.14.0-115.el7a",
    ]
    assert "XYZ9" not in done.diff


def test_what_is_wrong_with_a_machine_is_said(machine: Machine, captured: Captured) -> None:
    document = machine("node1", lscpu=captured("lscpu/processors_off.txt"), ibstat=captured("ibstat/down.txt"))
    document["outputs"]["nvidia_smi"] = {
        "argv": [],
        "status": 15,
        "stdout": captured("nvidia_smi/lost.txt"),
        "stderr": "",
    }
    done = proposal(document)
    assert "0.json: outputs.lscpu: processors 128-255 are off" in told(done)
    assert "0.json: outputs.ibstat: port mlx5_7/1 is Down, LinkUp" in told(done)
    assert "0.json: outputs.nvidia_smi: GPU 0000:03:00.0: GPU is lost.  Reboot the system to recover this GPU" in told(
        done
    )
    short = proposal(machine("node1", nvidia_smi=captured("nvidia_smi/ac922_first_of_four.txt")))
    assert "0.json: outputs.nvidia_smi: 1 of 4 GPUs answered" in told(short)
    assert "cluster.yml:9: profiles.server.gpus: 0 are declared; in 0.json 1 answer" in told(short)


def test_machines_of_one_kind_that_differ_answer_nothing(machine: Machine, captured: Captured) -> None:
    lscpu = captured("lscpu/ac922.txt")
    other = lscpu.replace("Core(s) per socket:    16", "Core(s) per socket:    20")
    done = proposal(machine("node1", lscpu=lscpu), machine("node2", lscpu=other))
    assert told(done) == [
        "cluster.yml:12: profiles.server.cpus.cores_per_socket: machines of one profile differ: "
        "0.json says 16, 1.json says 20"
    ]
    assert done.diff == ""


def test_two_machines_with_one_mac_make_no_proposal(machine: Machine) -> None:
    same = link("em1", "70:e2:84:14:33:65")
    document = machine(
        "front", ip_link=same, ip_address=address("em1", "10.20.0.1"), ipmitool="MAC Address : 70:e2:84:14:33:65"
    )
    done = proposal(document)
    assert done.diff == ""
    assert any("with what was captured: MAC used twice: 70:e2:84:14:33:65" in line for line in told(done))


def test_a_machine_that_is_no_node_is_named_and_can_be_told(machine: Machine) -> None:
    stranger = machine("localhost", {"/proc/device-tree/system-id": "1309AGA"})
    assert (
        told(proposal(stranger))[-1]
        == '0.json: host: "localhost" is not a node of site ember; name its node with --node'
    )
    assert '+    serial: "1309AGA"  # on the back' in changed(proposal(stranger, node="front"))
    known = machine("localhost", {"/proc/device-tree/system-id": "1309AGA"}, ip_address=address("em1", "10.20.0.1"))
    assert '+    serial: "1309AGA"  # on the back' in changed(proposal(known))


def test_a_port_that_cannot_be_told_is_asked_for(machine: Machine) -> None:
    ports = link("em1", "70:e2:84:14:33:65") + link("em2", "70:e2:84:14:33:66").replace("2: ", "3: ", 1)
    done = proposal(machine("front", ip_link=ports))
    assert (
        "0.json: outputs.ip_link: no interface with an address in 10.20.0.0/24 for management; "
        "connected are em1 70:e2:84:14:33:65, em2 70:e2:84:14:33:66"
    ) in told(done)


def test_an_interface_that_is_declared_is_the_one_that_is_looked_at(machine: Machine) -> None:
    model = EMBER.replace("    bmc: openbmc\n", "    bmc: openbmc\n    interfaces: {management: {name: em2}}\n")
    ports = link("em1", "70:e2:84:14:33:65") + link("em2", "70:e2:84:14:33:66").replace("2: ", "3: ", 1)
    done = proposal(machine("front", ip_link=ports), model=model)
    assert '+    macs: {management: "70:e2:84:14:33:66"}' in changed(done)
    other = proposal(machine("front", ip_link=ports, ip_address=address("em1", "10.20.0.1")), model=model)
    assert "cluster.yml:15: profiles.server.interfaces.management.name: is em2; 0.json says em1" in told(other)


def test_a_bmc_tells_its_mac_and_the_serial_number(captured: Captured) -> None:
    port = json.loads(captured("redfish/witherspoon_port.json"))
    chassis = {"@odata.type": "#Chassis.v1_4_0.Chassis", **json.loads(captured("redfish/lc922_chassis.json"))}
    document = {
        "format": 1,
        "kind": "bmc",
        "address": "front-bmc",
        "taken_at": "2026-11-21T08:00:00Z",
        "resources": {port["@odata.id"]: port, "/redfish/v1/Chassis/Planar": chassis},
    }
    lines = changed(proposal(document))
    assert '+    serial: "1309AGA"  # on the back' in lines
    assert '+    macs: {management: !placeholder "02:00:00:00:00:01", bmc: "70:e2:84:14:33:65"}' in lines


def test_memory_is_that_of_the_numa_nodes_with_processors(machine: Machine, captured: Captured) -> None:
    """What the GPUs of an AC922 have is NUMA nodes too, and MemTotal of the machine includes it."""
    files = {
        "/proc/meminfo": "MemTotal:       600000000 kB\n",
        "/sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:       133741888 kB\n",
        "/sys/devices/system/node/node8/meminfo": "Node 8 MemTotal:       134217728 kB\n",
        "/sys/devices/system/node/node252/meminfo": "Node 252 MemTotal:       16515072 kB\n",
    }
    done = proposal(machine("node1", files, lscpu=captured("lscpu/ac922.txt")))
    assert "+    memory_mb: 262144" in changed(done)


def test_hal_takes_a_whole_machine_and_stays_a_valid_model(machine: Machine, captured: Captured) -> None:
    """hal05 on the real model: every placeholder of its own is answered in one diff, and nothing else moves."""
    model = HAL.read_text()
    site = load_bytes(model.encode(), "x")
    name = "enP48p1s0f0"
    lscpu = captured("lscpu/ac922.txt").replace("16\n", "20\n", 1).replace(" 128", " 160").replace("0-63", "0-79")
    done = proposal(
        machine(
            "hal05",
            {"/proc/device-tree/system-id": "7861A1A"},
            lscpu=lscpu.replace("64-127", "80-159"),
            ip_link=link(name, "70:e2:84:14:33:65"),
            ip_address=address(name, "10.64.0.105"),
            ipmitool=captured("ipmitool/lan_print.txt"),
            uname="4.18.0-80.7.2.el7.ppc64le",
        ),
        model=model,
    )
    assert told(done) == []
    after = load_bytes(applied(model, done), "x").nodes
    assert (after["hal05"].serial, after["hal05"].macs["management"]) == ("7861A1A", "70:e2:84:14:33:65")
    assert after["hal04"] == site.nodes["hal04"]
    removed = [line for line in changed(done) if line.startswith("-")]
    assert len(removed) == 3  # the lines of the interface, the serial numbers and the MACs
    assert f"+      management: {{name: {name}}}" in changed(done)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x.json: is not the JSON of a capture: Expecting value at line 1"),
        (b"\xff", "x.json: is not UTF-8 text"),
        (b"[]", "x.json: format: is missing; a capture is what hal-inventory capture --script prints on a machine"),
        (b'{"format": 2}', "x.json: format: is 2; this version reads format 1"),
        (b'{"format": 1, "kind": "teapot"}', "x.json: kind: "),
        (b'{"format": 1, "kind": "bmc", "address": 5, "taken_at": "", "resources": {}}', "x.json: address: "),
        (b"[" * 100000, "x.json: is not the JSON of a capture"),
    ],
)
def test_a_file_that_is_no_capture_is_refused_in_one_line(content: bytes, message: str) -> None:
    with pytest.raises(CaptureFileError) as caught:
        parse_capture(content, "x.json")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_output_that_would_be_a_range_or_a_template_is_not_written(machine: Machine) -> None:
    done = proposal(machine("front", {"/proc/device-tree/system-id": "A[1-3]{{ x }}"}))
    assert done.diff == ""
    assert "0.json: serial: 'A[1-3]{{ x }}' cannot stand in a model" in told(done)
