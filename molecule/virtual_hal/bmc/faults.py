"""What can be wrong with an emulated BMC, switched on and off while it runs."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Faults(BaseModel):
    """The faults of one BMC; all off is a BMC that works."""

    model_config = ConfigDict(extra="forbid")

    silent: bool = False  # accepts connections, answers nothing
    slow_seconds: float = 0.0  # before every answer
    gateway_timeout: bool = False  # every request is answered 504; IPMI: "unspecified error"
    serial: str | None = None  # what it says instead of its machine's
    power_ignored: bool = False  # says yes, does nothing
    boot_override_ignored: bool = False  # says yes, keeps nothing
    boot_override_lost: bool = False  # says yes, reads it back, and the machine starts from its disk all the same
    swapped_with: str | None = None  # its cables lead to that node's machine
    disk_missing: bool = False  # the machine's system disk is not there when it is installed
    old_firmware: bool = False  # Redfish does not offer the boot override; OpenBMC's REST does

    def shown(self) -> list[str]:
        """Return the faults that are on, in words."""
        words = {
            "silent": "silent",
            "gateway_timeout": "504",
            "power_ignored": "power-ignored",
            "boot_override_ignored": "boot-override-ignored",
            "boot_override_lost": "boot-override-lost",
            "disk_missing": "disk-missing",
            "old_firmware": "old-firmware",
        }
        on = [word for field, word in words.items() if getattr(self, field)]
        if self.slow_seconds:
            on.append(f"slow {self.slow_seconds:g} s")
        if self.serial:
            on.append(f"wrong-serial {self.serial}")
        if self.swapped_with:
            on.append(f"swapped-with {self.swapped_with}")
        return on
