"""What is shown of a site, to the letter: every table and every list of facts, in a pipe and on a terminal."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from hal_cluster.inventory import cli
from hal_cluster.inventory.show import KINDS, totals
from hal_cluster.inventory.show import show as shown
from hal_inventory.load import load_bytes
from hal_inventory.model import Site
from hal_inventory.output import Answer, Facts, Table, Tree, show
from hal_inventory.validate import whole_nodes
from tests.unit.hal_inventory.conftest import Folder

SHOWN = (Path(__file__).parent / "data" / "shown.txt").read_text()
PARTS = dict(re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", SHOWN, re.MULTILINE))
GPUS = "".join(
    f"      - {{index: {at}, type: {kind}, model: {kind.upper()}, memory_mb: 15000, socket: 0}}\n"
    for at, kind in enumerate(("t4", "a2", "t4"))
)
EDITS = {
    "raid_sets:": "external:\n  grafana: {address: 192.0.2.7, why: shows what is measured}\nraid_sets:",
    "    memory_mb: 65536\n": (
        f"    memory_mb: 65536\n    gpus:\n{GPUS}    interfaces: {{management: {{name: eno1}}}}\n"
    ),
    "S-FRONT": "!placeholder S-FRONT",
    "  slurm: slurm_node or login": "  slurm: slurm_node or login\n  nobody: data",
}


@pytest.fixture(scope="module")
def text(small: str) -> str:
    """The small model with something of every kind."""
    for old, new in EDITS.items():
        assert old in small
        small = small.replace(old, new, 1)
    return small


@pytest.fixture(scope="module")
def site(text: str) -> Site:
    return load_bytes(text.encode(), "cluster.yml")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(answer: Answer, *, as_json: bool = False, stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    show(answer, as_json=as_json, stream=stream)
    return stream.getvalue()


@pytest.mark.parametrize("words", PARTS)
def test_what_is_shown_is_this(site: Site, words: str) -> None:
    assert written(shown(site, words.split()[1:])) == PARTS[words]


def test_every_kind_is_shown_as_a_table() -> None:
    assert {f"show {kind}" for kind in KINDS} <= PARTS.keys()


def test_a_site_with_nothing_more_than_nodes_shows_no_more(text: str) -> None:
    bare = text[: text.index("arrays:")].replace("!placeholder ", "")
    bare = re.sub(r"    gpus:\n(      - .*\n)+", "", bare)
    site = load_bytes(bare.encode(), "cluster.yml")
    assert totals(site) == {
        "nodes": 5, "gpus": 0, "arrays": 0, "services": 0, "partitions": 0, "file_systems": 0,
    }  # fmt: skip
    assert written(shown(site, [])) == (
        "site          small (small.example)\n"
        "nodes         5: front,worker[1-4]\n"
        "GPUs          0\n"
        "arrays        0\n"
        "networks      management 10.1.0.0/24, bmc 10.1.1.0/24, ipoib 10.1.2.0/24\n"
        "placeholders  0\n"
    )


def test_data_of_the_summary_and_of_one_thing_has_what_is_shown(site: Site) -> None:
    assert json.loads(written(shown(site, []), as_json=True)) == {
        "name": "small", "domain": "small.example", "virtual": False, "nodes": 5, "gpus": 11, "arrays": 2,
        "services": 2, "partitions": 1, "file_systems": 1, "placeholders": 1,
    }  # fmt: skip
    grafana = {"address": "192.0.2.7", "why": "shows what is measured"}
    assert shown(site, ["grafana"]).data == {"kind": "external", "name": "grafana", **grafana}
    assert shown(site, ["external"]).data == {"grafana": grafana}
    assert shown(site, ["compute"]).data == {
        "kind": "group", "name": "compute", "nodes": ["worker1", "worker2", "worker3", "worker4"],
    }  # fmt: skip


TREE = Tree("all", [Tree("gpu", [Tree("worker[1-4]")]), Tree("none")])
PARTS_OF_EACH = Answer(
    {"ä": 1, "a": [2]},
    [
        "[b]text[/b]",
        Facts([("a", "x"), ("long name", "[red]y[/red]")]),
        TREE,
        "",
        Table(["name", "memory MB"], [["a", "5"], ["[i]bcde[/i]", "1234567890"]], "All", frozenset({"memory MB"})),
    ],
)

NARROW = [
    "",
    " a           b        c",
    " ──────────────────────────────",
    " first one   second   one two",
    "                      three",
    "                      four",
    "",
    "",
]
DRAWN = [
    "[b]text[/b]",
    "",
    "a          x",
    "long name  [red]y[/red]",
    "",
    "all",
    "├── gpu",
    "│   └── worker[1-4]",
    "└── none",
    "",
    "",
    "",
    "All",
    "",
    " name           memory MB",
    " ────────────────────────",
    " a                      5",
    " [i]bcde[/i]   1234567890",
    "",
    "",
]


def test_parts_in_a_pipe_are_columns_with_a_line_between() -> None:
    assert written(PARTS_OF_EACH) == (
        "[b]text[/b]\n\n"
        "a          x\n"
        "long name  [red]y[/red]\n\n"
        "all\n  gpu\n    worker[1-4]\n  none\n\n"
        "NAME          MEMORY MB\n"
        "a                     5\n"
        "[i]bcde[/i]  1234567890\n"
    )
    assert written(PARTS_OF_EACH, as_json=True) == '{\n  "a": [\n    2\n  ],\n  "ä": 1\n}\n'
    assert written(Answer({}, [])) == "\n"
    assert written(Answer({}, [Facts([])])) == "\n"


def test_parts_on_a_terminal_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "60", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", written(PARTS_OF_EACH, stream=Terminal()))
    assert [line.rstrip() for line in plain.split("\n")] == DRAWN


def test_the_last_column_alone_is_folded_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "32", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    table = Table(["a", "b", "c"], [["first one", "second", "one two three four"]])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", written(Answer({}, [table]), stream=Terminal()))
    assert [line.rstrip() for line in plain.split("\n")] == NARROW


def test_a_terminal_that_is_dumb_or_has_no_name_is_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert written(PARTS_OF_EACH, stream=Terminal()) == written(PARTS_OF_EACH)
    monkeypatch.delenv("TERM")
    assert written(PARTS_OF_EACH, stream=Terminal()) == written(PARTS_OF_EACH)


@pytest.fixture
def said(folder: Folder, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    folder.site(text)
    monkeypatch.chdir(folder.path)
    return Said(capsys)


class Said:
    """What the program says, called in a folder with a site."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> str:
        assert cli.main(["-i", "hal.yml", *words]) == 0
        out, err = self._capsys.readouterr()
        assert err == ""
        return out


