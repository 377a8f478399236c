"""The homes are timed each minute; a server that stops is told, and nobody waits for it."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testinfra.host import Host
from testing.promises import Rollout
from testing.waiting import wait_for

PROBE = "/usr/sbin/hal-file-system-probe"
LAST = "/run/hal-file-system-probe/last.influx"
STATE = "/run/hal-file-system-probe/state.json"
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))


@pytest.fixture
def login(node: Node) -> Host:
    return node("hal-login")


@pytest.fixture
def hung(login: Host) -> Iterator[Host]:
    """The homes' server does not run any more; it goes on after the test."""
    login.check_output("pkill -STOP -x bindfs")
    yield login
    login.check_output("pkill -CONT -x bindfs")
    wait_for("the child", lambda: children(login), lambda found: not found)
    login.check_output("systemctl start hal-file-system-probe.service")


def status(host: Host) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(host.check_output(f"{PROBE} --status"))
    return found


def children(host: Host) -> list[str]:
    """Processes of the probe that are there between two questions."""
    return str(host.run("pgrep -f 'file_system_probe.py --once'").stdout).split()


def test_the_homes_are_timed_each_minute(login: Host) -> None:
    timer = login.service("hal-file-system-probe.timer")
    assert timer.is_enabled
    assert timer.is_running
    shown = login.check_output("systemctl show --property TimersMonotonic hal-file-system-probe.timer")
    assert "OnUnitActiveUSec=1min" in shown
    found = status(login)
    assert (found["path"], found["entries"], found["error"]) == ("/home", 3, "none")
    assert found["age_seconds"] < 120
    assert login.check_output("systemctl show --property Result hal-file-system-probe.service") == "Result=success"


def test_the_timer_asks_again_by_itself(login: Host) -> None:
    """Two questions of the timer are a minute apart; this one is at its turn to come within that."""
    before = status(login)["at"]
    login.check_output("systemctl restart hal-file-system-probe.timer")
    assert wait_for("the next result", lambda: status(login)["at"], lambda at: at > before, seconds=75) > before


def test_everybody_reads_the_last_result_in_line_protocol(login: Host) -> None:
    line = login.check_output(f"runuser -u alice -- cat {LAST}")
    form = (
        r"file_system_probe,file_system=home,path=/home list_ms=[\d.]+,stat_ms=[\d.]+,"
        r"entries=3i,timed_out=false,hung_seconds=0i,error=\"none\" \d{19}"
    )
    assert re.fullmatch(form, line), line
    assert login.check_output(f"runuser -u alice -- {PROBE} --last") == line
    assert login.run(f"runuser -u alice -- {PROBE} --once").rc == 1, "a user's result would not be kept"
    assert login.file(STATE).user == "root"
    assert login.file(STATE).mode == 0o644


def test_a_file_system_that_hangs_holds_nobody(hung: Host, rollout: Rollout) -> None:
    begun = time.monotonic()
    line = hung.check_output(f"timeout 30 {PROBE} --once | cat")
    assert 10 <= time.monotonic() - begun < 20
    assert "timed_out=true,hung_seconds=10i" in line
    waiting = children(hung)
    assert len(waiting) == 1

    begun = time.monotonic()
    hung.check_output("systemctl start hal-file-system-probe.service")
    assert time.monotonic() - begun < 8
    assert children(hung) == waiting, "no second one"
    assert status(hung)["hung_seconds"] >= 10
    unit = hung.check_output("systemctl show --property ActiveState,Result hal-file-system-probe.service").split()
    assert sorted(unit) == ["ActiveState=inactive", "Result=success"]
    assert hung.run("timeout 2 ls /home").rc == 124, "it does hang"

    broken = rollout.broken_promises("file_system_probe", "hal-login")
    assert broken == ["file system answers"]
    result = rollout.promises("file_system_probe", "hal-login")["file system answers"]
    assert (result["status"], result["severity"]) == ("fail", "warning")
    # A rollout neither hangs nor fails.
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert "file_system_probe: file system answers: expected equal false, observed true" in done.words


def test_when_it_answers_again_that_is_told(login: Host, rollout: Rollout) -> None:
    journal = login.check_output("journalctl --no-pager --unit hal-file-system-probe.service --output cat")
    assert "/home answers again; before: timeout" in journal
    assert status(login)["timed_out"] is False
    # The hang counts as slow until it is no longer among the last five.
    assert status(login)["list_median_ms"] == 10000
    for _ in range(5):
        login.check_output(f"{PROBE} --once")
    assert rollout.broken_promises("file_system_probe", "hal-login") == []


def test_slow_is_the_median_of_five(login: Host, rollout: Rollout) -> None:
    login.check_output("systemctl stop hal-file-system-probe.timer")
    before = login.check_output(f"cat {STATE}")

    def broken(*list_ms: float) -> list[str]:
        """What does not hold when these were the last listings but the newest."""
        found = json.loads(before)
        found["recent"] = [[one, 0.1] for one in list_ms]
        login.check_output(f"cat >{STATE} <<'END'\n{json.dumps(found)}\nEND")
        login.check_output(f"{PROBE} --once")
        return rollout.broken_promises("file_system_probe", "hal-login")

    try:
        assert broken(1, 1, 40000, 40000) == ["homes are asked each minute [running]"]
        found = broken(1, 40000, 40000, 40000)
        assert found == ["homes are asked each minute [running]", "listing of homes is not slow"]
    finally:
        login.check_output(f"cat >{STATE} <<'END'\n{before}\nEND")
        login.check_output("systemctl start hal-file-system-probe.timer")


def test_an_old_result_is_not_fine(login: Host, rollout: Rollout) -> None:
    login.check_output("systemctl stop hal-file-system-probe.timer")
    found = json.loads(login.check_output(f"cat {STATE}"))
    found["uptime"] -= 200
    login.check_output(f"cat >{STATE} <<'END'\n{json.dumps(found)}\nEND")
    login.check_output("systemctl disable --quiet hal-file-system-probe.timer")
    assert rollout.broken_promises("file_system_probe", "hal-login") == [
        "homes are asked each minute [enabled]",
        "homes are asked each minute [running]",
        "last result is fresh",
    ]
    login.check_output(f"rm {STATE}")
    assert rollout.promises("file_system_probe", "hal-login")["last result is fresh"]["status"] == "unknown"
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert rollout.broken_promises("file_system_probe", "hal-login") == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"file_system_probe_file_system": "transfer"}, "hal-login mounts home (file_systems in cluster.yml)"),
        ({"file_system_probe_path": "/homes"}, "it has to be /home, where home is mounted, or a folder below"),
        ({"file_system_probe_timeout_seconds": 31}, "file_system_probe_timeout_seconds is 31: 1 to half of that"),
        ({"file_system_probe_factor": 1}, "file_system_probe_factor is 1: above 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    rollout: Rollout, login: Host, wrong: dict[str, Any], words: str
) -> None:
    before = login.check_output("cat /etc/hal/file_system_probe.json")
    done = rollout.converge(**wrong)
    assert done.status != 0
    assert words in done.words
    assert login.check_output("cat /etc/hal/file_system_probe.json") == before
