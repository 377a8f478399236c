"""Nodes by ssh: which host key one shows, and since when it runs, as ssh-keygen and a real shell say it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from hal_cluster.reimage.errors import Trouble
from hal_cluster.reimage.nodes import Ssh
from hal_cluster.reimage.remote import Done

BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


def here(argv: Sequence[str], stdin: bytes = b"", /) -> Done:
    done = subprocess.run(argv, input=stdin, capture_output=True, check=False, timeout=600)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def nowhere(argv: Sequence[str], stdin: bytes = b"", /) -> Done:
    raise Trouble("hal05: no route to host", passes=True)


@pytest.mark.parametrize("kinds", [["ed25519"], ["ed25519", "rsa"], ["rsa"]], ids="+".join)
def test_the_key_that_a_node_shows_is_known_by_its_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: list[str]
) -> None:
    """What ssh-keygen says of the key; another kind of key is none."""
    lines = []
    for kind in kinds:
        words = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "", "-f", str(tmp_path / kind)]
        subprocess.run(words, check=True)
        lines.append(" ".join((tmp_path / f"{kind}.pub").read_text().split()[:2]))
    asked: list[str] = []

    def shown(address: str) -> list[str]:
        asked.append(address)
        return lines[::-1]

    monkeypatch.setattr("hal_cluster.reimage.nodes.shown", shown)
    said = Ssh({"hal05": "10.1.0.105"}, lambda node: nowhere, BOOT_ID).host_key("hal05")
    wanted = ""
    if "ed25519" in kinds:
        words = ["ssh-keygen", "-l", "-f", str(tmp_path / "ed25519.pub")]
        wanted = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[1]
    assert said == wanted
    assert asked == ["10.1.0.105"]


def test_where_nobody_answers_there_is_no_key() -> None:
    assert Ssh({"hal05": "127.0.0.250"}, lambda node: nowhere, BOOT_ID).host_key("hal05") == ""


def test_the_boot_id_is_what_the_command_prints_on_that_node() -> None:
    asked: list[str] = []

    def on(node: str) -> object:
        asked.append(node)
        return here

    ssh = Ssh({}, on, BOOT_ID)  # type: ignore[arg-type]
    assert ssh.boot_id("hal05") == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert asked == ["hal05"]


@pytest.mark.parametrize("command", ["echo half; exit 1", "exit 0", "no-such-program-of-anybody"])
def test_a_command_that_fails_or_says_nothing_gives_no_boot_id(command: str) -> None:
    assert Ssh({}, lambda node: here, command).boot_id("hal05") == ""


def test_a_node_that_does_not_let_us_in_has_no_boot_id() -> None:
    assert Ssh({}, lambda node: nowhere, BOOT_ID).boot_id("hal05") == ""
