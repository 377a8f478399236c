"""What a BMC says for the model: the document that ``hal-inventory capture`` reads (hal_inventory.capture.document)."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from hal_cluster.bmc.choose import connect
from hal_cluster.bmc.ipmi import Ipmi
from hal_cluster.bmc.models import Target
from hal_cluster.bmc.operations import Limits

FORMAT = 1


def document(target: Target) -> dict[str, Any]:
    """Return the document of one BMC: its Redfish resources, or what IPMI says of it. Only reads."""
    bmc = connect(target)
    head = {
        "format": FORMAT,
        "address": target.address,
        "taken_at": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    try:
        if isinstance(bmc, Ipmi):
            seen = Limits().answers.again(bmc.identity)
            macs = list(seen.bmc_macs)
            return {**head, "kind": "ipmi", "serial": seen.serial, "model": seen.model, "macs": macs}
        resources = Limits().answers.again(bmc.resources)  # type: ignore[attr-defined]  # all others have Redfish
        return {**head, "kind": "bmc", "resources": resources}
    finally:
        bmc.close()
