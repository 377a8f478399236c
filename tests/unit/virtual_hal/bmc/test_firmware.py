"""The firmware of a virtual node: what each kind of machine starts; every dead end is a line on the console."""

from __future__ import annotations

from pathlib import Path

import pytest
from bmc import ipxe
from bmc.firmware import Firmware
from bmc.machine import Machine
from bmc.place import Done
from bmc.spec import Boot
from bmc.state import Target

from hal_cluster.provision import ipxe as written
from hal_cluster.provision import petitboot
from tests.unit.virtual_hal.bmc.emulated import spec
from tests.unit.virtual_hal.bmc.played_place import CONF, SERVER, Played, lease

KERNEL, INITRD = f"http://{SERVER}/images/vmlinuz", f"http://{SERVER}/images/initrd.img"
LOADER = f"tftp://{SERVER}/undionly.kpxe"
RESCUE = f"inst.rescue inst.stage2=http://{SERVER}/images/tree"
STAGE2 = f"http://{SERVER}/images/tree/LiveOS/squashfs.img"
OPAL, BIOS, IPXE = ("14", ""), ("0", ""), ("0", "iPXE")


def machine_of(folder: Path, arch: str = "ppc64le") -> Machine:
    """Return a machine that can boot over the network."""
    boot = Boot(
        arch=arch,
        kernel="4.18.0-80.7.2.el7",
        image="image",
        network="x-management",
        address="10.1.0.105",
        disks={"system": "0x50248414c0550001", "bay01": "0x50248414c0550002"},
    )
    kind = "openbmc" if arch == "ppc64le" else "ipmi"
    return Machine(spec("hal05", kind, 5, boot=boot), folder / "state")


@pytest.fixture
def power(tmp_path: Path) -> Machine:
    """An AC922."""
    return machine_of(tmp_path)


@pytest.fixture
def x86(tmp_path: Path) -> Machine:
    """A machine with a BIOS."""
    return machine_of(tmp_path, "x86_64")


def served(config: str | None) -> Played:
    """Return the network of a site with one configuration for petitboot."""
    files = {} if config is None else {CONF: config.encode()}
    return Played({OPAL: lease(option_209=CONF)}, files)


def armed(append: str = RESCUE) -> str:
    return petitboot.armed("hal05", "hal-install", KERNEL, INITRD, append)


def last(machine: Machine) -> str:
    return machine.console().splitlines()[-1]


def test_a_node_that_nobody_armed_boots_its_disk(power: Machine) -> None:
    place = served(petitboot.standing("hal05"))
    assert Firmware(place).boot(power, "none") is True
    assert place.steps == ["made", "removed"]
    assert place.asked == [CONF]
    console = power.console()
    assert f"[network] Requesting config {CONF}\n" in console
    assert last(power) == "Booting from disk"


def test_an_armed_node_boots_the_installer_whose_files_are_fetched(power: Machine) -> None:
    place = served(armed())
    place.files |= {KERNEL: b"k", INITRD: b"i", STAGE2: b"s"}
    assert Firmware(place).boot(power, "network") is False
    assert place.asked == [CONF, KERNEL, INITRD, STAGE2]
    assert "Booting hal-install\nPerforming kexec load\nPerforming kexec reboot\n" in power.console()
    assert last(power) == "anaconda (emulation): rescue mode: a shell waits on the console"


@pytest.mark.parametrize(
    ("target", "leases", "starts", "said"),
    [
        ("none", False, True, "[network] no answer of DHCP"),
        ("network", False, False, "Petitboot: waits in its menu: the BMC says network"),
        ("network", True, False, "Petitboot: waits in its menu: the BMC says network"),
    ],
)
def test_without_anything_to_boot_on_the_network(
    power: Machine, target: Target, leases: bool, starts: bool, said: str
) -> None:
    place = served(petitboot.standing("hal05"))
    if not leases:
        place.leases = {}
    assert Firmware(place).boot(power, target) is starts
    assert said in power.console()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, f"[network] Failed to download {CONF}"),
        ({CONF: armed().encode()}, f"Failed to load {KERNEL}: curl: (22) The requested URL returned error: 404"),
        ({CONF: armed().encode(), KERNEL: b"k"}, f"Failed to load {INITRD}: curl: (22)"),
        ({CONF: armed("quiet").encode(), KERNEL: b"k", INITRD: b"i"}, "the kernel's words have no inst.*"),
        ({CONF: armed().encode(), KERNEL: b"k", INITRD: b"i"}, f"dracut: {STAGE2}: curl: (22)"),
    ],
)
def test_a_file_that_is_not_there_is_said_and_the_machine_stays(
    power: Machine, files: dict[str, bytes], said: str
) -> None:
    place = served(None)
    place.files = files
    assert Firmware(place).boot(power, "network") is False
    assert said in power.console()
    assert "erased" not in place.steps


def test_a_disk_without_a_boot_entry_is_not_booted(power: Machine) -> None:
    place = served(petitboot.standing("hal05"))
    place.boots = False
    assert Firmware(place).boot(power, "none") is False
    assert "waits in its menu: nothing that boots by itself was found" in last(power)


