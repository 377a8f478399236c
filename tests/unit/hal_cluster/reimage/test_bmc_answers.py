"""What becomes of answers that no emulated BMC gives: one that knows nothing, one that no client foresaw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hal_cluster.bmc.models import Power, Target
from hal_cluster.bmc.turns import Turns
from hal_cluster.reimage import bmc
from hal_cluster.reimage.errors import ReimageError, Trouble
from tests.unit.hal_cluster.bmc.emulated import PATIENT

TARGET = Target(name="hal05", kind="openbmc", address="10.0.0.5", user="root", password="none")


class Session:
    """A BMC that answers with what it was given, or raises it."""

    def __init__(self, answer: object) -> None:
        self.answer, self.closed = answer, 0

    def power(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def console(self, seconds: int) -> Any:
        assert seconds == bmc.CONSOLE_SECONDS
        return type("Said", (), {"text": self.power()})

    def close(self) -> None:
        self.closed += 1


def asked(monkeypatch: pytest.MonkeyPatch, folder: Path, answer: object) -> tuple[bmc.Bmcs, Session]:
    session = Session(answer)
    monkeypatch.setattr(bmc, "connect", lambda _target: session)
    machines = {"hal05": bmc.Machine(TARGET, "S-hal05")}
    return bmc.Bmcs(machines, {"S-hal05": "hal05"}, PATIENT, Turns(folder / "power_on", 4, 0)), session


@pytest.mark.parametrize(("state", "on"), [(Power.ON, True), (Power.OFF, False)])
def test_power_is_what_the_bmc_says_and_the_session_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: Power, on: bool
) -> None:
    ours, session = asked(monkeypatch, tmp_path, state)
    assert ours.is_on("hal05") is on
    assert session.closed == 1


def test_a_bmc_that_does_not_know_may_know_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours, _ = asked(monkeypatch, tmp_path, Power.UNKNOWN)
    with pytest.raises(Trouble) as trouble:
        ours.is_on("hal05")
    assert trouble.value.reason == "BMC of hal05: it does not know whether its machine has power"
    assert trouble.value.passes


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device", "/turns"), "/turns: No space left on device"),
        (OSError("odd"), "{folder}/power_on: odd"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: OSError, reason: str
) -> None:
    ours, session = asked(monkeypatch, tmp_path, error)
    with pytest.raises(Trouble) as trouble:
        ours._ask("hal05", lambda one: one.power())
    assert trouble.value.reason == reason.format(folder=tmp_path)
    assert session.closed == 1


def test_what_no_client_foresaw_is_trouble_of_that_bmc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours, session = asked(monkeypatch, tmp_path, KeyError("Members"))
    with pytest.raises(Trouble) as trouble:
        ours._ask("hal05", lambda one: one.power())
    assert trouble.value.reason == "BMC of hal05 (10.0.0.5): something: what this program does not understand: KeyError"
    assert not trouble.value.passes
    assert session.closed == 1


def test_who_stops_it_is_not_taken_for_the_bmc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stopped = ReimageError("stopped by hand")
    ours, session = asked(monkeypatch, tmp_path, stopped)
    with pytest.raises(ReimageError) as caught:
        ours._ask("hal05", lambda one: one.power())
    assert caught.value is stopped
    assert session.closed == 1


def test_a_console_is_what_it_says_and_none_is_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours, _ = asked(monkeypatch, tmp_path, "login:")
    assert ours.console("hal05") == "login:"
    ours, _ = asked(monkeypatch, tmp_path, ValueError("no console"))
    assert ours.console("hal05") == ""
