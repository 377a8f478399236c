"""Compilers: what is wrong with what is declared; versions in full; their modules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hal_cluster.rules.errors import RuleError

LISTED: dict[str, Any] = {"default": False, "hidden": False, "retired": "", "deprecated": ""}
TOOLCHAIN: dict[str, Any] = {**LISTED}
PGI: dict[str, Any] = {
    "source": "", "sha256": "", "nvidia": True, "mpi": False, "mpi_gpu": False, "mpi_folder": "mpi/openmpi-3.1.3",
    "licence": "", **LISTED,
}  # fmt: skip
FLAGS = ("default", "hidden", "nvidia", "mpi", "mpi_gpu")
VERSION = re.compile(r"\d{1,3}\.\d{1,3}")
HEX = re.compile(r"[0-9a-f]{64}")
SOURCE = re.compile(r"/[^\s:]+|controller:/[^\s:](?:[^\n:]*[^\s:])?|https?://[^/\s]+/\S+")
LICENCE = re.compile(r"/[^\s:]+|\d{1,5}@[A-Za-z0-9.-]+")
PACKAGE = re.compile(r"advance-toolchain-at(\d+\.\d+)-\S+")
# The folder that PGI's installer makes below its prefix.
TARGETS = {"ppc64le": "linuxpower", "x86_64": "linux86-64"}

Declared = Mapping[str, Any]


def toolchain_table(declared: Sequence[Declared]) -> list[dict[str, Any]]:
    """Return each release of the Advance Toolchain with all its fields, `id`, `prefix`, its packages' common `stem`.

    `declared`: entries of compilers_advance_toolchain, without faults. `prefix` is below /opt.
    """
    return [
        {
            **TOOLCHAIN,
            **release,
            "id": f"at/{release['version']}",
            "prefix": f"/opt/at{release['version']}",
            "stem": f"advance-toolchain-at{release['version']}",
        }
        for release in declared
    ]


def toolchain_problems(declared: Any, arch: str) -> list[str]:
    """Return a line for each fault of compilers_advance_toolchain on nodes of an architecture.

    `declared`: the variable as it is written. `arch`: as x86_64. A line has the entry and what would be right.
    """
    problems = list(_all(declared, "compilers_advance_toolchain", TOOLCHAIN, lambda release: ()))
    if declared and arch != "ppc64le":
        problems.append(
            f"compilers_advance_toolchain: IBM has the Advance Toolchain for POWER, and the node is {arch}; [] for it"
        )
    return problems


def toolchain_undeclared(installed: Sequence[str], declared: Sequence[Declared]) -> list[str]:
    """Return the installed packages of releases that are not declared, or retired; sorted.

    `installed`: names of packages; only those of the form advance-toolchain-atX.Y-... count. `declared`: entries of
    compilers_advance_toolchain.
    """
    kept = {str(release["version"]) for release in declared if not release.get("retired")}
    return sorted(name for name in installed if (matched := PACKAGE.fullmatch(name)) and matched[1] not in kept)


def pgi_table(declared: Sequence[Declared], root: str, arch: str) -> list[dict[str, Any]]:
    """Return each version of PGI with all its fields, its place `at` among those that are not retired, and `path`.

    `declared`: entries of compilers_pgi, without faults. `root`: the folder of all versions. `path`: the folder of a
    version's compilers. RuleError for an `arch` that is not in TARGETS.
    """
    if declared and arch not in TARGETS:
        raise RuleError(_no_pgi(arch))
    table = []
    at = 0
    for release in declared:
        path = f"{root}/{release['version']}/current/{TARGETS[arch]}/{release['version']}"
        table.append({**PGI, **release, "id": f"pgi/{release['version']}", "at": at, "path": path})
        at += not release.get("retired")
    return table


def _no_pgi(arch: str) -> str:
    return f"compilers_pgi: PGI has no compilers for {arch}"


def pgi_problems(declared: Any, arch: str, accepted: bool) -> list[str]:
    """Return a line for each fault of compilers_pgi; `accepted`: whether somebody has accepted PGI's licence.

    `declared`: the variable as it is written. `arch`: as ppc64le. A line has the entry and what would be right.
    """
    problems = list(_all(declared, "compilers_pgi", PGI, _pgi_faults))
    if declared and arch not in TARGETS:
        problems.append(_no_pgi(arch))
    if not problems and not accepted and any(not release.get("retired") for release in declared):
        problems.append(
            "compilers_pgi: PGI's end-user licence has to be accepted before its installer runs: read it, then set"
            " compilers_pgi_accept_eula to true"
        )
    return problems


def modules(toolchain: Sequence[Declared], pgi: Sequence[Declared], root: str, arch: str) -> list[dict[str, Any]]:
    """Return the modules at/X.Y and pgi/X.Y of what is declared, as hal_module_files takes them.

    `toolchain`, `pgi`: what is declared, without faults. `root`: the folder of all versions of PGI. `arch`: as
    pgi_table has it.
    """
    return [
        *(_toolchain_module(release) for release in toolchain_table(toolchain)),
        *(_pgi_module(release, f"{root}/{release['version']}/current") for release in pgi_table(pgi, root, arch)),
    ]


def _toolchain_module(release: Declared) -> dict[str, Any]:
    # As in IBM's own (github.com/advancetoolchain/advance-toolchain, pkg_build_environment_modules.sh): no
    # LD_LIBRARY_PATH, since programs that it builds find its libraries by themselves, and all others would load its
    # glibc; no sbin, since its ldconfig is not the system's.
    title = f"IBM Advance Toolchain {release['version']}: gcc, g++, gfortran, gdb"
    return _module(release, "at", title, _TOOLCHAIN_HELP) | {
        "roots": [f"{release['prefix']}/bin/gcc"],
        "prepend": {
            "PATH": [f"{release['prefix']}/bin"],
            "MANPATH": [f"{release['prefix']}/share/man"],
            "INFOPATH": [f"{release['prefix']}/share/info"],
        },
    }


def _pgi_module(release: Declared, prefix: str) -> dict[str, Any]:
    path, mpi = release["path"], f"{release['path']}/{release['mpi_folder']}"
    with_mpi = [mpi] if release["mpi"] else []
    settings = {"PGI": prefix}
    if release["licence"]:
        # PGI's own variable: LM_LICENSE_FILE is that of all programs with such licences (Spack's package pgi has both).
        settings["PGROUPD_LICENSE_FILE"] = str(release["licence"])
    title = f"PGI {release['version']}: pgcc, pgc++, pgfortran{', with its Open MPI' if with_mpi else ''}"
    return _module(release, "pgi", title, _PGI_HELP) | {
        "roots": [f"{path}/bin/pgcc"],
        "set": settings,
        "prepend": {
            "PATH": [*(f"{folder}/bin" for folder in with_mpi), f"{path}/bin"],
            "LD_LIBRARY_PATH": [*(f"{folder}/lib" for folder in with_mpi), f"{path}/lib"],
            "MANPATH": [f"{path}/man"],
        },
    }


def _module(release: Declared, name: str, title: str, help_text: str) -> dict[str, Any]:
    return {
        "name": name, "version": str(release["version"]), "title": title, "help": help_text, "owner_role": "compilers",
        "family": "compiler", **{field: release[field] for field in LISTED},
    }  # fmt: skip


_TOOLCHAIN_HELP = (
    "gcc, g++ and gfortran for POWER9, with their own libraries. What is built with them also runs without it:\n"
    "no variable is needed. Build for POWER9 with -mcpu=power9."
)
_PGI_HELP = (
    "Compilers with OpenACC and CUDA Fortran: pgcc -acc -ta=tesla:cc70 for the V100. CC, CXX and FC are not set:\n"
    "say which compiler a build is to use, for instance CC=pgcc ./configure."
)


def _all(
    declared: Any, variable: str, fields: Declared, more: Callable[[Declared], Sequence[str] | Iterator[str]]
) -> Iterator[str]:
    if not isinstance(declared, (list, tuple)):
        yield f"{variable}: not a list; write a version an entry"
        return
    clean = True
    for number, entry in enumerate(declared):
        where = f"{variable}[{number}]"
        if not isinstance(entry, Mapping):
            yield f'{where}: not a mapping; write {{version: "..."}}'
            return
        for words in (*_faults(entry, fields), *more(entry)):
            clean = False
            yield f"{where}{' (' + str(entry['version']) + ')' if entry.get('version') else ''}: {words}"
    if clean:
        yield from _together(declared, variable)


def _faults(entry: Declared, fields: Declared) -> Iterator[str]:
    for field in entry:
        if field not in ("version", *fields):
            yield f"{field} is not a field; there are {', '.join(('version', *fields))}"
    value = entry.get("version")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield f"version is the number {value}; put it in quotes, or 12.10 is 12.1"
    elif not (isinstance(value, str) and VERSION.fullmatch(value)):
        yield f'version is {value if value else "not there"}; write two numbers with a dot, in quotes: "12.0"'
    for field in FLAGS:
        if field in fields and not isinstance(entry.get(field, False), bool):
            yield f"{field} is {entry[field]}; write true or false"
    for field in ("retired", "deprecated"):
        if not isinstance(entry.get(field, ""), str):
            yield f"{field} is not text; write what users should use instead"
    if entry.get("retired") and entry.get("default") is True:
        yield "is retired and the default; make another version the default"


def _pgi_faults(entry: Declared) -> Iterator[str]:
    full = {**PGI, **entry}
    if full["licence"] and not LICENCE.fullmatch(str(full["licence"])):
        yield f"licence is {full['licence']}; write PORT@HOST of the licence server, or the path of a licence file"
    folder = str(full["mpi_folder"])
    if folder.startswith("/") or ".." in folder.split("/") or not folder:
        yield f"mpi_folder is {folder}; write a folder below PGI's own"
    if full["mpi_gpu"] is True and full["mpi"] is not True:
        yield "mpi_gpu without mpi; there is no Open MPI to make for GPUs"
    if full["retired"]:
        return
    source = str(full["source"])
    if not SOURCE.fullmatch(source):
        yield (
            f"source is {source or 'not there'}; write the archive's path on the installer (/srv/...), controller:/path"
            " for one on this machine, or an http address of the site's mirror"
        )
    elif "://" in source and "@" in source.split("/")[2]:
        yield "source has a name or password in it; use an address that needs none"
    if not (isinstance(full["sha256"], str) and HEX.fullmatch(full["sha256"])):
        yield f"sha256 is {full['sha256'] or 'not there'}; write the 64 digits 0-9a-f that sha256sum says, in quotes"


def _together(declared: Sequence[Declared], variable: str) -> Iterator[str]:
    for version, times in Counter(entry["version"] for entry in declared).items():
        if times > 1:
            yield f"{variable}: {version} is declared {times} times"
    seen = [entry for entry in declared if not entry.get("retired") and not entry.get("hidden")]
    defaults = [entry["version"] for entry in seen if entry.get("default")]
    if len(defaults) > 1:
        yield f"{variable}: the defaults are {', '.join(defaults)}; one is right"
    elif len(seen) > 1 and not defaults:
        versions = ", ".join(entry["version"] for entry in seen)
        yield f"{variable}: no default; write `default: true` for one of {versions}"
