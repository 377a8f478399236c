"""Findings of what no role manages, and of files of packages: what they say, what they follow, what is accepted."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader

from hal_cluster.audit import report, unmanaged
from hal_cluster.audit.examine import Examination
from hal_cluster.audit.findings import Accepted, Finding
from hal_cluster.audit.repairs import repair
from tests.unit.hal_cluster.audit.answers import OWNER, Answer, difference, findings

PAM = {
    **{"path": "/etc/pam.d/sshd", "kind": "changed", "attribute": "keyed", "should": None, "is": None},
    **{"when": 1795651200, "within": [], "note": "", "package": "openssh-server"},
}
WHEEL = {
    **{"path": "/etc/group", "kind": "changed", "attribute": "entries", "when": 1795651200, "package": "setup"},
    **{"should": ["wheel: gid 10, members alice"], "is": ["wheel: gid 10, members alice mallory"]},
}
SINFO = {
    **OWNER,
    "path": "/usr/bin/sinfo",
    "differs": ["content", "mode"],
    "package": "slurm",
    "role": "slurm",
    "when": 5,
}


def added(answer: Answer, *accepted: Accepted, over: tuple[Accepted, ...] = ()) -> list[Finding]:
    return unmanaged.added(findings(answer), "hal05", answer, accepted, over)


def test_a_change_that_no_role_manages_says_which_package_has_it_and_since_when(healthy: Answer) -> None:
    healthy["unmanaged"] = [PAM]
    (one,) = added(healthy)
    assert (one.host, one.kind, one.resource, one.status, one.cause) == (
        *("hal05", "changed", "file:/etc/pam.d/sshd", "drift", "node"),
    )
    assert one.summary == "the content differs: no role manages it; package openssh-server has it"
    assert (one.role, one.since, one.follows) == ("", "2026-11-26T00:00:00Z", "")
    assert repair(one, "hal05", "").startswith("put it back, let a role declare it, or say in audit_accepted")


@pytest.mark.parametrize(
    ("more", "summary"),
    [
        ({"kind": "extra", "package": ""}, "it is new since it was recorded: no role manages it"),
        ({"kind": "missing", "note": "with 2 files and folders in it", "package": ""},
         "it is missing, with 2 files and folders in it: no role manages it"),
        ({"kind": "mode", "package": ""}, "the mode differs: no role manages it"),
        ({"kind": "odd", "package": ""}, "the content differs: no role manages it"),
    ],
)  # fmt: skip
def test_what_is_said(healthy: Answer, more: dict[str, Any], summary: str) -> None:
    healthy["unmanaged"] = [{**PAM, **more}]
    assert added(healthy)[0].summary == summary


def test_what_follows_from_another_finding_says_so(healthy: Answer) -> None:
    healthy["differences"] = [difference(resource="mount:/scratch", kind="missing", attribute="state")]
    healthy["packages"]["extra"] = ["openssh-server-9.9-1.x86_64"]
    healthy["unmanaged"] = [PAM, {**PAM, "path": "/etc/fstab", "within": ["mount:/scratch"], "package": ""}]
    healthy["package_files"] = [{**SINFO, "package": "openssh-server"}]
    follows = {one.resource: one.follows for one in added(healthy)}
    assert follows["file:/etc/pam.d/sshd"] == "package:openssh-server"
    assert follows["file:/etc/fstab"] == "mount:/scratch"
    assert follows["file:/usr/bin/sinfo"] == "package:openssh-server"


def test_a_program_that_was_replaced_belongs_to_the_role_that_installs_its_package(healthy: Answer) -> None:
    healthy["package_files"] = [SINFO]
    (one,) = added(healthy)
    assert (one.kind, one.resource, one.role) == ("package-file", "file:/usr/bin/sinfo", "slurm")
    assert one.task == "Write the configuration of chronyd"
    assert one.summary == "it is not as package slurm brought it: content, mode"
    assert one.since == OWNER["converged_at"]
    assert repair(one, "hal05", "") == "find out who did it, then on the node: yum reinstall its package"
    healthy["package_files"] = [{"path": "/usr/bin/x", "differs": ["missing"], "when": 1795651200}]
    (one,) = added(healthy)
    assert (one.summary, one.role, one.since) == ("it is missing", "", "2026-11-26T00:00:00Z")


def test_what_is_accepted_is_no_finding_and_what_changed_after_that_is(healthy: Answer) -> None:
    healthy["unmanaged"] = [PAM, WHEEL]
    healthy["extra"] = [{"path": "/etc/cron.d/x", "type": "file", "what": "jobs", "when": 1795651200}]
    healthy["package_files"] = [{**SINFO, "when": 1795651200}]
    every = {"/etc/pam.d/sshd", "/etc/group", "/etc/cron.d/x", "/usr/bin/sinfo"}
    assert {one.resource[5:] for one in added(healthy)} == every
    assert [one.since for one in added(healthy) if one.kind == "extra"] == ["2026-11-26T00:00:00Z"]
    for path in every:
        for as_of, kept in (("", False), ("2026-11-26T00:00:00Z", False), ("2026-11-25T23:59:59Z", True)):
            left = {one.resource[5:] for one in added(healthy, Accepted(path, "r", "", as_of))}
            assert left == (every if kept else every - {path}), (path, as_of)


def test_what_went_is_accepted_where_it_was_missing_whenever_its_folder_changed_last(healthy: Answer) -> None:
    healthy["unmanaged"] = [{**PAM, "kind": "missing"}]
    healthy["package_files"] = [{**SINFO, "differs": ["missing"], "when": 0}]
    for path in ("/etc/pam.d/sshd", "/usr/bin/sinfo"):
        for as_of in ("2026-11-25T23:59:59Z", "2026-11-27T00:00:00Z"):
            left = [one.resource for one in added(healthy, Accepted(path, "r", "", as_of, missing=True))]
            assert f"file:{path}" not in left
            assert len(left) == 1
            assert len(added(healthy, Accepted(path, "r", "", as_of))) == 2, "what it held was accepted"
        assert len(added(healthy, Accepted(path, "r"))) == 1


def test_an_acceptance_that_is_over_is_remembered(healthy: Answer) -> None:
    healthy["unmanaged"] = [PAM, WHEEL]
    once = Accepted("/etc/pam.d/*", "until the new module", "2026-10-01", "2026-09-01T00:00:00Z")
    said = {one.resource: one.summary for one in added(healthy, over=(once,))}
    assert said["file:/etc/pam.d/sshd"].endswith("; it was accepted until 2026-10-01: until the new module")
    assert "accepted" not in said["file:/etc/group"]


def test_equal_changes_of_many_nodes_are_one_and_the_report_says_when(
    healthy: Answer, documented: Callable[..., dict[str, Any]]
) -> None:
    every = []
    for host, when in (("hal05", 1795651200), ("hal06", 1795654800)):
        answer = {**healthy, "unmanaged": [{**WHEEL, "when": when}]}
        every += unmanaged.added([], host, answer, ())
    text = " ".join(report.text(documented(every, hosts=["hal05", "hal06"])).split())
    assert "hal[05-06]" in text
    assert "recorded wheel: gid 10, members alice found wheel: gid 10, members alice mallory" in text
    assert "last changed 2026-11-26 01:00 UTC" in text
    assert "converged" not in text


def test_an_answer_that_is_odd_becomes_findings_all_the_same(healthy: Answer) -> None:
    healthy["unmanaged"] = [
        {"path": 5, "kind": [], "when": "x", "within": "y", "should": [1] * 60},
        {**PAM, "when": 10**12},
        "none",
    ]
    one, other = added(healthy)
    assert (one.resource, one.kind, one.since, len(one.should)) == ("file:5", "changed", "", 41)
    assert other.since == ""
    healthy["unmanaged"] = [PAM] * 201
    (one,) = added(healthy)
    assert (one.kind, one.status) == ("unreadable", "unknown")
    assert one.summary == "the module's answer has 201 unmanaged: more than 200, so it was not read"


@pytest.mark.parametrize(
    ("partial", "deep", "asked"),
    [
        (False, None, {"tree": True, "deep": False}),
        (False, True, {"tree": True, "deep": True}),
        (False, "yes", {"tree": True, "deep": True}),
        (False, "false", {"tree": True, "deep": False}),
        (True, True, {"tree": False, "deep": False}),
    ],
)
def test_what_a_node_is_asked(partial: bool, deep: Any, asked: dict[str, bool]) -> None:
    assert unmanaged.asked(partial, deep) == asked


# ---------------------------------------------------------------- as an audit has it
def audited(folder: Path, answer: Answer, **variables: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What a host is asked, and what is found."""
    one = Examination("hal05", DataLoader(), {"hal_audit_dir": str(folder), **variables}, {})
    asked = one.arguments()
    return asked, one.payload(answer)["findings"]


