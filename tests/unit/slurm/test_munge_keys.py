"""Whose munge key a rollout takes: no cluster is parted by it, and no key is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugins.filter.hal_slurm import hal_munge_keys
from tests.unit.modules import Ran, loaded

OURS, THEIRS, STRAY = bytes(range(64)), bytes(range(64, 192)), b"a key that hal17 made for itself"


def state(path: Path, patched: tuple[Any, Any], key: bytes | None) -> dict[str, Any]:
    """What the module says of a node with this key."""
    if key is not None:
        path.write_bytes(key)
    ran = Ran(loaded("hal_munge_key_state"), lambda _: (1, "", ""), *patched)
    result = ran(key=OURS.hex(), path=str(path))
    assert ran.told == []
    return result


def test_a_node_says_which_key_it_has_and_not_the_key(tmp_path: Path, patched: tuple[Any, Any]) -> None:
    found = {
        name: state(tmp_path / name, patched, key)
        for name, key in {
            "none": None, "empty": b"", "ours": OURS, "theirs": THEIRS, "too": THEIRS, "short": b"x" * 31,
            "long": b"x" * 1025,
        }.items()
    }  # fmt: skip
    assert {name: one["state"] for name, one in found.items()} == {
        "none": "absent", "empty": "absent", "ours": "declared", "theirs": "other", "too": "other",
        "short": "unusable", "long": "unusable",
    }  # fmt: skip
    assert found["theirs"]["digest"] == found["too"]["digest"]
    assert len({one["digest"] for one in found.values()}) == 5
    for one in found.values():
        for key in (OURS, THEIRS):
            assert not any(part in str(one) for part in (key.hex()[:16], repr(key[:8])[2:-1]))


def test_a_key_that_cannot_be_read_is_not_called_absent(
    tmp_path: Path, patched: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(_path: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    ran = Ran(loaded("hal_munge_key_state"), lambda _: (1, "", ""), *patched)
    monkeypatch.setattr(ran.module, "content_of", unreadable)
    result = ran(key=OURS.hex(), path="/etc/munge/munge.key")
    assert result["failed"]
    assert result["msg"] == "munge key: /etc/munge/munge.key cannot be read: Permission denied"


ABSENT, DECLARED = {"state": "absent", "digest": ""}, {"state": "declared", "digest": "d"}
FOREIGN, OTHER = {"state": "other", "digest": "f"}, {"state": "other", "digest": "o"}
UNUSABLE = {"state": "unusable", "digest": "u"}


@pytest.mark.parametrize(
    ("seen", "adopted", "refused", "why"),
    [
        ({"hal01": ABSENT, "hal02": ABSENT}, "", [], ""),
        ({"hal01": ABSENT, "hal02": DECLARED}, "", [], ""),
        ({"hal01": FOREIGN, "hal02": FOREIGN}, "hal01", [], "hal[01-02] had their own munge key"),
        ({"hal01": ABSENT, "hal02": FOREIGN}, "hal02", [], "hal02 had their own munge key"),
        (
            {"hal01": FOREIGN, "hal02": FOREIGN, "hal03": OTHER, "hal04": ABSENT},
            "",
            ["hal01", "hal02", "hal03", "hal04"],
            "hal[01-02] have a key that is not munge_key; hal03 has a key that is not munge_key",
        ),
        # One node was tampered with, or a rotation was interrupted: those that are right go on.
        (
            {"hal01": DECLARED, "hal02": FOREIGN, "hal03": ABSENT},
            "",
            ["hal02"],
            "hal02 has a key that is not munge_key; hal01 munge_key",
        ),
        (
            {"hal01": UNUSABLE, "hal02": ABSENT},
            "",
            ["hal01", "hal02"],
            "hal01 has a key that is not munge_key; one of these files is too short or too long for a key",
        ),
    ],
)
def test_no_key_is_replaced_without_permission(
    seen: dict[str, dict[str, str]], adopted: str, refused: list[str], why: str
) -> None:
    assert hal_munge_keys(seen, False) == {"adopted": adopted, "refused": refused, "why": why}
    assert hal_munge_keys(seen, True) == {"adopted": "", "refused": [], "why": ""}


def test_a_key_that_is_kept_is_not_written(tmp_path: Path, patched: tuple[Any, Any]) -> None:
    """hal_munge_key with `keep`: the node's own stays, and a node without one gets what is given."""
    said = "LoadState=loaded\nActiveState=inactive\nMainPID=0\nExecMainStartTimestampMonotonic=0\n"
    ran = Ran(loaded("hal_munge_key"), lambda _: (0, said, ""), *patched)
    patched[0].setattr(ran.module.AnsibleModule, "set_fs_attributes_if_different", lambda _self, _wanted, done: done)
    path = tmp_path / "munge.key"
    path.write_bytes(THEIRS)
    assert not ran(key=OURS.hex(), path=str(path), keep=True)["changed"]
    assert path.read_bytes() == THEIRS
    path.unlink()
    assert ran(key=THEIRS.hex(), path=str(path), keep=True)["changed"]
    assert path.read_bytes() == THEIRS
    assert ran(key=OURS.hex(), path=str(path))["changed"]
    assert path.read_bytes() == OURS
