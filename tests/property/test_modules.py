"""Any text is one Lua string, and Lua reads it as it was; any list of modules is refused in words or written."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.rules.lmod.declared import problems
from hal_cluster.rules.lmod.files import files
from hal_cluster.rules.lmod.lua import call, comment, quoted

ESCAPED = re.compile(r"\\(\\|\"|n|t|[0-9]{3})|[^\\\"\x00-\x1f\x7f]")
PLAIN = {"\\": "\\", '"': '"', "n": "\n", "t": "\t"}
texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=40)


def read(word: str) -> str:
    """A Lua string in double quotes as Lua 5.1's reference manual (2.1) reads it."""
    assert word[0] == word[-1] == '"'
    inner, found, at = word[1:-1], [], 0
    while at < len(inner):
        match = ESCAPED.match(inner, at)
        assert match, f"{inner[at:]!r} ends the string, or is no escape"
        escape = match[1]
        found.append(match[0] if escape is None else PLAIN.get(escape) or chr(int(escape)))
        at = match.end()
    return "".join(found)


@given(texts)
def test_every_text_is_read_as_it_was(text: str) -> None:
    assert read(quoted(text)) == text
    assert "\n" not in quoted(text)


@given(texts)
def test_a_comment_is_one_line(text: str) -> None:
    assert len(comment(text).split("\n")) == 1
    assert comment(text).startswith("--")


@given(texts, texts)
def test_a_call_has_its_arguments(first: str, second: str) -> None:
    word = call("setenv", first, second)
    assert word == f"setenv({quoted(first)}, {quoted(second)})"


anything = st.one_of(texts, st.integers(), st.booleans(), st.none(), st.lists(texts, max_size=2))
labels = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,5}", fullmatch=True)
modules = st.fixed_dictionaries(
    {"name": labels, "version": labels, "title": texts, "owner_role": st.just("cuda")},
    optional={
        "help": anything,
        "retired": anything,
        "deprecated": anything,
        "family": anything,
        "default": anything,
        "hidden": anything,
        "roots": anything,
        "requires": anything,
        "conflicts": anything,
        "settings_file": anything,
        "set": st.one_of(anything, st.dictionaries(texts, anything, max_size=2)),
        "prepend": st.one_of(anything, st.dictionaries(labels, st.lists(texts, max_size=2), max_size=2)),
    },
)
LINE = re.compile(
    r'--.*|(help|whatis|family|conflict|depends_on|setenv|prepend_path|append_path|module_version|hide_version)\(".*"\)'
    r"|if \(mode\(\).*|  .*|end"
)


@given(st.lists(modules, max_size=3))
def test_what_has_no_fault_is_written_and_every_line_is_one_of_ours(declared: list[dict[str, Any]]) -> None:
    if problems(declared):
        assert all(isinstance(line, str) and "\n" not in line for line in problems(declared))
        return
    for one in files(declared, "/tree"):
        assert one["path"].startswith("/tree/")
        assert one["path"].count("/") == 3
        lines = one["content"].split("\n")
        assert lines[0] == "-- Written by Ansible, role cuda; changes made here are lost."
        assert lines.pop() == ""
        assert [line for line in lines if not LINE.fullmatch(line)] == []
