"""hal_munge_key and a systemd that does not say whether munged runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.unit.modules import Answer, Ran, loaded

KEY = bytes(range(64))


def test_a_key_is_written_though_systemd_does_not_answer_and_the_run_fails(
    tmp_path: Path, patched: tuple[Any, Any]
) -> None:
    """The next run makes up for the restart; a munged that may run with another key is not called started."""
    said: list[Answer] = [(1, "", "Failed to get properties: Connection timed out")]
    ran = Ran(loaded("hal_munge_key"), lambda _: said[0], *patched)
    patched[0].setattr("ansible.module_utils.hal_node.slurm.process.time", SimpleNamespace(sleep=lambda _: None))
    patched[0].setattr(
        ran.module.AnsibleModule, "set_fs_attributes_if_different", lambda _self, _wanted, changed: changed
    )
    path = tmp_path / "munge.key"
    result = ran(key=KEY.hex(), path=str(path))
    assert path.read_bytes() == KEY
    assert result["failed"]
    assert result["msg"].startswith("munge: systemd did not answer, asked 3 times (systemctl show munge.service: ")
    assert result["msg"].endswith("the key is written, whether munged has to restart for it is seen by the next run")
    said[0] = (0, "LoadState=not-found\nActiveState=inactive\nMainPID=0\n", "")
    result = ran(key=KEY.hex(), path=str(path))
    assert (result["changed"], result["unit_missing"], result["restart_needed"]) == (False, True, False)
