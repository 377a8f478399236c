"""Records of reimages for tests, as the controller's engine makes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hal_cluster.reimage.record import Image, Plan, Record, Run, State, Step, stamp

NOW = 1_800_000_000.0
IMAGE = Image("compute-20261122-ppc64le", "ab" * 32, "ppc64le", "4.18.0-80.7.2.el7")
RUN = Run(code="K7QX-M2VD", by="root@controller", began=stamp(NOW - 900))


def record(name: str = "hal05", **changes: Any) -> dict[str, Any]:
    """A record that waits for the call home since two minutes, as plain data."""
    plan = Plan(node=name, serial=f"S-{name}", disk="0x50248414c1050001", image=IMAGE)
    run = replace(RUN, **changes.pop("run", {}))
    made = Record(name, plan, run, Step.INSTALL, since=stamp(NOW - 125), waiting="the call home")
    return replace(made, **changes).to_json()


def failed(name: str = "hal05", reason: str = "no call home within 30 min", **changes: Any) -> dict[str, Any]:
    return record(name, **{"state": State.FAILED, "reason": reason, "ended": stamp(NOW - 60), "waiting": "", **changes})


def done(name: str = "hal05", ago: float = 3600, **changes: Any) -> dict[str, Any]:
    ended = stamp(NOW - ago)
    return record(name, **{"state": State.DONE, "step": Step.RETURN, "ended": ended, "waiting": "", **changes})
