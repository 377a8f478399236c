"""hal-pgi's commands: what each says and does for every version, and what it returns."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.compilers.test_steps import hal_pgi, pgi_install, pgi_tree, version


class Tables:
    """A table of versions that are what a test says, and what is called for them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, table: Any) -> None:
        self.table, self.done = table, list[str]()
        self.fails: dict[str, str] = {}
        for name in ("install", "localrc", "verify"):
            monkeypatch.setattr(pgi_install, name, self._does(name))
        monkeypatch.setattr(pgi_install, "remove", self._remove)
        monkeypatch.setattr(hal_pgi, "undeclared", lambda _: ["/a", "/b"])
        monkeypatch.setattr(pgi_install, "refusals", lambda one: one.refused)

    def _remove(self, path: str, say: Callable[[str], None]) -> None:
        self.done.append(f"remove {path}")
        say("gone")

    def _does(self, name: str) -> Any:
        def call(one: Any, *_: Any) -> Any:
            self.done.append(f"{name} {one.label}")
            if one.label in self.fails:
                raise pgi_tree.Problem(self.fails[one.label])
            return one.found

        return call

    def add(self, label: str, **changes: Any) -> None:
        values = {"repair": "", "localrc": "", "record": {}, "refused": "", "found": "", **changes}
        functions = {
            "repair": lambda: values["repair"], "localrc_wrong": lambda: values["localrc"],
            "record": lambda: values["record"],
        }  # fmt: skip
        one = SimpleNamespace(label=label, refused=values["refused"], found=values["found"], **functions)
        self.table.versions.append(one)

    def run(self, command: str, check: bool = False) -> int:
        self.done.clear()
        code: int = hal_pgi.run(self.table, SimpleNamespace(command=command, check=check))
        return code


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    table = version(tmp_path).table
    table.versions = []
    return Tables(monkeypatch, table)


