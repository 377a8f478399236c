"""What is gathered of an audit while nodes answer, who is told how far it is, and where its result goes.

Of hal_cluster.audit.collect, whose playbook is run by test_playbook.py.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import constants, context
from ansible.errors import AnsibleError
from ansible.module_utils.common.collections import ImmutableDict

from hal_cluster.audit import collect, examine, report
from hal_cluster.audit.collect import Collector, inventory_options
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.store import Store


class Inventory:
    """Hosts with their groups, as Ansible's."""

    def __init__(self, **groups: list[str]) -> None:
        self.groups = groups

    def get_hosts(self, pattern: str) -> list[Any]:
        assert pattern == "nodes"
        return [
            SimpleNamespace(get_name=lambda name=name: name, get_groups=lambda groups=groups: groups)
            for name, groups in self.groups.items()
        ]

    def get_groups_dict(self) -> dict[str, list[str]]:
        return {"all": list(self.groups)}


def play(inventory: Inventory, warmed: list[Any]) -> Any:
    def variables(play: Any, host: Any) -> str:
        warmed.append(host.get_name())
        return f"variables of {host.get_name()}"

    manager = SimpleNamespace(_inventory=inventory, get_vars=variables)
    return SimpleNamespace(_variable_manager=manager, _loader="loader", hosts="nodes")


def result(host: str, answer: Any, action: str = "hal_audit") -> Any:
    return SimpleNamespace(
        _host=SimpleNamespace(get_name=lambda: host), _task=SimpleNamespace(action=action), _result=answer
    )


def payload(folder: Any = None, **more: Any) -> dict[str, Any]:
    return {"invocation": {"audit": {"node": {"resources": 1}, "findings": [], "audit_dir": folder, **more}}}


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> tuple[Collector, list[Any]]:
    """A collector whose play has begun to audit two nodes, and what was warmed up."""
    warmed: list[Any] = []
    monkeypatch.delenv(collect.PROGRESS, raising=False)
    monkeypatch.delenv(collect.DOCUMENT, raising=False)
    monkeypatch.setattr(context, "CLIARGS", ImmutableDict(inventory=[f"{os.getcwd()}/site/a.yml", "/b.yml"]))
    monkeypatch.setattr(examine, "warm_up", lambda *words: warmed.append(words))
    one = Collector()
    one.play_starts(play(Inventory(a=["x"], b=["x", "y"], c=["z"]), warmed))
    one.task_starts(SimpleNamespace(action="hal_audit"))
    return one, warmed


def test_a_run_that_audits_nothing_gathers_nothing(tmp_path: Path) -> None:
    one = Collector()
    one.play_starts(play(Inventory(), []))
    one.task_starts(SimpleNamespace(action="ansible.builtin.ping"))
    one.answered(result("a", {"msg": "gone"}, "ansible.builtin.ping"), unreachable=True)
    assert one.finish(io.StringIO()) == ("", "")
    assert (one.used, one.audit.expected, one.audit.findings) == (False, [], [])


def test_every_node_of_the_play_is_expected_and_what_they_share_is_read_once(begun: Any) -> None:
    one, warmed = begun
    assert one.used
    assert one.audit.expected == ["a", "b", "c"]
    assert one.audit.groups == {"all": ["a", "b", "c"]}
    assert one.audit.inventory == ["site/a.yml", "/b.yml"]
    assert one.audit.options == "-i site/a.yml -i /b.yml "
    assert warmed == ["b", ("loader", "variables of b")], "the one with the most groups"


