"""On the node: nothing is replaced before everything is ready, and what was there is set aside."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def node(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A node with a key file and a state folder, an archive of both, and systemctl that writes down what it is told."""
    told = tmp_path / "systemctl.log"
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >>{told}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setattr(programs.restore.pwd, "getpwnam", lambda name: pwd.getpwuid(os.getuid()))
    monkeypatch.setattr(programs.restore, "ASIDE", str(tmp_path / "aside"))
    state = tmp_path / "slurmctld"
    (state / "hash.1").mkdir(parents=True)
    (state / "job_state").write_text("saved")
    (state / "clustername").write_text("hal\n")
    (tmp_path / "slurm.conf").write_text(f"StateSaveLocation={state}\n")
    key = tmp_path / "etc" / "munge.key"
    key.parent.mkdir(mode=0o700)
    key.write_text("saved key")
    key.chmod(0o400)
    sources = [
        {"name": "munge_key", "kind": "files", "paths": [str(key)], "stops": ["munge"]},
        {"name": "slurm_state", "kind": "slurm_state", "conf": str(tmp_path / "slurm.conf"), "stops": ["slurmctld"]},
    ]
    stage = tmp_path / "stage"
    stage.mkdir()
    for source in sources:
        programs.sources.save(source, str(stage / str(source["name"])))
    archive = tmp_path / "archive.tar.gz"
    made = int(os.stat(state / "job_state").st_mtime) + 10
    programs.archive.pack(str(stage), {"site": "hal", "node": "x", "made": made, "sources": sources}, str(archive))
    work = tmp_path / "work"
    work.mkdir()
    return SimpleNamespace(
        archive=archive, work=work, state=state, key=key, told=told, aside=tmp_path / "aside", made=made
    )


def put(programs: Any, node: SimpleNamespace, *names: str, newer_ok: bool = False) -> list[str]:
    done: list[str] = programs.restore.put(str(node.archive), str(node.work), newer_ok, list(names))
    return done


def test_what_was_there_is_replaced_and_set_aside(programs: Any, node: SimpleNamespace, tmp_path: Path) -> None:
    node.key.chmod(0o600)
    node.key.write_text("another key")
    (node.state / "job_state").write_text("later")
    os.utime(node.state / "job_state", (node.made - 5, node.made - 5))
    os.utime(node.key, (node.made - 5, node.made - 5))
    done = put(programs, node, "munge_key", "slurm_state")
    assert done[0] == "munge_key: 1 files replaced"
    assert node.key.read_text() == "saved key"
    assert node.key.stat().st_mode & 0o777 == 0o400
    assert (node.state / "job_state").read_text() == "saved"
    former = done[1].partition("what was there is ")[2]
    assert (Path(former) / "job_state").read_text() == "later"
    kept = [path.read_text() for path in node.aside.rglob("munge.key")]
    assert kept == ["another key"]
    assert [line.split()[0] for line in node.told.read_text().splitlines()].count("stop") == 2
    assert node.told.read_text().splitlines()[-2:] == ["start munge", "start slurmctld"]
    assert list(node.work.iterdir()) == []


def test_an_empty_node_gets_folders_as_they_were(programs: Any, node: SimpleNamespace) -> None:
    node.key.unlink()
    node.key.parent.rmdir()
    assert put(programs, node, "munge_key") == ["munge_key: 1 files replaced"]
    assert node.key.parent.stat().st_mode & 0o777 == 0o700


def test_what_is_newer_is_not_replaced_unless_permitted(programs: Any, node: SimpleNamespace) -> None:
    os.utime(node.state / "job_state", (node.made + 60, node.made + 60))
    with pytest.raises(programs.common.Problem, match="slurm_state is newer than the archive"):
        put(programs, node, "munge_key", "slurm_state")
    assert not node.told.exists() or "stop" not in node.told.read_text()
    assert put(programs, node, "slurm_state", newer_ok=True)[0].startswith("slurm_state: restored")


def test_nothing_is_replaced_when_one_source_is_not_ready(
    programs: Any, node: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.key.chmod(0o600)
    node.key.write_text("another key")
    os.utime(node.key, (node.made - 5, node.made - 5))

    def full(source: Any, folder: str) -> None:
        raise OSError(28, "No space left on device", "/var/spool/slurmctld.restoring")

    monkeypatch.setitem(programs.restore.PREPARE, "slurm_state", full)
    with pytest.raises(programs.common.Problem, match=r"the disk is full: /var/spool/slurmctld\.restoring"):
        put(programs, node, "munge_key", "slurm_state")
    assert node.key.read_text() == "another key"
    assert sorted(path.name for path in node.key.parent.iterdir()) == ["munge.key"]
    assert list(node.work.iterdir()) == []
    assert "stop" not in node.told.read_text()


def test_the_plan_says_what_is_there(programs: Any, node: SimpleNamespace, tmp_path: Path) -> None:
    manifest = json.loads((tmp_path / "stage" / "MANIFEST.json").read_text())
    plan = programs.restore.look(manifest, [])
    assert [one["name"] for one in plan["sources"]] == ["munge_key", "slurm_state"]
    assert "1 files, the same as in the archive; stops munge" in plan["sources"][0]["line"]
    assert "slurmctld runs; stops slurmctld meanwhile" in plan["sources"][1]["line"]
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\necho 1\necho 2\n")
    (tmp_path / "bin" / "squeue").chmod(0o755)
    assert "slurmctld runs with 2 jobs; stops" in programs.restore.look(manifest, [])["sources"][1]["line"]
    assert not any(one["newer"] for one in plan["sources"])
    with pytest.raises(programs.common.Problem, match="the archive has no ldap; it has munge_key, slurm_state"):
        programs.restore.look(manifest, ["ldap"])
