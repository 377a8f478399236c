"""Each parser reads what its tool prints, well and broken, and makes nothing up."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hal_inventory.capture.tools import dmidecode, ibstat, ip, ipmitool, lsblk, lscpu, nvidia_smi, redfish

Captured = Callable[[str], str]
NOTHING = [
    "",
    "\n",
    "command not found",
    "a: b",
    "\x00\ufffd",
    "Handle ",
    "GPU ",
    "CA ''\n Port 1:\n",
    "1: lo",
    'NAME="',
]


def test_processors_of_an_ac922_without_the_numa_nodes_of_its_gpus(captured: Captured) -> None:
    seen = lscpu.parse(captured("lscpu/ac922.txt"))
    assert seen == lscpu.Processors("ppc64le", "POWER9", 2, 16, 4, 128, ((0, "0-63"), (8, "64-127")))


def test_processors_that_are_off_and_a_count_that_the_tool_gets_wrong(captured: Captured) -> None:
    off = lscpu.parse(captured("lscpu/processors_off.txt"))
    assert off is not None
    assert (off.offline, off.model, off.numa) == ("128-255", "AMD EPYC 7742", ())
    swapped = lscpu.parse(captured("lscpu/sockets_swapped.txt"))
    assert swapped is not None
    assert (swapped.sockets, swapped.cores_per_socket, swapped.model) == (10, 1, "POWER9")


@pytest.mark.parametrize(
    ("shown", "name"),
    [
        ("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", "Xeon Gold 6148"),
        ("POWER9 (raw), altivec supported", "POWER9"),
        ("AMD EPYC 7742 64-Core Processor", "AMD EPYC 7742"),
    ],
)
def test_a_processor_has_the_name_that_people_use(shown: str, name: str) -> None:
    assert lscpu.tidy(shown) == name


def test_a_gpu_and_how_many_there_should_be(captured: Captured) -> None:
    seen = nvidia_smi.parse(captured("nvidia_smi/ac922_first_of_four.txt"))
    uuid = "GPU-fd2f54d7-d5ed-ea23-b43e-eb240a7c7193"
    only = nvidia_smi.Gpu(0, "00000004:04:00.0", "Tesla V100-SXM2-32GB", uuid, "0561519020531", 32480)
    assert seen == nvidia_smi.Gpus((only,), 4, ())


def test_gpus_that_are_lost_are_named(captured: Captured) -> None:
    lost = nvidia_smi.parse(captured("nvidia_smi/lost.txt"))
    assert lost.lost == ("GPU 0000:03:00.0: GPU is lost.  Reboot the system to recover this GPU",)
    assert nvidia_smi.parse(captured("nvidia_smi/unknown_error.txt")).lost == ("GPU 0000:0B:00.0: Unknown Error",)


def test_ports_of_infiniband_and_only_those(captured: Captured) -> None:
    (port,) = ibstat.parse(captured("ibstat/active.txt"))
    assert port == ibstat.Port("hfi1_0/1", "", "0x0011750101670fb0", "Active", "LinkUp", 100, "InfiniBand")
    (down,) = ibstat.parse(captured("ibstat/down.txt"))
    assert (down.state, down.physical, down.guid) == ("Down", "LinkUp", "0x9aecdde4e1e642ba")
    assert ibstat.parse(captured("ibstat/ethernet.txt")) == ()
    assert [port.name for port in ibstat.parse(captured("ibstat/device_gone.txt"))] == ["mlx5_7/1"]


def test_a_port_of_a_bond_has_its_own_mac(captured: Captured) -> None:
    text = captured("ip/link_bond.txt")
    shared = ip.links(text, {})
    assert shared["eth1"] == ip.Link("eth1", "ether", "0c:c4:7a:03:24:fb", True, "bond0")
    assert (shared["lo"].kind, shared["bond0.3000"].name) == ("loopback", "bond0.3000")
    own = ip.links(text, {"/proc/net/bonding/bond0": captured("ip/proc_net_bonding.txt")})
    assert (own["eth0"].mac, own["eth1"].mac) == ("0c:c4:7a:03:24:fb", "08:00:27:61:f8:a5")


def test_addresses_and_a_cable_that_is_out() -> None:
    text = "2: em1    inet 10.64.0.105/24 brd 10.64.0.255 scope global em1\\       valid_lft forever\n"
    assert ip.addresses(text) == {"10.64.0.105": "em1"}
    line = "3: em2: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 state DOWN \\    link/ether 18:03:73:ff:b4:5b brd ff\n"
    assert ip.links(line, {})["em2"].carrier is False


def test_disks_with_their_world_wide_names(captured: Captured) -> None:
    (disk,) = lsblk.parse(captured("lsblk/nvme.txt"))
    assert (disk.name, disk.wwn, disk.serial) == ("nvme0n1", "eui.002538b321c5527c", "S675NX1T364492")
    assert lsblk.parse('NAME="sda" SIZE="9" TYPE="disk" MODEL="A\\x20B  " SERIAL="" WWN="" ROTA="1"') == (
        lsblk.Disk("sda", 9, "A B", None, None),
    )
    assert lsblk.parse(captured("lsblk/without_wwn.txt")) == ()


def test_a_system_and_firmware_that_says_nothing(captured: Captured) -> None:
    dimm = captured("dmidecode/memory_device.txt")
    empty = dimm.replace("Size: 32 GB", "Size: No Module Installed")
    old = dimm.replace("Size: 32 GB", "Size: 16384 MB")
    seen = dmidecode.parse(f"{captured('dmidecode/r720.txt')}\n{dimm}\n{empty}\n{old}")
    assert seen == dmidecode.System("PowerEdge R720", "7GTKD92", 49152)
    assert dmidecode.parse(captured("dmidecode/virtual_machine.txt")) == dmidecode.System("KVM", None, 0)


@pytest.mark.parametrize(
    "text", ["Not Specified", "0123456789", "To Be Filled By O.E.M.", "*******", "0000000000000000", ""]
)
def test_words_that_stand_for_nothing_are_no_serial_number(text: str) -> None:
    assert dmidecode.value(text) is None


def test_a_serial_number_of_ten_digits_is_one() -> None:
    assert dmidecode.value("1234509876") == "1234509876"


def test_the_macs_of_a_bmc(captured: Captured) -> None:
    assert ipmitool.mac(captured("ipmitool/lan_print.txt")) == "00:1e:67:58:97:56"
    assert ipmitool.mac("MAC Address             : 00:00:00:00:00:00\n") is None
    port = json.loads(captured("redfish/witherspoon_port.json"))
    seen = redfish.parse({port["@odata.id"]: port, "/redfish/v1/Systems/x/EthernetInterfaces/1": {"MACAddress": "x"}})
    assert seen.macs == (("70:e2:84:14:33:65", ("9.3.185.83", "169.254.4.137")),)


def test_a_serial_number_is_found_at_the_chassis_where_the_system_has_none(captured: Captured) -> None:
    system = {
        "@odata.type": "#ComputerSystem.v1_5_0.ComputerSystem",
        **json.loads(captured("redfish/witherspoon_system.json")),
    }
    chassis = {"@odata.type": "#Chassis.v1_4_0.Chassis", **json.loads(captured("redfish/lc922_chassis.json"))}
    seen = redfish.parse({"/redfish/v1/Systems/Computer": system, "/redfish/v1/Chassis/Planar": chassis})
    assert (seen.serial, seen.model, seen.memory_mb) == ("1309AGA", "9006-22C", 0)
    dell = {"@odata.type": system["@odata.type"], **json.loads(captured("redfish/r740_system.json"))}
    seen = redfish.parse({"/redfish/v1/Systems/System.Embedded.1": dell})
    assert (seen.serial, seen.model, seen.memory_mb) == (None, "PowerEdge R740", 65536)


def test_a_hypervisor_is_not_the_machine(captured: Captured) -> None:
    """Newer OpenBMCs list it before the machine, without a serial number (bmcweb, hypervisor_system.hpp)."""
    machine = {
        "@odata.type": "#ComputerSystem.v1_16_0.ComputerSystem",
        **json.loads(captured("redfish/r740_system.json")),
    }
    hypervisor = {"@odata.type": "#ComputerSystem.v1_6_0.ComputerSystem", "SystemType": "OS", "HostName": "partition"}
    machine |= {"SystemType": "Physical", "SerialNumber": "1309AGA", "HostName": "hal05"}
    seen = redfish.parse({"/redfish/v1/Systems/hypervisor": hypervisor, "/redfish/v1/Systems/system": machine})
    assert (seen.serial, seen.host_name, seen.memory_mb) == ("1309AGA", "hal05", 65536)


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_no_output_of_the_tool_gives_nothing(text: str) -> None:
    assert lscpu.parse(text) is None
    assert dmidecode.parse(text) is None
    assert ibstat.parse(text) == ()
    assert lsblk.parse(text) == ()
    assert ip.links(text, {"": text}) == {}
    assert ip.addresses(text) == {}
    assert ipmitool.mac(text) is None
    assert nvidia_smi.parse(text).answered == ()
