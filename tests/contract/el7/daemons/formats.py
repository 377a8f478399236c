"""The lists as they are in the YAML files beside this, and what a configuration says that they do not have."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from tests.contract.el7.daemons.syntax import PARSERS, Statement, UnreadableError

HERE = Path(__file__).resolve().parent
# Stands in a text for what Jinja would put there. What has it in it is not judged.
UNKNOWN = "\ue000"


@dataclass(frozen=True)
class Words:
    """Words that a release has. `since` and `until` name the first and the last release of those that not all have."""

    words: frozenset[str]
    since: Mapping[str, str] = field(default_factory=dict)
    until: Mapping[str, str] = field(default_factory=dict)
    ignore_case: bool = False

    @staticmethod
    def of(data: Mapping[str, Any], ignore_case: bool) -> Words:
        """Read them from a list's YAML."""
        fold = str.lower if ignore_case else str
        return Words(
            words=frozenset(fold(str(word)) for word in data["words"]),
            since={fold(str(word)): release for word, release in data.get("since", {}).items()},
            until={fold(str(word)): release for word, release in data.get("until", {}).items()},
            ignore_case=ignore_case,
        )

    def lack(self, word: str, release: str) -> str | None:
        """Why a release does not have a word: "" when no release does; None when it has it."""
        word = word.lower() if self.ignore_case else word
        if word not in self.words:
            return ""
        if release and word in self.since and number(release) < number(self.since[word]):
            return f"it came with {self.since[word]}"
        if release and word in self.until and number(release) > number(self.until[word]):
            return f"its last release with it is {self.until[word]}"
        return None


@dataclass(frozen=True)
class Value:
    """What a directive's value may be: words between separators, or flags and options that have a value each."""

    words: Words
    separator: str = ""
    prefix: str = ""
    skip: int = 0
    valued: frozenset[str] | None = None

    @staticmethod
    def of(data: Mapping[str, Any], ignore_case: bool) -> Value:
        """Read it from a list's YAML."""
        options = data.get("options")
        return Value(
            words=Words.of(
                {**data, "words": [*data.get("words", data.get("flags", [])), *(options or [])]}, ignore_case
            ),
            separator=data.get("separator", ""),
            prefix=data.get("prefix", ""),
            skip=data.get("skip", 0),
            valued=None if options is None else frozenset(options),
        )

    def items(self, value: str) -> Iterator[str]:
        """The words of a value that have to be known."""
        if self.valued is not None:
            rest = iter(value.split()[self.skip :])
            for word in rest:
                yield word
                if word.lower() in self.valued:
                    next(rest, None)
            return
        # Without a separator one word; a comment may follow.
        parts = value.split(",") if self.separator == "," else value.split()[: None if self.separator else 1]
        for part in parts:
            word = part.strip().strip("\"'").lstrip(self.prefix)
            if self.separator == ",":
                word = word.partition("=")[0]
            if word:
                yield word


