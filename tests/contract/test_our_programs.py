"""Every call of a program of ours, in tasks, promises, units and playbooks, is one that the program takes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.contract.project import PROJECT
from tests.contract.rules.centos7_tools import every_command
from tests.contract.shell import HELD
from tests.unit.command_lines import read

OURS = {
    "hal-dataset": "roles/datasets/files/hal_dataset.py",
    "hal-environment": "roles/environments/files/environment_main.py",
    "hal-file-system-probe": "roles/file_system_probe/files/file_system_probe.py",
    "hal-modules": "roles/lmod/files/hal_modules.py",
    "hal-node-health": "roles/node_health/files/node_health.py",
    "hal-pgi": "roles/compilers/files/hal_pgi.py",
    "hal-provision": "roles/provision_server/files/provision_cli.py",
    "hal-reimage": "roles/provision_server/files/reimage_cli.py",
    "hal_certificates": "hal_certificates.cli",
    "hal_provision": "hal_provision.cli",
}


def ours(words: list[str]) -> tuple[str, list[str]] | None:
    """The program of ours that a command runs, and what it is given."""
    if words[:1] == ["timeout"]:
        words = words[2:]
    if words[1:2] == ["-m"]:
        words = words[2:]
    name = PurePosixPath(words[0]).name if words else ""
    return (OURS[name], words[1:]) if name in OURS else None


def calls() -> Iterator[tuple[str, int, str, list[str]]]:
    for path, line, words in every_command(PROJECT):
        if found := ours(words):
            yield path.relative_to(PROJECT).as_posix(), line, *found


CALLS = sorted({(program, shlex.join(argv)) for _, _, program, argv in calls()})


def test_there_are_calls_of_each() -> None:
    assert {program for program, _ in CALLS} == set(OURS.values())


@pytest.mark.parametrize(("program", "argv"), CALLS, ids=lambda value: str(value).replace("/", "-"))
def test_what_calls_a_program_is_taken_by_it(program: str, argv: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(program, shlex.split(argv), monkeypatch)


def test_a_limit_of_time_has_its_seconds_and_its_program() -> None:
    """In tasks and promises: the words of scripts are read by their shell."""
    wrong = []
    for path, line, words in every_command(PROJECT):
        limited = words[0] == "timeout" and not (len(words) > 2 and words[1].isdigit())
        if path.suffix == ".yml" and (limited or (words[0].isdigit() and words[0] != HELD)):
            wrong.append(f"{path.relative_to(PROJECT)}:{line}: {shlex.join(words)}")
    assert wrong == []
