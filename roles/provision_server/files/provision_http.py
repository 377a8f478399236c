# -*- coding: utf-8 -*-
"""The server of hal-provision: a node gets its own files and nobody else's. Python 2.7 and 3.

The server knows a node by the address that the connection comes from. Without TLS: boot configuration, the files of its
order, and what a reboot by Slurm is for. With TLS and the token: that its installation begins, first secrets, the call
home, once each, and why an installer stops. How much anybody may ask for: provision_limits.py.
"""

from __future__ import absolute_import, division, print_function

import io
import os
import socket
import ssl
import sys
import threading
import time

import provision_store as store
import reimage_store
from provision_common import Problem, text
from provision_limits import Limits

try:
    from http.server import BaseHTTPRequestHandler, HTTPServer
except ImportError:
    from BaseHTTPServer import BaseHTTPRequestHandler, HTTPServer

MOST_HEAD = 8 * 1024  # request line and headers; what nodes send has some hundred bytes
MOST_SAID = 64 * 1024
MOST_THROWN = 1024 * 1024
TOKEN = "X-HAL-Token"
SEARCHED = "pxelinux.cfg"


class Handler(BaseHTTPRequestHandler):
    """One connection, which has one request."""

    server_version = "hal-provision"
    sys_version = ""
    worth_a_line = True
    unread = False

    def handle(self):
        """Answer, and throw away what was not read: closed on that, the connection would take the answer along."""
        BaseHTTPRequestHandler.handle(self)
        if self.unread:
            self.connection.shutdown(socket.SHUT_WR)
            thrown = 0
            while thrown < MOST_THROWN:
                part = self.connection.recv(MOST_HEAD)
                if not part:
                    break
                thrown += len(part)

    def parse_request(self):
        """Have Python's parser see a head that is whole and short: that of 2.7 takes headers without end."""
        head = self._head()
        if head is None:
            self.command, self.requestline, self.request_version = None, "", ""
            self.send_error(431)
            return False
        stream, self.rfile = self.rfile, io.BytesIO(head)
        try:
            return BaseHTTPRequestHandler.parse_request(self)
        finally:
            self.rfile = stream

    def _head(self):
        """Return the headers, None when they and the request line are too long."""
        head, room = b"", MOST_HEAD - len(self.raw_requestline)
        while room > 0:
            line = self.rfile.readline(room)
            if not line:
                raise EOFError("it ended within its headers")
            head, room = head + line, room - len(line)
            if line in (b"\r\n", b"\n"):
                return head
        return None

    def send_error(self, code, message=None, explain=None):
        """Answer what is not a request: without its own words, and counted as a refusal."""
        address = self.client_address[0]
        self.unread = True
        self.worth_a_line = self._refused(self.server.limits.share(address), text(message or "")[:80], "no request")
        self._send(code, b"")

    def do_GET(self):
        """Boot configuration, or a file of the node's order."""
        self._answer(self._get)

    def do_HEAD(self):
        """As GET, without the content."""
        self._answer(self._get)

    def do_POST(self):
        """That it begins, first secrets, the call home, or why it stops."""
        self._answer(self._post)

    def _answer(self, ask):
        try:
            status, content = ask([part for part in text(self.path).split("?")[0].split("/") if part])
        except Problem as problem:
            # The reason is for the journal and the audit; who asks gets no help in guessing.
            self._say("%s: %s" % (self.path.split("?")[0], problem))
            status, content = 503, b""
        self._send(status, content)

    def _send(self, status, content):
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _node(self, named=None):
        """Return the node that asks; None when nobody known does, or when it asks for another's."""
        name = self.server.limits.place.by_address(self.client_address[0])
        if name is None or named not in (None, name):
            self.worth_a_line = self._refused(name, "%s %s" % (self.command, (named or "")[:80]),
                                              "another node's" if name else "no node has this address")
            return None
        return name

    def _refused(self, node, what, why):
        """Write a refusal down; return whether it is worth a line in the journal."""
        return self.server.limits.refusals.note(time.time(), node, self.client_address[0], what, why)

    def _get(self, parts):
        place, now = self.server.limits.place, time.time()
        if parts == ["health"]:
            return 200, b"ok\n"
        if len(parts) == 2 and parts[0] == "boot":
            node = self._node(parts[1])
            return (200, store.config(place, node, now).encode("utf-8")) if node else (404, b"")
        if len(parts) == 3 and parts[:2] == ["boot", SEARCHED]:
            node = self._node()
            if not node or parts[2] not in place.node(node)["names"]:
                return 404, b""
            return 200, store.config(place, node, now).encode("utf-8")
        if len(parts) == 3 and parts[0] == "node" and parts[2] == store.REBOOT:
            node = self._node(parts[1])
            return (200, self._reboot(node)) if node else (404, b"")
        if len(parts) == 3 and parts[0] == "node":
            node = self._node(parts[1])
            content = store.give(place, node, parts[2], self.client_address[0], now) if node else None
            if content is not None:
                return 200, content.encode("utf-8")
            return 404, b""
        self._node()  # a stranger who tries paths is counted
        return 404, b""

    def _reboot(self, node):
        """Return what a reboot by Slurm is for. Where that is not known it is a reboot: nobody confirmed more."""
        try:
            if reimage_store.is_rebooted_to_install(self.server.limits.place, node):
                return b"reimage\n"
        except Problem as problem:
            self._say("%s reboots: %s" % (node, problem))
        return b"reboot\n"

    def _post(self, parts):
        length = self._length()
        self.unread = length != 0
        if len(parts) != 3 or parts[0] != "node" or parts[2] not in store.PURPOSES:
            self._node()
            return 404, b""
        node = self._node(parts[1])
        if not node:
            return 403, b""
        if not self.server.tls:
            return 403, b"only over TLS\n"
        place, address, token = self.server.limits.place, self.client_address[0], self.headers.get(TOKEN) or ""
        try:
            # Before anything of the body is read. Whoever does what the token opens asks again.
            store.check_token(place, node, parts[2], token, address)
            if not 0 <= length <= MOST_SAID:
                return 413, b""
            said = self._body(length)
            if parts[2] == "secrets":
                return 200, store.redeem_secrets(place, node, token, address)
            if parts[2] == "begin":
                store.begin(place, node, token, address)
            elif parts[2] == "stop":
                store.stop(place, node, token, address, said)
            else:
                store.call_home(place, node, token, address, said)
        except Problem as problem:
            self.worth_a_line = self._refused(node, parts[2], "%s" % problem)
            if self.worth_a_line:
                self._say("%s %s: %s" % (node, parts[2], problem))
            return 403, b"refused\n"
        return 200, b"ok\n"

    def _length(self):
        """Return how long the body is that was announced, 0 for what is not a number."""
        try:
            return int(self.headers.get("Content-Length") or 0)
        except ValueError:
            return 0

    def _body(self, length):
        """Return what was sent as text; EOFError when that is not all of it."""
        content = self.rfile.read(length)
        if len(content) < length:
            raise EOFError("it ended within its body")
        self.unread = False
        return text(content)

    def _say(self, words):
        self.server.limits.say(self.client_address[0], text(words))

    def log_message(self, form, *words):
        """To the journal, without what a header said. Equal refusals are in it as often as in their file."""
        if self.worth_a_line:
            self._say(form % words)


