"""Configuration texts as statements. Only as much of each grammar as it takes to see every directive and its value."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from tests.contract.project import PROJECT

sys.path.insert(0, str(PROJECT / "plugins" / "module_utils"))
from hal_node.slurm.conf import logical_lines, pairs


class Statement(NamedTuple):
    """One directive: the part of the file that it stands in, its name and the rest."""

    scope: str
    name: str
    value: str


class UnreadableError(ValueError):
    """A text that is not of the grammar it should have; the message quotes the place."""


#: (text, names of the scopes that the format has, characters that begin a comment)
Parser = Callable[[str, Collection[str], str], Iterator[Statement]]


def words(text: str, scopes: Collection[str], comments: str) -> Iterator[Statement]:
    """`Name value` or `Name=value`, one a line. A name that is a scope begins that part of the file (Match, Host)."""
    parts = {scope.lower(): scope for scope in scopes if scope}
    scope = ""
    for line in _lines(text, comments):
        name, value = _name_and_value(line)
        if name.lower() in parts:
            yield Statement("", name, value)
            scope = parts[name.lower()]
        else:
            yield Statement(scope, name, value)


def ini(text: str, scopes: Collection[str], comments: str) -> Iterator[Statement]:
    """Sections of `name = value`, or of names alone; an indented line goes on with the value before it."""
    section = ""
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare[0] in comments + ";!":
            continue
        if bare.startswith("["):
            section = bare.strip("[]")
        elif not line[0].isspace() or "=" in bare:
            name, _, value = bare.partition("=")
            yield Statement(section, name.strip(), value.strip())


def slurm(text: str, scopes: Collection[str], comments: str) -> Iterator[Statement]:
    """Slurm's files, by the reader of the node's modules: the first name of a line says what it is about."""
    parts = {scope.lower(): scope for scope in scopes if scope}
    for line in logical_lines(text):
        if line.split()[0].lower() == "include":
            yield Statement("", "Include", line.partition(" ")[2])
            continue
        try:
            found = pairs(line)
        except ValueError as error:
            raise UnreadableError(str(error)) from error
        scope = parts.get(found[0][0].lower(), "")
        for name, value in found:
            yield Statement(scope, name, value)


def httpd(text: str, scopes: Collection[str], comments: str) -> Iterator[Statement]:
    """Directives, and sections under their name with `<`. All of them may be anywhere."""
    for line in _lines(re.sub(r"\\\n", " ", text), comments):
        if not line.startswith("</"):
            name, value = _name_and_value(line.rstrip(">") if line.startswith("<") else line, "")
            yield Statement("", name, value)


def logrotate(text: str, scopes: Collection[str], comments: str) -> Iterator[Statement]:
    """Directives outside of scripts; the names of files before a brace are none."""
    script = False
    for line in _lines(text, comments):
        name, value = _name_and_value(line)
        if name in ("prerotate", "postrotate", "firstaction", "lastaction", "preremove"):
            script = True
            yield Statement("", name, value)
        elif name == "endscript":
            script = False
        elif not script and line[0] not in "/\"'~*{}":
            yield Statement("", name, value)


def limits(text: str, scopes: Collection[str], comments: str) -> Iterator[Statement]:
    """Four columns: who, type, item, value."""
    for line in _lines(text, comments):
        columns = line.split()
        if len(columns) < 4:
            raise UnreadableError(f"not four columns: {line!r}")
        yield Statement("type", columns[1], "")
        yield Statement("item", columns[2], columns[3])


def xml(text: str, scopes: Collection[str], comments: str) -> Iterator[Statement]:
    """Elements in the scope `element`, the attributes of each in a scope of its name."""
    try:
        tree = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise UnreadableError(f"no XML: {error}") from error
    for element in tree.iter():
        yield Statement("element", element.tag, "")
        for name, value in element.attrib.items():
            yield Statement(element.tag, name, value)


def dhcpd(text: str, scopes: Collection[str], comments: str) -> Iterator[Statement]:
    """Statements between `;`, `{` and `}`. Options that the file does not define itself are in the scope `option`."""
    bare = re.sub(r'("(?:\\.|[^"\\])*")|#[^\n]*', lambda found: found[1] or "", text)
    found = []
    for part in re.findall(r'((?:"(?:\\.|[^"\\])*"|[^;{}"])*)[;{}]', bare):
        tokens = part.split()
        if tokens:
            found.append(tokens)
    defined = {tokens[1].lower() for tokens in found if tokens[0].lower() == "option" and "code" in tokens[2:3]}
    for tokens in found:
        yield Statement("", tokens[0], " ".join(tokens[1:]))
        if tokens[0].lower() == "option" and tokens[1:2] != ["space"] and tokens[1].lower() not in defined:
            yield Statement("option", tokens[1], " ".join(tokens[2:]))


_STRING = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
_PARAMETER = re.compile(rf"([\w.]+)\s*=\s*({_STRING}|\[[^\]]*\]|[^\s\")]+)")
# What a statement of rsyslog's language begins with, and where its expression ends.
_EXPRESSIONS = {"if": r"\bthen\b", "foreach": r"\bdo\b", "set": ";", "unset": ";", "reset": ";", "call_indirect": ";"}
_PLAIN = frozenset({"else", "stop", "continue", "call", "then"})


def rsyslog(text: str, scopes: Collection[str], comments: str) -> Iterator[Statement]:
    """Old directives (`$Name`), objects with their parameters (scope `action omfwd`), the words of other statements."""
    bare = re.sub(rf"({_STRING})|/\*.*?\*/|(?:^|(?<=\s))#[^\n]*", lambda found: found[1] or "", text, flags=re.S | re.M)
    at = 0
    while at < len(bare):
        if bare[at] in " \t\n{}&~":
            at += 1
            continue
        line = bare[at:].split("\n", 1)[0]
        word = re.match(r"[a-zA-Z_]\w*(?=[\s({;]|$)", line)
        if line.startswith("$"):
            name, value = _name_and_value(line[1:], "")
            yield Statement("$", name, value)
            at += len(line)
        elif word is None:  # a selector or a property filter; what it does may be an object or a block
            selector = re.match(rf"(?::(?:{_STRING}|\S|\s(?=\S*,|\"))*|\S+)[ \t]*", line)
            at += selector.end() if selector and selector.end() else len(line)
            rest = bare[at:].split("\n", 1)[0]
            if not re.match(r"(\w+\s*\(|\{|stop\b|call\b|~)", rest):
                at += len(rest)
        elif word[0].lower() in _EXPRESSIONS:
            yield Statement("statement", word[0], "")
            at = _after(bare, at, _EXPRESSIONS[word[0].lower()])
        elif re.match(r"\w+\s*\(", line):
            at, inside = _parenthesis(bare, at)
            yield from _object(word[0].lower(), inside, scopes)
        else:
            yield Statement("statement", word[0], "")
            at += len(word[0]) if word[0].lower() in _PLAIN - {"call"} else len(line)


def _object(kind: str, inside: str, scopes: Collection[str]) -> Iterator[Statement]:
    yield Statement("statement", kind, "")
    if kind not in {scope.split()[0] for scope in scopes if scope}:
        return  # one finding is enough
    parameters = [(name, value.strip("\"'")) for name, value in _PARAMETER.findall(inside)]
    key = {"module": "load", "input": "type", "action": "type", "parser": "type"}.get(kind)
    module = next((value.rpartition("/")[2] for name, value in parameters if name.lower() == key), "")
    for name, value in parameters:
        yield Statement(f"{kind} {module}".strip(), name, value)


def _parenthesis(text: str, at: int) -> tuple[int, str]:
    """Return (position after the parenthesis that begins behind `at`, what is in it)."""
    start = text.index("(", at)
    depth = 0
    for found in re.compile(rf"{_STRING}|[()]", re.S).finditer(text, start):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return found.end(), text[start + 1 : found.start()]
    raise UnreadableError(f"a parenthesis does not end: {text[at : at + 40]!r}")


def _after(text: str, at: int, end: str) -> int:
    for found in re.compile(rf"{_STRING}|(?P<end>{end})", re.S).finditer(text, at):
        if found["end"]:
            return found.end()
    raise UnreadableError(f"an expression does not end: {text[at : at + 40]!r}")


def _lines(text: str, comments: str) -> Iterator[str]:
    for line in text.splitlines():
        bare = line.strip()
        if bare and bare[0] not in comments:
            yield bare


def _name_and_value(line: str, also: str = "=") -> tuple[str, str]:
    found = re.match(rf"([^\s{also}]+)\s*[{also}]?\s*(.*)" if also else r"(\S+)\s*(.*)", line)
    if not found:
        raise UnreadableError(f"no directive: {line[:40]!r}")
    return found[1], found[2].strip()


PARSERS: dict[str, Parser] = {
    parser.__name__: parser for parser in (words, ini, slurm, httpd, logrotate, limits, xml, dhcpd, rsyslog)
}
