"""``capture --bmc``: a proposal for the model from what the BMCs of nodes say, all asked at once."""

from __future__ import annotations

import getpass
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hal_cluster.bmc.capture import document
from hal_cluster.bmc.errors import BmcError
from hal_cluster.bmc.many import ask_all
from hal_cluster.bmc.models import Target
from hal_cluster.inventory.capture import Verdict, verdict
from hal_inventory.capture.document import Capture, parse_capture
from hal_inventory.capture.propose import propose
from hal_inventory.compiled import Compiled
from hal_inventory.derive.inventory import pack
from hal_inventory.errors import Finding, HalInventoryError
from hal_inventory.model import Site
from hal_inventory.packed import host_vars
from hal_inventory.reader import display_name, read_bytes
from hal_inventory.restrict import select
from hal_inventory.sources import is_model, read_source

PASSWORD = "HAL_BMC_PASSWORD"
USERS = {"openbmc": "root", "idrac": "root", "supermicro": "ADMIN", "ipmi": "ADMIN", "redfish": "admin"}
"""The accounts with which BMCs come, as inventory/hal/group_vars/all/bmc.yml has them."""


def capture_bmcs(source: Path, expression: str, user: str | None, ca_file: str | None, pins: Sequence[str]) -> Verdict:
    """Return what the BMCs propose. One that fails is a finding; the others are proposed all the same."""
    site = bmc_site(source)
    names = select(site, expression)
    if not names:
        raise HalInventoryError(f"--bmc {expression}: no node is selected")
    captures, findings = ask(site, names, user, ca_file, pins)
    model = read_source(source).cluster
    nodes = {source_of_bmc(name): name for name in names}
    proposal = propose(read_bytes(model), display_name(model), captures, nodes=nodes)
    return verdict(proposal, findings)


def bmc_site(source: Path) -> Site:
    """Return the site of an inventory source; a cluster.yml alone does not say where its BMCs are."""
    if is_model(source):
        raise HalInventoryError(f"{display_name(source)}: --bmc needs an inventory source, such as hal.yml beside it")
    return Compiled(source).site()


def ask(
    site: Site, names: Sequence[str], user: str | None, ca_file: str | None, pins: Sequence[str]
) -> tuple[list[tuple[str, Capture]], list[Finding]]:
    """Return what the BMCs of nodes say, each with its name, and a finding for each failure. All are asked at once."""
    believed = _pins(pins, names)
    if ca_file and os.path.exists(ca_file):
        read_bytes(ca_file)  # refuses a pipe here: ssl would wait until somebody writes into it
    hosts = host_vars(pack(site))
    bmcs = {name: hosts[name]["hal_node"]["bmc"] for name in names}
    findings = [
        Finding(source_of_bmc(name), 0, "bmc", "the model has no BMC for this node")
        for name in names
        if bmcs[name] is None
    ]
    there = [name for name in names if bmcs[name] is not None]
    password = _password(there)
    targets = [
        Target(
            name=name,
            kind=bmcs[name]["kind"],
            address=bmcs[name]["address"],
            user=user or USERS[bmcs[name]["kind"]],
            password=password,
            ca_file=ca_file or "",
            fingerprint=believed.get(name, ""),
        )
        for name in there
    ]
    captures: list[tuple[str, Capture]] = []
    for name, said in ask_all(targets, document).items():
        if isinstance(said, BmcError):
            findings.append(Finding(source_of_bmc(name), 0, said.asked, said.answer))
        else:
            source = source_of_bmc(name)
            captures.append((source, parse_capture(json.dumps(said).encode(), source)))
    return captures, findings


def source_of_bmc(name: str) -> str:
    """Return how findings name a BMC."""
    return f"BMC of {name}"


def _pins(pins: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    believed = {}
    for pin in pins:
        name, equals, shown = pin.partition("=")
        if not equals or name not in names:
            what = "is not NODE=FINGERPRINT" if not equals else f"{name} is not one of the nodes that are asked"
            raise HalInventoryError(f"--pin {pin}: {what}")
        believed[name] = shown
    return believed


def _password(names: Sequence[str]) -> str:
    """Return the password of all BMCs. It is never an argument, which others could see."""
    given = os.environ.get(PASSWORD)
    if given is not None or not names:
        return given or ""
    if not sys.stdin.isatty():
        raise HalInventoryError(f"no password for the BMCs: give it in {PASSWORD}, or call this at a terminal")
    return getpass.getpass("Password of the BMCs: ")
