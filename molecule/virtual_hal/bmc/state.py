"""What an emulated BMC remembers: one JSON file a machine, changed under a lock, replaced in one step.

The serving process and the command that switches faults are two processes; both go through here.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from testbed.errors import VirtualNodesError

from bmc.faults import Faults

Target = Literal["none", "network", "disk", "setup"]
Enabled = Literal["disabled", "once", "continuous"]
CONSOLE_BYTES = 16 * 1024  # obmc-console-server's log, as OpenBMC configures it


class Override(BaseModel):
    """Which device the machine is told to start from, and for how long."""

    model_config = ConfigDict(frozen=True)

    target: Target = "none"
    enabled: Enabled = "disabled"


class User(BaseModel):
    """A user of the BMC. In clear, as IPMI needs it; the file is for its owner alone."""

    password: str
    must_change: bool = False


class State(BaseModel):
    """Everything that lasts longer than the serving process."""

    model_config = ConfigDict(extra="forbid")

    power: bool = False
    in_firmware: bool = False  # on, but nothing has been started: petitboot's menu
    starts: int = 0  # how often the host was started
    boot_source: Target = "none"  # as OpenBMC keeps it: one setting that lasts, and one for the next start
    once_source: Target = "none"
    once_enabled: bool = False
    console: str = ""
    printed_bytes: int = 0  # by the host, in all; the console keeps the last of them
    users: dict[str, User] = {}
    clock_offset_seconds: float = 0.0
    ntp_enabled: bool = False
    ntp_servers: list[str] = []
    faults: Faults = Faults()

    @property
    def override(self) -> Override:
        """The boot override that the next start follows."""
        if self.once_enabled:
            return Override(target=self.once_source, enabled="once")
        return Override(target=self.boot_source, enabled="continuous") if self.boot_source != "none" else Override()

    def set_override(self, override: Override) -> None:
        """Set it; "disabled" takes both away."""
        self.once_enabled = override.enabled == "once"
        self.once_source = override.target if self.once_enabled else "none"
        if not self.once_enabled:
            self.boot_source = override.target if override.enabled == "continuous" else "none"


class StateFile:
    """The state of one machine."""

    def __init__(self, path: Path, first: State) -> None:
        """Make the file with what it starts with, unless it is there."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._locked():
            if not path.exists():
                self._write(first)

    def read(self) -> State:
        """Return the state as it is; raise VirtualNodesError when somebody has damaged the file."""
        try:
            return State.model_validate_json(self.path.read_bytes())
        except ValidationError as error:
            problem = error.errors(include_input=False, include_url=False)[0]
            raise VirtualNodesError(
                f"{self.path}: {'.'.join(map(str, problem['loc'])) or 'the file'}: {problem['msg']}; "
                "remove it: the BMC starts as delivered"
            ) from None
        except OSError as error:
            raise VirtualNodesError(f"{self.path}: {error.strerror}; the BMC's instance was removed?") from None

    @contextmanager
    def change(self) -> Iterator[State]:
        """Give the state to change; it is written when the block ends well."""
        with self._locked():
            state = self.read()
            yield state
            self._write(state)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # A file of its own: the state file is replaced, and a lock on a replaced file locks nothing.
        with self.path.with_suffix(".lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _write(self, state: State) -> None:
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)  # mode 0600
        try:
            with os.fdopen(handle, "w") as out:
                out.write(state.model_dump_json(indent=1))
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
