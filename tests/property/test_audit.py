"""Whatever a run did and whatever was changed: merging loses nothing, comparing finds everything."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.alike import alike

alike("hal_node.audit.compare", "hal_node.audit.merge")
alike("hal_node.audit.record", only=["to_bytes", "digest", "pack", "unpack", "judge", "entry_wrong"])

from ansible.module_utils.hal_node.audit.compare import Now, compare  # noqa: E402  found through the lines above
from ansible.module_utils.hal_node.audit.merge import GONE, RELEASED, merge, observed_entry, task_id  # noqa: E402
from ansible.module_utils.hal_node.audit.record import RecordError, judge, pack, to_bytes, unpack  # noqa: E402

NOW = 1_795_233_660
NOTHING = Now(NOW, {}, {})
ROLES = ("time", "ssh", "slurm")
TASKS = ("Write", "Install", "Start")


def task_of(role: str, task: str) -> str:
    return f"{role}|roles/{role}/tasks/main.yml|{task}"


@st.composite
def entries(draw: st.DrawFn, observed: bool) -> list[dict[str, Any]]:
    """Entries of a record (observed) or of a run."""
    found = []
    for name in draw(st.lists(st.sampled_from([f"file:/etc/{i}" for i in range(8)]), unique=observed, max_size=8)):
        role, task = draw(st.sampled_from(ROLES)), draw(st.sampled_from(TASKS))
        entry: dict[str, Any] = {
            "resource": name,
            "declared": draw(st.sampled_from([{}, {"state": "present"}, {"mode": "0644"}, {"state": "absent"}])),
            "role": role,
            "task": task_of(role, task),
            "source": f"roles/{role}/tasks/main.yml:1",
            "secret": draw(st.booleans()),
            "units": draw(st.lists(st.sampled_from(["a.service", "b.service"]), unique=True)),
            "inputs_hash": draw(st.sampled_from(["1", "2"])),
        }
        if observed:
            entry |= {"observed": {"mode": "0600"}, "observed_since": 1, "commit": "old", "converged_at": "then"}
        found.append(entry)
    return found


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """What a run tells, whether it ended well or failed half-way."""
    run = draw(entries(observed=False))
    every = [task_of(role, task) for role in ROLES for task in TASKS]
    loaded = draw(st.lists(st.sampled_from(ROLES), unique=True))
    return {
        "run": {"commit": "new"},
        "entries": run,
        "roles": {
            role: {"inputs_hash": "3", "tasks": [task_of(role, task) for task in draw(st.sets(st.sampled_from(TASKS)))]}
            for role in loaded
        },
        "reached": draw(st.lists(st.sampled_from(every), unique=True)),
        "skipped": draw(st.lists(st.sampled_from(every), unique=True)),
    }


def merged(old: list[dict[str, Any]], request: dict[str, Any], now: int = NOW) -> dict[str, dict[str, Any]]:
    fresh, stay = merge(old, request, now)
    assert not set(fresh) & set(stay)
    return {**fresh, **stay}


@given(entries(observed=True), requests())
def test_merging_never_loses_an_entry(old: list[dict[str, Any]], request: dict[str, Any]) -> None:
    before = copy.deepcopy((old, request))
    after = merged(old, request)
    assert set(after) == {one["resource"] for one in old} | {one["resource"] for one in request["entries"]}
    assert (old, request) == before


@given(entries(observed=True), requests())
def test_what_a_run_did_not_reach_keeps_its_older_truth(old: list[dict[str, Any]], request: dict[str, Any]) -> None:
    request["reached"] = []
    request["roles"] = {}
    after = merged(old, request)
    mentioned = {one["resource"] for one in request["entries"]}
    for one in old:
        if one["resource"] not in mentioned:
            assert after[one["resource"]] == one


@given(entries(observed=True), requests())
def test_exactly_what_lost_its_task_is_orphaned(old: list[dict[str, Any]], request: dict[str, Any]) -> None:
    after = merged(old, request)
    mentioned = {one["resource"] for one in request["entries"]}
    for one in old:
        if one["resource"] in mentioned:
            assert "orphaned" not in after[one["resource"]]
            continue
        role = request["roles"].get(one["role"])
        gone = role is not None and task_id(one) not in role["tasks"]
        released = one["task"] in request["reached"] and one["task"] not in request["skipped"]
        orphaned = after[one["resource"]].get("orphaned")
        assert (orphaned or {}).get("reason") == (GONE if gone else RELEASED if released else None)
        assert {key: value for key, value in after[one["resource"]].items() if key != "orphaned"} == one


@given(entries(observed=True), requests())
def test_merging_again_changes_nothing(old: list[dict[str, Any]], request: dict[str, Any]) -> None:
    once = merged(old, request)
    again = merged(list(once.values()), request)
    assert again == once
    later = merged(list(once.values()), request, NOW + 60)
    assert {name: one.get("orphaned") for name, one in later.items()} == {
        name: one.get("orphaned") for name, one in once.items()
    }


@given(requests())
def test_the_last_owner_wins_and_what_several_declare_adds_up(request: dict[str, Any]) -> None:
    after = merged([], request)
    for resource, one in after.items():
        mine = [entry for entry in request["entries"] if entry["resource"] == resource]
        assert one["task"] == mine[-1]["task"]
        assert set(one["units"]) == {unit for entry in mine for unit in entry["units"]}
        assert one["secret"] == any(entry["secret"] for entry in mine)
        assert one["declared"].items() >= mine[-1]["declared"].items()


TEXT = st.text("abcdef019", min_size=1, max_size=6)
LISTS = st.lists(TEXT, max_size=3, unique=True).map(sorted)


def mapping(**attributes: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(attributes)


COMMON: dict[str, Any] = {"state": st.just("present"), "owner": TEXT, "group": TEXT}
OBSERVED: dict[str, tuple[str, st.SearchStrategy[dict[str, Any]], set[str]]] = {
    "file": (
        "file:/etc/x",
        mapping(
            **COMMON,
            type=st.just("file"),
            mode=st.sampled_from(["0644", "0600"]),
            sha256=TEXT,
            size=st.integers(0, 9),
            acl=LISTS,
            immutable=st.booleans(),
        ),
        set(),
    ),
    "secret file": (
        "file:/etc/x",
        mapping(**COMMON, type=st.just("file"), mode=st.just("0600"), keyed=TEXT, size=st.integers(0, 9)),
        set(),
    ),
    "link": ("file:/etc/x", mapping(**COMMON, type=st.just("link"), target=TEXT), set()),
    "directory": (
        "file:/etc/x",
        mapping(**COMMON, type=st.just("directory"), mode=st.just("0755"), acl=LISTS, immutable=st.booleans()),
        set(),
    ),
    "package": ("package:x", mapping(state=st.just("present"), version=LISTS), set()),
    "service": (
        "service:x.service",
        mapping(
            state=st.sampled_from(["started", "stopped"]),
            enabled=st.booleans(),
            masked=st.just(False),
            drop_ins=LISTS,
            fragment=TEXT,
        ),
        {"state", "enabled"},
    ),
    "sysctl": (
        "sysctl:x",
        mapping(state=st.just("present"), value=TEXT, saved=TEXT, file=st.just("/etc/sysctl.conf")),
        {"value"},
    ),
    "mount": (
        "mount:/x",
        mapping(state=st.just("mounted"), source=TEXT, fstype=TEXT, options=LISTS, saved=TEXT),
        {"state"},
    ),
    "user": (
        "user:x",
        mapping(state=st.just("present"), uid=st.integers(0, 9), group=TEXT, home=TEXT, shell=TEXT, groups=LISTS),
        {"groups"},
    ),
    "group": ("group:x", mapping(state=st.just("present"), gid=st.integers(0, 9)), set()),
    "cron": ("cron:root#x", mapping(state=st.just("present"), job=TEXT, schedule=TEXT), set()),
    "kernel module": ("kernel-module:x", mapping(loaded=st.booleans()), set()),
    "repository": ("repository:/x#x", mapping(state=st.just("present"), name=TEXT, gpgcheck=TEXT), set()),
    "rpm key": ("rpm-key:x", mapping(state=st.just("present")), set()),
    "host name": ("hostname:static", mapping(name=TEXT), set()),
    "selinux": ("selinux:mode", mapping(mode=st.just("enforcing"), live=st.just("enforcing")), set()),
    "database": ("database:x", mapping(state=st.just("present")), set()),
    "line": (
        "line:/etc/x#0",
        mapping(state=st.just("present"), lines=st.just(["a", "b"])),
        {"state", "lines"},
    ),
    "slurm": (
        "slurm-qos:x",
        mapping(state=st.just("present"), priority=st.sampled_from(["1", "2"]), description=TEXT),
        {"priority", "description"},
    ),
}
# What follows from the others, or is no statement of its own.
NOT_COMPARED = {"sysctl": {"file", "state"}, "line": {"lines"}}
GONE_STATE = {"mount": "absent"}


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return [*value, "zz"]
    return f"{value}7"


@st.composite
def recorded(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    resource, strategy, declared = OBSERVED[kind]
    observed = draw(strategy)
    return {
        "resource": resource,
        "declared": {name: observed[name] for name in sorted(declared)},
        "observed": observed,
        "observed_since": 1,
        "role": "time",
        "task": task_of("time", "Write"),
        "source": "roles/time/tasks/main.yml:1",
        "secret": draw(st.booleans()) and kind != "line",
        "units": [],
    }


@pytest.mark.parametrize("kind", OBSERVED)
@settings(max_examples=40)
@given(st.data())
def test_unchanged_is_clean_and_any_mutation_is_found(kind: str, data: st.DataObject) -> None:
    entry = data.draw(recorded(kind))
    seen = copy.deepcopy(entry["observed"])
    assert compare(entry, seen, NOTHING) == []
    for name, value in sorted(entry["observed"].items()):
        if name in NOT_COMPARED.get(kind, ()):
            continue
        mutated = copy.deepcopy(seen)
        mutated[name] = "absent" if name == "state" and value in ("present", "mounted") else other(value)
        if name == "state" and value in ("started", "stopped"):
            mutated[name] = "stopped" if value == "started" else "started"
        found = compare(entry, mutated, NOTHING)
        assert len(found) == 1, (name, found)
        assert found[0]["resource"] == entry["resource"]
        assert found[0]["task"] == entry["task"]
        assert name == "state" or found[0]["attribute"] == name
        if entry["secret"]:
            assert found[0]["is"] in ("(secret)", None) or found[0]["attribute"] in (
                *("state", "type", "mode", "owner", "group", "target"),
                *("enabled", "masked", "immutable", "acl"),
            )
        json.dumps(found)


@pytest.mark.parametrize("kind", OBSERVED)
@settings(max_examples=15)
@given(st.data())
def test_an_attribute_that_went_away_is_found(kind: str, data: st.DataObject) -> None:
    entry = data.draw(recorded(kind))
    for name in sorted(set(entry["observed"]) - {"state", "acl", "live", *NOT_COMPARED.get(kind, ())}):
        seen = {key: value for key, value in entry["observed"].items() if key != name}
        if name in ("sha256", "keyed"):
            seen["unhashed"] = "too large"
        assert len(compare(entry, seen, NOTHING)) == 1, name


def resealed(old: dict[str, Any], seen: dict[str, Any], changed: bool) -> dict[str, Any]:
    """What the record has of an entry after another run, as hal_record does it."""
    run = {name: value for name, value in old.items() if name not in ("observed", "observed_since")}
    fresh, _stay = merge([old], {"entries": [{**run, "changed": changed}]}, NOW)
    entry: dict[str, Any] = observed_entry(fresh[old["resource"]], copy.deepcopy(seen), old, b"k" * 32, NOW)
    return entry


@pytest.mark.parametrize("kind", [kind for kind in OBSERVED if kind not in ("package", "line", "slurm")])
@settings(max_examples=25)
@given(st.data())
def test_a_run_that_did_not_repair_a_drift_does_not_hide_it(kind: str, data: st.DataObject) -> None:
    entry = data.draw(recorded(kind)) | {"secret": False}
    seen = entry["observed"]
    for changed in (False, True):
        assert compare(resealed(entry, seen, changed), seen, NOTHING) == []
    for name, value in sorted(seen.items()):
        if name in ("state", *entry["declared"], *NOT_COMPARED.get(kind, ()), "job"):
            continue
        drifted = {**seen, name: other(value)}
        assert compare(entry, drifted, NOTHING)
        once = resealed(entry, drifted, changed=False)
        again = resealed(once, drifted, changed=False)
        for one in (once, again):
            assert compare(one, drifted, NOTHING), name
            assert compare(one, seen, NOTHING) == [], name
        taken = resealed(once, drifted, changed=True)
        passed_by = ("immutable", "drop_ins", "masked") + (("acl",) if drifted.get("acl") else ())
        if kind != "selinux":  # what is configured and not in force is said in any case
            assert bool(compare(taken, drifted, NOTHING)) == (name in passed_by), name


@given(entries(observed=True), st.integers(0, 400), st.integers(0, 255))
def test_a_damaged_record_is_judged_never_an_error(old: list[dict[str, Any]], where: int, byte: int) -> None:
    record = {
        "format": 1,
        "node": "hal05",
        "machine_id": "0123",
        "serial": 1,
        "sealed_at": "2026-11-21T04:00:00Z",
        "run": "r",
        "commit": "",
        "packages": {},
        "effective": {},
        "roles": {},
        "entries": old,
    }
    content = to_bytes(record)
    assert judge(unpack(pack(content)), "hal05", "0123") == record
    where %= len(content)
    for damaged in (content[:where], content[:where] + bytes([byte]) + content[where + 1 :]):
        assert "\n" not in verdict(damaged)


def verdict(content: bytes) -> str:
    """What is said of a record; any exception but a RecordError is a fault."""
    try:
        judge(content, "hal05", "0123")
    except RecordError as error:
        return f"{error.status}: {error.reason}"
    return "ok"
