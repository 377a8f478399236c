"""What a run makes of the record: whose entry it is, what is kept of before, what is taken over."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.hal_node.audit.merge import (
    is_gone,
    merge,
    merged_roles,
    node_windows,
    observed_entry,
    task_id,
    united,
)
from ansible.module_utils.hal_node.audit.node import iso
from ansible.module_utils.hal_node.audit.secrets import id_of, keyed
from ansible.module_utils.hal_node.expect.values import Unreadable

KEY = b"k" * 32
NOW = 1795233660.7
PRESENT = {"state": "present"}


def test_a_task_is_named_by_its_role_its_file_and_its_title() -> None:
    assert task_id({"role": "r", "source": "a/b.yml:12", "task": "T"}) == "r|a/b.yml|T"
    assert task_id({"role": "r", "source": "a/b.yml:12", "task": "x|y|T"}) == "x|y|T"
    assert task_id({"role": "r", "source": "a/b.yml:12", "task": "x|T"}) == "r|a/b.yml|x|T"
    assert task_id({}) == "||"


def whole(entry: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"declared": {}, "units": [], "secret": False, "changed": True, **entry, **more}


def test_what_several_tasks_declare_of_one_resource_adds_up_and_the_last_owns_it() -> None:
    first = {"resource": "file:/a", "role": "a", "declared": {**PRESENT, "mode": "0600"}, "units": ["b", "a", "b"]}
    last = {"resource": "file:/a", "role": "b", "declared": {"owner": "x"}, "units": ["c"], "changed": False}
    both = united([first, last])["file:/a"]
    assert both == whole(last, declared={**PRESENT, "mode": "0600", "owner": "x"}, units=["a", "b", "c"], changed=True)
    assert united([{**first, "changed": False}, last])["file:/a"]["changed"] is False
    assert united([{**first, "changed": False}, {**last, "changed": True}])["file:/a"]["changed"] is True
    assert united([{**first, "secret": True}, last])["file:/a"]["secret"] is True
    assert united([first, {**last, "secret": 1}])["file:/a"]["secret"] is True
    assert united([first])["file:/a"] == whole(first, units=["a", "b"])
    assert first["units"] == ["b", "a", "b"]


def test_what_one_task_made_and_another_removed_is_as_the_last_says() -> None:
    made = {"resource": "file:/a", "declared": {**PRESENT, "mode": "0600"}}
    gone = {"resource": "file:/a", "declared": {"state": "absent"}}
    unsaid = {"resource": "file:/a", "declared": {"owner": "x"}}
    assert united([made, gone])["file:/a"]["declared"] == {"state": "absent"}
    assert united([gone, made])["file:/a"]["declared"] == {**PRESENT, "mode": "0600"}
    assert united([unsaid, made])["file:/a"]["declared"] == {**PRESENT, "mode": "0600", "owner": "x"}
    assert united([unsaid, gone])["file:/a"]["declared"] == {"state": "absent", "owner": "x"}


@pytest.mark.parametrize(
    ("one", "other", "content"),
    [({}, False, True), (False, {}, True), (False, False, False), ({}, {}, True), (True, False, True)],
)
def test_content_counts_if_one_of_several_writes_it(one: Any, other: Any, content: bool) -> None:
    entries = [{"resource": "file:/a", "declared": {} if says == {} else {"content": says}} for says in (one, other)]
    assert (united(entries)["file:/a"]["declared"].get("content") is not False) is content


def test_what_a_run_says_nothing_about_stays_and_what_lost_its_task_is_an_orphan() -> None:
    def old(name: str, task: str, **more: Any) -> dict[str, Any]:
        return {"resource": f"group:{name}", "role": "r", "task": f"r|f|{task}", **more}

    before = [
        old("kept", "T"),
        old("lost", "Gone"),
        old("released", "Reached"),
        old("skipped", "Skipped"),
        old("again", "Gone", orphaned={"at": "then"}),
        old("elsewhere", "Gone", role="other"),
        old("run", "T"),
    ]
    request = {
        "entries": [{"resource": "group:run", "role": "r", "task": "r|f|T", "extra": 1, "unreadable": "x"}],
        "roles": {"r": {"tasks": ["r|f|T", "r|f|Reached", "r|f|Skipped"]}},
        "reached": ["r|f|Reached", "r|f|Skipped"],
        "skipped": ["r|f|Skipped"],
        "run": {"commit": "abc"},
    }
    fresh, stay = merge(before, request, NOW)
    assert fresh == {
        "group:run": {
            **{"resource": "group:run", "role": "r", "task": "r|f|T", "declared": {}, "units": [], "secret": False},
            **{"changed": True, "commit": "abc", "converged_at": iso(NOW)},
        }
    }
    marks = {name.partition(":")[2]: one.get("orphaned") for name, one in stay.items()}
    at = {"at": iso(NOW), "commit": "abc"}
    assert marks == {
        **{"kept": None, "skipped": None, "elsewhere": None, "again": {"at": "then"}},
        **{"lost": {**at, "reason": "its task is gone"}, "released": {**at, "reason": "its task no longer manages it"}},
    }
    assert "orphaned" not in before[1]
    assert merge(before, {"reached": ["r|f|T"]}, NOW)[1]["group:kept"]["orphaned"]["commit"] == ""
    assert merge([], {}, NOW) == ({}, {})


def test_a_run_may_say_itself_when_and_from_what_it_came() -> None:
    one = {"resource": "group:a", "commit": "mine", "converged_at": "then"}
    fresh, _stay = merge([], {"entries": [one], "run": {"commit": "abc"}}, NOW)
    assert (fresh["group:a"]["commit"], fresh["group:a"]["converged_at"]) == ("mine", "then")


def test_roles_of_a_run_replace_those_of_before_if_they_are_complete() -> None:
    old: dict[str, Any] = {
        "a": {"inputs_hash": "1", "tasks": ["x"], "commit": "o", "converged_at": "then"},
        "b": {"inputs_hash": "9"},
    }
    request: dict[str, Any] = {"roles": {"a": {"inputs_hash": "2", "tasks": ["z", "y"]}}, "run": {"commit": "n"}}
    new = {"inputs_hash": "2", "tasks": ["y", "z"], "commit": "n", "converged_at": iso(NOW)}
    assert merged_roles(old, request, NOW) == {"a": new, "b": {"inputs_hash": "9"}}
    request["roles"]["a"]["complete"] = False
    assert merged_roles(old, request, NOW)["a"] == {**old["a"], "tasks": ["y", "z"], "begun": "2"}
    assert merged_roles({}, request, NOW)["a"] == {**new, "inputs_hash": "", "begun": "2"}
    request["roles"]["a"]["inputs_hash"] = "1"
    assert merged_roles(old, request, NOW)["a"] == {**old["a"], "tasks": ["y", "z"]}
    empty = {"inputs_hash": "", "tasks": [], "commit": "", "converged_at": iso(NOW)}
    assert merged_roles({}, {"roles": {"a": {}}}, NOW) == {"a": empty}
    assert list(old) == ["a", "b"]


def test_windows_are_by_the_nodes_clock_with_some_tolerance() -> None:
    assert node_windows({"windows": [[10, "20.5"]]}, 1000) == [(5, 25.5)]
    assert node_windows({"windows": [[1000, 1001]], "run": {"now": 1010}}, 1000) == [(985, 996)]
    assert node_windows({}, 1000) == []
    with pytest.raises(ValueError, match="could not convert"):
        node_windows({"windows": [["x", 1]]}, 1000)


@pytest.mark.parametrize(("now", "begin"), [("900", 5), (400, 5), (399, 6), (-9000, 9405)])
def test_a_clock_that_seems_ahead_may_be_a_module_that_began_late(now: Any, begin: float) -> None:
    ((found, end),) = node_windows({"windows": [[10, 20]], "run": {"now": now}}, 1000)
    assert (found, end) == (begin, 1000 - float(now) + 25)


@pytest.mark.parametrize(
    ("seen", "gone"),
    [
        (Unreadable("x"), False),
        ({"state": "absent"}, True),
        ({"loaded": False}, True),
        ({"loaded": True}, False),
        (PRESENT, False),
    ],
)
def test_an_orphan_is_gone_when_nothing_of_it_is_left(seen: Any, gone: bool) -> None:
    assert is_gone(seen) is gone


def kept(resource: str, seen: dict[str, Any], before: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What is recorded of what is seen, when a record of before is there."""
    managed = more.pop("managed", ())
    entry = {"resource": resource, "declared": {}, "changed": False, **more}
    found = observed_entry(entry, seen, {"observed": before}, KEY, NOW, managed)["observed"]
    assert isinstance(found, dict)
    return found


