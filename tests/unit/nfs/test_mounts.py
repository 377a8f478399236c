"""What role nfs_client compares on a client: tables of mounts, and the words for what differs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PROGRAM = HERE.parents[2] / "roles/nfs_client/files/mounts.py"
LIVE = (HERE / "captures/proc-mounts-automounted.txt").read_text()
MODULES = "/opt/jboss/jboss-eap/modules"
SOURCE = "10.116.95.13:/export/jboss_modules64"
FSTAB = f"tmpfs /scratch tmpfs size=1m 0 0\n# {SOURCE} /old nfs4 rw 0 0\n{SOURCE} {MODULES} nfs4 rw,hard,noauto 0 0\n"

_SPEC = importlib.util.spec_from_file_location("mounts", PROGRAM)
assert _SPEC
assert _SPEC.loader
mounts = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(mounts)


def declared(**more: Any) -> dict[str, Any]:
    """What the role hands to the program."""
    mount = {"source": SOURCE, "options": ["rw", "hard"], **more}
    return {"type": "nfs4", "kept": ["/mnt"], "fstab_options": ["noauto"], "mounts": {MODULES: mount}}


def test_what_is_as_declared_has_no_words() -> None:
    assert mounts.compare(declared(), LIVE, FSTAB) == ([], {}, [], [MODULES])


def test_an_automount_is_seen_below_its_mount() -> None:
    live = LIVE + f"systemd-1 {MODULES} autofs rw 0 0\n"
    assert mounts.compare(declared(), live, FSTAB)[3] == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"source": "10.0.0.1:/export"}, f"{MODULES} is mounted from {SOURCE}, declared 10.0.0.1:/export"),
        ({"options": ["ro", "hard"]}, f"{MODULES} is mounted with other options: ro,rw"),
        ({"options": ["rw", "hard", "nosuid"]}, f"{MODULES} is mounted with other options: nosuid"),
    ],
)
def test_a_mount_that_is_otherwise_has_its_words(more: dict[str, Any], said: str) -> None:
    _, otherwise, lines, _ = mounts.compare(declared(**more), LIVE, FSTAB)
    assert otherwise == {MODULES: said}
    assert lines == [f"{MODULES} has another line in /etc/fstab"]


def test_another_type_is_named() -> None:
    live = LIVE.replace(" nfs4 ", " nfs ")
    assert mounts.compare(declared(), live, FSTAB)[1] == {MODULES: f"{MODULES} is mounted as nfs, declared nfs4"}


def test_what_nobody_declared_is_named_live_or_saved() -> None:
    more = {**declared(), "kept": []}
    assert mounts.compare(more, LIVE, FSTAB)[0] == ["/mnt"]
    assert mounts.compare(more, "", FSTAB + "filer:/x /with\\040blank nfs rw 0 0\n")[0] == ["/with blank"]


def test_a_line_that_is_there_twice_or_missing_is_named() -> None:
    said = [f"{MODULES} has another line in /etc/fstab"]
    assert mounts.compare(declared(), "", FSTAB + f"{SOURCE} {MODULES} nfs4 rw,hard,noauto 0 0\n")[2] == said
    assert mounts.compare(declared(), "", "")[2] == said
