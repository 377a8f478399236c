"""Asking again: with pauses that grow, within a time limit, and only what may be asked again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hal_cluster.bmc.errors import BmcError, Fault

_GO_ON = (Fault.SILENT, Fault.BUSY, Fault.REFUSED, Fault.UNSUPPORTED)
"""What does not end the waiting: while a BMC or its machine starts, it answers 500 or lacks systems for a while."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Patience:
    """How long to try and to pause, in seconds: ``first``, then ``factor`` times as long, up to ``longest``."""

    seconds: float = 60.0
    first: float = 1.0
    factor: float = 2.0
    longest: float = 10.0
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def again(self, ask: Callable[[], Answer]) -> Answer:
        """Return the answer to a question. A BMC that is silent or busy is asked again until the time is over.

        Only for what changes nothing, or may be done twice.
        """
        end, pause, tries = self.monotonic() + self.seconds, self.first, 0
        while True:
            tries += 1
            try:
                return ask()
            except BmcError as error:
                if not error.may_pass:
                    raise
                if self.monotonic() + pause >= end:
                    after = (
                        f"{error.answer}; asked {tries} times within {self.seconds:g} s" if tries > 1 else error.answer
                    )
                    raise BmcError(error.bmc, error.asked, after, error.fault) from None
            self.sleep(pause)
            pause = min(pause * self.factor, self.longest)

    def until(
        self, ask: Callable[[], Answer], wanted: Callable[[Answer], bool]
    ) -> tuple[Answer | None, BmcError | None]:
        """Ask until the answer is the wanted one or the time is over; return the last answer and the last failure.

        A BMC that is silent meanwhile is asked again: some restart while their machine starts.
        """
        end, pause = self.monotonic() + self.seconds, self.first
        answer: Answer | None = None
        while True:
            failure = None
            try:
                answer = ask()
                if wanted(answer):
                    return answer, None
            except BmcError as error:
                if error.fault not in _GO_ON:
                    raise
                failure = error
            if self.monotonic() + pause >= end:
                return answer, failure
            self.sleep(pause)
            pause = min(pause * self.factor, self.longest)
