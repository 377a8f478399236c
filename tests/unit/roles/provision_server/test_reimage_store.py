"""Records of reimages on the server: one revision after the other, whoever writes."""

from __future__ import annotations

import importlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hal_cluster.reimage.record import STEPS, State, Step, record_of
from tests.unit.hal_cluster.provision.conftest import node
from tests.unit.roles.provision_server.reimages import NOW, RUN, done, failed, record
from tests.unit.roles.provision_server.test_store import settings_of, trail

common: Any = importlib.import_module("provision_common")
store: Any = importlib.import_module("reimage_store")
Place, Problem = common.Place, common.Problem


@pytest.fixture
def place(tmp_path: Path) -> Any:
    return Place(str(settings_of(tmp_path, [node(f"hal{at:02}", at) for at in range(1, 9)])))


def written(place: Any, data: dict[str, Any], now: float = NOW) -> dict[str, Any]:
    """Write over whatever is there."""
    stored = store.read(place, data["node"])
    found: dict[str, Any] = store.write(
        place, data["node"], {**data, "revision": stored["revision"] if stored else 0}, now
    )
    return found


def said(place: Any) -> list[tuple[str, str]]:
    return [(line["node"], line["result"]) for line in trail(place) if line["what"] == "reimage"]


# ---------------------------------------------------------------- revisions


def test_a_record_is_read_as_it_was_written_with_the_next_revision(place: Any) -> None:
    data = record(waiting="der Anruf: größe")
    assert store.read(place, "hal05") is None
    assert store.write(place, "hal05", data, NOW) == {**data, "revision": 1}
    assert store.read(place, "hal05") == {**data, "revision": 1}
    assert record_of(store.read(place, "hal05")).to_json() == {**data, "revision": 1}  # the controller reads the same
    assert (Path(place.records) / "hal05.json").stat().st_mode & 0o777 == 0o640
    assert store.names(place) == ["hal05"]


@pytest.mark.parametrize("revision", [0, 1, 3])
def test_whoever_read_another_revision_writes_nothing(place: Any, revision: int) -> None:
    written(place, record())
    written(place, record(waiting="mine"))
    with pytest.raises(store.Conflict) as refused:
        store.write(place, "hal05", {**record(waiting="late"), "revision": revision}, NOW)
    assert str(refused.value) == (
        f"hal05: its record has revision 2, and this was made of {revision}: somebody else wrote it meanwhile"
    )
    assert refused.value.status == 3
    assert store.read(place, "hal05")["waiting"] == "mine"


def test_a_first_record_is_made_of_no_revision(place: Any) -> None:
    with pytest.raises(store.Conflict, match="has revision 0, and this was made of 7"):
        store.write(place, "hal05", {**record(), "revision": 7}, NOW)
    assert store.names(place) == []


ACTS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["read", "write", "abort", "end"])), max_size=30)


@settings(max_examples=150)
@given(ACTS)
def test_of_two_writers_no_write_is_lost_and_the_revision_grows(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, str]]
) -> None:
    """Against a model: a write counts if nobody wrote since its writer read, and then exactly it is stored."""
    place = Place(str(settings_of(tmp_path_factory.mktemp("p"), [node()])))
    read: dict[str, dict[str, Any]] = {"a": record(), "b": record()}
    stored: dict[str, Any] | None = None
    for number, (who, act) in enumerate(acts):
        revision = stored["revision"] if stored else 0
        if act == "read":
            read[who] = store.read(place, "hal05") or record()
        elif act == "abort":
            open_ = stored is not None and stored["state"] in ("going", "failed")
            try:
                stored = store.abort(place, "hal05", who, NOW)
                assert open_
            except store.NothingOn:
                assert not open_
                continue
            assert stored["revision"] == revision + 1
        else:
            new = failed(reason=f"{number}") if act == "end" else record(waiting=f"{number} of {who}")
            new["revision"] = read[who]["revision"]
            try:
                stored = store.write(place, "hal05", new, NOW)
                assert new["revision"] == revision
            except store.Conflict:
                assert new["revision"] != revision
                continue
            assert stored == {**new, "revision": revision + 1}
            read[who] = stored
        assert store.read(place, "hal05") == stored


def test_of_many_who_write_at_once_each_counts(place: Any) -> None:
    written(place, record(job="0"))

    def count() -> None:
        left = 10
        while left:
            stored = store.read(place, "hal05")
            try:
                store.write(place, "hal05", {**stored, "job": str(int(stored["job"]) + 1)}, NOW)
                left -= 1
            except store.Conflict:
                pass

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = store.read(place, "hal05")
    assert (stored["job"], stored["revision"]) == ("60", 61)


