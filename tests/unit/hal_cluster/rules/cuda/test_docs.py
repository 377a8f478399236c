"""What docs/cuda.md shows of `python -m hal_cluster.rules.cuda` is what it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from hal_cluster.rules.cuda.cli import main

ROOT = Path(__file__).resolve().parents[5]
TEXT = (ROOT / "docs" / "cuda.md").read_text()
SHOWN = re.findall(
    r"^\$ python -m hal_cluster.rules.cuda (check .*)\n((?:(?:goes|refused|remark).*\n)+)", TEXT, re.MULTILINE
)


def test_there_is_one_for_each_answer() -> None:
    assert [output.split(" ")[0].split(":")[0] for _, output in SHOWN] == ["goes", "refused", "remark"]


@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_the_output_is_the_programs(capsys: pytest.CaptureFixture[str], command: str, output: str) -> None:
    main(shlex.split(command))
    assert capsys.readouterr().out == output
