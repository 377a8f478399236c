"""What holds for every site, range, expression and file: hypothesis looks for one for which it does not."""

from __future__ import annotations

import ipaddress
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hal_inventory.connection import Connection
from hal_inventory.derive.inventory import pack
from hal_inventory.derive.slices import derive
from hal_inventory.errors import ClusterFileError, ExpressionError, RangeError
from hal_inventory.expressions import Names, evaluate
from hal_inventory.load import load_bytes
from hal_inventory.model import Site
from hal_inventory.packed import as_list, group_members, host_vars
from hal_inventory.paths import plain
from hal_inventory.ranges import MAX_NAMES, expand, expand_list, fold, fold_in_order
from hal_inventory.restrict import only, renumber, select

ROOT = Path(__file__).resolve().parents[2]
SMALL = (ROOT / "tests/unit/hal_inventory/data/small.yml").read_text()
HAL_FILE = (ROOT / "inventory" / "hal" / "cluster.yml").read_text()
HAL = load_bytes(HAL_FILE.encode(), "cluster.yml")
RELAXED = settings(max_examples=60)
REACHED = Connection(Path("/s"), "root", Path("/k"))

prefixes = st.sampled_from(["hal", "hal-", "n", "r1n", "gpu-a", "10.64.0.", "x9y"])
numbers = st.integers(0, 1200)
names = st.builds(lambda prefix, number, width: f"{prefix}{number:0{width}d}", prefixes, numbers, st.integers(1, 4))


def loaded(text: str) -> Any:
    """Return YAML as data."""
    return yaml.load(text, Loader=yaml.CSafeLoader)


def dumped(data: Any) -> bytes:
    """Return data as YAML, in its order."""
    return yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False).encode()


# ---- ranges


@given(st.lists(names, unique=True, max_size=60))
def test_folding_in_order_loses_nothing(some: list[str]) -> None:
    folded = fold_in_order(some)
    assert (expand_list(folded) if folded else []) == some


@given(st.lists(names.filter(lambda name: "." not in name), unique=True, min_size=1, max_size=40))
def test_folding_as_clustershell_does_loses_nothing(some: list[str]) -> None:
    assert set(expand_list(fold(some))) == set(some)


@given(st.text(alphabet="hal019-/,[] .", max_size=30))
@example("h[0-999999999]")
@example("[1-256][1-256][1-256]")
@example("h[09-10][9-010]")
@example("h[00-1]")
def test_any_text_is_a_small_range_or_refused(text: str) -> None:
    try:
        size = len(expand(text))
    except RangeError:
        return
    assert size in range(1, MAX_NAMES + 1)


# ---- expressions

NODES = [f"n{at}" for at in range(8)]
GROUPS = {"even": NODES[0::2], "low": NODES[:4], "none": []}
leaves = st.sampled_from([*NODES, *GROUPS, "all", "n[2-5]", "n1,low"])
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
    ),
    max_leaves=12,
)


def written(tree: Any) -> str:
    if isinstance(tree, str):
        return tree
    if tree[0] == "not":
        return f"not ({written(tree[1])})"
    return f"({written(tree[1])}) {tree[0]} ({written(tree[2])})"


def meant(tree: Any) -> set[str]:
    if isinstance(tree, str):
        known = {**{name: {name} for name in NODES}, **{name: set(of) for name, of in GROUPS.items()}}
        known |= {"all": set(NODES), "n[2-5]": set(NODES[2:6]), "n1,low": {"n1", *NODES[:4]}}
        return known[tree]
    if tree[0] == "not":
        return set(NODES) - meant(tree[1])
    left, right = meant(tree[1]), meant(tree[2])
    return left & right if tree[0] == "and" else left | right


@given(trees)
def test_an_expression_means_what_sets_mean(tree: Any) -> None:
    assert evaluate(written(tree), Names(NODES, GROUPS)) == meant(tree)


@given(st.sampled_from(NODES), st.sampled_from(NODES), st.sampled_from(NODES))
def test_and_binds_closer_than_or_and_not_closest(a: str, b: str, c: str) -> None:
    among = Names(NODES, GROUPS)
    assert evaluate(f"{a} or {b} and {c}", among) == {a} | ({b} & {c})
    assert evaluate(f"not {a} and {b}", among) == (set(NODES) - {a}) & {b}


@given(st.text(alphabet="n12()[]-, andort", max_size=40))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        found = evaluate(text, Names(NODES, GROUPS))
    except ExpressionError:
        return
    assert found <= set(NODES)


