"""Units that nothing starts, that end too early, or that take from jobs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import units

FOLDER = "roles/time/templates"
GOOD = """
    [Unit]
    Description=Good
    [Service]
    Type=oneshot
    ExecStart=/usr/sbin/chronyd -q
    Nice=19
    IOSchedulingClass=idle
    """
TIMER = """
    [Unit]
    Description=Good
    [Timer]
    OnCalendar=Sun *-*-* 04:00:00
    Persistent=true
    [Install]
    WantedBy=timers.target
    """


def without(text: str, *lines: str) -> str:
    """The text without the lines that begin so."""
    return "\n".join(line for line in text.splitlines() if not line.strip().startswith(lines)) + "\n"


PLANTED = (
    Planted(
        units.services_are_whole,
        {
            f"{FOLDER}/good.service.j2": GOOD,
            f"{FOLDER}/good.timer.j2": TIMER,
            f"{FOLDER}/bare.service.j2": without(GOOD, "Description", "ExecStart", "Nice"),
            f"{FOLDER}/bare.timer.j2": TIMER,
            f"{FOLDER}/daemon.service.j2": without(GOOD, "Type", "Nice", "IOSchedulingClass"),
            f"{FOLDER}/boot.service.j2": without(GOOD, "Nice") + "    [Install]\n    WantedBy=multi-user.target\n",
            f"{FOLDER}/each@.service.j2": GOOD,
        },
        [
            f"{FOLDER}/bare.service.j2:1: no Description; say what it is for",
            f"{FOLDER}/bare.service.j2:2: no ExecStart",
            f"{FOLDER}/bare.service.j2:2: no Nice: it works by the way, and jobs come first",
            f"{FOLDER}/daemon.service.j2:3: no Type=oneshot, so a daemon: Restart says what becomes of it",
            f"{FOLDER}/daemon.service.j2:3: nothing starts it: neither WantedBy nor a timer or path of its name",
        ],
    ),
    Planted(
        units.timers_go_on,
        {
            f"{FOLDER}/good.timer.j2": TIMER,
            f"{FOLDER}/missed.timer.j2": without(TIMER, "Persistent"),
            f"{FOLDER}/hand.timer.j2": without(TIMER, "[Install]", "WantedBy"),
            f"{FOLDER}/once.timer.j2": TIMER.replace("OnCalendar=Sun *-*-* 04:00:00", "OnBootSec=60"),
            f"{FOLDER}/again.timer.j2": TIMER.replace(
                "OnCalendar=Sun *-*-* 04:00:00", "OnBootSec=1\n    OnUnitActiveSec=2"
            ),
        },
        [
            f"{FOLDER}/hand.timer.j2:3: no WantedBy=timers.target: it does not start at boot",
            f"{FOLDER}/missed.timer.j2:3: no Persistent=true: what a node that was off has missed is left out",
            f"{FOLDER}/once.timer.j2:3: neither OnCalendar nor OnBootSec with OnUnitActiveSec: it ends",
        ],
    ),
    Planted(
        units.programs_of_units_are_there,
        {
            f"{FOLDER}/good.service.j2": GOOD,
            f"{FOLDER}/lost.service.j2": GOOD.replace("/usr/sbin/chronyd", "/usr/sbin/hal-lost"),
            f"{FOLDER}/slurmd.unit.conf.j2": "[Service]\nExecStartPre=-/usr/sbin/hal-gone x\n",
        },
        [
            f"{FOLDER}/lost.service.j2:5: /usr/sbin/hal-lost: no role writes it, no package brings it",
            f"{FOLDER}/slurmd.unit.conf.j2:2: /usr/sbin/hal-gone: no role writes it, no package brings it",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="only systemd itself knows its times")
def test_systemd_is_asked_about_times(tmp_path: Path) -> None:
    path = tmp_path / FOLDER / "odd.timer.j2"
    path.parent.mkdir(parents=True)
    path.write_text("[Timer]\nOnCalendar=Someday 04:00\nPersistent=true\n[Install]\nWantedBy=timers.target\n")
    (found,) = units.timers_go_on(tmp_path)
    assert found.startswith(f"{FOLDER}/odd.timer.j2:2: OnCalendar=Someday 04:00: ")
