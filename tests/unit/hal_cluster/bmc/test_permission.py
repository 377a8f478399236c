"""Which nodes may lose their power: states as scontrol shows them, read by the reader of the module."""

from __future__ import annotations

import pytest
from ansible.module_utils.hal_node.slurm.nodes import read_node
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.bmc.permission import power_refusal

NO_JOBS_START = (
    "IDLE+DRAIN",
    "MIXED+DRAIN",
    "DRAINED*",
    "DRAINING",
    "DOWN+DRAIN",
    "DOWN*+DRAIN",
)
# One that is down comes back by itself where ReturnToService says so.
JOBS_START = ("IDLE", "MIXED", "ALLOCATED", "IDLE+CLOUD", "IDLE*", "COMPLETING", "IDLE+RESERVED", "DOWN", "DOWN*")


def seen(**states: str) -> dict[str, dict[str, object]]:
    """Return what hal_slurm_node sees: a state, and a job where a "!" is before it."""
    found = {}
    for name, text in states.items():
        node = read_node(f"NodeName={name} State={text.lstrip('!')} SlurmdStartTime=2026-01-01T00:00:00")
        assert node is not None
        found[name] = {**node, "jobs": [{"id": "7", "user": "alice", "end": ""}] if text.startswith("!") else []}
    return found


@pytest.mark.parametrize("state", NO_JOBS_START)
def test_a_node_that_takes_no_job_and_has_none_may_go(state: str) -> None:
    assert power_refusal(seen(hal05=state)) == ""


@pytest.mark.parametrize("state", JOBS_START)
def test_a_node_on_which_a_job_may_start_keeps_its_power(state: str) -> None:
    assert power_refusal(seen(hal05=state)) == (
        f"jobs may start on hal05: Slurm says {state}. Drain them first: scontrol update NodeName=hal05 State=DRAIN"
        " Reason=..., and wait until no job is there; or say power_jobs_ok. Nothing was changed."
    )


def test_nodes_are_named_by_what_is_the_matter_with_them() -> None:
    said = power_refusal(seen(hal01="IDLE", hal02="IDLE", hal03="!MIXED", hal04="!IDLE+DRAIN", hal05="DOWN+DRAIN"))
    assert said == (
        "jobs run on hal[03-04]; jobs may start on hal[01-02]: Slurm says IDLE; jobs may start on hal03: Slurm says"
        " MIXED. Drain them first: scontrol update NodeName=hal[01-03] State=DRAIN Reason=..., and wait until no job"
        " is there; or say power_jobs_ok. Nothing was changed."
    )


def test_nodes_that_still_drain_are_waited_for() -> None:
    assert power_refusal(seen(hal04="!MIXED+DRAIN")) == (
        "jobs run on hal04. They drain: wait until no job is there; or say power_jobs_ok. Nothing was changed."
    )


@given(st.dictionaries(st.from_regex(r"hal[0-9]{2}", fullmatch=True), st.sampled_from([*NO_JOBS_START, *JOBS_START])))
def test_one_is_enough_to_refuse_all(states: dict[str, str]) -> None:
    assert bool(power_refusal(seen(**states))) == any(state in JOBS_START for state in states.values())
