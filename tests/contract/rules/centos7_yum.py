"""yum of CentOS 7 and its Python: repositories are described in its words, and modules run where its bindings are."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.contract.project import (
    PROJECT,
    Finding,
    Map,
    all_tasks,
    load_map,
    roles,
    rule,
    text_lines,
    text_of,
    without_comment,
)
from tests.contract.rules.centos7_systemd import HELD, directives

TABLE = PROJECT / "tests" / "contract" / "el7" / "yum_3.4.3.yml"
YUM = "yum 3.4.3 (CentOS 7)"
REPOSITORY_FILE = re.compile(r"(?:\.repo|^yum\.conf)(?:\.j2)?$")
# What ansible.builtin.yum_repository does with the file, rather than writes into it.
OF_THE_MODULE = frozenset(
    [
        *("attributes", "description", "file", "group", "mode", "owner", "reposdir", "state", "unsafe_writes"),
        *("selevel", "serole", "setype", "seuser"),
    ]
)
# A site of real nodes says both: yum's bindings belong to the Python 2.7 of the system, and to no other.
OF_A_SITE = {"hal_package_manager": "yum", "ansible_python_interpreter": "/usr/bin/python"}
INTERPRETER = re.compile(r"\bansible_python_interpreter\b[\"']?\s*[:=]\s*(.*)")


@functools.cache
def known() -> dict[str, frozenset[str]]:
    """Options of yum.conf's [main], and of a repository."""
    return {name: frozenset(text.split()) for name, text in yaml.safe_load(TABLE.read_text()).items()}


@rule
def repository_options_are_yums(root: Path) -> Iterator[Finding]:
    """What describes a repository, in a file, a task or a variable, is an option that yum reads."""
    for role in roles(root):
        for path in sorted([*role.glob("templates/**/*"), *role.glob("files/**/*")]):
            if path.is_file() and REPOSITORY_FILE.search(path.name):
                for line, section, name, _ in directives(text_of(path)):
                    yield from _option(path, line, name, "main" if section == "main" else "repository")
    for task in all_tasks(root):
        if task.short == "yum_repository" and isinstance(task.arguments, Map):
            for name in set(task.arguments) - OF_THE_MODULE:
                yield from _option(task.path, task.arguments.at(name), name, "repository")
    variables = [*(root / "inventory").glob("*/group_vars/**/*.yml"), *(root / "roles").glob("*/defaults/*.yml")]
    for path in sorted(variables):
        for entry in _options_in(load_map(path)):
            for name in entry:
                yield from _option(path, entry.at(name), name, "repository")


def _option(path: Path, line: int, name: str, section: str) -> Iterator[Finding]:
    if name not in known()[section] and HELD not in name:
        yield Finding(path, line, f"{name}: not in {YUM} [{section}]; it would do without it")


def _options_in(variables: Map) -> Iterator[Map]:
    """The `options` of each repository in a variable of the role repositories."""
    for name, value in variables.items():
        if str(name).startswith("repositories_") and isinstance(value, Map):
            for repository in value.values():
                options: Any = repository.get("options") if isinstance(repository, Map) else None
                if isinstance(options, Map):
                    yield options


@rule
def real_sites_have_yum_and_its_python(root: Path) -> Iterator[Finding]:
    """Each site with a model of its own names yum, and the only Python that has its bindings."""
    for cluster in sorted((root / "inventory").glob("*/cluster.yml")):
        folder = cluster.parent / "group_vars" / "all"
        files = {path: load_map(path) for path in sorted(folder.glob("*.yml"))}
        for name, value in OF_A_SITE.items():
            said = [(path, variables) for path, variables in files.items() if name in variables]
            if not said:
                yield Finding(cluster, 1, f"no {name} in group_vars/all; {name}: {value}")
            for path, variables in said:
                if variables[name] != value:
                    yield Finding(path, variables.at(name), f"{name}: {variables[name]}; CentOS 7 needs {value}")


@rule
def nothing_else_chooses_the_python(root: Path) -> Iterator[Finding]:
    """Which Python runs modules on a node is the site's word: no role, play or single host has another."""
    places = [*(root / "roles").rglob("*.yml"), *(root / "playbooks").rglob("*.yml")]
    for cluster in (root / "inventory").glob("*/cluster.yml"):
        places += [
            path for path in cluster.parent.rglob("*.yml") if path.parent != cluster.parent / "group_vars" / "all"
        ]
    for path in sorted(places):
        for number, line in text_lines(path):
            match = INTERPRETER.search(without_comment(line))
            if match and "ansible_playbook_python" not in match.group(1):
                yield Finding(path, number, f"{match.group(1)} for the nodes; leave it to the site's group_vars/all")
