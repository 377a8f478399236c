"""What differs, by kind: declared, recorded and seen on one side, the differences on the other."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.hal_node.audit import compare as hal_audit_compare
from ansible.module_utils.hal_node.audit.compare import Now, compare
from ansible.module_utils.hal_node.audit.kinds.mount import FLAGS
from ansible.module_utils.hal_node.audit.kinds.service import monotonic_seconds
from ansible.module_utils.hal_node.expect.values import Unreadable

PRESENT = {"state": "present"}
FILE = {"state": "present", "type": "file"}
NOTHING: list[Any] = []


def differing(resource: str, seen: Any, **more: Any) -> list[tuple[Any, ...]]:
    """Kind, attribute, should, is, and a note if there is one."""
    found = compare({"resource": resource, **more}, seen, Now(1000, {}, {}))
    assert all(one["resource"] == resource for one in found)
    return [
        (one["kind"], one["attribute"], one["should"], one["is"], *([one["note"]] if one["note"] else []))
        for one in found
    ]


@pytest.mark.parametrize(
    ("resource", "declared", "observed", "seen", "expected"),
    [
        # what is there, and what is not
        ("group:a", PRESENT, {}, {"state": "absent"}, [("missing", "state", "present", "absent")]),
        ("group:a", {}, PRESENT, {"state": "absent"}, [("missing", "state", "present", "absent")]),
        ("group:a", {"state": "absent"}, PRESENT, {"state": "absent"}, NOTHING),
        ("group:a", {}, {"state": "absent"}, {"state": "absent"}, NOTHING),
        ("group:a", {"state": "absent"}, {}, PRESENT, [("present", "state", "absent", "present")]),
        ("group:a", {}, {"state": "absent"}, PRESENT, [("present", "state", "absent", "present")]),
        ("group:a", PRESENT, {"state": "absent"}, {**PRESENT, "gid": 5}, NOTHING),
        # attributes: as declared, else as recorded
        ("group:a", {**PRESENT, "gid": "5"}, {**PRESENT, "gid": 5}, {**PRESENT, "gid": 5}, NOTHING),
        ("group:a", {**PRESENT, "gid": 6}, {}, {**PRESENT, "gid": 5}, [("changed", "gid", 6, 5)]),
        ("group:a", PRESENT, {**PRESENT, "gid": 6}, {**PRESENT, "gid": 5}, [("changed", "gid", 6, 5)]),
        ("group:a", PRESENT, {}, {**PRESENT, "gid": 5}, NOTHING),
        ("group:a", {**PRESENT, "gid": 5}, {**PRESENT, "gid": 4}, {**PRESENT, "gid": 5}, [("changed", "gid", 4, 5)]),
        ("group:a", {**PRESENT, "other": 5}, {}, PRESENT, NOTHING),
        ("group:a", PRESENT, {**PRESENT, "gid": 5}, PRESENT, [("changed", "gid", 5, None)]),
        ("group:a", PRESENT, {**PRESENT, "system": True}, {**PRESENT, "system": 1}, [("changed", "system", True, 1)]),
        # users
        ("user:a", {**PRESENT, "groups": ["b", "a"]}, {}, {**PRESENT, "groups": ["a", "b"]}, NOTHING),
        (
            "user:a",
            {**PRESENT, "groups": ["a"]},
            {},
            {**PRESENT, "groups": ["a", "b"]},
            [("changed", "groups", ["a"], ["a", "b"])],
        ),
        ("user:a", PRESENT, {**PRESENT, "groups": ["a"]}, {**PRESENT, "groups": ["b"]}, NOTHING),
        ("user:a", {**PRESENT, "group": "100"}, {**PRESENT, "group": "x"}, {**PRESENT, "group": "x"}, NOTHING),
        (
            "user:a",
            {**PRESENT, "group": "y"},
            {**PRESENT, "group": "x"},
            {**PRESENT, "group": "x"},
            [("owner", "group", "y", "x")],
        ),
        # cron, packages, repositories
        ("cron:a#b", {**PRESENT, "job": " x "}, {}, {**PRESENT, "job": "x"}, NOTHING),
        ("cron:a#b", {**PRESENT, "job": "x"}, {}, {**PRESENT, "job": "y"}, [("changed", "job", "x", "y")]),
        (
            "package:a",
            {**PRESENT, "version": ["1-1.x", "2-1.x"]},
            {},
            {**PRESENT, "version": ["1-1.x"]},
            [("version", "version", ["1-1.x", "2-1.x"], ["1-1.x"])],
        ),
        ("package:a", {**PRESENT, "version": ["1"]}, {}, {**PRESENT, "version": ["1-1.x", "2-1.x"]}, NOTHING),
        ("repository:/r#a", {**PRESENT, "enabled": "yes"}, {}, {**PRESENT, "enabled": "1"}, NOTHING),
        ("repository:/r#a", {**PRESENT, "exclude": ["a", "b"]}, {}, {**PRESENT, "exclude": "a,b"}, NOTHING),
        ("repository:/r#a", {**PRESENT, "cost": 5}, {}, {**PRESENT, "cost": "5"}, NOTHING),
        ("repository:/r#a", {**PRESENT, "cost": 5}, {}, PRESENT, [("changed", "cost", 5, None)]),
        (
            "repository:/r#a",
            {**PRESENT, "enabled": "0"},
            {},
            {**PRESENT, "enabled": "1"},
            [("enabled", "enabled", "0", "1")],
        ),
        # kernel
        ("sysctl:a", {"state": "absent"}, {}, {"state": "present", "value": "1"}, NOTHING),
        (
            "sysctl:a",
            {"state": "absent"},
            {},
            {**PRESENT, "value": "1", "saved": "1"},
            [("present", "saved", None, "1")],
        ),
        ("sysctl:a", {"value": "1"}, {}, PRESENT, [("live", "value", "1", None)]),
        ("sysctl:a", {"saved": "1"}, {}, {**PRESENT, "value": "2"}, [("saved", "saved", "1", None)]),
        ("sysctl:a", {}, {**PRESENT, "value": "1"}, {**PRESENT, "value": "2"}, NOTHING),
        (
            "sysctl:a",
            {"value": "1"},
            {**PRESENT, "value": "1", "file": "/a"},
            {**PRESENT, "value": "1", "file": "/b"},
            NOTHING,
        ),
        ("kernel-module:a", {"loaded": True}, {}, {"loaded": False}, [("live", "loaded", True, False)]),
        # selinux
        ("selinux:mode", {"mode": "enforcing"}, {}, {"mode": "enforcing", "live": "enforcing"}, NOTHING),
        ("selinux:mode", {"mode": "enforcing"}, {}, {"live": "enforcing"}, [("mode", "mode", "enforcing", None)]),
        (
            "selinux:mode",
            {"mode": "enforcing"},
            {},
            {"mode": "enforcing", "live": "disabled"},
            [("not-effective", "live", "enforcing", "disabled", "configured; it takes a reboot")],
        ),
        (
            "selinux:mode",
            {"mode": "enforcing"},
            {"mode": "enforcing", "live": "disabled"},
            {"mode": "enforcing", "live": "disabled"},
            [("not-effective", "live", "enforcing", "disabled", "configured; it takes a reboot")],
        ),
        (
            "selinux:mode",
            {"mode": "enforcing"},
            {"mode": "enforcing", "live": "enforcing"},
            {"mode": "enforcing", "live": "permissive"},
            [("live", "live", "enforcing", "permissive")],
        ),
        (
            "selinux:mode",
            {"mode": "enforcing"},
            {},
            {"mode": "disabled", "live": "enforcing"},
            [("mode", "mode", "enforcing", "disabled")],
        ),
    ],
)
def test_attributes(resource: str, declared: Any, observed: Any, seen: Any, expected: list[Any]) -> None:
    assert differing(resource, seen, declared=declared, observed=observed) == expected


LIVE = {"state": "mounted", "source": "s", "fstype": "xfs", "options": ["rw", "relatime"]}
BOTH = {**LIVE, "saved": "rw s xfs"}


@pytest.mark.parametrize(
    ("declared", "observed", "seen", "expected"),
    [
        ({"state": "absent"}, {}, {"state": "absent"}, NOTHING),
        ({"state": "absent"}, {}, {"state": "unmounted", "saved": "x"}, [("present", "state", "absent", "unmounted")]),
        ({"state": "absent"}, {}, LIVE, [("present", "state", "absent", "mounted")]),
        ({"state": "mounted"}, {}, LIVE, NOTHING),
        ({"state": "mounted"}, {}, {"state": "absent"}, [("missing", "state", "mounted", "absent")]),
        ({"saved": "rw s xfs"}, {}, {"state": "unmounted", "saved": "rw s xfs"}, NOTHING),
        ({"saved": "rw s xfs"}, {}, LIVE, [("saved", "saved", "rw s xfs", None)]),
        # who declares nothing of fstab leaves it alone; who has seen it there, not
        ({"state": "mounted"}, {}, BOTH, NOTHING),
        (
            {"state": "mounted"},
            {**LIVE, "saved": "rw s ext4"},
            BOTH,
            [("saved", "saved", "rw s ext4", "rw s xfs")],
        ),
        # what is mounted is as it was recorded, if it was mounted then
        ({"state": "mounted"}, {**LIVE, "fstype": "ext4"}, LIVE, [("changed", "fstype", "ext4", "xfs")]),
        ({"state": "mounted"}, {"state": "unmounted", "fstype": "ext4"}, LIVE, NOTHING),
        ({"saved": "rw s xfs"}, {**BOTH, "fstype": "ext4"}, BOTH, NOTHING),
        # flags of the declaration that are not in force
        (
            {"state": "mounted", "saved": "nosuid,rw,size=1 s xfs"},
            {},
            {**LIVE, "saved": "nosuid,rw,size=1 s xfs"},
            [("options", "options", ["nosuid"], ["rw", "relatime"], "declared, but not in force")],
        ),
        (
            {"state": "mounted", "options": ["suid", "ro"]},
            {},
            {**LIVE, "options": ["rw", "nosuid"]},
            [("options", "options", ["ro", "suid"], ["rw", "nosuid"], "declared, but not in force")],
        ),
        ({"state": "mounted", "options": []}, {}, LIVE, NOTHING),
        (
            {"state": "mounted", "options": ["noexec"]},
            {**LIVE, "options": ["rw", "noexec"]},
            LIVE,
            [("options", "options", ["rw", "noexec"], ["rw", "relatime"])],
        ),
        ({"options": ["noexec"]}, {}, LIVE, NOTHING),
    ],
)
def test_mounts(declared: Any, observed: Any, seen: Any, expected: list[Any]) -> None:
    assert differing("mount:/a", seen, declared=declared, observed=observed) == expected


@pytest.mark.parametrize("flag", sorted(FLAGS))
def test_a_flag_that_is_declared_off_must_not_be_on(flag: str) -> None:
    contrary = FLAGS[flag]
    one = {"state": "mounted", "options": [contrary]}
    assert differing("mount:/a", {**LIVE, "options": [flag]}, declared=one)[0][2] == [contrary]
    assert differing("mount:/a", {**LIVE, "options": ["x"]}, declared=one) == []


UNIT = {"state": "started", "enabled": True, "masked": False, "fragment": "/a", "drop_ins": []}


@pytest.mark.parametrize(
    ("declared", "observed", "seen", "expected"),
    [
        ({"state": "started"}, {}, {"state": "absent"}, [("missing", "state", "present", "absent")]),
        ({"state": "started"}, {"state": "absent"}, UNIT, NOTHING),
        ({"state": "absent"}, {}, UNIT, NOTHING),
        ({}, {}, {"state": "absent"}, [("missing", "state", "present", "absent")]),
        ({"state": "stopped"}, {}, UNIT, [("state", "state", "stopped", "started")]),
        ({"state": "started"}, {}, {**UNIT, "state": "stopped"}, [("state", "state", "started", "stopped")]),
        ({"state": "reloaded"}, {}, {**UNIT, "state": "stopped"}, NOTHING),
        ({"enabled": True}, {}, {**UNIT, "enabled": "static"}, NOTHING),
        ({"enabled": True}, {}, {**UNIT, "enabled": False}, [("enabled", "enabled", True, False)]),
        ({"state": "started"}, UNIT, {**UNIT, "enabled": False}, NOTHING),
        ({}, UNIT, {**UNIT, "fragment": "/b"}, [("changed", "fragment", "/a", "/b")]),
        ({}, UNIT, {**UNIT, "drop_ins": ["x"]}, [("drop_ins", "drop_ins", [], ["x"])]),
        (
            {"enabled": True},
            UNIT,
            {**UNIT, "masked": True, "enabled": False, "fragment": ""},
            [("masked", "masked", False, True)],
        ),
        ({"masked": True}, {}, UNIT, [("masked", "masked", True, False)]),
        ({"masked": True}, {}, {**UNIT, "masked": True}, NOTHING),
    ],
)
def test_services(declared: Any, observed: Any, seen: Any, expected: list[Any]) -> None:
    assert differing("service:a.service", seen, declared=declared, observed=observed) == expected


KNOWN = {**FILE, "mode": "0644", "owner": "root", "sha256": "a", "size": 1, "acl": []}


@pytest.mark.parametrize(
    ("declared", "observed", "seen", "expected"),
    [
        ({**FILE}, {}, {**KNOWN, "type": "link"}, [("type", "type", "file", "link")]),
        (PRESENT, FILE, {**KNOWN, "type": "link"}, [("type", "type", "file", "link")]),
        (FILE, {**FILE, "type": "link"}, KNOWN, [("type", "type", "link", "file")]),
        (PRESENT, {}, KNOWN, NOTHING),
        (PRESENT, KNOWN, KNOWN, NOTHING),
        (PRESENT, KNOWN, {**KNOWN, "sha256": "b", "size": 2}, [("changed", "sha256", "a", "b")]),
        ({**PRESENT, "sha256": "a"}, {}, {**KNOWN, "sha256": "b"}, [("changed", "sha256", "a", "b")]),
        (PRESENT, {**KNOWN, "sha256": "a"}, {**FILE, "size": 2, "mode": "0644", "owner": "root"},
         [("changed", "size", 1, 2)]),
        ({**PRESENT, "content": False}, KNOWN, {**KNOWN, "sha256": "b"}, NOTHING),
        ({**PRESENT, "content": False}, KNOWN, {**KNOWN, "mode": "0600"}, [("mode", "mode", "0644", "0600")]),
        (
            {**PRESENT, "sha1": "x"},
            {},
            {**KNOWN, "sha1": "y"},
            [("changed", "sha1", "x", "y", "not what its task wrote")],
        ),
        (
            {**PRESENT, "sha1_keyed": "x"},
            {},
            {**KNOWN, "sha1_keyed": "y"},
            [("changed", "keyed", "(secret)", "(secret)", "not what its task wrote")],
        ),
        ({**PRESENT, "sha1": "x"}, {}, {**KNOWN, "sha1": "x"}, NOTHING),
        ({**PRESENT, "sha1": "x"}, {}, KNOWN, NOTHING),
        (
            PRESENT,
            KNOWN,
            {**KNOWN, "sha256": "a", "unhashed": "too large"},
            [("unreadable", "content", None, None, "too large")],
        ),
        # ACLs: only if there was getfacl both times; then the group's digit of a mode is the mask
        (PRESENT, {**KNOWN, "acl": ["x"]}, {name: value for name, value in KNOWN.items() if name != "acl"}, NOTHING),
        (PRESENT, {**KNOWN, "acl": ["x"]}, {**KNOWN, "mode": "0674"}, [("acl", "acl", ["x"], [])]),
        (
            PRESENT,
            {**KNOWN, "acl": ["x"]},
            {**KNOWN, "mode": "0645"},
            [("acl", "acl", ["x"], []), ("mode", "mode", "0644", "0645")],
        ),
        (PRESENT, KNOWN, {**KNOWN, "mode": "0674"}, [("mode", "mode", "0644", "0674")]),
        (
            PRESENT,
            {**KNOWN, "acl": ["x"], "mode": None},
            {**KNOWN, "mode": "0674"},
            [("acl", "acl", ["x"], []), ("mode", "mode", None, "0674")],
        ),
        (PRESENT, KNOWN, {**KNOWN, "owner": "bob"}, [("owner", "owner", "root", "bob")]),
        ({**PRESENT, "group": "a"}, {}, {**KNOWN, "group": "b"}, [("owner", "group", "a", "b")]),
    ],
)  # fmt: skip
def test_files(declared: Any, observed: Any, seen: Any, expected: list[Any]) -> None:
    assert differing("file:/a", seen, declared=declared, observed=observed) == expected


@pytest.mark.parametrize(
    ("declared", "observed", "seen", "expected"),
    [
        (
            {"regexp": "("},
            {},
            {"state": "unknown"},
            [("unreadable", "regexp", None, None, "its pattern is not a regular expression")],
        ),
        ({"lines": ["a"]}, {}, PRESENT, NOTHING),
        ({"state": "absent"}, {}, {"state": "absent"}, NOTHING),
        ({}, {"state": "absent"}, {"state": "absent"}, NOTHING),
        ({}, {}, {"state": "absent"}, [("missing", "state", "present", None)]),
        (
            {"lines": ["a", "b ", "c"]},
            {},
            {"state": "absent", "lines": ["b"], "near": ["aa"]},
            [("missing", "lines", ["a", "c"], ["aa"])],
        ),
        ({"block": "x"}, {}, {"state": "absent", "near": []}, [("missing", "block", "x", None)]),
        (
            {"state": "absent", "regexp": "^a"},
            {},
            {**PRESENT, "near": ["ab"]},
            [("present", "regexp", "no line as ^a", ["ab"])],
        ),
        ({"state": "absent", "lines": ["a"]}, {}, {**PRESENT, "lines": ["a"]}, [("present", "lines", "absent", ["a"])]),
        ({"state": "absent"}, {}, PRESENT, [("present", "state", "absent", "present")]),
    ],
)
def test_lines(declared: Any, observed: Any, seen: Any, expected: list[Any]) -> None:
    assert differing("line:/a#1", seen, declared=declared, observed=observed) == expected


def test_a_difference_has_the_owner_of_its_entry() -> None:
    owner = {"role": "r", "task": "t", "source": "s", "commit": "c", "converged_at": "when", "units": ["u"]}
    (found,) = compare({"resource": "group:a", "declared": PRESENT, **owner}, {"state": "absent"}, Now(0, {}, {}))
    assert found == {
        **{"resource": "group:a", "kind": "missing", "attribute": "state", "should": "present", "is": "absent"},
        **{"note": "", **owner},
    }
    (found,) = compare({"resource": "group:a"}, {"state": "absent"}, Now(0, {}, {}))
    assert {name: found[name] for name in owner} == {**dict.fromkeys(owner, ""), "units": []}


def test_what_could_not_be_read_says_why_and_of_a_secret_no_detail() -> None:
    seen = Unreadable("reason", "detail")
    assert differing("group:a", seen, declared=PRESENT) == [("unreadable", "", None, None, "reason: detail")]
    assert differing("group:a", seen, secret=True) == [("unreadable", "", None, None, "reason")]
    assert differing("group:a", Unreadable("reason")) == [("unreadable", "", None, None, "reason")]
    note = "it could not be read when it was recorded: why"
    assert differing("group:a", PRESENT, unreadable="why") == [("unreadable", "", None, None, note)]


def test_an_orphan_is_told_while_there_is_something_left() -> None:
    gone = {"reason": "its task is gone", "at": "then", "commit": "abc"}
    told = [("orphaned", "", None, None, "its task is gone (since then, commit abc)")]
    assert differing("group:a", PRESENT, declared=PRESENT, orphaned=gone) == told
    assert differing("group:a", {"state": "absent"}, declared=PRESENT, orphaned=gone) == []
    assert differing("kernel-module:a", {"loaded": False}, orphaned=gone) == []
    assert differing("kernel-module:a", {"loaded": True}, orphaned=gone) == told
    del gone["commit"]
    assert differing("group:a", PRESENT, orphaned=gone) == [(*told[0][:4], "its task is gone (since then)")]


@pytest.mark.parametrize("attribute", sorted(hal_audit_compare.OPEN))
def test_of_a_secret_only_what_everybody_sees_is_shown(attribute: str) -> None:
    one = {"resource": "database:a", "secret": True, "declared": PRESENT}
    seen = {**PRESENT, attribute: "new", "other": "new"}
    found = compare({**one, "observed": {**PRESENT, attribute: "old", "other": "old"}}, seen, Now(0, {}, {}))
    shown = {each["attribute"]: (each["should"], each["is"]) for each in found}
    assert shown["other"] == ("(secret)", "(secret)")
    assert shown.get(attribute, ("old", "new")) == ("old", "new")
    (found,) = compare({**one, "observed": {**PRESENT, "x": "old"}}, PRESENT, Now(0, {}, {}))
    assert (found["should"], found["is"]) == ("(secret)", None)


def test_a_keyed_text_is_never_shown_and_what_others_may_not_read_neither() -> None:
    hidden = [("changed", "password", "(secret)", "(secret)")]
    observed, seen = {**PRESENT, "password": "keyed a"}, {**PRESENT, "password": "keyed b"}
    assert differing("repository:/a#b", seen, observed=observed) == hidden
    job = {"declared": {**PRESENT, "job": "x"}, "observed": {}}
    assert differing("cron:a#b", {**PRESENT, "job": "y", "public": False}, **job) == [
        ("changed", "job", "(secret)", "(secret)")
    ]
    assert differing("cron:a#b", {**PRESENT, "job": "y", "public": True}, **job) == [("changed", "job", "x", "y")]


@pytest.mark.parametrize(
    ("key_id", "words"),
    [("new", "its hash was made with another key"), ("", "the key of its hash is lost"), ("old", ""), (None, "")],
)
def test_hashes_of_another_key_tell_nothing(key_id: str | None, words: str) -> None:
    now = Now(0, {}, {}, key_id)
    one = {"resource": "file:/a", "key_id": "old", "declared": FILE, "observed": {**FILE, "keyed": "a", "mode": "0600"}}
    seen = {**FILE, "keyed": "b", "mode": "0640"}
    found = [(each["kind"], each["attribute"], each["note"]) for each in compare(one, seen, now)]
    mode = ("mode", "mode", "")
    assert found == ([mode, ("unreadable", "keyed", words)] if words else [("changed", "keyed", ""), mode])
    assert [each["kind"] for each in compare(one, {"state": "absent"}, now)] == ["missing"]
    line = {"resource": "line:/a#1", "key_id": "old", "declared": {"lines_keyed": ["a"]}, "observed": {}}
    found = [(each["kind"], each["attribute"], each["note"]) for each in compare(line, {"state": "absent"}, now)]
    assert found == [("unreadable", "state", words) if words else ("missing", "state", "")]


def test_without_a_keyed_hash_no_key_matters() -> None:
    one = {"resource": "file:/a", "declared": FILE, "observed": {**FILE, "sha256": "a"}}
    assert compare(one, {**FILE, "sha256": "a"}, Now(0, {}, {}, "new")) == []


def test_a_unit_runs_with_what_was_there_before_only_if_it_is_newer_by_more_than_a_second() -> None:
    def found(since: float | None, *, handled: int = 0, **more: Any) -> list[Any]:
        started = monotonic_seconds() - 100
        state = {"ActiveState": "active", "ExecMainStartTimestampMonotonic": str(int(started * 1e6))}
        one = {"resource": "group:a", "units": ["u", "other"], "observed": PRESENT, "observed_since": since, **more}
        now = Now(10000, {"u": state, "other": Unreadable("x")}, {"u": handled})
        return [(each["kind"], each["attribute"], each["note"]) for each in compare(one, PRESENT, now)]

    stale = [("not-effective", "units", "u runs with what was there before")]
    assert found(9950) == stale
    assert found(9902) == stale
    assert found(9900.5) == []
    assert found(9950, handled=9949) == []
    assert found(9950, handled=9948) == stale
    assert found(None) == []
    assert found(9950, observed={}) == []
    assert found(9950, units=[]) == []
    assert found(9950, observed={**PRESENT, "gid": 5}) == [("changed", "gid", "")]
    assert found(9950, declared={"state": "absent"}) == [("present", "state", "")]
