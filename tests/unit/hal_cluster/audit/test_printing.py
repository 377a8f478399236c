"""plugins/callback/hal_printable.py, under a real ansible-playbook: results, diffs and names of a hostile node."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from typing import Any

import pytest
from ansible import constants
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.audit import report
from tests.property.hostile import TEXT, unseen
from tests.unit import playing
from tests.unit.modules import PROJECT, by_path

EVIL = r"a\e[2J\e]0;x\a\x9b31m\u202e\u2028b"
SHOWN = r"a\x1b[2J\x1b]0;x\x07\x9b31m\u202e\u2028b"
PLAY = f"""
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - name: "Diff a file that a node has"
      ansible.builtin.copy: {{content: "new\\tline\\n", dest: "{{{{ folder }}}}/file"}}
      diff: true
    - name: "Print many lines {EVIL}"
      ansible.builtin.debug: {{msg: "one {EVIL}\\ntwo {EVIL}\\n"}}
    - name: Fail
      ansible.builtin.fail: {{msg: "{EVIL}\\n{EVIL}"}}
      ignore_errors: true  # the case of this test: the words of a failure that is ignored are printed as well
    - name: Say something else
      ansible.builtin.command: {{argv: [printf, "{EVIL}\\r\\n{EVIL}"]}}
      failed_when: true
"""
COLOUR = re.compile(r"\x1b\[(?:[012]|(?:[01];)?3[0-7])m")


@pytest.fixture(scope="module")
def plugin() -> Any:
    return by_path(PROJECT / "plugins/callback/hal_printable.py", "hal_printable_callback")


@pytest.mark.parametrize("colour", ["", "1"])
def test_what_a_node_says_drives_no_terminal_and_is_in_no_log(tmp_path: Path, colour: str) -> None:
    (tmp_path / "file").write_text("old \x1b[2J\x1b]0;x\x07\x9b31m\u202e \x1b[8mhidden\n")
    (tmp_path / "play.yml").write_text(PLAY)
    words = ("-e", f"folder='{tmp_path}'", "-vv")
    environment = {"ANSIBLE_LOG_PATH": str(tmp_path / "log"), "ANSIBLE_FORCE_COLOR": colour}
    done = playing.play(
        tmp_path / "play.yml", *words, sites=("hal",), ANSIBLE_CALLBACKS_ENABLED="hal_printable", **environment
    )
    for text in (done.stdout, done.stderr, (tmp_path / "log").read_text()):
        assert unseen(COLOUR.sub("", text).replace("\t", " ")) == []
    plain = COLOUR.sub("", done.stdout)
    assert bool(COLOUR.search(done.stdout)) is bool(colour)
    assert r"-old \x1b[2J\x1b]0;x\x07\x9b31m\u202e \x1b[8mhidden" in plain
    assert "+new\tline" in plain
    assert f"TASK [Print many lines {SHOWN}]" in plain
    assert "failed=1" in plain


def test_each_rollout_has_it() -> None:
    config = configparser.ConfigParser()
    config.read(PROJECT / "ansible.cfg")
    assert "hal_printable" in [one.strip() for one in config["defaults"]["callbacks_enabled"].split(",")]


@given(TEXT | st.lists(st.sampled_from(sorted(set(constants.COLOR_CODES.values()))), max_size=3).map("\x1b[{}m".format))
def test_a_text_of_ansible_s_is_printable(plugin: Any, text: str) -> None:
    found = plugin.printed(text)
    assert unseen(COLOUR.sub("", found).replace("\t", " ")) == []
    assert plugin.printed(found) == found
    assert found.count("\n") == text.count("\n")


@pytest.mark.parametrize("style", report.CODES)
def test_colours_of_an_audit_s_report_stay(plugin: Any, style: str) -> None:
    """The playbook prints it through Ansible, on a terminal in colour."""
    paint = report.Painter(80, True)
    paint.line("words", style)
    assert plugin.printed(paint.lines[0]) == paint.lines[0]


@pytest.mark.parametrize("code", sorted(set(constants.COLOR_CODES.values())))
def test_colours_of_ansible_stay(plugin: Any, code: str) -> None:
    text = f"\x1b[{code}m-old\x1b[0m\n\tx"
    assert plugin.printed(text) == text
