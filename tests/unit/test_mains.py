"""python -m PACKAGE is the package's program: its status is the process's."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = {path.parent.name for path in PROJECT.glob("hal_*/__main__.py")}
OTHERS = {"hal_audit", "hal_expect"}  # their words and statuses are their own; tests of their own ask them
PROGRAMS = (
    "hal_certificates",
    "hal_cuda",
    "hal_environments",
    "hal_inventory",
    "hal_packages",
    "hal_provision",
    "hal_secrets",
)


def test_each_package_that_is_a_program_is_asked() -> None:
    assert {*PROGRAMS, *OTHERS} == PACKAGES


@pytest.mark.parametrize("package", PROGRAMS)
@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), (["--no-such-option"], 2)])
def test_the_status_of_the_program_is_that_of_the_process(
    package: str, arguments: list[str], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [package, *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(package, run_name="__main__", alter_sys=True)
    assert ended.value.code == status
    said = capsys.readouterr()
    assert "usage: " in (said.err if status else said.out)
