"""A keyed hash over everything that a role's declaration is made from: its own files and the variables they use."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAME = re.compile(r"[A-Za-z_]\w*")
REGISTERED = re.compile(r"^\s*(?:-\s+)?register:\s*[\"']?(\w+)", re.MULTILINE)
SET_FACT = re.compile(r"^(?P<indent>[ -]*)(?:ansible\.builtin\.)?set_fact:[ \t]*(?:\{(?P<inline>.*)\})?", re.MULTILINE)
KEY = re.compile(r"^(?P<indent>\s+)[\"']?(?P<name>[A-Za-z_]\w*)[\"']?:")
EXPRESSION = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)
INCLUDED = re.compile(r"\b(?:include|import|from|extends)\s+[\"']([^\"']+)")
VAULT = b"$ANSIBLE_VAULT"
# The folders from which a role makes its node. Documentation and expectations change nothing there.
FOLDERS = ("defaults", "files", "handlers", "library", "tasks", "templates", "vars")
# Ansible sets these for the run; nobody declares them.
MAGIC = {
    *("environment", "group_names", "groups", "hostvars", "inventory_dir", "inventory_file", "inventory_hostname"),
    *("inventory_hostname_short", "item", "omit", "play_hosts", "playbook_dir", "vars"),
    *("role_name", "role_names", "role_path", "role_uuid"),
    "hal_validated",  # what playbooks/validate.yml registers: who was asked in this run
}


@dataclass(frozen=True)
class RoleText:
    """A role's files: one digest over all, and every word in them that could be a variable."""

    digest: str
    names: frozenset[str]


class Roles:
    """Reads each role once."""

    def __init__(self) -> None:
        """Nothing read yet."""
        self._texts: dict[str, RoleText] = {}
        self._made: dict[str, frozenset[str]] = {}

    def text(self, path: str) -> RoleText:
        """The digest and the words of the role in a folder."""
        if path not in self._texts:
            self._texts[path] = _read(Path(path))
        return self._texts[path]

    def made_while_running(self, path: str) -> frozenset[str]:
        """Names that tasks register or set, of the role and of those beside it: results, not inputs."""
        folder = str(Path(path).parent)
        if folder not in self._made:
            files = [*Path(folder).glob("*/tasks/**/*.yml"), *Path(folder).glob("*/handlers/**/*.yml")]
            self._made[folder] = frozenset(name for file in files for name in made_names(_text(file)))
        return self._made[folder]


class Variables:
    """The variables of one host, raw: their canonical text and the words in them, each worked out once."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """`values` are not copied and not changed."""
        self.values = values
        self._known: dict[str, tuple[str, frozenset[str]]] = {}

    def canonical(self, name: str) -> str:
        """The same value has the same text, wherever it was read."""
        return self._worked_out(name)[0]

    def words(self, name: str) -> frozenset[str]:
        """Every word in the value that could be a variable."""
        return self._worked_out(name)[1]

    def reach(self, names: Iterable[str], without: frozenset[str] = frozenset()) -> set[str]:
        """Return `names` and every word that the values of those that are variables lead to."""
        reached: set[str] = set()
        pending = set(names) - without
        while pending:
            name = pending.pop()
            reached.add(name)
            if name in self.values and not is_runtime(name):
                pending |= self.words(name) - reached - without
        return reached

    def _worked_out(self, name: str) -> tuple[str, frozenset[str]]:
        if name not in self._known:
            value = self.values[name]
            words = frozenset(word for text in strings(value) for word in NAME.findall(text))
            self._known[name] = (canonical(value), words)
        return self._known[name]


def inputs_hash(
    role_path: str, variables: Mapping[str, Any] | Variables, key: bytes, roles: Roles | None = None
) -> str:
    """Return the hash of a role's inputs for the host whose raw variables are given.

    Equal at converge (the variables of the host) and in an audit (the variables of a task): facts, magic variables and
    names that tasks register or set are left out. Vaulted values count by their ciphertext.
    """
    roles = roles or Roles()
    known = variables if isinstance(variables, Variables) else Variables(variables)
    role = roles.text(role_path)
    made = roles.made_while_running(role_path)
    used = known.reach((name for name in role.names if name in known.values and not is_runtime(name)), made)
    values = {name: known.canonical(name) for name in used if name in known.values and not is_runtime(name)}
    message = json.dumps([role.digest, values], sort_keys=True)
    return hmac.new(key, message.encode(), hashlib.sha256).hexdigest()


def is_runtime(name: str) -> bool:
    """True for facts, connection settings, magic variables, and codes that fit one run (..._confirm)."""
    return name.startswith("ansible_") or name in MAGIC or name.endswith("_confirm")


def words(text: str) -> set[str]:
    """Every word of a text that could be a variable."""
    return set(NAME.findall(text))


def made_names(text: str) -> Iterator[str]:
    """Names that a file of tasks registers or sets by set_fact."""
    yield from REGISTERED.findall(text)
    for matched in SET_FACT.finditer(text):
        if matched["inline"]:
            yield from re.findall(r"(\w+)\s*:", matched["inline"])
            continue
        wanted: int | None = None
        for line in text[matched.end() :].splitlines()[1:]:
            key = KEY.match(line)
            indent = len(line) - len(line.lstrip())
            if line.strip() and indent <= len(matched["indent"]):
                break
            wanted = indent if wanted is None and line.strip() else wanted
            if key and indent == wanted:
                yield key["name"]


def canonical(value: Any) -> str:
    """A value as text, keys sorted; a vaulted one as its ciphertext."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    ciphertext = getattr(value, "_ciphertext", None)
    if ciphertext is not None:
        return {"!vault": ciphertext.decode() if isinstance(ciphertext, bytes) else str(ciphertext)}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, (set, frozenset)):
        return sorted(canonical(part) for part in value)
    return str(value)


