"""playbooks/image.yml refuses in one line what cannot be built, before any node is contacted. No node is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hal_provision.images import make_key
from tests.unit.playing import play


def refusal(folder: Path, *words: str) -> str:
    made = folder / "image_key"
    make_key(made)
    done = play(
        "playbooks/image.yml",
        *("-e", f"image_key={made}", "-e", f"hal_state_dir={folder}"),
        *(word for one in words for word in ("-e", one)),
        ANSIBLE_SSH_ARGS="-o ProxyCommand=false",  # no node is there, and none is to be asked
    )
    assert done.returncode != 0
    assert "unreachable=0" in done.stdout, done.stdout + done.stderr
    assert "Nothing was changed." in " ".join(done.stdout.split())
    assert done.stdout.count("fatal: ") == 1
    return " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name what it is for, a profile of cluster.yml: -e image_profile=ac922"),
        (["image_profile=hal01"], "image_profile is hal01: no profile of cluster.yml that has nodes"),
        (["image_profile=x86"], "profile x86 is x86_64, and hal-mgmt1 is ppc64le: "),
        (["image_profile=ac922", "image_builder=hal-mgmt2"], "profile ac922 is ppc64le, and hal-mgmt2 is x86_64: "),
        (
            ["image_profile=ac922", "image_builder=hal[01-02]"],
            "one node builds an image, and these were named: hal[01-02]",
        ),
        (["image_profile=ac922", "image_key=/nowhere/key"], "/nowhere/key: the key that signs images is missing"),
        (
            ["image_profile=ac922", '{"image_roles": {"base": ["instal"]}}'],
            "image_roles.base names instal: there is no roles/base/tasks/instal.yml",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    assert said in refusal(tmp_path, *words)


def test_a_limit_is_refused_whatever_it_leaves(tmp_path: Path) -> None:
    """One that leaves out the building node would be a play of no hosts, which ends well."""
    for limit in ("hal01", "hal-mgmt1"):
        done = play(
            "playbooks/image.yml", "--limit", limit, "-e", "image_profile=ac922", "-e", f"hal_state_dir={tmp_path}"
        )
        assert done.returncode != 0
        assert "image.yml is for one image: leave --limit away" in " ".join((done.stdout + done.stderr).split())
