"""The commands in a shell script, as far as they can be seen without running it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

# A value that only the run knows. Digits, so that it is no option of anything.
HELD = "00"
WORDS_BEFORE = frozenset(["if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec", "command"])
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
SHELLS = frozenset(["sh", "bash", "dash"])
# Programs that run the command among their arguments.
RUNNERS = re.compile(
    r"sudo|env|nice|nohup|timeout|flock|runuser|su|xargs|setsid|ionice|chroot|stdbuf|taskset|chrt|numactl|ssh|srun|watch"
    r"|systemd-run|systemd-cat|systemd-inhibit|nsenter|unshare|prlimit|setpriv"
)
# Where find is told to run one.
EXECUTES = frozenset(["-exec", "-execdir", "-ok", "-okdir"])


class _Reader:
    """Reads a script from left to right; what is inside $( ) and ` ` is read as commands of their own."""

    def __init__(self, text: str, line: int = 1) -> None:
        self.text, self.at, self.line = text, 0, line
        self.found: list[tuple[int, list[str]]] = []
        self.documents: list[str] = []

    def read(self, until: str = "") -> None:
        words: list[str] = []
        word: str | None = None
        start, drop = self.line, False
        while self.at < len(self.text):
            c = self.text[self.at]
            if c in " \t\n;&|()<>":
                if word is not None:
                    if not drop:
                        words.append(word)
                    word, drop = None, False
                if c in "<>":
                    words, drop = self._redirection(words)
                    continue
                self._step()
                if c not in " \t":
                    self._end(words, start)
                    words = []
                if c == "\n":
                    self._skip_documents()
                if c == ")" and until == ")":
                    return
                if not words:
                    start = self.line
                continue
            if c == "#" and word is None:
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
                continue
            if self.text.startswith("\\\n", self.at):
                self._step(2)
                continue
            word = (word or "") + self._piece(c)
        if word is not None and not drop:
            words.append(word)
        self._end(words, start)

    def _step(self, count: int = 1) -> str:
        taken = self.text[self.at : self.at + count]
        self.line += taken.count("\n")
        self.at += count
        return taken

    def _end(self, words: list[str], line: int) -> None:
        if words:
            self.found.append((line, words))

    def _piece(self, c: str) -> str:
        """The next part of a word."""
        if c == "\\":
            return self._step(2)[1:]
        if c == "'":
            end = self.text.find("'", self.at + 1)
            return self._step((len(self.text) if end < 0 else end + 1) - self.at).strip("'")
        if c == '"':
            self._step()
            inside = ""
            while self.at < len(self.text) and self.text[self.at] != '"':
                c = self.text[self.at]
                inside += self._piece(c) if c in "\\$`" else self._step()
            self._step()
            return inside
        if c == "`":
            end = self.text.find("`", self.at + 1)
            inner = _Reader(self.text[self.at + 1 : end if end > 0 else None], self.line)
            self._step(len(inner.text) + 2)
            inner.read()
            self.found += inner.found
            return HELD
        if c == "$":
            return self._dollar()
        return self._step()

    def _dollar(self) -> str:
        if self.text.startswith("$((", self.at):
            end = self.text.find("))", self.at)
            self._step((len(self.text) if end < 0 else end + 2) - self.at)
        elif self.text.startswith("$(", self.at):
            self._step(2)
            self.read(until=")")
        elif self.text.startswith("${", self.at):
            end = self.text.find("}", self.at)
            self._step((len(self.text) if end < 0 else end + 1) - self.at)
        else:
            name = re.compile(r"\$(?:\w+|[@*#?$!-])?").match(self.text, self.at)
            self._step(len(name.group()) if name else 1)
        return HELD

    def _redirection(self, words: list[str]) -> tuple[list[str], bool]:
        if here := re.compile(r"<<-?\s*([\"']?)(\w+)\1").match(self.text, self.at):
            self.documents.append(here.group(2))
            self._step(len(here.group()))
            return words, False
        operator = re.compile(r"[<>]+[&|]?").match(self.text, self.at)
        self._step(len(operator.group()) if operator else 1)
        while self.text[self.at : self.at + 1] == " ":
            self._step()
        if words and words[-1].isdigit() and words[-1] != HELD:
            words = words[:-1]
        return words, True

    def _skip_documents(self) -> None:
        for name in self.documents:
            end = re.compile(rf"^\t*{re.escape(name)}$", re.MULTILINE).search(self.text, self.at)
            self._step((end.end() if end else len(self.text)) - self.at)
        self.documents = []


def commands(script: str, line: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Line and words of each simple command, without assignments and keywords before it."""
    reader = _Reader(script, line)
    reader.read()
    for at, words in reader.found:
        while words and (words[0] in WORDS_BEFORE or ASSIGNMENT.match(words[0])):
            words = words[1:]
        if words:
            yield at, words


def calls(words: list[str], programs: frozenset[str], line: int = 1) -> Iterator[tuple[int, list[str]]]:
    """The command itself when its program is one of these, and the commands that it runs in turn."""
    if not words:
        return
    name = PurePosixPath(words[0]).name
    if name in programs:
        yield line, [name, *words[1:]]
    if (name in SHELLS or name in ("su", "runuser", "flock")) and "-c" in words[1:-1]:
        for at, inner in commands(words[words.index("-c") + 1], line):
            yield from calls(inner, programs, at)
    elif name == "find":
        for number, word in enumerate(words):
            if word in EXECUTES:
                yield from calls(words[number + 1 :], programs, line)
    elif RUNNERS.fullmatch(name):
        for number, word in enumerate(words[1:], 1):
            path = PurePosixPath(word)
            if path.name in programs | SHELLS and path.parent.name in ("", "bin", "sbin"):
                yield from calls(words[number:], programs, line)
                return
