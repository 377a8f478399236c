"""What a source puts into Ansible's inventory data, what a later one takes away, and what the two plugins refuse."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible import constants, context
from ansible.errors import AnsibleError, AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.module_utils.common.collections import ImmutableDict
from ansible.parsing.dataloader import DataLoader

from hal_inventory.ansible_inventory import fill
from hal_inventory.errors import HalInventoryError
from hal_inventory.packed import Packed
from tests.unit.hal_inventory.conftest import Folder

PLUGINS = {
    "inventory": Path("plugins/inventory/hal.py"),
    "lookup": Path("plugins/lookup/hal.py"),
}
BOTH = Packed(
    site="small",
    common={"p": {"gpus": 4}},
    hosts=[("one", "10.0.0.1", "p", {"name": "one"}), ("two", "10.0.0.2", "p", {"name": "two"})],
    groups={"compute": [(0, 2)], "gpu": [(0, 1)], "login": [(1, 2)]},
)
FIRST = Packed(site="small", common=BOTH["common"], hosts=BOTH["hosts"][:1], groups={"compute": [(0, 1)]})


def with_groups(groups: dict[str, list[tuple[int, int]]]) -> Packed:
    """The same hosts in other groups."""
    return Packed(site="small", common=BOTH["common"], hosts=BOTH["hosts"], groups=groups)


@pytest.fixture
def data() -> Any:
    """Ansible's inventory data without a host."""
    return InventoryData()


def plugin(root: Path, kind: str) -> ModuleType:
    """A plugin, loaded as Ansible does: by its path."""
    spec = importlib.util.spec_from_file_location(f"hal_{kind}_plugin", root / PLUGINS[kind])
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def members(data: Any) -> dict[str, list[str]]:
    return {name: [host.name for host in group.hosts] for name, group in data.groups.items()}


def test_hosts_have_their_variables_and_groups_their_hosts(data: Any) -> None:
    fill(data, BOTH)
    assert members(data) == {
        "all": [], "ungrouped": [], "compute": ["one", "two"], "gpu": ["one"], "login": ["two"]
    }  # fmt: skip
    shown = {name: (host.vars["ansible_host"], host.vars["hal_node"]) for name, host in data.hosts.items()}
    assert shown == {
        "one": ("10.0.0.1", {"name": "one", "gpus": 4}),
        "two": ("10.0.0.2", {"name": "two", "gpus": 4}),
    }


def test_what_ansible_remembers_of_the_groups_is_as_new_as_the_source(data: Any) -> None:
    fill(data, BOTH)
    assert data.get_groups_dict()["compute"] == ["one", "two"]
    fill(data, with_groups({"compute": [(0, 2)], "gpu": [(0, 2)]}))
    assert data.get_groups_dict()["gpu"] == ["one", "two"]


def test_variables_are_replaced_where_ansible_would_merge_them(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "DEFAULT_HASH_BEHAVIOUR", "merge")
    fill(data, BOTH)
    fill(data, Packed(site="small", common={"p": {"cpus": 8}}, hosts=BOTH["hosts"], groups=BOTH["groups"]))
    assert data.hosts["one"].vars["hal_node"] == {"name": "one", "cpus": 8}


def test_a_group_whose_name_comes_first_is_taken_away_like_others(data: Any) -> None:
    fill(data, with_groups({"a100": [(0, 2)], "zen": [(0, 2)]}))
    fill(data, FIRST)
    assert sorted(data.groups) == ["all", "compute", "ungrouped"]


def test_what_only_an_earlier_source_had_is_gone(data: Any) -> None:
    fill(data, BOTH)
    data.reconcile_inventory()  # as Ansible does after each source: puts the groups below all
    fill(data, FIRST)
    assert members(data) == {"all": [], "ungrouped": [], "compute": ["one"]}
    assert list(data.hosts) == ["one"]
    assert [group.name for group in data.groups["all"].child_groups] == ["ungrouped", "compute"]


def test_a_third_source_takes_away_what_the_second_had(data: Any) -> None:
    for packed in (FIRST, BOTH, FIRST):
        fill(data, packed)
    assert (sorted(data.hosts), sorted(members(data))) == (["one"], ["all", "compute", "ungrouped"])


def test_a_host_that_is_kept_leaves_the_groups_that_it_is_not_in_any_more(data: Any) -> None:
    fill(data, BOTH)
    fill(data, with_groups({"compute": [(1, 2)], "gpu": [(0, 1)]}))
    assert members(data) == {"all": [], "ungrouped": [], "compute": ["two"], "gpu": ["one"]}


@pytest.mark.parametrize("why", ["host", "child", "variable"])
def test_a_group_that_others_use_stays(data: Any, why: str) -> None:
    fill(data, BOTH)
    if why == "host":
        data.add_host("other", "gpu")
    elif why == "child":
        data.add_group("below")
        data.add_child("gpu", "below")
    else:
        data.groups["gpu"].set_variable("mine", 1)
    fill(data, with_groups({"compute": [(0, 2)]}))
    assert members(data).get("gpu") == (["other"] if why == "host" else [])
    assert "login" not in data.groups


