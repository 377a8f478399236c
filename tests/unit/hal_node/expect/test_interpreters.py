"""The same expectations give the same results under every Python that a node may have."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from tests.unit.interpreters import EVERY, LOCAL, interpreter

PROJECT = Path(__file__).resolve().parents[4]

ENTRIES: list[dict[str, Any]] = [
    {"id": "content", "file": {"path": "/proc/sys/kernel/ostype"}, "equal": "Linux"},
    {"id": "text beyond ASCII", "file": {"path": "{{ playbook_dir }}/text"}, "contain": ["Größe 5", "zwei  Wörter"]},
    {"id": "name beyond ASCII", "file": {"path": "{{ playbook_dir }}/Größe"}, "equal": "5"},
    {"id": "link beyond ASCII", "file": {"path": "{{ playbook_dir }}/Länge", "read": "target"}, "equal": "Größe"},
    {"id": "text differs", "file": {"path": "{{ playbook_dir }}/text"}, "contain": "Größe 6"},
    {"id": "bytes", "file": {"path": "{{ playbook_dir }}/bytes"}, "equal": "x"},
    {"id": "lines", "file": {"path": "{{ playbook_dir }}/text", "read": "lines"}, "count": 2},
    {"id": "select", "file": {"path": "{{ playbook_dir }}/text", "select": "Gr..e (\\d)"}, "at_least": 5},
    {"id": "mode", "file": {"path": "{{ playbook_dir }}/text", "read": "mode"}, "equal": "0640"},
    {"id": "owner", "file": {"path": "/", "read": "owner"}, "equal": "root"},
    {"id": "group", "file": {"path": "/", "read": "group"}, "equal": 0},
    {"id": "type", "file": {"path": "/proc/self", "read": "type"}, "equal": "link"},
    {"id": "size", "file": {"path": "{{ playbook_dir }}/text", "read": "size"}, "at_most": 100},
    {
        "id": "sha256",
        "file": {"path": "{{ playbook_dir }}/empty", "read": "sha256"},
        "match": "e3b0c44298fc1c149afbf4c8996fb924.*",
    },
    {"id": "absent", "file": {"path": "/no/such"}, "absent": True},
    {"id": "missing", "file": {"path": "/no/such"}, "equal": "x"},
    {"id": "command", "command": {"argv": ["echo", "Größe"], "lines": True}, "equal": ["Größe"]},
    {"id": "exit", "command": {"argv": ["false"], "exit": True}, "equal": 1},
    {"id": "bad exit", "command": {"argv": ["sh", "-c", "echo Größe >&2; exit 4"]}, "equal": "x"},
    {"id": "json", "command": {"argv": ["echo", '{"a": [{"b": true}]}'], "json": True, "key": "a.0.b"}, "equal": "yes"},
    {"id": "timeout", "command": {"argv": ["sleep", "20"], "timeout_seconds": 0.3}, "equal": "x"},
    {"id": "no program", "command": {"argv": ["no-such-program"]}, "absent": True},
    {"id": "no package", "package": {"name": "no-such-package", "read": "installed"}, "equal": False},
    {"id": "unit", "service": {"name": "no such"}, "equal": True},
    {"id": "sysctl", "sysctl": {"name": "kernel.ostype"}, "one_of": ["Linux"]},
    {"id": "words", "sysctl": {"name": "net.ipv4.ip_local_port_range"}, "count": 2},
    {"id": "mount", "mount": {"path": "/proc", "read": "fstype"}, "equal": "proc"},
    {"id": "module", "kernel-module": {"name": "no_such", "read": "version"}, "at_least": "1.0"},
    {"id": "port", "port": {"port": 1}, "equal": False},
    {"id": "bad regex", "sysctl": {"name": "kernel.ostype"}, "match": "{{ '(' }}"},
]
EXPECTED = {
    "text differs": "fail",
    "bytes": "fail",
    "missing": "fail",
    "bad exit": "unknown",
    "timeout": "unknown",
    "no program": "unknown",
    "unit": "unknown",
    "module": "fail",
    "bad regex": "unknown",
}


@pytest.mark.parametrize("version", EVERY)
def test_every_reader_and_matcher_under_this_python(tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    (tmp_path / "text").write_text("Größe 5\nzwei Wörter\n", encoding="utf-8")
    (tmp_path / "text").chmod(0o640)
    (tmp_path / "Größe").write_text("5\n")
    (tmp_path / "Länge").symlink_to("Größe")
    (tmp_path / "bytes").write_bytes(b"\xff\n")
    (tmp_path / "empty").touch()
    (tmp_path / "expect.yml").write_text(json.dumps([{"why": "w", **one} for one in ENTRIES]))
    (tmp_path / "play.yml").write_text(
        json.dumps(
            [
                {
                    "hosts": "localhost",
                    "gather_facts": False,
                    "vars": {"ansible_python_interpreter": LOCAL},
                    "tasks": [
                        {
                            "hal_expect": {"file": "expect.yml", "report_only": True},
                            "register": "r",
                            "vars": {"ansible_python_interpreter": quote(python)},
                            # As a session that nobody gave a language.
                            "environment": {"LC_ALL": "C", "LANG": "C"},
                        },
                        {"copy": {"content": "{{ r | to_json }}", "dest": "{{ playbook_dir }}/result.json"}},
                    ],
                }
            ]
        )
    )
    (tmp_path / "ansible.cfg").write_text(
        "\n".join(
            [
                "[defaults]",
                f"library = {PROJECT}/plugins/modules",
                f"module_utils = {PROJECT}/plugins/module_utils",
                f"action_plugins = {PROJECT}/plugins/action",
                "",
            ]
        )
    )
    environment = {**os.environ, "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg")}
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "-c", "local", "play.yml"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "result.json").read_text())["results"]
    expected = {one["id"]: EXPECTED.get(str(one["id"]), "pass") for one in ENTRIES}
    if not shutil.which("rpm"):
        expected["no package"] = "unknown"
    assert {one["id"]: one["status"] for one in results} == expected
    by_id = {one["id"]: one for one in results}
    assert by_id["text differs"]["reason"] == 'lacks "Größe 6"'
    assert by_id["bytes"]["observed"] == "\ufffd"
    assert by_id["bad exit"]["reason"] == "sh ended with status 4: Größe"
    assert by_id["bad regex"]["reason"].startswith("not a regular expression: ")
