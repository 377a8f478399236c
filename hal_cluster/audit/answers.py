"""The answer of one node, and the questions it was asked, become findings.

Every answer becomes findings. An answer that cannot be used is a finding, too.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hal_cluster.audit.findings import (
    CONTENT,
    MOST_ROLE,
    WORDS,
    Accepted,
    Finding,
    expectation,
    quoted,
    task_title,
    unreadable,
)
from hal_inventory.printable import one_line

# Names of the standing checks, and what their findings are called.
CHECKS = {"uid_0": "uid-0", "kernel": "kernel", "clock": "clock", "packages": "package-extra"}
# A node leaves out the rest, and says how much that was (constants of these names in hal_node/audit/look.py).
MOST_DIFF_LINES = 40
MOST_ITEMS = {
    "differences": 1000,
    "planned": 1000,
    "extra": 200,
    "packages": 200,
    "problems": 200,
    "checks": 200,
    "more": 200,
}


def of_answer(
    host: str,
    answer: Mapping[str, Any],
    expectations: Sequence[Mapping[str, Any]],
    packages: Sequence[Accepted] = (),
    *,
    partial: bool = False,
) -> list[Finding]:
    """Return what one node's answer says. `expectations` are hal_expect's results with `finding` and `reads`.

    `partial`: only some roles were asked for.
    """
    findings = list(_record(host, answer.get("record")))
    no_record = any(finding.kind == "no-record" for finding in findings)
    findings += [
        *(_difference(host, difference) for difference in _dicts(answer, "differences")),
        *(_extra(host, extra) for extra in _dicts(answer, "extra")),
        *_packages(host, answer.get("packages"), packages, no_record),
        *(finding for check in _dicts(answer, "checks") for finding in _check(host, check)),
        *(unreadable(host, str(problem)) for problem in answer.get("problems") or []),
        *_more(host, answer.get("more")),
    ]
    findings.extend(_expectation(host, result) for result in expectations if result["status"] in ("fail", "unknown"))
    looked_at = answer.get("counts")
    resources = looked_at.get("resources") if isinstance(looked_at, Mapping) else 0
    asked = [result for result in expectations if result["status"] != "skipped"]
    if not resources and not asked and not no_record:
        what = "none of these roles manages anything here" if partial else "neither resources nor expectations"
        findings.append(Finding(host, "nothing-checked", "node", "unknown", summary=f"nothing was checked: {what}"))
    return findings


def problem_of(answer: object) -> str:
    """Return why this is not an answer of the module; "" if it is one."""
    if not isinstance(answer, Mapping):
        return "the module gave no answer"
    for name, kind in (("record", Mapping), ("differences", list), ("answers", list), ("counts", Mapping)):
        if not isinstance(answer.get(name), kind):
            return f"the module's answer has no {name}"
    packages = answer.get("packages")
    lists = {**answer, "packages": packages.get("extra") if isinstance(packages, Mapping) else None}
    for name, most in MOST_ITEMS.items():
        number = len(lists.get(name) or ())
        if number > most:
            return f"the module's answer has {number} {name}: more than {most}, so it was not read"
    if any(
        not isinstance(difference, Mapping) or not difference.get("resource")
        for difference in (*answer["differences"], *(answer.get("planned") or ()))
    ):
        return "the module's answer has a difference that names no resource"
    return ""


def planned(host: str, answer: Mapping[str, Any], certain: Collection[str]) -> Iterator[Finding]:
    """Yield what a rollout would change of what its roles declare. `certain`: resources that any run manages."""
    for difference in _dicts(answer, "planned"):
        finding = _difference(host, difference)
        if finding.attribute in CONTENT:
            finding = replace(finding, summary=WORDS["changed"])
        if finding.resource not in certain and finding.status == "drift":
            finding = replace(finding, summary=f"{finding.summary}, if a run comes to it")
        yield replace(finding, cause="declaration")


def _record(host: str, record: object) -> Iterator[Finding]:
    if not isinstance(record, Mapping):
        yield Finding(host, "record", "record:node", "unknown", summary="the module did not say which record it used")
        return
    status, reason, used, problem = (str(record.get(name) or "") for name in ("status", "reason", "used", "problem"))
    if problem:
        yield Finding(
            host, "record", "record:node", "drift", "node", one_line(f"others could get at the record: {problem}")
        )
    if status in ("ok", ""):
        return
    if status == "none" and used != "copy":
        words = "this toolkit never rolled out this node; hal-audit adopt proposes a record"
        yield Finding(host, "no-record", "record:node", "unknown", summary=words)
        return
    words = {
        "none": "the node's record is gone",
        "corrupt": "the node's record is damaged",
        "foreign": "the node's record is that of another node",
        "newer": "the node's record has a newer format than this toolkit knows",
        "older": "the node's record is older than the controller's copy",
        "differs": "the node's record is not the one that was stored there",
    }.get(status, f"the node's record: {status}")
    reason = f": {reason}" if reason else ""
    compared = "; compared with the controller's copy" if used == "copy" else ""
    yield Finding(
        *(host, "record", "record:node", "unknown" if used == "none" or status == "newer" else "drift", "node"),
        summary=one_line(f"{words}{reason}{compared}"),
    )


def _difference(host: str, difference: Mapping[str, Any]) -> Finding:
    said = str(difference.get("kind") or "changed")
    kind = said if said in WORDS else "changed"
    units = tuple(str(unit) for unit in difference.get("units") or ())
    attribute = str(difference.get("attribute") or "")
    words = WORDS.get(said, said)
    if said == "changed" and attribute and attribute not in CONTENT:
        words = f"its {attribute.replace('_', ' ')} differs"
    if kind == "not-effective" and units:
        words = f"{one_line(units[0], MOST_ROLE)} runs with an older one"
    note = str(difference.get("note") or "")
    return Finding(
        host,
        kind,
        str(difference["resource"]),
        "unknown" if kind == "unreadable" else "drift",
        "declaration" if kind == "orphaned" else "node",
        one_line(f"{words}: {note}" if note else words),
        attribute,
        difference.get("should"),
        difference.get("is"),
        _diff([str(line) for line in difference.get("diff") or ()]),
        str(difference.get("role") or ""),
        task_title(str(difference.get("task") or "")),
        str(difference.get("source") or ""),
        str(difference.get("commit") or ""),
        str(difference.get("converged_at") or ""),
        units=units,
    )


def _diff(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of a diff, no more of them than a node sends."""
    more = len(lines) - MOST_DIFF_LINES
    return tuple(lines) if more <= 0 else (*lines[: MOST_DIFF_LINES - 1], f"... {more + 1} more lines")


