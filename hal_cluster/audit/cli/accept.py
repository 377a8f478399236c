"""``hal-audit accept``: say why what the last audit found is right although nobody declares it, and until when."""

from __future__ import annotations

import argparse
import datetime
import glob
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from hal_cluster.audit import accepted
from hal_cluster.audit.cli.sources import Inventory
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.store import Store, read_json
from hal_cluster.audit.unmanaged import KINDS, is_missing
from hal_inventory.ansible_inventory import variable_folders
from hal_inventory.output import Answer
from hal_inventory.output import show as print_answer
from hal_inventory.printable import one_line
from hal_inventory.ranges import fold

FILE = "group_vars/all/audit_accepted.yml"
TEMPLATE = ("{{", "{%", "{#")


def accept(options: argparse.Namespace) -> int:
    """Write the acceptances into the site's variables; return the exit status. All of them, or nothing."""
    check([options.reason, *options.paths], options.until)
    inventory = Inventory(options.sources)
    nodes = inventory.nodes(options.limit)
    if not nodes:
        raise AuditError(f'"{options.limit or "all"}" selects no node')
    document = read_json(_last([inventory.store(node) for node in nodes]))
    findings = [Finding.read(finding) for finding in document.get("findings") or []]
    entries = [entry for path in options.paths for entry in _entries(path, nodes, findings, document, options)]
    path, text = _file(inventory, nodes)
    _write(path, added(text, entries))
    words = [
        f"accepted until {entry['until']}: {entry['path']} on {entry['nodes']}"
        f"{', as missing' if entry.get('missing') else ''}"
        for entry in entries
    ]
    words.append(f"Written to {path}: commit it with the site.")
    print_answer(Answer({"accepted": entries, "file": str(path)}, ["\n".join(words)]), as_json=options.as_json)
    return 0


def _write(path: Path, text: str) -> None:
    """Replace a file at once or not at all; its mode stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    if path.exists():
        shutil.copymode(path, new)
    os.replace(new, path)


def check(words: Sequence[str], until: str, today: datetime.date | None = None) -> None:
    """Refuse what cannot be an acceptance. `words`: reason and paths, which Ansible will read as templates."""
    if not words[0].strip():
        raise AuditError("--reason: say why it is right")
    for word in words:
        if any(mark in word for mark in TEMPLATE):
            raise AuditError(f"{word!r} cannot be written: Ansible would run what has {{{{, {{% or {{# in it")
    try:
        day = accepted.day(until)
    except ValueError:
        raise AuditError(f"--until: {until!r} is not a day; write one such as 2027-01-31") from None
    if day < (today or datetime.date.today()):
        raise AuditError(f"--until: {until} is in the past")


def added(text: str, entries: Sequence[Mapping[str, str | bool]]) -> str:
    """Return a file of variables with these acceptances at the end of its list; all else in it stays as it is.

    AuditError for a file whose list cannot be extended safely.
    """
    lines = [line for entry in entries for line in _lines(entry)]
    try:
        before = yaml.compose(text, Loader=yaml.SafeLoader)
        value = next((node for key, node in before.value if key.value == accepted.PATHS), None) if before else None
        if value is None:
            made = text.rstrip("\n") + ("\n" if text.strip() else "---\n") + f"{accepted.PATHS}:\n" + _joined(lines, 2)
        elif not value.value:
            start, end = value.start_mark.index, value.end_mark.index
            made = text[:start].rstrip() + "\n" + _joined(lines, 2) + text[end:].lstrip(" ").removeprefix("\n")
        else:
            rows = text.splitlines(keepends=True)
            last = _last_line(value.value[-1])
            rows[last] = rows[last].rstrip("\n") + "\n"
            rows.insert(last + 1, _joined(lines, value.start_mark.column))
            made = "".join(rows)
        old, new = yaml.safe_load(text) or {}, yaml.safe_load(made)
        wanted = {**old, accepted.PATHS: [*(old.get(accepted.PATHS) or []), *map(dict, entries)]}
    except (yaml.YAMLError, AttributeError, TypeError, ValueError) as error:
        raise AuditError(f"{accepted.PATHS} cannot be added to: {one_line(str(error))}") from None
    if new != wanted:
        raise AuditError(f"{accepted.PATHS} cannot be added to: write its list as one item a line")
    return made


def _lines(entry: Mapping[str, str | bool]) -> list[str]:
    first, *others = (f"{name}: {_quoted(value)}" for name, value in entry.items())
    return [f"- {first}", *(f"  {line}" for line in others)]


def _quoted(value: str | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _joined(lines: Sequence[str], column: int) -> str:
    return "".join(f"{' ' * column}{line}\n" for line in lines)


def _last_line(node: yaml.Node) -> int:
    """Return the line that a node ends in, from 0; the mark of a block is where the next thing begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.line) - (node.end_mark.column == 0)


