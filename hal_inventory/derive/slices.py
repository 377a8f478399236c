"""The slices of ``lookup('hal', NAME, ...)``: the one place with their names and arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from hal_inventory.declared import RaidSet
from hal_inventory.derive import fabric, slurm
from hal_inventory.errors import HalInventoryError, UnknownNameError
from hal_inventory.model import MANAGEMENT, FileSystemUse, Site
from hal_inventory.ranges import expand_list, fold
from hal_inventory.restrict import select
from hal_inventory.suggest import did_you_mean


def site(site: Site) -> dict[str, Any]:
    """Return name, domain and whether the site is virtual."""
    return {"name": site.name, "domain": site.domain, "virtual": site.virtual}


def placeholders(site: Site, *, node: str = "") -> list[dict[str, Any]]:
    """Return the values that nobody has filled in yet, of the unrestricted model; only a node's own if it is named."""
    return [
        {"field": placeholder.field, "line": placeholder.line, "value": placeholder.value}
        for placeholder in site.placeholders
        if not node or _is_of(placeholder.field, node)
    ]


def _is_of(field: str, node: str) -> bool:
    """Tell whether a field belongs to the entry of a node: ``nodes.hal[01-16].serial`` to hal05's."""
    kind, _, rest = field.partition(".")
    return kind == "nodes" and node in expand_list(rest.partition(".")[0])


def networks(site: Site) -> dict[str, dict[str, Any]]:
    """Return the networks by name."""
    return {
        name: {
            "kind": network.kind,
            "cidr": str(network.cidr),
            "netmask": str(network.cidr.netmask),
            "prefix": network.cidr.prefixlen,
            "gateway": str(network.gateway) if network.gateway else None,
            "rate_gbps": network.rate_gbps,
            "mtu": network.mtu,
            "vlan": network.vlan,
        }
        for name, network in site.networks.items()
    }


def hosts(site: Site) -> list[dict[str, Any]]:
    """Return names and addresses of all nodes, in the order of the model."""
    return [
        {
            "name": name,
            "fqdn": site.fqdn(name),
            "address": str(node.addresses[MANAGEMENT]),
            "addresses": {network: str(address) for network, address in node.addresses.items()},
            "aliases": list(node.aliases),
        }
        for name, node in site.nodes.items()
    ]


def serials(site: Site) -> dict[str, str]:
    """Return the names of the nodes by their serial numbers; a node without one is not there."""
    return {node.serial: name for name, node in site.nodes.items() if node.serial}


def boot(site: Site) -> list[dict[str, Any]]:
    """Return the data of DHCP, boot configurations and kickstart files, one entry a node, in the order of the model.

    ``disk`` is the world-wide name of the node's disk ``system``, None if none is declared. ``disks`` are all of them,
    by name. ``reimage`` is what its profile says, ``allowed`` or ``refused``. ``placeholders`` are fields of the node,
    its disks among them, that nobody has filled in. A virtual site has none, because they do no harm there.
    """
    open_fields = {} if site.virtual else _open_fields(site)
    return [
        {
            "name": name,
            "fqdn": site.fqdn(name),
            "profile": node.profile,
            "reimage": site.profile_of(name).reimage,
            "arch": site.profile_of(name).arch,
            "kernel": site.profile_of(name).kernel,
            "macs": dict(node.macs),
            "addresses": {network: str(address) for network, address in node.addresses.items()},
            "disk": node.parts.get("disks", {}).get("system"),
            "disks": dict(node.parts.get("disks", {})),
            "placeholders": sorted(open_fields.get(name, ())),
        }
        for name, node in site.nodes.items()
    ]


def _open_fields(site: Site) -> dict[str, set[str]]:
    """Return the placeholders of each node, by its name. An entry of many nodes is expanded once."""
    fields: dict[str, set[str]] = {}
    for placeholder in site.placeholders:
        kind, _, rest = placeholder.field.partition(".")
        entry, _, field = rest.partition(".")
        for name in expand_list(entry) if kind == "nodes" else ():
            fields.setdefault(name, set()).add(field)
    return fields


def nodes(site: Site, *, where: str = "all") -> list[str]:
    """Return the names of the nodes that an expression selects, in the order of the model."""
    return select(site, where)


def nodeset(site: Site, *, where: str = "all") -> str:
    """Return the nodes that an expression selects, folded: ``hal[01-16]``."""
    return fold(select(site, where))


def services(site: Site) -> dict[str, list[str]]:
    """Return the nodes of every service."""
    return {name: list(nodes) for name, nodes in site.services.items()}


def service(site: Site, *, name: str) -> list[str]:
    """Return the nodes of one service; none if a restriction left them out."""
    if name not in site.services:
        raise UnknownNameError(f'unknown service "{name}"{did_you_mean(name, site.services, kind="services")}')
    return list(site.services[name])


def arrays(site: Site) -> dict[str, dict[str, Any]]:
    """Return the storage arrays by name."""
    return {
        name: {
            **array.model_dump(exclude={"address", "port_guids", "cables"}),
            "address": site.array_addresses.get(name),
        }
        for name, array in site.arrays.items()
    }


