"""hal_node.network.contact: what the connection of a call needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.network import contact

from .node import DEVICES, call, now


@pytest.mark.parametrize(
    ("connection", "needed"),
    [
        ("10.1.0.1 33 10.1.0.5 22", {"eno1"}),
        ("192.0.2.9 33 10.1.0.5 22", {"eno1", "bond0"}),  # answers go out by a member of the bond
        ("10.9.9.9 33 10.1.0.5 22", {"eno1"}),  # there is no way back to it, says ip
        ("10.9.9.9 33 10.8.8.8 22", None),
        (None, None),
    ],
)
def test_what_the_connection_needs(
    monkeypatch: pytest.MonkeyPatch, connection: str | None, needed: set[str] | None
) -> None:
    monkeypatch.setattr(contact, "ssh_connection", lambda: connection)
    assert contact.contact_heads(call(), now()) == needed


@pytest.mark.parametrize(
    ("client", "routes", "needed"),
    [
        ("192.0.2.9", {}, {"eno1", "bond0", "ib0"}),  # ifup of ib0 would replace the route of the answers
        ("192.0.2.9", {"ib0": ["10.1.2.254"]}, {"eno1", "bond0"}),  # it has it already
        ("10.1.0.1", {}, {"eno1"}),  # on the same network nobody needs a gateway
    ],
)
def test_what_takes_the_default_route_is_needed_by_answers_that_go_by_it(
    monkeypatch: pytest.MonkeyPatch, client: str, routes: dict[str, Any], needed: set[str]
) -> None:
    monkeypatch.setattr(contact, "ssh_connection", lambda: f"{client} 33 10.1.0.5 22")
    devices = [*DEVICES[:-1], {**DEVICES[-1], "gateway": "10.1.2.254"}]
    assert contact.contact_heads(call(devices=devices), {**now(), "routes": routes}) == needed


def test_the_connection_is_that_of_the_nearest_process_above_that_has_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """sudo and Ansible's own processes hand it on or not."""
    for pid, parent, environ in ((30, 20, b"A=1\0"), (20, 10, b"B=2\0SSH_CONNECTION=1 2 3 4\0"), (10, 1, b"")):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "environ").write_bytes(environ)
        (folder / "stat").write_text(f"{pid} (a) b) S {parent} 1 1\n")
    monkeypatch.setattr(contact.os, "getpid", lambda: 30)
    opened = lambda path, mode: (tmp_path / path.removeprefix("/proc/")).open(mode)  # noqa: E731
    monkeypatch.setattr(contact, "open", opened, raising=False)
    assert contact.ssh_connection() == "1 2 3 4"
    (tmp_path / "20/environ").write_bytes(b"B=2\0")
    assert contact.ssh_connection() is None
    (tmp_path / "20/stat").unlink()
    assert contact.ssh_connection() is None
