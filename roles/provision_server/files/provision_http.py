# -*- coding: utf-8 -*-
"""The server of hal-provision: a node gets its own files and nobody else's. Python 2.7 and 3.

Who asks is known by the address that the connection comes from. Without TLS: boot configuration, the files of its
order, and what a reboot by Slurm is for. With TLS and the token: that its installation begins, first secrets, the call
home, once each, and why an installer stops.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import socket
import ssl
import sys
import threading
import time

import provision_store as store
import reimage_store
from provision_common import Problem, say, text
from provision_trail import Refusals

try:
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from socketserver import ThreadingMixIn
except ImportError:
    from BaseHTTPServer import BaseHTTPRequestHandler, HTTPServer
    from SocketServer import ThreadingMixIn

MOST_SAID = 64 * 1024
TOKEN = "X-HAL-Token"
SEARCHED = "pxelinux.cfg"


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    timeout = 30
    server_version = "hal-provision"
    sys_version = ""
    worth_a_line = True

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
            status, content = ask([part for part in self.path.split("?")[0].split("/") if part])
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
        address = self.client_address[0]
        found = self.server.place.by_address(address)
        if found is None or named not in (None, found):
            self.worth_a_line = self.server.refusals.note(
                time.time(), found, address, "%s %s" % (self.command, text(named or "")[:80]),
                "another node's" if found else "no node has this address")
            return None
        return found

    def _get(self, parts):
        place, now = self.server.place, time.time()
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
            if reimage_store.is_rebooted_to_install(self.server.place, node):
                return b"reimage\n"
        except Problem as problem:
            self._say("%s reboots: %s" % (node, problem))
        return b"reboot\n"

    def _post(self, parts):
        said = self._body()
        if len(parts) != 3 or parts[0] != "node" or parts[2] not in store.PURPOSES:
            self._node()
            return 404, b""
        node = self._node(parts[1])
        if not node:
            return 403, b""
        if not self.server.tls:
            return 403, b"only over TLS\n"
        if said is None:
            return 413, b""
        address, token = self.client_address[0], self.headers.get(TOKEN) or ""
        try:
            if parts[2] == "secrets":
                return 200, store.redeem_secrets(self.server.place, node, token, address)
            if parts[2] == "begin":
                store.begin(self.server.place, node, token, address)
            elif parts[2] == "stop":
                store.stop(self.server.place, node, token, address, said)
            else:
                store.call_home(self.server.place, node, token, address, _data(said))
        except Problem as problem:
            self.worth_a_line = self.server.refusals.note(time.time(), node, address, parts[2], "%s" % problem)
            if self.worth_a_line:
                self._say("%s %s: %s" % (node, parts[2], problem))
            return 403, b"refused\n"
        return 200, b"ok\n"

    def _body(self):
        """Return what was sent as text; None for too much."""
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            length = 0
        if length > MOST_SAID or length < 0:
            self.rfile.read(min(max(length, 0), 16 * MOST_SAID))  # unread, the answer would be lost with the connection
            return None
        return text(self.rfile.read(length))

    def _say(self, words):
        say("%s %s" % (self.client_address[0], text(words)))

    def log_message(self, form, *words):
        """To the journal, without what a header said. Equal refusals are in it as often as in their file."""
        if self.worth_a_line:
            self._say(form % words)


def _data(said):
    """Return what JSON says, else the words themselves."""
    try:
        return json.loads(said)
    except ValueError:
        return said


class Server(ThreadingMixIn, HTTPServer):
    """One listening place; with a context it speaks TLS, and shakes hands in the thread of the connection."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, where, place, refusals, context=None):
        self.place, self.refusals, self.tls, self._context = place, refusals, context is not None, context
        HTTPServer.__init__(self, where, Handler)

    def server_bind(self):
        """Without asking a name server who we are."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]

    def finish_request(self, request, client_address):
        """Shake hands, then answer; who takes too long is let go."""
        request.settimeout(Handler.timeout)
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
        """One line for a connection that broke: handshakes of strangers are no fault of ours, and are counted."""
        words = text("%s" % sys.exc_info()[1])
        try:
            node = self.place.by_address(client_address[0])
            if node or self.refusals.note(time.time(), node, client_address[0], words[:80], "the connection broke"):
                say("%s: %s" % (client_address[0], words))
        except Problem as problem:
            say("%s: %s; %s" % (client_address[0], words, problem))


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
    context, refusals, found = context_of(place), Refusals(place), []
    for address in place.listen:
        for port, one in ((place.port, None), (place.tls_port, context)):
            try:
                found.append(Server((address, port), place, refusals, one))
            except (OSError, IOError) as error:
                raise Problem("%s port %d: cannot listen: %s" % (address, port, error.strerror or error))
    return found


def tell_ready():
    """Tell systemd that every place listens (sd_notify(3), Type=notify); nobody when it did not start us."""
    where = os.environ.pop("NOTIFY_SOCKET", "")
    if where:
        told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        told.sendto(b"READY=1", "\0" + where[1:] if where.startswith("@") else where)
        told.close()


def serve(place):
    """Serve until somebody ends the process."""
    running = servers(place)
    tell_ready()
    for one in running[1:]:
        thread = threading.Thread(target=one.serve_forever)
        thread.daemon = True
        thread.start()
    running[0].serve_forever()