FILE = {"state": "present", "type": "file", "mode": "0644", "sha256": "a", "size": 1}
OTHER = {"state": "present", "type": "file", "mode": "0600", "sha256": "b", "size": 2}


@pytest.mark.parametrize(
    ("resource", "seen", "before", "more", "expected"),
    [
        # packages, lines and what Slurm has are as they are seen
        ("package:a", {"version": ["2"]}, {"version": ["1"]}, {}, {"version": ["2"]}),
        ("line:/a#1", {"lines": ["2"]}, {"lines": ["1"]}, {}, {"lines": ["2"]}),
        ("slurm-qos:a", {"priority": "2"}, {"priority": "1"}, {}, {"priority": "2"}),
        # a run that changed nothing leaves what it does not declare as it was
        ("group:a", {**PRESENT, "gid": 2}, {**PRESENT, "gid": 1}, {}, {**PRESENT, "gid": 1}),
        ("group:a", {**PRESENT, "gid": 2}, {**PRESENT, "gid": 1}, {"declared": {"gid": 2}}, {**PRESENT, "gid": 2}),
        ("group:a", {**PRESENT, "gid": 2}, {**PRESENT, "gid": 1}, {"changed": True}, {**PRESENT, "gid": 2}),
        ("group:a", {**PRESENT, "gid": 2}, PRESENT, {}, {**PRESENT, "gid": 2}),
        ("group:a", PRESENT, {**PRESENT, "gid": 1}, {}, {**PRESENT, "gid": 1}),
        # appeared or gone
        ("group:a", {"state": "absent"}, PRESENT, {}, PRESENT),
        ("group:a", {"state": "absent"}, PRESENT, {"changed": True}, {"state": "absent"}),
        ("group:a", {"state": "absent"}, PRESENT, {"declared": PRESENT}, {"state": "absent"}),
        ("group:a", PRESENT, {"state": "absent"}, {}, {"state": "absent"}),
        ("service:a", {"state": "absent"}, PRESENT, {}, {"state": "absent"}),
        # another type
        ("file:/a", {**FILE, "type": "link"}, FILE, {}, FILE),
        ("file:/a", {**FILE, "type": "link"}, FILE, {"changed": True}, {**FILE, "type": "link"}),
        ("file:/a", {**FILE, "type": "link"}, FILE, {"declared": {"type": "link"}}, {**FILE, "type": "link"}),
        # content of files
        ("file:/a", OTHER, FILE, {}, FILE),
        ("file:/a", OTHER, FILE, {"changed": True}, OTHER),
        ("file:/a", OTHER, FILE, {"declared": {"sha1": "x"}}, {**OTHER, "mode": "0644"}),
        ("file:/a", OTHER, FILE, {"declared": {"mode": "0600"}}, {**FILE, "mode": "0600"}),
        ("file:/a", OTHER, {"state": "present", "type": "file"}, {}, OTHER),
        # what a task does not put right in passing, whether it changed something or not
        *(
            (resource, {**FILE, name: "new"}, {**FILE, name: "old"}, {"changed": changed}, {**FILE, name: "old"})
            for resource, name in (("file:/a", "immutable"), ("service:a", "masked"))
            for changed in (False, True)
        ),
        # what may be missing: that it was missing is kept
        ("sysctl:a", {"value": "1", "saved": "1"}, {"value": "1"}, {}, {"value": "1"}),
        ("mount:/a", {"state": "x", "saved": "1"}, {"state": "x"}, {}, {"state": "x"}),
        ("mount:/a", {"state": "x", "other": "1"}, {"state": "x"}, {}, {"state": "x", "other": "1"}),
        ("repository:/a#b", {**PRESENT, "x": "1"}, PRESENT, {}, PRESENT),
        ("repository:/a#b", {**PRESENT, "x": "keyed 1"}, PRESENT, {}, {**PRESENT, "x": "keyed 1"}),
        ("repository:/a#b", {**PRESENT, "x": "keyed 2"}, {**PRESENT, "x": "keyed 1"}, {}, {**PRESENT, "x": "keyed 1"}),
        # SELinux in force as configured
        ("selinux:mode", {"mode": "a", "live": "a"}, {"mode": "a", "live": "b"}, {}, {"mode": "a", "live": "a"}),
        ("selinux:mode", {"mode": "a", "live": "c"}, {"mode": "a", "live": "b"}, {}, {"mode": "a", "live": "b"}),
    ],
)
def test_what_is_kept_of_before(resource: str, seen: Any, before: Any, more: Any, expected: Any) -> None:
    assert kept(resource, seen, before, **more) == expected


