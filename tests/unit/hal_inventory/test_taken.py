"""What lies just beside a fault, and is none: a check that goes too far would refuse a sound model."""

from __future__ import annotations

import pytest

from hal_inventory.storage import LEAST_DRIVES
from tests.unit.hal_inventory.conftest import findings

HOME = "    kind: nfs\n    mount: /home\n    server: front"
RAID = "{name: system, node: front, level: raid1, drives: 2, media: ssd, holds: operating system}"
OF_WORKERS = RAID.replace("front", "worker1")
WORKER_MACS = '    macs: {management: "02:00:00:00:01:[01-04]"}\n'
DISKS = {
    "aliases: [gateway]": 'disks: {d1: "0x5000c500a1b25001", d2: "0x5000c500a1b25002"}',
    WORKER_MACS: f'{WORKER_MACS}    disks: {{d1: "0x5000c500a1b2600[1-4]"}}\n',
}
IPOIB = "cidr: 10.1.2.0/24"


@pytest.mark.parametrize(
    "edits",
    [
        {IPOIB: "cidr: 10.1.2.0/24}\n  six: {kind: ethernet, cidr: 'fd00::/64', gateway: 'fd00::1'"},
        {IPOIB: "cidr: 10.1.2.0/31, gateway: 10.1.2.0"},
        {IPOIB: "cidr: 10.1.2.0/31, gateway: 10.1.2.1"},
        {IPOIB: "cidr: 10.1.2.0/32, gateway: 10.1.2.0"},
        {IPOIB: "cidr: 10.1.2.0/30, gateway: 10.1.2.1"},
        {IPOIB: "cidr: 10.1.2.0/30, gateway: 10.1.2.2"},
        {IPOIB: "cidr: 10.1.2.0/24}\n  next: {kind: ethernet, cidr: 10.1.3.0/24"},
        {"gpu: {nodes: compute": "gpu: {nodes: all", "  slurm_node: compute\n  slurm: slurm_node": "  slurm: compute"},
        {"default: true}": "default: true}\n  all: {nodes: compute, max_time: unlimited, default_time: unlimited}"},
        {"  worker[1-4]:": "  worker[4,2,1,3]:"},
        {"  base: all": "  base: late\n  late: later\n  later: base_of_all\n  base_of_all: all"},
        {"  base: all": "  nobody: data"},
        {'macs: {management: "02:00:00:00:00:10"}': 'macs: {management: "02:AB:CD:EF:00:10"}'},
        {"aliases: [gateway]": "aliases: [gateway, gate2]"},
        {"drive_tb: 3.84}": "drive_tb: 3.84, address: '10.1.0.[30-31]'}"},
        {HOME: "    kind: gluster\n    mount: /home\n    servers: compute\n    layout: mirrored"},
        {HOME: "    kind: lustre\n    mount: /home\n    servers: compute\n    arrays: flash1"},
        {HOME: "    kind: lustre\n    mount: /home\n    arrays: flash[1-2]"},
        {HOME: "    kind: spectrum_scale\n    mount: /home\n    servers: login\n    block_size_kb: 1"},
        {HOME: "    kind: spectrum_scale\n    mount: /home\n    arrays: flash2\n    network: bmc"},
        {HOME: "    kind: nfs\n    mount: /home\n    arrays: flash1\n    export: /srv"},
        {HOME: "    kind: spectrum_scale\n    mount: /home\n    arrays: flash2\n    network: ipoib"},
        {HOME: "    kind: lustre\n    mount: /home\n    arrays: flash2\n    network: ipoib"},
        {HOME: "    kind: gluster\n    mount: /home\n    servers: login\n    network: ipoib"},
        {HOME: f"{HOME}\n    network: management"},
        {HOME: HOME.replace("front", "worker2") + "\n    network: bmc"},
        {"raid_sets:": "  other: {kind: nfs, mount: /home, server: front, clients: login}\nraid_sets:"},
        {"raid_sets:": "  other: {kind: nfs, mount: /other, server: front, clients: compute}\nraid_sets:"},
        {"raid_sets:": "  other: {kind: nfs, mount: /home/a/b, server: front, clients: compute}\nraid_sets:"},
        {"raid_sets:": "  other: {kind: lustre, mount: /home/a, arrays: flash1, clients: compute}\nraid_sets:"},
        {"raid_sets:": "  other: {kind: nfs, mount: /homes, server: front, clients: compute}\nraid_sets:"},
        {
            HOME: "    kind: spectrum_scale\n    mount: /home\n    arrays: flash1",
            "raid_sets:": "  a: {kind: spectrum_scale, mount: /home/a, arrays: flash2, clients: compute}\nraid_sets:",
        },
        {RAID: f"{RAID[:-1]}, file_system: xfs, mount: /home}}", "clients: compute": "clients: all"},
        {
            RAID: f"{OF_WORKERS[:-1]}, file_system: xfs, mount: /data}}",
            HOME: "    kind: spectrum_scale\n    mount: /data/home\n    arrays: flash1",
        },
        {HOME: "    kind: nfs\n    mount: /home\n    arrays: flash1\n    export: /"},
        {"  base: all": "  nfs_client: compute\n  nfs_server: login\n  spectrum_scale: login"},
        {RAID: f"{RAID}\n  - {OF_WORKERS}"},
        {RAID: f"{RAID[:-1]}, file_system: xfs, mount: /a}}\n  - {OF_WORKERS[:-1]}, file_system: xfs, mount: /a}}"},
        {**DISKS, RAID: f"{RAID[:-1]}, disks: 'd[1-2]'}}\n  - {OF_WORKERS[:-1]}, controller: hardware, disks: d1}}"},
        {**DISKS, RAID: f"{RAID[:-1]}, controller: hardware, disks: d2}}"},
        {"aliases: [gateway]": 'disks: {d1: "0x5000C500A1B25001", d2: nvme.1344-5a-4d-00000001}'},
        {"aliases: [gateway]": "disks: {d1: !placeholder PLACEHOLDER-FRONT-D1}"},
        {WORKER_MACS: f'{WORKER_MACS}    gpu_uuids: {{"0": "GPU-[1-4]", "1": "GPU-[5-8]"}}\n'},
        {"gpu: {nodes: compute": "gpu: {max_cpus_per_node: 32, nodes: compute"},
        {
            "cores_per_socket: 4, threads_per_core: 4}": "cores_per_socket: 4, threads_per_core: 8}",  # POWER8
            "cpus: 0-15}": "cpus: 0-31}",
            "cpus: 16-31}": "cpus: 32-63}",
        },
        {"edr1: {nodes: compute}": "edr1: {nodes: compute}\n    a: {switches: edr1}\n    b: {switches: a}"},
        {
            "kernel: 3.10.0": "kernel: 3.10.0\n    interfaces: {management: {name: bond0, members: [eno1, eno2],"
            " bond_mode: balance-rr}, ipoib: {name: bond1, members: [ib0, ib1], bond_mode: active-backup}}"
        },
        {
            "      - {id: 8, socket: 1, cpus: 16-31}": "      - {id: 8, socket: 1, cpus: '16-30/2'}\n"
            "      - {id: 9, socket: 1, cpus: '17-31/2'}"
        },
    ],
)
def test_what_is_beside_a_fault_is_taken(small: str, edits: dict[str, str]) -> None:
    for old, new in edits.items():
        assert old in small
        small = small.replace(old, new, 1)
    assert findings(small) == []


