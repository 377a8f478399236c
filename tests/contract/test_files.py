"""What holds on one machine only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import files

# Written in parts, so that this file itself has none of them.
HUB = "docker" + ".io"
MIRROR = "pypi-mirror" + ".internal"
VERSIONS = "/home/me/" + ".pyenv/versions/3.11"
MAC = "/Users" + "/me"
OURS, THEIRS = "<" * 7, ">" * 7

PLANTED = (
    Planted(
        files.names_no_registry,
        {
            "molecule/virtual_hal/Containerfile": f"FROM {HUB}/centos:7\n",
            "docs/a.md": f"Use https://{MIRROR}/simple, or localhost/hal-node.\n",
        },
        [
            f"docs/a.md:1: {MIRROR} is a registry; leave it to the machine or a variable",
            f"molecule/virtual_hal/Containerfile:1: {HUB} is a registry; leave it to the machine or a variable",
        ],
    ),
    Planted(
        files.names_no_developer_machine,
        {"a.sh": f"{VERSIONS}/bin/python x\n{MAC}/hal\n/home/alice/job.sh\n/root/.ssh/authorized_keys\n"},
        [
            "a.sh:1: /" + ".pyenv/ is a path of one machine; write it relative to the project",
            f"a.sh:2: {MAC} is a path of one machine; write it relative to the project",
        ],
    ),
    Planted(
        files.holds_no_merge_marker,
        {"a.yml": f"a: 1\n{OURS} ours\n=======\n{THEIRS} theirs\n"},
        ["a.yml:2: a merge marker; resolve the conflict", "a.yml:4: a merge marker; resolve the conflict"],
    ),
)


def test_the_project_s_own_folder_is_a_path_of_one_machine(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(f"a: {tmp_path}/x\n")
    assert files.names_no_developer_machine(tmp_path) == [
        f"a.yml:1: {tmp_path} is a path of one machine; write it relative to the project"
    ]


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