def aged(name: str, seen: Any, before: Any, *, changed: bool = False, managed: tuple[str, ...] = ()) -> Any:
    resource = "file:/a" if name == "acl" else "service:a"
    found = kept(resource, {"state": "x", name: seen}, {"state": "x", name: before}, changed=changed, managed=managed)
    return found.get(name)


def test_an_acl_that_nobody_put_right_stays_what_it_was() -> None:
    assert aged("acl", ["user:a:r--"], []) == []
    assert aged("acl", [], ["user:a:r--"]) == ["user:a:r--"]
    assert aged("acl", [], ["user:a:r--"], changed=True) == []
    assert aged("acl", ["user:a:r--"], ["user:b:r--"], changed=True) == ["user:b:r--"]
    masked = ["mask::rw-", "user:a:r--"]
    assert aged("acl", masked, ["mask::r--", "user:a:r--"]) == masked
    assert aged("acl", None, ["user:a:r--"]) == ["user:a:r--"]


def test_drop_ins_of_the_project_are_as_they_are_seen_and_those_of_others_as_they_were() -> None:
    mine, others = ("file:/b", "file:/d"), ["/a 1", "/c 1", "/b 1"]
    assert aged("drop_ins", ["/b 2", "/a 2"], others, managed=mine) == ["/a 1", "/b 2", "/c 1"]
    assert aged("drop_ins", ["/b 2"], others) == sorted(others)
    assert aged("drop_ins", None, others, managed=mine) == others