# ---------------------------------------------------------------- what a record is


def without(data: dict[str, Any], field: str) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(data))
    *parents, last = field.split(".")
    inner = copy
    for one in parents:
        inner = inner[one]
    del inner[last]
    return copy


def fields(data: dict[str, Any], before: str = "") -> list[str]:
    found = []
    for key, value in data.items():
        found.append(before + key)
        if key in ("plan", "run", "image"):
            found += fields(value, f"{before}{key}.")
    return found


def test_a_record_without_a_part_is_refused_by_its_name(place: Any) -> None:
    for field in fields(record()):
        # The first: the record says it. The others: records of before lack them.
        if field in ("plan.node", "run.nodes", "run.call", "run.go_on", "in_slurm"):
            continue
        with pytest.raises(Problem) as refused:
            store.write(place, "hal05", without(record(), field), NOW)
        inner = {"plan": "plan.serial", "run": "run.code", "plan.image": "plan.image.folder"}.get(field, field)
        named = {"format": "format is None", "node": "it is of node None"}.get(field, f"it has no {inner}")
        assert str(refused.value).startswith(f"hal05: that is not a record of a reimage: {named}")
    assert store.names(place) == []


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("format", 2, "format is 2, and this program knows 1: another release"),
        ("format", True, "format is True"),
        ("node", "hal06", "it is of node hal06"),
        ("plan.node", "hal06", "its plan is of node hal06"),
        ("step", "nonsense", "step is not one of waiting, identity, drain, off, arm, boot, install, start,"),
        ("step", [], "step is not one of"),
        ("state", "ended", "state is not one of going, done, failed, aborted"),
        ("in_slurm", "yes", "in_slurm is not true or false"),
        ("revision", -1, "revision is not a number"),
        ("revision", True, "revision is not a number"),
        ("revision", "1", "revision is not a number"),
        ("revision", 1.0, "revision is not a number"),
        ("since", "yesterday", "since is not a time like 2026-11-22T18:05:10Z, or nothing"),
        ("since", "2026-13-22T18:05:10Z", "since is not a time"),
        ("ended", None, "ended is not a time"),
        ("run.began", "", "run.began is not a time"),
        ("run.by_slurm", "yes", "run.by_slurm is not true or false"),
        ("run.next_state", "IDLE", "run.next_state is not RESUME or DOWN"),
        ("run.call", None, "run.call is not a text"),
        ("run.nodes", "hal05", "run.nodes is not a list of names of nodes"),
        ("run.nodes", ["hal05", "\x1b[2J"], "run.nodes is not a list of names of nodes"),
        ("run", [], "it has no run.code"),
        ("plan.wipe", "0x1", "plan.wipe is not a list of texts"),
        ("plan.wipe", [1], "plan.wipe is not a list of texts"),
        ("plan.image", "compute", "it has no plan.image.folder"),
        ("waiting", None, "waiting is not a text"),
        ("drained_before", {"reason": "x"}, "drained_before is not nothing, or a reason and by whom"),
        ("drained_before", "x", "drained_before is not nothing"),
        ("seconds", [], "seconds is not seconds by step"),
        ("seconds", {"install": float("nan")}, "seconds is not seconds by step"),
        ("seconds", {"nonsense": 1}, "seconds is not seconds by step"),
        ("state", "failed", "state is failed, and there is no reason"),
    ],
)
def test_what_is_no_record_is_refused_and_changes_nothing(place: Any, field: str, value: object, words: str) -> None:
    stored = written(place, record())
    data = {**without(record(), field), "revision": 1} if field != "revision" else without(record(), field)
    *parents, last = field.split(".")
    inner = data
    for one in parents:
        inner = inner[one]
    inner[last] = value
    with pytest.raises(Problem) as refused:
        store.write(place, "hal05", data, NOW)
    assert str(refused.value).startswith(f"hal05: that is not a record of a reimage: {words}")
    assert store.read(place, "hal05") == stored


def test_a_record_of_before_calls_named_their_nodes_is_read_and_written(place: Any) -> None:
    before = without(without(record(), "run.nodes"), "run.call")
    before["run"]["turn"] = 0
    assert written(place, before)["run"] == before["run"]
    assert store.read_all(place) == ({"hal05": {**before, "revision": 1}}, {})
    kept = record_of(store.read(place, "hal05"))
    assert kept.run == RUN
    assert written(place, kept.to_json())["run"] == record()["run"]


