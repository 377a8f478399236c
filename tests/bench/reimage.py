"""One node, four and sixteen reimaged at once on the virtual HAL: seconds and the controller's processor time, by step.

Machines, firmware and installer are emulated, so seconds of boot and install say nothing about an AC922; what the
controller pays does, and whether one node holds up another.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.instance import NAME, PROJECT, Instance
from tests.bench.part import Goal, Measured, NotMeasured, Session

from running import strategy  # isort: skip
from testing.reimage_site import CODE, Playing, ReimageSite  # isort: skip

COUNTS = (1, 4, 16)
STEPS = ("identity", "drain", "off", "arm", "boot", "install", "start", "converge", "gates", "job", "return")
MOST_TIMES = 8.0
"""How many times as much of the controller's time sixteen nodes may take as one; one after the other it is sixteen."""
LONG_SECONDS = 7200  # sixteen nodes are rolled out together, on two processors
_TICKS = 100  # of a second, as /proc counts on Linux


@dataclass
class Spent:
    """What one run took: seconds of each step of each node, and processor time of the controller while it was there."""

    wall: float = 0.0
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def part(session: Session) -> Measured:
    """Measure on the nodes of the benchmark."""
    instance = session.rolled_out()
    computes = instance.cluster.slice("nodes", where="compute and gpu")
    found: dict[int, Spent] = {}
    with tempfile.TemporaryDirectory(prefix="hal-bench-reimage-") as work:
        site = _site(instance, Path(work))
        for count in (count for count in COUNTS if count <= len(computes)):
            found[count] = _measured(site, computes[:count], Path(work))
            print(f"  reimage of {count}: {found[count].wall:.0f} s", flush=True)
    _print(found)
    most = max(found)
    one, many = (sum(found[count].cpu.values()) for count in (1, most))
    goal = Goal(f"controller's time, {most} nodes to one", many / one if one and most > 1 else None, MOST_TIMES)
    numbers = {
        str(count): {"wall": spent.wall, "cpu": dict(spent.cpu), "seconds": dict(spent.seconds)}
        for count, spent in found.items()
    }
    return Measured(numbers, [goal])


def _site(instance: Instance, work: Path) -> ReimageSite:
    """Return the benchmark's nodes with BMCs that have the site's password, and an image."""
    site = ReimageSite(Path(NAME), instance.cluster, work)
    site.ansible = instance.ansible
    site.first_contact(bmc_fingerprints=site.fingerprints(instance.names), bmc_certificate_days=365)
    site.make_image()
    site.serve_installer()
    return site


def _measured(site: ReimageSite, nodes: list[str], work: Path) -> Spent:
    # All at once, whatever is left for jobs: nobody has any here.
    how: dict[str, Any] = {
        "reimage_nodes": ",".join(nodes),
        "reimage_max_parallel": len(nodes),
        "reimage_poll_seconds": 2,
    }
    how["reimage_keep"] = dict.fromkeys(("gpu", "cpu", "debug"), 0)
    shown = site.play("reimage.yml", **how)
    code = CODE.search(shown.words)
    if code is None:
        raise NotMeasured(f"no code was shown:\n{shown.explain()}")
    spent, began = Spent(), time.monotonic()
    argv = site.ansible.command(PROJECT / "playbooks/reimage.yml", **how, reimage_code=code[1])
    playing = Playing(argv, work / f"reimage-{len(nodes)}.log", strategy.environment())
    with _sampled(site, playing.process.pid, nodes, spent):
        done = playing.wait(LONG_SECONDS)
    spent.wall = time.monotonic() - began
    if done.status != 0:
        raise NotMeasured(f"reimage of {len(nodes)} nodes failed:\n{done.explain()}")
    for name, record in site.records().items():
        if name in nodes:
            for step, seconds in record["seconds"].items():
                spent.seconds[step].append(float(seconds))
    return spent


@contextmanager
def _sampled(site: ReimageSite, pid: int, nodes: list[str], spent: Spent) -> Iterator[None]:
    """Every second, give the processor time of a process and all below it to the steps that nodes are at."""
    ended = threading.Event()

    def look() -> None:
        last = _cpu_seconds(pid)
        while not ended.wait(1):
            now, records = _cpu_seconds(pid), site.records()
            at = [str(records[name]["step"]) for name in nodes if name in records and records[name]["state"] == "going"]
            for step in at:
                spent.cpu[step] += max(0.0, now - last) / len(at)
            last = now

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and of all below it, those that ended included (proc(5), stat)."""
    of: dict[int, tuple[int, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        of[int(path.parent.name)] = (int(words[1]), sum(int(word) for word in words[11:15]) / _TICKS)
    family = [pid]
    for member in family:  # grows while it is read
        family.extend(child for child, (parent, _) in of.items() if parent == member)
    return sum(of[member][1] for member in family if member in of)


def _print(found: Mapping[int, Spent]) -> None:
    print("\nreimage: seconds (median of nodes) and the controller's processor seconds, by step")
    print(f"  {'step':<10}" + "".join(f"{f'{count} at once':>22}" for count in found))
    for step in STEPS:
        cells = []
        for spent in found.values():
            each = sorted(spent.seconds.get(step, [0.0]))
            cells.append(f"{each[len(each) // 2]:>12.0f} s {spent.cpu.get(step, 0.0):>6.1f} s")
        print(f"  {step:<10}" + "".join(f"{cell:>22}" for cell in cells))
    print(
        f"  {'all':<10}"
        + "".join(f"{s.wall:>11.0f} s {sum(s.cpu.values()):>6.1f} s ".rjust(22) for s in found.values())
    )


__all__ = ["part"]
