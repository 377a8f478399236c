"""A look before a takeover shows what a rollout would change, and writes nothing; roles act where they are managed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from running.ansible_run import Run, of_scenario
from running.ssh_config import STATE
from test_first_contact import SCENARIO, bootstrap, console, stranger  # type: ignore[import-not-found]
from testinfra.host import Host

__all__ = ["stranger"]  # a fixture of the tests of the first contact: hal06 as if it had been installed anew

LAYER = "playbooks/layers/base.yml"
OWN_CHRONY = "# by hand since 2019\nserver ntp.example.org iburst\n"
OWN_REPOSITORY = "[own]\nname=own\nbaseurl=http://mirror.example.org/own\nenabled=0\n"
OWN_KEY = "a key that was made by hand in 2019, 32 bytes at least\n"
PLANT = f"""set -eu
mkdir -p /root/aside
test ! -e /var/lib/hal || mv /var/lib/hal /root/aside/hal
test ! -e /etc/chrony.conf || mv /etc/chrony.conf /root/aside/chrony.conf
test ! -e /etc/munge || mv /etc/munge /root/aside/munge
printf '{OWN_CHRONY}' >/etc/chrony.conf
printf '{OWN_REPOSITORY}' >/etc/yum.repos.d/own.repo
mkdir -m 0700 /etc/munge
printf '{OWN_KEY}' >/etc/munge/munge.key
chmod 0400 /etc/munge/munge.key
"""
PUT_BACK = """set -eu
rm -rf /etc/munge /var/lib/hal
rm -f /etc/chrony.conf /etc/yum.repos.d/own.repo
for name in hal:/var/lib/hal chrony.conf:/etc/chrony.conf munge:/etc/munge; do
  test ! -e /root/aside/${name%%:*} || mv /root/aside/${name%%:*} ${name#*:}
done
rmdir /root/aside
"""
# Every path with type, mode, owner, times and where a link leads, and the digest of each file. What rpm shares between
# its processes changes with each question to it, whoever asks. Ansible unpacks a module below /tmp and takes it away.
TREE = """cd /
see() { find etc var/lib root tmp home -xdev -not -path 'var/lib/rpm/__db.*' -not -path '*.sqlite-shm' "$@"; }
see -not -path var/lib/rpm -not -path tmp -printf '%p %y %m %U:%G %s %T@ %l\\n' | sort
see -type f -exec sha256sum {} + | sort
"""


@pytest.fixture
def untouched(stranger: str) -> Iterator[str]:
    """hal06 as its administrator has set it up by hand; return its ssh host key. It knows the site again afterwards."""
    console("hal06", PLANT)
    yield console("hal06", "cat /etc/ssh/ssh_host_ed25519_key.pub").strip()
    console("hal06", PUT_BACK)
    done = bootstrap("--limit", "hal06", bootstrap_host_keys={"hal06": stranger})
    assert done.status == 0, done.explain()


def look(folder: Path, host_key: str, *arguments: str, password: str = "") -> tuple[Run, dict[str, Any]]:
    """Look at hal06 as its administrator logs in today: account, password, sudo; return the run and its document."""
    known = folder / "known_hosts"
    known.write_text(f"hal06 {host_key}\n" if host_key else "")
    secret = folder / "password"
    secret.write_text(password or (STATE / "secrets" / "first_contact_password").read_text())
    document = folder / "document.json"
    document.unlink(missing_ok=True)
    ways = ["--connection-password-file", str(secret), "--become-password-file", str(secret)]
    done = of_scenario(SCENARIO).playbook(
        *("playbooks/takeover.yml", "--limit", "hal06", "-u", "installer", *ways, *arguments),
        environment={"HAL_AUDIT_DOCUMENT": str(document)},
        takeover_known_hosts=str(known),
    )
    return done, json.loads(document.read_text()) if document.exists() else {}


def kept() -> list[str]:
    """Every file that the controller keeps of the site, with its time. A virtual site makes up its secrets."""
    files = (path for path in STATE.rglob("*") if path.is_file() and "secrets" not in path.parts)
    return sorted(f"{path} {path.stat().st_mtime_ns}" for path in files)


def test_a_look_by_password_and_sudo_shows_what_would_change_and_writes_nothing(untouched: str, tmp_path: Path) -> None:
    before, at_the_controller = console("hal06", TREE), kept()
    assert "var/lib/hal/" not in before
    done, document = look(tmp_path, untouched, "--diff")
    assert document, done.explain()
    assert document["status"] == 2
    assert done.status != 0
    assert set(console("hal06", TREE).splitlines()) ^ set(before.splitlines()) == set()
    assert kept() == at_the_controller

    found = {(one["role"], one["resource"], one["kind"]): one for one in document["findings"]}
    chrony = found["time", "file:/etc/chrony.conf", "changed"]
    assert "+server ntp.example.org iburst" in chrony["diff"]
    assert any(line.startswith("-") and "logdir" in line for line in chrony["diff"]), chrony["diff"]
    # Whether a key that is there is adopted depends on what the other nodes have: a run asks them, a look does not.
    assert "Install the key" in found["munge", "role:munge", "undecided"]["summary"]
    assert found["munge", "expectation:munge: the key belongs to munge", "expectation"]["is"] == "root"
    assert OWN_KEY.strip() not in json.dumps(document) + done.output
    assert ("", "file:/etc/yum.repos.d/own.repo", "extra") in found
    roles = {one["role"]: one for one in document["takeover"]}
    assert roles["time"]["nodes"] == ["hal06"]
    assert roles["time"]["other"] >= 1
    assert roles["slurm"]["new"] >= 1
    assert "slurm_restart_ok" in roles["slurm"]["permissions"]
    assert "munge_rotation_ok" in roles["munge"]["permissions"]
    changes = [one["other"] + one["unread"] for one in document["takeover"]]
    assert changes == sorted(changes)


def test_a_node_with_another_host_key_than_is_known_is_not_asked(untouched: str, tmp_path: Path) -> None:
    before = console("hal06", TREE)
    another = console("hal05", "cat /etc/ssh/ssh_host_ed25519_key.pub").strip()
    for host_key in ("", another):
        _done, document = look(tmp_path, host_key)
        assert document["status"] == 3
        (one,) = document["findings"]
        assert one["kind"] == "unreachable"
        assert "Host key verification failed" in one["summary"]
    _done, document = look(tmp_path, untouched, password="no")
    assert [one["kind"] for one in document["findings"]] == ["unreachable"]
    assert console("hal06", TREE) == before


def test_a_role_that_is_not_managed_is_left_alone_and_audited_apart(
    node: Callable[[str], Host], tmp_path: Path
) -> None:
    host = node("hal05")
    look_at = "ls -l --time-style=full-iso /etc/chrony.conf; sha256sum /etc/chrony.conf; systemctl is-active chronyd"
    was = host.run(look_at).stdout
    document = tmp_path / "document.json"
    ansible = of_scenario(SCENARIO)
    only = ["ssh"]
    done = ansible.playbook(LAYER, "--limit", "hal05", "--tags", "ssh,time", managed_roles=only)
    assert done.status == 0, done.explain()
    assert "hal05: time not managed here (managed_roles), left alone" in done.words
    assert "PLAY [Trust between nodes]" in done.output
    assert "PLAY [Time]" not in done.output
    assert host.run(look_at).stdout == was

    told = {"HAL_AUDIT_DOCUMENT": str(document)}
    ansible.playbook("playbooks/audit.yml", "--limit", "hal05", environment=told, managed_roles=only)
    audit = json.loads(document.read_text())
    time = [one for one in audit["findings"] if one["role"] == "time"]
    assert time, "its promises and files are looked at"
    assert {(one["status"], one["cause"]) for one in time} == {("aside", "not-managed")}
    assert not [one for one in audit["findings"] if one["status"] == "drift" and one["role"] not in ("ssh", "")]
    assert audit["nodes"]["hal05"]["roles"] == ["ssh"]

    nothing = ansible.playbook(LAYER, "--limit", "hal05", managed_roles=[])
    assert (nothing.status, dict(nothing.changes)) == (0, {}), nothing.explain()
    refused = ansible.playbook(LAYER, "--limit", "hal05", managed_roles=["tiem"])
    assert refused.status != 0
    assert 'managed_roles: there is no role "tiem"; did you mean "time"?' in refused.words
    assert "TASK [" not in refused.output  # a play without hosts has a heading, and that is all
