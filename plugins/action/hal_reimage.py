"""Reimage nodes: show what would happen, and with its code do it. One task: nothing of it can be left out."""

from __future__ import annotations

import getpass
import json
import os
import shlex
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.common.json import AnsibleJSONEncoder
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import connection_loader
from ansible.utils.display import Display
from ansible.utils.path import unfrackpath
from ansible.utils.vars import load_extra_vars

from hal_cluster.bmc.errors import BmcError
from hal_cluster.provision.errors import ProvisionError
from hal_cluster.reimage.command import Asked, Connected, reimage
from hal_cluster.reimage.errors import Conflict, ReimageError, Trouble
from hal_cluster.reimage.remote import Done, Run, done_of
from hal_cluster.reimage.rollout import end_running, end_with_parent
from hal_inventory.errors import HalInventoryError
from hal_inventory.printable import lines
from hal_inventory.settings import PROJECT

ARGUMENTS = {
    "nodes": {"type": "str", "default": ""},
    "code": {"type": "str", "default": ""},
    "settings": {"type": "dict", "required": True},
}
REFUSED = (Conflict, ReimageError, Trouble, ProvisionError, HalInventoryError, BmcError)
ENDED = "hal_outcome"
# The last is ansible-runner's, whose events are this run's.
NOT_PASSED_ON = ("ANSIBLE_FORCE_COLOR", "ANSIBLE_CHECK_MODE", "ANSIBLE_STDOUT_CALLBACK")
PASSED_ON = {
    "remote_user": "--user",
    "private_key_file": "--private-key",
    "connection_password_file": "--connection-password-file",
    "connection": "--connection",
    "timeout": "--timeout",
    "ssh_common_args": "--ssh-common-args",
    "ssh_extra_args": "--ssh-extra-args",
    "sftp_extra_args": "--sftp-extra-args",
    "scp_extra_args": "--scp-extra-args",
    "become_method": "--become-method",
    "become_user": "--become-user",
    "become_password_file": "--become-password-file",
    "forks": "--forks",
}
"""What decides whether ansible-playbook gets into nodes, by its name in Ansible's CLIARGS; --become has no value."""
ASKS = {"ask_vault_pass": "--ask-vault-pass", "ask_pass": "--ask-pass", "become_ask_pass": "--ask-become-pass"}
PROMPTS = ("prompt", "prompt_ask_vault_pass")
"""Sources of a vault password that ask for it (ansible.cli.CLI.setup_vault_secrets)."""


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
        if asks := _asks():
            cannot = f"reimage.yml rolls out by an ansible-playbook of its own, which cannot ask ({', '.join(asks)})"
            return result | {"failed": True, "changed": False, "msg": f"{cannot}: use {_instead(asks)}"}
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
            sources=[str(one) for one in variables["ansible_inventory_sources"]],
            variable=self._variable,
            run_on=self._run_on,
            program=self._program(variables),
            environment=_environment(),
            extra=self._extra(),
            project=PROJECT,
            say=lambda text: display.display(lines(text, None)),
        )
        try:
            done = reimage(asked, connected)
        except REFUSED as error:
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

    @staticmethod
    def _program(variables: dict[str, Any]) -> list[str]:
        """Return how ansible-playbook is called as this one was, but for playbook, limit and variables."""
        python = str(variables["ansible_playbook_python"])
        argv = [python, str(Path(python).with_name("ansible-playbook"))]
        for source in context.CLIARGS.get("inventory") or ():
            argv += ["--inventory", str(source)]
        for secret in context.CLIARGS.get("vault_ids") or ():
            argv += ["--vault-id", _from_here(str(secret))]
        for file in context.CLIARGS.get("vault_password_files") or ():
            argv += ["--vault-password-file", str(file)]
        for name, option in PASSED_ON.items():
            if (value := context.CLIARGS.get(name)) not in (None, ""):
                argv.append(f"{option}={value}")  # one word: arguments of ssh begin with a dash
        if context.CLIARGS.get("become"):
            argv.append("--become")
        return argv

    def _extra(self) -> dict[str, Any]:
        """Return the variables of the command line as plain data, without those that are for this playbook."""
        every = load_extra_vars(self._loader)
        given = {name: value for name, value in every.items() if not name.startswith("reimage_")}
        # Vaulted ones as text, dates as YAML writes them.
        text = json.dumps(given, cls=AnsibleJSONEncoder, preprocess_unsafe=False, vault_to_text=True)
        plain: dict[str, Any] = json.loads(text)
        return plain


def _asks() -> list[str]:
    """Return what of this call, or of the configuration, wants to ask somebody for a password."""
    found = [option for name, option in ASKS.items() if context.CLIARGS.get(name)]
    for secret in (*constants.DEFAULT_VAULT_IDENTITY_LIST, *(context.CLIARGS.get("vault_ids") or ())):
        if str(secret).split("@", 1)[-1] in PROMPTS:
            found.append(f"--vault-id {secret}")
    files = {"connection_password_file": "--connection-password-file", "become_password_file": "--become-password-file"}
    return found + [f"{option} -" for name, option in files.items() if context.CLIARGS.get(name) == "-"]


def _instead(asks: Sequence[str]) -> str:
    """Return the option that takes the same from a file."""
    kinds = {"vault": "--vault-password-file", "become": "--become-password-file"}
    return " and ".join(
        dict.fromkeys(
            next((option for word, option in kinds.items() if word in one), "--connection-password-file")
            for one in asks
        )
    )


def _from_here(secret: str) -> str:
    """Return a vault id whose file is found from any folder: the rollout is started in the project's."""
    *name, source = secret.split("@", 1)
    return "@".join([*name, unfrackpath(source, follow=False)])


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
    enabled = [*constants.CALLBACKS_ENABLED, ENDED]
    return {
        **kept,
        "ANSIBLE_CONFIG": str(constants.CONFIG_FILE),
        "ANSIBLE_CALLBACK_PLUGINS": str(PROJECT / "plugins" / "callback"),
        "ANSIBLE_CALLBACKS_ENABLED": ",".join(dict.fromkeys(enabled)),
        "ANSIBLE_NOCOLOR": "1",
    }
