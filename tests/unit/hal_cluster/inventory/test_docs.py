"""docs/site-model.md is true: its model loads, and its output is what the program prints."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hal_inventory.errors import ClusterFileError
from hal_inventory.load import load_bytes
from tests.unit.hal_inventory.conftest import ROOT

TEXT = (ROOT / "docs" / "site-model.md").read_text()
MODEL = "".join(re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE))
SLIPS = [
    ("gateway: 10.20.0.254", "gateway: 10.20.9.254"),
    ("socket: 1}\n    hcas", "socket: 2}\n    hcas"),
    ("memory_mb: 393216\n    bmc", "memory_gb: 384\n    memory_mb: 393216\n    bmc"),
    ("management: 10.20.0.1,", "management: 10.21.0.1,"),
    ("7XK2M14,", "7XK2M13,"),
    ("10.20.2.[11-14]", "10.20.2.[11-13]"),
    ("time_server: ember", "time_server: embr"),
]


def slipped() -> str:
    """Return the model with the slips that the page shows the findings of."""
    text = MODEL
    for old, new in SLIPS:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_the_pieces_make_a_sound_site() -> None:
    site = load_bytes(MODEL.encode(), "cluster.yml")
    assert (site.name, len(site.nodes), len(site.partitions), len(site.file_systems)) == ("ember", 5, 2, 2)


def test_the_findings_shown_are_those_of_the_slips() -> None:
    with pytest.raises(ClusterFileError) as caught:
        load_bytes(slipped().encode(), "inventory/mysite/cluster.yml")
    shown = re.search(r"<!-- findings -->\n```text\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert shown is not None
    assert shown[1].rstrip("\n") == str(caught.value)


def consoles() -> list[tuple[str, str]]:
    """Return the commands of the page with the output below each."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output.rstrip("\n")))
    return found


@pytest.mark.parametrize(("command", "output"), consoles())
def test_the_output_shown_is_real(command: str, output: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "hal-inventory"
    done = subprocess.run(
        [sys.executable, "-m", "hal_cluster.inventory", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.rstrip("\n") == output


def test_there_is_output_to_compare() -> None:
    assert len(consoles()) >= 8
    assert Path(ROOT / "docs" / "site-model.md").is_file()
