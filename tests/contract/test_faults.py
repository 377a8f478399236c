"""Promises that nobody has seen broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import faults

FAULTS = "molecule/time/tests/faults.yml"
EXPECT = "roles/time/expect.yml"
FILES = {
    "molecule/time/molecule.yml": "---\n",
    EXPECT: """
        - {id: chronyd runs, why: x, service: {name: chronyd, read: running}, equal: true}
        - {id: no other daemon, why: x, service: {name: "{{ item }}", read: running}, equal: false, loop: [ntpd]}
        - {id: chronyd starts at boot, why: x, service: {name: chronyd, read: enabled}, equal: true}
        """,
    FAULTS: """
        - {promise: chronyd runs, node: hal01, plant: systemctl stop chronyd}
        - {promise: "no other daemon [ntpd]", node: hal01, plant: systemctl start ntpd}
        """,
}
LAST = "\n        - {promise: chronyd starts at boot, node: hal01, plant: systemctl disable chronyd}\n"

PLANTED = (
    Planted(faults.every_promise_has_a_fault, {**FILES, FAULTS: FILES[FAULTS].rstrip() + LAST}, []),
    Planted(
        faults.every_promise_has_a_fault,
        FILES,
        [f'{EXPECT}:3: no fault breaks the promise "chronyd starts at boot"; plant one in {FAULTS}'],
    ),
    Planted(
        faults.every_fault_breaks_a_promise,
        {
            **FILES,
            FAULTS: """
                - {promise: chronyd ran, node: hal01, plant: systemctl stop chronyd}
                - {promise: munge runs, role: munge, node: hal01, plant: systemctl stop munge}
                """,
        },
        [
            f'{FAULTS}:1: role time does not promise "chronyd ran"',
            f'{FAULTS}:2: role munge does not promise "munge runs"',
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
