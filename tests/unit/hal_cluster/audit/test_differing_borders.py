"""What is declared now against what was recorded, at the borders: other roles, states, types, and what comes next."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from hal_cluster.audit.differing import Declared, Undecided, compare
from hal_cluster.audit.recording import Entry
from tests.unit.hal_cluster.audit.test_differing import OWNER, now, recorded


def found(entries: dict[str, Entry], *old: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    declared = Declared(certain=set(entries), entries=entries, **more)
    return [(one.kind, one.resource) for one in compare("h", "r", declared, old, "abc")]


@pytest.mark.parametrize(("before", "after"), [(5, 6), (6, 5), ("a", "b"), ("b", "a"), (True, False), (False, True)])
def test_a_value_may_have_become_more_or_less(before: Any, after: Any) -> None:
    assert found({"group:a": now(x=after)}, recorded("group:a", x=before)) == [("declared-differently", "group:a")]


@pytest.mark.parametrize("role", ["base", "time"])
def test_what_another_role_has_is_neither_new_nor_gone(role: str) -> None:
    assert found({"group:a": now(x=1)}, recorded("group:a", role=role, x=2), recorded("group:b", role=role)) == []


@pytest.mark.parametrize(("state", "kinds"), [("present", 1), ("started", 1), (None, 1), ("a", 1), ("absent", 0)])
def test_only_what_shall_be_there_was_not_rolled_out(state: str | None, kinds: int) -> None:
    assert found({"group:a": now(**({"state": state} if state else {}))}) == [("not-rolled-out", "group:a")] * kinds


def test_what_belongs_to_another_role_does_not_hide_what_is_new() -> None:
    new = {"group:a": now(x=1), "group:b": now(x=1)}
    assert found(new, recorded("group:a", role="time")) == [("not-rolled-out", "group:b")]


def test_a_task_that_was_not_loaded_does_not_hide_one_that_is_gone() -> None:
    included, gone = "r|f.yml|Included", "r|f.yml|Gone"
    old = [recorded("group:a", included), recorded("group:b"), recorded("group:c", gone)]
    left = found({"group:b": now()}, *old, tasks={included, OWNER.task}, loaded={OWNER.task})
    assert left == [("orphaned", "group:c")]


@pytest.mark.parametrize(("kind", "known"), [("file", False), ("directory", True), ("link", True)])
def test_content_is_asked_of_files_alone(kind: str, known: bool) -> None:
    unknown = [] if known else [("inputs-changed", "role:r")]
    assert found({"file:/a": now(type=kind)}, recorded("file:/a", type=kind)) == unknown


@pytest.mark.parametrize(("first", "second"), [("present", "absent"), ("absent", "present")])
def test_another_state_takes_the_place_of_all_that_was_declared(first: str, second: str) -> None:
    declared = Declared()
    declared.add("file:/a", now(state=first, mode="0644"), True)
    declared.add("file:/a", now(state=second), True)
    assert declared.entries["file:/a"].declared == {"state": second}


def test_why_a_task_is_undecided_stays() -> None:
    with pytest.raises(FrozenInstanceError):
        Undecided(OWNER, "why").__setattr__("reason", "other")
