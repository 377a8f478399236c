"""hal-container: a build is published in one step or not at all, what was there stays, and what changed is named."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if os.geteuid() != 0:
    pytest.skip("files are given to root", allow_module_level=True)

SIF = b"\0" * 32 + b"SIF_MAGIC\0"
VERSION = {"definition": "Bootstrap: localimage\n", "definition_sha256": "0", "built_at": 0, "built_by": "hal-build",
           "on": "hal-login", "singularity": "3.5.3"}  # fmt: skip


@pytest.fixture
def registry(parts: Any, tmp_path: Path) -> Any:
    return parts("registry").Registry(str(tmp_path / "containers"), "")


def built(folder: Path, content: bytes = SIF) -> str:
    path = folder / "image.sif"
    path.write_bytes(content)
    os.utime(path, (time.time(), time.time()))
    return str(path)


def publish(registry: Any, folder: Path, content: bytes = SIF, built_at: float | None = None) -> Any:
    return registry.publish("tool", built(folder, content), {**VERSION, "built_at": built_at or time.time()})


def test_an_image_is_root_s_and_read_only(registry: Any, tmp_path: Path) -> None:
    path, older = publish(registry, tmp_path)
    status = os.stat(path)
    assert (Path(path).name, older) == ("tool.sif", None)
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (0, 0, 0o555)
    assert registry.images() == ["tool"]
    assert registry.verify() == {}
    assert sorted(os.listdir(registry.root)) == [".hal", "tool.sif"]
    assert os.stat(registry.root).st_mode & 0o7777 == 0o755


def test_a_new_version_keeps_the_old_one_under_its_date(registry: Any, tmp_path: Path) -> None:
    path, _ = publish(registry, tmp_path)
    os.utime(path, (1600000000, 1600000000))
    known = json.loads(Path(registry.record).read_text())
    known["images"]["tool"][0]["mtime"] = 1600000000
    Path(registry.record).write_text(json.dumps(known))
    _, older = publish(registry, tmp_path, SIF + b"new")
    assert Path(older).name == "tool--20200913-122640.sif"
    assert Path(older).read_bytes() == SIF
    assert Path(path).read_bytes() == SIF + b"new"
    assert registry.images() == ["tool", "tool--20200913-122640"]
    assert registry.verify() == {}


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", SIF[:36]])
def test_what_is_no_image_is_not_published(registry: Any, parts: Any, tmp_path: Path, content: bytes) -> None:
    publish(registry, tmp_path)
    with pytest.raises(parts("common").Problem, match=r"is no image of Singularity"):
        publish(registry, tmp_path, content)
    assert Path(registry.path("tool")).read_bytes() == SIF
    assert os.listdir(registry.hidden).count("incoming.sif") == 0


def test_a_link_of_the_build_user_is_not_followed(registry: Any, parts: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(SIF)
    (tmp_path / "image.sif").symlink_to(secret)
    with pytest.raises(parts("common").Problem, match="not published"):
        registry.publish("tool", str(tmp_path / "image.sif"), VERSION)
    assert registry.images() == []


def test_a_full_disk_half_way_publishes_nothing(
    registry: Any, parts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(registry, tmp_path)

    def full(reader: Any, writer: Any, size: int) -> None:
        writer.write(reader.read(20))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parts("registry").shutil, "copyfileobj", full)
    with pytest.raises(parts("common").Problem, match="tool: not published: No space left on device"):
        publish(registry, tmp_path, SIF + b"new")
    assert Path(registry.path("tool")).read_bytes() == SIF
    assert sorted(os.listdir(registry.hidden)) == ["registry.json", "retired"]
    assert registry.verify() == {}


def change(path: Path) -> None:
    path.chmod(0o755)
    path.write_bytes(SIF + b"changed")
    path.chmod(0o555)


def change_quietly(path: Path) -> None:
    before = path.stat()
    path.chmod(0o755)
    path.write_bytes(SIF[:-1] + b"x")
    path.chmod(0o555)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    ("plant", "words", "only_read"),
    [
        (change, "is not what was published", False),
        (change_quietly, "has another content than was published", True),
        (lambda path: path.chmod(0o777), "has mode 0777, not 0555", False),
        (lambda path: os.chown(path, 5001, 0), "belongs to uid 5001, gid 0, not to root", False),
    ],
)
def test_what_was_changed_by_hand_is_named(
    registry: Any, tmp_path: Path, plant: Any, words: str, only_read: bool
) -> None:
    path, _ = publish(registry, tmp_path)
    plant(Path(path))
    assert registry.verify() == {"tool": words}
    assert registry.wrong("tool", registry.versions()) == ("" if only_read else words)


def test_what_somebody_put_there_is_named(registry: Any, tmp_path: Path) -> None:
    registry.setup()
    Path(registry.path("mine")).write_bytes(SIF)
    Path(registry.path("led")).symlink_to("/etc/passwd")
    assert registry.verify() == {"mine": "was published by nobody", "led": "is no file of its own"}


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", ".hidden", "x.sif", "Tool", "tool--20200101", "x" * 64, "a b", "-x"]
)
def test_names_that_would_lead_elsewhere_are_refused(parts: Any, filters: Any, name: str) -> None:
    with pytest.raises(parts("common").Problem, match="is no name of an image"):
        parts("common").check_name(name)
    assert filters.hal_container_problem(name)


@pytest.mark.parametrize("name", ["pytorch", "tf-2.1", "a", "x_1.0", "x" * 63])
def test_names_that_are_fine(parts: Any, filters: Any, name: str) -> None:
    parts("common").check_name(name)
    assert filters.hal_container_problem(name) == ""


def test_nothing_is_done_where_the_file_system_is_missing(parts: Any, tmp_path: Path) -> None:
    registry = parts("registry").Registry(str(tmp_path / "home/apps/containers"), str(tmp_path / "home"))
    with pytest.raises(parts("common").Problem, match=r"home is not mounted: nothing is done"):
        registry.setup()
    assert not (tmp_path / "home").exists()


def test_a_damaged_record_is_said(registry: Any, parts: Any) -> None:
    registry.setup()
    Path(registry.record).write_text("{")
    with pytest.raises(parts("common").Problem, match="is damaged"):
        registry.versions()


# ---------------------------------------------------------------- builds
@pytest.fixture
def settings(parts: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A build user who exists (nobody), a folder that he may enter, a program that does what a definition says."""
    place = Path(tempfile.mkdtemp(prefix="hal-container-", dir="/tmp"))
    place.chmod(0o755)
    folder = place / "builds"
    folder.mkdir()
    program = place / "singularity"
    program.write_text("#!/bin/sh\n[ $1 = version ] && { echo 3.5.3; exit; }\nIMAGE=$3 exec sh $4\n")
    program.chmod(0o755)
    monkeypatch.setattr(parts("build"), "_has_range", lambda path, user: True)
    monkeypatch.setattr(
        parts("build"), "LOCAL", parts("build").LOCAL | {parts("common").file_system_of(str(folder))[1]}
    )
    yield {
        "program": str(program), "build_user": "nobody", "build_dir": str(folder), "build_room_mb": 1,
        "build_timeout_seconds": 20,
    }  # fmt: skip
    shutil.rmtree(place)


