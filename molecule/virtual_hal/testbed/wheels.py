"""Wheels of PyPI as files of a conda package: real programs of Python for the virtual HAL."""

from __future__ import annotations

import configparser
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import VirtualNodesError

SCRIPT = "#!{prefix}/bin/python\nimport sys\nfrom {module} import {first}\nsys.exit({function}())\n"
# What a conda package has no use for.
LEFT_OUT = ("tests/", "test/", ".map")


@dataclass(frozen=True)
class File:
    """One file of a package."""

    content: bytes
    executable: bool = False
    link: str = ""


def bring(name: str, sha256: str, python: str, folder: Path) -> Path:
    """Return a wheel by its file name, fetched by pip with its settings unless it is there; checked in any case."""
    path = folder / sha256 / name
    if not path.is_file():
        package, version, *_, abi, platforms = name.removesuffix(".whl").split("-")
        path.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [
                sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                "--only-binary=:all:", "--implementation=cp", f"--python-version={python}",
                f"--abi={abi}", *(f"--platform={platform}" for platform in platforms.split(".")),
                f"--dest={path.parent}", f"{package}=={version}",
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode or not path.is_file():
            said = [line for line in done.stderr.splitlines() if "WARNING" not in line]
            why = (said or ["another file came"])[-1]
            raise VirtualNodesError(f"{name} cannot be had: {why}")
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if checksum != sha256:
        raise VirtualNodesError(f"{path}: has sha256 {checksum}, declared is {sha256}")
    return path


def files_of(wheel: Path, python: str, prefix: str) -> Iterator[tuple[str, File]]:
    """Give a wheel's files at conda's places: below site-packages, bin and the prefix. `python` "": for all of them."""
    site = f"lib/python{python}/site-packages" if python else "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith("/") or any(part in name for part in LEFT_OUT):
                continue
            content = archive.read(name)
            top, _, rest = name.partition("/")
            if top.endswith(".data"):
                kind, _, rest = rest.partition("/")
                if kind == "scripts":
                    content = content.replace(b"#!python", f"#!{prefix}/bin/python".encode(), 1)
                    yield f"bin/{rest}", File(content, executable=True)
                else:
                    yield rest if kind == "data" else f"{site}/{rest}", File(content)
                continue
            yield f"{site}/{name}", File(content)
            if top.endswith(".dist-info") and rest == "entry_points.txt" and python:
                yield from _programs(content.decode(), prefix)


def _programs(text: str, prefix: str) -> Iterator[tuple[str, File]]:
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    if not parser.has_section("console_scripts"):
        return
    for name, target in parser.items("console_scripts"):
        module, _, function = target.split("[")[0].strip().partition(":")
        script = SCRIPT.format(prefix=prefix, module=module, first=function.split(".")[0], function=function)
        yield f"bin/{name}", File(script.encode(), executable=True)
