"""One finding on the screen, line by line: what stands where, in which colour, and what is not repeated."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from hal_cluster.audit import report
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.report import Group

MODE = Finding("hal05", "mode", "file:/x", "drift", "node", "the mode differs")
PROMISE = Finding("hal05", "expectation", "expectation:time: it runs", "drift", "node", "it is off", role="time")


def painted(one: Finding, width: int = 80, *, colour: bool = False, **group: Any) -> list[str]:
    paint = report.Painter(width, colour)
    report.add_finding(paint, Group(**{"finding": one, "hosts": (one.host,), "commits": (), "since": (), **group}))
    return paint.lines


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (MODE, "  hal05  file /x: the mode differs"),
        (replace(MODE, resource="kernel-module:a"), "  hal05  kernel module a: the mode differs"),
        (replace(MODE, resource="check:clock"), "  hal05  clock: the mode differs"),
        (replace(MODE, resource="node"), "  hal05  the mode differs"),
        (replace(MODE, resource="record:node"), "  hal05  the mode differs"),
        (replace(MODE, summary=""), "  hal05  file /x"),
        (PROMISE, "  hal05  it runs: it is off"),
        (replace(PROMISE, role="other"), "  hal05  time: it runs: it is off"),
        (replace(PROMISE, severity="warning"), "  hal05  it runs: warning: it is off"),
        (replace(PROMISE, severity="warning", summary=""), "  hal05  it runs: warning"),
    ],
)
def test_a_finding_begins_with_its_node_and_its_resource(one: Finding, line: str) -> None:
    assert painted(one) == [line]


def test_a_finding_without_a_node_has_none() -> None:
    assert painted(replace(MODE, host=""), hosts=()) == ["  file /x: the mode differs"]


def test_nodes_have_a_line_of_their_own_where_one_line_is_too_short() -> None:
    one = replace(MODE, summary="x" * 20 + " " + "y" * 19)
    assert len("  hal05  file /x: " + one.summary) == 58
    assert painted(one, 58) == [f"  hal05  file /x: {one.summary}"]
    assert painted(one, 57) == ["  hal05", f"      file /x: {one.summary}"]
    assert painted(one, 54) == ["  hal05", f"      file /x: {'x' * 20}", f"      {'y' * 19}"]


@pytest.mark.parametrize(
    ("changes", "colour"),
    [({}, "31"), ({"status": "unknown"}, "33"), ({"severity": "warning", "summary": "the mode differs"}, "33")],
)
def test_drift_is_of_another_colour_than_what_does_not_count(changes: dict[str, str], colour: str) -> None:
    (line,) = painted(replace(MODE, **changes), colour=True)  # type: ignore[arg-type]
    words = "warning: the mode differs" if "severity" in changes else "the mode differs"
    assert line == f"\x1b[36m  hal05  \x1b[0m\x1b[{colour}mfile /x: {words}\x1b[0m"


@pytest.mark.parametrize(
    ("changes", "group", "lines"),
    [
        ({"should": "0644", "is_": "0600"}, {}, ["    recorded 0644", "    found    0600"]),
        ({"should": "0644", "is_": "0600"}, {"items": ("a", "b")}, []),
        ({"why": "others write"}, {}, ["    because  others write"]),
        ({"why": "the mode differs"}, {}, []),
        ({}, {"also": ("r: a", "r: b")}, ["    so also  r: a; r: b"]),
        ({"task": "Write it", "source": "roles/x:1"}, {}, ["    task     Write it, roles/x:1"]),
        ({"task": "Write it"}, {}, ["    task     Write it"]),
        ({"source": "roles/x:1"}, {}, ["    from     roles/x:1"]),
        ({}, {"commits": ("a", "b")}, ["             commit a, b"]),
        (
            {},
            {"commits": ("a",), "since": ("2026-11-20T18:02:00Z", "2026-11-21T19:03:00.123Z")},
            ["             commit a, converged 2026-11-21 19:03 UTC"],
        ),
        ({}, {"since": ("yesterday",)}, ["             last changed yesterday"]),
    ],
)
def test_what_is_known_of_a_finding_stands_below_it(
    changes: dict[str, Any], group: dict[str, Any], lines: list[str]
) -> None:
    assert painted(replace(MODE, **changes), **group)[1:] == lines


def test_items_of_a_loop_stand_for_the_words() -> None:
    assert painted(MODE, items=("a", "b")) == ["  hal05  file /x: a, b"]


def test_lines_of_a_diff_have_their_colours_and_are_cut() -> None:
    paint = report.Painter(80, True)
    given = ("--- recorded", "+++ now", "@@ -7 +7,2 @@", " c", "-a", "+b", "", "+" + "x " * 40, "-" + "y" * 66)
    report._values(paint, replace(MODE, role="time", diff=given))
    colours = ["\x1b[2m", "\x1b[2m", "\x1b[32m", "\x1b[31m", "", "\x1b[31m", "\x1b[31m", "\x1b[32m"]
    assert [one for line, one in zip(paint.lines, colours, strict=True) if one not in line] == []
    bare = [re.sub(r"\x1b\[\d*m", "", line) for line in paint.lines]
    assert [line[:14].strip() for line in bare] == [
        "l",
        "c",
        "declared a",
        "found    b",
        "",
        "found    x",
        "",
        "declared y",
    ]
    assert bare[0] == " " * 13 + "line 7:"
    plain = report.Painter(80, False)
    report._values(plain, report.readable(replace(MODE, diff=("+" + "x " * 199 + "x", "+" + "x " * 200 + "x"))))
    first, second = ("".join(f"{line[13:]:<67}" for line in plain.lines[at : at + 6]).rstrip() for at in (0, 6))
    assert plain.lines[0] == "    found    " + "x " * 33 + "x"
    assert first == "x " * 199 + "x"
    assert second.endswith("x ...")
    assert len(second) == 399
    assert len(plain.lines) == 12


def document(*found: Finding, groups: Any = None) -> dict[str, Any]:
    summary = {"nodes": 1, "resources": 1, "expectations": 1, "seconds": 1, "warnings": 0}
    return {
        **{"findings": [one.document() for one in found], "groups": groups or {}, "options": "-i x "},
        **{"summary": summary, "status": 2 if found else 0},
    }


def test_each_finding_says_what_repairs_it_and_a_rollout_is_said_once() -> None:
    one = replace(MODE, role="hosts", since="", units=())
    restart = replace(one, kind="not-effective", resource="service:a.service", units=("a.service",))
    text = report.text(document(one, replace(one, host="hal06"), restart, replace(one, kind="orphaned")), width=120)
    command = "--become -m ansible.builtin.systemd_service -a 'name=a.service state=restarted' hal05"
    assert text == (
        "hosts\n"
        "  hal[05-06]  file /x: the mode differs\n"
        "  hal05  service a.service: the mode differs\n"
        f"    repair   ansible -i x {command}\n"
        "  hal05  file /x: the mode differs\n"
        "    repair   nobody manages it: remove it from the node, or declare it again\n"
        "  repair:\n"
        "    ansible-playbook -i x playbooks/site.yml --limit hal05,hal06 --tags hosts\n"
        "\n"
        "Drift: 4 differences on hal[05-06] (1 node, 1 resources, 1 expectations, 1 s)\n"
    )


@pytest.mark.parametrize(("status", "colour"), [(0, "32"), (1, "33"), (2, "31"), (3, "33")])
def test_the_last_line_has_the_colour_of_what_it_says(status: int, colour: str) -> None:
    text = report.text({**document(), "status": status}, colour=True, width=120)
    assert text.splitlines()[-1].startswith(f"\x1b[{colour}m")


@pytest.mark.parametrize(("width", "longest"), [(10, 40), (40, 40), (60, 60), (120, 120), (200, 120)])
def test_a_report_is_no_narrower_and_no_wider_than_people_read(width: int, longest: int) -> None:
    one = replace(MODE, resource="node", summary="a " * 200)
    lines = report.text(document(one), width=width).splitlines()
    assert max(map(len, lines[:-2])) in (longest, longest - 1)


def test_sections_are_apart_and_begin_with_their_titles() -> None:
    text = report.text(document(replace(MODE, role="base"), replace(MODE, role="time")), colour=True)
    assert "\n\n\x1b[1mtime\x1b[0m\n" in text
    assert text.startswith("\x1b[1mbase\x1b[0m\n")
