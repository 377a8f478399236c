"""How the rules read the project: files, YAML with line numbers, tasks, findings and reasoned exceptions."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).resolve().parents[2]
NO_STATE = "/nowhere"
"""Whatever keys this controller has, the real site has none here."""

# An exception stands on the line it excuses, with its reason.
EXCEPTION = re.compile(r"(?:#|<!--)\s*contract:\s*\S+")

# Keywords of a task; whatever else it holds is the module's name.
KEYWORDS = frozenset(
    [
        "name",
        "action",
        "local_action",
        "args",
        "vars",
        "when",
        "register",
        "loop",
        "loop_control",
        "until",
        "retries",
        "delay",
        "notify",
        "listen",
        "tags",
        "become",
        "become_user",
        "become_method",
        "become_flags",
        "become_exe",
        "changed_when",
        "failed_when",
        "ignore_errors",
        "ignore_unreachable",
        "no_log",
        "diff",
        "check_mode",
        "environment",
        "delegate_to",
        "delegate_facts",
        "run_once",
        "any_errors_fatal",
        "throttle",
        "timeout",
        "async",
        "poll",
        "module_defaults",
        "collections",
        "connection",
        "port",
        "remote_user",
        "debugger",
        "block",
        "rescue",
        "always",
    ]
)
BLOCKS = ("block", "rescue", "always")
SKIPPED_FOLDERS = frozenset(
    {".git", ".venv", ".state", ".cache", ".hypothesis", "__pycache__", "build", "node_modules"}
)


@dataclass(frozen=True, order=True)
class Finding:
    """One broken promise: where, what is wrong, and what would be right."""

    path: Path
    line: int
    text: str


Rule = Callable[[Path], list[str]]
RULES: dict[str, Rule] = {}


def rule(function: Callable[[Path], Iterator[Finding]]) -> Rule:
    """Register a rule; it then returns sorted lines 'file:line: text', without those that the line itself excuses."""

    @functools.wraps(function)
    def checked(root: Path) -> list[str]:
        found = sorted(finding for finding in set(function(root)) if not excused(finding))
        return [f"{finding.path.relative_to(root)}:{finding.line}: {finding.text}" for finding in found]

    module = function.__module__.rpartition(".")[2]
    RULES[f"{module}.{function.__name__}"] = checked
    return checked


def excused(finding: Finding) -> bool:
    """True when the line carries '# contract: <reason>'."""
    if not finding.path.is_file():
        return False
    lines = text_of(finding.path).splitlines()
    return 0 < finding.line <= len(lines) and EXCEPTION.search(lines[finding.line - 1]) is not None


class Map(dict[Any, Any]):
    """A YAML mapping that knows its line and the line of each of its keys."""

    line: int = 1
    lines: dict[Any, int]

    def at(self, key: object) -> int:
        """The line of a key; of the mapping when it does not have the key."""
        return self.lines.get(key, self.line)


# libyaml's is ten times as quick; it is in every wheel of PyYAML, and a build without it reads the same.
_Loader: type[yaml.SafeLoader] = type("_Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> Map:
    loader.flatten_mapping(node)
    result = Map()
    result.line = node.start_mark.line + 1
    result.lines = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        result[key] = loader.construct_object(value_node, deep=True)
        result.lines[key] = key_node.start_mark.line + 1
    return result


def _tagged(loader: yaml.SafeLoader, _: str, node: yaml.Node) -> Any:
    """A tag of ours or of Ansible (!placeholder, !vault): the plain value."""
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    assert isinstance(node, yaml.ScalarNode)
    # PyYAML's stubs leave resolve untyped.
    tag: str = loader.resolve(yaml.ScalarNode, node.value, (not node.style, bool(node.style)))  # type: ignore[no-untyped-call]
    return loader.construct_object(yaml.ScalarNode(tag, node.value, node.start_mark, node.end_mark, node.style))


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_multi_constructor("!", _tagged)


def load(path: Path) -> Any:
    """The YAML document of a file, which is read once and for all rules; None when the file is missing or empty."""
    if not path.is_file():
        return None
    return _document(text_of(path))


@functools.cache
def _document(text: str) -> Any:
    return yaml.load(text, _Loader)


def load_map(path: Path) -> Map:
    """The mapping in a file; an empty one when there is none."""
    document = load(path)
    if isinstance(document, Map):
        return document
    empty = Map()
    empty.lines = {}
    return empty


@functools.cache
def _text(path: Path, _stamp: tuple[int, int]) -> str:
    return path.read_bytes().decode(errors="replace")


def text_of(path: Path) -> str:
    """The text of a file."""
    status = path.stat()
    return _text(path, (status.st_mtime_ns, status.st_size))


@dataclass(frozen=True)
class Task:
    """One task, wherever it stands: `outer` holds the blocks around it, the outermost first."""

    path: Path
    line: int
    body: Map
    outer: tuple[Map, ...] = ()

    @property
    def module(self) -> str:
        """The module's name as written; '' for a block."""
        names = [key for key in self.body if key not in KEYWORDS and not str(key).startswith("with_")]
        return str(names[0]) if names else ""

    @property
    def short(self) -> str:
        """The module's name without its collection."""
        return self.module.rpartition(".")[2]

    @property
    def arguments(self) -> Any:
        """What the module is given: a mapping, or its free-form text."""
        return self.body.get(self.module)

    def keyword(self, name: str) -> Any:
        """A keyword of this task, or of the nearest block around it that has it."""
        for body in (self.body, *reversed(self.outer)):
            if name in body:
                return body[name]
        return None

    def finding(self, text: str, key: str | None = None) -> Finding:
        """A finding at this task, at one of its keys when given."""
        return Finding(self.path, self.body.at(key) if key else self.line, text)


