"""Tests that prove nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import proofs

PLANTED = (
    Planted(
        proofs.nothing_is_compared_with_itself,
        {
            "tests/unit/x/test_a.py": """
                def test_a():
                    assert f(1) == f(1)
                    assert f(1) == f(2) != f( 2 )
                    assert 0 < len(x) < len(x) + 1
            """,
            "molecule/x/tests/test_x.py": "assert host.x is host.x\n",
            "hal_x/a.py": "NAN = x != x\n",
        },
        [
            "molecule/x/tests/test_x.py:1: host.x is compared with itself; write what it should be",
            "tests/unit/x/test_a.py:2: f(1) is compared with itself; write what it should be",
            "tests/unit/x/test_a.py:3: f(2) is compared with itself; write what it should be",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
