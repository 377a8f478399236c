"""What a connection makes of each answer, and which words each failure has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import requests
import sushy.exceptions
import sushy.main

from hal_cluster.bmc import connection as subject
from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.tls import BelievingAdapter
from tests.unit.hal_cluster.bmc.talking import NAME, PINNED, Answer, client, link, member
from tests.unit.hal_cluster.bmc.test_faults import failure


def http(status: int, error: Mapping[str, Any] | None = None, *, access: bool = False) -> Exception:
    """As sushy raises it for an answer; ``error``: what the BMC's own says."""
    made: type[Exception] = sushy.exceptions.AccessError if access else sushy.exceptions.HTTPError
    return made("GET", "/x", Answer(None if error is None else {"error": dict(error)}, status))


def said(**message: Any) -> dict[str, Any]:
    return {"@Message.ExtendedInfo": [message]}


def test_members_are_those_of_all_pages_each_whole() -> None:
    pages = {
        "/2": {"Members": [{"Name": "no member"}, link("/M/3")], "Members@odata.nextLink": "/3"},
        "/3": {"Members": None},
        "/M/1": member("/M/1", Name="one"),
        "/M/3": member("/M/3", Name="three"),
    }
    found, service = client(pages)
    first = {"Members": [link("/M/1"), member("/M/2")], "Members@odata.nextLink": "/2"}
    assert found.connection.members(first) == [pages["/M/1"], member("/M/2"), pages["/M/3"]]
    assert [path for _, path in service.sent] == ["/M/1", "/2", "/M/3", "/3"]
    assert found.connection.members(None) == []


def test_a_link_leads_to_what_is_there() -> None:
    found = client({"/A": {"B": link("/B"), "C": link("/C"), "D": "no link", "E": {}}, "/B": {"Name": "b"}})[0]
    assert found.connection.linked({"A": link("/A")}, "A", "B") == {"Name": "b"}
    for names in (["A", "C"], ["A", "D"], ["A", "E"], ["A", "F"], ["A", "C", "B"], ["B"]):
        assert found.connection.linked({"A": link("/A")}, *names) is None


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (Answer({"Id": "x"}), {"Id": "x"}),
        (Answer({"Id": "x"}, 204), {}),
        (Answer({"Id": "x"}, content=b""), {}),
        (Answer(["x"]), {}),
    ],
)
def test_an_answer_is_what_it_has(answer: Answer, found: dict[str, Any]) -> None:
    assert client({"/x": answer})[0].connection.get("/x") == found


def test_an_answer_that_is_no_json_is_refused() -> None:
    error = failure(lambda: client({"/x": Answer(content=b"<html>", status=201)})[0].connection.get("/x"))
    assert (str(error), error.fault) == (f"{NAME}: login: 201, and not with JSON", Fault.REFUSED)


def test_what_is_sent_has_its_method() -> None:
    found, service = client({}, {"Id": "y"})
    assert found.connection.post("/x", {"a": 1}) == {"Id": "y"}
    found.connection.patch("/x", {"a": 2})
    found.connection.put("/x", {"a": 3})
    assert service.sent == [("post", "/x", {"a": 1}), ("patch", "/x", {"a": 2}), ("put", "/x", {"a": 3})]


def asked_again(error: Exception, *, fresh: bool = False) -> tuple[Any, list[str]]:
    """Return what comes of a question that fails the first time, and what was done."""
    link_ = client({})[0].connection
    done: list[str] = []

    def begin() -> None:
        if link_._root is None:
            done.append("login")
            link_._root = "root"

    def ask() -> str:
        done.append("ask")
        if done.count("ask") == 1:
            raise error
        return "answer"

    link_.open, link_._session = begin, "/Sessions/1"
    if fresh:
        link_._root = None
    try:
        return link_.again(ask), done
    except sushy.exceptions.SushyError as raised:
        return raised, done


def test_a_session_that_the_bmc_forgot_is_begun_once_more() -> None:
    assert asked_again(http(401, access=True)) == ("answer", ["ask", "login", "ask"])
    for error, fresh, done in (
        (http(403, access=True), False, ["ask"]),
        (http(401, access=True), True, ["login", "ask"]),
        (http(500), False, ["ask"]),
    ):
        assert asked_again(error, fresh=fresh) == (error, done)


CHANGE = {"MessageId": "Base.1.8.PasswordChangeRequired", "MessageArgs": ["/Accounts/root"]}
LOCKED = ". User or password is wrong, or the account is locked after too many tries: it is not tried again"


