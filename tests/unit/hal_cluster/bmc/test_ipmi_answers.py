"""What IPMI's answers mean, byte by byte, where no simulator gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyghmi.exceptions
import pytest

from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.ipmi import Ipmi
from hal_cluster.bmc.models import Boot, BootTarget, Target
from tests.unit.hal_cluster.bmc.test_faults import failure

ADMIN = b"ADMIN".ljust(16, b"\0")
Answers = Mapping[tuple[int, int], Callable[[Sequence[int]], bytes]]


class Session:
    """As pyghmi's: gives the answers to network functions and commands, or fails as pyghmi does."""

    def __init__(self, answers: Answers) -> None:
        self.answers, self.sent = answers, list[tuple[int, int, list[int]]]()

    def xraw_command(self, netfn: int, command: int, data: list[int]) -> dict[str, Any]:
        self.sent.append((netfn, command, data))
        return {"data": self.answers[netfn, command](data)}


def bmc(answers: Answers) -> tuple[Ipmi, Session]:
    client, session = Ipmi(Target("hal-data", "ipmi", "10.0.0.5", "ADMIN", "")), Session(answers)
    client._session = session
    return client, session


def refusing(text: str, code: int) -> Callable[[Sequence[int]], bytes]:
    def refuse(_: Sequence[int]) -> bytes:
        raise pyghmi.exceptions.IpmiException(text, code)

    return refuse


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (0xC0, Fault.BUSY),
        (0xC3, Fault.BUSY),
        (0xCF, Fault.BUSY),
        (0xD0, Fault.BUSY),
        (0xD1, Fault.BUSY),
        (0xD2, Fault.BUSY),
        (0xC1, Fault.UNSUPPORTED),
        (0xCC, Fault.UNSUPPORTED),
        (0xD4, Fault.REFUSED),
        (0xD5, Fault.REFUSED),
        (0xFF, Fault.REFUSED),
    ],
)
def test_completion_codes_say_whether_to_ask_again(code: int, fault: Fault) -> None:
    """IPMI 2.0, table 5-2."""
    said = refusing("Timeout while processing command" if code == 0xC3 else "words of the BMC", code)
    client, _ = bmc({(0, 1): said, (0, 9): said, (0, 8): said})
    for ask in (client.power, client.boot, lambda: client.set_boot(BootTarget.NETWORK)):
        error = failure(ask)
        assert error.fault is fault
        assert f"(0x{code:02x})" in str(error)


@pytest.mark.parametrize(
    ("said", "boot"),
    [
        ("01 05 80 04 00 00 00", Boot(BootTarget.NETWORK)),
        ("01 05 e0 08 00 00 00", Boot(BootTarget.DISK, once=False)),
        ("01 05 a0 18 00 00 00", Boot(BootTarget.SETUP)),
        ("01 05 80 14 00 00 00", Boot(BootTarget.OTHER)),  # a CD
        ("01 05 80 00 00 00 00", None),
        ("01 05 00 04 00 00 00", None),  # the flags are not in force
        ("01 85 80 04 00 00 00", None),  # the parameter is not valid
        ("01 05 80", None),
        ("", None),
    ],
)
def test_boot_flags_are_read(said: str, boot: Boot | None) -> None:
    client, session = bmc({(0, 9): lambda _: bytes.fromhex(said)})
    assert client.boot() == boot
    assert session.sent == [(0, 9, [5, 0, 0])]


@pytest.mark.parametrize(
    ("target", "flags"),
    [
        (BootTarget.NETWORK, [5, 0x80, 0x04, 0, 0, 0]),
        (BootTarget.DISK, [5, 0x80, 0x08, 0, 0, 0]),
        (BootTarget.SETUP, [5, 0x80, 0x18, 0, 0, 0]),
        (BootTarget.NONE, [5, 0, 0, 0, 0, 0]),
    ],
)
def test_boot_flags_are_set_for_one_start(target: BootTarget, flags: list[int]) -> None:
    client, session = bmc({(0, 8): lambda _: b""})
    client.set_boot(target)
    assert [data for _, _, data in session.sent] == [[3, 8], flags]


def test_a_short_answer_is_said() -> None:
    client, _ = bmc({(0, 1): lambda _: b""})
    error = failure(client.power)
    assert str(error) == "BMC of hal-data (10.0.0.5): power state: an answer of 0 bytes instead of 1 or more"


def accounts(name: Callable[[Sequence[int]], bytes]) -> Answers:
    return {(6, 0x44): lambda _: bytes([4, 2, 1, 0]), (6, 0x46): name}


def test_the_account_is_found_among_numbers_without_a_name() -> None:
    def name(data: Sequence[int]) -> bytes:
        return ADMIN if data[0] == 3 else refusing("Parameter out of range", 0xC9)(data)

    assert bmc(accounts(name))[0]._number("a new password for ADMIN") == 3


@pytest.mark.parametrize(("text", "fault"), [("timeout", Fault.SILENT), ("Node busy", Fault.BUSY)])
def test_a_bmc_that_does_not_answer_is_no_lack_of_an_account(text: str, fault: Fault) -> None:
    client, session = bmc(accounts(refusing(text, 0xFFFF if text == "timeout" else 0xC0)))
    with pytest.raises(BmcError) as error:
        client._number("a new password for ADMIN")
    assert error.value.fault is fault
    assert len(session.sent) == 2, "it is not asked for the others"
