"""Records and codes: what was confirmed is what is read again, and a code is for that alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hal_cluster.reimage.errors import ReimageError
from hal_cluster.reimage.record import Drained, Image, Plan, Record, Run, State, Step, code_of, moment, record_of, stamp
from tests.unit.hal_cluster.reimage.fakes import RUN, plan

NOW = 1_795_370_400.0
LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"

texts = st.text(max_size=12)
images = st.builds(Image, texts, texts, texts, texts)
plans = st.builds(Plan, texts, texts, texts, images, st.lists(texts, max_size=3).map(tuple), texts)
runs = st.builds(
    Run, texts, texts, texts, st.booleans(), st.sampled_from(["RESUME", "DOWN"]), st.lists(texts).map(tuple), texts
)
seconds = st.dictionaries(st.sampled_from([step.value for step in Step]), st.floats(0, 1e6))
drained = st.none() | st.builds(Drained, texts, texts)


@st.composite
def records(draw: st.DrawFn) -> Record:
    """A record of any values."""
    made = draw(plans)
    return Record(
        node=made.node,
        plan=made,
        run=draw(runs),
        step=draw(st.sampled_from(Step)),
        state=draw(st.sampled_from(State)),
        revision=draw(st.integers(0, 10**6)),
        in_slurm=draw(st.booleans()),
        drained_before=draw(drained),
        seconds=draw(seconds),
        **{
            name: draw(texts)
            for name in (
                *("since", "waiting", "reason", "ended", "old_boot_id", "host_key", "called_before"),
                "job",
            )
        },
    )


def going() -> Record:
    """One that is on."""
    run = replace(RUN, nodes=("hal05", "hal06"))
    return Record("hal05", plan("hal05"), run, Step.INSTALL, since=stamp(NOW), revision=7)


# --- JSON


@given(records())
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    assert record_of(json.loads(json.dumps(record.to_json()))) == record


def test_it_is_plain_data_with_the_fields_that_others_read() -> None:
    data = json.loads(json.dumps(replace(going(), seconds={"off": 4.5}).to_json()))
    assert (data["format"], data["node"], data["revision"]) == (1, "hal05", 7)
    assert (data["step"], data["state"], data["since"]) == ("install", "going", "2026-11-22T18:00:00Z")
    assert (data["drained_before"], data["seconds"], data["plan"]["wipe"]) == (None, {"off": 4.5}, [])
    assert data["plan"]["fingerprint"] == going().plan.fingerprint
    assert set(data["run"]) == {"code", "by", "began", "by_slurm", "next_state", "nodes", "call", "go_on"}
    assert data["run"]["nodes"] == ["hal05", "hal06"]


@pytest.mark.parametrize("name", ["code", "by", "began", "call"])
def test_a_run_is_no_other_whoever_began_it_then_and_there(name: str) -> None:
    assert RUN.same(replace(RUN, next_state="DOWN", by_slurm=True))
    assert not RUN.same(replace(RUN, **{name: "another"}))  # type: ignore[arg-type]  # a text each


def test_a_record_that_was_written_before_an_update_is_not_damaged() -> None:
    data = json.loads(json.dumps(going().to_json()))
    del data["run"]["nodes"], data["run"]["call"]
    del data["in_slurm"]
    data["run"]["turn"] = 3
    assert record_of(data) == replace(going(), run=RUN)


@pytest.mark.parametrize("name", sorted(set(going().to_json()) - {"node", "in_slurm"}))
def test_a_record_without_one_of_its_fields_is_damaged(name: str) -> None:
    data = going().to_json()
    del data[name]
    with pytest.raises(ReimageError, match=rf"^hal05: its record is damaged: KeyError '{name}'$"):
        record_of(data)


DAMAGE: dict[str, object] = {
    **{"step": "elsewhere", "state": "lost", "revision": "many", "seconds": {"off": "long"}, "run": {"code": "x"}},
    **{"plan": [], "drained_before": {"why": "fan"}},
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_record_with_a_value_that_is_none_is_damaged(name: str) -> None:
    with pytest.raises(ReimageError, match=r"^hal05: its record is damaged: "):
        record_of({**going().to_json(), name: DAMAGE[name]})


@pytest.mark.parametrize("data", [{}, {"node": "hal05"}])
def test_what_is_no_record_at_all_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ReimageError, match="its record is damaged"):
        record_of(data)


def test_another_releases_record_is_refused_in_words() -> None:
    with pytest.raises(ReimageError, match=r"^hal05: its record has format 2, not 1: another release$"):
        record_of({**going().to_json(), "format": 2})


def _image(data: dict[str, Any]) -> None:
    data["plan"]["image"]["sha256"] = "1" * 64


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "serial": lambda data: data["plan"].update(serial="S-other"),
    "disk": lambda data: data["plan"].update(disk="0xother"),
    "wipe": lambda data: data["plan"].update(wipe=["0xother"]),
    "previous": lambda data: data["plan"].update(previous="2026-11-22T17:00:00Z"),
    "image": _image,
    "fingerprint": lambda data: data["plan"].update(fingerprint="0" * 64),
    "whose": lambda data: data.update(node="hal06"),
    "node": lambda data: data["plan"].update(node="hal06"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_plan_that_was_changed_after_it_was_confirmed_is_refused(what: str) -> None:
    data = json.loads(json.dumps(going().to_json()))
    CHANGES[what](data)
    with pytest.raises(ReimageError, match="the plan in its record was changed after it was confirmed"):
        record_of(data)


# --- time


@given(st.integers(0, 4_000_000_000))
def test_a_stamp_is_that_second(second: int) -> None:
    assert moment(stamp(second)) == second


def test_the_next_step_has_the_seconds_of_the_last_and_a_step_that_is_done_twice_has_both() -> None:
    record = replace(going(), waiting="the installer to begin").at(Step.START, NOW + 30)
    assert (record.step, record.since, record.waiting) == (Step.START, "2026-11-22T18:00:30Z", "")
    assert record.seconds == {"install": 30.0}
    again = record.at(Step.INSTALL, NOW + 40).at(Step.START, NOW + 45)
    assert again.seconds == {"install": 35.0, "start": 10.0}


def test_a_clock_that_was_set_back_takes_no_seconds_away() -> None:
    assert going().at(Step.START, NOW - 100).seconds == {"install": 0.0}


# --- codes


def test_a_code_is_eight_letters_that_are_read_as_no_other() -> None:
    codes = {code_of([plan(f"hal{number}")]) for number in range(400)}
    assert len(codes) == 400
    assert all(len(code) == 9 and code[4] == "-" for code in codes)
    assert {letter for code in codes for letter in code.replace("-", "")} == set(LETTERS)


def test_a_code_is_the_same_in_every_release() -> None:
    """One that was shown before an upgrade is refused after it only where a plan changed."""
    assert code_of([plan("hal05"), plan("hal06")]) == "MZNT-43SW"


@given(st.lists(plans, min_size=1, max_size=4), st.randoms())
def test_the_order_of_nodes_does_not_matter(some: list[Plan], random: Any) -> None:
    mixed = list(some)
    random.shuffle(mixed)
    assert code_of(mixed) == code_of(some)


OTHER: dict[str, Callable[[Plan], Plan]] = {
    "node": lambda one: replace(one, node=one.node + "x"),
    "serial": lambda one: replace(one, serial=one.serial + "x"),
    "disk": lambda one: replace(one, disk=one.disk + "x"),
    "wipe": lambda one: replace(one, wipe=(*one.wipe, "x")),
    "previous": lambda one: replace(one, previous=one.previous + "x"),
    "image's folder": lambda one: replace(one, image=replace(one.image, folder=one.image.folder + "x")),
    "image's sum": lambda one: replace(one, image=replace(one.image, sha256=one.image.sha256 + "x")),
    "image's architecture": lambda one: replace(one, image=replace(one.image, arch=one.image.arch + "x")),
    "image's kernel": lambda one: replace(one, image=replace(one.image, kernel=one.image.kernel + "x")),
}


@pytest.mark.parametrize("what", OTHER)
@settings(max_examples=25)
@given(some=st.lists(plans, min_size=1, max_size=4), which=st.integers(0, 3))
def test_any_other_value_of_any_node_has_another_code(what: str, some: list[Plan], which: int) -> None:
    which %= len(some)
    changed = [OTHER[what](one) if number == which else one for number, one in enumerate(some)]
    assert code_of(changed) != code_of(some)


@given(st.lists(plans, min_size=1, max_size=4), plans)
def test_one_node_more_or_less_has_another_code(some: list[Plan], more: Plan) -> None:
    assert len({code_of(some), code_of([*some, more]), code_of(some[1:])}) == 3


@given(texts, texts)
def test_a_value_is_not_read_as_part_of_the_next(one: str, other: str) -> None:
    here = Plan("hal05", one, other, Image("", "", "", ""))
    assert replace(here, serial=one + "x").fingerprint != replace(here, disk="x" + other).fingerprint
    assert replace(here, wipe=("ab",)).fingerprint != replace(here, wipe=("a", "b")).fingerprint
