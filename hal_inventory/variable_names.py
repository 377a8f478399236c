"""Which variables somebody reads: the options of roles, and names in expressions of playbooks, roles and the lab.

Names are taken from the text of the project. Nothing is evaluated, so a name counts wherever an expression has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

SITE_VARIABLES = "site_variables"
"""What a site reads in its own playbooks: a list of names; grafana_* means all with that begin."""

OF_PROGRAMS = frozenset({
    "audit_accepted", "audit_checks_left_out", "audit_deep", "audit_in_step", "audit_packages_accepted",
    "audit_watched_extra",
})  # fmt: skip
"""Variables that no expression names: hal_cluster.audit reads them in Python."""

OF_THE_MODEL = frozenset({"hal_node"})
"""What the site model says of a host. It is read, and nobody else may set it."""

_EXPRESSIONS = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
# Values that are expressions without braces, and lists of them.
_CONDITIONS = re.compile(
    r"^ *(?:- )?(?:when|that|until|changed_when|failed_when|loop|var):(.*(?:\n +- .*)*)", re.MULTILINE
)
_FILTERS = re.compile(r"\| *\w+")
# Public variables have a prefix. Attributes, functions, keyword arguments and text in quotes are not variables.
_NAME = re.compile(r"""(?<![\w.'"])[a-z]\w*_\w+\b(?! *(?:\(|=[^=]))""")
_WORD = re.compile(r"[A-Za-z_]\w*")


def known_names(project: Path) -> frozenset[str]:
    """Return the names of all variables that somebody may set for the project's roles, playbooks and programs.

    A name with the prefix of a role counts only if it is an option of the role: all others are private to the role.
    """
    prefixes = tuple(f"{path.name}_" for path in (project / "roles").iterdir())
    read = {name for text in _texts(project) for name in _read_by_us(text) if not name.startswith(prefixes)}
    return frozenset({SITE_VARIABLES, *OF_PROGRAMS, *_options(project), *read} - OF_THE_MODEL)


def words_of_expressions(text: str) -> Iterator[str]:
    """Give every word in the templates of a site's file. Each of them that is a variable is read."""
    for expression in _EXPRESSIONS.findall(text):
        yield from _WORD.findall(expression)


def _read_by_us(text: str) -> Iterator[str]:
    for expression in (*_EXPRESSIONS.findall(text), *_CONDITIONS.findall(text)):
        yield from _NAME.findall(_FILTERS.sub("|", expression))


def _texts(project: Path) -> Iterator[str]:
    for pattern in ("playbooks/**/*.yml", "roles/**/*.yml", "roles/**/*.j2", "molecule/virtual_hal/*.yml"):
        for path in project.glob(pattern):
            yield path.read_text(encoding="utf-8")


def _options(project: Path) -> Iterable[str]:
    """Return the options of every role and entry point."""
    for path in project.glob("roles/*/meta/argument_specs.yml"):
        with path.open("rb") as stream:
            specs = yaml.load(stream, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))["argument_specs"]
        for entry in specs.values():
            yield from entry.get("options", {})
