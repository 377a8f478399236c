"""How a node is reached before it is taken over: its host key is checked, under a name that it is known by."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hal_inventory import contact

NAMES = ["10.64.0.5", "hal05", "hal05.hal.example"]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk5zu1tT5N4Ws8WmLxYJbHcZmZ3vXgGSbv3LQWdLbcV"


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return tmp_path / "known_hosts"


@pytest.mark.parametrize("names", [[NAMES[1]], [NAMES[2]], [NAMES[0]], ["other", NAMES[1]]])
@pytest.mark.parametrize("hashed", [False, True])
def test_a_node_is_known_by_the_name_that_the_file_has(known: Path, names: list[str], hashed: bool) -> None:
    known.write_text(f"{','.join(names)} {KEY}\n")
    if hashed:
        subprocess.run(["ssh-keygen", "-H", "-f", str(known)], check=True, capture_output=True)
        assert "hal05" not in known.read_text()
    assert contact.known_as(NAMES, [known]) == names[-1]


def test_the_address_is_asked_for_where_no_name_is_known_so_that_ssh_refuses(known: Path, tmp_path: Path) -> None:
    known.write_text(f"hal06 {KEY}\n")
    assert contact.known_as(NAMES, [known, tmp_path / "none", tmp_path]) == NAMES[0]


def test_the_check_of_the_host_key_is_on_and_a_named_file_is_the_only_one(known: Path) -> None:
    known.write_text(f"hal05 {KEY}\n")
    said = contact.options(NAMES, str(known))
    assert "-o StrictHostKeyChecking=yes" in said
    assert f'UserKnownHostsFile="{known}"' in said
    assert "-o GlobalKnownHostsFile=none" in said
    assert "-o HostKeyAlias=hal05" in said


def test_without_a_file_those_of_ssh_itself_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "known_hosts").write_text(f"hal05 {KEY}\n")
    said = contact.options(NAMES)
    assert said == "-o StrictHostKeyChecking=yes -o HostKeyAlias=hal05"
