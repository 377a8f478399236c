"""A part of a site, or a site on other networks: new sites from old ones."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hal_inventory.errors import HalInventoryError, RenumberError
from hal_inventory.expressions import Names, evaluate
from hal_inventory.model import IPAddress, IPNetwork, Node, Site
from hal_inventory.suggest import did_you_mean


def names_of(site: Site) -> Names:
    """Return what an expression over this site may name. A restricted site still knows the nodes that it leaves out."""
    return Names(site.declared_nodes, site.members, site.nodes)


def select(site: Site, expression: str) -> list[str]:
    """Return the nodes that an expression selects, in the order of the model; ExpressionError if it cannot be read."""
    chosen = evaluate(expression, names_of(site))
    return [name for name in site.nodes if name in chosen]


def only(site: Site, expression: str) -> Site:
    """Return the site with only the selected nodes: everything that names nodes names only these.

    Services and groups without a node stay, empty; partitions, RAID sets, switches and file-system clients without one
    go. Raises HalInventoryError when no node is selected.
    """
    chosen = frozenset(select(site, expression))
    if not chosen:
        raise HalInventoryError(f'"{expression}" selects no node of {site.name}')

    def kept(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name in chosen)

    return replace(
        site,
        nodes={name: node for name, node in site.nodes.items() if name in chosen},
        services={name: kept(nodes) for name, nodes in site.services.items()},
        groups={name: kept(nodes) for name, nodes in site.groups.items()},
        members={name: kept(nodes) for name, nodes in site.members.items()},
        partitions={
            name: (declared, kept(nodes)) for name, (declared, nodes) in site.partitions.items() if kept(nodes)
        },
        switches={name: replace(switch, nodes=kept(switch.nodes)) for name, switch in site.switches.items()},
        file_systems={
            name: replace(use, servers=kept(use.servers), clients=kept(use.clients))
            for name, use in site.file_systems.items()
            if not use.servers or kept(use.servers)
        },
        raid_sets=tuple(raid for raid in site.raid_sets if raid.node in chosen),
        fabric_ports=tuple(port for port in site.fabric_ports if port.owner in chosen or port.owner in site.arrays),
    )


def renumber(site: Site, networks: Mapping[str, str]) -> Site:
    """Return the site with some networks moved to another CIDR; the host part of every address stays.

    Raises RenumberError for a network that does not exist, is too small, or overlaps another.
    """
    moved: dict[str, tuple[IPNetwork, IPNetwork]] = {}
    for name, text in networks.items():
        if name not in site.networks:
            raise RenumberError(name, f'unknown network "{name}"{did_you_mean(name, site.networks, kind="networks")}')
        old = site.networks[name].cidr
        try:
            new = ipaddress.ip_network(text)
        except ValueError:
            raise RenumberError(name, f'"{text}" is not a network; write one such as {old}') from None
        if new.version != old.version or new.prefixlen != old.prefixlen:
            raise RenumberError(
                name, f"{new} cannot take the addresses of {old}; write a network with /{old.prefixlen}"
            )
        moved[name] = (old, new)

    made = {
        name: replace(network, cidr=moved[name][1], gateway=_move(network.gateway, *moved[name]))
        if name in moved
        else network
        for name, network in site.networks.items()
    }
    for name in moved:
        cidr = made[name].cidr
        for other in made.values():
            if other.name != name and other.cidr.version == cidr.version and other.cidr.overlaps(cidr):
                raise RenumberError(name, f"{cidr} overlaps network {other.name} ({other.cidr})")

    def renumbered(node: Node) -> Node:
        addresses = {
            name: (_move(address, *moved[name]) or address) if name in moved else address
            for name, address in node.addresses.items()
        }
        return replace(node, addresses=addresses)

    def of_array(text: str) -> str:
        address = ipaddress.ip_address(text)
        old = next((pair for pair in moved.values() if address in pair[0]), None)
        return str(_move(address, *old)) if old else text

    return replace(
        site,
        networks=made,
        nodes={name: renumbered(node) for name, node in site.nodes.items()},
        array_addresses={name: of_array(text) for name, text in site.array_addresses.items()},
    )


def _move(address: IPAddress | None, old: IPNetwork, new: IPNetwork) -> IPAddress | None:
    if address is None:
        return None
    return ipaddress.ip_address(int(new.network_address) + (int(address) - int(old.network_address)))
