# -*- coding: utf-8 -*-
"""Compare declared accounts, users and QOS with what "sacctmgr -nP show" prints; say which commands make them equal.

Pure functions, no Slurm needed. Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
A key that an entry does not have is left as it is; a key with the value null (None) is cleared.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import collections
import json
import re

MYPY = False
if MYPY:
    from typing import Any, Iterable, Sequence  # noqa: F401  in comments

# (key, sacctmgr's option, its column, kind): what a QOS, account or user may declare.
LIMITS = [
    ("grp_tres", "GrpTRES", "GrpTRES", "tres"),
    ("grp_jobs", "GrpJobs", "GrpJobs", "number"),
]
QOS = [
    ("description", "Description", "Descr", "text"),
    ("priority", "Priority", "Priority", "priority"),
    ("flags", "Flags", "Flags", "flags"),
    ("max_wall", "MaxWall", "MaxWall", "time"),
    ("max_tres_per_user", "MaxTRESPU", "MaxTRESPU", "tres"),
    ("max_tres_per_job", "MaxTRES", "MaxTRES", "tres"),
    ("max_jobs_per_user", "MaxJobsPU", "MaxJobsPU", "number"),
    ("max_submit_jobs_per_user", "MaxSubmitPU", "MaxSubmitPU", "number"),
] + LIMITS + [
    ("preempt", "Preempt", "Preempt", "list"),
    ("usage_factor", "UsageFactor", "UsageFactor", "factor"),
]
ASSOCIATION = [
    ("parent", "Parent", "ParentName", "text"),
    ("fairshare", "Fairshare", "Share", "share"),
    ("qos", "QOS", "QOS", "list"),
    ("default_qos", "DefaultQOS", "DefaultQOS", "text"),
] + LIMITS + [
    ("max_jobs", "MaxJobs", "MaxJobs", "number"),
    ("max_wall", "MaxWall", "MaxWall", "time"),
]
ACCOUNT = [
    ("description", "Description", "Descr", "text"),
    ("organization", "Organization", "Org", "text"),
]
USER = [
    ("default_account", "DefaultAccount", "DefaultAccount", "text"),
    ("admin_level", "AdminLevel", "Admin", "text"),
]
# Who may add users to an account and change their limits. Not a column that is set: a list of its own.
COORDINATORS = "coordinators"
# What sacctmgr shows of a value that was never set; null means this. sacctmgr(1): Fairshare, Priority, UsageFactor.
CLEARED = {"share": "1", "priority": "0", "factor": "1"}
# Slurm makes these itself.
OWN_QOS, OWN_ACCOUNTS, OWN_USERS = ("normal",), ("root",), ("root",)


class AccountingError(ValueError):
    """A declaration or an output that cannot be used; the message says which entry and why."""


# What the database has.
#
# qos, accounts, users: {name: {column: text}}. associations: {(account, user or ""): {column: text}}.
State = collections.namedtuple("State", "qos accounts users associations")
Step = collections.namedtuple("Step", "argv text")


def columns(fields, key_columns):
    # type: (list[tuple[str, str, str, str]], list[str]) -> list[str]
    """Return the format= value of a sacctmgr query: the identifying columns, then one for each field."""
    return list(key_columns) + [column for _key, _option, column, _kind in fields]


def queries(cluster):
    # type: (str) -> list[list[str]]
    """Return the four queries (argv) that read() takes the outputs of, in that order."""
    show = ["sacctmgr", "--noheader", "--parsable2", "show"]
    return [
        show + ["qos", "format=" + ",".join(columns(QOS, ["Name"]))],
        show + ["account", "format=" + ",".join(columns(ACCOUNT, ["Account"]))],
        show + ["user", "format=" + ",".join(columns(USER, ["User"]))],
        show + ["assoc", "where", "cluster=" + cluster,
                "format=" + ",".join(columns(ASSOCIATION, ["Account", "User"]))],
    ]


def coordinators_query():
    # type: () -> list[str]
    """Return the query (argv) whose output coordinators() takes. sacctmgr(1), WithCoordinator."""
    return ["sacctmgr", "--noheader", "--parsable2", "show", "account", "withcoord", "format=Account,Coordinators"]


def coordinators(output, associations):
    # type: (str, Iterable[dict[str, str]]) -> dict[str, list[str]]
    """Return {account: [names]} of those who coordinate the account itself. Raises AccountingError.

    Whoever coordinates an account coordinates those below it, and Slurm shows that: who does both is there twice.

    associations  rows with Account, User and ParentName
    """
    shown = {row["Account"]: [name for name in row["Coordinators"].split(",") if name]
             for row in table(output, ["Account", "Coordinators"])}
    parents = {row["Account"]: row.get("ParentName", "") for row in associations if not row.get("User")}
    return {account: sorted(name for name in set(names)
                            if names.count(name) > (name in shown.get(parents.get(account, ""), [])))
            for account, names in shown.items()}


def coordinator_steps(accounts, current):
    # type: (list[dict[str, Any]], dict[str, list[str]]) -> list[Step]
    """Return the Steps that give accounts the coordinators that they declare; `current` is what coordinators() says.

    After all others: a coordinator is a user of the database.
    """
    steps_ = []
    for entry in _present(accounts):
        if COORDINATORS not in entry:
            continue
        wanted, has = set(entry[COORDINATORS] or []), set(current.get(entry["name"], []))
        for verb, words, names in (("add", [], wanted - has), ("delete", ["where"], has - wanted)):
            for name in sorted(names):
                steps_.append(Step(["sacctmgr", "--immediate", verb, "coordinator"] + words +
                                   ["accounts=" + entry["name"], "names=" + name],
                                   "account %s: coordinator %s %s" % (
                                       entry["name"], name, "added" if verb == "add" else "taken away")))
    return steps_


def table(text, names):
    # type: (str, Sequence[str]) -> list[dict[str, str]]
    """Return the rows of a parsable2 output as dicts. Raises AccountingError for a row of another length."""
    rows = []
    for line in text.splitlines():
        if not line.strip():
            continue
        cells = line.split("|")
        if len(cells) != len(names):
            raise AccountingError("%d columns asked for, sacctmgr gave %d: %s" % (len(names), len(cells), line))
        rows.append(dict(zip(names, cells)))  # noqa: B905 - Python 2.7 has no strict=
    return rows


def read(outputs):
    # type: (Sequence[str]) -> State
    """Return the State that the outputs of queries() describe. Raises AccountingError."""
    qos, accounts, users, associations = outputs
    return State(
        {row["Name"]: row for row in table(qos, columns(QOS, ["Name"]))},
        {row["Account"]: row for row in table(accounts, columns(ACCOUNT, ["Account"]))},
        {row["User"]: row for row in table(users, columns(USER, ["User"]))},
        {(row["Account"], row["User"]): row
             for row in table(associations, columns(ASSOCIATION, ["Account", "User"]))})


def seconds(text):
    # type: (object) -> int
    """Return a Slurm time as seconds: minutes, min:sec, h:m:s, days-hours[:m[:s]]. Raises AccountingError."""
    match = re.match(r"^(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?$", str(text))
    if match is None:
        raise AccountingError("'%s' is not a time such as 24:00:00 or 7-00:00:00" % (text,))
    days, first, second, third = match.groups()
    if days is not None:
        return ((int(days) * 24 + int(first)) * 60 + int(second or 0)) * 60 + int(third or 0)
    if third is not None:
        return (int(first) * 60 + int(second)) * 60 + int(third)
    return int(first) * 60 + int(second or 0)


def share(value):
    # type: (Any) -> float | str
    """Return a fairshare: a number, or "parent" (sacctmgr(1) Fairshare). Raises AccountingError."""
    if str(value).lower() == "parent":
        return "parent"
    try:
        return float(value)
    except ValueError:
        raise AccountingError("'%s' is neither a number nor parent" % (value,))


def normal(value, kind):
    # type: (Any, str) -> Any
    """Return a value in one form, so that what is declared and what sacctmgr prints compare; None for nothing."""
    if kind in CLEARED and (value is None or value == ""):
        value = CLEARED[kind]
    if kind == "share":
        return share(value)
    if value is None or value == "" or value == []:
        return None
    if kind in ("number", "priority", "factor"):
        return float(value)
    if kind == "time":
        return seconds(value)
    if kind == "tres":
        if isinstance(value, dict):
            value = ",".join("%s=%s" % pair for pair in value.items())
        return tuple(sorted(str(value).lower().split(",")))
    if kind in ("list", "flags"):
        items = value if isinstance(value, (list, tuple)) else str(value).split(",")
        return tuple(sorted(str(item).lower() for item in items))
    return str(value).lower()  # sacctmgr keeps descriptions and names in lower case


def spelled(value, kind, current):
    # type: (Any, str, str | None) -> str
    """Return a value as sacctmgr's options want it; clearing one needs -1, of a TRES each by its name."""
    if value is None or value == []:
        if kind in CLEARED:
            return CLEARED[kind]
        if kind == "tres":
            return ",".join("%s=-1" % item.split("=")[0] for item in (current or "").split(",") if item)
        return "-1" if kind in ("number", "time", "flags") else ""
    if kind == "tres" and isinstance(value, dict):
        return ",".join("%s=%s" % pair for pair in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value)
    return str(value)


