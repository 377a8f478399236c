"""Boot configurations for x86_64 nodes: scripts of iPXE, which the firmware loads by TFTP.

Commands: ipxe.org/cmd (kernel, initrd, boot, exit). A script that fails at a line ends there and iPXE gives back to the
firmware, which goes on in its boot order: to the disk.
"""

from __future__ import annotations

from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.petitboot import append_problem, url_problem


def standing(node: str) -> str:
    """Return the script of a node that nobody wants to install: back to the firmware, which boots the disk."""
    return f"#!ipxe\n# {node}: boots from disk. Written by the toolkit; changes made here are lost.\nexit\n"


def armed(node: str, kernel: str, initrd: str, append: str) -> str:
    """Return the script that boots a kernel; ProvisionError for what iPXE or the kernel would read otherwise."""
    for what, url in (("kernel", kernel), ("initrd", initrd)):
        if problem := url_problem(url):
            raise ProvisionError(f"{node}: {what} {url}: {problem}")
    problem = append_problem(append)
    if problem or any(letter in append for letter in "$&|"):
        raise ProvisionError(f"{node}: kernel parameters: {problem or '$, & and | are iPXE’s own'}")
    lines = [
        "#!ipxe",
        f"# {node}: armed. Written by the toolkit; changes made here are lost.",
        # A kernel that EFI started finds its initrd by this name.
        f"kernel {kernel} initrd=initrd.img {append} BOOTIF=01-${{netX/mac:hexhyp}}",
        f"initrd --name initrd.img {initrd}",
        "boot",
    ]
    return "\n".join([*lines, ""])
