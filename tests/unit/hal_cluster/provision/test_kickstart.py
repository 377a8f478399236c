"""Kickstart files, read by pykickstart as RHEL 7's Anaconda reads them, and their scripts by a shell."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pykickstart.parser import KickstartParser  # type: ignore[import-untyped]
from pykickstart.version import makeVersion  # type: ignore[import-untyped]

from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.images import Manifest
from hal_cluster.provision.kickstart import Place, Server, Source, kickstart
from hal_cluster.provision.tokens import Token, issue
from tests.unit.hal_cluster.provision.conftest import node, run_script

PLACE = Place("management", "255.255.255.0")
IMAGE = Manifest(
    "compute", "20261122", "ppc64le", "4.18.0-80.7.2.el7", "rootfs.tar.xz", 4711, "ab" * 32, ("bash-4.2",), "2026-11-22"
)
FROM_IMAGE = Source(IMAGE, "http://10.1.0.11/images/compute-20261122-ppc64le")
AUTHORITY = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
SERVER = Server("https://10.1.0.11:8481", AUTHORITY)
TOKEN = Token("t0ken-words", 1e10)
X86: dict[str, Any] = {"arch": "x86_64", "kernel": "3.10.0-1062.el7"}
OF_X86 = replace(FROM_IMAGE, image=replace(IMAGE, **X86))
DISK = "disk/by-id/wwn-0x50248414c0550001"


def made(source: Source = FROM_IMAGE, **changes: Any) -> str:
    return kickstart(node(**changes), PLACE, source, SERVER, TOKEN)


def read(text: str) -> Any:
    handler = makeVersion("RHEL7")
    KickstartParser(handler).readKickstartFromString(text)
    return handler


def script(text: str, section: str) -> str:
    found = re.search(rf"^%{section}.*?\n(.*?)^%end$", text, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize(("source", "changes"), [(FROM_IMAGE, {}), (OF_X86, X86)])
def test_anaconda_of_7_reads_it_and_it_names_one_disk(source: Source, changes: dict[str, Any]) -> None:
    found = read(made(source, **changes))
    assert found.ignoredisk.onlyuse == [DISK]
    assert found.clearpart.drives == [DISK]
    assert found.bootloader.bootDrive == DISK
    assert {part.disk for part in found.partition.partitions} == {DISK}
    assert found.rootpw.lock
    assert not found.rootpw.password
    assert (found.network.network[0].ip, found.network.network[0].device) == ("10.1.0.105", "02:48:41:4c:02:05")
    assert found.network.network[0].hostname == "hal05.hal.example"


def test_power_has_a_PReP_partition_first_and_x86_what_its_firmware_needs() -> None:
    power, x86 = read(made()), read(made(OF_X86, **X86))
    first = power.partition.partitions[0]
    assert (first.fstype, first.size, first.mountpoint) == ("PPC PReP Boot", 8, "prepboot")
    assert not power.reqpart.reqpart
    assert x86.reqpart.reqpart
    assert "PPC PReP Boot" not in made(OF_X86, **X86)


def test_an_image_comes_with_the_signed_sum_and_without_packages() -> None:
    found = read(made(FROM_IMAGE))
    assert (found.liveimg.url, found.liveimg.checksum) == (f"{FROM_IMAGE.image_url}/rootfs.tar.xz", "ab" * 32)
    assert "%packages" not in made(FROM_IMAGE)


SECTIONS = ("pre", "post", "onerror")


def test_the_token_is_where_the_node_shows_it_and_on_no_command_line() -> None:
    text = made()
    assert text.count(TOKEN.words) == 3
    for section in SECTIONS:
        assert f"token='{TOKEN.words}'" in script(text, section).splitlines()
    assert TOKEN.words not in repr(TOKEN)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_shell_can_read_the_scripts(section: str) -> None:
    text = script(made(), section)
    done = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def run_pre(tmp_path: Path, sum_of: str, disk: bool = True, server: int = 0) -> subprocess.CompletedProcess[str]:
    """Run %pre with programs that answer as on the node: uname, curl, sha256sum; the disk is a name in /dev.

    `server`: curl's exit status when it is asked to begin. What was asked of it is in the file `asked`.
    """
    text = script(made(FROM_IMAGE), "pre").replace(f"/dev/{DISK}", "/dev/null" if disk else "/dev/hal-none")
    text = text.replace("[ -b ", "[ -e ").replace("/run/", f"{tmp_path}/")
    curl = (
        f'case $* in *{SERVER.url}*) echo "$*" >>{tmp_path}/asked; cat >/dev/null; exit {server};; esac; echo content'
    )
    for name, words in {"uname": "echo ppc64le", "curl": curl, "sha256sum": f"echo {sum_of}"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{words}\n")
        (tmp_path / name).chmod(0o755)
    text = text.replace("/dev/console", str(tmp_path / "console"))
    (tmp_path / "asked").write_text("")
    return run_script(text, tmp_path)


SIGNED = "ab" * 32 + "  -"


def test_before_a_disk_is_touched_the_image_is_compared_with_what_was_signed(tmp_path: Path) -> None:
    assert run_pre(tmp_path, SIGNED).returncode == 0
    other = run_pre(tmp_path, "cd" * 32 + "  -")
    assert other.returncode == 1
    assert (
        "hal05: NOT INSTALLED: compute-20261122-ppc64le cannot be fetched or is not what was signed; the disk is"
        in other.stdout
    )
    missing = run_pre(tmp_path, "ab" * 32, disk=False)
    assert missing.returncode == 1
    assert "disk 0x50248414c0550001 is not in this machine" in missing.stdout


def test_the_server_hears_that_it_begins_last_and_only_when_all_was_well(tmp_path: Path) -> None:
    assert run_pre(tmp_path, SIGNED).returncode == 0
    assert (tmp_path / "asked").read_text().split()[-1] == "https://10.1.0.11:8481/node/hal05/begin"
    assert script(made(FROM_IMAGE), "pre").splitlines()[-1].startswith("ask begin || fail ")
    for wrong, why in (
        ({"sum_of": "cd" * 32}, "cannot be fetched or is not what was signed"),
        ({"sum_of": SIGNED, "disk": False}, "is not in this machine"),
    ):
        assert run_pre(tmp_path, **wrong).returncode == 1
        (told,) = (tmp_path / "asked").read_text().splitlines()
        assert told.endswith("https://10.1.0.11:8481/node/hal05/stop")  # it may try again
        assert why in told
    refused = run_pre(tmp_path, SIGNED, server=22)
    assert refused.returncode == 1
    assert "the server does not want this to begin" in refused.stdout


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"disk": None}, "hal05: no system disk is declared; put its world-wide name into cluster.yml"),
        ({"disk": "sda"}, "disks.system is sda, no world-wide name"),
        ({"placeholders": ("serial", "disks.system")}, "disks.system, serial in cluster.yml are placeholders"),
        ({"kernel": None}, "hal05: its profile declares no kernel (None)"),
        ({"kernel": "4.18; reboot"}, "its profile declares no kernel (4.18; reboot)"),
        ({"macs": {}}, "hal05: cluster.yml has no macs.management for it"),
    ],
)
def test_a_node_that_is_not_wholly_declared_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ProvisionError) as refused:
        made(**changes)
    assert said in str(refused.value)


def test_placeholders_are_taken_in_a_virtual_site() -> None:
    assert kickstart(node(placeholders=("serial",)), PLACE, FROM_IMAGE, SERVER, TOKEN, virtual=True)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (replace(FROM_IMAGE, image=replace(IMAGE, arch="x86_64")), "is for x86_64, not ppc64le"),
        (replace(FROM_IMAGE, image=replace(IMAGE, kernel="4.14.0-115.el7a")), "has kernel 4.14.0-115.el7a, not 4.18"),
        (replace(FROM_IMAGE, image_url="/images"), "write a whole URL"),
        (replace(FROM_IMAGE, image_url="http://10.1.0.11/x\nrootpw x"), "has a blank, or a character"),
    ],
)
def test_a_source_that_does_not_fit_is_refused(source: Source, said: str) -> None:
    with pytest.raises(ProvisionError) as refused:
        made(source)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (replace(SERVER, url="http://10.1.0.11:8480"), "write https://ADDRESS:PORT"),
        (replace(SERVER, authority=AUTHORITY + "PRIVATE KEY"), "is no PEM, or there is a"),
    ],
)
def test_what_would_be_another_line_is_refused(server: Server, said: str) -> None:
    with pytest.raises(ProvisionError) as refused:
        kickstart(node(), PLACE, FROM_IMAGE, server, TOKEN)
    assert said in str(refused.value)


def test_a_token_is_long_and_never_the_same() -> None:
    tokens = {issue(0, 60).words for _ in range(50)}
    assert len(tokens) == 50
    assert min(map(len, tokens)) >= 43
    for seconds in (0, -1, 90000):
        with pytest.raises(ProvisionError, match="more than 0 and at most 86400 s"):
            issue(0, seconds)