def differing(entry, row, fields):
    # type: (dict[str, Any], dict[str, str], list[tuple[str, str, str, str]]) -> list[tuple[str, str]]
    """Return [(option=value, text)] for the fields that an entry declares and a row has otherwise."""
    out = []
    for key, option, column, kind in fields:
        if key not in entry:
            continue
        current = row.get(column, "")
        try:
            if normal(entry[key], kind) == normal(current, kind):
                continue
        except ValueError as error:
            raise AccountingError("%s: %s: %s" % (entry.get("name"), key, error.args[0]))
        if not row and entry[key] is None:
            continue
        wanted = spelled(entry[key], kind, current)
        out.append(("%s=%s" % (option, wanted), "%s %s -> %s" % (key, current or "(none)", wanted or "(none)")))
    return out


def _modify(what, name, changes, where=()):
    # type: (str, str, list[tuple[str, str]], Sequence[str]) -> Step
    argv = ["sacctmgr", "--immediate", "modify", what, "where", "name=" + name] + list(where) + ["set"]
    return Step(argv + [option for option, _text in changes],
                "%s %s: %s" % (what, name, ", ".join(text for _option, text in changes)))


def _add(what, name, words):
    # type: (str, str, list[str]) -> Step
    return Step(["sacctmgr", "--immediate", "add", what, name] + list(words), "%s %s added" % (what, name))


