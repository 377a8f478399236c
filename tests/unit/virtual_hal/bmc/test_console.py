"""The host's console by ssh, asked by paramiko."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import paramiko
import pytest
from bmc.console import Serial

from tests.unit.virtual_hal.bmc.emulated import Served, switched, wait_until


@contextmanager
def session(served: Served, name: str = "hal01", password: str = "0penBmc") -> Iterator[paramiko.Transport]:
    """Give a login on a BMC's console port."""
    where = served.fleet.named(name)
    transport = paramiko.Transport((where.address, served.running.consoles[name].port))
    try:
        transport.start_client(timeout=600)
        transport.auth_password("root", password)
        yield transport
    finally:
        transport.close()


def test_it_begins_with_the_log_and_goes_on(served: Served) -> None:
    host, heard = served.processor().host, bytearray()
    host.write_console("Linux version 4.18.0\n")
    with session(served) as transport:
        channel = transport.open_session()
        channel.get_pty()
        channel.invoke_shell()

        def arrived(text: bytes) -> bool:
            if channel.recv_ready():
                heard.extend(channel.recv(4096))
            return text in heard

        wait_until(lambda: arrived(b"Linux version 4.18.0\r\n"))
        host.write_console("hal01 login:")
        wait_until(lambda: arrived(b"hal01 login:"))
    assert heard == b"Linux version 4.18.0\r\nhal01 login:"


def test_a_wrong_password_sees_nothing(served: Served) -> None:
    with pytest.raises(paramiko.AuthenticationException), session(served, password="wrong"):
        pass
    switched(served, "hal01", "password-must-change")
    with pytest.raises(paramiko.AuthenticationException), session(served):
        pass


def test_each_bmc_has_a_host_key_of_its_own_and_keeps_it(served: Served) -> None:
    keys = {}
    for name in ("hal01", "hal02"):
        with session(served, name) as transport:
            keys[name] = transport.get_remote_server_key().get_base64()
        kept = paramiko.Ed25519Key(filename=str(served.fleet.state / f"{name}.ssh"))
        assert kept.get_base64() == keys[name]
    assert keys["hal01"] != keys["hal02"]


def test_only_openbmc_has_it(served: Served) -> None:
    assert set(served.running.consoles) == {"hal01", "hal02"}


def test_a_client_that_goes_away_before_it_is_taken_does_no_harm(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise ConnectionAbortedError

    console, serial = served.running.consoles["hal01"], Serial(served.processor(), threading.Event())
    for one in (console, serial):
        with monkeypatch.context() as played:
            played.setattr(one, "_socket", SimpleNamespace(accept=gone))
            one.accept()
    serial.close()
    with session(served):
        pass
