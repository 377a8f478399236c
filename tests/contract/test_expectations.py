"""Roles that do not prove themselves, or not readably."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import expectations

VERIFY = "roles/time/tasks/verify.yml"
MAIN = "roles/time/tasks/main.yml"
EXPECT = "roles/time/expect.yml"
GOOD = """
    - id: chronyd runs
      service: {name: chronyd, read: running}
      equal: true
      why: clocks drift
    """

PLANTED = (
    Planted(expectations.verify_only_reads, {VERIFY: "- name: Check\n  hal_expect: {}\n"}, []),
    Planted(
        expectations.verify_only_reads,
        {VERIFY: "- name: Mend\n  ansible.builtin.file: {path: /x}\n"},
        [
            f"{VERIFY}:1: hal_expect is not called; it evaluates expect.yml",
            f"{VERIFY}:2: ansible.builtin.file in verify.yml; only hal_expect, which changes nothing",
        ],
    ),
    Planted(
        expectations.every_role_ends_in_verify,
        {
            MAIN: """
                - name: Verify
                  ansible.builtin.import_tasks: verify.yml
                - name: Configure
                  ansible.builtin.import_tasks: configure.yml
                """,
        },
        [f"{MAIN}:3: the last task does not include verify.yml; a rollout ends in its proof"],
    ),
    Planted(expectations.expectations_are_valid, {EXPECT: GOOD}, []),
)


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("---\n[]\n", f"{EXPECT}:2: ", "list"),
        ("---\n- id: x\n  why: y\n  equal: true\n  servcie: {name: chronyd}\n", f"{EXPECT}:5: ", "servcie"),
    ],
)
def test_what_hal_expect_does_not_understand_is_found(text: str, place: str, word: str, tmp_path: Path) -> None:
    """The wording is hal_expect's own."""
    path = tmp_path / EXPECT
    path.parent.mkdir(parents=True)
    path.write_text(text)
    findings = expectations.expectations_are_valid(tmp_path)
    assert any(finding.startswith(place) and word in finding for finding in findings), findings


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
