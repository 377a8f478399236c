"""What a check found: pairs that are refused, and what nobody can vouch for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One sentence. refused: it does not go together. remark: it may not, or only with limits, or nobody knows."""

    kind: Literal["refused", "remark"]
    text: str


def refused(text: str) -> Finding:
    """Return a finding that stops a rollout."""
    return Finding("refused", text)


def remark(text: str) -> Finding:
    """Return a finding that an administrator has to know, and that stops nothing."""
    return Finding("remark", text)


def problems(findings: Iterable[Finding]) -> list[str]:
    """Return the sentences that stop a rollout."""
    return [finding.text for finding in findings if finding.kind == "refused"]


def remarks(findings: Iterable[Finding]) -> list[str]:
    """Return the other sentences."""
    return [finding.text for finding in findings if finding.kind == "remark"]
