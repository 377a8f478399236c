"""What became of audits: what is kept of each, what is shown, and what is not taken for clean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.audit import cli, history
from hal_cluster.audit.cli import sources
from hal_cluster.audit.document import Audit
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.store import Store

DAY = "2026-11-{:02}T03:30:00Z"


def document(day: int, nodes: dict[str, list[Finding]]) -> dict[str, Any]:
    """The document of an audit of these nodes."""
    audit = Audit(expected=list(nodes))
    for host, found in nodes.items():
        audit.add(host, {"node": {"resources": 3}, "findings": [one.document() for one in found]})
    return {**audit.document(1.0), "at": DAY.format(day)}


def drift(host: str, role: str = "time") -> Finding:
    return Finding(host, "content", "file:/etc/chrony.conf", "drift", role=role)


def kept(folder: Path, *documents: dict[str, Any], roles: list[str] | None = None) -> Store:
    store = Store(folder)
    for one in documents:
        history.add(store, history.entry(one, roles or []))
    return store


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What `hal-audit history` prints, and its exit status, where all nodes have one store."""

    class Inventory:
        def __init__(self, _sources: list[str]) -> None:
            pass

        def nodes(self) -> list[str]:
            return ["hal01", "hal02"]

        def store(self, _node: str) -> Store:
            return Store(tmp_path)

    monkeypatch.setattr("hal_cluster.audit.cli.history.Inventory", Inventory)
    assert sources  # the real one is asked in test_commands.py

    def run(*words: str) -> tuple[int, str]:
        status = cli.main(["history", *words])
        said = capsys.readouterr()
        return status, said.out + said.err

    return run


def test_each_audit_is_a_line_with_where_and_what(tmp_path: Path, shown: Any) -> None:
    unseen = Finding("hal02", "unreachable", "node", "unknown", summary="no route")
    kept(
        tmp_path,
        document(20, {"hal01": [], "hal02": []}),
        document(21, {"hal01": [drift("hal01"), drift("hal01", "ssh")], "hal02": []}),
        document(22, {"hal01": [], "hal02": [unseen]}),
    )
    kept(tmp_path, document(23, {"hal01": []}), roles=["time"])
    status, text = shown()
    assert status == 0
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["2026-11-20", "03:30", "clean", "2", "0", "0", "all"],
        ["2026-11-21", "03:30", "drift", "2", "2", "0", "hal01", "ssh,", "time", "all"],
        ["2026-11-22", "03:30", "not", "all", "seen", "2", "0", "1", "hal02", "no", "role", "all"],
        ["2026-11-23", "03:30", "clean", "1", "0", "0", "time"],
    ]


def test_of_one_node_only_what_looked_at_it(tmp_path: Path, shown: Any) -> None:
    kept(
        tmp_path,
        document(20, {"hal01": [drift("hal01")], "hal02": []}),
        document(21, {"hal01": []}),
        document(22, {"hal01": [drift("hal01")], "hal02": [drift("hal02")]}),
    )
    lines = [line.split() for line in shown("hal02")[1].splitlines()[1:]]
    assert lines == [
        ["2026-11-20", "03:30", "clean", "0", "0", "all"],
        ["2026-11-22", "03:30", "drift", "1", "0", "all"],
    ]
    assert shown("hal03") == (1, 'no audit looked at a node "hal03"; did you mean "hal01"?\n')


def test_a_node_that_a_long_list_left_out_is_not_called_clean(
    tmp_path: Path, shown: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_NAMES", 1)
    kept(tmp_path, document(20, {host: [drift(host)] for host in ("hal01", "hal02")}))
    assert "hal01 and 1 more" in shown()[1]
    assert shown("hal01")[1].splitlines()[1].split()[2:3] == ["drift"]
    assert shown("hal02")[1].splitlines()[1].split()[2:4] == ["not", "kept"]


def test_the_newest_are_shown_and_the_oldest_go(tmp_path: Path, shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST", 5)
    kept(tmp_path, *(document(day, {"hal01": []}) for day in range(1, 9)))
    text = shown("--last", "2")[1]
    assert [day for day in range(1, 9) if f"2026-11-{day:02}" in text] == [7, 8]
    assert text.endswith("3 earlier audits: --last N shows more\n")
    assert [one["at"][8:10] for one in json.loads(shown("--json")[1])] == ["04", "05", "06", "07", "08"]
    assert (tmp_path / "history.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("line", ["{", "[]", '{"at": "x"}', "[" * 100_000])
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, shown: Any, line: str) -> None:
    kept(tmp_path, document(20, {"hal01": []}))
    with (tmp_path / "history.jsonl").open("a") as stream:
        stream.write(f"{line}\n")
    status, text = shown()
    assert status == 1
    assert text.startswith(f"{tmp_path}/history.jsonl:2 ")
    assert text.endswith("Take the line out\n")


def test_what_cannot_be_read_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"\xff\n")
    with pytest.raises(AuditError, match="cannot be read"):
        kept(tmp_path, document(20, {"hal01": []}))
    assert path.read_bytes() == b"\xff\n"


def test_without_an_audit_it_says_what_to_do(shown: Any) -> None:
    assert shown() == (1, "no audit is kept here; hal-audit run makes the first one\n")


@pytest.mark.parametrize("number", ["0", "x", "¹"])
def test_a_number_that_is_none_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["history", "--last", number])
    assert (ended.value.code, "write 1 or more" in capsys.readouterr().err) == (1, True)
