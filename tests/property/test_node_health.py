"""Whatever happens to a node, its health check takes it out when it is not well, and ends no drain but its own."""

from __future__ import annotations

import contextlib
import importlib
import sys
from pathlib import Path
from typing import Any

import ansible.module_utils
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "roles/node_health/files"))
SHIPPED = str(PROJECT / "plugins/module_utils")
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)
slurm = importlib.import_module("node_health_slurm")
drains = importlib.import_module("hal_node.slurm.drains")

CHECKS = {"GPU lost": True, "disk full": False}
# One more fault, one less, a check that answers or does not, a check (of everything, or of GPUs alone), slurmctld that
# hears or does not, and people.
EVENTS = st.one_of(
    st.tuples(st.just("fault"), st.sampled_from(sorted(CHECKS))),
    st.tuples(st.just("mend"), st.sampled_from(sorted(CHECKS))),
    st.tuples(st.just("silent"), st.sets(st.sampled_from(sorted(CHECKS)))),
    st.tuples(st.just("check"), st.booleans()),
    st.tuples(st.just("updates"), st.booleans()),
    st.tuples(st.just("drain"), st.sampled_from(["new DIMM", "health: GPU lost, ticket 12"])),
    st.tuples(st.just("resume"), st.none()),
)


class Node(slurm.Slurm):  # type: ignore[misc, name-defined]  # it is loaded by name
    """A node, slurmctld, and the file that remembers a drain, all in memory."""

    def __init__(self) -> None:
        super().__init__("hal01", "", 100, 60)
        self.reason, self.by, self.hears = "", "", True
        self.kept: dict[str, Any] = {}

    def _scontrol(self, arguments: list[str]) -> str:
        if arguments[0] == "update":
            if not self.hears:
                raise slurm.SlurmError("no answer")
            told = dict(word.split("=", 1) for word in arguments[1:])
            self.reason, self.by = (told["Reason"], "root") if told["State"] == "DRAIN" else ("", "")
            return ""
        state = f"IDLE+DRAIN Reason={self.reason} [{self.by}@2026-11-21T18:00:00]" if self.reason else "IDLE"
        return f"NodeName=hal01 Partitions=gpu State={state}"

    def _remembered(self) -> dict[str, Any]:
        return self.kept

    def _remember(self, known: dict[str, Any]) -> str:
        self.kept = known
        return ""

    def check(self, faults: set[str], silent: set[str], complete: bool) -> None:
        """One run of the check."""
        asked = sorted(CHECKS) if complete else ["GPU lost"]
        results = [
            {
                **{"words": name, "id": name, "role": "base", "reason": "differs"},
                **{"hardware": CHECKS[name], "status": "fail" if name in faults else "pass"},
                **({"status": "unknown", "doubt": "once more"} if name in silent else {}),
            }
            for name in asked
        ]
        with contextlib.suppress(slurm.SlurmError):
            self.settle(results, complete)


@pytest.fixture(scope="module", autouse=True)
def lock(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A lock that an ordinary user may take."""
    vars(slurm)["LOCK"] = str(tmp_path_factory.mktemp("lock") / "lock")


@settings(max_examples=1000)
@given(st.lists(EVENTS, max_size=30))
def test_only_its_own_drains_end_and_no_sick_node_has_jobs(events: list[tuple[str, Any]]) -> None:
    node, faults, silent, owner, hardware = Node(), set[str](), set[str](), "", False
    for event, what in events:
        if event == "fault":
            faults.add(what)
        elif event == "mend":
            faults.discard(what)
        elif event == "silent":
            silent = what
        elif event == "updates":
            node.hears = what
        elif event == "drain":
            node.reason, node.by, owner, hardware = what, "alice", "alice", False
        elif event == "resume":
            node.reason, node.by, owner, hardware = "", "", "", False
        else:
            before = node.reason
            node.check(faults, silent, what)
            sick = (faults if what else faults & {"GPU lost"}) - silent
            assert node.reason or not sick or not node.hears, "a node that is not well takes jobs"
            if owner == "alice":
                assert node.reason == before, "an administrator's drain was changed"
                continue
            if before and not node.reason:
                assert what, "given back after a part of the checks"
                assert not faults - silent, "given back while it is not well"
                assert not hardware, "hardware was given back"
            if before and not faults and not silent and what and node.hears and not hardware:
                assert not node.reason, "its own drain stays for ever"
            # Slurm was told of broken hardware; an administrator has to look.
            hardware = bool(node.reason) and (hardware or (node.hears and "GPU lost" in sick))
            assert not hardware or "GPU lost" in node.reason, "nobody sees what it waits for"
            owner = "check" if node.reason else ""


@given(st.lists(st.text(max_size=400), min_size=1, max_size=6))
def test_a_reason_is_one_line_that_scontrol_takes_and_shows_again(words: list[str]) -> None:
    causes = [
        {"words": one, "id": one, "reason": one, "role": "base", "seen": True, "hardware": False} for one in words
    ]
    reason = slurm.reason_of(causes)
    assert reason.startswith("health: ")
    assert len(reason) <= drains.LONGEST
    assert not set("\"'\\[]") & set(reason)
    assert reason.isascii()
    assert reason == " ".join(reason.split())
