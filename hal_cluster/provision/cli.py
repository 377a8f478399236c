"""The program: ``python -m hal_cluster.provision COMMAND`` at the controller. On the server there is ``hal-provision``.

Exit status: 0 done, 2 refused (one line on standard error).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hal_cluster.provision import boot, images, petitboot
from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.nodes import POWER, X86, boot_node
from hal_cluster.provision.tokens import issue
from hal_inventory.compiled import slice_of
from hal_inventory.errors import HalError
from hal_inventory.printable import complain, lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        print(lines(COMMANDS[options.command](options), None))
    except HalError as error:
        complain(error)
        return 2
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hal_cluster.provision", description="Images, and what nodes boot.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    key = commands.add_parser("key", help="make the key that signs images, once")
    key.add_argument("key", type=Path, help="where; the public one is beside it, with .pem at its end")

    seal = commands.add_parser("seal", help="make a signed image of a root file system")
    seal.add_argument("root", type=Path, help="a tar or squashfs; it is moved")
    seal.add_argument("--into", type=Path, required=True, metavar="DIR", help="the folder for the image's folder")
    seal.add_argument("--key", type=Path, required=True, help="the private key")
    seal.add_argument("--name", required=True)
    seal.add_argument("--version", required=True, help="such as 20261122")
    seal.add_argument("--arch", required=True, choices=[POWER, X86])
    seal.add_argument("--kernel", required=True, help="such as 4.18.0-80.7.2.el7")
    seal.add_argument("--packages", type=Path, required=True, metavar="FILE", help="what rpm -qa printed in it")

    sign = commands.add_parser("sign", help="write manifest and signature of a root file system on another machine")
    sign.add_argument("--into", type=Path, required=True, metavar="DIR", help="the folder for the image's folder")
    sign.add_argument("--key", type=Path, required=True, help="the private key")

    check = commands.add_parser("check", help="say what an image is, or why it may not be installed")
    check.add_argument("folder", type=Path)
    check.add_argument("--key", type=Path, required=True, help="the public key")
    check.add_argument("--arch", choices=[POWER, X86])
    check.add_argument("--kernel")

    look = commands.add_parser("petitboot", help="say what petitboot would not boot by itself in a configuration")
    look.add_argument("file", help="the file, or - for standard input")

    rescue = commands.add_parser("rescue", help="print the order that has a node boot the installer's rescue mode")
    rescue.add_argument("node")
    rescue.add_argument("--inventory", type=Path, required=True, metavar="FILE", help="inventory/<site>/hal.yml")
    rescue.add_argument("--tree", required=True, metavar="URL", help="the installer's folder on the server")
    rescue.add_argument("--server", required=True, metavar="URL", help="such as http://10.64.0.11:8480")
    rescue.add_argument("--network", default="management")
    rescue.add_argument("--console", default="hvc0")
    rescue.add_argument("--hours", type=float, default=1, help="until it runs out; 1 without this")
    return parser


def _key(options: argparse.Namespace) -> str:
    options.key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = images.make_key(options.key)
    return f"{options.key}: {'made; its public part is ' if made else 'was there; its public part is '}" + str(
        images.public_key(options.key)
    )


def _seal(options: argparse.Namespace) -> str:
    packages = options.packages.read_text(encoding="utf-8").split()
    words = {name: getattr(options, name) for name in ("name", "version", "arch", "kernel")}
    created = datetime.now(timezone.utc)
    return str(images.seal(options.root, options.into, options.key, packages=packages, created=created, **words))


def _sign(options: argparse.Namespace) -> str:
    """The manifest comes on standard input: its package list is longer than a command line may be."""
    try:
        given = json.load(sys.stdin)
        # Ansible's templates make text of numbers.
        own = {
            "size": int(given["size"]),
            "packages": tuple(sorted(given["packages"])),
            "created": images.stamp(datetime.now(timezone.utc)),
        }
        manifest = images.Manifest(**{**given, **own})
    except (ValueError, TypeError, KeyError):
        raise ProvisionError("sign: standard input is not a manifest; JSON, as playbooks/image.yml writes it") from None
    return str(images.sign(manifest, options.into, options.key))


def _check(options: argparse.Namespace) -> str:
    manifest = images.check(options.folder, options.key, arch=options.arch, kernel=options.kernel)
    packages = f"{len(manifest.packages)} packages"
    return f"{manifest.folder}: whole and signed; kernel {manifest.kernel}, {packages}, {manifest.created}"


def _petitboot(options: argparse.Namespace) -> str:
    text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8", errors="replace")
    if problems := petitboot.problems(text):
        raise ProvisionError("\n".join(f"{options.file}: {problem}" for problem in problems))
    entries = any(line.strip().upper().startswith("LABEL ") for line in text.splitlines())
    return f"{options.file}: " + ("boots its default entry" if entries else "no entry: the disk is booted")


def _rescue(options: argparse.Namespace) -> str:
    nodes: list[dict[str, Any]] = slice_of(options.inventory, "boot", {})
    declared = next((entry for entry in nodes if entry["name"] == options.node), None)
    if declared is None:
        raise ProvisionError(f"{options.node}: {options.inventory} has no such node")
    node, tree = boot_node(declared), options.tree.rstrip("/")
    folder = f"{tree}/ppc/ppc64" if node.arch == POWER else f"{tree}/images/pxeboot"
    append = f"inst.stage2={tree} ip=dhcp console={options.console} {boot.RESCUE}"
    installer = boot.Installer(f"{folder}/vmlinuz", f"{folder}/initrd.img", append)
    token = issue(time.time(), options.hours * 3600)
    server = options.server.rstrip("/")
    return json.dumps(boot.order(node, options.network, "rescue mode", installer, server, "rescue\n", token))


COMMANDS = {"key": _key, "seal": _seal, "sign": _sign, "check": _check, "petitboot": _petitboot, "rescue": _rescue}
