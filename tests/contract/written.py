"""What roles do to HAL's nodes, as text: tests/contract/written/<role>.txt. What is managed, the promises, the texts.

    make written

writes the files anew. Read the difference before you commit it: it is what your change does to the reference site.
What is managed is a line each: its name, what is declared of it, and a host that has it. A promise has a line with one
host of every kind that it is asked of, or no host; a number before a host is how many things it is asked about there;
and what it finds, when that is not the usual. Below it stands what the first of these hosts is asked. Of each text the
first host that gets it is named; `$` marks the end of a line that ends in a blank. A text that needs what only a run
knows, as a key that it made, has its place in a line and no more: changes of it are not seen here.

HAL does not have all that roles can do. `with {...}` are values of tests/contract/otherwise; below it stands what is
managed, promised, asked and written otherwise with them.
"""

from __future__ import annotations

import functools
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping

from tests.contract import declared, other_values
from tests.contract.other_values import asks, kind, place, told
from tests.contract.project import PROJECT, files, load, roles, text_of
from tests.contract.rendering import REAL, Rendered, rendered

FOLDER = PROJECT / "tests/contract/written"


@functools.cache
def of_project() -> Mapping[str, str]:
    """By role: what it manages, and each text that one host of every kind gets."""
    found: dict[str, list[str]] = {}
    for one in declared.of_project(PROJECT).resources:
        found.setdefault(one.role, []).append(_managed(one))
    for role, line in _promises():
        found.setdefault(role, []).append(line)
    for role, line in _unknown():
        found.setdefault(role, []).append(line)
    for role, lines in other_values.of_project():
        found.setdefault(role, []).extend(lines)
    for text in _texts():
        found.setdefault(text.path.split("/")[1], []).append(_block(text))
    return {role: "\n".join([*lines, ""]) for role, lines in sorted(found.items())}


def _managed(one: declared.Resource) -> str:
    return f"{one.name}  {json.dumps(told(one.declared), sort_keys=True, default=str)}  {one.host}"


def _promises() -> Iterator[tuple[str, str]]:
    """The role and the line of each entry of expect.yml."""
    asked: dict[tuple[str, int], Counter[str]] = {}
    questions: dict[tuple[str, int], list[list[str]]] = {}
    for one in declared.promised(PROJECT):
        if not one.skipped:
            where = one.path.parent.name, one.line
            asked.setdefault(where, Counter())[one.host] += 1
            if len(asked[where]) == 1:
                questions.setdefault(where, []).append(asks(one.question))
    for role in roles(PROJECT):
        for entry in load(role / "expect.yml") if (role / "expect.yml").is_file() else []:
            hosts = asked.get((role.name, entry.line), Counter())
            told = [f"{count} {host}" if count > 1 else host for host, count in hosts.items()]
            severity = entry.get("severity", "error")
            finds = f" ({entry['finding']})" if "finding" in entry else ""
            yield role.name, f"{kind(severity)}:{entry['id']}{finds}  {', '.join(told) or 'no host'}"
            for asked_here in sorted(questions.get((role.name, entry.line), [])):
                yield from ((role.name, f"    {line}") for line in asked_here)


def _texts() -> Iterator[Rendered]:
    """Each text once; not those that are a file of the project as it is."""
    own = [path for path in files(PROJECT) if {"files", "plugins"} & set(path.relative_to(PROJECT).parts)]
    as_they_are = {text_of(path).strip() for path in own}
    seen = set[tuple[str, str, str]]()
    for one in rendered(PROJECT):
        known = (one.path, one.destination, one.text)
        if one.site == REAL and not one.fault and known not in seen and one.text.strip() not in as_they_are:
            seen.add(known)
            yield one


def _unknown() -> list[tuple[str, str]]:
    """The role and the line of each place whose text cannot be rendered without a run."""
    faulty = [one for one in rendered(PROJECT) if one.site == REAL and one.fault]
    first = {(one.path, one.destination): one for one in reversed(faulty)}
    return [
        (path.split("/")[1], f"known in a run only:{place(one)}  {one.host}")
        for (path, _), one in sorted(first.items())
    ]


def _block(one: Rendered) -> str:
    lines = [f"{line}$" if line != line.rstrip() else line for line in one.text.splitlines()]
    return "\n".join(["", f"==> {one.host}: {place(one)}", *lines])


def main() -> int:
    """Write all files, and remove those of roles that are gone."""
    written = of_project()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        if path.stem not in written:
            path.unlink()
    for role, text in written.items():
        (FOLDER / f"{role}.txt").write_text(text)
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main())
