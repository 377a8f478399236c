"""The role's program at boot, at a build and at what it remembers; and how commands are started."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from hal_node.scale import ask as hal_scale_ask
from tests.unit.plugins.modules.test_hal_scale_config import PROGRAM, load, write

HEADER = "mmgetstate::HEADER:version:reserved:reserved:nodeName:nodeNumber:state:"


class Asked:
    """Questions, and how long was waited between them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, float]] = []
        self.pauses: list[float] = []
        self.state = "active"


@pytest.fixture
def bin_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hal_scale_ask, "FOLDER", str(tmp_path))
    return tmp_path


@pytest.fixture
def program(bin_dir: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program, where nothing is mounted but what a test writes into `mounts`."""
    module = load(PROGRAM)
    (bin_dir / "mounts").touch()
    monkeypatch.setattr(module, "mounted", lambda: set((bin_dir / "mounts").read_text().split()))
    write(bin_dir / "mmgetstate", f"echo '{HEADER}'; echo 'mmgetstate::0:1:::hal01:4:active:'")
    return module


def test_what_is_missing_is_mounted_and_nothing_else(program: ModuleType, bin_dir: Path) -> None:
    (bin_dir / "mounts").write_text("/home\n")
    write(bin_dir / "mmmount", f'echo "$@" >>{bin_dir}/asked; echo /data >>{bin_dir}/mounts')
    assert program.main(["mount", "60", "home=/home", "data=/data"]) == 0
    assert (bin_dir / "asked").read_text() == "data\n"


def test_what_is_mounted_is_not_asked_about(program: ModuleType, bin_dir: Path) -> None:
    (bin_dir / "mounts").write_text("/home\n")
    write(bin_dir / "mmgetstate", f"touch {bin_dir}/asked")
    assert program.main(["mount", "0", "home=/home"]) == 0
    assert not (bin_dir / "asked").exists()


def test_without_time_nothing_is_asked_and_all_that_is_missing_is_named(
    program: ModuleType, bin_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(bin_dir / "mmgetstate", f"touch {bin_dir}/asked")
    assert program.main(["mount", "0", "home=/home", "data=/a=b"]) == 1
    assert capsys.readouterr() == ("", "not mounted after 0 s: home data\n")
    assert not (bin_dir / "asked").exists()


@pytest.fixture
def asked(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What is asked, with the seconds that each may take, by a clock that only pauses move: 40 s each."""
    clock, found = [1000.0], Asked()

    def ask(argv: list[str], seconds: float) -> str:
        found.calls.append((" ".join(argv), seconds))
        if argv[0] == "mmmount":
            raise hal_scale_ask.ScaleError(f"no disks of {argv[1]}")
        return f"{HEADER}\nmmgetstate::0:1:::hal01:4:{found.state}:\n"

    def pause(seconds: float) -> None:
        found.pauses.append(seconds)
        clock[0] += 40

    monkeypatch.setattr(program, "ask", ask)
    monkeypatch.setattr(program, "time", SimpleNamespace(time=lambda: clock[0], sleep=pause))
    return found


def test_a_mount_is_tried_until_the_time_is_over_and_the_last_words_are_said(
    program: ModuleType, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(["mount", "50", "home=/home", "data=/data"]) == 1
    assert asked.calls == [("mmgetstate -Y", 15), ("mmmount home", 50), ("mmgetstate -Y", 10.0), ("mmmount home", 10.0)]
    assert asked.pauses == [1, 1]
    assert capsys.readouterr().err == "not mounted after 50 s: home data: no disks of home\n"


def test_a_mount_has_a_minute_at_most(program: ModuleType, asked: Asked) -> None:
    assert program.main(["mount", "120", "home=/home"]) == 1
    assert asked.calls[:2] == [("mmgetstate -Y", 15), ("mmmount home", 60)]
    assert len(asked.pauses) == 3  # at the very end of the time nothing is asked any more


def test_no_mount_is_tried_while_the_daemon_is_not_active(
    program: ModuleType, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.state = "down"
    assert program.main(["mount", "40", "home=/home"]) == 1
    assert asked.calls == [("mmgetstate -Y", 15)]
    assert capsys.readouterr().err == "not mounted after 40 s: home: the daemon is down\n"


def test_the_answer_before_is_said_where_the_last_question_is_cut_short(
    program: ModuleType, asked: Asked, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.state, answer = "down", program.ask

    def late(argv: list[str], seconds: float) -> str:
        if asked.calls:
            raise hal_scale_ask.ScaleError(f"no answer within {seconds} s")
        return str(answer(argv, seconds))

    monkeypatch.setattr(program, "ask", late)
    assert program.main(["mount", "50", "home=/home"]) == 1
    assert capsys.readouterr().err == "not mounted after 50 s: home: the daemon is down\n"
    assert program.main(["mount", "41", "home=/home"]) == 1
    assert capsys.readouterr().err == "not mounted after 41 s: home: no answer within 15 s\n"


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["--help"]])
def test_without_a_command_the_words_for_it_are_shown(
    program: ModuleType, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    assert program.main(argv) == (0 if argv == ["--help"] else 3)
    assert capsys.readouterr() == (f"{program.__doc__}\n", "")


@pytest.mark.parametrize(
    ("there", "makes", "status", "out", "asked"),
    [
        (True, True, 0, "", False),
        (False, True, 0, "the GPL layer was built for {}\n", True),
        (False, False, 1, "the GPL layer was built for {}\n", True),
    ],
)
def test_the_gpl_layer_is_built_where_the_kernel_has_none(
    program: ModuleType,
    bin_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    there: bool,
    makes: bool,
    status: int,
    out: str,
    asked: bool,
) -> None:
    kernel = subprocess.run(["uname", "-r"], capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setattr(program, "GPL", f"{bin_dir}/%s.ko")
    layer = bin_dir / f"{kernel}.ko"
    if there:
        layer.touch()
    write(bin_dir / "mmbuildgpl", f"touch {bin_dir}/asked" + (f" {layer}" if makes else ""))
    assert program.main(["gpl"]) == status
    assert capsys.readouterr().out == out.format(kernel)
    assert (bin_dir / "asked").exists() == asked


def test_what_was_not_taken_is_for_root_alone_and_replaced_whole(
    program: ModuleType, bin_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = bin_dir / "deep/state/not_taken.json"
    monkeypatch.setattr(program, "NOT_TAKEN", str(file))
    program.remember(["b", "a"])
    program.remember(iter(["c", "b"]))
    assert file.read_text() == '["b", "c"]'
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [one.name for one in file.parent.iterdir()] == ["not_taken.json"]


def test_a_command_is_started_in_the_c_locale_alone_in_its_session_without_input(
    bin_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    write(bin_dir / "mmx", "echo $LC_ALL $LANG $1; readlink /proc/self/fd/0; echo $$; cut -d' ' -f6 /proc/$$/stat")
    said = hal_scale_ask.ask(["mmx", "a b"]).splitlines()
    assert said[:2] == ["C C a b", "/dev/null"]
    assert said[2] == said[3]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 7", "mmx 1 2: status 7"),
        ("echo of out; exit 1", "mmx 1 2: of out"),
        ("echo of out; echo of err >&2; exit 1", "mmx 1 2: of err"),
        ("echo first >&2; echo ' last ' >&2; echo >&2; exit 1", "mmx 1 2: last"),
        ("echo 'x: Examine previous error messages to' >&2; exit 1", "mmx 1 2: x: Examine previous error messages to"),
    ],
)
def test_a_question_that_failed_has_the_last_line_that_says_something(bin_dir: Path, script: str, said: str) -> None:
    write(bin_dir / "mmx", script)
    with pytest.raises(hal_scale_ask.ScaleError) as caught:
        hal_scale_ask.ask(["mmx", "1", "2", "3"])
    assert str(caught.value) == said


def test_a_change_that_failed_says_what_it_printed_from_its_first_line_on(bin_dir: Path) -> None:
    write(bin_dir / "mmx", "echo only line; exit 1")
    with pytest.raises(hal_scale_ask.ScaleError) as caught:
        hal_scale_ask.change(["mmx", "1"])
    assert str(caught.value) == "mmx 1: only line"
