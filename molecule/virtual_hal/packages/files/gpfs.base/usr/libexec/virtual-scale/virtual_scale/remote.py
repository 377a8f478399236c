"""Commands on other nodes. Scale goes there by ssh or another remote shell; here a socket in the shared folder answers.

systemd listens (virtual-scale.socket) and starts one program for each call, so nothing runs while nobody asks.
"""

from __future__ import annotations

import contextlib
import io
import json
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from virtual_scale import place

SECONDS = 60


@dataclass(frozen=True)
class Answer:
    """What a command on another node printed, and how it ended."""

    status: int
    out: str
    err: str


class Unreachable(Exception):
    """The node does not answer: it is off, or the packages are not on it."""


def _call(node: str, words: Sequence[str]) -> Answer:
    address = place.of_node(node) / "socket"
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(SECONDS)
        try:
            channel.connect(str(address))
            channel.sendall(json.dumps(list(words)).encode() + b"\n")
            with channel.makefile() as answer:
                text = answer.readline()
        except OSError as error:
            raise Unreachable(str(error)) from None
    if not text:
        raise Unreachable("no answer")
    return Answer(**json.loads(text))


def answers(node: str) -> bool:
    """Return whether commands can be run on a node."""
    if node == place.this_node():
        return True
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(SECONDS)
        try:
            channel.connect(str(place.of_node(node) / "socket"))
        except OSError:
            return False
    return True


def run(node: str, words: Sequence[str]) -> Answer:
    """Run mmremote with these words on a node; Unreachable when it does not answer."""
    return _call(node, words)


def serve(command: Callable[[str, Sequence[str]], int]) -> int:
    """Answer one call, on standard input and output."""
    line = sys.stdin.readline()
    if not line:
        return 0  # somebody only looked whether this node answers
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = command("mmremote", json.loads(line))
    print(json.dumps({"status": status, "out": out.getvalue(), "err": err.getvalue()}), flush=True)
    return 0