def is_vaulted(value: Any) -> bool:
    """True when a value is, or holds, one that is encrypted."""
    if isinstance(value, Mapping):
        return any(is_vaulted(part) for part in value.values())
    if isinstance(value, (list, tuple)):
        return any(is_vaulted(part) for part in value)
    return getattr(value, "_ciphertext", None) is not None


class EncryptedFiles:
    """Names of variables from files that are encrypted as a whole. Their values do not show it."""

    def __init__(self) -> None:
        """Nothing looked at yet."""
        self._files: dict[str, bool] = {}

    def names(self, loader: Any) -> frozenset[str]:
        """The names in those files that Ansible's loader has read so far."""
        read = dict(getattr(loader, "_FILE_CACHE", {}))
        return frozenset(
            str(name)
            for path, content in read.items()
            if isinstance(content, Mapping) and self.encrypted(path)
            for name in content
        )

    def encrypted(self, path: str) -> bool:
        """True for a file that begins as ansible-vault makes it."""
        if path not in self._files:
            try:
                with open(path, "rb") as stream:
                    self._files[path] = stream.read(len(VAULT)) == VAULT
            except OSError:
                self._files[path] = False
        return self._files[path]


def expressions(path: Path) -> str:
    """Return what a template evaluates, and templates beside it that it includes by name; "" if it cannot be read."""
    seen: set[Path] = set()
    pending, texts = [path], []
    while pending:
        file = pending.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        for text in EXPRESSION.findall(_text(file)):
            texts.append(text)
            pending.extend(folder / name for name in INCLUDED.findall(text) for folder in (file.parent, path.parent))
    return "\n".join(texts)


def strings(value: Any) -> Iterator[str]:
    """Every text in a value, keys included; nothing of what is encrypted."""
    if isinstance(value, str):
        yield value
    elif getattr(value, "_ciphertext", None) is not None:
        return
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from strings(key)
            yield from strings(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from strings(part)


def _read(path: Path) -> RoleText:
    digest = hashlib.sha256()
    names: set[str] = set()
    for file in sorted(_files(path)):
        data = file.read_bytes()
        digest.update(json.dumps([str(file.relative_to(path)), hashlib.sha256(data).hexdigest()]).encode())
        if b"\0" not in data[:8192]:
            names.update(NAME.findall(data.decode(errors="replace")))
    return RoleText(digest.hexdigest(), frozenset(names))


def _files(path: Path) -> Iterator[Path]:
    yield from path.glob("meta/main.y*ml")
    for folder in FOLDERS:
        yield from (file for file in (path / folder).rglob("*") if file.is_file() and "__pycache__" not in file.parts)


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")
