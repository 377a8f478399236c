"""What the documents name exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from tests.contract.project import Finding, files, load_map, roles, rule, scenarios, text_lines, text_of

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(<?([^)<>\s]+)>?(?:\s+\"[^\"]*\")?\)|!\[[^\]]*\]\(([^)\s]+)\)")
OUTSIDE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
CODE = re.compile(r"`([^`]+)`")
MAKE = re.compile(r"(?:^|[\s`$])make ([a-z][a-z0-9-]*)\b")
TARGET = re.compile(r"^([a-z][a-z0-9-]*):(?!=)", re.MULTILINE)
PATHLIKE = re.compile(r"^[\w.-]+(?:/[\w.-]+)*/?$")


def markdown(root: Path) -> list[Path]:
    """All pages of the project."""
    return [path for path in files(root) if path.suffix == ".md"]


def numbered(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Numbered lines, and whether they are inside a code fence."""
    fenced = False
    for number, line in text_lines(path):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        else:
            yield number, line, fenced


def anchors(path: Path) -> set[str]:
    """The anchors that a page's headings get."""
    found: dict[str, int] = {}
    for _, line, fenced in numbered(path):
        if not fenced and (heading := re.match(r"#{1,6}\s+(.*?)\s*#*$", line)):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            found[slug] = found.get(slug, -1) + 1
    return {slug if not number else f"{slug}-{number}" for slug, last in found.items() for number in range(last + 1)}


@rule
def links_lead_somewhere(root: Path) -> Iterator[Finding]:
    """Each relative link of a page leads to a file, and its #part to a heading."""
    for page in markdown(root):
        for number, line, fenced in numbered(page):
            if fenced:
                continue
            for groups in LINK.findall(CODE.sub("", line)):
                link = next(text for text in groups if text)
                if OUTSIDE.match(link):
                    continue
                name, _, anchor = unquote(link).partition("#")
                target = page if not name else (root / name[1:] if name.startswith("/") else page.parent / name)
                if not target.exists():
                    yield Finding(page, number, f"link to {link}: no such file; correct the link or write the file")
                elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                    yield Finding(
                        page, number, f"link to {link}: no such heading; there are {', '.join(sorted(anchors(target)))}"
                    )


@rule
def make_targets_exist(root: Path) -> Iterator[Finding]:
    """Each `make something` of a page is a target."""
    makefile = root / "Makefile"
    targets = set(TARGET.findall(text_of(makefile))) if makefile.is_file() else set()
    for page in markdown(root):
        for number, line, fenced in numbered(page):
            # In prose "make sure" is English: only code counts.
            code = line if fenced else " ".join(f"`{text}`" for text in CODE.findall(line))
            for name in MAKE.findall(code):
                if name not in targets:
                    yield Finding(page, number, f"make {name} is no target; there are {', '.join(sorted(targets))}")


@rule
def named_files_exist(root: Path) -> Iterator[Finding]:
    """A path in backticks that begins with a folder of the project names something that is there."""
    folders = {path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")}
    for page in markdown(root):
        for number, line, fenced in numbered(page):
            if fenced:
                continue
            for text in CODE.findall(line):
                head, slash, _ = text.partition("/")
                if not (slash and head in folders and PATHLIKE.match(text)):
                    continue
                if not (root / text).exists() and not (page.parent / text).exists():
                    yield Finding(page, number, f"{text} does not exist; correct the name or write the file")


@rule
def comments_mark_what_is_there(root: Path) -> Iterator[Finding]:
    """A comment marks the code block that begins on the next line: one with nothing below was to be filled in."""
    for page in markdown(root):
        texts = {number: (line, fenced) for number, line, fenced in numbered(page)}
        for number, (line, fenced) in texts.items():
            last = number == len(text_of(page).splitlines())
            if "<!--" in CODE.sub("", line) and not fenced and (number + 1 in texts or last):
                yield Finding(page, number, "this comment marks no code block below it; fill it in or take it away")


@rule
def role_pages_name_their_variables(root: Path) -> Iterator[Finding]:
    """A role's README names each public variable, or says where they are described."""
    for role in roles(root):
        page = role / "README.md"
        if not page.is_file() or "meta/argument_specs.yml" in text_of(page):
            continue
        names = [str(name) for name in load_map(role / "defaults" / "main.yml")]
        missing = [name for name in names if not re.search(rf"\b{re.escape(name)}\b", text_of(page))]
        if missing:
            yield Finding(page, 1, f"names no {', '.join(missing)}; name all, or point to meta/argument_specs.yml")


@rule
def the_lab_s_page_is_whole(root: Path) -> Iterator[Finding]:
    """The lab's README has a row for each scenario, and names each of the lab's own files and folders."""
    page = root / "molecule" / "virtual_hal" / "README.md"
    if not page.is_file():
        return
    rows = [line.partition("|")[2].partition("|")[0] for line in text_of(page).splitlines() if line.startswith("|")]
    named = {name for row in rows for name in CODE.findall(row)}
    for scenario in scenarios(root):
        if scenario.name not in named:
            yield Finding(page, 1, f"{scenario.name} has no row in the table of scenarios; write what it proves")
    for name in sorted({path.relative_to(page.parent).parts[0] for path in files(root) if page.parent in path.parents}):
        if name != page.name and name not in named and f"{name}/" not in named:
            yield Finding(page, 1, f"{name} has no row in the table of parts; write what it is")
