"""Arguments of some commands of ``hal-audit``. They are here so that a command is imported only when it runs."""

from __future__ import annotations

import argparse


def takeover(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``takeover``."""
    parser.add_argument("--limit", metavar="PATTERN", default="", help="only these nodes")
    parser.add_argument(
        "--role", metavar="ROLE", dest="roles", action="append", default=[], help="only this; repeatable"
    )
    parser.add_argument("--diff", action="store_true", help="show what is in files that would be replaced")


def accept(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``accept``."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="path of a finding of the last audit")
    parser.add_argument("--reason", required=True, help="why it is right")
    parser.add_argument("--until", required=True, metavar="DAY", help="last day on which that holds, as 2027-01-31")
    parser.add_argument("--limit", metavar="PATTERN", default="", help="only on these nodes")


def timer(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``timer``."""
    parser.add_argument("--at", metavar="TIME", default="03:30", help="time of day, or systemd's OnCalendar (03:30)")
    parser.add_argument("--remove", action="store_true", help="take the timer away")
    parser.add_argument("rest", nargs="*", metavar="-- OPTION", help="options for ansible-playbook, after --")


def history(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``history``."""
    parser.add_argument("node", metavar="NODE", nargs="?", default="", help="only audits that looked at this node")
    parser.add_argument("--last", metavar="N", type=_number, default=20, help="how many, the newest (default: 20)")


def _number(text: str) -> int:
    """Return a number of things to show; argparse prints what is wrong with it."""
    if not text.isascii() or not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number; write 1 or more")
    return int(text)
