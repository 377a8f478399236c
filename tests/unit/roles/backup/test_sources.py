"""What is copied while its daemon goes on writing belongs together."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, Any]:
    state = tmp_path / "slurmctld"
    (state / "hash.1" / "job.11").mkdir(parents=True)
    (state / "hash.1" / "job.11" / "script").write_text("#!/bin/sh\n")
    for name in ("job_state", "job_state.old", "node_state", "clustername"):
        (state / name).write_text(name)
    conf = tmp_path / "slurm.conf"
    conf.write_text(f"ClusterName=hal\nStateSaveLocation={state}\n")
    return {"name": "slurm_state", "kind": "slurm_state", "conf": str(conf), "state": state}


def test_the_state_is_copied_without_what_is_only_on_its_way(
    programs: Any, slurm: dict[str, Any], tmp_path: Path
) -> None:
    (slurm["state"] / "job_state.new").write_text("half")
    seen = programs.sources.save(slurm, str(tmp_path / "copy"))
    assert seen == {}
    copy = tmp_path / "copy" / "state"
    assert sorted(os.listdir(copy)) == ["clustername", "hash.1", "job_state", "node_state"]
    assert (copy / "hash.1" / "job.11" / "script").read_text() == "#!/bin/sh\n"
    assert (copy / "job_state").read_text() == "job_state"


def test_a_file_that_is_away_for_a_moment_is_waited_for(programs: Any, slurm: dict[str, Any], tmp_path: Path) -> None:
    """slurmctld takes a file away before it puts the new one there."""
    (slurm["state"] / "job_state").unlink()

    def back() -> None:
        time.sleep(0.3)
        (slurm["state"] / "job_state").write_text("new")

    writer = threading.Thread(target=back)
    writer.start()
    programs.sources.save(slurm, str(tmp_path / "copy"))
    writer.join()
    assert (tmp_path / "copy" / "state" / "job_state").read_text() == "new"


def test_scripts_are_copied_after_the_state_that_names_them(
    programs: Any, slurm: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []
    copy_file = programs.sources.copy_file

    def noted(source: str, target: str) -> None:
        order.append(os.path.basename(source))
        copy_file(source, target)

    monkeypatch.setattr(programs.sources, "copy_file", noted)
    programs.sources.save(slurm, str(tmp_path / "copy"))
    assert order.index("job_state") < order.index("script")


def test_a_folder_that_is_not_slurmctlds_is_no_backup(
    programs: Any, slurm: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (slurm["state"] / "job_state").unlink()
    monkeypatch.setattr(programs.sources, "TRIES", 2)
    with pytest.raises(programs.common.Problem, match="has no job_state but a former one"):
        programs.sources.save(slurm, str(tmp_path / "gone"))
    (slurm["state"] / "job_state.old").unlink()
    programs.sources.save(slurm, str(tmp_path / "first start"))
    (slurm["state"] / "clustername").unlink()
    with pytest.raises(programs.common.Problem, match="has no clustername: slurmctld has never run with it"):
        programs.sources.save(slurm, str(tmp_path / "copy"))
    slurm["conf"] = str(tmp_path / "no.conf")
    with pytest.raises(programs.common.Problem, match=r"no\.conf cannot be read: No such file"):
        programs.sources.save(slurm, str(tmp_path / "other"))


def test_a_dump_that_ended_early_is_no_backup(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mysqldump's last line, as MariaDB 5.5 and 10 write it: -- Dump completed on 2026-11-21  2:30:01."""
    program = tmp_path / "mysqldump"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    source = {"name": "slurm_database", "kind": "mariadb", "database": "slurm_acct_db", "socket": "/run/x"}
    for end, works in (("-- Dump completed on 2026-11-21  2:30:01", True), ("INSERT INTO", False)):
        program.write_text(f"#!/bin/sh\necho 'CREATE TABLE `a` ('\necho '{end}'\n")
        program.chmod(0o755)
        folder = str(tmp_path / f"dump-{works}")
        if works:
            assert programs.sources.save(source, folder) == {"tables": 1}
        else:
            with pytest.raises(programs.common.Problem, match="mysqldump ended early"):
                programs.sources.save(source, folder)
    program.write_text('#!/bin/sh\necho "mysqldump: Got error: 2002: Can\'t connect" >&2\nexit 2\n')
    with pytest.raises(programs.common.Problem, match=r"^mysqldump: Got error: 2002: Can't connect"):
        programs.sources.save(source, str(tmp_path / "down"))