@pytest.mark.parametrize(
    ("error", "root", "answer", "fault"),
    [
        (
            *(http(403, {"@Message.ExtendedInfo": [{"MessageId": "Base.Other"}, CHANGE]}), True),
            *("403: the password has to be changed first: playbooks/bmc.yml does that", Fault.PASSWORD_CHANGE),
        ),
        (http(401, said(Message="No\n way.")), True, f"401: No way{LOCKED}", Fault.LOGIN),
        (http(403), False, f"403{LOCKED}", Fault.LOGIN),
        (http(403, {"message": "no"}), True, "403: no. root may not do that", Fault.REFUSED),
        *((http(status), True, f"{status}", Fault.BUSY) for status in (502, 503, 504)),
        (http(500, said(Message="odd")), True, "500: odd", Fault.REFUSED),
        (
            *(http(500, {"@Message.ExtendedInfo": [{"MessageId": "x"}, {"Message": "odd"}]}), True),
            *("500: odd", Fault.REFUSED),
        ),
        (requests.exceptions.ReadTimeout(), True, "no answer within 30 s", Fault.SILENT),
        (http(500, said(Message="")), True, "500", Fault.REFUSED),
        (http(500, said(Message="x" * 201)), True, f"500: {'x' * 200}", Fault.REFUSED),
        (http(0), True, "an answer", Fault.REFUSED),
        (sushy.exceptions.SushyError("odd"), True, "what this program does not understand: odd", Fault.REFUSED),
    ],
)
def test_what_a_bmc_answers_is_said(error: Exception, root: bool, answer: str, fault: Fault) -> None:
    found = client({"/x": error})[0].connection
    if not root:
        found._root = None
    with pytest.raises(BmcError) as caught, found.asking("its clock"):
        raise error
    assert (str(caught.value), caught.value.fault) == (f"{NAME}: its clock: {answer}", fault)
    assert found.failed("x", fault).asked == "login", "what was asked before"


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (requests.exceptions.ReadTimeout("refused"), "no answer within 5 s"),
        (requests.exceptions.ConnectionError("[Errno 111] refused"), "nobody listens there: connection refused"),
        (requests.exceptions.ConnectionError("No route to host"), "no way to it: no route to host"),
        (requests.exceptions.ConnectionError("is unreachable"), "no way to it: network unreachable"),
        (requests.exceptions.ConnectionError("Failed to resolve"), "its address is unknown"),
        (requests.exceptions.ConnectionError("x"), "it ended the connection without an answer"),
    ],
)
def test_a_way_that_fails_is_silence(error: Exception, answer: str) -> None:
    found = client({})[0].connection
    found.target = replace(PINNED, timeout_seconds=5.0)
    told = found._transport(error)
    assert (str(told), told.fault) == (f"{NAME}: login: {answer}", Fault.SILENT)


def test_what_nobody_foresaw_is_refused_by_its_name() -> None:
    found = client({})[0].connection
    told = found._transport(requests.exceptions.TooManyRedirects("x"))
    assert told.answer == "what this program does not understand: TooManyRedirects"
    assert told.fault is Fault.REFUSED


def test_a_connection_of_sushy_failed_for_the_reason_behind_it() -> None:
    found = client({})[0].connection
    alone = sushy.exceptions.ConnectionError(url="https://x", error="No route to host")
    assert found._error(alone).answer == "no way to it: no route to host"
    alone.__context__ = requests.exceptions.ConnectTimeout("x")
    assert found._error(alone).answer.startswith("no answer within ")


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("Fingerprints did not match", "its certificate is not the one that was pinned{}"),
        ("certificate has expired", "its certificate has expired{}{}"),
        ("not yet valid", "its certificate is not valid yet: compare its clock with ours{}{}"),
        ("Hostname mismatch", "its certificate is for another name or address{}{}"),
        ("not valid for 'x'", "its certificate is for another name or address{}{}"),
        ("self-signed certificate", "its certificate is signed only by itself{}{}"),
        ("self signed certificate", "its certificate is signed only by itself{}{}"),
        ("unable to get local issuer", "its certificate is from another authority{}{}"),
        ("signature failure", "its certificate is from another authority{}{}"),
        ("[SSL: WRONG] wrong  version (_ssl.c:1)", "TLS failed: wrong version"),
        ("x: y: odd", "TLS failed: odd"),
    ],
)
@pytest.mark.parametrize("shows", [True, False])
def test_a_certificate_that_is_not_believed_is_described(
    monkeypatch: pytest.MonkeyPatch, words: str, answer: str, shows: bool
) -> None:
    def shown(_: Any) -> str:
        if not shows:
            raise OSError
        return "abc"

    monkeypatch.setattr(subject, "shown_fingerprint", shown)
    found = client({})[0].connection
    its = "; it shows sha256:abc" if shows else ""
    for pin, more in (("a" * 64, "; it is not the one that was pinned, either"), ("", "")):
        found.target = replace(PINNED, ca_file="ca.pem", fingerprint=pin)
        told = found._transport(requests.exceptions.SSLError(words))
        assert told.answer == answer.format(its, f". ca.pem does not vouch for it{more}")
        assert told.fault is Fault.CERTIFICATE


