"""Run tasks in the root file system of an image that is being built on the host they are sent to."""

from __future__ import annotations

import shlex
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.become import BecomeBase

DOCUMENTATION = r"""
name: hal_image
author: HAL toolkit
short_description: Run tasks in an image that is being built
description:
  - Commands enter the mount namespace of the build, M(hal_image), and its root. The connection is that of the building
    node.
  - Files are brought to C(ansible_remote_tmp), which has to be C(/run/hal-image); the build sees it at the same place.
  - A way to become and not a connection, because that is all there is to it; pipelining and file transfer are ssh's.
options:
  become_user:
    description: Always root.
    default: root
  become_exe:
    description: What enters the namespace.
    default: nsenter
  become_flags:
    description: Not used.
    default: ''
  become_pass:
    description: Not used.
  root:
    description: The root file system, on the building node.
    required: true
    vars: [{name: hal_image_root}]
  keeper:
    description: The process in whose mount namespace the build is.
    required: true
    vars: [{name: hal_image_keeper}]
"""

ENVIRONMENT = (
    "HOME=/root",
    "USER=root",
    "SHELL=/bin/sh",
    "LANG=C",
    "TERM=dumb",
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
)


class BecomeModule(BecomeBase):  # type: ignore[misc]  # Ansible has no types
    """Never runs a command outside of the image: without its root and its keeper there is no command at all."""

    name = "hal_image"

    def build_become_command(self, cmd: str, shell: Any) -> str:
        """Return the command as the building node has to run it; AnsibleError when no build is under way."""
        super().build_become_command(cmd, shell)
        if not cmd:
            return cmd
        root, keeper = self.get_option("root"), self.get_option("keeper")
        if not str(keeper or "").isdigit() or int(keeper) < 2 or not str(root or "").startswith("/"):
            raise AnsibleError("no image is being built: hal_image_root and hal_image_keeper say where")
        # The working folder is that of the new root: one of the building node's would lead out of it.
        words = ["nsenter", f"--mount=/proc/{int(keeper)}/ns/mnt", "--", "chroot", str(root), "/usr/bin/env", "-i"]
        return f"{shlex.join([*words, *ENVIRONMENT])} {self._build_success_command(cmd, shell)}"
