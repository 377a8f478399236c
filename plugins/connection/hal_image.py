"""Run tasks in the root file system of an image that is being built on the host that ssh leads to."""

from __future__ import annotations

import shlex
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.connection import ssh

DOCUMENTATION = """
name: hal_image
author: HAL toolkit
short_description: Tasks run in the root of an image that is being built
description:
  - Reaches the building node as M(ansible.builtin.ssh#connection) does, whose options it has.
  - Runs there in a root file system.
  - Used by playbooks/image.yml; without a build that is under way nothing runs at all.
extends_documentation_fragment:
  - connection_pipelining
  - hal_ssh
options:
  hal_image_root:
    description: The root file system, on the building node.
    type: str
    vars: [{name: hal_image_root}]
  hal_image_keeper:
    description: The process in whose mount namespace the build is, as M(hal_image) gives it.
    type: str
    vars: [{name: hal_image_keeper}]
"""

SHARED = "/run/hal-image/"  # hal_node/image/hold.py RUN: the same folder inside and outside of the root
ENVIRONMENT = (
    "HOME=/root",
    "USER=root",
    "SHELL=/bin/sh",
    "LANG=C",
    "TERM=dumb",
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
)


def in_root(root: Any, keeper: Any, command: str) -> str:
    """Return a command as the building node has to run it; AnsibleError when no build is under way."""
    if not str(keeper or "").isdigit() or int(keeper) < 2 or not str(root or "").startswith("/"):
        raise AnsibleError("no image is being built: hal_image_root and hal_image_keeper say where")
    words = ["nsenter", f"--mount=/proc/{int(keeper)}/ns/mnt", "--", "chroot", str(root), "/usr/bin/env", "-i"]
    return shlex.join([*words, *ENVIRONMENT, "/bin/sh", "-c", command])


class Connection(ssh.Connection):
    """ssh to the building node, where every command enters the image first. None is ever run outside of it.

    A connection and not a way to become: Ansible leaves that out where the user stays the same, and the task would be
    done to the building node.
    """

    transport = "hal_image"

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> Any:
        """Run a command in the root."""
        inside = in_root(self.get_option("hal_image_root"), self.get_option("hal_image_keeper"), cmd)
        return super().exec_command(inside, in_data=in_data, sudoable=sudoable)

    def put_file(self, in_path: str, out_path: str) -> Any:
        """Bring a file to the folder that the root shares with the building node."""
        return super().put_file(in_path, _shared(out_path))

    def fetch_file(self, in_path: str, out_path: str) -> Any:
        """Fetch a file from that folder."""
        return super().fetch_file(_shared(in_path), out_path)


def _shared(path: str) -> str:
    if not path.startswith(SHARED) or "/../" in path:
        raise AnsibleError(f"{path}: only files below {SHARED} go in and out of an image; set ansible_remote_tmp so")
    return path
