"""The closing line of make test: what counts as proven."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from running import stages
from running.stages import Outcome, Runner, Stage, same

from tests import flaky, reports, run

CASE = '<testcase classname="tests.a" name="%s"><skipped type="pytest.%s" message="%s"/></testcase>'
CASE_FAILED = '<testcase classname="tests.unit.tests.test_warm" name="c"><error/></testcase>'
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
    assert reports.counts(runner.outcomes[0]) == (0, 1, 0)
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
        path.with_suffix(".new").write_text(report)
    leave = f"mv '{tmp_path}/report.new' '{path}'" if path else ":"
    passed = runner.run(Stage("tests", ["sh", "-c", f"{leave}; exit {status}"], report=path))
    assert passed == (status == 0)
    assert reports.counts(runner.outcomes[0]) == counted


def test_what_skipped_is_told_with_its_reason(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "report.new").write_text(SKIPPED)
    runner.run(
        Stage("lint", ["true"]),
        Stage("silent", ["true"], report=tmp_path / "none.xml"),
        Stage("tests", ["mv", f"{tmp_path}/report.new", f"{tmp_path}/report.xml"], report=tmp_path / "report.xml"),
    )
    assert reports.skips(runner.outcomes) == ["skipped: 2 of tests.a.test_x: no veth"]


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
    started = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": folder}, stdout=subprocess.PIPE, text=True
    )
    for _ in range(3000):
        if noted.exists() and noted.read_text():
            break
        time.sleep(0.1)
    grandchild = int(noted.read_text())
    assert started.stdout is not None
    assert any(line.startswith("    long ") for line in started.stdout), "it says that it waits for it"
    started.send_signal(signal.SIGTERM)
    said, _nothing = started.communicate(timeout=300)
    assert started.returncode == 128 + signal.SIGTERM
    assert "interrupted: long" in said
    end = time.monotonic() + 300
    with suppress(FileNotFoundError, ProcessLookupError):  # gone, before or while it is read
        while ") Z " not in Path(f"/proc/{grandchild}/stat").read_text():  # nobody may have asked yet how it ended
            assert time.monotonic() < end, "it goes on"
            time.sleep(0.05)


def fails_once(folder: Path) -> list[str]:
    """A command that fails the first time."""
    return ["sh", "-c", f"echo try >>'{folder}/tries'; test $(wc -l <'{folder}/tries') -gt 1 || {{ echo no; exit 1; }}"]


def test_what_failed_and_then_passed_is_flaky_and_passes(
    runner: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runner.run(Stage("lucky", fails_once(tmp_path), again=same), Stage("after", ["true"]))
    lucky = next(outcome for outcome in runner.outcomes if outcome.stage.name == "lucky")
    assert lucky.flaky
    assert reports.counts(lucky) == (1, 0, 0)
    said = capsys.readouterr().out
    assert [line.split(" (")[0] for line in said.splitlines() if "lucky" in line and ".log" not in line] == [
        "... lucky",
        "FAILED lucky",
        "... lucky, once more",
        "flaky lucky",
    ]
    assert "lucky" in runner.table()
    assert runner.table().splitlines()[0].endswith("flaky")

    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    who = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["git", "-C", str(tmp_path), *who, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    kept = flaky.keep(tmp_path, lucky)
    first, second = (tmp_path / path for path in kept.split(", "))
    assert (first.read_text(), second.read_text()) == ("no\n", "")
    told = flaky.known(tmp_path)
    assert [(one["stage"], one["said"]) for one in told] == [("lucky", ["no"])]
    page = flaky.page("", told)
    assert "## lucky" in page
    assert flaky.page(page, []) == page, "what nobody has taken out stays"
    assert flaky.page(page, told).count("## lucky") == 2
    assert "None is known." in flaky.page(flaky.page("", []), [])


def test_what_fails_twice_has_failed(runner: Runner) -> None:
    assert not runner.run(Stage("broken", ["false"], again=same))
    assert [(outcome.passed, outcome.flaky) for outcome in runner.outcomes] == [(False, False)]


def test_what_would_say_nothing_new_is_not_run_again(runner: Runner, tmp_path: Path) -> None:
    assert not runner.run(Stage("linter", fails_once(tmp_path)))
    assert (tmp_path / "tries").read_text() == "try\n"


def test_tests_that_failed_are_run_again_by_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "REPORTS", tmp_path)
    stage = run.pytest("unit tests", "-n", "3", "--timeout=300", "tests/unit", "-m", "not slow")
    assert stage.report
    cases = (
        '<testcase classname="tests.unit.virtual_hal.running.test_stages" name="a"><failure/></testcase>'
        '<testcase classname="tests.unit.virtual_hal.test_clean" name="b"/>'
        '<testcase classname="tests.unit.tests.test_warm" name="c"><error/></testcase>'
    )
    numbers = 'tests="3" failures="1" errors="1" skipped="0"'
    stage.report.write_text(f"<testsuites><testsuite {numbers}>{cases}</testsuite></testsuites>")
    first = Outcome(stage, 1, 60.0, tmp_path / "7.log")
    again = run._failed_files(first)
    assert [*again.argv] == [
        *("pytest", f"--junitxml={tmp_path}/7-again.xml", "--timeout=300", "-m", "not slow"),
        *("tests/unit/tests/test_warm.py", "tests/unit/virtual_hal/running/test_stages.py"),
    ]
    assert again.report
    again.report.write_text('<testsuite tests="2" failures="0" errors="0" skipped="0"/>')
    assert reports.counts(Outcome(again, 0, 1.0, tmp_path / "8.log", first)) == (4, 0, 0), "what passed at first counts"

    assert run._failed_files(replace(first, status=2)) == stage, "pytest did not come to its end: all of them"
    for text in (f"<testsuite>{CASE_FAILED * reports.MOST_FAILURES}</testsuite>", "<testsuite><testca"):
        stage.report.write_text(text)
        assert run._failed_files(first) == stage, "it gave up: nobody knows what the others would say"
    stage.report.unlink()
    assert run._failed_files(first) == stage


def test_a_stage_that_would_end_too_late_is_left_out(runner: Runner) -> None:
    stages_in_order = [
        Stage("quick", ["true"]),
        Stage("long", ["true"], seconds=1000),
        Stage("short", ["true"], seconds=5),
    ]
    assert runner.run(*stages_in_order, within=500)
    assert [outcome.stage.name for outcome in runner.outcomes] == ["quick", "short"]


def test_what_does_not_say_how_long_it_takes_is_run_however_late_it_is(runner: Runner) -> None:
    assert not runner.run(Stage("unit tests", ["false"]), Stage("scenario", ["true"], seconds=1), within=0)
    assert [(outcome.stage.name, outcome.passed) for outcome in runner.outcomes] == [("unit tests", False)]


def test_a_report_of_the_first_try_is_not_the_second_ones(runner: Runner, tmp_path: Path) -> None:
    report, tried = tmp_path / "report.xml", tmp_path / "tried"
    writes_once = f"test -e '{tried}' || {{ touch '{tried}'; echo '<testsuite/>' >'{report}'; exit 1; }}"
    assert not runner.run(Stage("tests", ["sh", "-c", writes_once], report=report, again=same))
    assert runner.outcomes[0].silent


def test_what_uses_everything_runs_alone(runner: Runner, tmp_path: Path) -> None:
    alone = ["sh", "-c", f"cd '{tmp_path}' && test $(ls running 2>/dev/null | wc -l) = 0"]
    other = ["sh", "-c", f"cd '{tmp_path}' && mkdir -p running/$$ && sleep 0.5 && rmdir running/$$"]
    others = [Stage(f"other {number}", other) for number in range(4)]
    assert runner.run(*others[:2], Stage("whole", alone, uses=stages.EVERYTHING), *others[2:], side_by_side=3)
    assert len(runner.outcomes) == 5


def test_two_stages_never_use_one_thing_at_once(runner: Runner, tmp_path: Path) -> None:
    # Each waits for the one that uses something else: that one is not held up.
    alone = ["sh", "-c", f"cd '{tmp_path}' && mkdir used && until test -e beside; do sleep 0.1; done && rmdir used"]
    same_nodes = [Stage(f"rollout {number}", alone, uses="nodes") for number in range(3)]
    assert runner.run(*same_nodes, Stage("other", ["touch", f"{tmp_path}/beside"], uses="others"), side_by_side=3)
    ended = [outcome.stage.name for outcome in runner.outcomes]
    assert [name for name in ended if name != "other"] == ["rollout 0", "rollout 1", "rollout 2"]
