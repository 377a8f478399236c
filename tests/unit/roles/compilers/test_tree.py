"""What is read of an installation of PGI and compared with its record: whole values, by each Python of nodes."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "roles/compilers/files"))

from tests.unit.alike import alike

alike("pgi_tree", but=("copy_of", "gcc_version", "hosts", "json_of", "record_of"))

pgi_tree: Any = importlib.import_module("pgi_tree")

SUM = hashlib.sha256(b"cc").hexdigest()


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """An installation with a program, a link to it, and what hosts and the site have added."""
    here = tmp_path / "19.10" / "abc"
    (here / "bin").mkdir(parents=True)
    for name, text in (("bin/pgcc", "cc"), ("bin/localrc", ""), ("bin/localrc.hal01", ""), ("bin/siterc", "")):
        (here / name).write_text(text)
    (here / "bin/siterc-mine").write_text("")
    (here / ".hal.json").write_text("{}")
    (here / ".hal.verified.json").write_text("{}")
    (here / "cc").symlink_to("bin/pgcc")
    (here / "lib").symlink_to("bin")
    for path in (here, *here.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    return here


def test_files_of_the_installer_are_its_files_and_links_and_nothing_that_was_added(prefix: Path) -> None:
    found = {"bin/pgcc": [2, SUM], "cc": [0, "-> bin/pgcc"], "lib": [0, "-> bin"]}
    assert pgi_tree.files_of(str(prefix)) == found
    os.mkfifo(prefix / "bin/pipe")
    assert pgi_tree.files_of(str(prefix)) == found
    assert pgi_tree.look(str(prefix / "bin/pgcc"), False) == [2, ""]
    assert pgi_tree.look(str(prefix / "bin"), True) is None
    files, folders = pgi_tree.below(str(prefix))
    assert sorted(folders) == [".", "bin"]
    assert {"cc", "lib", "bin/pipe", "bin/localrc", ".hal.json"} <= set(files)


def test_a_tree_that_cannot_be_read_is_no_empty_one(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nosuch"):
        pgi_tree.below(str(tmp_path / "nosuch"))


def test_what_is_missing_changed_or_open_is_told(prefix: Path) -> None:
    declared = {"bin/pgcc": [2, SUM], "cc": [0, "-> bin/pgcc"], "lib": [0, "-> bin"]}
    nothing: dict[str, list[str]] = {"missing": [], "changed": [], "loose": []}
    assert pgi_tree.compare(str(prefix), declared) == nothing
    assert pgi_tree.in_words(nothing) == ""
    changed = {**declared, "bin/pgcc": [2, "0" * 64], "gone": [1, SUM], "away": [1, SUM], "cc": [0, "-> other"]}
    (prefix / "bin").chmod(0o775)
    (prefix / "bin/pgcc").chmod(0o757)
    found = pgi_tree.compare(str(prefix), changed)
    assert found == {"missing": ["away", "gone"], "changed": ["bin/pgcc", "cc"], "loose": ["bin", "bin/pgcc"]}
    words = "2 changed (bin/pgcc), 2 writable by others than root (bin), 2 missing (away)"
    assert pgi_tree.in_words(found) == words


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [([2, SUM], [2, ""], True), ([2, ""], [2, SUM], True), ([2, SUM], [3, SUM], False), ([2, SUM], [3, ""], False),
     ([2, SUM], [2, "0"], False), ([2, ""], [2, ""], True)],
)  # fmt: skip
def test_a_file_is_the_same_by_its_size_and_by_its_checksum_where_both_have_one(
    one: Any, other: Any, same: bool
) -> None:
    found = pgi_tree.differences("/p", {"f": one}, {"f": other}, ["/p/f"])
    assert found == {"missing": [], "changed": [] if same else ["f"], "loose": ["f"]}


@pytest.mark.parametrize(
    ("mode", "loose"), [(0o755, False), (0o775, True), (0o757, True), (0o700, False), (0o4711, False), (0o2750, False)]
)
def test_what_others_may_write_is_open(tmp_path: Path, mode: int, loose: bool) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("")
    file.chmod(mode)
    link.symlink_to(file)
    assert (pgi_tree.loose(str(file)), pgi_tree.loose(str(link))) == (loose, False)


def test_what_belongs_to_another_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.geteuid()
    monkeypatch.setattr(pgi_tree.os, "geteuid", lambda: me + 1)
    tmp_path.chmod(0o755)
    assert pgi_tree.loose(str(tmp_path))


def test_a_copy_is_whole_and_its_checksum_is_of_what_was_copied(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(2**20 + 1))
    assert pgi_tree.copy_of(str(source), str(target)) == hashlib.sha256(source.read_bytes()).hexdigest()
    assert target.read_bytes() == source.read_bytes()


def test_a_record_is_read_again_when_it_is_another(tmp_path: Path) -> None:
    path = tmp_path / ".hal.json"
    assert pgi_tree.record_of(str(tmp_path)) is None
    path.write_text('{"a": 1}')
    first = pgi_tree.record_of(str(tmp_path))
    assert first == {"a": 1}
    assert pgi_tree.record_of(str(tmp_path)) is first
    path.write_text('{"a": 22}')
    assert pgi_tree.record_of(str(tmp_path)) == {"a": 22}
    path.write_text("{")
    assert pgi_tree.record_of(str(tmp_path)) is None


# --------------------------------------------------------------------------------------------------- what is declared
def table(folder: Path, **changes: Any) -> Any:
    """What the role wrote, read; versions by name."""
    one = {"source": "/sw/pgi.tar.gz", "sha256": SUM, "nvidia": True, "mpi": False, "mpi_gpu": False}
    said: dict[str, Any] = {
        "root": str(folder / "pgi"), "mount": "/", "target": "linuxpower", "local_dir": "/local", "accept_eula": True,
        "timeout_minutes": "90", "installer": True, "verify_max_days": "15", "versions": ["19.10"], **changes,
    }  # fmt: skip
    said["versions"] = [{**one, "version": name} if isinstance(name, str) else name for name in said["versions"]]
    path = folder / "compilers.json"
    path.write_text(json.dumps(said))
    return pgi_tree.Table(str(path))


def test_numbers_arrive_as_text_and_permissions_are_true_or_not(tmp_path: Path) -> None:
    made = table(tmp_path)
    assert (made.timeout, made.verify_max_days, made.accepted, made.installer) == (5400, 15, True, True)
    for given in (False, "true", 1):
        made = table(tmp_path, accept_eula=given, installer=given)
        assert (made.accepted, made.installer) == (False, False)
    for path in ("nosuch.json", "."):
        with pytest.raises(pgi_tree.Problem, match=path):
            pgi_tree.Table(str(tmp_path / path))
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(pgi_tree.Problem, match=r"bad\.json"):
        pgi_tree.Table(str(tmp_path / "bad.json"))


def test_a_file_system_that_is_not_mounted_is_named(tmp_path: Path) -> None:
    table(tmp_path).need_mount()
    with pytest.raises(pgi_tree.Problem) as refused:
        table(tmp_path, mount=str(tmp_path)).need_mount()
    assert str(refused.value) == f"{tmp_path} is not mounted, and {tmp_path}/pgi is on it"


@pytest.mark.parametrize(
    ("source", "brought", "archive"),
    [("/sw/pgi.tar.gz", False, "/sw/pgi.tar.gz"), ("pgi.tar.gz", True, "{}/pgi/.archives/pgi.tar.gz"),
     ("https://x/a/pgi.tar.gz?key=1", True, "{}/pgi/.archives/pgi.tar.gz"),
     ("https://x/pgi/", True, "{}/pgi/.archives/pgi")],
)  # fmt: skip
def test_an_archive_lies_where_it_was_put_or_with_those_that_were_brought(
    tmp_path: Path, source: str, brought: bool, archive: str
) -> None:
    one = {"version": "19.10", "source": source, "sha256": SUM, "nvidia": True, "mpi": False, "mpi_gpu": False}
    (version,) = table(tmp_path, versions=[one]).versions
    assert (version.brought, version.archive) == (brought, archive.format(tmp_path))


def test_the_installation_that_counts_is_the_loaded_one_then_the_last_finished_one(tmp_path: Path) -> None:
    (version,) = table(tmp_path).versions
    folder, digest = tmp_path / "pgi/19.10", version.digest
    assert (version.label, version.prefix, version.installations()) == ("pgi/19.10", str(folder / digest), [])
    names = [digest, f"{digest}.2", f"{digest}.10"]
    for name in (*reversed(names), "0" * 12, "current.2", f"{digest}.x"):
        (folder / name).mkdir(parents=True)
    assert version.installations() == [str(folder / name) for name in names]
    assert version.prefix == str(folder / digest)
    for name in names[:2]:
        (folder / name / ".hal.json").write_text("{}")
    assert version.prefix == str(folder / names[1])
    (folder / "current").symlink_to("0" * 12)
    assert version.prefix == str(folder / names[1])
    (folder / "current").unlink()
    (folder / "current").symlink_to(digest)
    assert (version.prefix, version.place()) == (str(folder / digest), f"{folder}/{digest}/linuxpower/19.10")
    assert version.place("/p") == "/p/linuxpower/19.10"


def test_what_is_not_loaded_or_not_declared_is_left_over(tmp_path: Path) -> None:
    made = table(tmp_path, versions=["19.10", "20.4"])
    assert pgi_tree.undeclared(made) == []
    root, digest = tmp_path / "pgi", made.versions[0].digest
    for name in (f"19.10/{digest}", f"19.10/{digest}.2", "19.10/other", "18.1/x", "mine/x"):
        (root / name).mkdir(parents=True)
    for name in ("19.10", "18.1"):
        (root / name / pgi_tree.MARK).write_text("")
    assert pgi_tree.undeclared(made) == [str(root / "18.1"), str(root / "19.10" / f"{digest}.2")]
    (root / "19.10/current").symlink_to(f"{digest}.2")
    assert pgi_tree.undeclared(made) == [str(root / "18.1"), str(root / "19.10" / digest)]


def test_what_an_installation_is_called_stays_what_it_is(tmp_path: Path) -> None:
    """Another digest of the same declaration would install PGI again everywhere, beside the one that jobs use."""
    one = {"version": "19.10", "source": "/sw/pgi.tar.gz", "sha256": "0" * 64, "nvidia": True, "mpi": False}
    (version,) = table(tmp_path, versions=[{**one, "mpi_gpu": False}]).versions
    made_of = '["19.10", "%s", {"mpi": false, "mpi_gpu": false, "nvidia": true}, "linuxpower"]' % ("0" * 64)
    assert version.digest == hashlib.sha256(made_of.encode()).hexdigest()[:12]


def installed(folder: Path, **changes: Any) -> tuple[Any, Path]:
    """The declared version with a program, a folder beside bin and a file in it, finished and loaded."""
    (version,) = table(folder, **changes).versions
    place = Path(version.place())
    for name in ("bin/pgcc", "bin.old/pgcc", "lib/libpgc.so"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("cc")
        (place / name).chmod(0o755)
    prefix = Path(version.prefix)
    files = {f"linuxpower/19.10/{name}": [2, SUM] for name in ("bin/pgcc", "bin.old/pgcc", "lib/libpgc.so")}
    (prefix / ".hal.json").write_text(json.dumps({"files": files, "installed_at": 86400.0}))
    Path(version.folder, pgi_tree.MARK).write_text("")
    Path(version.current).symlink_to(prefix.name)
    for path in (folder / "pgi", *(folder / "pgi").rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    return version, place


def test_a_tree_or_a_version_that_others_may_write_is_wrong(tmp_path: Path) -> None:
    version, _ = installed(tmp_path)
    assert version.wrong() == ""
    for folder in (tmp_path / "pgi", tmp_path / "pgi/19.10"):
        folder.chmod(0o777)
        words = f"{folder} can be written by others than root, who could exchange what everybody compiles with"
        assert version.wrong() == words
        folder.chmod(0o755)
    assert version.wrong() == ""


def test_a_quick_look_is_at_programs_that_users_call_and_at_nothing_beside_them(tmp_path: Path) -> None:
    version, place = installed(tmp_path)
    for name in ("bin.old/pgcc", "lib/libpgc.so"):
        (place / name).unlink()
    assert version.wrong() == version.damage() == ""
    (place / "bin/pgcc").write_text("other")
    assert version.wrong() == "1 changed (linuxpower/19.10/bin/pgcc)"
    (place / "bin/pgcc").unlink()
    assert version.wrong() == "1 missing (linuxpower/19.10/bin/pgcc)"


def test_what_was_read_last_counts_and_before_that_the_installation_itself(tmp_path: Path) -> None:
    version, _ = installed(tmp_path)
    at = pgi_tree.moment(86400.0)
    assert version.read_again() == {"words": "", "time": 86400.0, "at": at}
    assert (version.verified(), version.repair()) == ("", "")
    said = {"words": "1 changed (lib)", "time": 90000.0, "at": "1970-01-02 02:00:00"}
    (Path(version.prefix) / ".hal.verified.json").write_text(json.dumps(said))
    assert version.read_again() == said
    assert (version.verified(), version.repair()) == ("1 changed (lib); seen 1970-01-02 02:00:00", "1 changed (lib)")
    (Path(version.prefix) / ".hal.json").unlink()
    assert (version.read_again(), version.verified()) == (None, "there is nothing to read")
