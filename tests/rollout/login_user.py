"""A user of a virtual HAL who logs in as one does: over SSH, with a certificate of the site."""

from __future__ import annotations

import subprocess
from pathlib import Path

from running.ssh_config import STATE, Cluster


class User:
    """A user who logs in over SSH with a certificate of the site, as an account from the node image."""

    def __init__(self, cluster: Cluster, name: str, folder: Path) -> None:
        self.cluster, self.name, self.key = cluster, name, folder / name
        ca = STATE / "ca" / "user_ca"
        for argv in (
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)],
            ["ssh-keygen", "-q", "-s", str(ca), "-I", name, "-n", name, "-V", "+1d", f"{self.key}.pub"],
        ):
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)

    def ssh(self, node: str, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as `ssh NODE COMMAND` does: no terminal, no login shell."""
        options = (f"User={self.name}", f"IdentityFile={self.key}", "ControlPath=none")
        argv = ["ssh", *(word for option in options for word in ("-o", option))]
        argv += self.cluster.ssh_argv(node, command)[1:]
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def says(self, node: str, command: str) -> str:
        """What a command prints; it has to succeed."""
        done = self.ssh(node, command)
        assert done.returncode == 0, f"{self.name}@{node}: {command}\n{done.stdout}{done.stderr}"
        return done.stdout
