"""One time limit for an operation, however often its command is sent and whatever the BMC answers meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hal_cluster.bmc import operations
from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import Command, Power, Target
from hal_cluster.bmc.operations import Limits
from hal_cluster.bmc.retry import Patience
from tests.unit.hal_cluster.bmc.test_retry import Clock

TARGET = Target("hal05", "ipmi", "10.0.0.5", "ADMIN", "")
Said = Power | Fault


class Moody:
    """A BMC that answers questions and commands as it was given, each after so many seconds; the last for ever."""

    def __init__(self, clock: Clock, powers: Sequence[Said], commands: Sequence[Fault | None], takes: float) -> None:
        self.target, self.sent = TARGET, list[tuple[float, Command]]()
        self._clock, self._takes = clock, takes
        self._powers: Iterator[Said] = chain(powers, repeat(powers[-1]))
        self._commands: Iterator[Fault | None] = chain(commands, repeat(commands[-1]))

    def power(self) -> Power:
        self._clock.now += self._takes
        said = next(self._powers)
        if isinstance(said, Fault):
            raise BmcError("hal05", "power state", said.value, said)
        return said

    def command(self, command: Command) -> None:
        self.sent.append((self._clock.now, command))
        self._clock.now += self._takes
        said = next(self._commands)
        if said is not None:
            raise BmcError("hal05", f"power {command.value}", said.value, said)


def limits(clock: Clock) -> Limits:
    def patience(seconds: float) -> Patience:
        return Patience(seconds, monotonic=clock.monotonic, sleep=clock.sleep)

    return Limits(answers=patience(60), power=patience(180), shut_down=patience(600))


powers = st.lists(st.sampled_from([Power.ON, Power.GOING_OFF, Power.UNKNOWN, Fault.BUSY, Fault.SILENT]), min_size=1)
commands = st.lists(st.sampled_from([None, Fault.BUSY, Fault.SILENT]), min_size=1, max_size=4)


@settings(deadline=None)
@given(powers, commands, st.floats(0, 30))
def test_off_ends_within_its_time(powers: list[Said], commands: list[Fault | None], takes: float) -> None:
    clock = Clock()
    bmc = Moody(clock, powers, commands, takes)
    with suppress(BmcError):
        operations.shut_down(bmc, limits(clock), force=False)  # type: ignore[arg-type]  # as much of a Bmc as this needs
    # What was begun in time may take as long as an answer takes.
    assert clock.now <= 60 + 600 + 5 * takes
    assert len(bmc.sent) <= 3


def test_a_lost_command_is_sent_again_early_enough_to_be_seen() -> None:
    clock = Clock()
    bmc = Moody(clock, [Power.ON], [Fault.BUSY], 0)
    with pytest.raises(BmcError, match="power shut down: it answered: busy, and its power is on after 600 s"):
        operations.shut_down(bmc, limits(clock), force=False)  # type: ignore[arg-type]
    assert len(bmc.sent) == 3
    assert bmc.sent[-1][0] < 600 - 150, "the last one has a third of the time"


def test_a_silent_bmc_is_sent_nothing_again_and_waited_for() -> None:
    """It may start anew, which takes minutes, and have taken the command before."""
    clock = Clock()
    bmc = Moody(clock, [Power.ON, *[Fault.SILENT] * 45, Power.OFF], [Fault.SILENT], 0)
    assert operations.shut_down(bmc, limits(clock), force=False)  # type: ignore[arg-type]
    assert clock.now > 200, "nothing came back in the first third of the time"
    assert [command for _, command in bmc.sent] == [Command.SHUT_DOWN]
