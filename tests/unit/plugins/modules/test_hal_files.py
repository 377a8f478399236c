"""hal_files: files and folders as declared, whole or not at all."""

from __future__ import annotations

import importlib.util
import json
import os
import pwd
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ansible.module_utils
import pytest
from ansible.module_utils import basic

from tests.unit.alike import module_utils
from tests.unit.interpreters import NODES, interpreter
from tests.unit.modules import AS_PROGRAM

PROJECT = Path(__file__).resolve().parents[4]
SHIPPED = str(PROJECT / "plugins/module_utils")
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)

ME = pwd.getpwuid(os.geteuid()).pw_name
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function: arguments -> what the module returned."""
    spec = importlib.util.spec_from_file_location("hal_files_module", PROJECT / "plugins/modules/hal_files.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(check: bool = False, silent: bool = False, **arguments: Any) -> dict[str, Any]:
        words = {"_ansible_check_mode": check, "_ansible_no_log": silent}
        given = {"ANSIBLE_MODULE_ARGS": {**arguments, **words}}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps(given).encode())
        monkeypatch.setattr(basic.AnsibleModule, "log", lambda *_words, **_more: None)
        with pytest.raises(SystemExit):
            module.main()
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return run


def entry(path: Path, content: str = "new\n", **changes: Any) -> dict[str, Any]:
    """A declared file."""
    return {"path": str(path), "content": content, "owner": ME, **changes}


def folder(path: Path, mode: str = "0750") -> dict[str, Any]:
    """A declared folder."""
    return {"path": str(path), "mode": mode, "owner": ME}


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o7777)


def test_folders_and_files_are_made_and_the_second_time_nothing_changes(run: Run, tmp_path: Path) -> None:
    file, made = tmp_path / "a/b/file", tmp_path / "a/b"
    arguments = {"directories": [folder(made)], "files": [entry(file, mode="0600")]}
    first = run(**arguments)
    header = {"before_header": str(file), "after_header": str(file)}
    assert (first["changed"], first["paths"]) == (True, [str(made), str(file)])
    assert first["diff"] == [{"before": "", "after": "new\n", **header}]
    assert (file.read_text(), mode(file), mode(made)) == ("new\n", "0o600", "0o750")
    second = run(**arguments)
    assert (second["changed"], second["paths"], second["diff"]) == (False, [], [])


def test_folders_above_that_are_missing_are_as_the_one_that_is_declared(run: Run, tmp_path: Path) -> None:
    assert run(directories=[folder(tmp_path / "a/b/c")])["paths"] == [str(tmp_path / "a/b/c")]
    assert [mode(tmp_path / one) for one in ("a", "a/b", "a/b/c")] == ["0o750"] * 3


def test_what_differs_is_mended_and_the_diff_shows_content_alone(run: Run, tmp_path: Path) -> None:
    file, other = tmp_path / "file", tmp_path / "other"
    file.write_text("old\n")
    other.write_text("new\n")
    for path in (file, other):
        path.chmod(0o666)
    tmp_path.chmod(0o777)
    done = run(directories=[folder(tmp_path)], files=[entry(file), entry(other)])
    assert done["paths"] == [str(tmp_path), str(file), str(other)]
    assert [(one["before"], one["after"]) for one in done["diff"]] == [("old\n", "new\n")]
    assert (file.read_text(), mode(file), mode(other), mode(tmp_path)) == ("new\n", "0o644", "0o644", "0o750")


def test_check_mode_says_what_would_change_and_changes_nothing(run: Run, tmp_path: Path) -> None:
    file, nowhere = tmp_path / "file", tmp_path / "nowhere"
    file.write_text("old\n")
    file.chmod(0o600)
    found = run(
        check=True, directories=[folder(nowhere)], files=[entry(file), entry(nowhere / "x"), entry(file, "old\n")]
    )
    assert found["paths"] == [str(nowhere), str(file), str(nowhere / "x"), str(file)]
    assert [(one["before"], one["after"]) for one in found["diff"]] == [("old\n", "new\n"), ("", "new\n")]
    assert (os.listdir(tmp_path), file.read_text(), mode(file)) == (["file"], "old\n", "0o600")


def test_an_owner_that_a_package_brings_later_is_a_change_in_check_mode_and_a_fault_otherwise(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("new\n")
    declared = [entry(file, owner="no-such-user")]
    assert run(check=True, files=declared)["paths"] == [str(file)]
    assert "no-such-user" in run(files=declared)["msg"]


def test_a_file_whose_folder_is_not_there_is_refused_in_words(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "nowhere/file"
    answer = run(files=[entry(tmp_path / "other"), entry(file)])
    assert (answer["failed"], answer["msg"]) == (True, f"{file}: its directory is not there; nothing was written")
    assert os.listdir(tmp_path) == []


def occupied(folder: Path) -> dict[Path, str]:
    """Paths with something that is no file, and what the module calls it."""
    (folder / "directory").mkdir()
    (folder / "directory/mine").write_text("mine")
    os.mkfifo(folder / "fifo")
    (folder / "to directory").symlink_to(folder / "directory")
    (folder / "device").symlink_to("/dev/zero")
    (folder / "broken").symlink_to("nowhere\n")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket"))
    return {
        folder / "directory": "a directory",
        folder / "fifo": "a FIFO",
        folder / "to directory": f"a link to {folder}/directory, a directory,",
        folder / "device": "a link to /dev/zero, a device,",
        folder / "broken": "a link to nowhere\\x0a, which is not there,",
        folder / "socket": "a socket",
        Path("/dev/zero"): "a device",
    }


@pytest.mark.parametrize("check", [False, True])
def test_what_is_no_file_is_named_and_nothing_of_the_call_is_written(run: Run, tmp_path: Path, check: bool) -> None:
    """ansible.builtin.copy and template would write into the directory, and say "changed"."""
    there, made = occupied(tmp_path), tmp_path / "made"
    before = sorted(tmp_path.rglob("*"))
    # Also where another module writes.
    for arguments in ({"files": list(map(entry, there))}, {"places": list(map(str, there))}):
        files = [entry(made / "other"), *arguments.pop("files", [])]
        answer = run(check=check, directories=[folder(made)], files=files, **arguments)
        lines = [f"{path} is {words} where a file belongs: move it away" for path, words in there.items()]
        assert (answer["failed"], answer["msg"].split("; ")) == (True, [*lines, "nothing was written"])
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("check", [False, True])
def test_where_a_folder_belongs_nothing_else_is_taken(run: Run, tmp_path: Path, check: bool) -> None:
    file, real, link = tmp_path / "file", tmp_path / "real", tmp_path / "link"
    file.write_text("mine")
    real.mkdir()
    link.symlink_to(real)
    said = f"{file} is a file where a directory belongs: move it away; nothing was written"
    for path in (file, file / "below/it"):
        assert run(check=check, directories=[folder(path)], files=[entry(tmp_path / "other")])["msg"] == said
        assert run(check=check, files=[entry(tmp_path / "other"), entry(path / "x")])["msg"] == said
    assert sorted(os.listdir(tmp_path)) == ["file", "link", "real"]
    assert run(check=check, directories=[folder(link / "new")])["paths"] == [str(link / "new")]


def test_a_place_of_another_module_may_be_free_or_have_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    free = [str(tmp_path / "file"), str(tmp_path / "nowhere/file")]
    assert run(places=free)["paths"] == []
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("text", ["new\n", "old\n"])
def test_a_link_to_a_file_is_replaced_and_the_other_file_is_left(run: Run, tmp_path: Path, text: str) -> None:
    """The record has a file there, whatever is in it."""
    other, link = tmp_path / "other", tmp_path / "link"
    other.write_text(text)
    link.symlink_to(other)
    foretold = run(check=True, files=[entry(link)])
    assert foretold["paths"] == [str(link)]
    assert foretold["diff"][0]["before_header"] == f"{link} (a link to {other}, a file)"
    assert link.is_symlink()
    assert run(files=[entry(link)])["paths"] == [str(link)]
    assert (link.is_symlink(), link.read_text(), other.read_text()) == (False, "new\n", text)
    assert run(files=[entry(link)])["paths"] == []


def test_what_is_replaced_is_kept_where_that_is_said(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    run(files=[entry(file, "first\n", backup=True)])
    run(files=[entry(file, backup=True)], check=True)
    assert os.listdir(tmp_path) == ["file"]
    for _ in range(2):
        run(files=[entry(file, backup=True)])
    (kept,) = tmp_path.glob("file.*~")
    assert (kept.read_text(), file.read_text()) == ("first\n", "new\n")


def test_a_command_reads_the_file_first_and_may_refuse_the_call(run: Run, tmp_path: Path) -> None:
    file, other, seen = tmp_path / "file", tmp_path / "other", tmp_path / "seen"
    validate = f'/bin/sh -c \'stat -c %%a "$1" >>{seen}; ! grep -H new "$1"\' judge %s'
    declared = [entry(other), entry(file, mode="0640", validate=validate)]
    answer = run(files=declared)
    assert answer["msg"] == f"{file} failed to validate: {file}:new; nothing was written"
    assert (os.listdir(tmp_path), seen.read_text()) == (["seen"], "640\n")
    good = entry(file, "good\n", validate=validate)
    assert run(check=True, files=[good])["changed"]
    assert [run(files=[good])["changed"] for _ in range(2)] == [True, False]
    assert seen.read_text() == "640\n644\n"  # not in check mode, and not for what does not change
    silent = entry(other, validate="/bin/false %s")
    assert run(files=[silent])["msg"] == f"{other} failed to validate: status 1; nothing was written"


def test_a_silent_task_shows_no_content(run: Run, tmp_path: Path) -> None:
    answer = run(silent=True, files=[entry(tmp_path / "file", "word\n")])
    answer.pop("invocation")  # the controller leaves it out
    assert "word" not in json.dumps(answer)
    assert (tmp_path / "file").read_text() == "word\n"


@pytest.mark.parametrize(("user", "expected"), [(0, ("root", "root")), (1000, (None, None))])
def test_without_an_owner_root_s_files_are_root_s_and_a_group_may_be_another(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, expected: tuple[str | None, str | None]
) -> None:
    given: list[tuple[str | None, str | None]] = []

    def noted(_: Any, arguments: dict[str, Any], changed: bool) -> bool:
        given.append((arguments["owner"], arguments["group"]))
        return changed

    monkeypatch.setattr(basic.AnsibleModule, "set_fs_attributes_if_different", noted)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    owners: list[dict[str, str]] = [{}, {"owner": "u"}, {"owner": "u", "group": "g"}]
    files = [{"path": str(tmp_path / str(at)), "content": "x\n", **one} for at, one in enumerate(owners)]
    run(files=files, directories=[{"path": str(tmp_path / "d"), "mode": "0755"}])
    assert given == [expected, expected, ("u", "u"), ("u", "g")]


def test_a_reader_never_meets_half_of_a_file(run: Run, tmp_path: Path) -> None:
    """Who has the old file open reads it to its end: the new one takes its name."""
    file = tmp_path / "file"
    file.write_text("old\n")
    with file.open() as reader:
        run(files=[entry(file)])
        assert reader.read() == "old\n"
    assert file.read_text() == "new\n"


def test_a_script_that_the_shell_cannot_read_is_refused_before_anything_is_written(run: Run, tmp_path: Path) -> None:
    script, made = tmp_path / "made/script", tmp_path / "made"
    text = "#!/bin/sh\necho '{}'\n"
    broken = run(directories=[folder(made)], files=[entry(made / "other"), entry(script, text.format("it's"))])
    assert broken["failed"]
    assert broken["msg"].startswith(f"sh: {script}: ")
    assert broken["msg"].endswith("; nothing was written")
    assert os.listdir(tmp_path) == []
    same = [entry(made / "script", text.format("it's")), entry(tmp_path / "script", text.format("its"))]
    for order in (same, same[::-1]):
        assert run(files=order)["msg"].startswith(f"sh: {script}: ")
    assert run(directories=[folder(made)], files=[entry(script, text.format("its"))])["paths"] == [
        str(made),
        str(script),
    ]


@pytest.mark.parametrize("check", [False, True])
def test_a_masked_unit_is_replaced_as_template_does(tmp_path: Path, run: Run, check: bool) -> None:
    masked = tmp_path / "hal-smt.service"
    masked.symlink_to(os.devnull)
    answer = run(check=check, files=[entry(masked)])
    assert answer["paths"] == [str(masked)]
    assert masked.is_symlink() is check
    assert check or (masked.read_text() == "new\n" and mode(masked) == "0o644")


@pytest.mark.parametrize("python", NODES)
def test_each_python_of_nodes_refuses_and_writes_alike(tmp_path: Path, python: str) -> None:
    program = str(PROJECT / "plugins/modules/hal_files.py")
    argv = [interpreter(python), "-c", AS_PROGRAM, *module_utils(), program]

    def answer(**arguments: Any) -> dict[str, Any]:
        given = json.dumps({"ANSIBLE_MODULE_ARGS": arguments})
        done = subprocess.run(argv, input=given, capture_output=True, text=True, check=False)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    there, file = occupied(tmp_path), tmp_path / "grün"
    lines = [f"{path} is {words} where a file belongs: move it away" for path, words in there.items()]
    refused = answer(files=[entry(file), *map(entry, there)])
    assert refused["msg"] == "; ".join([*lines, "nothing was written"])
    assert not file.exists()
    unread = answer(files=[entry(file, "grün\n", validate="grep -c new %s")])
    assert unread["msg"] == f"{file} failed to validate: 0; nothing was written"
    assert [answer(files=[entry(file, "new grün\n", validate="grep -c new %s")])["paths"] for _ in range(2)] == [
        [str(file)],
        [],
    ]
    assert file.read_text() == "new grün\n"
