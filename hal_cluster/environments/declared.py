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
    made: list[dict[str, Any]] = []
    if not PATHS.fullmatch(root) or len(f"{root}/".encode()) > 120:
        problems.append(
            f"{variable}: the place {root!r} has to be an absolute path of up to 120 letters, digits, . _ + -"
        )
    for at, entry in enumerate(declared):
        where = f"{variable}[{at}]"
        if not isinstance(entry, Mapping):
            problems.append(f"{where}: not a mapping; write version, lock, python")
            continue
        label = f"{where} ({entry.get('name') or name}/{entry.get('version', '?')})"
        faults = list(_faults(entry))
        problems += [f"{label}: {words}" for words in faults]
        if faults or entry.get("retired"):
            continue
        try:
            lock = check(directory / f"{entry['lock']}.lock.yml")
        except FileError as error:
            problems += [f"{label}: {words}" for words in _advice(error.findings, directory, str(entry["lock"]))]
            continue
        faults = list(_with_lock(entry, lock, platform))
        problems += [f"{label}: {directory}/{entry['lock']}.lock.yml: {words}" for words in faults]
        if not faults:
            made.append(_entry({**OPTIONAL, **entry}, at, lock, name, root))
    entries = [entry for entry in declared if isinstance(entry, Mapping)]
    problems += _together([{**OPTIONAL, **entry, "name": entry.get("name") or name} for entry in entries], variable)
    return {"problems": problems, "environments": [] if problems else made}


def _advice(findings: Sequence[str], directory: Path, lock: str) -> list[str]:
    path = directory / f"{lock}.lock.yml"
    if not path.exists():
        return [
            f"{path} is not there: where its channels can be reached, run hal-environments lock {lock}, and commit it"
        ]
    return list(findings)


def _faults(entry: Mapping[str, Any]) -> Iterator[str]:
    for field in entry:
        if field not in FIELDS:
            yield f"{field} is not a field; there are {', '.join(FIELDS)}"
    for field, form, words in (
        ("version", VERSION, "letters, digits, . _ + -, in quotes"),
        ("lock", LOCK, "the name of a lock file without .lock.yml"),
        ("python", PYTHON, "two or three numbers, in quotes, such as '3.7'"),
    ):
        value = entry.get(field)
        if value is None or value == "":
            yield f"no {field}: write {words}"
        elif not isinstance(value, str):
            yield f"{field} is the number {value}; put it in quotes, or 3.10 is 3.1"
        elif not form.fullmatch(value):
            yield f"{field} is {value!r}; write {words}"
    if isinstance(entry.get("version"), str) and PREFIX.fullmatch(entry["version"]):
        yield f"version is {entry['version']!r}, which looks like a prefix with its digest; choose another"
    if entry.get("name") and not (isinstance(entry["name"], str) and NAME.fullmatch(entry["name"])):
        yield f"name is {entry['name']!r}; write small letters, digits, _ and -"
    for field in ("default", "hidden"):
        if not isinstance(entry.get(field, False), bool):
            yield f"{field} is {entry[field]!r}; write true or false"
    for field in ("title", "retired", "deprecated"):
        if not isinstance(entry.get(field, ""), str):
            yield f"{field} is not text"
    if entry.get("retired") and entry.get("default"):
        yield "is retired and the default; make another version the default"
    imports = entry.get("imports", [])
    if (
        not isinstance(imports, Sequence)
        or isinstance(imports, str)
        or not all(MODULE.fullmatch(str(n)) for n in imports)
    ):
        yield f"imports is {imports!r}; write a list of Python modules"
    yield from _post_link(entry.get("post_link", {}))


def _post_link(given: Any) -> Iterator[str]:
    if not isinstance(given, Mapping) or set(given) - {"run", "skip", "environment"}:
        yield "post_link: write run and skip, lists of packages, and environment, a mapping"
        return
    lists = [given.get("run", []), given.get("skip", [])]
    if not all(isinstance(words, Sequence) and not isinstance(words, str) for words in lists):
        yield "post_link: run and skip are lists of packages"
    elif both := set(lists[0]) & set(lists[1]):
        yield f"post_link: {', '.join(sorted(both))} is in run and in skip"
    environment = given.get("environment", {})
    if not isinstance(environment, Mapping) or not all(isinstance(value, str) for value in environment.values()):
        yield "post_link: environment is a mapping of texts; put yes and no in quotes"


def _with_lock(entry: Mapping[str, Any], lock: Lock, platform: str) -> Iterator[str]:
    if lock.asked.platform != platform:
        yield f"is for {lock.asked.platform}, the nodes are {platform}"
    python = lock.packages.get("python")
    if python is None:
        yield "has no package python"
    elif python.version != entry["python"] and not python.version.startswith(entry["python"] + "."):
        yield f"has Python {python.version}, declared is {entry['python']}"
    for name in _decided(entry):
        if name not in lock.packages:
            yield f"has no package {name}, which post_link names"


def _decided(entry: Mapping[str, Any]) -> list[str]:
    given = entry.get("post_link", {})
    return [*given.get("run", []), *given.get("skip", [])]


def _together(entries: Sequence[Mapping[str, Any]], variable: str) -> Iterator[str]:
    for label, times in Counter((entry["name"], entry.get("version")) for entry in entries).items():
        if times > 1:
            yield f"{variable}: {label[0]}/{label[1]} is declared {times} times"
    for name in dict.fromkeys(entry["name"] for entry in entries):
        current = [entry for entry in entries if entry["name"] == name and not entry["retired"]]
        defaults = [str(entry.get("version")) for entry in current if entry["default"]]
        if len(defaults) > 1:
            yield f"{variable}: {name} has the defaults {', '.join(defaults)}; one is right"
        elif current and not defaults:
            versions = ", ".join(str(entry.get("version")) for entry in current)
            yield f"{variable}: {name} has no default; write `default: true` for one of {versions}"


def _meta(file: str) -> str:
    """Return the name of the record that an installed package has in conda-meta."""
    for ending in locks.ENDINGS:
        file = file.removesuffix(ending)
    return f"{file}.json"


def _entry(entry: Mapping[str, Any], at: int, lock: Lock, default_name: str, root: str) -> dict[str, Any]:
    name = entry["name"] or default_name
    post_link = {"run": [], "skip": [], "environment": {}, **entry["post_link"]}
    # What the scripts are told is not a part of the digest: it is a consent, not content.
    digest = locks.digest(lock, sorted(post_link["run"]), sorted(post_link["skip"]))
    link = f"{root}/{name}/{entry['version']}"
    return {
        "id": f"{name}/{entry['version']}", "at": at, "name": name, "version": entry["version"],
        "title": entry["title"],
        "default": entry["default"], "hidden": entry["hidden"], "deprecated": entry["deprecated"], "link": link,
        "prefix": f"{link}.{digest}", "digest": digest, "python": entry["python"], "imports": list(entry["imports"]),
        "post_link": post_link, "platform": lock.asked.platform, "channels": dict(lock.asked.channels),
        "metas": sorted(_meta(p.file) for p in lock.packages.values()),
        "packages": [
            {"name": p.name, "version": p.version, "build": p.build, "build_number": p.number, "channel": p.channel,
             "subdir": p.subdir, "file": p.file, "size": p.size, "sha256": p.sha256, "license": p.license,
             "depends": list(p.depends), "noarch": p.noarch}
            for p in lock.packages.values()
        ],
    }  # fmt: skip
