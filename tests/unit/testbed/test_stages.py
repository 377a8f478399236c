"""The closing line of make test: what counts as proven."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import stages
from stages import Runner, Stage

from tests.run import counts, skips

CASE = '<testcase classname="tests.a" name="%s"><skipped type="pytest.%s" message="%s"/></testcase>'
CASES = (("test_x[1]", "skip", "no veth"), ("test_x[2]", "skip", "no veth"), ("test_y", "xfail", "known"))
SKIPPED = f"<testsuites><testsuite>{''.join(CASE % one for one in CASES)}</testsuite></testsuites>"
REPORT = """<testsuites><testsuite tests="5" failures="1" errors="1" skipped="1"/></testsuites>"""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """A runner whose logs are not those of this project."""
    monkeypatch.setattr(stages, "PROJECT", tmp_path)
    return Runner("unit")


def test_a_stage_that_leaves_no_report_has_failed(
    runner: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not runner.run(Stage("quiet tests", ["true"], report=tmp_path / "report.xml"))
    assert counts(runner.outcomes[0]) == (0, 1, 0)
    assert "FAILED" in runner.table()
    assert "left no report of what it tested" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "report", "counted"),
    [
        (0, None, (1, 0, 0)),
        (3, None, (0, 1, 0)),
        (1, REPORT, (2, 2, 1)),
        (1, '<testsuite tests="4" failures="0" errors="0" skipped="0"/>', (4, 1, 0)),
        (0, '<testsuite tests="4" failures="0" errors="0" skipped="1"/>', (4, 0, 1)),
    ],
)
def test_a_stage_counts_itself_and_its_tests(
    runner: Runner, tmp_path: Path, status: int, report: str | None, counted: tuple[int, int, int]
) -> None:
    path = tmp_path / "report.xml" if report else None
    if path and report:
        path.write_text(report)
    passed = runner.run(Stage("tests", [sys.executable, "-c", f"raise SystemExit({status})"], report=path))
    assert passed == (status == 0)
    assert counts(runner.outcomes[0]) == counted


def test_what_skipped_is_told_with_its_reason(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(SKIPPED)
    runner.run(
        Stage("lint", ["true"]),
        Stage("silent", ["true"], report=tmp_path / "none.xml"),
        Stage("tests", ["true"], report=tmp_path / "report.xml"),
    )
    assert skips(runner.outcomes) == ["skipped: 2 of tests.a.test_x: no veth"]


def test_a_failed_stage_shows_what_ansible_said_before_the_end() -> None:
    said = ["TASK [Make the containers]", "fatal: [localhost]: FAILED! => ", "    msg: subnet in use", ""]
    after = [f"line {number}" for number in range(stages.TAIL_LINES)]
    assert stages.excerpt("\n".join([*said, *after])) == [*said[1:3], "[...]", *after]
    assert stages.excerpt("\n".join([*said, "RECAP"])) == [*said, "RECAP"]


def test_a_run_that_is_stopped_stops_what_it_started(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    program = (
        f"import stages; stages.PROJECT, stages.HEARTBEAT_SECONDS = stages.Path({str(tmp_path)!r}), 0;"
        "from stages import Runner, Stage;"
        f"Runner('unit').run(Stage('long', ['sh', '-c', 'sh -c \"echo \\$\\$ >{noted}; sleep 300\"; :']))"
    )
    folder = str(Path(stages.__file__).parent)
    run = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": folder}, stdout=subprocess.PIPE, text=True
    )
    for _ in range(600):
        if noted.exists() and noted.read_text():
            break
        time.sleep(0.1)
    grandchild = int(noted.read_text())
    assert run.stdout is not None
    assert any(line.startswith("    long ") for line in run.stdout), "it says that it waits for it"
    run.send_signal(signal.SIGTERM)
    said, _nothing = run.communicate(timeout=30)
    assert run.returncode == 128 + signal.SIGTERM
    assert "interrupted: long" in said
    end = time.monotonic() + 60
    with suppress(FileNotFoundError, ProcessLookupError):  # gone, before or while it is read
        while ") Z " not in Path(f"/proc/{grandchild}/stat").read_text():  # nobody may have asked yet how it ended
            assert time.monotonic() < end, "it goes on"
            time.sleep(0.05)
