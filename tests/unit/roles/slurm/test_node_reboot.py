"""hal-node-reboot, Slurm's RebootProgram: off when the server says "reimage", a reboot in every other case.

curl, systemctl and logger are programs that write down what they were given.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from jinja2 import Environment, StrictUndefined

TEMPLATE = Path(__file__).resolve().parents[4] / "roles/slurm/templates/hal-node-reboot.j2"
SERVER = "http://10.64.0.11:8480"
URL = f"{SERVER}/node/hal05/reboot"


def quote(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def reboot(folder: Path, curl: str, *, server: str = SERVER) -> list[str]:
    """Run the program with a curl of these lines of shell; return what the other programs were given."""
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    environment.filters["quote"] = quote
    text = environment.from_string(TEMPLATE.read_text()).render(slurm_reboot_server=server, hal_node={"name": "hal05"})
    program = folder / "hal-node-reboot"
    program.write_text(text)
    told = folder / "told"
    told.write_text("")
    for name, body in {
        "curl": f'echo "curl $*" >>{told}\n{curl}',
        "systemctl": f'echo "systemctl $*" >>{told}',
        "logger": f'echo "logger $*" >>{told}; exit 1',  # that it cannot be said changes nothing
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    path = f"{folder}{os.pathsep}{os.defpath}"
    done = subprocess.run(["sh", program], capture_output=True, text=True, env={"PATH": path}, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return told.read_text().splitlines()


def test_a_reimage_switches_the_machine_off(tmp_path: Path) -> None:
    assert reboot(tmp_path, "echo reimage") == [
        f"curl --silent --fail --max-time 5 --noproxy * {URL}",
        f"logger -t hal-node-reboot reimage: off, {URL} says so",
        "systemctl poweroff",
    ]


@pytest.mark.parametrize(
    ("curl", "answer"),
    [
        ("echo reboot", "reboot"),
        ("echo reimaged", "reimaged"),
        ("echo; echo reimage; echo and more", None),
        ("echo reimage; exit 22", None),  # --fail, or the connection broke
        ("exit 7", ""),
        ("exit 28", ""),
        ("echo '$(systemctl poweroff)'", None),
    ],
)
def test_everything_else_is_a_reboot(tmp_path: Path, curl: str, answer: str | None) -> None:
    told = reboot(tmp_path, curl)
    assert [line for line in told if line.startswith("systemctl")] == ["systemctl reboot"]
    if answer is not None:
        assert f"logger -t hal-node-reboot reboot: {URL} says '{answer}'" in told


def test_a_site_without_a_server_reboots_and_asks_nobody(tmp_path: Path) -> None:
    assert reboot(tmp_path, "echo reimage", server="") == [
        "logger -t hal-node-reboot reboot: no server to ask says ''",
        "systemctl reboot",
    ]
