"""HTTPS of the emulated BMCs: one small threaded server an address, and what every request has to pass.

werkzeug's server shakes hands for TLS in the thread that accepts, where one client that says nothing blocks all
others; so that is
done here, in the connection's own thread.
"""

from __future__ import annotations

import json
import ssl
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import flask
from werkzeug.exceptions import HTTPException
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from bmc.listening import listen, wait_while_silent
from bmc.machine import Processor
from bmc.sessions import Sessions
from bmc.tls import Certificates

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

MUST_CHANGE = "The password provided for this account must be changed before access is granted."
IDLE_SECONDS = 120  # of a connection that is kept open
BMC = "hal.bmc"  # in a request's environ: the Web it came in by
USER = "hal.user"
TOKEN = "hal.token"
Application = Callable[[dict[str, Any], "StartResponse"], Iterable[bytes]]
OPEN_TO_ALL = {
    ("GET", "/redfish"),
    ("GET", "/redfish/v1"),
    ("POST", "/redfish/v1/SessionService/Sessions"),
    ("POST", "/login"),
}


class Web:
    """HTTPS of one BMC."""

    def __init__(
        self,
        processor: Processor,
        certificates: Certificates,
        application: Application,
        stopping: threading.Event,
        password_changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin to listen. ``password_changed`` is called when a user's password was changed here."""
        self.processor = processor
        self.certificates = certificates
        self.sessions = Sessions(processor.own)
        self.password_changed = password_changed
        self.stopping = stopping
        self._application = application
        spec = processor.own.spec
        self._server = _Server(spec.address, spec.ports.https, self)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.socket.getsockname()[1])

    def fileno(self) -> int:
        """The listening socket."""
        return self._server.fileno()

    def accept(self) -> None:
        """Take the connection that waits, and answer it in a thread of its own."""
        self._server.accept()

    def close(self) -> None:
        """Listen no more."""
        self._server.server_close()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request, unless a fault or a missing right does."""
        faults = self.processor.own.faults()
        if faults.slow_seconds:
            self.stopping.wait(faults.slow_seconds)
        path = environ.get("PATH_INFO", "/").rstrip("/")
        redfish = path.startswith("/redfish")
        if faults.gateway_timeout:
            return _plain(start_response, "504 Gateway Timeout", "text/html", "<h1>504 Gateway Timeout</h1>\n")
        environ[BMC] = self
        if (environ.get("REQUEST_METHOD"), path) in OPEN_TO_ALL:
            return self._application(environ, start_response)
        asking = self.sessions.asking(environ)
        if asking is None:
            return _refuse(start_response, redfish, "401 Unauthorized", "Login required", "NoValidSession", [])
        user, token = asking
        delivered = self.processor.own.spec.delivered
        account = f"/redfish/v1/AccountService/Accounts/{delivered.account}"
        users = self.processor.own.users()
        if user in users and users[user].must_change and not _may_change(environ, path, account, user):
            return _refuse(start_response, redfish, "403 Forbidden", MUST_CHANGE, "PasswordChangeRequired", [account])
        environ[USER], environ[TOKEN] = user, token
        return self._application(environ, start_response)


def asked() -> Web:
    """Return the BMC that the request in hand came in by."""
    web: Web = flask.request.environ[BMC]
    return web


def _may_change(environ: dict[str, Any], path: str, account: str, user: str) -> bool:
    """Return whether a request is one that a user may make whose password has to be changed (DSP0266, 13.3.7)."""
    method = environ.get("REQUEST_METHOD")
    own_rest = f"/xyz/openbmc_project/user/{user}/action/SetPassword"
    sessions = "/redfish/v1/SessionService/Sessions/"
    return (
        (method in ("GET", "PATCH") and path == account)
        or (method == "POST" and path == own_rest)
        or (method == "DELETE" and path.startswith(sessions))
    )


def redfish_error(identifier: str, text: str, arguments: list[str]) -> dict[str, Any]:
    """Return the body of a Redfish error, as bmcweb has it."""
    message = {
        "@odata.type": "#Message.v1_1_1.Message",
        "MessageId": f"Base.1.8.1.{identifier}",
        "Message": text,
        "MessageArgs": arguments,
        "MessageSeverity": "Critical",
        "Resolution": "None.",
    }
    return {"error": {"code": f"Base.1.8.1.{identifier}", "message": text, "@Message.ExtendedInfo": [message]}}


def rest_error(status: str, text: str) -> dict[str, Any]:
    """Return the body of an error of OpenBMC's REST."""
    return {"data": {"description": text}, "message": status, "status": "error"}


def _refuse(
    start_response: StartResponse, redfish: bool, status: str, text: str, identifier: str, arguments: list[str]
) -> Iterable[bytes]:
    body = redfish_error(identifier, text, arguments) if redfish else rest_error(status, text)
    return _plain(start_response, status, "application/json", json.dumps(body))


def _plain(start_response: StartResponse, status: str, kind: str, text: str) -> Iterable[bytes]:
    content = text.encode()
    headers = [("Content-Type", kind), ("Content-Length", str(len(content)))]
    if status.startswith("401"):
        headers.append(("WWW-Authenticate", 'Basic realm="BMC"'))
    start_response(status, headers)
    return [content]


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    server: _Server

    def setup(self) -> None:
        """Shake hands, in this connection's own thread."""
        web = self.server.web
        self.silenced = not wait_while_silent(web.processor, web.stopping, self.request)
        if not self.silenced:
            self.request.settimeout(IDLE_SECONDS)
            self.request = self.server.web.certificates.context.wrap_socket(self.request, server_side=True)
        super().setup()

    def handle(self) -> None:
        """Answer what comes over the connection."""
        if not self.silenced:
            super().handle()

    def run_wsgi(self) -> None:
        """Answer one request, or fall silent in the middle of a connection."""
        web = self.server.web
        if wait_while_silent(web.processor, web.stopping, self.connection):
            super().run_wsgi()
        else:
            self.close_connection = True

    def log(self, type: str, message: str, *args: object) -> None:
        """Log nothing: a path can hold a session's number."""

    def version_string(self) -> str:
        """Say what it is."""
        return "emulated BMC"


class _Server(ThreadedWSGIServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    multithread = True

    def __init__(self, host: str, port: int, web: Web) -> None:
        self.web = web
        # A socket that listens already: the constructor would end the process for an address that is taken,
        # and ask a name service what the address is called. In a node's network there may be none.
        with listen(host, port) as listener:
            super().__init__(host, port, web, _Handler, fd=listener.fileno())
        # Only after: the constructor would wrap the listening socket, and shake hands where it accepts.
        self.ssl_context = web.certificates.context

    def accept(self) -> None:
        """Do what `serve_forever` does for a connection that waits."""
        self._handle_request_noblock()  # type: ignore[attr-defined]  # typeshed leaves it out

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away or did not like the certificate; anything else is a fault of ours."""
        error = sys.exc_info()[1]
        if not isinstance(error, (ssl.SSLError, OSError, HTTPException)):
            traceback.print_exc()
