"""From a kind of the model to the client that speaks with it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import KINDS, Target
from hal_cluster.bmc.passwords import is_default
from hal_cluster.bmc.protocol import Bmc
from hal_inventory.names import PLACEHOLDER_ADDRESS

REDFISH = "hal_cluster.bmc.redfish.Redfish"
CLIENTS = {
    "openbmc": "hal_cluster.bmc.openbmc_rest.OpenBmc",
    "supermicro": "hal_cluster.bmc.supermicro.Supermicro",
    "ipmi": "hal_cluster.bmc.ipmi.Ipmi",
}
"""Where the client for a kind is. All other kinds speak Redfish as its specification says."""


def connect(target: Target, *, changing_password: bool = False) -> Bmc:
    """Return the client for a BMC; nothing is sent yet.

    BmcError CONFIGURATION for an unknown kind or an address that is a placeholder. DEFAULT_PASSWORD for a password that
    everybody knows, unless it is about to be changed.
    """
    if target.kind not in KINDS:
        answer = f"kind {target.kind!r} is not one of {', '.join(KINDS)}"
        raise BmcError(target.label, "a connection", answer, Fault.CONFIGURATION)
    if target.address.endswith(PLACEHOLDER_ADDRESS):
        answer = "its address is a placeholder: put the real one into cluster.yml and take !placeholder away"
        raise BmcError(target.name, "a connection", answer, Fault.CONFIGURATION)
    if is_default(target.password) and not changing_password:
        answer = "its password is one that everybody knows, or empty; playbooks/bmc.yml changes it"
        raise BmcError(target.label, f"login of {target.user}", answer, Fault.DEFAULT_PASSWORD)
    return client_of(target.kind)(target)


def client_of(kind: str) -> Callable[[Target], Bmc]:
    """Return the client for a kind. It is imported only now, because libraries for BMCs load slowly."""
    module, _, name = CLIENTS.get(kind, REDFISH).rpartition(".")
    client: Callable[[Target], Bmc] = getattr(importlib.import_module(module), name)
    return client


def modules_of(kinds: Iterable[str]) -> list[str]:
    """Return the modules in which the clients for these kinds are."""
    return sorted({CLIENTS.get(kind, REDFISH).rpartition(".")[0] for kind in kinds})
