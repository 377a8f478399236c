"""hal_node/rollout_lock.py, under the Pythons of nodes: one holder, whole or not at all."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest
from ansible.module_utils.hal_node import rollout_lock as hal_rollout_lock
from ansible.module_utils.hal_node.audit import node as hal_audit_node
from ansible.module_utils.hal_node.image import clean as hal_image_clean

from tests.unit.alike import ANSIBLE, module_utils
from tests.unit.interpreters import EVERY, interpreter

HEAD = """
import json, os
from ansible.module_utils.hal_node import rollout_lock as lock
folder = sys.argv[3]
lock.FOLDER = folder
def us(run):
    return dict(dict.fromkeys(lock.FIELDS, 1), run=run)
def say(*words):
    print(json.dumps(words))
def refusal(call, *words):
    try:
        call(*words)
    except lock.RolloutError as error:
        return str(error)
"""


def run(version: str, folder: Path, code: str) -> list[object]:
    argv = [interpreter(version), "-B", "-c", ANSIBLE + HEAD + code, *module_utils(), str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("version", EVERY)
def test_one_holds_it_until_it_is_let_go(version: str, tmp_path: Path) -> None:
    code = """
os.umask(0)
say(lock.release("a"))
say(lock.take(us("a")))
say(lock.take(us("a"))[0])
held, other = lock.take(us("b"))
say(held, other["run"])
say(lock.release("b"), lock.read()["run"])
say(lock.take(us("b"), "0" * 64)[0])
say(lock.take(us("b"), other["mark"])[0], lock.read()["run"])
say(lock.take(us("c"), other["mark"])[0])
say(lock.release("b"), lock.read())
"""
    folder = tmp_path / "hal/rollout"
    assert run(version, folder, code) == [
        [False], [[True, {}]], [True], [False, "a"], [False, "a"], [False], [True, "b"], [False], [True, {}],
    ]  # fmt: skip
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)} == {0o700}


def test_it_lies_where_a_boot_leaves_it_and_no_image_takes_it() -> None:
    """Beside the record: a rollout may boot its node and go on (roles/nvidia_driver), and still holds it then."""
    assert Path(hal_rollout_lock.FOLDER).parent == Path(hal_audit_node.STATE)
    assert hal_audit_node.STATE.strip("/") in hal_image_clean.GONE


@pytest.mark.parametrize("version", EVERY)
def test_what_one_left_that_was_killed_while_it_wrote_is_in_nobody_s_way(version: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "holder.json.new").symlink_to(tmp_path / "elsewhere")
    tmp_path.chmod(0o700)
    assert run(version, tmp_path, 'say(lock.take(us("a"))[0], lock.read()["run"])') == [[True, "a"]]
    assert (tmp_path / "elsewhere").read_text() == "mine"
    assert not (tmp_path / "holder.json.new").exists()


@pytest.mark.parametrize("version", EVERY)
def test_what_lies_in_its_way_is_told_and_left(version: str, tmp_path: Path) -> None:
    folder = tmp_path / "hal-rollout"
    folder.mkdir(mode=0o700)
    code = 'say(refusal(lock.take, us("a")))'
    (folder / "holder.json").symlink_to(tmp_path / "elsewhere")
    (said,) = run(version, folder, code)
    assert "holder.json cannot be read: " in str(said)
    (folder / "holder.json").unlink()
    os.mkfifo(folder / "holder.json")
    (said,) = run(version, folder, code)
    assert "holder.json is not a file. Look at it, and remove it" in str(said)
    (folder / "holder.json").unlink()
    folder.chmod(0o777)
    (said,) = run(version, folder, code)
    assert "others may write to" in str(said)
    (said,) = run(version, tmp_path / "none/hal/rollout", code)
    assert "cannot be made: No such file or directory" in str(said)
