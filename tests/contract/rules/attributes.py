"""Whom a file that a role writes belongs to, and who may read it: said, and what files of its kind have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.contract import declared
from tests.contract.declared import Resource
from tests.contract.project import Finding, Task, role_tasks, roles, rule
from tests.contract.rules import places, selinux

PROGRAM = re.compile(r"/usr/(local/)?s?bin/[^/]+|/usr/libexec/([^/]+/)?[^/.]+")
NAMES = ("owner", "group", "mode")
# Modules that keep what is there, unless they make the file.
PARTIAL = frozenset({"blockinfile", "lineinfile", "ini_file"})
# Modules that make a file; our own have root and 0644 as defaults.
MAKING = PARTIAL | {
    "copy", "template", "file", "get_url", "unarchive", "assemble", "openssh_keypair", "openssh_cert",
    "openssl_privatekey", "x509_certificate",
}  # fmt: skip


@rule
def all_three_are_said(root: Path) -> Iterator[Finding]:
    """A task that makes a file says owner, group and mode: else they come from a umask, or from who ran Ansible."""
    for task in _writers(root):
        if task.arguments.get("state") in ("absent", "link", "hard"):
            continue
        if task.short in PARTIAL and task.arguments.get("create") is not True:
            continue
        # At the controller a file belongs to who runs Ansible there.
        names = ("mode",) if task.keyword("delegate_to") == "localhost" else NAMES
        missing = [name for name in names if name not in task.arguments]
        if missing:
            yield task.finding(f"{task.short} without {', '.join(missing)}; say them", task.module)


@rule
def they_are_those_of_its_kind(root: Path) -> Iterator[Finding]:
    """root's and 0644, 0755 for folders and programs; or as its package has it, or as the table of readers says."""
    silent = {(task.path, task.line) for role in roles(root) for task in role_tasks(role) if task.keyword("no_log")}
    for one in _files(root):
        right = _right(one)
        for name in NAMES:
            found = one.declared.get(name)
            if found is not None and found != right[name]:
                yield one.finding(
                    f"{one.key}: {name} {found}, not {right[name]}; if that is right, {selinux.TABLE} says so"
                )
        mode = int(one.declared.get("mode", "0"), 8)
        if mode & 0o002 and not mode & 0o1000:
            yield one.finding(f"{one.key}: everybody may change it")
        if (one.path, one.line) in silent and mode & 0o004:
            yield one.finding(f"{one.key}: the task is silent, so it is a secret, and everybody may read it")


def _files(root: Path) -> Iterator[Resource]:
    """Files and folders, links left out; and files that a module changes a part of."""
    found = declared.of_project(root)
    for one in found.resources:
        if one.kind == "file" and not one.absent and one.declared.get("type") != "link":
            yield one
    for call in found.calls:
        if call.module.rpartition(".")[2] in PARTIAL and call.arguments.get("state") != "absent":
            path = call.arguments.get("path") or call.arguments.get("dest")
            yield Resource(call.role, f"file:{path}", call.arguments, call.path, call.line, call.host)


def _right(one: Resource) -> Mapping[str, str]:
    folder = one.declared.get("type") == "directory"
    brought = [entry["files"].get(one.key + "/" * folder) for entry in places.table().values()]
    row = selinux.row(one.key) or {}
    kind = "0755" if folder or PROGRAM.fullmatch(one.key) else "0644"
    return {"owner": "root", "group": "root", "mode": kind, **next(filter(None, brought), {}), **row}


def _writers(root: Path) -> Iterator[Task]:
    """Tasks of roles whose module makes a file of a node."""
    for role in roles(root):
        for task in role_tasks(role):
            variables = task.keyword("vars") or {}
            if task.short in MAKING and isinstance(task.arguments, dict) and variables.get("hal_manages") != []:
                yield task
