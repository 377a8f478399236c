"""A copy of the project with a virtual environment of its own, in which a fault is put and taken out again."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.mutate.choose import Tree
from tests.mutate.mutant import Mutant

_moments = itertools.count(1)


class Copy:
    """A copy below `folder`; nothing that is run there finds the tree that it was made of."""

    def __init__(self, tree: Tree, folder: Path) -> None:
        self.root = folder
        shutil.rmtree(folder, ignore_errors=True)
        for name in tree.files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree.root / name, folder / name, follow_symlinks=False)
        _environment(Path(sys.prefix), tree.root, folder)
        # Or git would answer for the repository around it. Nothing is asked of the user's settings.
        who = ("-c", "user.name=mutate", "-c", "user.email=mutate@localhost", "-c", "commit.gpgsign=false")
        for words in (("init", "--quiet"), ("add", "--all"), (*who, "commit", "--quiet", "--message", "a copy")):
            subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)

    @contextlib.contextmanager
    def having(self, mutant: Mutant) -> Iterator[None]:
        """The copy with the fault, for as long as this lasts."""
        self._write(mutant.path, mutant.after)
        try:
            yield
        finally:
            self._write(mutant.path, mutant.before)

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self.root, ignore_errors=True)

    def _write(self, path: str, text: str) -> None:
        file = self.root / path
        file.write_text(text)
        # Python takes what it compiled of a file of the same size and second: no two texts have the same one.
        moment = file.stat().st_mtime + next(_moments) * 2
        os.utime(file, (moment, moment))


def _environment(found: Path, project: Path, folder: Path) -> None:
    """Make .venv of the packages that another has, with the copy as the installed project."""
    own = folder / ".venv"
    moved = {str(found): str(own), str(project): str(folder)}
    places = re.compile("|".join(re.escape(place) for place in sorted(moved, key=len, reverse=True)))

    def ours(source: Path, target: Path) -> None:
        text = places.sub(lambda place: moved[place[0]], source.read_text())
        # As pip does: a kernel reads 127 characters of the first line, and no blank.
        text = re.sub(r"\A#!(/.*/python[\d.]*)\n", r"""#!/bin/sh\n'''exec' "\1" "$0" "$@"\n' '''\n""", text)
        target.write_text(text)
        target.chmod(source.stat().st_mode)

    (own / "bin").mkdir(parents=True)
    ours(found / "pyvenv.cfg", own / "pyvenv.cfg")
    for program in sorted((found / "bin").iterdir()):
        target = own / "bin" / program.name
        if program.is_symlink():
            target.symlink_to(os.readlink(program))
        elif program.is_file() and program.read_bytes()[:2] == b"#!":
            ours(program, target)
        elif program.is_file():
            target.symlink_to(program)
    packages = next((found / "lib").glob("python3*/site-packages"))
    target = own / packages.relative_to(found)
    target.mkdir(parents=True)
    for entry in sorted(packages.iterdir()):
        if entry.name.startswith("__editable__") and entry.is_file():
            ours(entry, target / entry.name)
        elif entry.name != "__pycache__":
            (target / entry.name).symlink_to(entry)
