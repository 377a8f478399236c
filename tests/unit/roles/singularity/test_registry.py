"""hal-container: a build is published in one step or not at all, what was there stays, and what changed is named."""

from __future__ import annotations

import importlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.rules.singularity.registry import name_problem

pytestmark = pytest.mark.root  # files are given to it

SIF = b"\0" * 32 + b"SIF_MAGIC\0"
VERSION = {"definition": "Bootstrap: localimage\n", "definition_sha256": "0", "built_at": 0, "built_by": "hal-build",
           "on": "hal-login", "singularity": "3.5.3"}  # fmt: skip


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
    with pytest.raises(parts("common").Problem, match=r"is not an image of Singularity"):
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
    assert registry.verify() == {"mine": "was published by nobody", "led": "is not a file of its own"}


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", ".hidden", "x.sif", "Tool", "tool--20200101", "x" * 64, "a b", "-x"]
)
def test_names_that_would_lead_elsewhere_are_refused(parts: Any, name: str) -> None:
    with pytest.raises(parts("common").Problem, match="is not a name of an image"):
        parts("common").check_name(name)
    assert name_problem(name)


@pytest.mark.parametrize("name", ["pytorch", "tf-2.1", "a", "x_1.0", "x" * 63])
def test_names_that_are_fine(parts: Any, name: str) -> None:
    parts("common").check_name(name)
    assert name_problem(name) == ""


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


# ---------------------------------------------------------------- while somebody publishes, or takes away
def test_what_was_published_since_the_record_was_read_is_no_fault(registry: Any, tmp_path: Path) -> None:
    publish(registry, tmp_path)
    known = registry.versions()
    publish(registry, tmp_path, SIF + b"new")
    assert registry.wrong("tool", known) == ""


def test_a_publication_while_an_image_is_read_is_no_fault(
    registry: Any, parts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(registry, tmp_path)
    real, again = parts("registry").sha256_of_rest, [SIF + b"new"]

    def exchanged(stream: Any) -> str:
        if again:
            publish(registry, tmp_path, again.pop())
        found: str = real(stream)
        return found

    monkeypatch.setattr(parts("registry"), "sha256_of_rest", exchanged)
    assert registry.verify() == {}
    assert not again


def test_an_image_that_is_taken_away_meanwhile_is_no_fault(
    registry: Any, told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(registry, tmp_path)
    monkeypatch.setattr(type(registry), "images", lambda _: ["gone", "tool"])
    assert registry.verify() == {}
    assert registry._changed("gone") == ""
    assert json.loads(told("status")[1])["wrong"] == []
    assert [row.split()[0] for row in told("list")[1].splitlines()] == ["IMAGE", "tool"]


def test_what_was_found_is_no_fault_of_what_was_published_since(told: Any, registry: Any, tmp_path: Path) -> None:
    path, _ = publish(registry, tmp_path, built_at=time.time() - 100)
    change_quietly(Path(path))
    assert told("verify")[0] == 1
    assert json.loads(told("status")[1])["wrong"] == [f"{path} has another content than was published"]
    publish(registry, tmp_path, SIF + b"new", built_at=time.time() + 1)
    assert json.loads(told("status")[1])["wrong"] == []


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
