"""hal_cluster/completion.py: shells that are sent a line and keys complete it, for each console script."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hal_cluster import completion

PROJECT = Path(__file__).resolve().parents[3]
SMALL = PROJECT / "tests/unit/hal_inventory/data/small.yml"
WORKERS = ["worker1", "worker2", "worker3", "worker4"]
COMPLETED = [
    ("hal-inventory va", ["validate"]),
    ("hal-inventory -i hal.yml show work", [*WORKERS, "worker"]),
    ("hal-inventory show arr", ["array"]),
    ("hal-inventory -i hal.yml --host wo", WORKERS),
    ("hal-inventory -i hal.yml nodes slurm_n", ["slurm_node"]),
    ("hal-inventory nodes -i hal.yml slurm_n", ["slurm_node"]),
    ("hal-inventory -i hal.yml ssh-config worker1", ["worker1"]),
    ("hal-inventory --js", ["--json"]),
    ("hal-inventory completion ", ["bash", "zsh"]),
    ("hal-inventory -i ha", ["hal.yml"]),
    ("hal-inventory capture ha", ["hal.yml"]),
    ("hal-inventory capture --sc", ["--script"]),
    ("hal-inventory nodes --sc", []),
    ("hal-inventory -i hal.yml capture --node wo", WORKERS),
    ("hal-inventory -i lost.yml nodes wo", []),
    ("hal-audit hi", ["history"]),
    ("hal-audit run --li", ["--limit"]),
    ("hal-audit run -i hal.yml --limit wo", [*WORKERS, "worker"]),
    ("hal-audit run -i hal.yml --limit front,worker4", ["front,worker4"]),
    ("hal-audit run --role mung", ["munge"]),
    ("hal-audit run --forks ", []),
    ("hal-audit show -i hal.yml wo", WORKERS),
    ("hal-audit show -i hal.yml worker1 wo", []),
    ("hal-packages ver", ["verify"]),
    ("hal-packages lock --lock ha", ["hal.yml"]),
    ("hal-environments lock --folder environments ", ["jupyter", "wmlce"]),
    ("hal-environments wheel --arch ppc", ["ppc64le"]),
]
QUOTED = [
    ("hal-inventory -i hal.yml nodes 'worker and not fron", "hal-inventory -i hal.yml nodes 'worker and not front' "),
    ("cd . && hal-audit run -i hal.yml --limit fron", "cd . && hal-audit run -i hal.yml --limit front "),
    ("hal-audit run --limit=all -i hal.yml --limit=fron", "hal-audit run --limit=all -i hal.yml --limit=front "),
]
BASH_START = """
PS1=; PATH="$PWD/bin:$PATH"
. ./completion
tell() { printf %s "$READLINE_LINE" >answer; exit; }
bind -x '"\\C-xt": tell'
bind '"\\C-xa": insert-completions' '"\\C-xc": complete'
"""
# An interactive zsh that is sent a line, then keys: look for matches, put all of them into the line, tell it.
ZSH_START = """
PS1=; PATH="$PWD/bin:$PATH"
autoload -Uz compinit && compinit -u -D
source ./completion
zle -C every complete-word _generic
zstyle ':completion:every:*' old-matches only
zstyle ':completion:every::::' completer _all_matches
tell() { print -r -- "$BUFFER" >answer; exit }
zle -N tell
bindkey '^Xl' list-choices '^Xa' every '^Xt' tell
: >ready
"""
ZSH_TYPES = """
zmodload zsh/zpty
zpty -b shell zsh -f -i
zpty -w shell 'source ./start.zsh'
until [[ -e ready ]]; do sleep 0.05; done
zpty -w -n shell "$1"$'\\C-Xl\\C-Xa\\C-Xt'
for ((at = 0; at < 200; at++)); do
    zpty -r -t shell >/dev/null
    [[ -s answer ]] && break
    sleep 0.05
done
cat answer
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the shell is: a site, environments, and the programs in bin/."""
    path = tmp_path / "a site"  # with a space, as a user's folder may have
    (path / "bin").mkdir(parents=True)
    (path / "environments").mkdir()
    for name in ("jupyter.yml", "wmlce.yml", "wmlce.lock.yml"):
        (path / "environments" / name).touch()
    (path / "cluster.yml").write_text(SMALL.read_text())
    (path / "hal.yml").write_text("plugin: hal\ncluster: cluster.yml\n")
    for name in completion.PROGRAMS:
        program = path / "bin" / name
        module = f"hal_cluster.{name.removeprefix('hal-')}"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        program.chmod(0o755)
    for name, value in (("ANSIBLE_CONFIG", PROJECT / "ansible.cfg"), ("PYTHONPATH", PROJECT), ("HAL_CACHE_DIR", path)):
        monkeypatch.setenv(name, str(value))
    return path


def bash(folder: Path, line: str, key: str) -> str:
    """Return the line after a key of an interactive bash."""
    (folder / "completion").write_text(completion.script("bash"))
    (folder / "start.bash").write_text(BASH_START)
    words = ["bash", "--noprofile", "--rcfile", "start.bash", "-i"]
    typed = f"{line}\x18{key}\x18t"
    environment = {**os.environ, "TERM": "dumb", "INPUTRC": "/dev/null", "HISTFILE": ""}
    subprocess.run(
        words,
        cwd=folder,
        env=environment,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,  # an interactive bash would take the terminal that pytest has
    )
    return (folder / "answer").read_text()


def offered(before: str, after: str) -> list[str]:
    """Return the words in place of the last one."""
    typed = before[: before.rindex(" ") + 1]
    assert after.startswith(typed)
    return after.removeprefix(typed).split()


def expected(line: str, words: list[str]) -> list[str]:
    """Return what stands in place of the last word: these, or itself when nothing fits."""
    return sorted(words) or line.rpartition(" ")[2].split()


@pytest.mark.parametrize(("line", "words"), COMPLETED)
def test_bash_completes(folder: Path, line: str, words: list[str]) -> None:
    assert sorted(offered(line, bash(folder, line, "a"))) == expected(line, words)


@pytest.mark.parametrize(("line", "whole"), QUOTED)
def test_bash_completes_the_last_name_of_what_is_typed(folder: Path, line: str, whole: str) -> None:
    assert bash(folder, line, "c") == whole


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed here; prepare-controller installs it")
@pytest.mark.parametrize(("line", "words"), COMPLETED)
def test_zsh_completes(folder: Path, line: str, words: list[str]) -> None:
    (folder / "completion").write_text(completion.script("zsh"))
    (folder / "start.zsh").write_text(ZSH_START)
    (folder / "types.zsh").write_text(ZSH_TYPES)
    done = subprocess.run(["zsh", "-f", "types.zsh", line], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert sorted(offered(line, done.stdout)) == expected(line, words)


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_program_that_has_the_command_prints_the_same_script(folder: Path, shell: str) -> None:
    for name in ("hal-inventory", "hal-audit"):
        words = [str(folder / "bin" / name), "completion", shell]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
        assert done.stdout == completion.script(shell)


def test_all_console_scripts_are_completed() -> None:
    scripts = (PROJECT / "pyproject.toml").read_text().split("[project.scripts]\n")[1].split("\n\n")[0]
    assert set(completion.PROGRAMS) == set(re.findall(r"^(\S+) = ", scripts, re.MULTILINE))
