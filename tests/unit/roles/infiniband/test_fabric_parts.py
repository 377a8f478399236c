"""What the comparison of fabrics reads of each line, and which of two faults it names."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).resolve().parents[4] / "roles/infiniband/files/fabric.py"
spec = importlib.util.spec_from_file_location("infiniband_fabric", FILE)
assert spec
assert spec.loader
fabric: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fabric)


def name(number: int) -> str:
    return f"0x{number:016x}"


TOPOLOGY = """\
# Topology file
Switch  36 "S-00000000000000a1"         # "edge one" enhanced port 0 lid 1 lmc 0
[1]     "H-00000000000000c1"[2](c2)     # "node1 mlx5_0" lid 3 4xEDR
[2][ext 7]      "H-00000000000000d1"[1]         # "node2" lid 4 4xFDR
[3]     "S-00000000000000b1"[30][ext 9]         # "core" lid 5 1xSDR
[4]     "R-00000000000000e1"[1](e2)     # "router" lid 6 4xHDR
[5]     "S-00000000000000b1"[31](b9)    # "core" lid 5 4xEDR
nothing
Ca      1 "H-00000000000000c1"          # "node1 mlx5_0"
[2](c2)         "S-00000000000000a1"[1]         # lid 3 lmc 0 "edge one" lid 1 4xEDR
[1]     "S-00000000000000a1"[1]         # "edge one" lid 1 4xEDR
Switch  36 "S-00000000000000b1"         # "core" enhanced port 0 lid 5 lmc 0
[30]    "S-00000000000000a1"[3]         # "edge one" lid 1 1xSDR
"""


def test_what_is_at_each_port_of_each_switch() -> None:
    switches, ends = fabric.parse_topology(TOPOLOGY)
    edge, core = name(0xA1), name(0xB1)
    assert switches == {edge: "edge one", core: "core"}
    rows = {
        (edge, 1): (name(0xC2), False, 2, "node1 mlx5_0", "4xEDR"),
        (edge, 2): (name(0xD1), False, 1, "node2", "4xFDR"),
        (edge, 3): (core, True, 30, "core", "1xSDR"),
        (edge, 4): (name(0xE2), False, 1, "router", "4xHDR"),
        (edge, 5): (core, True, 31, "core", "4xEDR"),
        (core, 30): (edge, True, 3, "edge one", "1xSDR"),
    }
    keys = ("guid", "is_switch", "port", "name", "speed")
    assert ends == {place: dict(zip(keys, row, strict=True)) for place, row in rows.items()}


def test_a_guid_has_all_its_zeros() -> None:
    assert [fabric.guid(text) for text in ("0x1f", "1f", "248a070300f82d40")] == [
        "0x000000000000001f", "0x000000000000001f", "0x248a070300f82d40",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("speed", "rate"),
    [
        ("1xSDR", 2.5), ("4xSDR", 10), ("4xDDR", 20), ("4xQDR", 40), ("4xFDR10", 40), ("4xFDR", 56), ("4xEDR", 100),
        ("4xHDR", 200), ("4xNDR", 400), ("12xEDR", 300), ("4xXDR", None), ("fast", None), ("4xEDR!", None),
        ("x4xEDR", None), ("", None),
    ],
)  # fmt: skip
def test_a_rate_is_lanes_times_what_each_has(speed: str, rate: float | None) -> None:
    assert fabric.gbps(speed) == rate


# ---------------------------------------------------------------- cables
EDGE, CORE = name(0xA1), name(0xB1)


def cable(port: int, owner: str, guid: int, rate: int | None = 100, their: str = "mlx5_0/1") -> dict[str, Any]:
    return {"switch": "edge", "switch_guid": EDGE, "switch_port": port, "owner": owner, "port": their,
            "guid": name(guid), "rate_gbps": rate}  # fmt: skip


def end(guid: int, port: int = 1, *, switch: bool = False, speed: str = "4xEDR") -> dict[str, Any]:
    return {"guid": name(guid), "is_switch": switch, "port": port, "name": "N", "speed": speed}


LINK = cable(9, "core", 0xB1, None, "30")
TWO = [cable(1, "n1", 1), cable(2, "n2", 2)]


def differences(cables: list[dict[str, Any]], found: dict[Any, Any], **switches: str) -> list[str]:
    ports = [{"owner": one["owner"], "name": one["port"], "guid": one["guid"]} for one in cables if one is not LINK]
    there = {{"edge": EDGE, "core": CORE}.get(key, key): value for key, value in switches.items()}
    lines: list[str] = fabric.cable_differences({"cables": cables, "ports": ports}, there, found)
    return lines


BOTH = {"edge": "e", "core": "c"}
LINKED = {(EDGE, 9): end(0xB1, 30, switch=True), (CORE, 30): end(0xA1, 9, switch=True)}


def test_a_link_between_switches_has_two_ends() -> None:
    assert differences([LINK], LINKED, **BOTH) == []
    assert differences([LINK], {(EDGE, 9): LINKED[EDGE, 9]}, **BOTH) == []


@pytest.mark.parametrize(
    ("found", "leads"),
    [
        (None, "nothing"),
        (end(0xB1, 29, switch=True), "core/29"),
        (end(0xA1, 30, switch=True), "edge/30"),
        (end(0xF1, 30, switch=True), f"switch N ({name(0xF1)})/30"),
        (end(0xB1, 30), f"N ({name(0xB1)})"),
        (end(1), "n1 mlx5_0/1"),
    ],
)
def test_a_link_that_leads_elsewhere_is_named(found: Any, leads: str) -> None:
    at = {(EDGE, 9): found} if found else {}
    assert differences([LINK, cable(1, "n1", 1, None)], {**at, (EDGE, 1): end(1)}, **BOTH)[:1] == [
        f"edge/9 leads to {leads}, declared core/30"
    ]


def test_of_a_switch_that_is_missing_no_cable_is_named() -> None:
    assert differences([*TWO, LINK], {(EDGE, 1): end(1)}, edge="e") == [
        "switch core is not in the fabric",
        "n2 mlx5_0/1 is not in the fabric, declared edge/2",
    ]
    assert differences([*TWO, LINK], {}, core="c") == ["switch edge is not in the fabric"]
    assert differences(TWO, {}) == ["switch edge is not in the fabric"]


def test_switches_that_are_missing_or_too_many_are_named_in_order() -> None:
    assert differences([LINK], {}, **{name(2): "z", name(1): "y"}) == [
        "switch core is not in the fabric",
        "switch edge is not in the fabric",
        f"switch y ({name(1)}) is in the fabric and not in the model",
        f"switch z ({name(2)}) is in the fabric and not in the model",
    ]


def test_each_port_is_where_it_was_declared_or_its_place_is_named() -> None:
    right = {(EDGE, 1): end(1), (EDGE, 2): end(2)}
    assert differences(TWO, right, edge="e") == []
    assert differences(TWO, {(EDGE, 1): end(1), (EDGE, 3): end(2)}, edge="e") == [
        "n2 mlx5_0/1 is on edge/3, declared edge/2"
    ]
    assert differences(TWO, {(EDGE, 1): end(1), (name(7), 2): end(2)}, edge="e") == [
        f"n2 mlx5_0/1 is on {name(7)}/2, declared edge/2"
    ]
    assert differences(TWO, {(EDGE, 1): end(1), (EDGE, 2): end(5)}, edge="e") == [
        f"n2 mlx5_0/1 is not in the fabric, declared edge/2; there is N ({name(5)}), which the model does not have"
    ]
    assert differences(TWO, {(EDGE, 2): end(1)}, edge="e") == [
        "n1 mlx5_0/1 is on edge/2, declared edge/1",
        "n2 mlx5_0/1 is not in the fabric, declared edge/2",
    ]
    assert differences(TWO, {(EDGE, 1): end(1), (EDGE, 2): end(0xF1, 3, switch=True)}, edge="e") == [
        "n2 mlx5_0/1 is not in the fabric, declared edge/2"
    ]


def test_a_cable_may_be_faster_than_declared_and_not_slower() -> None:
    for speed, rate, wrong in (("4xEDR", 100, False), ("4xHDR", 100, False), ("4xEDR", 101, True), ("what", 1, True)):
        found = differences([cable(1, "n1", 1, rate)], {(EDGE, 1): end(1, speed=speed)}, edge="e")
        assert found == ([f"n1 mlx5_0/1 on edge/1 runs at {speed}, declared {rate} Gb/s"] if wrong else [])
    assert differences([cable(1, "n1", 1, None)], {(EDGE, 1): end(1, speed="1xSDR")}, edge="e") == []


def test_what_is_at_ports_of_our_switches_and_not_in_the_model_is_named() -> None:
    found = {
        (EDGE, 1): end(1), (EDGE, 2): end(2), (EDGE, 4): end(6), (EDGE, 3): end(0xF1, 5, switch=True),
        (name(7), 1): end(8),
    }  # fmt: skip
    assert differences(TWO, found, edge="e") == [
        f"edge/3 leads to switch N ({name(0xF1)})/5, which the model does not have there",
        f"edge/4 leads to N ({name(6)}), which the model does not have there",
    ]


def test_the_other_end_of_a_wrong_link_is_named_once() -> None:
    """The cable from edge/9 is in core/31: that port leads to one that is declared."""
    found = {(EDGE, 9): end(0xB1, 31, switch=True), (CORE, 31): end(0xA1, 9, switch=True)}
    assert differences([LINK], found, **BOTH) == ["edge/9 leads to core/31, declared core/30"]


# ---------------------------------------------------------------- subnet managers
MANAGERS = """\
SMInfoRecord dump:
        GUID....................0xc1
        Priority................14
        SMState.................3
