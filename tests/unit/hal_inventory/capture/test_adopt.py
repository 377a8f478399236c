"""hal-inventory adopt: one node's new identities go where its old ones stand, and nothing else is touched."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.inventory.cli import main
from hal_inventory.capture.adopt import Adoption, Told, adopt
from hal_inventory.load import load, load_bytes

HEAD = """\
# A small site.
format: 1
name: ember
domain: ember.example
networks:
  management: {kind: ethernet, cidr: 10.20.0.0/24}
  bmc: {kind: bmc, cidr: 10.20.1.0/24}
profiles:
  server:
    model: a server
    arch: ppc64le
    cpus: {model: POWER9, sockets: 2, cores_per_socket: 20, threads_per_core: 4}
    memory_mb: 131072
    bmc: openbmc
    kernel: 4.18.0-80.7.2.el7
"""
EMBER = (
    HEAD
    + """\
nodes:
  front:
    role: login
    profile: server
    serial: FRONT  # on the back
    addresses: {management: 10.20.0.1, bmc: 10.20.1.1}
    macs: {management: "02:00:00:00:00:01", bmc: "02:00:00:00:01:01"}
    disks: {system: "0x5000c500a1b2c301",   scratch: "0x5000c500a1b2c311"} # two

  node[1-4]:   # four of a kind
    role: compute
    profile: server
    serial: [ABC1, 'ABC2', !placeholder "NODE[3-4]"]  # two came later
    addresses:
      management: 10.20.0.[11-14]
      bmc: 10.20.1.[11-14]
    macs:
      bmc: [
        "02:00:00:00:01:11",  # node1
        !placeholder "02:00:00:00:01:12",  # node2
        "02:00:00:00:01:13",
        "02:00:00:00:01:14",
      ]
    disks: {system: !placeholder "0x5000c500a1b2c40[1-4]"}
    # the last line
