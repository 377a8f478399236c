"""What Slurm's commands print, read, and what is decided from it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hal_node.slurm.drains import counted, floors_of
from hal_node.slurm.nodes import read_jobs, read_node, read_nodes
from hal_node.slurm.reservations import read as read_reservations

__all__ = [
    "Listed",
    "Ran",
    "ending",
    "impossible",
    "may_pass",
    "read_jobs",
    "read_listed",
    "read_node",
    "read_nodes",
    "read_ran",
    "read_reservations",
]

# Slurm's words (slurm_errno.c of 22.05) when slurmctld is away, is starting, or munge is.
_PASSES = re.compile(
    r"contact slurm controller|timed out|zero bytes|connection|communication .* failure|standby mode|authentication"
    r"|temporarily|try again",
    re.IGNORECASE,
)

# Job states that are an end (job_state_string of 22.05 and 20.02). Any other goes on.
_ENDED = frozenset(
    ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY")
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A job as squeue lists it."""

    id: str
    state: str
    submitted: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing of it is left."""
        return self.state in _ENDED


@dataclass(frozen=True, slots=True)
class Ran(Listed):
    """A job as ``scontrol show job`` tells of it. ``exit`` is status:signal."""

    name: str = ""
    reason: str = ""
    exit: str = ""
    node: str = ""


def may_pass(words: str) -> bool:
    """Return whether a command failed because slurmctld does not answer now."""
    return bool(_PASSES.search(words))


def read_listed(text: str) -> list[Listed]:
    """Return the jobs of ``squeue --format "%A|%T|%V"``."""
    rows = [row.strip().split("|") for row in text.splitlines() if row.count("|") == 2]
    return [Listed(job, state, submitted) for job, state, submitted in rows]


def read_ran(text: str) -> Ran | None:
    """Return the job of ``scontrol --oneliner show job ID``, None when it shows none."""
    words = dict(re.findall(r"(?:^| )(\w+)=(\S*)", text.strip()))
    if "JobId" not in words or "JobState" not in words:
        return None
    reason = words.get("Reason", "")
    return Ran(
        id=words["JobId"],
        state=words["JobState"],
        submitted=words.get("SubmitTime", ""),
        name=words.get("JobName", ""),
        reason="" if reason in ("None", "(null)") else reason,
        exit=words.get("ExitCode", ""),
        node=words.get("NodeList", ""),
    )


def ending(job: Ran, node: str) -> str:
    """Return what was wrong with a test job that has ended, "" if nothing was."""
    if job.state == "COMPLETED" and job.exit == "0:0" and job.node == node:
        return ""
    if job.state == "COMPLETED" and job.exit == "0:0":
        return f"test job {job.id} ran on {job.node}, not on {node}"
    why = f", {job.reason}" if job.reason else ""
    return f"test job {job.id} ended as {job.state}, exit status {job.exit}{why}"


def impossible(nodes: Mapping[str, Mapping[str, Any]], floors: Mapping[str, int]) -> list[str]:
    """Return what is wrong with floors, a line each: there is no such partition, or it has fewer nodes."""
    partitions = floors_of(nodes, floors)
    wrong = []
    for partition, floor in sorted(floors.items()):
        if partition not in partitions:
            wrong.append(f"reimage_keep: Slurm has no node in a partition {partition}; it has {', '.join(partitions)}")
        elif floor > partitions[partition][1]:
            wrong.append(f"reimage_keep: {partition} has {counted(partitions[partition][1])}, {floor} cannot stay")
    return wrong
