"""playbooks/image.yml: what it publishes is looked at as a node would see it; what it refuses leaves nothing."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from running.ansible_run import PROJECT, Ansible, Run, of_scenario
from testinfra.host import Host

SERVER = "hal-mgmt1"
WWW = "/srv/images/www"
BUILD = "/var/lib/virtual-node/disk/build"
LOOK = "/var/lib/virtual-node/disk/look"
LOCK = PROJECT / "inventory/hal/packages.lock.yml"  # a real site's; the scenario has no mirror, and none of its own
Node = Callable[[str], Host]
Site = Callable[..., Any]


@pytest.fixture(scope="module")
def ansible() -> Ansible:
    return of_scenario(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


def image(ansible: Ansible, **variables: Any) -> Run:
    given = {"image_profile": "ac922", "mirror_lock_file": str(LOCK), **variables}
    return ansible.playbook(PROJECT / "playbooks/image.yml", **given)


def published(server: Host) -> list[str]:
    """The names of the images, oldest first, all of which may be installed."""
    said = json.loads(server.check_output("hal-provision images"))
    assert said["wrong"] == {}
    names: list[str] = said["images"]
    return names


def left(server: Host) -> list[str]:
    """What a build has left: files, a unit, mounts, programs."""
    found: list[str] = server.check_output(
        f"ls -A {BUILD} | grep -v '^.hal-image-build$'; ls -A {WWW}/.incoming; ls -d /run/hal-image 2>/dev/null;"
        " systemctl is-active --quiet hal-image && echo hal-image.service;"
        f" grep -l {BUILD} /proc/[0-9]*/mountinfo 2>/dev/null; true"
    ).splitlines()
    return found


@pytest.fixture(scope="module")
def built(node: Node, ansible: Ansible) -> Iterator[str]:
    """The name of an image that was just built; its root is unpacked in LOOK."""
    server = node(SERVER)
    done = image(ansible)
    assert done.status == 0, done.explain()
    (name,) = published(server)
    server.check_output(f"rm -rf {LOOK} && mkdir {LOOK}")
    server.check_output(f"tar -xzf {WWW}/{name}/rootfs.tar.gz --xattrs '--xattrs-include=*' -C {LOOK}")
    yield name
    server.check_output(f"rm -rf {LOOK}")


def manifest(server: Host, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(server.check_output(f"cat {WWW}/{name}/manifest.json"))
    return found


def test_the_image_is_published_for_its_machine_and_whole_for_a_node(node: Node, site: Site, built: str) -> None:
    server, declared = node(SERVER), next(one for one in site("boot") if one["name"] == "hal01")
    said = manifest(server, built)
    assert built == f"ac922-{said['version']}-ppc64le"
    assert (said["arch"], said["kernel"]) == (declared["arch"], declared["kernel"])
    address = next(one for one in site("boot") if one["name"] == SERVER)["addresses"]["management"]
    url = f"http://{address}/images/{built}/rootfs.tar.gz"
    fetched = node("hal01").check_output("curl --fail --silent --noproxy '*' %s | sha256sum", url)
    assert fetched.split()[0] == said["sha256"]
    assert {"commit", "base_sha256", "roles"} <= set(said["made_from"])
    assert said["made_from"]["lock_sha256"] == hashlib.sha256(LOCK.read_bytes()).hexdigest()


def test_the_root_has_the_declared_kernel_and_the_packages_of_the_manifest(node: Node, built: str) -> None:
    server = node(SERVER)
    said = manifest(server, built)
    assert server.check_output(f"chroot {LOOK} rpm -q --qf '%{{VERSION}}-%{{RELEASE}}' kernel") == said["kernel"]
    assert server.file(f"{LOOK}/boot/vmlinuz-{said['kernel']}.ppc64le").is_file
    listed = server.check_output(
        f"chroot {LOOK} rpm -qa --qf '%{{NAME}}-%{{VERSION}}-%{{RELEASE}}.%{{ARCH}}\\n'"
    ).split()
    assert sorted(one for one in listed if not one.startswith("gpg-pubkey")) == said["packages"]


def test_roles_have_done_their_part_in_the_root_and_none_on_the_server(node: Node, built: str) -> None:
    server = node(SERVER)
    assert "[hal-kernels]" in server.file(f"{LOOK}/etc/yum.repos.d/hal.repo").content_string
    assert "[hal-kernels]" not in server.file("/etc/yum.repos.d/hal.repo").content_string
    for package in ("bash-completion", "chrony", "tmux"):  # of base, of time, of the list
        assert server.run(f"chroot {LOOK} rpm -q {package}").rc == 0
        assert server.run(f"rpm -q {package}").rc == 1
    assert server.check_output(f"getcap {LOOK}/usr/bin/ping").endswith("cap_net_raw=ep")


def test_nothing_of_one_machine_is_in_it(node: Node, built: str) -> None:
    server = node(SERVER)
    found = server.check_output(
        f"cd {LOOK}; ls -d etc/ssh/ssh_host_* etc/hostname etc/resolv.conf root/.ssh root/.ansible var/lib/hal"
        " 2>/dev/null;"
        " cat etc/machine-id; find dev proc sys run tmp var/tmp -mindepth 1; find var/log -type f -size +0;"
        " grep -rlE 'BEGIN .*PRIVATE KEY' etc root home var srv opt; cut -d: -f2 etc/shadow | grep '[$]'; true"
    )
    assert found == ""


def test_the_build_leaves_nothing(node: Node, built: str) -> None:
    assert left(node(SERVER)) == []
    assert published(node(SERVER)) == [built]


def keeper(server: Host, owner: str) -> None:
    server.check_output("systemd-run --quiet --unit=hal-image --description=%s sleep 600", owner)


def test_a_second_build_at_once_is_refused_and_leaves_the_first_alone(node: Node, ansible: Ansible, built: str) -> None:
    server = node(SERVER)
    keeper(server, "image x by elsewhere process 1 of 1")
    try:
        done = image(ansible)
        assert done.status == 2
        assert "hal-mgmt1 is building already: image x by elsewhere process 1 of 1." in done.words
        assert server.run("systemctl is-active hal-image").rc == 0
    finally:
        server.run("systemctl stop hal-image")
    assert published(server) == [built]


def test_a_build_that_fails_half_way_leaves_the_last_good_one_and_nothing_else(
    node: Node, ansible: Ansible, built: str
) -> None:
    """It begins on what a run has left that was killed: its unit and its files. No other program goes with them."""
    server = node(SERVER)
    keeper(server, f"image x by {socket.gethostname()} process {os.getpid()} of 1")  # the number lives, born later
    server.check_output(f"mkdir {BUILD}/root && echo x > {BUILD}/root/x && echo x > {BUILD}/rootfs.tar.gz")
    server.check_output(f"mkdir {WWW}/.incoming/x && echo x > {WWW}/.incoming/x/rootfs.tar.gz")
    done = image(ansible, image_base="", image_packages=["chrony", "nosuch-package"])
    assert done.status == 2
    assert done.output.count("fatal: ") == 1
    assert "dnf could not install into the root: Error: Unable to find a match: nosuch-package." in done.words
    assert left(server) == []
    assert published(server) == [built]


def test_a_second_image_keeps_the_last_good_one(node: Node, ansible: Ansible, built: str) -> None:
    server = node(SERVER)
    done = image(ansible, image_roles={}, image_packages=["unzip"])
    assert done.status == 0, done.explain()
    first, second = published(server)
    assert first == built
    assert [one for one in manifest(server, second)["packages"] if one.startswith(("unzip-", "tmux-"))] == [
        one for one in manifest(server, second)["packages"] if one.startswith("unzip-")
    ]
    assert left(server) == []
