"""Whatever a node answers, in whatever shape: the audit has a result, of the documented form, and a report of it."""

from __future__ import annotations

import copy
import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hal_cluster.audit import report
from hal_cluster.audit.document import Audit
from hal_cluster.expect import promises
from hal_cluster.expect.prepare import Prepared
from hal_inventory.bounded import BoundError, check, parsed
from tests.property.hostile import PROJECT, TEXT, unseen
from tests.unit.hal_cluster.audit.answers import HEALTHY, difference
from tests.unit.hal_cluster.audit.test_examining import examined
from tests.unit.hal_cluster.audit.test_unmanaged import PAM, SINFO, WHEEL

SCHEMA = jsonschema.Draft202012Validator(json.loads((PROJECT / "hal_cluster/audit/findings.schema.json").read_text()))
FULL: dict[str, Any] = {
    **HEALTHY,
    "differences": [{**difference(), "diff": ["-a", "+b"]}],
    "extra": [{"path": "/etc/cron.d/mine", "what": "jobs of cron", "type": "file", "note": ""}],
    "packages": {"extra": ["nmap-6.40-19.el7.x86_64"], "unknown": ""},
    "checks": [{"check": "clock", "status": "fail", "observed": 1, "expected": 2, "reason": "it went back"}],
    "problems": ["systemctl did not answer"],
    "unmanaged": [{**PAM, "within": ["line:/etc/pam.d/sshd#1"]}, WHEEL],
    "package_files": [SINFO],
    "record": {**HEALTHY["record"], "packed": "eJyrVkrLz1eyUkpKLFKqBQAnEQUC", "problem": ""},
}
FLAT = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.just(-1), st.just("x"), TEXT)
ODD = st.recursive(
    FLAT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=2), max_leaves=6
)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where anything stands in data."""
    yield path
    if isinstance(data, (dict, list)):
        for key, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
            yield from places(value, (*path, key))


@st.composite
def answers(draw: st.DrawFn) -> Any:
    """An answer in which up to three things are something else, or are there many times."""
    answer: Any = copy.deepcopy(FULL)
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from([*places(answer)]))
        value = draw(ODD | st.integers(2, 60).map(lambda times: [_at(answer, path)] * times))  # noqa: B023  used now
        if not path:
            return value
        here = _at(answer, path[:-1])
        if isinstance(here, dict) and draw(st.booleans()) and draw(st.booleans()):
            del here[path[-1]]
        else:
            here[path[-1]] = value
    return answer


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


@settings(max_examples=300)
@given(answers())
def test_whatever_a_node_answers_the_audit_has_a_result(answer: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one = examined(Path(folder))
        one.arguments()
        payload = one.payload(answer, lambda *_: [])
        kept = [path for path in Path(folder).rglob("*") if path.is_file()]
    assert kept == []
    audit = Audit(groups={"all": ["n1"]})
    audit.add("n1", json.loads(json.dumps(payload)))
    document = audit.document(1.0)
    SCHEMA.validate(json.loads(json.dumps(document, allow_nan=False)))
    assert max((len(str(one)) for one in document["nodes"]["n1"].get("record", {}).values()), default=0) <= 100
    assert unseen(report.text(document)) == []


@given(ODD)
def test_what_is_no_answer_to_a_question_is_unknown(said: Any) -> None:
    asked = Prepared("it runs", "time", "expect.yml:1", "why", "error", False, {"equal": True}, {"service": {}})
    (result,) = promises.results([asked], [said])
    good = isinstance(said, dict) and said.get("status") in ("pass", "fail", "unknown")
    assert result["status"] == (said["status"] if good else "unknown")
    assert good or result["reason"] == "the node's answer cannot be used"
    assert isinstance(result["reason"], str)


@given(ODD)
@example({"\ud800\udcff": None})
def test_data_is_taken_as_it_is_or_not_at_all(data: Any) -> None:
    text = json.dumps(data)
    if any(isinstance(_at(data, path), float) and not math.isfinite(_at(data, path)) for path in places(data)):
        with pytest.raises(BoundError, match="a number that is not finite: not read"):
            parsed(text)
    else:
        check(data)
        assert parsed(text) == json.loads(text)  # two escaped halves of a character become that character
