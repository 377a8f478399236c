"""What the server is told of a node: what it boots as a rule, and the order that has it install something once.

Nothing here writes: files of the server are written on it, by ``hal-provision arm`` (which takes an order on standard
input) and ``disarm``, one node's and no other's. While an order is in force it is served in place of the standing
configuration, which stays as it is. When it runs out, its installation began, or the node called home, the standing one
is served again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hal_cluster.provision import ipxe, petitboot
from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.nodes import X86, BootNode
from hal_cluster.provision.tokens import Token

KICKSTART = "kickstart.cfg"
TITLE = "hal-install"
RESCUE = "inst.rescue"
"""The parameter with which Anaconda installs nothing (RHEL 7 Installation Guide, 23.1): any node may boot that."""


@dataclass(frozen=True, slots=True)
class Installer:
    """The installer that a node boots: kernel, initrd and parameters; its second stage is among those (inst.stage2)."""

    kernel: str
    initrd: str
    append: str


def installer_of(arch: str, tree: str, append: str = "") -> Installer:
    """Return the installer in a tree of CentOS 7, as its media have it; ``append``: further parameters (console)."""
    tree = tree.rstrip("/")
    folder = f"{tree}/images/pxeboot" if arch == X86 else f"{tree}/ppc/ppc64"
    words = f"inst.stage2={tree} ip=dhcp" + (f" {append}" if append else "")
    return Installer(f"{folder}/vmlinuz", f"{folder}/initrd.img", words)


def standing(node: BootNode) -> str:
    """Return what a node gets when nobody wants anything of it: it boots its disk."""
    return ipxe.standing(node.name) if node.arch == X86 else petitboot.standing(node.name)


def known(node: BootNode, network: str) -> dict[str, Any]:
    """Return a node's file on the server: its address, the names of its configuration, what it boots as a rule."""
    return {
        "address": node.address(network),
        "names": [petitboot.mac_name(node.mac(network)), petitboot.hex_name(node.address(network))],
        "standing": standing(node),
    }


def configuration(node: BootNode, installer: Installer, kickstart_url: str) -> str:
    """Return the configuration that starts the installer with the node's kickstart."""
    append = f"{installer.append} inst.ks={kickstart_url}"
    if node.arch == X86:
        return ipxe.armed(node.name, installer.kernel, installer.initrd, append)
    text = petitboot.armed(node.name, TITLE, installer.kernel, installer.initrd, append)
    if faults := petitboot.problems(text):
        raise ProvisionError(f"{node.name}: petitboot would not boot this by itself: {faults[0]}")
    return text


def order(
    node: BootNode,
    network: str,
    what: str,
    installer: Installer,
    server_url: str,
    kickstart: str,
    token: Token,
    files: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the order that has a node install ``what``, for ``hal-provision arm`` on standard input.

    ProvisionError where its profile refuses reimaging; not for the installer's rescue mode.

    ``server_url``: http://ADDRESS:PORT of the server. The kickstart has the token in it, so the order is a secret as
    long as that is good: it goes through a pipe, into a file that only the service reads, and to the node.
    """
    if not what.strip() or not what.isprintable():
        raise ProvisionError(f"{node.name}: say in words what it is to install; it is shown by hal-provision status")
    if RESCUE not in installer.append.split():
        node.check_reimage()
    url = f"{server_url}/node/{node.name}/{KICKSTART}"
    return {
        "node": node.name,
        "address": node.address(network),
        "what": what,
        "config": configuration(node, installer, url),
        "files": {**(files or {}), KICKSTART: kickstart},
        "token_sha256": token.sha256,
        "expires": token.expires,
    }
