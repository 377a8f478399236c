"""What programs of nodes print of others' words: one line, of which nothing drives a terminal or ends the program."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.unit.interpreters import EVERY, beside, interpreter

CODE = r"""
import json, sys
from hal_node.printable import say, write
for text in json.load(sys.stdin):
    say(text)
say(b"\xff\x1b[2J")
write(b"{}\n", sys.stderr)
"""
SAID = {
    "a\x1b]0;x\x07\r\nb\x7f": r"a\x1b]0;x\x07\x0d\x0ab\x7f",
    "Größe, 東京": "Größe, 東京",
    "\x9b\u202e\u3164 \u00ad": r"\u009b\u202e\u3164 \u00ad",
    "\U000e0041": r"\U000e0041",
    "c\\x1b": r"c\\x1b",
    "\ud800-\udcff": None,  # halves of letters, which JSON may have: each Python shows them in its own way
}


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("version", EVERY)
def test_every_python_shows_it_in_every_locale(version: str, locale: str) -> None:
    argv = [*beside(interpreter(version)), "-c", CODE]
    environment = {**os.environ, "LC_ALL": locale, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        argv, input=json.dumps(list(SAID)).encode("ascii"), capture_output=True, check=False, env=environment
    )
    assert (done.returncode, done.stderr) == (0, b"{}\n")
    *lines, last = done.stdout.decode("utf-8").splitlines()
    assert last == r"\xff\x1b[2J"
    assert lines[:-1] == [shown for shown in SAID.values() if shown]
    assert lines[-1].isprintable()
    assert lines[-1].count("\\") >= 2
