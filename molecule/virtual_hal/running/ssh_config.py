"""Commands on the nodes of a virtual cluster, by the configuration of ssh that hal-inventory ssh-config prints.

Nodes are trusted by the site's certificate authority, under their inventory names; host-key checking stays on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(PROJECT))

from hal_inventory.compiled import inventory_of, slice_of  # noqa: E402  found through the line above
from hal_inventory.connection import ssh_config_of  # noqa: E402
from hal_inventory.errors import HalInventoryError  # noqa: E402
from hal_inventory.packed import host_vars  # noqa: E402
from hal_inventory.sources import last_source  # noqa: E402

STATE = PROJECT / ".state" / "virtual"


class CommandError(subprocess.CalledProcessError):
    """A command on a node that failed; its text says what the command printed last."""

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.stdout}{self.stderr}"[-3000:]


class Cluster:
    """A virtual cluster as its inventory sources declare it, and commands on its nodes."""

    def __init__(self, sources: Sequence[Path]) -> None:
        """`sources` as Ansible's -i takes them: the last one decides. HalInventoryError when it cannot be read."""
        source = last_source(str(path) for path in sources)
        if source is None:
            raise HalInventoryError(f"no inventory source of the model in {', '.join(map(str, sources))}")
        self.source = source

    def slice(self, name: str, **arguments: Any) -> Any:
        """What lookup('hal', name, ...) gives in a playbook."""
        return slice_of(self.source, name, arguments)

    def node(self, name: str) -> dict[str, Any]:
        """The hal_node of a node. KeyError when the model has no such node."""
        node: dict[str, Any] = self._hosts[name]["hal_node"]
        return node

    @cached_property
    def _hosts(self) -> dict[str, dict[str, Any]]:
        return host_vars(inventory_of(self.source))

    @cached_property
    def ssh_config(self) -> Path:
        """The configuration file, written anew for these sources."""
        name = f"{self.source.resolve().parent.name}-{self.source.stem}"
        path = STATE / "ssh" / f"{name}.config"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = ssh_config_of(self.source, "all") + (
            "Host *\n"
            "  ControlMaster auto\n"
            "  ControlPersist 60s\n"
            # %C is a hash: the path stays short enough for a socket, wherever the project is.
            f'  ControlPath "{_sockets()}/%C"\n'
        )
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        return path

    def ssh_argv(self, node: str, command: str) -> list[str]:
        """The argv that runs a shell command on a node."""
        return ["ssh", "-F", str(self.ssh_config), node, command]

    def run(self, node: str, command: str) -> str:
        """Output of a shell command on a node; CommandError when it fails."""
        done = subprocess.run(self.ssh_argv(node, command), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise CommandError(done.returncode, f"{node}: {command}", done.stdout, done.stderr)
        return done.stdout


def _sockets() -> Path:
    folder = Path.home() / ".ansible" / "cp"  # where Ansible keeps its own
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def main() -> int:
    """`--login NODE` opens a shell there; without it, print the path of the configuration file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-i", dest="sources", action="append", type=Path, required=True)
    parser.add_argument("--login", metavar="NODE")
    options = parser.parse_args()
    cluster = Cluster(options.sources)
    if options.login is None:
        print(cluster.ssh_config)
        return 0
    names = cluster.slice("nodes")
    if options.login not in names:
        nodes = cluster.slice("nodeset")
        print(f"make ssh NODE=...: {options.login or 'nothing'} is not a node; there are {nodes}", file=sys.stderr)
        return 2
    return subprocess.call(["ssh", "-F", str(cluster.ssh_config), options.login])


if __name__ == "__main__":
    sys.exit(main())