SMInfoRecord dump:
        GUID....................0x00000000000000c2
        Priority................9
        SMState.................2
"""
OWNERS = {"a": 0xC1, "b": 0xC2, "c": 3}
DECLARED = {
    "managers": ["a", "b"],
    "ports": [{"owner": owner, "name": "p/1", "guid": name(guid)} for owner, guid in OWNERS.items()],
}


def test_managers_are_read_with_priority_and_state() -> None:
    assert fabric.parse_managers(MANAGERS) == [
        {"guid": name(0xC1), "Priority": "14", "SMState": "3"},
        {"guid": name(0xC2), "Priority": "9", "SMState": "2"},
    ]
    assert fabric.parse_managers("  Priority....3\n") == []


def manager(guid: int, state: str | None) -> dict[str, str]:
    return {"guid": name(guid), "Priority": "5", **({"SMState": state} if state else {})}


@pytest.mark.parametrize(
    ("managers", "lines"),
    [
        ([manager(0xC1, "3"), manager(0xC2, "2")], []),
        ([manager(0xC2, "3"), manager(0xC1, "2")], ["the master is b, declared a"]),
        ([manager(0xC2, "3"), manager(0xC1, "3")], ["the master is a and b, declared a"]),
        ([manager(0xC1, "0")], ["the master is nobody, declared a"]),
        (
            [manager(9, "3"), manager(3, "1"), manager(0xC1, "2")],
            [
                "a subnet manager runs on c p/1: discovering, priority 5",
                f"a subnet manager runs on a port that the model does not have ({name(9)}): master, priority 5",
                f"the master is {name(9)}, declared a",
            ],
        ),
        ([manager(3, "0"), manager(0xC1, "3")], ["a subnet manager runs on c p/1: not active, priority 5"]),
        ([manager(3, "7"), manager(0xC1, "3")], ["a subnet manager runs on c p/1: in state 7, priority 5"]),
        ([manager(3, None), manager(0xC1, "3")], ["a subnet manager runs on c p/1: in state None, priority 5"]),
    ],
)
def test_managers_are_the_declared_ones_and_the_first_is_master(managers: Any, lines: list[str]) -> None:
    assert fabric.manager_differences(DECLARED, managers) == lines


# ---------------------------------------------------------------- the program
def test_a_program_that_fails_or_is_not_there_is_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho said $1\necho 'two  \n words' >&2\nexit $1\n")
    program.chmod(0o755)
    assert fabric.ask([str(program), "0"]) == "said 0\n"
    with pytest.raises(fabric.NoAnswer, match=rf"^{program} ended with 3: two words$"):
        fabric.ask([str(program), "3"])
    with pytest.raises(fabric.NoAnswer, match=r"^/no/such: \[Errno 2\] No such file"):
        fabric.ask(["/no/such"])
    assert capsys.readouterr() == ("", "")


def test_each_question_goes_to_its_program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[list[str]] = []

    def ask(argv: list[str]) -> str:
        asked.append(argv)
        return ""

    monkeypatch.setattr(fabric, "ask", ask)
    model = {**DECLARED, "cables": TWO}
    assert fabric.main(model, "cables") == 0
    assert fabric.main(model, "managers") == 0
    assert asked == [["ibnetdiscover"], ["saquery", "SMIR"]]
    assert capsys.readouterr() == ("switch edge is not in the fabric\nthe master is nobody, declared a\n", "")
