"""What a machine's console says: OpenBMC's ssh at port 2200, or IPMI's serial over LAN. Nothing is ever typed into it.

paramiko does not understand certificate authorities (docs/dependencies.md), so the BMC's ssh host key is pinned.
"""

from __future__ import annotations

import base64
import binascii
import logging
import socket
import time

import paramiko
import pyghmi.exceptions
import pyghmi.ipmi.console

from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import Seen, Target

logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False
_CHUNK, _POLL_SECONDS = 65536, 0.2
_MOST = 1024 * 1024
"""The last bytes are kept: at 115200 baud a console says as much in a minute and a half."""


def by_ssh(target: Target, seconds: float) -> Seen:
    """Return what came within so many seconds, or until the BMC ended it. BmcError CERTIFICATE for a wrong host key."""
    asked = "its console"
    pinned = _host_key(target, asked)
    try:
        transport = paramiko.Transport(_socket(target))
        try:
            transport.get_security_options().key_types = _types(pinned.get_name())
            transport.start_client(timeout=target.timeout_seconds)
            shown = transport.get_remote_server_key()
            if shown.get_name() != pinned.get_name() or shown.asbytes() != pinned.asbytes():
                its = f"{shown.get_name()} {shown.get_base64()}"
                answer = f"its ssh host key is not the one that was pinned; it shows {its}"
                raise BmcError(target.label, asked, answer, Fault.CERTIFICATE)
            transport.auth_password(target.user, target.password)
            channel = transport.open_session(timeout=target.timeout_seconds)
            channel.invoke_shell()
            return Seen(_read(channel, seconds), "live")
        finally:
            transport.close()
    except paramiko.AuthenticationException:
        answer = "ssh does not let us in. User or password is wrong, or the account is locked: it is not tried again"
        raise BmcError(target.label, f"login of {target.user}", answer, Fault.LOGIN) from None
    except (TimeoutError, ConnectionError) as error:
        raise BmcError(target.label, asked, f"port {target.console_port}: {_why(error)}", Fault.SILENT) from None
    except (paramiko.SSHException, EOFError, OSError) as error:
        answer = f"ssh at port {target.console_port}: {' '.join(str(error).split()) or 'ended'}"
        raise BmcError(target.label, asked, answer, Fault.REFUSED) from None


def _why(error: OSError) -> str:
    return "nobody listens there: connection refused" if isinstance(error, ConnectionRefusedError) else "no answer"


def _socket(target: Target) -> socket.socket:
    return socket.create_connection((target.address, target.console_port), timeout=target.timeout_seconds)


def _host_key(target: Target, asked: str) -> paramiko.PKey:
    kind, _, rest = target.console_key.strip().partition(" ")
    try:
        return paramiko.PKey.from_type_string(kind, base64.b64decode(rest.split()[0], validate=True))
    except (IndexError, binascii.Error, ValueError, paramiko.SSHException, paramiko.UnknownKeyType):
        what = "is not one (ssh-ed25519 AAAA...)" if target.console_key.strip() else "is not declared"
        answer = f"its ssh host key {what}: docs/bmc.md says how to read it; put it into bmc_console_keys"
        raise BmcError(target.label, asked, answer, Fault.CONFIGURATION) from None


def _types(name: str) -> list[str]:
    """An RSA key signs by newer algorithms than its name says (RFC 8332); paramiko knows no other since 5.0."""
    return ["rsa-sha2-512", "rsa-sha2-256"] if name == "ssh-rsa" else [name]


def _read(channel: paramiko.Channel, seconds: float) -> str:
    end, read = time.monotonic() + seconds, bytearray()
    channel.settimeout(_POLL_SECONDS)
    while time.monotonic() < end:
        try:
            chunk = channel.recv(_CHUNK)
        except TimeoutError:
            continue
        if not chunk:
            break
        read += chunk
        del read[:-_MOST]
    return read.decode("utf-8", "replace")


def by_sol(target: Target, seconds: float) -> Seen:
    """Return what came within so many seconds. REFUSED if somebody else has the console: nobody is thrown out."""
    read, said = bytearray(), list[str]()

    def heard(what: object) -> None:
        if isinstance(what, dict):
            said.extend(str(what[key]) for key in ("error",) if key in what)
        elif isinstance(what, (bytes, bytearray)):
            read.extend(what)
        else:
            read.extend(str(what).encode())
        del read[:-_MOST]

    asked = "its console"
    try:
        console = pyghmi.ipmi.console.Console(
            bmc=target.address,
            userid=target.user,
            password=target.password,
            iohandler=heard,
            port=target.ipmi_port,
            force=False,
        )
        end = time.monotonic() + seconds
        while time.monotonic() < end and not said:
            console.wait_for_rsp(_POLL_SECONDS)
        opened = bool(console.connected)
        console.close()
    except (pyghmi.exceptions.PyghmiException, OSError) as error:
        raise BmcError(target.label, asked, f"serial over LAN: {error or 'no answer'}", Fault.REFUSED) from None
    if said and not opened:
        fault = Fault.SILENT if "timeout" in said[0].lower() else Fault.REFUSED
        raise BmcError(target.label, asked, f"serial over LAN: {said[0]}", fault)
    return Seen(read.decode("utf-8", "replace"), "live")
