"""/etc/hosts: names by network, and the lines of /etc/hosts that somebody else wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from hal_inventory.printable import few, one_line

MANAGEMENT = "management"
CUSTOMARY = {MANAGEMENT: "", "ipoib": "-ib"}
"""What follows a node's name where it is not the network's own name."""
HEADER = '# Written by the role "hosts"'
"""How the file begins that this role writes, in each of its versions; the first ones kept no copy of it."""
LOOPBACK_NAMES = re.compile(r"localhost\d?(\.localdomain\d?)?|ip6-.*", re.IGNORECASE)
"""Names that installers give the loopback, or addresses of IPv6's own; those of Debian begin with ip6-."""


def suffixes_of(networks: Iterable[str]) -> dict[str, str]:
    """Return by network what follows a node's name there: hal01-ib for ipoib, hal01-NETWORK for any other.

    The management network carries the plain name, and comes first.
    `networks`: names of the model's networks. The suffix of the management network is empty.
    """
    known = sorted(networks, key=lambda name: name != MANAGEMENT)
    return {name: CUSTOMARY.get(name, f"-{name}") for name in known}


def network_names(
    addresses: Mapping[str, str], name: str, networks: Mapping[str, Mapping[str, Any]], suffixes: Mapping[str, str]
) -> list[str]:
    """Return name and address of a node in each further network, as `suffixes` or `suffixes_of` say.

    Not in networks of kind bmc, in which another computer answers.
    `addresses`: those of the node, by network; the result has their order. `networks`: lookup('hal', 'networks').
    """
    known = {**suffixes_of(networks), **suffixes}
    mine = [network for network in addresses if network != MANAGEMENT and networks[network]["kind"] != "bmc"]
    return [word for network in mine for word in (f"{name}{known[network]}", addresses[network])]


def foreign(there: str, declared: str, former: str, own: Iterable[str] = ()) -> list[str]:
    """Return the lines of /etc/hosts that would be lost and that this role did not write, as hosts(5) has them.

    there, declared, former: the file now, as it will be, and as this role left it; where that is not known, a file with
    this role's header is as it left it. A line is lost unless all its names lead to its address afterwards. What
    installers write is not: names of the loopback, and there a node's `own` ones.
    The lines come back without comments.
    """
    if not former.strip() and there.startswith(HEADER):
        return []
    kept = set(_entries(declared)) | set(_entries(former))
    local = set(own)
    return [
        " ".join(line)
        for line in _lines(there)
        if any(
            (line[0], name) not in kept and not _of_an_installer(line[0], name, local) for name in line[1:] or [line[0]]
        )
    ]


def said(lines: Iterable[str], declared: str) -> str:
    """Return foreign lines for a message: as found, and those that may be declared as hosts_extra takes them.

    `lines`: what `foreign` returned; they are cut to a sane length. `declared`: the file as it will be.
    """
    lost = list(lines)
    taken = {name for _, name in _entries(declared)}
    wanted = [line.split() for line in lost]
    extra = [
        f"{{address: {address}, names: [{', '.join(names)}]}}"
        for address, *names in wanted
        if names and _is_address(address) and not taken & set(names)
    ]
    if not extra:
        return f"{few(lost)}. The model has other addresses for these names."
    return f"{few(lost)}. To keep what the model does not have, declare hosts_extra: [{one_line(', '.join(extra))}]."


def _lines(text: str) -> Iterator[list[str]]:
    """Yield the words of each line that is not empty, without comments."""
    return (words for words in (line.partition("#")[0].split() for line in text.splitlines()) if words)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    return ((words[0], name) for words in _lines(text) for name in words[1:])


def _of_an_installer(address: str, name: str, own: set[str]) -> bool:
    if not _is_address(address):
        return False
    parsed = ip_address(address)
    if LOOPBACK_NAMES.fullmatch(name):
        return parsed.is_loopback or parsed.version == 6
    return parsed.is_loopback and name in own


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
