"""The small files that say which model, and which view of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hal_inventory.compiled import Compiled, inventory_of, slice_of
from hal_inventory.errors import ClusterFileError, HalInventoryError, SourceFileError
from hal_inventory.packed import host_vars
from hal_inventory.script import source_of
from hal_inventory.settings import configured_sources
from hal_inventory.sources import last_source, read_source
from tests.unit.hal_inventory.conftest import Folder

START = "plugin: hal\ncluster: cluster.yml\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cluster: cluster.yml\n", "hal.yml:1: plugin: must be hal (plugin: hal, cluster: cluster.yml)"),
        ("plugin: ini\n", "hal.yml:1: plugin: must be hal (plugin: hal, cluster: cluster.yml)"),
        (
            "format: 1\n",
            "hal.yml:1: plugin: this is a site model; name a source for it, a hal.yml"
            " (plugin: hal, cluster: cluster.yml)",
        ),
        ("plugin: hal\n", "hal.yml:1: cluster: is missing; name the cluster.yml, relative to this file"),
        ("plugin: hal\ncluster: 5\n", "hal.yml:2: cluster: must be the path of a cluster.yml"),
        ("plugin: hal\nbase: ''\n", "hal.yml:2: base: must be the path of another source, such as ../hal/hal.yml"),
        ("plugin: hal\nbase: other.yml\n", "other.yml: no such file"),
        ("plugin: hal\nbase: cluster.yml\n", "cluster.yml:1: plugin: this is a site model; name a source for it"),
        ("plugin: hal\nbase: hal.yml\n", "hal.yml:2: base: hal.yml begins with this one: that is a circle"),
        (START + "onyl: front\n", 'hal.yml:3: onyl: unknown field; did you mean "only"?'),
        (START + "virtual: yes\n", "hal.yml:3: virtual: must be true or false"),
        (START + "only: ''\n", "hal.yml:3: only: must be an expression such as login or hal[01-02]"),
        (START + "only: frontt\n", 'hal.yml:3: only: unknown name "frontt"; did you mean "front"?'),
        (START + "only: data\n", 'hal.yml:3: only: "data" selects no node of small'),
        (START + "networks: [a]\n", "hal.yml:3: networks: must be a mapping of network names to networks"),
        (
            START + "networks:\n  manage: 10.9.0.0/24\n",
            'hal.yml:4: networks.manage: unknown network "manage"; did you mean "management"?',
        ),
        (
            START + "networks:\n  bmc: 10.9.0.0\n",
            "hal.yml:4: networks.bmc: 10.9.0.0/32 cannot take the addresses of 10.1.1.0/24; write a network with /24",
        ),
        (
            START + "networks:\n  bmc: 10.9.0.9/24\n",
            'hal.yml:4: networks.bmc: "10.9.0.9/24" is not a network; write one such as 10.1.1.0/24',
        ),
        (
            START + "networks:\n  bmc: 10.1.0.0/24\n",
            "hal.yml:4: networks.bmc: 10.1.0.0/24 overlaps network management (10.1.0.0/24)",
        ),
        (START + "networks:\n  bmc: 5\n", "hal.yml:4: networks.bmc: must be a network such as 10.65.3.0/24"),
        (
            START + "only: '{{ x }}'\n",
            "hal.yml:3: only: a template is not evaluated here and not allowed: '{{ x }}'; write the value itself",
        ),
        ("", "hal.yml: is empty; a mapping of fields is expected"),
        ("plugin: [\n", "hal.yml:2: is not YAML: while parsing a flow node did not find expected node content"),
    ],
)
def test_a_fault_of_a_source_is_a_finding(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    folder.site(source=text)
    monkeypatch.chdir(folder.path)
    with pytest.raises(SourceFileError) as caught:
        Compiled("hal.yml").site()
    assert str(caught.value).startswith(expected)


def test_a_source_says_what_its_base_does_not(folder: Folder, small: str) -> None:
    folder.site(small, source=START + "only: compute\nnetworks: {bmc: 10.9.0.0/24}\n")
    folder.write("virtual/all.yml", "plugin: hal\nbase: ../hal.yml\nvirtual: true\n")
    part = folder.write("virtual/parts/one.yml", "plugin: hal\nbase: ../all.yml\nonly: worker1\n")
    hosts = host_vars(inventory_of(part))
    assert list(hosts) == ["worker1"]
    assert hosts["worker1"]["hal_node"]["virtual"] is True
    assert hosts["worker1"]["hal_node"]["bmc"]["address"] == "10.9.0.101"
    assert list(host_vars(inventory_of(folder.path / "virtual/all.yml"))) == [f"worker{at}" for at in range(1, 5)]


def test_what_is_wrong_with_a_base_is_said_where_it_is(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.site(source=START + "only: data\n")
    part = folder.write("part.yml", "plugin: hal\nbase: hal.yml\nvirtual: true\n")
    monkeypatch.chdir(folder.path)
    with pytest.raises(SourceFileError) as caught:
        Compiled(part.name).site()
    assert str(caught.value) == 'hal.yml:3: only: "data" selects no node of small'


def test_sources_that_begin_with_each_other_are_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("a.yml", "plugin: hal\nbase: b.yml\n")
    folder.write("b.yml", "plugin: hal\nbase: ./a.yml\n")
    monkeypatch.chdir(folder.path)
    with pytest.raises(SourceFileError) as caught:
        Compiled("a.yml")
    assert str(caught.value) == "b.yml:2: base: a.yml begins with this one: that is a circle"


def test_a_source_whose_model_is_missing(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("hal.yml", "plugin: hal\ncluster: ../elsewhere/cluster.yml\n")
    monkeypatch.chdir(folder.path)
    with pytest.raises(ClusterFileError, match=r"^\./\.\./elsewhere|elsewhere/cluster.yml: no such file$"):
        inventory_of("hal.yml")


def test_the_model_is_found_from_the_source_not_from_the_working_directory(folder: Folder, small: str) -> None:
    folder.write("model/cluster.yml", small)
    source = folder.write("sites/one/hal.yml", "plugin: hal\ncluster: ../../model/cluster.yml\n")
    assert slice_of(source, "site", {})["name"] == "small"


def test_a_virtual_site_is_contacted_at_its_placeholder_addresses(folder: Folder, small: str) -> None:
    text = small.replace("management: 10.1.0.10\n", "management: !placeholder 10.1.0.10\n", 1)
    real = folder.site(text)
    virtual = folder.write("virtual.yml", START + "virtual: true\n")
    contacts = {source: host_vars(inventory_of(source)) for source in (real, virtual)}
    assert contacts[real]["front"]["ansible_host"] == "front.address-is-a-placeholder.invalid"
    assert contacts[real]["worker1"]["ansible_host"] == "10.1.0.101"
    assert contacts[virtual]["front"]["ansible_host"] == "10.1.0.10"
    assert contacts[virtual]["front"]["hal_node"]["virtual"] is True


def test_a_bmc_of_a_real_site_is_not_contacted_at_a_placeholder_address(folder: Folder, small: str) -> None:
    real = folder.site(small.replace("bmc: 10.1.1.[101-104]", "bmc: !placeholder 10.1.1.[101-104]", 1))
    virtual = folder.write("virtual.yml", START + "virtual: true\n")
    of = {source: host_vars(inventory_of(source))["worker1"]["hal_node"]["bmc"] for source in (real, virtual)}
    assert of[real] == {"kind": "openbmc", "address": "worker1.address-is-a-placeholder.invalid"}
    assert of[virtual] == {"kind": "openbmc", "address": "10.1.1.101"}
    declared = host_vars(inventory_of(folder.site(small)))["worker1"]["hal_node"]["bmc"]
    assert declared["address"] == "10.1.1.101"


def test_serial_numbers_tell_whose_machine_it_is(folder: Folder, small: str) -> None:
    found = slice_of(folder.site(small), "serials", {})
    assert len(found) == len(host_vars(inventory_of(folder.site(small))))
    for name, values in host_vars(inventory_of(folder.site(small))).items():
        assert found[values["hal_node"]["serial"]] == name


def test_networks_move_with_the_host_parts_kept(folder: Folder) -> None:
    source = folder.site(source=START + "networks: {management: 10.65.3.0/24, bmc: 10.1.0.0/24}\n")
    hosts = {host["name"]: host["addresses"] for host in slice_of(source, "hosts", {})}
    assert hosts["worker2"] == {"management": "10.65.3.102", "bmc": "10.1.0.102"}
    networks = slice_of(source, "networks", {})
    assert (networks["management"]["cidr"], networks["management"]["gateway"]) == ("10.65.3.0/24", "10.65.3.254")
    assert slice_of(source, "slurm.nodes", {})[0]["address_pattern"] == "10.65.3.[101-104]"


def test_two_networks_may_change_places(folder: Folder) -> None:
    source = folder.site(source=START + "networks: {management: 10.1.1.0/24, bmc: 10.1.0.0/24}\n")
    assert slice_of(source, "networks", {})["bmc"]["cidr"] == "10.1.0.0/24"


def test_the_last_source_decides(folder: Folder) -> None:
    first = folder.site()
    last = folder.write("part.yml", START + "only: worker[1-2]\n")
    other = folder.write("other.ini", "[x]\n")
    assert last_source([str(first), str(last)]) == last
    assert last_source([str(last), str(first), str(other), "localhost,"]) == first
    assert last_source([str(other)]) is None
    assert last_source([str(folder.path)]) == first


def test_sources_of_two_sites_are_refused_in_one_call(folder: Folder) -> None:
    first, part = folder.site(), folder.write("part.yml", "plugin: hal\nbase: hal.yml\nonly: worker1\n")
    other = folder.write("other.yml", "plugin: hal\nbase: part.yml\ncluster: other/cluster.yml\n")
    same = folder.write("same.yml", "plugin: hal\ncluster: ./other/../cluster.yml\n")
    link = folder.path / "link.yml"
    link.symlink_to("other.yml")
    alone = folder.write("other/hal.yml", START)
    folder.write("other/cluster.yml", "name: other\n")
    for good in ([first, first], [first, part, same], [first, other], [other, part], [link, other], [other, alone]):
        assert source_of([str(path) for path in good]) == good[-1]
    for bad in ([first, alone], [alone, part], [first, part, alone, part]):
        with pytest.raises(SourceFileError) as caught:
            source_of([str(path) for path in bad])
        assert str(caught.value).endswith("in the same call; name one, or give it a base")
    with pytest.raises(SourceFileError) as caught:
        source_of([str(first), str(alone.parent)])
    assert str(caught.value) == (
        f"{alone}: is of another site than {first} in the same call; name one, or give it a base"
    )


def test_strictly_a_file_that_is_missing_or_broken_is_not_passed_over(folder: Folder) -> None:
    first = folder.site()
    broken = folder.write("broken.yml", "nothing: here\n")
    assert last_source([str(first), str(broken)], strict=True) == broken
    assert last_source([str(first), "missing.yml"], strict=True) == Path("missing.yml")


@pytest.mark.parametrize(
    "text", ["{plugin: hal, cluster: cluster.yml}", "---\n# a\n'plugin' : \"hal\" # b\ncluster: cluster.yml"]
)
def test_a_source_may_be_written_as_yaml_allows(folder: Folder, text: str) -> None:
    source = folder.site(source=text + "\n")
    assert last_source([str(source)]) == source
    assert read_source(source).cluster == folder.path / "cluster.yml"


def test_sources_come_from_the_environment_or_from_ansible(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.chdir(folder.path)
    assert configured_sources() == [str(root / "inventory" / "hal" / "hal.yml")]
    inventory = "[defaults]\ninventory = a/hal.yml, b/hal.yml\n"
    folder.write("ansible.cfg", inventory)
    assert configured_sources() == [str(root / "inventory" / "hal" / "hal.yml")], "it is for something else"
    folder.write("ansible.cfg", f"{inventory}[inventory]\nenable_plugins = hal\n")
    assert configured_sources() == [str(folder.path / "a/hal.yml"), str(folder.path / "b/hal.yml")]
    folder.write("other.cfg", "[defaults]\ninventory = c.yml\n")
    monkeypatch.setenv("ANSIBLE_CONFIG", "other.cfg")
    assert configured_sources() == [str(folder.path / "c.yml")]
    monkeypatch.setenv("ANSIBLE_INVENTORY", "d.yml,e.yml")
    assert configured_sources() == ["d.yml", "e.yml"]
    monkeypatch.setenv("HAL_INVENTORY_SOURCES", "f.yml:g.yml")
    assert configured_sources() == ["f.yml", "g.yml"]


def test_the_shipped_sources_can_be_used(root: Path) -> None:
    counts = {}
    for path in sorted((root / "inventory").glob("*/*.yml")):
        if last_source([str(path)]) == path:
            counts[f"{path.parent.name}/{path.name}"] = len(host_vars(inventory_of(path)))
    assert counts == {"hal/hal.yml": 22, "virtual/hal.yml": 22, "virtual/mini.yml": 6}


def test_an_error_is_one_of_ours(folder: Folder) -> None:
    assert issubclass(SourceFileError, HalInventoryError)
    assert issubclass(ClusterFileError, HalInventoryError)
    with pytest.raises(HalInventoryError):
        read_source(folder.path / "missing.yml")