"""
)


def adopted(told: Sequence[tuple[str, str]], node: str = "node2", text: str = EMBER) -> Adoption:
    given = [Told(tuple(field.split(".")), value, "BMC of it") for field, value in told]
    return adopt(text.encode(), "cluster.yml", node, given)


def lines(done: Adoption, text: str = EMBER) -> list[tuple[str, str]]:
    """Return the lines that changed, before and after."""
    assert done.content is not None, done.findings
    pairs = list(zip(text.splitlines(True), done.content.decode().splitlines(True), strict=True))
    return [(before, after) for before, after in pairs if before != after]


def refusals(done: Adoption) -> list[str]:
    assert done.content is None
    return [str(one) for one in done.findings]


def test_only_the_nodes_own_values_change_in_a_list_and_in_braces() -> None:
    done = adopted([("serial", "XYZ9"), ("macs.bmc", "02:00:00:00:09:99")])
    assert lines(done) == [
        (
            "    serial: [ABC1, 'ABC2', !placeholder \"NODE[3-4]\"]  # two came later\n",
            '    serial: [ABC1, XYZ9, !placeholder "NODE[3-4]"]  # two came later\n',
        ),
        (
            '        !placeholder "02:00:00:00:01:12",  # node2\n',
            '        "02:00:00:00:09:99",  # node2\n',
        ),
    ]
    done = adopted([("serial", "7F"), ("disks.system", "0x5000c500a1b2c3ff")], node="front")
    assert lines(done) == [
        ("    serial: FRONT  # on the back\n", '    serial: "7F"  # on the back\n'),
        (
            '    disks: {system: "0x5000c500a1b2c301",   scratch: "0x5000c500a1b2c311"} # two\n',
            '    disks: {system: "0x5000c500a1b2c3ff",   scratch: "0x5000c500a1b2c311"} # two\n',
        ),
    ]


def test_the_table_has_what_is_the_same_too() -> None:
    done = adopted([("serial", "abc2"), ("macs.bmc", "02:00:00:00:01:12")])
    assert [(row.field, row.line, row.declared, row.found, row.state) for row in done.rows] == [
        ("serial", 28, "ABC2", "abc2", "same"),
        ("macs.bmc", 35, "02:00:00:00:01:12", "02:00:00:00:01:12", "placeholder"),
    ]
    assert [after.strip() for _, after in lines(done)] == ['"02:00:00:00:01:12",  # node2'], (
        "the tag goes, as it is real"
    )
    same = adopted([("serial", "ABC1"), ("macs.bmc", "02:00:00:00:01:11")], node="node1")
    assert (same.content, same.diff) == (EMBER.encode(), "")


def test_a_value_within_a_range_is_not_one_nodes_to_change() -> None:
    done = adopted([("serial", "XYZ9"), ("disks.system", "0x5000c500a1b2c3ff")], node="node4")
    advice = "stands for several nodes; write a list with one value a node there, then adopt again"
    assert refusals(done) == [
        f'cluster.yml:28: nodes.node[1-4].serial: node4 is XYZ9 now, and "NODE[3-4]" {advice}',
        "cluster.yml:39: nodes.node[1-4].disks.system: node4 is 0x5000c500a1b2c3ff now, and"
        f' "0x5000c500a1b2c40[1-4]" {advice}',
    ]
    assert [row.declared for row in done.rows] == ["NODE4", "0x5000c500a1b2c404"]


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("serial", "abc1", "serial number of node1"),
        ("serial", "NODE3", "serial number of node3"),
        ("macs.bmc", "02:00:00:00:00:01", "MAC of front"),
        ("disks.system", "0x5000C500A1B2C311", "world-wide name of front"),
    ],
)
def test_what_another_node_has_is_refused_as_swapped(field: str, value: str, what: str) -> None:
    (said,) = refusals(adopted([(field, value)]))
    assert f"BMC of it says {value}, which is the {what}: the two are swapped" in said


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("serial", "A[1-2]", "'A[1-2]', which cannot stand in a model"),
        ("serial", "A\nB", "which cannot stand in a model"),
        ("macs.management", "02:00:00:00:09:99", "node2 has none; hal-inventory capture proposes what is not declared"),
        ("disks.scratch", "0x5000c500a1b2c3ff", "nodes.node[1-4].disks.scratch: node2 has none"),
        ("disks.system", "sdb", "sdb is no world-wide name such as 0x"),
        ("macs.bmc", "02:00", 'as it would be: "02:00" of node2 is not a MAC'),
        ("serial", "{{ x }}", "which cannot stand in a model"),
    ],
)
def test_what_cannot_be_written_leaves_the_model_as_it_is(field: str, value: str, said: str) -> None:
    told = [("serial", "XYZ9")] if field != "serial" else []
    assert said in "\n".join(refusals(adopted([*told, (field, value)])))


def test_a_result_that_is_no_model_is_refused_with_what_is_wrong_in_it() -> None:
    done = adopted([("macs.bmc", "02:00:00:00:00:01")], node="front")  # of its own other port
    assert "as it would be: MAC used twice: 02:00:00:00:00:01" in refusals(done)[0]


QUOTES = st.sampled_from(["{}", "'{}'", '"{}"', "!placeholder {}", "!placeholder '{}'"])
BLANKS = st.sampled_from(["", " ", "  # a note", "\n       "])


@given(
    data=st.data(), new=st.sampled_from(["N1", "1318A2C", "0", "yes", "a: b", "#1", "O'Neil", "ä"]), crlf=st.booleans()
)
def test_any_way_of_writing_keeps_every_other_byte(data: st.DataObject, new: str, crlf: bool) -> None:
    number = data.draw(st.integers(1, 5))
    at = data.draw(st.integers(0, number - 1))
    items, place = [], 0
    while place < number:
        span = data.draw(st.integers(1, number - place))
        text = f"V{place}" if span == 1 else f"V[{place}-{place + span - 1}]"
        quote = data.draw(QUOTES if span == 1 else st.sampled_from(["'{}'", '!placeholder "{}"']))
        items.append((range(place, place + span), quote.format(text), data.draw(BLANKS)))
        place += span
    written = "".join(f"      - {text}{' ' if '#' in blank else ''}{blank.strip()}\n" for _, text, blank in items)
    if all("#" not in blank for *_, blank in items) and data.draw(st.booleans()):
        written = f"      [{','.join(blank + text for _, text, blank in items)}]\n"
    entry = "n[0]" if number == 1 else f"n[0-{number - 1}]"
    text = (
        f"{HEAD}nodes:\n  {entry}:\n    profile: server\n    serial:\n{written}    role: compute\n"
        f"    addresses: {{management: '10.20.0.[10-{9 + number}]'}} # end\n"
    )
    text = text.replace("\n", "\r\n") if crlf else text
    before = load_bytes(text.encode(), "x").nodes
    done = adopted([("serial", new)], node=f"n{at}", text=text)
    mine = next(item for item in items if at in item[0])
    if len(mine[0]) > 1:
        assert done.content is None
        return
    assert done.content is not None, done.findings
    after = done.content.decode()
    start = text.index(mine[1])
    end = start + len(mine[1])
    assert after.startswith(text[:start])
    assert after.endswith(text[end:])
    nodes = load_bytes(done.content, "x").nodes
    assert {name: node.serial for name, node in nodes.items()} == {
        name: new if name == f"n{at}" else node.serial for name, node in before.items()
    }


# The command


def bmc(serial: str | None = "XYZ9", mac: str = "02:00:00:00:09:99") -> dict[str, Any]:
    system = {"@odata.type": "#ComputerSystem.v1_6_0.ComputerSystem", "SerialNumber": serial}
    port = {"MACAddress": mac, "IPv4Addresses": [{"Address": "10.20.1.12"}]}
    resources = {"/redfish/v1/Systems/system": system, "/redfish/v1/Managers/bmc/EthernetInterfaces/eth0": port}
    return {"format": 1, "kind": "bmc", "address": "10.20.1.12", "taken_at": "x", "resources": resources}


class Site:
    """A folder with a model, its source and a file of what a BMC said; the command is called in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.model, self._capsys = folder, folder / "site/cluster.yml", capsys
        self.model.parent.mkdir()
        self.model.write_text(EMBER)
        (folder / "site/hal.yml").write_text("plugin: hal\ncluster: cluster.yml\n")
        self.says(bmc())

    def says(self, document: Any) -> None:
        (self.folder / "bmc.json").write_text(json.dumps(document))

    def adopt(self, *words: str, node: str = "node2") -> tuple[int, str, str]:
        self._capsys.readouterr()
        status = main(["-i", "site/hal.yml", "adopt", node, "--bmc-file", "bmc.json", *words])
        said = self._capsys.readouterr()
        assert "Traceback" not in said.err
        return status, said.out, said.err

    def untouched(self) -> bool:
        return self.model.read_text() == EMBER and len(list(self.model.parent.iterdir())) == 2


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Site:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path / "cache"))
    return Site(tmp_path, capsys)


