"""The conda channels of the virtual HAL, built from channel/packages.yml: the same bytes wherever they are built."""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from testbed import wheels
from testbed.cache import cache_dir, content_hash, locked, made_once
from testbed.errors import VirtualNodesError
from testbed.run import LAB, need, say
from testbed.wheels import File

RECIPES = LAB / "channel"
# conda's packages have a long place in them, which the installer replaces with the prefix: a file keeps its length.
PLACEHOLDER = "/opt/" + "placeholder_" * 18
SUBDIRS = {"x86_64": "linux-64", "ppc64le": "linux-ppc64le"}
ARCHIVES = ("http://archive.ubuntu.com/ubuntu", "http://old-releases.ubuntu.com/ubuntu")
LEFT_OUT = ("test", "idlelib", "lib2to3", "turtledemo", "tkinter", "lib-tk", "pydoc_data", "ensurepip")
SITE = '''"""Stand-in of the virtual HAL: this interpreter looks for dist-packages; conda's are in site-packages."""
import os
import site
import sys
for prefix in site.PREFIXES:  # of a virtual environment its own, and the environment's where that was asked for
    site.addsitedir(os.path.join(prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages"))
'''
NO_INTERPRETER = "#!/bin/sh\necho 'stand-in of the virtual HAL: there is no interpreter for this machine' >&2; exit 1\n"

Text = Annotated[str, StringConstraints(min_length=1)]


class Recipe(BaseModel):
    """One entry of packages.yml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    channel: Text
    name: Text
    version: Text
    pythons: tuple[Text, ...] = ()
    noarch: bool = False
    depends: tuple[Text, ...] = ()
    entry_points: tuple[Text, ...] = ()
    payload: Mapping[str, str] = Field(default_factory=dict)
    libraries: Mapping[str, str] = Field(default_factory=dict)
    wheels: Mapping[str, str] = Field(default_factory=dict)
    wheel_files: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)


def location(arch: str = "x86_64") -> Path:
    """Return the folder with a folder for each channel, built or not."""
    return cache_dir() / "channels" / f"{arch}-{content_hash([RECIPES, Path(__file__), Path(wheels.__file__)], arch)}"


def build(arch: str = "x86_64") -> Path:
    """Make sure the channels exist and return their folder; quiet when they do."""

    def make_ours(new: Path) -> None:
        started = time.monotonic()
        need("dpkg-deb", "dpkg")
        make(new, arch, RECIPES, cache_dir() / "channels" / "debs")
        say(f"conda channels: built in {time.monotonic() - started:.0f} s")

    return made_once(location(arch), f"channels-{arch}", make_ours)


def publish(folder: Path, arch: str = "x86_64") -> Path:
    """Put the channels into a folder that nodes see, as FOLDER/channels/ALIAS, unless they are there; return it."""
    source = build(arch)
    stamp = folder / "channels" / "STAMP"
    if stamp.is_file() and stamp.read_text() == source.name:
        return folder / "channels"
    with locked(f"channels-{arch}"):
        new = folder / "channels.new"
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(source, new)
        (new / "STAMP").write_text(source.name)
        shutil.rmtree(folder / "channels", ignore_errors=True)
        new.rename(folder / "channels")
    return folder / "channels"


def load(path: Path) -> list[Recipe]:
    """Return the recipes; raise VirtualNodesError with every finding."""
    try:
        return TypeAdapter(list[Recipe]).validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError) as error:
        raise VirtualNodesError(f"{path}: cannot be read: {error}") from None
    except ValidationError as error:
        lines = [f"{path}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()]
        raise VirtualNodesError("\n".join(lines)) from None


def make(folder: Path, arch: str, recipes: Path, debs: Path | None) -> None:
    """Build all packages below FOLDER/CHANNEL/SUBDIR, with indexes. `debs`: of payloads; None: no interpreters."""
    subdir = SUBDIRS[arch]
    indexes: dict[tuple[str, str], dict[str, Any]] = {}
    for recipe in load(recipes / "packages.yml"):
        where = "noarch" if recipe.noarch else subdir
        for other in ("noarch", subdir):
            indexes.setdefault((recipe.channel, other), {})
        for python in recipe.pythons or ("",):
            name, index, archive = _package(recipe, python, where, recipes, debs if arch == "x86_64" else None)
            target = folder / recipe.channel / where / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive)
            sums = {"sha256": hashlib.sha256(archive).hexdigest(), "md5": hashlib.md5(archive).hexdigest()}
            indexes[recipe.channel, where][name] = {**index, "size": len(archive), **sums}
    for (channel, where), packages in indexes.items():
        path = folder / channel / where / "repodata.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"info": {"subdir": where}, "packages": packages, "packages.conda": {}, "repodata_version": 1}
        path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def _package(
    recipe: Recipe, python: str, subdir: str, recipes: Path, debs: Path | None
) -> tuple[str, dict[str, Any], bytes]:
    build = f"py{python.replace('.', '')}_0" if python else "py_0" if recipe.noarch else "0"
    depends = [*recipe.depends, *([f"python {python}.*"] if python else [])]
    index: dict[str, Any] = {
        "name": recipe.name, "version": recipe.version, "build": build, "build_number": 0, "depends": sorted(depends),
        "license": "stand-in of the virtual HAL", "subdir": subdir, "timestamp": 0,
    }  # fmt: skip
    if recipe.noarch:
        index["noarch"] = "python"
    files = dict(_own(recipe, python, recipes / "files"))
    if recipe.payload:
        files.update(interpreter(recipe, debs))
    if debs:
        files.update(libraries(recipe, debs))
        for wheel, sha256 in recipe.wheels.items():
            files.update(wheels.files_of(wheels.bring(wheel, sha256, python or "3.7", debs), python, PLACEHOLDER))
        for folder, kept in recipe.wheel_files.items():
            for wheel, sha256 in kept.items():
                files[f"{folder}/{wheel}"] = File(wheels.bring(wheel, sha256, python or "3.7", debs).read_bytes())
    return f"{recipe.name}-{recipe.version}-{build}.tar.bz2", index, _archive(recipe, index, files)


def _own(recipe: Recipe, python: str, folder: Path) -> Iterator[tuple[str, File]]:
    for base in (folder / recipe.name, folder / f"{recipe.name}-{recipe.version}"):
        for path in sorted(base.rglob("*")):
            if not path.is_file() or "__pycache__" in path.parts:
                continue
            name = str(path.relative_to(base))
            if name.startswith("site-packages/") and not recipe.noarch:
                name = f"lib/python{python}/{name}"
            text = path.read_text(encoding="utf-8").replace("@VERSION@", recipe.version)
            content = text.replace("@PREFIX@", PLACEHOLDER).encode()
            if name.endswith(".binary"):
                content = b"\0\1" + content.strip() + b"\0\2\0"
            yield name, File(content, name.startswith("bin/"))


def interpreter(recipe: Recipe, debs: Path | None) -> dict[str, File]:
    """Return the files of an interpreter at conda's places; `debs` None: a program that says there is none."""
    release = ".".join(recipe.version.split(".")[:2])
    program = f"bin/python{release}"
    files = {f"bin/{name}": File(b"", link=f"python{release}") for name in ("python", f"python{release[0]}")}
    if debs is None:
        return {**files, program: File(NO_INTERPRETER.encode(), True)}
    with tempfile.TemporaryDirectory(prefix="hal-channel-") as work:
        for name, sha256 in recipe.payload.items():
            subprocess.run(["dpkg-deb", "--extract", _deb(name, sha256, debs), work], check=True)
        root = Path(work, "usr")
        library = root / "lib" / f"python{release}"
        for path in sorted(library.rglob("*")):
            below = path.relative_to(library)
            if path.is_file() and not path.is_symlink() and below.parts[0] not in LEFT_OUT:
                files[f"lib/python{release}/{below}"] = File(path.read_bytes())
        ensurepip = f"lib/python{release}/ensurepip"
        if f"{ensurepip}/_bundled" in recipe.wheel_files:
            files[f"{ensurepip}/__init__.py"] = File(b"")
            files[f"{ensurepip}/__main__.py"] = File((RECIPES / "ensurepip.py").read_bytes())
        files[f"lib/python{release}/sitecustomize.py"] = File(SITE.encode())
        files[f"lib/python{release}/site-packages/README"] = File(b"Packages of this environment.\n")
        files[program] = File((root / "bin" / f"python{release}").read_bytes(), True)
    return files


