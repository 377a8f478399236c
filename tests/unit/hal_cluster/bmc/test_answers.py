"""A BMC that answers without an end: no more of it is read than an honest one says, and the failure is one line."""

from __future__ import annotations

import gzip
import io
import itertools
import json
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from hal_cluster.bmc import connection, console
from hal_cluster.bmc.answers import AnswerError, read
from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.tls import BelievingAdapter
from hal_inventory.bounded import MOST_ANSWER
from tests.unit.hal_cluster.audit.bombs import gzipped, nested, refused, within
from tests.unit.hal_cluster.bmc.talking import NAME, PINNED, Answer, client, link
from tests.unit.hal_cluster.bmc.test_faults import failure

MORE = "more than 16 MiB: not read"


def answer(body: bytes, packing: str = "") -> requests.Response:
    """An answer as requests' adapter has it before somebody reads it."""
    headers = {"Content-Encoding": packing} if packing else {}
    made = requests.Response()
    made.raw = urllib3.HTTPResponse(io.BytesIO(body), headers, 200, preload_content=False, decode_content=False)
    made.headers.update(headers)
    made.status_code = 200
    return made


def test_an_answer_is_read_to_a_length() -> None:
    assert read(answer(b'{"a": 1}')) == b'{"a": 1}'
    assert read(answer(gzip.compress(b'{"a": 1}'), "gzip")) == b'{"a": 1}'
    assert refused(lambda: read(answer(b"a" * (MOST_ANSWER + 1))), AnswerError) == MORE
    assert refused(lambda: read(answer(gzipped(), "gzip")), AnswerError) == MORE


@pytest.mark.parametrize("packing", ["gzip, gzip", "br", "zstd", "compress", "GZIP,identity"])
def test_what_is_packed_otherwise_is_not_unpacked(packing: str) -> None:
    said = refused(lambda: read(answer(gzipped(), packing)), AnswerError)
    assert said == "an answer that is packed in a way that nobody asked for: not read"


def test_each_answer_over_https_is_read_so(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = iter([answer(b'{"a": 1}'), answer(gzipped(), "gzip")])
    monkeypatch.setattr(HTTPAdapter, "send", lambda self, request, **keywords: next(bodies))
    adapter = BelievingAdapter(PINNED)
    found = adapter.send(requests.Request("GET", "https://10.0.0.5/x").prepare(), stream=False)
    assert (found.content, found.json()) == (b'{"a": 1}', {"a": 1})
    refused(lambda: adapter.send(requests.Request("GET", "https://10.0.0.5/x").prepare()), AnswerError)


def test_what_was_not_read_is_a_failure_of_one_line() -> None:
    made = connection.Connection(PINNED)._transport(AnswerError(MORE))
    assert (str(made), made.fault) == (f"{NAME}: login: {MORE}", Fault.REFUSED)


def test_data_nested_too_deeply_is_refused() -> None:
    deep: Any = []
    for _ in range(60):
        deep = [deep]
    error = failure(lambda: client({"/x": Answer({"a": deep})})[0].connection.get("/x"))
    assert error.answer == "200, and data nested deeper than 50 levels: not read"


class Parsed(Answer):
    """One whose body is read as requests does it."""

    def json(self) -> Any:
        return json.loads(self.content)


def test_data_that_nobody_can_read_is_refused() -> None:
    deepest = Parsed(content=nested(1_000_000))
    error = failure(lambda: client({"/x": deepest})[0].connection.get("/x"))
    assert (error.answer, error.fault) == ("200, and not with JSON", Fault.REFUSED)
    deepest.request, deepest.status_code = SimpleNamespace(method="POST"), 201  # type: ignore[attr-defined]
    heard = connection.Connection(PINNED)
    heard._heard(deepest)
    assert heard.password_change_at == ""


def test_a_list_without_an_end_is_refused() -> None:
    members = [{**link("/m"), "Id": "m"}] * 400
    pages = {f"/{n}": {"Members": members, "Members@odata.nextLink": f"/{n + 1}"} for n in range(40)}
    found, service = client(pages)
    error = failure(lambda: found.connection.members(pages["/0"]))
    assert error.answer == "a list of more than 10,000 entries, which may never end"
    assert len(service.sent) < 30


def test_of_a_console_that_never_stops_the_last_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = itertools.chain((b"%07d\n" % n * 8192 for n in range(2000)), [b"the end\n", b""])
    channel = SimpleNamespace(settimeout=lambda seconds: None, recv=lambda size: next(chunks))
    with within(8 * 1024 * 1024):
        text = console._read(channel, 600)
    assert len(text) == 1024 * 1024
    assert text.endswith("the end\n")


def test_what_a_bmc_says_is_printable_in_an_error() -> None:
    error = BmcError("hal05", "its name", "a\x1b[2J\nb\x9b\u202e", Fault.REFUSED)
    assert str(error) == r"BMC of hal05: its name: a\x1b[2J b\x9b\u202e"
    assert error.answer == r"a\x1b[2J b\x9b\u202e"
