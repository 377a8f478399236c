"""What an audit has to say: findings, made of the answer of one node and the questions it was asked.

Knows nothing of Ansible. Whatever a node answers becomes findings; an answer that is none becomes one, too.
"""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from hal_cluster.audit import roles
from hal_cluster.audit.resources.table import READ_BY
from hal_inventory.printable import one_line

CLEAN, ERROR, DRIFT, INCOMPLETE = 0, 1, 2, 3
ASIDE = "aside"
UNDECIDED = "undecided"
SECRET = "(secret)"
BACKSLASH = "\\"
# Names of the standing checks, and what their findings are called.
CHECKS = {"uid_0": "uid-0", "kernel": "kernel", "clock": "clock", "packages": "package-extra"}
UNIT_TYPES = (".service", ".socket", ".timer", ".mount", ".target", ".path", ".slice", ".swap", ".automount")
# What a unit may be called (VALID_CHARS of systemd's unit-name.c, and at most 255 of them), with a type that restarts.
UNIT = re.compile(rf"[A-Za-z0-9:_.\\@-]{{1,245}}(?:{'|'.join(map(re.escape, UNIT_TYPES))})")
MOST_ROLE = 80
# A node leaves out what is more (constants of these names in hal_node/audit/look.py) and says how much that was.
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
# What differs of a file when its content does.
CONTENT = {"changed", "sha256", "sha1", "keyed", "size"}
UNIT_FILE = re.compile(r"file:/etc/systemd/system/([^/]+?)(?:\.d/.*)?$")
WORDS = {
    "changed": "the content differs",
    "missing": "it is missing",
    "present": "it is there, and should not be",
    "owner": "the owner differs",
    "mode": "the mode differs",
    "type": "it is of another type",
    "target": "the link leads elsewhere",
    "acl": "the access list differs",
    "immutable": "it is marked immutable",
    "version": "the version differs",
    "state": "the state differs",
    "enabled": "whether it starts at boot differs",
    "masked": "whether it is masked differs",
    "drop_ins": "the unit has other drop-ins",
    "saved": "the setting for the next boot differs",
    "live": "the setting in force differs",
    "options": "the options in force differ",
    "not-effective": "what runs does not have it yet",
    "unreadable": "it cannot be read",
    "orphaned": "no task manages it any more",
}


@dataclass(frozen=True)
class Finding:
    """One thing that is not as declared (drift), or could not be seen (unknown). findings.schema.json explains it.

    A third status, aside, is for what is shown and counts for nothing: what roles declare that do not act on the node.
    """

    host: str
    kind: str
    resource: str
    status: str = "drift"
    cause: str = ""
    summary: str = ""
    attribute: str = ""
    should: Any = None
    is_: Any = None
    diff: tuple[str, ...] = ()
    role: str = ""
    task: str = ""
    source: str = ""
    commit: str = ""
    since: str = ""
    severity: str = "error"
    why: str = ""
    follows: str = ""
    repair: str = ""
    units: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        data = asdict(self)
        data["is"] = data.pop("is_")
        return {**data, "diff": list(self.diff), "units": list(self.units)}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Finding:
        """A finding from its document."""
        lists = {name: tuple(data.get(name) or ()) for name in ("diff", "units")}
        known = {**data, "is_": data.get("is"), **lists}
        known.pop("is", None)
        return cls(**known)


@dataclass(frozen=True)
class Accepted:
    """What is right though nobody declares it: a pattern, and why."""

    pattern: str
    reason: str
    # The last day on which that holds, and as of which moment; "" for ever and whatever becomes of it.
    until: str = ""
    as_of: str = ""
    # Whether it was missing then.
    missing: bool = False


def exit_status(findings: Iterable[Finding], nodes: int) -> int:
    """Return 0 clean, 2 drift, 3 not everything was seen. Nothing looked at is not clean.

    Promises that are warnings do not count, unless they say what they find (hardware).
    """
    counted = [
        one for one in findings if one.status != ASIDE and (one.severity != "warning" or one.kind != "expectation")
    ]
    if any(one.status == "drift" for one in counted):
        return DRIFT
    return INCOMPLETE if counted or not nodes else CLEAN


