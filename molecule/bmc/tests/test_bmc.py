"""BMCs from first contact on: passwords, power, faults; then nodes that boot and install over the network by them.

Tests are in an order: a site's BMCs get their password first, and a node that was installed is what the next one meets.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from testinfra.host import Host
from testing.bmc_site import DELIVERED, SERVER, BmcSite

from hal_cluster.provision.kickstart import Source
from hal_cluster.provision.tokens import Token

X86, POWER = "hal-mgmt2", "hal01"
EVERYBODY = f"{SERVER},{X86},{POWER}"


@pytest.fixture(scope="module", autouse=True)
def first_contact(bmcs: BmcSite) -> None:
    """All BMCs have the site's password."""
    bmcs.write_fingerprints()
    done = bmcs.play("bmc.yml", "-e", f"@{bmcs.former_passwords()}", bmc_nodes=EVERYBODY)
    assert done.status == 0, done.explain()


# First contact and power


def test_bmcs_of_all_kinds_have_the_sites_password_and_refuse_the_one_they_came_with(bmcs: BmcSite) -> None:
    for name in (SERVER, X86, POWER):
        kind, _ = bmcs.bmc(name)
        assert bmcs.login(name, bmcs.secrets()[0]), name
        assert not bmcs.login(name, DELIVERED[kind]), name


def test_one_start_from_the_disk_is_asked_for_and_used_up(bmcs: BmcSite) -> None:
    done = bmcs.power(POWER, "boot", power_boot="disk")
    assert done.status == 0, done.explain()
    assert "next start disk: hal01" in bmcs.power(POWER, "status").words
    done = bmcs.power(POWER, "off")
    assert done.status == 0, done.explain()
    assert "- off hal01" in done.words
    assert "off" in bmcs.setup("show").split(POWER)[1].split("\n")[0]
    done = bmcs.power(POWER, "on")
    assert done.status == 0, done.explain()
    bmcs.until("an answer", lambda: bmcs.answers(POWER), POWER)
    text = bmcs.since_off(POWER)
    assert "boot from disk (one-time override)" in text
    assert "Petitboot" not in text, "the disk was asked for"


@pytest.mark.parametrize(
    ("fault", "action", "said"),
    [
        (("silent",), "status", "no answer"),
        (("504",), "status", "504"),
        (("wrong-serial", "X4711"), "on", "it is X4711"),
        (("power-ignored",), "off", "after 3 s"),
        (("boot-override-ignored",), "boot", "next start"),
        (("password-must-change",), "status", "password"),
        (("swapped-with", X86), "off", "it is PLACEHOLDER-MGMT2, which is hal-mgmt2: their BMCs are swapped"),
    ],
)
def test_a_fault_ends_in_one_line_that_names_bmc_question_and_answer(
    bmcs: BmcSite, fault: tuple[str, ...], action: str, said: str
) -> None:
    more = {"power_boot": "network"} if action == "boot" else {}
    with bmcs.fault(POWER, *fault):
        done = bmcs.power(POWER, action, bmc_wait_seconds=4, bmc_shut_down_seconds=3, **more)
    assert done.status != 0
    lines = re.findall(rf"msg: 'BMC of {POWER} \([0-9.]+\): (.*?): (.*?)'? PLAY RECAP", done.words)
    assert len(lines) == 1, done.output[-3000:]
    assert said in lines[0][1], lines
    assert bmcs.answers(POWER), "a fault of the BMC is none of the machine"


# Booting


def test_a_node_that_nobody_armed_boots_its_disk_and_others_are_as_they_were(bmcs: BmcSite) -> None:
    before = bmcs.configurations()
    assert bmcs.power(POWER, "cycle").status == 0
    bmcs.until("an answer", lambda: bmcs.answers(POWER), POWER)
    text = bmcs.since_off(POWER)
    assert f"[network] Requesting config http://{bmcs.server_address}:8480/boot/hal01" in text
    assert "Booting from disk" in text
    assert bmcs.configurations() == before


def test_an_x86_node_boots_its_disk_and_the_installer_when_it_is_armed(bmcs: BmcSite) -> None:
    bmcs.serve_installer()
    inventory = bmcs.scenario / "hal.yml"
    order = subprocess.run(
        [
            *(sys.executable, "-m", "hal_cluster.provision", "rescue", X86, "--inventory", str(inventory)),
            *("--server", f"http://{bmcs.server_address}:8480", "--tree", f"http://{bmcs.server_address}/images/tree"),
        ],
        capture_output=True,
        check=True,
    ).stdout
    bmcs.on(SERVER, f"hal-provision arm {X86}", order)
    assert bmcs.power(X86, "force_off").status == 0
    assert bmcs.power(X86, "boot", power_boot="network").status == 0
    assert bmcs.power(X86, "on").status == 0
    bmcs.says(X86, "rescue mode: a shell waits on the console")
    text = bmcs.since_off(X86)
    assert f"PXE: undionly.kpxe from {bmcs.server_address}" in text
    assert f"iPXE: http://{bmcs.server_address}/images/tree/images/pxeboot/vmlinuz..." in text
    bmcs.on(SERVER, f"hal-provision disarm {X86}")
    bmcs.force_off(X86)
    bmcs.switch_on(X86)
    bmcs.until("an answer", lambda: bmcs.answers(X86), X86)
    assert bmcs.console(X86).splitlines()[-1] == "iPXE: exit"


# Installing


@pytest.fixture(scope="module")
def image(bmcs: BmcSite) -> Path:
    """The folder of a signed image. The first test that installs publishes it."""
    bmcs.serve_installer()
    return bmcs.seal(POWER, time.strftime("%Y%m%d%H%M%S"))