def test_a_unit_file_is_another_only_if_the_project_or_a_package_says_so() -> None:
    assert aged("fragment", "/etc/b", "/etc/a") == "/etc/a"
    assert aged("fragment", "/etc/b", "/etc/a", managed=("file:/etc/b",)) == "/etc/b"
    assert aged("fragment", "/etc/b", "/etc/a", managed=("file:/etc/a",)) == "/etc/b"
    assert aged("fragment", "/lib/systemd/system/a", "/usr/lib/systemd/system/a") == "/lib/systemd/system/a"
    assert aged("fragment", "/lib/systemd/system/a", "/etc/a") == "/etc/a"
    assert aged("fragment", "/etc/a", "/lib/systemd/system/a") == "/lib/systemd/system/a"
    assert aged("fragment", None, "/etc/a") == "/etc/a"


def observed(seen: Any, old: Any = None, key: bytes = KEY, **more: Any) -> dict[str, Any]:
    found = observed_entry({"resource": "group:a", "declared": {}, **more}, seen, old, key, NOW)
    assert isinstance(found, dict)
    return found


def test_what_is_seen_is_recorded_without_what_is_beside_it() -> None:
    aside = {"since": 5.9, "content": "x", "near": [], "sha1": "x", "sha1_keyed": "x", "public": True, "plain": "x"}
    assert observed({**PRESENT, "gid": 5, **aside, "unhashed": "why"}, changed=False, unreadable="old") == {
        **{"resource": "group:a", "declared": {}, "observed": {**PRESENT, "gid": 5}, "unhashed": "why"},
        "observed_since": 5,
    }


@pytest.mark.parametrize(
    ("since", "expected"), [(5.9, 5), (NOW + 100, int(NOW)), (0, int(NOW)), (None, int(NOW)), (-5, int(NOW))]
)
def test_content_is_as_old_as_it_says_but_never_of_the_future(since: Any, expected: int) -> None:
    assert observed({**PRESENT, "since": since})["observed_since"] == expected


