"""``validate``: every finding of sources, their variables and models, then a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hal_cluster.inventory.show import totals
from hal_inventory.compiled import Compiled
from hal_inventory.errors import Finding, FindingsError
from hal_inventory.load import load, load_users
from hal_inventory.model import Site
from hal_inventory.output import Answer, Table
from hal_inventory.reader import display_name
from hal_inventory.settings import PROJECT
from hal_inventory.sources import is_model, is_users
from hal_inventory.storage import mounted_by_no_role
from hal_inventory.validate import whole_nodes
from hal_inventory.variable_names import known_names
from hal_inventory.variables import check_source

CLEAN, FOUND = 0, 2


@dataclass(frozen=True)
class Verdict:
    """The answer, and the exit status that goes with it."""

    answer: Answer
    status: int


def validate(paths: Sequence[str], *, list_placeholders: bool, model_only: bool = True) -> Verdict:
    """Check files: sources of the plugin with their variables, models (cluster.yml) and lists of users (users.yml).

    Unless ``model_only``, roles are asked what they refuse, if a source is sound otherwise.
    """
    findings: set[Finding] = set()
    remarks: list[str] = []
    sites: list[tuple[str, Site]] = []
    users: list[tuple[str, int]] = []
    for path in paths:
        try:
            if is_users(Path(path)):
                users.append((display_name(path), len(load_users(path))))
                continue
            if is_model(Path(path)):
                sites.append((display_name(path), load(path)))
                continue
            variables = check_source(path, known_names(PROJECT))
            findings |= set(variables.findings)
            remarks += variables.remarks
            site = Compiled(path).site()
            if variables.findings:
                continue
            if not model_only:
                from hal_cluster.rollout.without_a_run import ask  # imports Ansible

                refused, remarked = ask(path)
                findings |= set(refused)
                remarks += remarked
                if refused:
                    continue
            sites.append((display_name(path), site))
        except FindingsError as error:
            findings |= set(error.findings)
    remarks += [f"{name}: {remark}" for name, site in sites for remark in mounted_by_no_role(site) + whole_nodes(site)]
    return Verdict(_answer(sorted(findings), remarks, sites, users, list_placeholders), FOUND if findings else CLEAN)


def _answer(
    findings: Sequence[Finding],
    remarks: Sequence[str],
    sites: Sequence[tuple[str, Site]],
    users: Sequence[tuple[str, int]],
    list_placeholders: bool,
) -> Answer:
    placeholders = sorted(
        {
            (placeholder.line, placeholder.field, placeholder.value)
            for _, site in sites
            for placeholder in site.placeholders
        }
    )
    data: dict[str, Any] = {
        "findings": [finding.as_dict() for finding in findings],
        "remarks": list(dict.fromkeys(remarks)),
        "users": [{"source": name, "users": number} for name, number in users],
        "sites": [{"source": name, "site": site.name, **totals(site)} for name, site in sites],
        "placeholders": [{"line": line, "field": field, "value": value} for line, field, value in placeholders],
    }
    parts: list[Table | str] = ["\n".join(str(finding) for finding in findings)] if findings else []
    lines = [_summary(name, site) for name, site in sites]
    lines += [f"{name}: {_counted(number, 'users')}: no findings" for name, number in users]
    if findings:
        lines.append(f"{len(findings)} finding{'s' if len(findings) > 1 else ''}")
    lines += data["remarks"]
    if placeholders:
        hint = "" if list_placeholders else "; --placeholders lists them"
        single = len(placeholders) == 1
        lines.append(f"{len(placeholders)} placeholder{' stands' if single else 's stand'} for real values{hint}")
    parts.append("\n".join(lines))
    if list_placeholders and placeholders:
        rows = [[str(line), field, value] for line, field, value in placeholders]
        parts.append(Table(["line", "field", "value"], rows, numbers=frozenset({"line"})))
    return Answer(data, parts)


def _summary(name: str, site: Site) -> str:
    count = totals(site)
    parts = ", ".join(_counted(number, what) for what, number in count.items() if number)
    return f"{name}: site {site.name}: {parts}: no findings"


def _counted(number: int, what: str) -> str:
    words = what.replace("_", " ").replace("gpus", "GPUs")
    return f"{number} {words.removesuffix('s') if number == 1 else words}"
