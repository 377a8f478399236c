"""What the role refuses, before it contacts a node, and what it makes of the model."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.interpreters import LOCAL
from tests.unit.playing import ROOT, play_text

PLAY = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: nvidia_driver, tasks_from: validate}
    - debug:
        msg:
          rows: "{{ __nvidia_driver_rows }}"
          sockets: "{{ __nvidia_driver_socket_rows }}"
          options: "{{ __nvidia_driver_options_lines }}"
"""


def validated(folder: Path, limit: str = "hal05", **variables: Any) -> subprocess.CompletedProcess[str]:
    """What comes before the first task that contacts a node, on HAL itself."""
    return play_text(folder, PLAY, limit, sites=("hal",), **variables)


def made(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["plays"][0]["tasks"][-1]["hosts"]["hal05"]["msg"]
    return found


def test_what_the_model_says_of_an_ac922(tmp_path: Path) -> None:
    found = made(validated(tmp_path))
    assert found["rows"][3] == {"index": 3, "name": "Tesla V100-SXM2-16GB", "memory.total": {"at_least": 15564}}
    assert found["sockets"][2] == "GPU2\\s.*\\t80-159(?:\\t.*)?"
    assert found["options"] == [
        'options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords="PeerMappingOverride=1"'
    ]


def test_an_option_can_be_withdrawn(tmp_path: Path) -> None:
    none = {"NVreg_EnableStreamMemOPs": None, "NVreg_RegistryDwords": None}
    assert made(validated(tmp_path, nvidia_driver_options=none))["options"] == []


@pytest.mark.parametrize(
    ("limit", "variables", "message"),
    [
        ("hal-login", {}, "hal-login has no gpus in the model"),
        ("hal05", {"nvidia_driver_version": "latest"}, "is not a version of a driver; write one such as 440.33.01"),
        ("hal05", {"nvidia_driver_temperature_limit_celsius": 20}, "celsius (20; 40 to 110)"),
        ("hal05", {"nvidia_driver_wait_seconds": 0}, "nvidia_driver_wait_seconds (0; 1 to 600)"),
        ("hal05", {"nvidia_driver_memory_percent": 101}, "nvidia_driver_memory_percent (101; 50 to 100)"),
        ("hal05", {"nvidia_driver_reboot_timeout_seconds": 5}, "timeout_seconds (5; 60 to 7200)"),
        ("hal05", {"nvidia_driver_options": {"modeset": 1}}, "names begin with NVreg_"),
        ("hal05", {"nvidia_driver_options": {"NVreg_X": 'a"b'}}, "values have no quotes"),
        ("hal05", {"nvidia_driver_application_clocks": {"memory_mhz": 877, "graphics_mhz": 0}}, "both above 0"),
        ("hal05", {"nvidia_driver_version": "304.64"}, "nvidia_driver_version 304.64 for hal05: "),
    ],
)
def test_what_cannot_mean_anything_is_refused(
    tmp_path: Path, limit: str, variables: dict[str, Any], message: str
) -> None:
    done = validated(tmp_path, limit, **variables)
    assert done.returncode != 0
    assert message in " ".join(done.stdout.replace('\\"', '"').split()), done.stdout[-2000:]


# ---------------------------------------------------------------- before anything is changed
LOOK = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: nvidia_driver, tasks_from: look}
    - debug:
        msg:
          waits: "{{ __nvidia_driver_waiting | length > 0 }}"
          lost: "{{ __nvidia_driver_lost }}"
