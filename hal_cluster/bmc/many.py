"""Many BMCs at once: a process of its own asks each, so that none holds up another.

Threads would not do: pyghmi has one loop for all its sessions. Nor would forks of the caller: if it has threads, they
inherit locks that nobody will ever open, and wait for ever.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

from hal_cluster.bmc.choose import modules_of
from hal_cluster.bmc.errors import BmcError
from hal_cluster.bmc.models import Target

Answer = TypeVar("Answer")
AT_ONCE = 16


def ask_all(
    targets: Sequence[Target], ask: Callable[[Target], Answer], at_once: int = AT_ONCE
) -> Mapping[str, Answer | BmcError]:
    """Return what each BMC said, or its failure, by the nodes' names. ``ask`` is a function of a module.

    Passwords go only through pipes: none is on a command line or in a file.
    """
    if not targets:
        return {}
    server = multiprocessing.get_context("forkserver")
    # Loaded once, before the forks.
    server.set_forkserver_preload([__name__, *modules_of(target.kind for target in targets)])
    with ProcessPoolExecutor(max_workers=min(at_once, len(targets)), mp_context=server) as pool:
        asked = {target.name: pool.submit(ask, target) for target in targets}
        return {target.name: _outcome(target, asked[target.name]) for target in targets}


def _outcome(target: Target, asked: Future[Any]) -> Any:
    try:
        return asked.result()
    except BmcError as error:
        return error
    except Exception as error:  # one odd BMC fails alone, and not all
        return BmcError.of(target.label, "what it is", error)
