"""Boot configurations that are written: what the emulated petitboot, which shares no code, makes of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bmc.petitboot import Disk, Kernel, Lease, boot, search_names
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.provision import ipxe, petitboot
from hal_cluster.provision.errors import ProvisionError

SAMPLES = Path(__file__).parent / "captures" / "petitboot"
MAC, ADDRESS, CONF = "02:48:41:4c:02:05", "10.1.0.105", "http://10.1.0.11:8480/boot/hal05"
KERNEL, INITRD = "http://10.1.0.11/images/vmlinuz", "http://10.1.0.11/images/initrd.img"
URLS = st.from_regex(r"http://[a-z0-9]{1,8}(:[1-9][0-9]{1,3})?(/[A-Za-z0-9._~+-]{1,9}){1,4}", fullmatch=True)
TEXTS = st.text(st.characters(min_codepoint=1, max_codepoint=300), max_size=60)


def read(text: str) -> object:
    return boot(Lease(MAC, ADDRESS, options={209: CONF}), lambda url: text.encode()).decision


def test_the_standing_configuration_boots_from_disk() -> None:
    assert read(petitboot.standing("hal05")) == Disk()
    assert petitboot.problems(petitboot.standing("hal05")) == []


def test_an_armed_one_boots_its_kernel() -> None:
    text = petitboot.armed("hal05", "install", KERNEL, INITRD, "inst.ks=http://10.1.0.11:8480/node/hal05/kickstart.cfg")
    append = "inst.ks=http://10.1.0.11:8480/node/hal05/kickstart.cfg BOOTIF=01-02-48-41-4c-02-05"
    assert read(text) == Kernel(KERNEL, INITRD, append, "install", CONF)
    assert petitboot.problems(text) == []
    lines = text.splitlines()
    assert lines.index("DEFAULT install") < lines.index("LABEL install")


@given(title=TEXTS, kernel=st.one_of(URLS, TEXTS), initrd=st.one_of(URLS, TEXTS), append=TEXTS)
def test_whatever_is_asked_for_is_booted_exactly_or_refused(title: str, kernel: str, initrd: str, append: str) -> None:
    try:
        text = petitboot.armed("hal05", title, kernel, initrd, append)
    except ProvisionError:
        return
    assert read(text) == Kernel(kernel, initrd, f"{append} BOOTIF=01-02-48-41-4c-02-05", title, CONF)
    assert petitboot.problems(text) == []


@given(kernel=URLS, initrd=URLS, append=st.from_regex(r"[a-z]{1,9}(=[ -~]{0,20}[a-z0-9])?", fullmatch=True))
def test_what_is_usual_is_not_refused(kernel: str, initrd: str, append: str) -> None:
    if "initrd=" not in append.lower():
        assert isinstance(read(petitboot.armed("hal05", "install", kernel, initrd, append)), Kernel)


@given(st.lists(st.sampled_from([
    "DEFAULT a", "DEFAULT b", "LABEL a", "LABEL b", f"KERNEL {KERNEL}", "KERNEL /vmlinuz", f"INITRD {INITRD}",
    "APPEND x", "APPEND x initrd=y", "IPAPPEND 2", "IPAPPEND 3", "# word", "", "MENU TITLE x", "LOCALBOOT 0",
    "TIMEOUT 5", "default A",
]), max_size=9))  # fmt: skip
def test_a_file_without_problems_boots_what_its_lines_say(lines: list[str]) -> None:
    text = "\n".join(lines)
    if petitboot.problems(text):
        return
    done = read(text)
    named = [line.split()[1].lower() for line in lines if line.upper().startswith("DEFAULT ")]
    assert done == Disk() if not named else isinstance(done, Kernel)
    if isinstance(done, Kernel):
        assert (done.title, done.url) == (named[-1], KERNEL)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("standing.cfg", ""),
        ("empty.cfg", ""),
        ("armed.cfg", ""),
        ("default_below_label.cfg", "line 4: DEFAULT below LABEL is not looked at"),
        ("no_default.cfg", "no DEFAULT above the first LABEL: entries are shown, none is booted"),
        ("other_default.cfg", "DEFAULT rescue: no LABEL has this name"),
        ("absolute_paths.cfg", "line 4: /vmlinuz: write a whole URL"),
        ("localboot.cfg", "line 4: petitboot does not know LOCALBOOT"),
        ("linux_keyword.cfg", "line 4: petitboot does not know LINUX"),
        ("initrd_in_append.cfg", "line 6: initrd= among them is taken for the initrd's place"),
        ("plugin.cfg", "line 3: petitboot does not know PLUGIN"),
        ("error_page.cfg", "line 1: petitboot does not know <!DOCTYPE"),
    ],
)
def test_what_petitboot_would_not_boot_by_itself_is_said_with_its_line(name: str, said: str) -> None:
    found = petitboot.problems((SAMPLES / name).read_text())
    assert bool(found) == bool(said)
    assert any(one.startswith(said) for one in found) or not said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kernel": "/images/vmlinuz"}, "hal05: kernel /images/vmlinuz: write a whole URL"),
        ({"kernel": "tftp://10.1.0.11/vmlinuz"}, "write a whole URL"),
        ({"initrd": "http://10.1.0.11"}, "hal05: initrd http://10.1.0.11: its path"),
        ({"initrd": "http://10.1.0.11/a:b"}, "its path may have letters"),
        ({"initrd": "http://10.1.0.11:99999/a"}, "is no URL"),
        ({"kernel": "http://user:word@10.1.0.11/a"}, "write only http://HOST/PATH"),
        ({"kernel": "http://10.1.0.11/a\nLABEL/b"}, "has a blank, or a character that is not printable ASCII"),
        ({"kernel": "http://10.1.0.11/a\tb"}, "has a blank, or a character that is not printable ASCII"),
        ({"initrd": "http://10.1.0.11/a "}, "has a blank, or a character that is not printable ASCII"),
        ({"initrd": "http://10.1.0.11 quiet/a"}, "has a blank, or a character that is not printable ASCII"),
        ({"kernel": "http://10.1.0.１１/a"}, "has a blank, or a character that is not printable ASCII"),
        ({"kernel": "http://10.1.0.11;reboot/a"}, "its host may have letters, digits and . -"),
        ({"kernel": "http://[fe80::1]/a"}, "its host may have letters, digits and . -"),
        ({"title": "two words"}, "'two words' is not a title for a boot entry"),
        ({"append": "quiet\nLABEL other"}, "only printable ASCII"),
        ({"append": "x initrd=http://elsewhere/a"}, "initrd= among them"),
        ({"append": '"quoted"'}, "a quote at either end is dropped"),
        ({"append": ""}, "write at least one"),
        ({"append": "x" * 2048}, "2048 bytes, and Linux reads 2047"),
    ],
)
def test_what_would_be_read_otherwise_is_refused(changes: dict[str, str], said: str) -> None:
    usual = {"title": "install", "kernel": KERNEL, "initrd": INITRD, "append": "quiet"}
    with pytest.raises(ProvisionError) as refused:
        petitboot.armed("hal05", **(usual | changes))
    assert said in str(refused.value)


@given(st.ip_addresses(v=4).map(str), st.integers(0, 2**48 - 1))
def test_the_names_of_a_node_are_the_first_two_that_petitboot_asks_for(address: str, number: int) -> None:
    mac = ":".join(re.findall("..", f"{number:012x}"))
    assert [petitboot.mac_name(mac), petitboot.hex_name(address)] == search_names(mac, address)[:2]


def test_scripts_of_iPXE() -> None:
    assert ipxe.standing("hal-dtn").splitlines()[0] == "#!ipxe"
    assert ipxe.standing("hal-dtn").splitlines()[-1] == "exit"
    assert ipxe.armed("hal-dtn", KERNEL, INITRD, "quiet").splitlines()[2:] == [
        f"kernel {KERNEL} initrd=initrd.img quiet BOOTIF=01-${{netX/mac:hexhyp}}",
        f"initrd --name initrd.img {INITRD}",
        "boot",
    ]
    with pytest.raises(ProvisionError, match="are iPXE’s own"):
        ipxe.armed("hal-dtn", KERNEL, INITRD, "quiet && shell")
