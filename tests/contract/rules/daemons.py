"""What roles write for a daemon is what CentOS 7's release of it understands (docs/centos7.md, guard 3)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from tests.contract import project
from tests.contract.el7.daemons.formats import UNKNOWN, Format, formats
from tests.contract.el7.daemons.syntax import Statement
from tests.contract.project import Finding, rule
from tests.contract.rendering import Rendered, every_branch, rendered, templates

OTHERS = Path("tests/contract/el7/other_templates.yml")
# Modules that change a part of a file: what the daemon then reads is nowhere in the project.
PARTIAL = frozenset({"blockinfile", "lineinfile", "replace", "ini_file"})
#: A template; a task or a variable with a text in it: (file, line)
Place = tuple[Path, int]


@rule
def every_template_is_claimed(root: Path) -> Iterator[Finding]:
    """A role's template is of a kind that has a list, or it is said why it needs none."""
    reasons = project.load_map(root / OTHERS)
    claimed = {path for (path, _line), _one, _texts in _claimed(root)}
    for template in templates(root):
        path = template.relative_to(root / "roles").as_posix()
        if template not in claimed and not any(fnmatch(path, pattern) for pattern in reasons):
            yield Finding(
                template, 1, f"no list of tests/contract/el7/daemons claims it; add a list, or a reason to {OTHERS}"
            )
    for pattern in reasons:
        if "*" not in pattern and not (root / "roles" / pattern).is_file():
            yield Finding(root / OTHERS, reasons.at(pattern), f"there is no roles/{pattern}")


@rule
def every_directive_is_known(root: Path) -> Iterator[Finding]:
    """Rendered for hosts of the real and of the virtual HAL, and with all branches: the daemon knows all of it."""
    for (path, line), one, texts in _claimed(root):
        seen: dict[str, Finding] = {}
        for statement, problem, where in _problems(path, one, [text for text in texts if not text.fault]):
            seen.setdefault(problem, Finding(path, _line(path, line, statement), f"{problem}; {where}"))
        yield from seen.values()
        if all(text.fault for text in texts):
            why = texts[0].fault if texts else "no host of HAL is in the role's group"
            yield Finding(path, line, f"it was rendered for no host, so nothing was checked: {why}")
    for path in sorted((root / "roles").glob("*/files/**/*")):
        for one in (one for one in formats() if path.is_file() and not one.release_variable and one.claims(path.name)):
            for statement, problem in one.problems(project.text_of(path)):
                yield Finding(path, _line(path, 1, statement), problem)


@rule
def a_configuration_is_written_whole(root: Path) -> Iterator[Finding]:
    """What a daemon reads can be rendered: a role does not change lines of what a package put there."""
    for role in project.roles(root):
        for task in project.role_tasks(role):
            arguments = task.arguments if task.short in PARTIAL and isinstance(task.arguments, dict) else {}
            destination = str(arguments.get("dest") or arguments.get("path") or "")
            one = next((one for one in formats() if destination and one.claims("", [destination])), None)
            if one:
                yield task.finding(
                    f"{task.short} changes a part of {destination}; write it whole, for {one.title}'s list"
                )


def texts_of(root: Path) -> dict[Place, list[Rendered]]:
    found: dict[Place, list[Rendered]] = defaultdict(list)
    for text in rendered(root, tuple(sorted({one.release_variable for one in formats()} - {""}))):
        found[root / text.path, text.line].append(text)
    return found


def _claimed(root: Path) -> Iterator[tuple[Place, Format, list[Rendered]]]:
    """Each text that has a list, and its kind: by where it goes, else by the name of the template.

    A task that writes a list of files may have texts of several kinds.
    """
    texts = texts_of(root)
    for place in sorted({*texts, *((path, 1) for path in templates(root))}):
        goes = [text.destination for text in texts[place] if text.destination]
        name = place[0].name.removesuffix(".j2") if place[0].suffix != ".yml" else ""
        if kinds := [one for one in formats() if one.claims("", goes)]:
            for one in kinds:
                yield place, one, [text for text in texts[place] if _of([one], text) or not _of(kinds, text)]
        elif kinds := [one for one in formats() if name and one.claims(name)]:
            yield place, kinds[0], texts[place]


def _of(kinds: Iterable[Format], text: Rendered) -> bool:
    return bool(text.destination) and any(one.claims("", [text.destination]) for one in kinds)


def _problems(path: Path, one: Format, texts: list[Rendered]) -> Iterator[tuple[Statement, str, str]]:
    """(directive, what is wrong, who gets it), of what hosts get and then of all branches of a template."""
    for text in texts:
        # The virtual HAL's values are for Debian's programs, unless the site declares the release.
        values = text.site == "HAL" or bool(one.release_variable)
        for statement, problem in one.problems(text.text, text.variables.get(one.release_variable, ""), values=values):
            yield statement, problem, f"as {text.host} of {text.site} gets it"
    if one.data["syntax"] == "xml" or path.suffix == ".yml":
        return  # XML without its values is none
    branches = every_branch(project.text_of(path), UNKNOWN)
    for release in sorted({text.variables.get(one.release_variable, "") for text in texts}):
        for statement, problem in one.problems(branches, release):
            if statement.name:
                yield statement, problem, "in a branch that no host took"


def _line(path: Path, line: int, statement: Statement) -> int:
    """Where a directive is written; the task or the first line when a variable brought it."""
    name = re.compile(rf"(?<![\w-]){re.escape(statement.name)}(?![\w-])", re.I)
    lines = [
        (number, text.strip())
        for number, text in enumerate(project.text_of(path).splitlines(), 1)
        if number >= line and statement.name and name.search(text)
    ]
    begins = (number for number, text in lines if name.match(text))
    return next(begins, lines[0][0] if lines else line)
