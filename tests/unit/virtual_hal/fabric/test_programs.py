"""Programs come and go: the relay knows whose a slot is, and tells ibsim who has gone."""

from __future__ import annotations

import contextlib
import struct

from fabric import relay

from tests.unit.virtual_hal.fabric.world import (
    CONNECT,
    DISCONNECT,
    ERROR,
    GET,
    GET_RESPONSE,
    GET_VENDOR,
    TRAP,
    Program,
    World,
    control,
    mad,
    settle,
    told,
    waiting,
)


def test_a_new_program_in_a_slot_gets_nothing_of_the_old_one(world: World) -> None:
    old = world.connect(0)
    old.data.send(mad(GET, 7))
    world.turn()
    assert waiting(world.slots[0]) == [mad(GET, 7)]
    new = world.connect(0)
    old.data.send(mad(GET, 9))
    world.turn()
    world.wait(1000)
    world.slots[0].send(mad(GET_RESPONSE, 7))
    world.turn()
    assert waiting(world.slots[0]) == waiting(new.data) == []


def test_what_a_program_has_open_ends_when_it_disconnects(world: World) -> None:
    program = world.connect(0)
    program.data.send(mad(GET, 7))
    world.turn()
    program.control.send(control(DISCONNECT))
    world.turn()
    said, address = world.control.recvfrom(512)
    assert said == control(DISCONNECT)
    world.control.sendto(said, address)
    world.turn()
    assert program.control.recv(512) == control(DISCONNECT)
    world.wait(1000)
    assert waiting(world.slots[0]) == [mad(GET, 7)]
    assert waiting(program.data) == []


def test_each_program_gets_the_answer_to_its_own_word(world: World) -> None:
    one, other = Program(), Program()
    world.programs += [one, other]
    one.control.send(control(GET_VENDOR, number=1))
    other.control.send(control(GET_VENDOR, number=2))
    world.turn()
    asked = [world.control.recvfrom(512) for _ in range(2)]
    for said, address in reversed(asked):
        world.control.sendto(said, address)
    world.turn()
    assert waiting(one.control) == [control(GET_VENDOR, number=1)]
    assert waiting(other.control) == [control(GET_VENDOR, number=2)]


def test_a_program_that_ibsim_refuses_is_told(world: World) -> None:
    program = Program()
    world.programs.append(program)
    program.control.send(control(CONNECT, data=program.port))
    world.turn()
    _, address = world.control.recvfrom(512)
    world.control.sendto(control(ERROR), address)
    world.turn()
    assert program.control.recv(512) == control(ERROR)
    program.attach(0)
    program.data.send(mad(GET, 7))
    world.turn()
    assert waiting(world.slots[0]) == []


def test_a_word_without_an_answer_is_forgotten(world: World) -> None:
    program = Program()
    world.programs.append(program)
    program.control.send(control(CONNECT, data=program.port))
    world.turn()
    assert world.relay.wait() == relay.CONTROL_SECONDS
    world.wait(relay.CONTROL_SECONDS)
    assert world.relay.wait() is None
    _, address = world.control.recvfrom(512)
    world.control.sendto(control(CONNECT), address)
    world.turn()
    assert waiting(program.control) == []


def test_what_is_no_packet_is_dropped(world: World) -> None:
    program = world.connect(0)
    for packet in (b"", b"short", mad(GET, 7)[:-1], mad(GET, 7) + b"x"):
        program.data.send(packet)
        world.slots[0].send(packet)
    for word in (b"", b"short", control(CONNECT)[:-1], control(CONNECT, magic=1)):
        program.control.send(word)
    world.turn()
    assert waiting(world.slots[0]) == waiting(program.data) == waiting(world.control) == []
    assert world.relay.wait() is None
    program.control.send(control(CONNECT, data=0xFFFFFFFF))  # more than a port
    program.control.send(control(DISCONNECT, number=0xFFFFFFFF))  # no slot
    world.turn()
    said, address = world.control.recvfrom(512)
    world.control.sendto(control(CONNECT, data=1), address)
    world.turn()
    assert len(waiting(world.control)) == 1
    nowhere = struct.unpack_from("=I", said, 16)[0]
    world.slots[1].sendto(mad(GET, 7), (address[0], nowhere))
    world.turn()
    program.data.send(mad(GET, 7))
    world.turn()
    assert waiting(world.slots[0]) == [mad(GET, 7)]