def test_images_that_are_not_what_was_signed_are_refused_and_the_good_one_is_installed(
    bmcs: BmcSite, image: Path, node: Callable[[str], Host]
) -> None:
    refused_at_the_server(bmcs, image.name, bmcs.bring(image))
    where = bmcs.bring(image)
    assert "published" in bmcs.on(SERVER, f"hal-provision publish {where}")
    before, others = bmcs.configurations(), bmcs.ssh(X86, boot_of(bmcs, X86)).stdout
    source = bmcs.source(image)
    (image / "rootfs.tar").unlink()
    bmcs.force_off(POWER)

    # Somebody changes one byte of what is served: the disk is not touched.
    file = f"/srv/images/www/{image.name}/rootfs.tar"
    flip = f"printf %s | dd of={file} bs=1 seek=700 conv=notrunc status=none"
    byte = bmcs.on(SERVER, f"dd if={file} bs=1 skip=700 count=1 status=none | od -An -tx1").strip()
    bmcs.on(SERVER, flip.replace("%s", f"'\\x{(int(byte, 16) + 1) % 256:02x}'"))
    token, _key = install(bmcs, source, "a tampered image")
    bmcs.says(POWER, "The installation has stopped.")
    text = bmcs.since_off(POWER)
    assert f"hal01: NOT INSTALLED: {image.name} cannot be fetched or is not what was signed" in text
    assert "erasing" not in text
    assert f"{image.name}: rootfs.tar is damaged" in bmcs.on(SERVER, "hal-provision images")
    bmcs.on(SERVER, flip.replace("%s", f"'\\x{byte}'"))

    # The next order is a good one; the token of the last is worth nothing.
    bmcs.force_off(POWER)
    good, key = install(bmcs, source, "an image")
    bmcs.says(POWER, "Installation complete: restart")
    bmcs.until("an answer", lambda: bmcs.answers(POWER), POWER)
    assert bmcs.host_key(POWER) == key, "its host key is that of the first secrets"
    assert node(POWER).check_output("uname -r") == "4.18.0-80.7.2.el7.ppc64le"
    assert "rpm" not in bmcs.on(POWER, "ls /etc/yum.repos.d"), "the system that was there before had repositories"
    assert bmcs.on(POWER, "virtual-gpu show").count("V100") == 4, "hardware is not installed"
    said = json.loads(bmcs.on(SERVER, f"hal-provision status {POWER}"))["nodes"][POWER]
    assert (said["armed"], said["tokens"], said["secrets_wait"]) == (False, [], False)
    assert said["called"]["said"] == "installed=kernel-4.18.0-80.7.2.el7.noarch"
    assert good.words not in bmcs.console(POWER)
    for one in (token, good):
        assert refused_token(bmcs, one.words) == "403"
    assert bmcs.configurations() == before
    assert bmcs.ssh(X86, boot_of(bmcs, X86)).stdout == others
    assert "404" in bmcs.on(POWER, status_of(f"http://{bmcs.server_address}:8480/boot/{X86}"))


def test_a_machine_without_its_disk_is_left_alone_by_the_installer(bmcs: BmcSite, image: Path) -> None:
    bmcs.force_off(POWER)
    with bmcs.fault(POWER, "disk-missing"):
        install(bmcs, bmcs.source(image), "an image")
        bmcs.says(POWER, "The installation has stopped.")
    assert "hal01: NOT INSTALLED: disk 0x50248414c1010001 is not in this machine" in bmcs.since_off(POWER)
    bmcs.force_off(POWER)
    bmcs.on(SERVER, f"hal-provision disarm {POWER}")
    bmcs.switch_on(POWER)
    bmcs.until("an answer", lambda: bmcs.answers(POWER), POWER)


def test_nobody_told_a_password(bmcs: BmcSite) -> None:
    assert bmcs.seen == set(), "in the process list"
    told = "\n".join([*bmcs.told, bmcs.logs()])
    for secret in bmcs.secrets():
        assert secret not in told


def install(bmcs: BmcSite, source: Source, what: str) -> tuple[Token, str]:
    """Arm a machine that is off and switch it on, to boot from the network once; return token and new host key.

    Secrets first: none are taken for one whose installation has begun.
    """
    token, key = bmcs.arm(POWER, source, what), bmcs.spool(POWER)
    bmcs.switch_on(POWER, network=True)
    return token, key


def refused_at_the_server(bmcs: BmcSite, name: str, where: str) -> None:
    """Nobody publishes an image that is cut short, or whose manifest was changed."""
    bmcs.on(SERVER, f"truncate -s -1 {where}/rootfs.tar")
    done = bmcs.ssh(SERVER, f"hal-provision publish {where}")
    assert (done.returncode, b"bytes, and" in done.stderr) == (2, True), done.stderr
    bmcs.on(SERVER, f"sed -i 's/bash-4.2/bash-4.3/' {where}/manifest.json")
    done = bmcs.ssh(SERVER, f"hal-provision publish {where}")
    assert (done.returncode, f"{name}: the manifest is not signed".encode() in done.stderr) == (2, True), done.stderr


def boot_of(bmcs: BmcSite, name: str) -> str:
    return f"curl --silent --noproxy '*' http://{bmcs.server_address}:8480/boot/{name}"


def status_of(url: str) -> str:
    return f"curl --silent --noproxy '*' --output /dev/null --write-out '%{{http_code}}' {url}"


def refused_token(bmcs: BmcSite, words: str) -> str:
    """Return the status that a token gets from the node's own address, by TLS."""
    url = f"https://{bmcs.server_address}:8481/node/{POWER}/secrets"
    header = f'header = "X-HAL-Token: {words}"\n'.encode()
    asked = f"{status_of(url)} --insecure --request POST --config -"
    return bmcs.on(POWER, asked, header)
