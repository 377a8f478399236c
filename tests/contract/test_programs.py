"""Texts that the program behind them would not take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import programs

FOLDER = "roles/time/templates"

PLANTED = (
    Planted(
        programs.programs_can_be_started,
        {f"{FOLDER}/hal-good.j2": "#!/bin/sh\ntrue\n", f"{FOLDER}/hal-bare.j2": "true\n", f"{FOLDER}/hosts.j2": "x\n"},
        [f"{FOLDER}/hal-bare.j2:1: no #! in the first line, so it is what each caller makes of it"],
    ),
    Planted(
        programs.texts_can_be_read,
        {
            f"{FOLDER}/hal-good.j2": '#!/bin/sh\n{% if true %}\nurl=x\n{% endif %}\necho "$url"\n',
            f"{FOLDER}/hal-lost.j2": '#!/bin/sh\n{% if false %}\nurl=x\n{% endif %}\necho "$url"\n',
            f"{FOLDER}/open.sh.j2": "if true; then\n  export A=1\n",
            f"{FOLDER}/good.py.j2": "x = {{ [1] }}\n",
            f"{FOLDER}/open.py.j2": "x = (\n",
        },
        [
            f"{FOLDER}/hal-lost.j2:1: shellcheck of what it becomes: hal-lost:2:7: warning: "
            "url is referenced but not assigned. [SC2154]",
            f"{FOLDER}/open.py.j2:1: python of what it becomes: open.py:1: '(' was never closed",
            f"{FOLDER}/open.sh.j2:1: shellcheck of what it becomes: open.sh:1:1: error: "
            "Couldn't find 'fi' for this 'if'. [SC1046]",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
