"""What ran on the nodes was Python 2.7, and it ran everything that there is."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from testinfra.host import Host

NODES = ["hal01"]
SCENARIO = Path(__file__).resolve().parents[1]
PROJECT = SCENARIO.parents[1]
Node = Callable[[str], Host]

# What a task says or includes at the controller: nothing of it reaches a node.
AT_THE_CONTROLLER = frozenset(
    {"assert", "debug", "fail", "meta", "set_fact", "include_tasks", "import_tasks", "include_role", "import_role"}
)
NOT_TRIED = frozenset({"ansible.builtin.reboot"})  # an action at the controller; of modules it sends setup and find
MODULE = re.compile(r"(ansible|community)\.\w+\.\w+")


def started(host: Host) -> list[str]:
    """The versions of the Pythons that the witness saw while the cases ran.

    Without those of dnf, which some promises ask: it brings its own Python, as yum does.
    """
    lines = host.check_output("cat /var/log/interpreters.cases").splitlines()
    return [line.split()[0] for line in lines if not re.search(r"/(dnf|yum)(-3)?( |$)", line)]


@pytest.mark.parametrize("name", NODES)
def test_the_interpreter_is_a_real_python_2_7(node: Node, name: str) -> None:
    host = node(name)
    assert host.check_output("/usr/bin/python -c 'import sys; sys.stdout.write(sys.version)'").startswith("2.7.")
    report = json.loads(host.file("/srv/python2/report.json").content_string)
    assert (report["version"]["major"], report["version"]["minor"]) == (2, 7)
    assert report["executable"].startswith("/usr/bin/python")


@pytest.mark.parametrize("name", NODES)
def test_every_case_ran_under_2_7_and_none_under_3(node: Node, name: str) -> None:
    versions = started(node(name))
    assert versions.count("2.7") > 50, "the witness saw fewer starts than there are tasks"
    assert set(versions) == {"2.7"}


@pytest.mark.parametrize("name", NODES)
def test_the_witness_also_sees_python_3(node: Node, name: str) -> None:
    """Otherwise its silence would say nothing."""
    host = node(name)
    host.check_output("python3 -c pass")
    assert any(line.startswith("3.") for line in host.file("/var/log/interpreters").content_string.splitlines())


@pytest.mark.parametrize("name", NODES)
def test_what_the_modules_made_is_there(node: Node, name: str) -> None:
    host = node(name)
    assert host.file("/srv/python2/plain/copied.conf").content_string == f"grün {name}\n"
    assert host.file("/srv/python2/plain/rendered.conf").content_string.splitlines()[1] == "size = 11"
    assert host.service("python2").is_running
    assert host.service("python2").is_enabled
    assert host.sysctl("net.ipv4.tcp_fin_timeout") == 59
    assert host.user("python2").uid == 6001
    key = host.file("/etc/munge/munge.key")
    assert (key.mode, key.user, key.size) == (0o400, "munge", 48)
    assert host.service("slurmd").is_running
    assert host.file("/srv/python2/slurm/cgroup.conf").content_string == "# grün\nConstrainCores=no\n"


@pytest.mark.parametrize("name", NODES)
def test_slurm_was_asked_to_change_what_differed(node: Node, name: str) -> None:
    calls = node(name).file("/var/log/slurm-stand-in").content_string.splitlines()
    changes = [call for call in calls if re.search(r"\b(add|modify|create|delete|update)\b", call)]
    assert any("carol" in call for call in changes)
    assert any("vision" in call and "scontrol" in call for call in changes)
    assert not any("prolonged" in call for call in changes), "it was as declared"


def expectations() -> list[dict[str, Any]]:
    """The entries that hold."""
    entries: list[dict[str, Any]] = yaml.safe_load((SCENARIO / "expectations" / "kept.yml").read_text())
    return entries


def vocabulary() -> Any:
    """The module that says which readers and matchers there are."""
    return importlib.import_module("hal_node.expect.vocabulary")


def test_every_reader_and_everything_it_reads_has_a_case() -> None:
    words, entries = vocabulary(), expectations()
    for reader, fields in words.READERS.items():
        used = [entry[reader] for entry in entries if reader in entry]
        assert {field for options in used for field in options} >= set(fields), f"{reader}: a field without a case"
        kinds = words.SERVICE_READS if reader == "service" else (fields.get("read") or ("", None))[1] or ()
        assert {options.get("read") for options in used} >= set(kinds), f"{reader}: a kind of reading without a case"


def test_every_matcher_has_a_case_that_holds_and_one_that_does_not() -> None:
    broken = yaml.safe_load((SCENARIO / "expectations" / "broken.yml").read_text())
    for matcher in vocabulary().MATCHERS:
        assert any(matcher in entry for entry in expectations()), f"{matcher} has no case that holds"
        assert any(matcher in entry for entry in broken), f"{matcher} has no case that fails"


def modules(folder: Path) -> Iterator[str]:
    """Names of the modules that the task files below a folder run on nodes."""
    for path in sorted(folder.rglob("*.yml")):
        yield from on_nodes(yaml.safe_load(path.read_text()))


def on_nodes(tasks: Any) -> Iterator[str]:
    """Names of the modules in tasks and their blocks, without those that are delegated to the controller."""
    if isinstance(tasks, list):
        for task in tasks:
            yield from on_nodes(task)
    elif isinstance(tasks, dict) and tasks.get("delegate_to") != "localhost":
        for key, value in tasks.items():
            if MODULE.fullmatch(key):
                if not (key.startswith("ansible.builtin.") and key.rpartition(".")[2] in AT_THE_CONTROLLER):
                    yield key
            else:
                yield from on_nodes(value)


def test_every_module_that_a_role_uses_was_tried() -> None:
    used = {
        name
        for role in (PROJECT / "roles").iterdir()
        for part in ("tasks", "handlers")
        for name in modules(role / part)
    }
    tried = {name for folder in ("cases", "cases_refused") for name in modules(SCENARIO / folder)}
    assert used, "no role was found"
    assert used - tried - NOT_TRIED == set(), "write a task for each in molecule/python2/cases/plain.yml"


def test_an_audit_could_ask_everything() -> None:
    """What the callback hal_audit_report wrote: findings do not matter here, answers do."""
    document = json.loads((PROJECT / ".state/virtual/audit/python2/last.json").read_text())
    assert [one["summary"] for one in document["findings"] if one["resource"] == "node"] == []
    assert sorted(document["nodes"]) == NODES
    for node in document["nodes"].values():
        assert node["watched_files"] > 0
        assert 0 < node["memory_mb"] < 100
