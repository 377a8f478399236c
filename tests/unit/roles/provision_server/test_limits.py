"""What one who asks may take of the server: nothing from anybody else, whatever is sent and however slowly."""

from __future__ import annotations

import contextlib
import importlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.hal_cluster.provision.conftest import node
from tests.unit.interpreters import EVERY, interpreter
from tests.unit.roles.provision_server.test_server import (
    FIRST,
    OWN_THREADS,
    PORT,
    SECOND,
    SERVER,
    STRANGER,
    TLS_PORT,
    Running,
)
from tests.unit.roles.provision_server.test_server import running as running  # a fixture
from tests.unit.roles.provision_server.test_store import WORDS, settings_of

common: Any = importlib.import_module("provision_common")
web: Any = importlib.import_module("provision_http")
limited: Any = importlib.import_module("provision_limits")
store: Any = importlib.import_module("provision_store")
EACH = 8
HANGS = 600  # seconds: for what comes at once
MB = 1024 * 1024
MOST_MEMORY = 64 * 1024  # kB: idle it has 16000, of a 3.11 of this machine 25000


def connect(source: str, port: int = PORT) -> socket.socket:
    return socket.create_connection((SERVER, port), timeout=HANGS, source_address=(source, 0))


def secured(running: Running, source: str) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(running.folder / "tls.pem"))
    return context.wrap_socket(connect(source, TLS_PORT), server_hostname=SERVER)


def is_ended(link: socket.socket) -> bool:
    """Wait until the server has ended a connection without a word; False when it says something."""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        return link.recv(1) == b""
    return True


def answer(link: socket.socket) -> bytes:
    """All that the server says until it ends the connection."""
    said = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while part := link.recv(65536):
            said += part
    return said


def heard(running: Running, words: str) -> list[str]:
    """The lines of the journal that have these words, when there are any."""
    end = time.monotonic() + HANGS
    while time.monotonic() < end:
        if found := [line for line in running.journal().splitlines() if words in line]:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{words}: not in the journal:\n{running.journal()}")


# ---------------------------------------------------------------- connections


def test_500_slow_connections_of_one_address_leave_another_its_answers(running: Running) -> None:
    slow = [connect(FIRST) for _ in range(500)]
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.1):
            for link in slow:
                with contextlib.suppress(OSError):
                    link.sendall(b"x")

    for link in slow:
        with contextlib.suppress(OSError):
            link.sendall(b"GET /boot/hal05 HTTP/1.0\r\nX: ")
    thread = threading.Thread(target=drip)
    thread.start()
    try:
        assert is_ended(slow[-1])  # all before it were taken, or ended
        for tls in (False, True):
            assert running.ask(SECOND, "/boot/hal06", tls=tls)[0] == 200
            assert running.ask(STRANGER, "/health", tls=tls) == (200, b"ok\n")
        assert running.figures("Threads")[0] < EACH + OWN_THREADS + 17  # those that just end
        assert running.figures("VmHWM")[0] < MOST_MEMORY
    finally:
        over.set()
        thread.join()
    said = [line for line in running.journal().splitlines() if "at once" in line]
    assert said == [f"{FIRST} more than 8 connections at once; closed"] * 3  # the first, the tenth, the hundredth
    assert [one.get("times", 1) for one in running.refused()] == [1, 10, 100]
    assert {one["result"] for one in running.refused()} == {"too many connections at once"}


@pytest.mark.parametrize("tls", [False, True])
def test_there_is_room_again_when_one_is_closed(running: Running, tls: bool) -> None:
    held = [secured(running, FIRST) if tls else connect(FIRST) for _ in range(EACH)]
    assert is_ended(connect(FIRST))
    assert is_ended(connect(FIRST, TLS_PORT))  # both ports have one share
    held[3].close()
    end = time.monotonic() + HANGS
    while True:  # its thread has to hear of it first
        try:
            assert running.ask(FIRST, "/boot/hal05", tls=tls)[0] == 200
            break
        except OSError:
            assert time.monotonic() < end


