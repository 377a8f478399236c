"""Files of expectations as the audit and hal_expect take them, what is said of unusable ones, and the checker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader

from hal_cluster.expect import __main__ as checker
from hal_cluster.expect import promises
from hal_cluster.expect.errors import ExpectationsError
from hal_cluster.expect.prepare import Preparation, Prepared
from hal_cluster.expect.templating import CompilingTemplar

RUNS = {"why": "jobs need it", "service": {"name": "slurmd"}, "equal": "active"}


def written(folder: Path, content: str | list[Any]) -> str:
    path = folder / "expect.yml"
    if isinstance(content, list):  # one by one: what two have in common would be an alias
        content = "".join(yaml.safe_dump([one], sort_keys=False) for one in content)
    path.write_text(str(content))
    return str(path)


def prepared(path: str) -> list[Prepared]:
    loader = DataLoader()
    preparation = Preparation(CompilingTemplar(loader, {}), loader, {}, "slurm")
    return list(promises.prepare(promises.read(path, loader), path, preparation, "slurm"))


@pytest.mark.parametrize(
    ("role", "words"), [("", "there is no such file"), ("time", "there is no such file: role time promises nothing")]
)
def test_a_file_that_is_not_there_promises_nothing(role: str, words: str, tmp_path: Path) -> None:
    for path in (tmp_path / "none.yml", tmp_path):
        with pytest.raises(ExpectationsError) as refused:
            promises.read(str(path), DataLoader(), role)
        assert str(refused.value) == words


@pytest.mark.parametrize("content", ["", "[]", "{id: a}", "text"])
def test_a_file_without_expectations_is_an_error(content: str, tmp_path: Path) -> None:
    with pytest.raises(ExpectationsError) as refused:
        promises.read(written(tmp_path, content), DataLoader())
    assert str(refused.value) == "nothing was checked: the file has to be a list of expectations that is not empty"


def test_a_file_that_is_not_yaml_is_said_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ExpectationsError, match=r"^line 3 is not YAML: "):
        promises.read(written(tmp_path, "- id: a\n  why: b\n why: c\n"), DataLoader())


def test_an_entry_has_its_line_and_an_id_that_is_used_twice_is_not_asked(tmp_path: Path) -> None:
    path = written(tmp_path, [{"id": "a", **RUNS}, {"id": "b", **RUNS}, {"id": "a", **RUNS}])
    first, second, again = prepared(path)
    assert [one.source.rpartition(":")[2] for one in (first, second, again)] == ["1", "6", "11"]
    assert first.question is not None
    assert second.question is not None
    assert again == promises.fault("slurm", again.source, "an id names one entry; this one is used twice", "a")
    assert (again.status, again.severity, again.secret, again.role) == ("unknown", "error", False, "slurm")


def test_an_entry_that_is_no_mapping_is_unknown_and_the_others_are_asked(tmp_path: Path) -> None:
    path = written(tmp_path, ["text", {"id": "a", **RUNS}])
    wrong, right = prepared(path)
    assert wrong.id.startswith("(entry without id at ")
    assert wrong.source.endswith(":1")
    assert (wrong.question, right.id) == (None, "a")


def test_a_fault_is_unknown_and_has_its_reason() -> None:
    assert promises.fault("time", "roles/time/expect.yml", "it is gone").result() == {
        "id": "expectations", "role": "time", "status": "unknown", "severity": "error", "expected": None,
        "observed": None, "reason": "it is gone", "why": "what is not checked may be wrong",
        "source": "roles/time/expect.yml",
    }  # fmt: skip


def test_a_place_is_as_an_administrator_types_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, here = tmp_path / "project", tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr("ansible.constants.CONFIG_FILE", str(project / "ansible.cfg"))
    assert promises.place(None) == "roles"
    assert promises.place(f"{project}/roles/time/expect.yml") == "roles/time/expect.yml"
    assert promises.place(f"{here}/mine.yml") == "mine.yml"
    for path in (f"{project}s/expect.yml", "/usr/share/expect.yml", f"{tmp_path}/expect.yml"):
        assert promises.place(path) == path
    monkeypatch.setattr("ansible.constants.CONFIG_FILE", None)
    assert promises.place(f"{here}/mine.yml") == "mine.yml"
    assert promises.place(f"{project}/mine.yml") == f"{project}/mine.yml"


def test_answers_belong_to_questions_in_their_order() -> None:
    known: dict[str, Any] = {"role": "r", "source": "f:1", "why": "w", "severity": "error", "secret": False}
    asked = [
        Prepared(id="a", **known, status="skipped", reason="when"),
        Prepared(id="b", **known, question={}),
        Prepared(id="c", **known, reason="broken"),
        Prepared(id="d", **known, question={"sysctl": {}}),
    ]
    answers = [{"status": name, "observed": name, "reason": ""} for name in ("pass", "fail")]
    found = [(one["id"], one["status"], one["observed"], one["reason"]) for one in promises.results(asked, answers)]
    assert found == [
        ("a", "skipped", None, "when"), ("b", "pass", "pass", ""), ("c", "unknown", None, "broken"),
        ("d", "fail", "fail", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({}, "the module gave no results"),
        ({"msg": "no route"}, "no route"),
        ({"msg": "no route", "module_stderr": "ssh:\n  closed\n"}, "no route: ssh: closed"),
        ({"module_stderr": "a" + "b" * 300}, "the module gave no results: " + "b" * 300),
    ],
)
def test_a_call_that_failed_says_why_in_one_line(reply: dict[str, str], words: str) -> None:
    assert promises.no_answer(reply) == f"the call on the node failed: {words}"


def test_the_checker_prints_each_fault_and_none_is_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [{"id": "a", **RUNS}])
    assert checker.main([path]) == 0
    assert capsys.readouterr() == ("", "")
    assert checker.main([path, str(tmp_path / "none.yml"), str(tmp_path / "no.yml")]) == 2
    said = capsys.readouterr()
    assert [line.rpartition("/")[2] for line in said.out.splitlines()] == [
        "none.yml:1: cannot be read: No such file or directory", "no.yml:1: cannot be read: No such file or directory",
    ]  # fmt: skip
    assert said.err == ""


def test_the_checker_refuses_to_check_nothing_and_has_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert checker.main([]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("usage: python -m hal_cluster.expect FILE...")
    assert said.out == ""
    assert checker.main(["--schema"]) == 0
    text = capsys.readouterr().out
    assert json.loads(text)["title"] == "expect.yml: what a role promises"
    assert text.endswith("}\n")
    assert not text.endswith("\n\n")
