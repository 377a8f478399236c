"""When SELinux would become stricter on a node, and what is said of it then; by the role's program itself."""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.interpreters import LOCAL
from tests.unit.playing import play_text

PROGRAM = Path(__file__).resolve().parents[4] / "roles/base/files/selinux_stricter.sh"
RECORDED = PROGRAM.with_name("selinux_recorded.py")
AUDIT = Path(__file__).parent / "captures/audit.log"
LABELS = "the boot into it labels every file first, which may take long, and nobody knows yet what it denies"


def said(folder: Path, wanted: str, live: str, saved: str, log: Path = AUDIT) -> list[str]:
    """Lines of the program on a node whose getenforce and file say this."""
    getenforce = folder / "getenforce"
    getenforce.write_text(f"#!/bin/sh\n{live}\n")
    getenforce.chmod(0o755)
    config = folder / "config"
    config.write_text(f"# SELINUX= can take one of these three values\n{saved}SELINUXTYPE=targeted\n")
    text = PROGRAM.read_text().replace("/etc/selinux/config", str(config))
    done = subprocess.run(
        ["/bin/sh", "-c", text, "selinux_stricter", wanted, str(log)],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.replace(str(config), "/etc/selinux/config").splitlines()


@pytest.mark.parametrize(
    ("wanted", "live", "saved"),
    [
        ("enforcing", "Enforcing", "enforcing"),
        ("permissive", "Permissive", "permissive"),
        ("permissive", "Enforcing", "permissive"),
        ("permissive", "Enforcing", "enforcing"),
        ("disabled", "Permissive", "enforcing"),
        ("disabled", "Disabled", "disabled"),
    ],
)
def test_what_makes_it_no_stricter_asks_nobody(tmp_path: Path, wanted: str, live: str, saved: str) -> None:
    assert said(tmp_path, wanted, f"echo {live}", f"SELINUX={saved}\n") == []


def test_a_permissive_node_names_whom_enforcing_would_stop(tmp_path: Path) -> None:
    assert said(tmp_path, "enforcing", "echo Permissive", "SELINUX=permissive\n") == [
        "SELinux is Permissive now, permissive in /etc/selinux/config, declared enforcing",
        f"denied in {AUDIT}: httpd (2), in:imjournal (1)",
    ]


@pytest.mark.parametrize(
    ("wanted", "live", "saved", "first", "second"),
    [
        # setenforce by hand, and a file that somebody changed for the next boot
        ("enforcing", "echo Permissive", "SELINUX=enforcing\n", "Permissive now, enforcing in", "denied in "),
        ("enforcing", "echo Enforcing", "SELINUX=permissive\n", "Enforcing now, permissive in", "denied in "),
        ("enforcing", "echo Disabled", "SELINUX=disabled\n", "Disabled now, disabled in", LABELS),
        ("permissive", "echo Disabled", "SELINUX=disabled\n", "Disabled now, disabled in", LABELS),
        # What cannot be read is not taken for well.
        ("permissive", "exit 1", "SELINUX=enforcing\n", "in a mode that getenforce does not say now,", ""),
        ("permissive", "echo Enforcing", "", "Enforcing now, nothing in", "denied in "),
    ],
)
def test_what_makes_it_stricter_is_said(
    tmp_path: Path, wanted: str, live: str, saved: str, first: str, second: str
) -> None:
    lines = said(tmp_path, wanted, live, saved)
    assert lines[0].startswith(f"SELinux is {first}")
    assert lines[1:] == [] if not second else lines[1].startswith(second)


def test_a_log_without_denials_and_a_log_that_is_not_there_are_not_the_same(tmp_path: Path) -> None:
    empty = tmp_path / "audit.log"
    empty.touch()
    assert len(said(tmp_path, "enforcing", "echo Permissive", "SELINUX=permissive\n", empty)) == 1
    nothing = tmp_path / "nothing"
    assert said(tmp_path, "enforcing", "echo Permissive", "SELINUX=permissive\n", nothing)[1:] == [
        f"what it denied is not known: {nothing} cannot be read"
    ]


RECORD = {"machine_id": "4711", "entries": [
    {"resource": "file:/etc/motd", "declared": {}, "observed": {}},
    {"resource": "selinux:mode", "declared": {"mode": "enforcing"},
     "observed": {"mode": "enforcing", "live": "enforcing"}},
]}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda record: None, "enforcing"),
        (lambda record: record.update(machine_id="4712"), ""),  # of what was installed here before
        (lambda record: record["entries"][1]["observed"].update(live="permissive"), ""),  # it never was in effect
        (lambda record: record["entries"].pop(), ""),
        (lambda record: record.pop("entries"), ""),
    ],
)
def test_the_mode_was_ours_where_the_record_of_this_installation_has_it_in_effect(
    tmp_path: Path, change: Callable[[Any], Any], expected: str
) -> None:
    record = copy.deepcopy(RECORD)
    change(record)
    for name, text in (("record.json", json.dumps(record)), ("machine-id", "4711\n")):
        (tmp_path / name).write_text(text)
    text = RECORDED.read_text().replace("/var/lib/hal/", f"{tmp_path}/").replace("/etc/", f"{tmp_path}/")
    argv = [LOCAL.strip("'"), "-c", text]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == expected
    (tmp_path / "record.json").write_text("{")
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == ""
    (tmp_path / "record.json").unlink()
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == ""


# ---------------------------------------------------------------- what the role makes of it
PLAY = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: base, tasks_from: look}
    - debug: {msg: "{{ __base_selinux_waits }}"}
"""


PERMISSIVE = "printf 'SELinux is Permissive now, enforcing in /etc/selinux/config, declared enforcing'"


@pytest.mark.parametrize(
    ("found", "variables", "waits"),
    [
        (PERMISSIVE, {"__base_selinux_recorded_probe": "print('enforcing')"}, False),
        (PERMISSIVE, {"__base_selinux_recorded_probe": "print('permissive')"}, True),
        (PERMISSIVE, {"__base_selinux_recorded_probe": "print('')"}, True),
        ("printf 'SELinux is Disabled now'", {"__base_selinux_recorded_probe": "print('enforcing')"}, True),
        ("printf 'SELinux is Permissive now\\ndenied: httpd (2)'", {}, True),
        ("printf 'SELinux is Permissive now'", {"base_selinux_stricter_ok": True}, False),
        (":", {}, False),
        ("exit 1", {"base_selinux_mode": "unmanaged"}, False),
    ],
)
def test_what_speaks_against_it_waits_for_permission(
    tmp_path: Path, found: str, variables: dict[str, Any], waits: bool
) -> None:
    named = {"ansible_python_interpreter": LOCAL, "__base_selinux_stricter_probe": found, **variables}
    done = play_text(tmp_path, PLAY, "hal05", sites=("hal",), **named)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["plays"][0]["tasks"][-1]["hosts"]["hal05"]["msg"] is waits
    assert ("Neither is changed without base_selinux_stricter_ok: true" in done.stdout) == waits
    if "denied" in found:
        assert ("hal05: SELinux is Permissive now; denied: httpd (2). Neither is changed" in done.stdout) == waits
