"""The lookups of the controller: what each knows, what it refuses, and that a fault of the data names the lookup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleError, AnsibleUndefinedVariable
from ansible.parsing.dataloader import DataLoader

from hal_cluster.packages.errors import HalPackagesError
from hal_cluster.provision.errors import ProvisionError
from hal_cluster.rules.local_storage.layout import StorageError
from hal_cluster.rules.network import NetworkError
from hal_inventory.errors import HalInventoryError
from tests.unit.modules import PROJECT, loaded

NODE: dict[str, Any] = {
    "name": "hal05", "disks": {"system": "0x5002", "scratch": "0x5001"},
    "interfaces": {"management": {"name": "eth0"}},
}  # fmt: skip


def lookup(name: str) -> Any:
    """The plugin, loaded as Ansible does: by its path."""
    return loaded(name, "lookup")


def asked(module: Any, *terms: Any, variables: dict[str, Any] | None = None, **words: Any) -> list[Any]:
    found: list[Any] = module.LookupModule(loader=DataLoader()).run(list(terms), variables, **words)
    return found


def raises(error: Exception) -> Any:
    def does(*_words: Any, **_more: Any) -> None:
        raise error

    return does


def noting(given: list[Any], answer: Any) -> Any:
    """A function that keeps what it is called with."""

    def does(*words: Any) -> Any:
        given.append(words)
        return answer

    return does


@pytest.mark.parametrize(
    ("name", "terms", "words"),
    [
        ("hal_storage", ["set"], "sets, paths and program are all it knows"),
        ("hal_storage", ["sets", "paths"], "sets, paths and program are all it knows"),
        ("hal_network", ["device"], "devices and competing are all it knows"),
        ("hal_network", ["devices", "competing"], "devices and competing are all it knows"),
        ("hal_image", ["image"], "['image'] is not what it knows; ansible-doc -t lookup hal_image"),
        ("hal_provision", ["dns"], "dnsmasq, leases, nodes and without_mac are all it knows"),
        ("hal_provision", ["nodes", "leases"], "dnsmasq, leases, nodes and without_mac are all it knows"),
        ("hal_firewall", ["ports"], "zones is all it knows"),
        ("hal_node_health", ["check"], "checks and gpu_settings are all it knows"),
        ("hal_node_health", ["program"], "checks and gpu_settings are all it knows"),
    ],
)
def test_what_a_lookup_does_not_know_is_refused(name: str, terms: list[str], words: str) -> None:
    with pytest.raises(AnsibleError) as refused:
        asked(lookup(name), *terms)
    assert str(refused.value) == f"lookup {name}: {words}"


def test_a_program_for_nodes_is_given_as_its_text() -> None:
    for name, term, file in (
        ("hal_storage", "program", "storage/state.py"), ("hal_network", "competing", "network/files.py"),
    ):  # fmt: skip
        assert asked(lookup(name), term) == [(PROJECT / "hal_node" / file).read_text()]


def test_storage_gives_sorted_paths_of_disks_and_the_sets_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = lookup("hal_storage")
    assert asked(plugin, "paths", node=NODE) == [["/dev/disk/by-id/wwn-0x5001", "/dev/disk/by-id/wwn-0x5002"]]
    assert asked(plugin, "sets", node=NODE) == [[]]
    given: list[Any] = []
    monkeypatch.setattr(plugin, "layout", noting(given, ["one"]))
    assert asked(plugin, "sets", node=NODE, raid_sets=[{"name": "data"}], scratch={"disk": "scratch"}) == [["one"]]
    assert given == [([{"name": "data"}], "hal05", NODE["disks"], {"disk": "scratch"})]
    monkeypatch.setattr(plugin, "layout", raises(StorageError("no such disk")))
    with pytest.raises(AnsibleError, match=r"^hal05: no such disk$"):
        asked(plugin, "sets", node=NODE)


def test_network_takes_the_interfaces_of_the_node_unless_others_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = lookup("hal_network")
    given: list[Any] = []
    monkeypatch.setattr(plugin, "devices", noting(given, []))
    assert asked(plugin, "devices", node=NODE, networks={"management": {}}) == [[]]
    other = {"management": {"name": "eth1"}}
    asked(plugin, "devices", node=NODE, networks={}, interfaces=other, ipoib_mode="datagram", zones=["management"])
    assert [words[:3] for words in given] == [
        (NODE, {"management": {}}, NODE["interfaces"]), (NODE, {}, other),
    ]  # fmt: skip
    assert (given[1][3].ipoib_mode, given[1][3].zones) == ("datagram", ["management"])
    with pytest.raises(AnsibleError, match=r"^lookup hal_network: unknown argument mtu$"):
        asked(plugin, "devices", node=NODE, networks={}, mtu=9000, zoning=[])
    monkeypatch.setattr(plugin, "devices", raises(NetworkError("no address")))
    with pytest.raises(AnsibleError, match=r"^lookup hal_network: hal05: no address$"):
        asked(plugin, "devices", node=NODE, networks={})


def test_packages_gives_one_mapping_for_each_lock_file(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = lookup("hal_packages")
    monkeypatch.setattr(plugin, "load_once", lambda path: path)
    monkeypatch.setattr(plugin, "mirrored", lambda file, keys: (file, keys))
    assert asked(plugin, "a", "b", keys={"k": 1}) == [(Path("a"), {"k": 1}), (Path("b"), {"k": 1})]
    assert asked(plugin, "a") == asked(plugin, "a", keys=None) == [(Path("a"), {})]
    monkeypatch.setattr(plugin, "load_once", raises(HalPackagesError("a:7: no such key")))
    with pytest.raises(AnsibleError, match=r"^lookup hal_packages: a:7: no such key$"):
        asked(plugin, "a")


def test_environments_takes_exactly_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = lookup("hal_environments")
    options: dict[str, Any] = {
        "name": "wmlce",
        "root": "/r",
        "platform": "linux-64",
        "variable": "wmlce_environments",
        "directory": "d",
    }
    known: dict[str, Any] = {}  # by what the lookup was given
    monkeypatch.setattr(plugin.LookupModule, "set_options", lambda _self, var_options, direct: known.update(direct))
    monkeypatch.setattr(plugin.LookupModule, "get_option", lambda _self, name: known[name])
    monkeypatch.setattr(plugin, "environments", lambda found, **words: (found, words))
    words = {**options, "directory": Path("d")}
    assert asked(plugin, [{"version": "1"}], **options) == [([{"version": "1"}], words)]
    assert asked(plugin, [], **options) == [([], words)]
    wrong: list[list[Any]] = [[], ["text"], [[], []]]
    for terms in wrong:
        with pytest.raises(AnsibleError, match=r"^lookup hal_environments: give one list of environments$"):
            asked(plugin, *terms)


def test_channels_takes_lock_files_one_by_one_and_in_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = lookup("hal_channels")
    known: dict[str, Any] = {}  # by what the lookup was given
    monkeypatch.setattr(plugin.LookupModule, "set_options", lambda _self, var_options, direct: known.update(direct))
    monkeypatch.setattr(plugin.LookupModule, "get_option", lambda _self, name: known[name])
    monkeypatch.setattr(plugin, "mirrored", lambda paths, places: (paths, places))
    assert asked(plugin, "a", ["b", "c"], places={"ibm": "p"}) == [([Path("a"), Path("b"), Path("c")], {"ibm": "p"})]


def test_the_model_is_that_of_the_plays_inventory(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = lookup("hal")
    named: list[Any] = []

    class Compiled:
        def __init__(self, path: str) -> None:
            named.append(path)

        def slice(self, name: str, words: dict[str, Any]) -> Any:
            if name == "wrong":
                raise HalInventoryError("no such slice")
            return [name, words]

    monkeypatch.setattr(plugin, "Compiled", Compiled)
    monkeypatch.setattr(plugin, "last_source", lambda sources: sources[-1] if sources[-1] != "none" else None)
    play = {"ansible_inventory_sources": ["a", "b"]}
    found = asked(plugin, "nodes", "nodeset", variables=play, where="gpu")
    assert found == [["nodes", {"where": "gpu"}], ["nodeset", {"where": "gpu"}]]
    monkeypatch.setattr(plugin.context, "CLIARGS", {"inventory": ("c",)})
    asked(plugin, "site", variables={})
    monkeypatch.setattr(plugin.context, "CLIARGS", {})
    monkeypatch.setattr(plugin.constants, "DEFAULT_HOST_LIST", ["d"])
    asked(plugin, "site")
    assert named == ["b", "c", "d"]
    with pytest.raises(AnsibleError, match=r"^lookup hal: no such slice$"):
        asked(plugin, "wrong", variables=play)
    with pytest.raises(AnsibleError, match=r"no source of plugin hal among the inventory sources: a, none$"):
        asked(plugin, "site", variables={"ansible_inventory_sources": ["a", "none"]})


HOSTS = {
    "hal05": {"hal_node": {"profile": "ac922"}, "group_names": ["gpu"]},
    "hal-mgmt1": {"hal_node": {"profile": "mgmt"}, "group_names": ["mgmt"]},
}
IMAGE: dict[str, Any] = {
    "profile": "ac922", "name": "i", "nodes": ["hal05"], "builder": "hal-mgmt1", "key": "k", "roles": {"time": "main"},
}  # fmt: skip


def test_an_image_is_only_asked_for_in_a_play() -> None:
    nothing: list[dict[str, Any] | None] = [None, {}, {"hostvars": {}}]
    for variables in nothing:
        with pytest.raises(AnsibleUndefinedVariable, match="there are no hosts; it is asked in a play"):
            asked(lookup("hal_image"), "machine", variables=variables, **IMAGE)


def test_a_problem_of_an_image_is_an_answer_and_of_a_machine_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = lookup("hal_image")
    given: list[Any] = []
    made = type("Made", (), {"node": {"profile": "ac922"}, "groups": ("gpu",)})
    monkeypatch.setattr(plugin.building, "machine", noting(given, made))
    monkeypatch.setattr(plugin.building, "problem", noting(given, ""))
    play = {"hostvars": HOSTS}
    machine = asked(plugin, "machine", variables=play, profile="ac922", nodes=["hal05"])
    assert machine == [{"node": {"profile": "ac922"}, "groups": ["gpu"]}]
    assert asked(plugin, "problem", variables=play, **IMAGE) == [""]
    assert given[0] == ("ac922", {"hal05": {"profile": "ac922"}}, {"hal05": ["gpu"]})
    assert given[2] == ("ac922", "i", made, {"profile": "mgmt"}, Path("k"), {"time": "main"}, PROJECT / "roles")
    monkeypatch.setattr(plugin.building, "machine", raises(ProvisionError("two kinds of node")))
    assert asked(plugin, "problem", variables=play, **IMAGE) == ["two kinds of node"]
    with pytest.raises(AnsibleError, match=r"^lookup hal_image: two kinds of node$"):
        asked(plugin, "machine", variables=play, **IMAGE)


def test_an_image_is_told_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = lookup("hal_image")
    for name in ("owner", "abandoned", "digests"):
        monkeypatch.setattr(plugin.building, name, lambda given, name=name: (name, given))
    monkeypatch.setattr(plugin.building, "made_from", lambda *words: words)
    monkeypatch.setattr(plugin, "commit_of", lambda root: f"commit of {root}")
    assert asked(plugin, "owner", what="i") == [("owner", "i")]
    assert asked(plugin, "abandoned", owner="o") == [("abandoned", "o")]
    assert asked(plugin, "digests", secrets={"s": "1"}) == [("digests", {"s": "1"})]
    commit = f"commit of {PROJECT}"
    assert asked(plugin, "made_from", roles={}, lock_file="l") == [(commit, Path("l"), {}, None)]
    assert asked(plugin, "made_from", roles={}, lock_file="", base="b") == [(commit, None, {}, Path("b"))]
