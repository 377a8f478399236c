"""Who may ask: a session's token, the cookie of OpenBMC's REST, or name and password with each request."""

from __future__ import annotations

import base64
import binascii
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from bmc.machine import Machine


@dataclass(frozen=True)
class Session:
    """One that was logged in to. ``user`` is its name."""

    number: str
    token: str
    user: str


class Sessions:
    """The sessions of one BMC. They end with the process, as a real one's end when the BMC starts anew."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._by_token: dict[str, Session] = {}
        self._lock = threading.Lock()

    def open(self, name: str, password: str) -> Session | None:
        """Return a new session, or None when name or password is wrong."""
        if self._machine.user(name, password) is None:
            return None
        session = Session(secrets.token_hex(5), secrets.token_urlsafe(15), name)
        with self._lock:
            self._by_token[session.token] = session
        return session

    def all(self) -> list[Session]:
        """Return the sessions that are open."""
        with self._lock:
            return list(self._by_token.values())

    def close(self, number: str) -> bool:
        """End a session; return whether there was one."""
        with self._lock:
            tokens = [token for token, session in self._by_token.items() if session.number == number]
            for token in tokens:
                del self._by_token[token]
        return bool(tokens)

    def close_others(self, user: str, token: str | None) -> None:
        """End the sessions of a user whose password was changed, but for the one that changed it."""
        with self._lock:
            for other in [
                session for session in self._by_token.values() if session.user == user and session.token != token
            ]:
                del self._by_token[other.token]

    def asking(self, environ: Mapping[str, object]) -> tuple[str, str | None] | None:
        """Return the user's name and the session's token of a WSGI request; None when it has no right to ask."""
        token = str(environ.get("HTTP_X_AUTH_TOKEN", "")) or _cookie(str(environ.get("HTTP_COOKIE", "")))
        if token:
            with self._lock:
                session = self._by_token.get(token)
            return (session.user, token) if session else None
        kind, _, text = str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")
        if kind.lower() != "basic":
            return None
        try:
            name, _, password = base64.b64decode(text, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return (name, None) if self._machine.user(name, password) else None


def _cookie(text: str) -> str:
    try:
        cookie = SimpleCookie(text).get("SESSION")
    except CookieError:
        return ""
    return cookie.value if cookie else ""