@pytest.mark.parametrize("error", [AnsibleError("x"), OSError("x")])
def test_what_cannot_be_read_at_once_is_said_by_each_node(
    begun: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(examine, "warm_up", fail)
    begun[0].task_starts(SimpleNamespace(action="hal_audit"))
    assert begun[0].audit.expected == ["a", "b", "c"] * 2


def test_a_play_of_no_node_reads_nothing(begun: Any) -> None:
    one, warmed = begun
    one.play_starts(play(Inventory(), warmed))
    one.task_starts(SimpleNamespace(action="hal_audit"))
    assert len(warmed) == 2


def test_an_answer_is_what_it_has_or_why_there_is_none(begun: Any) -> None:
    one, _ = begun
    drift = Finding("a", "mode", "file:/x")
    one.answered(result("a", payload("/audit", findings=[drift.document()])))
    one.answered(result("b", {"msg": "no way"}), unreachable=True)
    one.answered(result("c", {"msg": ""}))
    one.answered(result("d", {"invocation": {"audit": "x"}, "msg": "odd"}))
    one.answered(result("e", {"msg": "gone"}, "ansible.builtin.ping"), unreachable=True)
    one.answered(result("f", {}, "ansible.builtin.ping"), unreachable=True)
    one.answered(result("g", {"msg": "failed"}, "ansible.builtin.ping"))
    assert one.audit.nodes["a"] == {"resources": 1}
    assert one.audit.findings == [
        drift,
        Finding("b", "unreachable", "node", "unknown", summary="no way"),
        Finding("c", "unreadable", "node", "unknown", summary="no reason given"),
        Finding("d", "unreadable", "node", "unknown", summary="odd"),
        Finding("e", "unreachable", "node", "unknown", summary="gone"),
        Finding("f", "unreachable", "node", "unknown"),
    ]
    assert sorted(one.audit.nodes) == ["a", "b", "c", "d", "e", "f"]


def test_the_result_is_kept_where_the_nodes_records_are(
    begun: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = begun
    monkeypatch.setattr(time, "monotonic", lambda: one.started + 12.34)
    for host, folder in (("a", tmp_path / "one"), ("b", tmp_path / "two"), ("c", None)):
        one.answered(result(host, payload(str(folder) if folder else None, only=["time", "ssh"])))
    text, warning = one.finish(io.StringIO())
    assert (text.startswith("Clean: 3 nodes, 3 resources"), warning) == (True, "")
    kept = [json.loads(Store(tmp_path / name).last.read_text()) for name in ("one", "two")]
    past = [(tmp_path / name / "history.jsonl").read_text().splitlines() for name in ("one", "two")]
    assert [[json.loads(line)["only"] for line in lines] for lines in past] == [[["ssh", "time"]]] * 2
    assert kept[0] == kept[1]
    assert kept[0]["summary"]["seconds"] == 12.3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


@pytest.mark.parametrize("error", [OSError("no space left"), AuditError("no space left")])
def test_a_result_that_cannot_be_kept_is_a_warning(
    begun: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(collect, "write_json", fail)
    for host in ("a", "b", "c"):
        begun[0].answered(result(host, payload(str(tmp_path))))
    text, warning = begun[0].finish(io.StringIO())
    assert warning == "the result of the audit could not be kept: no space left"
    assert text.startswith("Clean: ")


def test_another_program_gets_the_result_and_prints_it(
    begun: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(collect.DOCUMENT, str(tmp_path / "document.json"))
    begun[0].answered(result("a", payload()))
    assert begun[0].finish(io.StringIO()) == ("", "")
    assert json.loads((tmp_path / "document.json").read_text())["summary"]["nodes"] == 3


@pytest.mark.parametrize(
    ("terminal", "kind", "width", "colour"),
    [(True, "xterm", 97, True), (True, "dumb", 80, False), (True, None, 80, False), (False, "xterm", 80, False)],
)
def test_a_terminal_is_as_wide_as_it_is_and_has_colour(
    begun: Any, monkeypatch: pytest.MonkeyPatch, terminal: bool, kind: str | None, width: int, colour: bool
) -> None:
    class Out(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    seen: list[Any] = []
    monkeypatch.setattr(report, "text", lambda _, **how: seen.append(how) or "text")  # type: ignore[func-returns-value]
    monkeypatch.setenv("COLUMNS", "97")
    monkeypatch.setenv("TERM", kind) if kind else monkeypatch.delenv("TERM", raising=False)
    assert begun[0].finish(Out()) == ("text", "")
    assert seen == [{"width": width, "colour": colour}]


def test_who_follows_the_audit_is_told_how_far_it_is(begun: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    monkeypatch.setenv(collect.PROGRESS, str(writer))
    one = Collector()
    assert not os.get_inheritable(writer)
    one.play_starts(begun[0]._play)
    one.task_starts(SimpleNamespace(action="hal_audit"))
    one.answered(result("a", payload()))
    one.answered(result("b", {}, "ansible.builtin.ping"), unreachable=True)
    one.answered(result("c", {}), unreachable=True)
    os.close(writer)
    with os.fdopen(reader) as told:
        assert [json.loads(line) for line in told] == [{"expected": 3}, {"done": "a"}, {"done": "c"}]
    one.answered(result("d", {}))
    assert one._progress == -1, "nobody listens any more"


@pytest.mark.parametrize("number", ["x", "99999", "-1", None])
def test_what_is_no_pipe_is_told_nothing(monkeypatch: pytest.MonkeyPatch, number: str | None) -> None:
    monkeypatch.setenv(collect.PROGRESS, number) if number else monkeypatch.delenv(collect.PROGRESS, raising=False)
    assert Collector()._progress == -1


@pytest.mark.parametrize(
    ("usual", "given", "options"),
    [
        (["/x/hosts"], ["/x/hosts"], []),
        (["/x/hosts"], ["/y/hosts"], ["-i", "/y/hosts"]),
        (["{here}/hosts"], ["hosts"], []),
        (None, [], []),
        (None, ["{here}er/hosts", "{here}/a/b"], ["-i", "{here}er/hosts", "-i", "a/b"]),
        (None, ["/my site/it's; id"], ["-i", "/my site/it's; id"]),
    ],
)
def test_an_inventory_is_named_as_a_shell_takes_it_unless_it_is_the_usual_one(
    monkeypatch: pytest.MonkeyPatch, usual: list[str] | None, given: list[str], options: list[str]
) -> None:
    here = os.getcwd()
    monkeypatch.setattr(
        constants, "DEFAULT_HOST_LIST", usual and [one.format(here=here) for one in usual], raising=False
    )
    found = inventory_options([one.format(here=here) for one in given])
    assert shlex.split(found) == [one.format(here=here) for one in options]
    assert found == "" or found.endswith(" ")


def test_findings_that_came_through_json_count(begun: Any) -> None:
    found = [Finding("a", "mode", "file:/x"), Finding("a", "clock", "check:clock", "unknown")]
    begun[0].answered(result("a", json.loads(json.dumps(payload(findings=[one.document() for one in found])))))
    document = begun[0].audit.document(1.0)
    assert (document["summary"]["drift"], document["summary"]["unknown"]) == (1, 3), "two were not looked at"
    assert document["nodes"]["a"] == {"resources": 1, "drift": 1, "unknown": 1}