def test_the_graph_is_groups_with_their_nodes(said: Said) -> None:
    groups = ["base", "compute", "data", "gpu", "login", "management", "nobody", "ppc64le", "server", "slurm"]
    lines = said("graph").split("\n")
    assert lines[0] == "all"
    assert [line.strip() for line in lines if re.match("  [a-z]", line)][:10] == groups
    assert lines[1:6] == ["  base", "    front,worker[1-4]", "  compute", "    worker[1-4]", "  data"]
    assert said("graph", "login") == "login\n  front\n"
    assert said("graph", "nobody") == "nobody\n"
    assert json.loads(said("graph", "login", "--json")) == {"login": ["front"]}
    assert list(json.loads(said("graph", "--json")))[:10] == groups


def test_nodes_and_names_are_lists(said: Said) -> None:
    workers = ["worker1", "worker2", "worker3", "worker4"]
    assert json.loads(said("nodes", "compute", "--json")) == {"nodes": workers, "nodeset": "worker[1-4]"}
    assert said("nodes", "data") == "\n"
    assert said("nodes", "login or worker2", "--expand") == "front\nworker2\n"
    names = said("names").split("\n")
    assert names[:8] == ["front", *workers, "base", "compute", "data"]
    assert json.loads(said("names", "--json")) == names[:-1]
    assert [one["name"] for one in json.loads(said("list", "worker[3-4],front", "--json"))] == [
        "front", "worker3", "worker4",
    ]  # fmt: skip


def test_a_site_is_counted_in_words(said: Said, folder: Folder, text: str) -> None:
    remark = "file system home (nfs): no role mounts it on worker[1-4]; role nfs_client would, in a group of that name"
    one = (
        "hal.yml: site small: 5 nodes, 11 GPUs, 2 arrays, 2 services, 1 partition, 1 file system: no findings\n"
        f"hal.yml: {remark}\n"
    )
    assert said("validate", "--model") == f"{one}1 placeholder stands for real values; --placeholders lists them\n"
    folder.site(text.replace("domain: ", "domain: !placeholder "))
    assert said("validate", "--model", "--placeholders") == (
        f"{one}2 placeholders stand for real values\n\n"
        "LINE  FIELD               VALUE\n"
        "   3  domain              small.example\n"
        "  37  nodes.front.serial  S-FRONT\n"
    )
    found = json.loads(said("validate", "--model", "--json"))
    assert found["placeholders"][0] == {"line": 3, "field": "domain", "value": "small.example"}
    assert found["sites"] == [
        {
            "source": "hal.yml", "site": "small", "nodes": 5, "gpus": 11, "arrays": 2, "services": 2,
            "partitions": 1, "file_systems": 1,
        }
    ]  # fmt: skip
    assert (found["findings"], found["users"]) == ([], [])
    assert found["remarks"] == [f"hal.yml: {remark}"]


def test_a_limit_of_cpus_between_the_smallest_and_the_largest_node_is_a_remark(small: str) -> None:
    limited = small.replace("gpu: {nodes: compute", "gpu: {nodes: all, max_cpus_per_node: @").replace(
        "slurm_node: compute", "slurm_node: all"
    )

    def remarks(most: int) -> list[str]:
        return whole_nodes(load_bytes(limited.replace("@", str(most)).encode(), "cluster.yml"))

    assert remarks(4) == []
    assert remarks(5) == ["partitions.gpu.max_cpus_per_node is 5, and front has fewer CPUs: no limit there"]
    assert remarks(32) == ["partitions.gpu.max_cpus_per_node is 32, and front has fewer CPUs: no limit there"]


def test_the_remark_is_printed(folder: Folder, text: str, said: Said) -> None:
    changed = text.replace("slurm_node: compute", "slurm_node: all")
    folder.site(changed.replace("gpu: {nodes: compute", "gpu: {nodes: all, max_cpus_per_node: 32"))
    assert "hal.yml: partitions.gpu.max_cpus_per_node is 32, and front has fewer CPUs" in said("validate", "--model")
