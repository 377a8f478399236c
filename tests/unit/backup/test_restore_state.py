"""The state of slurmctld in a restore: looked at, put beside its place as slurm's own, and exchanged."""

from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


def words_of(stamp: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(stamp))


@pytest.fixture
def slurm(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A state of slurmctld, one of an archive, and whoever was given to whom."""
    state, unpacked = tmp_path / "slurmctld", tmp_path / "unpacked"
    state.mkdir()
    (state / "job_state").write_text("now")
    (unpacked / "state" / "hash.1").mkdir(parents=True)
    (unpacked / "state" / "job_state").write_text("then")
    (unpacked / "state" / "hash.1" / "script").symlink_to("nowhere")
    (unpacked / "state").chmod(0o755)
    (tmp_path / "slurm.conf").write_text(f"StateSaveLocation={state}\n")
    source = {"name": "slurm_state", "kind": "slurm_state", "conf": str(tmp_path / "slurm.conf"), "location": "/gone"}
    given: list[tuple[str, int, int]] = []
    monkeypatch.setattr(programs.restore.os, "lchown", lambda *words: given.append(words))
    user = SimpleNamespace(pw_uid=64030, pw_gid=64031)
    users = {"slurm": user}
    monkeypatch.setattr(programs.restore.pwd, "getpwnam", lambda name: users[name])
    runs: list[str] = []
    monkeypatch.setattr(programs.restore, "active", lambda unit: unit in runs)
    return SimpleNamespace(
        state=state,
        beside=tmp_path / "slurmctld.restoring",
        unpacked=str(unpacked),
        source=source,
        given=given,
        users=users,
        runs=runs,
    )


def test_a_state_is_said_with_its_time(programs: Any, slurm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    look_at, job_state = programs.restore.look_at_slurm_state, slurm.state / "job_state"
    os.utime(job_state, (1000.5, 1000.5))
    said = f"state of {words_of(1000)}"
    assert look_at(slurm.source, {"made": 1000}) == (said, True)
    assert look_at(slurm.source, {"made": 1001}) == (said, False)
    slurm.runs.append("slurmctld")
    told: list[list[str]] = []

    def run(argv: list[str]) -> str:
        told.append(argv)
        return "1\n2\n3\n"

    monkeypatch.setattr(programs.restore, "run", run)
    assert look_at(slurm.source, {"made": 1001}) == (said + ", slurmctld runs with 3 jobs", False)
    assert told == [["squeue", "--noheader", "--all"]]
    job_state.unlink()
    assert look_at(slurm.source, {"made": 0}) == ("no state is there", False)


def test_a_state_is_prepared_as_slurms_own(programs: Any, slurm: SimpleNamespace) -> None:
    """Whatever an earlier try left there."""
    slurm.beside.mkdir()
    (slurm.beside / "left").touch()
    assert programs.restore.prepare_slurm_state(slurm.source, slurm.unpacked) == str(slurm.state)
    assert sorted(path.name for path in slurm.beside.rglob("*")) == ["hash.1", "job_state", "script"]
    assert os.readlink(slurm.beside / "hash.1" / "script") == "nowhere"
    assert stat.S_IMODE(slurm.beside.stat().st_mode) == 0o700
    below = [slurm.beside, slurm.beside / "hash.1", slurm.beside / "job_state", slurm.beside / "hash.1" / "script"]
    assert slurm.given == [(str(path), 64030, 64031) for path in below]
    programs.restore.forget_slurm_state(slurm.source, str(slurm.state))
    assert not slurm.beside.exists()


def test_a_state_has_no_owner_before_slurm_is_there(programs: Any, slurm: SimpleNamespace) -> None:
    slurm.users.clear()
    with pytest.raises(
        programs.common.Problem, match=r"^there is no user slurm: roll out the role slurm's installation"
    ):
        programs.restore.prepare_slurm_state(slurm.source, slurm.unpacked)
    assert not slurm.beside.exists()


def test_a_state_that_cannot_be_written_is_taken_away(
    programs: Any, slurm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def readonly(path: str, *_: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system", path)

    monkeypatch.setattr(programs.restore.os, "lchown", readonly)
    with pytest.raises(programs.common.Problem) as failed:
        programs.restore.prepare_slurm_state(slurm.source, slurm.unpacked)
    assert str(failed.value) == f"{slurm.beside} cannot be written: {slurm.beside}: Read-only file system"
    assert not slurm.beside.exists()


def test_a_state_comes_where_none_was(programs: Any, slurm: SimpleNamespace) -> None:
    (slurm.state / "job_state").unlink()
    slurm.state.rmdir()
    place = programs.restore.prepare_slurm_state(slurm.source, slurm.unpacked)
    assert programs.restore.replace_slurm_state(slurm.source, place, "/aside/x") == "restored"
    assert (slurm.state / "job_state").read_text() == "then"


def test_a_state_that_cannot_come_where_none_was_is_an_error(programs: Any, slurm: SimpleNamespace) -> None:
    (slurm.state / "job_state").unlink()
    slurm.state.rmdir()
    with pytest.raises(FileNotFoundError) as failed:
        programs.restore.replace_slurm_state(slurm.source, str(slurm.state), "/aside/x")
    assert failed.value.filename == str(slurm.beside)


def test_the_former_state_is_beside_the_new_one(programs: Any, slurm: SimpleNamespace) -> None:
    place = programs.restore.prepare_slurm_state(slurm.source, slurm.unpacked)
    former = f"{slurm.state}.before-20261121T120000"
    said = programs.restore.replace_slurm_state(slurm.source, place, "/aside/20261121T120000")
    assert said == f"restored; what was there is {former}"
    assert Path(former, "job_state").read_text() == "now"
