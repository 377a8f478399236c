"""Users of a node, as tests have them."""

from __future__ import annotations

from shlex import quote

from testinfra.host import Host


def user(host: Host, command: str, name: str = "alice") -> str:
    """What a user sees in a login shell, both streams."""
    done = host.run(f"runuser -l {name} -c {quote(command)}")
    return str(done.stdout + done.stderr)
