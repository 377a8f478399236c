"""Entries with templates become questions, or say why they cannot; roles are found where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader

from hal_cluster.expect.errors import ExpectationsError
from hal_cluster.expect.prepare import Preparation, Prepared
from hal_cluster.expect.roles import find_role
from hal_cluster.expect.templating import CompilingTemplar

ENTRY: dict[str, Any] = {"id": "a", "why": "w", "sysctl": {"name": "{{ name }}"}, "equal": "{{ wanted }}"}
KNOWN: dict[str, Any] = {"id": "a", "role": "r", "source": "f:1", "why": "w", "severity": "error", "secret": False}


def prepared(variables: dict[str, Any] | None = None, **more: Any) -> list[Prepared]:
    """What an entry becomes."""
    loader, values = DataLoader(), {"name": "vm.a", "wanted": "5", **(variables or {})}
    return Preparation(CompilingTemplar(loader, values), loader, values, "r").prepare({**ENTRY, **more}, "f:1")


def test_a_question_has_its_values() -> None:
    question = {"sysctl": {"name": "vm.a"}, "equal": "5", "secret": False}
    assert prepared() == [Prepared(**KNOWN, expected={"equal": "5"}, question=question)]
    (one,) = prepared(health="{{ name }} lost", finding="hardware", severity="warning")
    assert (one.health, one.finding, one.severity) == ("vm.a lost", "hardware", "warning")
    (one,) = prepared(health="")
    assert one.reason == "health: has to be a text that is not empty (a number needs quotes)"


def test_a_secret_is_in_the_question_alone() -> None:
    (one,) = prepared(secret=True)
    assert (one.expected, one.question) == ("(secret)", {"sysctl": {"name": "vm.a"}, "equal": "5", "secret": True})
    (one,) = prepared(secret=True, equal="{{ wanted | from_json | first }}")
    assert (one.expected, one.question, one.status) == ("(secret)", None, "unknown")
    words = "the text is kept out of sight, as the entry is secret)"
    assert one.reason.startswith("equal: cannot be evaluated (")
    assert one.reason.endswith(words)


def test_an_entry_that_cannot_be_worked_out_says_which_part() -> None:
    (one,) = prepared(equal="{{ nowhere }}")
    assert one == Prepared(**KNOWN, expected={"equal": "{{ nowhere }}"}, reason="equal: 'nowhere' is undefined")
    (one,) = prepared(sysctl={"name": "{{ nowhere }}"})
    assert one.reason == "sysctl: 'nowhere' is undefined"
    (one,) = prepared(health="{{ nowhere }}")
    assert one.reason == "health: 'nowhere' is undefined"
    (one,) = prepared(when="nowhere")
    assert one.reason.startswith("when: ")


def test_a_field_that_is_omitted_is_none() -> None:
    (one,) = prepared({"omit": "__omit"}, sysctl={"name": "a"})
    assert one.question == {"sysctl": {"name": "a"}, "equal": "5", "secret": False}
    entry = {"id": "a", "why": "w", "mount": {"path": "/", "read": "{{ omit }}"}, "equal": "5"}
    loader, values = DataLoader(), {"omit": "__omit"}
    (one,) = Preparation(CompilingTemplar(loader, values), loader, values, "r").prepare(entry, "f:1")
    assert one.question == {"mount": {"path": "/"}, "equal": "5", "secret": False}


def test_absent_may_be_said_without_a_value() -> None:
    loader, values = DataLoader(), {"nothing": None}
    entry = {"id": "a", "why": "w", "sysctl": {"name": "a"}, "absent": "{{ nothing }}"}
    (one,) = Preparation(CompilingTemplar(loader, values), loader, values, "r").prepare(entry, "f:1")
    assert one.expected == {"absent": ""}


def test_items_of_a_loop_are_named_by_what_names_them_best() -> None:
    items = [{"path": "p", "key": "k"}, {"name": "n", "id": "i"}, {"name": "n", "key": "k"}, {"x": 1}, 5, 5]
    found = prepared({"items_": items}, loop="{{ items_ }}")
    assert [one.id for one in found] == ["a [k]", "a [i]", "a [n]", "a [{'x': 1}]", "a [5]", "a [5 #2]"]
    assert [one.id for one in prepared(loop=["x", "x"], secret=True)] == ["a [0]", "a [1]"]
    (one,) = prepared(loop=[])
    assert (one.status, one.reason) == ("skipped", "its loop is empty")
    (one,) = prepared(loop="x")
    assert (one.status, one.reason) == ("unknown", "loop: has to be a list")
    (one,) = prepared(loop="x", when=False)
    assert (one.status, one.reason) == ("skipped", "when")
    (one,) = prepared(loop="x", when="item")
    assert (one.status, one.reason) == ("unknown", "loop: has to be a list")


def test_an_entry_that_is_none_says_what_is_wrong_with_it() -> None:
    loader = DataLoader()
    preparation = Preparation(CompilingTemplar(loader, {}), loader, {}, "r")
    (one,) = preparation.prepare(5, "f:7")
    assert (one.id, one.reason) == (
        *("(entry without id at f:7)", "an entry has to be a mapping with id, why, a reader and a matcher"),
    )
    (one,) = preparation.prepare({**ENTRY, "why": 5, "sysctl": {}, "severity": "odd"}, "f:7")
    assert one.reason == (
        "why: has to be a text that is not empty (a number needs quotes); "
        'severity: "odd" has to be one of error, warning; sysctl: needs name'
    )
    assert (one.why, one.severity, one.status) == ("5", "error", "unknown")


def test_the_result_is_the_answer_or_what_is_known_without_one() -> None:
    (one,) = prepared()
    base = {**{name: KNOWN[name] for name in ("id", "role", "severity", "why", "source")}, "expected": {"equal": "5"}}
    answer = {"status": "pass", "observed": "5", "reason": ""}
    assert one.result(answer) == {**base, **answer}
    assert one.result() == {**base, "status": "unknown", "observed": None, "reason": ""}


def test_a_role_is_beside_the_playbook_or_beside_who_asks(tmp_path: Path) -> None:
    loader = DataLoader()
    loader.set_basedir(str(tmp_path / "playbooks"))
    for name in ("playbooks/roles/near", "elsewhere/near", "elsewhere/mine", "elsewhere/other"):
        (tmp_path / name).mkdir(parents=True)
    caller = str(tmp_path / "elsewhere/mine")
    assert find_role("near", loader, caller) == str(tmp_path / "playbooks/roles/near")
    assert find_role("other", loader, caller) == str(tmp_path / "elsewhere/other")
    with pytest.raises(ExpectationsError, match=rf"^there is no role other in {tmp_path}/playbooks/roles, "):
        find_role("other", loader, None)