def _extra(host: str, extra: Mapping[str, Any]) -> Finding:
    note = f": {extra['note']}" if extra.get("note") else ""
    return Finding(
        *(host, "extra", f"file:{extra.get('path')}", "drift", "node"),
        summary=one_line(f"neither a role nor a package has it ({extra.get('what') or 'watched files'}){note}"),
        is_=str(extra.get("type") or "file"),
    )


def _packages(host: str, packages: object, accepted: Sequence[Accepted], recorded_nothing: bool) -> Iterator[Finding]:
    if not isinstance(packages, Mapping):
        return
    for name in packages.get("extra") or []:
        bare = str(name).rsplit("-", 2)[0]
        if any(
            fnmatch.fnmatch(str(name), acceptance.pattern) or fnmatch.fnmatch(bare, acceptance.pattern)
            for acceptance in accepted
        ):
            continue
        yield Finding(
            *(host, "package-extra", f"package:{bare}", "drift", "node"),
            summary="installed since the last rollout, and not by one",
            is_=str(name),
        )
    if packages.get("unknown") and not recorded_nothing:
        words = one_line(f"it cannot be told which packages nobody declared: {packages['unknown']}")
        yield Finding(host, "package-extra", "packages:all", "unknown", summary=words)


def _check(host: str, check: Mapping[str, Any]) -> Iterator[Finding]:
    name, status = str(check.get("check")), str(check.get("status"))
    if name not in CHECKS:
        yield unreadable(host, f"it answered a check that nobody asked for: {quoted(name)}")
        return
    if status == "pass" or name == "packages":  # of which every package is a finding
        return
    yield Finding(
        *(host, CHECKS[name], f"check:{name}", "drift" if status == "fail" else "unknown", "node"),
        summary=one_line(str(check.get("reason") or "")),
        should=check.get("expected"),
        is_=check.get("observed"),
    )


def _more(host: str, more: object) -> Iterator[Finding]:
    for name, number in sorted(more.items()) if isinstance(more, Mapping) else ():
        if number:
            words = one_line(f"{number} more {name} than an answer may have; repair these, then audit again")
            yield Finding(host, "changed", "node", "drift", "node", words)


def _expectation(host: str, result: Mapping[str, Any]) -> Finding:
    failed = result["status"] == "fail"
    reason = str(result.get("reason") or "")
    return Finding(
        host,
        str(result.get("finding") or "expectation"),
        expectation(result),
        "drift" if failed else "unknown",
        "node" if failed else "",
        one_line(reason or str(result["why"])),
        why=one_line(str(result["why"])),
        should=result.get("expected"),
        is_=result.get("observed"),
        role=str(result["role"]),
        source=str(result["source"]),
        severity=str(result["severity"]),
    )


def _dicts(answer: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    listed = answer.get(name)
    return [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
