"""Answers of nodes become findings, and nothing that was not seen becomes clean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hal_cluster.audit import answers, causes, repairs
from hal_cluster.audit import findings as subject
from hal_cluster.audit.document import Audit, limit
from hal_cluster.audit.findings import Accepted, Finding
from tests.unit.hal_cluster.audit.answers import Answer, difference, expectation, findings

KINDS = [
    *("changed", "missing", "present", "owner", "mode", "type", "target", "acl", "immutable", "version", "state"),
    *("enabled", "masked", "drop_ins", "saved", "live", "options", "not-effective"),
]


def test_a_healthy_node_has_no_finding(healthy: Answer) -> None:
    assert findings(healthy) == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_difference_names_its_owner(healthy: Answer, kind: str) -> None:
    healthy["differences"] = [difference(kind=kind)]
    (one,) = findings(healthy)
    assert (one.kind, one.status, one.cause, one.host) == (kind, "drift", "node", "hal05")
    assert (one.role, one.task, one.source) == (
        "time",
        "Write the configuration of chronyd",
        "roles/time/tasks/configure.yml:2",
    )
    assert (one.commit, one.since) == ("abc1234", "2026-11-20T18:02:00Z")
    assert one.summary


def test_what_cannot_be_read_is_unknown(healthy: Answer) -> None:
    healthy["differences"] = [difference(kind="unreadable", note="permission denied")]
    (one,) = findings(healthy)
    assert (one.status, one.summary) == ("unknown", "it cannot be read: permission denied")


def test_an_extra_file_belongs_to_nobody(healthy: Answer) -> None:
    healthy["extra"] = [{"path": "/etc/yum.repos.d/mine.repo", "what": "package repositories", "type": "file"}]
    (one,) = findings(healthy)
    assert (one.kind, one.resource, one.role) == ("extra", "file:/etc/yum.repos.d/mine.repo", "")
    assert "package repositories" in one.summary


def test_packages_that_nobody_declared(healthy: Answer) -> None:
    healthy["packages"] = {"extra": ["nmap-ncat-6.40-19.el7.x86_64", "strace-4.24-4.el7.x86_64"], "unknown": ""}
    assert [one.resource for one in findings(healthy)] == ["package:nmap-ncat", "package:strace"]


@pytest.mark.parametrize("pattern", ["nmap*", "nmap-ncat", "nmap-ncat-6.40-19.el7.x86_64", "*-6.40-*"])
def test_a_package_is_accepted_by_its_name_alone_or_with_version_and_architecture(
    healthy: Answer, pattern: str
) -> None:
    healthy["packages"] = {"extra": ["nmap-ncat-6.40-19.el7.x86_64", "strace-4.24-4.el7.x86_64"], "unknown": ""}
    (one,) = findings(healthy, packages=[Accepted(pattern, "asked for by users")])
    assert (one.resource, one.is_) == ("package:strace", "strace-4.24-4.el7.x86_64")


@pytest.mark.parametrize("pattern", ["ncat", "nmap", "nmap-ncat-6.40", "x86_64"])
def test_a_package_is_not_accepted_by_a_part_of_its_name(healthy: Answer, pattern: str) -> None:
    healthy["packages"] = {"extra": ["nmap-ncat-6.40-19.el7.x86_64"], "unknown": ""}
    assert [one.resource for one in findings(healthy, packages=[Accepted(pattern, "r")])] == ["package:nmap-ncat"]


def test_packages_that_cannot_be_told_are_unknown(healthy: Answer) -> None:
    healthy["packages"] = {"extra": [], "unknown": "there is no rpm"}
    (one,) = findings(healthy)
    assert (one.kind, one.status) == ("package-extra", "unknown")


@pytest.mark.parametrize(("status", "expected"), [("fail", "drift"), ("unknown", "unknown")])
def test_standing_checks(healthy: Answer, status: str, expected: str) -> None:
    check = {"check": "uid_0", "status": status, "observed": ["root", "toor"], "expected": ["root"], "reason": "r"}
    healthy["checks"] = [check]
    (one,) = findings(healthy)
    assert (one.kind, one.status, one.is_, one.should) == ("uid-0", expected, ["root", "toor"], ["root"])


@pytest.mark.parametrize(("status", "expected"), [("fail", "drift"), ("unknown", "unknown")])
def test_expectations_that_do_not_hold(healthy: Answer, status: str, expected: str) -> None:
    (one,) = findings(healthy, expectation(status=status, observed=False, reason="the unit is masked"))
    assert (one.kind, one.status, one.resource) == ("expectation", expected, "expectation:time: chronyd runs")
    assert (one.summary, one.why) == ("the unit is masked", "clocks drift apart")


@pytest.mark.parametrize("kind", ["not-effective", "hardware"])
def test_an_expectation_may_say_what_it_finds(healthy: Answer, kind: str) -> None:
    (one,) = findings(healthy, expectation(status="fail", finding=kind))
    assert one.kind == kind


@pytest.mark.parametrize("status", ["pass", "skipped"])
def test_expectations_that_hold_say_nothing(healthy: Answer, status: str) -> None:
    assert findings(healthy, expectation(status=status)) == []


def test_a_node_without_record_is_not_clean_and_its_expectations_count(healthy: Answer) -> None:
    healthy["record"] = {"status": "none", "used": "none", "reason": ""}
    healthy["counts"] = {"resources": 0, "questions": 1, "watched_files": 0}
    healthy["packages"] = {"extra": [], "unknown": "there is no record to compare with"}
    first, second = findings(healthy, expectation(status="fail"))
    assert (first.kind, first.status) == ("no-record", "unknown")
    assert "never rolled out this node" in first.summary
    assert second.kind == "expectation"


@pytest.mark.parametrize(
    ("status", "used", "expected"),
    [
        ("none", "copy", "drift"),
        ("corrupt", "copy", "drift"),
        ("corrupt", "none", "unknown"),
        ("foreign", "copy", "drift"),
        ("newer", "copy", "unknown"),
        ("older", "copy", "drift"),
        ("differs", "own", "drift"),
        ("of tomorrow", "own", "drift"),
    ],
)
def test_a_record_that_is_not_right_is_a_finding(healthy: Answer, status: str, used: str, expected: str) -> None:
    healthy["record"] = {"status": status, "used": used, "reason": "serial 3"}
    (one,) = findings(healthy)
    assert (one.kind, one.status) == ("record", expected)


def test_problems_of_the_node_are_findings(healthy: Answer) -> None:
    healthy["problems"] = ["rpm hangs"]
    (one,) = findings(healthy)
    assert (one.kind, one.status, one.summary) == ("unreadable", "unknown", "rpm hangs")


def test_lists_that_were_cut_are_said(healthy: Answer) -> None:
    healthy["more"] = {"differences": 300, "extra": 0}
    (one,) = findings(healthy)
    assert one.summary.startswith("300 more differences")


def test_an_empty_audit_does_not_pass(healthy: Answer) -> None:
    healthy["counts"] = {"resources": 0, "questions": 0, "watched_files": 30}
    (one,) = findings(healthy, expectation(status="skipped"))
    assert (one.kind, one.status) == ("nothing-checked", "unknown")


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "text",
        {},
        {"msg": "boom", "failed": True},
        {"record": {}, "differences": {}, "answers": [], "counts": {}},
        {"record": {}, "differences": ["x"], "answers": [], "counts": {}},
        {"record": {}, "differences": [{}], "answers": [], "counts": {}},
    ],
)
def test_garbage_is_no_answer(answer: object) -> None:
    assert answers.problem_of(answer)


def test_an_answer_is_one(healthy: Answer) -> None:
    assert answers.problem_of(healthy) == ""


def test_what_a_node_says_cannot_drive_a_terminal(healthy: Answer) -> None:
    healthy["problems"] = ["\x1b[2Jgone\nnext"]
    (one,) = findings(healthy)
    assert one.summary == "\\x1b[2Jgone next"


@pytest.mark.parametrize(
    ("kind", "attribute", "read", "follows"),
    [
        ("changed", "sha256", "content", True),
        ("changed", "sha256", "mode", False),
        ("mode", "mode", "mode", True),
        ("mode", "mode", "content", False),
        ("missing", "state", "mode", True),
    ],
)
def test_an_expectation_follows_what_it_looked_at(
    healthy: Answer, kind: str, attribute: str, read: str, follows: bool
) -> None:
    healthy["differences"] = [difference(kind=kind, attribute=attribute)]
    failed = expectation(status="fail", id="x")
    asked = {"expectation:time: x": {"file": {"path": "/etc/chrony.conf", "read": read}}}
    found = causes.followed(findings(healthy, failed), asked)
    assert found[1].follows == ("file:/etc/chrony.conf" if follows else "")


def test_an_expectation_follows_the_first_cause_and_not_what_follows_itself(healthy: Answer) -> None:
    """Another name is one thing that differs, although a file and a promise say so, too."""
    failed = expectation(status="fail", id="x")
    asked = {"expectation:time: x": {"file": {"path": "/etc/hostname"}}}
    name, file = (
        Finding("hal05", "changed", resource, cause="node", attribute="static")
        for resource in ("hostname:static", "file:/etc/hostname")
    )
    found = [name, replace(file, follows=name.resource), *findings(healthy, failed)]
    assert [one.follows for one in causes.followed(found, asked)] == ["", "hostname:static", "hostname:static"]
    more = replace(file, kind="mode", attribute="mode")
    assert [one.follows for one in causes.followed([*found, more], asked)][2] == "file:/etc/hostname"


@pytest.mark.parametrize(
    ("kind", "path", "follows"),
    [
        ("masked", "chronyd.service", True),
        ("drop_ins", "chronyd.service.d/mine.conf", True),
        ("state", "chronyd.service", False),
        ("masked", "other.service", False),
    ],
)
def test_a_mask_and_a_drop_in_are_not_said_twice(healthy: Answer, kind: str, path: str, follows: bool) -> None:
    healthy["differences"] = [difference(resource="service:chronyd.service", kind=kind, attribute=kind)]
    healthy["extra"] = [{"path": f"/etc/systemd/system/{path}", "what": "units", "type": "link"}]
    found = {one.kind: one for one in causes.followed(findings(healthy), {})}
    assert found["extra"].follows == ("service:chronyd.service" if follows else "")


def test_a_difference_names_the_attribute(healthy: Answer) -> None:
    healthy["differences"] = [difference(resource="user:slurm", kind="changed", attribute="shell")]
    assert findings(healthy)[0].summary == "its shell differs"
    healthy["differences"] = [difference(kind="changed", attribute="keyed")]
    assert findings(healthy)[0].summary == "the content differs"


def test_a_unit_is_known_with_and_without_suffix() -> None:
    assert causes.read_by({"service": {"name": "chronyd", "read": "running"}})[0] == "service:chronyd.service"
    assert causes.read_by({"service": {"name": "a.timer"}})[0] == "service:a.timer"
    assert causes.read_by({"command": {"argv": ["id"]}}) == ("", "")


def test_a_file_by_which_a_unit_was_changed_is_no_second_finding() -> None:
    mask, drop_in, other = (
        Finding("hal05", "extra", f"file:/etc/systemd/system/{name}", cause="node")
        for name in ("chronyd.service", "munge.service.d/nice.conf", "miner.service")
    )
    differing = [
        Finding("hal05", "masked", "service:chronyd.service", cause="node", attribute="masked"),
        Finding("hal05", "drop_ins", "service:munge.service", cause="node", attribute="drop_ins"),
    ]
    told = causes.followed([mask, drop_in, other, *differing], {})
    assert [one.follows for one in told] == ["service:chronyd.service", "service:munge.service", "", "", ""]
    assert [one.follows for one in causes.followed([mask, drop_in, other], {})] == ["", "", ""]


DRIFT = Finding("hal05", "mode", "file:/x")
UNKNOWN = replace(DRIFT, status="unknown")
WARNING = replace(DRIFT, kind="expectation", severity="warning")
HARDWARE = replace(WARNING, kind="hardware")


@pytest.mark.parametrize(
    ("found", "nodes", "expected"),
    [
        ([], 1, 0),
        ([], 0, 3),
        ([UNKNOWN], 1, 3),
        ([DRIFT, UNKNOWN], 2, 2),
        ([WARNING], 1, 0),
        ([WARNING, UNKNOWN], 1, 3),
        ([HARDWARE], 1, 2),
    ],
)
def test_exit_status(found: list[Finding], nodes: int, expected: int) -> None:
    assert subject.exit_status(found, nodes) == expected


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (replace(DRIFT, role="time"), "ansible-playbook -i x playbooks/site.yml --limit hal05 --tags time"),
        (replace(DRIFT, kind="no-record"), "ansible-playbook -i x playbooks/site.yml --limit hal05"),
        (replace(DRIFT, kind="unreachable"), ""),
        (
            replace(DRIFT, kind="not-effective", role="time", units=("chronyd.service",)),
            "ansible -i x --become -m ansible.builtin.systemd_service -a 'name=chronyd.service state=restarted' hal05",
        ),
    ],
)
def test_the_command_that_repairs(one: Finding, expected: str) -> None:
    assert repairs.repair(one, "hal05", "-i x ") == expected


def test_a_limit_is_one_that_ansible_takes() -> None:
    groups = {"all": ["a1", "a2", "a3", "b"], "gpu": ["a1", "a2", "a3"], "accelerated": ["a1", "a2", "a3"]}
    assert limit(["a2", "a1"], groups) == "a1,a2"
    assert limit(["a3", "a2", "a1"], groups) == "gpu"
    assert limit(["a1", "a2", "a3", "b"], groups) == "all"
    assert "--limit" not in repairs.repair(replace(DRIFT, role="time"), "all", "")


def test_software_out_of_step_is_one_finding(healthy: Answer, documented: Callable[..., dict[str, Any]]) -> None:
    audit = Audit(groups={"login": ["front"], "compute": ["n1", "n2", "n3"], "data": ["d"]})
    versions = {"front": "22-1.el7.x86_64", "n1": "22-1.el7.ppc64le", "n2": "21-1.el7.ppc64le", "d": "1-1.noarch"}
    for host, version in versions.items():
        software = {"slurm": version, "same": "1-1.noarch", f"only-{host}": version}
        audit.add(host, {"node": {"software": software}, "findings": [], "in_step": [["login", "compute"]]})
    (one,) = audit.out_of_step()
    assert (one.kind, one.resource, one.is_) == ("out-of-step", "package:slurm", "21-1.el7 on n2; 22-1.el7 on front,n1")


def test_a_node_that_nobody_looked_at_is_a_finding() -> None:
    audit = Audit(expected=["n1", "n2"])
    audit.add("n1", {"node": {}, "findings": []})
    document = audit.document(1.0)
    assert [(one["host"], one["kind"]) for one in document["findings"]] == [("n2", "unreadable")]
    assert document["status"] == 3


def test_no_node_at_all_is_not_clean() -> None:
    document = Audit().document(1.0)
    assert document["status"] == 3
    assert document["findings"][0]["kind"] == "nothing-checked"


def test_a_document_has_what_it_was_made_of(healthy: Answer, documented: Callable[..., dict[str, Any]]) -> None:
    healthy["differences"] = [difference(diff=["-a", "+b"])]
    found = findings(healthy)
    document = documented(found)
    assert [replace(Finding.read(one), repair="") for one in document["findings"]] == found
    assert document["nodes"]["hal05"]["drift"] == 1
    assert document["summary"]["resources"] == 12


def test_a_record_that_others_can_read_is_drift(healthy: Answer) -> None:
    healthy["record"]["problem"] = "/var/lib/hal/record.json has mode 0644, it should have 0600"
    (one,) = findings(healthy)
    assert (one.kind, one.resource, one.status, one.cause) == ("record", "record:node", "drift", "node")
    assert "has mode 0644" in one.summary
