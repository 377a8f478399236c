"""BMCs, by hal_cluster.bmc: each call is a session of its own, and acts only on the declared machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from hal_cluster.bmc import operations
from hal_cluster.bmc.choose import connect
from hal_cluster.bmc.errors import BmcError
from hal_cluster.bmc.models import BootTarget, Power, Target
from hal_cluster.bmc.operations import Limits
from hal_cluster.bmc.protocol import Bmc
from hal_cluster.bmc.turns import Turns
from hal_cluster.reimage.errors import Conflict, ReimageError, Trouble

CONSOLE_SECONDS = 3
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Machine:
    """A BMC and the serial number of the machine that it is to have."""

    target: Target
    serial: str


@dataclass
class Bmcs:
    """Implements world.Bmc. ``declared``: the nodes of the model by serial number. ``turns``: when power may come."""

    machines: Mapping[str, Machine]
    declared: Mapping[str, str]
    limits: Limits
    turns: Turns
    # pyghmi keeps all sessions of the process in one place, which is not made for several threads.
    _ipmi: threading.Lock = field(default_factory=threading.Lock)

    def identify(self, node: str) -> None:
        """Trouble unless it is the declared machine."""
        self._ask(node, lambda bmc: None, sure=True)

    def is_on(self, node: str) -> bool:
        """Return whether it has power."""
        state = self._ask(node, lambda bmc: operations.power(bmc, self.limits))
        if state is Power.UNKNOWN:
            raise Trouble(f"BMC of {node}: it does not know whether its machine has power", passes=True)
        return state is not Power.OFF

    def shut_down(self, node: str, may: Callable[[], None]) -> None:
        """Shut a machine down; take its power away if it does not go off."""
        self._ask(node, lambda bmc: operations.shut_down(bmc, self.limits, force=True, may=may), sure=True)

    def network_once(self, node: str) -> None:
        """Have the next start go to the network."""
        self._ask(node, lambda bmc: operations.boot_once(bmc, BootTarget.NETWORK, self.limits), sure=True)

    def boot_as_set(self, node: str) -> None:
        """Have the next start go where the firmware is set to."""
        self._ask(node, lambda bmc: operations.boot_once(bmc, BootTarget.NONE, self.limits), sure=True)

    def on(self, node: str, may: Callable[[], None]) -> None:
        """Switch on, when it is its turn."""
        self._ask(node, lambda bmc: operations.power_on(bmc, self.limits, self.turns.wait, may), sure=True)

    def console(self, node: str) -> str:
        """Return what the console says, "" where it cannot be had."""
        with suppress(Trouble):
            return self._ask(node, lambda bmc: bmc.console(CONSOLE_SECONDS).text)
        return ""

    def _ask(self, node: str, asked: Callable[[Bmc], Answer], *, sure: bool = False) -> Answer:
        machine = self.machines[node]
        try:
            with self._ipmi if machine.target.kind in ("ipmi", "supermicro") else threading.Lock():
                bmc = connect(machine.target)
                try:
                    if sure:
                        operations.check_identity(bmc, machine.serial, self.declared, self.limits)
                    return asked(bmc)
                finally:
                    bmc.close()
        except (Conflict, ReimageError, Trouble):  # raised by ``may``
            raise
        except BmcError as error:
            raise Trouble(str(error), passes=error.may_pass) from None
        except OSError as error:  # the file of turns
            raise Trouble(f"{error.filename or self.turns.file}: {error.strerror or error}") from None
        except Exception as error:  # firmware has answers that no client foresaw: that is a failure, not a crash
            raise Trouble(str(BmcError.of(machine.target.label, "something", error))) from None