def test_all_that_are_damaged_are_installed(tables: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    tables.add("a", repair="why a", refused="no licence")
    tables.add("b")
    tables.add("c", repair="why c")
    assert tables.run("install", check=True) == 0
    said = "a: would be installed, for why a; but no licence\nc: would be installed, for why c\n"
    assert (capsys.readouterr().out, tables.done) == (said, [])
    assert (tables.run("install"), tables.done) == (0, ["install a", "install c"])
    tables.fails = {"a": "no a", "c": "no c"}
    assert (tables.run("install"), tables.done) == (1, ["install a", "install c"])
    assert capsys.readouterr().err == "hal-pgi: no a\nhal-pgi: no c\n"


def test_installed_compilers_that_do_not_know_this_node_are_told(
    tables: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    tables.table.installer = False
    tables.add("a", localrc="old gcc")
    tables.add("b", localrc="not installed", record=None)
    tables.add("c")
    tables.add("d", localrc="no file")
    assert tables.run("localrc", check=True) == 0
    assert (capsys.readouterr().out, tables.done) == (
        "a: would be told of this node, for old gcc\nd: would be told of this node, for no file\n", [],
    )  # fmt: skip
    assert (tables.run("localrc"), tables.done) == (0, ["localrc a", "localrc d"])
    tables.fails = {"a": "no"}
    assert (tables.run("localrc"), tables.done) == (1, ["localrc a", "localrc d"])
    assert capsys.readouterr().err == "hal-pgi: no\n"


def test_what_is_left_over_is_erased(tables: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    assert (tables.run("prune", check=True), tables.done) == (0, [])
    assert capsys.readouterr().out == "/a: would be removed\n/b: would be removed\n"
    assert (tables.run("prune"), tables.done) == (0, ["remove /a", "remove /b"])
    assert capsys.readouterr().out == "gone\ngone\n"


def test_every_version_is_read(tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables.table.mount = str(tmp_path)
    assert tables.run("verify") == 0, "nothing is asked of a file system for no version"
    tables.add("a", found="1 missing (x)")
    tables.add("b")
    with pytest.raises(pgi_tree.Problem, match="is not mounted"):
        tables.run("verify")
    tables.table.mount = "/"
    assert (tables.run("verify"), tables.done) == (1, ["verify a", "verify b"])
    assert capsys.readouterr().out == "a: 1 missing (x)\nb: every file is as it was installed\n"
    tables.fails = {"b": "b: lost"}
    tables.table.versions = tables.table.versions[1:]
    assert tables.run("verify") == 1
    assert capsys.readouterr().out == "b: b: lost\n"
    tables.fails = {}
    assert tables.run("verify") == 0


def test_another_node_only_looks_and_tells_its_compilers(tables: Tables) -> None:
    tables.table.installer = False
    words = r"^this node does not install to the shared tree \(service software_installer in the model\)$"
    for command in ("install", "prune", "verify"):
        with pytest.raises(pgi_tree.Problem, match=words):
            tables.run(command)
    assert tables.run("localrc") == tables.run("status") == 0


def test_the_status_has_each_version_and_what_is_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = version(tmp_path)
    monkeypatch.setattr(pgi_tree.Version, "localrc_wrong", lambda _: "no localrc")
    missing = "pgi/19.10 is not installed"
    absent = {
        "label": "pgi/19.10", "wrong": missing, "verified": "there is nothing to read", "late": "", "repair": missing,
        "localrc": "no localrc", "place": f"{one.current}/linuxpower/19.10", "archive": one.archive,
        "missing_archive": True,
    }  # fmt: skip

    def said() -> Any:
        monkeypatch.setattr(sys, "argv", ["hal-pgi", "--table", str(tmp_path / "table.json"), "status"])
        with pytest.raises(SystemExit) as ended:
            hal_pgi.main()
        assert ended.value.code == 0
        return json.loads(capsys.readouterr().out)

    assert said() == {"versions": [absent], "undeclared": []}
    Path(one.archive).touch()
    assert said()["versions"] == [absent | {"missing_archive": False}]
    os.unlink(one.archive)
    prefix = Path(one.prefix)
    prefix.mkdir(parents=True)
    (prefix / ".hal.json").write_text('{"files": {}, "installed_at": 1}')
    Path(one.folder, ".hal").touch()
    Path(one.folder, "f" * 12).mkdir()
    Path(one.current).symlink_to(prefix.name)
    found = said()
    assert (found["undeclared"], found["versions"][0]["missing_archive"]) == ([f"{one.folder}/{'f' * 12}"], False)
    assert found["versions"][0]["late"].startswith("not since ")


@pytest.mark.parametrize(
    ("words", "locks"), [(["install"], True), (["prune"], True), (["install", "--check"], False), (["localrc"], False)]
)
def test_two_that_write_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], locks: bool
) -> None:
    version(tmp_path)
    table = str(tmp_path / "table.json")
    calls: list[Any] = []

    def run(made: Any, asked: Any) -> int:
        calls.append((made.root, asked.command))
        return 7

    def lock(*given: Any) -> Any:
        calls.append(given)
        return nullcontext()

    monkeypatch.setattr(hal_pgi, "run", run)
    monkeypatch.setattr(hal_pgi, "locked", lock)
    monkeypatch.setattr(sys, "argv", ["hal-pgi", "--table", table, *words])
    with pytest.raises(SystemExit) as ended:
        hal_pgi.main()
    assert ended.value.code == 7
    held = [(f"{table}.lock", pgi_tree.Problem, 120, "PGI")] if locks else []
    assert calls == [*held, (str(tmp_path / "pgi"), words[0])]


def test_a_table_that_cannot_be_read_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, code, said in ((["status"], 1, "hal-pgi: /no/table: [Errno 2]"), ([], 2, "usage: hal-pgi")):
        monkeypatch.setattr(sys, "argv", ["hal-pgi", "--table", "/no/table", *words])
        with pytest.raises(SystemExit) as ended:
            hal_pgi.main()
        assert ended.value.code == code
        assert capsys.readouterr().err.startswith(said)
