"""Locks that a user could hold, or that are waited for without end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.project import PROJECT
from tests.contract.rules import locks

FILE = "roles/time/files/hal_time.py"
USE = "use locked() of hal_node/lock.py"
OPEN = "{} is locked and not from os.open(..., os.O_NOFOLLOW, 0o600): who may open it can hold it; " + USE
WAITS = "without LOCK_NB it is waited for without end; " + USE
OPENED = "os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)"
TAKES = "fcntl.flock({}, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
SPREAD = """
    def locked(path):
        handle, taken = _opened(path), False
        taken = _is_taken(1, handle)
    def _opened(path):
        handle = OPENED
        return handle
    def _is_taken(left, handle):
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
""".replace("OPENED", OPENED)

PLANTED = (
    Planted(
        locks.a_lock_is_its_owner_s_alone,
        {
            FILE: f"def f(path):\n    handle = {OPENED}\n    {TAKES.format('handle')}",
            "hal_time/spread.py": SPREAD,
            "hal_time/stream.py": f"def f(path):\n    with open({OPENED}, 'r+') as one:\n        {TAKES.format('one')}",
            "molecule/virtual_hal/lab.py": "def f(path):\n    with open(path) as one:\n        flock(one, LOCK_EX)\n",
            "roles/time/files/none.py": "def flock(path):\n    return path.lockf\n",
        },
        [],
    ),
    Planted(
        locks.a_lock_is_its_owner_s_alone,
        {
            FILE: f"def f(path):\n    with open(path, 'a') as lock:\n        {TAKES.format('lock')}",
            "hal_time/a.py": SPREAD.replace("0o600", "0o644"),
            "hal_time/b.py": SPREAD.replace(" | os.O_NOFOLLOW", ""),
            "hal_time/c.py": f"def f(path):\n    self.stream = open(path, 'a')\n    {TAKES.format('self.stream')}",
            "hal_time/d.py": f"def f(lock):\n    {TAKES.format('lock')}",
            "hal_time/e.py": f"def f(path):\n    one = {OPENED}\n    one = open(path)\n    {TAKES.format('one')}",
            "hal_time/f.py": f"lock = open('/run/lock')\n{TAKES.format('lock')}",
            "hal_time/g.py": f"def f(path):\n    one = {OPENED[:-8]})\n    {TAKES.format('one.fileno()')}",
            "plugins/modules/hal_x.py": f"def f(path):\n    {TAKES.format('open(path)')}",
        },
        [
            f"hal_time/a.py:8: {OPEN.format('handle')}",
            f"hal_time/b.py:8: {OPEN.format('handle')}",
            f"hal_time/c.py:3: {OPEN.format('self.stream')}",
            f"hal_time/d.py:2: {OPEN.format('lock')}",
            f"hal_time/e.py:4: {OPEN.format('one')}",
            f"hal_time/f.py:2: {OPEN.format('lock')}",
            f"hal_time/g.py:3: {OPEN.format('one.fileno()')}",
            f"plugins/modules/hal_x.py:2: {OPEN.format('open(path)')}",
            f"{FILE}:3: {OPEN.format('lock')}",
        ],
    ),
    Planted(
        locks.a_lock_is_waited_for_up_to_a_limit,
        {
            FILE: "fcntl.flock(a, fcntl.LOCK_EX)\nfcntl.flock(a, fcntl.LOCK_UN)\nfcntl.flock(a, LOCK_SH | LOCK_NB)\n",
            "hal_time/a.py": "from fcntl import lockf\nlockf(a, how)\n",
            "hal_cluster/audit/store.py": "fcntl.flock(a, fcntl.LOCK_SH)\n",
        },
        [f"hal_cluster/audit/store.py:1: {WAITS}", f"hal_time/a.py:2: {WAITS}", f"{FILE}:1: {WAITS}"],
    ),
    Planted(
        locks.no_shell_takes_a_lock,
        {
            "roles/time/tasks/main.yml": """
                - name: Ask alone
                  ansible.builtin.command:
                    argv: [flock, --timeout, "60", /run/time.lock, chronyc, sources]
                - name: Ask
                  ansible.builtin.shell: echo; flock 9; chronyc sources
                """,
            "roles/time/files/alone.sh": "exec 9>/run/time.lock\ntimeout 60 flock 9 || exit\n",
        },
        [
            f"roles/time/files/alone.sh:2: flock locks a file that users may open; {USE}",
            f"roles/time/tasks/main.yml:3: flock locks a file that users may open; {USE}",
            f"roles/time/tasks/main.yml:5: flock locks a file that users may open; {USE}",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)


@pytest.mark.parametrize("name", sorted(locks.FOLDERS))
def test_what_is_left_would_be_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "FOLDERS", {})
    monkeypatch.setattr(locks, "files", lambda root: [root / name])
    found = list(locks.a_lock_is_its_owner_s_alone(PROJECT))
    assert found, f"take {name} out of FOLDERS: it locks as the others do now"


def test_the_rule_saw_the_locks_of_programs() -> None:
    having = [path for path in locks.sources(PROJECT) if locks.Module(path.read_text()).locks()]
    found = {str(path.relative_to(PROJECT)) for path in having}
    of_nodes = {f"hal_node/{name}.py" for name in ("lock", "shadow_lock", "audit/record")}
    assert of_nodes | {"roles/backup/files/backup_common.py"} <= found
