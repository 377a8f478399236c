"""What captures say of parts, ports and kinds of machines: where it is put in a model, and what contradicts it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hal_inventory.capture.document import parse_capture
from hal_inventory.capture.propose import propose
from hal_inventory.capture.work import Proposal
from hal_inventory.load import load_bytes

Machine = Callable[..., dict[str, Any]]
ASH = """\
format: 1
name: ash
domain: ash.example
networks:
  management: {kind: ethernet, cidr: 10.20.0.0/24}
  bmc: {kind: bmc, cidr: 10.20.1.0/24}
  data: {kind: ethernet, cidr: 10.20.2.0/24}
profiles:
  plain:
    model: a server
    arch: x86_64
    cpus: {model: Xeon, sockets: 1, cores_per_socket: 2, threads_per_core: 1}
    memory_mb: 65536
    kernel: 3.10.0-1062.el7
  big:
    model: IBM AC922
    arch: ppc64le
    cpus: {model: POWER9, sockets: 2, cores_per_socket: 4, threads_per_core: 2}
    memory_mb: 100000
    numa:
      - {id: 0, socket: 0, cpus: "0,2,4,6,8,10,12,14"}
      - {id: 8, socket: 1, cpus: "1-15/2"}
    gpus:
      - {index: 0, type: v100, model: Tesla V100, memory_mb: 10000, socket: 0}
      - {index: 1, type: v100, model: Tesla V100, memory_mb: 10000, socket: 1}
    hcas:
      - {model: EDR, ports: 1, rate_gbps: 100, devices: [mlx5_0]}
      - {model: HDR, ports: 1, rate_gbps: 200, devices: [mlx5_1]}
    bmc: openbmc
    kernel: 4.18.0
nodes:
  line: {role: login, profile: plain, addresses: {management: 10.20.0.1}}
  block:
    role: data
    profile: plain
    addresses: {management: 10.20.0.2, data: 10.20.2.2}
    disks:
      system: "0x5000c500a1b2c301"  # the first
    gpu_uuids: {}
  pair[1-2]:
    role: compute
    profile: big
    addresses:
      management: 10.20.0.[11-12]
      bmc: 10.20.1.[11-12]