def _parents_first(accounts):
    # type: (list[dict[str, Any]]) -> list[dict[str, Any]]
    """Return the entries so that a parent comes before its children. Raises AccountingError for a circle."""
    waiting, out = list(accounts), []  # type: list[dict[str, Any]], list[dict[str, Any]]
    done = set()  # type: set[str]
    names = {entry["name"] for entry in accounts}
    while waiting:
        ready = [entry for entry in waiting if entry.get("parent") not in names - done]
        if not ready:
            raise AccountingError("accounts that are each other's parents: %s" % ", ".join(
                sorted(entry["name"] for entry in waiting)))
        out += ready
        done.update(entry["name"] for entry in ready)
        waiting = [entry for entry in waiting if entry not in ready]
    return out


def _check(kind, entries, fields, extra=()):
    # type: (str, list[dict[str, Any]], list[tuple[str, str, str, str]], Sequence[str]) -> None
    known = {key for key, _option, _column, _kind in fields} | {"name", "state"} | set(extra)
    seen = set()
    for entry in entries:
        if not entry.get("name"):
            raise AccountingError("%s without a name: %s" % (kind, json.dumps(entry, sort_keys=True)))
        if entry["name"] in seen:
            raise AccountingError("%s %s is declared twice" % (kind, entry["name"]))
        seen.add(entry["name"])
        unknown = sorted(set(entry) - known)
        if unknown:
            raise AccountingError("%s %s: unknown key %s; known are %s" % (
                kind, entry["name"], ", ".join(unknown), ", ".join(sorted(known))))
        if entry.get("state", "present") not in ("present", "absent"):
            raise AccountingError("%s %s: state is present or absent" % (kind, entry["name"]))


def _present(entries):
    # type: (list[dict[str, Any]]) -> list[dict[str, Any]]
    return [entry for entry in entries if entry.get("state", "present") == "present"]


