"""Which paths role nfs_client withdraws, and at which it then writes, starts and binds: the loops of its tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.playing import ROOT, play_text

ROLE = ROOT / "roles/nfs_client"
LOOPS = {
    "Take away mounts that the model does not have": "configure",
    "Write the lines of fstab": "configure",
    "Mount at the first access": "automount",
    "Show folders of the node itself where the model has them": "configure",
}


def loops() -> list[str]:
    """The loop of each of these tasks."""
    found = {
        task["name"]: task["loop"]
        for name in sorted(set(LOOPS.values()))
        for task in yaml.safe_load((ROLE / f"tasks/{name}.yml").read_text())
        if "loop" in task
    }
    return [found[name] for name in LOOPS]


@pytest.mark.parametrize(
    ("permitted", "withdrawn"), [(False, ["/bound"]), (True, ["/bound", "/mnt/other", "/home", "/own"])]
)
def test_what_is_left_at_a_declared_path_is_left_alone(tmp_path: Path, permitted: bool, withdrawn: list[str]) -> None:
    """/bound was a bind of this role, /home and /own are somebody else's; all are used, /free is not."""
    seen = {"ours": ["/bound"], "others": ["/mnt/other"], "foreign": ["/home", "/own"]}
    stdout = {"stdout": " " + json.dumps(seen)}
    variables: dict[str, Any] = {
        "__nfs_client_seen": stdout,
        "__nfs_client_still": stdout,
        "__nfs_client_mounts": [{"path": path} for path in ("/bound", "/free", "/home")],
        "__nfs_client_binds": [{"path": path} for path in ("/own", "/free2")],
        "nfs_client_withdraw_ok": permitted,
    }
    tasks = [{"name": "Show", "debug": {"msg": loop}} for loop in loops()]
    playbook = [{"hosts": "all", "gather_facts": False, "vars_files": [str(ROLE / "vars/main.yml")], "tasks": tasks}]
    done = play_text(tmp_path, json.dumps(playbook), "hal-mgmt1", **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [task["hosts"]["hal-mgmt1"]["msg"] for task in json.loads(done.stdout)["plays"][0]["tasks"]]
    assert said == [withdrawn, [{"path": "/free"}], [{"path": "/free"}], [{"path": "/free2"}]]
