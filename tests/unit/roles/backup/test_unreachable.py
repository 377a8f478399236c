"""playbooks/restore.yml: what it refuses, and when the node goes away nothing decrypted stays at the controller.

The playbook as it is, with a real archive; ssh is a program that runs the node's part here until the node is gone.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hal_node.digest import sha256_of
from tests.unit.interpreters import LOCAL
from tests.unit.playing import UNRECORDED, play
from tests.unit.roles.backup.archives import Member, folders, manifest, write

ROOT = Path(__file__).resolve().parents[4]
# The last argument is what sshd would give to the node's shell.
SSH = """#!/bin/sh
for command; do :; done
{gone} && {{ echo 'ssh: connect to host hal-mgmt1 port 22: No route to host' >&2; exit 255; }}
exec sh -c "$command"
"""
CALLBACKS = f"{UNRECORDED},hal_audit_report"
Restore = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder() -> Iterator[Path]:
    """The state of the site, and temporary files; a short path, for the socket of gpg's agent. In it the node's."""
    with tempfile.TemporaryDirectory(prefix="h") as path:
        Path(path, "node").mkdir()
        yield Path(path)


@pytest.fixture
def source(tmp_path: Path) -> dict[str, Any]:
    """What hal-mgmt1 declares beside the role's own."""
    (tmp_path / "secret").write_text("a secret of the node")
    return {"name": "a_key", "kind": "files", "paths": [str(tmp_path / "secret")], "stops": []}


def seal(programs: Any, key: SimpleNamespace, folder: Path, plain: Path, made: int) -> Path:
    """Encrypt an archive, and put beside it what the store would: it is signed by a key that the controller has."""
    sealed = plain.with_name(programs.common.archive_name("hal-mgmt1", made))
    programs.archive.encrypt(str(plain), str(sealed), key.public)
    programs.sign.make_key(str(plain.with_name("signing_key")))
    public = programs.sign.public(str(plain.with_name("signing_key")))
    signers = folder / "ca" / "backup" / "signers" / "hal-mgmt1"
    signers.mkdir(parents=True, exist_ok=True)
    (signers / f"{programs.sign.name_of(public)}.pem").write_text(public)
    digest = sha256_of(str(sealed))
    words = programs.sign.statement("hal", "hal-mgmt1", made, digest)
    signature = programs.sign.sign(str(plain.with_name("signing_key")), words)
    sealed.with_name(f"{sealed.name}.json").write_text(json.dumps({"sha256": digest, "signature": signature}))
    return sealed


@pytest.fixture
def restore(programs: Any, key: SimpleNamespace, source: dict[str, Any], tmp_path: Path, folder: Path) -> Restore:
    """Return a function: a condition of sh under which the node is gone -> the run that shows the plan."""
    stage = tmp_path / "stage"
    stage.mkdir()
    programs.sources.save(source, str(stage / "a_key"))
    made = int(time.time())
    said = {"site": "hal", "node": "hal-mgmt1", "made": made, "sources": [{"name": "a_key", "kind": "files"}]}
    programs.archive.pack(str(stage), said, str(tmp_path / "plain.tar.gz"))
    sealed = seal(programs, key, folder, tmp_path / "plain.tar.gz", made)
    ssh = tmp_path / "ssh"

    def run(gone: str, *arguments: str, node: str = "hal-mgmt1", **more: Any) -> subprocess.CompletedProcess[str]:
        ssh.write_text(SSH.format(gone=gone))
        ssh.chmod(0o755)
        variables = {
            "restore_node": node,
            "restore_archive": str(sealed),
            "backup_sources_extra": {"slurm_database": [source]},
            "backup_public_key": key.public.decode(),
            "backup_private_key": key.private.decode(),
            "ansible_ssh_executable": str(ssh),
            "ansible_ssh_transfer_method": "piped",
            "ansible_ssh_retries": 0,
            "ansible_become": False,
            "__restore_node_dir": str(folder / "node"),
            "ansible_remote_tmp": str(tmp_path / "remote"),
            "ansible_python_interpreter": LOCAL,
            **more,
        }
        (tmp_path / "variables.json").write_text(json.dumps(variables))
        named = ["--extra-vars", f"@{tmp_path / 'variables.json'}", *arguments]
        return play(
            "playbooks/restore.yml", *named, state=folder, ANSIBLE_CALLBACKS_ENABLED=CALLBACKS, TMPDIR=str(folder)
        )

    return run


def words(run: subprocess.CompletedProcess[str]) -> str:
    return " ".join((run.stdout + run.stderr).split())


def left(folder: Path) -> list[str]:
    """What is left of restores in a folder, at the controller or on the node."""
    return [path.name for path in folder.iterdir() if path.name.startswith("hal-restore-")]


def test_a_plan_leaves_nothing_on_either_side(restore: Restore, folder: Path) -> None:
    """Nor does it leave what runs left that were killed; those of today are of somebody else."""
    for side in (folder, folder / "node"):
        for name, age_hours in (("hal-restore-old", 30), ("hal-restore-of-now", 1)):
            (side / name).mkdir()
            (side / name / "archive.tar.gz").touch()
            os.utime(side / name, (time.time() - age_hours * 3600,) * 2)
    run = restore("false")
    assert "To restore this, repeat with -e restore_confirm=" in words(run), words(run)
    assert "a_key: 1 files, the same as in the archive" in words(run)
    assert "SIGNED BY NOBODY" not in words(run)
    assert left(folder) == ["hal-restore-of-now"]
    assert left(folder / "node") == ["hal-restore-of-now"]


