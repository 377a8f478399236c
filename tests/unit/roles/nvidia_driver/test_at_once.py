"""Programs that change the emulated GPUs at the same time: the epilogs of jobs that end together, for one."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.unit.roles.nvidia_driver.conftest import PARTS, Node

sys.path.insert(0, str(PARTS[0]))
import virtual_gpu

MODE = ("--query-gpu=index,compute_mode", "--format=csv,noheader")


def test_settings_of_gpus_that_are_changed_at_once_all_arrive(node: Node) -> None:
    """Each program reads all GPUs, changes its own, and writes all."""
    changes = [("--compute-mode=EXCLUSIVE_PROCESS", f"--id={gpu}") for gpu in range(4)]
    changes += [("--applications-clocks=877,1530", f"--id={gpu}") for gpu in range(4)]
    with ThreadPoolExecutor(len(changes)) as at_once:
        ended = list(at_once.map(lambda words: node.smi(*words), changes))
    assert [status for status, _ in ended] == [0] * len(changes), ended
    assert node.smi(*MODE) == (0, "".join(f"{gpu}, Exclusive_Process\n" for gpu in range(4)))
    known = json.loads((node.root / "run/virtual-node/driver.json").read_text())
    assert [known["volatile"][str(gpu)]["clocks"] for gpu in range(4)] == [[877, 1530]] * 4


def test_what_was_changed_since_it_was_read_stays(node: Node) -> None:
    node.break_("use", "1", str(os.getpid()))
    first, second = (virtual_gpu.Machine(str(node.root)) for _ in range(2))
    for machine, gpu in ((first, 0), (second, 2)):
        machine.gpus[gpu]["lost"] = True
        machine.volatile(1)["processes"].append({"pid": gpu, "memory_mib": 1})
    first.save()
    second.volatile(3)["clocks"] = [877, 1500]
    second.save()
    second.volatile(3).pop("clocks")
    second.save()
    seen = virtual_gpu.Machine(str(node.root))
    assert [gpu.get("lost") for gpu in seen.gpus] == [True, None, True, None]
    assert [one["pid"] for one in seen.volatile(1)["processes"]] == [os.getpid(), 0, 2]
    assert seen.volatile(3) == {}


def test_a_driver_that_was_unloaded_meanwhile_stays_unloaded(node: Node) -> None:
    machine = virtual_gpu.Machine(str(node.root))
    node.driver()
    machine.volatile(0)["clocks"] = [877, 1500]
    machine.save()
    assert virtual_gpu.Machine(str(node.root)).driver == {}


@pytest.mark.parametrize(
    ("was", "ours", "now", "then"),
    [
        ({"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": 3}, {"a": 2}, {"a": 3}),
        ({"a": 1}, {}, {"a": 2, "b": 1}, {"b": 1}),
        ({}, {"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": [1, 2]}, {"a": [1, 3]}, {"a": [4, 2]}, {"a": [1, 3]}),
        ([{"p": 1}], [], [{"p": 1}, {"p": 2}], [{"p": 2}]),
    ],
)
def test_a_change_of_ours_is_made_to_what_is_there(was: Any, ours: Any, now: Any, then: Any) -> None:
    assert virtual_gpu.merged(was, ours, now) == then