"""
JOBS = "jobs 4711 run here"


def observed(folder: Path, use: str, own: str = "", smi: str | None = None) -> subprocess.CompletedProcess[str]:
    """What the role finds where its programs print these lines. This machine has no GPUs: nothing is as declared.

    smi: what nvidia-smi does, as words of a shell.
    """
    asked = {} if smi is None else {"__nvidia_driver_query": ["/bin/sh", "-c", smi]}
    programs = {
        **asked,
        "__nvidia_driver_use_probe": ["/bin/echo", "-n", use],
        "__nvidia_driver_installer_probe": f"printf '{own}'",
    }
    return play_text(folder, LOOK, "hal05", sites=("hal",), ansible_python_interpreter=LOCAL, **programs)


def test_a_driver_in_use_waits_and_says_for_whom_and_with_what(tmp_path: Path) -> None:
    done = observed(tmp_path, JOBS)
    assert made(done) == {"waits": True, "lost": ""}
    assert (
        f"hal05: {JOBS}. Until that is over nothing of the GPU driver is changed here. These wait: driver is"
        in done.stdout
    )
    waits, unread = done.stdout.split("These wait")[1].split("Drain the node")[0].split("These could not be read: ")
    assert "persistence mode is on" in unread  # without nvidia-smi
    assert "persistence mode is on" not in waits
    assert "every declared GPU answers" not in waits + unread


def test_a_driver_that_nobody_uses_waits_for_nobody(tmp_path: Path) -> None:
    assert made(observed(tmp_path, "")) == {"waits": False, "lost": ""}


ROW = "{}, GPU-4d6a2b0{}, Tesla V100-SXM2-16GB, 16160, 40, Enabled, Default, Enabled, 0, No, 877, 1312, 440.33.01"
ROWS = "echo '" + "\n".join(ROW.format(index, index) for index in range(3)) + "'"
MORE = "echo '" + "\n".join(ROW.format(index, index) for index in range(5)) + "'"
HANDLE = "Unable to determine the device handle for GPU 0035:04:00.0: "


@pytest.mark.parametrize(
    ("smi", "lost"),
    [
        (f"{ROWS}; echo '{HANDLE}GPU is lost.  Reboot the system'; exit 15", "GPU 0035:04:00.0: GPU is"),
        (f"echo '{HANDLE}Unknown Error'; exit 255", "/bin/sh ended with status 255"),
        ("echo 'No devices were found'; exit 6", "No devices"),
        (ROWS, "GPUs are missing"),  # it was lost at boot
        (MORE, ""),  # none is lost
        # Another driver than the installed one is loaded, or none: a reboot brings all GPUs back, and that waits.
        ("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", ""),
    ],
)
def test_a_gpu_that_is_lost_is_not_waited_for(tmp_path: Path, smi: str, lost: str) -> None:
    done = observed(tmp_path, "process 4711 (python) uses a GPU", smi=smi)
    said = made(done)
    assert (said["waits"], said["lost"][: len(lost)] == lost, bool(said["lost"])) == (True, True, bool(lost)), said
    waiting = "Neither waiting nor a rollout brings them back: playbooks/reboot.yml -e reboot_nodes=hal05 drains"
    assert (waiting in done.stdout) == bool(lost)


def test_everything_that_changes_a_node_waits() -> None:
    """What the role does between looking and verifying."""
    tasks = yaml.safe_load((ROOT / "roles/nvidia_driver/tasks/main.yml").read_text())
    names = [task["name"] for task in tasks if task.get("when") == "__nvidia_driver_waiting | length == 0"]
    assert [task["name"] for task in tasks] == ["Validate", "Look before anything is changed", *names, "Verify"]


def test_a_driver_of_another_installer_is_refused(tmp_path: Path) -> None:
    done = observed(tmp_path, "", "driver 418.67, put here by a file")
    assert done.returncode != 0
    assert (
        "hal05 has driver 418.67, put here by a file. The packages of 440.33.01 would be put over its files"
        in done.stdout
    )


def test_every_promise_that_is_not_the_hardwares_waits() -> None:
    promised = yaml.safe_load((ROOT / "roles/nvidia_driver/expect.yml").read_text())
    ours = yaml.safe_load((ROOT / "roles/nvidia_driver/vars/main.yml").read_text())["__nvidia_driver_ours"]
    assert ours == [one["id"] for one in promised if one.get("finding") != "hardware"]
    assert {one["severity"] for one in promised} == {"warning"}  # a rollout goes on where they wait
