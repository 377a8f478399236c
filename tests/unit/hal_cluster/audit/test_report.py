"""The report: by role, folded, with what is and what should be, and how to repair it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hal_cluster.audit import report
from hal_cluster.audit.causes import followed
from hal_cluster.audit.findings import Finding, unreachable
from tests.unit.hal_cluster.audit.answers import Answer, difference, expectation, findings

Documented = Callable[..., dict[str, Any]]


def on(found: list[Finding], *hosts: str) -> list[Finding]:
    return [replace(one, host=host) for host in hosts for one in found]


def test_clean_is_one_line(documented: Documented) -> None:
    assert report.text(documented([])) == "Clean: 1 node, 12 resources, 1 expectations, 4.2 s\n"


def test_equal_findings_are_one_with_a_range(healthy: Answer, documented: Documented) -> None:
    healthy["differences"] = [difference()]
    text = report.text(documented(on(findings(healthy), "hal03", "hal04", "hal05")))
    assert text == (
        "time\n"
        "  hal[03-05]  file /etc/chrony.conf: the mode differs\n"
        "    declared 0644\n"
        "    found    0666\n"
        "    task     Write the configuration of chronyd,\n"
        "             roles/time/tasks/configure.yml:2\n"
        "             commit abc1234, converged 2026-11-20 18:02 UTC\n"
        "  repair:\n"
        "    ansible-playbook playbooks/site.yml --limit hal03,hal04,hal05 --tags time\n"
        "\n"
        "Drift: 3 differences on hal[03-05] (3 nodes, 36 resources, 3 expectations, 4.2\n"
        "s)\n"
    )


def test_what_differs_in_anything_is_not_folded(healthy: Answer, documented: Documented) -> None:
    healthy["differences"] = [difference()]
    one, other = on(findings(healthy), "hal03", "hal04")
    text = report.text(documented([one, replace(other, is_="0600")]))
    assert "  hal03  " in text
    assert "  hal04  " in text


def test_a_value_that_is_the_nodes_name_is_folded(healthy: Answer, documented: Documented) -> None:
    healthy["differences"] = [difference(resource="hostname:static", attribute="name", should="x", **{"is": "HOST"})]
    found = [replace(one, is_=one.host) for one in on(findings(healthy), "hal03", "hal04")]
    assert "found    (the node's name)" in report.text(documented(found))


def test_nodes_that_do_not_answer_are_one_finding(documented: Documented) -> None:
    words = "ssh: connect to host 10.0.0.{} port 22: No route to host"
    found = [unreachable(f"hal0{number}", words.format(number)) for number in range(1, 6)]
    text = report.text(documented(found))
    assert text.count("No route") == 1
    assert "hal[01-05]" in text
    assert report.closing(documented(found)).startswith("Not everything was seen: 5 unknown on hal[01-05] (")


def test_expectations_stand_with_what_makes_them_fail(healthy: Answer, documented: Documented) -> None:
    healthy["differences"] = [difference(resource="service:chronyd.service", kind="state", attribute="state")]
    asked = {"expectation:time: chronyd runs": {"service": {"name": "chronyd", "read": "running"}}}
    found = followed(findings(healthy, expectation(status="fail", observed=False)), asked)
    text = report.text(documented(found))
    assert "so also  time: chronyd runs" in text
    assert "because" not in text


def test_items_of_a_loop_are_one(healthy: Answer, documented: Documented) -> None:
    failed = [
        expectation(id=f"packages [{name}]", status="fail", reason=f"{name} is not installed") for name in ("a", "b")
    ]
    text = report.text(documented(findings(healthy, *failed)))
    assert "packages: a, b" in text
    assert text.count("because") == 1


def test_a_diff_is_shown_and_digests_are_not(healthy: Answer, documented: Documented) -> None:
    hidden = {"attribute": "sha256", "should": "1" * 64, "is": "2" * 64}
    healthy["differences"] = [difference(kind="changed", diff=["-server a", "+server b"], **hidden)]
    text = report.text(documented(findings(healthy)))
    assert "declared server a\n    found    server b\n" in text
    healthy["differences"] = [difference(kind="changed", **hidden)]
    assert "1111" not in report.text(documented(findings(healthy)))


def test_a_secret_expectation_shows_neither_side(healthy: Answer, documented: Documented) -> None:
    failed = expectation(status="fail", expected="(secret)", observed="(secret)", reason="differs")
    text = report.text(documented(findings(healthy, failed)))
    assert "declared (secret)\n    found    (secret)" in text


def test_a_warning_is_shown_and_does_not_count(healthy: Answer, documented: Documented) -> None:
    document = documented(findings(healthy, expectation(status="fail", severity="warning", reason="odd")))
    text = report.text(document)
    assert document["status"] == 0
    assert "warning: odd" in text
    assert text.splitlines()[-1].startswith("Clean: ")
    assert text.splitlines()[-1].endswith(", 1 warning")


def test_what_no_role_has_says_what_to_do(healthy: Answer, documented: Documented) -> None:
    healthy["extra"] = [{"path": "/etc/cron.d/mine", "what": "jobs of cron", "type": "file"}]
    text = report.text(documented(findings(healthy)))
    assert text.startswith("no role\n")
    assert "audit_accepted" in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_lines_fit(healthy: Answer, documented: Documented, width: int) -> None:
    healthy["differences"] = [difference(note="a long note " * 20), difference(kind="not-effective")]
    healthy["problems"] = ["a long problem " * 20]
    hosts = [f"hal{number:02}" for number in range(1, 17, 2)]
    document = documented(
        on(findings(healthy), *hosts), options="-i inventory/hal/hal.yml -i inventory/virtual/hal.yml "
    )
    text = report.text(document, width=width)
    # Words are not broken: a path or a list of nodes may be longer than a narrow terminal.
    too_long = [line for line in text.splitlines() if len(line) > max(width, 80)]
    assert too_long == []


def test_a_command_is_broken_where_a_shell_takes_it() -> None:
    words = "ansible-playbook -i inventory/hal/hal.yml playbooks/site.yml --limit hal-login,hal01 --tags time"
    lines = report.command(words, 50)
    assert "".join(line.removesuffix("\\").strip() + " " for line in lines).strip() == words
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert all(len(line) <= 52 for line in lines)


def test_colour_is_for_terminals(healthy: Answer, documented: Documented) -> None:
    healthy["differences"] = [difference()]
    document = documented(findings(healthy))
    plain, coloured = report.text(document), report.text(document, colour=True)
    assert "\x1b" not in plain
    assert "\x1b[31m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
    assert not re.search(r"[ \t]$", plain, re.MULTILINE)
