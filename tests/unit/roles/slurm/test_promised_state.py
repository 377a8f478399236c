"""Which states of a node keep the promise that slurmctld can use it, as 22.05 and 20.02 write them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible.module_utils.hal_node.expect.matchers import regex
from ansible.module_utils.hal_node.slurm.daemon.act import SILENT

ENTRIES = yaml.safe_load((Path(__file__).resolve().parents[4] / "roles/slurm/expect.yml").read_text())
PROMISED = next(entry["match"] for entry in ENTRIES if entry["id"] == "slurmctld can use the node")


@pytest.mark.parametrize(
    "state", ["IDLE", "MIXED", "ALLOCATED+PLANNED", "IDLE+DRAIN", "MIXED+DRAIN", "DOWN+DRAIN", "IDLE+MAINT"]
)
def test_it_can_use_a_node_that_serves_or_that_is_drained(state: str) -> None:
    assert regex(PROMISED).match(state)


@pytest.mark.parametrize(
    "state",
    [
        *("DOWN", "DOWN*", "DOWN+NOT_RESPONDING", "DOWN*+DRAIN", "DOWN+DRAIN+NOT_RESPONDING", "IDLE*", "FAIL"),
        *("IDLE+DRAIN+INVALID_REG", "UNKNOWN"),
    ],
)
def test_it_cannot_use_any_other(state: str) -> None:
    assert not regex(PROMISED).match(state)


@pytest.mark.parametrize("state", ["DOWN*", "IDLE*", "IDLE+DRAIN+NOT_RESPONDING", "DOWN+NOT_RESPONDING", "UNKNOWN"])
def test_a_slurmd_that_was_started_is_waited_for_until_slurmctld_has_heard_of_it(state: str) -> None:
    assert SILENT.search(state)
    assert not SILENT.search("IDLE+DRAIN")
