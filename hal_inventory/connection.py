"""How nodes are reached: where the controller keeps what it knows of a site, and what ssh is told.

All values are plain: programs that read an inventory and evaluate no templates, such as testinfra, connect as Ansible
does. Imports nothing slow.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hal_inventory.errors import HalInventoryError
from hal_inventory.settings import root
from hal_inventory.sources import Source

MOVED = {
    "hal_state_dir": "state: FOLDER",
    "hal_ssh_user": "ssh: {user: NAME}",
    "hal_ssh_key_file": "ssh: {key: FILE}",
    "hal_known_hosts": "state: FOLDER (the site's known_hosts is in it)",
    "hal_ssh_common_args": "ssh: {user: NAME, key: FILE}",
    "ansible_ssh_common_args": "ssh: {user: NAME, key: FILE}, and more options as ansible_ssh_extra_args",
}
"""Variables that the source decides, and how it says them. Set elsewhere, half of their users would not see them."""


@dataclass(frozen=True)
class Connection:
    """What ssh is told. ``state``: the folder of authorities and known_hosts. Paths are absolute."""

    state: Path
    user: str
    key: Path

    @property
    def known_hosts(self) -> Path:
        """Return which host keys are believed: always the file into which revocations are written."""
        return self.state / "known_hosts"

    def everywhere(self) -> dict[str, str]:
        """Return the variables of the group all. Those with names of Ansible may be overridden in group_vars."""
        return {
            "hal_state_dir": str(self.state),
            "hal_ssh_user": self.user,
            "hal_ssh_key_file": str(self.key),
            "ansible_user": self.user,
            # Against the environment: ansible-runner, and so AWX, switches the check off, ahead of the options below.
            "ansible_host_key_checking": "true",
            "ansible_ssh_private_key_file": str(self.key),
        }

    def of(self, node: str) -> dict[str, str]:
        """Return the variables of one node."""
        # A host certificate names its node: a key that the site's authority has not signed, or that was revoked, is
        # refused. Quoted twice: once for a shell, once for ssh, which takes several files there.
        known = shlex.quote(f'UserKnownHostsFile="{_escaped(self.known_hosts)}"')
        common = (
            f"-o {known} -o GlobalKnownHostsFile=none -o StrictHostKeyChecking=yes -o HostKeyAlias={node}"
            " -o IdentitiesOnly=yes -o PasswordAuthentication=no"
        )
        return {"ansible_ssh_common_args": common, "hal_ssh_common_args": common}


def connection(source: Source, site: str, beside: Path | None = None) -> Connection:
    """Return how the nodes of a site are reached, as a source says it; ``site`` is the name of the site.

    ``beside``: the folder of the ansible.cfg that counts, if the caller knows it.
    """
    state = _absolute(source.state or (beside or root()) / ".state" / site)
    return Connection(
        state=state,
        user=str(source.ssh.get("user", "root")),
        key=_absolute(Path(source.ssh.get("key", state / "ca" / "admin"))),
    )


def ssh_config(nodes: Mapping[str, tuple[str, str]], reached: Connection) -> str:
    """Return a configuration of OpenSSH for nodes: their names with address and full name.

    Also for programs on top of ssh: ``rsync -e 'ssh -F FILE'``, ``clush -o '-F FILE'``, testinfra's ``--ssh-config``.
    """
    hosts = "".join(
        f"Host {name} {fqdn}\n  HostName {address}\n  HostKeyAlias {name}\n" for name, (address, fqdn) in nodes.items()
    )
    return hosts + (
        f"Host {' '.join(word for name, (_, fqdn) in nodes.items() for word in (name, fqdn))}\n"
        f"  User {reached.user}\n"
        f'  IdentityFile "{_escaped(reached.key)}"\n'
        "  IdentitiesOnly yes\n"
        f'  UserKnownHostsFile "{_escaped(reached.known_hosts)}"\n'
        "  GlobalKnownHostsFile none\n"
        "  StrictHostKeyChecking yes\n"
        "  PreferredAuthentications publickey\n"
    )


def ssh_config_of(path: str | os.PathLike[str], expression: str) -> str:
    """Return the configuration for the nodes of a source that an expression selects.

    HalInventoryError if it selects none, or the key is missing: then the state folder is another one, or not made yet.
    """
    from hal_inventory.compiled import Compiled
    from hal_inventory.packed import host_vars

    compiled = Compiled(path)
    packed = compiled.inventory()
    hosts = host_vars(packed)
    names: list[str] = compiled.slice("nodes", {"where": expression})
    if not names:
        raise HalInventoryError(f'"{expression}" selects no node of {packed["site"]}')
    nodes = {name: (hosts[name]["ansible_host"], hosts[name]["hal_node"]["fqdn"]) for name in names}
    reached = connection(compiled.source, packed["site"])
    # The public half is enough if an agent has the key.
    if not any(os.path.exists(f"{reached.key}{end}") for end in ("", ".pub")):
        raise HalInventoryError(
            f"{reached.key}: no such key; playbooks/authorities.yml makes that of a new site; if another one counts,"
            f" write state: FOLDER or ssh: {{key: FILE}} into {path}"
        )
    return ssh_config(nodes, reached)


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _escaped(path: Path) -> str:
    return str(path).replace("%", "%%")  # ssh would take a single % for a token
