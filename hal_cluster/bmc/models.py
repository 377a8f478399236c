"""What is asked of BMCs, and what they say: plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

KINDS = ("openbmc", "supermicro", "idrac", "redfish", "ipmi")
"""As the model's profiles name them."""


class Power(str, Enum):
    """Whether a machine has power."""

    ON = "on"
    OFF = "off"
    GOING_ON = "going on"
    GOING_OFF = "going off"
    UNKNOWN = "unknown"


class Command(str, Enum):
    """What may be done with the power. There is no cycle: off, seen to be off, and on can be checked one by one."""

    ON = "on"
    SHUT_DOWN = "shut down"
    FORCE_OFF = "force off"


class BootTarget(str, Enum):
    """What the next start, and only that one, goes to. NONE: as the firmware is set; OTHER is read, and never set."""

    NONE = "none"
    NETWORK = "network"
    DISK = "disk"
    SETUP = "setup"
    OTHER = "something else"


SETTABLE = (BootTarget.NONE, BootTarget.NETWORK, BootTarget.DISK, BootTarget.SETUP)


@dataclass(frozen=True)
class Boot:
    """What the next start goes to; ``once``: only that one."""

    target: BootTarget
    once: bool = True


@dataclass(frozen=True)
class Target:
    """A BMC, how to reach it and how to know it. ``password`` is in no repr.

    One of ``ca_file`` (PEM) and ``fingerprint`` (SHA-256 of its certificate) is needed wherever TLS is spoken.
    ``console_key``: its ssh host key, ``ssh-ed25519 AAAA...``, needed for the console of OpenBMC alone.
    """

    name: str
    kind: str
    address: str
    user: str
    password: str = field(repr=False)
    ca_file: str = ""
    fingerprint: str = ""
    console_key: str = ""
    https_port: int = 443
    ipmi_port: int = 623
    console_port: int = 2200
    timeout_seconds: float = 30.0

    @property
    def label(self) -> str:
        """As messages name it."""
        return f"{self.name} ({self.address})"


@dataclass(frozen=True)
class Identity:
    """Which machine this is. None and empty are what the BMC does not say.

    ``macs``: of the machine's network ports, ``bmc_macs``: of the BMC's own.
    """

    serial: str | None
    model: str | None
    macs: tuple[str, ...] = ()
    bmc_macs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sensor:
    """One reading; ``value`` is None where the BMC has none now. ``health`` is its own word: ``OK``, ``Critical``."""

    name: str
    value: float | None
    unit: str
    health: str = ""


@dataclass(frozen=True)
class Firmware:
    """One thing that has a version."""

    name: str
    version: str


@dataclass(frozen=True)
class Clock:
    """The BMC's time, and which servers it asks for it. ``ntp`` is None if it does not say."""

    now: datetime
    ntp: bool | None = None
    servers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """The bytes of a console and where they came from: ``log`` (kept by the BMC) or ``live`` (since we listened)."""

    text: str
    source: str