@pytest.mark.parametrize(
    ("ca_file", "pin", "shows", "believed"),
    [
        ("", "a" * 64, None, ("", "a" * 64)),
        ("ca.pem", "", None, ("ca.pem", "")),
        ("ca.pem", "A" * 64, "a" * 64, ("", "A" * 64)),
        ("ca.pem", "a" * 64, "b" * 64, ("ca.pem", "")),
        ("ca.pem", "a" * 64, OSError("x"), ("ca.pem", "")),
    ],
)
def test_one_way_to_know_a_bmc_is_taken(
    monkeypatch: pytest.MonkeyPatch, ca_file: str, pin: str, shows: Any, believed: tuple[str, str]
) -> None:
    def shown(_: Any) -> Any:
        if isinstance(shows, Exception):
            raise shows
        assert shows, "nobody asks"
        return shows

    monkeypatch.setattr(subject, "shown_fingerprint", shown)
    found = client({})[0].connection
    found.target = replace(PINNED, ca_file=ca_file, fingerprint=pin)
    taken = found._believed()
    assert (taken.ca_file, taken.fingerprint) == believed


def test_one_that_does_not_show_its_certificate_in_time_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(_: Any) -> str:
        raise TimeoutError

    monkeypatch.setattr(subject, "shown_fingerprint", silent)
    found = client({})[0].connection
    found.target = replace(PINNED, ca_file="ca.pem", timeout_seconds=2.5)
    told = failure(found._believed)
    assert (told.answer, told.fault) == ("no answer within 2.5 s", Fault.SILENT)


def test_a_login_is_made_once_with_what_the_target_says(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []

    class Root:
        def __init__(self, address: str, connector: Any, auth: Any) -> None:
            done.append((address, connector is found._connector, auth.can_refresh_session()))

        def create_session(self, *words: str) -> tuple[str, str]:
            done.append(words)
            return "token", "/Sessions/1"

    monkeypatch.setattr(sushy.main, "Sushy", Root)
    found, service = client({})[0].connection, client({})[1]
    found.target, found._root, found._connector = replace(PINNED, password="word", https_port=8443), None, service
    found.open()
    found.open()
    assert done == [("https://10.0.0.5:8443", True, False), ("root", "word")]
    assert [(one[0], one[1]) for one in service.sent] == [("believe", found.target), ("set_http_session_auth", "token")]
    assert (found._session, type(found.root)) == ("/Sessions/1", Root)


def test_a_session_that_cannot_be_ended_is_let_go() -> None:
    for error in (http(500), requests.exceptions.ConnectionError("x")):
        found, service = client({})
        done: list[str] = []

        def fail(path: str, error: Exception = error, done: list[str] = done) -> None:
            done.append(path)
            raise error

        service.delete = fail
        found.connection._session = "/Sessions/1"
        found.connection.close()
        assert (done, service.sent) == (["/Sessions/1"], [("close", "", None)])


@pytest.mark.parametrize(
    ("method", "status", "root", "body", "place"),
    [
        ("POST", 201, None, {"@Message.ExtendedInfo": ["x", {"MessageId": "Base.Other"}, CHANGE]}, "/Accounts/root"),
        ("POST", 200, None, {"@Message.ExtendedInfo": [{**CHANGE, "MessageArgs": []}]}, ""),
        ("POST", 200, None, {}, ""),
        ("POST", 201, None, None, ""),
        ("GET", 200, None, {"@Message.ExtendedInfo": [CHANGE]}, "before"),
        ("POST", 202, None, {"@Message.ExtendedInfo": [CHANGE]}, "before"),
        ("POST", 201, "root", {"@Message.ExtendedInfo": [CHANGE]}, "before"),
    ],
)
def test_where_a_password_is_to_be_changed_is_heard_at_login(
    method: str, status: int, root: Any, body: Any, place: str
) -> None:
    found = client({})[0].connection
    found._root, found.password_change_at = root, "before"
    answer: Any = Answer(body, status)
    answer.request = requests.Request(method)
    found._heard(answer)
    assert found.password_change_at == place


def test_requests_are_sent_once_and_believe_nobody_else() -> None:
    connector = subject._Connector(replace(PINNED, timeout_seconds=7.0, https_port=8443), print)
    assert connector._url == "https://10.0.0.5:8443"
    assert connector._session.trust_env is False
    assert connector._server_side_retries == 1
    assert connector._default_request_timeout == 7.0
    assert isinstance(connector._session.get_adapter("https://10.0.0.5:8443/x"), BelievingAdapter)
