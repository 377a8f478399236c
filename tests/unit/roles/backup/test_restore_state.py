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
    source: dict[str, Any] = {
        "name": "slurm_state",
        "kind": "slurm_state",
        "conf": str(tmp_path / "slurm.conf"),
        "location": "/gone",
    }
    source["entries"] = {name: {"type": "file"} for name in "ab"}
    given: list[tuple[str, int, int]] = []
    monkeypatch.setattr(programs.restore_slurm_state.os, "lchown", lambda *words: given.append(words))
    user = SimpleNamespace(pw_uid=64030, pw_gid=64031)
    users = {"slurm": user}
    monkeypatch.setattr(programs.restore_slurm_state.pwd, "getpwnam", lambda name: users[name])
    runs: list[str] = []
    monkeypatch.setattr(programs.restore_slurm_state, "active", lambda unit: unit in runs)
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
    look_at, job_state = programs.restore_slurm_state.look, slurm.state / "job_state"
    os.utime(job_state, (1000.5, 1000.5))
    said, lines = f"state of {words_of(1000)}", [f"{slurm.state}: exchanged as a whole, 2 files of slurm"]
    assert look_at(slurm.source, 1000) == (said, True, lines)
    assert look_at(slurm.source, 1001) == (said, False, lines)
    slurm.runs.append("slurmctld")
    told: list[list[str]] = []

    def run(argv: list[str]) -> str:
        told.append(argv)
        return "1\n2\n3\n"

    monkeypatch.setattr(programs.restore_slurm_state, "run", run)
    assert look_at(slurm.source, 1001) == (said + ", slurmctld runs with 3 jobs", False, lines)
    assert told == [["squeue", "--noheader", "--all"]]
    job_state.unlink()
    assert look_at(slurm.source, 0) == ("no state is there", False, lines)


def test_a_state_is_prepared_as_slurms_own(programs: Any, slurm: SimpleNamespace) -> None:
    """Whatever an earlier try left there. Given away where nobody can go; what is beside only when it is whole."""
    slurm.beside.mkdir()
    (slurm.beside / "left").touch()
    assert programs.restore_slurm_state.prepare(slurm.source, slurm.unpacked) == str(slurm.state)
    assert sorted(path.name for path in slurm.beside.rglob("*")) == ["hash.1", "job_state", "script"]
    assert os.readlink(slurm.beside / "hash.1" / "script") == "nowhere"
    assert stat.S_IMODE(slurm.beside.stat().st_mode) == 0o700
    names = ("", "hash.1", "job_state", "hash.1/script")
    assert slurm.given[:4] == [(str(Path(slurm.unpacked, "state", name)), 64030, 64031) for name in names]
    # As root also the copies, from inside out; files by what is open.
    copies = [str(slurm.beside / name) for name in ("hash.1/script", "hash.1", "")]
    assert [path for path, *_ in slurm.given[4:]] == (copies if os.geteuid() == 0 else [])
    programs.restore_slurm_state.forget(slurm.source, str(slurm.state))
    assert not slurm.beside.exists()


def test_a_state_has_no_owner_before_slurm_is_there(programs: Any, slurm: SimpleNamespace) -> None:
    slurm.users.clear()
    with pytest.raises(
        programs.common.Problem, match=r"^there is no user slurm: roll out the role slurm's installation"
    ):
        programs.restore_slurm_state.prepare(slurm.source, slurm.unpacked)
    assert not slurm.beside.exists()


def test_a_state_that_cannot_be_written_is_taken_away(
    programs: Any, slurm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def readonly(state: str, beside: str) -> None:
        raise OSError(errno.EROFS, "Read-only file system", beside)

    monkeypatch.setattr(programs.restore_slurm_state, "copy_tree", readonly)
    with pytest.raises(programs.common.Problem) as failed:
        programs.restore_slurm_state.prepare(slurm.source, slurm.unpacked)
    assert str(failed.value) == f"{slurm.beside} cannot be written: {slurm.beside}: Read-only file system"
    assert not slurm.beside.exists()


def test_a_state_is_not_put_where_a_link_leads(programs: Any, slurm: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    slurm.beside.symlink_to("elsewhere")
    programs.restore_slurm_state.prepare(slurm.source, slurm.unpacked)
    assert (slurm.beside / "job_state").read_text() == "then"
    assert os.listdir(tmp_path / "elsewhere") == []


def test_what_is_slurms_is_removed_by_who_follows_no_link(
    programs: Any, slurm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 2.7 does, when slurm exchanges a folder for a link meanwhile: root would remove what is elsewhere."""
    told: list[list[str]] = []
    monkeypatch.setattr(programs.restore_slurm_state, "run", told.append)
    programs.restore_slurm_state.forget(slurm.source, str(slurm.state))
    assert told == [["rm", "-rf", "--", str(slurm.beside)]]


def test_a_state_comes_where_none_was(programs: Any, slurm: SimpleNamespace) -> None:
    (slurm.state / "job_state").unlink()
    slurm.state.rmdir()
    place = programs.restore_slurm_state.prepare(slurm.source, slurm.unpacked)
    assert programs.restore_slurm_state.replace(slurm.source, place, "/aside/x") == "restored"
    assert (slurm.state / "job_state").read_text() == "then"


def test_a_state_that_cannot_come_where_none_was_is_an_error(programs: Any, slurm: SimpleNamespace) -> None:
    (slurm.state / "job_state").unlink()
    slurm.state.rmdir()
    with pytest.raises(FileNotFoundError) as failed:
        programs.restore_slurm_state.replace(slurm.source, str(slurm.state), "/aside/x")
    assert failed.value.filename == str(slurm.beside)


def test_the_former_state_is_beside_the_new_one(programs: Any, slurm: SimpleNamespace) -> None:
    place = programs.restore_slurm_state.prepare(slurm.source, slurm.unpacked)
    former = f"{slurm.state}.before-20261121T120000"
    said = programs.restore_slurm_state.replace(slurm.source, place, "/aside/20261121T120000")
    assert said == f"restored; what was there is {former}"
    assert Path(former, "job_state").read_text() == "now"
