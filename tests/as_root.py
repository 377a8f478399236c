"""Tests with the mark `root` run as root: where this run is not, through `sudo -n`, those of a file in one run."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import pytest

NOT_OF_ROOT = ("HOME", "LOGNAME", "MAIL", "PATH", "PYTEST_", "USER", "XDG_")


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Leave fixtures, and the limit of time, to the run that root makes."""
    for item in items:
        if isinstance(item, pytest.Function) and _elsewhere(item):
            item.fixturenames = []
            item.add_marker(pytest.mark.timeout(0))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Report what the test came to in root's run."""
    if not _elsewhere(pyfuncitem):
        return None
    beside = [one.nodeid for one in pyfuncitem.session.items if one.path == pyfuncitem.path and _elsewhere(one)]
    cases, output = _root_runs(pyfuncitem.config, tuple(beside))
    case = cases.get(pyfuncitem.name)
    if case is None:
        pytest.fail(f"root's run says nothing of it:\n{output}", pytrace=False)
    for said in case:
        if said.tag == "skipped":
            pytest.skip(said.get("message", ""))
        if said.tag in ("failure", "error"):
            pytest.fail(said.text or said.get("message") or "", pytrace=False)
    return True


def _elsewhere(item: pytest.Item) -> bool:
    return os.geteuid() != 0 and item.get_closest_marker("root") is not None


@functools.cache
def _root_runs(config: pytest.Config, tests: tuple[str, ...]) -> tuple[dict[str, ET.Element], str]:
    """Return the reports of these tests by name, and what pytest printed. Nothing of root's is left."""
    factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]  # what its fixture returns
    folder = factory.mktemp("root")
    report = folder / "report.xml"
    if not shutil.which("sudo"):
        return {}, "root's tests need sudo"
    # By name: what is on a command line stands in sudo's log, and is seen by everybody.
    kept = ",".join(name for name in os.environ if not name.startswith(NOT_OF_ROOT))
    own = [f"PATH={os.environ.get('PATH', os.defpath)}", "PYTHONDONTWRITEBYTECODE=1"]  # in the user's folders
    options = ["-p", "no:cacheprovider", f"--basetemp={folder}/files", f"--junitxml={report}"]
    options += [f"--timeout={config.getoption('timeout') or 0}"]
    argv = ["sudo", "-n", f"--preserve-env={kept}", "env", *own, sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            argv, cwd=config.rootpath, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", check=False,
        )  # fmt: skip
        found = ET.parse(report).getroot().iter("testcase") if report.exists() else ()
        return {case.get("name", ""): case for case in found}, done.stdout
    finally:
        subprocess.run(["sudo", "-n", "rm", "-rf", str(folder)], stdin=subprocess.DEVNULL, check=False)