"""
NO_SERIAL = "resources: no system or chassis has a serial number"
WWN = "0x5000c500a1b2c4f"
SYSTEM_ID = "/proc/device-tree/system-id"


def proposal(*captures: dict[str, Any], model: str = ASH, nodes: dict[str, str] | None = None) -> Proposal:
    read = [(f"{at}.json", parse_capture(json.dumps(one).encode(), f"{at}.json")) for at, one in enumerate(captures)]
    return propose(model.encode(), "cluster.yml", read, nodes=nodes)


def changed(done: Proposal) -> list[str]:
    return [line for line in done.diff.splitlines()[2:] if line[:1] in "+-"]


def told(done: Proposal) -> list[str]:
    """Return the findings, without the one that every capture without lscpu has."""
    return [str(one) for one in done.findings if one.message != "has no processors in it"]


def disk(name: str, wwn: str) -> str:
    return f'NAME="{name}" TYPE="disk" SIZE="5" MODEL="" SERIAL="" WWN="{wwn}" ROTA="0"\n'


def link(name: str, mac: str, *, flags: str = "UP,LOWER_UP", master: str = "", kind: str = "ether") -> str:
    of = f" master {master}" if master else ""
    return f"2: {name}: <{flags}> mtu 1500{of} state UP \\    link/{kind} {mac} brd ff:ff:ff:ff:ff:ff\n"


def address(name: str, text: str) -> str:
    return f"2: {name}    inet {text}/24 scope global {name}\n"


def lscpu(nodes: Sequence[tuple[int, str]], *, arch: str = "ppc64le", model: str = "POWER9") -> str:
    numa = "".join(f"NUMA node{number} CPU(s): {cpus}\n" for number, cpus in nodes)
    return (
        f"Architecture: {arch}\nCPU(s): 16\nOn-line CPU(s) list: 0-15\nThread(s) per core: 2\nCore(s) per socket: 4\n"
        f"Socket(s): 2\nModel name: {model}\n{numa}"
    )


def gpus(*found: tuple[int, str, int]) -> str:
    return f"Attached GPUs : {len(found)}\n" + "".join(
        f"GPU 0000000{at}:04:00.0\n    Product Name : {model}\n    GPU UUID : GPU-{at}\n    Minor Number : {at}\n"
        f"    FB Memory Usage\n        Total : {memory} MiB\n"
        for at, model, memory in found
    )


def port(rate: int, state: str = "Active", physical: str = "LinkUp") -> str:
    return (
        f"CA 'mlx5_0'\n    CA type: MT4115\n    Port 1:\n        State: {state}\n        Physical state: {physical}\n"
        f"        Rate: {rate}\n        Port GUID: 0x0011750101670FB0\n        Link layer: InfiniBand\n"
    )


def bmc(address: str, *ports: tuple[str, str]) -> dict[str, Any]:
    resources: dict[str, Any] = {
        f"/redfish/v1/Managers/bmc/EthernetInterfaces/eth{at}": {
            "MACAddress": mac,
            "IPv4Addresses": [{"Address": of}] if of else [],
        }
        for at, (mac, of) in enumerate(ports)
    }
    resources["/redfish/v1/Systems/system"] = {"@odata.type": "#ComputerSystem.v1_6_0.ComputerSystem"}
    return {"format": 1, "kind": "bmc", "address": address, "taken_at": "x", "resources": resources}


def test_nothing_is_added_to_an_entry_in_one_line(machine: Machine) -> None:
    done = proposal(machine("line", {SYSTEM_ID: "ABC1"}, lsblk=disk("sda", f"{WWN}a")))
    assert done.diff == ""
    one_line = "cannot be added to what is written in one line; write"
    assert told(done) == [
        f"cluster.yml:32: nodes.line: serial {one_line} it line by line",
        f"cluster.yml:32: nodes.line: disks {one_line} the entry line by line",
    ]


def test_a_field_that_an_entry_has_not_is_added_at_its_end(machine: Machine) -> None:
    done = proposal(machine("block", {SYSTEM_ID: "ABC1"}))
    assert (told(done), changed(done)) == ([], ["+    serial: ABC1"])
    assert load_bytes(ASH.replace("  pair[1-2]", "    serial: ABC1\n  pair[1-2]").encode(), "x").nodes["block"].serial
    assert done.diff.index("gpu_uuids: {}") < done.diff.index("+    serial") < done.diff.index("pair[1-2]")
    assert [one.as_dict() for one in done.proposed] == [
        {"field": "nodes.block.serial", "node": "block", "value": "ABC1", "source": "0.json"}
    ]


def test_parts_join_those_that_are_declared(machine: Machine) -> None:
    disks = (
        disk("sda", f"{WWN}a")
        + disk("sdb", f"{WWN}B")
        + disk("system", "0x5000C500A1B2C301")
        + disk("sdc", "")
        + disk("sdd", "eui.0000000000000000")
    )
    done = proposal(machine("block", lsblk=disks))
    assert (told(done), changed(done)) == ([], [f'+      sda: "{WWN}a"', f'+      sdb: "{WWN}b"'])
    assert done.diff.index("# the first") < done.diff.index("+      sda") < done.diff.index("gpu_uuids")


@pytest.mark.parametrize(("written", "before"), [("{}", ""), ('{"1": GPU-8}', '"1": GPU-8, ')])
def test_a_part_joins_what_is_written_in_one_line(machine: Machine, written: str, before: str) -> None:
    two = ", ".join(f"{{index: {at}, type: a, model: A, memory_mb: 16384, socket: 0}}" for at in (0, 1))
    model = ASH.replace("memory_mb: 65536", f"memory_mb: 65536\n    gpus: [{two}]")
    model = model.replace("gpu_uuids: {}", f"gpu_uuids: {written}")
    done = proposal(machine("block", nvidia_smi=gpus((0, "A", 5))), model=model)
    assert changed(done) == [f"-    gpu_uuids: {written}", f'+    gpu_uuids: {{{before}"0": GPU-0}}']


def test_a_part_that_is_another_now_is_a_contradiction(machine: Machine) -> None:
    done = proposal(machine("block", lsblk=disk("system", f"{WWN}1")))
    assert (told(done), done.diff) == (
        ["cluster.yml:38: nodes.block.disks.system: block has 0x5000c500a1b2c301 here; 0.json says 0x5000c500a1b2c4f1"],
        "",
    )


def test_captures_of_one_node_that_differ_are_no_answer(machine: Machine) -> None:
    done = proposal(machine("block", {SYSTEM_ID: "ABC1"}), machine("block", {SYSTEM_ID: "ABC2"}))
    assert (told(done), done.diff) == (
        ["cluster.yml:33: nodes.block.serial: block: 0.json says ABC1, 1.json says ABC2"],
        "",
    )
    same = proposal(machine("block", {SYSTEM_ID: "ABC1"}), machine("block", {SYSTEM_ID: "abc1"}))
    assert (told(same), changed(same)) == ([], ["+    serial: ABC1"])


def test_a_contradiction_of_one_node_keeps_the_answer_of_another(machine: Machine) -> None:
    says = ((1, "A1"), (1, "A2"), (2, "B1"))
    done = proposal(*[machine(f"pair{at}", {SYSTEM_ID: serial}) for at, serial in says])
    assert set(told(done)) == {"cluster.yml:40: nodes.pair[1-2].serial: pair1: 0.json says A1, 1.json says A2"}
    assert changed(done) == [
        "+    serial: [",
        "+        !placeholder PLACEHOLDER-PAIR1-SERIAL,  # pair1",
        "+        B1,                                     # pair2",
        "+      ]",
    ]
    assert [(one.node, one.value) for one in done.proposed] == [("pair2", "B1")]


def test_an_unprintable_answer_is_none_and_the_next_is_taken(machine: Machine) -> None:
    done = proposal(machine("block", {SYSTEM_ID: "A\tB"}), machine("block", {SYSTEM_ID: "ABC1"}))
    assert set(told(done)) == {"0.json: serial: 'A\\tB' cannot stand in a model"}
    assert changed(done) == ["+    serial: ABC1"]


def em1(at: int) -> dict[str, str]:
    return {"ip_link": link("em1", f"70:e2:84:14:33:6{at}"), "ip_address": address("em1", f"10.20.0.1{at}")}


def test_macs_are_added_when_every_node_of_the_entry_was_asked(machine: Machine) -> None:
    one = proposal(machine("pair1", **em1(1)))
    assert (told(one), one.diff) == (
        [
            "cluster.yml:40: nodes.pair[1-2].macs.management: is not declared yet and can be added when all nodes of"
            " the entry are captured; missing: pair2"
        ],
        "",
    )
    both = proposal(machine("pair1", **em1(1)), machine("pair2", **em1(2)))
    assert (told(both), changed(both)) == (
        [],
        [
            "+    macs:",
            "+      management: [",
            '+          "70:e2:84:14:33:61",  # pair1',
            '+          "70:e2:84:14:33:62",  # pair2',
            "+        ]",
        ],
    )


BOND = (
    link("em2", "70:e2:84:14:33:62", master="bond0")
    + link("em1", "70:e2:84:14:33:61", master="bond0")
    + link("bond0", "70:e2:84:14:33:6f")
)


def test_the_mac_of_a_bond_is_its_first_ports(machine: Machine) -> None:
    done = proposal(machine("block", ip_link=BOND, ip_address=address("bond0.5", "10.20.0.2")))
    assert (told(done), changed(done)) == ([], ["+    macs:", '+      management: "70:e2:84:14:33:61"'])


def test_a_node_without_a_port_for_ansible_is_told_those_that_could_be(machine: Machine) -> None:
    ports = BOND + link("em3", "70:e2:84:14:33:63", flags="NO-CARRIER,UP") + link("em4", "70:e2:84:14:33:64")
    ports += link("lo", "00:00:00:00:00:00", kind="loopback")
    done = proposal(machine("block", ip_link=ports, ip_address=address("em4", "10.20.2.2")))
    assert told(done) == [
        "0.json: outputs.ip_link: no interface with an address in 10.20.0.0/24 for management; connected are"
        " bond0 70:e2:84:14:33:6f, em4 70:e2:84:14:33:64"
    ]
    assert changed(done) == ["+    macs:", '+      data: "70:e2:84:14:33:64"']


def test_a_declared_interface_that_is_not_there_is_named(machine: Machine) -> None:
    model = ASH.replace("    kernel: 3", "    interfaces: {management: {name: em9}}\n    kernel: 3")
    done = proposal(machine("block", ip_link=link("lo", "00:00:00:00:00:00", kind="loopback")), model=model)
    assert told(done) == ["0.json: outputs.ip_link: no interface em9 for management; connected are none"]


def test_a_bmcs_mac_is_that_of_the_port_in_its_network_or_its_first(machine: Machine) -> None:
    one = bmc("10.20.1.11", ("70:e2:84:14:33:71", ""), ("70:e2:84:14:33:72", "10.20.1.11"))
    other = bmc("pair2-bmc.ash.example", ("70:e2:84:14:33:73", "10.20.9.1"), ("70:e2:84:14:33:74", ""))
    done = proposal(one, other)
    assert told(done) == [f"0.json: {NO_SERIAL}", f"1.json: {NO_SERIAL}"]
    assert changed(done)[2:4] == [
        '+          "70:e2:84:14:33:72",  # pair1',
        '+          "70:e2:84:14:33:73",  # pair2',
    ]


@pytest.mark.parametrize("address", ["pair2", "PAIR2.ash.example", "pair2-bmc", "bmc-pair2", "10.20.1.12"])
def test_a_bmc_is_known_by_its_name_or_its_address(address: str) -> None:
    (said,) = told(proposal(bmc(address, ("70:e2:84:14:33:73", ""))))[1:]
    assert said.endswith("nodes.pair[1-2].macs.bmc: is not declared yet and can be added when all nodes of the entry"
                         " are captured; missing: pair1")  # fmt: skip


def test_a_bmc_that_is_nobodys_is_named_and_the_others_are_used() -> None:
    stranger, known = bmc("other", ("70:e2:84:14:33:73", "")), bmc("pair1", ("70:e2:84:14:33:71", ""))
    done = proposal(stranger, known)
    assert told(done) == [
        f"0.json: {NO_SERIAL}",
        '0.json: address: "other" is not a node of site ash; name its node with --node',
        f"1.json: {NO_SERIAL}",
        "cluster.yml:40: nodes.pair[1-2].macs.bmc: is not declared yet and can be added when all nodes of the entry are"
        " captured; missing: pair2",
    ]
    both = proposal(stranger, known, nodes={"0.json": "pair2"})
    assert changed(both)[2:4] == [
        '+          "70:e2:84:14:33:71",  # pair1',
        '+          "70:e2:84:14:33:73",  # pair2',
    ]


def test_what_a_fru_says_is_taken(machine: Machine) -> None:
    fru = {"format": 1, "kind": "ipmi", "address": "10.20.1.12", "taken_at": "x", "model": "IBM AC922", "macs": []}
    done = proposal({**fru, "serial": None})
    assert told(done) == ["0.json: serial: FRU 0 of the BMC has no serial number"]
    assert changed(proposal({**fru, "serial": "ABC1"}))[2] == "+        ABC1,                                   # pair2"
    odd = proposal({**fru, "serial": "ABC1", "model": "S822LC"})
    assert told(odd) == ["cluster.yml:16: profiles.big.model: is IBM AC922; 0.json says S822LC"]


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ([(0, "0-14/2"), (8, "1,3,5,7,9,11,13,15")], []),
        ([(0, "0,2-14/2"), (8, "1-15/2")], []),
        ([(0, "0-7"), (8, "8-15")], ["differs; 0.json has 0: 0-7, 8: 8-15"]),
        ([(0, "0-14/2")], ["differs; 0.json has 0: 0-14/2"]),
        ([(0, "0-14/2"), (1, "1-15/2")], ["differs; 0.json has 0: 0-14/2, 1: 1-15/2"]),
    ],
)
def test_numa_nodes_are_compared_by_their_numbers(
    machine: Machine, seen: list[tuple[int, str]], said: list[str]
) -> None:
    done = proposal(machine("pair1", lscpu=lscpu(seen)))
    assert told(done) == [f"cluster.yml:20: profiles.big.numa: {one}" for one in said]


GPUS = "profiles.big.gpus"


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ([(0, "Tesla V100", 9500), (1, "v100 tesla 16 GB", 10000)], []),
        (
            [(0, "Tesla V100-SXM2", 9499), (1, "Tesla", 9500)],
            [
                f"24: {GPUS}[0].model: is Tesla V100; 0.json says Tesla V100-SXM2",
                f"24: {GPUS}[0].memory_mb: is 10000; 0.json says 9499",
            ],
        ),
        (
            [(1, "Tesla V100", 10001)],
            [
                f"23: {GPUS}: 2 are declared; in 0.json 1 answer",
                f"25: {GPUS}[1].memory_mb: is 10000; 0.json says 10001",
            ],
        ),
    ],
)
def test_gpus_are_compared_by_their_numbers(
    machine: Machine, seen: list[tuple[int, str, int]], said: list[str]
) -> None:
    done = proposal(machine("pair1", nvidia_smi=gpus(*seen)))
    assert told(done) == [f"cluster.yml:{one}" for one in said]
    assert [line[7:10] for line in changed(done)[1:] if line.endswith("[")] == [f'"{at}"' for at, *_ in seen]


@pytest.mark.parametrize(
    ("node", "seen", "said"),
    [
        ("pair1", port(100), []),
        ("pair1", port(200), []),
        (
            "pair1",
            port(40),
            ["cluster.yml:26: profiles.big.hcas: rate_gbps is 100 or 200; 0.json has port mlx5_0/1 at 40"],
        ),
        ("pair1", port(40, "Down"), ["0.json: outputs.ibstat: port mlx5_0/1 is Down, LinkUp"]),
        ("pair1", port(100, "Active", "Polling"), ["0.json: outputs.ibstat: port mlx5_0/1 is Active, Polling"]),
        ("block", port(100), ["cluster.yml:9: profiles.plain.hcas: none is declared; 0.json has port mlx5_0/1"]),
    ],
)
def test_a_port_has_the_rate_of_an_adapter(machine: Machine, node: str, seen: str, said: list[str]) -> None:
    assert told(proposal(machine(node, ibstat=seen))) == said


@pytest.mark.parametrize(
    ("model", "kernel", "said"),
    [
        ("IBM AC922 8335-GTH", "4.18.0.ppc64le", []),
        ("ac922", "4.18.0", []),
        ("ac922", "3.10.0", ["30: profiles.big.kernel: is 4.18.0; 0.json says 3.10.0"]),
        ("8335-GTH", "4.18.0.x86_64", ["16: profiles.big.model: is IBM AC922; 0.json says 8335-GTH",
                                       "30: profiles.big.kernel: is 4.18.0; 0.json says 4.18.0.x86_64"]),
    ],
)  # fmt: skip
def test_a_kind_has_a_model_and_a_kernel(machine: Machine, model: str, kernel: str, said: list[str]) -> None:
    done = proposal(machine("pair1", {"/proc/device-tree/model": model}, uname=kernel))
    assert told(done) == [f"cluster.yml:{one}" for one in said]


@pytest.mark.parametrize(("megabytes", "agrees"), [(62259, False), (62260, True), (65536, True), (65537, False)])
def test_memory_may_be_a_twentieth_less_than_is_declared(machine: Machine, megabytes: int, agrees: bool) -> None:
    system = "Handle 0x1\nSystem Information\n\tProduct Name: a server\nHandle 0x2\nMemory Device\n"
    done = proposal(machine("block", dmidecode=f"{system}\tSize: {megabytes} MB\n"))
    said = f"cluster.yml:13: profiles.plain.memory_mb: is 65536; 0.json says {megabytes}"
    assert told(done) == ([] if agrees else [said])


def test_every_program_that_did_not_answer_is_named(machine: Machine) -> None:
    document = machine("block")
    for name, said in (("lsblk", "no answer within 60 s"), ("ip_link", "No such file"), ("dmidecode", "no answer\n")):
        document["outputs"][name] = {"argv": [], "status": None, "stdout": "", "stderr": said}
    document["outputs"]["uname"] = {"argv": [], "status": 1, "stdout": "", "stderr": "no answer"}
    assert told(proposal(document)) == [
        "0.json: outputs.dmidecode: no answer",
        "0.json: outputs.lsblk: no answer within 60 s",
    ]
