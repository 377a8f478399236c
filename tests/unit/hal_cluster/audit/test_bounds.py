"""An answer that is a bomb is a finding: it is not read, not kept, and takes no more memory than an honest one may."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.plugins.action import ActionBase

from hal_cluster.audit.document import Audit
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.examine import Examination
from hal_cluster.audit.store import Store, pack, read_json, unpack
from hal_cluster.expect.answers import BoundedAction
from hal_inventory.bounded import DEEPEST, MOST_ANSWER, BoundError, check, inflated, parsed
from hal_inventory.capture.document import CaptureFileError, parse_capture
from tests.unit.hal_cluster.audit.answers import HEALTHY, difference
from tests.unit.hal_cluster.audit.bombs import INFLATED, inflating, nested, packed, refused, within
from tests.unit.hal_cluster.audit.test_examining import examined
from tests.unit.modules import PROJECT, loaded

MORE = "more than 16 MiB: not read"
DEEP = "data nested deeper than 50 levels: not read"


def test_the_bomb_of_these_tests_is_one() -> None:
    assert len(packed()) < 600_000
    assert len(zlib.decompressobj().decompress(inflating(), INFLATED)) == INFLATED


# --- the bounds themselves


def test_what_is_as_long_as_may_be_is_read_and_what_is_longer_is_not() -> None:
    assert inflated(zlib.compress(b"a" * 500), 500) == b"a" * 500
    assert refused(lambda: inflated(zlib.compress(b"a" * 501), 500), BoundError) == (
        "more than 0.000476837 MiB: not read"
    )
    assert refused(lambda: inflated(inflating()), BoundError) == MORE


@pytest.mark.parametrize("data", [zlib.compress(b"a" * 99)[:-1], zlib.compress(b"a") + b"b", b"", b"no zlib"])
def test_what_is_cut_off_or_has_more_behind_it_is_damaged(data: bytes) -> None:
    with pytest.raises((ValueError, zlib.error)) as error:
        inflated(data)
    assert not isinstance(error.value, BoundError)


@pytest.mark.parametrize("levels", [DEEPEST + 1, 900, 3000, 1_000_000])
def test_json_is_read_to_a_depth_and_no_deeper(levels: int) -> None:
    assert parsed(nested(DEEPEST)) == json.loads(nested(DEEPEST))
    assert refused(lambda: parsed(nested(levels)), BoundError) == DEEP


@pytest.mark.parametrize("text", ["[Infinity]", '{"a": [-1e999]}', "NaN"])
def test_a_number_that_json_has_not_is_none(text: str) -> None:
    assert refused(lambda: parsed(text), BoundError) == "a number that is not finite: not read"


def test_json_is_read_up_to_its_length() -> None:
    assert parsed('"aaa"', 5) == "aaa"
    with pytest.raises(BoundError):
        parsed('"aaaa"', 5)
    assert refused(lambda: parsed(b'"' + b"a" * MOST_ANSWER + b'"'), BoundError) == MORE
    check({"a": [1.5, None, "b"]})


def test_a_node_seals_no_larger_record_than_the_controller_reads() -> None:
    assert importlib.import_module("ansible.module_utils.hal_node.audit.record").MOST_RECORD == MOST_ANSWER


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b" " * (MOST_ANSWER + 1), f"f: has {MORE}"),
        (nested(60), f"f: has {DEEP}"),
        (nested(10**6), "f: is not the JSON"),
    ],
    ids=["long", "deep", "deepest"],
)
def test_a_capture_of_a_machine_is_bounded(content: bytes, said: str) -> None:
    assert refused(lambda: parse_capture(content, "f"), CaptureFileError).startswith(said)


# --- the store


def test_a_packed_bomb_is_not_unpacked() -> None:
    assert refused(lambda: unpack(packed()), BoundError) == MORE
    assert refused(lambda: unpack("A" * (MOST_ANSWER + 1)), BoundError) == MORE
    assert unpack(pack(b"a" * 1000)) == b"a" * 1000


def records() -> dict[str, tuple[str, str, str]]:
    """Records that are none: packed, the digest that the node gives, and what is said."""
    deep, listed = nested(5000), b"[]"
    digest = hashlib.sha256(inflating()).hexdigest()
    return {
        "bomb": (packed(), digest, f"n1: the record that came back has {MORE}, and not kept"),
        "deep": (
            pack(deep),
            hashlib.sha256(deep).hexdigest(),
            f"n1: the record that came back has {DEEP}, and not kept",
        ),
        "list": (pack(listed), hashlib.sha256(listed).hexdigest(), "n1: the record that came back is not a mapping"),
        "text": (pack(b"{"), hashlib.sha256(b"{").hexdigest(), "n1: Expecting property name"),
        "other": (pack(b"{}"), digest, "n1: the record that came back is not the one that was stored"),
        "damaged": (base64.b64encode(zlib.compress(b"{}")[:-1]).decode(), digest, "n1: a packed record is damaged"),
    }


@pytest.mark.parametrize("kind", ["bomb", "deep", "list", "text", "other", "damaged"])
def test_what_is_no_record_is_not_kept(tmp_path: Path, kind: str) -> None:
    store, (text, digest, said) = Store(tmp_path), records()[kind]
    store.keep_record("n1", pack(b'{"serial":1}'), hashlib.sha256(b'{"serial":1}').hexdigest())
    assert refused(lambda: store.keep_record("n1", text, digest), AuditError).startswith(said)
    assert [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()] == [b'{"serial":1}']


def test_a_record_that_was_kept_before_there_was_a_bound_is_named_and_not_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.copy("n1") == b""
    path = store.record("n1")
    path.parent.mkdir()
    with path.open("wb") as stream:
        stream.truncate(INFLATED)
    said = f"{path} has {MORE}. Remove it; the next rollout makes another"
    assert refused(lambda: store.copy("n1"), AuditError) == said
    assert refused(lambda: store.read_record("n1"), AuditError) == said
    assert refused(lambda: examined(tmp_path).arguments(), AuditError) == said
    path.write_bytes(nested(3000))
    for read in (lambda: read_json(path), lambda: store.read_record("n1")):
        assert refused(read, AuditError) == f"{path} cannot be read: {DEEP}"
    path.write_bytes(b"[]")
    assert refused(lambda: store.read_record("n1"), AuditError) == f"{path} is not a mapping"


# --- an audit


def audited(folder: Path, answer: Any, declared: Any = None) -> tuple[list[dict[str, Any]], Examination]:
    one = examined(folder)
    one.arguments()
    with within():
        payload = one.payload(answer, declared)
    audit = Audit()
    audit.add("n1", payload)
    return audit.document(1.0)["findings"], one


def test_a_bomb_in_an_audit_s_answer_is_a_finding_and_not_kept(tmp_path: Path) -> None:
    text, digest, said = records()["bomb"]
    answer = {**HEALTHY, "record": {**HEALTHY["record"], "packed": text, "digest": digest}}
    (found,), one = audited(tmp_path, answer, lambda *_: [])
    assert (found["kind"], found["status"], found["summary"]) == ("record", "unknown", said)
    assert one.copy == b""
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"problems": json.loads(nested(200))}, f"it answered {DEEP}"),
        ({"seconds": float("inf")}, "it answered a number that is not finite: not read"),
        ({"counts": {"resources": "x"}}, "the module's answer cannot be used: ValueError: invalid literal"),
        ({"counts": {"watched_files": -1}}, "the module's answer cannot be used: ValueError: -1 things were looked at"),
        ({"counts": {"resources": [1]}}, "the module's answer cannot be used: TypeError: "),
        ({"software": [1]}, "the module's answer cannot be used: AttributeError: "),
        ({"packages": {"extra": 7}}, "the module's answer cannot be used: TypeError: "),
        ({"differences": [difference(units=7)]}, "the module's answer cannot be used: TypeError: "),
        ({"differences": [difference(**{"is": "x" * 9000})] * 500}, "it answered more than 4 MiB: not read"),
        (
            {"differences": [difference()] * 1001},
            "the module's answer has 1001 differences: more than 1000, so it was not read",
        ),
        ({"extra": [{}] * 201}, "the module's answer has 201 extra: more than 200, so it was not read"),
        ({"problems": ["x"] * 201}, "the module's answer has 201 problems: more than 200, so it was not read"),
    ],
)
def test_an_answer_of_another_shape_is_a_finding(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    (found,), _ = audited(tmp_path, {**HEALTHY, **changes})
    assert (found["kind"], found["status"]) == ("unreadable", "unknown")
    assert found["summary"].startswith(said)


def test_a_copy_that_is_nested_too_deeply_is_a_finding(tmp_path: Path) -> None:
    one = examined(tmp_path)
    one.arguments()
    one.copy = nested(3000)
    (found,) = one.payload(HEALTHY, lambda *_: [])["findings"]
    words = "what is declared now could not be compared with the record: BoundError: "
    assert (found["status"], found["summary"]) == ("unknown", words + DEEP)


# --- what comes from a node through Ansible


ACTIONS = ["hal_audit", "hal_expect", "hal_network", "hal_originals", "hal_record", "hal_rollout", "hal_subids"]


def test_each_action_that_asks_a_node_is_bounded() -> None:
    """hal_bmc runs at the controller; what a BMC says is bounded where it is heard."""
    files = (PROJECT / "plugins/action").glob("*.py")
    asking = {path.stem for path in files if "_execute_module" in path.read_text()} - {"hal_bmc"}
    assert asking == set(ACTIONS)
    for name in ACTIONS:
        assert issubclass(loaded(name, "action").ActionModule, BoundedAction), name


@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"stdout": '{"a": "' + "x" * MOST_ANSWER + '"}'}, MORE),
        ({"stdout": "{}", "stderr": "x" * (MOST_ANSWER + 1)}, MORE),
        ({"stdout": nested(100).decode()}, DEEP),
        ({"stdout": nested(1_000_000).decode()}, DEEP),
        ({"stdout": '{"a": Infinity}'}, "a number that is not finite: not read"),
    ],
    ids=["long", "errors", "deep", "deepest", "infinite"],
)
def test_an_answer_that_is_over_a_bound_is_a_failure_of_one_line(name: str, said: dict[str, str], why: str) -> None:
    kind = loaded(name, "action").ActionModule
    plugin = kind.__new__(kind)
    with within():
        answer = plugin._parse_returned_data({"stderr": "", **said})
    assert answer == {"failed": True, "msg": f"it answered {why}"}


def test_what_is_within_the_bounds_is_read_as_ansible_reads_it() -> None:
    kind = loaded("hal_audit", "action").ActionModule
    plugin = kind.__new__(kind)
    plugin._task = SimpleNamespace(resolved_action="", action="x")
    plugin._used_interpreter = None
    for res in ({"stdout": '{"a": [1]}', "stderr": ""}, {"stdout": "Traceback\n", "stderr": "odd"}):
        assert plugin._parse_returned_data(res) == ActionBase._parse_returned_data(plugin, res)


def test_a_record_that_is_a_bomb_fails_its_node_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.unit.plugins.action.test_hal_audit import record, spooled

    store = Store(tmp_path / "audit")
    spool = spooled(store, 2)
    text, digest, said = records()["bomb"]
    with within():
        result = record(store, monkeypatch, lambda _: {"record": text, "digest": digest, "observed": 3})
    assert (result["failed"], result["msg"]) == (True, said)
    assert not store.record("n1").exists()
    assert spool.exists(), "it is told again"


@pytest.mark.parametrize(
    "odd", [{"observed": "many"}, {"observed": float("inf")}, {"problems": 7}, {"record": 7}, {"digest": None}]
)
def test_an_odd_answer_fails_its_node_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: dict[str, Any]
) -> None:
    from tests.unit.plugins.action.test_hal_audit import record, sealed, spooled

    store = Store(tmp_path / "audit")
    spooled(store, 2)
    result = record(store, monkeypatch, lambda number: {**sealed(number), **odd})
    assert result["failed"] is True
    assert "\n" not in result["msg"]
    assert not store.record("n1").exists()
