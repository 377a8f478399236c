"""Command line of the virtual nodes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from testbed import channel, image, kernel_packages, machines, pythons, repository
from testbed import nodes as containers
from testbed.errors import VirtualNodesError

PACKAGE_ACTIONS: dict[str, Callable[[str], object]] = {
    "build": repository.build,
    "path": repository.location,
    "fingerprint": repository.fingerprint,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 1 after printing what failed."""
    parser = argparse.ArgumentParser(prog="setup", description="Virtual nodes: image, packages, containers.")
    parts = parser.add_subparsers(dest="part", required=True)
    pictures = parts.add_parser("image", help="the node image")
    pictures.add_argument("action", choices=["build", "name", "export"])
    pictures.add_argument("--arch", default="x86_64", choices=image.ARCHES)
    pictures.add_argument("--variant", default="normal", choices=image.VARIANTS)
    pictures.add_argument("--kernel", help="export: publish a package of this kernel as well, as 4.18.0-80.7.2.el7")
    pictures.add_argument("--machine", default="ppc64le", choices=image.ARCHES, help="export: of the kernel")
    packages = parts.add_parser("packages", help="the package repository")
    packages.add_argument("action", choices=["build", "path", "fingerprint"])
    packages.add_argument("--arch", default="x86_64", choices=image.ARCHES)
    channels = parts.add_parser("channels", help="the conda channels, beside the packages; prints their folder")
    channels.add_argument("action", choices=["build"])
    channels.add_argument("--arch", default="x86_64", choices=image.ARCHES)
    interpreters = parts.add_parser("pythons", help="Pythons of nodes for tests on this machine; prints their folder")
    interpreters.add_argument("action", choices=["build"])
    nodes = parts.add_parser("nodes", help="the containers; create.yml and destroy.yml call this")
    nodes.add_argument("action", choices=["create", "destroy", "instances"])
    nodes.add_argument("--instance", help="destroy: which; all that are there when it is not given")
    machine = parts.add_parser("machine", help="nodes as virtual machines: their image")
    machine.add_argument("action", choices=["build", "name"])
    disk = parts.add_parser("disk", help="pull a disk out of a virtual machine that runs, or put one in")
    disk.add_argument("--instance", default="virtual", help="which (default: virtual)")
    disk.add_argument("action", choices=["remove", "add"])
    disk.add_argument("node")
    disk.add_argument("name", help="of the disk; one that was never there is empty")
    disk.add_argument("wwn", nargs="?", default="", help="add: its world-wide name, 0x...")
    fabric = parts.add_parser("fabric", help="break and mend the emulated InfiniBand fabric", add_help=False)
    fabric.add_argument("--instance", default="virtual", help="which (default: virtual)")
    bmcs = parts.add_parser("bmc", help="break and mend the emulated BMCs", add_help=False)
    bmcs.add_argument("--instance", default="virtual", help="which (default: virtual)")
    arguments, words = parser.parse_known_args(argv)
    if words and arguments.part not in ("fabric", "bmc"):
        parser.error(f"unrecognized arguments: {' '.join(words)}")
    try:
        if arguments.part == "image" and arguments.action == "export":
            if arguments.kernel:
                kernel_packages.publish(arguments.kernel, arguments.machine, arguments.arch)
            print(image.export(arguments.arch, arguments.variant))
        elif arguments.part == "image":
            make = image.build if arguments.action == "build" else image.reference
            print(make(arguments.arch, arguments.variant))
        elif arguments.part == "packages":
            print(PACKAGE_ACTIONS[arguments.action](arguments.arch))
        elif arguments.part == "channels":
            print(channel.publish(repository.build(arguments.arch), arguments.arch))
        elif arguments.part == "pythons":
            print(pythons.build())
        elif arguments.part == "machine":
            print((machines.build if arguments.action == "build" else machines.reference)(image.build()))
        elif arguments.part == "disk":
            if (arguments.action == "add") != arguments.wwn.startswith("0x"):
                parser.error("add needs a world-wide name, 0x...; remove has none")
            words = [arguments.action, arguments.name, *([arguments.wwn] if arguments.wwn else [])]
            return machines.disk(f"{arguments.instance}-{arguments.node}", words)
        elif arguments.part == "fabric":
            return containers.in_fabric(arguments.instance, words)
        elif arguments.part == "bmc":
            from bmc.cli import main as bmc  # needs what only the BMCs need

            return bmc(words, arguments.instance)
        else:
            _nodes(arguments.action, arguments.instance)
    except VirtualNodesError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    return 0


def _nodes(action: str, instance: str | None) -> None:
    if action == "create":
        plan = containers.read_plan(sys.stdin.read())
        for name in containers.create(plan):
            print(f"made {name}")
    elif action == "destroy":
        for name in [instance] if instance else containers.instances():
            for removed in containers.destroy(name):
                print(f"removed {removed}")
    else:
        print("\n".join(containers.instances()))
