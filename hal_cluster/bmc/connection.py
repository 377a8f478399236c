"""One BMC's HTTPS, over sushy's connector: a session, certificates checked, and errors that say what came back."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

import requests
import sushy.auth
import sushy.connector
import sushy.exceptions
import sushy.main

from hal_cluster.bmc.answers import AnswerError
from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import Target
from hal_cluster.bmc.tls import BelievingAdapter, fingerprint, shown_fingerprint
from hal_inventory.bounded import BoundError, check

# These libraries would print addresses and bodies; BmcError says what an administrator needs.
for _name in ("sushy", "urllib3"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False

Answer = TypeVar("Answer")
MOST_MEMBERS = 10_000
"""Of one collection with all its pages. The largest chassis has some hundreds of sensors."""

BUSY = (502, 503, 504)
"""Status of a BMC that is starting, or whose gateway got no answer."""


class _Connector(sushy.connector.Connector):  # type: ignore[misc]  # sushy has no types
    """As sushy's, except that every request is sent once.

    If an answer is lost, sushy (connector.py) would send a reset again. After 401 or 403 it would send any request
    again, although it has no other session to try. What remains is its second GET after a BMC answers 406.
    """

    def __init__(self, target: Target, heard: Callable[[Any], None]) -> None:
        super().__init__(
            f"https://{target.address}:{target.https_port}",
            verify=True,
            response_callback=heard,
            server_side_retries=1,  # of attempts; 0 would mean three
            default_request_timeout=target.timeout_seconds,
        )
        # No proxy and no authorities from the environment.
        self._session.trust_env = False
        self.believe(target)

    def believe(self, target: Target) -> None:
        """From now on speak only with a server that shows what this target says."""
        self._session.mount("https://", BelievingAdapter(target))

    def _op(self, *arguments: Any, **keywords: Any) -> Any:
        keywords |= {"server_side_retries_left": 0, "allow_reauth": False}
        return super()._op(*arguments, **keywords)


class Connection:
    """A session at a BMC's Redfish. Nothing is sent before the first question."""

    def __init__(self, target: Target) -> None:
        """BmcError (CONFIGURATION) if neither authority nor fingerprint is given."""
        self.target = target
        self._connector = _Connector(target, self._heard)
        self._root: Any = None
        self._session = ""
        self._asked = "login"
        self.password_change_at = ""
        """Where the password has to be changed before anything else is answered."""

    # --- what is being asked, for messages

    @contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """Say what is being asked: messages have it. What sushy and requests raise becomes a BmcError."""
        before, self._asked = self._asked, what
        try:
            yield
        except sushy.exceptions.SushyError as error:
            raise self._error(error) from None
        except requests.exceptions.RequestException as error:
            raise self._transport(error) from None
        finally:
            self._asked = before

    # --- session

    def open(self) -> None:
        """Log in, once. BmcError for a BMC that does not answer, is not believed, or does not let us in."""
        if self._root is not None:
            return
        with self.asking(f"login of {self.target.user}"):
            self._connector.believe(self._believed())
            root = sushy.main.Sushy(
                f"https://{self.target.address}:{self.target.https_port}",
                connector=self._connector,
                auth=_NoLogin(),
            )
            token, self._session = root.create_session(self.target.user, self.target.password)
            self._connector.set_http_session_auth(token)
            self._root = root

    def _believed(self) -> Target:
        """Return the target with one way to know it: the pinned certificate if that is shown, else the authority."""
        if not (self.target.fingerprint and self.target.ca_file):
            return self.target
        try:
            shown = shown_fingerprint(self.target)
        except TimeoutError:
            raise self.failed(f"no answer within {self.target.timeout_seconds:g} s", Fault.SILENT) from None
        except OSError:
            shown = ""  # the login says what is wrong
        if shown == fingerprint(self.target.fingerprint):
            return replace(self.target, ca_file="")
        return replace(self.target, fingerprint="")

    @property
    def root(self) -> Any:
        """Sushy's service root, logged in."""
        self.open()
        return self._root

    def close(self) -> None:
        """End the session. A BMC has few, so this is tried; that it could not be is not worth a message."""
        place, self._session, self._root = self._session, "", None
        if place:
            with suppress(sushy.exceptions.SushyError, requests.exceptions.RequestException):
                self._connector.delete(place)
        self._connector.close()

    def _heard(self, response: Any) -> None:
        """Note what OpenBMC tells an expired account: it may log in, and do nothing but change the password."""
        if response.request.method == "POST" and response.status_code in (200, 201) and self._root is None:
            try:
                self.password_change_at = _place_in(response.json())
            except (ValueError, RecursionError):
                self.password_change_at = ""

    # --- resources

    def get(self, path: str) -> dict[str, Any]:
        """Return a resource."""
        return self._ask("get", path)

    def find(self, path: str) -> dict[str, Any] | None:
        """Return a resource, or None if the firmware has none there."""
        try:
            return self.get(path)
        except sushy.exceptions.ResourceNotFoundError:
            return None

    def post(self, path: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Send data, once."""
        return self._ask("post", path, data=dict(data))

    def patch(self, path: str, data: Mapping[str, Any]) -> None:
        """Change a resource."""
        self._ask("patch", path, data=dict(data))

    def put(self, path: str, data: Mapping[str, Any]) -> None:
        """Replace a resource."""
        self._ask("put", path, data=dict(data))

    def again(self, ask: Callable[[], Answer]) -> Answer:
        """Ask. If the BMC has forgotten our session it did nothing: ask once more in a new one."""
        fresh = self._root is None
        self.open()
        try:
            return ask()
        except sushy.exceptions.AccessError as error:
            if fresh or error.status_code != 401:
                raise
        self._root, self._session = None, ""
        self.open()
        return ask()

    def _ask(self, method: str, path: str, **keywords: Any) -> dict[str, Any]:
        return self._json(self.again(lambda: getattr(self._connector, method)(path, **keywords)))

    def members(self, collection: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        """Return the members of a collection, all its pages."""
        members: list[dict[str, Any]] = []
        while collection:
            for member in collection.get("Members") or []:
                if "@odata.id" in member:
                    members.append(member if len(member) > 1 else self.get(str(member["@odata.id"])))
                if len(members) > MOST_MEMBERS:
                    answer = f"a list of more than {MOST_MEMBERS:,} entries, which may never end"
                    raise self.failed(answer, Fault.REFUSED)
            more = collection.get("Members@odata.nextLink")
            collection = self.get(str(more)) if more else None
        return members

    def linked(self, resource: Mapping[str, Any], *names: str) -> dict[str, Any] | None:
        """Return what a resource links to, by the names on the way; None if the firmware has no such thing."""
        here: dict[str, Any] | None = dict(resource)
        for name in names:
            link = (here or {}).get(name)
            if not isinstance(link, Mapping) or "@odata.id" not in link:
                return None
            here = self.find(str(link["@odata.id"]))
        return here

    def _json(self, response: Any) -> dict[str, Any]:
        if response.status_code == 204 or not response.content:
            return {}
        try:
            document = response.json()
            check(document)
        except BoundError as error:
            raise self.failed(f"{response.status_code}, and {error}", Fault.REFUSED) from None
        except (ValueError, RecursionError):
            raise self.failed(f"{response.status_code}, and not with JSON", Fault.REFUSED) from None
        return document if isinstance(document, dict) else {}

    # --- errors

    def failed(self, answer: str, fault: Fault) -> BmcError:
        """Return the error of what is being asked."""
        return BmcError(self.target.label, self._asked, answer, fault)

    def _error(self, error: sushy.exceptions.SushyError) -> BmcError:
        if isinstance(error, sushy.exceptions.HTTPError):
            return self._http(error)
        if isinstance(error, sushy.exceptions.ConnectionError):
            cause = error.__context__
            return self._transport(cause if isinstance(cause, Exception) else error)
        return self.failed(f"what this program does not understand: {error}", Fault.REFUSED)

    def _http(self, error: Any) -> BmcError:
        status = int(error.status_code or 0)
        if _change_place(error) is not None:
            return self.failed(
                f"{status}: the password has to be changed first: playbooks/bmc.yml does that", Fault.PASSWORD_CHANGE
            )
        said = _said(error)
        if status == 401 or (status == 403 and self._root is None):
            return self.failed(
                f"{status}{said}. User or password is wrong, or the account is locked after too many tries: it is not"
                " tried again",
                Fault.LOGIN,
            )
        if status == 403:
            return self.failed(f"403{said}. {self.target.user} may not do that", Fault.REFUSED)
        if status in BUSY:
            return self.failed(f"{status}{said}", Fault.BUSY)
        return self.failed(f"{status or 'an answer'}{said}", Fault.REFUSED)

    def _transport(self, error: BaseException) -> BmcError:
        text = str(error)
        if isinstance(error, AnswerError):
            return self.failed(text, Fault.REFUSED)
        if isinstance(error, requests.exceptions.SSLError):
            return self.failed(self._certificate(text), Fault.CERTIFICATE)
        if isinstance(error, requests.exceptions.Timeout):
            return self.failed(f"no answer within {self.target.timeout_seconds:g} s", Fault.SILENT)
        for words, answer in (
            ("refused", "nobody listens there: connection refused"),
            ("No route", "no way to it: no route to host"),
            ("unreachable", "no way to it: network unreachable"),
            ("resolve", "its address is unknown"),
        ):
            if words in text:
                return self.failed(answer, Fault.SILENT)
        if isinstance(error, requests.exceptions.ConnectionError):
            return self.failed("it ended the connection without an answer", Fault.SILENT)
        return self.failed(f"what this program does not understand: {type(error).__name__}", Fault.REFUSED)

    def _certificate(self, text: str) -> str:
        its = ""
        with suppress(OSError):
            its = f"; it shows sha256:{shown_fingerprint(self.target)}"
        if "ingerprint" in text:
            return f"its certificate is not the one that was pinned{its}"
        for words, answer in (
            ("expired", "its certificate has expired"),
            ("not yet valid", "its certificate is not valid yet: compare its clock with ours"),
            ("mismatch", "its certificate is for another name or address"),
            ("not valid for", "its certificate is for another name or address"),
            ("self-signed", "its certificate is signed only by itself"),
            ("self signed", "its certificate is signed only by itself"),
            ("unable to get", "its certificate is from another authority"),
            ("signature failure", "its certificate is from another authority"),
        ):
            if words in text:
                unpinned = "; it is not the one that was pinned, either" if self.target.fingerprint else ""
                return f"{answer}{its}. {self.target.ca_file} does not vouch for it{unpinned}"
        return f"TLS failed: {_reason(text)}"


class _NoLogin(sushy.auth.AuthBase):  # type: ignore[misc]  # sushy has no types
    """Keeps sushy from logging in: we do it ourselves, to hear what the BMC says of the account."""

    def _do_authenticate(self) -> None:
        """Nothing."""

    def can_refresh_session(self) -> bool:
        """Whether sushy begins a session again that has ended: never."""
        return False

    def close(self) -> None:
        """Nothing."""


def _change_place(error: Any) -> str | None:
    """Return where the password is to be changed, when that is what an error says; else None."""
    infos = error.extended_info if isinstance(error.extended_info, list) else []
    for info in infos:
        if isinstance(info, Mapping) and str(info.get("MessageId", "")).endswith("PasswordChangeRequired"):
            arguments = info.get("MessageArgs") or [""]
            return str(arguments[0])
    return None


def _place_in(resource: Mapping[str, Any]) -> str:
    for info in resource.get("@Message.ExtendedInfo") or []:
        if isinstance(info, Mapping) and str(info.get("MessageId", "")).endswith("PasswordChangeRequired"):
            return str((info.get("MessageArgs") or [""])[0])
    return ""


def _said(error: Any) -> str:
    """Return what the BMC says of an error, one line, or nothing."""
    infos = error.extended_info if isinstance(error.extended_info, list) else []
    words = [str(info["Message"]) for info in infos if isinstance(info, Mapping) and info.get("Message")]
    text = " ".join((words[0] if words else str(error.detail or "")).split())
    return f": {text[:200].rstrip('.')}" if text else ""


def _reason(text: str) -> str:
    """Return OpenSSL's own words from what requests made of them."""
    matched = re.search(r"(?:SSLError\(|\[SSL[^\]]*\] )([^()]+?)(?: \(_ssl|\)|$)", text)
    return " ".join((matched[1] if matched else text.rsplit(":", 1)[-1]).split())[:200]
