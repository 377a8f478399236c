"""Nodes that knew nothing of the site are known, and only the machine that its console vouches for is let in."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running.ansible_run import PROJECT, Ansible, Run, of_scenario
from running.ssh_config import STATE, Cluster
from testinfra.host import Host

Node = Callable[[str], Host]
SCENARIO = Path(os.environ.get("MOLECULE_SCENARIO_DIRECTORY", Path(__file__).parents[1]))
CONSOLES = STATE / "first_contact.host_keys"
FORGET = (SCENARIO / "files" / "forget-the-site").read_text()
# What tells whether anybody changed the node.
LOOK = "cd /etc/ssh && ls -l --time-style=full-iso && sha256sum sshd_config; getent passwd"


def console(name: str, script: str, stdin: str = "") -> str:
    """Run a shell script on a node as at its console: not over SSH."""
    argv = [str(PROJECT / "molecule/virtual_hal/podman"), "exec", "-i", f"{SCENARIO.name}-{name}", "sh", "-c", script]
    return subprocess.run(argv, input=stdin, capture_output=True, text=True, check=True).stdout


def bootstrap(*arguments: str, **variables: Any) -> Run:
    return of_scenario(SCENARIO).playbook("playbooks/bootstrap.yml", *arguments, **variables)


@pytest.fixture
def stranger() -> str:
    """hal06 as if it had been installed anew; return the fingerprint that its console shows."""
    # A machine that was installed anew has no connection left: the record of a run before keeps its own for a minute.
    for socket in (Path.home() / ".ansible" / "cp").glob("first-*"):
        subprocess.run(
            ["ssh", "-O", "exit", "-o", f'ControlPath="{socket}"', "hal06"], capture_output=True, check=False
        )
    password = (STATE / "secrets" / "first_contact_password").read_text().strip()
    return console("hal06", FORGET, password).split()[1]


@pytest.mark.parametrize("name", ["hal05", "hal06"])
def test_an_administrator_comes_in_by_certificate_and_the_node_is_known(node: Node, name: str) -> None:
    assert node(name).check_output("id -un") == "root"
    shown = node(name).check_output("ssh-keyscan -c -t ed25519 127.0.0.1 2>/dev/null")
    assert "ssh-ed25519-cert-v01@openssh.com" in shown


@pytest.mark.parametrize("name", ["hal05", "hal06"])
def test_the_password_that_opened_it_the_first_time_does_so_no_more(node: Node, cluster: Cluster, name: str) -> None:
    assert node(name).user("installer").exists
    ways = ["-o", "PreferredAuthentications=password,keyboard-interactive", "-o", "ControlPath=none"]
    argv = ["ssh", *ways, "-F", str(cluster.ssh_config), "-l", "installer", name, "true"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith("Permission denied (publickey).")


def test_a_second_run_changes_nothing_and_says_so(node: Node) -> None:
    before = node("hal05").check_output(LOOK)
    done = bootstrap()
    assert (done.status, dict(done.changes)) == (0, {}), done.explain()
    assert "known already, left alone: hal[05-06]" in done.words
    assert node("hal05").check_output(LOOK) == before


def test_another_key_is_refused_by_name_and_the_right_one_is_let_in(node: Node, stranger: str) -> None:
    before = console("hal06", LOOK)
    wrong = CONSOLES.read_text().split("hal05", 1)[1].split()[1]  # of the neighbour
    done = bootstrap("--limit", "hal06", bootstrap_host_keys={"hal06": wrong})
    assert done.status != 0
    assert re.search(rf"hal06: \S+ shows {re.escape(stranger)}, its console said {re.escape(wrong)}", done.words)
    assert console("hal06", LOOK) == before

    unnamed = bootstrap("--limit", "hal06", bootstrap_host_keys={})
    assert unnamed.status != 0
    assert "hal06: no host key was given for it" in unnamed.words
    assert console("hal06", LOOK) == before

    plan = bootstrap("--check", bootstrap_host_keys={"hal06": stranger})
    assert plan.status == 0, plan.explain()
    assert "would be let in: hal06" in plan.words
    assert console("hal06", LOOK) == before

    done = bootstrap(bootstrap_host_keys={"hal06": stranger})
    assert done.status == 0, done.explain()
    assert "let in: hal06" in done.words
    assert "known already, left alone: hal05" in done.words
    assert "hal05" not in done.changes
    assert "ssh-ed25519-cert" in node("hal06").check_output("ssh-keyscan -c -t ed25519 127.0.0.1 2>/dev/null")


def test_a_wrong_password_is_refused_and_nothing_is_changed(node: Node, stranger: str) -> None:
    before = console("hal06", LOOK)
    done = bootstrap("--limit", "hal06", bootstrap_host_keys={"hal06": stranger}, bootstrap_password="no")
    assert done.status != 0
    assert "Invalid/incorrect username/password" in done.words
    assert console("hal06", LOOK) == before
    assert bootstrap(bootstrap_host_keys={"hal06": stranger}).status == 0
    assert node("hal05").check_output("id -un") == "root"


def test_what_a_machine_in_use_would_lose_is_shown_before_it_is_let_in(node: Node, stranger: str) -> None:
    """A group that may come in, and somebody who came by the password that the machine takes."""
    log = "hal06 sshd[4711]: Accepted password for alice from 192.0.2.7 port 51514 ssh2"
    console("hal06", f"echo AllowGroups installer root >>/etc/ssh/sshd_config && echo '{log}' >>/var/log/secure")
    before = console("hal06", LOOK)
    try:
        done = bootstrap("--limit", "hal06", bootstrap_host_keys={"hal06": stranger})
        assert done.status != 0
        assert "allowgroups is installer root, would be not set" in done.words, done.explain()
        assert "passwordauthentication is yes, would be no: alice came in" in done.words
        assert "-e ssh_replace_ok=true" in done.words
        assert console("hal06", LOOK) == before

        done = bootstrap(bootstrap_host_keys={"hal06": stranger}, ssh_replace_ok=True)
        assert done.status == 0, done.explain()
        assert node("hal06").check_output("id -un") == "root"
        assert "allowgroups" not in node("hal06").check_output("/usr/sbin/sshd -T")
    finally:
        console("hal06", "rm /var/log/secure")


def test_a_node_of_a_real_site_with_placeholders_is_refused_before_it_is_asked(node: Node) -> None:
    """The same two addresses, but the source does not say that they are virtual."""
    before = node("hal05").check_output(LOOK)
    real = Ansible(["inventory/hal/hal.yml"])
    done = real.playbook("playbooks/bootstrap.yml", "--limit", "hal05", bootstrap_password="no")
    assert done.status != 0
    assert "hal05 still has placeholders: nodes.hal[01-16].serial" in done.words
    assert node("hal05").check_output(LOOK) == before
