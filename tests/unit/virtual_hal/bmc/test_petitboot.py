"""The emulated petitboot against what the real one's source says: where it looks, how it reads, what it boots."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bmc.petitboot import Decision, Disk, Kernel, Lease, Menu, Outcome, boot, config_url, search_names

SAMPLES = Path(__file__).resolve().parents[2] / "hal_cluster/provision/captures/petitboot"
MAC, ADDRESS = "02:48:41:4c:02:05", "10.1.0.105"
CONF = "http://10.1.0.11:8480/boot/hal05"
AT = "http://10.1.0.11/boot/"


def lease(**more: Any) -> Lease:
    options = {int(name.removeprefix("option_")): value for name, value in more.items() if name.startswith("option_")}
    rest = {name: value for name, value in more.items() if not name.startswith("option_")}
    return Lease(MAC, ADDRESS, **{"server": "10.1.0.11", "options": options, **rest})


def booted(text: bytes | None, **more: Any) -> Outcome:
    return boot(lease(option_209=CONF), lambda url: text if url == CONF else None, **more)


def kernel(name: str = "vmlinuz", initrd: str | None = None, append: str = "", title: str = "install") -> Kernel:
    return Kernel(AT + name, initrd, append, title, CONF)


CASES: Mapping[str, Decision] = {
    "standing.cfg": Disk(),
    "empty.cfg": Disk(),
    "armed.cfg": kernel(
        initrd=f"{AT}initrd.img",
        append="inst.ks=http://10.1.0.11:8480/node/hal05/kickstart.cfg console=hvc0 BOOTIF=01-02-48-41-4c-02-05",
    ),
    "default_below_label.cfg": Disk(),
    "no_default.cfg": Disk(),
    "other_default.cfg": Disk(),
    "small_letters.cfg": kernel(append="quiet"),
    "absolute_paths.cfg": Kernel(
        "http://10.1.0.11:8480/boot/vmlinuz", "http://10.1.0.11:8480/initrd.img", "", "install", CONF
    ),
    "localboot.cfg": Disk(),
    "linux_keyword.cfg": Disk(),
    "initrd_in_append.cfg": kernel(initrd="http://10.1.0.11:8480/boot/wrong.img", append="quiet initrd=wrong.img"),
    "initrd_with_equals.cfg": Kernel(
        "http://10.1.0.11:8480/boot/vmlinuz", "http://10.1.0.11:8480/boot/initrd.img", "", "install", CONF
    ),
    "quotes.cfg": kernel(append="root=live:a b"),
    "two_entries.cfg": kernel("second", append="one two", title="second"),
    "plugin.cfg": Disk(),
    "ipxe.cfg": kernel(initrd=f"{AT}initrd.img", append="quiet ip=dhcp"),
    "ipxe_no_boot.cfg": Disk(),
    "error_page.cfg": Disk(),
}


def test_every_sample_has_its_case() -> None:
    assert {path.name for path in SAMPLES.iterdir()} == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_configuration_boots_what_petitboot_makes_of_it(name: str) -> None:
    assert booted((SAMPLES / name).read_bytes()).decision == CASES[name]


def test_with_an_override_a_file_without_entries_leaves_the_node_in_its_menu() -> None:
    done = booted((SAMPLES / "standing.cfg").read_bytes(), override="network")
    assert isinstance(done.decision, Menu)
    assert "disks are not admitted" in done.console[-1]


def test_an_override_boots_the_network_however_late_it_is() -> None:
    done = booted((SAMPLES / "armed.cfg").read_bytes(), override="network", network_after_seconds=60)
    assert isinstance(done.decision, Kernel)


def test_an_override_to_the_disk_asks_the_network_for_nothing() -> None:
    done = booted((SAMPLES / "armed.cfg").read_bytes(), override="disk")
    assert (done.decision, done.asked) == (Disk(), ())
    assert isinstance(booted(None, override="disk", disk=False).decision, Menu)


def test_a_slow_network_loses_to_the_disk() -> None:
    armed = (SAMPLES / "armed.cfg").read_bytes()
    assert isinstance(booted(armed, network_after_seconds=9.9).decision, Kernel)
    late = booted(armed, network_after_seconds=12)
    assert late.decision == Disk()
    assert late.console[-2] == "[network] was there after 12 s: the disk had been booted by then"
    assert isinstance(booted(armed, network_after_seconds=12, disk=False).decision, Kernel)


@pytest.mark.parametrize(
    ("order", "disk", "expected"),
    [
        (("network", "any"), True, Kernel),
        (("disk", "network"), True, Disk),
        (("disk", "network"), False, Kernel),
        (("any",), True, Disk),
        ((), True, Disk),
        ((), False, Kernel),
        (("network",), True, Kernel),
        (("disk",), False, Menu),
    ],
)
def test_the_order_of_devices_decides(order: tuple[str, ...], disk: bool, expected: type) -> None:
    done = booted((SAMPLES / "armed.cfg").read_bytes(), order=order, disk=disk)
    assert isinstance(done.decision, expected)


def test_a_key_stops_everything() -> None:
    assert isinstance(booted((SAMPLES / "armed.cfg").read_bytes(), stopped=True).decision, Menu)


def test_without_an_answer_of_DHCP_the_disk_is_booted() -> None:
    assert boot(None, lambda url: None).decision == Disk()
    assert isinstance(boot(None, lambda url: None, disk=False).decision, Menu)


# ---------------------------------------------------------------- where it looks


def test_names_are_by_MAC_then_by_address_digit_by_digit_then_default() -> None:
    assert search_names("02:48:41:4C:02:05", "192.168.0.1") == [
        "01-02-48-41-4c-02-05",
        "C0A80001", "C0A8000", "C0A800", "C0A80", "C0A8", "C0A", "C0", "C",
        "default",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "url", "complete"),
    [
        ({"option_209": "http://host:8080/a/conf"}, "http://host:8080/a/conf", True),
        # 209 as a whole URL: nothing else matters.
        ({"option_209": "http://host/conf", "option_210": "http://other/"}, "http://host/conf", True),
        ({"option_210": "http://host/path/"}, "http://host/path/", False),
        ({"option_210": "http://host/path/", "option_209": "conf.txt"}, "http://host/path/conf.txt", True),
        ({"option_210": "/path/", "option_66": "host"}, "tftp://host/path/", False),
        ({"option_209": "conf.txt", "siaddr": "10.0.0.1"}, "tftp://10.0.0.1/conf.txt", True),
        ({"option_209": "conf.txt", "file": "dir/binary"}, "tftp://10.1.0.11/dir/conf.txt", True),
        ({"option_209": "/dir1/conf", "option_67": "dir2/binary"}, "tftp://10.1.0.11/dir1/conf", True),
        ({"option_67": "dir/binary", "option_210": "dir1/"}, "tftp://10.1.0.11/dir1/", False),
        ({"file": "dir/binary"}, "tftp://10.1.0.11/dir/", False),
        ({"option_66": "boot.example", "siaddr": "10.0.0.1"}, "tftp://boot.example/", False),
        ({"server": None}, "None", False),
        ({"option_209": "http://hostonly"}, "None", True),
    ],
)
def test_the_place_of_the_configuration(given: dict[str, Any], url: str, complete: bool) -> None:
    found = config_url(lease(**given))
    assert (str(found[0]), found[1]) == (url, complete)


def test_a_search_stops_at_the_first_file_and_no_second_one_is_read() -> None:
    folder = "http://10.1.0.11:8480/boot/"
    default = b"DEFAULT a\nLABEL a\nKERNEL b"
    files = {f"{folder}pxelinux.cfg/0A010069": b"# nothing", f"{folder}pxelinux.cfg/default": default}
    done = boot(lease(option_210=folder), files.get)
    assert done.decision == Disk()
    assert done.asked == (f"{folder}pxelinux.cfg/01-02-48-41-4c-02-05", f"{folder}pxelinux.cfg/0A010069")


def test_paths_of_a_searched_configuration_are_joined_to_the_folder_above() -> None:
    folder = "http://10.1.0.11/boot/"
    done = boot(
        lease(option_210=folder),
        {f"{folder}pxelinux.cfg/default": b"DEFAULT a\nLABEL a\nKERNEL /k\nINITRD i"}.get,
    )
    assert done.decision == Kernel(f"{folder}k", f"{folder}i", "", "a", f"{folder}pxelinux.cfg/default")
    assert len(done.asked) == 10


def test_a_file_that_option_209_names_and_that_is_not_there_is_not_searched_for_elsewhere() -> None:
    done = boot(lease(option_209=CONF, option_210="http://10.1.0.11/"), lambda url: None)
    assert (done.decision, done.asked) == (Disk(), (CONF,))
    assert f"[network] Failed to download {CONF}" in done.console


def test_a_server_that_does_not_answer_is_a_file_that_is_not_there() -> None:
    def silent(url: str) -> bytes | None:
        raise TimeoutError

    assert boot(lease(option_209=CONF), silent).decision == Disk()
