"""Whatever a node, a BMC, a console, Slurm or a user says: no report drives a terminal, no command has its words."""

from __future__ import annotations

import copy
import importlib
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from hal_cluster.audit import report, sealing, unmanaged
from hal_cluster.audit.answers import of_answer
from hal_cluster.audit.causes import followed
from hal_cluster.audit.cli import show as shown_record
from hal_cluster.audit.document import Audit
from hal_cluster.audit.findings import WORDS, Finding
from hal_cluster.audit.repairs import repair
from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.report import inventory_table, power_table
from hal_cluster.bmc.tasks import ACTIONS
from hal_cluster.expect import report as promises
from hal_cluster.reimage import show
from hal_cluster.reimage.record import Record, State, Step
from hal_cluster.reimage.world import Job, SlurmNode
from hal_inventory.errors import Finding as Fault_
from hal_inventory.output import Answer, Facts, Part, Table, Tree
from hal_inventory.output import show as print_answer
from hal_inventory.printable import json_text, lines, one_line, printable
from tests.property.hostile import PROJECT, TEXT, WORD, check_command, unseen
from tests.unit.hal_cluster.audit.answers import EXPECTATION, HEALTHY
from tests.unit.hal_cluster.reimage.fakes import RUN, plan

sys.path.insert(0, str(PROJECT / "plugins/module_utils"))
node_side = importlib.import_module("hal_node.printable")

NODES = ("hal05", "hal06")
SOURCES = ("-i", "inventory/my site/hal.yml", "-i", "inventory/it's/hal.yml")
VALUE = st.one_of(TEXT, st.none(), st.lists(TEXT, max_size=3), st.dictionaries(TEXT, TEXT, max_size=2), st.integers())
ROLE = st.sampled_from(["time", "slurm", ""]) | TEXT
UNIT = st.sampled_from(["chronyd.service", r"dev-disk-by\x2did-1.swap", "a.service; id", "x.unit"]) | TEXT


# --- the functions themselves


@given(TEXT, st.none() | st.integers(3, 60))
def test_a_printable_text_is_one_line_and_stays_as_it_is_when_nothing_is_hidden(text: str, most: int | None) -> None:
    found = printable(text, most)
    assert unseen(found) == []
    assert "\n" not in found
    assert printable(found, most) == found
    if most is not None:
        assert len(found) <= most
        assert found.endswith("...") or len(text) <= most
    if unseen(text) == [] and "\n" not in text and "\xa0" not in text and most is None and text.isprintable():
        assert found == text
    assert "  " not in one_line(text)
    assert unseen(lines(text, most)) == []


@given(VALUE)
def test_json_for_a_terminal_is_the_same_data(value: Any) -> None:
    text = json_text({"value": value})
    assert unseen(text) == []
    # What is half a character of UTF-16 becomes a whole one with its other half behind it, in any JSON.
    assert json.loads(text) == json.loads(json.dumps({"value": value}))


# --- audits


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """What the module says on a node that somebody else has."""
    answer = copy.deepcopy(HEALTHY)
    difference = st.fixed_dictionaries(
        {
            **{"resource": WORD | WORD.map("file:{}".format), "kind": st.sampled_from(sorted(WORDS)) | TEXT},
            **{"attribute": TEXT, "should": VALUE, "is": VALUE, "note": TEXT, "role": ROLE, "task": TEXT},
            **{"source": TEXT, "commit": TEXT, "converged_at": TEXT},
            **{"units": st.lists(UNIT, max_size=2), "diff": st.lists(TEXT, max_size=3)},
        }
    )
    answer["differences"] = draw(st.lists(difference, max_size=3))
    answer["extra"] = draw(
        st.lists(st.fixed_dictionaries(dict.fromkeys(("path", "what", "type", "note"), TEXT)), max_size=1)
    )
    answer["packages"] = {"extra": draw(st.lists(TEXT, max_size=2)), "unknown": draw(TEXT)}
    words = dict.fromkeys(("path", "attribute", "note", "package", "task", "source", "commit", "converged_at"), TEXT)
    file = st.fixed_dictionaries(
        {
            **{**words, "kind": st.sampled_from(sorted(unmanaged.KINDS)) | TEXT, "role": ROLE, "when": st.integers()},
            **dict.fromkeys(("should", "is"), VALUE),
            **dict.fromkeys(("within", "differs"), st.lists(TEXT, max_size=2)),
        }
    )
    answer |= {name: draw(st.lists(file, max_size=2)) for name in ("unmanaged", "package_files")}
    check = {"check": st.sampled_from(["clock", "kernel"]) | TEXT, "status": st.sampled_from(["fail", "unknown"])}
    seen = dict.fromkeys(("observed", "expected"), VALUE)
    answer["checks"] = draw(st.lists(st.fixed_dictionaries({**check, **seen, "reason": TEXT}), max_size=2))
    answer["problems"] = draw(st.lists(TEXT, max_size=2))
    answer["more"] = draw(st.dictionaries(TEXT, st.integers(0, 9), max_size=2))
    answer["record"] |= draw(st.fixed_dictionaries(dict.fromkeys(("status", "reason", "problem"), TEXT)))
    return answer


