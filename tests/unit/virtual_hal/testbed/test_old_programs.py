"""The scripts in front of a node's programs: what CentOS 7 has passes unchanged, the rest is refused by name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from testbed import old_programs
from testbed.errors import VirtualNodesError

SHELLS = [shell for shell in ("/bin/dash", "/bin/bash") if Path(shell).exists()]

PASSES = (
    ["ip", "-br", "addr"],
    ["ip", "-o", "-4", "--details", "addr", "show", "dev", "eth0"],
    ["lsblk", "-Pbdo", "name,SIZE,WWN", "/dev/sda"],
    ["findmnt", "--noheadings", "--output=FSTYPE", "--target", "/-J"],
    ["systemctl", "enable", "--now", "--", "--value"],
    ["systemctl", "show", "--prop", "MainPID", "a"],
    ["journalctl", "--unit", "--sync", "-n", "5", "-o", "cat"],
    ["tar", "xzf", "a.tgz", "-C", "/x"],
    ["tar", "--xattrs", "-cf", "a", "b"],
    ["find", "/", "-perm", "-022", "-newermt", "2020", "-exec", "ls", "--zero", "{}", ";"],
    ["dd", "if=a", "of=b", "status=progress"],
    ["timeout", "5", "ls", "--hyperlink"],
    ["ssh", "-oStrictHostKeyChecking=yes", "host", "-J"],
    ["grep", "-5", "-e", "--json", "f"],
    ["mount", "-o", "bind,ro", "a", "b"],
    ["curl", "--tlsv1.2", "-sSfo", "--json", "http://x"],
)
REFUSED = (
    (["ip", "-j", "addr"], "ip: not in iproute 4.11 (CentOS 7): -j"),
    (["ip", "--json", "addr"], "ip: not in iproute 4.11 (CentOS 7): --json"),
    (["ip", "mptcp", "show"], "ip: not in iproute 4.11 (CentOS 7): mptcp"),
    (["lsblk", "-nJ"], "lsblk: not in util-linux 2.23 (CentOS 7): -J"),
    (["lsblk", "--json"], "lsblk: not in util-linux 2.23 (CentOS 7): --json"),
    (["lsblk", "-no", "NAME,PATH"], "lsblk: not in util-linux 2.23 (CentOS 7): column PATH of -o"),
    (["findmnt", "/", "--json"], "findmnt: not in util-linux 2.23 (CentOS 7): --json"),
    (["systemctl", "show", "--value", "a"], "systemctl: not in systemd 219 (CentOS 7): --value"),
    (["systemctl", "clean", "a"], "systemctl: not in systemd 219 (CentOS 7): clean"),
    (["journalctl", "--output=short-unix"], "journalctl: not in systemd 219 (CentOS 7): --output short-unix"),
    (["tar", "--zstd", "-xf", "a"], "tar: not in tar 1.26 (CentOS 7): --zstd"),
    (["curl", "--retry-connrefused", "x"], "curl: not in curl 7.29 (CentOS 7): --retry-connrefused"),
    (["dd", "if=a", "oseek=1"], "dd: not in coreutils 8.22 (CentOS 7): oseek=1"),
    (["find", ".", "-files0-from", "x"], "find: not in findutils 4.5.11 (CentOS 7): -files0-from"),
    (["ssh", "-o", "CASignatureAlgorithms=x", "h"], "ssh: not in openssh 7.4 (CentOS 7): -o CASignatureAlgorithms"),
    (["env", "-C", "/", "ls"], "env: not in coreutils 8.22 (CentOS 7): -C"),
)


def run(folder: Path, shell: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Call a program through its script; a stand-in behind it prints its arguments, one a line."""
    real = folder / "real"
    real.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    real.chmod(0o755)
    script = folder / words[0]
    script.write_text(old_programs.programs()[words[0]].script(str(real), str(old_programs.CHECK)))
    return subprocess.run([shell, script, *words[1:]], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("words", PASSES, ids=" ".join)
def test_what_centos_7_has_comes_to_the_program_unchanged(tmp_path: Path, shell: str, words: list[str]) -> None:
    done = run(tmp_path, shell, words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == words[1:]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("words", "said"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_what_came_later_is_refused_by_name(tmp_path: Path, shell: str, words: list[str], said: str) -> None:
    done = run(tmp_path, shell, words)
    assert (done.returncode, done.stdout, done.stderr) == (64, "", said + "\n")


def test_a_program_that_came_later_is_not_there(tmp_path: Path) -> None:
    done = run(tmp_path, "/bin/sh", ["resolvectl", "status"])
    assert (done.returncode, done.stderr) == (127, "resolvectl: not in systemd 219 (CentOS 7)\n")


def test_every_script_is_one_that_the_shell_can_read(tmp_path: Path) -> None:
    old_programs.write(tmp_path / "scripts")
    scripts = sorted((tmp_path / "scripts").iterdir())
    assert {"ip", "lsblk", "systemctl"} <= {script.name for script in scripts}
    for script in scripts:
        assert "@real@" in script.read_text() or "127" in script.read_text()
        subprocess.run(["/bin/sh", "-n", script], check=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: {version: '1', programs: {x: {option: -a}}}", "x: no such field: option"),
        ("a: {version: '1', programs: {x: {style: dashes}}}", "x: style: one of prefix, words, operands, long"),
        ("a: {version: '1', programs: {x y: {}}}\nb: {version: '2', absent: y}", "y: is there twice"),
    ],
)
def test_a_mistake_in_the_table_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "table.yml").write_text(text)
    with pytest.raises(VirtualNodesError, match=said):
        old_programs.programs(tmp_path / "table.yml")
