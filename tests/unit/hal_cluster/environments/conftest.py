"""A channel of small packages, made as the virtual HAL's, and hal-environment on it, below a folder of the test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import rattler
import yaml

from hal_cluster.environments import solve
from hal_cluster.environments.declared import environments
from hal_cluster.environments.lock import dump
from hal_cluster.environments.specs import Specs
from tests.unit.interpreters import LAB, LOCAL, beside

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "molecule" / "virtual_hal"))

from testbed import channel

PROJECT = Path(__file__).resolve().parents[4]
FILES = PROJECT / "roles" / "environments" / "files"
RELEASE = f"{sys.version_info[0]}.{sys.version_info[1]}"
PLATFORM = "linux-64"
RECIPES: list[dict[str, Any]] = [
    {"channel": "ibm", "name": "python", "version": f"{RELEASE}.0"},
    {"channel": "ibm", "name": "maths", "version": "1.10", "pythons": [RELEASE],
     "depends": ["places", "__glibc >=2.17"]},
    {"channel": "ibm", "name": "maths", "version": "1.9", "pythons": [RELEASE]},
    {"channel": "ibm", "name": "places", "version": "2.0"},
    {"channel": "ibm", "name": "licence", "version": "1.0"},
    {"channel": "ibm", "name": "pure", "version": "0.1", "noarch": True, "depends": ["python"],
     "entry_points": ["pure = pure:run"]},
    {"channel": "main", "name": "maths", "version": "3.0", "pythons": [RELEASE]},
]  # fmt: skip
CONTENT = {
    f"python/bin/python{RELEASE}": f'#!/bin/sh\nexec {LOCAL} "$@"\n',
    "python/bin/python": f'#!/bin/sh\nexec {LOCAL} "$@"\n',
    "maths/site-packages/maths.py": "VERSION = '@VERSION@'\n",
    "maths/etc/conda/activate.d/maths.sh": (
        'export MATHS="a \\"quoted\\" \\\\ one"\nexport LD_LIBRARY_PATH="$CONDA_PREFIX/lib:$LD_LIBRARY_PATH"\n'
        'export MANPATH="${MANPATH:+$MANPATH:}$CONDA_PREFIX/man"\nunset HOME\nhelper() { :; }\n'
    ),
    "places/bin/where": "#!@PREFIX@/bin/python\nprint('@PREFIX@')\n",
    "places/lib/where.binary": "@PREFIX@/lib\n",
    "licence/bin/.licence-post-link.sh": (
        '[ "$ACCEPT" = yes ] || { echo "not accepted" >&2; exit 3; }\nmkdir "$PREFIX/accepted"\n'
    ),
    "pure/site-packages/pure.py": "def run():\n    print('pure runs')\n",
}


@cache
def _made(folder: Path) -> Path:
    for name, text in CONTENT.items():
        path = folder / "recipes" / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "recipes" / "packages.yml").write_text(yaml.safe_dump(RECIPES))
    channel.make(folder / "channels", "x86_64", folder / "recipes", None)
    return folder / "channels"


@pytest.fixture(scope="session")
def channels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the channels ibm and main."""
    return _made(tmp_path_factory.getbasetemp() / "channels")


def asked(*specs: str, **changes: Any) -> Specs:
    """Specs on both channels."""
    values: dict[str, Any] = {
        "platform": PLATFORM, "virtual": {"__glibc": "2.17"}, "specs": specs or ("maths",),
        "channels": {"ibm": "https://ibm.example/conda", "main": "https://main.example/conda"},
    }  # fmt: skip
    return Specs(**{**values, **changes})


@pytest.fixture
def write_lock(channels: Path, tmp_path: Path) -> Callable[..., Path]:
    """A function: specs -> a lock file of the test, by name."""

    def write(*specs: str, name: str = "tools-1", **changes: Any) -> Path:
        found = solve.lock(asked(*specs, **changes), {alias: (channels / alias).as_uri() for alias in ("ibm", "main")})
        path = tmp_path / "locks" / f"{name}.lock.yml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(dump(found, name))
        return path

    return write