def tasks_in(path: Path, document: Any, outer: tuple[Map, ...] = ()) -> Iterator[Task]:
    """Every task of a list of tasks, blocks and what is inside them included."""
    for body in document if isinstance(document, list) else []:
        if not isinstance(body, Map):
            continue
        yield Task(path, body.line, body, outer)
        for part in BLOCKS:
            yield from tasks_in(path, body.get(part), (*outer, body))


def roles(root: Path) -> list[Path]:
    """The folders of all roles."""
    return sorted(path for path in (root / "roles").glob("*") if path.is_dir())


def otherwise(role: str) -> list[Map]:
    """Values that HAL does not have, with which a role does something else: tests/contract/otherwise/<role>.yml.

    An entry has `given`, which is above everything, also above what the role works out, and `host`, which is the role's
    first unless it is said.
    """
    path = PROJECT / f"tests/contract/otherwise/{role}.yml"
    return load(path) or [] if path.is_file() else []


def role_tasks(role: Path) -> Iterator[Task]:
    """The tasks and handlers of a role."""
    for path in sorted([*role.glob("tasks/**/*.yml"), *role.glob("handlers/**/*.yml")]):
        yield from tasks_in(path, load(path))


def scenarios(root: Path) -> list[Path]:
    """The folders of all molecule scenarios."""
    return sorted(path.parent for path in (root / "molecule").glob("*/molecule.yml"))


def playbooks(root: Path) -> list[Path]:
    """Every file of plays: playbooks/, and those of molecule."""
    found = [*(root / "playbooks").rglob("*.yml"), *(root / "molecule").glob("*/*.yml")]
    return sorted(path for path in found if isinstance(load(path), list) and any(plays(path)))


def plays(path: Path) -> Iterator[Map]:
    """The plays of a playbook; imports of other playbooks are not plays."""
    document = load(path)
    for play in document if isinstance(document, list) else []:
        if isinstance(play, Map) and "hosts" in play:
            yield play


def play_tasks(path: Path) -> Iterator[Task]:
    """The tasks of all plays of a playbook."""
    for play in plays(path):
        for part in ("pre_tasks", "tasks", "post_tasks", "handlers"):
            yield from tasks_in(path, play.get(part), (play,))


def _imports_playbook(body: Any) -> bool:
    return isinstance(body, Map) and any(str(key).rpartition(".")[2] == "import_playbook" for key in body)


def all_tasks(root: Path) -> Iterator[Task]:
    """The tasks of roles, playbooks and scenarios, and of the task files that these share."""
    for role in roles(root):
        yield from role_tasks(role)
    with_plays = playbooks(root)
    for path in with_plays:
        yield from play_tasks(path)
    for path in sorted((root / "playbooks").rglob("*.yml")):
        document = load(path)
        if path not in with_plays and isinstance(document, list):
            yield from tasks_in(path, [body for body in document if not _imports_playbook(body)])
    for path in sorted((root / "molecule").glob("*/**/*.yml")):
        if path not in with_plays and "tasks" in path.relative_to(root).parts:
            yield from tasks_in(path, load(path))


def files(root: Path) -> list[Path]:
    """Every file that is committed or would be; in a folder without git, every file."""
    if (root / ".git").exists():
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            check=True,
        ).stdout.decode()
        found = [root / name for name in listing.split("\0") if name]
    else:
        found = list(root.rglob("*"))
    return sorted(p for p in found if p.is_file() and not SKIPPED_FOLDERS.intersection(p.relative_to(root).parts))


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file; none of a binary one."""
    if b"\0" not in path.read_bytes()[:8192]:
        yield from enumerate(text_of(path).splitlines(), 1)


def without_comment(line: str) -> str:
    """A line of YAML or shell without its comment: what counts is what it does."""
    return re.sub(r"(^|\s)#.*$", "", line)


def strings(value: Any) -> Iterator[str]:
    """Every string inside a YAML value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from strings(key)
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
