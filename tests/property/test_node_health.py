"""Whatever happens to a node, its health check takes it out when it is not well, and ends no drain but its own."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import ansible.module_utils
from hypothesis import given, settings
from hypothesis import strategies as st

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "roles/node_health/files"))
SHIPPED = str(PROJECT / "plugins/module_utils")
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)
slurm = importlib.import_module("node_health_slurm")

CHECKS = {"GPU lost": True, "disk full": False}
WELL: dict[str, Any] = {"drained": False, "down": False, "reason": "", "by": ""}
# One more fault, one less, a check (of everything, or of GPUs alone), and what people do.
EVENTS = st.one_of(
    st.tuples(st.just("fault"), st.sampled_from(sorted(CHECKS))),
    st.tuples(st.just("mend"), st.sampled_from(sorted(CHECKS))),
    st.tuples(st.just("check"), st.booleans()),
    st.tuples(st.just("drain"), st.sampled_from(["new DIMM", "health: GPU lost, ticket 12", ""])),
    st.tuples(st.just("resume"), st.none()),
)


def check(node: dict[str, Any], faults: set[str], complete: bool, remembered: dict[str, Any]) -> tuple[Any, Any]:
    """One run of the check: the node and what is remembered after it, as Slurm.settle does it."""
    asked = sorted(CHECKS) if complete else ["GPU lost"]
    failing = [
        {"words": name, "id": name, "reason": "differs", "hardware": CHECKS[name]} for name in asked if name in faults
    ]
    action, _ = slurm.decide(node, failing, complete, remembered)
    if action in ("drain", "update"):
        reason = slurm.reason_of(failing)
        hardware = any(one["hardware"] for one in failing)
        return {**WELL, "drained": True, "reason": reason, "by": "root"}, {"reason": reason, "hardware": hardware}
    if action == "resume":
        return dict(WELL), {}
    return node, remembered if node["drained"] else {}


@settings(max_examples=1000)
@given(st.lists(EVENTS, max_size=30))
def test_only_its_own_drains_end_and_no_sick_node_has_jobs(events: list[tuple[str, Any]]) -> None:
    node, faults, owner = dict(WELL), set[str](), ""
    remembered: dict[str, Any] = {}
    for event, what in events:
        if event == "fault":
            faults.add(what)
        elif event == "mend":
            faults.discard(what)
        elif event == "drain":
            node, owner = {**WELL, "drained": True, "reason": what, "by": "alice"}, "alice"
        elif event == "resume":
            node, owner = dict(WELL), ""
        else:
            before = dict(node)
            node, remembered = check(node, faults, what, remembered)
            sick = faults if what else faults & {"GPU lost"}
            assert node["drained"] or not sick, "a node that is not well takes jobs"
            if owner == "alice":
                assert node == before, "an administrator's drain was changed"
            elif before["drained"] and not node["drained"]:
                assert what, "given back after a part of the checks"
                assert not faults, "given back while it is not well"
                assert not any(CHECKS[name] for name in CHECKS if name in before["reason"]), "hardware was given back"
            if node["drained"] and not owner:
                owner = "check"
            elif not node["drained"]:
                owner = ""


@given(st.lists(st.text(max_size=400), min_size=1, max_size=6))
def test_a_reason_is_one_line_that_scontrol_takes_and_shows_again(words: list[str]) -> None:
    failing = [{"words": word, "id": word, "reason": word, "hardware": False} for word in words]
    reason = slurm.reason_of(failing)
    assert reason.startswith("health: ")
    assert len(reason) <= slurm.LONGEST
    assert not set("\"'\\[]") & set(reason)
    assert reason.isascii()
    assert reason == " ".join(reason.split())
