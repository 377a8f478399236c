"""The program: ``python -m hal_cluster.certificates --authority DIR COMMAND``; playbooks and the Makefile call it.

Exit status: 0 done, 2 refused (one line on standard error). What changed is printed, a line each: nothing when it was
so already.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from hal_cluster.certificates.authority import Authority
from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.first_contact import pin, read_expected
from hal_inventory.errors import HalError
from hal_inventory.printable import complain, printable

# An empty one is not given: playbooks/revoke.yml passes all of them.
REVOCABLE = {
    "user": "all certificates of a user, but those that ran out more than a year ago",
    "serial": "one certificate",
    "key": "a public key, with and without certificates",
    "node": "a node's host key, and those by which it sends and signs backups",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        for line in _run(options):
            print(printable(line, None))
    except HalError as error:
        complain(error)
        return 2
    except OSError as error:
        complain(f"{error.filename or 'hal_cluster.certificates'}: {error.strerror}")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hal_cluster.certificates", description="User certificates, revocation, first contact."
    )
    parser.add_argument("--authority", type=Path, required=True, metavar="DIR", help="the folder of the authorities")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    issue = commands.add_parser("issue", help="sign a user's public key")
    issue.add_argument("user")
    issue.add_argument("--key", type=Path, required=True, help="the public key; the certificate is written beside it")
    issue.add_argument("--principals", default="", help="what it opens, with commas (default: the user's name)")
    issue.add_argument("--days", type=int, default=30)

    commands.add_parser("list", help="show the certificates that were issued")

    revoke = commands.add_parser("revoke", help="refuse certificates, a key or a node from now on")
    for name, helps in REVOCABLE.items():
        revoke.add_argument(f"--{name}", default="", help=helps)
    revoke.add_argument("--address", default="", help="with --node: its address in the management network")
    revoke.add_argument("--reason", required=True)

    build = commands.add_parser("build", help="make revoked_keys and known_hosts of the registers")
    build.add_argument(
        "--taken-back", action="store_true", help="a revocation was taken back: lists may refuse less than they do"
    )

    commands.add_parser("servers", help="show the authority for servers, when its parts belong together")

    first = commands.add_parser("pin", help="compare the host key that a node shows with what its console said")
    first.add_argument("node")
    first.add_argument("--address", required=True)
    first.add_argument("--expected", required=True, help="file with a line a node, or - for standard input")
    first.add_argument("--into", type=Path, required=True, help="known_hosts to write")
    return parser


def _run(options: argparse.Namespace) -> list[str]:
    if options.command == "servers":
        from hal_cluster.certificates.tls import tls_authority  # cryptography takes a while to load

        certificate = tls_authority(options.authority).certificate
        name = certificate.subject.rfc4514_string()
        return [f"{options.authority}: {name}, until {certificate.not_valid_after_utc:%Y-%m-%d}"]
    authority = Authority(options.authority)
    if options.command == "issue":
        principals = [word.strip() for word in options.principals.split(",") if word.strip()] or [options.user]
        issued, path = authority.issue(options.user, options.key, principals, options.days)
        opens = ", ".join(issued.principals)
        return [f"{path}: certificate {issued.serial} of {issued.user}, opens {opens}, until {issued.until}"]
    if options.command == "list":
        return _list(authority)
    if options.command == "revoke":
        if not options.reason.strip():
            raise CertificateError("say why: somebody will ask in a year")
        return [*_revoke(authority, options), *authority.build()]
    if options.command == "build":
        return authority.build(options.taken_back)
    return pin(options.node, options.address, _expected(options.expected), authority, options.into)


def _list(authority: Authority) -> list[str]:
    now, refused = datetime.now(timezone.utc), authority.users.entries()
    rows = [("SERIAL", "USER", "OPENS", "UNTIL", "STATE", "KEY")]
    for issued in authority.register:
        state = "revoked" if f"serial: {issued.serial}" in refused else "valid" if issued.valid(now) else "ran out"
        rows.append(
            (str(issued.serial), issued.user, ",".join(issued.principals), issued.until, state, issued.fingerprint)
        )
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _revoke(authority: Authority, options: argparse.Namespace) -> list[str]:
    given = [name for name in REVOCABLE if getattr(options, name)]
    if len(given) != 1:
        raise CertificateError(f"name one of {', '.join(REVOCABLE)} to revoke, not {' and '.join(given) or 'none'}")
    if options.serial:
        if not options.serial.isdecimal():
            raise CertificateError(
                f"{options.serial} is not a serial number; python -m hal_cluster.certificates list shows them"
            )
        return authority.revoke_serials([int(options.serial)], options.reason)
    if options.user:
        return authority.revoke_user(options.user, options.reason)
    if options.key:
        return authority.revoke_key(Path(options.key), options.reason)
    return authority.revoke_node(options.node, options.address, options.reason)


def _expected(source: str) -> dict[str, set[str]]:
    if source == "-":
        return read_expected(sys.stdin.read(), "bootstrap_host_keys")
    if not source:
        return {}
    try:
        return read_expected(Path(source).read_text(encoding="utf-8"), source)
    except (OSError, UnicodeDecodeError) as error:
        raise CertificateError(f"{source}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
