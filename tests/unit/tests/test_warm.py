"""A warm ansible-playbook is one: same output and status as a started one, and what hangs ends."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import IO

import pytest

from tests.unit import warm

PROGRAM = str(Path(sys.executable).with_name("ansible-playbook"))
ENVIRONMENT = {
    "ANSIBLE_CONFIG": str(warm.ROOT / "ansible.cfg"),
    "ANSIBLE_CALLBACKS_ENABLED": "",
    "ANSIBLE_INVENTORY_ENABLED": "host_list",
    "HOME": os.environ.get("HOME", "/"),
    "PATH": os.environ["PATH"],
}
PLAY = """\
- hosts: all
  gather_facts: false
  connection: local
  vars: {ansible_python_interpreter: "{{ ansible_playbook_python | quote }}"}
  tasks:
    - ansible.builtin.command: {argv: [printenv, WORD]}
      register: said
      failed_when: said.stdout != 'right'
"""


def words(folder: Path, text: str = PLAY) -> list[str]:
    (folder / "play.yml").write_text(text)
    return [PROGRAM, "-i", "one,", str(folder / "play.yml")]


@pytest.mark.parametrize("word", ["right", "wrong"])
def test_a_run_is_what_a_started_one_is(tmp_path: Path, word: str) -> None:
    own = {**ENVIRONMENT, "WORD": word}
    started = subprocess.run(
        words(tmp_path), cwd=warm.ROOT, env=own, capture_output=True, text=True, check=False, timeout=600
    )
    for _ in range(2):
        run = warm.run(words(tmp_path), own, 600)
        assert run.returncode == started.returncode == (0 if word == "right" else 2)
        without_times = [
            [line for line in text.splitlines() if not line.strip().startswith(("start:", "end:", "delta:"))]
            for text in (run.stdout, started.stdout)
        ]
        assert without_times[0] == without_times[1]
        assert run.stderr == started.stderr


def test_what_cannot_be_read_ends_as_it_does(tmp_path: Path) -> None:
    run = warm.run(words(tmp_path, "- hosts: [\n"), ENVIRONMENT, 300)
    assert run.returncode == 4
    assert "Syntax Error" in run.stderr


def test_a_run_that_hangs_ends_with_all_that_it_began_and_the_next_one_works(tmp_path: Path) -> None:
    own = {**ENVIRONMENT, "WORD": "right"}
    assert warm.run(words(tmp_path), own, 600).returncode == 0  # imported
    mark = tmp_path / "mark"
    hanging = PLAY.replace("[printenv, WORD]", f"[sh, -c, 'exec 9<>{mark}; flock 9; sleep 3600']")
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(words(tmp_path, hanging), own, 8)
    subprocess.run(["flock", "--timeout", "600", str(mark), "true"], check=True)
    assert warm.run(words(tmp_path), own, 600).returncode == 0


@pytest.mark.parametrize("imported", [True, False])
def test_one_that_is_interrupted_ends_with_its_run_and_the_next_one_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imported: bool
) -> None:
    """As pytest-timeout does: wherever it is."""
    own = {**ENVIRONMENT, "WORD": "right", "ANSIBLE_FORKS": f"{7 + imported}"}
    if imported:
        assert warm.run(words(tmp_path), own, 600).returncode == 0
    lock, begun, look = tmp_path / "lock", tmp_path / "begun", select.select
    asked: list[warm.Warm] = []

    def interrupted(streams: list[IO[bytes]], *_: object) -> object:
        asked.append(next(reversed(warm._running.values())))
        while not (ready := look(streams, [], [], 0.05))[0]:
            if begun.exists() or not imported:
                raise KeyboardInterrupt
        return ready

    script = f"exec 9<>{lock}; flock 9; touch {begun}; sleep 3600"
    monkeypatch.setattr(select, "select", interrupted)
    with pytest.raises(KeyboardInterrupt):
        warm.run(words(tmp_path, PLAY.replace("[printenv, WORD]", f"[sh, -c, '{script}']")), own, 600)
    monkeypatch.undo()
    subprocess.run(["flock", "--timeout", "600", str(lock), "true"], check=True)
    assert asked[-1]._process.returncode is not None
    assert asked[-1] not in warm._running.values()
    assert warm.run(words(tmp_path), own, 600).returncode == 0


SITE = """\
- hosts: all
  gather_facts: false
  roles: [said]
