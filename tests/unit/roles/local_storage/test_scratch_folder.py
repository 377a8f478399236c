"""A folder for scratch that was there before keeps owner and mode; one that was just made gets the declared mode."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster.rules.errors import RuleError
from hal_cluster.rules.local_storage import scratch
from tests.unit.hal_node.storage.conftest import PROJECT

RECORD = "/etc/hal-scratch-clean.json"
RECORDED = f"used f 644 root:root {RECORD}"
NO_RECORD = f"find: '{RECORD}': No such file or directory"


def seen(*lines: str, errors: tuple[str, ...] = (NO_RECORD,)) -> dict[str, Any]:
    """What find said; the words of its errors are those of findutils 4.5.11 (CentOS 7) in the C locale."""
    return {"stdout_lines": list(lines), "stderr_lines": list(errors)}


@pytest.mark.parametrize(
    "found",
    [
        seen(errors=("find: '/scratch': No such file or directory", NO_RECORD)),
        seen("empty d 755 root:root /scratch"),  # mkdir, or a file system that was just made
        seen("used d 1777 root:root /scratch"),
        seen("used d 1777 root:research /scratch"),
        seen("used d 2775 root:research /scratch", RECORDED, errors=()),
    ],
)
def test_what_is_ours_new_or_as_declared_is_taken(found: dict[str, Any]) -> None:
    assert scratch.problem(found, {"mount": "/scratch"}, RECORD) == ""


@pytest.mark.parametrize(
    ("line", "shown", "keep"),
    [
        ("used d 2775 root:research /scratch", "mode 2775, of root:research", "2775"),
        ("used d 755 root:root /scratch", "mode 0755, of root:root", "0755"),  # a folder of each user is in it
        ("empty d 755 root:research /scratch", "mode 0755, of root:research", "0755"),
        ("empty d 777 root:root /scratch", "mode 0777, of root:root", "0777"),
    ],
)
def test_what_somebody_made_is_shown_with_the_line_that_keeps_it(line: str, shown: str, keep: str) -> None:
    problem = scratch.problem(seen(line), {"mount": "/scratch"}, RECORD)
    assert shown in problem
    assert "-e local_storage_scratch_mode_ok=true" in problem
    declared = f'local_storage_scratch: {{mount: /scratch, mode: "{keep}"}}'
    assert declared in problem
    assert scratch.problem(seen(line), yaml.safe_load(declared)["local_storage_scratch"], RECORD) == ""


def test_what_is_no_folder_or_cannot_be_seen_is_refused() -> None:
    assert "is no folder" in scratch.problem(seen("used f 644 root:root /scratch"), {"mount": "/scratch"}, RECORD)
    for errors in (("find: '/scratch': Stale file handle",), ("find: '/scratch': Permission denied", NO_RECORD)):
        problem = scratch.problem(seen(errors=errors), {"mount": "/scratch"}, RECORD)
        assert problem.startswith("/scratch cannot be looked at, so nothing was changed: find: ")
    assert "find said nothing" in scratch.problem(seen(errors=()), {"mount": "/scratch"}, RECORD)
    with pytest.raises(RuleError, match="find said"):
        scratch.problem(seen("empty"), {"mount": "/scratch"}, RECORD)


def test_the_task_asks_in_this_form(tmp_path: Path) -> None:
    """The real find: a folder, an empty one, a link to one, what is not there, and names that a user chose."""
    task = yaml.safe_load((PROJECT / "roles/local_storage/tasks/look.yml").read_text())[0]
    (tmp_path / "used").mkdir(mode=0o2750)
    (tmp_path / "used").chmod(0o2750)
    (tmp_path / "used" / f"x\nused f 644 root:root {RECORD}".replace("/", "_")).mkdir()
    (tmp_path / "empty").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("used")

    def found(name: str) -> dict[str, Any]:
        names = {
            "{{ local_storage_scratch.mount }}": str(tmp_path / name),
            "{{ __local_storage_scratch_file }}": RECORD,
        }
        argv = [names.get(word, word) for word in task["hal_command"]["argv"]]
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, env={**os.environ, **task["environment"]}
        )
        return {"stdout_lines": done.stdout.splitlines(), "stderr_lines": done.stderr.splitlines()}

    def problem(name: str) -> str:
        return scratch.problem(found(name), {"mount": str(tmp_path / name)}, RECORD)

    me = f"{tmp_path.owner()}:{tmp_path.group()}"
    assert found("used")["stdout_lines"] == [f"used d 2750 {me} {tmp_path}/used"]
    assert found("empty")["stdout_lines"] == [f"empty d 700 {me} {tmp_path}/empty"]
    assert f"mode 2750, of {me}" in problem("used")
    assert f"mode 2750, of {me}" in problem("link")
    assert problem("none") == ""
