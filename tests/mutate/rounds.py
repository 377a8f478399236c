"""Try faults, one in each copy at a time, until all are tried or the time is over."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from tests.mutate.mutant import Mutant
from tests.mutate.trial import Bench, StoppedError, Verdict


def try_all(
    mutants: Iterable[Mutant],
    benches: Sequence[Bench],
    stop: threading.Event,
    until: float,
    tell: Callable[[Verdict], None],
) -> list[Verdict]:
    """The verdicts of those that were begun before `until`, a moment of time.monotonic.

    The first error of a bench ends all and is raised; so does an exception in here, as Ctrl-C: nothing runs on.
    """
    waiting, done = iter(mutants), queue.Queue[Verdict | BaseException | None]()
    taking = threading.Lock()

    def work(bench: Bench) -> None:
        try:
            while not stop.is_set() and time.monotonic() < until:
                with taking:
                    mutant = next(waiting, None)
                if mutant is None:
                    break
                done.put(bench.judge(mutant))
        except StoppedError:
            pass
        except BaseException as error:
            done.put(error)
        done.put(None)

    threads = [threading.Thread(target=work, args=(bench,), daemon=True) for bench in benches]
    verdicts: list[Verdict] = []
    try:
        for thread in threads:
            thread.start()
        running = len(threads)
        while running:
            said = done.get()
            if said is None:
                running -= 1
            elif isinstance(said, BaseException):
                raise said
            else:
                verdicts.append(said)
                tell(said)
    except BaseException:
        stop.set()
        raise
    finally:
        for thread in threads:
            thread.join()
    return verdicts