@pytest.mark.parametrize(
    ("level", "least"),
    [
        ("raid0", 1),
        ("raid1", 2),
        ("raid5", 3),
        ("raid6", 4),
        ("raid10", 4),
        ("raid50", 6),
        ("raid60", 8),
        ("raidz1", 2),
        ("raidz2", 3),
        ("raidz3", 4),
    ],
)
def test_a_level_needs_this_many_drives(small: str, level: str, least: int) -> None:
    def said(drives: int) -> list[str]:
        return findings(small.replace("level: raid1, drives: 2", f"level: {level}, drives: {drives}"))

    assert said(least) == []
    halves = level in ("raid50", "raid60")
    odd = f"cluster.yml:66: raid_sets[0].drives: {level} is two halves; {least + 1} drives cannot be halved"
    assert said(least + 1) == ([odd] if halves else [])
    assert said(least + 2) == []
    needs = f"{level} needs at least {least} drives, not {least - 1}" if least > 1 else "must be at least 1, not 0"
    assert said(least - 1) == [f"cluster.yml:66: raid_sets[0].drives: {needs}"]


def test_no_other_level_has_a_least_number() -> None:
    assert len(LEAST_DRIVES) == 10


def test_so_many_nodes_and_values_are_taken_and_one_more_is_a_slip(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hal_inventory.expand.MAX_NAMES", 5)
    assert findings(small) == []
    five = small.replace('"S[1-4]"', "['S[1-4]', T]")
    assert findings(five) == [
        "cluster.yml:40: nodes.worker[1-4].serial: 5 values for 4 nodes; write a range or a list of 4"
    ]
    assert findings(five.replace("T]", "'T[1-2]', 'U[1-2]']")) == [
        "cluster.yml:40: nodes.worker[1-4].serial: more than 5 values; that is taken for a slip"
    ]


def test_a_site_has_so_many_nodes_and_one_more_is_a_slip(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    head = small[: small.index("nodes:\n")]
    text = f"{head}nodes:\n" + "".join(
        f"  {name}: {{role: data, profile: server, addresses: {{management: '10.1.0.{at}'}}}}\n"
        for name, at in (("a", "1"), ("b[1-3]", "[2-4]"), ("c[1-3]", "[5-7]"))
    )
    two = text[: text.index("  c[1-3]")]
    monkeypatch.setattr("hal_inventory.expand.MAX_NAMES", 4)
    assert findings(two) == []
    monkeypatch.setattr("hal_inventory.expand.MAX_NAMES", 3)
    slip = ["cluster.yml:30: nodes.b[1-3]: more than 3 nodes; that is taken for a slip"]
    assert (findings(two), findings(text)) == (slip, slip)


def test_all_ranges_of_a_file_together_stand_for_so_many_values(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hal_inventory.load.MAX_VALUES", 22)  # five columns of four workers, and two arrays
    assert findings(small) == []
    monkeypatch.setattr("hal_inventory.load.MAX_VALUES", 21)
    slip = "with this one the file's ranges stand for more than 21 values; that is a slip"
    assert findings(small) == [f"cluster.yml:46: arrays.flash[1-2]: {slip}"]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("arrays:\n", '  "a{}x[1-65536]": {{model: box, drives: 1, drive_tb: 1.0}}\n', "62: arrays.a15x[1-65536]"),
        ("[gateway]\n    disks:\n", '      d{}: "[1-65536]"\n', "54: nodes.front.disks.d16"),
        ("groups:\n", '  g{}: "x[1-65536]"\n', "67: groups.g15"),
        ("raid_sets:\n", '  - "[1-65536],{}"\n', "82: raid_sets[15]"),
    ],
)
def test_hundreds_of_large_ranges_are_one_line(small: str, old: str, new: str, where: str) -> None:
    text = small.replace("[gateway]\n", "[gateway]\n    disks:\n")
    text = text.replace(old, old + "".join(new.format(at) for at in range(300)), 1)
    slip = "with this one the file's ranges stand for more than 1048576 values; that is a slip"
    assert findings(text) == [f"cluster.yml:{where}: {slip}"]


@pytest.mark.parametrize("text", ["[1-2]" * 100_000, "[" + "1," * 500_000 + "1]", "[" * 500_000, "[1-9]," * 100_000])
def test_a_range_without_end_is_one_short_line(small: str, text: str) -> None:
    (found,) = findings(small.replace('"S[1-4]"', f'"{text}"'))
    assert found.startswith(f'cluster.yml:40: nodes.worker[1-4].serial: "{text[:57]}..."')
    assert len(found) < 200
