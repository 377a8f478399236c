"""Power: what is asked is done, what is so already is not done again, and what did not happen is said."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from bmc.machine import Action, Processor

from hal_cluster.bmc import operations
from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import Command, Power
from hal_cluster.bmc.operations import Limits
from tests.unit.hal_cluster.bmc.emulated import NOT_PATIENT, PATIENT, Emulated, Emulation
from tests.unit.hal_cluster.bmc.test_retry import Clock

KINDS = ["openbmc", "idrac", "redfish"]


def slept(clock: Clock) -> Limits:
    """Limits as NOT_PATIENT has them; waiting for power takes only the time that is slept."""
    return replace(NOT_PATIENT, power=replace(NOT_PATIENT.power, monotonic=clock.monotonic, sleep=clock.sleep))


@pytest.mark.parametrize("kind", KINDS)
def test_on_and_off_are_done_once(emulation: Emulation, kind: str) -> None:
    bmc = emulation.make("hal05", kind)
    client = bmc.client()
    assert operations.power(client, PATIENT) is Power.OFF
    assert operations.power_on(client, PATIENT)
    assert bmc.machine.power()
    assert not operations.power_on(client, PATIENT), "on already"
    assert bmc.machine.kept.read().starts == 1
    assert operations.shut_down(client, PATIENT, force=False)
    assert not bmc.machine.power()
    assert "off (asked)" in bmc.machine.console()
    assert not operations.force_off(client, PATIENT), "off already"
    client.close()


def test_a_cycle_is_off_and_then_on(openbmc: Emulated) -> None:
    client = openbmc.client()
    operations.power_on(client, PATIENT)
    assert operations.cycle(client, PATIENT, graceful=False, force=True)
    assert openbmc.machine.power()
    assert openbmc.machine.console().count("off (forced)") == 1
    assert openbmc.machine.kept.read().starts == 2


def test_a_cycle_of_what_is_off_is_on(openbmc: Emulated) -> None:
    assert operations.cycle(openbmc.client(), PATIENT, graceful=True, force=False)
    assert openbmc.machine.kept.read().starts == 1


@pytest.mark.parametrize("kind", KINDS)
def test_power_that_is_ignored_is_said(emulation: Emulation, kind: str) -> None:
    bmc = emulation.make("hal05", kind)
    bmc.fault(power_ignored=True)
    with pytest.raises(BmcError) as error:
        operations.power_on(bmc.client(), NOT_PATIENT)
    assert str(error.value) == (
        f"BMC of hal05 ({bmc.target.address}): power on: it said yes, and its power is off after 0.5 s"
    )
    assert error.value.fault is Fault.IGNORED


def test_what_does_not_shut_down_keeps_its_power_unless_forced(openbmc: Emulated) -> None:
    client = openbmc.client()
    operations.power_on(client, PATIENT)
    openbmc.fault(power_ignored=True)
    with pytest.raises(BmcError, match=r"power shut down: it said yes, .* on after 0.5 s. It keeps its power: to take"):
        operations.shut_down(client, NOT_PATIENT, force=False)
    assert openbmc.machine.power()
    with pytest.raises(BmcError, match=r"power force off: it said yes, and its power is on after 0.5 s"):
        operations.shut_down(client, NOT_PATIENT, force=True)


class Stopped(Exception):
    """It may not be done any more."""


def test_who_has_something_against_it_meanwhile_keeps_the_power(openbmc: Emulated) -> None:
    client, asked = openbmc.client(), list[str]()
    operations.power_on(client, PATIENT)
    openbmc.fault(power_ignored=True)

    def may() -> None:
        asked.append(openbmc.machine.console())
        if len(asked) == 2:
            openbmc.fault(power_ignored=False)
            raise Stopped

    with pytest.raises(Stopped):
        operations.shut_down(client, NOT_PATIENT, force=True, may=may)
    assert openbmc.machine.power()
    assert len(asked) == 2, "before the shutdown, and before the power was to be taken away"


def test_a_command_that_was_lost_is_not_sent_again_when_it_may_not_be_any_more(openbmc: Emulated) -> None:
    deaf, asked = Deaf(openbmc, works=False), list[int]()

    def may() -> None:
        asked.append(len(deaf.sent))
        if len(asked) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        operations.power_on(deaf, slept(Clock()), may=may)  # type: ignore[arg-type]
    assert (deaf.sent, asked) == ([Command.ON], [0, 1])


class Deaf:
    """A BMC whose answers to commands are lost: ``works`` says whether it carries them out."""

    def __init__(self, of: Emulated, *, works: bool) -> None:
        self._client, self._works = of.client(), works
        self.target, self.sent = of.target, list[Command]()

    def power(self) -> Power:
        return self._client.power()

    def command(self, command: Command) -> None:
        self.sent.append(command)
        if self._works:
            self._client.command(command)
        raise BmcError(self.target.label, f"power {command.value}", "504", Fault.BUSY)


def test_a_command_whose_answer_was_lost_is_not_sent_again_when_it_was_done(openbmc: Emulated) -> None:
    deaf = Deaf(openbmc, works=True)
    assert operations.power_on(deaf, PATIENT)  # type: ignore[arg-type]  # as much of a Bmc as this needs
    assert deaf.sent == [Command.ON]
    deaf.sent.clear()
    assert operations.cycle(deaf, PATIENT, graceful=False, force=True)  # type: ignore[arg-type]
    assert deaf.sent == [Command.FORCE_OFF, Command.ON]
    assert openbmc.machine.kept.read().starts == 2


def test_a_command_that_was_lost_is_sent_again_and_then_said(openbmc: Emulated) -> None:
    deaf, clock, at = Deaf(openbmc, works=False), Clock(), list[float]()
    with pytest.raises(BmcError, match=r"power on: it answered: 504, and its power is off after 0.5 s"):
        operations.power_on(deaf, slept(clock), may=lambda: at.append(clock.now))  # type: ignore[arg-type]
    assert deaf.sent == [Command.ON] * 3
    assert at == pytest.approx([0, 0.15, 0.3]), "each is waited for, in its share of the time"


def test_a_command_is_one_request_though_no_answer_comes(openbmc: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    """sushy itself would send it three times."""
    asked, over = list[str](), threading.Event()

    def silent(self: Processor, action: str) -> None:
        asked.append(action)
        over.wait(600)

    monkeypatch.setattr(Processor, "request_power", silent)
    client = openbmc.client(timeout_seconds=3.0)
    with pytest.raises(BmcError, match=r"power on: no answer within 3 s") as error:
        client.command(Command.ON)
    over.set()
    assert error.value.fault is Fault.SILENT
    assert asked == ["On"]


def test_what_a_bmc_does_not_offer_is_not_sent(openbmc: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmc.redfish.ACTIONS", ("On", "ForceOff"))
    client = openbmc.client()
    operations.power_on(client, PATIENT)
    with pytest.raises(BmcError, match=r"power shut down: it offers ForceOff, On") as error:
        operations.shut_down(client, PATIENT, force=False)
    assert error.value.fault is Fault.UNSUPPORTED
    assert operations.shut_down(client, PATIENT, force=True), "force takes the power where nothing can be asked"


def test_a_system_that_does_not_shut_down_loses_its_power_where_that_is_said(
    openbmc: Emulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine itself obeys; its operating system hangs."""
    client = openbmc.client()
    operations.power_on(client, PATIENT)
    request = Processor.request_power

    def hanging(self: Processor, action: Action) -> None:
        if not action.startswith("Graceful"):
            request(self, action)

    monkeypatch.setattr(Processor, "request_power", hanging)
    with pytest.raises(BmcError, match="It keeps its power: to take that away, say force"):
        operations.shut_down(client, NOT_PATIENT, force=False)
    assert openbmc.machine.power()
    assert operations.shut_down(client, replace(PATIENT, shut_down=NOT_PATIENT.shut_down), force=True)
    assert not openbmc.machine.power()
    assert "off (forced)" in openbmc.machine.console()


