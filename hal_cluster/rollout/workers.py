"""Ansible's workers end with the process that started them, however that ends."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
from typing import Any

from ansible.executor.process.worker import WorkerProcess

PR_SET_PDEATHSIG = 1  # prctl(2)


def end_with_their_parent() -> None:
    """From now on the kernel kills each worker when its parent is gone. Without prctl nothing changes."""
    if hasattr(WorkerProcess.run, "__wrapped__"):
        return
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    run = WorkerProcess.run

    @functools.wraps(run)
    def run_with_parent(self: Any) -> Any:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != self._parent_pid:  # it was gone before the kernel knew
            os._exit(1)
        return run(self)

    WorkerProcess.run = run_with_parent
