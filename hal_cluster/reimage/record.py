"""A node's record: what was confirmed, where it is, how it ended. Frozen values; JSON on the management node."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from hal_cluster.confirmation import code_of_prints
from hal_cluster.reimage.errors import ReimageError

FORMAT = 1


class Step(str, Enum):
    """Where a node is. WAITING: others come before it."""

    WAITING = "waiting"
    IDENTITY = "identity"
    DRAIN = "drain"
    OFF = "off"
    ARM = "arm"
    BOOT = "boot"
    INSTALL = "install"
    START = "start"
    CONVERGE = "converge"
    GATES = "gates"
    JOB = "job"
    RETURN = "return"


STEPS = tuple(Step)


class State(str, Enum):
    """Whether it goes on."""

    GOING = "going"
    DONE = "done"
    FAILED = "failed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Image:
    """What is installed: an image's folder on the server, and the sum of its root file system."""

    folder: str
    sha256: str
    arch: str
    kernel: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What an administrator confirms for one node. ``wipe``: other disks that are erased, by world-wide name.

    ``previous``: when its last reimage ended, so that a code is worth nothing once it was used.
    """

    node: str
    serial: str
    disk: str
    image: Image
    wipe: tuple[str, ...] = ()
    previous: str = ""

    @property
    def fingerprint(self) -> str:
        """A digest of all of it."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def code_of(plans: Iterable[Plan]) -> str:
    """Return the code that confirms these plans, all of them and no other: eight letters, ``K7QX-M2VD``."""
    return code_of_prints(plan.fingerprint for plan in plans)


@dataclass(frozen=True, slots=True)
class Run:
    """Who confirmed it, when, and how it is to go. ``nodes``: all that this call drives, each when its turn comes.

    ``call``: a word of this call alone. The same command given twice in the same second is two calls. ``go_on``: other
    nodes still have their turn after one has failed.
    """

    code: str
    by: str
    began: str
    by_slurm: bool = False
    next_state: str = "RESUME"
    nodes: tuple[str, ...] = ()
    call: str = ""
    go_on: bool = False

    def same(self, other: Run) -> bool:
        """Whether both are one call; how it is to end may have been changed since."""
        return (self.code, self.by, self.began, self.call) == (other.code, other.by, other.began, other.call)


@dataclass(frozen=True, slots=True)
class Drained:
    """Who had drained a node before, and why."""

    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class Record:
    """Where a node is. ``revision`` is that of the file it was read from; 0 for one that has none.

    ``reason`` of one that goes on: it is about to fail for that. ``host_key``: fingerprint of the key that it is given.
    ``called_before``: its last call home before this order. ``in_slurm``: Slurm knew it when its turn came.
    ``seconds``: by step, of those that are over.
    """

    node: str
    plan: Plan
    run: Run
    step: Step = Step.WAITING
    since: str = ""
    waiting: str = ""
    state: State = State.GOING
    reason: str = ""
    ended: str = ""
    revision: int = 0
    drained_before: Drained | None = None
    old_boot_id: str = ""
    host_key: str = ""
    called_before: str = ""
    job: str = ""
    in_slurm: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def going(self) -> bool:
        """Whether the engine has something to do with it."""
        return self.state is State.GOING

    def at(self, step: Step, now: float) -> Record:
        """Return it at another step, with the seconds that the last one took."""
        spent = dict(self.seconds)
        if self.since:
            spent[self.step.value] = round(spent.get(self.step.value, 0.0) + max(0.0, now - moment(self.since)), 1)
        return replace(self, step=step, since=stamp(now), waiting="", seconds=spent)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        data = asdict(self)
        data.update(format=FORMAT, step=self.step.value, state=self.state.value, seconds=dict(self.seconds))
        data["plan"]["wipe"] = list(self.plan.wipe)
        data["run"]["nodes"] = list(self.run.nodes)
        data["plan"]["fingerprint"] = self.plan.fingerprint
        return data


def record_of(data: Mapping[str, Any]) -> Record:
    """Return the record that plain data describe; ReimageError for data that cannot be read."""
    node = str(data.get("node", "?"))
    try:
        if data["format"] != FORMAT:
            raise ReimageError(f"{node}: its record has format {data['format']}, not {FORMAT}: another release")
        plan = dict(data["plan"])
        told = plan.pop("fingerprint")
        made = Plan(**{**plan, "image": Image(**plan["image"]), "wipe": tuple(plan["wipe"])})
        if made.fingerprint != told or made.node != node:
            raise ReimageError(f"{node}: the plan in its record was changed after it was confirmed")
        run = dict(data["run"])
        run.pop("turn", None)  # of records that were written before nodes were named: it said nothing
        before = data["drained_before"]
        return Record(
            node=node,
            plan=made,
            run=Run(**{**run, "nodes": tuple(run.get("nodes", ()))}),
            step=Step(data["step"]),
            since=str(data["since"]),
            waiting=str(data["waiting"]),
            state=State(data["state"]),
            reason=str(data["reason"]),
            ended=str(data["ended"]),
            revision=int(data["revision"]),
            drained_before=Drained(**before) if before else None,
            old_boot_id=str(data["old_boot_id"]),
            host_key=str(data["host_key"]),
            called_before=str(data["called_before"]),
            job=str(data["job"]),
            in_slurm=bool(data.get("in_slurm", False)),  # older records have none
            seconds={str(step): float(spent) for step, spent in data["seconds"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReimageError(f"{node}: its record is damaged: {type(error).__name__} {error}") from None


def stamp(now: float) -> str:
    """Return a moment as records write it."""
    return datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> float:
    """Return a stamp's seconds since 1970."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()
