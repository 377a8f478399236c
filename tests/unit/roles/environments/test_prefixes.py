"""Prefixes on the node that installs: which is right, which is free, which goes, and what is refused before that."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.environments.prefixes import DIGEST, NAME, prefix

HALF = "there was no room on the way; what was half made is removed, what was fetched is kept"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "t").mkdir()
    return {"id": "t/1", "link": str(tmp_path / "t/1"), "version": "1", "digest": DIGEST, "packages": [], "python": "",
            "metas": [], "channels": {"c": "https://c"}, "imports": [],
            "post_link": {"run": [], "skip": [], "environment": {}}}  # fmt: skip


def package(number: int, size: int = 10) -> dict[str, Any]:
    return {"channel": "c", "subdir": "noarch", "file": f"{number}.conda", "size": size, "sha256": str(number)}


def test_prefixes_are_those_of_the_version_the_oldest_first(installer: Any, env: dict[str, Any]) -> None:
    for name, when in ((f"{NAME}.2", 5), (NAME, 9), (f"{NAME}.10", 7)):
        prefix(env, name, time=when)
    for name in (f"{NAME}x", f"{NAME}.x", "1.0123", f"11.{DIGEST}", f"1x{DIGEST}", f"1.{DIGEST.upper()}"):
        prefix(env, name)
    prefix(env, "1.ffffffffffff")
    prefix(env, "1.aaaaaaaaaaaa", time=0.5)
    assert [(name, (record or {}).get("time")) for name, record in installer.prefixes(env)] == [
        ("1.ffffffffffff", None), ("1.aaaaaaaaaaaa", 0.5), (f"{NAME}.2", 5), (f"{NAME}.10", 7), (NAME, 9),
    ]  # fmt: skip


def test_the_prefix_in_use_is_taken_unless_it_is_spoilt(installer: Any, env: dict[str, Any]) -> None:
    assert installer.right(env) is None
    for number in (1, 2, 3):
        prefix(env, f"{NAME}.{number}", digest=DIGEST, time=number)
    prefix(env, "1.ffffffffffff", digest="ffffffffffff", time=0)
    assert installer.right(env) == f"{NAME}.1"
    Path(env["link"]).symlink_to(f"{NAME}.2")
    assert installer.right(env) == f"{NAME}.2"
    used = Path(env["link"]).resolve()
    (used / ".hal/verified.json").write_text(json.dumps({"words": "1 changed (a)"}))
    assert installer.spoilt(env, str(used)) == "1 changed (a)"
    assert installer.right(env) == f"{NAME}.1"
    used.chmod(0o777)
    assert installer.spoilt(env, str(used)) == f"{used} can be written by others than root"
    (used / ".hal/activate.lua").unlink()
    assert installer.spoilt(env, str(used)).endswith("activate.lua is not there: the module cannot be loaded")


def test_a_free_name_is_the_first_and_what_was_interrupted_goes(
    installer: Any, problem: Any, env: dict[str, Any], said: list[str]
) -> None:
    assert installer._free_name(env, None) == NAME
    prefix(env, NAME, digest=DIGEST)
    prefix(env, f"{NAME}.3", digest=DIGEST)
    left = prefix(env, f"{NAME}.2")
    (left / ".hal/building").touch()
    empty = Path(env["link"]).parent / f"{NAME}.4"
    empty.mkdir()
    used = prefix(env, f"{NAME}.5")
    assert installer._free_name(env, used.name) == f"{NAME}.2"
    assert (left.exists(), empty.exists(), used.exists()) == (False, False, True)
    gone = [f"t/1: removing {path}, whose installation was interrupted" for path in (left, empty)]
    assert sorted(said) == gone
    with pytest.raises(problem) as refused:
        installer._free_name(env, None)
    assert str(refused.value) == f"{used} is not a prefix of hal-environment, and has files: move it away"
    assert used.exists()


@pytest.mark.parametrize("short", [0, 1])
def test_room_is_needed_for_what_comes_what_is_unpacked_and_what_stays_free(
    install: Any, installer: Any, part: Callable[[str], Any], env: dict[str, Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, short: int,
) -> None:  # fmt: skip
    env["packages"] = [package(1, 2 * 10**9), package(2, 4 * 10**9)]
    needed = 4 * 10**9 + 15 * 10**9 + 1_500_000_000
    disk = os.statvfs_result((1, 10, 0, 0, (needed - short * 10) // 10, 0, 0, 0, 0, 255))
    monkeypatch.setattr(install.os, "statvfs", lambda path: disk if path == str(tmp_path) else None)
    if not short:
        installer._room(env, env["packages"][1:])
        return
    with pytest.raises(part("common").Full) as refused:
        installer._room(env, env["packages"][1:])
    assert str(refused.value) == (
        f"no room: below {tmp_path} 20.5 GB are free, it needs 20.5 GB (to fetch 4.0 GB, unpacked about 15.0 GB, "
        "to be left free 1.5 GB)"
    )


def test_after_three_packages_that_do_not_come_no_other_is_tried(
    install: Any, installer: Any, problem: Any, env: dict[str, Any], said: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    tried: list[Any] = []

    def fetch(source: str, path: str, package: dict[str, Any], timeout: float) -> None:
        assert os.path.isdir(os.path.dirname(path))
        tried.append((source, path, timeout))
        if package["file"] != "1.conda":
            raise problem(f"no {package['file']}")

    monkeypatch.setattr(install, "fetch", fetch)
    with pytest.raises(problem, match=r"^no 2\.conda and 2 more$"):
        installer._fetch(env, [package(number, 1000) for number in range(1, 6)])
    places = [(f"https://c/noarch/{n}.conda", f"{tmp_path}/.packages/files/{n}/{n}.conda", 7.0) for n in range(1, 5)]
    assert tried == places
    assert said == ["t/1: fetching 5 packages, 5.0 kB"]
    said.clear()
    installer._fetch(env, [])
    installer._fetch(env, [package(1)])
    assert said == ["t/1: fetching 1 packages, 10 bytes"]


def test_a_full_disk_ends_the_fetching_at_once(
    install: Any, installer: Any, part: Callable[[str], Any], env: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def fetch(source: str, *_: Any) -> None:
        tried.append(source)
        raise part("common").Full("full")

    monkeypatch.setattr(install, "fetch", fetch)
    with pytest.raises(part("common").Full, match=r"^full$"):
        installer._fetch(env, [package(1), package(2)])
    assert len(tried) == 1


@pytest.mark.parametrize(
    ("number", "full"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EIO, False), (errno.EAGAIN, False)]
)
def test_an_error_on_the_way_leaves_nothing_half_made(
    install: Any, installer: Any, part: Callable[[str], Any], env: dict[str, Any], said: list[str],
    monkeypatch: pytest.MonkeyPatch, number: int, full: bool,
) -> None:  # fmt: skip
    made = Path(env["link"]).parent / NAME
    monkeypatch.setattr(installer, "_room", lambda *_: None)

    def link(_env: Any, prefix: str) -> None:
        building = json.loads((Path(prefix) / ".hal/building").read_text())
        assert (building["of"], len(building["since"])) == ("t/1", 19)
        raise OSError(number, "no")

    monkeypatch.setattr(installer, "_link", link)
    with pytest.raises(part("common").Problem) as refused:
        installer._install(env, "tools", None)
    assert isinstance(refused.value, part("common").Full) is full
    assert str(refused.value) == (HALF if full else f"[Errno {number}] no")
    assert not made.exists()
    assert said == [f"t/1: linking 0 packages into {made}"]


@pytest.mark.parametrize(
    ("words", "full"),
    [
        ("No space left on device", True), ("error (os error 28)", True), ("Disk quota exceeded", True),
        ("(os error 122)", True), ("(os error 2)", False), ("", False),
    ],
)  # fmt: skip
def test_a_linker_s_words_tell_whether_the_disk_is_full(
    install: Any, installer: Any, part: Callable[[str], Any], env: dict[str, Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, words: str, full: bool,
) -> None:  # fmt: skip
    asked: list[Any] = []
    cache = tmp_path / ".packages/unpacked"
    (cache / "left").mkdir(parents=True)

    def run(argv: list[str], environment: dict[str, str], given: bytes) -> Any:
        assert os.listdir(cache) == []
        asked.append((argv, environment, json.loads(given)))
        return 3, b"", words.encode()

    monkeypatch.setattr(install, "run", run)
    installer.settings.update(python="/opt/rh/bin/python3", library="/lib/rattler", wheel=None)
    env.update(platform="linux-64", packages=[package(1)])
    with pytest.raises(part("common").Problem) as refused:
        installer._link(env, "/p")
    assert isinstance(refused.value, part("common").Full) is full
    assert str(refused.value) == (HALF if full else f"linking it failed (3): {words or 'nothing was said'}")
    assert not cache.exists()
    locked = {**package(1), "archive": f"{tmp_path}/.packages/files/1/1.conda", "channel": "https://c"}
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": str(cache),
                   "PYTHONPATH": "/lib/rattler", "LD_LIBRARY_PATH": "/opt/rh/lib64"}  # fmt: skip
    request = {"prefix": "/p", "cache": str(cache), "platform": "linux-64", "packages": [locked]}
    assert asked == [(["/opt/rh/bin/python3", "-B", "-s", install.PROGRAM], environment, request)]


@pytest.mark.parametrize(("keep", "kept"), [(0, 0), (1, 1), (2, 2), (9, 3)])
def test_the_latest_of_those_that_are_not_in_use_are_kept(
    installer: Any, env: dict[str, Any], keep: int, kept: int
) -> None:
    installer.settings["keep"] = keep
    paths = [prefix(env, f"{NAME}.{number}", digest=DIGEST, time=number) for number in (1, 2, 3, 4)]
    prefix(env, f"{NAME}.5")
    Path(env["link"]).symlink_to(paths[1].name)
    others = [path for path in paths if path != paths[1]]
    surplus = [path for path in paths if installer._surplus(str(path), env["link"], env)]
    assert surplus == others[: len(others) - kept]
    assert all(installer._surplus(str(path), env["link"], None) for path in paths), "nobody declares it"


def test_what_is_more_than_is_kept_is_noted_and_waits(
    install: Any, installer: Any, env: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = prefix(env, NAME, digest=DIGEST)
    note = path / ".hal/surplus.json"
    monkeypatch.setattr(install.time, "time", lambda: 10_000.0)
    until = ": not before " + time.strftime("%Y-%m-%d %H:%M", time.localtime(17_200))
    installer.checking = True
    assert installer._early(str(path), True) == until
    assert not note.exists()
    installer.checking = False
    assert installer._early(str(path), True) == until
    assert json.loads(note.read_text()) == {"since": 10_000.0}
    monkeypatch.setattr(install.time, "time", lambda: 17_199.0)
    assert installer._early(str(path), True) == until
    monkeypatch.setattr(install.time, "time", lambda: 17_200.0)
    assert installer._early(str(path), True) == ""
    assert json.loads(note.read_text()) == {"since": 10_000.0}
    installer.checking = True
    assert installer._early(str(path), False) == ""
    assert note.exists()
    installer.checking = False
    assert installer._early(str(path), False) == ""
    assert not note.exists()
    assert installer._early(str(path), False) == ""
    installer.settings["grace_hours"] = 0.0
    assert installer._early(str(path), True).startswith(": not before "), "never in the run that notes it"


def test_folders_of_a_role_are_those_with_a_finished_prefix_of_it(installer: Any, tmp_path: Path) -> None:
    for name, owner in (("a/1.x", "tools"), ("a/2.x", "tools"), ("b/1.x", "other"), ("c/1.x", ""), (".h/1", "tools")):
        (tmp_path / name / ".hal").mkdir(parents=True)
        if owner:
            (tmp_path / name / ".hal/record.json").write_text(json.dumps({"owner": owner}))
    (tmp_path / "b/0").symlink_to("../a/1.x")
    (tmp_path / "d").symlink_to("a")
    (tmp_path / "file").touch()
    assert list(installer._folders("tools")) == [str(tmp_path / "a")]
    assert list(installer._folders("other")) == [str(tmp_path / "b")]


def test_only_a_finished_prefix_in_use_is_verified(
    install: Any, part: Callable[[str], Any], env: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = part("common").Problem
    with pytest.raises(problem, match=r"is not there: it is not installed$"):
        install.verify(env)
    path = prefix(env, NAME)
    Path(env["link"]).symlink_to(NAME)
    with pytest.raises(problem, match=r"whose installation was never finished$"):
        install.verify(env)
    (path / ".hal/record.json").write_text("{}")

    def compare(_: str) -> Any:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(part("manifest"), "compare", compare)
    with pytest.raises(problem) as refused:
        install.verify(env)
    assert str(refused.value) == f"{path}: cannot be read: [Errno 5] broken"
    many = [str(number) for number in range(101)]
    found = {"changed": many, "missing": [], "extra": [], "unlike": [], "writable": []}
    monkeypatch.setattr(part("manifest"), "compare", lambda _: found)
    monkeypatch.setattr(install.time, "time", lambda: 7.0)
    assert install.verify(env) == "101 changed (0, 1, 2 and 98 more)"
    noted = json.loads((path / ".hal/verified.json").read_text())
    assert (noted["words"], noted["time"]) == ("101 changed (0, 1, 2 and 98 more)", 7.0)
    assert noted["wrong"] == {**found, "changed": many[:100]}
