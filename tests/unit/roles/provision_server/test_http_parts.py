"""The server's parts, in this process: what an answer has, what is read, who is told, and what cannot be served."""

from __future__ import annotations

import http.client
import importlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.hal_cluster.provision.conftest import node
from tests.unit.roles.provision_server.test_store import WORDS, settings_of

common: Any = importlib.import_module("provision_common")
web: Any = importlib.import_module("provision_http")
NODE, STRANGER = "127.0.0.5", "127.0.0.99"
Ask = Callable[..., tuple[int, dict[str, str], bytes]]


class Refusals:
    """Notes who was refused; the first of each is worth a line."""

    def __init__(self) -> None:
        self.noted: list[tuple[Any, ...]] = []
        self.worth = True

    def note(self, now: float, *words: Any) -> bool:
        self.noted.append(words)
        return self.worth


@pytest.fixture
def place(tmp_path: Path) -> Any:
    nodes = [node("hal05", 5, addresses={"management": NODE})]
    return common.Place(str(settings_of(tmp_path, nodes, listen=["127.0.0.1"])))


@pytest.fixture
def refusals() -> Refusals:
    return Refusals()


@pytest.fixture
def limits(place: Any, refusals: Refusals) -> Any:
    made = web.Limits(place)
    made.refusals = refusals
    return made


