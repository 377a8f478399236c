"""How Ansible was called: a reimage calls its rollouts alike, so they get into nodes as this call does."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.module_utils.common.json import AnsibleJSONEncoder
from ansible.utils.path import unfrackpath
from ansible.utils.vars import load_extra_vars

from hal_inventory.settings import PROJECT

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


def problem() -> str:
    """Return why a reimage cannot call its rollouts as it was called: they would ask for a password. Else ""."""
    if not (asks := _asks()):
        return ""
    cannot = f"reimage.yml rolls out by an ansible-playbook of its own, which cannot ask ({', '.join(asks)})"
    return f"{cannot}: use {_instead(asks)}"


def _asks() -> list[str]:
    """Return the options of this call that ask for a password, and those of the configuration."""
    options = [option for name, option in ASKS.items() if context.CLIARGS.get(name)]
    for secret in (*constants.DEFAULT_VAULT_IDENTITY_LIST, *(context.CLIARGS.get("vault_ids") or ())):
        if str(secret).split("@", 1)[-1] in PROMPTS:
            options.append(f"--vault-id {secret}")
    files = {"connection_password_file": "--connection-password-file", "become_password_file": "--become-password-file"}
    return options + [f"{option} -" for name, option in files.items() if context.CLIARGS.get(name) == "-"]


def _instead(asks: Sequence[str]) -> str:
    """Return the options that read the same passwords from files."""
    kinds = {"vault": "--vault-password-file", "become": "--become-password-file"}
    return " and ".join(
        dict.fromkeys(
            next((option for word, option in kinds.items() if word in ask), "--connection-password-file")
            for ask in asks
        )
    )


def program(python: str) -> list[str]:
    """Return the argv of an ansible-playbook that is called as this one was, without playbook, limit and variables.

    ``python``: the one that runs Ansible; its ansible-playbook lies beside it.
    """
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


def _from_here(secret: str) -> str:
    """Return a vault id whose file is found from any folder: the rollout starts in the project's."""
    *name, source = secret.split("@", 1)
    return "@".join([*name, unfrackpath(source, follow=False)])


def extra(loader: Any) -> dict[str, Any]:
    """Return the variables of the command line as plain data, without those that are for this playbook."""
    every = load_extra_vars(loader)
    given = {name: value for name, value in every.items() if not name.startswith("reimage_")}
    # Vaulted ones as text, dates as YAML writes them.
    text = json.dumps(given, cls=AnsibleJSONEncoder, preprocess_unsafe=False, vault_to_text=True)
    plain: dict[str, Any] = json.loads(text)
    return plain


def environment() -> dict[str, str]:
    """Return the environment of that ansible-playbook: this one's, and a callback that writes how it ended."""
    kept = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
    enabled = [*constants.CALLBACKS_ENABLED, ENDED]
    return {
        **kept,
        "ANSIBLE_CONFIG": str(constants.CONFIG_FILE),
        "ANSIBLE_CALLBACK_PLUGINS": str(PROJECT / "plugins" / "callback"),
        "ANSIBLE_CALLBACKS_ENABLED": ",".join(dict.fromkeys(enabled)),
        "ANSIBLE_NOCOLOR": "1",
    }
