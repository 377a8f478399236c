"""Words for people: one line a result that is not as expected."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from hal_inventory.printable import printable

Result = Mapping[str, Any]
MOST_CHARACTERS = 160
#: Reasons that need no words beside the expected and the observed value.
PLAIN_REASONS = ("differs", "is less", "is more", "is not one of them")


def summary(results: Iterable[Result]) -> dict[str, int]:
    """Return how many results there are of each status."""
    counts = {"pass": 0, "fail": 0, "unknown": 0, "skipped": 0}
    for result in results:
        counts[result["status"]] += 1
    return counts


def line(result: Result) -> str:
    """Return a result as one line: what, how it differs, why it matters, where it is written."""
    name = f"{result['role']}: {result['id']}" if result["role"] else result["id"]
    why = result["why"] or "no reason given"
    text = f"{result['status']}: {name}: {_difference(result)}; {why} ({result['source']})"
    return printable(re.sub(r"\s*[\r\n]+\s*", " ", text).strip())


def lines(results: Iterable[Result]) -> list[str]:
    """Return the lines of results, failures before what is unknown, then by role and id."""
    order = {"fail": 0, "unknown": 1}
    return [
        line(result)
        for result in sorted(results, key=lambda result: (order.get(result["status"], 2), result["role"], result["id"]))
    ]


def headline(counts: Mapping[str, int], where: str, mild: int = 0) -> str:
    """Return the sentence above the lines. `mild` of the failed and unknown ones are warnings."""
    checked = counts["pass"] + counts["fail"] + counts["unknown"]
    parts = [f"{counts[name]} {word}" for name, word in (("fail", "failed"), ("unknown", "unknown")) if counts[name]]
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    warnings = f" ({mild} of them as a warning)" if mild else ""
    if not parts:
        good = "the only expectation holds" if checked == 1 else f"all {checked} expectations hold"
        return f"{where}: {good}{skipped}"
    return f"{where}: of {checked} expectation{'' if checked == 1 else 's'} {', '.join(parts)}{warnings}{skipped}"


def brief(result: Result) -> dict[str, Any]:
    """Return a result with the observed value cut to a printable line, for the results of a failed task."""
    observed, text = result["observed"], _shown(result["observed"])
    plain = printable(text, 80)
    whole = plain == text and (not isinstance(observed, str) or printable(observed) == observed)
    return {**result, "observed": observed if whole else plain}


def _difference(result: Result) -> str:
    if result["status"] == "unknown":
        return str(result["reason"])
    expected, observed, reason = _expected(result["expected"]), result["observed"], str(result["reason"])
    if reason in PLAIN_REASONS:
        return f"expected {expected}, observed {_shown(observed)}"
    if observed is None or isinstance(observed, list) or (isinstance(observed, str) and "\n" in observed):
        return f"expected {expected}, but {reason}"  # the reason names what matters of a long value
    return f"expected {expected}, observed {_shown(observed)}: {reason}"


def _expected(expected: Any) -> str:
    if isinstance(expected, Mapping) and len(expected) == 1:
        matcher, wanted = next(iter(expected.items()))
        return f"{matcher} {_shown(wanted)}"
    return _shown(expected)


def _shown(value: Any) -> str:
    text = value if value == "(secret)" else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
