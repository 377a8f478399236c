"""What the kernel's table of mounts has of Scale."""

from __future__ import annotations

import io

import pytest

from tests.unit.plugins.modules.test_hal_scale_config import PROGRAM, load


def test_scales_mounts_are_those_of_its_two_types(monkeypatch: pytest.MonkeyPatch) -> None:
    program = load(PROGRAM)
    opened = []
    table = b"home /home gpfs rw 0 0\nx /fuse fuse.gpfs rw 0 0\n/dev/sda1 /gpfs xfs rw 0 0\n"
    table += b"me:/ /tmp/\xff\xfe fuse.sshfs rw 0 0\n"  # a user's, whose name is no text

    def read(path: str, mode: str = "r") -> io.IOBase:
        opened.append(path)
        return io.BytesIO(table) if "b" in mode else io.TextIOWrapper(io.BytesIO(table), "utf-8")

    monkeypatch.setattr(program, "open", read, raising=False)
    assert program.mounted() == {"/home", "/fuse"}
    assert opened == ["/proc/self/mounts"]