def test_what_somebody_else_took_away_already_is_passed_over(data: Any) -> None:
    fill(data, BOTH)
    data.remove_host(data.hosts["two"])
    data.remove_group("gpu")
    fill(data, FIRST)
    assert (sorted(data.hosts), sorted(members(data))) == (["one"], ["all", "compute", "ungrouped"])


def test_two_inventories_in_one_process_know_nothing_of_each_other(data: Any) -> None:
    fill(data, BOTH)
    other = InventoryData()
    fill(other, FIRST)
    assert (sorted(data.hosts), sorted(other.hosts)) == (["one", "two"], ["one"])


@pytest.mark.parametrize(
    ("name", "claimed"), [("hal.yml", True), ("hal.yaml", True), ("hal.ini", False), ("none.yml", False)]
)
def test_every_yaml_file_that_is_there_is_claimed(folder: Folder, root: Path, name: str, claimed: bool) -> None:
    for there in ("hal.yml", "hal.yaml", "hal.ini"):
        folder.write(there, "")
    assert plugin(root, "inventory").InventoryModule().verify_file(str(folder.path / name)) is claimed


@pytest.mark.parametrize(
    ("source", "message", "lines"),
    [
        ("plugin: hal\ncluster: cluster.yml\nonly: nobody\n", "1 finding, said above", ["hal.yml:3: only: "]),
        (
            "plugin: hal\ncluster: 1\nvirtual: 2\n",
            "2 findings, said above",
            ["hal.yml:2: cluster: ", "hal.yml:3: virt"],
        ),
    ],
)
def test_a_source_with_faults_is_refused_and_each_is_a_red_line(
    folder: Folder, root: Path, data: Any, monkeypatch: pytest.MonkeyPatch, source: str, message: str, lines: list[str]
) -> None:
    said = list[tuple[str, object, bool]]()
    module = plugin(root, "inventory").InventoryModule()
    show = lambda text, color, stderr: said.append((text, color, stderr))  # noqa: E731
    monkeypatch.setattr(module, "display", type("Display", (), {"display": staticmethod(show)}))
    with pytest.raises(AnsibleParserError) as caught:
        module.parse(data, DataLoader(), str(folder.site(source=source)))
    assert caught.value.message == message
    assert [text.rpartition("/")[2][: len(line)] for (text, _, _), line in zip(said, lines, strict=True)] == lines
    assert {(color, stderr) for _, color, stderr in said} == {(constants.COLOR_ERROR, True)}
    assert data.hosts == {}


def test_a_sound_source_fills_the_inventory(folder: Folder, root: Path, data: Any) -> None:
    plugin(root, "inventory").InventoryModule().parse(data, DataLoader(), str(folder.site()))
    assert sorted(data.hosts) == ["front", "worker1", "worker2", "worker3", "worker4"]


def test_what_is_no_finding_is_said_as_it_is(
    folder: Folder, root: Path, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = plugin(root, "inventory")

    def refuse(_path: str) -> Packed:
        raise HalInventoryError("the disk is full")

    monkeypatch.setattr(module, "Compiled", refuse)
    source = str(folder.site())
    with pytest.raises(AnsibleParserError) as caught:
        module.InventoryModule().parse(data, DataLoader(), source)
    assert caught.value.message == "the disk is full"


class TestLookup:
    """plugins/lookup/hal.py."""

    def test_each_term_is_a_slice(self, folder: Folder, root: Path) -> None:
        sources = {"ansible_inventory_sources": [str(folder.site())]}
        said = plugin(root, "lookup").LookupModule().run(["nodeset", "services"], sources)
        assert said[0] == "front,worker[1-4]"
        assert said[1]["time_server"] == ["front"]

    def test_the_play_s_sources_come_before_those_of_the_command(
        self, folder: Folder, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = folder.site()
        part = folder.write("part.yml", "plugin: hal\ncluster: cluster.yml\nonly: front\n")
        monkeypatch.setattr(context, "CLIARGS", ImmutableDict(inventory=[str(part)]))
        lookup = plugin(root, "lookup").LookupModule()
        assert lookup.run(["nodeset"], {"ansible_inventory_sources": [str(whole)]}) == ["front,worker[1-4]"]
        assert lookup.run(["nodeset"], {}) == ["front"]
        assert lookup.run(["nodeset"], where="front") == ["front"]

    def test_without_a_source_it_says_which_were_looked_at(
        self, folder: Folder, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(context, "CLIARGS", ImmutableDict({}))
        monkeypatch.setattr(constants, "DEFAULT_HOST_LIST", ["a.ini", "b.ini"])
        with pytest.raises(AnsibleError) as caught:
            plugin(root, "lookup").LookupModule().run(["site"])
        assert caught.value.message == "no source of plugin hal among the inventory sources: a.ini, b.ini"

    def test_what_is_wrong_is_an_error_of_the_lookup(self, folder: Folder, root: Path) -> None:
        sources = {"ansible_inventory_sources": [str(folder.site())]}
        with pytest.raises(AnsibleError) as caught:
            plugin(root, "lookup").LookupModule().run(["slurm.node"], sources)
        assert caught.value.message == 'lookup hal: unknown slice "slurm.node"; did you mean "slurm.nodes"?'
