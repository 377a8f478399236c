"""Users compile and run with what a module says, on both nodes; what is not as declared is found.

Nothing here reads expect.yml.

The tests are one story, in their order: rolled out, refused, broken, withdrawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from running.ansible_run import Run
from testinfra.host import Host
from testing.people import user
from testing.promises import Rollout

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
TREE = "/opt/apps/modulefiles"
PGI = "/home/apps/pgi/19.10"
BIN = f"{PGI}/current/linuxpower/19.10/bin"
LIBRARY = f"{PGI}/current/linuxpower/19.10/lib/libpgc.so"
ARCHIVE = "/srv/licensed/pgilinux-2019-1910-ppc64le.tar.gz"
SUM = "663c8fc80f65dc31a09d331350d94b413adca0e707a134c8a6b79e696923e753"
NODES = ("hal-login", "hal01")
HELLO = '#include <stdio.h>\nint main(void) { puts("hello from C"); return 0; }\n'
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


@pytest.fixture
def login(node: Node) -> Host:
    return node("hal-login")


def pgi(**changes: Any) -> list[dict[str, Any]]:
    """The scenario's declaration, changed."""
    one = {
        "version": "19.10",
        "source": ARCHIVE,
        "sha256": SUM,
        "licence": "27000@licences.hal.example",
        "default": True,
    }
    return [{**one, **changes}]


@pytest.mark.parametrize("name", NODES)
def test_a_user_compiles_and_runs_with_the_advance_toolchain(node: Node, name: str) -> None:
    host = node(name)
    said = user(host, "module load at; type gcc; gcc --version; echo LD=$LD_LIBRARY_PATH")
    assert "/opt/at12.0/bin/gcc" in said
    assert "gcc (GCC) 8.3.1 20190304 (Advance-Toolchain-at12.0)" in said
    assert "LD=\n" in said + "\n", "its libraries are before nobody else's"
    build = f"module load at/12.0; printf %s {quote(HELLO)} >{name}.c; gcc -O2 -o {name} {name}.c; ./{name}"
    assert "hello from C" in user(host, build)
    assert "(Red Hat 4.8.5-39)" in user(host, "gcc --version"), "without the module it is the system's"


@pytest.mark.parametrize("name", NODES)
def test_a_user_compiles_and_runs_with_pgi_of_the_shared_tree(node: Node, name: str) -> None:
    host = node(name)
    said = user(host, "module load pgi; pgcc -V; type pgcc; echo $PGROUPD_LICENSE_FILE CC=$CC")
    assert "pgcc 19.10-0 linuxpower target on Linuxpower" in said
    assert f"{BIN}/pgcc" in said
    assert "27000@licences.hal.example CC=\n" in said + "\n"
    build = f"module load pgi; printf %s {quote(HELLO)} >p.c; pgcc -fast -acc -o p-{name} p.c; ./p-{name}"
    assert "hello from C" in user(host, build)
    assert host.file(f"{BIN}/localrc.{name}").contains("# GCC version 4.8.5")


def test_one_compiler_is_loaded_at_a_time_and_lmod_says_so(login: Host) -> None:
    said = user(login, "module load at; module load pgi; module list; type gcc")
    assert "pgi/19.10" in said
    assert "at/12.0" in said, "Lmod names what it replaced"
    assert "/usr/bin/gcc" in said


def test_what_was_broken_is_whole_and_what_is_somebody_s_is_left(login: Host) -> None:
    assert login.file(f"{PGI}/current").is_symlink
    assert login.file("/home/apps/pgi/somebody").is_directory
    assert login.check_output(f"find {PGI}/current/ -perm /022 ! -type l -o ! -user root ! -type l") == ""
    assert not login.file("/home/apps/pgi/.archives").exists or not login.file("/home/apps/pgi/.archives").listdir()
    assert login.file(f"{TREE}/mine/1.0.lua").content_string == 'setenv("MINE", "1")\n'
    assert not login.file(f"{TREE}/at/11.0.lua").exists, "withdrawn"
    assert "/opt/at12.0/bin" in login.file(f"{TREE}/at/12.0.lua").content_string


def test_the_node_that_installs_reads_every_file_each_week(node: Node, login: Host) -> None:
    timer = login.service("hal-pgi-verify.timer")
    assert (timer.is_enabled, timer.is_running) == (True, True)
    assert not node("hal01").file("/etc/systemd/system/hal-pgi-verify.timer").exists
    assert "every file is as it was installed" in login.check_output("/usr/sbin/hal-pgi verify")


def test_nobody_replaced_the_system_s_compiler(node: Node) -> None:
    for name in NODES:
        assert node(name).check_output("rpm -qf --queryformat '%{NAME}' /usr/bin/gcc") == "gcc"
        assert "4.8.5" in node(name).check_output("/usr/bin/gcc --version")