def libraries(recipe: Recipe, debs: Path) -> Iterator[tuple[str, File]]:
    """Give the shared libraries of a package, at conda's place."""
    for name, sha256 in recipe.libraries.items():
        with tempfile.TemporaryDirectory(prefix="hal-channel-") as work:
            subprocess.run(["dpkg-deb", "--extract", _deb(name, sha256, debs), work], check=True)
            for path in sorted(Path(work).rglob("*.so*")):
                if path.is_symlink():
                    yield f"lib/{path.name}", File(b"", link=os.readlink(path))
                elif path.is_file():
                    yield f"lib/{path.name}", File(path.read_bytes())


def _deb(name: str, sha256: str, folder: Path) -> Path:
    path = folder / sha256 / Path(name).name
    if path.is_file():
        return path
    errors = []
    for archive in ARCHIVES:
        try:
            with urllib.request.urlopen(f"{archive}/{name}", timeout=60) as stream:
                content = stream.read()
        except OSError as error:
            errors.append(f"{archive}/{name}: {error}")
            continue
        checksum = hashlib.sha256(content).hexdigest()
        if checksum == sha256:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".new").write_bytes(content)
            path.with_suffix(".new").rename(path)
            return path
        errors.append(f"{archive}/{name}: has sha256 {checksum}, declared is {sha256}")
    raise VirtualNodesError("an interpreter of the conda channels cannot be had:\n" + "\n".join(errors))


def _archive(recipe: Recipe, index: Mapping[str, Any], files: Mapping[str, File]) -> bytes:
    """Return a package in conda's first format: files and info/ in a tar, the same bytes for the same content."""
    paths = []
    for name, file in sorted(files.items()):
        entry: dict[str, Any] = {"_path": name, "path_type": "softlink" if file.link else "hardlink"}
        if not file.link:
            entry |= {"sha256": hashlib.sha256(file.content).hexdigest(), "size_in_bytes": len(file.content)}
        if PLACEHOLDER.encode() in file.content:
            entry |= {"prefix_placeholder": PLACEHOLDER, "file_mode": "binary" if b"\0" in file.content else "text"}
        paths.append(entry)
    info = {
        "info/index.json": json.dumps(index, sort_keys=True),
        "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}, sort_keys=True),
        "info/files": "".join(f"{name}\n" for name in sorted(files)),
    }
    if recipe.noarch:
        kind = {"type": "python", "entry_points": list(recipe.entry_points)}
        info["info/link.json"] = json.dumps({"noarch": kind, "package_metadata_version": 1}, sort_keys=True)
    everything = {**{name: File(text.encode()) for name, text in info.items()}, **files}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, file in sorted(everything.items()):
            member = tarfile.TarInfo(name)
            member.mode = 0o755 if file.executable else 0o644
            if file.link:
                member.type, member.linkname = tarfile.SYMTYPE, file.link
                archive.addfile(member)
            else:
                member.size = len(file.content)
                archive.addfile(member, io.BytesIO(file.content))
    return bz2.compress(packed.getvalue(), 6)
