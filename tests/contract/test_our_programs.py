"""Every call of a program of ours, in tasks, promises, units and playbooks, is one that the program takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from tests.contract.project import PROJECT
from tests.contract.rules.centos7_tools import every_command
from tests.contract.shell import HELD
from tests.unit.command_lines import module, read

OURS = {
    "hal-dataset": "roles/datasets/files/hal_dataset.py",
    "hal-environment": "roles/environments/files/environment_main.py",
    "hal-file-system-probe": "roles/file_system_probe/files/file_system_probe.py",
    "hal-modules": "roles/lmod/files/hal_modules.py",
    "hal-node-health": "roles/node_health/files/node_health.py",
    "hal-pgi": "roles/compilers/files/hal_pgi.py",
    "hal-provision": "roles/provision_server/files/provision_cli.py",
    "hal-reimage": "roles/provision_server/files/reimage_cli.py",
    "hal_cluster.certificates": "hal_cluster.certificates.cli",
    "hal_cluster.provision": "hal_cluster.provision.cli",
}


CONTAINER = "hal-container"  # it has a table of commands, and no parser
NO_WORDS = {"hal-gpus"}  # a script that takes none


def called() -> Iterator[tuple[str, list[str]]]:
    """The name and the words of each call of a program or package of ours."""
    for _, _, words in every_command(PROJECT):
        if words[:1] == ["timeout"]:
            words = words[2:]
        if words[1:2] == ["-m"]:
            words = words[2:]
        name = PurePosixPath(words[0]).name if words else ""
        if name.startswith(("hal-", "hal_")):
            yield name, words[1:]


CALLS = sorted({(name, shlex.join(argv)) for name, argv in called()})


def test_each_program_that_is_called_is_asked() -> None:
    assert {name for name, _ in CALLS} == {*OURS, *NO_WORDS, CONTAINER}
    assert [argv for name, argv in CALLS if name in NO_WORDS] == [""] * len(NO_WORDS)


@pytest.mark.parametrize(("name", "argv"), [one for one in CALLS if one[0] in OURS])
def test_what_calls_a_program_is_taken_by_it(name: str, argv: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(OURS[name], shlex.split(argv), monkeypatch)


@pytest.mark.parametrize("argv", [argv for name, argv in CALLS if name == CONTAINER])
def test_so_are_the_words_of_hal_container(argv: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = module("roles/singularity/files/hal_container.py")
    monkeypatch.setattr(program, "CONFIG", "/nowhere/container.json")
    assert program.main(shlex.split(argv)) == 1, "2 would be a refusal; without its settings nothing is done"


def test_a_limit_of_time_has_its_seconds_and_its_program() -> None:
    """In tasks and promises: the words of scripts are read by their shell."""
    wrong = []
    for path, line, words in every_command(PROJECT):
        limited = words[0] == "timeout" and not (len(words) > 2 and words[1].isdigit())
        if path.suffix == ".yml" and (limited or (words[0].isdigit() and words[0] != HELD)):
            wrong.append(f"{path.relative_to(PROJECT)}:{line}: {shlex.join(words)}")
    assert wrong == []


def test_what_is_written_to_be_started_says_by_what() -> None:
    """A Python file without its first line is read by the shell of whoever types its name."""
    started, silent = 0, []
    for path in sorted(PROJECT.glob("roles/*/vars/main.yml")):
        for one in written(yaml.safe_load(path.read_text())):
            found = re.search(r"'(?:/files/)?([\w.-]+\.(?:py|sh|j2))'", one["content"])
            if one.get("mode") == "0755" and found:
                kind = "templates" if found[1].endswith(".j2") else "files"
                started += 1
                if not (path.parents[1] / kind / found[1]).read_text().startswith("#!/"):
                    silent.append(f"{path.parents[1].name}: {one['path']}")
    assert started > 10
    assert silent == []


def written(value: Any) -> Iterator[dict[str, Any]]:
    """Every file in a role's variables that has its content there."""
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from written(inner)
    if isinstance(value, dict) and {"path", "content"} <= set(value):
        yield value