def refused(rollout: Rollout, **variables: Any) -> Run:
    done = rollout.converge(**variables)
    assert done.status != 0, done.explain()
    return done


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"compilers_pgi_accept_eula": False}, "has to be accepted before its installer runs"),
        ({"compilers_pgi": pgi(sha256="")}, "sha256 is not there"),
        (
            {"compilers_pgi": pgi(source="controller:/srv/none.tar.gz")},
            "its archive is not at controller:/srv/none.tar.gz",
        ),
        ({"compilers_advance_toolchain": [{"version": 12.0}]}, "version is the number 12.0; put it in quotes"),
    ],
)
def test_what_can_be_known_is_refused_before_a_node_is_touched(
    rollout: Rollout, variables: dict[str, Any], words: str
) -> None:
    done = refused(rollout, **variables)
    assert words in done.words
    assert not done.changes


def test_a_wrong_archive_is_refused_on_the_node_and_what_is_there_stays(rollout: Rollout, login: Host) -> None:
    before = login.check_output(f"readlink {PGI}/current")
    wrong = refused(rollout, compilers_pgi=pgi(sha256="0" * 64))
    assert "declared is 0000" in wrong.words
    assert "it was not unpacked" in wrong.words
    away = refused(rollout, compilers_pgi=pgi(source="/srv/licensed/none.tar.gz", mpi=True))
    assert "its archive is not at /srv/licensed/none.tar.gz: get it from" in away.words
    assert login.check_output(f"readlink {PGI}/current") == before
    assert "pgcc 19.10-0" in user(login, "module load pgi; pgcc -V")
    assert rollout.converge().status == 0


FAULTS: dict[str, dict[str, Any]] = {
    "module edited": {
        "node": "hal01",
        "plant": f'echo \'setenv("CC", "gcc")\' >>{TREE}/at/12.0.lua',
        "audit": ("changed", f"file:{TREE}/at/12.0.lua", "compilers", "Write the modulefiles"),
    },
    "module deleted": {
        "node": "hal01",
        "plant": f"rm {TREE}/pgi/19.10.lua",
        "audit": ("missing", f"file:{TREE}/pgi/19.10.lua", "compilers", "Write the modulefiles"),
    },
    "toolchain removed by hand": {
        "node": "hal01",
        "plant": "rpm -e advance-toolchain-at12.0-perf",
        "audit": (
            "missing",
            "package:advance-toolchain-at12.0-perf",
            "compilers",
            "Install the system's compiler and the Advance Toolchain",
        ),
    },
    "compiler of PGI edited": {
        "node": "hal-login",
        "plant": f"echo '# by hand' >>{BIN}/pgcc",
        "audit": ("expectation", "expectation:compilers: PGI is installed as declared [pgi/19.10]", "compilers", ""),
    },
    # Of the same size: only a full reading finds it, as the timer has it read.
    "library of PGI changed": {
        "node": "hal-login",
        "plant": f"sed -i s/stand-in/STAND-IN/ {LIBRARY}; systemctl start hal-pgi-verify.service",
        "audit": ("expectation", "expectation:compilers: PGI is what was installed [pgi/19.10]", "compilers", ""),
    },
    "PGI does not know the node": {
        "node": "hal01",
        "plant": f"rm {BIN}/localrc.hal01",
        "audit": (
            "expectation",
            "expectation:compilers: PGI knows the compiler of this node [pgi/19.10]",
            "compilers",
            "",
        ),
    },
}


@pytest.fixture(scope="module")
def planted(node: Node) -> None:
    """All at once; none may hide another."""
    for fault in FAULTS.values():
        node(fault["node"]).check_output(fault["plant"])


@pytest.fixture(scope="module")
def found(planted: None, rollout: Rollout) -> dict[str, list[dict[str, Any]]]:
    return {name: rollout.audited("--limit", name, audit_roles=["compilers"]) for name in NODES}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_audit_names_a_fault_with_its_role_and_task(fault: str, found: dict[str, list[dict[str, Any]]]) -> None:
    kind, resource, role, task = FAULTS[fault]["audit"]
    here = found[FAULTS[fault]["node"]]
    mine = [one for one in here if (one["kind"], one["resource"], one["role"]) == (kind, resource, role)]
    assert mine, here
    assert task in ("", mine[0]["task"])


def test_a_rollout_mends_all_and_a_second_changes_nothing(rollout: Rollout, planted: None, login: Host) -> None:
    done = rollout.converge()
    assert done.status == 0, done.explain()
    again = rollout.converge()
    assert (again.status, dict(again.changes)) == (0, {}), again.explain()
    assert login.file(LIBRARY).content_string == "stand-in\n"


def test_what_is_withdrawn_goes_only_by_permission(rollout: Rollout, node: Node) -> None:
    hal01, login = node("hal01"), node("hal-login")
    assert hal01.package("advance-toolchain-at11.0-runtime").is_installed, "nobody declared it, nobody removed it"
    done = rollout.converge(compilers_pgi=[])
    assert done.status == 0, done.explain()
    assert login.file(f"{PGI}/current").exists
    assert not login.file(f"{TREE}/pgi/19.10.lua").exists
    done = rollout.converge(compilers_pgi=[], compilers_remove_undeclared_ok=True)
    assert done.status == 0, done.explain()
    assert not login.file(PGI).exists
    assert login.file("/home/apps/pgi/somebody").is_directory
    assert not hal01.package("advance-toolchain-at11.0-runtime").is_installed
    assert rollout.converge().status == 0, "and it comes back as declared"
