"""yum of CentOS 7 and its Python: repositories are described in its words, and modules run where its bindings are."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.contract.project import (
    PROJECT,
    Finding,
    Map,
    all_tasks,
    load_map,
    rule,
    text_lines,
    without_comment,
)

# Files of yum are guard 3's, with the same list.
TABLE = PROJECT / "tests" / "contract" / "el7" / "daemons" / "yum_repository.yml"
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
def options() -> frozenset[str]:
    """The options of a repository."""
    return frozenset(yaml.safe_load(TABLE.read_text())["scopes"]["*"]["words"])


@rule
def repository_tasks_fit_yum(root: Path) -> Iterator[Finding]:
    """ansible.builtin.yum_repository writes options that yum reads; it does without any other, silently."""
    for task in all_tasks(root):
        if task.short == "yum_repository" and isinstance(task.arguments, Map):
            for name in set(task.arguments) - OF_THE_MODULE - options():
                yield Finding(task.path, task.arguments.at(name), f"{name}: not in yum 3.4.3 (CentOS 7); do without it")


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
