"""When a daemon is restarted: what the role asks of Slurm, and what it does about a daemon that takes no value.

The tasks and the programs are the role's, over a local connection. Slurm, systemctl and mm commands are stand-ins.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from hal_cluster import programs
from tests.unit.interpreters import LOCAL
from tests.unit.playing import ROOT, play

DRAINED = ROOT / "roles/spectrum_scale/files/drained.sh"
FIRST_JOBS = "drain the node first (playbooks/reboot.yml)"
NODE = "NodeName=hal05 Arch=ppc64le CoresPerSocket=20 State={} ThreadsPerCore=4 Reason=for DRAIN tests [root@now]"


def write(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def why_not(folder: Path, *, state: str = "", jobs: str = "") -> str:
    """What drained.sh says with these answers of Slurm: a state of the node, the lines of squeue."""
    write(folder / "pgrep", "exit 1")  # a virtual HAL on this machine has slurmd among its processes
    if state:
        write(folder / "scontrol", f"echo '{NODE.format(state)}'" if state != "silent" else "exit 1")
        write(folder / "squeue", jobs)
    return subprocess.run(
        ["/bin/sh", str(DRAINED), "hal05", "RUNNING"],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


@pytest.mark.parametrize(
    ("state", "jobs", "said"),
    [
        ("IDLE+DRAIN", ":", ""),
        ("DOWN*+DRAIN", ":", ""),
        ("IDLE", ":", "the node is not drained in Slurm, and a job may begin at any time; drain it first (playbooks/r"),
        ("MIXED+DRAIN", "echo 4712; echo 4711; echo 4711", f"jobs 4711, 4712 run here; {FIRST_JOBS}"),
        ("IDLE+DRAIN", "exit 1", "Slurm does not say whether jobs run here"),
        ("silent", ":", "Slurm does not say whether jobs run here"),
        ("", "", ""),  # there is no Slurm yet
    ],
)
def test_a_daemon_is_restarted_on_a_drained_node_without_jobs_alone(
    tmp_path: Path, state: str, jobs: str, said: str
) -> None:
    found = why_not(tmp_path, state=state, jobs=jobs)
    assert found.startswith(said) if said else not found


def node(folder: Path) -> None:
    """Write the programs of hal05, whose daemon runs with 48 threads whatever is configured."""
    for name, text in programs.files(ROOT / "roles/spectrum_scale/files/spectrum_scale.py").items():
        path = folder / "program" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("/usr/lpp/mmfs/bin", str(folder)).replace("/var/lib/hal", str(folder)))
    write(folder / "hal-spectrum-scale", f'exec {LOCAL} -B {folder}/program/spectrum_scale.py "$@"')
    members = ROOT / "tests/unit/hal_node/scale/captures/mmlscluster_hal.txt"
    write(folder / "mmlscluster", f"sed s/hal03.hal/hal05-ib.hal/g\\;s/10.64.0.103/10.64.2.105/ {quote(str(members))}")
    config = "mmlsconfig::HEADER:version:reserved:reserved:configParameter:value:nodeList:"
    write(folder / "mmlsconfig", f"echo {config}; echo mmlsconfig::0:1:::workerThreads:512:hal05-ib:")
    write(folder / "mmlsnodeclass", ":")
    config = "mmdiag:config:HEADER:version:reserved:reserved:name:value:changed:"
    write(folder / "mmdiag", f"echo {config}; echo mmdiag:config:0:1:::workerThreads:48::")
    state = "mmgetstate::HEADER:version:reserved:reserved:nodeName:nodeNumber:state:"
    write(folder / "mmgetstate", f"echo {state}; echo mmgetstate::0:1:::hal05-ib:3:active:")
    write(
        folder / "systemctl",
        f"case $1 in show) echo LoadState=loaded; echo ActiveState=active ;; restart) echo $2 >>{folder}/done ;; esac",
    )
    write(folder / "squeue", ":")
    write(folder / "scontrol", f"echo '{NODE}' | sed s/{{}}/$(cat {folder}/state)/")
    (folder / "state").write_text("IDLE\n")


def test_a_daemon_that_takes_no_value_is_restarted_once(tmp_path: Path) -> None:
    node(tmp_path)
    role = {"include_role": {"name": "spectrum_scale", "tasks_from": "effective"}}
    tasks: list[dict[str, Any]] = [
        role,
        {"command": f"sed -i s/$/+DRAIN/ {tmp_path}/state"},
        {"block": [role], "rescue": [{"name": "Failed", "debug": {"msg": "{{ ansible_failed_result.msg }}"}}]},
        {"name": "Once more", "debug": {"msg": ""}},
        role,
    ]
    playbook = tmp_path / "play.yml"
    lines = "".join(f"    - {json.dumps(task)}\n" for task in tasks)
    playbook.write_text(f"- hosts: all\n  gather_facts: false\n  connection: local\n  tasks:\n{lines}")
    named = {
        "ansible_connection": "local",
        "ansible_become": False,
        "ansible_python_interpreter": LOCAL,
        "spectrum_scale_restart_ok": True,
        "__spectrum_scale_program": str(tmp_path / "hal-spectrum-scale"),
        "__spectrum_scale_bin": str(tmp_path),
        "__spectrum_scale_mount_words": [],
    }
    done = play(
        playbook,
        *("--limit", "hal05", "--extra-vars", json.dumps(named)),
        sites=("hal",),
        ANSIBLE_STDOUT_CALLBACK="ansible.posix.json",
        PATH=f"{tmp_path}:{os.environ['PATH']}",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [
        (one["task"]["name"].removeprefix("spectrum_scale : "), one["hosts"]["hal05"])
        for one in json.loads(done.stdout)["plays"][0]["tasks"]
        if "hal05" in one["hosts"] and not one["hosts"]["hal05"].get("skipped")
    ]
    said = [result["msg"] for name, result in ran if name in ("Say what waits", "Failed")]
    line = "workerThreads: configured 512, runs with 48"
    assert said == [
        f"hal05: {line}. Not restarted: the node is not drained in Slurm, and a job may begin at any time; drain it"
        " first (playbooks/reboot.yml)",
        f"hal05: the daemon was restarted and did not take {line}. It is not restarted for that again:"
        " /var/adm/ras/mmfs.log.latest may say why; declare what it can run with",
    ]
    names = [name for name, _ in ran]
    assert "Start the daemon with its attributes" not in names[names.index("Once more") :]
    assert (tmp_path / "done").read_text() == "gpfs.service\n"


def test_what_was_not_taken_is_forgotten_when_it_no_longer_differs(tmp_path: Path) -> None:
    """Declared, not taken, declared otherwise, declared again: the daemon may take it now."""
    node(tmp_path)
    asked = json.dumps({"name": "hal05", "addresses": ["10.64.2.105"], "attributes": ["workerThreads"]})

    def said(verb: str, configured: str) -> str:
        text = (tmp_path / "mmlsconfig").read_text()
        write(tmp_path / "mmlsconfig", re.sub(r"workerThreads:\d+", f"workerThreads:{configured}", text))
        argv = [str(tmp_path / "hal-spectrum-scale"), verb, asked]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    line = "workerThreads: configured 512, runs with 48\n"
    assert said("restarted", "512") == line
    assert said("pending", "512") == ""
    assert said("pending", "48") == ""
    assert said("pending", "512") == line
