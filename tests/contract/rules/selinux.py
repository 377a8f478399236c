"""SELinux enforcing, as CentOS 7.7 installs it: daemons may read what roles write for them, and listen on their ports.

The types and what domains may do are data in tests/contract/el7; nothing of this needs a node.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from hal_cluster.audit.resources import MANAGING, module_name
from tests.contract import declared
from tests.contract.declared import Resource
from tests.contract.el7.selinux import (
    DEFAULT,
    HERE,
    Contexts,
    NotCoveredError,
    contexts,
    local_rules,
    policy,
)
from tests.contract.project import Finding, load, role_tasks, roles, rule

TABLE = "tests/contract/el7/readers.yml"
PORT_LABEL = "it needs community.general.seport"
LABEL = "community.general.sefcontext and a restorecon"
# Kinds of resources that are a file, or in one: the path is what is before "#".
IN_FILES = frozenset({"file", "line", "repository"})
WRITERS = ("hal_cluster.audit.resources.files", "hal_cluster.audit.resources.lines")
OWN_WRITERS = frozenset({"hal_files", "hal_modulefiles", "hal_munge_key"})


@rule
def what_roles_write_can_be_read(root: Path) -> Iterator[Finding]:
    """Every path that a role writes has the type that the table says, and those who read it may."""
    labels = _contexts(root)
    for one, path, kind in _paths(root):
        entry = row(path)
        if entry is None:
            yield one.finding(
                f"{path}: nobody is known to read it; say in {TABLE} who does, and the type it has to have"
            )
            continue
        try:
            found = labels.type_of(path, kind)
        except NotCoveredError:
            yield one.finding(f"{path}: its rules are not in file_contexts.yml; take them from a node's file_contexts")
            continue
        if found != entry["type"]:
            none = " (no rule names it)" if found == DEFAULT else ""
            yield one.finding(f"{path}: a {kind} there gets {found}{none}, not {entry['type']}; it needs {LABEL}")
        for what in ("reads", "makes"):
            for reader in entry.get({"reads": "readers", "makes": "makes"}[what]) or []:
                yield from _allowed(one, path, found, what, str(reader))


@rule
def where_roles_write_shows_without_a_run(root: Path) -> Iterator[Finding]:
    """A path that only a run knows cannot be checked; such a task says why that is right."""
    tasks = {(task.path, task.line): task for role in roles(root) for task in role_tasks(role)}
    for path, line, reason in declared.of_project(root).undecided:
        task = tasks.get((path, line))
        module = module_name(task.module) if task else ""
        reader = MANAGING.get(module)
        if task and isinstance(task.arguments, dict) and task.arguments.get("state") == "absent":
            continue
        if task is None or module in OWN_WRITERS or getattr(reader, "__module__", "") in WRITERS:
            yield Finding(
                path, line, f"which paths this writes shows only in a run, so nothing checks their types: {reason}"
            )


@rule
def daemons_may_listen(root: Path) -> Iterator[Finding]:
    """Each unit that a role runs is in the table, in a domain that is known and that may bind the unit's ports."""
    for one in declared.of_project(root).resources:
        if one.kind != "service" or one.absent or one.declared.get("state") != "started":
            continue
        unit = one.key.removesuffix(".timer") + ".service" if one.key.endswith(".timer") else one.key
        entry = table()["units"].get(unit)
        if entry is None:
            yield one.finding(f"{unit}: say in {TABLE} which program it starts and what it listens on")
            continue
        domain = _domain(unit)
        if not policy().knows(domain):
            yield one.finding(f"{unit}: it runs as {domain}, of which domains.yml says nothing")
            continue
        for protocol, port in _ports(root, one, entry["listens"]):
            if not policy().may_bind(domain, protocol, port):
                label = policy().port_type(protocol, port)
                yield one.finding(f"{unit}: {domain} may not listen on {protocol}/{port} ({label}); {PORT_LABEL}")