@pytest.mark.parametrize("name", ["sha256", "keyed", "size", "target", "type", "state", "version", "block"])
def test_content_is_since_when_it_was_last_another(name: str) -> None:
    old = {"observed": {**PRESENT, name: "a", "mode": "1"}, "observed_since": 3}
    same = {**PRESENT, name: "a", "mode": "2", "since": 9}
    assert observed(same, old, resource="package:a")["observed_since"] == 3
    assert observed({**same, name: "b"}, old, resource="package:a")["observed_since"] == 9
    del old["observed_since"]
    assert observed(same, old, resource="package:a")["observed_since"] == 9


def test_what_was_an_orphan_begins_anew() -> None:
    old = {"observed": {**PRESENT, "gid": 1}, "observed_since": 3, "orphaned": {"at": "then"}}
    found = observed({**PRESENT, "gid": 2, "since": 9}, old, changed=False)
    assert (found["observed"], found["observed_since"]) == ({**PRESENT, "gid": 2}, 9)


def test_what_cannot_be_read_keeps_what_was_known() -> None:
    old = {"observed": {**PRESENT, "keyed": "a", "job": "x"}, "observed_since": 3, "key_id": id_of(KEY)}
    found = observed(Unreadable("why"), old, declared={"sha1": "s", "job": "run", "regexp": "^a"})
    assert found == {
        **{"resource": "group:a", "unreadable": "why", "observed": {**PRESENT, "keyed": "a"}, "observed_since": 3},
        "declared": {"sha1_keyed": keyed(KEY, "s"), "job_keyed": keyed(KEY, "run"), "regexp": "^a"},
        "key_id": id_of(KEY),
    }
    assert observed(Unreadable("why"), {**old, "key_id": "other"})["observed"] == PRESENT
    hidden = observed(Unreadable("why"), old, declared={"regexp": "^a"}, secret=True)
    assert hidden["declared"] == {}
    first = observed(Unreadable("why"))
    assert (first["observed"], first["observed_since"]) == ({}, int(NOW))
    assert "key_id" not in first


def test_texts_of_a_secret_and_of_what_others_may_not_read_are_concealed() -> None:
    job = {**PRESENT, "job": "run"}
    hashed = {**PRESENT, "job_keyed": keyed(KEY, "run")}
    for secret in (False, True):
        found = observed({**job, "public": secret}, declared={**job, "regexp": "^a"}, secret=secret)
        assert found["observed"] == hashed
        assert found["declared"] == (hashed if secret else {**hashed, "regexp": "^a"})
        assert found["key_id"] == id_of(KEY)
    found = observed({**job, "public": True}, declared=job)
    assert (found["observed"], found["declared"]) == (job, job)
    assert "key_id" not in found


def test_a_checksum_is_keyed_if_the_file_is_protected() -> None:
    declared = {"sha1": "s"}
    for resource, seen, protected in (
        ("file:/a", {"keyed": "x"}, True),
        ("file:/a", {"sha256": "x"}, False),
        ("group:a", {"keyed": "x"}, False),
    ):
        found = observed(seen, resource=resource, declared=declared)["declared"]
        assert found == ({"sha1_keyed": keyed(KEY, "s")} if protected else declared)
    assert observed({"sha256": "x"}, resource="file:/a", declared=declared, secret=True)["declared"] != declared


def test_hashes_of_another_key_are_not_kept() -> None:
    old = {"observed": {**PRESENT, "type": "file", "keyed": "old", "mode": "0600"}, "key_id": "other"}
    seen = {**PRESENT, "type": "file", "keyed": "new", "mode": "0640"}
    found = observed(seen, old, resource="file:/a", changed=False)
    assert found["observed"] == {**seen, "mode": "0600"}
    old["key_id"] = id_of(KEY)
    assert observed(seen, old, resource="file:/a", changed=False)["observed"] == old["observed"]
    del old["key_id"]
    assert observed(seen, old, resource="file:/a", changed=False)["observed"] == old["observed"]
