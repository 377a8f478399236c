"""What the tests of the site model share: a small sound model, a place to write sites, Ansible as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from hal_inventory.errors import ClusterFileError  # noqa: E402  found through the line above
from hal_inventory.load import load, load_bytes  # noqa: E402
from hal_inventory.model import Site  # noqa: E402
from tests.unit import warm  # noqa: E402

LONG_SECONDS = 600  # a run that has not ended by then never will
SMALL = (Path(__file__).parent / "data" / "small.yml").read_text()


@pytest.fixture(scope="session")
def cache_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for the tests of all but the cache itself: half of a short call is a small model that another test had."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(cache_of_tests: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache, and none takes the user's settings for its own."""
    monkeypatch.setenv("HAL_CACHE_DIR", str(cache_of_tests))
    for name in ("ANSIBLE_CONFIG", "ANSIBLE_INVENTORY", "HAL_INVENTORY_SOURCES", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def root() -> Path:
    """The project."""
    return ROOT


@pytest.fixture(scope="session")
def small() -> str:
    """A small model without a fault."""
    return SMALL


@pytest.fixture(scope="session")
def hal() -> Site:
    """The reference site."""
    return load(ROOT / "inventory" / "hal" / "cluster.yml")


def findings(text: str) -> list[str]:
    """Return the findings of a model as lines; none when it is sound."""
    try:
        load_bytes(text.encode(), "cluster.yml")
    except ClusterFileError as error:
        return str(error).split("\n")
    return []


@dataclass(frozen=True)
class Folder:
    """A folder with sites in it, and programs that run there."""

    path: Path

    def write(self, name: str, text: str) -> Path:
        """Write a file; folders are made."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def site(self, text: str = SMALL, *, source: str = "plugin: hal\ncluster: cluster.yml\n") -> Path:
        """Write a model and a source for it; return the source."""
        self.write("cluster.yml", text)
        return self.write("hal.yml", source)

    def run(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the folder with this project's ansible.cfg."""
        words, own = [str(part) for part in command], self.environment(environment)
        return subprocess.run(words, cwd=self.path, env=own, capture_output=True, text=True, check=False)

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """What programs are started with."""
        return {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "PYTHONPATH": str(ROOT), **more}

    def ansible(
        self, program: str, *arguments: str | Path, config: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Ansible's programs."""
        words = [str(Path(sys.executable).with_name(program)), *map(str, arguments)]
        own = {**self.environment(environment), "ANSIBLE_CONFIG": str(self.path / (config or ROOT / "ansible.cfg"))}
        return warm.run(words, own, LONG_SECONDS, self.path)

    def listed(self, *sources: Path) -> dict[str, Any]:
        """Return what ansible-inventory --list says of sources."""
        chosen = [part for source in sources for part in ("-i", source)]
        done = self.ansible("ansible-inventory", "--list", *chosen)
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        return result


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty folder to write sites into."""
    path = tmp_path / "a site"  # with a space, as a user's folder may have
    path.mkdir()
    return Folder(path)


@pytest.fixture
def hal_inventory(folder: Folder) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The program hal-inventory, run in ``folder``."""

    def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return folder.run(sys.executable, "-m", "hal_cluster.inventory", *arguments, **environment)

    return run