def external(site: Site) -> dict[str, dict[str, Any]]:
    """Return the machines outside the cluster by name."""
    return {name: machine.model_dump() for name, machine in site.external.items()}


def file_systems(site: Site) -> dict[str, dict[str, Any]]:
    """Return the file systems by name, with nodes and arrays expanded.

    One of kind nfs also has ``export`` (the folder on the server), ``address`` (the server's, in the file system's
    network; None for an array without one) and ``cidr`` (of that network: who may mount it).
    """
    return {name: {**_file_system(use), **_export(site, use)} for name, use in site.file_systems.items()}


def _file_system(use: FileSystemUse) -> dict[str, Any]:
    return {
        **use.declared.model_dump(exclude={"server"}),
        "server": use.declared.server,
        "servers": list(use.servers),
        "clients": list(use.clients),
        "arrays": list(use.arrays),
        "network": use.network,
    }


def _export(site: Site, use: FileSystemUse) -> dict[str, Any]:
    if use.declared.kind != "nfs":
        return {}
    node = site.nodes[use.servers[0]].addresses[use.network] if use.servers else None
    return {
        "export": use.declared.export or use.declared.mount,
        "address": str(node) if node else next(map(site.array_addresses.get, use.arrays), None),
        "cidr": str(site.networks[use.network].cidr),
    }


def raid_sets(site: Site) -> list[dict[str, Any]]:
    """Return the RAID sets in the order of the model. ``devices`` are paths by world-wide name, stable over reboots."""
    return [
        {**raid.model_dump(exclude={"disks"}), "devices": [disk_path(wwn) for wwn in _wwns(site, raid)]}
        for raid in site.raid_sets
    ]


def _wwns(site: Site, raid: RaidSet) -> list[str]:
    known = site.nodes[raid.node].parts.get("disks", {})
    return [known[disk] for text in raid.disks or () for disk in expand_list(text)]


def disk_path(wwn: str) -> str:
    """Return the link that udev makes for a disk (60-persistent-storage.rules); NVMe has a prefix of its own."""
    return f"/dev/disk/by-id/{'nvme' if wwn.startswith(('eui.', 'nvme.', 'uuid.')) else 'wwn'}-{wwn}"


def users(site: Site) -> dict[str, dict[str, Any]]:
    """Return the users by name, in the order of users.yml.

    ``uid``; ``slot``, ``start`` and ``count`` (None without a slot); ``enabled``: may be root in containers;
    ``retired``.
    """
    return {user.name: user.as_dict() for user in site.users}


def _service_nodes(name: str) -> Callable[[Site], list[str]]:
    def service_nodes(site: Site) -> list[str]:
        return list(site.services.get(name, ()))

    return service_nodes


SLICES: Mapping[str, Callable[..., Any]] = {
    "site": site,
    "placeholders": placeholders,
    "networks": networks,
    "hosts": hosts,
    "serials": serials,
    "boot": boot,
    "nodes": nodes,
    "nodeset": nodeset,
    "services": services,
    "service": service,
    "arrays": arrays,
    "external": external,
    "file_systems": file_systems,
    "raid_sets": raid_sets,
    "users": users,
    "fabric.ports": fabric.ports,
    "fabric.cables": fabric.cables,
    "fabric.switches": fabric.switches,
    "fabric.subnet_managers": _service_nodes("subnet_manager"),
    "slurm.nodes": slurm.nodes,
    "slurm.gres": slurm.gres,
    "slurm.partitions": slurm.partitions,
    "slurm.topology": slurm.topology,
    "slurm.controllers": _service_nodes("slurm_controller"),
    "slurm.databases": _service_nodes("slurm_database"),
}


def derive(of: Site, name: str, arguments: Mapping[str, Any]) -> Any:
    """Return one slice as plain data; HalInventoryError for an unknown slice or a wrong argument."""
    function = SLICES.get(name)
    if function is None:
        raise UnknownNameError(f'unknown slice "{name}"{did_you_mean(name, SLICES, kind="slices")}')
    accepted = {
        parameter.name: parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    given: dict[str, Any] = {}
    for argument, value in arguments.items():
        if argument not in accepted:
            raise HalInventoryError(
                f'slice "{name}": unknown argument "{argument}"{did_you_mean(argument, accepted, kind="arguments")}'
            )
        kind: type = int if argument.endswith("_mb") else str
        if kind is int and isinstance(value, str) and value.isdecimal() and len(value) < 16:
            value = int(value)  # what Ansible makes of a number that was a template
        if not isinstance(value, kind) or isinstance(value, bool):
            what = "a whole number" if kind is int else "text"
            raise HalInventoryError(f'slice "{name}": {argument} must be {what}, not {value!r}')
        given[argument] = value
    for parameter in accepted.values():
        if parameter.default is inspect.Parameter.empty and parameter.name not in given:
            raise HalInventoryError(f'slice "{name}": argument "{parameter.name}" is missing')
    return function(of, **given)
