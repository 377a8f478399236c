"""One question as a whole: what is known afterwards, which files say so, and what is said when there is no place."""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ANSWER = {"list_ms": 3.0, "stat_ms": 0.5, "entries": 7}
NONE = {"list_ms": None, "stat_ms": None, "entries": None, "timed_out": False, "hung_seconds": 0, "error": "none"}


@pytest.fixture
def probe(program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A probe of a mounted file system that answers; it is 1000 s after the boot."""
    monkeypatch.setattr(program, "uptime", lambda: 1000.9)
    monkeypatch.setattr(program.time, "time", lambda: 1_700_000_000.5)
    monkeypatch.setattr(program, "is_mounted", lambda mount: mount == "/m")
    config = {"path": "/m/home", "mount": "/m", "file_system": "home", "run_dir": str(tmp_path / "run"),
              "timeout_seconds": 4.0, "keep": 3}  # fmt: skip
    made = program.Probe(config)
    monkeypatch.setattr(made, "_ask", lambda: dict(ANSWER))
    return made


def plain(**changes: Any) -> dict[str, Any]:
    known = {"at": 1_700_000_000.5, "uptime": 1000.9, "file_system": "home", "path": "/m/home"}
    return {**known, **NONE, "recent": [], "list_median_ms": None, "stat_median_ms": None, **changes}


def test_an_answer_is_kept_as_a_state_and_as_a_line(program: Any, probe: Any, tmp_path: Path) -> None:
    state = plain(**ANSWER, recent=[[3.0, 0.5]], list_median_ms=3.0, stat_median_ms=0.5)
    before = os.umask(0)
    try:
        assert probe.once() == state
    finally:
        os.umask(before)
    run = tmp_path / "run"
    assert (run / "state.json").read_text() == json.dumps(state, sort_keys=True) + "\n"
    assert (run / "last.influx").read_text() == program.line_of(state) == probe.last()
    assert (stat.S_IMODE(run.stat().st_mode), sorted(os.listdir(run))) == (0o755, ["last.influx", "lock", "state.json"])
    assert probe.status() == {**{name: value for name, value in state.items() if name != "uptime"}, "age_seconds": 0.0}


def test_of_the_last_results_the_medians_are_each_of_its_own_kind(probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for listed, looked in ((9.0, 0.1), (1.0, 0.9), (5.0, 0.5), (7.0, 0.2)):
        monkeypatch.setattr(probe, "_ask", lambda one=listed, two=looked: {**ANSWER, "list_ms": one, "stat_ms": two})
        state = probe.once()
    assert state["recent"] == [[1.0, 0.9], [5.0, 0.5], [7.0, 0.2]]
    assert (state["list_median_ms"], state["stat_median_ms"]) == (5.0, 0.5)
    probe.path = "/m/other"
    assert probe.once()["recent"] == [[7.0, 0.2]]


def test_a_child_that_still_hangs_is_asked_about_and_no_second_one(
    program: Any, probe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/child.json").write_text('{"pid": 5, "started": 6, "since": 900.5}')
    monkeypatch.setattr(program, "is_alive", lambda child: child == {"pid": 5, "started": 6, "since": 900.5})
    monkeypatch.setattr(program, "is_mounted", lambda _: False)
    monkeypatch.setattr(probe, "_ask", lambda: pytest.fail("asked"))
    slow = {"recent": [[4000.0, 4000.0]], "list_median_ms": 4000.0, "stat_median_ms": 4000.0}
    state = plain(timed_out=True, error="timeout", hung_seconds=100, **slow)
    assert probe.once() == state
    assert probe.once()["recent"] == [[4000.0, 4000.0]] * 2
    assert capsys.readouterr().err == "/m/home: does not answer\n", "told once"


def test_what_is_not_mounted_is_not_asked_and_does_not_count(
    program: Any, probe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = probe.once()
    monkeypatch.setattr(program, "is_mounted", lambda _: False)
    monkeypatch.setattr(probe, "_ask", lambda: pytest.fail("asked"))
    kept = {name: known[name] for name in ("recent", "list_median_ms", "stat_median_ms")}
    assert probe.once() == plain(error="not_mounted", **kept)


def test_who_asks_waits_a_little_longer_than_another_may_take(
    program: Any, probe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    @contextmanager
    def locked(*given: Any) -> Any:
        asked.append(given)
        yield

    monkeypatch.setattr(program, "locked", locked)
    probe.once()
    assert asked == [(str(tmp_path / "run/lock"), program.Problem, 9.0, "the probe")]


def test_without_a_place_for_results_that_is_said(
    program: Any, probe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(program.Problem, match=rf"^{re.escape(str(tmp_path))}/run: File exists$"):
        probe.once()

    def odd() -> None:
        raise OSError("odd")

    (tmp_path / "run").unlink()
    monkeypatch.setattr(probe, "_once", odd)
    with pytest.raises(program.Problem, match=rf"^{re.escape(str(tmp_path))}/run: odd$"):
        probe.once()
    for read, said in (
        (probe.status, "state.json: no result yet"),
        (probe.last, "last.influx: No such file or directory"),
    ):
        with pytest.raises(program.Problem, match=rf"^{re.escape(str(tmp_path))}/run/{re.escape(said)}$"):
            read()


def test_each_option_prints_its_own(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"path": "/", "run_dir": "/r", "timeout_seconds": "2", "keep": "3"}')
    made: list[Any] = []

    def once(self: Any) -> str:
        made.append(self.config)
        return "state"

    monkeypatch.setattr(program.Probe, "once", once)
    monkeypatch.setattr(program.Probe, "last", lambda _: "last ü\n")
    monkeypatch.setattr(program.Probe, "status", lambda _: {"b": 1, "a": None})
    monkeypatch.setattr(program, "line_of", lambda state: f"line of {state}\n")
    printed = []
    for option in ("--once", "--last", "--status"):
        assert program.main([option, "--config", str(config)]) == 0
        printed.append(capsys.readouterr())
    assert printed == [("line of state\n", ""), ("last ü\n", ""), ('{\n "a": null,\n "b": 1\n}\n', "")]
    assert [(one["keep"], type(one["keep"]), one["timeout_seconds"]) for one in made] == [(3, int, 2.0)]
    assert program.main(["--last", "--config", str(tmp_path / "none")]) == 1
    assert capsys.readouterr() == ("", f"{tmp_path}/none cannot be read\n")
    for words in ([], ["--once", "--last"]):
        with pytest.raises(SystemExit):
            program.main(words)
