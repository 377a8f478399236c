"""What a host is asked, and what becomes of its answer: the controller's copy, settings, and answers that are none."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader

from hal_cluster.audit import examine, report
from hal_cluster.audit.document import Audit
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.examine import Examination
from hal_cluster.audit.store import Store, pack
from tests.unit.hal_cluster.audit.answers import Answer

RECORD = b'{"serial":3}'


def examined(folder: Path, only: tuple[str, ...] = (), **variables: Any) -> Examination:
    """A host without roles."""
    return Examination("n1", DataLoader(), {"hal_audit_dir": str(folder), **variables}, {}, only)


def kept(folder: Path) -> Store:
    """The controller's folder, with a record of the host."""
    store = Store(folder)
    store.keep_record("n1", pack(RECORD), hashlib.sha256(RECORD).hexdigest())
    return store


def test_a_host_is_asked_for_everything_with_the_copy_of_its_record(tmp_path: Path) -> None:
    kept(tmp_path)
    one = examined(tmp_path)
    asked = one.arguments()
    assert asked.pop("watched") == [
        {**each, "accepted": each.get("accepted", [])} for each in examine.default_watched()
    ]
    assert asked == {
        **{"node": "n1", "record": pack(RECORD), "questions": [], "roles": [], "accepted": []},
        "checks": ["uid_0", "kernel", "packages", "clock"],
        **{"tree": True, "deep": False},
    }
    assert (one.copy, one.roles) == (RECORD, [])


def test_of_a_host_without_a_copy_and_for_some_roles_less_is_asked(tmp_path: Path) -> None:
    one = examined(tmp_path, ("time",))
    assert one.arguments() == {
        **{"node": "n1", "record": "", "questions": [], "roles": ["time"], "watched": [], "checks": []},
        **{"tree": False, "deep": False, "accepted": []},
    }
    assert one.copy == b""