def definition(folder: Path, text: str) -> str:
    path = folder / "x.def"
    path.write_text(text)
    return str(path)


def test_a_build_runs_as_its_user_and_leaves_nothing(
    parts: Any, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_ROOT", "1")
    text = definition(tmp_path, "id -un >$IMAGE; env >>$IMAGE; ls -ld . >>$IMAGE\n")
    said, version = parts("build").build(settings, text, lambda path, version: (Path(path).read_text(), version))
    assert said.startswith("nobody\n")
    assert "SECRET_OF_ROOT" not in said
    assert "drwx------" in said
    assert version["built_by"] == "nobody"
    assert version["singularity"] == "3.5.3"
    assert version["definition"].startswith("id -un")
    assert os.listdir(settings["build_dir"]) == []


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo half >$IMAGE; exit 3\n", r"the build failed \(exit status 3"),
        ("kill -9 $$\n", r"the build failed \(exit status -9"),
    ],
)
def test_a_build_that_fails_publishes_nothing(
    parts: Any, settings: dict[str, Any], tmp_path: Path, script: str, said: str
) -> None:
    with pytest.raises(parts("common").Problem, match=said):
        parts("build").build(settings, definition(tmp_path, script), lambda *_: pytest.fail("published"))
    assert os.listdir(settings["build_dir"]) == []


