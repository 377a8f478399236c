"""Pages that have to be read twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import prose

PLANTED = (
    Planted(
        prose.pages_are_easy_to_read,
        {
            "README.md": f"""
                A switch is no node. There is no switch; it is no longer there. `is no node`

                {"words " * 21}
                | {"words " * 30} |
                ```
                {"words " * 30} his
                ```
                Ask him, in order to know.
                """,
        },
        [
            'README.md:1: "is no": write "is not" and an article',
            "README.md:3: 126 characters; break the line before 121",
            'README.md:8: "him": write who it is, or they',
            'README.md:8: "in order to": write the short word',
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
