"""A new password, a certificate and a time server where the BMC fails on the way: what is said, and what is ended."""

from __future__ import annotations

import socket
import ssl
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import pytest

from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import Clock, Power, Target
from hal_cluster.bmc.operations import Limits, change_password
from hal_cluster.bmc.protocol import Bmc
from hal_cluster.bmc.retry import Patience
from hal_cluster.bmc.settings import set_clock, set_ntp, shown_certificate
from tests.unit.authority import make
from tests.unit.hal_cluster.bmc.emulated import NOT_PATIENT

TARGET = Target("hal05", "openbmc", "127.0.0.1", "root", "", timeout_seconds=60)
NOON = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)


class Client:
    """A client of a BMC: each method answers, or raises what it was given for it."""

    def __init__(self, **said: Any) -> None:
        self.target, self.said, self.asked = TARGET, said, list[str]()

    def _answer(self, name: str) -> Any:
        self.asked.append(name)
        answer = self.said.get(name)
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def change_password(self, new: str) -> None:
        assert new == "new one"
        self._answer("change_password")

    def power(self) -> Any:
        return self._answer("power")

    def clock(self) -> Any:
        return self._answer("clock")

    def set_ntp(self, servers: Any) -> None:
        self._answer("set_ntp")

    def set_clock(self, now: Any) -> None:
        self._answer("set_clock")

    def close(self) -> None:
        self.asked.append("close")


def failure(answer: str, fault: Fault) -> BmcError:
    return BmcError("hal05 (127.0.0.1)", "something", answer, fault)


def changed(first: Client, second: Client) -> bool:
    return change_password(cast(Bmc, first), lambda: cast(Bmc, second), "new one", NOT_PATIENT)


def test_a_password_is_changed_when_the_new_one_lets_in() -> None:
    first, second = Client(), Client(power=Power.ON)
    assert changed(first, second) is True
    assert (first.asked, second.asked) == (["change_password", "close"], ["power", "close"])


@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.BUSY])
def test_no_answer_to_a_change_is_settled_by_the_login(fault: Fault) -> None:
    first, second = Client(change_password=failure("no answer", fault)), Client(power=Power.OFF)
    assert changed(first, second) is True
    refused = Client(power=failure("wrong", Fault.LOGIN))
    with pytest.raises(BmcError) as caught:
        changed(first, refused)
    assert str(caught.value) == (
        "BMC of hal05 (127.0.0.1): a new password for root: it answered: no answer, and then did not let us in with it:"
        " wrong"
    )
    assert (caught.value.fault, first.asked[-1], refused.asked) == (Fault.LOGIN, "close", ["power", "close"])


def test_a_refusal_is_the_end_and_the_session_s() -> None:
    first, second = Client(change_password=failure("too short", Fault.REFUSED)), Client()
    with pytest.raises(BmcError, match="too short"):
        changed(first, second)
    assert (first.asked, second.asked) == (["change_password", "close"], [])


def test_a_yes_that_does_not_let_in_is_said() -> None:
    with pytest.raises(BmcError) as caught:
        changed(Client(), Client(power=failure("wrong", Fault.LOGIN)))
    assert caught.value.answer == "it said yes, and then did not let us in with it: wrong"


ASIDE = Clock(NOON, True, ("10.0.0.12",))


@pytest.mark.parametrize(
    ("clock", "servers", "changes"),
    [
        (ASIDE, ["10.0.0.12"], False),
        (ASIDE, ["10.0.0.11"], True),
        (ASIDE, [], True),
        (Clock(NOON, False, ("10.0.0.12",)), [], False),
        (Clock(NOON, None, ()), [], False),
    ],
)
def test_a_check_changes_nothing_and_says_whether_it_would(clock: Clock, servers: list[str], changes: bool) -> None:
    client = Client(clock=clock)
    assert set_ntp(cast(Bmc, client), servers, NOT_PATIENT, check=True) is changes
    assert client.asked == ["clock"]


