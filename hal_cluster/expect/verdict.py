"""What a task hal_expect says of its results, and whether it fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hal_cluster.expect import report
from hal_cluster.expect.prepare import Prepared


def is_named(promise: Prepared, name: str) -> bool:
    """Whether a name means this promise: it is its id, or that of the entry whose loop made it."""
    return promise.id == name or promise.id.startswith(f"{name} [")


def title(options: Mapping[str, Any], prepared: Iterable[Prepared]) -> str:
    """Return what was asked, as the headline names it."""
    if options["file"]:
        return str(options["file"])
    names = options["roles"] or ([options["role"]] if options["role"] else [])
    return ", ".join(names or dict.fromkeys(promise.role for promise in prepared)) or "hal_expect"


def verdict(results: list[dict[str, Any]], options: Mapping[str, Any], title: str, host: str) -> dict[str, Any]:
    """Return what the task says. It also fails if nothing was checked."""
    counts = report.summary(results)
    wrong = [result for result in results if result["status"] in ("fail", "unknown")]
    fatal = [result for result in wrong if result["severity"] == "error" or options["severity"] == "warning"]
    mild = [result for result in wrong if result not in fatal]
    said: dict[str, Any] = {
        "changed": False,
        "results": results,
        "summary": counts,
        "msg": report.headline(counts, title, len(mild)),
    }
    if options["report_only"]:
        return said
    if mild:
        said["warnings"] = [f"{host}: {line}" for line in report.lines(mild)]
    if fatal:
        said.update(
            failed=True,
            results=[report.brief(result) for result in wrong],
            msg="\n".join([said["msg"], *report.lines(fatal)]),
        )
    elif counts["skipped"] == len(results) and not options["allow_all_skipped"]:
        said.update(
            failed=True,
            results=[],
            msg=(
                f"{title}: nothing was checked: all {len(results)} expectations were skipped; "
                "if that is right here, say allow_all_skipped: true"
            ),
        )
    return said
