"""The program hal-audit: its exit statuses, what it calls, prints and refuses, with Ansible's programs played."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import context
from ansible.utils.context_objects import CLIArgs

from hal_cluster.audit import cli
from hal_cluster.audit.cli import playbook, show, sources
from hal_cluster.audit.cli import run as running
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.store import Store, write_json
from hal_cluster.expect.errors import ExpectationsError
from hal_inventory.errors import HalInventoryError

SUMMARY = {"nodes": 1, "resources": 2, "expectations": 3, "seconds": 4, "warnings": 0}
DOCUMENT = {"findings": [], "groups": {}, "options": "", "summary": SUMMARY, "status": 3}

# The program reads one inventory and ends; here several tests read one, and Ansible warns from the second time on.
pytestmark = pytest.mark.filterwarnings("ignore:AnsibleCollectionFinder has already been configured")


def played(monkeypatch: pytest.MonkeyPatch, *words: str, end: Any = 0) -> tuple[int, list[argparse.Namespace]]:
    """The exit status of the program when its command ends so, and the options that this was called with."""
    called = []

    def command(options: argparse.Namespace) -> int:
        called.append(options)
        if isinstance(end, BaseException):
            raise end
        return int(end)

    for name in cli._COMMANDS:
        monkeypatch.setitem(cli._COMMANDS, name, command)
    return cli.main(list(words)), called


@pytest.mark.parametrize("status", [0, 1, 2, 3])
def test_the_program_hands_over_its_options_and_ends_as_its_command_does(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    ended, called = played(monkeypatch, "show", "n1", end=status)
    assert (ended, [(one.command, one.node) for one in called]) == (status, [("show", "n1")])


@pytest.mark.parametrize("error", [AuditError("a\n b"), ExpectationsError("a b"), HalInventoryError("a b")])
def test_an_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    assert played(monkeypatch, "run", end=error)[0] == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "a b\n")


def test_an_interrupted_program_says_so_by_its_status_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert played(monkeypatch, "run", end=KeyboardInterrupt())[0] == 130


def test_a_reader_who_has_had_enough_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[Any] = []
    system = {
        "open": lambda *words: words,
        "devnull": "null",
        "O_WRONLY": 1,
        "dup2": lambda *words: moved.append(words),
    }
    monkeypatch.setattr(cli, "os", SimpleNamespace(**system))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(flush=lambda: None, fileno=lambda: 7))
    assert played(monkeypatch, "run", end=BrokenPipeError())[0] == 0
    assert moved == [(("null", 1), 7)]


@pytest.mark.parametrize(
    ("words", "who"),
    [
        (["fly"], "hal-audit"),
        (["run", "--forks", "x"], "hal-audit run"),
        (["show"], "hal-audit show"),
        (["completion", "fish"], "hal-audit completion"),
        (["run", "--nope"], "hal-audit"),
    ],
)
def test_wrong_words_are_an_error_in_one_line_and_never_drift(
    words: list[str], who: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    said = capsys.readouterr().err
    assert (ended.value.code, said.count("\n"), said.partition(": ")[0]) == (1, 1, who)


def run(monkeypatch: pytest.MonkeyPatch, document: dict[str, Any] = DOCUMENT, /, **more: Any) -> tuple[int, list[str]]:
    """The exit status of an audit that comes to this document, and the command that was called for it."""
    commands: list[list[str]] = []
    monkeypatch.setattr(playbook, "program", lambda name: f"/bin/{name}")

    def audit(command: list[str], err: Any) -> dict[str, Any]:
        assert err is sys.stderr
        commands.append(command)
        return document

    monkeypatch.setattr(running, "audit", audit)
    given = {"sources": [], "limit": "", "rest": [], "roles": [], "forks": 0, "deep": False, "as_json": False, **more}
    status = running.run(argparse.Namespace(**given))
    (command,) = commands
    return status, command


def test_an_audit_plays_its_playbook(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    site = str(playbook.PROJECT / "playbooks" / "audit.yml")
    assert run(monkeypatch) == (3, ["/bin/ansible-playbook", site])
    assert capsys.readouterr().out == "Not everything was seen:  (1 node, 2 resources, 3 expectations, 4 s)\n"
    chosen = {"sources": ["i"], "limit": "n1", "rest": ["-v"], "roles": ["munge", "time"]}
    roles = ["-e", '{"audit_roles": ["munge", "time"]}']
    words = ["/bin/ansible-playbook", "-i", "i", "--limit", "n1", "-v", *roles, site]
    assert run(monkeypatch, as_json=True, **chosen) == (3, words)
    assert json.loads(capsys.readouterr().out) == DOCUMENT
    assert run(monkeypatch, deep=True)[1] == ["/bin/ansible-playbook", "-e", '{"audit_deep": true}', site]
    with pytest.raises(AuditError, match=r"^--deep looks at what no role manages; leave out --role$"):
        run(monkeypatch, deep=True, roles=["time"])


CHILD = """
import json, os, sys
progress = int(os.environ["HAL_AUDIT_PROGRESS"])
for line in ('{"expected": 2}', "no JSON", '{"done": "n1"}', '{"done": "n2"}'):
    os.write(progress, (line + "\\n").encode())
if sys.argv[1:]:
    sys.exit("ERROR! " + sys.argv[1])
with open(os.environ["HAL_AUDIT_DOCUMENT"], "w") as stream:
    json.dump({name: os.environ[name] for name in ("ANSIBLE_CALLBACKS_ENABLED", "ANSIBLE_CALLBACK_PLUGINS")}, stream)
