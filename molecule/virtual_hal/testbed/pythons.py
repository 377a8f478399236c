"""Python 2.7 and 3.6, which nodes have, on this machine: for tests of what runs on nodes. See channel/packages.yml."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from testbed import channel
from testbed.cache import cache_dir, content_hash, made_once
from testbed.channel import Recipe
from testbed.errors import VirtualNodesError
from testbed.run import need, say
from testbed.wheels import File

VERSIONS = ("2.7", "3.6")
# A library that is loaded is found by its name, and only then by a search: nothing has to be set in the environment.
# Python loads it, and fails then: it is not a module of Python.
LOAD = """
import imp
for name in ("libcrypto.so.1.1", "libssl.so.1.1", "libffi.so.6"):
    try:
        imp.load_dynamic("_" + name.partition(".")[0], os.path.join(sys.prefix, "lib", name))
    except ImportError:
        pass
"""
# What a library that cannot be loaded would break, beside that the program is what its name says.
PROBE = "import ctypes, hashlib, json, sqlite3, ssl, subprocess, sys, _hashlib; sys.exit(sys.version_info[:2] != {})"


def location() -> Path:
    """Return the folder of them, built or not: each is VERSION/bin/pythonVERSION there."""
    recipes = "".join(recipe.model_dump_json() for recipe in _recipes())
    return cache_dir() / "pythons" / content_hash([Path(__file__), Path(channel.__file__)], recipes)


def program(version: str) -> Path:
    """Return the path of the Python of this version, built or not."""
    return location() / version / "bin" / f"python{version}"


def build() -> Path:
    """Make sure they exist and return their folder; quiet when they do."""
    target = location()

    def make(new: Path) -> None:
        started = time.monotonic()
        need("dpkg-deb", "dpkg")
        for version in VERSIONS:
            _unpack(version, new / version)
            _check(version, new / version, target / version)
        say(f"Pythons of nodes: built in {time.monotonic() - started:.0f} s")

    return made_once(target, "pythons", make)


def _recipes() -> list[Recipe]:
    """Return the interpreters and the libraries that they need."""
    every = channel.load(channel.RECIPES / "packages.yml")
    return [recipe for recipe in every if recipe.libraries or (recipe.payload and _release(recipe) in VERSIONS)]


def _release(recipe: Recipe) -> str:
    return ".".join(recipe.version.split(".")[:2])


def _unpack(version: str, folder: Path) -> None:
    debs = cache_dir() / "channels" / "debs"
    files: dict[str, File] = {}
    for recipe in _recipes():
        if recipe.libraries:
            files.update(channel.libraries(recipe, debs))
        elif _release(recipe) == version:
            files.update(channel.interpreter(recipe, debs))
    for name, file in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.link:
            path.symlink_to(file.link)
        else:
            path.write_bytes(file.content)
            path.chmod(0o755 if file.executable else 0o644)
    with (folder / f"lib/python{version}/sitecustomize.py").open("a") as site:
        site.write(LOAD)


def _check(version: str, folder: Path, final: Path) -> None:
    """Compile the library, so that no start has to; raise VirtualNodesError if this is not that Python, and whole."""
    python, library = folder / f"bin/python{version}", f"lib/python{version}"
    subprocess.run([python, "-m", "compileall", "-q", "-d", final / library, folder / library], check=False)
    probe = PROBE.format(tuple(map(int, version.split("."))))
    done = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it is another version"])[-1]
        raise VirtualNodesError(f"Python {version} of nodes does not run on this machine: {why}")
