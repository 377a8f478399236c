"""What a host is told of a run, as a document: its format, and that nothing of it changes by itself."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from hal_cluster.audit.recording import Host, LoadedRole, Owner, Run, proposal, spool
from hal_cluster.audit.resources import Resource

OWNER = Owner("time", "time|a.yml|Write", "a.yml:1")
RUN = Run("r", "abc", 5.0)


@pytest.mark.parametrize("one", [OWNER, RUN, LoadedRole("/r", ())])
def test_runs_owners_and_roles_stay_as_they_are(one: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        one.__setattr__(next(iter(vars(one))), "other")


def host() -> Host:
    made = Host(roles={"time": LoadedRole("/r", ("b", "a", "b"), needed=frozenset(["a"]))})
    made.manages(OWNER, [Resource("file:/b", {"state": "present"})], ["b.service", "a.service"], False)
    made.manages(OWNER, [Resource("file:/a", {"state": "present"})], [], True)
    made.tried("b", True)
    made.tried("a", True)
    made.window(1, 2)
    made.change(1, 2)
    made.effective(["a.service"])
    return made


def entry(name: str, **more: Any) -> dict[str, Any]:
    return {
        **{"resource": f"file:/{name}", "declared": {"state": "present"}, "role": "time", "task": "time|a.yml|Write"},
        **{"source": "a.yml:1", "secret": False, "units": [], "inputs_hash": "h", **more},
    }


ROLE = {"time": {"inputs_hash": "h", "tasks": ["a", "b"], "complete": True}}


def test_a_spool_has_all_that_a_node_is_told() -> None:
    assert spool("n1", RUN, host(), {"time": "h"}) == {
        "format": 1,
        "node": "n1",
        "run": {"id": "r", "commit": "abc", "started": 5.0, "changes": [[1, 2]]},
        "entries": [entry("a", changed=True), entry("b", changed=False, units=["a.service", "b.service"])],
        "roles": ROLE,
        "reached": ["a", "b"],
        "skipped": [],
        "windows": [[1, 2]],
        "handled": ["a.service"],
    }


def test_a_proposal_has_all_that_somebody_reviews() -> None:
    assert proposal("n1", RUN, host(), {"time": "h"}) == {
        "format": 1,
        "node": "n1",
        "run": {"id": "r", "commit": "abc", "started": 5.0},
        "adoptable": [entry("b", units=["a.service", "b.service"])],
        "differs": [entry("a")],
        "roles": ROLE,
    }


def test_a_role_without_a_hash_has_none_and_one_without_some_task_is_not_complete() -> None:
    made = host()
    made.roles["time"] = LoadedRole("/r", (), needed=frozenset(["c"]))
    told = spool("n1", RUN, made, {})
    assert told["roles"] == {"time": {"inputs_hash": "", "tasks": [], "complete": False}}
    assert {one["inputs_hash"] for one in told["entries"]} == {""}