@pytest.fixture
def ask(limits: Any) -> Iterator[Ask]:
    """Return a function that asks the server, as over TLS when ``tls``: the status, what it says of it, the content."""
    made = web.Server(("127.0.0.1", 0), limits)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()

    def asked(
        method: str, path: str, *, source: str = NODE, tls: bool = True, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        made.tls = tls
        host, port = made.server_address
        link = http.client.HTTPConnection(host, port, timeout=600, source_address=(source, 0))
        try:
            link.request(method, path, body=body, headers={name.replace("_", "-"): headers[name] for name in headers})
            answer = link.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            link.close()

    yield asked
    made.shutdown()
    made.server_close()
    thread.join()


def test_an_answer_says_what_it_is_and_is_kept_nowhere(ask: Ask, place: Any) -> None:
    text = place.node("hal05")["standing"].encode()
    status, headers, content = ask("GET", "/boot/hal05?x=/y")
    assert (status, content) == (200, text)
    headers.pop("Date")
    assert headers == {
        "Server": "hal-provision ",
        "Content-Type": "application/octet-stream",
        "Content-Length": str(len(text)),
        "Cache-Control": "no-store",
    }
    status, headers, content = ask("HEAD", "/boot/hal05")
    assert (status, headers["Content-Length"], content) == (200, str(len(text)), b"")
    assert ask("GET", "//health/")[::2] == (200, b"ok\n")


def test_a_line_of_the_journal_for_each_request_and_refusals_as_they_are_counted(
    ask: Ask, refusals: Refusals, capsys: pytest.CaptureFixture[str]
) -> None:
    ask("GET", "/boot/hal05")
    assert capsys.readouterr().err == f'{NODE} "GET /boot/hal05 HTTP/1.1" 200 -\n'
    ask("GET", "/boot/hal06")
    assert capsys.readouterr().err == f'{NODE} "GET /boot/hal06 HTTP/1.1" 404 -\n'
    refusals.worth = False
    ask("GET", "/boot/" + "x" * 100)
    ask("GET", "/elsewhere", source=STRANGER)
    ask("POST", "/node/hal05/begin", X_HAL_Token="guess")
    assert capsys.readouterr().err == ""
    assert refusals.noted == [
        ("hal05", NODE, "GET hal06", "another node's"),
        ("hal05", NODE, "GET " + "x" * 80, "another node's"),
        (None, STRANGER, "GET ", "no node has this address"),
        ("hal05", NODE, "begin", "no token is out for this, or it was used"),
    ]
    refusals.worth = True
    ask("POST", "/node/hal05/secrets", X_HAL_Token="guess")
    assert capsys.readouterr().err.splitlines() == [
        f"{NODE} hal05 secrets: no token is out for this, or it was used",
        f'{NODE} "POST /node/hal05/secrets HTTP/1.1" 403 -',
    ]


@pytest.mark.parametrize(
    ("path", "source", "status"),
    [
        ("/health", STRANGER, 200),
        ("/health/x", NODE, 404),
        ("/boot/hal05/x", NODE, 404),
        ("/boot/pxelinux.cfg/default", NODE, 404),
        ("/boot/pxelinux.cfg/7F000005", NODE, 200),
        ("/boot/pxelinux.cfg/7F000005", STRANGER, 404),
        ("/boot/other.cfg/7F000005", NODE, 404),
        ("/boot/pxelinux.cfg/7F000005/x", NODE, 404),
        ("/node/hal05/reboot", NODE, 200),
        ("/node/hal05/reboot", STRANGER, 404),
        ("/node/hal05/reboot/x", NODE, 404),
        ("/other/hal05/reboot", NODE, 404),
        ("/node/hal05/kickstart.cfg", NODE, 404),
    ],
)
def test_what_is_there_is_there_for_whom_it_is(ask: Ask, path: str, source: str, status: int) -> None:
    assert ask("GET", path, source=source)[0] == status


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the store was asked and told."""
    told: list[tuple[Any, ...]] = []
    for name in ("check_token", "begin", "stop", "call_home", "redeem_secrets"):

        def noted(place: Any, *words: Any, name: str = name) -> bytes:
            told.append((name, *words))
            return b"secrets"

        monkeypatch.setattr(web.store, name, noted)
    return told


@pytest.mark.parametrize(
    ("purpose", "body", "told", "content"),
    [
        ("begin", b"x", ("begin", "hal05", WORDS, NODE), b"ok\n"),
        ("secrets", b"", ("redeem_secrets", "hal05", WORDS, NODE), b"secrets"),
        ("stop", b"why\xff", ("stop", "hal05", WORDS, NODE, "why�"), b"ok\n"),
        ("call-home", b'{"a": 1}', ("call_home", "hal05", WORDS, NODE, '{"a": 1}'), b"ok\n"),
        ("call-home", b"y" * 65536, ("call_home", "hal05", WORDS, NODE, "y" * 65536), b"ok\n"),
    ],
)
def test_each_purpose_is_done_with_what_was_sent(
    ask: Ask, done: list[tuple[Any, ...]], purpose: str, body: bytes, told: tuple[Any, ...], content: bytes
) -> None:
    assert ask("POST", f"/node/hal05/{purpose}", body=body, X_HAL_Token=WORDS)[::2] == (200, content)
    assert done == [("check_token", "hal05", purpose, WORDS, NODE), told]


def test_what_is_sent_otherwise_is_not_done(ask: Ask, done: list[tuple[Any, ...]], refusals: Refusals) -> None:
    for purpose in ("begin", "secrets", "stop", "call-home"):
        path = f"/node/hal05/{purpose}"
        assert ask("POST", path, body=b"y" * 65537)[::2] == (413, b"")
        assert ask("POST", path, tls=False)[::2] == (403, b"only over TLS\n")
        assert ask("POST", path, source=STRANGER)[::2] == (403, b"")
        assert ask("POST", path, Content_Length="-1")[::2] == (413, b"")
        assert [one[:3] for one in done] == [("check_token", "hal05", purpose)] * 2
        done.clear()
    for path in ("/node/hal05/reboot", "/node/hal05", "/node/hal05/begin/x", "/boot/hal05/begin"):
        assert ask("POST", path)[::2] == (404, b"")
        assert ask("POST", path, source=STRANGER)[::2] == (404, b"")
    assert done == []
    assert len(refusals.noted) == 8
    assert ask("POST", "/node/hal05/stop", Content_Length="many")[0] == 200
    assert done[1:] == [("stop", "hal05", "", NODE, "")]


def test_a_fault_of_the_server_is_no_help_for_who_asks(
    ask: Ask, place: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(place.state, "armed", "hal05").write_text("{")
    assert ask("GET", "/boot/hal05?x")[::2] == (503, b"")
    assert (
        capsys.readouterr().err.splitlines()[0] == f"{NODE} /boot/hal05: {place.state}/armed/hal05: is damaged; no JSON"
    )


def broke(limits: Any, source: str, error: str, capsys: pytest.CaptureFixture[str]) -> str:
    server = web.Server(("127.0.0.1", 0), limits)
    try:
        raise ValueError(error)
    except ValueError:
        server.handle_error(None, (source, 1))
    finally:
        server.server_close()
    return capsys.readouterr().err


def test_a_connection_that_breaks_is_one_line(
    limits: Any, refusals: Refusals, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node's always; strangers' as they are counted."""
    assert broke(limits, NODE, "bad hello", capsys) == f"{NODE} bad hello\n"
    assert refusals.noted == []
    noted = [(None, STRANGER, "x" * 80, "the connection broke")]
    assert broke(limits, STRANGER, "x" * 90, capsys) == f"{STRANGER} {'x' * 90}\n"
    assert refusals.noted == noted
    refusals.worth = False
    assert broke(limits, STRANGER, "x" * 90, capsys) == ""
    assert refusals.noted == noted * 2
    limits.place.nodes += ".gone"
    said = broke(limits, STRANGER, "bad hello", capsys)
    assert said == f"{STRANGER} bad hello; {limits.place.nodes}: cannot be read: No such file or directory\n"


def test_hands_are_shaken_before_the_answer_and_the_connection_is_closed_after_it(
    limits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[Any] = []
    secured = SimpleNamespace(unwrap=lambda: order.append("unwrap"), close=lambda: order.append("close"))

    def wrap(request: Any, server_side: bool) -> Any:
        order.append(("wrap", server_side))
        return secured

    def finish(server: Any, request: Any, address: Any) -> None:
        order.append("answer over TLS" if request is secured else "answer")

    monkeypatch.setattr(web.HTTPServer, "finish_request", finish)
    for context in (None, SimpleNamespace(wrap_socket=wrap)):
        server = web.Server(("127.0.0.1", 0), limits, context)
        assert server.tls is (context is not None)
        server.finish_request(None, (NODE, 1))
        server.server_close()
    assert order == ["answer", ("wrap", True), "answer over TLS", "unwrap", "close"]
    for error in (OSError("gone"), ValueError("closed")):

        def gone(error: Exception = error) -> None:
            raise error

        secured.unwrap = gone
        server = web.Server(("127.0.0.1", 0), limits, SimpleNamespace(wrap_socket=wrap))
        server.finish_request(None, (NODE, 1))
        server.server_close()
        assert order[-2:] == ["answer over TLS", "close"]


def test_every_address_listens_on_both_ports(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place.listen, place.port, place.tls_port = ["127.0.0.1", "127.0.0.2"], 0, 0
    monkeypatch.setattr(web, "context_of", lambda place: "a context")
    found = web.servers(place)
    assert [(one.server_address[0], one.tls) for one in found] == [
        ("127.0.0.1", False), ("127.0.0.1", True), ("127.0.0.2", False), ("127.0.0.2", True)
    ]  # fmt: skip
    assert len({id(one.limits) for one in found}) == 1  # the same connections, refusals and lines are counted
    assert [(one.server_name, one.server_port) for one in found] == [one.server_address[:2] for one in found]
    place.listen, place.port = ["127.0.0.1"], found[0].server_port
    with pytest.raises(common.Problem) as taken:
        web.servers(place)
    assert str(taken.value) == f"127.0.0.1 port {place.port}: cannot listen: Address already in use"
    for one in found:
        one.server_close()


def test_without_a_certificate_there_is_no_tls(place: Any, tmp_path: Path) -> None:
    both = f"{place.certificate}, {place.private_key}: no certificate for TLS"
    with pytest.raises(common.Problem) as gone:
        web.context_of(place)
    assert str(gone.value) == f"{both}: No such file or directory"
    for path in (place.certificate, place.private_key):
        Path(path).write_text("none")
    with pytest.raises(common.Problem) as wrong:
        web.context_of(place)
    assert str(wrong.value).startswith(both + ": ")


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool) -> None:
    where = f"\0hal-{os.getpid()}-{tmp_path.name}" if abstract else str(tmp_path / "n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(where)
        systemd.settimeout(120)
        monkeypatch.setenv("NOTIFY_SOCKET", where.replace("\0", "@"))
        web.tell_ready()
        assert systemd.recv(64) == b"READY=1"
        systemd.setblocking(False)
        with pytest.raises(BlockingIOError):
            systemd.recv(64)
    assert "NOTIFY_SOCKET" not in os.environ  # no child tells it
    web.tell_ready()


def test_it_is_ready_when_every_place_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    others = [threading.Event(), threading.Event()]

    def first() -> None:
        assert all(one.wait(600) for one in others)
        order.append("first")

    def listen(place: Any) -> list[Any]:
        order.append("listen")
        limits = SimpleNamespace(watch=others[0].set)
        return [SimpleNamespace(serve_forever=first, limits=limits), SimpleNamespace(serve_forever=others[1].set)]

    monkeypatch.setattr(web, "servers", listen)
    monkeypatch.setattr(web, "tell_ready", lambda: order.append("ready"))
    web.serve(None)
    assert order == ["listen", "ready", "first"]
