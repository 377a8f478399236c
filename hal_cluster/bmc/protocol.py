"""What every client can be asked. BmcError for all that goes wrong, UNSUPPORTED if a BMC has no such thing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from hal_cluster.bmc.models import Boot, BootTarget, Clock, Command, Firmware, Identity, Power, Seen, Sensor, Target


class Bmc(Protocol):
    """A BMC to which we speak. A command is sent once; ``operations`` asks whether it took effect."""

    target: Target

    def power(self) -> Power:
        """Return whether the machine has power."""

    def command(self, command: Command) -> None:
        """Send a command, once."""

    def boot(self) -> Boot | None:
        """Return what the next start goes to; None if the BMC does not tell."""

    def boot_targets(self) -> tuple[BootTarget, ...]:
        """Return what can be set for one start."""

    def set_boot(self, target: BootTarget) -> None:
        """Set what the next start, and only that one, goes to."""

    def identity(self) -> Identity:
        """Return which machine this is."""

    def sensors(self) -> tuple[Sensor, ...]:
        """Return the readings, sorted by name."""

    def firmware(self) -> tuple[Firmware, ...]:
        """Return what has a version, sorted by name."""

    def clock(self) -> Clock:
        """Return the BMC's time."""

    def set_clock(self, now: datetime) -> None:
        """Set the BMC's time."""

    def set_ntp(self, servers: Sequence[str]) -> None:
        """Have the BMC ask these servers for the time; none: no server any more."""

    def change_password(self, new: str) -> None:
        """Change the password of the account with which we logged in."""

    def signing_request(self, names: Sequence[str]) -> str:
        """Have the BMC make a key, and return its signing request (PEM)."""

    def install_certificate(self, certificate: str) -> None:
        """Have the BMC show this certificate (PEM), which was signed for its request."""

    def console(self, seconds: float) -> Seen:
        """Return the console's text: what the BMC kept, or what came within so many seconds."""

    def close(self) -> None:
        """End the session at the BMC."""
