"""What is asked over IPMI, byte by byte, what is made of it, and what each failure of pyghmi is taken for."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pyghmi.exceptions
import pyghmi.ipmi.command
import pyghmi.ipmi.fru
import pyghmi.ipmi.private.session
import pytest

from hal_cluster.bmc.errors import Fault
from hal_cluster.bmc.ipmi import Ipmi
from hal_cluster.bmc.models import Clock, Command, Firmware, Identity, Power, Sensor, Target
from tests.unit.hal_cluster.bmc.test_faults import failure
from tests.unit.hal_cluster.bmc.test_ipmi_answers import Answers, accounts, bmc, refusing

NAME = "BMC of hal-data (10.0.0.5)"
FRU_SIZE, FRU_PART, MAC = (0x0A, 0x10), (0x0A, 0x11), (0x0C, 2)
NO_MAC = {MAC: refusing("Invalid command", 0xC1)}


def saying(*data: int) -> Callable[[Sequence[int]], bytes]:
    return lambda _: bytes(data)


def raising(error: Exception) -> Callable[[Sequence[int]], bytes]:
    def fail(_: Sequence[int]) -> bytes:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "fault", "words", "ends"),
    [
        *(
            (pyghmi.exceptions.IpmiException(text), Fault.SILENT, "power state: no answer", True)
            for text in ("Timeout", "Session no longer connected", "failed to initialize", "Disconnected", "", None)
        ),
        (pyghmi.exceptions.PyghmiException(), Fault.SILENT, "power state: no answer", True),
        *(
            (
                pyghmi.exceptions.IpmiException(text),
                Fault.LOGIN,
                f"login of ADMIN: {text}. User or password is wrong, or the account is locked: it is not tried again",
                True,
            )
            for text in ("Incorrect password", "Unauthorized name", "no privilege", "RAKP 4", "Invalid role")
        ),
        *(
            (
                pyghmi.exceptions.IpmiException(text, code),
                Fault.UNSUPPORTED,
                f"power state: {text} (0x{code:02x})",
                False,
            )
            for text, code in (("x", 0xC1), ("x", 0xCB), ("x", 0xCC), ("x", 0xD6))
        ),
        (
            pyghmi.exceptions.IpmiException("Insufficient\n privilege", 0xD4),
            *(Fault.REFUSED, "power state: Insufficient privilege (0xd4)", False),
        ),
        (
            pyghmi.exceptions.IpmiException("Unable to transmit to it"),
            *(Fault.SILENT, "power state: its address is unknown", False),
        ),
        (pyghmi.exceptions.IpmiException("odd"), Fault.REFUSED, "power state: odd", False),
        (
            OSError(errno.ENETUNREACH, "Network is unreachable"),
            *(Fault.SILENT, "power state: no way to it: Network is unreachable", True),
        ),
        (OSError("odd"), Fault.SILENT, "power state: no way to it: odd", True),
    ],
)
def test_a_failure_is_known_by_its_words(error: Exception, fault: Fault, words: str, ends: bool) -> None:
    client, session = bmc({(0, 1): raising(error)})
    told = failure(client.power)
    assert (str(told), told.fault) == (f"{NAME}: {words}", fault)
    assert client._session is (None if ends else session), "a session that broke is begun anew"


def test_a_session_is_begun_with_what_the_target_says(monkeypatch: pytest.MonkeyPatch) -> None:
    _, session = bmc({(0, 1): saying(1)})
    begun: list[dict[str, Any]] = []

    def begin(**words: Any) -> Any:
        begun.append(words)
        return session

    monkeypatch.setattr(pyghmi.ipmi.command, "Command", begin)
    others = {("10.0.0.5", "ADMIN"): 1, ("10.0.0.6", "ADMIN"): 2}
    monkeypatch.setattr(pyghmi.ipmi.private.session.Session, "initting_sessions", others)
    client = Ipmi(Target("hal-data", "ipmi", "10.0.0.5", "ADMIN", "x" * 20, ipmi_port=6230))
    assert (client.power(), client.power()) == (Power.ON, Power.ON)
    words = {"bmc": "10.0.0.5", "userid": "ADMIN", "password": "x" * 20, "port": 6230, "keepalive": False}
    assert begun == [words], "one session for both"
    assert others == {("10.0.0.6", "ADMIN"): 2}


def test_a_password_that_has_no_place_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyghmi.ipmi.command, "Command", lambda **_: pytest.fail("a session was begun"))
    error = failure(Ipmi(Target("hal-data", "ipmi", "10.0.0.5", "ADMIN", "ü" * 10 + "x")).power)
    assert str(error) == f"{NAME}: login of ADMIN: its password is longer than the 20 bytes that IPMI has"
    assert error.fault is Fault.CONFIGURATION


@pytest.mark.parametrize("error", [None, pyghmi.exceptions.IpmiException("timeout"), OSError("gone")])
def test_a_session_is_ended_once_whatever_comes_of_it(error: Exception | None) -> None:
    ends: list[str] = []

    def logout() -> None:
        ends.append("logout")
        if error:
            raise error

    client = Ipmi(Target("hal-data", "ipmi", "10.0.0.5", "ADMIN", ""))
    client._session = SimpleNamespace(ipmi_session=SimpleNamespace(logout=logout))
    client.close()
    client.close()
    assert ends == ["logout"]


@pytest.mark.parametrize(("byte", "power"), [(0x01, Power.ON), (0x61, Power.ON), (0x60, Power.OFF)])
def test_power_is_one_bit(byte: int, power: Power) -> None:
    assert bmc({(0, 1): saying(byte, 1, 2)})[0].power() is power


def test_each_command_has_its_number() -> None:
    client, session = bmc({(0, 2): saying()})
    for command in (Command.FORCE_OFF, Command.ON, Command.SHUT_DOWN):
        client.command(command)
    assert session.sent == [(0, 2, [0]), (0, 2, [1]), (0, 2, [5])]


def read_fru(monkeypatch: pytest.MonkeyPatch, info: Any, *size: int, **answers: Any) -> tuple[Any, Any, bytes]:
    """Return (who it is, what was sent, what was read of FRU 0)."""
    seen: list[bytes] = []

    def parsed(rawdata: bytearray) -> Any:
        seen.append(bytes(rawdata))
        if isinstance(info, Exception):
            raise info
        return SimpleNamespace(info=info)

    def part(data: Sequence[int]) -> bytes:
        return bytes([data[3], *[data[1] & 0xFF] * data[3]])

    monkeypatch.setattr(pyghmi.ipmi.fru, "FRU", parsed)
    client, session = bmc({FRU_SIZE: saying(*size), FRU_PART: answers.get("part", part), **NO_MAC})
    return client.identity(), session.sent, seen[0]


def test_what_it_is_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    info = {"Serial Number": "SN-1\0 ", "Chassis serial number": "SN-2", "Product name": " LC922", "Model": "9006"}
    told, sent, read = read_fru(monkeypatch, info, 0x2C, 0x01, 0x00)
    assert told == Identity("SN-1", "LC922", (), ())
    assert [data for *_, data in sent] == [
        [0],
        *([0, place & 0xFF, place >> 8, 32] for place in range(0, 288, 32)),
        [0, 0x20, 1, 12],
        [0x0E, 5, 0, 0],
    ]
    assert read == b"".join(bytes([place & 0xFF]) * 32 for place in range(0, 288, 32)) + b"\x20" * 12


def test_a_fru_is_as_large_as_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, read = read_fru(monkeypatch, {}, 0xFF, 0xFF)
    assert len(read) == 4096


@pytest.mark.parametrize(
    ("info", "identity"),
    [
        ({"Chassis serial number": "SN-2", "Model": "9006"}, Identity("SN-2", "9006", (), ())),
        ({"Serial Number": " \0", "Product name": 5, "Model": None}, Identity(None, None, (), ())),
        (None, Identity(None, None, (), ())),
    ],
)
def test_what_it_is_has_a_second_place(monkeypatch: pytest.MonkeyPatch, info: Any, identity: Identity) -> None:
    assert read_fru(monkeypatch, info, 8, 0)[0] == identity


def test_a_fru_that_says_no_more_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    _, sent, read = read_fru(monkeypatch, {}, 64, 0, part=lambda data: b"\x02ab" if data[1] == 0 else b"\0")
    assert read == b"ab"
    assert [data for *_, data in sent][1:3] == [[0, 0, 0, 32], [0, 2, 0, 32]]


@pytest.mark.parametrize("error", [IndexError(), ValueError(), TypeError(), UnicodeError()])
def test_a_damaged_fru_is_said(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    told = failure(lambda: read_fru(monkeypatch, error, 8, 0))
    assert str(told) == f"{NAME}: its identity: FRU 0 is damaged: it cannot be read"
    assert told.fault is Fault.REFUSED


def test_only_one_that_has_no_fru_has_no_serial_number() -> None:
    client, _ = bmc({FRU_SIZE: refusing("no", 0xCB), **NO_MAC})
    assert client.identity() == Identity(None, None, (), ())
    for said, fault in ((refusing("busy", 0xC0), Fault.BUSY), (saying(1), Fault.REFUSED)):
        assert failure(bmc({FRU_SIZE: said, **NO_MAC})[0].identity).fault is fault


@pytest.mark.parametrize(
    ("said", "macs"),
    [
        (saying(0x11, 0x70, 0xE2, 0x84, 0x14, 0x00, 0x0A), ("70:e2:84:14:00:0a",)),
        (saying(0x11, 0x70, 0xE2, 0x84, 0x14, 0x00, 0x0A, 9), ("70:e2:84:14:00:0a",)),
        (saying(0x11, 0x70, 0xE2, 0x84, 0x14, 0x00), ()),
        (saying(0x11, 0, 0, 0, 0, 0, 0), ()),
        (refusing("no", 0xC1), ()),
        (refusing("no", 0xD4), ()),
    ],
)
def test_a_mac_is_six_bytes(said: Callable[[Sequence[int]], bytes], macs: tuple[str, ...]) -> None:
    client, session = bmc({MAC: said})
    assert client._mac() == macs
    assert session.sent == [(*MAC, [0x0E, 5, 0, 0])]


def test_a_bmc_that_is_busy_is_no_bmc_without_a_mac() -> None:
    assert failure(bmc({MAC: refusing("busy", 0xC0)})[0]._mac).fault is Fault.BUSY


def test_readings_come_by_name_in_plain_units() -> None:
    readings = [
        SimpleNamespace(name="Fan", value=1200, units=" RPM", health=1),
        SimpleNamespace(name="Door", value="open", units=None, health=None),
        SimpleNamespace(name="Air", value=21.5, units="°C", health=2),
    ]
    client = Ipmi(Target("hal-data", "ipmi", "10.0.0.5", "ADMIN", ""))
    client._session = SimpleNamespace(get_sensor_data=lambda: iter(readings))
    assert client.sensors() == (
        Sensor("Air", 21.5, "C", "Critical"),
        Sensor("Door", None, "", "OK"),
        Sensor("Fan", 1200.0, "RPM", "OK"),
    )


def test_a_version_is_two_bytes() -> None:
    client, session = bmc({(6, 1): saying(0x20, 0x01, 0x83, 0x05)})
    assert client.firmware() == (Firmware("BMC", "3.05"),)
    assert session.sent == [(6, 1, [])]
    error = failure(bmc({(6, 1): saying(0x20, 0x01, 0x83)})[0].firmware)
    assert str(error) == f"{NAME}: its firmware: an answer of 3 bytes instead of 4 or more"


def test_the_clock_counts_seconds_in_four_bytes() -> None:
    noon = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
    data = list(int(noon.timestamp()).to_bytes(4, "little"))
    client, session = bmc({(0x0A, 0x48): saying(*data, 7), (0x0A, 0x49): saying()})
    assert client.clock() == Clock(noon)
    client.set_clock(noon)
    assert session.sent == [(0x0A, 0x48, []), (0x0A, 0x49, data)]
    error = failure(bmc({(0x0A, 0x48): saying(*data[:3])})[0].clock)
    assert str(error) == f"{NAME}: its clock: an answer of 3 bytes instead of 4 or more"


def holding(*names: bytes) -> Answers:
    return accounts(lambda data: names[data[0] - 1].ljust(16, b"\0"))


def test_the_account_is_the_one_of_that_name() -> None:
    client, session = bmc(holding(b"ADMINS", b"", b"other", b"ADMIN"))
    assert client._number("x") == 4
    assert session.sent == [(6, 0x44, [0x0E, 1]), *((6, 0x46, [number]) for number in (1, 2, 3, 4))]
    error = failure(lambda: bmc(holding(b"", b"a", b"b", b"c", b"ADMIN"))[0]._number("x"))
    assert (str(error), error.fault) == (f"{NAME}: x: it lists no account ADMIN", Fault.UNSUPPORTED)


def test_a_password_is_set_for_that_number_where_it_has_place() -> None:
    client, session = bmc(holding(b"", b"ADMIN"))
    done: list[Any] = []
    session.set_user_password = lambda *words, **named: done.append((words, named))  # type: ignore[attr-defined]
    client.change_password("x" * 20)
    assert done == [((2,), {"mode": "set_password", "password": "x" * 20})]
    error = failure(lambda: client.change_password("x" * 21))
    assert str(error) == f"{NAME}: a new password for ADMIN: it has more than 20 bytes"
    assert error.fault is Fault.REFUSED
    assert len(done) == 1


def test_what_ipmi_has_not_is_said() -> None:
    client, _ = bmc({})
    for ask, words in (
        (lambda: client.set_ntp([]), "its time servers to be set: IPMI knows of none; its web page sets them"),
        (lambda: client.signing_request(["x"]), "a signing request: IPMI has no certificates"),
        (lambda: client.install_certificate("x"), "a new certificate: IPMI has no certificates"),
    ):
        error = failure(ask)
        assert (str(error), error.fault) == (f"{NAME}: {words}", Fault.UNSUPPORTED)
