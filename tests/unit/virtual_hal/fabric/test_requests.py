"""The relay asks again and gives up as a kernel does, and confuses no two programs."""

from __future__ import annotations

import pytest
from fabric import relay

from tests.unit.virtual_hal.fabric.world import (
    GET,
    GET_RESPONSE,
    GET_TABLE,
    REPRESS,
    SA,
    SEND,
    TABLE_RESPONSE,
    TRAP,
    World,
    mad,
    waiting,
)


def test_a_request_and_its_answer_go_through_once(world: World) -> None:
    program = world.connect(3)
    program.data.send(mad(GET, 7))
    world.turn()
    assert waiting(world.slots[3]) == [mad(GET, 7)]
    assert world.relay.wait() == relay.WAITS[0]
    world.slots[3].send(mad(GET_RESPONSE, 7, slot=3))
    world.turn()
    assert waiting(program.data) == [mad(GET_RESPONSE, 7, slot=3)]
    assert world.relay.wait() is None
    world.wait(1000)
    assert waiting(world.slots[3]) == waiting(program.data) == []


def test_what_has_no_answer_is_asked_for_again(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    world.turn()
    world.wait(relay.WAITS[0] - 0.1)
    assert waiting(world.slots[0]) == [mad(GET, 7)]
    world.wait(0.1)
    assert waiting(world.slots[0]) == [mad(GET, 7)]
    world.slots[0].send(mad(GET_RESPONSE, 7))
    world.turn()
    world.wait(1000)
    assert waiting(world.slots[0]) == []
    assert waiting(program.data) == [mad(GET_RESPONSE, 7)]


def test_what_is_never_answered_comes_back_as_timed_out(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    world.turn()
    for seconds in relay.WAITS:
        assert waiting(program.data) == []
        world.wait(seconds)
    assert waiting(world.slots[0]) == [mad(GET, 7)] * len(relay.WAITS)
    assert waiting(program.data) == [mad(GET, 7, status=110)]
    world.wait(1000)
    assert waiting(world.slots[0]) == waiting(program.data) == []


def test_what_ibsim_itself_gives_up_is_not_asked_for_again(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    world.turn()
    world.slots[0].send(mad(GET, 7, status=110))
    world.turn()
    world.wait(1000)
    assert waiting(world.slots[0]) == [mad(GET, 7)]
    assert waiting(program.data) == [mad(GET, 7, status=110)]


@pytest.mark.parametrize("method", [SEND, TRAP, REPRESS, GET_RESPONSE])
def test_what_expects_no_answer_is_sent_once(world: World, method: int) -> None:
    program = world.connect(0)
    program.data.send(mad(method, 7))
    world.turn()
    world.wait(1000)
    assert waiting(world.slots[0]) == [mad(method, 7)]
    assert waiting(program.data) == []


def test_programs_with_equal_transactions_do_not_answer_for_each_other(world: World) -> None:
    """Two subnet managers that just started count from the same number."""
    one, other = world.connect(0), world.connect(1)
    for program in (one, other):
        program.data.send(mad(GET, 7))
    world.turn()
    world.slots[1].send(mad(GET, 7))  # one's request, forwarded: it answers nothing
    world.slots[0].send(mad(GET_RESPONSE, 7))
    world.turn()
    world.wait(relay.WAITS[0])
    assert waiting(world.slots[0]) == [mad(GET, 7)]
    assert waiting(world.slots[1]) == [mad(GET, 7)] * 2
    assert waiting(one.data) == [mad(GET_RESPONSE, 7)]
    assert waiting(other.data) == [mad(GET, 7)]


def test_classes_with_equal_transactions_do_not_answer_for_each_other(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    program.data.send(mad(GET, 7, management=SA))
    world.turn()
    world.slots[0].send(mad(GET_RESPONSE, 7, management=SA))
    world.turn()
    world.wait(relay.WAITS[0])
    assert waiting(world.slots[0]) == [mad(GET, 7), mad(GET, 7, management=SA), mad(GET, 7)]


def test_an_answer_that_reaches_nobody_is_no_answer_to_who_gave_it(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    world.turn()
    program.data.send(mad(GET_RESPONSE, 7))
    world.turn()
    world.slots[0].send(mad(GET_RESPONSE, 7, status=110))
    world.turn()
    assert waiting(program.data) == []
    world.wait(relay.WAITS[0])
    assert waiting(world.slots[0]) == [mad(GET, 7), mad(GET_RESPONSE, 7), mad(GET, 7)]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (mad(GET, 7), mad(GET_RESPONSE, 7)),
        (mad(GET_TABLE, 7, management=SA), mad(TABLE_RESPONSE, 7, management=SA)),
        (mad(GET, 7), mad(GET, 7, status=110)),
    ],
)
def test_a_second_answer_is_dropped_as_by_a_kernel(world: World, asked: bytes, answer: bytes) -> None:
    """Each try has one. libibnetdisc ends with an error at a second; libumad2sim crashes once the port is closed."""
    program = world.connect(0)
    program.data.send(asked)
    world.turn()
    world.wait(relay.WAITS[0])
    for late in (answer, answer, mad(asked[relay.METHOD], 7, management=asked[relay.CLASS], status=110)):
        world.slots[0].send(late)
        world.turn()
    assert waiting(program.data) == [answer]


def test_an_answer_that_comes_too_late_is_dropped(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    world.turn()
    for seconds in relay.WAITS:
        world.wait(seconds)
    world.slots[0].send(mad(GET_RESPONSE, 7))
    world.turn()
    assert waiting(program.data) == [mad(GET, 7, status=110)]


def test_what_a_manager_is_asked_goes_through(world: World) -> None:
    """A forwarded request, a trap and what answers no request of this kind are no answers."""
    program = world.connect(0)
    packets = [mad(GET, 7), mad(TRAP, 7), mad(SEND, 7)]
    for packet in packets:
        world.slots[0].send(packet)
        world.turn()
    assert waiting(program.data) == packets


def test_what_a_program_asks_again_itself_waits_anew(world: World) -> None:
    program = world.connect(0)
    for _ in range(5):
        program.data.send(mad(GET, 7))
        world.turn()
        world.wait(relay.WAITS[0] - 0.1)
    assert waiting(world.slots[0]) == [mad(GET, 7)] * 5
    assert waiting(program.data) == []
    program.data.send(mad(GET, 8))
    world.turn()
    world.now += 0.05
    program.data.send(mad(GET, 7))
    world.turn()
    assert waiting(world.slots[0]) == [mad(GET, 8), mad(GET, 7)]
    world.wait(relay.WAITS[0] - 0.05)
    assert waiting(world.slots[0]) == [mad(GET, 8)], "what waits anew keeps another from its turn"