@rule
def opened_ports_can_be_bound(root: Path) -> Iterator[Finding]:
    """Each port that a role's firewall.yml opens has its listener in the table, which may bind it."""
    listening = {port for entry in table()["units"].values() for port in entry["listens"]}
    for role in roles(root):
        path = role / "firewall.yml"
        for entry in load(path) or []:
            for word in [entry["ports"]] if isinstance(entry["ports"], str) else entry["ports"]:
                ports, _, protocol = str(word).rpartition("/")
                if f"{protocol}/{ports}" in listening:
                    continue
                domain = table()["others"].get(str(word))
                if domain is None:
                    yield Finding(path, entry.line, f"{word}: say in {TABLE} which unit listens there, or which domain")
                    continue
                for each in _range(ports) if domain not in policy().unconfined else ():
                    if not policy().may_bind(domain, protocol, each):
                        label = policy().port_type(protocol, each)
                        yield Finding(
                            path, entry.line, f"{domain} may not listen on {each}/{protocol} ({label}); {PORT_LABEL}"
                        )


def _allowed(one: Resource, path: str, type_: str, what: str, reader: str) -> Iterator[Finding]:
    domain = reader if reader.endswith("_t") else _domain(reader)
    verb = {"reads": "read", "makes": "make files in"}[what]
    if not policy().knows(domain):
        yield one.finding(f"{path}: {reader} runs as {domain}, of which domains.yml says nothing")
    elif not policy().may(domain, what, type_):
        yield one.finding(f"{path}: {reader} runs as {domain}, which may not {verb} {type_}; it needs {LABEL}")


def unused_rows(root: Path) -> list[str]:
    """Rows of the table that no role needs."""
    written = {row_name(path) for _, path, _ in _paths(root)}
    return [path for path in table()["paths"] if path not in written]


def _paths(root: Path) -> Iterator[tuple[Resource, str, str]]:
    """Each path that is written, with the kind of file."""
    found = declared.of_project(root)
    for one in found.resources:
        if one.kind in IN_FILES and not one.absent and not one.key.startswith("/sys/"):
            yield one, one.key.partition("#")[0], str(one.declared.get("type", "file"))
    for call in found.calls:
        if call.module == "ansible.posix.sysctl" and call.arguments.get("state", "present") == "present":
            path = str(call.arguments.get("sysctl_file", "/etc/sysctl.conf"))
            yield Resource(call.role, f"file:{path}", {}, call.path, call.line, call.host), path, "file"


def row(path: str) -> Mapping[str, Any] | None:
    """What the table says of a path, in the entry that fits best."""
    entry: Mapping[str, Any] | None = table()["paths"].get(row_name(path))
    return entry


def row_name(path: str) -> str:
    """The longest entry of the table that fits; "" when none does."""
    fitting = [
        key for key in table()["paths"] if path == key.rstrip("/") or (key.endswith("/") and path.startswith(key))
    ]
    return max(fitting, key=len, default="")


def _domain(unit: str) -> str:
    """The domain of a unit: that of its program's type, as systemd starts it."""
    type_ = contexts().type_of(str(table()["units"][unit]["program"]), "file")
    return policy().started.get(type_, f"an unknown domain, for its program is {type_},")


def _ports(root: Path, one: Resource, listens: list[str]) -> Iterator[tuple[str, int]]:
    """Pairs of protocol and port, ranges port by port."""
    rendered = declared.render(root, one.role, listens) if "{{" in str(listens) else [listens]
    for text in sorted({str(word) for words in rendered for word in words}):
        protocol, _, ports = text.partition("/")
        for port in _range(ports):
            yield protocol, port


def _range(ports: str) -> range:
    first, _, last = ports.partition("-")
    return range(int(first), int(last or first) + 1)


def _contexts(root: Path) -> Contexts:
    """Those of the policy, with what roles add."""
    calls = declared.of_project(root).calls
    added = [dict(one.arguments) for one in calls if one.module == "community.general.sefcontext"]
    return dataclasses.replace(contexts(), local=local_rules(added))


@functools.cache
def table() -> dict[str, Any]:
    """Who reads what, and who listens where."""
    data: dict[str, Any] = yaml.safe_load((HERE / "readers.yml").read_text())
    return data