def test_an_audit_finds_it_and_leaves_out_what_the_site_accepts(tmp_path: Path, healthy: Answer) -> None:
    healthy["unmanaged"] = [PAM]
    asked, found = audited(tmp_path, healthy, audit_deep=True)
    assert (asked["tree"], asked["deep"]) == (True, True)
    assert [one["resource"] for one in found] == ["file:/etc/pam.d/sshd"]
    entry = {"path": "/etc/pam.d/sshd", "reason": "r"}
    tomorrow = str(datetime.date.today() + datetime.timedelta(days=1))
    assert audited(tmp_path, healthy, audit_accepted=[{**entry, "until": tomorrow}])[1] == []
    _, found = audited(tmp_path, healthy, audit_accepted=[{**entry, "until": "2026-01-01"}])
    assert "accepted until 2026-01-01: r" in found[0]["summary"]
    assert len(audited(tmp_path, healthy, audit_accepted=[{**entry, "nodes": "hal06"}])[1]) == 1


def test_the_node_leaves_out_only_what_is_accepted_whatever_becomes_of_it(tmp_path: Path, healthy: Answer) -> None:
    entries = [
        {"path": "/a", "reason": "r"},
        {"path": "/b", "reason": "r", "as_of": "2026-11-26T00:00:00Z"},
        {"path": "/c", "reason": "r", "until": "2026-01-01"},
    ]
    asked, _ = audited(tmp_path, healthy, audit_accepted=entries)
    assert asked["watched"][0]["accepted"] == asked["accepted"] == ["/a"]