PROMISE = st.fixed_dictionaries(
    {"id": st.just("chronyd runs") | TEXT, "status": st.sampled_from(["fail", "unknown"]), "observed": VALUE}
    | {"reason": TEXT, "severity": st.sampled_from(["error", "warning"])}
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """The result of an audit in which one node, or two of them, say what they like."""
    promise = {**EXPECTATION, **draw(PROMISE)}
    answer = draw(answers())
    one = unmanaged.added(of_answer("hal05", answer, [promise]), "hal05", answer, ())
    asked = {f"expectation:time: {promise['id']}": {"service": {"name": "chronyd", "read": "running"}}}
    audit = Audit(groups={"all": NODES}, options=f"{shlex.join(SOURCES)} ")
    for host in draw(st.sampled_from([NODES, NODES[:1]])):
        found = [replace(each, host=host) for each in followed(one, asked)]
        software = {draw(TEXT): draw(TEXT)}
        audit.add(host, {"node": {"roles": [], "software": software}, "findings": [each.document() for each in found]})
    made: dict[str, Any] = json.loads(json.dumps(audit.document(1.0)))
    return made


def commands(text: str, width: int) -> Iterator[list[str]]:
    """Yield the commands that a report offers, as a shell gets them; fail for what only looks like one.

    A line that is wider than the terminal goes on at its left edge, where whoever wrote it has a line to begin.
    """
    waiting = iter(text.split("\n"))
    for line in waiting:
        labelled = re.match(r"    repair   (?=ansible)", line)
        if line != "  repair:" and not labelled:
            assert not re.match(r" {0,5}(ansible|repair:)", line), line
            assert cell_len(line) <= max(width, 40), line
            continue
        line = line[labelled.end() :] if labelled else next(waiting)
        words = [line]
        while words[-1].endswith("\\"):
            words.append(next(waiting))
        yield shlex.split(" ".join(word.removesuffix("\\") for word in words))


@settings(max_examples=200)
@given(documents(), st.integers(20, 130))
def test_a_report_drives_no_terminal_and_offers_no_command_of_a_node(document: dict[str, Any], width: int) -> None:
    text = report.text(document, width=width)
    assert unseen(text) == []
    for words in commands(text, min(width, report.MOST_WIDTH)):
        check_command(words, SOURCES, (*NODES, "all"))
    coloured = report.text(document, width=width, colour=True)
    assert unseen(coloured, colour=True) == []
    plain = re.sub(r"\x1b\[\d+m", "", coloured)
    assert [line.rstrip() for line in plain.split("\n")] == [line.rstrip() for line in text.split("\n")]
    assert unseen(json_text(document)) == []
    for one in document["findings"]:
        if one["repair"].startswith("ansible"):
            check_command(shlex.split(one["repair"]), SOURCES, (*NODES, "all"))


@given(ROLE, UNIT, st.sampled_from([*sorted(WORDS), "expectation", "no-record", "orphaned"]))
def test_a_command_has_our_roles_and_names_of_units_and_nothing_else(role: str, unit: str, kind: str) -> None:
    said = repair(Finding("hal05", kind, "x", role=role, units=(unit,)), "hal05", f"{shlex.join(SOURCES)} ")
    if said.startswith("ansible"):
        check_command(shlex.split(said), SOURCES, NODES)
        assert kind == "not-effective" or role in shlex.split(said) or "--tags" not in said
    elif kind != "orphaned" and role:
        assert unseen(said) == []
        assert "this project has no role" in said or "is not the name of a unit" in said


@given(st.dictionaries(TEXT, TEXT, max_size=3), st.lists(st.dictionaries(st.just("resource") | st.just("task"), TEXT)))
def test_a_record_is_shown_without_what_its_node_would_have(
    head: dict[str, str], entries: list[dict[str, str]]
) -> None:
    record: dict[str, Any] = {**head, "roles": {name: {} for name in head}, "node": "".join(head.values())}
    parts: list[Part] = [shown_record._head(record), shown_record._table(entries)]
    check_printed(Answer({**record, "entries": entries}, parts))


@given(st.lists(TEXT, min_size=1, max_size=3))
def test_the_printer_of_all_programs_prints_what_is_seen(texts: list[str]) -> None:
    tree = Tree(texts[0], [Tree(text) for text in texts])
    facts = Facts([(text, text) for text in texts])
    check_printed(Answer(texts, [tree, facts, Table(["a", "b"], [[text, text] for text in texts]), texts[-1]]))
    assert unseen(str(Fault_("f", 1, texts[0], texts[-1]))) == []


class Terminal(io.StringIO):
    """Somebody is looking."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def check_printed(answer: Answer) -> None:
    """Fail where one of the three ways of printing an answer shows what is not to be seen."""
    for as_json, stream in ((True, io.StringIO()), (False, io.StringIO()), (False, Terminal())):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TERM", "xterm-256color")
            patch.delenv("NO_COLOR", raising=False)
            print_answer(answer, as_json=as_json, stream=stream)
        assert unseen(re.sub(r"\x1b\[[0-9;]+m", "", stream.getvalue())) == []


@given(TEXT, TEXT, st.lists(TEXT, max_size=2))
def test_the_end_of_a_rollout_is_a_line_for_each_thing(message: str, stderr: str, notes: list[str]) -> None:
    outcome = sealing.Outcome()
    results = sealing.Results(outcome)
    host = SimpleNamespace(get_name=lambda: "hal05")
    results.v2_runner_on_failed(SimpleNamespace(_host=host, _result={"msg": message, "module_stderr": stderr}))
    results.v2_runner_on_ok(SimpleNamespace(_host=host, _result={"observed": 3, "problems": notes}))
    done, warnings = sealing.words(outcome)
    assert unseen("".join([*done, *warnings])) == []
    assert "\n" not in "".join([*done, *warnings])


# --- promises, reimages, BMCs, scratch


@given(PROMISE)
def test_a_promise_that_does_not_hold_is_one_line(promise: dict[str, Any]) -> None:
    result = {**EXPECTATION, **promise}
    found = promises.line(result)
    assert unseen(found) == []
    assert "\n" not in found
    seen = promises.brief(result)["observed"]
    assert seen == result["observed"] or unseen(str(seen)) == []
    if isinstance(seen, str):
        assert unseen(seen) == []


@given(TEXT, TEXT, st.sampled_from([State.GOING, State.FAILED, State.ABORTED]), TEXT)
def test_what_a_reimage_says_is_its_own(reason: str, waiting: str, state: State, by: str) -> None:
    one = Record("hal05", plan("hal05"), RUN, Step.INSTALL, state=state, reason=reason, waiting=waiting)
    told = show.line_of(one)
    assert (unseen(told), "\n" in told) == ([], False)
    end = show.end_of({"hal05": one, "hal06": one}, "hal-mgmt1")
    assert unseen(end) == []
    begins = [line for line in end.split("\n") if not line.startswith("    ")]
    assert [line.split(" ", 1)[0] for line in begins] == [
        *("hal[05-06]:", "Look:"),
        *(["Again:", "Give"] if state is not State.ABORTED else []),
    ]
    orders = [shlex.split(line.partition(": ")[2]) for line in begins if line.startswith(("Look", "Give"))]
    wanted = [["show", "NODE"], ["abort", "hal05", "hal06"]]
    assert orders == [["ssh", "hal-mgmt1", "hal-reimage", *words] for words in wanted[: len(orders)]]
    slurm = SlurmNode(True, drained=True, reason=reason, by=by, jobs=(Job("1", by, waiting),))
    text = show.plan_of([show.Shown(one.plan, "AC922", slurm, reason, one)], "Code: X")
    assert unseen(text) == []
    heads = [line for line in text.split("\n") if line and not line.startswith(" ")]
    assert [head.split()[0] for head in heads] == ["hal05", "Code:"]


@given(TEXT, TEXT)
def test_what_bmcs_say_is_a_line_for_each_thing(name: str, version: str) -> None:
    error = BmcError("hal05 (10.0.0.5)", "its name", name, Fault.REFUSED)
    sensor = {"name": name, "value": 1.0, "unit": version, "health": "Critical"}
    said = {
        **{"firmware": [{"name": name, "version": version}], "boot_targets": [name], "sensors": [sensor]},
        "clock": {"ntp": True, "servers": [name], "now": version},
    }
    boot = {"target": name, "once": False}
    failed = {"fault": "refused", "asked": "x", "answer": name, "msg": version}
    every = [
        *(str(error), error.answer),
        *inventory_table({"hal05": said}),
        *power_table({"hal05": {"power": version, "boot": boot}, "hal06": failed, "hal07": {"msg": name}}),
    ]
    assert [one for one in every if unseen(one) or "\n" in one] == []
    seen = SimpleNamespace(text=f"{name}\r\n{version}\r\n", source="live")
    bmc: Any = SimpleNamespace(console=lambda seconds: seen)
    assert unseen(ACTIONS["console"](bmc, {"console_seconds": 1}, None, False)["console"]) == []  # type: ignore[arg-type]


@given(st.binary(max_size=60) | TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")[:255]))
def test_the_name_of_a_file_is_shown_and_can_be_had_back(name: bytes) -> None:
    shown = node_side.shown(os.fsdecode(name)).decode("utf-8")
    assert (unseen(shown), "\n" in shown) == ([], False)
    assert node_side.shown(name).decode("utf-8") == shown
    assert undone(shown) == name
    assert len(node_side.shown("x" * 10_000)) == node_side.MOST_SHOWN


def undone(shown: str) -> bytes:
    """What printf %b makes of it."""

    def one(match: re.Match[str]) -> str:
        if match[1] == "\\":
            return "\\"
        number = int(match[1][1:], 16)
        return chr(0xDC00 + number) if match[1][0] == "x" and number > 0x7F else chr(number)

    text = re.sub(r"\\(\\|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})", one, shown)
    return text.encode("utf-8", "surrogateescape")
