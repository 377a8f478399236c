"""hal_network as it is called: its arguments and their defaults."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.modules import Ran, as_program, loaded

GIVEN = {"name": "eno1", "network": "management", "path": "/etc/x", "text": "DEVICE=eno1\n"}


def test_as_a_program_it_asks_for_what_it_needs() -> None:
    assert as_program("hal_network") == {"failed": True, "msg": "missing required arguments: devices, phase"}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    """The module whose phases say what they were given."""
    hal_network = loaded("hal_network")
    for name in ("write", "apply", "confirm"):
        monkeypatch.setattr(
            hal_network,
            name,
            lambda module, name=name: {"phase": name, "params": module.params, "check": module.check_mode},
        )
    return Ran(hal_network, lambda argv: (0, "", ""), monkeypatch, capsys)


def test_each_phase_gets_what_is_declared_and_permits_nothing_unasked(ran: Ran) -> None:
    plain = dict.fromkeys(("address", "mtu", "mac", "gateway", "mode", "master", "bond_mode"))
    devices: list[dict[str, Any]] = [{**plain, "members": [], **GIVEN}]
    for phase in ("write", "apply", "confirm"):
        params: dict[str, Any] = {"phase": phase, "devices": devices, "contact_ok": False, "wait_seconds": 105}
        params |= {"no_default_route_ok": False, "ipoib_ok": False}
        assert ran(phase=phase, devices=[GIVEN]) == {"phase": phase, "params": params, "check": False}
    assert ran(check=True, phase="write", devices=[GIVEN])["check"] is True


@pytest.mark.parametrize("name", sorted(GIVEN))
def test_an_interface_without_a_part_is_refused(ran: Ran, name: str) -> None:
    given = {key: value for key, value in GIVEN.items() if key != name}
    said = f"missing required arguments: {name} found in devices"
    assert ran(phase="write", devices=[given]) == {"failed": True, "msg": said}


def test_another_phase_is_refused(ran: Ran) -> None:
    said = "value of phase must be one of: write, apply, confirm, got: undo"
    assert ran(phase="undo", devices=[]) == {"failed": True, "msg": said}