def test_without_write_it_shows_what_it_would_write_and_how(site: Site) -> None:
    status, out, err = site.adopt()
    assert status == 0
    assert out.splitlines()[:3] == [
        "FIELD     LINE  DECLARED           FOUND              BY",
        "serial      28  ABC2               XYZ9               bmc.json  new",
        "macs.bmc    35  02:00:00:00:01:12  02:00:00:00:09:99  bmc.json  was a placeholder",
    ]
    assert '+    serial: [ABC1, XYZ9, !placeholder "NODE[3-4]"]  # two came later\n' in out
    assert err == "Is that the machine in the rack? Then the same once more, with --write\n"
    assert site.untouched()


def test_with_write_the_file_is_replaced_with_its_mode_and_what_comes_next_is_said(site: Site) -> None:
    site.model.chmod(0o640)
    inode = site.model.stat().st_ino
    status, out, err = site.adopt("--write")
    assert status == 0
    assert '+        "02:00:00:00:09:99",  # node2\n' in out
    assert err.splitlines()[0] == "site/cluster.yml: written. Next:"
    assert "  git commit site/cluster.yml\n" in err
    assert "playbooks/site.yml --tags provision_server" in err
    assert "playbooks/reimage.yml -e reimage_nodes=node2" in err
    node = load("site/cluster.yml").nodes["node2"]
    assert (node.serial, node.macs["bmc"]) == ("XYZ9", "02:00:00:00:09:99")
    assert site.model.stat().st_mode & 0o7777 == 0o640
    assert site.model.stat().st_ino != inode, "it was replaced at once, never half written"
    assert sorted(path.name for path in site.model.parent.iterdir()) == ["cluster.yml", "hal.yml"]
    again, out, err = site.adopt("--write")
    assert (again, err) == (0, "site/cluster.yml has all of this: nothing to adopt\n")


