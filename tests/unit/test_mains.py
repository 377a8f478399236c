"""python -m PACKAGE is the package's program: its status is the process's."""

from __future__ import annotations

import runpy
import sys

import pytest

SCRIPTS = ("hal_cluster.environments", "hal_cluster.packages", "hal_cluster.inventory")
PROGRAMS = (
    "hal_cluster.certificates",
    "hal_cluster.rules.cuda",
    "hal_cluster.environments",
    "hal_cluster.inventory",
    "hal_cluster.packages",
    "hal_cluster.provision",
    "hal_cluster.secrets",
)


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
    own = package.replace("hal_cluster.", "hal-").replace("_", "-") if package in SCRIPTS else f"python -m {package}"
    assert f"usage: {own}" in (said.err if status else said.out)
