"""A process that mitogen forks asks for modules itself, and waits for no answer that its parent gets.

mitogen forks one for each call of a module that has imports of ours. The fork has a copy of what its parent has asked
for and not got yet (0.3.54: core.py, Importer._callbacks). What it needs of that it never asks for, and waits.
"""

from __future__ import annotations

import inspect
from typing import Any

import ansible_mitogen.process
import mitogen.fork
from ansible.errors import AnsibleError

AT = "        on_fork()\n"  # mitogen.fork.Connection._child_main: the first thing a fork does
FORGET = """\
        if self.options.importer:
            self.options.importer._callbacks.clear()
            self.options.importer._lock = threading.Lock()
"""
IMPORTS = "import threading\n"


def mended() -> bytes:
    """Return mitogen.fork for nodes. Raises AnsibleError where the installed one forks in another way."""
    source = inspect.getsource(mitogen.fork)
    if source.count(AT) != 1 or IMPORTS not in source:
        raise AnsibleError(f"{mitogen.fork.__file__}: mitogen forks in another way now; see forked_importer.py")
    return source.replace(AT, AT + FORGET).encode()


def send(responder: Any) -> None:
    """Have a responder send the mended module in place of the installed one."""
    responder.add_source_override("mitogen.fork", mitogen.fork.__file__, mended(), False)


def mend() -> None:
    """Have the connection multiplexers that are started from now on send it. Raises as `mended` does.

    Asked here: what is raised in a multiplexer is waited for without end.
    """
    mended()
    ansible_mitogen.process._setup_responder = _setup


_as_mitogen = ansible_mitogen.process._setup_responder


def _setup(responder: Any) -> None:
    _as_mitogen(responder)
    send(responder)