def test_who_has_no_slot_reaches_nobody(world: World) -> None:
    world.connect(0)
    stranger = Program()
    world.programs.append(stranger)
    for slot in range(relay.SLOTS):
        stranger.attach(slot)
        with contextlib.suppress(ConnectionRefusedError):
            stranger.data.send(mad(GET, 7))
    world.turn()
    assert [waiting(slot) for slot in world.slots] == [[]] * relay.SLOTS


def test_who_sent_before_a_program_had_the_slot_does_not_speak_for_it(world: World) -> None:
    stranger = Program()
    world.programs.append(stranger)
    stranger.attach(0)
    world.connect(0, meanwhile=lambda: stranger.data.send(mad(GET, 7)))
    world.turn()
    assert waiting(world.slots[0]) == []


def test_programs_and_an_ibsim_that_have_gone_do_not_end_it(world: World) -> None:
    program = world.connect(0)
    program.data.close()
    world.slots[0].send(mad(GET, 7))
    world.slots[0].send(mad(GET, 8))
    world.turn()
    world.turn()
    assert told(world) == [(DISCONNECT, 0, 0)]
    other = world.connect(1)
    world.slots[1].close()
    for number in range(3):
        other.data.send(mad(GET, number))
        world.turn()
    world.wait(relay.WAITS[0])
    world.control.close()
    other.control.send(control(GET_VENDOR))
    world.turn()
    world.turn()
    for seconds in relay.WAITS:
        world.wait(seconds)
    assert waiting(other.data) == [mad(GET, number, status=110) for number in range(3)]


def manager(world: World, slot: int) -> Program:
    program = world.connect(slot)
    program.control.send(control(relay.SET_ISSM, number=slot, data=1))
    world.turn()
    assert told(world) == [(relay.SET_ISSM, slot, 1)]
    return program


def dies(world: World, program: Program, slot: int) -> None:
    """A program is killed; the first packet that reaches nobody says so."""
    program.data.close()
    for number in range(2):
        world.slots[slot].send(mad(TRAP, number))
        world.turn()
    world.turn()


def test_ibsim_hears_that_a_program_has_gone(world: World) -> None:
    dies(world, world.connect(0), 0)
    assert told(world) == [(DISCONNECT, 0, 0)]


def test_a_killed_subnet_manager_is_none_any_more(world: World) -> None:
    dies(world, manager(world, 2), 2)
    assert told(world) == [(relay.SET_ISSM, 2, 0), (DISCONNECT, 2, 0)]


def test_the_next_subnet_manager_of_the_node_stays_one(world: World) -> None:
    """The port of a node says whether it has one: of a killed one nobody may say that it has none."""
    old = manager(world, 2)
    manager(world, 5)
    dies(world, old, 2)
    assert told(world) == [(DISCONNECT, 2, 0)]


def test_who_is_no_subnet_manager_any_more_ends_as_others_do(world: World) -> None:
    program = manager(world, 2)
    program.control.send(control(relay.SET_ISSM, number=2, data=0))
    world.turn()
    assert told(world) == [(relay.SET_ISSM, 2, 0)]
    dies(world, program, 2)
    assert told(world) == [(DISCONNECT, 2, 0)]


def test_the_next_program_of_a_slot_does_not_suffer_for_the_one_before(world: World) -> None:
    """ibsim disconnects a program to which it cannot write, and its socket keeps the refusal until then."""
    old = world.connect(0)
    old.control.send(control(DISCONNECT))
    world.turn()
    assert told(world) == [(DISCONNECT, 0, 0)]
    for number in range(2):
        world.slots[0].send(mad(TRAP, number))  # late
        settle()
    new = world.connect(0)
    world.slots[0].send(mad(TRAP, 3))
    world.turn()
    assert waiting(new.data) == [mad(TRAP, 3)]
