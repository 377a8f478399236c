"""Give one process, all that it starts, and this checkout's nodes a share of the processors: until standard input ends.

    starve.py SHARE PID TREE       SHARE: of all processors, such as 0.1; says "starving" when it has begun

As root. By the quota of cgroup v1: one for all of them together, whoever else is busy. A node is another cgroup's, so
its processes are moved, and moved again when somebody enters the node; what they start stays here.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

CPU = Path("/sys/fs/cgroup/cpu")
NODES = CPU / "libpod_parent"
NAME = "hal-starved-"
PERIOD_US = 20_000  # short: what waits for its turn waits for a fiftieth of a second at the most
LOOK_SECONDS = 0.3
PODMAN = Path(__file__).resolve().parents[2] / "molecule" / "shared" / "podman"
LABEL = '{{index .Config.Labels "hal.tree"}}'


def possible() -> bool:
    """Whether this machine has the quota."""
    return (CPU / "cpu.cfs_period_us").exists()


class Group:
    """A group of processes with a share of the processors."""

    def __init__(self, share: float, tree: str) -> None:
        """`share`: of all processors together; `tree`: a checkout, whose nodes belong here."""
        self.path = CPU / f"{NAME}{os.getpid()}"
        self.path.mkdir()
        (self.path / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        quota = PERIOD_US * share * (os.cpu_count() or 1)
        (self.path / "cpu.cfs_quota_us").write_text(str(int(quota)))
        self.tree = tree
        self._ours: dict[str, bool] = {}

    def take(self, pid: str) -> None:
        """Move a process here, unless it has ended."""
        self._move(pid, self.path)

    def take_nodes(self) -> None:
        """Move here what runs on the nodes."""
        for container in NODES.glob("libpod-*") if NODES.is_dir() else ():
            if self._is_ours(container.name.removeprefix("libpod-")):
                for listed in container.rglob("cgroup.procs"):
                    for pid in listed.read_text().split():
                        self.take(pid)

    def _is_ours(self, name: str) -> bool:
        if name not in self._ours:
            asked = [str(PODMAN), "inspect", "--format", LABEL, name]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            if done.returncode != 0:  # it is being made, or is no container
                return False
            self._ours[name] = done.stdout.strip() == self.tree
        return self._ours[name]

    def end(self) -> None:
        """Let all of them go."""
        while pids := (self.path / "cgroup.procs").read_text().split():
            for pid in pids:
                self._move(pid, CPU)
        self.path.rmdir()

    @staticmethod
    def _move(pid: str, to: Path) -> None:
        with suppress(ProcessLookupError):
            (to / "cgroup.procs").write_text(pid)


def main() -> None:
    """See the module's text."""
    share, pid, tree = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for left in CPU.glob(f"{NAME}*"):
        with suppress(OSError):  # it is somebody's
            left.rmdir()
    group = Group(float(share), tree)
    try:
        group.take(pid)
        print("starving", flush=True)
        while not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
            group.take_nodes()
    finally:
        group.end()


if __name__ == "__main__":
    main()
