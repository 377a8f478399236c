"""What is declared now against what was recorded, on plain values: each finding with all its words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hal_cluster.audit.differing import DIGESTS, WITHDRAWN, Declared, Undecided, compare, whole_roles
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.recording import Entry, Owner

OWNER = Owner("r", "r|f.yml|New", "f.yml:5")
DECLARATION = ("drift", "declaration")
WRITTEN = {"role": "r", "task": "New", "source": "f.yml:5"}
DATED = {"commit": "abc", "since": "then"}


def recorded(resource: str, task: str = "r|f.yml|New", role: str = "r", **declared: Any) -> dict[str, Any]:
    return {
        **{"resource": resource, "role": role, "task": task, "source": "f.yml:1", "declared": declared},
        **{"commit": "abc", "converged_at": "then"},
    }


def now(**declared: Any) -> Entry:
    return Entry(OWNER, declared, False, set(), False)


def finding(kind: str, resource: str, words: str, *values: Any, **more: Any) -> Finding:
    return Finding("h", kind, resource, *DECLARATION, words, *values, **more)


def of(entries: dict[str, Entry], *, certain: bool = True, tasks: str = "New", loaded: str = "New") -> Declared:
    made = Declared(
        tasks={f"r|f.yml|{one}" for one in tasks.split()}, loaded={f"r|f.yml|{one}" for one in loaded.split()}
    )
    for resource, entry in entries.items():
        made.add(resource, entry, certain)
    return made


def found(declared: Declared, *entries: dict[str, Any], **more: Any) -> list[Finding]:
    return list(compare("h", "r", declared, entries, "abc", **more))


def test_another_value_is_said_with_both() -> None:
    one = found(of({"group:a": now(gid=6, state="present")}), recorded("group:a", gid=5, state="present"))
    words = "the declared gid has changed"
    assert one == [finding("declared-differently", "group:a", words, "gid", 6, 5, **WRITTEN, **DATED)]
    assert found(of({"group:a": now(gid=5)}), recorded("group:a", gid=5, state="present")) == []
    added = found(of({"group:a": now(gid=5)}), recorded("group:a"))
    assert [(each.attribute, each.should, each.is_) for each in added] == [("gid", 5, None)]
    undated = recorded("group:a", gid=4)
    del undated["commit"], undated["converged_at"]
    assert [(each.commit, each.since) for each in found(of({"group:a": now(gid=5)}), undated)] == [("", "")]


@pytest.mark.parametrize("digest", DIGESTS)
def test_another_content_is_said_and_a_new_digest_is_none(digest: str) -> None:
    declared = of({"file:/a": now(type="file", **{digest: "y"})})
    (one,) = found(declared, recorded("file:/a", type="file", **{digest: "x"}))
    assert (one.summary, one.should, one.is_) == ("the declared content has changed", "y", "x")
    unknown = found(declared, recorded("file:/a", type="file"))
    assert [each.kind for each in unknown] == ["inputs-changed"]


@pytest.mark.parametrize("kind", [*WITHDRAWN, "group"])
def test_what_is_declared_no_more_differs_where_a_rollout_takes_it_away(kind: str) -> None:
    differing = found(of({f"{kind}:a": now(x=1)}), recorded(f"{kind}:a", x=1, y=2))
    assert [(one.attribute, one.should, one.is_) for one in differing] == ([] if kind == "group" else [("y", None, 2)])


def test_what_is_new_was_not_rolled_out() -> None:
    words = "it is declared now and was not at the last rollout"
    new = of({"group:a": now(state="present"), "group:b": now(state="absent")})
    assert found(new) == [finding("not-rolled-out", "group:a", words, **WRITTEN)]
    assert found(new, recorded("group:a", role="other")) == []
    orphan = {**recorded("group:a"), "orphaned": {"at": "then"}}
    assert [one.kind for one in found(new, orphan)] == ["not-rolled-out"]


def test_what_depends_on_the_run_is_said_once_for_the_role() -> None:
    words = (
        "inputs of role r changed since commit abc; only a rollout shows what these tasks declare now: "
        "New (f.yml:5: whether group:a is managed depends on the run)"
    )
    assert found(of({"group:a": now()}, certain=False)) == [
        Finding("h", "inputs-changed", "role:r", "unknown", "declaration", words, role="r")
    ]
    assert found(of({"group:a": now()}, certain=False), recorded("group:a")) == []


def test_five_tasks_are_named_and_the_rest_is_counted() -> None:
    declared = Declared()
    for number in range(6):
        declared.undecided[str(number)] = Undecided(Owner("r", f"r|f|T{number}", f"f:{number}"), "why")
    names = "; ".join(f"T{number} (f:{number}: why)" for number in range(5))
    (one,) = found(declared)
    assert one.summary.endswith(f"what these tasks declare now: {names} and 1 more")
    del declared.undecided["5"]
    (one,) = compare("h", "r", declared, [], "")
    words = "inputs of role r changed since commit (none); only a rollout shows what these tasks declare now: "
    assert one.summary == words + names


def test_tasks_that_cannot_be_loaded_leave_nobody_an_orphan() -> None:
    (one,) = found(Declared(fault="line 3 is odd"), recorded("group:a", "r|f.yml|Old"))
    words = "inputs of role r changed since commit abc; its tasks cannot be loaded: line 3 is odd"
    assert one == Finding("h", "inputs-changed", "role:r", "unknown", "declaration", words, role="r")


def test_an_orphan_says_why() -> None:
    old = recorded("group:a", "r|f.yml|Old")
    gone = "no task manages it any more: its task is gone"
    orphan = finding("orphaned", "group:a", gone, role="r", task="Old", source="f.yml:1", **DATED)
    assert found(of({}), old) == [orphan]
    words = "no task manages it any more: its task no longer manages it"
    assert found(of({}, tasks="New Old", loaded="Old"), old) == [replace(orphan, summary=words)]
    assert found(of({}, tasks="New Old"), old) == []  # in a file that is included while running
    declared = of({})
    declared.undecided["r|f.yml|Old"] = Undecided(OWNER, "why")
    assert [one.kind for one in found(declared, old)] == ["inputs-changed"]
    assert found(of({}), {**old, "orphaned": {"at": "then"}}) == []


def test_what_another_role_declares_now_is_taken_over() -> None:
    taken = Owner("s", "s|g.yml|Take", "g.yml:2")
    one = Finding(
        *("h", "declared-differently", "group:a", *DECLARATION, "the role s declares it now", "declared by", "s", "r"),
        role="s",
        task="Take",
        source="g.yml:2",
        commit="abc",
        since="then",
    )
    assert found(of({}), recorded("group:a", "r|f.yml|Old"), owner_of=lambda name: taken) == [one]


@pytest.mark.parametrize(
    ("resource", "before", "after", "secret", "known"),
    [
        ("file:/a", {"sha1": "x"}, {"type": "file", "sha1": "x"}, False, True),
        ("file:/a", {}, {"type": "file", "sha1": "x"}, False, False),
        ("file:/a", {"sha1": "x"}, {"type": "file"}, False, False),
        ("file:/a", {}, {"type": "file", "content": False}, False, True),
        ("file:/a", {}, {"type": "directory"}, False, True),
        ("group:a", {}, {"type": "file"}, True, True),
        ("line:/a#1", {}, {}, True, False),
        ("line:/a#1", {}, {}, False, True),
    ],
)
def test_content_that_records_do_not_have_cannot_be_compared(
    resource: str, before: Any, after: Any, secret: bool, known: bool
) -> None:
    declared = of({resource: Entry(OWNER, after, secret, set(), False)})
    seen = [one for one in found(declared, recorded(resource, **before)) if one.kind == "inputs-changed"]
    assert [one.summary.endswith(f"(f.yml:5: the content of {resource} is kept out of records)") for one in seen] == (
        [] if known else [True]
    )


def test_what_tasks_declare_of_one_resource_adds_up() -> None:
    declared = Declared()
    declared.add("group:a", now(state="present", gid=5), True)
    declared.add("group:a", now(system=True), False)
    assert declared.entries["group:a"].declared == {"state": "present", "gid": 5, "system": True}
    declared.add("group:a", now(state="absent"), False)
    assert declared.entries["group:a"].declared == {"state": "absent"}
    assert declared.certain == {"group:a"}
    declared.add("group:b", now(), False)
    assert declared.certain == {"group:a"}


def test_roles_that_came_and_roles_that_went() -> None:
    entries = [
        recorded("group:a", role="gone"),
        recorded("group:b", role="kept"),
        {**recorded("group:c", role="gone"), "orphaned": {"at": "then"}},
    ]

    def whole(*, partial: bool = False, **more: Any) -> list[Finding]:
        return list(whole_roles("h", ["kept", "new"], ["kept", "new"], {"kept": {}}, entries, partial=partial, **more))

    words = "the role new was never rolled out here as a whole"
    new = finding("not-rolled-out", "role:new", words, role="new")
    words = "no task manages it any more: the node no longer has the role gone"
    gone = finding("orphaned", "group:a", words, role="gone", task="New", source="f.yml:1", **DATED)
    assert whole() == [new, gone]
    assert whole(partial=True) == [new]
    assert [one.kind for one in whole(owner_of=lambda name: OWNER)] == ["not-rolled-out", "declared-differently"]