"""


def test_sites_with_the_same_settings_share_a_process_and_nothing_else(tmp_path: Path) -> None:
    processes = []
    for number, callback in enumerate(("ansible.builtin.default", "ansible.posix.json")):
        site = tmp_path / f"site{number}"
        tasks = site / "elsewhere/said/tasks/main.yml"
        tasks.parent.mkdir(parents=True)
        tasks.write_text(
            f"- debug: {{msg: 'site {number} {{{{ inventory_hostname }}}} {{{{ ansible_config_file }}}}'}}\n"
        )
        (site / "ansible.cfg").write_text("[defaults]\nroles_path = elsewhere\ninventory = hosts\n")
        (site / "hosts").write_text(f"node{number}\n")
        (site / "play.yml").write_text(SITE)
        own = {"HOME": ENVIRONMENT["HOME"], "PATH": ENVIRONMENT["PATH"], "ANSIBLE_CONFIG": str(site / "ansible.cfg")}
        run = warm.run([PROGRAM, "play.yml"], {**own, "ANSIBLE_STDOUT_CALLBACK": callback}, 300, site)
        assert f"site {number} node{number} {site}/ansible.cfg" in run.stdout, run.stderr
        assert run.stdout.lstrip().startswith("{") is bool(number)
        processes.append(next(reversed(warm._running.values()))._process.pid)
    assert processes[0] == processes[1]


def test_other_programs_of_ansible_are_what_they_are(tmp_path: Path) -> None:
    words = [str(Path(PROGRAM).with_name("ansible-inventory")), "-i", "one,two,", "--list"]
    run = warm.run(words, ENVIRONMENT, 300, tmp_path)
    assert (run.returncode, json.loads(run.stdout)["ungrouped"]["hosts"]) == (0, ["one", "two"])


def test_the_process_that_was_not_asked_for_longest_ends_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "MOST", len(warm._running) or 1)
    own = {**ENVIRONMENT, "WORD": "right"}
    assert warm.run(words(tmp_path), own, 600).returncode == 0
    last = next(reversed(warm._running.values()))
    (first, *_) = warm._running.values()
    assert warm.run(words(tmp_path), {**own, "ANSIBLE_FORKS": "3"}, 600).returncode == 0
    assert first._process.poll() == 0
    assert (last._process.poll() is None) is (last is not first)
    assert warm.run(words(tmp_path), own, 600).returncode == 0


IMPORT = "import sys; sys.path.insert(0, sys.argv[1]); import part; print(part.WORD)"


def test_what_was_compiled_is_kept_by_its_text(tmp_path: Path) -> None:
    """As modules come: the same names in another archive each time."""
    kept = tmp_path / "kept"
    kept.mkdir()
    own = {"PYTHONPATH": str(warm.COMPILED), "TESTS_COMPILED": str(kept)}
    for number, (word, compiled) in enumerate([("one", 1), ("two", 2), ("one", 2)]):
        with zipfile.ZipFile(tmp_path / f"{number}.zip", "w") as archive:
            archive.writestr("part.py", f"WORD = '{word}'\n")
        python = [sys.executable, "-c", IMPORT, str(tmp_path / f"{number}.zip")]
        assert subprocess.run(python, env=own, capture_output=True, text=True, check=True).stdout == f"{word}\n"
        assert len(list(kept.iterdir())) == compiled
    for path in kept.iterdir():
        path.write_bytes(b"spoilt")
    assert subprocess.run(python, env=own, capture_output=True, text=True, check=True).stdout == "one\n"
