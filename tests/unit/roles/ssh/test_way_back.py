"""How sshd_config is replaced, and put back: the role's tasks and handlers, on a node that is a folder.

ssh is a program that runs the node's part here, systemctl one that notes its calls and starts what the unit says.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.interpreters import LOCAL
from tests.unit.playing import play

ROLE = Path(__file__).resolve().parents[4] / "roles" / "ssh"
PLAY = """
- hosts: hal05
  gather_facts: false
  tasks:
    - import_role: {name: ssh, tasks_from: sshd_config}
    - meta: flush_handlers
"""
# The last argument is what sshd would give to the node's shell. The handlers' logins are those without a master; each
# has its number.
SSH = """#!/bin/sh
for command; do :; done
case " $* " in *ControlPath=none*)
  echo >>{node}/logins
  if grep -qx "$(wc -l <{node}/logins)" {node}/refused; then cat {node}/refusal >&2; exit 255; fi ;;
esac
PATH={node}/bin:$PATH exec sh -c "$command"
"""
SYSTEMCTL = """#!/bin/sh
echo "$*" | tr -d "'" >>{node}/called
call=$(tail -n 1 {node}/called)
case $call in
  "show sshd.service") printf 'LoadState=loaded\\nActiveState=active\\n' ;;
  show*) [ -e {node}/units/$2 ] && echo LoadState=loaded || echo LoadState=not-found; echo ActiveState=active ;;
  is-enabled*) echo enabled ;;
  "reload sshd.service") [ ! -e {node}/reload ] || . {node}/reload ;;
  *" hal-sshd-rollback.service")
    [ -e {former} ] || exit 0
    sed -n 's/^ExecStart=//p' {node}/units/hal-sshd-rollback.service >{node}/starts
    while read -r line; do sh -c "$line" || exit; done <{node}/starts ;;