def test_settings_of_the_site_change_what_is_asked(tmp_path: Path) -> None:
    extra = {"path": "/srv/*", "accepted": ["/srv/a"]}
    accepted = [{"path": "/srv/b", "reason": "r"}]
    settings: dict[str, Any] = {"audit_watched_extra": [extra], "audit_accepted": accepted}
    asked = examined(tmp_path, audit_checks_left_out=["clock"], **settings).arguments()
    assert asked["checks"] == ["uid_0", "kernel", "packages"]
    assert asked["watched"][-1] == {**extra, "accepted": ["/srv/a", "/srv/b"]}
    assert all(each["accepted"][-1] == "/srv/b" for each in asked["watched"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hal_audit_dir": ""}, "hal_audit_dir has to be a text"),
        ({"hal_audit_dir": ["a"]}, "hal_audit_dir has to be a text"),
        ({"audit_checks_left_out": "clock"}, "audit_checks_left_out has to be a list"),
        (
            {"audit_watched_extra": ["x"]},
            "audit_watched_extra: each needs a path, and may have names, accepted and what",
        ),
        (
            {"audit_watched_extra": [{}]},
            "audit_watched_extra: each needs a path, and may have names, accepted and what",
        ),
        *(
            ({"audit_accepted": [one]}, f"audit_accepted: each entry needs path and reason, unlike {one!r}")
            for one in ("x", {"path": "/a"}, {"reason": "r"})
        ),
    ],
)
def test_settings_that_cannot_be_used_are_refused(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(AuditError) as error:
        examined(tmp_path, **settings).arguments()
    assert str(error.value) == words


def lost(one: Examination, answer: Any) -> str:
    """Why an answer is none."""
    (found,) = one.payload(answer)["findings"]
    assert (found["host"], found["kind"], found["status"]) == ("n1", "unreadable", "unknown")
    return str(found["summary"])


def test_answers_that_are_none_say_why(tmp_path: Path, healthy: Answer) -> None:
    one = examined(tmp_path)
    one.arguments()
    assert lost(one, {}) == "the module's answer has no record"
    assert lost(one, {"msg": "odd"}) == "the call on the node failed: odd"
    assert lost(one, {**healthy, "failed": True}) == "the call on the node failed: the module gave no results"
    assert lost(one, {**healthy, "answers": [1]}) == "0 expectations were sent, 1 answers came back"
    for said, kind in ((one.unreachable("a  b"), "unreachable"), (one.unreadable("a  b"), "unreadable")):
        assert [(each["kind"], each["summary"]) for each in said["findings"]] == [(kind, "a b")]
        assert said["node"] == {"roles": []}


MUCH = {
    "counts": ({"resources": 10**4299}, f"the module's answer cannot be used: ValueError: 1{'0' * 50}"),
    "seconds": ("nan", "the module's answer cannot be used: ValueError: it took nan"),
    "software": ({"slurm": "x" * 4 * 1024 * 1024}, "it answered more than 4 MiB: not read"),
    "packages": ({"extra": ["a-1-1"] * 201}, "the module's answer has 201 packages: more than 200, so it was not read"),
    "more": (dict.fromkeys(map(str, range(201)), 1), "the module's answer has 20"),
}


@pytest.mark.parametrize("name", MUCH)
def test_an_answer_that_says_too_much_is_a_finding_and_the_other_nodes_have_their_report(
    tmp_path: Path, healthy: Answer, name: str
) -> None:
    said, words = MUCH[name]
    one = examined(tmp_path)
    one.arguments()
    payload = one.payload({**healthy, name: {**healthy[name], **said} if isinstance(said, dict) else said})
    assert [(each["kind"], each["summary"].startswith(words)) for each in payload["findings"]] == [("unreadable", True)]
    audit = Audit(groups={"all": ["n1", "n2"]})
    audit.add("n1", payload)
    audit.add("n2", {"node": {"roles": [], "resources": 9 * 10**3}})
    document = audit.document(1.0)
    assert len(json.dumps(document, allow_nan=False)) < 5000
    assert "9,000 resources" in report.text(document)


def test_a_payload_has_what_the_report_needs(tmp_path: Path, healthy: Answer) -> None:
    one = examined(tmp_path, group_names=["compute"], audit_in_step=[["login", "compute"], ["a", "b"]])
    one.arguments()
    record = {name: healthy["record"][name] for name in ("status", "serial", "digest", "sealed_at", "commit")}
    assert one.payload(healthy) == {
        "node": {
            **{"roles": [], "resources": 12, "expectations": 0, "watched_files": 30, "record": record},
            **{"seconds": 0.2, "cpu_seconds": 0.1, "memory_mb": 20.0, "software": healthy["software"]},
        },
        "findings": [],
        "in_step": [["login", "compute"]],
        "audit_dir": str(tmp_path),
        "only": [],
    }
    assert examined(tmp_path, group_names=["login"]).unreadable("x")["in_step"] == [["login", "compute"]]
    assert examined(tmp_path).unreadable("x")["audit_dir"] == ""


def test_a_newer_record_of_the_node_becomes_the_copy(tmp_path: Path, healthy: Answer) -> None:
    store = kept(tmp_path)
    one = examined(tmp_path)
    one.arguments()
    newer = b'{"serial":4}'
    healthy["record"].update(packed=pack(newer), digest=hashlib.sha256(newer).hexdigest())
    assert one.payload({**healthy, "record": {**healthy["record"], "status": "older", "used": "copy"}})["findings"]
    assert store.record("n1").read_bytes() == RECORD
    assert one.payload(healthy)["findings"] == []
    assert (store.record("n1").read_bytes(), one.copy) == (newer, newer)
    healthy["record"]["digest"] = "other"
    (found,) = one.payload(healthy)["findings"]
    assert (found["kind"], found["resource"], found["status"]) == ("record", "record:node", "unknown")
    assert found["summary"] == "n1: the record that came back is not the one that was stored"


def test_what_is_declared_now_is_compared_with_the_copy(tmp_path: Path, healthy: Answer) -> None:
    kept(tmp_path)
    one = examined(tmp_path)
    one.arguments()
    (found,) = one.payload(healthy, lambda *words: [])["findings"]
    words = "what is declared now could not be compared with the record: KeyError: 'roles'"
    assert (found["kind"], found["status"], found["summary"]) == ("record", "unknown", words)
    asked: list[Any] = []

    def declared(*words: Any) -> list[Any]:
        asked.append(words)
        return []

    one.copy = b'{"roles": {}, "entries": [5]}'
    assert one.payload(healthy, declared)["findings"] == []
    assert asked == [(one, [], [], {}, [5])]
    one.payload({**healthy, "record": {**healthy["record"], "used": "none"}}, declared)
    one.copy = b""
    one.payload(healthy, declared)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("role", "known"),
    [({"inputs_hash": "a"}, {"a"}), ({"inputs_hash": "a", "begun": "b"}, {"a", "b"}), ({"begun": "b"}, {None, "b"})],
)
def test_a_role_may_have_been_rolled_out_with_two_inputs(role: dict[str, Any], known: set[Any]) -> None:
    assert examine._inputs_of(role) == known