def test_what_no_bmc_tells_is_given(site: Site) -> None:
    site.says(bmc(serial="FRONT", mac="02:00:00:00:01:01"))
    words = [
        "--disk",
        "0x5000c500a1b2c3ff",
        "--disk",
        "scratch=0x5000c500a1b2c3fe",
        "--mac",
        "management=02:AA:00:00:00:01",
    ]
    assert site.adopt(*words, "--write", node="front")[0] == 0
    node = load("site/cluster.yml").nodes["front"]
    assert node.parts["disks"] == {"system": "0x5000c500a1b2c3ff", "scratch": "0x5000c500a1b2c3fe"}
    assert node.macs == {"management": "02:aa:00:00:00:01", "bmc": "02:00:00:00:01:01"}


def test_json_has_the_same(site: Site) -> None:
    status, out, _ = site.adopt("--json")
    found = json.loads(out)
    assert (status, found["node"], found["findings"]) == (0, "node2", [])
    assert found["identities"][0] == {
        "field": "serial",
        "line": 28,
        "declared": "ABC2",
        "found": "XYZ9",
        "source": "bmc.json",
        "state": "new",
    }
    assert found["diff"].startswith("--- a/site/cluster.yml\n")


@pytest.mark.parametrize(
    ("node", "document", "words", "said"),
    [
        ("node2", bmc(serial="ABC1"), [], "which is the serial number of node1: the two are swapped"),
        ("node2", bmc(serial=None), [], "bmc.json: resources: no system or chassis has a serial number"),
        (
            "node2",
            {"format": 1, "kind": "node", "host": "a", "taken_at": "", "outputs": {}, "files": {}},
            [],
            "is of a system",
        ),
        ("node3", bmc(), [], "write a list with one value a node there"),
        ("node[2-3]", bmc(), [], "adopt takes the name of one node; node[2-3] is 2: node2, node3"),
        ("compute", bmc(), [], "adopt takes the name of one node; compute is 4: "),
        ("nod2", bmc(), [], 'unknown node "nod2"'),
        ("node2,node3", bmc(), [], "adopt takes the name of one node; node2,node3 is 2: "),
        ("node2", bmc(), ["--disk", "system="], "--disk system=: is no NAME=VALUE"),
        ("node2", bmc(), ["--mac", "02:00:00:00:09:98"], "--mac 02:00:00:00:09:98: is no NAME=VALUE"),
        ("front", bmc(), ["--disk", "0x5000c500a1b2c3ff", "--disk", "system=0x5000c500a1b2c3fe"], "is given twice"),
        ("front", bmc(), ["--disk", "0x5000c500a1b2c311"], "as it would be: WWN used twice: 0x5000c500a1b2c311"),
    ],
)
def test_what_is_refused_writes_nothing_and_says_why(
    site: Site, node: str, document: Any, words: list[str], said: str
) -> None:
    site.says(document)
    status, _, err = site.adopt("--write", *words, node=node)
    assert status == 2
    assert said in err
    assert site.untouched()


def test_two_nodes_are_not_taken(site: Site) -> None:
    with pytest.raises(SystemExit) as ended:
        site.adopt("node3")
    assert ended.value.code == 2
    assert site.untouched()


def test_a_file_that_somebody_changed_meanwhile_is_not_overwritten(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def changed(descriptor: int) -> None:
        real(descriptor)
        site.model.write_text(EMBER + "# theirs\n")

    monkeypatch.setattr("os.fsync", changed)
    status, _, err = site.adopt("--write")
    assert status == 2
    assert "was changed by somebody else meanwhile; nothing is written" in err
    assert site.model.read_text() == EMBER + "# theirs\n"
    assert len(list(site.model.parent.iterdir())) == 2


def test_a_write_that_fails_leaves_the_file(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    status, _, err = site.adopt("--write")
    assert status == 2
    assert err.splitlines()[-1] == "site/cluster.yml: cannot be written: No space left on device; it is as it was"
    assert site.untouched()


def test_a_node_outside_the_source_s_part_has_no_bmc_to_ask(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    (site.folder / "site/hal.yml").write_text("plugin: hal\ncluster: cluster.yml\nonly: front\n")
    assert main(["-i", "site/hal.yml", "adopt", "node2"]) == 2
    assert capsys.readouterr().err == "node2 is not in this source's part of the site; name another with -i\n"
    assert site.untouched()


def test_all_of_it_is_on_the_disk_before_it_takes_the_file_s_place(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, real = list[int](), os.fsync

    def watched(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)
        assert site.model.read_text() == EMBER
        real(descriptor)

    monkeypatch.setattr("os.fsync", watched)
    assert site.adopt("--write")[0] == 0
    assert synced == [site.model.stat().st_size]
