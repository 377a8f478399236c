"""A tiny project with tests of its own, and the program that tries faults in it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[4]
for _place in (PROJECT, PROJECT / "molecule/virtual_hal"):
    if str(_place) not in sys.path:
        sys.path.insert(0, str(_place))

FILES = {
    "docs/README.md": "",
    ".gitignore": "/.state/\n__pycache__/\n.pytest_cache/\n.hypothesis/\n",
    "hal_tiny/__init__.py": "",
    "hal_tiny/sums.py": """
        def nothing(number):
            return not number
        """,
    "hal_tiny/others.py": """
        def something(number):
            return not number
        """,
    "tests/conftest.py": """
        import sys
        from pathlib import Path

        sys.path.insert(0, str(Path(__file__).parents[1]))
        """,
    "tests/unit/tiny/test_sums.py": """
        from hal_tiny import others, sums

        def test_nothing():
            assert sums.nothing(0)
        """,
}


@dataclass
class Tiny:
    """The project below `root`."""

    root: Path

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))

    def command(self, *words: str) -> list[str]:
        """How faults are tried here."""
        program = [sys.executable, str(PROJECT / "tests/mutate"), "--project", str(self.root)]
        return [*program, "--only", "python", "--at-once", "1", *words]

    def mutate(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Try faults."""
        return subprocess.run(self.command(*words), capture_output=True, text=True, check=False, timeout=600)

    @property
    def copies(self) -> Path:
        """Where they are tried."""
        return self.root / ".state/mutate/copies"


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """One whose tests see half of the faults."""
    made = Tiny(tmp_path / "a tiny project")
    for name, text in FILES.items():
        made.write(name, text)
    for words in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *words], cwd=made.root, check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, "commit", "--quiet", "--message", "tiny"], cwd=made.root, check=True)
    return made
