"""Clients of the BMCs: power, one-time boot, sensors, identity, accounts, clock, certificate, console.

One Protocol (``protocol.Bmc``), one client for each way of asking, and ``operations``, which wait until a command has
taken effect.
"""

from __future__ import annotations