# ---- paths


@given(st.lists(st.sampled_from(["..", ".", "", "a", "b", ".c"]), max_size=8))
def test_the_plain_form_of_a_path_is_the_folder_that_it_leads_to(steps: list[str]) -> None:
    path = "/" + "/".join(steps)
    assert plain(path) == os.path.normpath("/" + path.lstrip("/"))
    assert plain(plain(path)) == plain(path)


# ---- files


def refused_or_read(content: bytes) -> Site | None:
    """Read a model; whatever is wrong with it has to be findings that say a place in it."""
    try:
        return load_bytes(content, "cluster.yml")
    except ClusterFileError as error:
        findings = error.findings
    assert findings
    assert list(findings) == sorted(set(findings))
    for finding in findings:
        assert 0 <= finding.line <= content.count(b"\n") + content.count(b"\r") + 2
        assert str(finding).isprintable()
    return None


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_random_bytes_are_refused_in_words(content: bytes) -> None:
    assert refused_or_read(content) is None


@given(st.text(alphabet="abc: -[]{}&*!|>'\"#\n%@`,?~0", max_size=120))
@settings(max_examples=300)
def test_random_yaml_is_refused_in_words(text: str) -> None:
    assert refused_or_read(text.encode()) is None


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """The small model with some pieces cut out, doubled, moved or replaced."""
    text = SMALL
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        piece = draw(st.one_of(st.just(""), st.sampled_from(["{", "[1-4]", ": ", "- ", "\n", "!placeholder ", "~"]),
                               st.just(text[start:end] * 2), st.text(max_size=6)))  # fmt: skip
        text = text[:start] + piece + text[end:]
    return text


@given(damaged())
@settings(max_examples=300)
def test_a_damaged_model_is_read_or_refused_in_words(text: str) -> None:
    site = refused_or_read(text.encode("utf-8", "surrogatepass"))
    if site is not None:
        assert json.loads(json.dumps(as_list(pack(site), REACHED)))


