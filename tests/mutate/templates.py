"""Faults in templates: a line is left out, or a number, a word or a condition is another."""

from __future__ import annotations

import re

import jinja2

from tests.mutate.expressions import negated, swaps
from tests.mutate.mutant import Mutant

WORDS = {"yes": "no", "no": "yes", "true": "false", "false": "true", "on": "off", "off": "on"}
COMMENT = re.compile(r"\s*(#|;|//|\{#|$)")
CONDITION = re.compile(r"(\{%-?\s*(?:el)?if )(.+?)(\s*-?%\})")


class Template:
    """The faults that a template can have, by line; its comments have none."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = path, text
        self._lines = text.splitlines(keepends=True)

    def at(self, line: int) -> list[Mutant]:
        """The faults of this line; without those that Jinja does not read."""
        text = self._lines[line - 1]
        if COMMENT.match(text):
            return []
        found = [("no line", "")]
        if number := re.search(r"(?<![\w.])\d+(?![\w.])", text):
            found.append(("other number", f"{text[: number.start()]}{int(number[0]) + 1}{text[number.end() :]}"))
        if word := re.search(rf"(?i)\b({'|'.join(WORDS)})\b", text):
            found.append(("other boolean", text[: word.start()] + WORDS[word[0].lower()] + text[word.end() :]))
        if CONDITION.search(text):
            found.append(("opposite", CONDITION.sub(lambda one: one[1] + negated(one[2]) + one[3], text, count=1)))
        if "{{" in text or "{%" in text:
            found += swaps(text)
        made = (Mutant(self._path, line, kind, self._text, self._with(line, new)) for kind, new in found)
        return [mutant for mutant in made if mutant.after != self._text and _is_read(mutant.after)]

    def _with(self, line: int, text: str) -> str:
        return "".join([*self._lines[: line - 1], text, *self._lines[line:]])


def _is_read(text: str) -> bool:
    try:
        jinja2.Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"]).parse(text)
    except jinja2.TemplateSyntaxError:
        return False
    return True