def test_a_build_that_takes_too_long_is_ended_with_all_it_started(
    parts: Any, settings: dict[str, Any], tmp_path: Path
) -> None:
    settings["build_timeout_seconds"] = 1
    text = definition(tmp_path, "setsid sleep 4321 & sleep 4321\n")
    started = time.monotonic()
    with pytest.raises(parts("common").Problem, match="took longer than 1 s"):
        parts("build").build(settings, text, lambda *_: pytest.fail("published"))
    assert time.monotonic() - started < 15
    time.sleep(0.2)
    alive = [
        pid for pid in os.listdir("/proc")
        if pid.isdigit() and b"sleep\x004321" in _read(f"/proc/{pid}/cmdline")
    ]  # fmt: skip
    assert alive == []


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def test_what_a_killed_build_left_goes_after_two_days(parts: Any, settings: dict[str, Any], tmp_path: Path) -> None:
    folder = Path(settings["build_dir"])
    for name, age in (("build-old", 3), ("build-new", 1), ("other", 9)):
        (folder / name / "locked").mkdir(parents=True)
        (folder / name / "locked").chmod(0)
        os.utime(folder / name, (time.time() - age * 86400,) * 2)
    parts("build").build(settings, definition(tmp_path, "touch $IMAGE\n"), lambda *_: None)
    assert sorted(os.listdir(folder)) == ["build-new", "other"]


def test_what_a_build_needs_is_asked_first(
    parts: Any, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, text = parts("common").Problem, definition(tmp_path, "")

    def said(match: str, **changes: Any) -> None:
        with pytest.raises(problem, match=match):
            parts("build").build({**settings, **changes}, changes.pop("definition", text), lambda *_: None)

    said("no such definition", definition=str(tmp_path / "none.def"))
    said("root is root", build_user="root")
    said("has no account here: give it a slot in users.yml", build_user="hal-nobody-at-all")
    said(r"left, and a build may need", build_room_mb=10**9)
    monkeypatch.setattr(parts("build"), "LOCAL", frozenset())
    said("files there do not keep the ids of a build")
    monkeypatch.undo()
    said("no range for nobody: give it a slot")


def test_of_mounts_the_last_above_a_path_counts(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("/", "xfs"), ("/home", "gpfs"), ("/home/x y", "tmpfs")]
    monkeypatch.setattr(parts("common"), "mounts", lambda: rows)
    assert parts("common").file_system_of("/home/apps") == ("/home", "gpfs")
    assert parts("common").file_system_of("/homes") == ("/", "xfs")
    assert parts("common").file_system_of("/home/x y/z") == ("/home/x y", "tmpfs")


# ---------------------------------------------------------------- what users and the audit are told
@pytest.fixture
def told(parts: Any, registry: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """A function: a command of hal-container -> exit status, standard output, standard error."""
    program: Any = importlib.import_module("hal_container")
    builds = tmp_path / "no-builds"
    settings = {
        "registry": registry.root, "mount": "", "verified": str(tmp_path / "verified.json"), "verify_max_days": "15",
        "build_dir": str(builds), "users": [],
    }  # fmt: skip
    (tmp_path / "containers.json").write_text(json.dumps(settings))
    program.CONFIG = str(tmp_path / "containers.json")

    def run(*words: str) -> tuple[int, str, str]:
        status = program.main(list(words))
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def test_the_status_is_what_stands_there_and_what_was_last_read(told: Any, registry: Any, tmp_path: Path) -> None:
    path, _ = publish(registry, tmp_path)
    assert json.loads(told("status")[1]) == {"images": ["tool"], "wrong": [], "late": ""}
    change_quietly(Path(path))
    assert json.loads(told("status")[1])["wrong"] == []
    assert told("verify")[::2] == (1, f"{path} has another content than was published\n")
    assert json.loads(told("status")[1])["wrong"] == [f"{path} has another content than was published"]


def test_an_image_that_nobody_read_for_weeks_is_late(told: Any, registry: Any, tmp_path: Path) -> None:
    publish(registry, tmp_path, built_at=time.time() - 20 * 86400)
    assert json.loads(told("status")[1])["late"] == "not read again for 20 days"
    assert told("verify")[0] == 0
    assert json.loads(told("status")[1])["late"] == ""


def test_users_are_shown_what_there_is_and_where_it_is_from(told: Any, registry: Any, tmp_path: Path) -> None:
    assert told("list") == (0, f"no images in {registry.root} yet\n", "")
    publish(registry, tmp_path)
    assert told("list")[1].splitlines()[1].split()[0] == "tool"
    shown = told("show", "tool")[1]
    assert "by hal-build on hal-login with Singularity 3.5.3" in shown
    assert shown.endswith("Bootstrap: localimage\n")
    assert told("show", "none")[::2] == (1, "hal-container: none: no such image; hal-container list\n")


@pytest.mark.parametrize(
    ("words", "status"), [([], 2), (["frob"], 2), (["show"], 2), (["--help"], 0), (["list", "x"], 2)]
)
def test_wrong_use_is_said(told: Any, words: list[str], status: int) -> None:
    assert told(*words)[0] == status