"""


class Terminal(io.StringIO):
    """A terminal or a file."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.isatty = lambda: terminal  # type: ignore[method-assign]


class Awaited(threading.Thread):
    """A thread that is waited for until it ends: on a busy machine it may need longer than the program gives it."""

    def join(self, timeout: float | None = None) -> None:
        super().join(timeout=600)


@pytest.mark.parametrize("terminal", [True, False])
def test_an_audit_says_how_far_it_is_to_a_terminal_alone(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setattr(running, "is_terminal", lambda stream: stream.isatty())
    monkeypatch.setattr(running, "threading", SimpleNamespace(Thread=Awaited))
    err = Terminal(terminal)
    document = running.audit([sys.executable, "-c", CHILD], err)
    assert document == {
        "ANSIBLE_CALLBACKS_ENABLED": "hal_printable,hal_audit_report",
        "ANSIBLE_CALLBACK_PLUGINS": str(playbook.PROJECT / "plugins" / "callback"),
    }
    steps = ["0 of 2 nodes", "1 of 2 nodes", "2 of 2 nodes", "\033[K"]
    assert err.getvalue() == ("".join(f"\r{one}" for one in steps) if terminal else "")


def test_an_audit_without_a_document_says_what_ansible_said() -> None:
    with pytest.raises(AuditError, match=r"^no such inventory$"):
        running.audit([sys.executable, "-c", CHILD, "no such inventory"], Terminal(False))


def test_an_interrupted_audit_ends_ansible_first(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def communicate() -> tuple[str, str]:
        done.append("wait")
        if len(done) == 1:
            raise KeyboardInterrupt
        return "", ""

    child = SimpleNamespace(communicate=communicate, terminate=lambda: done.append("end"))
    monkeypatch.setattr(
        running, "subprocess", SimpleNamespace(Popen=lambda *_words, **_more: child, PIPE=subprocess.PIPE)
    )
    with pytest.raises(KeyboardInterrupt):
        running.audit(["x"], Terminal(False))
    assert done == ["wait", "end", "wait"]


def test_a_program_is_that_of_this_environment_or_one_in_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert playbook.program("ansible-playbook") == str(Path(sys.executable).with_name("ansible-playbook"))
    other = tmp_path / "hal-other"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert playbook.program("hal-other") == str(other)
    with pytest.raises(AuditError, match=r"^hal-nowhere is not installed: make setup$"):
        playbook.program("hal-nowhere")


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An inventory of three nodes of which one has no folder; what the program sets for Ansible is put back."""
    monkeypatch.setenv("ANSIBLE_CONFIG", str(playbook.PROJECT / "ansible.cfg"))
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({}))
    monkeypatch.setattr("ansible.constants.INVENTORY_ENABLED", ["ini"])
    path = tmp_path / "hosts.ini"
    folder = f'hal_audit_dir="{tmp_path}/{{{{ inventory_hostname }}}}"'
    path.write_text(f"n2 {folder}\nn1 {folder}\nn3\n[gpu]\n")
    return path


def test_nodes_and_their_folders_are_as_ansible_reads_them(inventory: Path) -> None:
    read = sources.Inventory([str(inventory)])
    assert (read.nodes(), read.nodes("n1,n2"), read.nodes("gpu")) == (["n1", "n2", "n3"], ["n1", "n2"], [])
    assert read.store("n1").folder == inventory.parent / "n1"
    with pytest.raises(AuditError, match=r"^hal_audit_dir of n3 cannot be told: "):
        read.store("n3")


def test_a_record_is_shown_as_the_controller_has_it(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(node: str, *roles: str, as_json: bool = False) -> str:
        options = {"sources": [str(inventory)], "node": node, "roles": list(roles), "as_json": as_json}
        assert show.show(argparse.Namespace(**options)) == 0
        return capsys.readouterr().out

    entry = {"resource": "file:/a", "role": "time", "commit": "abc", "converged_at": "noon", "source": "x:1"}
    entries = [{**entry, "task": "time|x|Write a"}, {"resource": "file:/b", "role": "ssh", "orphaned": {"since": "x"}}]
    record = {
        "node": "n1",
        "sealed_at": "noon",
        "serial": 7,
        "commit": "",
        "roles": {"b": {}, "a": {}},
        "entries": entries,
    }
    write_json(Store(inventory.parent / "n1").record("n1"), record)
    lines = [line.split() for line in shown("n1").splitlines() if line.strip()]
    assert ["recorded", "noon,", "7", "times"] in lines
    assert ["commit", "(none)"] in lines
    assert ["roles", "a,", "b"] in lines
    assert ["file:/a", "time", "abc", "noon", "x:1", "Write", "a"] in lines
    assert ["file:/b", "(orphaned)", "ssh"] in [line[:3] for line in lines]
    assert "file:/a" not in shown("n1", "ssh")
    assert json.loads(shown("n1", "ssh", as_json=True)) == {**record, "entries": entries[1:]}


@pytest.mark.parametrize(("node", "words"), [("n9", '^no node "n9"'), ("n2", "^n2 has no record here")])
def test_a_node_without_a_record_is_refused(inventory: Path, node: str, words: str) -> None:
    options = argparse.Namespace(sources=[str(inventory)], node=node, roles=[], as_json=False)
    with pytest.raises(AuditError, match=words):
        show.show(options)
