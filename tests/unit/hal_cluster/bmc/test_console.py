"""The console of an OpenBMC: ssh with a pinned host key, and nothing else."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import paramiko
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from hal_cluster.bmc.console import by_ssh
from hal_cluster.bmc.errors import Fault
from hal_cluster.bmc.models import Target
from tests.unit.hal_cluster.bmc.emulated import NEW_SECRET, SECRET, Emulated, Emulation
from tests.unit.hal_cluster.bmc.test_faults import failure


def shown_key(bmc: Emulated) -> str:
    """Return the host key as ssh-keyscan shows it."""
    with paramiko.Transport((bmc.target.address, bmc.target.console_port)) as transport:
        transport.start_client(timeout=600)
        key = transport.get_remote_server_key()
    return f"{key.get_name()} {key.get_base64()}"


def test_what_the_machine_said_is_read(openbmc: Emulated) -> None:
    openbmc.machine.write_console("Petitboot (v1.10.4)\r\n")
    key, text = shown_key(openbmc), ""
    end = time.monotonic() + 600
    while "Petitboot (v1.10.4)" not in text and time.monotonic() < end:
        text = openbmc.client(console_key=key).console(0.5).text
    assert "Petitboot (v1.10.4)" in text


def test_another_host_key_gets_no_password(emulation: Emulation) -> None:
    one, other = emulation.serve(emulation.spec("hal05", "openbmc"), emulation.spec("hal06", "openbmc"))
    error = failure(lambda: one.client(console_key=shown_key(other)).console(0.5))
    assert error.fault is Fault.CERTIFICATE
    assert f"its console: its ssh host key is not the one that was pinned; it shows {shown_key(one)}" in str(error)


def test_a_key_that_nobody_declared(openbmc: Emulated) -> None:
    assert "its ssh host key is not declared: docs/bmc.md" in str(failure(lambda: openbmc.client().console(0.5)))
    for wrong in ("ssh-ed25519", "ssh-ed25519 !!!", "AAAA", "ssh-dss AAAA", "ssh-rsa AAAA"):
        error = failure(lambda text=wrong: openbmc.client(console_key=text).console(0.5))  # type: ignore[misc]
        assert "its ssh host key is not one (ssh-ed25519 AAAA...)" in str(error)


def test_a_wrong_password_and_nobody_there(openbmc: Emulated, tmp_path: Path) -> None:
    key = shown_key(openbmc)
    error = failure(lambda: openbmc.client(console_key=key, password=NEW_SECRET).console(0.5))
    assert error.fault is Fault.LOGIN
    assert SECRET not in str(error)
    error = failure(lambda: openbmc.client(console_key=key, console_port=1).console(0.5))
    assert "port 1: nobody listens there: connection refused" in str(error)


def test_the_others_have_none(emulation: Emulation) -> None:
    error = failure(lambda: emulation.make("dell", "idrac").client().console(0.5))
    assert error.fault is Fault.UNSUPPORTED


class Speaks(paramiko.ServerInterface):  # type: ignore[misc]  # paramiko has no types
    """An ssh server that lets everybody in and has a console for whoever asks for a shell."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def check_auth_password(self, username: str, password: str) -> int:
        return int(paramiko.AUTH_SUCCESSFUL)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.OPEN_SUCCEEDED)

    def check_channel_shell_request(self, channel: paramiko.Channel) -> bool:
        self.asked.set()
        return True


def ed25519() -> paramiko.PKey:
    made = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return paramiko.Ed25519Key(file_obj=io.StringIO(made.decode()))


@pytest.mark.parametrize("made", [ed25519, lambda: paramiko.RSAKey.generate(2048)], ids=["ed25519", "rsa"])
def test_a_shell_is_asked_for_as_the_console_is_behind_it(made: Callable[[], paramiko.PKey]) -> None:
    """It says something and ends: what came is read to its end, long before the time is over."""
    key = made()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            speaks = Speaks()
            with paramiko.Transport(listening.accept()[0]) as transport:
                transport.add_server_key(key)
                transport.start_server(server=speaks)
                channel = transport.accept(120)
                assert channel is not None
                if speaks.asked.wait(300):
                    channel.sendall(b"hal05 login: \xff")
                channel.close()
                transport.join(120)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        target = Target(
            name="hal05", kind="openbmc", address="127.0.0.1", user="root", password=SECRET, timeout_seconds=60,
            console_port=listening.getsockname()[1], console_key=f"{key.get_name()} {key.get_base64()}",
        )  # fmt: skip
        seen = by_ssh(target, 600)
        serving.join(120)
    assert (seen.text, seen.source) == ("hal05 login: \N{REPLACEMENT CHARACTER}", "live")
