"""How reimage.yml gets commands to a host: by Ansible's ssh plugin, here with a program in ssh's place that logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.playbook.play_context import PlayContext

from hal_cluster.reimage.errors import Trouble
from tests.unit.hal_cluster.reimage.test_playbook import ROOT, action
from tests.unit.interpreters import LOCAL

SSH = """#!{python}
import os, sys
os.write(os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT), (" ".join(sys.argv[1:]) + "\\n").encode())
if "stop" not in sys.argv:
    os.write(1, b"out \\xff\\n")
    os.write(2, {err!r})
sys.exit({status})
"""


class Host:
    """Host hal05 with an open master of ssh, and what ssh was called with."""

    def __init__(self, folder: Path, status: int = 0, err: bytes = b"told\n") -> None:
        self._log = folder / "log"
        ssh = folder / "ssh"
        ssh.write_text(SSH.format(python=LOCAL, log=str(self._log), status=status, err=err))
        ssh.chmod(0o755)
        master = folder / "master"
        master.touch()
        self._module = action().ActionModule.__new__(action().ActionModule)
        self._module._play_context = PlayContext()
        self._module._hosts = {
            "hal05": {
                "ansible_host": "192.0.2.5",
                "ansible_port": 2222,
                "ansible_ssh_executable": str(ssh),
                "ansible_control_path": str(master),
                "ansible_ssh_retries": 0,
            }
        }

    def run(self, *argv: str, fresh: bool = False) -> tuple[int, str, str]:
        done = self._module._run_on("hal05", fresh)(argv)
        return done.status, done.out, done.err

    @property
    def calls(self) -> list[str]:
        return self._log.read_text().splitlines()


def test_a_command_goes_to_the_hosts_address_and_port_and_its_answer_comes_back(tmp_path: Path) -> None:
    host = Host(tmp_path, status=3)
    assert host.run("cat", "/a b") == (3, "out \N{REPLACEMENT CHARACTER}\n", "told\n")
    (call,) = host.calls
    assert "Port=2222" in call
    assert "192.0.2.5 cat '/a b'" in call


@pytest.mark.parametrize("fresh", [True, False])
def test_only_one_that_has_to_be_fresh_ends_the_open_connection(tmp_path: Path, fresh: bool) -> None:
    host = Host(tmp_path)
    host.run("true", fresh=fresh)
    *before, call = host.calls
    assert call.endswith(" true")
    assert ["-O stop" in one for one in before[-1:]] == [True] * fresh


def test_a_host_that_is_not_reached_is_the_last_line_of_ssh_and_may_pass(tmp_path: Path) -> None:
    host = Host(tmp_path, status=255, err=b"banner\nssh: connect to host hal05 port 22: No route to host\n")
    with pytest.raises(Trouble, match=r"^hal05: .*No route to host$") as told:
        host.run("true")
    assert told.value.passes


def test_rollouts_are_those_of_this_project() -> None:
    assert action().PROJECT == ROOT


@pytest.mark.parametrize("farewell", [b"Shared connection to 192.0.2.5 closed.\r\n", b"Connection to hal05 closed.\n"])
def test_what_ssh_says_at_the_end_is_no_word_of_the_command(tmp_path: Path, farewell: bytes) -> None:
    """A terminal makes ssh say it, and mitogen says it always: no reason why a command failed."""
    _status, _out, err = Host(tmp_path, 1, b"denied\n" + farewell).run("scontrol")
    assert err == "denied\n"
