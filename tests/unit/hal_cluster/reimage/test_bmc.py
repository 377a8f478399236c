"""BMCs as the engine has them, against emulated ones: nothing acts on a machine that is not the declared one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "molecule" / "virtual_hal"))

from bmc.spec import KINDS  # the line above makes it findable

from hal_cluster.bmc.models import Power, Target
from hal_cluster.bmc.turns import Turns
from hal_cluster.reimage.bmc import Bmcs, Machine
from hal_cluster.reimage.errors import Conflict, Trouble
from tests.unit.hal_cluster.bmc.emulated import NOT_PATIENT, PATIENT, SECRET, Emulated, Emulation, overlook_no_answer

LONG_SECONDS = 600
ACTS = ("shut_down", "network_once", "boot_as_set", "on")
ASK = ("shut_down", "on")  # whether it may be, too


@pytest.fixture
def emulation(tmp_path: Path, authority: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulation]:
    """What makes emulated BMCs, and ends them."""
    monkeypatch.setitem(KINDS, "openbmc", KINDS["openbmc"].model_copy(update={"ipmi": False}))
    overlook_no_answer(monkeypatch)
    with ExitStack() as stack:
        yield Emulation(tmp_path / "bmcs", authority, stack)


@pytest.fixture
def emulated(emulation: Emulation) -> dict[str, Emulated]:
    """Two BMCs of AC922s."""
    made = emulation.serve(*(emulation.spec(name, "openbmc", serial=f"S-{name}") for name in ("hal05", "hal06")))
    return {one.target.name: one for one in made}


def bmcs(emulated: dict[str, Emulated], folder: Path, **changes: Any) -> Bmcs:
    machines = {name: Machine(one.target, f"S-{name}") for name, one in emulated.items()}
    return Bmcs(
        machines=changes.get("machines", machines),
        declared={f"S-{name}": name for name in emulated},
        limits=changes.get("limits", PATIENT),
        turns=Turns(folder / "power_on", 4, 0),
    )


def yes() -> None:
    """It may be."""


def test_a_machine_is_switched_and_told_where_to_start(emulated: dict[str, Emulated], tmp_path: Path) -> None:
    ours, machine, other = bmcs(emulated, tmp_path), emulated["hal05"].machine, emulated["hal06"].machine
    ours.identify("hal05")
    assert not ours.is_on("hal05")
    ours.network_once("hal05")
    assert machine.override().target == "network"
    ours.boot_as_set("hal05")
    assert machine.override().target == "none"
    for _again in range(2):
        ours.on("hal05", yes)
        assert machine.power()
        assert ours.is_on("hal05")
    for _again in range(2):
        ours.shut_down("hal05", yes)
        assert not machine.power()
        assert not ours.is_on("hal05")
    assert (other.power(), other.override().target) == (False, "none")


def test_the_next_start_is_from_the_network_and_only_that_one(emulated: dict[str, Emulated], tmp_path: Path) -> None:
    ours = bmcs(emulated, tmp_path)
    ours.network_once("hal05")
    override = emulated["hal05"].machine.override()
    assert (override.target, override.enabled) == ("network", "once")


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("action", ACTS)
def test_nothing_is_done_to_another_machine(
    emulated: dict[str, Emulated], tmp_path: Path, action: str, on: bool
) -> None:
    ours, machine = bmcs(emulated, tmp_path), emulated["hal05"].machine
    machine.set_power("On" if on else "ForceOff")
    emulated["hal05"].fault(swapped_with="hal06")
    before = machine.power(), machine.override()
    with pytest.raises(Trouble, match="S-hal06") as trouble:
        getattr(ours, action)("hal05", *[yes] * (action in ASK))
    assert not trouble.value.passes, "a machine is not another one by and by"
    assert "hal06" in trouble.value.reason
    assert (machine.power(), machine.override()) == before


def test_the_question_which_machine_it_is_has_its_answer(emulated: dict[str, Emulated], tmp_path: Path) -> None:
    emulated["hal05"].fault(swapped_with="hal06")
    ours = bmcs(emulated, tmp_path)
    with pytest.raises(Trouble, match="it is S-hal06, which is hal06: their BMCs are swapped"):
        ours.identify("hal05")
    ours.identify("hal06")


@pytest.mark.parametrize(
    ("spoil", "passes"),
    [
        (lambda one: replace(one, password="wrong"), False),
        (lambda one: replace(one, https_port=1), True),
        (lambda one: replace(one, kind="other"), False),
    ],
    ids=["password", "silent", "kind"],
)
def test_a_bmc_that_cannot_be_asked_is_trouble_and_nothing_is_done(
    emulated: dict[str, Emulated], tmp_path: Path, spoil: Callable[[Any], Any], passes: bool
) -> None:
    wrong = {"hal05": Machine(spoil(emulated["hal05"].target), "S-hal05")}
    ours = bmcs(emulated, tmp_path, machines=wrong, limits=NOT_PATIENT)
    for action in ("identify", "is_on", *ACTS):
        with pytest.raises(Trouble) as trouble:
            getattr(ours, action)("hal05", *[yes] * (action in ASK))
        assert trouble.value.passes is passes, action
        assert SECRET not in trouble.value.reason
        assert "hal05" in trouble.value.reason
    assert ours.console("hal05") == ""
    assert not emulated["hal05"].machine.power()


def test_a_power_command_that_is_said_yes_to_and_does_nothing_is_trouble(
    emulated: dict[str, Emulated], tmp_path: Path
) -> None:
    ours = bmcs(emulated, tmp_path, limits=NOT_PATIENT)
    emulated["hal05"].fault(power_ignored=True)
    with pytest.raises(Trouble, match="hal05"):
        ours.on("hal05", yes)
    emulated["hal05"].fault(power_ignored=False)
    ours.on("hal05", yes)
    emulated["hal05"].fault(power_ignored=True)
    with pytest.raises(Trouble, match="hal05"):
        ours.shut_down("hal05", yes)


def test_a_file_of_turns_that_cannot_be_written_is_trouble(emulated: dict[str, Emulated], tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("")
    ours = replace(bmcs(emulated, tmp_path), turns=Turns(tmp_path / "a-file" / "power_on", 4, 1))
    with pytest.raises(Trouble, match=r"/a-file/power_on\.lock cannot be locked: Not a directory"):
        ours.on("hal05", yes)
    assert not emulated["hal05"].machine.power()


def test_many_threads_may_ask(emulated: dict[str, Emulated], tmp_path: Path) -> None:
    ours = bmcs(emulated, tmp_path)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ours.is_on, ["hal05", "hal06"] * 8)) == [False] * 16


@pytest.mark.parametrize(("kind", "alone"), [("ipmi", True), ("supermicro", True), ("openbmc", False)])
def test_pyghmi_which_is_not_for_several_threads_has_one_session_at_a_time(
    emulated: dict[str, Emulated], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, alone: bool
) -> None:
    """Which calls of two sessions get in each other's way is chance: that there are no two at a time is not."""
    ours, other_is_in = bmcs(emulated, tmp_path), threading.Event()
    ours = replace(
        ours,
        machines={name: replace(one, target=replace(one.target, kind=kind)) for name, one in ours.machines.items()},
    )
    seen: list[bool] = []
    with ThreadPoolExecutor(1) as pool:

        class Session:
            def __init__(self, target: Target) -> None:
                self.name = target.name
                if target.name == "hal06":
                    other_is_in.set()

            def power(self) -> Power:
                if self.name == "hal05":
                    pool.submit(ours.is_on, "hal06")
                return Power.ON

            def close(self) -> None:
                if self.name == "hal05":  # still ours: what ends a session is a call, too
                    seen.append(other_is_in.wait(1 if alone else LONG_SECONDS))

        monkeypatch.setattr("hal_cluster.reimage.bmc.connect", Session)
        assert ours.is_on("hal05")
        assert seen == [not alone]
        assert other_is_in.wait(LONG_SECONDS), "it had its turn then"


def test_many_threads_may_ask_by_ipmi(emulation: Emulation, tmp_path: Path) -> None:
    made = emulation.serve(*(emulation.spec(name, "ipmi", serial=f"S-{name}") for name in ("hal05", "hal06")))
    emulated = {one.target.name: one for one in made}
    ours = bmcs(emulated, tmp_path)
    ours.on("hal06", yes)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ours.is_on, ["hal05", "hal06"] * 6)) == [False, True] * 6
        list(pool.map(ours.network_once, ["hal05", "hal06"]))
    assert [one.machine.override().target for one in emulated.values()] == ["network", "network"]


@pytest.mark.parametrize("action", ASK)
def test_what_may_not_be_any_more_is_not_done(emulated: dict[str, Emulated], tmp_path: Path, action: str) -> None:
    ours, machine = bmcs(emulated, tmp_path), emulated["hal05"].machine
    if action == "shut_down":
        ours.on("hal05", yes)
    before = machine.power()

    def no() -> None:
        raise Conflict("hal05")

    with pytest.raises(Conflict):
        getattr(ours, action)("hal05", no)
    assert machine.power() == before
