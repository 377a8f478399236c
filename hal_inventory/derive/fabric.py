"""What role infiniband and the emulated fabric need: ports, cables and switches."""

from __future__ import annotations

from typing import Any

from hal_inventory.model import FabricPort, Site


def ports(site: Site, *, node: str = "") -> list[dict[str, Any]]:
    """Return the ports of nodes and arrays in the order of the model; only one node's own when it is named.

    ``device`` and ``number`` are those of ``mlx5_0/1``. A port without a cable in the model is not ``used`` if other
    ports of its owner have one: it is in the machine, and nobody expects a link.
    """
    cabled = {port.owner for port in site.fabric_ports if port.switch is not None}
    return [_port(port, cabled) for port in site.fabric_ports if node in ("", port.owner)]


def _port(port: FabricPort, cabled: set[str]) -> dict[str, Any]:
    device, _, number = port.name.partition("/")
    return {
        "owner": port.owner,
        "name": port.name,
        "device": device,
        "number": int(number) if number.isdecimal() else 1,
        "guid": port.guid,
        "rate_gbps": port.rate_gbps,
        "switch": port.switch,
        "switch_port": port.switch_port,
        "used": port.switch is not None or port.owner not in cabled,
    }


def cables(site: Site) -> list[dict[str, Any]]:
    """Return every cable: at one end a port of a switch, at the other a port of a node, an array or a switch."""
    made = [
        {
            **_end(site, port.switch, port.switch_port),
            "owner": port.owner,
            "port": port.name,
            "guid": port.guid,
            "rate_gbps": port.rate_gbps,
        }
        for port in site.fabric_ports
        if port.switch is not None
    ]
    made += [
        {
            **_end(site, link.switch, link.port),
            "owner": link.other,
            "port": str(link.other_port),
            "guid": site.switches[link.other].guid,
            "rate_gbps": None,
        }
        for link in site.fabric_links
    ]
    return made


def _end(site: Site, switch: str, port: int | None) -> dict[str, Any]:
    return {"switch": switch, "switch_guid": site.switches[switch].guid, "switch_port": port}


def switches(site: Site) -> list[dict[str, Any]]:
    """Return the switches that cables go to, in the order of the model."""
    return [
        {"name": name, "guid": switch.guid, "ports": switch.ports, "model": switch.model}
        for name, switch in site.switches.items()
        if switch.guid is not None and switch.ports is not None
    ]
