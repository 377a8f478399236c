"""The host's console: by ssh as OpenBMC has it (port 2200, one host key a BMC), and for ipmi_sim's serial over LAN.

A session by ssh begins with the log that is kept and goes on with what the host prints. Nothing that is typed reaches
a host.
"""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bmc.listening import Talking, wait_while_silent
from bmc.machine import Processor

LOOK_SECONDS = 0.5  # how often a session looks whether its client or the process has ended


class Serial(Talking):
    """The host's serial line, for the one program of this machine that carries it on: ipmi_sim."""

    def __init__(self, processor: Processor, stopping: threading.Event) -> None:
        self._processor = processor
        self._stopping = stopping
        super().__init__("127.0.0.1", 0)

    def talk(self, connection: socket.socket) -> None:
        """Hand on what the host prints, until ipmi_sim or the process ends."""
        with connection:
            host = self._processor.host
            seen = host.kept.read().printed_bytes
            while not self._stopping.is_set():
                if self._processor.host is not host:  # swapped, or put back
                    host = self._processor.host
                    seen = host.kept.read().printed_bytes
                seen, text = host.printed_after(seen, LOOK_SECONDS)
                try:
                    connection.sendall(text.replace(b"\n", b"\r\n"))
                    if not text and connection.recv(1024, socket.MSG_DONTWAIT) == b"":
                        return
                except BlockingIOError:
                    continue
                except OSError:
                    return


class Console(Talking):
    """The console of one BMC by ssh."""

    def __init__(self, processor: Processor, folder: Path, stopping: threading.Event) -> None:
        """Begin to listen, with the host key that is kept in the state folder."""
        spec = processor.own.spec
        self.processor = processor
        self._stopping = stopping
        self.key = _host_key(folder / f"{spec.name}.ssh")
        super().__init__(spec.address, spec.ports.console)

    def talk(self, connection: socket.socket) -> None:
        """Let a user in, and show what the host printed and prints."""
        if not wait_while_silent(self.processor, self._stopping, connection):
            connection.close()
            return
        self._stopping.wait(self.processor.own.faults().slow_seconds)
        transport = paramiko.Transport(connection)
        try:
            transport.local_version = "SSH-2.0-dropbear_2019.78"
            transport.add_server_key(self.key)
            transport.start_server(server=_Door(self.processor))
            channel = transport.accept(30)
            if channel is not None:
                self._show(channel)
        except (paramiko.SSHException, EOFError, OSError):
            pass  # the client went away, or speaks something else
        finally:
            transport.close()

    def _show(self, channel: paramiko.Channel) -> None:
        seen, host = 0, self.processor.host
        while not (self._stopping.is_set() or channel.closed or channel.eof_received):
            seen, text = host.printed_after(seen, LOOK_SECONDS)
            if text:
                channel.sendall(text.replace(b"\n", b"\r\n"))
        channel.close()


class _Door(paramiko.ServerInterface):  # type: ignore[misc]  # paramiko has no types
    """Who comes in: users with their password. Whatever is then asked for is the console, as with OpenBMC."""

    def __init__(self, processor: Processor) -> None:
        self._own = processor.own

    def get_allowed_auths(self, username: str) -> str:
        return "password"

    def check_auth_password(self, username: str, password: str) -> int:
        user = self._own.user(username, password)
        ok = user is not None and not user.must_change
        return int(paramiko.AUTH_SUCCESSFUL if ok else paramiko.AUTH_FAILED)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        refused = paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        return int(paramiko.OPEN_SUCCEEDED if kind == "session" else refused)

    def check_channel_pty_request(self, *_: object) -> bool:
        return True

    def check_channel_shell_request(self, channel: paramiko.Channel) -> bool:
        return True

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        return True


def _host_key(path: Path) -> paramiko.Ed25519Key:
    if not path.exists():
        made = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(made)
    return paramiko.Ed25519Key(filename=str(path))
