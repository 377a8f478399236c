"""What hangs holds nobody, is asked once, and is told; what answers is timed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.file_system_probe.conftest import Probed

LINE = re.compile(
    r"file_system_probe,file_system=home,path=(?P<path>\S+) (?P<fields>\S+) (?P<at>\d{19})\n"
)  # values of these tests have no blanks


def fields(line: str) -> dict[str, str]:
    found = LINE.fullmatch(line)
    assert found, line
    assert abs(int(found["at"]) / 1e9 - time.time()) < 60
    return dict(field.split("=") for field in found["fields"].split(","))


def children(probed: Probed) -> list[str]:
    """Pids of processes of this test that are still there."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if str(probed.run_dir.parent).encode() in words:
            found.append(folder.name)
    return found


def let_go(probed: Probed) -> None:
    """The file system answers again: the child that waits reads the end of the FIFO and is gone."""
    os.close(os.open(probed.fifo, os.O_WRONLY))
    end = time.monotonic() + 600
    while children(probed):
        assert time.monotonic() < end, "the child is still there"
        time.sleep(0.05)


@pytest.fixture
def hung(probed: Probed) -> Any:
    os.mkfifo(probed.fifo)
    yield probed
    if children(probed):
        let_go(probed)


def test_a_listing_and_a_stat_are_timed(probed: Probed) -> None:
    done = probed.call("--once")
    assert done.returncode == 0, done.stderr
    found = fields(done.stdout)
    assert float(found.pop("list_ms")) >= 0
    assert float(found.pop("stat_ms")) >= 0
    assert found == {"entries": "3i", "timed_out": "false", "hung_seconds": "0i", "error": '"none"'}
    assert probed.call("--last").stdout == done.stdout
    for name in ("last.influx", "state.json"):
        assert (probed.run_dir / name).stat().st_mode & 0o777 == 0o644, "Telegraf reads it as another user"
    status = probed.status()
    assert status["age_seconds"] >= 0
    assert status["list_median_ms"] == status["list_ms"]
    assert children(probed) == []


def test_a_hung_file_system_holds_neither_the_program_nor_its_reader(hung: Probed) -> None:
    assert hung.call("--once").returncode == 0
    done = hung.call("--once", hangs=True)  # it returns: the child keeps no pipe open
    assert done.stderr == f"{hung.homes}: does not answer\n"
    found = fields(done.stdout)
    assert int(found.pop("hung_seconds").rstrip("i")) >= 1
    assert found == {"timed_out": "true", "error": '"timeout"'}
    assert len(children(hung)) == 1, "the child is left where it hangs"

    first = children(hung)
    time.sleep(1.2)
    hung.configure(timeout_seconds=60)
    begun = time.monotonic()
    done = hung.call("--once", hangs=True)
    assert time.monotonic() - begun < 30, "nothing to wait for: it is known"
    assert int(fields(done.stdout)["hung_seconds"][:-1]) >= 2
    assert done.stderr == "", "told once"
    assert children(hung) == first, "no second child"
    # Readers ask no file system.
    assert hung.status()["timed_out"] is True
    assert "timed_out=true" in hung.call("--last").stdout

    let_go(hung)
    done = hung.call("--once")
    assert done.stderr == f"{hung.homes} answers again; before: timeout\n"
    assert fields(done.stdout)["hung_seconds"] == "0i"


def test_a_hang_counts_as_slow(hung: Probed) -> None:
    hung.call("--once", hangs=True)
    hung.call("--once", hangs=True)
    let_go(hung)
    hung.call("--once")
    status = hung.status()
    assert [one[0] for one in status["recent"]][:2] == [1000.0, 1000.0]
    assert status["list_median_ms"] == 1000.0
    for _ in range(2):
        hung.call("--once")
    assert hung.status()["list_median_ms"] < 1000.0


def test_a_program_that_is_killed_leaves_a_child_that_the_next_one_knows(hung: Probed) -> None:
    hung.configure(timeout_seconds=60)
    asked = subprocess.Popen(hung.command("--once", hangs=True))
    end = time.monotonic() + 600
    while len(children(hung)) < 2 or not (hung.run_dir / "child.json").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    asked.kill()
    asked.wait()
    hung.configure()
    done = hung.call("--once", hangs=True)
    assert fields(done.stdout)["timed_out"] == "true"
    assert len(children(hung)) == 1


def test_the_number_of_another_process_is_no_child_of_ours(probed: Probed, program: Any) -> None:
    own = {"pid": os.getpid(), "started": program.started(os.getpid()), "since": 0}
    assert program.is_alive(own)
    assert not program.is_alive({**own, "started": own["started"] - 1})
    assert not program.is_alive(None)
    probed.run_dir.mkdir()
    (probed.run_dir / "child.json").write_text(json.dumps({**own, "started": 1}))
    assert fields(probed.call("--once").stdout)["timed_out"] == "false"


def test_what_is_not_mounted_is_not_measured(probed: Probed) -> None:
    probed.configure(mount=str(probed.homes))
    done = probed.call("--once")
    assert fields(done.stdout) == {"timed_out": "false", "hung_seconds": "0i", "error": '"not_mounted"'}
    assert done.stderr == f"{probed.homes}: not_mounted\n"
    assert probed.status()["list_median_ms"] is None


def test_a_refusal_has_the_kernel_s_word(probed: Probed) -> None:
    probed.configure(path=str(probed.homes / "nobody"))
    assert fields(probed.call("--once").stdout)["error"] == '"ENOENT"'
    probed.configure(path=str(probed.homes / "größe"))
    assert fields(probed.call("--once").stdout)["entries"] == "0i"


def test_one_slow_answer_is_not_slow(program: Any) -> None:
    assert program.median([7.0, 7.1, 90.0, 6.9, 7.2]) == 7.1
    assert program.median([90.0, 7.1, 90.0, 6.9, 91.0]) == 90.0
    assert program.median([7.0, 90.0]) == 7.0
    assert program.median([]) is None


def test_only_the_last_results_count(probed: Probed, program: Any) -> None:
    probed.configure(keep=3)
    for _ in range(5):
        probed.call("--once")
    assert len(probed.status()["recent"]) == 3
    probed.configure(path=str(probed.homes / "alice"), keep=3)
    probed.call("--once")
    assert len(probed.status()["recent"]) == 1, "of another folder"


def test_before_the_first_result_it_says_so(probed: Probed) -> None:
    for option in ("--status", "--last"):
        done = probed.call(option)
        assert done.returncode == 1
        assert done.stderr.startswith(str(probed.run_dir))
        assert done.stdout == ""


@pytest.mark.parametrize(("mount", "there"), [("/", True), ("/proc", True), ("/proc/", True), ("/pro", False)])
def test_the_kernel_s_list_says_what_is_mounted(program: Any, mount: str, there: bool) -> None:
    assert program.is_mounted(mount) is there
