"""OpenBMC's older REST where it says what we would not set: words of phosphor-dbus-interfaces' Control.Boot.Source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hal_cluster.bmc.models import SETTABLE, Boot, BootTarget, Target
from hal_cluster.bmc.openbmc_rest import OpenBmc, Rest


class Connection:
    """As much of hal_cluster.bmc.connection as a Rest asks."""

    def __init__(self, said: Mapping[str, Any] | None) -> None:
        self._said = said

    def find(self, path: str) -> dict[str, Any] | None:
        assert path == "/xyz/openbmc_project/control/host0/boot/one_time"
        return None if self._said is None else {"data": dict(self._said)}


def one_time(source: str, mode: str = "Regular", *, enabled: bool = True) -> dict[str, Any]:
    return {
        "BootSource": f"xyz.openbmc_project.Control.Boot.Source.Sources.{source}",
        "BootMode": f"xyz.openbmc_project.Control.Boot.Mode.Modes.{mode}",
        "Enabled": enabled,
    }


@pytest.mark.parametrize(
    ("said", "boot"),
    [
        (one_time("Network"), Boot(BootTarget.NETWORK)),
        (one_time("ExternalMedia"), Boot(BootTarget.OTHER)),
        (one_time("Default", "Safe"), Boot(BootTarget.OTHER)),
        (one_time("RemovableMedia", enabled=False), Boot(BootTarget.NONE)),
        ({}, None),
        (None, None),
    ],
)
def test_what_is_set_by_others_is_told(said: Mapping[str, Any] | None, boot: Boot | None) -> None:
    rest = Rest(Connection(said))  # type: ignore[arg-type]
    assert rest.boot() == boot


def test_a_source_of_others_is_no_lack_of_an_override(monkeypatch: pytest.MonkeyPatch) -> None:
    client = OpenBmc(Target("hal05", "openbmc", "10.0.0.5", "root", "", fingerprint="ab" * 32))
    monkeypatch.setattr(client, "_by_rest", lambda: True)
    client.rest = Rest(Connection(one_time("ExternalMedia")))  # type: ignore[arg-type]
    assert client.boot_targets() == SETTABLE
    assert client.boot() == Boot(BootTarget.OTHER)


def test_redfish_tells_of_it_too() -> None:
    client = OpenBmc(Target("hal05", "openbmc", "10.0.0.5", "root", "", fingerprint="ab" * 32))
    said = {"BootSourceOverrideTarget": "Usb", "BootSourceOverrideEnabled": "Continuous"}
    assert client._override({"Boot": said}) == Boot(BootTarget.OTHER, once=False)
