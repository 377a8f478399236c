"""Whose munge key a rollout takes: no cluster is parted by it, and no key is seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.rules import munge
from tests.unit.interpreters import LOCAL
from tests.unit.modules import Ran, loaded
from tests.unit.playing import ROOT, play

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
        # A rotation was interrupted, or slurmctld was taken along by mistake: those that are right go on.
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
    nothing = {"adopted": "", "replaced": [], "refused": [], "working": [], "why": ""}
    assert munge.keys(seen, False) == {**nothing, "adopted": adopted, "refused": refused, "why": why}
    assert munge.keys(seen, True, "hal01") == nothing


BUSY = {**FOREIGN, "jobs": True}


@pytest.mark.parametrize(
    ("seen", "replaced", "refused"),
    [
        ({"login": DECLARED, "hal01": DECLARED, "hal02": FOREIGN, "hal03": ABSENT}, ["hal02"], []),
        ({"login": DECLARED, "hal02": FOREIGN}, ["hal02"], []),  # with --limit
        ({"login": DECLARED, "hal01": FOREIGN, "hal02": OTHER, "hal03": UNUSABLE}, ["hal01", "hal02", "hal03"], []),
        # Slurmctld did not answer: hal01 and hal02 may be new, and hal03 the cluster's.
        ({"login": {}, "hal01": DECLARED, "hal02": DECLARED, "hal03": FOREIGN}, [], ["hal03"]),
        # It is new: most have it.
        ({"login": ABSENT, "hal01": DECLARED, "hal02": DECLARED, "hal03": FOREIGN}, ["hal03"], []),
        ({"login": ABSENT, "hal01": DECLARED, "hal03": FOREIGN}, [], ["hal03"]),
        # The cluster uses another: a rotation.
        ({"login": FOREIGN, "hal01": DECLARED, "hal02": DECLARED, "hal03": DECLARED}, [], ["login"]),
        ({"login": DECLARED, "hal01": FOREIGN, "hal02": FOREIGN}, [], ["hal01", "hal02"]),
        # Jobs run there.
        ({"login": DECLARED, "hal01": BUSY, "hal02": OTHER}, ["hal02"], ["hal01"]),
    ],
)
def test_a_node_that_the_cluster_does_not_believe_gets_its_key(
    seen: dict[str, dict[str, Any]], replaced: list[str], refused: list[str]
) -> None:
    said = munge.keys(seen, False, "login")
    assert (said["replaced"], said["refused"], said["adopted"]) == (replaced, refused, "")
    working = [node for node in refused if seen[node].get("jobs")]
    assert said["working"] == working
    assert ("jobs run on" in said["why"]) == bool(working)


def test_steps_of_jobs_are_seen(tmp_path: Path, patched: tuple[Any, Any]) -> None:
    ran = Ran(loaded("hal_munge_key_state"), lambda _: (1, "", ""), *patched)
    patched[0].setattr(ran.module, "PROC", str(tmp_path))
    for pid, name in (("4711", "bash"), ("4712", "slurmd"), ("self", "slurmstepd"), ("4713", None)):
        (tmp_path / pid).mkdir()
        if name:
            (tmp_path / pid / "comm").write_text(f"{name}\n")
    assert ran(key=OURS.hex(), path=str(tmp_path / "none"))["jobs"] is False
    (tmp_path / "4711/comm").write_text("slurmstepd\n")
    assert ran(key=OURS.hex(), path=str(tmp_path / "none"))["jobs"] is True


# ---------------------------------------------------------------- the role's tasks
LOOK = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: munge, tasks_from: look}
    - debug:
        msg: "{{ __munge_keys.replaced }}"
"""


def looked(folder: Path, limit: str, keys: dict[str, bytes], processes: tuple[str, ...] = ()) -> Any:
    """What the role says of nodes whose keys are below this folder, with these processes."""
    for node, key in keys.items():
        (folder / node).write_bytes(key)
    # This machine's own processes do not count: a virtual HAL that runs on it has steps of jobs.
    own = (ROOT / "plugins/modules/hal_munge_key_state.py").read_text()
    (folder / "library").mkdir()
    (folder / "proc").mkdir()
    for number, name in enumerate(processes):
        (folder / "proc" / str(number)).mkdir()
        (folder / "proc" / str(number) / "comm").write_text(f"{name}\n")
    text = own.replace('PROC = "/proc"', f'PROC = "{folder}/proc"')
    assert text != own
    (folder / "library/hal_munge_key_state.py").write_text(text)
    variables = {
        "vault_munge_key": OURS.hex(),
        "__munge_key_file": f"{folder}/{{{{ inventory_hostname }}}}",
        "ansible_python_interpreter": LOCAL,
        "ansible_become": False,
    }
    (folder / "play.yml").write_text(LOOK)
    return play(
        folder / "play.yml",
        *("--limit", limit, "--extra-vars", json.dumps(variables)),
        sites=("hal",),
        ANSIBLE_STDOUT_CALLBACK="ansible.posix.json",
        ANSIBLE_LIBRARY=f"{folder}/library:{ROOT}/plugins/modules",
    )


def test_the_role_replaces_where_slurmctld_has_the_declared_key(tmp_path: Path) -> None:
    keys = {"hal-login": OURS, "hal01": OURS, "hal02": STRAY + bytes(32)}
    done = looked(tmp_path, "hal-login,hal01,hal02", keys)
    assert done.returncode == 0, done.stdout
    assert "hal02 has a key that is not munge_key; hal01,hal-login munge_key. hal02 gets munge_key" in done.stdout


def test_the_role_refuses_what_the_cluster_uses(tmp_path: Path) -> None:
    done = looked(tmp_path, "hal-login,hal01,hal02", {"hal-login": THEIRS, "hal01": OURS, "hal02": OURS})
    assert done.returncode != 0
    assert "gets munge_key" not in done.stdout
    assert "hal-login has a key that is not munge_key; hal[01-02] munge_key" in done.stdout


def test_the_role_leaves_a_node_its_key_while_jobs_run_there(tmp_path: Path) -> None:
    done = looked(tmp_path, "hal-login,hal01", {"hal-login": OURS, "hal01": THEIRS}, ("slurmd", "slurmstepd"))
    assert done.returncode != 0
    assert (
        "hal01 has a key that is not munge_key; hal-login munge_key; jobs run on hal01. Nothing was changed on hal01:"
        " roll out again when its jobs are done; -e munge_rotation_ok=true gives it munge_key now, and its jobs go on"
    ) in done.stdout