@pytest.mark.parametrize("data", [None, [], "x", 1])
def test_what_is_no_mapping_is_no_record(place: Any, data: object) -> None:
    with pytest.raises(Problem, match="no mapping"):
        store.write(place, "hal05", data, NOW)


def test_the_steps_and_states_are_the_controllers() -> None:
    assert tuple(one.value for one in STEPS) == store.STEPS
    assert tuple(one.value for one in State) == store.STATES


def test_a_node_that_the_server_does_not_have_gets_no_record(place: Any) -> None:
    for name in ("hal99", "../hal05", "", "HAL05"):
        with pytest.raises(Problem):
            store.write(place, name, {**record(), "node": name}, NOW)
    assert store.names(place) == []


def test_the_record_of_a_node_that_left_the_model_is_still_read(place: Any) -> None:
    written(place, record())
    (Path(place.nodes) / "hal05").unlink()
    assert store.read_all(place)[0].keys() == {"hal05"}
    with pytest.raises(Problem, match="hal05: this server has no such node"):
        store.write(place, "hal05", {**record(), "revision": 1}, NOW)


@pytest.mark.parametrize("content", ["{", "[]", "{}", None])
def test_a_damaged_record_is_that_nodes_alone_and_is_not_written_over(place: Any, content: str | None) -> None:
    written(place, record("hal06"))
    path = Path(place.records, "hal05.json")
    path.mkdir() if content is None else path.write_text(content)
    found, wrong = store.read_all(place)
    assert found.keys() == {"hal06"}
    assert wrong.keys() == {"hal05"}
    assert wrong["hal05"].startswith(f"{path}: ")
    assert store.read_all(place, ["hal06", "hal07"]) == (found, {})
    with pytest.raises(Problem, match=r"records/hal05\.json: "):
        store.write(place, "hal05", record(), NOW)
    with pytest.raises(Problem, match=r"records/hal05\.json: "):
        store.abort(place, "hal05", "root", NOW)
    assert content is None or path.read_text() == content


def test_what_is_no_name_of_a_node_is_refused_and_no_damaged_record(place: Any) -> None:
    for name in ("../nodes/hal05", "", "hal05.json"):
        with pytest.raises(Problem, match="is not a name of a node"):
            store.read_all(place, ["hal05", name])


def test_what_a_killed_writer_left_is_no_record(place: Any) -> None:
    for name in (".new-hal05.json", ".lock-hal05", "hal05", "hal05.json.rpmsave", "HAL05.json"):
        Path(place.records, name).write_text("{")
    assert store.read_all(place) == ({}, {})


def test_no_lock_is_opened_through_a_link(place: Any, tmp_path: Path) -> None:
    Path(place.records, ".lock-hal05").symlink_to(tmp_path / "other")
    with pytest.raises(Problem, match=r"\.lock-hal05 cannot be locked: it is a link"):
        store.write(place, "hal05", record(), NOW)
    assert not (tmp_path / "other").exists()


# ---------------------------------------------------------------- the trail


def test_the_trail_has_where_a_reimage_begins_and_ends_and_nothing_between(place: Any) -> None:
    written(place, record(step=Step.WAITING))
    for step in (Step.IDENTITY, Step.DRAIN, Step.DRAIN, Step.OFF):
        written(place, record(step=step))
    written(place, failed(step=Step.OFF))
    written(place, failed(step=Step.OFF, waiting="x"))
    written(place, record(step=Step.OFF))
    written(place, done())
    written(place, record(step=Step.WAITING, run={"code": "2222-3333"}))
    written(place, record(step=Step.DRAIN, run={"code": "2222-3333"}))
    store.abort(place, "hal05", "alice", NOW)
    begins = "begins: compute-20261122-ppc64le, confirmed by root@controller"
    assert said(place) == [
        ("hal05", one)
        for one in (
            begins, "failed: no call home within 30 min", "goes on at step off", "done", begins,
            "aborted by alice at step drain",
        )
    ]  # fmt: skip


def test_a_run_that_takes_the_place_of_one_that_goes_on_begins(place: Any) -> None:
    written(place, record())
    written(place, record(run={"code": "2222-3333", "by": "bob@elsewhere"}))
    assert said(place)[-1][1] == "begins: compute-20261122-ppc64le, confirmed by bob@elsewhere"
    written(place, record(run={"code": "2222-3333", "by": "bob@elsewhere", "call": "in the same second"}))
    assert len(said(place)) == 3