def _last(stores: Sequence[Store]) -> Path:
    """The result of the last audit, whichever of the folders has the newest."""
    files = {store.last for store in stores if store.last.is_file()}
    if not files:
        raise AuditError("there is no audit yet: run hal-audit run first, and read it")
    return max(files, key=lambda path: path.stat().st_mtime)


def _entries(
    path: str,
    nodes: Sequence[str],
    findings: Sequence[Finding],
    document: Mapping[str, Any],
    options: argparse.Namespace,
) -> list[dict[str, str | bool]]:
    """Return the acceptances of a path: one for nodes that have it, one for those on which it is missing."""
    there = [finding for finding in findings if finding.resource == f"file:{path}" and finding.host in nodes]
    role = next((finding.role for finding in there if finding.role and finding.kind != "package-file"), "")
    if role:
        raise AuditError(f"{path}: role {role} manages it: roll it out, or change what it declares")
    there = [finding for finding in there if finding.kind in KINDS or finding.kind == "package-file"]
    gone = {finding.host for finding in there if is_missing(finding)}
    if not there:
        at = document.get("at")
        raise AuditError(f"{path}: the audit of {at} has no finding of it here; run hal-audit run first")
    common = {"reason": options.reason, "until": options.until, "as_of": _begun(document)}
    made: list[dict[str, str | bool]] = []
    for hosts, more in (({finding.host for finding in there} - gone, {}), (gone, {"missing": True})):
        if hosts:
            made.append({"path": glob.escape(path), "nodes": fold(sorted(hosts)), **common, **more})
    return made


def _begun(document: Mapping[str, Any]) -> str:
    """When the audit began: it has seen all earlier changes. It may have ended hours after it saw a node."""
    end = datetime.datetime.strptime(str(document["at"]), accepted.MOMENT)
    seconds = math.ceil(float(document["summary"]["seconds"]))
    return (end - datetime.timedelta(seconds=seconds)).strftime(accepted.MOMENT)


def _file(inventory: Inventory, nodes: Sequence[str]) -> tuple[Path, str]:
    """Return the file that has audit_accepted for all nodes, or is to have it, and its text.

    AuditError if another file would override it.
    """
    own = [Path(source).parent if Path(source).is_file() else Path(source) for source in inventory.sources]
    folders = [Path(folder) for source in own for folder in variable_folders(str(source)) or (str(source),)]
    every = [path for folder in reversed(folders) for path in sorted((folder / "group_vars" / "all").glob("*.yml"))]
    texts = {path: path.read_text(encoding="utf-8") for path in every}
    chosen = next((path for path, text in texts.items() if f"\n{accepted.PATHS}:" in f"\n{text}"), folders[-1] / FILE)
    text = texts.get(chosen, "")
    try:
        here = (yaml.safe_load(text) or {}).get(accepted.PATHS)
    except yaml.YAMLError as error:
        raise AuditError(f"{chosen} cannot be added to: {one_line(str(error))}") from None
    for node in nodes:
        if inventory.variable(node, accepted.PATHS) != here:
            raise AuditError(f"{node} has an {accepted.PATHS} of its own, which hides that of {chosen}: write it there")
    return chosen, text
