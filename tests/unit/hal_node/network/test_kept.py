"""hal_node.network.kept: the oldest file counts, and what was written gets to the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible.module_utils.hal_node.network import places
from ansible.module_utils.hal_node.network.kept import forget, keep, settle


def test_the_oldest_file_is_kept_while_its_interface_waits(tmp_path: Path) -> None:
    """A file that was written and never in force is no state to go back to."""
    path = tmp_path / "ifcfg-ib0"
    saved = Path(places.SAVED) / "ib0"
    for content in ("in force\n", "written, never in force\n"):
        path.write_text(content)
        keep(str(path), content.encode(), "ib0", {"ib0"})
    assert (saved / "ifcfg-ib0").read_text() == "in force\n"
    keep(str(tmp_path / "ifcfg-new"), None, "ib0", {"ib0"})
    assert (saved / "ifcfg-new.absent").exists()
    keep(str(path), b"", "eno1", {"ib0"})  # as its file says: nothing to go back to
    assert not (saved.parent / "eno1").exists()
    forget({"ib0"})
    assert not saved.exists()


def test_files_that_were_got_to_the_disk_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("")
    (tmp_path / "a/gone").symlink_to("nowhere")
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    before = len(os.listdir("/proc/self/fd"))
    settle(str(tmp_path / "a"), str(tmp_path / "none"))
    assert sorted(synced) == [f"{tmp_path}/a", f"{tmp_path}/a/b", f"{tmp_path}/a/b/file"]
    assert len(os.listdir("/proc/self/fd")) == before