def _absent(entries):
    # type: (list[dict[str, Any]]) -> list[str]
    return [entry["name"] for entry in entries if entry.get("state") == "absent"]


def _qos_steps(entries, state):
    # type: (list[dict[str, Any]], State) -> list[Step]
    steps = []
    for entry in _present(entries):
        row = state.qos.get(entry["name"])
        changes = differing(entry, row or {}, QOS)
        if row is None:
            steps.append(_add("qos", entry["name"], ["set"] + [option for option, _text in changes] if changes else []))
        elif changes:
            steps.append(_modify("qos", entry["name"], changes))
    return steps


def _account_steps(entries, state, cluster):
    # type: (list[dict[str, Any]], State, str) -> list[Step]
    steps = []
    for entry in _parents_first(_present(entries)):
        name = entry["name"]
        changes = differing(entry, state.accounts.get(name, {}), ACCOUNT)
        changes += differing(entry, state.associations.get((name, ""), {}), ASSOCIATION)
        if (name, "") not in state.associations:
            words = ["cluster=" + cluster] + [option for option, _text in changes]
            steps.append(_add("account", name, words))
        elif changes:
            steps.append(_modify("account", name, changes, ["cluster=" + cluster]))
    return steps


def _user_steps(entries, state, cluster):
    # type: (list[dict[str, Any]], State, str) -> list[Step]
    steps = []
    for entry in _present(entries):
        name, accounts = entry["name"], entry.get("accounts") or []
        if not accounts:
            raise AccountingError("user %s: accounts is empty; the first is the default one" % name)
        for account in accounts:
            row = state.associations.get((account, name))
            changes = differing(entry, row or {}, ASSOCIATION)
            if row is None:
                steps.append(_add("user", name, ["account=" + account, "cluster=" + cluster] +
                                  [option for option, _text in changes]))
            elif changes:
                steps.append(_modify("user", name, changes, ["account=" + account, "cluster=" + cluster]))
        wanted = dict(entry, default_account=accounts[0])
        row = state.users.get(name)
        if row is None:
            row = {"DefaultAccount": accounts[0], "Admin": "None"}
        changes = differing(wanted, row, USER)
        if changes:
            steps.append(_modify("user", name, changes))
        for account, user in sorted(state.associations):
            if user == name and account not in accounts:
                steps.append(Step(["sacctmgr", "--immediate", "delete", "user", "where", "name=" + name,
                                   "account=" + account, "cluster=" + cluster],
                                  "user %s: taken out of account %s" % (name, account)))
    return steps


def _delete_steps(what, names, known):
    # type: (str, list[str], Iterable[str]) -> list[Step]
    return [Step(["sacctmgr", "--immediate", "delete", what, "where", "name=" + name], "%s %s deleted" % (what, name))
            for name in names if name in known]


def steps(cluster, qos, accounts, users, state):
    # type: (str, list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]], State) -> list[Step]
    """Return the Steps, in order, that make the database what is declared. Empty when it is. Raises AccountingError."""
    _check("QOS", qos, QOS)
    _check("account", accounts, ACCOUNT + ASSOCIATION, [COORDINATORS])
    _check("user", users, USER + ASSOCIATION, ["accounts"])
    return (_qos_steps(qos, state) + _account_steps(accounts, state, cluster) + _user_steps(users, state, cluster)
            + _delete_steps("user", _absent(users), state.users)
            + _delete_steps("account", _absent(accounts), state.accounts)
            + _delete_steps("qos", _absent(qos), state.qos))


def unmanaged(qos, accounts, users, state):
    # type: (list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]], State) -> dict[str, list[str]]
    """Return {kind: [names]} of what the database has and nobody declared. It is shown, never deleted by itself."""
    def rest(names, entries, own):
        # type: (Iterable[str], list[dict[str, Any]], Iterable[str]) -> list[str]
        return sorted(set(names) - {entry["name"] for entry in entries} - set(own))
    return {"qos": rest(state.qos, qos, OWN_QOS), "accounts": rest(state.accounts, accounts, OWN_ACCOUNTS),
            "users": rest(state.users, users, OWN_USERS)}
