"""Asking again: never past the time, never what may not be asked again, and always at least once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.retry import Patience

PASSING = (Fault.SILENT, Fault.BUSY)
GONE_ON = (*PASSING, Fault.REFUSED, Fault.UNSUPPORTED)


class Clock:
    """A time that passes only while somebody sleeps or is asked."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def patience(clock: Clock, seconds: float, first: float, factor: float, longest: float) -> Patience:
    return Patience(seconds, first, factor, longest, monotonic=clock.monotonic, sleep=clock.sleep)


def failing(fault: Fault) -> BmcError:
    return BmcError("hal05", "power state", "503", fault)


@settings(deadline=None)
@given(st.floats(0, 100), st.floats(0.1, 10), st.floats(1, 4), st.floats(0.1, 20), st.integers(0, 30), st.floats(0, 3))
def test_time_is_kept_and_the_answer_is_the_first_good_one(
    seconds: float, first: float, factor: float, longest: float, bad: int, takes: float
) -> None:
    clock, asked = Clock(), list[float]()

    def ask() -> str:
        asked.append(clock.now)
        clock.now += takes
        if len(asked) <= bad:
            raise failing(Fault.BUSY)
        return "on"

    try:
        assert patience(clock, seconds, first, factor, longest).again(ask) == "on"
        assert len(asked) == bad + 1
    except BmcError:
        assert len(asked) <= bad, "given up after a good answer"
    assert asked, "asked at least once"
    assert all(at <= seconds for at in asked), "begun after the time was over"
    assert all(pause <= max(first, longest) for pause in clock.slept)
    assert clock.slept == sorted(clock.slept) or first > longest


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault not in PASSING])
def test_what_will_not_pass_is_asked_once(fault: Fault) -> None:
    clock, asked = Clock(), list[int]()

    def ask() -> str:
        asked.append(1)
        raise failing(fault)

    with pytest.raises(BmcError) as error:
        patience(clock, 60, 1, 2, 10).again(ask)
    assert str(error.value) == "BMC of hal05: power state: 503"
    assert len(asked) == 1
    assert clock.slept == []


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault not in GONE_ON])
def test_waiting_ends_where_it_is_in_vain(fault: Fault) -> None:
    clock = Clock()

    def ask() -> str:
        raise failing(fault)

    with pytest.raises(BmcError) as error:
        patience(clock, 60, 1, 2, 10).until(ask, bool)
    assert error.value.fault is fault
    assert clock.slept == []


@pytest.mark.parametrize("fault", GONE_ON)
def test_waiting_goes_on_while_the_bmc_is_away_or_not_itself(fault: Fault) -> None:
    clock = Clock()
    answers: Iterator[BmcError | str] = iter([failing(Fault.SILENT), "off", failing(fault), "on"])

    def ask() -> str:
        said = next(answers)
        if isinstance(said, BmcError):
            raise said
        return said

    assert patience(clock, 60, 1, 2, 10).until(ask, lambda seen: seen == "on") == ("on", None)
    assert clock.slept == [1, 2, 4]


def test_the_last_answer_and_the_last_failure_are_told() -> None:
    clock = Clock()
    assert patience(clock, 5, 1, 2, 10).until(lambda: "off", lambda seen: seen == "on") == ("off", None)

    def silent() -> str:
        raise failing(Fault.SILENT)

    answer, failure = patience(clock, 5, 1, 2, 10).until(silent, lambda seen: seen == "on")
    assert answer is None
    assert failure is not None
