"""hal_subids as a node runs it: what it writes, what it refuses, and what it says of both."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ansible.module_utils
import pytest
from ansible.module_utils import basic

PROJECT = Path(__file__).resolve().parents[4]
SHIPPED = str(PROJECT / "plugins/module_utils")
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)
from ansible.module_utils.hal_node.shadow_lock import LockError  # noqa: E402  found through the lines above

ALICE = {"name": "alice", "uid": 5001, "slot": 0, "start": 4294836224, "count": 65536, "enabled": True}
BOB = {"name": "bob", "uid": 5002, "slot": 1, "start": 4294770688, "count": 65536, "enabled": True}
CAROL = {"name": "carol", "uid": 5003, "enabled": False}
OURS = "5001:4294836224:65536\n5002:4294770688:65536\n"


class Node:
    """The files of a node, the module, and what it did beside writing."""

    def __init__(self, folder: Path, module: Any, run: Callable[..., dict[str, Any]]) -> None:
        self.folder, self.module, self._run = folder, module, run
        self.locked: list[list[str]] = []
        self.given: list[tuple[str, str, str, str]] = []
        for name in ("passwd", "group"):
            (folder / name).write_text("root:x:0:0\n")

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def __call__(self, *users: dict[str, Any], check: bool = False, **more: Any) -> dict[str, Any]:
        return self._run({"users": list(users), "ledger": "/l", "_ansible_check_mode": check, **more})

    def texts(self) -> list[str | None]:
        paths = [self.folder / name for name in ("subuid", "subgid")]
        return [path.read_text() if path.exists() else None for path in paths]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Node:
    """A node whose files lie in a folder. Who owns them is only noted: not everybody can give files away."""
    spec = importlib.util.spec_from_file_location("hal_subids_module", PROJECT / "plugins/modules/hal_subids.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(arguments: dict[str, Any]) -> dict[str, Any]:
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode())
        monkeypatch.setattr(basic.AnsibleModule, "log", lambda *_words, **_more: None)
        with pytest.raises(SystemExit):
            module.main()
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    made = Node(tmp_path, module, run)
    tables = {made.path("subuid"): made.path("passwd"), made.path("subgid"): made.path("group")}
    monkeypatch.setattr(module, "FILES", tables)

    @contextlib.contextmanager
    def locks(paths: list[str]) -> Iterator[None]:
        made.locked.append(paths)
        yield

    def give(_self: Any, arguments: dict[str, Any], changed: bool) -> bool:
        made.given.append(tuple(arguments[name] for name in ("path", "owner", "group", "mode")))
        return changed

    monkeypatch.setattr(module, "shadow_locks", locks)
    monkeypatch.setattr(basic.AnsibleModule, "set_fs_attributes_if_different", give)
    return made


def test_both_files_are_made_and_the_second_time_nothing_changes(node: Node) -> None:
    first = node(BOB, ALICE, CAROL)
    both = sorted([node.path("subuid"), node.path("subgid")])
    assert (first["changed"], first["disabled_here"]) == (True, [])
    assert first["diff"] == [
        {"before": "", "after": OURS, "before_header": path, "after_header": path} for path in both
    ]
    assert node.texts() == [OURS, OURS]
    assert node.locked == [both]
    assert node.given == [(path, "root", "root", "0644") for path in both]
    second = node(BOB, ALICE, CAROL)
    assert (second["changed"], second["diff"]) == (False, [])
    assert node.locked == [both]


def test_who_may_read_them_counts_as_a_change(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node(ALICE)
    monkeypatch.setattr(basic.AnsibleModule, "set_fs_attributes_if_different", lambda _self, one, changed: True)
    again = node(ALICE)
    assert (again["changed"], again["diff"]) == (True, [])


def test_check_mode_says_what_would_change_and_changes_nothing(node: Node) -> None:
    (node.folder / "subuid").write_text("other:100000:65536\n")
    done = node(ALICE, check=True)
    assert done["changed"] is True
    assert [(one["before"], one["after"]) for one in done["diff"]] == [
        ("", "5001:4294836224:65536\n"),
        ("other:100000:65536\n", "5001:4294836224:65536\nother:100000:65536\n"),
    ]
    assert node.texts() == ["other:100000:65536\n", None]
    assert node.locked == []


def test_lines_of_others_and_of_who_was_disabled_here_stay(node: Node) -> None:
    (node.folder / "subuid").write_bytes(b"!5001:4294836224:65536\nm\xc3\xbcller:100000:65536\n")
    (node.folder / "subgid").write_text(OURS)
    done = node(ALICE, BOB)
    assert done["disabled_here"] == ["alice"]
    after = "!5001:4294836224:65536\n5002:4294770688:65536\nmüller:100000:65536\n"
    assert [one["after"] for one in done["diff"]] == [after]
    assert node.texts() == [after, OURS]
    assert node(ALICE, BOB, enable_ok=True)["disabled_here"] == []
    assert node.texts() == [after.replace("!", ""), OURS]


def test_faults_are_all_said_and_nothing_is_written(node: Node) -> None:
    (node.folder / "subgid").symlink_to("elsewhere")
    (node.folder / "subuid").write_text("bob:4294836224:65536\n")
    (node.folder / "passwd").write_text("odd:x:4294836224:0\n")
    answer = node(ALICE)
    assert answer["failed"] is True
    first, second, third = answer["msg"].split("\n")
    assert first == f"{node.path('subgid')} is not a file of its own: programs that map ids would read something else"
    assert second.startswith(f"{node.path('subuid')}:1: slot 0 was given to bob and is never given again; alice")
    assert third.startswith(f"{node.path('passwd')}:1: odd has number 4294836224, which is in slot 0 of alice")
    assert (node.folder / "subuid").read_text() == "bob:4294836224:65536\n"
    assert (node.locked, node.given) == ([], [])


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_is_no_file_of_its_own_is_refused(node: Node, kind: str) -> None:
    if kind == "folder":
        (node.folder / "subuid").mkdir()
    else:
        (node.folder / "there").write_text(OURS)
        (node.folder / "subuid").symlink_to("there")
    words = f"{node.path('subuid')} is not a file of its own: programs that map ids would read something else"
    assert node(ALICE)["msg"] == words


def test_what_somebody_wrote_before_the_lock_was_had_is_kept(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def locks(_paths: list[str]) -> Iterator[None]:
        (node.folder / "subuid").write_text("late:100000:65536\n")
        yield

    monkeypatch.setattr(node.module, "shadow_locks", locks)
    node(ALICE)
    assert node.texts() == ["5001:4294836224:65536\nlate:100000:65536\n", "5001:4294836224:65536\n"]


def test_only_what_differs_is_written(node: Node) -> None:
    node(ALICE)
    before = (node.folder / "subgid").stat().st_ino
    (node.folder / "subuid").write_text("")
    assert [one["after_header"] for one in node(ALICE)["diff"]] == [node.path("subuid")]
    assert (node.folder / "subgid").stat().st_ino == before
    assert node.texts() == ["5001:4294836224:65536\n"] * 2


def test_a_lock_that_somebody_holds_is_said(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def locks(_paths: list[str]) -> Iterator[None]:
        raise LockError("somebody holds it")
        yield

    monkeypatch.setattr(node.module, "shadow_locks", locks)
    answer = node(ALICE)
    assert (answer["failed"], answer["msg"]) == (True, "somebody holds it")
    assert node.texts() == [None, None]


@pytest.mark.parametrize("name", ["name", "uid", "enabled"])
def test_a_user_needs_these(node: Node, name: str) -> None:
    answer = node({key: value for key, value in ALICE.items() if key != name})
    assert answer["failed"] is True
    assert f"missing required arguments: {name}" in answer["msg"]
