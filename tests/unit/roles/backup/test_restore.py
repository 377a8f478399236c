"""On the node: nothing is replaced before everything is ready, and what was there is set aside."""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from hal_node.digest import sha256_of

ROOT = Path(__file__).resolve().parents[4]


def result_of(programs: Any, stage: Path, sources: list[dict[str, Any]], made: int, archive: Path) -> dict[str, Any]:
    """Pack what was saved; return what the controller finds in it."""
    kept = [{"name": source["name"], "kind": source["kind"]} for source in sources]
    said = {"site": "hal", "node": "x", "made": made, "sources": kept}
    manifest, entries = programs.archive.pack(str(stage), said, str(archive))
    return {
        "made": made,
        "plain_sha256": sha256_of(str(archive)),
        "sources": programs.contents.chosen(manifest, entries, sources, []),
    }


@pytest.fixture
def node(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A node with a key file and a state folder, an archive of both, and systemctl that writes down what it is told."""
    told = tmp_path / "systemctl.log"
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >>{told}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setattr(programs.restore_slurm_state.pwd, "getpwnam", lambda name: pwd.getpwuid(os.getuid()))
    monkeypatch.setattr(programs.restore, "ASIDE", str(tmp_path / "aside"))
    monkeypatch.setattr(programs.contents, "NEVER", str(tmp_path / "etc" / "network"))
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
    work = tmp_path / "work"
    work.mkdir()
    return SimpleNamespace(
        archive=archive,
        result=result_of(programs, stage, sources, made, archive),
        work=work,
        state=state,
        conf=tmp_path / "slurm.conf",
        key=key,
        told=told,
        systemctl=program,
        aside=tmp_path / "aside",
        made=made,
    )


def changed(node: SimpleNamespace) -> None:
    """Another key and another state, both older than the archive."""
    node.key.chmod(0o600)
    for path in (node.key, node.state / "job_state"):
        path.write_text("another")
        os.utime(path, (node.made - 5, node.made - 5))


def refuses(node: SimpleNamespace, *words: str) -> None:
    """systemctl fails, and says so, when it is told this."""
    fault = f'[ "$*" != "{" ".join(words)}" ] || {{ echo "Job for {words[-1]} failed." >&2; exit 1; }}\n'
    node.systemctl.write_text(node.systemctl.read_text() + fault)


def running_again(node: SimpleNamespace) -> dict[str, str]:
    """By unit, what systemctl was told last."""
    lines = [line.split() for line in node.told.read_text().splitlines()] if node.told.exists() else []
    return {words[1]: words[0] for words in lines if words[0] in ("start", "stop")}


def only(node: SimpleNamespace, *names: str) -> dict[str, Any]:
    """What the controller finds when these were asked for."""
    return {**node.result, "sources": [one for one in node.result["sources"] if one["name"] in names]}


def put(programs: Any, node: SimpleNamespace, *names: str, newer_ok: bool = False) -> list[str]:
    done: list[str] = programs.restore.put(only(node, *names), str(node.archive), str(node.work), newer_ok)
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


def test_an_empty_node_gets_what_was_declared(programs: Any, node: SimpleNamespace) -> None:
    """In a folder that everybody may enter: of what is above a declared path the archive has no say."""
    node.key.unlink()
    node.key.parent.rmdir()
    assert put(programs, node, "munge_key") == ["munge_key: 1 files replaced"]
    assert node.key.stat().st_mode & 0o777 == 0o400
    assert node.key.parent.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("later", [60, 0])
def test_what_is_newer_is_not_replaced_unless_permitted(programs: Any, node: SimpleNamespace, later: int) -> None:
    """And what is of the archive's own second, since that may be newer."""
    os.utime(node.state / "job_state", (node.made + later, node.made + later))
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

    monkeypatch.setattr(programs.restore_slurm_state, "prepare", full)
    with pytest.raises(programs.common.Problem, match=r"the disk is full: /var/spool/slurmctld\.restoring"):
        put(programs, node, "munge_key", "slurm_state")
    assert node.key.read_text() == "another key"
    assert sorted(path.name for path in node.key.parent.iterdir()) == ["munge.key"]
    assert list(node.work.iterdir()) == []
    assert "stop" not in node.told.read_text()


def test_the_plan_says_what_is_there_and_what_happens_to_each_path(
    programs: Any, node: SimpleNamespace, tmp_path: Path
) -> None:
    plan = programs.restore.look(node.result)
    assert [one["name"] for one in plan["sources"]] == ["munge_key", "slurm_state"]
    assert plan["sources"][0]["lines"] == ["munge_key: 1 files, the same as in the archive; stops munge meanwhile"]
    first, second = plan["sources"][1]["lines"]
    assert "slurmctld runs; stops slurmctld meanwhile" in first
    assert second == f"  {node.state}: exchanged as a whole, 2 files of slurm"
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\necho 1\necho 2\n")
    (tmp_path / "bin" / "squeue").chmod(0o755)
    assert "slurmctld runs with 2 jobs; stops" in programs.restore.look(node.result)["sources"][1]["lines"][0]
    assert not any(one["newer"] for one in plan["sources"])
    changed(node)
    user = pwd.getpwuid(os.getuid()).pw_name
    line = programs.restore.look(node.result)["sources"][0]["lines"][1]
    assert line.startswith(f"  {node.key}: replaced, 0400 {user}:")
    assert f" instead of 0600 {user}:" in line


def test_a_plan_is_of_what_is_declared_now(programs: Any, node: SimpleNamespace) -> None:
    """What is confirmed is another thing when something else would be stopped, replaced or written."""

    def code() -> str:
        return str(programs.restore.look(node.result)["sources"][0]["id"])

    seen = {code()}
    (source,) = only(node, "munge_key")["sources"]
    (entry,) = source["entries"].values()
    for kept, name, value in ((source, "stops", ["sshd"]), (source, "left_out", ["x"]), (entry, "mode", "0444")):
        kept[name] = value
        seen.add(code())
    assert len(seen) == 4


def test_a_node_that_was_made_anew_has_no_slurm_conf_yet(programs: Any, node: SimpleNamespace, tmp_path: Path) -> None:
    """What is shown then is declared, or where Slurm has it when nothing is."""
    (source,) = only(node, "slurm_state")["sources"]
    node.conf.unlink()
    source["location"] = str(node.state)
    there, _, lines = programs.restore_slurm_state.look(source, node.made)
    assert there.startswith("state of ")
    assert lines == [f"{node.state}: exchanged as a whole, 2 files of slurm"]
    (node.state / "job_state").unlink()
    assert programs.restore_slurm_state.look(source, node.made)[0] == "no state is there"
    del source["location"]
    assert programs.restore_slurm_state.look(source, node.made)[2][0].startswith("/var/spool/slurmctld: ")


def test_a_unit_that_cannot_be_stopped_leaves_none_stopped(programs: Any, node: SimpleNamespace) -> None:
    changed(node)
    refuses(node, "stop", "slurmctld")
    with pytest.raises(programs.common.Problem, match=r"^systemctl: Job for slurmctld failed\.$"):
        put(programs, node, "munge_key", "slurm_state")
    assert running_again(node) == {"munge": "start", "slurmctld": "start"}
    assert node.key.read_text() == "another"
    assert list(node.work.iterdir()) == []


def test_each_unit_is_started_when_another_does_not_start(programs: Any, node: SimpleNamespace) -> None:
    changed(node)
    refuses(node, "start", "munge")
    with pytest.raises(programs.common.Problem) as failed:
        put(programs, node, "munge_key", "slurm_state")
    said = str(failed.value)
    assert said.startswith("munge was NOT STARTED AGAIN: systemctl: Job for munge failed.")
    assert "Replaced already: munge_key: 1 files replaced; slurm_state: restored" in said
    assert running_again(node) == {"munge": "start", "slurmctld": "start"}


@pytest.mark.parametrize(
    "error", [ValueError("embedded null byte"), OSError(errno.EIO, "Input/output error"), KeyError()]
)
def test_what_cannot_be_taken_back_does_not_keep_the_rest(
    programs: Any, node: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """As when MariaDB went away: what was decrypted is removed, and units are started, whatever it was."""

    def gone(source: Any, what: Any) -> None:
        raise error

    monkeypatch.setattr(programs.restore_files, "forget", gone)
    changed(node)
    with pytest.raises(programs.common.Problem, match=r"^munge_key: what was prepared is left: \w+"):
        put(programs, node, "munge_key", "slurm_state")
    assert list(node.work.iterdir()) == []
    assert running_again(node) == {"munge": "start", "slurmctld": "start"}


def test_a_state_that_is_a_mount_point_is_refused_before_anything_is_touched(
    programs: Any, node: SimpleNamespace
) -> None:
    changed(node)
    node.conf.write_text("StateSaveLocation=/proc\n")
    with pytest.raises(programs.common.Problem, match=r"^/proc is a mount point, which cannot be exchanged"):
        put(programs, node, "munge_key", "slurm_state")
    assert node.key.read_text() == "another"
    assert running_again(node) == {}


def test_an_error_says_what_was_replaced_before_it(
    programs: Any, node: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount of the same file system looks like a folder: only rename says EBUSY."""
    rename = os.rename

    def busy(source: str, target: str) -> None:
        if source == str(node.state):
            raise OSError(errno.EBUSY, "Device or resource busy", source)
        rename(source, target)

    monkeypatch.setattr(programs.restore_slurm_state.os, "rename", busy)
    changed(node)
    with pytest.raises(programs.common.Problem) as failed:
        put(programs, node, "munge_key", "slurm_state")
    said = str(failed.value)
    assert said == (
        f"slurm_state: {node.state}: Device or resource busy. Replaced already: munge_key: 1 files replaced"
    )
    assert (node.state / "job_state").read_text() == "another"
    assert not node.state.with_name("slurmctld.restoring").exists()
    assert running_again(node) == {"munge": "start", "slurmctld": "start"}


def test_slurmctld_is_never_started_without_a_state(
    programs: Any, node: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would kill what runs: the former one comes back when the new one cannot take its place."""
    rename = os.rename

    def fails(source: str, target: str) -> None:
        if source == f"{node.state}.restoring":
            raise OSError(errno.EIO, "Input/output error", source)
        rename(source, target)

    monkeypatch.setattr(programs.restore_slurm_state.os, "rename", fails)
    changed(node)
    with pytest.raises(programs.common.Problem, match=r"slurm_state: .*Input/output error"):
        put(programs, node, "slurm_state")
    assert (node.state / "job_state").read_text() == "another"


def test_another_archive_than_the_controller_read_is_refused(programs: Any, node: SimpleNamespace) -> None:
    changed(node)
    with open(node.archive, "ab") as archive:
        archive.write(b"\0")
    with pytest.raises(programs.common.Problem) as refused:
        put(programs, node, "munge_key")
    assert str(refused.value) == f"{node.archive} is not what the controller has read"
    assert node.key.read_text() == "another"


@pytest.mark.parametrize(
    ("name", "value"), [("mode", "0644"), ("type", "link"), ("user", "alice"), ("size", 1), ("sha256", "0" * 64)]
)
def test_what_this_python_reads_otherwise_is_refused(
    programs: Any, node: SimpleNamespace, name: str, value: Any
) -> None:
    """The controller has another one, which permitted it for what it took it for."""
    changed(node)
    (source,) = only(node, "munge_key")["sources"]
    (entry,) = source["entries"].values()
    entry[name] = value
    with pytest.raises(programs.common.Problem) as refused:
        programs.restore._check(str(node.archive), only(node, "munge_key"))
    said = f"this node reads munge_key{node.key} of the archive otherwise than the controller did"
    assert str(refused.value) == said
    source["entries"] = {"munge_key/x": {**entry, "size": 0}}
    with pytest.raises(programs.common.Problem, match="this node reads munge_key/x of the archive otherwise"):
        programs.restore._check(str(node.archive), only(node, "munge_key"))


@pytest.fixture
def record(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A node's record beside a network change that waits for its confirmation, and an archive of all of it."""
    folder = tmp_path / "lib" / "hal"
    (folder / "network" / "rollback").mkdir(parents=True)
    monkeypatch.setattr(programs.restore, "ASIDE", str(tmp_path / "aside"))
    monkeypatch.setattr(programs.contents, "NEVER", str(folder / "network"))
    for name in ("record.json", "network/rollback/absent"):
        (folder / name).write_text("saved")
    source: dict[str, Any] = {"name": "node_record", "kind": "files", "paths": [str(folder)]}
    stage, archive, work = tmp_path / "stage", tmp_path / "archive.tar.gz", tmp_path / "work"
    stage.mkdir()
    work.mkdir()
    programs.sources.save(source, str(stage / "node_record"))
    assert (stage / "node_record" / str(folder)[1:] / "network" / "rollback" / "absent").exists(), "the archive has it"
    made = int(os.stat(folder / "record.json").st_mtime) + 10
    result = result_of(programs, stage, [source], made, archive)
    return SimpleNamespace(folder=folder, archive=archive, work=work, made=made, result=result)


def test_a_network_change_of_then_is_not_restored(programs: Any, record: SimpleNamespace) -> None:
    """From an archive that has it, as those made before it was left out."""
    (record.folder / "record.json").write_text("another")
    (record.folder / "network" / "rollback" / "absent").unlink()
    (record.folder / "network" / "rollback").rmdir()
    assert put(programs, record, "node_record", newer_ok=True) == ["node_record: 1 files replaced"]
    assert (record.folder / "record.json").read_text() == "saved"
    assert list((record.folder / "network").iterdir()) == []


def test_a_network_change_of_now_makes_nothing_newer(programs: Any, record: SimpleNamespace) -> None:
    waits = record.folder / "network" / "rollback" / "absent"
    waits.write_text("of now")
    os.utime(waits, (record.made + 60, record.made + 60))
    seen = programs.restore.look(record.result)["sources"][0]
    assert (seen["there"], seen["newer"]) == ("1 files, the same as in the archive", False)
    put(programs, record, "node_record")
    assert waits.read_text() == "of now"


def test_changes_that_wait_and_who_rolls_out_are_left_out_of_archives(programs: Any, tmp_path: Path) -> None:
    network, firewall = (
        re.findall(r"(?m)^state=(\S+)$", (ROOT / f"roles/{role}/files/rollback.sh").read_text())
        for role in ("network", "firewall")
    )
    assert network == [programs.contents.NEVER]
    held = re.findall(r'(?m)^FOLDER = "(\S+)"', (ROOT / "hal_node/rollout_lock.py").read_text())
    slurm = yaml.safe_load((ROOT / "roles/slurm/vars/main.yml").read_text())["__slurm_record_dir"]
    declared = yaml.safe_load((ROOT / "roles/backup/defaults/main.yml").read_text())["backup_sources"]
    records = [one for group in declared.values() for one in group if one["name"] == "node_record"]
    assert len(records) == 4
    for source in records:
        out = [os.path.join(source["paths"][0], name) for name in source["left_out"]]
        assert out == [*network, *firewall, f"{slurm}/next", *held, "/var/lib/hal/originals"]
    folder = tmp_path / "hal"
    for name in ("network/rollback", "firewall/rollback", "slurm/next", "slurm/slurmd", "rollout", "originals"):
        (folder / name).mkdir(parents=True)
    (folder / "record.json").touch()
    programs.sources.save(dict(records[0], paths=[str(folder)]), str(tmp_path / "copy"))
    copy = tmp_path / "copy" / str(folder)[1:]
    assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*")) == ["record.json", "slurm", "slurm/slurmd"]


def test_what_the_role_declares_is_a_declaration(programs: Any) -> None:
    declared = yaml.safe_load((ROOT / "roles/backup/defaults/main.yml").read_text())["backup_sources"]
    for sources in declared.values():
        assert programs.sources.declared(sources) == sources


def test_one_restore_at_a_time_and_no_backup_meanwhile(programs: Any, node: SimpleNamespace) -> None:
    """Each would remove, or exchange, what the other has prepared. By the lock that the nightly job takes."""
    changed(node)
    with open(node.aside.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(programs.common.Problem) as refused:
            put(programs, node, "munge_key")
    assert str(refused.value) == "a backup, or another restore, runs on this node: wait for its end"
    assert node.key.read_text() == "another"
    assert put(programs, node, "munge_key") == ["munge_key: 1 files replaced"]


def test_the_lock_is_in_the_folder_of_the_job(programs: Any) -> None:
    work = yaml.safe_load((ROOT / "roles/backup/vars/main.yml").read_text())["__backup_work_dir"]
    assert os.path.dirname(programs.restore.ASIDE) == work


def test_a_node_that_was_made_anew_has_no_folder_of_the_job_yet(
    programs: Any, node: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs.restore, "ASIDE", str(node.aside / "hal-backup" / "before"))
    node.aside.mkdir()
    put(programs, node, "munge_key")
    assert (node.aside / "hal-backup").stat().st_mode & 0o777 == 0o700
    assert [path.name for path in (node.aside / "hal-backup").iterdir()] == ["lock"]


def test_what_is_stopped_is_stopped_after_all_is_ready(
    programs: Any, node: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    run = programs.restore.run

    def told(argv: list[str]) -> Any:
        order.append(" ".join(argv[1:]))
        return run(argv)

    monkeypatch.setattr(programs.restore, "run", told)
    for module in (programs.restore_files, programs.restore_slurm_state):
        prepare = module.prepare

        def noted(*words: Any, prepare: Any = prepare) -> Any:
            order.append("prepare")
            return prepare(*words)

        monkeypatch.setattr(module, "prepare", noted)
    changed(node)
    put(programs, node, "munge_key", "slurm_state")
    assert order == ["prepare", "prepare", "stop munge", "stop slurmctld", "start munge", "start slurmctld"]
