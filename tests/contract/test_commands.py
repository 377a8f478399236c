"""Every command of README, docs/ and the roles' pages is one that works: our own programs read it, names in it exist.

What is no program of ours is in commands.yml: which test runs it, or that it is an example of a real machine.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.pages import PROJECT, Command, commands, pages
from tests.unit.command_lines import read

EVERY = [command for page in pages() for command in commands(page)]
LISTED: list[dict[str, str]] = yaml.safe_load(Path(__file__).with_name("commands.yml").read_text())
SCRIPTS = {
    "hal-inventory": "hal_cluster.inventory.cli",
    **{f"hal-{name}": f"hal_cluster.{name}.cli" for name in ("audit", "environments", "packages")},
}
MODULES = re.compile(r"hal_\w+")
MAKEFILE = (PROJECT / "Makefile").read_text()
OWN = (*SCRIPTS, "ansible-playbook", "make", "python -m hal_", "molecule/virtual_hal/setup")


def own(command: Command) -> bool:
    """Whether a program of the controller's is called, alone."""
    return command.typed.startswith(OWN)


def wrong(command: Command, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what is wrong with a command of ours; empty when nothing is."""
    words = command.words
    # What stands behind the first command of a line is the shell's.
    ends = [at for at, word in enumerate(words) if word in ("&&", "|", ";") or word.startswith(">")]
    words = words[: ends[0]] if ends else words
    if words[0] == "make":
        return _make(words[1:])
    if words[0] == "ansible-playbook":
        return _playbook(words[1:])
    if words[0] == "molecule/virtual_hal/setup":
        return _read("testbed.cli", words[1:], monkeypatch)
    if words[0] == "python":
        module = words[2]
        own = (PROJECT / module.replace(".", "/") / "cli.py").is_file()
        return _read(f"{module}.cli" if own else module, words[3:], monkeypatch)
    return _read(SCRIPTS[words[0]], words[1:], monkeypatch)


def _read(program: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    if program == "hal_cluster.expect":
        return "" if all(list(PROJECT.glob(word)) for word in words) else "no such file"
    if program == "testbed.cli" and words[0] in ("fabric", "bmc"):
        return ""  # those parse what is left themselves: tests/unit/virtual_hal
    try:
        with monkeypatch.context() as only:
            read(program, [word for word in words if word != "..."], only)
    except SystemExit as refused:
        return f"{program} refuses it with status {refused.code}"
    return ""


def _make(words: list[str]) -> str:
    for word in words:
        name, sets, _ = word.partition("=")
        if sets and not re.search(rf"^{name} [?:]=|\$\(or \$\({name}\)|\$\({name}\)", MAKEFILE, re.MULTILINE):
            return f"make knows no {name}"
        if not sets and not re.search(rf"^{re.escape(name)}:", MAKEFILE, re.MULTILINE):
            return f"make has no target {name}"
    return ""


@functools.cache
def _names() -> frozenset[str]:
    """Variables that roles declare in argument_specs, or that a playbook reads; each has an underscore."""
    specs = [path.read_text() for path in PROJECT.glob("roles/*/meta/argument_specs.yml")]
    declared = re.findall(r"^ +([a-z]+(?:_[a-z0-9]+)+):", "\n".join(specs), re.MULTILINE)
    books = [path.read_text() for path in PROJECT.glob("playbooks/**/*.yml")]
    read = re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b", "\n".join(books))
    return frozenset((*declared, *read))


@functools.cache
def _parser() -> Any:
    from ansible.cli.playbook import PlaybookCLI

    cli = PlaybookCLI(["ansible-playbook"])
    cli.init_parser()
    return cli.parser


def _playbook(words: list[str]) -> str:
    try:
        given = _parser().parse_args([word for word in words if word != "..."])
    except SystemExit:
        return "ansible-playbook refuses it"
    for name in given.args:
        if not (PROJECT / name).is_file():
            return f"there is no {name}"
    for extra in given.extra_vars:
        for name in re.findall(r"(?:^|\s)(\w+)=", extra):
            if name not in _names():
                return f"nobody reads {name}"
    roles = {path.name for path in (PROJECT / "roles").iterdir()}
    for tag in ",".join([*given.tags, *given.skip_tags]).split(","):
        if tag and tag not in {*roles, "all"}:
            return f"no role is called {tag}"
    return _limit(given.subset)


@functools.cache
def _inventory() -> Any:
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader()
    return InventoryManager(DataLoader(), [str(PROJECT / "inventory" / "hal" / "hal.yml")])


def _limit(pattern: str | None) -> str:
    """Return what is wrong with a --limit: HAL's inventory has no such node."""
    return "" if pattern is None or _inventory().get_hosts(pattern) else f"--limit {pattern} matches no node"


@pytest.mark.parametrize("command", [one for one in EVERY if own(one)], ids=str)
def test_a_command_of_ours_is_read_as_it_is_written(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrong(command, monkeypatch) == ""


def test_all_else_is_run_by_a_test_or_is_an_example() -> None:
    left = [one for one in EVERY if not own(one) and not any(_meant(entry, one) for entry in LISTED)]
    assert left == [], "add these to tests/contract/commands.yml: `run` with the test, or `example` with the reason"


def test_what_is_listed_is_there_and_says_who_runs_it() -> None:
    for entry in LISTED:
        assert any(_meant(entry, one) for one in EVERY), f"{entry}: no page has such a command"
        if "run" in entry:
            for word in entry.get("by", entry["command"].split()[0].rstrip("$")).split():
                assert word in (PROJECT / entry["run"]).read_text(), f"{entry['run']} has no {word}"
        assert set(entry) & {"run", "node", "example"}, entry


def _meant(entry: dict[str, str], command: Command) -> bool:
    return re.match(entry["command"], command.typed) is not None and command.page.startswith(entry.get("page", ""))
