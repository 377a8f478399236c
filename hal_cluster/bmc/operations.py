"""What administrators ask for. The state is read before a command, and again after it: nothing is assumed.

Each function returns whether it changed something, or what it saw. BmcError says what was asked and what came back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import Boot, BootTarget, Command, Identity, Power
from hal_cluster.bmc.protocol import Bmc
from hal_cluster.bmc.retry import Patience

_SENDS = 3
"""How often a command is sent if its answer is lost and nothing happens. Every command may come twice."""


@dataclass(frozen=True)
class Limits:
    """How long to wait: for answers, for power to come or go, for a system to shut itself down."""

    answers: Patience = field(default_factory=Patience)
    power: Patience = field(default_factory=lambda: Patience(seconds=180.0))
    shut_down: Patience = field(default_factory=lambda: Patience(seconds=600.0))


def power(bmc: Bmc, limits: Limits) -> Power:
    """Return whether the machine has power."""
    return limits.answers.again(bmc.power)


# --- which machine


def check_identity(
    bmc: Bmc, serial: str, declared: Mapping[str, str], limits: Limits, done: str = "Nothing was done to it"
) -> Identity:
    """Return which machine this is; IDENTITY unless it has the serial number.

    ``declared`` has the model's nodes by serial numbers: if BMCs were swapped, the message names the other node.
    ``done`` is what the message says was done to it.
    """
    seen = limits.answers.again(bmc.identity)
    if seen.serial == serial:
        return seen
    asked = f"whether it is the machine {serial}"
    if seen.serial is None:
        answer = f"it tells no serial number. {done}"
    else:
        other = declared.get(seen.serial)
        whose = f", which is {other}: their BMCs are swapped, in the cabling or in cluster.yml" if other else ""
        answer = f"it is {seen.serial}{whose}. {done}"
    raise BmcError(bmc.target.label, asked, answer, Fault.IDENTITY)


# --- power


class _CommandError(BmcError):
    """The answer to a command itself, not to a question after it."""


def _always() -> None:
    """Nothing stands against it."""


def power_on(bmc: Bmc, limits: Limits, turn: Callable[[], None] = _always, may: Callable[[], None] = _always) -> bool:
    """Switch on, and wait until it is on. ``turn`` waits before the command, if one has to be sent.

    ``may``, here and below, is called directly before each command: if it raises, nothing is sent.
    """
    return _reach(bmc, Command.ON, Power.ON, limits, limits.power, turn, may)


def force_off(bmc: Bmc, limits: Limits, may: Callable[[], None] = _always) -> bool:
    """Take the power away at once, and wait until it is gone."""
    return _reach(bmc, Command.FORCE_OFF, Power.OFF, limits, limits.power, may=may)


def shut_down(bmc: Bmc, limits: Limits, *, force: bool, may: Callable[[], None] = _always) -> bool:
    """Have the system shut itself down. If it has not in time it keeps its power (IGNORED), unless ``force``.

    Takes ``limits.answers`` to see the power, and ``limits.shut_down`` however often the command is sent. With force it
    also takes what ``force_off`` takes.
    """
    try:
        return _reach(bmc, Command.SHUT_DOWN, Power.OFF, limits, limits.shut_down, may=may)
    except BmcError as error:
        refused = isinstance(error, _CommandError) and error.fault in (Fault.UNSUPPORTED, Fault.REFUSED)
        # A failed question about the power is not a reason: the system may well be shutting down.
        if force and (refused or error.fault is Fault.IGNORED):
            return force_off(bmc, limits, may)
        if error.fault is Fault.IGNORED:
            answer = f"{error.answer}. It keeps its power: to take that away, say force"
            raise BmcError(error.bmc, error.asked, answer, Fault.IGNORED) from None
        raise


def cycle(bmc: Bmc, limits: Limits, *, graceful: bool, force: bool, turn: Callable[[], None] = _always) -> bool:
    """Off, seen to be off, and on: nobody could tell a cycle by one command from none. If it is off: on."""
    if graceful:
        shut_down(bmc, limits, force=force)
    else:
        force_off(bmc, limits)
    power_on(bmc, limits, turn)
    return True


def _reach(
    bmc: Bmc,
    command: Command,
    wanted: Power,
    limits: Limits,
    patience: Patience,
    turn: Callable[[], None] = _always,
    may: Callable[[], None] = _always,
) -> bool:
    """Send a command and wait until the power is as wanted, all within the time of ``patience``.

    If the answer is lost and nothing happens, the command is sent again within the time that is left.
    """
    before = power(bmc, limits)
    if before is wanted:
        return False
    turn()
    end = patience.monotonic() + patience.seconds
    state: Power | None = before
    failure: BmcError | None = None
    for sends_left in range(_SENDS, 0, -1):
        may()
        failure = _send(bmc, command)
        left = max(0.0, end - patience.monotonic())
        # A lost answer leaves time to send again; after a "yes" there is nothing else to wait for.
        share = left / sends_left if failure else left
        state, lost = replace(patience, seconds=share).until(bmc.power, lambda seen: seen is wanted)
        if lost is not None and share < left:  # the outcome is unknown: nothing more is sent, only waited for
            rest = max(0.0, end - patience.monotonic())
            state, lost = replace(patience, seconds=rest).until(bmc.power, lambda seen: seen is wanted)
        if state is wanted:
            return True
        if lost is not None:
            raise BmcError(lost.bmc, lost.asked, f"{lost.answer}, after power {command.value} was sent", lost.fault)
        if failure is None or patience.monotonic() >= end:
            break
    came = f"it answered: {failure.answer}" if failure else "it said yes"
    answer = f"{came}, and its power is {state.value if state else '?'} after {patience.seconds:g} s"
    raise BmcError(bmc.target.label, f"power {command.value}", answer, Fault.IGNORED)


def _send(bmc: Bmc, command: Command) -> BmcError | None:
    """Send a command. If the answer is lost return that: the command may have been carried out; the power will tell."""
    try:
        bmc.command(command)
    except BmcError as error:
        if not error.may_pass:
            raise _CommandError(error.bmc, error.asked, error.answer, error.fault) from None
        return error
    return None


# --- one-time boot


def boot_once(bmc: Bmc, target: BootTarget, limits: Limits) -> tuple[bool, bool]:
    """Set what the next start goes to; return whether that changed it, and whether the BMC confirms it.

    IGNORED if it reads back as something else. Not confirmed: the BMC does not tell of an override, as some never do.
    """
    wanted = Boot(target)
    before = limits.answers.again(bmc.boot)
    if before == wanted:
        return False, True
    limits.answers.again(lambda: bmc.set_boot(target))
    after, failure = limits.answers.until(bmc.boot, lambda seen: seen == wanted or seen is None)
    if after == wanted:
        return True, True
    if failure is not None:
        raise failure
    if after is None:
        return True, False
    answer = f"it said yes, and the next start goes to {_words(after)}"
    raise BmcError(bmc.target.label, f"boot {target.value} once", answer, Fault.IGNORED)


def _words(boot: Boot) -> str:
    if boot.target is BootTarget.NONE:
        return "what its firmware is set to"
    return f"{boot.target.value}{'' if boot.once else ', from now on always'}"


# --- account


def change_password(bmc: Bmc, again: Callable[[], Bmc], new: str, limits: Limits) -> bool:
    """Change the password of our account, and log in with the new one. ``again`` returns a client that has it."""
    failure: BmcError | None = None
    try:
        bmc.change_password(new)
    except BmcError as error:
        if not error.may_pass:
            raise
        failure = error  # the password may have been changed: the login will tell
    finally:
        bmc.close()
    other = again()
    try:
        limits.answers.again(other.power)
    except BmcError as error:
        came = f"it answered: {failure.answer}" if failure else "it said yes"
        answer = f"{came}, and then did not let us in with it: {error.answer}"
        raise BmcError(error.bmc, f"a new password for {bmc.target.user}", answer, error.fault) from None
    finally:
        other.close()
    return True
