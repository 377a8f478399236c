"""Two that change a cluster at once are kept apart; a user's process, whatever its name, keeps nobody from anything."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ansible.module_utils.hal_node.scale import ask as hal_scale_ask

NOBODY = 65534


@contextmanager
def running(program: Path, user: int) -> Iterator[int]:
    """A process of a user's that is called as a program; it ends with the test, whatever comes."""
    with subprocess.Popen([program, "3600"], executable="/bin/sleep", user=user) as process:
        try:
            while not Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(os.fsencode(program)):
                assert process.poll() is None
            yield process.pid
        finally:
            process.kill()


@pytest.mark.root  # who alone starts something as another
def test_only_root_s_command_of_that_name_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hal_scale_ask, "FOLDER", str(tmp_path))
    with running(tmp_path / "mmchconfig", NOBODY):
        hal_scale_ask.refuse_beside("mmchconfig")
        with (
            running(tmp_path / "mmchconfig", 0) as other,
            pytest.raises(hal_scale_ask.ScaleError, match=rf"^mmchconfig runs already \(process {other}\)"),
        ):
            hal_scale_ask.refuse_beside("mmchconfig")