def order(one: Finding) -> tuple[Any, ...]:
    """Findings by role: what differs on the node, what is declared otherwise, then promises; each by resource."""
    kind = 2 if one.resource.startswith("expectation:") else int(one.cause == "declaration")
    return (one.role == "", one.role, kind, one.resource, one.kind, one.attribute, one.host)


def unreachable(host: str, reason: str) -> Finding:
    """A node that did not answer."""
    return Finding(host, "unreachable", "node", "unknown", summary=one_line(reason))


def unreadable(host: str, reason: str) -> Finding:
    """A node whose answer is none."""
    return Finding(host, "unreadable", "node", "unknown", summary=one_line(reason))


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
    found = list(_record(host, answer.get("record")))
    no_record = any(one.kind == "no-record" for one in found)
    found += [
        *(_difference(host, one) for one in _dicts(answer, "differences")),
        *(_extra(host, one) for one in _dicts(answer, "extra")),
        *_packages(host, answer.get("packages"), packages, no_record),
        *(one for check in _dicts(answer, "checks") for one in _check(host, check)),
        *(unreadable(host, str(problem)) for problem in answer.get("problems") or []),
        *_more(host, answer.get("more")),
    ]
    found.extend(_expectation(host, one) for one in expectations if one["status"] in ("fail", "unknown"))
    looked_at = answer.get("counts")
    resources = looked_at.get("resources") if isinstance(looked_at, Mapping) else 0
    asked = [one for one in expectations if one["status"] != "skipped"]
    if not resources and not asked and not no_record:
        what = "none of these roles manages anything here" if partial else "neither resources nor expectations"
        found.append(Finding(host, "nothing-checked", "node", "unknown", summary=f"nothing was checked: {what}"))
    return found


def problem_of(answer: object) -> str:
    """Return why this is no answer of the module; "" if it is one."""
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
            return f"the module's answer has {number} {name}, and {most} at the most: not read"
    if any(
        not isinstance(one, Mapping) or not one.get("resource")
        for one in (*answer["differences"], *(answer.get("planned") or ()))
    ):
        return "the module's answer has a difference of no resource"
    return ""


def expectation(result: Mapping[str, Any]) -> str:
    """Return how the finding of an expectation calls it."""
    return f"expectation:{result['role']}: {result['id']}"


