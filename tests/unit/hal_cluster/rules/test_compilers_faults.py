"""Each fault of a declared compiler, whole; and the tables and modules of what has none."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.rules import compilers
from tests.unit.roles.compilers.conftest import pgi

PGI_FIELDS = "version, source, sha256, nvidia, mpi, mpi_gpu, mpi_folder, licence, default, hidden, retired, deprecated"
SHAPE = 'write two numbers with a dot, in quotes: "12.0"'
PLACE = (
    "write the archive's path on the installer (/srv/...), controller:/path for one on this machine, or an http"
    " address of the site's mirror"
)
SERVER = "write PORT@HOST of the licence server, or the path of a licence file"
BELOW = "write a folder below PGI's own"
DIGITS = "write the 64 digits 0-9a-f that sha256sum says, in quotes"
SECRET = "source has a name or password in it; use an address that needs none"
TEXT = "is not text; write what users should use instead"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 19.1}, [" (19.1): version is the number 19.1; put it in quotes, or 12.10 is 12.1"]),
        ({"version": 19}, [" (19): version is the number 19; put it in quotes, or 12.10 is 12.1"]),
        ({"version": True}, [f" (True): version is True; {SHAPE}"]),
        ({"version": ""}, [f": version is not there; {SHAPE}"]),
        ({"version": "1234.1"}, [f" (1234.1): version is 1234.1; {SHAPE}"]),
        ({"version": "19.10.1"}, [f" (19.10.1): version is 19.10.1; {SHAPE}"]),
        ({"a": 1, "b": 2}, [f" (19.10): {name} is not a field; there are {PGI_FIELDS}" for name in "ab"]),
        (
            {"default": 1, "mpi": "no", "hidden": "", "nvidia": None},
            [f" (19.10): {name} is {value}; write true or false"
             for name, value in (("default", 1), ("hidden", ""), ("nvidia", None), ("mpi", "no"))],
        ),
        ({"mpi": True, "mpi_gpu": 1}, [" (19.10): mpi_gpu is 1; write true or false"]),
        ({"retired": 1, "deprecated": ["x"]}, [f" (19.10): {name} {TEXT}" for name in ("retired", "deprecated")]),
        (
            {"retired": "x", "default": True, "source": "", "sha256": ""},
            [" (19.10): is retired and the default; make another version the default"],
        ),
        ({"licence": "27000@"}, [f" (19.10): licence is 27000@; {SERVER}"]),
        ({"licence": "270000@a"}, [f" (19.10): licence is 270000@a; {SERVER}"]),
        ({"mpi_folder": "/opt"}, [f" (19.10): mpi_folder is /opt; {BELOW}"]),
        ({"mpi_folder": "a/../b"}, [f" (19.10): mpi_folder is a/../b; {BELOW}"]),
        ({"mpi_folder": ""}, [f" (19.10): mpi_folder is ; {BELOW}"]),
        ({"mpi_gpu": True}, [" (19.10): mpi_gpu without mpi; there is no Open MPI to make for GPUs"]),
        ({"source": ""}, [f" (19.10): source is not there; {PLACE}"]),
        ({"source": "/a b"}, [f" (19.10): source is /a b; {PLACE}"]),
        ({"source": "https://me@host/x"}, [f" (19.10): {SECRET}"]),
        ({"source": "http://me:a@host/x"}, [f" (19.10): {SECRET}"]),
        ({"sha256": ""}, [f" (19.10): sha256 is not there; {DIGITS}"]),
        ({"sha256": "a" * 65}, [f" (19.10): sha256 is {'a' * 65}; {DIGITS}"]),
        ({"sha256": 64}, [f" (19.10): sha256 is 64; {DIGITS}"]),
        (
            {"licence": "x", "mpi_folder": "..", "mpi_gpu": True, "source": "x", "sha256": "y"},
            [f" (19.10): licence is x; {SERVER}", f" (19.10): mpi_folder is ..; {BELOW}",
             " (19.10): mpi_gpu without mpi; there is no Open MPI to make for GPUs",
             f" (19.10): source is x; {PLACE}", f" (19.10): sha256 is y; {DIGITS}"],
        ),
    ],
)  # fmt: skip
def test_each_fault_of_a_version_is_told(changes: dict[str, Any], words: list[str]) -> None:
    expected = [f"compilers_pgi[1]{line}" for line in words]
    assert compilers.pgi_problems([pgi(version="1.2", default=True), pgi(**changes)], "x86_64", False) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "1.2"}, {"version": "123.456"}, {"licence": "27000@a.b-c"}, {"licence": "/l"},
        {"mpi_folder": "a..b"}, {"mpi": True, "mpi_gpu": True}, {"source": "https://host/me@x"},
        {"source": "http://host/x"},
        {"source": "controller:/a"}, {"source": "/me@x"}, {"retired": "x", "source": "", "sha256": ""},
        {"deprecated": "soon", "default": True}, {"hidden": True, "default": True}, {"nvidia": False},
    ],
)  # fmt: skip
def test_what_is_right_has_no_fault(changes: dict[str, Any]) -> None:
    for arch in ("ppc64le", "x86_64"):
        assert compilers.pgi_problems([pgi(**changes)], arch, True) == []


def test_faults_of_the_whole_list_are_told_when_each_version_is_right() -> None:
    problems = compilers.pgi_problems
    eula = (
        "compilers_pgi: PGI's end-user licence has to be accepted before its installer runs: read it, then set"
        " compilers_pgi_accept_eula to true"
    )
    retired = pgi(version="1.1", retired="x")
    hidden = pgi(version="1.2", hidden=True)
    assert problems([retired, hidden, pgi()], "x86_64", False) == [eula]
    assert problems([pgi(), retired, hidden], "x86_64", True) == []
    assert problems([retired], "x86_64", False) == []
    assert problems([pgi()], "aarch64", False) == ["compilers_pgi: PGI has no compilers for aarch64"]
    assert problems([], "aarch64", True) == []
    three = [pgi(default=True), pgi(default=True), pgi(version="19.4", default=True), pgi(version="1.9")]
    assert problems(three, "x86_64", True) == [
        "compilers_pgi: 19.10 is declared 2 times", "compilers_pgi: the defaults are 19.10, 19.10, 19.4; one is right",
    ]  # fmt: skip
    assert problems([pgi(), pgi(version="19.4"), retired], "x86_64", True) == [
        "compilers_pgi: no default; write `default: true` for one of 19.10, 19.4"
    ]
    for wrong, words in (
        ("x", "compilers_pgi: not a list; write a version an entry"),
        ({}, "compilers_pgi: not a list; write a version an entry"),
        ([pgi(), "x", "y"], 'compilers_pgi[1]: not a mapping; write {version: "..."}'),
    ):
        assert compilers.pgi_problems(wrong, "x86_64", True) == [words]
    assert problems((pgi(),), "x86_64", True) == []


def test_faults_of_the_toolchain_are_told() -> None:
    problems = compilers.toolchain_problems
    power = "".join(["ppc64", "le"])  # a text of its own, as from a node
    fields = "version, default, hidden, retired, deprecated"
    assert problems([{"version": "12.0", "mpi": True}], power) == [
        f"compilers_advance_toolchain[0] (12.0): mpi is not a field; there are {fields}"
    ]
    assert problems([{"version": "12.0"}], "x86_64") == [
        "compilers_advance_toolchain: IBM has the Advance Toolchain for POWER, and the node is x86_64; [] for it"
    ]
    assert problems([{}], power) == [f"compilers_advance_toolchain[0]: version is not there; {SHAPE}"]


def test_the_tables_have_all_fields() -> None:
    listed = {"default": False, "hidden": False, "retired": "", "deprecated": ""}
    assert compilers.toolchain_table([{"version": "12.0", "hidden": True}, {"version": "13.0"}]) == [
        listed | {"version": "12.0", "hidden": True, "id": "at/12.0", "prefix": "/opt/at12.0",
                  "stem": "advance-toolchain-at12.0"},
        listed | {"version": "13.0", "id": "at/13.0", "prefix": "/opt/at13.0", "stem": "advance-toolchain-at13.0"},
    ]  # fmt: skip
    rest = listed | {"nvidia": True, "mpi": False, "mpi_gpu": False, "licence": "", "mpi_folder": "mpi/openmpi-3.1.3",
                     "source": "/srv/pgi.tar.gz", "sha256": "a" * 64}  # fmt: skip
    declared = [pgi(), pgi(version="1.2", retired="x", mpi=True), pgi(version="1.3"), pgi(version="1.4")]
    assert compilers.pgi_table(declared, "/r", "x86_64") == [
        rest | {"version": version, "id": f"pgi/{version}", "at": at,
                "path": f"/r/{version}/current/linux86-64/{version}", **more}
        for version, at, more in (
            ("19.10", 0, {}), ("1.2", 1, {"retired": "x", "mpi": True}), ("1.3", 1, {}), ("1.4", 2, {}),
        )
    ]  # fmt: skip


def test_the_modules_are_whole() -> None:
    listed = {"default": False, "hidden": False, "retired": "", "deprecated": ""}
    common = listed | {"owner_role": "compilers", "family": "compiler"}
    toolchain, plain, mpi = compilers.modules(
        [{"version": "12.0", "deprecated": "soon"}],
        [pgi(default=True), pgi(version="20.4", mpi=True, licence="/l", hidden=True)], "/r", "ppc64le",
    )  # fmt: skip
    assert "gcc, g++ and gfortran for POWER9" in toolchain.pop("help")
    assert toolchain == common | {
        "name": "at", "version": "12.0", "title": "IBM Advance Toolchain 12.0: gcc, g++, gfortran, gdb",
        "deprecated": "soon", "roots": ["/opt/at12.0/bin/gcc"],
        "prepend": {"PATH": ["/opt/at12.0/bin"], "MANPATH": ["/opt/at12.0/share/man"],
                    "INFOPATH": ["/opt/at12.0/share/info"]},
    }  # fmt: skip
    assert "Compilers with OpenACC" in plain.pop("help")
    here = "/r/19.10/current/linuxpower/19.10"
    assert plain == common | {
        "name": "pgi", "version": "19.10", "title": "PGI 19.10: pgcc, pgc++, pgfortran", "default": True,
        "roots": [f"{here}/bin/pgcc"], "set": {"PGI": "/r/19.10/current"},
        "prepend": {"PATH": [f"{here}/bin"], "LD_LIBRARY_PATH": [f"{here}/lib"], "MANPATH": [f"{here}/man"]},
    }  # fmt: skip
    there = "/r/20.4/current/linuxpower/20.4"
    folder = f"{there}/mpi/openmpi-3.1.3"
    assert mpi["title"] == "PGI 20.4: pgcc, pgc++, pgfortran, with its Open MPI"
    assert (mpi["hidden"], mpi["default"]) == (True, False)
    assert mpi["set"] == {"PGI": "/r/20.4/current", "PGROUPD_LICENSE_FILE": "/l"}
    assert mpi["prepend"] == {
        "PATH": [f"{folder}/bin", f"{there}/bin"], "LD_LIBRARY_PATH": [f"{folder}/lib", f"{there}/lib"],
        "MANPATH": [f"{there}/man"],
    }  # fmt: skip


def test_packages_that_nobody_declares_are_those_of_the_toolchain() -> None:
    installed = [
        "advance-toolchain-at9.0-x", "advance-toolchain-at12.0-x", "x-advance-toolchain-at1.0-x",
        "advance-toolchain-at13.0-x", "advance-toolchain-at1-x",
    ]  # fmt: skip
    declared = [{"version": "12.0"}, {"version": "13.0", "retired": ""}]
    assert compilers.toolchain_undeclared(installed, declared) == ["advance-toolchain-at9.0-x"]