def test_a_plan_has_what_happens_to_each_path(restore: Restore, tmp_path: Path) -> None:
    (tmp_path / "secret").unlink()
    run = restore("false", "--check")
    assert run.returncode == 0, words(run)
    assert "a_key: nothing is there" in words(run)
    assert f"{tmp_path}/secret: new, 0" in words(run)
    assert not (tmp_path / "secret").exists()


def test_what_nobody_signed_is_refused_until_somebody_permits_it(
    restore: Restore, folder: Path, tmp_path: Path
) -> None:
    """A copy of an archive alone, with nothing of the store beside it."""
    (beside,) = tmp_path.glob("hal-mgmt1-*.json")
    beside.write_text("{")
    assert f"{beside} cannot be read: " in words(restore("false"))
    beside.unlink()
    run = restore("false")
    assert run.returncode != 0
    assert f"{beside.stem} may be from anybody: nobody signed it." in words(run), words(run)
    assert "-e restore_unsigned_ok=true permits it. Nothing was touched." in words(run)
    assert left(folder) == []
    run = restore("false", restore_unsigned_ok=True)
    assert "SIGNED BY NOBODY that this controller knows" in words(run), words(run)
    assert "To restore this, repeat with -e restore_confirm=" in words(run)


def test_what_a_revoked_key_signed_has_a_permission_of_its_own(restore: Restore, folder: Path) -> None:
    """After a break-in: the node's own archives of before, and none that somebody puts there in its name."""
    (public,) = (folder / "ca" / "backup" / "signers" / "hal-mgmt1").iterdir()
    public.rename(f"{public}.revoked")
    run = restore("false", restore_unsigned_ok=True)
    assert "it was signed by a key that was revoked since." in words(run), words(run)
    assert "-e restore_revoked_ok=true permits it. Nothing was touched." in words(run)
    run = restore("false", restore_revoked_ok=True)
    assert "SIGNED BY A KEY THAT WAS REVOKED" in words(run), words(run)
    assert "To restore this, repeat with -e restore_confirm=" in words(run)


def test_what_the_broken_into_node_signed_itself_is_not_restored_elsewhere(
    programs: Any, key: SimpleNamespace, restore: Restore, source: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    """Root of the node has its key. What may be restored, and where, does not depend on that."""
    evil = [*folders(f"a_key{tmp_path}"), Member(f"a_key{tmp_path}/evil", content=b"* * * * * root sh\n")]
    write(tmp_path / "plain.tar.gz", evil, manifest("a_key", made=5))
    run = restore("false", restore_archive=str(seal(programs, key, folder, tmp_path / "plain.tar.gz", 5)))
    assert run.returncode != 0
    said = f"a_key: {tmp_path}/evil in the archive is not in what backup_sources declares. Nothing was touched."
    assert said in words(run), words(run)
    assert left(folder) == []
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(("content", "revoked"), [("AAAAC3Nz", True), ("AAAAC3N", False), ("", False)])
def test_a_host_key_that_was_revoked_does_not_come_back(
    programs: Any, key: SimpleNamespace, restore: Restore, folder: Path, tmp_path: Path, content: str, revoked: bool
) -> None:
    """Nobody would believe the node any more, nor would the controller: it could not take it back."""
    path = "etc/ssh/ssh_host_ed25519_key.pub"
    members = [*folders("host_keys/etc/ssh"), Member(f"host_keys/{path}", content=f"ssh-ed25519 {content}\n".encode())]
    write(tmp_path / "plain.tar.gz", members, manifest("host_keys", made=5))
    (folder / "ca").mkdir(exist_ok=True)
    (folder / "ca" / "revoked_hosts").write_text("@revoked * ssh-ed25519 AAAAC3Nz lost\n")
    declared = {"name": "host_keys", "kind": "files", "paths": [f"/{path}"], "stops": []}
    sealed = seal(programs, key, folder, tmp_path / "plain.tar.gz", 5)
    run = restore("false", restore_archive=str(sealed), backup_sources_extra={"slurm_database": [declared]})
    assert run.returncode != 0
    said = "was revoked: nobody would believe hal-mgmt1 any more. Leave host_keys out, by restore_sources. Nothing was"
    assert (said in words(run)) == revoked, words(run)
    assert ("TASK [Look at what is there now]" in words(run)) == (not revoked)
    assert left(folder) == []


def test_sources_that_are_no_list_are_refused(restore: Restore) -> None:
    run = restore("false", "--extra-vars", "restore_sources=a_key")
    assert "restore_sources is a list: -e" in words(run), words(run)
    assert run.returncode != 0


def test_a_node_that_is_gone_leaves_nothing_decrypted(restore: Restore, folder: Path) -> None:
    run = restore("true")
    assert run.returncode != 0
    assert "unreachable=1" in words(run), words(run)
    assert "TASK [Decrypt it and read all of it]" in words(run)
    assert left(folder) == []


def test_a_node_that_goes_away_is_told_what_it_has(restore: Restore, folder: Path) -> None:
    """It goes when the plan was brought to it."""
    run = restore(f"ls {folder}/node/hal-restore-*/result.json >/dev/null 2>&1")
    assert run.returncode != 0
    assert "unreachable=1" in words(run), words(run)
    assert left(folder) == []
    (name,) = left(folder / "node")
    assert (
        f"went away in the middle. hal-mgmt1:{folder}/node/{name} is there, with what was decrypted: remove it."
        in words(run)
    )


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