# x86_64


def pxe(script: str | None, loader: bool = True) -> Played:
    """Return the network of a site that serves iPXE."""
    url = f"http://{SERVER}:8480/boot/hal05"
    leases = {BIOS: lease(option_67="undionly.kpxe") if loader else lease(), IPXE: lease(option_67=url)}
    files = {LOADER: b"loader"} if script is None else {LOADER: b"loader", url: script.encode()}
    return Played(leases, files)


def test_a_bios_that_gets_no_boot_file_boots_the_disk(x86: Machine) -> None:
    place = pxe(None, loader=False)
    assert Firmware(place).boot(x86, "none") is True
    assert place.asked == []
    assert last(x86) == "PXE: no boot file name received"


def test_a_standing_script_gives_back_to_the_bios_which_boots_the_disk(x86: Machine) -> None:
    place = pxe(written.standing("hal05"))
    assert Firmware(place).boot(x86, "network") is True
    assert place.asked == [LOADER, f"http://{SERVER}:8480/boot/hal05"]
    assert last(x86) == "iPXE: exit"


def test_an_armed_x86_node_boots_the_installer(x86: Machine) -> None:
    place = pxe(written.armed("hal05", KERNEL, INITRD, RESCUE))
    place.files |= {KERNEL: b"k", INITRD: b"i", STAGE2: b"s"}
    assert Firmware(place).boot(x86, "network") is False
    assert place.asked[2:] == [KERNEL, INITRD, STAGE2]
    assert last(x86) == "anaconda (emulation): rescue mode: a shell waits on the console"


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (LOADER, "PXE: undionly.kpxe: curl: (22) The requested URL returned error: 404"),
        (f"http://{SERVER}:8480/boot/hal05", "cannot be fetched"),
        (KERNEL, f"iPXE: {KERNEL}: curl: (22)"),
    ],
)
def test_what_is_missing_for_pxe_is_said_and_the_disk_boots(x86: Machine, gone: str, said: str) -> None:
    place = pxe(written.armed("hal05", KERNEL, INITRD, RESCUE))
    place.files |= {KERNEL: b"k", INITRD: b"i", STAGE2: b"s"}
    del place.files[gone]
    assert Firmware(place).boot(x86, "none") is True
    assert said in last(x86)


def test_without_dhcp_a_bios_boots_the_disk_if_it_has_a_system(x86: Machine) -> None:
    assert Firmware(Played()).boot(x86, "network") is True
    assert last(x86) == "PXE: no answer of DHCP"
    assert Firmware(Played(boots=False)).boot(x86, "network") is False
    assert last(x86) == "[firmware] the disk has nothing that boots"


def ran(script: str, missing: str = "") -> ipxe.Booted | ipxe.Exited:
    settings = {"netX/mac:hexhyp": "02-48"}
    return ipxe.run(script, settings, lambda url: "gone" if url == missing else None, lambda line: None)


def test_scripts_of_ipxe() -> None:
    text = "#!ipxe\n# word\nkernel http://a/k x=${netX/mac:hexhyp} ${none}y\ninitrd --name i http://a/i\nboot\n"
    assert ran(text) == ipxe.Booted("http://a/k", ("http://a/i",), "x=02-48 y")
    assert ran(text, "http://a/i") == ipxe.Exited("http://a/i: gone")
    assert ran(text.removesuffix("boot\n")) == ipxe.Exited("the script ended")
    assert ran("#!ipxe\nboot\n") == ipxe.Exited("boot: no kernel was loaded")
    assert ran("#!ipxe\nsanboot x\nboot\n") == ipxe.Exited("sanboot: command not found")
    assert ran("kernel a\nboot\n") == ipxe.Exited("Exec format error: the script does not begin with #!ipxe")
    assert ran("#!ipxe\nkernel\n") == ipxe.Exited("kernel: no image is named")


# What can become of a boot


def test_a_boot_that_is_interrupted_starts_nothing_and_leaves_no_place(power: Machine) -> None:
    place = served(petitboot.standing("hal05"))
    place.interrupted_at = CONF
    assert Firmware(place).boot(power, "none") is False
    assert last(power) == "[firmware] interrupted"
    assert place.steps == ["made", "removed"]


def test_a_program_that_breaks_is_said(power: Machine) -> None:
    place = served(petitboot.standing("hal05"))
    place.failing["dhcp_client"] = Done(0, b"no json", "")
    assert Firmware(place).boot(power, "none") is False
    assert last(power).startswith("[firmware] stopped: ")


def test_a_machine_without_a_port_on_the_network_boots_its_disk(tmp_path: Path) -> None:
    machine = Machine(spec("hal05", "openbmc", 5), tmp_path / "state")
    place = Played()
    assert Firmware(place).boot(machine, "none") is True
    assert Firmware(place).boot(machine, "network") is False
    assert place.steps == []
    assert last(machine) == "[firmware] no port of this machine is on a network that boots"
