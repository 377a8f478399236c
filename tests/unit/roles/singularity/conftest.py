"""What the tests of role singularity share: its programs, imported as they are found where they run."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pwd
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.hal_node.conftest import lines as lines

ROOT = Path(__file__).resolve().parents[4]
FILES = ROOT / "roles" / "singularity" / "files"
for folder in (ROOT, FILES, ROOT / "plugins" / "module_utils"):
    sys.path.insert(0, str(folder))


@pytest.fixture(scope="session")
def parts() -> Any:
    """A function: the name of a part of hal-container -> its module."""
    return lambda name: importlib.import_module(f"container_{name}")


@pytest.fixture
def registry(parts: Any, tmp_path: Path) -> Any:
    """A registry of images in a folder of the test."""
    return parts("registry").Registry(str(tmp_path / "containers"), "")


@pytest.fixture
def settings(parts: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A build user whose numbers are nobody's, a folder that he may enter, a program that does what definitions say.

    All that runs with his numbers is ended, so each process that runs tests has its own.
    """
    uid, start = 1_900_000_000 + os.getpid(), 3_000_000_000 + os.getpid() % 10_000 * 65_536
    account = pwd.struct_passwd(("builder", "x", uid, uid, "", "/nonexistent", "/sbin/nologin"))
    known = {"builder": account, "root": pwd.getpwnam("root")}
    monkeypatch.setattr(parts("build").pwd, "getpwnam", lambda name: known[name])
    place = Path(tempfile.mkdtemp(prefix="hal-container-", dir="/tmp"))
    place.chmod(0o755)
    folder = place / "builds"
    folder.mkdir()
    program = place / "singularity"
    program.write_text("#!/bin/sh\n[ $1 = version ] && { echo 3.5.3; exit; }\nIMAGE=$3 exec sh $4\n")
    program.chmod(0o755)
    (place / "ranges").write_text(f"{uid}:{start}:65536\n")
    monkeypatch.setattr(parts("build"), "RANGES", (str(place / "ranges"),))
    monkeypatch.setattr(parts("processes"), "SPOOLS", (str(place / "cron"),))
    monkeypatch.setattr(
        parts("build"), "LOCAL", parts("build").LOCAL | {parts("common").file_system_of(str(folder))[1]}
    )
    yield {
        "program": str(program), "build_user": "builder", "build_dir": str(folder), "build_room_mb": 1,
        "build_timeout_seconds": 600,
        "users": [{"name": "builder", "uid": uid, "slot": 9, "start": start, "count": 65536, "enabled": True}],
    }  # fmt: skip
    shutil.rmtree(place)


@pytest.fixture
def alive(settings: dict[str, Any]) -> Any:
    """A function: -> numbers of processes that have a number of the build user, threads of an ended leader too."""
    user = settings["users"][0]

    def found() -> list[int]:
        tasks = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            text = _read(f"/proc/{pid}/status").decode(errors="replace")
            ids = [int(one) for one in (re.findall(r"^Uid:(.*)", text, re.MULTILINE) or [""])[0].split()]
            ended = re.search(r"^State:\s+Z", text, re.MULTILINE) and not re.search(r"^Threads:\s+[^01]", text, re.M)
            if not ended and any(one == user["uid"] or 0 <= one - user["start"] < 65536 for one in ids):
                tasks.append(int(pid))
        return tasks

    return found


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
