"""The BMC of LC921 and LC922: IPMI for power and boot, Redfish for what it is, its account and its certificate.

Its Redfish has members of other names than OpenBMC's, and power actions that not every level carries out
(github xcat2/xcat2-task-management, issues 442 and 518).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.ipmi import Ipmi
from hal_cluster.bmc.models import Boot, BootTarget, Clock, Command, Firmware, Identity, Power, Seen, Sensor, Target
from hal_cluster.bmc.redfish import Redfish


class Supermicro:
    """Two clients of one BMC; satisfies ``protocol.Bmc``."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.ipmi, self.redfish = Ipmi(target), Redfish(target)

    def close(self) -> None:
        """End both sessions."""
        self.ipmi.close()
        with suppress(BmcError):
            self.redfish.close()

    def power(self) -> Power:
        """Return whether the machine has power, by IPMI."""
        return self.ipmi.power()

    def command(self, command: Command) -> None:
        """Send a command, by IPMI."""
        self.ipmi.command(command)

    def boot(self) -> Boot | None:
        """Return what the next start goes to, by IPMI."""
        return self.ipmi.boot()

    def boot_targets(self) -> tuple[BootTarget, ...]:
        """Return what can be set, by IPMI."""
        return self.ipmi.boot_targets()

    def set_boot(self, target: BootTarget) -> None:
        """Set what the next start goes to, by IPMI."""
        self.ipmi.set_boot(target)

    def identity(self) -> Identity:
        """Return which machine this is, by Redfish."""
        return self.redfish.identity()

    def resources(self) -> dict[str, dict[str, object]]:
        """Return what an inventory is made of, by Redfish."""
        return self.redfish.resources()

    def sensors(self) -> tuple[Sensor, ...]:
        """Return the readings, by IPMI: its Redfish has few."""
        return self.ipmi.sensors()

    def firmware(self) -> tuple[Firmware, ...]:
        """Return what has a version, by Redfish."""
        return self.redfish.firmware()

    def clock(self) -> Clock:
        """Return the BMC's time, by Redfish."""
        return self.redfish.clock()

    def set_clock(self, now: datetime) -> None:
        """Set it, by Redfish."""
        self.redfish.set_clock(now)

    def set_ntp(self, servers: Sequence[str]) -> None:
        """Set the time servers, by Redfish."""
        self.redfish.set_ntp(servers)

    def change_password(self, new: str) -> None:
        """Change our password: by Redfish, or by IPMI if Redfish has no accounts. Both have one list of them.

        IPMI's keys are made of the former password (IPMI 2.0, 13.28 to 13.32). Everybody knows that of a new machine,
        and can read the new one in the session. TLS hides it. UNSUPPORTED comes before anything is changed.
        """
        try:
            self.redfish.change_password(new)
        except BmcError as error:
            if error.fault is not Fault.UNSUPPORTED:
                raise
            self.ipmi.change_password(new)

    def signing_request(self, names: Sequence[str]) -> str:
        """Have a key made, by Redfish."""
        return self.redfish.signing_request(names)

    def install_certificate(self, certificate: str) -> None:
        """Have a certificate shown, by Redfish."""
        self.redfish.install_certificate(certificate)

    def console(self, seconds: float) -> Seen:
        """Return what the console says, by serial over LAN."""
        return self.ipmi.console(seconds)
