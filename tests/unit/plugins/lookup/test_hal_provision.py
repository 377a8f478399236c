"""plugins/lookup/hal_provision.py: what the role gets to put into place, and what it is refused."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.errors import AnsibleError

from hal_cluster.provision import boot
from hal_cluster.provision.nodes import boot_nodes

ROOT = Path(__file__).resolve().parents[4]


def of(name: str, number: int, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "fqdn": f"{name}.example",
        "arch": "ppc64le",
        "macs": {"management": f"02:48:41:4c:02:{number:02x}"},
        "addresses": {"management": f"10.1.0.{number}"},
        **changes,
    }


NODES = [of("hal05", 5), of("hal06", 6, macs={}), of("hal07", 7, addresses={}), of("hal08", 8, arch="x86_64")]


@pytest.fixture(scope="module")
def plugin() -> ModuleType:
    """The lookup, loaded as Ansible does: by its path."""
    spec = importlib.util.spec_from_file_location("hal_provision_lookup", ROOT / "plugins/lookup/hal_provision.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked(plugin: ModuleType, *terms: str, **more: Any) -> Any:
    given = {"nodes": NODES, "network": "management", "folder": "/srv/nodes", **more}
    (found,) = plugin.LookupModule().run(list(terms), {}, **given)
    return found


def test_nodes_that_cannot_be_served_are_named(plugin: ModuleType) -> None:
    assert asked(plugin, "without_mac") == ["hal06", "hal07"]
    assert asked(plugin, "without_mac", nodes=NODES[:1]) == []


def test_each_node_that_can_be_has_its_file(plugin: ModuleType) -> None:
    found = asked(plugin, "nodes")
    assert [one["path"] for one in found] == ["/srv/nodes/hal05", "/srv/nodes/hal08"]
    text = found[0]["content"]
    (node,) = boot_nodes(NODES[:1])
    assert json.loads(text) == boot.known(node, "management")
    assert text == json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"


@pytest.mark.parametrize("terms", [[], ["node"], ["nodes", "leases"]])
def test_what_it_does_not_know_is_refused(plugin: ModuleType, terms: list[str]) -> None:
    with pytest.raises(AnsibleError) as caught:
        asked(plugin, *terms)
    assert caught.value.message == "lookup hal_provision: dnsmasq, leases, nodes and without_mac are all it knows"


def test_a_node_that_nothing_can_boot_is_an_error_of_the_lookup(plugin: ModuleType) -> None:
    with pytest.raises(AnsibleError) as caught:
        asked(plugin, "nodes", nodes=[of("hal05", 5, arch="aarch64")])
    assert caught.value.message == (
        "lookup hal_provision: hal05: nothing boots aarch64 over the network here; ppc64le and x86_64 are known"
    )
