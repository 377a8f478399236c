"""An archive is opened whole, by the right key, for the right node; or not at all, and the message says why."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

Make = Callable[..., Path]


@pytest.fixture
def make(programs: Any, key: SimpleNamespace, tmp_path: Path) -> Make:
    """Return a function that makes an archive with the real job: options are those of the job."""

    def made(name: str = "hal-mgmt1", **options: Any) -> Path:
        content = tmp_path / "state"
        content.mkdir(exist_ok=True)
        (content / "a file").write_text("precious\n" * 5000)
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / "public.asc").write_bytes(options.pop("public", key.public))
        source = {"name": "state", "kind": "files", "paths": [str(content)]}
        config = {"site": "hal", "node": name, "key": str(tmp_path / "public.asc"), "work": str(tmp_path / "work")}
        programs.job.save_now({**config, "reserve_mb": 0, "sources": [source], **options}, str(tmp_path / "archive"))
        return tmp_path / "archive"

    return made


def opened(programs: Any, archive: Path, key: bytes, node: str = "hal-mgmt1", wanted: str = "-") -> Any:
    folder = archive.parent / "opened"
    folder.mkdir(exist_ok=True)
    try:
        return programs.open.opened(str(archive), str(folder), "hal", node, wanted, key)
    except programs.common.Problem:
        assert list(folder.iterdir()) == [], "nothing of what could not be read is left"
        raise


def test_what_was_saved_is_read_again(programs: Any, key: SimpleNamespace, make: Make, tmp_path: Path) -> None:
    archive = make()
    assert b"precious" not in archive.read_bytes()
    manifest = opened(programs, archive, key.private, wanted=programs.common.sha256(str(archive)))
    assert manifest["node"] == "hal-mgmt1"
    with tarfile.open(tmp_path / "opened" / "archive.tar.gz") as content:
        member = content.extractfile(f"state{tmp_path}/state/a file")
        assert member is not None
        assert member.read() == b"precious\n" * 5000
    assert list((tmp_path / "work").iterdir()) == [tmp_path / "work" / "lock"], "nothing in clear is left"


def test_runs_in_a_row_have_seconds_of_their_own(
    programs: Any, key: SimpleNamespace, make: Make, tmp_path: Path
) -> None:
    """By which their archives are named."""
    first = opened(programs, make(), key.private)["made"]
    (tmp_path / "opened" / "archive.tar.gz").unlink()
    assert opened(programs, make(), key.private)["made"] > first


def test_a_truncated_archive_is_refused(programs: Any, key: SimpleNamespace, make: Make) -> None:
    archive = make()
    whole = archive.read_bytes()
    stored = programs.common.sha256(str(archive))
    for length in (len(whole) - 1, len(whole) // 2, 100, 0):
        archive.write_bytes(whole[:length])
        with pytest.raises(programs.common.Problem, match=r"is damaged|no encrypted archive") as without:
            opened(programs, archive, key.private)
        assert "\n" not in str(without.value)
        with pytest.raises(programs.common.Problem, match="not what was stored"):
            opened(programs, archive, key.private, wanted=stored)


def test_a_changed_archive_is_refused(programs: Any, key: SimpleNamespace, make: Make) -> None:
    archive = make()
    content = bytearray(archive.read_bytes())
    content[-50] ^= 1
    archive.write_bytes(bytes(content))
    with pytest.raises(programs.common.Problem, match="is damaged: gpg cannot decrypt all of it"):
        opened(programs, archive, key.private)


def test_a_wrong_key_is_named(
    programs: Any, key: SimpleNamespace, other_key: SimpleNamespace, make: Make, tmp_path: Path
) -> None:
    archive = make()
    with programs.archive.keyring(key.public) as home:
        own = programs.archive.fingerprints(home)[0][-16:]
    with programs.archive.keyring(other_key.public) as home:
        other = programs.archive.fingerprints(home)[0][-16:]
    with pytest.raises(programs.common.Problem, match=f"encrypted for key {own}; the private key given is of {other}"):
        opened(programs, archive, other_key.private)
    with pytest.raises(programs.common.Problem, match="backup_private_key is empty"):
        opened(programs, archive, b"\n")
    with pytest.raises(programs.common.Problem, match="gpg: no valid OpenPGP data found"):
        opened(programs, archive, b"not a key\n")


def test_an_archive_of_another_node_or_site_is_refused(programs: Any, key: SimpleNamespace, make: Make) -> None:
    archive = make("hal-login")
    with pytest.raises(programs.common.Problem, match="archive of hal-login of site hal, not of hal-mgmt1 of site hal"):
        opened(programs, archive, key.private)
    archive = make(site="other")
    with pytest.raises(programs.common.Problem, match="archive of hal-mgmt1 of site other, not of hal-mgmt1 of site"):
        opened(programs, archive, key.private)


def test_an_archive_that_says_something_else_of_its_files_is_refused(programs: Any, tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    (folder / "state").mkdir(parents=True)
    (folder / "state" / "one").write_text("1")
    packed = tmp_path / "archive.tar.gz"
    programs.archive.pack(str(folder), {"node": "x"}, str(packed))
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    (folder / "state" / "one").write_text("2")
    with tarfile.open(packed, "w:gz") as content:
        content.add(folder / "MANIFEST.json", "MANIFEST.json")
        content.add(folder / "state", "state")
    with pytest.raises(programs.common.Problem, match="state/one is not what the manifest says"):
        programs.archive.check(str(packed))
    with tarfile.open(packed, "w:gz") as content:
        content.add(folder / "state", "../etc")
    with pytest.raises(programs.common.Problem, match="leads out of the archive"):
        programs.archive.check(str(packed))
    assert set(manifest["files"]) == {"state/one"}


def test_a_source_that_is_not_there_is_no_archive(programs: Any, make: Make, tmp_path: Path) -> None:
    gone = {"name": "munge_key", "kind": "files", "paths": ["/nowhere/munge.key"]}
    with pytest.raises(programs.common.Problem, match=r"munge_key: /nowhere/munge\.key is not there"):
        make(sources=[gone])
    with pytest.raises(programs.common.Problem, match=r"no room for an archive in .*: \d+ MB are free"):
        make(reserve_mb=10**9)
    assert not (tmp_path / "archive").exists()


def test_two_public_keys_are_refused(
    programs: Any, key: SimpleNamespace, other_key: SimpleNamespace, make: Make
) -> None:
    with pytest.raises(programs.common.Problem, match="2 keys in it, there has to be one"):
        make(public=key.public + other_key.public)