def test_strangers_have_one_share_and_this_machine_its_own(tmp_path: Path) -> None:
    place = common.Place(
        str(settings_of(tmp_path, [node("hal05", 5, addresses={"management": FIRST})], listen=["::1"]))
    )
    limits = web.Limits(place)
    assert [limits.share(one) for one in (FIRST, SECOND, STRANGER, "::1")] == ["hal05", None, None, "::1"]
    place.nodes += ".gone"
    assert [limits.share(one) for one in (FIRST, STRANGER, "::1")] == [None, None, "::1"]
    ends = [socket.socketpair() for _ in range(2 * EACH + 1)]
    taken = [limits.connections.enter(None, one) for one, _ in ends]
    assert [one is not None for one in taken] == [True] * EACH + [False] * (EACH + 1)
    assert limits.connections.enter("hal05", ends[-1][0])
    for one in taken[:EACH]:
        limits.connections.leave(one)
    assert limits.connections.enter(None, ends[0][0])
    assert list(limits.connections._open) == ["hal05", None]  # and nothing is kept of who has gone


def test_without_a_thread_the_room_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = common.Place(str(settings_of(tmp_path, [])))
    server = web.Server(("127.0.0.1", 0), web.Limits(place))

    def none(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(web, "_start", none)
    for _ in range(2 * EACH):
        with pytest.raises(RuntimeError, match="new thread"):
            server.process_request(socket.socketpair()[0], (STRANGER, 1))
    server.server_close()


# ---------------------------------------------------------------- size


@pytest.mark.parametrize(
    "head", [b"GET /", b"GET /boot/hal05 HTTP/1.0\r\nX: ", b"GET /boot/hal05 HTTP/1.0\r\nX: y\r\n"]
)
@pytest.mark.parametrize("line", [b"x" * MB, b"x: y\r\n" * (MB // 6)])
def test_a_head_of_200_MB_is_refused_and_costs_nothing(running: Running, head: bytes, line: bytes) -> None:
    link = connect(FIRST)
    sent = 0
    with contextlib.suppress(ConnectionError):
        link.sendall(head)
        while sent < 200 * MB:
            link.sendall(line)
            sent += len(line)
    assert sent < 200 * MB
    assert answer(link)[:12] in (b"HTTP/1.0 431", b"HTTP/1.0 414", b"HTTP/1.0 400", b"")  # b"": lost with the rest
    assert running.ask(FIRST, "/boot/hal05")[0] == 200
    assert running.figures("VmHWM")[0] < MOST_MEMORY


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 431)])
def test_a_head_has_8_kB_and_not_a_byte_more(running: Running, more: int, status: int) -> None:
    head = b"GET /boot/hal05 HTTP/1.0\r\nX: "
    head += b"y" * (8192 - len(head) - 4 + more) + b"\r\n\r\n"
    link = connect(FIRST)
    link.sendall(head)
    said = answer(link)
    assert said.startswith(b"HTTP/1.0 %d" % status)
    if more:
        assert b"Content-Length: 0\r\n" in said


def test_a_head_that_ends_early_is_not_answered(running: Running) -> None:
    for head in (b"GET /boot/hal05", b"GET /boot/hal05 HTTP/1.0\r\n", b"GET /boot/hal05 HTTP/1.0\r\nX: y\r\n"):
        link = connect(FIRST)
        link.sendall(head)
        link.shutdown(socket.SHUT_WR)
        assert answer(link) == b""
    assert heard(running, "it ended within its headers")


# ---------------------------------------------------------------- the token, then the body


def begin_to_post(running: Running, purpose: str, token: str, length: int) -> ssl.SSLSocket:
    link = secured(running, FIRST)
    link.sendall(
        f"POST /node/hal05/{purpose} HTTP/1.0\r\nX-HAL-Token: {token}\r\nContent-Length: {length}\r\n\r\n".encode()
    )
    return link


@pytest.mark.parametrize("purpose", ["begin", "secrets", "stop", "call-home"])
def test_without_the_token_no_byte_of_the_body_is_waited_for(running: Running, purpose: str) -> None:
    running.arm()
    for length in (1, 65536, 10**9, -1):
        said = answer(begin_to_post(running, purpose, "guess", length))
        assert said.startswith(b"HTTP/1.0 403")
        assert said.endswith(b"\r\n\r\nrefused\n")
    for length in (65537, 10**9, -1):
        said = answer(begin_to_post(running, purpose, WORDS, length))
        assert (said[:12], said[-4:]) == (b"HTTP/1.0 413", b"\r\n\r\n")


def test_a_refusal_is_heard_whatever_is_still_sent(running: Running) -> None:
    running.arm()
    for token, status in (("guess", 403), (WORDS, 413)):
        done = running.ask(FIRST, "/node/hal05/stop", tls=True, method="POST", token=token, body=b"y" * 500_000)
        assert done[0] == status


def test_a_body_that_ends_early_is_not_acted_on(running: Running) -> None:
    running.arm()
    link = begin_to_post(running, "call-home", WORDS, 10)
    link.sendall(b"insta")
    link.unwrap()
    link.close()
    assert heard(running, "it ended within its body")
    found = json.loads(running.call("status", "hal05").stdout)["nodes"]["hal05"]
    assert (found["armed"], found["called"]) == (True, None)


def test_what_a_node_says_when_it_is_installed_fills_no_status(running: Running) -> None:
    """64 kB of nested JSON, each line with its blanks before it, are 25 MB."""
    running.arm()
    said = "[" * 800 + "0," * 31000 + "0" + "]" * 800
    done = running.ask(FIRST, "/node/hal05/call-home", tls=True, method="POST", token=WORDS, body=said)
    assert done == (200, b"ok\n")
    shown = running.call("status").stdout
    assert sorted(json.loads(shown)["nodes"]) == ["hal05", "hal06"]
    assert len(shown) < 10_000


# ---------------------------------------------------------------- time


@pytest.fixture(params=EVERY)
def hasty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    """One that gives a second. What is asked of it here is never answered in time, however fast it is."""
    made = Running(tmp_path, interpreter(request.param), request_seconds=1)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def drip(link: socket.socket, first: bytes) -> None:
    """Send a byte now and then, until nobody takes it any more."""
    link.sendall(first)
    end = time.monotonic() + HANGS
    with contextlib.suppress(ConnectionError):
        while time.monotonic() < end:
            link.sendall(b"x")
            time.sleep(0.1)
        raise AssertionError("it is still open")


HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # of 512 bytes, which come one by one


@pytest.mark.parametrize(
    ("port", "first"),
    [
        (PORT, b"G"),
        (PORT, b"GET /boot/hal05 HTTP/1.0\r\nX: "),
        (PORT, b"POST /x HTTP/1.0\r\nContent-Length: 100000\r\n\r\n"),  # refused; the rest is thrown away
        (TLS_PORT, HELLO),
    ],
)
def test_who_sends_a_byte_now_and_then_is_ended(hasty: Running, port: int, first: bytes) -> None:
    drip(connect(FIRST, port), first)
    assert heard(hasty, "not done") == [f"{FIRST} not done within 1 s"]


def test_who_says_nothing_is_ended(hasty: Running) -> None:
    for port in (PORT, TLS_PORT):
        assert is_ended(connect(FIRST, port))


def test_answers_that_nobody_takes_cost_what_the_unit_grants_for_them(running: Running) -> None:
    """Of all nodes at once: else the kernel ends the service, and nobody is served."""
    running.arm()
    order = json.loads((running.folder / "state/armed/hal05").read_text())
    order["files"]["large"] = "x" * (store.MOST_ORDER - 10_000)
    (running.folder / "state/armed/hal05").write_text(json.dumps(order))
    assert running.ask(FIRST, "/node/hal05/large")[0] == 200
    before, held = running.figures("VmHWM")[0], []
    for _ in range(EACH):
        link = socket.socket()
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.bind((FIRST, 0))
        link.connect((SERVER, PORT))
        link.sendall(b"GET /node/hal05/large HTTP/1.0\r\n\r\n")
        held.append(link)
    assert [link.recv(8) for link in held] == [b"HTTP/1.0"] * EACH
    assert (running.figures("VmHWM")[0] - before) / EACH < 512  # kB: roles/provision_server/vars/main.yml


def test_who_takes_no_answer_is_ended(hasty: Running) -> None:
    hasty.arm()
    order = json.loads((hasty.folder / "state/armed/hal05").read_text())
    order["files"]["large"] = "x" * (16 * MB)  # more than both ends keep
    (hasty.folder / "state/armed/hal05").write_text(json.dumps(order))
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.bind((FIRST, 0))
    link.connect((SERVER, PORT))
    link.sendall(b"GET /node/hal05/large HTTP/1.0\r\n\r\n")
    assert heard(hasty, "not done within 1 s")
    assert len(answer(link)) < 16 * MB


# ---------------------------------------------------------------- whatever is sent

WORD = st.sampled_from(
    [b"GET", b"HEAD", b"POST", b"PUT", b"/", b"/health", b"/boot/hal05", b"/node/hal05/stop", b"HTTP/1.0", b"HTTP/1.1",
     b"HTTP/9", b"\r\n", b"\n", b"\r", b" ", b":", b"\x00", b"\x1b[2J", b"\xff", b"\xe2\x80\xae", b"%00",
     b"X-HAL-Token: x", b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Expect: 100-continue",
     b"Connection: keep-alive"]
)  # fmt: skip
SENT = st.lists(WORD | st.binary(max_size=20), max_size=30).map(b"".join) | st.binary(max_size=200)
ENDINGS = st.sampled_from([b"", b"\r\n\r\n", b" HTTP/1.0\r\n\r\n"])
ANSWERS = (b"HTTP/1.0 ", b"ok\n", b"# hal05")  # what HTTP/0.9 asks for has no head


def test_whatever_is_sent_gets_a_short_answer_or_none(running: Running) -> None:
    @settings(max_examples=60)
    @given(SENT, ENDINGS)
    def check(sent: bytes, ending: bytes) -> None:
        link = connect(FIRST)
        with contextlib.suppress(ConnectionError):
            link.sendall(sent + ending)
            link.shutdown(socket.SHUT_WR)
        said = answer(link)
        link.close()
        assert said == b"" or said.startswith(ANSWERS)
        if said.startswith((b"HTTP/1.0 4", b"HTTP/1.0 5")):
            assert b"\r\nContent-Length: 0\r\n" in said
            assert len(said) < 200

    check()
    assert running.ask(SECOND, "/boot/hal06")[0] == 200
    lines = running.journal().splitlines()
    assert all(line.isprintable() and len(line) <= limited.MOST_LETTERS for line in lines)
    assert not [line for line in lines if "Traceback" in line or "Warning" in line]
    assert running.figures("VmHWM")[0] < MOST_MEMORY


# ---------------------------------------------------------------- the journal


def test_what_one_has_asked_for_is_in_the_journal_some_times_a_minute(running: Running) -> None:
    began = time.monotonic()
    for _ in range(200):
        assert running.ask(FIRST, "/boot/hal05")[0] == 200
    minutes = int((time.monotonic() - began) // 60) + 2  # that it was in, or less
    assert running.ask(SECOND, "/boot/hal06")[0] == 200
    lines = running.journal().splitlines()
    assert len([line for line in lines if line.startswith(FIRST)]) <= 60 * minutes
    assert f'{SECOND} "GET /boot/hal06 HTTP/1.1" 200 -' in lines


Said = Callable[..., list[str]]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Said:
    """Return a function that has a journal write lines, (when, whose, what), and returns those that were written."""

    def written(*lines: tuple[float, str | None, str]) -> list[str]:
        found: list[str] = []
        monkeypatch.setattr(limited, "say", found.append)
        journal = limited.Journal()
        for line in lines:
            journal.say(*line)
        return found

    return written


def test_lines_are_counted_by_share_and_anew_each_minute(said: Said) -> None:
    many = [(at / 10, None, f"{at}") for at in range(70)]
    kept = [f"{at}" for at in range(60)] + ["strangers: more than 60 lines a minute; the others are left out"]
    assert said(*many) == kept
    assert said(*many, (8, "hal05", "x"), (59.9, None, "y"), (60, None, "z")) == [*kept, "x", "z"]
    assert said(*many, (-1, None, "the clock went back")) == [*kept, "the clock went back"]


@example("x" * 400)
@given(st.text(max_size=400) | st.binary(max_size=400))
def test_a_line_is_one_line_of_letters_and_short(words: str | bytes) -> None:
    found: list[str] = []
    journal = limited.Journal()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limited, "say", found.append)
        journal.say(0, None, words)
    (line,) = found
    assert len(line) <= limited.MOST_LETTERS
    assert len(line.splitlines()) <= 1
    line.encode()


def test_a_watch_ends_what_is_late_and_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    times = [100.0]
    monkeypatch.setattr(limited, "clock", lambda: times[0])
    connections = limited.Connections(2, 10)
    pairs = [socket.socketpair() for _ in range(2)]
    early = connections.enter("hal05", pairs[0][0])
    times[0] = 105.0
    connections.enter("hal05", pairs[1][0])
    for now, late in ((109.9, False), (110.0, True)):
        times[0] = now
        connections.end_late()
        assert early.late is late
    assert pairs[0][1].recv(1) == b""
    pairs[1][1].setblocking(False)
    with pytest.raises(BlockingIOError):
        pairs[1][1].recv(1)
    pairs[1][1].close()
    times[0] = 200.0
    connections.end_late()  # who has gone is no error