esac
! grep -qxF "$call" {node}/fails || {{ echo "$call: Connection timed out" >&2; exit 1; }}
"""


class Node:
    """A node that has the file of another role's time, "former"; the role's is that of its template."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("bin", "ssh", "units", "roles"):
            (folder / name).mkdir()
        self.former = folder / "ssh/sshd_config.former"
        self.write("ssh/sshd_config", "former\n")
        for name in ("called", "refused", "refusal", "fails", "logins"):
            self.write(name, "")
        for name, text in {"ssh": SSH, "systemctl": SYSTEMCTL, "sshd": "#!/bin/sh\n"}.items():
            self.write(f"bin/{name}", text.format(node=folder, former=self.former))
            (folder / "bin" / name).chmod(0o755)
        # The role, with the paths of this node and without the time that a refusal takes.
        me, mine = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
        for path in ROLE.rglob("*"):
            if path.is_file():
                text = path.read_text()
                for old, new in (
                    ("/etc/ssh/", f"{folder}/ssh/"),
                    ("/var/lib/hal/ssh", f"{folder}/record"),
                    ("/etc/systemd/system/", f"{folder}/units/"),
                    ("/usr/sbin/sshd", f"{folder}/bin/sshd"),
                    ("/bin/systemctl", f"{folder}/bin/systemctl"),
                    ("owner: root", f"owner: {me}"),
                    ("group: root", f"group: {mine}"),
                    ("        content: ", f"        owner: {me}\n        content: "),  # hal_files: root is its default
                    ("timeout: 20\n", "timeout: 1\n"),
                ):
                    text = text.replace(old, new)
                self.write(f"roles/ssh/{path.relative_to(ROLE)}", text)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def refuse(self, logins: range, words: str) -> None:
        self.write("refused", "".join(f"{number}\n" for number in logins))
        self.write("refusal", f"{words}\n")

    def converge(self, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        self.write("play.yml", PLAY)
        self.write("logins", "")
        self.write("called", "")
        variables = {
            "ansible_ssh_executable": str(self.folder / "bin/ssh"),
            "ansible_ssh_transfer_method": "piped",
            "ansible_become": False,
            "ansible_remote_tmp": str(self.folder / "remote"),
            "ansible_python_interpreter": LOCAL,
            **more,
        }
        named = ["--limit", "hal05", "--extra-vars", json.dumps(variables), *arguments]
        return play(self.folder / "play.yml", *named, ANSIBLE_ROLES_PATH=str(self.folder / "roles"))

    @property
    def files(self) -> dict[str, str]:
        """What is there by the name of sshd_config: former, or new."""
        paths = (self.folder / "ssh").glob("sshd_config*")
        return {path.name: "former" if path.read_text() == "former\n" else "new" for path in paths}

    @property
    def told(self) -> list[str]:
        """What systemd was asked to do."""
        calls = (self.folder / "called").read_text().splitlines()
        return [call for call in calls if not call.startswith(("show", "is-enabled", "daemon-reload"))]


FORMER, NEW = {"sshd_config": "former"}, {"sshd_config": "new"}
WAITING = {"sshd_config": "new", "sshd_config.former": "former"}
ARM, RELOAD = "restart hal-sshd-rollback.timer", "reload sshd.service"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def words(run: subprocess.CompletedProcess[str]) -> str:
    return " ".join((run.stdout + run.stderr).split())


def test_a_login_proves_the_new_file(node: Node) -> None:
    run = node.converge()
    assert run.returncode == 0, words(run)
    assert node.files == NEW
    assert node.told == [ARM, RELOAD]
    again = node.converge()
    assert again.returncode == 0, words(again)
    assert "changed=0" in words(again)
    assert node.told == []


def test_a_check_changes_nothing_and_shows_what_would(node: Node) -> None:
    run = node.converge("--check", "--diff")
    assert run.returncode == 0, words(run)
    assert "+PermitRootLogin prohibit-password" in run.stdout
    assert (node.files, node.told) == (FORMER, [])


@pytest.mark.parametrize("fault", ["timer", "link"])
def test_without_a_way_back_nothing_is_replaced_or_reloaded(node: Node, fault: str) -> None:
    if fault == "timer":
        node.write("fails", f"{ARM}\n")
    else:
        node.write("bin/ln", "#!/bin/sh\nexit 1\n")
        (node.folder / "bin/ln").chmod(0o755)
    run = node.converge()
    assert run.returncode != 0
    assert "sshd_config stays as it is: hal-sshd-rollback.timer, which would put it back" in words(run), words(run)
    assert (node.files, node.told) == (FORMER, [ARM])


def test_what_sshd_cannot_read_is_refused_and_leaves_nothing(node: Node) -> None:
    node.write("bin/sshd", "#!/bin/sh\necho 'line 1: Bad configuration option: Nonsense' >&2\nexit 255\n")
    run = node.converge()
    assert run.returncode != 0
    assert "Bad configuration option: Nonsense" in words(run), words(run)
    assert (node.files, node.told) == (FORMER, [])


def test_the_former_file_is_back_when_the_node_refuses(node: Node) -> None:
    node.refuse(range(1, 100), "root@hal05: Permission denied (publickey).")
    run = node.converge()
    assert run.returncode != 0
    assert "hal05 lets nobody in with the new configuration of sshd" in words(run), words(run)
    assert "the former one is back." in words(run)
    assert node.files == FORMER
    assert node.told[-1] == "restart sshd.service"  # a reload is nothing to an sshd that died


def test_an_sshd_that_does_not_start_with_the_former_file_is_said(node: Node) -> None:
    node.refuse(range(1, 100), "root@hal05: Permission denied (publickey).")
    node.write("fails", "restart sshd.service\n")
    run = node.converge()
    assert run.returncode != 0
    assert "the former one could not be put back, use the console of its BMC (Unable to restart" in words(run)
    assert "the former one is back" not in words(run)


def test_one_dropped_connection_does_not_take_a_good_file_back(node: Node) -> None:
    assert node.converge().returncode == 0
    last = len((node.folder / "logins").read_text())
    node.refuse(range(last, last + 2), "kex_exchange_identification: Connection closed by remote host")
    run = node.converge(ssh_x11_forwarding=False)
    assert run.returncode == 0, words(run)
    assert node.files == NEW


def test_a_login_that_came_too_late_is_no_success(node: Node) -> None:
    node.write("reload", f"mv {node.former} {node.folder}/ssh/sshd_config\n")
    run = node.converge()
    assert run.returncode != 0
    assert "stderr: hal05 has its former sshd_config back, because the login came later than 900" in words(run)
    assert node.files == FORMER


def test_what_a_run_left_that_was_ended_is_undone_by_timer_or_boot(node: Node) -> None:
    """Ended between the new file and the reload; the last file that a login proved stays the way back."""
    node.write("fails", f"{RELOAD}\n")
    assert node.converge().returncode != 0
    assert node.files == WAITING
    node.write("fails", "")
    assert "changed=0" in words(node.converge())
    assert (node.files, node.told) == (WAITING, [])
    node.write("fails", f"{RELOAD}\n")
    assert node.converge(ssh_x11_forwarding=False).returncode != 0
    assert (node.files, node.told) == (WAITING, [ARM, RELOAD])
    subprocess.run([node.folder / "bin/systemctl", "start", "hal-sshd-rollback.service"], check=True)
    assert node.files == FORMER


def test_a_run_that_was_ended_before_it_replaced_anything_leaves_one_file(node: Node) -> None:
    assert node.converge().returncode == 0
    node.former.hardlink_to(node.folder / "ssh/sshd_config")
    subprocess.run([node.folder / "bin/systemctl", "start", "hal-sshd-rollback.service"], check=True)
    assert node.files == NEW


def test_the_way_back_is_a_file_that_sshd_can_read(node: Node) -> None:
    node.write("bin/sshd", '#!/bin/sh\n! grep -q Nonsense "$3"\n')
    assert node.converge().returncode == 0
    proved = (node.folder / "ssh/sshd_config").read_text()
    (node.folder / "record").mkdir()
    node.write("record/sshd_config", proved)
    node.write("ssh/sshd_config", "Nonsense\n")
    node.refuse(range(1, 100), "root@hal05: Permission denied (publickey).")
    run = node.converge(ssh_x11_forwarding=False)
    assert "the former one is back." in words(run), words(run)
    assert (node.folder / "ssh/sshd_config").read_text() == proved

    (node.folder / "record/sshd_config").unlink()
    node.write("ssh/sshd_config", "Nonsense\n")
    run = node.converge(ssh_x11_forwarding=False, __ssh_seen={"stdout": "== unread\nno\n== no way back"})
    assert "there is no former one that sshd could read, use the console of its BMC" in words(run), words(run)