def test_nothing_is_written_that_leaves_no_trail(place: Any) -> None:
    Path(place.state, "audit.jsonl").mkdir()
    with pytest.raises(Problem, match=r"audit\.jsonl: cannot be written"):
        store.write(place, "hal05", record(), NOW)
    assert store.names(place) == []


# ---------------------------------------------------------------- abort


def test_an_abort_is_a_revision_so_that_whoever_drives_the_node_stops(place: Any) -> None:
    mine = written(place, record(step=Step.DRAIN, waiting="2 jobs"))
    aborted = store.abort(place, "hal05", "alice", NOW)
    assert aborted == {
        **mine, "state": "aborted", "reason": "aborted by alice at step drain", "waiting": "", "revision": 2,
        "ended": "2027-01-15T08:00:00Z",
    }  # fmt: skip
    assert store.read(place, "hal05") == aborted
    with pytest.raises(store.Conflict):
        store.write(place, "hal05", {**mine, "step": "off"}, NOW)
    assert record_of(aborted).state is State.ABORTED


def test_what_failed_can_be_aborted_and_its_reason_stays(place: Any) -> None:
    written(place, failed())
    reason = store.abort(place, "hal05", "alice", NOW)["reason"]
    assert reason == "aborted by alice at step install; it had failed: no call home within 30 min"


def test_what_is_over_cannot_be_aborted(place: Any) -> None:
    with pytest.raises(store.NothingOn, match=r"^hal05: no reimage of it is known$"):
        store.abort(place, "hal05", "alice", NOW)
    stored = written(place, done())
    with pytest.raises(store.NothingOn, match=r"^hal05: its last reimage is over: done at 2027-01-15T07:00:00Z$"):
        store.abort(place, "hal05", "alice", NOW)
    assert store.read(place, "hal05") == stored


# ---------------------------------------------------------------- a reboot by Slurm


@pytest.mark.parametrize("step", list(STEPS))
def test_a_reboot_by_slurm_is_the_reimage_until_the_machine_is_off(place: Any, step: Step) -> None:
    written(place, record(step=step, run={"by_slurm": True}))
    assert store.is_rebooted_to_install(place, "hal05") is (step.value in ("drain", "off"))
    written(place, record(step=step))
    assert not store.is_rebooted_to_install(place, "hal05")


@pytest.mark.parametrize("ended", [failed, done])
def test_a_reboot_by_slurm_after_the_reimage_ended_is_a_reboot(place: Any, ended: Any) -> None:
    assert not store.is_rebooted_to_install(place, "hal05")
    written(place, ended(step=Step.DRAIN, run={"by_slurm": True}))
    assert not store.is_rebooted_to_install(place, "hal05")
    written(place, record(step=Step.DRAIN, run={"by_slurm": True}))
    assert store.is_rebooted_to_install(place, "hal05")
    store.abort(place, "hal05", "alice", NOW)
    assert not store.is_rebooted_to_install(place, "hal05")


def test_a_record_whose_plan_was_changed_is_still_the_controllers_to_refuse(place: Any) -> None:
    """The server keeps records, and does not judge what was confirmed: the fingerprint is made at the controller."""
    stored = written(place, {**record(), "plan": {**record()["plan"], "disk": "0xother"}})
    with pytest.raises(Exception, match="changed after it was confirmed"):
        record_of(stored)


# ---------------------------------------------------------------- arming


def test_only_who_has_the_newest_record_at_its_step_arms_the_node(place: Any) -> None:
    stored = written(place, record(step=Step.ARM))
    with store.newest(place, "hal05", stored["revision"]):
        pass
    with pytest.raises(store.Conflict, match="somebody else"), store.newest(place, "hal05", stored["revision"] - 1):
        raise AssertionError
    store.abort(place, "hal05", "root", NOW)
    for revision in (stored["revision"], stored["revision"] + 1):
        with pytest.raises(store.Conflict, match="aborted"), store.newest(place, "hal05", revision):
            raise AssertionError


def test_an_abort_waits_until_the_node_is_armed_and_then_takes_that_back(place: Any) -> None:
    stored, order = written(place, record(step=Step.ARM)), []
    with store.newest(place, "hal05", stored["revision"]):

        def aborts() -> None:
            store.abort(place, "hal05", "root", NOW)
            order.append("aborted")

        other = threading.Thread(target=aborts)
        other.start()
        other.join(0.2)
        order.append("armed")
    other.join()
    assert order == ["armed", "aborted"]