@dataclass(frozen=True, eq=False)
class Format:
    """One kind of configuration file of one release of a daemon."""

    name: str
    data: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The daemon and its release, as people say it."""
        return str(self.data["title"])

    @property
    def release_variable(self) -> str:
        """The variable that says the release, where it is not CentOS that decides it."""
        return str(self.data.get("release", ""))

    def claims(self, name: str, destinations: Sequence[str] = ()) -> bool:
        """True for a file of this kind, by its name in the project or by where it goes."""
        return any(fnmatchcase(name, pattern) for pattern in self.data["templates"]) or any(
            fnmatchcase(path, pattern) for path in destinations for pattern in self.data.get("paths", ())
        )

    def problems(self, text: str, release: str = "", *, values: bool = True) -> list[tuple[Statement, str]]:
        """What the daemon would not understand, in the order of the text, each once; names alone without `values`."""
        if not self.release_variable:
            release = ""
        else:
            release = ".".join(release.split(".")[:2])
            if release not in self.data["releases"]:
                known = ", ".join(self.data["releases"])
                return [
                    (
                        Statement("", "", ""),
                        f"there is no list for {self.title} {release or '(no release)'}, only for {known}",
                    )
                ]
        try:
            statements = list(PARSERS[self.data["syntax"]](text, self.data["scopes"], self.data.get("comments", "#")))
        except UnreadableError as error:
            return [(Statement("", "", ""), str(error))]
        found: dict[tuple[Statement, str], None] = {}
        for statement in statements:
            for problem in (
                *self._of_name(statement, release),
                *(self._of_value(statement, release) if values else ()),
            ):
                found[statement._replace(value=""), problem] = None
        return list(found)

    def _of_name(self, statement: Statement, release: str) -> Iterator[str]:
        if UNKNOWN in statement.scope + statement.name:
            return
        vocabulary = self._vocabulary(statement.scope)
        if not vocabulary:
            if "other_scopes" not in self.data or not statement.scope:
                yield f"{self._said(release)} has no {statement.scope or 'directives outside of a section'}"
            return
        name = self._plain(statement.name, vocabulary)
        lacks = [words.lack(name, release) for words in vocabulary] if name else [None]
        if None not in lacks:
            later = self._later.get(statement.name.lower())
            why = next((lack for lack in lacks if lack), f"it came with {later}" if later else "")
            where = f" in {statement.scope}" if statement.scope not in ("", "$", "statement", "element") else ""
            yield f"{statement.name}{where}: {self._said(release)} does not know it{f' ({why})' if why else ''}"

    def _of_value(self, statement: Statement, release: str) -> Iterator[str]:
        rule = self._values.get(statement.name.lower())
        if rule is None or UNKNOWN in statement.value:
            return
        for word in rule.items(statement.value):
            lack = rule.words.lack(word, release)
            if lack is None:
                continue
            later = self._later.get(word.lower())
            why = lack or (f"it came with {later}" if later else "")
            yield f"{statement.name} {word}: {self._said(release)} does not know it{f' ({why})' if why else ''}"
            if rule.valued is not None:
                return  # what follows may belong to it

    def _said(self, release: str) -> str:
        return f"{self.title} {release}".strip()

    def _plain(self, name: str, vocabulary: Sequence[Words]) -> str:
        """A name as the list has it; "" for one that the daemon skips when it does not know it."""
        if "same_letters" in self.data:  # the first is read as the second
            name = name.replace(*self.data["same_letters"])
        if name.startswith(tuple(self.data.get("free_prefixes", ()))):
            return ""
        for prefix in self.data.get("prefixes", ()):
            bare = name.removeprefix(prefix)
            if bare != name and any(words.lack(bare, "") is None for words in vocabulary):
                return bare
        return name

    def _vocabulary(self, scope: str) -> list[Words]:
        """The words of a part of the file; none when there is no such part."""
        scope = scope.lower() if self.data.get("ignore_case") else scope
        for pattern in self._scopes:
            if fnmatchcase(scope, pattern.lower() if self.data.get("ignore_case") else pattern):
                data = self.data["scopes"][pattern]
                names = [data["same_as"]] if "same_as" in data else [pattern, *data.get("also", ())]
                return [self._scopes[name] for name in names]
        return []

    @functools.cached_property
    def _scopes(self) -> dict[str, Words]:
        ignore = bool(self.data.get("ignore_case"))
        scopes = self.data["scopes"]
        return {name: Words.of(scopes[data.get("same_as", name)], ignore) for name, data in scopes.items()}

    @functools.cached_property
    def _values(self) -> dict[str, Value]:
        values = self.data.get("values", {})
        return {name.lower(): Value.of(data, bool(data.get("ignore_case"))) for name, data in values.items()}

    @functools.cached_property
    def _later(self) -> dict[str, str]:
        return {name.lower(): release for name, release in self.data.get("later", {}).items()}


def number(release: str) -> tuple[int, ...]:
    """A release that can be compared."""
    return tuple(int(part) for part in re.findall(r"\d+", release))


@functools.cache
def formats() -> tuple[Format, ...]:
    """All of them, one for each file."""
    return tuple(Format(path.stem, yaml.safe_load(path.read_text())) for path in sorted(HERE.glob("*.yml")))
