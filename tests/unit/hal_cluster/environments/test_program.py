"""hal-environments: what its commands read, write and print, with a solver of the test; channels and documents."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
import yaml

from hal_cluster.environments import channel, check, cli, solve, specs
from hal_cluster.environments.document import Document
from hal_cluster.environments.errors import FileError, HalEnvironmentsError
from hal_cluster.environments.lock import Lock, Package

HEAD: dict[str, Any] = {"format": 1, "platform": "linux-64", "channels": {"c": "https://c", "d": "https://d"},
                        "specs": ["p"]}  # fmt: skip
ONE = Package("p", "1", "0", 0, "c", "noarch", "p-1-0.conda", 1_240_000_000, "a" * 64, "", (), "")
Call = Callable[..., tuple[int, list[str], list[str]]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with specs of x and y."""
    for name in ("x", "y"):
        (tmp_path / f"{name}.yml").write_text(yaml.safe_dump(HEAD))
    return tmp_path


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the solver was asked; it answers ONE, or what comes last in the list `answers`."""
    asked: list[Any] = []

    def lock(wanted: Any, places: Any, kept: Any = None) -> Lock:
        asked.append((wanted, dict(places), kept))
        return Lock(wanted, {"p": replace(ONE, version="2", file="p-2-0.conda") if kept else ONE})

    monkeypatch.setattr(solve, "lock", lock)
    return asked


@pytest.fixture
def call(folder: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """A function: words -> status, lines, lines of errors."""

    def run(command: str, *words: str) -> tuple[int, list[str], list[str]]:
        places = [] if command == "diff" else ["--folder", str(folder)]
        status = cli.main([command, *places, *words])
        said = capsys.readouterr()
        return status, said.out.splitlines(), said.err.splitlines()

    return run


def test_lock_files_are_written_and_what_changes_is_told(call: Call, folder: Path, solved: list[Any]) -> None:
    wanted = specs.load(folder / "x.yml")
    path = folder / "x.lock.yml"
    size = "1 packages, 1.2 GB to fetch"
    written = [f"{path}: written: {size}", f"{folder}/y.lock.yml: written: {size}"]
    assert call("lock", "--from=c=/m", "--from=d=http://e", "x", "y") == (0, written, [])
    assert solved == [(wanted, {"c": "file:///m", "d": "http://e"}, None)] * 2
    assert call("lock", "x") == (0, [f"{path}: is the same: {size}"], [])
    assert solved[2:] == [(wanted, {}, None)]
    kept = Lock(wanted, {"p": ONE})
    assert call("lock", "--keep", "x") == (0, [f"{path}: written: {size}", "  ~ p 1 0 -> 2 0"], [])
    assert solved[3:] == [(wanted, {}, kept)]
    assert call("lock", "--platform=linux-ppc64le", f"--to={folder}/a/b", "x") == (
        0, [f"{folder}/a/b/x.lock.yml: written: {size}"], [],
    )  # fmt: skip
    assert solved[4:] == [(replace(wanted, platform="linux-ppc64le"), {}, None)]
    assert call("diff", f"{folder}/y.lock.yml", str(path)) == (0, ["~ p 1 0 -> 2 0"], [])
    assert call("diff", str(path), str(path)) == (0, ["nothing changes"], [])


def test_a_channel_that_no_file_has_was_misspelt(call: Call, folder: Path, solved: list[Any]) -> None:
    said: tuple[int, list[str], list[str]] = (2, [], ["--from e: the channels are c, d"])
    assert call("lock", "--from=c=/m", "--from=e=/m", "x") == said
    assert (solved, (folder / "x.lock.yml").exists()) == ([], False)
    call("lock", "x")
    assert call("check", "--from=e=/m") == said
    (folder / "y.yml").write_text(yaml.safe_dump({**HEAD, "channels": {"e": "https://e"}}))
    solved.clear()
    assert call("lock", "--from=e=/m", "x", "y")[0] == 0
    assert [places for _, places, _ in solved] == [{}, {"e": "file:///m"}]


@pytest.mark.parametrize("text", ["c", "c=", "=/m", "="])
def test_a_place_has_a_channel_and_an_address(call: Call, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        call("lock", f"--from={text}", "x")
    assert f"{text!r} is not CHANNEL=PLACE" in capsys.readouterr().err


def test_all_lock_files_of_a_folder_are_checked(
    call: Call, folder: Path, solved: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("check") == (2, [], [f"{folder}: no lock file: run hal-environments lock NAME"])
    call("lock", "y", "x")
    words = "1 packages for linux-64, complete"
    alone = "; not compared with channels (--fetch)"
    right = [f"{folder}/{name}.lock.yml: {words}" for name in "xy"]
    assert call("check") == (0, [line + alone for line in right], [])
    assert call("check", "y") == (0, [right[1] + alone], [])
    asked: list[Any] = []

    def unlike(found: Lock, places: Any) -> list[str]:
        asked.append(dict(places))
        return ["p: gone"] if len(asked) == 1 else []

    monkeypatch.setattr(channel, "unlike", unlike)
    assert call("check", "--fetch") == (2, right[1:], [f"{folder}/x.lock.yml: p: gone"])
    assert call("check", "--from=d=/m", "x") == (0, right[:1], [])
    assert asked == [{}, {}, {"d": "file:///m"}]
    other = {"platform": "linux-ppc64le", "virtual": {"__a": "1"}, "channels": {"c": "https://z"}, "specs": ["p", "q"]}
    (folder / "x.yml").write_text(yaml.safe_dump({**HEAD, **other}))
    (folder / "y.yml").unlink()
    made = [f"{folder}/x.lock.yml: {field} is not that of x.yml: run hal-environments lock x" for field in other]
    assert call("check") == (2, [right[1] + alone], made)
    (folder / "x.lock.yml").write_text("]")
    status, out, errors = call("check")
    assert (status, out, len(errors)) == (2, [right[1] + alone], 1)
    assert errors[0].startswith(f"{folder}/x.lock.yml:1: not YAML: ")
    assert call("check", "none")[0] == 2


def test_specs_with_faults_beside_a_lock_file_are_its_faults(folder: Path) -> None:
    (folder / "x.yml").write_text(yaml.safe_dump({**HEAD, "specs": []}))
    found = check.against_specs(Lock(specs.load(folder / "y.yml"), {"p": ONE}), folder / "x.lock.yml", folder / "x.yml")
    words = "specs: write a list of what is asked for, such as [python 3.7.*, powerai 1.7.0.*]"
    assert [line.partition(": ")[2] for line in found] == [words]


def test_who_interrupts_it_gets_no_traceback(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(solve, "lock", interrupted)
    assert call("lock", "x") == (cli.INTERRUPTED, [], [])
    assert len({cli.OK, cli.FAULT, cli.INTERRUPTED}) == 3


def test_what_a_channel_has_otherwise_is_told_of_each_package(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    two = replace(ONE, name="q", file="q-1-0.tar.bz2", channel="d", subdir="linux-64")
    three, four = replace(ONE, name="r", file="r-1-0.conda"), replace(ONE, name="s", file="s-1-0.conda")
    read: list[str] = []
    content = {
        "https://c/noarch": {"packages.conda": {
            ONE.file: {"sha256": "a" * 64, "size": ONE.size}, four.file: {},
        }},
        "file:///m/linux-64": {"packages": {two.file: {"sha256": "b" * 64, "size": 7}}},
    }  # fmt: skip

    def urlopen(address: str, timeout: int) -> Any:
        assert timeout == 60
        read.append(address)
        return io.BytesIO(json.dumps(content[address.removesuffix("/repodata.json")]).encode())

    monkeypatch.setattr(channel, "urlopen", urlopen)
    locked = Lock(specs.load(folder / "x.yml"), {one.name: one for one in (two, ONE, three, four)})
    assert channel.unlike(locked, {"d": "file:///m/"}) == [
        "r: c has no noarch/r-1-0.conda", f"q: d has sha256 {'b' * 64}, locked is {'a' * 64}",
        f"q: d has size 7, locked is {ONE.size}",
    ]  # fmt: skip
    assert read == ["https://c/noarch/repodata.json", "file:///m/linux-64/repodata.json"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (URLError("no route"), "https://c/x/repodata.json cannot be read: <urlopen error no route>"),
        (OSError("lost"), "https://c/x/repodata.json cannot be read: lost"),
        (ValueError("no address"), "https://c/x/repodata.json cannot be read: no address"),
        (b"[", "https://c//x: its index cannot be read: "), (b"[]", "https://c//x: its index cannot be read: "),
    ],
)  # fmt: skip
def test_a_channel_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch, answer: Any, words: str) -> None:
    def urlopen(*_: Any, **__: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer)

    monkeypatch.setattr(channel, "urlopen", urlopen)
    with pytest.raises(HalEnvironmentsError) as refused:
        channel.index("https://c/", "x")
    assert str(refused.value).startswith(words)


def test_a_document_knows_the_line_of_each_field(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text("# a\na:\n  b:\n    c: 1\n  d: [x,\n      y]\na: 2\ne: {f: 1, f: 2}\n")
    document = Document(path)
    twice = "is there twice, first in line"
    assert document.findings == [f"{path}:7: a {twice} 2: keep one", f"{path}:8: e.f {twice} 8: keep one"]
    document.findings.clear()
    document.refuse()
    for place in (("a", "b", "c"), ("a", "b", "x"), ("a", "d", 1), ("a", "x", "c"), ("x",), (), ("e", "f", "g")):
        document.finding("w", *place)
    assert document.findings == [f"{path}:{line}: w" for line in (4, 3, 6, 2, 1, 1, 8)]
    with pytest.raises(FileError) as refused:
        document.refuse()
    assert refused.value.findings == document.findings


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a\n", ":1: not a mapping of fields"), (b"", ":1: not a mapping of fields"),
        (b"a: 1\nb: ]", ":2: not YAML: "), (b"a: 1\nb\n", ":3: not YAML: "),
        (b"\xff", ": cannot be read: 'utf-8' codec"), (None, ": cannot be read: [Errno 2]"),
    ],
)  # fmt: skip
def test_what_is_no_document_is_refused_with_its_line(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "a.yml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FileError) as refused:
        Document(path)
    (line,) = refused.value.findings
    assert line.startswith(f"{path}{words}")


class Answer(io.BytesIO):
    """What a mirror answers; ``length``: bytes that it promised and that did not come."""

    length = 0

    def read(self, size: int | None = -1) -> bytes:
        """Not all of it: it may never end."""
        assert size is not None
        assert size > 0
        return super().read(size)


def test_an_index_is_read_to_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Answer(b"[" * 1025)
    monkeypatch.setattr(channel, "urlopen", lambda *_, **__: answer)
    monkeypatch.setattr(channel, "MOST_INDEX", 1024)
    with pytest.raises(HalEnvironmentsError) as refused:
        channel.fetch("https://c/", "x")
    assert str(refused.value) == "https://c/x/repodata.json: more than 0.000976562 MiB: not read"
    assert answer.closed
    answer = Answer(b"{}".ljust(1024))
    assert channel.index("https://c/", "x") == {}


def test_an_index_that_is_cut_off_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Answer(b"{}")
    answer.length = 5
    monkeypatch.setattr(channel, "urlopen", lambda *_, **__: answer)
    with pytest.raises(HalEnvironmentsError, match=r"^https://c/x/repodata\.json cannot be read: it is cut off$"):
        channel.fetch("https://c/", "x")


def test_an_index_of_brackets_exhausts_no_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "urlopen", lambda *_, **__: Answer(b"[" * 100_000 + b"]" * 100_000))
    with pytest.raises(HalEnvironmentsError) as refused:
        channel.index("https://c", "x")
    assert str(refused.value) == ("https://c/x: its index cannot be read: data nested deeper than 50 levels: not read")
