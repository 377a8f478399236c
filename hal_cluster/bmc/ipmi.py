"""A BMC by IPMI 2.0 over LAN (RMCP+), over pyghmi: what the LC92x and the x86 nodes have.

Both sides prove that they know the password, so no certificate is needed. Whoever listens can try passwords against
what was sent, so others must not be in the BMC's network. Commands: IPMI 2.0 specification, chapters 20 to 34.
pyghmi sends a packet again if it got no answer, so every command here may come twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import Any, TypeVar

import pyghmi.exceptions
import pyghmi.ipmi.command
import pyghmi.ipmi.fru
import pyghmi.ipmi.private.session

from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import (
    SETTABLE,
    Boot,
    BootTarget,
    Clock,
    Command,
    Firmware,
    Identity,
    Power,
    Seen,
    Sensor,
    Target,
)
from hal_cluster.bmc.passwords import LONGEST_IPMI

Answer = TypeVar("Answer")

CHASSIS, APPLICATION, STORAGE, TRANSPORT = 0x00, 0x06, 0x0A, 0x0C
_CONTROL = {Command.ON: 1, Command.FORCE_OFF: 0, Command.SHUT_DOWN: 5}
# Boot flags (28.13, parameter 5): in their first byte, and the device in bits 5 to 2 of the second.
_BOOT_FLAGS, _VALID, _PERSISTENT = 5, 0x80, 0x40
_DEVICE = {BootTarget.NONE: 0, BootTarget.NETWORK: 1, BootTarget.DISK: 2, BootTarget.SETUP: 6}
# Parameter 3: the flags stay valid until a start, though none comes within a minute.
_KEEP_FLAGS = (3, 0x08)
_TARGET = {device: target for target, device in _DEVICE.items()}
_THIS_CHANNEL, _MAC_ADDRESS = 0x0E, 5
_LARGEST_FRU, _FRU_PART = 4096, 32
_SILENT = ("timeout", "no longer connected", "failed to initialize", "disconnected")
_LOGIN = ("password", "unauthorized", "privilege", "rakp", "invalid role", "integrity", "username", "inactive")
_BUSY = (0xC0, 0xC3, 0xCF, 0xD0, 0xD1, 0xD2)
"""Completion codes that pass (IPMI 2.0, table 5-2): busy, timeout, duplicated, repository or firmware is updated,
initialising. "Not in this state" (0xD5) and "unspecified" (0xFF) say nothing of a later time."""


class Ipmi:
    """A BMC that speaks IPMI; satisfies ``protocol.Bmc``."""

    def __init__(self, target: Target) -> None:
        """Nothing is sent yet."""
        self.target = target
        self._session: Any = None

    # --- session and errors

    @contextmanager
    def _asking(self, what: str) -> Iterator[Any]:
        """Give the session, and make a BmcError of what pyghmi raises. The next call replaces a broken session."""
        try:
            if self._session is None:
                if len(self.target.password.encode()) > LONGEST_IPMI:
                    answer = f"its password is longer than the {LONGEST_IPMI} bytes that IPMI has"
                    raise BmcError(self.target.label, f"login of {self.target.user}", answer, Fault.CONFIGURATION)
                self._forget_others()
                self._session = pyghmi.ipmi.command.Command(
                    bmc=self.target.address,
                    userid=self.target.user,
                    password=self.target.password,
                    port=self.target.ipmi_port,
                    keepalive=False,
                )
            yield self._session
        except pyghmi.exceptions.PyghmiException as error:
            raise self._error(what, error) from None
        except OSError as error:
            self._session = None
            raise BmcError(self.target.label, what, f"no way to it: {error.strerror or error}", Fault.SILENT) from None

    def _error(self, what: str, error: Exception) -> BmcError:
        said = error.args[0] if error.args else None  # a session that broke says nothing, or None
        text, code = " ".join(str(said or "").split()), int(getattr(error, "ipmicode", 0) or 0)
        words = text.lower()
        if code in _BUSY:
            return BmcError(self.target.label, what, f"{text} (0x{code:02x})", Fault.BUSY)
        if any(word in words for word in _SILENT) or not text:
            self._session = None
            return BmcError(self.target.label, what, "no answer", Fault.SILENT)
        if any(word in words for word in _LOGIN) and not code:
            self._session = None
            answer = f"{text}. User or password is wrong, or the account is locked: it is not tried again"
            return BmcError(self.target.label, f"login of {self.target.user}", answer, Fault.LOGIN)
        if code in (0xC1, 0xCB, 0xCC, 0xD6):
            return BmcError(self.target.label, what, f"{text} (0x{code:02x})", Fault.UNSUPPORTED)
        if "unable to transmit" in words:
            return BmcError(self.target.label, what, "its address is unknown", Fault.SILENT)
        return BmcError(self.target.label, what, text + (f" (0x{code:02x})" if code else ""), Fault.REFUSED)

    def _ask(self, what: str, ask: Callable[[Any], Answer]) -> Answer:
        with self._asking(what) as session:
            return ask(session)

    def _raw(self, what: str, netfn: int, command: int, data: Sequence[int] = (), least: int = 0) -> bytes:
        """Return the data of an answer. REFUSED for fewer than ``least`` bytes.

        pyghmi's own calls for boot options drop the completion code, which says whether to ask again.
        """
        said = self._ask(what, lambda session: session.xraw_command(netfn=netfn, command=command, data=list(data)))
        reply = bytes(bytearray(said["data"]))
        if len(reply) < least:
            answer = f"an answer of {len(reply)} bytes instead of {least} or more"
            raise BmcError(self.target.label, what, answer, Fault.REFUSED)
        return reply

    def _forget_others(self) -> None:
        """Make pyghmi begin a new session: it would take up one of the same target that has failed or ended."""
        beginning = pyghmi.ipmi.private.session.Session.initting_sessions
        for words in [words for words in beginning if self.target.address in words]:
            del beginning[words]

    def close(self) -> None:
        """End the session."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(pyghmi.exceptions.PyghmiException, OSError):
                session.ipmi_session.logout()

    # --- power and boot

    def power(self) -> Power:
        """Return whether the machine has power."""
        return Power.ON if self._raw("power state", CHASSIS, 1, least=1)[0] & 1 else Power.OFF

    def command(self, command: Command) -> None:
        """Send a command."""
        self._raw(f"power {command.value}", CHASSIS, 2, [_CONTROL[command]])

    def boot(self) -> Boot | None:
        """Return what the next start goes to; None if the BMC does not tell of an override.

        Some, such as OpenIPMI's simulator and older Supermicro BMCs, take one and never tell it. So None does not mean
        that none is set.
        """
        said = self._raw("what it boots next", CHASSIS, 9, [_BOOT_FLAGS, 0, 0])
        # Version, parameter (its highest bit: not valid), flags, device.
        if len(said) < 4 or said[1] != _BOOT_FLAGS or not said[2] & _VALID:
            return None
        target = _TARGET.get(said[3] >> 2 & 0x0F, BootTarget.OTHER)
        return None if target is BootTarget.NONE else Boot(target, once=not said[2] & _PERSISTENT)

    def boot_targets(self) -> tuple[BootTarget, ...]:
        """Return what can be set for one start: IPMI has them all."""
        return SETTABLE

    def set_boot(self, target: BootTarget) -> None:
        """Set what the next start, and only that one, goes to."""
        what = f"boot {target.value} once"
        self._raw(what, CHASSIS, 8, _KEEP_FLAGS)
        valid = 0 if target is BootTarget.NONE else _VALID
        self._raw(what, CHASSIS, 8, [_BOOT_FLAGS, valid, _DEVICE[target] << 2, 0, 0, 0])

    # --- what it is

    def identity(self) -> Identity:
        """Return serial number and model of FRU 0, and the BMC's MAC."""
        seen = self._fru()
        serial = _text(seen.get("Serial Number")) or _text(seen.get("Chassis serial number"))
        model = _text(seen.get("Product name")) or _text(seen.get("Model"))
        return Identity(serial, model, (), self._mac())

    def _fru(self) -> dict[str, Any]:
        """Return what FRU 0 says. It is read in small parts: pyghmi does not know every BMC's code for too much."""
        asked = "its identity"
        try:
            size = min(int.from_bytes(self._raw(asked, STORAGE, 0x10, [0], least=2)[:2], "little"), _LARGEST_FRU)
            data = bytearray()
            while len(data) < size:
                place = [len(data) & 0xFF, len(data) >> 8]
                said = self._raw(asked, STORAGE, 0x11, [0, *place, min(_FRU_PART, size - len(data))])
                if len(said) < 2:
                    break
                data += said[1:]
        except BmcError as error:
            if error.fault is Fault.UNSUPPORTED:  # it has no FRU 0
                return {}
            raise
        try:
            return pyghmi.ipmi.fru.FRU(rawdata=data).info or {}
        except (IndexError, ValueError, TypeError, UnicodeError):
            raise BmcError(self.target.label, asked, "FRU 0 is damaged: it cannot be read", Fault.REFUSED) from None

    def _mac(self) -> tuple[str, ...]:
        try:
            said = self._raw("its MAC", TRANSPORT, 2, [_THIS_CHANNEL, _MAC_ADDRESS, 0, 0])
        except BmcError as error:
            if error.fault in (Fault.UNSUPPORTED, Fault.REFUSED):
                return ()
            raise
        mac = ":".join(f"{byte:02x}" for byte in said[1:7])
        return (mac,) if len(said) >= 7 and mac != "00:00:00:00:00:00" else ()

    def sensors(self) -> tuple[Sensor, ...]:
        """Return the readings."""
        readings = self._ask("its sensors", lambda session: list(session.get_sensor_data()))
        return tuple(sorted((_sensor(reading) for reading in readings), key=lambda sensor: sensor.name))

    def firmware(self) -> tuple[Firmware, ...]:
        """Return the BMC's own version: IPMI has no other."""
        said = self._raw("its firmware", APPLICATION, 1, least=4)
        return (Firmware("BMC", f"{said[2] & 0x7F}.{said[3]:02x}"),)

    # --- clock, account

    def clock(self) -> Clock:
        """Return the time of the BMC's log."""
        said = self._raw("its clock", STORAGE, 0x48, least=4)
        return Clock(datetime.fromtimestamp(int.from_bytes(said[:4], "little"), timezone.utc).astimezone())

    def set_clock(self, now: datetime) -> None:
        """Set the time of the BMC's log."""
        self._raw("its clock to be set", STORAGE, 0x49, list(int(now.timestamp()).to_bytes(4, "little")))

    def set_ntp(self, servers: Sequence[str]) -> None:
        """UNSUPPORTED: IPMI knows of no time servers."""
        raise self._lacks("its time servers to be set", "IPMI knows of none; its web page sets them")

    def change_password(self, new: str) -> None:
        """Change our own password; REFUSED when it is longer than IPMI has place for."""
        what = f"a new password for {self.target.user}"
        if len(new.encode()) > LONGEST_IPMI:
            raise BmcError(self.target.label, what, f"it has more than {LONGEST_IPMI} bytes", Fault.REFUSED)
        number = self._number(what)

        def change(session: Any) -> None:
            session.set_user_password(number, mode="set_password", password=new)

        self._ask(what, change)

    def _number(self, what: str) -> int:
        """Return the number of our account."""
        most = self._raw(what, APPLICATION, 0x44, [_THIS_CHANNEL, 1], least=1)[0] & 0x3F
        for number in range(1, most + 1):
            try:
                name = self._raw(what, APPLICATION, 0x46, [number])
            except BmcError as error:
                if error.fault not in (Fault.UNSUPPORTED, Fault.REFUSED):
                    raise
                continue  # this number has no name
            if name.rstrip(b"\0").decode("ascii", "replace") == self.target.user:
                return number
        raise BmcError(self.target.label, what, f"it lists no account {self.target.user}", Fault.UNSUPPORTED)

    # --- what IPMI does not have

    def signing_request(self, names: Sequence[str]) -> str:
        """UNSUPPORTED: IPMI has no certificates."""
        raise self._lacks("a signing request", "IPMI has no certificates")

    def install_certificate(self, certificate: str) -> None:
        """UNSUPPORTED: IPMI has no certificates."""
        raise self._lacks("a new certificate", "IPMI has no certificates")

    def _lacks(self, asked: str, answer: str) -> BmcError:
        return BmcError(self.target.label, asked, answer, Fault.UNSUPPORTED)

    def console(self, seconds: float) -> Seen:
        """Return what the console says within so many seconds: serial over LAN."""
        from hal_cluster.bmc.console import by_sol

        return by_sol(self.target, seconds)


def _text(value: Any) -> str | None:
    text = str(value).strip("\0 ") if isinstance(value, str) else ""
    return text or None


def _sensor(reading: Any) -> Sensor:
    units = str(reading.units or "").replace("°", "").strip()
    value = float(reading.value) if isinstance(reading.value, (int, float)) else None
    return Sensor(str(reading.name), value, units, "Critical" if int(reading.health or 0) > 1 else "OK")
