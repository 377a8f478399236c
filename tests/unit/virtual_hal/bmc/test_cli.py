"""`setup bmc`: what an administrator types while the BMCs run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from bmc.cli import folder
from bmc.hardware import NoHardware
from bmc.serve import start
from bmc.spec import Fleet
from testbed.cli import main

from tests.unit.virtual_hal.bmc.emulated import QUIET, Served, asking, spec

pytestmark = QUIET


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Two BMCs of the instance "test", where the command looks for them."""
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path))
    place = folder("test")
    fleet = Fleet(instance="test", state=place, bmcs=(spec("hal01", "openbmc", 41), spec("hal-mgmt2", "ipmi", 42)))
    place.mkdir(parents=True)
    (place / "fleet.json").write_text(fleet.model_dump_json())
    with ExitStack() as stack:
        running = start(fleet, NoHardware(), stack)
        with ExitStack() as clients:
            yield Served(fleet, running, clients)


def bmc(*words: str) -> int:
    """Run the command."""
    return main(["bmc", "--instance", "test", *words])


def test_a_fault_is_there_when_the_command_returns(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert bmc("fault", "hal01", "504") == 0
    assert bmc("fault", "hal01", "slow", "--seconds", "0.1") == 0
    assert capsys.readouterr().out.splitlines() == ["hal01: 504", "hal01: 504, slow 0.1 s"]
    assert asking().get(f"{served.url()}/redfish/v1/").status_code == 504
    assert bmc("fault", "hal01", "repair") == 0
    assert capsys.readouterr().out == "hal01: works\n"
    assert asking().get(f"{served.url()}/redfish/v1/").status_code == 200


def test_show_has_all_of_them(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    served.processor().host.set_power("On")
    served.processor().set_override("network", "once")
    bmc("fault", "hal-mgmt2", "wrong-serial", "X1")
    capsys.readouterr()
    assert bmc("show") == 0
    one, other = (str(served.fleet.named(name).address) for name in ("hal01", "hal-mgmt2"))
    width = max(len(one), len(other))
    assert capsys.readouterr().out.splitlines() == [
        f"NODE       KIND     {'ADDRESS':{width}}  POWER  NEXT START     FAULTS",
        f"hal01      openbmc  {one:{width}}  on     network, once  -",
        f"hal-mgmt2  ipmi     {other:{width}}  off    -              wrong-serial X1",
    ]
    assert bmc("fault", "hal-mgmt2", "show") == 0
    assert capsys.readouterr().out == "hal-mgmt2: wrong-serial X1\n"


def test_the_console_is_printed(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    served.processor().host.write_console("hal01 login:\n")
    assert bmc("console", "hal01") == 0
    assert capsys.readouterr().out == "hal01 login:\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fault", "hal99", "silent"), "setup: hal99: instance test has no such BMC; it has hal01, hal-mgmt2\n"),
        (
            ("fault", "hal-mgmt2", "old-firmware"),
            "setup: hal-mgmt2: its BMC is of kind ipmi; old-firmware is OpenBMC's\n",
        ),
    ],
)
def test_what_is_wrong_is_one_line(
    served: Served, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert bmc(*words) == 1
    assert capsys.readouterr().err == message


@pytest.mark.parametrize(
    "words",
    [
        ("fault", "hal01", "slow"),
        ("fault", "hal01", "silent", "--seconds", "3"),
        ("fault", "hal01", "wrong-serial"),
        ("fault", "hal01", "silent", "word"),
        ("fault", "hal01", "explode"),
    ],
)
def test_a_command_that_makes_no_sense_changes_nothing(served: Served, words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        bmc(*words)
    assert ended.value.code == 2
    assert not served.processor().own.faults().shown()


def test_without_bmcs_it_says_how_to_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path))
    assert bmc("show") == 1
    assert capsys.readouterr().err == (
        "setup: instance test has no emulated BMCs: set virtual_bmcs: true and make the nodes\n"
    )


def test_a_fault_may_be_switched_on_before_anybody_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HAL_CACHE_DIR", str(tmp_path))
    fleet = Fleet(instance="test", state=folder("test"), bmcs=(spec("hal01", "openbmc", 41),))
    fleet.state.mkdir(parents=True)
    (fleet.state / "fleet.json").write_text(fleet.model_dump_json())
    assert bmc("fault", "hal01", "silent") == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("hal01: silent\n", "nobody serves these BMCs now: the next who does will follow\n")
