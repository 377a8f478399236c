"""Ansible callback plugin: what a node says is printed, and drives no terminal."""

from __future__ import annotations

import functools
import re
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.utils.display import Display

from hal_cluster.audit import active
from hal_inventory.printable import printable

DOCUMENTATION = r"""
name: hal_printable
type: notification
short_description: What a node says drives no terminal
description:
  - >-
    Ansible prints what modules return, and with C(--diff) what was in files, as it is. So a node that somebody has
    taken over sends escape sequences to the terminal of whoever rolls out, and into logs.
  - >-
    With this, whatever Ansible prints is printable. What drives a terminal, turns the direction of a text or is not
    seen is shown as an escape, such as C(\x1b) or C(\u202e). Ends of lines, tabs and colours stay.
requirements: [Enabled in C(callbacks_enabled) of ansible.cfg]
author: HAL toolkit
"""

KEPT = re.compile(r"(\n|\t|\x1b\[(?:[012]|(?:[01];)?3[0-7]|38;5;[0-9]{1,3})m)")
"""Ends of lines, tabs, and colours, which diffs and recaps have in their text (ansible.constants.COLOR_CODES), and the
report of an audit (hal_cluster.audit.report.CODES)."""


def printed(text: str) -> str:
    """Return a text of Ansible's as it may be printed; nothing is cut: programs read it, too."""
    parts = KEPT.split(text)
    parts[::2] = [printable(part, None) for part in parts[::2]]
    return "".join(parts)


class CallbackModule(CallbackBase):
    """Stands before the one function through which results, diffs, warnings and banners are printed and logged."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "hal_printable"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        display = Display.display

        @functools.wraps(display)
        def display_printable(self: Any, msg: Any, *rest: Any, **more: Any) -> Any:
            return display(self, printed(msg) if isinstance(msg, str) else msg, *rest, **more)

        Display.display = display_printable
        active.takes_part(self.CALLBACK_NAME)