class Server(HTTPServer):
    """One listening place; with a context it speaks TLS, and shakes hands in the thread of the connection."""

    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, where, limits, context=None):
        self.limits, self.tls, self._context = limits, context is not None, context
        HTTPServer.__init__(self, where, Handler)

    def server_bind(self):
        """Without asking a name server who we are."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]

    def process_request(self, request, client_address):
        """Answer in a thread, when there is room for one more of whoever asks."""
        limits, address = self.limits, client_address[0]
        share = limits.share(address)
        connection = limits.connections.enter(share, request)
        if connection is None:
            if limits.refusals.note(time.time(), share, address, "", "too many connections at once"):
                limits.say(address, "more than %d connections at once; closed" % limits.connections.most)
            self.shutdown_request(request)
            return
        try:
            _start(self._serve, connection, request, client_address)
        except Exception:
            limits.connections.leave(connection)
            raise

    def _serve(self, connection, request, client_address):
        broke = ""
        try:
            self.finish_request(request, client_address)
        except Exception as error:  # of whatever kind: this connection's fault, or its end
            broke = text("%s" % error) or type(error).__name__
        try:
            self.shutdown_request(request)
        finally:
            self.limits.connections.leave(connection)
        if connection.late:
            broke = "not done within %d s" % self.limits.connections.seconds
        if broke:
            self._say_broken(client_address[0], broke)

    def finish_request(self, request, client_address):
        """Shake hands, then answer."""
        if self._context:
            request = self._context.wrap_socket(request, server_side=True)
        HTTPServer.finish_request(self, request, client_address)
        if self._context:
            try:
                request.unwrap()
            except (OSError, IOError, ValueError):
                pass
            request.close()

    def handle_error(self, request, client_address):
        """One line for what could not be begun: no thread, no memory, no trail."""
        self._say_broken(client_address[0], text("%s" % sys.exc_info()[1]))

    def _say_broken(self, address, words):
        """One line for a connection that broke: handshakes of strangers are not our fault, and are counted."""
        limits = self.limits
        try:
            node = limits.place.by_address(address)
            if node or limits.refusals.note(time.time(), node, address, words[:80], "the connection broke"):
                limits.say(address, words)
        except Problem as problem:
            limits.say(address, "%s; %s" % (words, problem))


def context_of(place):
    """Return the TLS context with the server's certificate; Problem when it cannot be read."""
    context = ssl.SSLContext(getattr(ssl, "PROTOCOL_TLS_SERVER", ssl.PROTOCOL_SSLv23))
    for old in ("OP_NO_SSLv2", "OP_NO_SSLv3", "OP_NO_TLSv1", "OP_NO_TLSv1_1"):
        context.options |= getattr(ssl, old, 0)
    try:
        context.load_cert_chain(place.certificate, place.private_key)
    except (OSError, IOError, ssl.SSLError) as error:
        raise Problem("%s, %s: no certificate for TLS: %s" % (place.certificate, place.private_key,
                                                             getattr(error, "strerror", None) or error))
    return context


def servers(place):
    """Return the places that listen; Problem names one that cannot."""
    context, limits, listening = context_of(place), Limits(place), []
    for address in place.listen:
        for port, tls in ((place.port, None), (place.tls_port, context)):
            try:
                listening.append(Server((address, port), limits, tls))
            except (OSError, IOError) as error:
                raise Problem("%s port %d: cannot listen: %s" % (address, port, error.strerror or error))
    return listening


def tell_ready():
    """Tell systemd that every place listens (sd_notify(3), Type=notify); nobody when it did not start us."""
    where = os.environ.pop("NOTIFY_SOCKET", "")
    if where:
        told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        told.sendto(b"READY=1", "\0" + where[1:] if where.startswith("@") else where)
        told.close()


def _start(work, *words):
    thread = threading.Thread(target=work, args=words)
    thread.daemon = True
    thread.start()


def serve(place):
    """Serve until somebody ends the process."""
    running = servers(place)
    tell_ready()
    _start(running[0].limits.watch)
    for server in running[1:]:
        _start(server.serve_forever)
    running[0].serve_forever()
