"""A record for what check mode found to be as declared, and for nothing else."""

from __future__ import annotations

from typing import Any

from hal_cluster.audit.cli.adopt import spool, stops
from hal_cluster.audit.recording import Run

OUTPUT = """
PLAY [Time] ********************************************************************

TASK [time : Write the configuration of chronyd] *******************************
ok: [hal01]
changed: [hal02]

TASK [munge : Install the key] *************************************************
fatal: [hal01]: FAILED! => {"msg": "no such program"}
failed: [hal02] (item=x) => {"msg": "no such program"}
fatal: [hal03 -> localhost]: FAILED! => {}
"""


def entry(role: str, name: str) -> dict[str, Any]:
    return {"resource": f"file:/{name}", "role": role, "declared": {}, "task": f"{role}|x|{name}"}


def test_only_what_is_as_declared_is_told_and_only_whole_roles_count() -> None:
    proposal = {
        "format": 1,
        "node": "hal01",
        "run": {"id": "old", "commit": "abc1234", "started": 1.0},
        "adoptable": [entry("time", "a"), entry("ssh", "b"), entry("munge", "d")],
        "differs": [entry("ssh", "c")],
        "roles": {name: {"inputs_hash": "x", "tasks": []} for name in ("time", "ssh", "munge", "slurm")},
        "stopped": ["munge"],
    }
    told = spool(proposal, Run("new", "", 2.0))
    assert [one["resource"] for one in told["entries"]] == ["file:/a", "file:/b", "file:/d"]
    assert set(told["roles"]) == {"time"}
    assert told["run"] == {"id": "new", "commit": "abc1234", "started": 2.0}
    assert (told["node"], told["reached"], told["windows"]) == ("hal01", [], [])


def test_where_check_mode_ended_is_read_from_its_output() -> None:
    assert stops(OUTPUT) == {"munge : Install the key": ["hal01", "hal02", "hal03"]}