def entry(version: str = "1", **changes: Any) -> dict[str, Any]:
    """A declared environment."""
    return {"version": version, "lock": "tools-1", "python": RELEASE, "default": True, **changes}


class Site:
    """hal-environment with settings of the test, as on the node that installs."""

    def __init__(self, folder: Path, channels: Path) -> None:
        """Everything is below `folder`."""
        self.folder, self.root = folder, folder / "apps"
        self.settings: dict[str, Any] = {
            "root": str(self.root), "mount": "", "mirror": channels.as_uri(), "python": LOCAL, "keep": "1",
            "grace_hours": "0", "reserve_gb": "0",
            "library": str(Path(rattler.__file__).parents[1]), "wheel": None, "unpacked_factor": 1.0,
            "timeout_seconds": 5, "verify_max_days": 15.0,
            "account": "",  # folders of tests are their user's alone
        }  # fmt: skip
        self.python = LOCAL

    def environments(self, *entries: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What the lookup returns of declared environments, which have no fault."""
        found = environments(
            list(entries or [entry()]), name="tools", root=str(self.root), directory=self.folder / "locks",
            platform=PLATFORM, variable="tools",
        )  # fmt: skip
        assert found["problems"] == []
        return list(found["environments"])

    def declare(self, declared: list[dict[str, Any]]) -> None:
        """Write what a rollout writes on every node."""
        (self.folder / "declared").mkdir(exist_ok=True)
        (self.folder / "declared" / "tools.json").write_text(json.dumps(declared))

    def call(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run the program."""
        (self.folder / "settings.json").write_text(json.dumps(self.settings))
        places = ["--settings", "settings.json", "--declared", "declared", "--lock", "lock"]
        argv = [*beside(self.python), str(FILES / "environment_main.py"), *places, *arguments]
        return subprocess.run(argv, cwd=self.folder, input=given, capture_output=True, text=True, check=False)

    def apply(self, declared: list[dict[str, Any]], *arguments: str, **request: Any) -> dict[str, Any]:
        """Install; return what the program says, with its progress as `said`."""
        self.declare(declared)
        wanted = {"owner": "tools", "environments": declared, "remove_ok": False, "used": [], "told": {}, **request}
        done = self.call("apply", *arguments, given=json.dumps(wanted))
        assert done.stdout, done.stderr
        return {**json.loads(done.stdout), "said": done.stderr}

    def wrong(self) -> list[str]:
        """What `status` says of each environment."""
        found = json.loads(self.call("status", "tools").stdout)["environments"]
        return [one["wrong"] or one["verified"] or one["late"] for one in found]

    @property
    def prefix(self) -> Path:
        """The prefix that users of the first environment get."""
        return (self.root / "tools" / "1").resolve(strict=True)


@pytest.fixture
def site(tmp_path: Path, channels: Path, write_lock: Callable[..., Path]) -> Site:
    """A site with a lock file for maths."""
    write_lock("maths", "pure")
    return Site(tmp_path, channels)


@pytest.fixture(scope="session")
def part() -> Callable[[str], Any]:
    """A function: the name of a part of the program -> its module."""
    sys.path[:0] = [str(FILES), str(LAB)]
    return lambda name: import_module(f"environment_{name}")


@pytest.fixture
def install(part: Callable[[str], Any]) -> Any:
    """The part that installs."""
    return part("install")


@pytest.fixture
def problem(part: Callable[[str], Any]) -> Any:
    """What the program raises for what it says in words."""
    return part("common").Problem


@pytest.fixture
def said() -> list[str]:
    """What an installer tells of its progress."""
    return []


@pytest.fixture
def installer(install: Any, tmp_path: Path, said: list[str]) -> Any:
    """One whose root is the folder of the test."""
    settings = {"root": str(tmp_path), "keep": 1, "grace_hours": 2.0, "reserve_gb": 1.5, "unpacked_factor": 2.5,
                "mirror": "", "timeout_seconds": 7.0}  # fmt: skip
    return install.Installer(settings, said.append)
