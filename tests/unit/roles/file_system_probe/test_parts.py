"""What the probe makes of a measurement: words, numbers and files, to the last character."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

STATE: dict[str, Any] = {
    "at": 1_700_000_000.25, "file_system": "home", "path": "/home", "list_ms": 1.5, "stat_ms": 0.25, "entries": 3,
    "timed_out": False, "hung_seconds": 0, "error": "none",
}  # fmt: skip


def test_a_state_is_a_line_and_what_was_not_measured_has_no_field(program: Any) -> None:
    assert program.line_of(STATE) == (
        "hal_file_system_probe,file_system=home,path=/home list_ms=1.5,stat_ms=0.25,entries=3i,timed_out=false,"
        'hung_seconds=0i,error="none" 1700000000250000000\n'
    ).replace("hal_file_system_probe", program.MEASUREMENT)
    hung = {**STATE, "list_ms": None, "stat_ms": None, "entries": None, "timed_out": True, "hung_seconds": 7}
    line = program.line_of({**hung, "error": 'a"b\\c', "file_system": "a b,c=d\ne", "path": "/x\\"})
    assert line.startswith(f"{program.MEASUREMENT},file_system=a\\ b\\,c\\=d\\ e,path=/x/ timed_out=true,")
    assert 'hung_seconds=7i,error="a\\"b\\\\c" 1700' in line
    zero = program.line_of({**STATE, "list_ms": 0.0, "entries": 0})
    assert " list_ms=0.0,stat_ms=0.25,entries=0i," in zero


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ({}, "none", ""),
        ({"error": "none"}, "none", ""),
        ({"error": "timeout"}, "timeout", ""),
        ({}, "timeout", "/home: does not answer\n"),
        ({"error": "none"}, "ENOENT", "/home: ENOENT\n"),
        ({"error": "timeout"}, "ENOENT", "/home: ENOENT\n"),
        ({"error": "timeout"}, "none", "/home answers again; before: timeout\n"),
    ],
)
def test_the_journal_hears_of_a_beginning_and_of_an_end(
    program: Any, capsys: pytest.CaptureFixture[str], before: dict[str, str], now: str, said: str
) -> None:
    program._tell(before, {**STATE, "error": now})
    assert capsys.readouterr().err == said


def test_times_are_thousandths_of_seconds_by_a_clock_that_goes_on(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    moments = iter([10.0, 10.25, 10.375] * 4 + [10.0, 9.0, 8.0])
    lstat = os.lstat
    monkeypatch.setattr(program.time, "monotonic", lambda: next(moments))
    monkeypatch.setattr(program.os, "listdir", lambda path: ["a", "b"] if path == str(tmp_path) else [])

    def looked(path: str) -> os.stat_result:
        asked.append(path)
        return lstat(tmp_path)

    monkeypatch.setattr(program.os, "lstat", looked)
    wanted = {"list_ms": 250.0, "stat_ms": 125.0, "entries": 2}
    for turn in (0, 1, 2):
        assert program.measure(str(tmp_path), turn) == wanted
    assert program.measure("/empty", 1) == {**wanted, "entries": 0}
    assert asked == [f"{tmp_path}/a", f"{tmp_path}/b", f"{tmp_path}/a", "/empty"]
    assert program.measure("/empty", 1) == {"list_ms": 0.0, "stat_ms": 0.0, "entries": 0}, "a clock that was set"


@pytest.mark.parametrize(("number", "raised"), [(2, False), (5, True), (13, True)])
def test_an_entry_that_is_gone_by_now_was_an_answer_and_other_refusals_are_not(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, raised: bool
) -> None:
    def refuse(path: str) -> Any:
        raise OSError(number, "said")

    (tmp_path / "a").mkdir()
    monkeypatch.setattr(program.os, "lstat", refuse)
    if raised:
        with pytest.raises(OSError, match="said"):
            program.measure(str(tmp_path), 0)
    else:
        assert program.measure(str(tmp_path), 0)["entries"] == 1


def test_a_timeout_counts_as_the_timeout_and_a_refusal_as_nothing(program: Any, tmp_path: Path) -> None:
    probe = program.Probe({"path": "/home", "run_dir": str(tmp_path), "timeout_seconds": 2.5, "keep": 2})
    assert probe._with([[1.0, 1.0]], {**STATE, "timed_out": True}) == [[1.0, 1.0], [2500.0, 2500.0]]
    assert probe._with([[9.0, 9.0], [1.0, 1.0]], STATE) == [[1.0, 1.0], [1.5, 0.25]]
    assert probe._with([[9.0, 9.0]], {**STATE, "list_ms": None}) == [[9.0, 9.0]]
    assert probe._with([], {**STATE, "list_ms": 0.0}) == [[0.0, 0.25]]


def test_a_file_is_replaced_and_everybody_may_read_it(program: Any, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    before = os.umask(0o077)
    try:
        program.save(str(path), '{"a": "ü"}')
    finally:
        os.umask(before)
    assert (program.load(str(path)), stat.S_IMODE(path.stat().st_mode)) == ({"a": "ü"}, 0o644)
    assert [one.name for one in tmp_path.iterdir()] == ["state.json"]
    path.write_text("{")
    assert program.load(str(path)) is None
    assert program.load(str(tmp_path / "none")) is None


def test_settings_are_numbers_where_they_have_to_be(program: Any, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"timeout_seconds": "2.5", "keep": "5", "path": "7"}))
    assert program.configuration(str(path)) == {"timeout_seconds": 2.5, "keep": 5.0, "path": "7"}
    with pytest.raises(program.Problem) as refused:
        program.configuration(str(tmp_path / "none"))
    assert str(refused.value) == f"{tmp_path}/none cannot be read"


def test_the_age_of_a_result_is_by_the_clock_that_nobody_sets(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = program.Probe({"path": "/home", "run_dir": str(tmp_path)})
    monkeypatch.setattr(program, "uptime", lambda: 107.26)
    (tmp_path / "state.json").write_text(json.dumps({"uptime": 100.0, "error": "none"}))
    assert probe.status() == {"error": "none", "age_seconds": 7.3}


def test_what_a_process_is_stands_behind_its_name(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [b"S", *(b"%d" % number for number in range(1, 30))]
    monkeypatch.setattr(
        program, "_stat", lambda pid: {7: fields, 8: [b"Z", *fields[1:]], 9: [b"X", *fields[1:]]}.get(pid)
    )
    assert [program.started(pid) for pid in (7, 8, 10)] == [19, 19, 0]
    child = {"pid": 7, "started": 19}
    assert program.is_alive(child)
    assert not program.is_alive({**child, "started": 18})
    assert [program.is_alive({**child, "pid": pid}) for pid in (8, 9, 10)] == [False] * 3


def test_names_of_the_kernel_s_list_are_read_with_their_blanks(program: Any) -> None:
    assert program._plain(b"/a\\040b\\134c\\011") == b"/a b\\c\t"
