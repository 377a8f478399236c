"""What a role declares, together with its lock files: what hal_environment installs, and what is wrong with it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hal_cluster.environments import lock as locks
from hal_cluster.environments.check import check
from hal_cluster.environments.errors import FileError
from hal_cluster.environments.lock import Lock

REQUIRED = ("version", "lock", "python")
OPTIONAL: dict[str, Any] = {
    "name": "", "title": "", "default": False, "hidden": False, "retired": "", "deprecated": "", "imports": [],
    "post_link": {},
}  # fmt: skip
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
# Not with a point and twelve hex digits at its end: that is a prefix.
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
PREFIX = re.compile(r".*\.[0-9a-f]{12}(?:\.\d+)?")
LOCK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
PYTHON = re.compile(r"\d+\.\d+(?:\.\d+)?")
MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
PATHS = re.compile(r"/[A-Za-z0-9_./+-]*[A-Za-z0-9_+-]")
FIELDS = (*REQUIRED, *OPTIONAL)


def environments(
    declared: Sequence[Any], *, name: str, root: str, directory: Path, platform: str, variable: str
) -> dict[str, Any]:
    """Return {problems, environments}: one line a fault, and each current version as hal_environment takes it.

    `name`: of entries that have none; `root`: below which they are installed; `directory`: of the lock files;
    `platform`: conda's name of the nodes' machine; `variable`: what the list is called.
    """
    problems: list[str] = []
    found: list[dict[str, Any]] = []
    if not PATHS.fullmatch(root) or len(f"{root}/".encode()) > 120:
        problems.append(
            f"{variable}: the place {root!r} has to be an absolute path of up to 120 letters, digits, . _ + -"
        )
    for at, one in enumerate(declared):
        where = f"{variable}[{at}]"
        if not isinstance(one, Mapping):
            problems.append(f"{where}: not a mapping; write version, lock, python")
            continue
        label = f"{where} ({one.get('name') or name}/{one.get('version', '?')})"
        faults = list(_faults(one))
        problems += [f"{label}: {words}" for words in faults]
        if faults or one.get("retired"):
            continue
        try:
            lock = check(directory / f"{one['lock']}.lock.yml")
        except FileError as error:
            problems += [f"{label}: {words}" for words in _advice(error.findings, directory, str(one["lock"]))]
            continue
        faults = list(_with_lock(one, lock, platform))
        problems += [f"{label}: {directory}/{one['lock']}.lock.yml: {words}" for words in faults]
        if not faults:
            found.append(_entry({**OPTIONAL, **one}, at, lock, name, root))
    entries = [one for one in declared if isinstance(one, Mapping)]
    problems += _together([{**OPTIONAL, **one, "name": one.get("name") or name} for one in entries], variable)
    return {"problems": problems, "environments": [] if problems else found}


def _advice(findings: Sequence[str], directory: Path, lock: str) -> list[str]:
    path = directory / f"{lock}.lock.yml"
    if not path.exists():
        return [
            f"{path} is not there: where its channels can be reached, run hal-environments lock {lock}, and commit it"
        ]
    return list(findings)


def _faults(one: Mapping[str, Any]) -> Iterator[str]:
    for field in one:
        if field not in FIELDS:
            yield f"{field} is no field; there are {', '.join(FIELDS)}"
    for field, form, words in (
        ("version", VERSION, "letters, digits, . _ + -, in quotes"),
        ("lock", LOCK, "the name of a lock file without .lock.yml"),
        ("python", PYTHON, "two or three numbers, in quotes, such as '3.7'"),
    ):
        value = one.get(field)
        if value is None or value == "":
            yield f"no {field}: write {words}"
        elif not isinstance(value, str):
            yield f"{field} is the number {value}; put it in quotes, or 3.10 is 3.1"
        elif not form.fullmatch(value):
            yield f"{field} is {value!r}; write {words}"
    if isinstance(one.get("version"), str) and PREFIX.fullmatch(one["version"]):
        yield f"version is {one['version']!r}, which looks like a prefix with its digest; choose another"
    if one.get("name") and not (isinstance(one["name"], str) and NAME.fullmatch(one["name"])):
        yield f"name is {one['name']!r}; write small letters, digits, _ and -"
    for field in ("default", "hidden"):
        if not isinstance(one.get(field, False), bool):
            yield f"{field} is {one[field]!r}; write true or false"
    for field in ("title", "retired", "deprecated"):
        if not isinstance(one.get(field, ""), str):
            yield f"{field} is no text"
    if one.get("retired") and one.get("default"):
        yield "is retired and the default; make another version the default"
    imports = one.get("imports", [])
    if (
        not isinstance(imports, Sequence)
        or isinstance(imports, str)
        or not all(MODULE.fullmatch(str(n)) for n in imports)
    ):
        yield f"imports is {imports!r}; write a list of Python modules"
    yield from _post_link(one.get("post_link", {}))


def _post_link(given: Any) -> Iterator[str]:
    if not isinstance(given, Mapping) or set(given) - {"run", "skip", "environment"}:
        yield "post_link: write run and skip, lists of packages, and environment, a mapping"
        return
    lists = [given.get("run", []), given.get("skip", [])]
    if not all(isinstance(one, Sequence) and not isinstance(one, str) for one in lists):
        yield "post_link: run and skip are lists of packages"
    elif both := set(lists[0]) & set(lists[1]):
        yield f"post_link: {', '.join(sorted(both))} is in run and in skip"
    environment = given.get("environment", {})
    if not isinstance(environment, Mapping) or not all(isinstance(value, str) for value in environment.values()):
        yield "post_link: environment is a mapping of texts; put yes and no in quotes"


def _with_lock(one: Mapping[str, Any], lock: Lock, platform: str) -> Iterator[str]:
    if lock.asked.platform != platform:
        yield f"is for {lock.asked.platform}, the nodes are {platform}"
    python = lock.packages.get("python")
    if python is None:
        yield "has no package python"
    elif python.version != one["python"] and not python.version.startswith(one["python"] + "."):
        yield f"has Python {python.version}, declared is {one['python']}"
    for name in _decided(one):
        if name not in lock.packages:
            yield f"has no package {name}, which post_link names"


def _decided(one: Mapping[str, Any]) -> list[str]:
    given = one.get("post_link", {})
    return [*given.get("run", []), *given.get("skip", [])]


def _together(entries: Sequence[Mapping[str, Any]], variable: str) -> Iterator[str]:
    for label, times in Counter((one["name"], one.get("version")) for one in entries).items():
        if times > 1:
            yield f"{variable}: {label[0]}/{label[1]} is declared {times} times"
    for name in dict.fromkeys(one["name"] for one in entries):
        current = [one for one in entries if one["name"] == name and not one["retired"]]
        defaults = [str(one.get("version")) for one in current if one["default"]]
        if len(defaults) > 1:
            yield f"{variable}: {name} has the defaults {', '.join(defaults)}; one is right"
        elif current and not defaults:
            versions = ", ".join(str(one.get("version")) for one in current)
            yield f"{variable}: {name} has no default; write `default: true` for one of {versions}"


def _meta(file: str) -> str:
    """Return the name of the record that an installed package has in conda-meta."""
    for ending in locks.ENDINGS:
        file = file.removesuffix(ending)
    return f"{file}.json"


def _entry(one: Mapping[str, Any], at: int, lock: Lock, default_name: str, root: str) -> dict[str, Any]:
    name = one["name"] or default_name
    post_link = {"run": [], "skip": [], "environment": {}, **one["post_link"]}
    # What the scripts are told is no part of the digest: it is a consent, not content.
    digest = locks.digest(lock, sorted(post_link["run"]), sorted(post_link["skip"]))
    link = f"{root}/{name}/{one['version']}"
    return {
        "id": f"{name}/{one['version']}", "at": at, "name": name, "version": one["version"], "title": one["title"],
        "default": one["default"], "hidden": one["hidden"], "deprecated": one["deprecated"], "link": link,
        "prefix": f"{link}.{digest}", "digest": digest, "python": one["python"], "imports": list(one["imports"]),
        "post_link": post_link, "platform": lock.asked.platform, "channels": dict(lock.asked.channels),
        "metas": sorted(_meta(p.file) for p in lock.packages.values()),
        "packages": [
            {"name": p.name, "version": p.version, "build": p.build, "build_number": p.number, "channel": p.channel,
             "subdir": p.subdir, "file": p.file, "size": p.size, "sha256": p.sha256, "license": p.license,
             "depends": list(p.depends), "noarch": p.noarch}
            for p in lock.packages.values()
        ],
    }  # fmt: skip
