"""What is declared is refused in words before any node is asked, or becomes modules that can be written."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from hal_cluster.rules import compilers
from hal_cluster.rules.lmod.declared import problems
from plugins.filter.hal_compilers import FilterModule
from tests.unit.roles.compilers.conftest import pgi

ROOT = "/home/apps/pgi"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 19.1}, "version is the number 19.1; put it in quotes"),
        ({"version": "latest"}, "version is latest; write two numbers"),
        ({"source": ""}, "source is not there"),
        ({"source": "pgi.tar.gz"}, "write the archive's path on the installer"),
        ({"source": "ftp://host/pgi.tar.gz"}, "write the archive's path on the installer"),
        ({"source": "https://me:secret@host/pgi.tar.gz"}, "has a name or password in it"),
        ({"sha256": ""}, "sha256 is not there"),
        ({"sha256": "A" * 64}, "write the 64 digits"),
        ({"sha265": "a" * 64}, "sha265 is not a field"),
        ({"nvidia": "yes"}, "nvidia is yes; write true or false"),
        ({"mpi_gpu": True}, "mpi_gpu without mpi"),
        ({"mpi_folder": "/opt/mpi"}, "write a folder below PGI's own"),
        ({"licence": "licence server"}, "write PORT@HOST"),
        ({"retired": "use pgi/19.10", "default": True}, "is retired and the default"),
    ],
)
def test_a_fault_of_pgi_is_one_line_with_what_would_be_right(changes: Any, words: str) -> None:
    found = compilers.pgi_problems([pgi(**changes)], "ppc64le", True)
    assert len(found) == 1
    assert words in found[0]
    assert found[0].startswith("compilers_pgi[0]")


@pytest.mark.parametrize(
    "source",
    ["/srv/pgi.tar.gz", "controller:/srv/pgi.tar.gz", "controller:/my site/pgi.tar", "https://mirror/pgi.tar.gz"],
)
def test_places_of_an_archive(source: str) -> None:
    assert compilers.pgi_problems([pgi(source=source)], "ppc64le", True) == []


def test_the_licence_has_to_be_accepted_by_somebody() -> None:
    (said,) = compilers.pgi_problems([pgi()], "ppc64le", False)
    assert "compilers_pgi_accept_eula" in said
    assert compilers.pgi_problems([], "ppc64le", False) == []
    assert compilers.pgi_problems([pgi(retired="use at/12.0")], "ppc64le", False) == [], "nothing is installed"


def test_several_versions_need_one_default() -> None:
    two = [pgi(), pgi(version="19.4")]
    (said,) = compilers.pgi_problems(two, "ppc64le", True)
    assert said == "compilers_pgi: no default; write `default: true` for one of 19.10, 19.4"
    twice = [pgi(default=True), pgi()]
    assert "19.10 is declared 2 times" in compilers.pgi_problems(twice, "ppc64le", True)[0]
    both = [pgi(default=True), pgi(version="19.4", default=True)]
    assert "the defaults are 19.10, 19.4" in compilers.pgi_problems(both, "ppc64le", True)[0]


@pytest.mark.parametrize("declared", ["12.0", [12.0], ["12.0"], {"version": "12.0"}])
def test_what_is_no_list_of_versions_is_said(declared: Any) -> None:
    (said,) = compilers.toolchain_problems(declared, "ppc64le")
    assert "not a list" in said or "not a mapping" in said


def test_the_toolchain_is_for_power() -> None:
    assert compilers.toolchain_problems([{"version": "12.0"}], "ppc64le") == []
    assert "for POWER, and the node is x86_64" in compilers.toolchain_problems([{"version": "12.0"}], "x86_64")[0]
    assert compilers.toolchain_problems([], "x86_64") == []


def test_packages_of_releases_that_nobody_declares() -> None:
    installed = [
        "gcc", "advance-toolchain-at12.0-devel", "advance-toolchain-at11.0-runtime", "advance-toolchain-at11.0-devel",
        "advance-toolchain-at13.0-runtime", "advance-toolchain",
    ]  # fmt: skip
    declared = [{"version": "12.0"}, {"version": "13.0", "retired": "use at/12.0"}]
    assert compilers.toolchain_undeclared(installed, declared) == [
        "advance-toolchain-at11.0-devel", "advance-toolchain-at11.0-runtime", "advance-toolchain-at13.0-runtime",
    ]  # fmt: skip


def test_the_place_among_what_is_installed_skips_what_is_retired() -> None:
    declared = [pgi(retired="use pgi/19.10", version="18.10"), pgi(), pgi(version="20.1")]
    table = compilers.pgi_table(declared, ROOT, "ppc64le")
    assert [(one["id"], one["at"]) for one in table if not one["retired"]] == [("pgi/19.10", 0), ("pgi/20.1", 1)]
    assert table[1]["path"] == f"{ROOT}/19.10/current/linuxpower/19.10"


def test_an_architecture_without_compilers_is_one_line_of_ansibles() -> None:
    assert compilers.pgi_table([], ROOT, "riscv64") == []
    with pytest.raises(AnsibleFilterError, match=r"^compilers_pgi: PGI has no compilers for riscv64$"):
        FilterModule().filters()["hal_pgi_table"]([pgi()], ROOT, "riscv64")


def modules(**changes: Any) -> dict[str, Any]:
    made = compilers.modules([{"version": "12.0", "default": True}], [pgi(**changes)], ROOT, "ppc64le")
    assert problems(made) == []
    return {one["name"]: one for one in made}


def test_both_are_of_one_family_so_that_one_is_loaded() -> None:
    assert {one["family"] for one in modules().values()} == {"compiler"}


def test_the_toolchain_s_libraries_are_not_put_before_everybody_s() -> None:
    made = modules()["at"]
    assert made["prepend"] == {
        "PATH": ["/opt/at12.0/bin"], "MANPATH": ["/opt/at12.0/share/man"], "INFOPATH": ["/opt/at12.0/share/info"],
    }  # fmt: skip
    assert "set" not in made


def test_pgi_s_module_says_no_compiler_for_everybody() -> None:
    made = modules(licence="27000@licences")["pgi"]
    assert made["set"] == {"PGI": f"{ROOT}/19.10/current", "PGROUPD_LICENSE_FILE": "27000@licences"}
    assert made["prepend"]["LD_LIBRARY_PATH"] == [f"{ROOT}/19.10/current/linuxpower/19.10/lib"]
    with_mpi = modules(mpi=True)["pgi"]
    assert with_mpi["prepend"]["PATH"] == [
        f"{ROOT}/19.10/current/linuxpower/19.10/mpi/openmpi-3.1.3/bin", f"{ROOT}/19.10/current/linuxpower/19.10/bin",
    ]  # fmt: skip
