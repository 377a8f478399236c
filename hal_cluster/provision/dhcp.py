"""dnsmasq's configuration: one file that is the same whatever nodes there are, and two small files for each node.

So a change of one node changes its files and no other, and a wrong line is one node's. What is a trap here, from
dnsmasq's man page and source (2.76 of CentOS 7, and later):

* ``dhcp-ignore=tag:!known`` leaves whoever is not in the model without an answer; ``static`` in dhcp-range has no
  addresses to give away.
* dnsmasq names itself as router unless it is told that there is none, and stops at 1000 leases.
* Files of dhcp-hostsdir and dhcp-optsdir are read when they appear; one that changed or went is in force as it was
  until dnsmasq is restarted or gets SIGHUP.
* A file of dhcp-optsdir has what follows ``dhcp-option=``, which is sent to whoever asks for it: petitboot asks for 209
  and 210 (``discover/network.c``), iPXE for 67.
* Options are held apart by tags: a node's own is ``node-NAME``, so that no node's name can be one of dnsmasq's.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.nodes import POWER, X86, BootNode

FILE, PREFIX = "file", "prefix"
"""How petitboot is told where its configuration is: option 209 (the file), or 210 (a folder that it searches)."""
# Option 93, RFC 4578 and IANA: 14 OPAL (petitboot); 0 BIOS; 7 and 9 UEFI x86_64, which firmware uses alike.
_ARCHITECTURES = (("opal", 14), ("bios", 0), ("efi", 7), ("efi", 9))
_INTERFACE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,14}")


@dataclass(frozen=True, slots=True)
class Served:
    """A network in which leases are given: the interface of this machine there, and what the model says of it."""

    network: str
    interface: str
    cidr: str
    gateway: str | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """What is the same for all nodes. ``url``: where boot configurations are, with / at its end. Times in seconds."""

    networks: Sequence[Served]
    boot_network: str
    domain: str
    url: str
    hosts_dir: str
    options_dir: str
    tftp_root: str
    lease_file: str
    search: str = FILE
    lease_seconds: int = 3600
    loaders: Mapping[str, str] | None = None


def main_file(server: Server) -> str:
    """Return the file that names no node; ProvisionError for what dnsmasq would refuse or, worse, take."""
    if server.search not in (FILE, PREFIX):
        raise ProvisionError(f"search is {server.search}; {FILE} (option 209) or {PREFIX} (option 210)")
    if server.lease_seconds < 120:
        raise ProvisionError(f"lease_seconds is {server.lease_seconds}; dnsmasq gives none for less than 120")
    if not re.fullmatch(r"http://[A-Za-z0-9.-]+(:\d+)?/([A-Za-z0-9._-]+/)*", server.url):
        raise ProvisionError(f"url is {server.url}; write one as http://10.64.0.11:8480/boot/, with / at its end")
    if server.boot_network not in [served.network for served in server.networks]:
        raise ProvisionError(f"nodes boot in network {server.boot_network}, which is not among those that are served")
    lines = [
        "# Written by the role provision_server; changes made here are lost.",
        "# Only DHCP and TFTP: names are resolved elsewhere.",
        "port=0",
        "bind-dynamic",
        "no-hosts",
        "no-resolv",
        "log-dhcp",
        "",
        "# Whoever is not in the model gets no answer.",
        "dhcp-ignore=tag:!known",
        "dhcp-authoritative",
        "dhcp-lease-max=65536",
        f"dhcp-leasefile={server.lease_file}",
        f"dhcp-hostsdir={server.hosts_dir}",
        f"dhcp-optsdir={server.options_dir}",
        f"domain={server.domain}",
    ]
    for served in server.networks:
        lines += ["", f"# Network {served.network}", *_network(served, server.lease_seconds)]
    lines += ["", "# What asks: petitboot of POWER9, BIOS, UEFI, iPXE."]
    lines += [f"dhcp-match=set:{tag},option:client-arch,{number}" for tag, number in _ARCHITECTURES]
    lines += ["dhcp-match=set:ipxe,175"]
    if server.search == PREFIX:
        lines += ["", "# petitboot searches pxelinux.cfg/ below this: by MAC, by address."]
        lines += [f"dhcp-option=tag:opal,tag:{_tag(server.boot_network)},210,{server.url}"]
    lines += ["", "# x86_64 firmware loads iPXE from here, and iPXE its node's script by HTTP."]
    lines += ["enable-tftp", "tftp-no-fail", f"tftp-root={server.tftp_root}"]
    for tag, file in sorted((server.loaders or {}).items()):
        if tag not in ("bios", "efi") or not re.fullmatch(r"[A-Za-z0-9._-]+", file):
            raise ProvisionError(f"loader {tag}: {file}: a file's name for bios, one for efi")
        lines += [f"dhcp-boot=tag:{tag},tag:!ipxe,{file}"]
    return "\n".join([*lines, ""])


def _network(served: Served, lease_seconds: int) -> list[str]:
    if not _INTERFACE.fullmatch(served.interface):
        raise ProvisionError(f"network {served.network}: {served.interface!r} is no interface")
    cidr = ipaddress.ip_network(served.cidr)
    if cidr.version != 4:
        raise ProvisionError(
            f"network {served.network}: {served.cidr} is of IPv6; petitboot's names of files are IPv4's"
        )
    tag = _tag(served.network)
    return [
        f"interface={served.interface}",
        f"dhcp-range=set:{tag},{cidr.network_address},static,{cidr.netmask},{lease_seconds}",
        f"dhcp-option=tag:{tag},option:router{',' + served.gateway if served.gateway else ''}",
    ]


def _tag(network: str) -> str:
    return f"net-{network}"


def host_file(node: BootNode, server: Server) -> str | None:
    """Return a node's leases, a line for each served network that the model knows its MAC in; None without any.

    A BMC is a machine of its own to DHCP: its lease has another name, and not the node's tag.
    """
    lines = []
    for served in server.networks:
        mac, address = node.macs.get(served.network), node.addresses.get(served.network)
        if not mac or not address:
            continue
        if ipaddress.ip_address(address) not in ipaddress.ip_network(served.cidr):
            raise ProvisionError(f"{node.name}: addresses.{served.network} is {address}, outside {served.cidr}")
        plain = served.network == server.boot_network
        name, tag = (node.name, f"set:node-{node.name},") if plain else (f"{node.name}-{served.network}", "")
        lines.append(f"{mac},{tag}{address},{name}\n")
    return "".join(lines) or None


def options_file(node: BootNode, server: Server) -> str:
    """Return a node's own options: where its boot configuration is."""
    url, mine = f"{server.url}{node.name}", f"tag:node-{node.name}"
    if node.arch == X86:
        return f"{mine},tag:ipxe,option:bootfile-name,{url}\n"
    assert node.arch == POWER  # boot_node admits no other
    return f"{mine},tag:opal,209,{url}\n" if server.search == FILE else ""


def files(nodes: Sequence[BootNode], server: Server) -> dict[str, str]:
    """Return all files of nodes by path; ProvisionError when two claim a MAC or an address."""
    owner: dict[str, str] = {}
    made: dict[str, str] = {}
    for node in nodes:
        for served in server.networks:
            for value in (node.macs.get(served.network), node.addresses.get(served.network)):
                if value and owner.setdefault(value, node.name) != node.name:
                    raise ProvisionError(
                        f"{node.name}: {value} is {owner[value]}'s too; DHCP would answer for one of them"
                    )
        if (hosts := host_file(node, server)) is None:
            continue
        made[f"{server.hosts_dir}/{node.name}"] = hosts
        if server.boot_network in node.macs and (options := options_file(node, server)):
            made[f"{server.options_dir}/{node.name}"] = options
    return made
