"""What hal-audit shows: help, the width of a terminal, JSON that people can read, and how Ansible is called for it."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys

import pytest

from hal_cluster.audit import cli
from hal_cluster.audit.cli import playbook
from hal_cluster.audit.cli import run as running
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import Finding
from tests.unit.hal_cluster.audit.test_commands import SUMMARY, run

ONE = Finding("n1", "mode", "node", summary=" ".join(["wörd"] * 40)).document()
DOCUMENT = {"status": 2, "summary": SUMMARY, "findings": [ONE], "groups": {}, "options": ""}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("run", "Compare nodes with what was declared; one call a node, nothing is changed."),
        ("takeover", "Say what a rollout would change on nodes that run already."),
        ("show", "Show the record of a node as the controller has it."),
        ("completion", "Print a completion script."),
    ],
)
def test_the_help_of_a_command_says_what_it_does(command: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert (ended.value.code, words in " ".join(capsys.readouterr().out.split())) == (0, True)


def test_what_a_command_printed_is_out_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(io.StringIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed += 1

    out = Slow()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setitem(cli._COMMANDS, "run", lambda _options: 0)
    assert (cli.main(["run"]), out.flushed) == (0, 1)


@pytest.mark.parametrize(("terminal", "longest"), [(True, 98), (False, 80)])
def test_a_report_is_as_wide_as_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool, longest: int
) -> None:
    monkeypatch.setenv("COLUMNS", "98")
    monkeypatch.setattr(running, "is_terminal", lambda _stream: terminal)
    assert run(monkeypatch, DOCUMENT)[0] == 2
    lines = capsys.readouterr().out.splitlines()
    assert longest - 5 < max(len(re.sub(r"\033\[\d*m", "", line)) for line in lines) <= longest
    assert any("\033[" in line for line in lines) is terminal


def test_json_is_indented_sorted_and_readable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, DOCUMENT, as_json=True)[0] == 2
    text = capsys.readouterr().out
    assert text.startswith('{\n  "findings": [\n    {\n      "attribute": "",\n')
    assert "wörd" in text
    assert text.endswith("}\n")


@pytest.mark.parametrize("names", [["muneg"], ["munge", "nothing like it"]])
def test_an_unknown_role_is_refused_before_ansible_is_called(monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    monkeypatch.setattr(playbook, "program", pytest.fail)
    with pytest.raises(AuditError, match=f'^no role "{names[-1]}"'):
        running.run(argparse.Namespace(roles=names))


@pytest.mark.parametrize(("forks", "words"), [(-1, []), (0, []), (1, ["--forks", "1"])])
def test_forks_are_told_if_there_are_any(monkeypatch: pytest.MonkeyPatch, forks: int, words: list[str]) -> None:
    _status, command = run(monkeypatch, forks=forks)
    assert command[1:-1] == words


def test_how_far_an_audit_is_shows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Flushed(io.StringIO):
        def flush(self) -> None:
            seen.append(self.getvalue())
            self.truncate(0)
            self.seek(0)

    monkeypatch.setattr(running, "is_terminal", lambda _stream: True)
    reader, writer = os.pipe()
    os.write(writer, b'{"done": "n1"}\n{"expected": 3}\n')
    os.close(writer)
    running._watch(reader, Flushed())
    assert seen == ["\r1 of 0 nodes", "\r1 of 3 nodes", "\r\033[K"]


def test_what_ansible_prints_is_kept_as_text_and_its_status_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    script = "import os, sys; print(os.environ['MORE']); print('err', file=sys.stderr); sys.exit(4)"
    done = playbook.call([sys.executable, "-c", script], {"MORE": "more"})
    assert (done.returncode, done.stdout, done.stderr) == (4, "more\n", "err\n")
    assert capfd.readouterr().out == ""
