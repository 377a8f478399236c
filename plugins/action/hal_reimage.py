"""Reimage nodes: show what would happen, and with its code do it. One task: nothing of it can be left out."""

from __future__ import annotations

import getpass
import os
import shlex
import socket
from collections.abc import Sequence
from typing import Any

from ansible import constants
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import connection_loader
from ansible.utils.display import Display

from hal_cluster.reimage import call
from hal_cluster.reimage.asked import Asked, Connected
from hal_cluster.reimage.command import reimage
from hal_cluster.reimage.errors import Conflict, Trouble
from hal_cluster.reimage.remote import Done, Run, done_of
from hal_cluster.reimage.rollout import end_running, end_with_parent
from hal_inventory.errors import HalError
from hal_inventory.printable import lines
from hal_inventory.settings import PROJECT

ARGUMENTS = {
    "nodes": {"type": "str", "default": ""},
    "code": {"type": "str", "default": ""},
    "settings": {"type": "dict", "required": True},
}


class ActionModule(ActionBase):
    """What hal_cluster.reimage needs of Ansible: variables of hosts, connections to them, and how it was called."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what was shown or done; failed with one line for what was refused."""
        variables = task_vars or {}
        result: dict[str, Any] = super().run(tmp, variables)
        _valid, options = self.validate_argument_spec(argument_spec=ARGUMENTS)
        if cannot := call.problem():
            return result | {"failed": True, "changed": False, "msg": cannot}
        end_with_parent()
        self._hosts = variables["hostvars"]
        display = Display()
        asked = Asked(
            nodes=options["nodes"],
            code=options["code"].strip().upper(),
            settings=options["settings"],
            check=self._task.check_mode,
            by=f"{getpass.getuser()}@{socket.gethostname().split('.')[0]}",
        )
        connected = Connected(
            sources=[str(source) for source in variables["ansible_inventory_sources"]],
            variable=self._variable,
            run_on=self._run_on,
            program=call.program(str(variables["ansible_playbook_python"])),
            environment=call.environment(),
            extra=call.extra(self._loader),
            project=PROJECT,
            say=lambda text: display.display(lines(text, None)),
        )
        try:
            done = reimage(asked, connected)
        except HalError as error:
            other = "somebody else works on these nodes: hal-reimage status on the server"
            said = f"{other} ({error})" if isinstance(error, Conflict) else f"{error}"
            return result | {"failed": True, "changed": False, "msg": lines(said)}
        finally:
            end_running()
        return result | {
            "failed": not done.well,
            "changed": done.changed,
            # A text of several lines is shown as it is; a list would be broken and quoted.
            "msg": lines(done.text, None),
            "code": done.code,
            "_ansible_verbose_always": True,  # without -v, too: to show it is what the first call is for
        }

    def _variable(self, host: str, name: str) -> Any:
        """Return a variable of a host; None when it has none."""
        try:
            return self._hosts[host][name]
        except (KeyError, AnsibleError):
            return None

    def _run_on(self, host: str, fresh: bool = False) -> Run:
        """Return what runs commands on a host, through Ansible's own connection. ``fresh``: not by one that is open."""
        kind = self._variable(host, "ansible_connection") or "ssh"
        connection = connection_loader.get(kind, self._play_context, os.devnull)
        names = constants.config.get_plugin_vars("connection", connection._load_name)
        known = self._hosts[host]
        settings = {name: known[name] for name in names if name in known}

        def run(argv: Sequence[str], stdin: bytes = b"", /) -> Done:
            # Several threads ask: each has a connection of its own, and all of them one master.
            mine = connection_loader.get(kind, self._play_context, os.devnull)
            mine.set_options(var_options=settings)
            try:
                if fresh and hasattr(mine, "reset"):
                    mine.reset()
                status, out, err = mine.exec_command(shlex.join(argv), in_data=stdin or None, sudoable=False)
            except AnsibleConnectionFailure as error:
                raise Trouble(f"{host}: {str(error.message).strip().splitlines()[-1]}", passes=True) from None
            return done_of(host, int(status), out, err)

        return run