class Restless:
    """A BMC that fails now and then while its system shuts down."""

    def __init__(self, of: Emulated, *said: Power | BmcError) -> None:
        self.target, self.sent, self._said = of.target, list[Command](), list(said)

    def power(self) -> Power:
        said = self._said.pop(0) if len(self._said) > 1 else self._said[0]
        if isinstance(said, BmcError):
            raise said
        return said

    def command(self, command: Command) -> None:
        self.sent.append(command)


def test_a_question_that_failed_takes_no_power(openbmc: Emulated) -> None:
    for fault in (Fault.REFUSED, Fault.UNSUPPORTED):
        odd = BmcError("hal05", "power state", "500", fault)
        at_first = Restless(openbmc, odd, Power.ON)
        with pytest.raises(BmcError, match="power state: 500"):
            operations.shut_down(at_first, PATIENT, force=True)  # type: ignore[arg-type]
        assert at_first.sent == []
        meanwhile = Restless(openbmc, Power.ON, odd, Power.ON, Power.OFF)
        assert operations.shut_down(meanwhile, PATIENT, force=True)  # type: ignore[arg-type]
        assert meanwhile.sent == [Command.SHUT_DOWN]
        for_ever = Restless(openbmc, Power.ON, odd)
        with pytest.raises(BmcError, match="power state: 500, after power shut down was sent"):
            operations.shut_down(for_ever, NOT_PATIENT, force=True)  # type: ignore[arg-type]
        assert for_ever.sent == [Command.SHUT_DOWN]
