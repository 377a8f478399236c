"""What role nfs_server compares on a server: what exportfs prints, and the words for what differs."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.interpreters import LOCAL, NODES, interpreter

HERE = Path(__file__).parent
PROGRAM = HERE.parents[3] / "roles/nfs_server/files/exported.py"
CENTOS = (HERE / "captures/exportfs-v-centos-7.6.txt").read_text()
DECLARED = [f"{path} *(rw,sync,root_squash,no_subtree_check,sec=sys)" for path in (
    "/share/apps", "/share/data", "/share/home", "/mnt/resource/scratch",
)]  # fmt: skip


def differences(tmp_path: Path, declared: list[str], said: str, status: int = 0) -> tuple[int, list[str]]:
    """Run the program with a stand-in for exportfs that prints a text."""
    (tmp_path / "said").write_text(said)
    program = tmp_path / "exportfs"
    program.write_text(f'#!/bin/sh\n[ "$*" = -v ] || exit 9\ncat {tmp_path}/said\nexit {status}\n')
    program.chmod(0o755)
    done = subprocess.run(
        [LOCAL, "-c", PROGRAM.read_text(), " " + json.dumps(declared)],
        capture_output=True, text=True, check=False, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines()


def test_what_centos_7_prints_is_understood(tmp_path: Path) -> None:
    assert differences(tmp_path, DECLARED, CENTOS) == (0, [])


def test_nothing_exported_is_not_taken_for_right(tmp_path: Path) -> None:
    assert differences(tmp_path, DECLARED[:1], "") == (0, ["/share/apps is not exported to *"])
    assert differences(tmp_path, [], "") == (0, [])


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (DECLARED[:3], []),
        (
            [*DECLARED[:3], "/mnt/resource/scratch 10.64.0.0/24(rw,sync,root_squash,no_subtree_check,sec=sys)"],
            ["/mnt/resource/scratch is not exported to 10.64.0.0/24"],
        ),
        ([*DECLARED[1:], "/share/apps *(ro)"], ["/share/apps to *: rw, declared ro"]),
        (
            [*DECLARED[1:], "/share/apps *(rw,no_root_squash,async,fsid=0)"],
            ["/share/apps to *: root_squash,sync, declared async,fsid=0,no_root_squash"],
        ),
        (
            [*DECLARED[1:], "/share/apps *(rw,mountpoint=/share)"],
            ["/share/apps to *: nothing, declared mountpoint=/share"],
        ),
        ([*DECLARED[1:], "/share/apps *(rw,sec=krb5p)"], ["/share/apps to *: sec=sys, declared sec=krb5p"]),
    ],
)
def test_every_difference_has_its_words(tmp_path: Path, declared: list[str], said: list[str]) -> None:
    assert differences(tmp_path, declared, CENTOS) == (0, said)


def test_an_option_that_opens_an_export_is_found(tmp_path: Path) -> None:
    opened = CENTOS.replace("secure,root_squash", "insecure,no_root_squash")
    status, said = differences(tmp_path, DECLARED[:1], opened.splitlines()[0] + "\n")
    assert (status, said) == (0, ["/share/apps to *: insecure,no_root_squash, declared root_squash,secure"])


def test_an_exportfs_that_fails_is_no_answer(tmp_path: Path) -> None:
    assert differences(tmp_path, DECLARED, CENTOS, status=1) == (3, [])


def program() -> Any:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("exported", PROGRAM)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_options_of_later_exports_count() -> None:
    assert "rw" in program().complete(["ro", "rw"])
    assert "ro" in program().complete([])


def test_what_others_export_now_or_at_the_next_boot_is_named() -> None:
    module = program()
    exported = module.parse([*CENTOS.splitlines(), "/srv/old 10.0.0.0/8(ro,sync)"])
    files = {
        "/etc/exports": f"# {{}}\n\n{DECLARED[0]}\n/srv/old\t10.0.0.0/8(ro) \\\n  host1(rw)\n",
        "/etc/exports.d/vendor.exports": "/srv/vendor *(ro)\n",
    }
    assert module.others(DECLARED[:3], exported, files) == [
        "/mnt/resource/scratch is exported to everybody",
        "/srv/old is exported to 10.0.0.0/8",
        "/etc/exports: /srv/old 10.0.0.0/8(ro) host1(rw)",
        "/etc/exports.d/vendor.exports: /srv/vendor *(ro)",
    ]
    assert module.others(DECLARED, module.parse(CENTOS.splitlines()), {"/etc/exports": "\n".join(DECLARED)}) == []


def test_neither_comments_nor_blanks_make_a_line_another_export() -> None:
    module = program()
    text = f"  # old: /srv/x *(rw)\n{DECLARED[0].replace(' ', chr(9))} # ours\n/srv/a#b\t*(ro) # why\n"
    assert module.others(DECLARED[:1], {}, {"/etc/exports": text}) == ["/etc/exports: /srv/a#b *(ro)"]


@pytest.mark.parametrize("version", NODES)
def test_letters_of_no_locale_are_told(tmp_path: Path, version: str) -> None:
    exports = tmp_path / "exports"
    exports.write_bytes("/srv/für *(ro)\n/srv/".encode() + b"\xff *(ro)\n")
    (tmp_path / "exportfs").write_text("#!/bin/sh\necho '/srv/größe\t10.0.0.0/8(ro)'\n")
    (tmp_path / "exportfs").chmod(0o755)
    done = subprocess.run(
        [interpreter(version), "-c", PROGRAM.read_text().replace("/etc/exports", str(exports)), " []", "others"],
        capture_output=True, check=False, env={"LC_ALL": "C", "PATH": f"{tmp_path}:/usr/bin:/bin"},
    )  # fmt: skip
    assert done.stderr == b""
    assert done.stdout.decode().splitlines() == [
        "/srv/größe is exported to 10.0.0.0/8",
        f"{exports}: /srv/für *(ro)",
        f"{exports}: /srv/\ufffd *(ro)",
    ]


def test_exports_that_cannot_be_read_are_not_taken_for_none(tmp_path: Path) -> None:
    """A folder in the place of the file: root reads everything else."""
    tasks = yaml.safe_load((PROGRAM.parents[1] / "tasks/configure.yml").read_text())
    task = next(one for one in tasks if one["name"] == "Read the exports")
    assert "failed_when" not in task

    def status(path: Path) -> int:
        argv = [word.replace("/etc/exports", str(path)) for word in task["hal_command"]["argv"]]
        return subprocess.run(argv, capture_output=True, check=False).returncode

    assert status(tmp_path / "none") == 0
    (tmp_path / "exports").touch()
    assert status(tmp_path / "exports") == 0
    assert status(tmp_path) != 0