def followed(found: Iterable[Finding], questions: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Return the findings, with `follows` in those that are there because of what differs on the same node.

    An expectation fails because of the resource it looks at; a mask and a drop-in of a unit are files, too. What itself
    only follows is not named: the first cause is.

    `questions` has what each expectation asked.
    """
    every = list(found)
    causes = {one.resource: one.follows for one in every if one.follows}
    for one in every:
        if not one.follows:
            causes.pop(one.resource, None)
    differing: dict[str, set[str]] = {}
    for one in every:
        if one.cause and one.status == "drift" and one.resource not in questions:
            differing.setdefault(one.resource, set()).update({one.kind, one.attribute})
    answers = []
    for one in every:
        resource, read = read_by(questions.get(one.resource, {}))
        unit = UNIT_FILE.match(one.resource) if one.kind == "extra" else None
        if unit:
            resource = f"service:{unit[1]}"
            follows = bool(differing.get(resource, set()) & {"masked", "drop_ins", "enabled", "changed"})
        else:
            follows = one.status == "drift" and _explains(differing.get(resource, set()), resource, read)
        answers.append(replace(one, follows=causes.get(resource, resource)) if follows else one)
    return answers


def _unit_of(resource: str) -> str:
    """Return the service that a file of systemd belongs to: a mask, a unit file over the packaged one, a drop-in."""
    path = PurePosixPath(resource.partition(":")[2])
    folder = path.parent.name
    return f"service:{folder[:-2] if folder.endswith('.d') else path.name}"


def read_by(question: Mapping[str, Any]) -> tuple[str, str]:
    """Return (the resource that an expectation looks at, what of it); ("", "") if no task could manage it."""
    for reader, (kind, name) in READ_BY.items():
        request = question.get(reader)
        if isinstance(request, Mapping) and request.get(name):
            text = str(request[name])
            suffix = ".service" if kind == "service" and not text.endswith(UNIT_TYPES) else ""
            return f"{kind}:{text}{suffix}", str(request.get("read") or "content")
    return "", ""


def _explains(differing: set[str], resource: str, read: str) -> bool:
    """Tell whether what differs of a resource is what an expectation looked at."""
    if not resource.startswith("file:") or differing & {"missing", "present", "type", "not-rolled-out", "orphaned"}:
        return bool(differing)
    return bool(differing & (CONTENT if read in ("content", "lines", "sha256", "size") else {read}))


def with_repair(one: Finding, limit: str, options: str) -> Finding:
    """Return the finding with the command that repairs it, or what there is to do."""
    return replace(one, repair=repair(one, limit, options))


def repair(one: Finding, limit: str, options: str) -> str:
    """Return a command if there is one: a rollout of the role, or a restart. `options` name the inventory."""
    limited = f" --limit {shlex.quote(limit)}" if limit != "all" else ""
    site = f"ansible-playbook {options}playbooks/site.yml{limited}"
    if one.kind == "not-effective" and one.units:
        return _restart(one.units[0], limit, options)
    if one.kind in ("no-record", "nothing-checked"):
        return site
    if one.kind in _ADVICE:
        return _ADVICE[one.kind]
    if one.role and not is_known(one.role):
        return f"no rollout does: this project has no role {quoted(one.role)}"
    if not one.role and one.resource.startswith("file:"):
        return _NOBODYS.get(one.kind, "")
    return f"{site} --tags {one.role}" if one.role else ""


def is_known(role: str) -> bool:
    """Tell whether this project has the role: a name that only a record knows is a text, and no word of a command."""
    return role in roles.names()


def quoted(name: str) -> str:
    """Return a name of others as messages have it."""
    return f'"{one_line(name, MOST_ROLE)}"'


def _restart(unit: str, limit: str, options: str) -> str:
    if not UNIT.fullmatch(unit):
        return f"restart what reads it: {quoted(unit)} is no name of a unit"
    # Ansible undoes backslashes in such a value, and systemd's names of devices have them.
    arguments = f"name={unit.replace(BACKSLASH, BACKSLASH * 2)} state=restarted"
    asked = f"ansible {options}--become -m ansible.builtin.systemd_service"
    return f"{asked} -a {shlex.quote(arguments)} {shlex.quote(limit)}"


_NOBODYS = dict.fromkeys(
    ("changed", "missing", "owner", "mode", "type", "target"),
    "put it back, let a role declare it, or say in audit_accepted why it is right: hal-audit accept",
)
_ADVICE = {
    "extra": "remove it, let a role declare it, or say in audit_accepted why it is right: hal-audit accept",
    "package-file": "find out who did it, then on the node: yum reinstall its package",
    "package-extra": "remove it, let a role declare it, or say in audit_packages_accepted why it is right",
    "uid-0": "take the uid away from every user but root",
    "kernel": "reboot the node when its jobs allow it",
    "clock": "see what chronyc tracking says there",
    "hardware": "have a look at the node; no rollout repairs this",
    "orphaned": "nobody manages it: remove it from the node, or declare it again",
    "out-of-step": "declare one version for both, and roll it out",
}


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
        words = "this node was never converged by this toolkit; hal-audit adopt proposes a record"
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


def not_managed(one: Finding) -> Finding:
    """Return a finding of a role that does not act on the node (managed_roles): no drift of ours."""
    return replace(one, status=ASIDE, cause="not-managed")


def planned(host: str, answer: Mapping[str, Any], certain: Collection[str]) -> Iterator[Finding]:
    """Yield what a rollout would change of what its roles declare. `certain`: resources that any run manages."""
    for one in _dicts(answer, "planned"):
        found = _difference(host, one)
        if found.attribute in CONTENT:
            found = replace(found, summary=WORDS["changed"])
        if found.resource not in certain and found.status == "drift":
            found = replace(found, summary=f"{found.summary}, if a run comes to it")
        yield replace(found, cause="declaration")


def _difference(host: str, one: Mapping[str, Any]) -> Finding:
    said = str(one.get("kind") or "changed")
    kind = said if said in WORDS else "changed"
    units = tuple(str(unit) for unit in one.get("units") or ())
    attribute = str(one.get("attribute") or "")
    words = WORDS.get(said, said)
    if said == "changed" and attribute and attribute not in CONTENT:
        words = f"its {attribute.replace('_', ' ')} differs"
    if kind == "not-effective" and units:
        words = f"{one_line(units[0], MOST_ROLE)} runs with an older one"
    note = str(one.get("note") or "")
    return Finding(
        host,
        kind,
        str(one["resource"]),
        "unknown" if kind == "unreadable" else "drift",
        "declaration" if kind == "orphaned" else "node",
        one_line(f"{words}: {note}" if note else words),
        attribute,
        one.get("should"),
        one.get("is"),
        _diff([str(line) for line in one.get("diff") or ()]),
        str(one.get("role") or ""),
        task_title(str(one.get("task") or "")),
        str(one.get("source") or ""),
        str(one.get("commit") or ""),
        str(one.get("converged_at") or ""),
        units=units,
    )


def _diff(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of a diff, no more of them than a node sends."""
    more = len(lines) - MOST_DIFF_LINES
    return tuple(lines) if more <= 0 else (*lines[: MOST_DIFF_LINES - 1], f"... {more + 1} more lines")


def task_title(identity: str) -> str:
    """Return the name of a task from its id, "<role>|<file>|<name>"."""
    return identity.split("|", 2)[2] if identity.count("|") >= 2 else identity


def _extra(host: str, one: Mapping[str, Any]) -> Finding:
    note = f": {one['note']}" if one.get("note") else ""
    return Finding(
        *(host, "extra", f"file:{one.get('path')}", "drift", "node"),
        summary=one_line(f"neither a role nor a package has it ({one.get('what') or 'watched files'}){note}"),
        is_=str(one.get("type") or "file"),
    )


def _packages(host: str, packages: object, accepted: Sequence[Accepted], recorded_nothing: bool) -> Iterator[Finding]:
    if not isinstance(packages, Mapping):
        return
    for name in packages.get("extra") or []:
        bare = str(name).rsplit("-", 2)[0]
        if any(fnmatch.fnmatch(str(name), one.pattern) or fnmatch.fnmatch(bare, one.pattern) for one in accepted):
            continue
        yield Finding(
            *(host, "package-extra", f"package:{bare}", "drift", "node"),
            summary="installed since the last converge, and by no rollout",
            is_=str(name),
        )
    if packages.get("unknown") and not recorded_nothing:
        words = one_line(f"which packages nobody declared cannot be told: {packages['unknown']}")
        yield Finding(host, "package-extra", "packages:all", "unknown", summary=words)


def _check(host: str, one: Mapping[str, Any]) -> Iterator[Finding]:
    name, status = str(one.get("check")), str(one.get("status"))
    if name not in CHECKS:
        yield unreadable(host, f"it answered a check that nobody asks for: {quoted(name)}")
        return
    if status == "pass" or name == "packages":  # of which every package is a finding
        return
    yield Finding(
        *(host, CHECKS[name], f"check:{name}", "drift" if status == "fail" else "unknown", "node"),
        summary=one_line(str(one.get("reason") or "")),
        should=one.get("expected"),
        is_=one.get("observed"),
    )


def _more(host: str, more: object) -> Iterator[Finding]:
    for name, number in sorted(more.items()) if isinstance(more, Mapping) else ():
        if number:
            words = one_line(f"{number} more {name} than an answer may have; repair these, and look again")
            yield Finding(host, "changed", "node", "drift", "node", words)


def _expectation(host: str, one: Mapping[str, Any]) -> Finding:
    failed = one["status"] == "fail"
    reason = str(one.get("reason") or "")
    return Finding(
        host,
        str(one.get("finding") or "expectation"),
        expectation(one),
        "drift" if failed else "unknown",
        "node" if failed else "",
        one_line(reason or str(one["why"])),
        why=one_line(str(one["why"])),
        should=one.get("expected"),
        is_=one.get("observed"),
        role=str(one["role"]),
        source=str(one["source"]),
        severity=str(one["severity"]),
    )


def _dicts(answer: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = answer.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def shown(value: Any) -> str:
    """Return a value as one line for people."""
    if isinstance(value, str):
        return one_line(value) if value.strip() else json.dumps(value)
    return one_line(json.dumps(value, ensure_ascii=False, sort_keys=True))
