"""hal_files: files and folders as declared, whole or not at all."""

from __future__ import annotations

import importlib.util
import json
import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ansible.module_utils
import pytest
from ansible.module_utils import basic

PROJECT = Path(__file__).resolve().parents[3]
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

    def run(check: bool = False, **arguments: Any) -> dict[str, Any]:
        given = {"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_check_mode": check}}
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
    answer = run(files=[entry(file)])
    assert (answer["failed"], answer["msg"]) == (True, f"{file}: its directory is not there")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("kind", "words"), [("files", "is there and is not a file"), ("directories", "is there and is not a directory")]
)
@pytest.mark.parametrize("check", [False, True])
def test_what_is_of_another_kind_is_left(run: Run, tmp_path: Path, kind: str, words: str, check: bool) -> None:
    there = tmp_path / "there"
    if kind == "files":
        there.mkdir()
    else:
        there.write_text("mine")
    dangling = tmp_path / "dangling"
    dangling.symlink_to("nowhere")
    for path in (there, dangling):
        answer = run(check=check, **{kind: [entry(path) if kind == "files" else folder(path)]})
        assert (answer["failed"], answer["msg"]) == (True, f"{path} {words}")
    assert sorted(os.listdir(tmp_path)) == ["dangling", "there"]


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
