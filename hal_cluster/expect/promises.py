"""All expectations of one expect.yml for one host: what hal_expect and the audit share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible import constants
from ansible.errors import AnsibleError

from hal_cluster.expect.errors import ExpectationsError
from hal_cluster.expect.files import check_file
from hal_cluster.expect.prepare import Preparation, Prepared
from hal_inventory.printable import one_line


def read(path: str, loader: Any, role: str = "") -> list[Any]:
    """Return the entries of a file. A file without entries is an error, too."""
    if not os.path.isfile(path):
        raise ExpectationsError("there is no such file" + (f": role {role} promises nothing" if role else ""))
    try:
        entries = loader.load_from_file(path)
    except AnsibleError as error:
        faults = [f"line {fault.line} {fault.message}" for fault in check_file(path)]
        raise ExpectationsError(faults[0] if faults else " ".join(str(error).split())) from error
    if not isinstance(entries, list) or not entries:
        raise ExpectationsError("nothing was checked: the file has to be a list of expectations that is not empty")
    return entries


def prepare(entries: Sequence[Any], path: str, preparation: Preparation, role: str) -> Iterator[Prepared]:
    """Yield the entries of a file as questions; an id that is used twice makes its entry unknown."""
    names: set[str] = set()
    for entry in entries:
        position = getattr(entry, "ansible_pos", None)
        source = f"{place(path)}:{position[1] if position else 1}"
        name = str(entry.get("id") if isinstance(entry, dict) else None)
        if name in names:
            yield fault(role, source, "an id names one entry; this one is used twice", name)
        else:
            yield from preparation.prepare(entry, source)
        names.add(name)


def fault(role: str, source: str, reason: str, name: str = "expectations") -> Prepared:
    """A file that cannot be loaded counts as one expectation whose truth is unknown."""
    return Prepared(
        id=name,
        role=role,
        source=source,
        why="what is not checked may be wrong",
        severity="error",
        secret=False,
        reason=reason,
    )


def place(path: str | None) -> str:
    """Return a path as an administrator would type it: relative to the project, if it is in there."""
    if path is None:
        return "roles"
    for base in (os.path.dirname(constants.CONFIG_FILE or ""), os.getcwd()):
        if base and path.startswith(base + os.sep):
            return os.path.relpath(path, base)
    return path


def results(prepared: Sequence[Prepared], answers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the results of all, given the node's answers to those that are questions, in order."""
    remaining = iter([_usable(answer) for answer in answers])
    return [promise.result(next(remaining) if promise.question is not None else None) for promise in prepared]


def _usable(said: object) -> Mapping[str, Any]:
    """Return what a node answered to one question. What is not an answer is unknown, never fine."""
    if isinstance(said, Mapping) and said.get("status") in ("pass", "fail", "unknown"):
        return {"status": said["status"], "observed": said.get("observed"), "reason": str(said.get("reason") or "")}
    return {"status": "unknown", "observed": None, "reason": "the node's answer cannot be used"}


def no_answer(reply: Mapping[str, Any]) -> str:
    """Return why a call on a node gave nothing, in one line."""
    words = reply.get("msg") or "the module gave no results"
    detail = " ".join(str(reply.get("module_stderr") or "").split())[-300:]
    return one_line(f"the call on the node failed: {words}{': ' + detail if detail else ''}")
