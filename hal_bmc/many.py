"""Many BMCs at once: each is asked by a process of its own, so that none holds up another.

Not by threads: pyghmi has one loop for all its sessions.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

from hal_bmc.choose import client_of
from hal_bmc.errors import BmcError
from hal_bmc.models import KINDS, Target

Answer = TypeVar("Answer")
AT_ONCE = 16


def ask_all(
    targets: Sequence[Target], ask: Callable[[Target], Answer], at_once: int = AT_ONCE
) -> Mapping[str, Answer | BmcError]:
    """Return what each BMC said, or its failure, by the nodes' names. ``ask`` is a function of a module.

    Passwords are in memory alone: the processes are forks, and nothing is on their command line.
    """
    if not targets:
        return {}
    for kind in {target.kind for target in targets} & set(KINDS):
        client_of(kind)  # loaded once, before the forks
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(max_workers=min(at_once, len(targets)), mp_context=fork) as pool:
        asked = {target.name: pool.submit(ask, target) for target in targets}
        return {target.name: _outcome(target, asked[target.name]) for target in targets}


def _outcome(target: Target, asked: Future[Any]) -> Any:
    try:
        return asked.result()
    except BmcError as error:
        return error
    except Exception as error:  # one odd BMC is its own failure, not that of all
        return BmcError.of(target.label, "what it is", error)
