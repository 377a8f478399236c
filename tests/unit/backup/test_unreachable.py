"""playbooks/restore.yml when the node goes away: nothing that was decrypted stays at the controller.

The playbook as it is, with a real archive; ssh is a program that runs the node's part here until the node is gone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.interpreters import LOCAL
from tests.unit.playing import play

ROOT = Path(__file__).resolve().parents[3]
# The last argument is what sshd would give to the node's shell.
SSH = """#!/bin/sh
for command; do :; done
{gone} && {{ echo 'ssh: connect to host hal-mgmt1 port 22: No route to host' >&2; exit 255; }}
exec sh -c "$command"
"""
CALLBACKS = "hal_audit_report"  # nothing is recorded
Restore = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the controller has its temporary files; a short path, for the socket of gpg's agent."""
    with tempfile.TemporaryDirectory(prefix="h") as path:
        yield Path(path)


@pytest.fixture
def restore(programs: Any, key: SimpleNamespace, tmp_path: Path, folder: Path) -> Restore:
    """Return a function: a condition of sh under which the node is gone -> the run that shows the plan."""
    (tmp_path / "secret").write_text("a secret of the node")
    source = {"name": "a_key", "kind": "files", "paths": [str(tmp_path / "secret")]}
    stage = tmp_path / "stage"
    stage.mkdir()
    programs.sources.save(source, str(stage / "a_key"))
    manifest = {"site": "hal", "node": "hal-mgmt1", "made": int(time.time()), "sources": [source]}
    programs.archive.pack(str(stage), manifest, str(tmp_path / "plain.tar.gz"))
    programs.archive.encrypt(str(tmp_path / "plain.tar.gz"), str(tmp_path / "sealed.tar.gz.gpg"), key.public)
    ssh = tmp_path / "ssh"

    def run(gone: str, *arguments: str, node: str = "hal-mgmt1") -> subprocess.CompletedProcess[str]:
        ssh.write_text(SSH.format(gone=gone))
        ssh.chmod(0o755)
        variables = {
            "restore_node": node,
            "restore_archive": str(tmp_path / "sealed.tar.gz.gpg"),
            "backup_public_key": key.public.decode(),
            "backup_private_key": key.private.decode(),
            "ansible_ssh_executable": str(ssh),
            "ansible_ssh_transfer_method": "piped",
            "ansible_ssh_retries": 0,
            "ansible_become": False,
            "ansible_remote_tmp": str(tmp_path / "remote"),
            "ansible_python_interpreter": LOCAL,
        }
        (tmp_path / "variables.json").write_text(json.dumps(variables))
        named = ["--extra-vars", f"@{tmp_path / 'variables.json'}", *arguments]
        return play("playbooks/restore.yml", *named, ANSIBLE_CALLBACKS_ENABLED=CALLBACKS, TMPDIR=str(folder))

    return run


@pytest.fixture
def there() -> Iterator[Callable[[], set[Path]]]:
    """Return a function: folders of restores in the node's /var/tmp, which here is this machine's, made since."""
    before = set(Path("/var/tmp").glob("hal-restore-*"))

    def made() -> set[Path]:
        return set(Path("/var/tmp").glob("hal-restore-*")) - before

    yield made
    for path in made():
        shutil.rmtree(path)


def words(run: subprocess.CompletedProcess[str]) -> str:
    return " ".join((run.stdout + run.stderr).split())


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("hal-restore-")]


def test_a_plan_leaves_nothing_on_either_side(restore: Restore, folder: Path, there: Callable[[], set[Path]]) -> None:
    """Nor does it leave what runs left that were killed; those of today are of somebody else."""
    for name, age_hours in (("hal-restore-old", 30), ("hal-restore-of-now", 1)):
        (folder / name).mkdir()
        (folder / name / "archive.tar.gz").touch()
        os.utime(folder / name, (time.time() - age_hours * 3600,) * 2)
    run = restore("false")
    assert "To restore this, repeat with -e restore_confirm=" in words(run), words(run)
    assert left(folder) == ["hal-restore-of-now"]
    assert there() == set()


def test_a_node_that_is_gone_leaves_nothing_decrypted(restore: Restore, folder: Path) -> None:
    run = restore("true")
    assert run.returncode != 0
    assert "unreachable=1" in words(run), words(run)
    assert "TASK [Decrypt it and read all of it]" in words(run)
    assert left(folder) == []


def test_a_node_that_goes_away_is_told_what_it_has(
    restore: Restore, folder: Path, there: Callable[[], set[Path]], tmp_path: Path
) -> None:
    """It goes when the plan was brought to it."""
    known = " ".join(f"! -path {path}" for path in Path("/var/tmp").glob("hal-restore-*/result.json"))
    run = restore(f"[ -n \"$(find /var/tmp -path '/var/tmp/hal-restore-*/result.json' {known} 2>/dev/null)\" ]")
    assert run.returncode != 0
    assert "unreachable=1" in words(run), words(run)
    assert left(folder) == []
    (path,) = there()
    assert f"went away in the middle. hal-mgmt1:{path} is there, with what was decrypted: remove it." in words(run)


@pytest.mark.parametrize(("node", "count"), [("hal-mgmt1,hal-login", 2), ("hal-mgmt9", 0)])
def test_one_node_at_a_time(restore: Restore, folder: Path, node: str, count: int) -> None:
    run = restore("true", node=node)
    assert run.returncode != 0
    assert f"restore_node names {count} nodes; archives are of one node each." in words(run)
    assert left(folder) == []


def test_a_limit_that_leaves_out_who_cleans_up_is_refused(restore: Restore, folder: Path) -> None:
    run = restore("false", "--limit", "hal-mgmt1")
    assert run.returncode != 0
    assert "--limit leaves out localhost, which removes what was decrypted." in words(run)
    assert left(folder) == []
