"""What the checks of drivers and of toolkits say: what is refused, and what nobody can vouch for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hal_cluster.rules.cuda.versions import shown
from hal_inventory.printable import printable

if TYPE_CHECKING:
    from hal_cluster.rules.cuda.table import Generation, Table


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


def unknown_architecture(arch: str, table: Table) -> str:
    """Return the sentence for a processor that the table does not have."""
    known = ", ".join(sorted(row.name for row in table.architectures))
    return f"architecture {shown(arch)} is not in the table; it has {known}"


def unknown_model(model: str, what: str) -> Finding:
    """Return the remark for a GPU that the table does not have."""
    return remark(f"GPU {shown(model)} is not in the table: whether {what} is not known")


def models_by_generation(gpu_models: Iterable[str], table: Table) -> tuple[list[tuple[str, Generation]], list[str]]:
    """Return (one model of each generation, with it) and the models that the table does not have."""
    known: dict[str, tuple[str, Generation]] = {}
    unknown: list[str] = []
    for model in dict.fromkeys(printable(str(gpu)) for gpu in gpu_models):
        generation = table.generation(model)
        if generation is None:
            unknown.append(model)
        else:
            known.setdefault(generation.name, (model, generation))
    return list(known.values()), unknown
