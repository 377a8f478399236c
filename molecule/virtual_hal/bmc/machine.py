"""A machine with its BMC: power, boot override, identity, sensors, console, clock, users and faults.

What protocols see is a `Processor`: a BMC at its address, and the machine its cables lead to, which is another one
when two are swapped.
"""

from __future__ import annotations

import datetime
import hmac
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from testbed.errors import VirtualNodesError

from bmc.faults import Faults
from bmc.hardware import Hardware, NoHardware
from bmc.sensors import Sensor, sensors
from bmc.spec import Fleet, Spec
from bmc.state import CONSOLE_BYTES, Enabled, Override, State, StateFile, Target, User

Action = Literal["On", "ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart"]
ACTIONS: tuple[Action, ...] = ("On", "ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart")
SHORTEST_PASSWORD = 8  # OpenBMC's rule
LONGEST_PASSWORD = 20  # what IPMI can carry; OpenBMC refuses longer ones for users of IPMI


class PasswordRefusedError(Exception):
    """A new password that the BMC does not take; says why, without the password."""


class Machine:
    """One machine and what its BMC remembers. Safe to use from several threads and processes."""

    def __init__(self, spec: Spec, folder: Path, hardware: Hardware | None = None) -> None:
        """Take the state up where it was left in ``folder``, or start as delivered, powered off."""
        self.spec = spec
        self.hardware: Hardware = hardware or NoHardware()
        user, password = spec.login
        self.kept = StateFile(folder / f"{spec.name}.json", State(users={user: User(password=password)}))
        self.before_login: Callable[[], None] = lambda: None  # what may know of a newer password
        self.after_power: Callable[[], None] = lambda: None
        self._heard = threading.Condition()
        self.interrupted = threading.Event()
        self._power = threading.RLock()
        self._beginning = threading.Lock()
        self._worker: ThreadPoolExecutor | None = None

    # Power

    def power(self) -> bool:
        """Return whether the machine is on."""
        return self.hardware.is_on(self)

    def take_up(self) -> None:
        """Remember whether it is on: nodes are made running, and may have been switched while nobody served."""
        try:
            on = self.power()
        except VirtualNodesError:
            return  # there is no such container (any more); who asks for its power is told
        if self.kept.read().power != on:
            with self.kept.change() as state:
                state.power = on
        self.hardware.follow(self)

    def set_power(self, action: Action) -> None:
        """Do it, and return when it is done. What is true already changes nothing, but for restarts."""
        with self._power:
            running = self.power()
            if action == "On":
                if not running:
                    self._start()
                return
            if running:
                self._stop(gracefully=action.startswith("Graceful"))
            if action.endswith("Restart"):
                self._start()

    def request_power(self, action: Action) -> Future[None]:
        """Begin it, and return at once, as a BMC answers; later requests wait for earlier ones.

        One that forces sets ``interrupted``: a boot from the network that takes minutes looks at that, and ends.
        """
        with self._beginning:
            if action.startswith("Force"):
                self.interrupted.set()
            return self._power_worker().submit(self._requested, action)

    def ended(self, gone: Callable[[], bool]) -> Future[None]:
        """Look, in turn with what was asked of its power, what becomes of a machine whose system has ended.

        ``gone`` tells whether nothing runs there any more. One that its BMC switched off stays off, and one that shut
        itself down; one that reboots goes through its firmware.
        """
        with self._beginning:
            return self._power_worker().submit(self._ended, gone)

    def _ended(self, gone: Callable[[], bool]) -> None:
        try:
            with self._power:
                state = self.kept.read()
                if not gone() or not state.power or state.in_firmware:
                    return
                if self.hardware.reboots(self):
                    self.write_console("[firmware] reboot\n")
                    self._start()
                else:
                    self.write_console("[firmware] off (by itself)\n")
        except Exception as error:  # as below
            self._failed(f"what its system ended for: {error}")
        self.after_power()

    def _power_worker(self) -> ThreadPoolExecutor:
        if self._worker is None:
            self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"power-{self.spec.name}")
        return self._worker

    def _requested(self, action: Action) -> None:
        if action.startswith("Force"):
            self.interrupted.clear()
        try:
            self.set_power(action)
        except Exception as error:  # whatever the hardware says: the serving process has to go on
            self._failed(f"{action} failed: {error}")
        self.after_power()

    def _failed(self, words: str) -> None:
        said = f"{self.spec.name}: {words}"
        print(said, file=sys.stderr, flush=True)
        self.write_console(f"[virtual hardware] {said}\n")

    def close(self) -> None:
        """Wait for what was begun, and begin nothing more; a boot from the network ends early."""
        if self._worker is not None:
            self._worker.shutdown(wait=False, cancel_futures=True)  # or one that waits would clear the next
            self.interrupted.set()
            self._worker.shutdown(wait=True)

    def restart(self) -> Target:
        """Count a start of the host and return what it starts from; an override for one start is used up by it."""
        with self.kept.change() as state:
            override = state.override
            state.once_enabled = False
            lost = state.faults.boot_override_lost
            target: Target = "none" if override.enabled == "disabled" or lost else override.target
            state.power, state.starts = True, state.starts + 1
            why = {"once": "one-time override", "continuous": "override", "disabled": "no override"}[override.enabled]
            _append(state, f"[firmware] start {state.starts}: boot from {target} ({why})\n")
        self._tell()
        return target

    def _start(self) -> None:
        with self.kept.change() as state:
            state.in_firmware = False
        target = self.restart()
        try:
            self.hardware.on(self, target)
        except BaseException:
            with self.kept.change() as state:
                state.power, state.in_firmware = False, False
            raise

    def _stop(self, *, gracefully: bool) -> None:
        self.hardware.off(self, gracefully=gracefully)
        with self.kept.change() as state:
            state.power, state.in_firmware = False, False
            _append(state, f"[firmware] off ({'asked' if gracefully else 'forced'})\n")
        self._tell()

    # Boot override

    def override(self) -> Override:
        """Return the boot override."""
        return self.kept.read().override

    def set_override(self, target: Target, enabled: Enabled) -> None:
        """Set the boot override. ``once`` is used up by the next start of the host."""
        if enabled == "disabled" or target == "none":
            target, enabled = "none", "disabled"
        with self.kept.change() as state:
            state.set_override(Override(target=target, enabled=enabled))

    # What it is

    def sensors(self) -> list[Sensor]:
        """Return what the sensors measure now."""
        return sensors(self.spec, on=self.power())

    def firmware(self) -> dict[str, str]:
        """Return the versions of the firmware of BMC and host."""
        return {"bmc": self.spec.delivered.bmc_firmware, "host": self.spec.delivered.host_firmware}

    # Console

    def console(self) -> str:
        """Return what the host printed, as far as it is kept (16 kB)."""
        return self.kept.read().console

    def write_console(self, text: str) -> None:
        """Let the host print something."""
        with self.kept.change() as state:
            _append(state, text)
        self._tell()

    def printed_after(self, seen: int, seconds: float) -> tuple[int, bytes]:
        """Return how many bytes the host has printed, and what of the console came after the first ``seen`` of them.

        Waits up to ``seconds`` for something new, from this process.
        """
        with self._heard:
            state = self.kept.read()
            if state.printed_bytes == seen:
                self._heard.wait(seconds)
                state = self.kept.read()
        new = state.printed_bytes - seen
        return state.printed_bytes, state.console.encode()[-new:] if new > 0 else b""

    def _tell(self) -> None:
        with self._heard:
            self._heard.notify_all()

    # Clock

    def clock(self) -> datetime.datetime:
        """Return the time of the BMC's own clock, UTC."""
        offset = 0.0 if (state := self.kept.read()).ntp_enabled else state.clock_offset_seconds
        return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=offset)

    def set_clock(self, moment: datetime.datetime) -> None:
        """Set the BMC's clock; a moment without a zone is UTC."""
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.timezone.utc)
        with self.kept.change() as state:
            state.clock_offset_seconds = (moment - datetime.datetime.now(datetime.timezone.utc)).total_seconds()

    # Users

    def users(self) -> Mapping[str, User]:
        """Return the users by name."""
        return self.kept.read().users

    def user(self, name: str, password: str) -> User | None:
        """Return the user when name and password are right, else None."""
        self.before_login()
        user = self.users().get(name)
        if user is None or not hmac.compare_digest(user.password.encode(), password.encode()):
            return None
        return user

    def set_password(self, name: str, password: str) -> None:
        """Change a password; raise PasswordRefusedError, which says why and not what, or KeyError for no such user."""
        if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
            raise PasswordRefusedError(f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters")
        if not (password.isascii() and password.isprintable() and " " not in password and '"' not in password):
            raise PasswordRefusedError("a password has printable ASCII characters, no blanks and no quotes")
        with self.kept.change() as state:
            state.users[name] = User(password=password) if name in state.users else _no_user(name)

    # Faults

    def faults(self) -> Faults:
        """Return which faults are on."""
        return self.kept.read().faults


def _no_user(name: str) -> User:
    raise KeyError(name)


def _append(state: State, text: str) -> None:
    kept = (state.console + text).encode()[-CONSOLE_BYTES:]
    state.console = kept.decode(errors="ignore")
    state.printed_bytes += len(text.encode())


class Processor:
    """A BMC as protocols see it. ``own`` has accounts, clock and faults; ``host`` is where its cables lead."""

    def __init__(self, own: Machine, machines: Mapping[str, Machine]) -> None:
        """Know the other machines, for when two are swapped."""
        self.own = own
        self._machines = machines

    @property
    def name(self) -> str:
        """The node whose BMC has this address."""
        return self.own.spec.name

    @property
    def host(self) -> Machine:
        """The machine that the BMC acts on."""
        other = self.own.faults().swapped_with
        return self._machines.get(other, self.own) if other else self.own

    @property
    def serial(self) -> str:
        """The machine's serial number, as this BMC says it."""
        return self.own.faults().serial or self.host.spec.serial

    @property
    def offers_override(self) -> bool:
        """Whether Redfish has the boot override."""
        return self.own.spec.delivered.redfish_override and not self.own.faults().old_firmware

    def request_power(self, action: Action) -> None:
        """Begin to do it, or pretend to."""
        if not self.own.faults().power_ignored:
            self.host.request_power(action)

    def set_override(self, target: Target, enabled: Enabled) -> None:
        """Set the boot override, or pretend to."""
        if not self.own.faults().boot_override_ignored:
            self.host.set_override(target, enabled)


def identifier(processor: Processor, part: str) -> str:
    """Return a UUID that is always the same for the same part of the same machine."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{processor.host.spec.serial}/{part}"))


def processors(fleet: Fleet, hardware: Hardware | None = None) -> dict[str, Processor]:
    """Return the BMCs of a fleet by node."""
    machines = {spec.name: Machine(spec, fleet.state, hardware) for spec in fleet.bmcs}
    return {name: Processor(machine, machines) for name, machine in machines.items()}


def swap(machine: Machine, other: Machine) -> None:
    """Let each BMC act on the other's machine, as when two cables were changed."""
    if machine is other:
        raise VirtualNodesError(f"{machine.spec.name}: is not swapped with itself; name another node")
    with machine.kept.change() as state:
        state.faults.swapped_with = other.spec.name
    with other.kept.change() as state:
        state.faults.swapped_with = machine.spec.name


def repair(machine: Machine, machines: Iterable[Machine]) -> None:
    """Switch all faults of a BMC off; what it was swapped with is put back too."""
    with machine.kept.change() as state:
        state.faults = Faults()
        for user in state.users.values():
            user.must_change = False
    for other in machines:
        if other.faults().swapped_with == machine.spec.name:
            with other.kept.change() as state:
                state.faults.swapped_with = None
