"""Adopting: one node's new identities go where its old ones stand, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal_inventory.capture.adopt import Adoption, Told, adopt
from hal_inventory.load import load_bytes

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
        ("disks.system", "sdb", "sdb is not a world-wide name such as 0x"),
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
