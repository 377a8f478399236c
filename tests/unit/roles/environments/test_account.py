"""What packages brought does not run as root: activation scripts, imports, their Python."""

from __future__ import annotations

import json
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.hal_cluster.environments.conftest import FILES
from tests.unit.interpreters import EVERY, interpreter

pytestmark = pytest.mark.root  # what it runs as somebody else
CALL = """
import os, sys
sys.path.insert(0, sys.argv[1])
from environment_common import Problem, settings
import environment_activation, environment_install, environment_status
prefix = sys.argv[2]
chosen = settings(os.path.join(prefix, "settings.json"))
print(environment_activation.record(prefix, "tools/1")["set"]["WHO"])
print(environment_status.python({"python": "3"}, prefix))
try:
    environment_install.Installer(chosen, print)._imports({"imports": ["json"]}, prefix)
except Problem as problem:
    print("%s" % problem)
"""


@pytest.fixture
def prefix() -> Iterator[Path]:
    """A prefix that everybody can read, whose programs say who runs them."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    for name in (".hal", "bin", "etc/conda/activate.d"):
        (folder / name).mkdir(parents=True)
    who = 'who="$(id -u) of $(id -G)"'
    (folder / "etc/conda/activate.d/who.sh").write_text(f'{who}\nexport WHO="$who"\n')
    (folder / "bin/python").write_text(f'#!/bin/sh\n{who}\necho "$who" >&2; exit 1\n')
    (folder / "bin/python").chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def said(prefix: Path, python: str, **settings: object) -> list[str]:
    """What ran as whom."""
    numbers = dict.fromkeys(
        ("keep", "grace_hours", "reserve_gb", "unpacked_factor", "timeout_seconds", "verify_max_days"), 1
    )
    (prefix / "settings.json").write_text(json.dumps({"root": "/nowhere", **numbers, **settings}))
    call = "from __future__ import print_function\n" + CALL
    done = subprocess.run(
        [python, "-B", "-c", call, str(FILES), str(prefix)], capture_output=True, text=True, check=False
    )
    return (done.stdout + done.stderr).splitlines()


@pytest.mark.parametrize("version", EVERY)
def test_programs_of_packages_run_as_nobody(prefix: Path, version: str) -> None:
    found = pwd.getpwnam("nobody")
    who = f"{found.pw_uid} of {found.pw_gid}"
    assert said(prefix, interpreter(version)) == [
        who, f"{prefix}/bin/python does not run (1): {who}", f"import json failed (1): {who}",
    ]  # fmt: skip
    assert (prefix / ".hal/activate.lua").stat().st_uid == 0, "root writes"


def test_an_account_that_is_not_there_is_named_and_root_is_no_way_out(prefix: Path) -> None:
    words = said(prefix, sys.executable, account="no-such-account")
    assert words[-1].endswith("there is no account no-such-account, which programs of packages run as")
    assert not any("0 of" in line for line in words)