def test_time_servers_are_set_once_and_read_again() -> None:
    client = Client(clock=[ASIDE, Clock(NOON, True, ("10.0.0.11",))])
    assert set_ntp(cast(Bmc, client), ["10.0.0.11"], NOT_PATIENT, check=False) is True
    assert client.asked == ["clock", "set_ntp", "clock"]


def test_a_clock_that_is_right_is_left_alone() -> None:
    client = Client(clock=Clock(datetime.now(timezone.utc) + timedelta(seconds=200), None, ()))
    assert set_clock(cast(Bmc, client), 300, NOT_PATIENT, check=False) is False
    assert client.asked == ["clock"]
    assert set_clock(cast(Bmc, client), 1, NOT_PATIENT, check=True) is True
    assert client.asked == ["clock", "clock"]


def test_an_authority_that_is_no_file_is_a_fault_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(BmcError) as caught:
        shown_certificate(TARGET, str(tmp_path / "none"), [], 30)
    assert str(caught.value) == (
        f"BMC of hal05 (127.0.0.1): its certificate: {tmp_path / 'none'}: No such file or directory"
    )
    assert caught.value.fault is Fault.CONFIGURATION


@pytest.mark.parametrize(
    ("error", "said", "fault"),
    [
        (TimeoutError(), "no answer", Fault.SILENT),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused", Fault.SILENT),
        (OSError("odd"), "odd", Fault.SILENT),
    ],
)
def test_who_does_not_answer_shows_no_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str, fault: Fault
) -> None:
    make(tmp_path / "ca")

    def connect(address: object, timeout: float) -> Any:
        assert (address, timeout) == (("127.0.0.1", 443), 60)
        raise error

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(BmcError) as caught:
        shown_certificate(TARGET, str(tmp_path / "ca" / "tls_ca.pem"), [], 30)
    assert (caught.value.answer, caught.value.fault) == (said, fault)


def test_what_speaks_no_tls_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "ca")
    wrong = ssl.SSLError(1, "wrong version number")
    wrong.reason = "WRONG_VERSION_NUMBER"

    def refuse(*_: object, **__: object) -> Any:
        raise wrong

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", refuse)
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = replace(TARGET, https_port=server.getsockname()[1])
        with pytest.raises(BmcError) as caught:
            shown_certificate(target, str(tmp_path / "ca" / "tls_ca.pem"), [], 30)
    assert (caught.value.answer, caught.value.fault) == ("TLS failed: WRONG_VERSION_NUMBER", Fault.REFUSED)


def test_how_long_is_waited_when_nobody_says_other() -> None:
    limits = Limits()
    assert [one.seconds for one in (limits.answers, limits.power, limits.shut_down)] == [60, 180, 600]
    assert (Patience().first, Patience().factor, Patience().longest) == (1, 2, 10)


class Time:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now, self.waited = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds


def test_pauses_grow_up_to_the_longest_and_none_goes_beyond_the_end() -> None:
    time = Time()
    patience = Patience(seconds=30, sleep=time.sleep, monotonic=lambda: time.now)
    asked = Client(power=failure("no answer", Fault.SILENT))
    with pytest.raises(BmcError) as caught:
        patience.again(asked.power)
    assert time.waited == [1, 2, 4, 8, 10]
    assert caught.value.answer == "no answer; asked 6 times within 30 s"

    time = Time()
    patience = Patience(seconds=15, sleep=time.sleep, monotonic=lambda: time.now)
    assert patience.until(Client(power=Power.OFF).power, lambda power: power is Power.ON) == (Power.OFF, None)
    assert time.waited == [1, 2, 4]


def test_a_pause_that_would_end_at_the_end_is_not_made() -> None:
    time = Time()
    patience = Patience(seconds=1, sleep=time.sleep, monotonic=lambda: time.now)
    with pytest.raises(BmcError) as caught:
        patience.again(Client(power=failure("no answer", Fault.BUSY)).power)
    assert (caught.value.answer, time.waited) == ("no answer", [])
    error = failure("no answer", Fault.SILENT)
    assert patience.until(Client(power=error).power, lambda _: True) == (None, error)
    with pytest.raises(BmcError, match="wrong"):
        patience.until(Client(power=failure("wrong", Fault.LOGIN)).power, lambda _: True)
