"""What a host is told of a run: the last owner, what was reached, and never a secret."""

from __future__ import annotations

import re

from hal_cluster.audit.recording import Host, LoadedRole, Owner, Run, proposal, spool
from hal_cluster.audit.resources import Resource

FIRST = Owner("time", "time|a.yml|First", "a.yml:1")
SECOND = Owner("time", "time|a.yml|Second", "a.yml:9")
RUN = Run.begin("abc", 1795233600.0)


def test_runs_sort_by_time() -> None:
    assert RUN.id.startswith("20261121T040000.000000Z-")
    assert RUN.id != Run.begin("abc", 1795233600.0).id
    assert RUN.id < Run.begin("abc", 1795233600.001).id < Run.begin("abc", 1795233601.0).id


def test_runs_of_the_same_moment_have_six_digits_of_chance() -> None:
    assert re.fullmatch(r"20261121T040000\.123457Z-[0-9a-f]{6}", Run.begin("abc", 1795233600.1234567).id)
    assert Run("r", "abc", 5.12345).document() == {"id": "r", "commit": "abc", "started": 5.123}


def test_a_host_has_nothing_to_learn_before_something_happened() -> None:
    host = Host()
    assert (host.worth_telling, host.dirty) == (False, False)
    host.window(1.23456, 2.34567)
    assert (host.windows, host.worth_telling) == ([[1.235, 2.346]], False)
    host.tried("a", True)
    assert (host.dirty, host.worth_telling) == (True, False)
    host.dirty = False
    host.effective(["b", "a", "b"])
    assert (host.dirty, host.worth_telling, list(host.handled)) == (True, True, ["b", "a"])
    other = Host()
    other.manages(FIRST, [], [], True)
    assert (other.dirty, other.worth_telling) == (True, False)


def test_what_tasks_changed_one_after_the_other_is_one_time() -> None:
    host = Host()
    for begin, end in ((10.0, 12.34567), (13.3, 14.0), (13.9, 15.0), (16.1, 17.0)):
        host.dirty = False
        host.change(begin, end)
        assert host.dirty
    assert host.changes == [[10.0, 15.0], [16.1, 17.0]]


def test_the_last_owner_wins_and_what_both_declare_adds_up() -> None:
    host = Host()
    host.manages(FIRST, [Resource("file:/x", {"state": "present", "sha1": "a"})], ["x.service"], False)
    host.manages(SECOND, [Resource("file:/x", {"state": "present", "mode": "0600"})], ["y.service"], True)
    (entry,) = spool("n", RUN, host, {"time": "h"})["entries"]
    assert entry["task"] == SECOND.task
    assert entry["declared"] == {"state": "present", "sha1": "a", "mode": "0600"}
    assert entry["units"] == ["x.service", "y.service"]
    assert entry["inputs_hash"] == "h"


def test_what_was_removed_is_not_declared_any_more() -> None:
    host = Host()
    host.manages(FIRST, [Resource("file:/x", {"state": "present", "mode": "0600"})], [], False)
    host.manages(SECOND, [Resource("file:/x", {"state": "absent"})], [], True)
    assert host.entries["file:/x"].declared == {"state": "absent"}


def test_once_secret_always_secret() -> None:
    host = Host()
    host.manages(FIRST, [Resource("file:/x", {"state": "present"}, secret=True)], [], False)
    host.manages(SECOND, [Resource("file:/x", {"state": "present", "sha1": "a"})], [], False)
    (entry,) = spool("n", RUN, host, {})["entries"]
    assert entry["secret"] is True
    assert entry["declared"] == {"state": "present"}


def test_a_task_counts_as_reached_only_if_every_call_of_it_was_whole() -> None:
    host = Host()
    host.tried("a", True)
    host.tried("b", True)
    host.tried("b", False)
    host.tried("b", True)
    host.skipped("c", transient=True)
    host.skipped("d", transient=False)
    document = spool("n", RUN, host, {})
    assert document["reached"] == ["a", "d"]
    assert document["skipped"] == ["c"]


def test_readers_of_a_file_are_its_units_whoever_owns_it() -> None:
    host = Host()
    host.reads({"file:/x": ["slurmd.service"]})
    host.manages(FIRST, [Resource("file:/x", {})], [], False)
    (entry,) = spool("n", RUN, host, {})["entries"]
    assert (entry["units"], entry["task"]) == (["slurmd.service"], FIRST.task)


def test_a_proposal_tells_what_is_there_from_what_is_not() -> None:
    host = Host()
    host.manages(FIRST, [Resource("file:/x", {})], [], False)
    host.manages(FIRST, [Resource("file:/y", {})], [], True)
    document = proposal("n", RUN, host, {})
    assert [one["resource"] for one in document["adoptable"]] == ["file:/x"]
    assert [one["resource"] for one in document["differs"]] == ["file:/y"]


def test_a_role_is_complete_unless_tags_or_a_failure_left_out_a_part() -> None:
    host = Host()
    host.roles = {"a": LoadedRole("/a", ("t",)), "b": LoadedRole("/b", ()), "c": LoadedRole("/c", (), whole=False)}
    host.broken.add("b")
    roles = spool("n", RUN, host, {"a": "h"})["roles"]
    assert roles["a"] == {"inputs_hash": "h", "tasks": ["t"], "complete": True}
    assert {name: one["complete"] for name, one in roles.items()} == {"a": True, "b": False, "c": False}


def test_a_role_is_complete_only_when_the_host_came_by_all_its_tasks() -> None:
    host = Host()
    host.roles = {"a": LoadedRole("/a", ("t", "u", "included", "r"), needed=frozenset({"t", "u"}))}
    host.tried("t", True)
    assert spool("n", RUN, host, {})["roles"]["a"]["complete"] is False
    host.skipped("u", transient=True)
    assert spool("n", RUN, host, {})["roles"]["a"]["complete"] is True
    host.rescued(["t", "u"], ["r"])
    assert spool("n", RUN, host, {})["roles"]["a"]["complete"] is False
    host.tried("r", True)
    assert spool("n", RUN, host, {})["roles"]["a"]["complete"] is True


def test_a_resource_is_changed_if_any_of_its_tasks_changed_it() -> None:
    host = Host()
    host.manages(FIRST, [Resource("file:/x"), Resource("file:/y")], [], False)
    host.manages(SECOND, [Resource("file:/x")], [], True)
    host.manages(FIRST, [Resource("file:/x")], [], False)
    changed = {one["resource"]: one["changed"] for one in spool("n", RUN, host, {})["entries"]}
    assert changed == {"file:/x": True, "file:/y": False}


def test_content_is_left_alone_only_if_nobody_declares_it() -> None:
    host = Host()
    touched, written = Resource("file:/x", {"content": False}), Resource("file:/x", {"sha1": "a"})
    host.manages(FIRST, [touched], [], False)
    host.manages(SECOND, [touched], [], False)
    assert host.entries["file:/x"].declared == {"content": False}
    host.manages(FIRST, [written], [], False)
    assert host.entries["file:/x"].declared == {"sha1": "a"}
    host.manages(SECOND, [touched], [], False)
    assert host.entries["file:/x"].declared == {"sha1": "a"}