def values(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values."""
    found = [path] if path else []
    for key, inner in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        found += values(inner, (*path, key))
    return found


PLACES = values(loaded(SMALL))
junk = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**12), st.floats(allow_nan=False), st.text(max_size=8),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip


@given(st.sampled_from(PLACES), junk)
@settings(max_examples=150)
def test_any_value_anywhere_is_read_or_refused_in_words(place: tuple[Any, ...], value: Any) -> None:
    data = loaded(SMALL)
    here = data
    for step in place[:-1]:
        here = here[step]
    here[place[-1]] = value
    refused_or_read(dumped(data))


# ---- sites


def numbered(sockets: int, each: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the ways in which kernels number the CPUs of sockets: nobody said, one socket after the other, in turns."""
    yield []
    yield [{"id": at, "socket": at, "cpus": f"{at * each}-{(at + 1) * each - 1}"} for at in range(sockets)]
    last = sockets * each - 1
    yield [{"id": at, "socket": at, "cpus": f"{at}-{last}/{sockets}"} for at in range(sockets)]


@st.composite
def sites(draw: st.DrawFn) -> dict[str, Any]:
    """A sound site of some profiles, each with some nodes."""
    profiles: dict[str, Any] = {}
    nodes: dict[str, Any] = {}
    host = 1
    for at in range(draw(st.integers(1, 4))):
        sockets = draw(st.integers(1, 4))
        count = draw(st.integers(1, 20))
        cores, threads = draw(st.integers(1, 32)), draw(st.integers(1, 8))
        gpu_sockets = draw(st.lists(st.integers(0, sockets - 1), max_size=6))
        profiles[f"kind{at}"] = {
            "model": "machine",
            "arch": draw(st.sampled_from(["x86_64", "ppc64le"])),
            "cpus": {
                "model": "cpu",
                "sockets": sockets,
                "cores_per_socket": cores,
                "threads_per_core": threads,
            },
            "memory_mb": draw(st.integers(256, 10**6)) * sockets * cores,
            "numa": draw(st.sampled_from(list(numbered(sockets, cores * threads)))),
            "gpus": [
                {
                    "index": index,
                    "type": draw(st.sampled_from(["v100", "gtx970"])),
                    "model": "gpu",
                    "memory_mb": 4096,
                    "socket": socket,
                }
                for index, socket in enumerate(gpu_sockets)
            ],
            "kernel": "1.0",
        }
        nodes[f"k{at}n[1-{count}]"] = {
            "role": draw(st.sampled_from(["login", "compute"])),
            "profile": f"kind{at}",
            "addresses": {"management": f"10.0.0.[{host}-{host + count - 1}]"},
        }
        host += count
    return {
        "format": 1,
        "name": "any",
        "domain": "any.example",
        "networks": {"management": {"kind": "ethernet", "cidr": "10.0.0.0/24"}},
        "profiles": profiles,
        "nodes": nodes,
        "partitions": {"all_of_it": {"nodes": "all", "max_time": "1:00:00", "default_time": "1:00:00"}},
    }


def read(data: dict[str, Any]) -> Site:
    return load_bytes(dumped(data), "cluster.yml")


@given(sites())
@RELAXED
def test_totals_are_those_declared(data: dict[str, Any]) -> None:
    site = read(data)
    counts = {key: int(key.split("-")[1].rstrip("]")) for key in data["nodes"]}
    profiles = {key: data["profiles"][node["profile"]] for key, node in data["nodes"].items()}
    gpus = sum(len(profiles[key]["gpus"]) * count for key, count in counts.items())
    cpus = sum(
        profiles[key]["cpus"]["sockets"]
        * profiles[key]["cpus"]["cores_per_socket"]
        * profiles[key]["cpus"]["threads_per_core"]
        * count
        for key, count in counts.items()
    )

    variables = host_vars(pack(site))
    assert len(variables) == sum(counts.values())
    assert sum(len(values["hal_node"]["gpus"]) for values in variables.values()) == gpus
    assert sum(values["hal_node"]["cpus"]["total"] for values in variables.values()) == cpus

    nodes = derive(site, "slurm.nodes", {})
    expanded = {name: entry for entry in nodes for name in expand_list(entry["names"])}
    assert set(expanded) == set(site.nodes)
    assert sum(entry["cpus"] for entry in expanded.values()) == cpus
    for entry in nodes:
        addresses = dict(zip(expand_list(entry["names"]), expand_list(entry["address_pattern"]), strict=True))
        assert all(str(site.nodes[name].addresses["management"]) == address for name, address in addresses.items())

    files = sum(
        len(expand_list(entry["nodes"])) * len(expand_list(entry["file"])) for entry in derive(site, "slurm.gres", {})
    )
    in_gres = sum(int(part.split(":")[2]) for entry in expanded.values() for part in entry["gres"].split(",") if part)
    assert files == in_gres == gpus


@given(sites())
@RELAXED
def test_every_core_index_exists(data: dict[str, Any]) -> None:
    site = read(data)
    for version, unit in (("20.02.1", "cpus"), ("23.11.1", "cores")):
        for entry in derive(site, "slurm.gres", {"slurm_version": version}):
            profile = site.profile_of(expand_list(entry["nodes"])[0])
            cpus = profile.cpus
            if unit == "cpus" and not profile.numa and cpus.sockets > 1:
                assert entry["cores"] == ""  # nobody said which they are
                continue
            last = cpus.total if unit == "cpus" else cpus.sockets * cpus.cores_per_socket
            numbers = [int(number) for number in expand(f"[{entry['cores']}]")]
            assert numbers == sorted(set(numbers))
            assert numbers[-1] < last
            assert len(numbers) == last // cpus.sockets


def shuffled(data: Any, chance: random.Random, *, keep: bool = False) -> Any:
    """Return data with the keys of every mapping in another order, but not those of ``nodes``."""
    if isinstance(data, dict):
        keys = list(data)
        if not keep:
            chance.shuffle(keys)
        return {key: shuffled(data[key], chance, keep=key == "nodes") for key in keys}
    return [shuffled(one, chance) for one in data] if isinstance(data, list) else data


@given(st.randoms(use_true_random=False))
@settings(RELAXED, max_examples=20)
def test_the_order_of_fields_does_not_matter(chance: random.Random) -> None:
    data = loaded(HAL_FILE.replace("!placeholder ", ""))
    before, after = read(data), read(shuffled(data, chance))
    for site in (before, after):
        assert len(site.nodes) == 22
    texts = {json.dumps(as_list(pack(site), REACHED), sort_keys=True) for site in (before, after)}
    assert len(texts) == 1
    for name in ("hosts", "nodes", "slurm.nodes", "slurm.gres", "networks", "services"):
        assert derive(before, name, {}) == derive(after, name, {}), name


@given(st.integers(0, 255), st.integers(0, 255))
@RELAXED
def test_moving_networks_keeps_the_host_parts(second: int, third: int) -> None:
    moved = renumber(HAL, {"management": f"172.{second}.{third}.0/24"})
    for name, node in HAL.nodes.items():
        for network, address in node.addresses.items():
            new = moved.nodes[name].addresses[network]
            if network == "management":
                assert new in ipaddress.ip_network(f"172.{second}.{third}.0/24")
                assert int(new) & 0xFF == int(address) & 0xFF
            else:
                assert new == address
    assert renumber(moved, {"management": "10.64.0.0/24"}) == HAL


@given(st.lists(st.sampled_from(sorted(HAL.nodes)), min_size=1, unique=True))
@RELAXED
def test_a_part_of_a_site_names_only_its_own_nodes(chosen: list[str]) -> None:
    part = only(HAL, " or ".join(chosen))
    assert set(part.nodes) == set(chosen)
    assert list(part.nodes) == [name for name in HAL.nodes if name in chosen]
    text = json.dumps(
        [
            as_list(pack(part), REACHED),
            *(derive(part, name, {}) for name in ("hosts", "nodes", "services", "slurm.nodes", "slurm.gres")),
            *(derive(part, name, {}) for name in ("slurm.partitions", "slurm.topology", "raid_sets")),
            {name: use["clients"] for name, use in derive(part, "file_systems", {}).items()},
        ]
    )
    folded = derive(part, "slurm.partitions", {})
    assert {name for one in folded for name in expand_list(one["nodes"])} <= set(chosen)
    for name in set(HAL.nodes) - set(chosen):
        if not name[3:].isdigit():  # a range such as hal[01-03] may hold digits of another name
            assert f'"{name}"' not in text
    members = group_members(pack(part))
    assert all(set(of) <= set(chosen) for of in members.values())
    assert only(part, "all") == part
    assert select(part, "all") == list(part.nodes)


READ = """
import hashlib, json, pathlib, sys
from hal_inventory.derive.inventory import pack
from hal_inventory.load import load
from hal_inventory.connection import Connection
from hal_inventory.packed import as_list
reached = Connection(pathlib.Path("/s"), "root", pathlib.Path("/k"))
for path in sorted(pathlib.Path("tests/sites").glob("*/cluster.yml")):
    print(path.parent.name, hashlib.sha256(json.dumps(as_list(pack(load(path)), reached)).encode()).hexdigest())
"""


LEVELS = ("leaf", "spine", "core")


@given(st.data())
@RELAXED
def test_slurm_gets_a_tree_of_any_fabric_with_every_node_in_it(chosen: st.DataObject) -> None:
    switches: dict[str, dict[str, str]] = {}
    lower: list[str] = []
    for level in LEVELS:
        listed = [f"{level}{at}" for at in range(chosen.draw(st.integers(1, 4)))]
        for at, name in enumerate(listed):
            below = chosen.draw(st.lists(st.sampled_from(lower), min_size=1, unique=True)) if lower else []
            nodes = f"hal{at + 1:02d}" if chosen.draw(st.booleans()) else "hal-data"  # the latter runs no slurmd
            switches[name] = {"switches": ",".join(below)} if below else {"nodes": nodes}
        lower = [*lower, *listed]
    data = {**loaded(HAL_FILE.replace("!placeholder ", "")), "fabric": {"switches": switches}}
    for node in data["nodes"].values():
        node.pop("cables", None)
    for array in data["arrays"].values():
        array.pop("cables", None)
    entries = derive(load_bytes(dumped(data), "x"), "slurm.topology", {})
    names = [entry["switch"] for entry in entries]
    inner = [name for entry in entries for name in expand_list(entry.get("switches", "")) if name]
    assert len(set(names)) == len(names)
    assert len(set(inner)) == len(inner), "a switch is below two"
    assert set(inner) <= set(names)
    wanted = {one["nodes"] for one in switches.values() if "nodes" in one} - {"hal-data"}
    assert {name for entry in entries for name in expand_list(entry.get("nodes", "")) if name} == wanted


def test_a_site_is_read_the_same_by_every_process() -> None:
    """The order of a set is a process's own: it is given by the seed of its hashes."""
    said = [
        subprocess.run(
            [sys.executable, "-c", READ], cwd=ROOT, capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    names = sorted(path.parent.name for path in (ROOT / "tests/sites").glob("*/cluster.yml"))
    assert [line.split()[0] for line in said[0].splitlines()] == names
    assert said[0] == said[1]
