"""Give one process, all that it starts, and this checkout's nodes a share of the processors: until standard input ends.

    starve.py SHARE PID TREE       SHARE: of the processors, such as 0.1

Says "starving" when it has begun, and at its end how many nodes it slowed down. As root. By the quota of cgroup v1: one
for all of them together, whoever else is busy. A node is another cgroup's, so its processes are moved; what they start
stays here. Who enters a node, and the first moment of a new one, are at full speed until the next look.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CPU = Path("/sys/fs/cgroup/cpu")
NODES = CPU / "libpod_parent"
NAME = "hal-starved-"
PERIOD_US = 20_000  # short: with the usual 100,000 all would stand still for a tenth of a second
LOOK_SECONDS = 0.3
TRIES = 200
GONE = (errno.ENOENT, errno.ENODEV, errno.ESRCH)
PODMAN = Path(__file__).resolve().parents[2] / "molecule" / "virtual_hal" / "podman"
LABEL = '{{index .Config.Labels "hal.tree"}}'


def possible() -> bool:
    """Whether this machine has the quota."""
    return (CPU / "cpu.cfs_period_us").exists()


@contextmanager
def unless_gone() -> Iterator[None]:
    """Do what a process, or the files of a container, may not be there for any more."""
    try:
        yield
    except OSError as error:
        if error.errno not in GONE:
            raise


class Group:
    """A group of processes with a share of the processors."""

    def __init__(self, share: float, tree: str) -> None:
        """`share`: of the processors that we may use; `tree`: a checkout, whose nodes belong here."""
        self.path = CPU / f"{NAME}{os.getpid()}"
        self.path.mkdir()
        (self.path / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        quota = PERIOD_US * share * len(os.sched_getaffinity(0))
        (self.path / "cpu.cfs_quota_us").write_text(str(int(quota)))
        self.tree = tree
        self._ours: dict[str, bool] = {}

    def take_nodes(self) -> None:
        """Move here what runs on the nodes. One that is removed meanwhile takes its files along."""
        for container in NODES.glob("libpod-*") if NODES.is_dir() else ():
            if self._is_ours(container.name.removeprefix("libpod-")):
                with unless_gone():
                    for listed in container.rglob("cgroup.procs"):
                        for pid in listed.read_text().split():
                            move(pid, self.path)

    def _is_ours(self, name: str) -> bool:
        if name not in self._ours:
            asked = [str(PODMAN), "inspect", "--format", LABEL, name]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            if done.returncode != 0:  # it is being made, or is no container
                return False
            self._ours[name] = done.stdout.strip() == self.tree
        return self._ours[name]

    def felt(self) -> str:
        """How many nodes were slow, and how often the quota was used up: without either nothing was starved."""
        told = dict(line.split() for line in (self.path / "cpu.stat").read_text().splitlines())
        return f"{sum(self._ours.values())} nodes, stopped {told['nr_throttled']} times"


def move(pid: str, to: Path) -> None:
    """Move a process into a group, unless it has ended."""
    with unless_gone():
        (to / "cgroup.procs").write_text(pid)


def let_go(group: Path) -> None:
    """Remove a group; its processes, and what they start meanwhile, go where all others are."""
    for _ in range(TRIES):
        for pid in (group / "cgroup.procs").read_text().split():
            move(pid, CPU)
        with suppress(OSError):  # somebody has just been born there, or is about to be buried
            group.rmdir()
            return
        time.sleep(LOOK_SECONDS)
    sys.exit(f"starve.py: {group} does not get empty")


def main() -> None:
    """See the module's text."""
    share, pid, tree = sys.argv[1:]
    for left in CPU.glob(f"{NAME}*"):
        if not Path("/proc", left.name.removeprefix(NAME)).exists():  # of one that was killed
            let_go(left)
    group = Group(float(share), tree)
    try:
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, lambda *_: sys.exit(1))
        move(pid, group.path)
        print("starving", flush=True)
        while not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
            group.take_nodes()
        print(group.felt(), flush=True)
    finally:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        let_go(group.path)


if __name__ == "__main__":
    main()
