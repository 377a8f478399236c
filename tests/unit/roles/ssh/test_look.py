"""The role's own tasks refuse what the filters find, on a node that is a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.looking import look, words

# Prints the file that it is given, or has; one key opens root.
SSHD = """file={folder}/sshd_config
while [ $# -gt 0 ]; do case $1 in -f) file=$2 ;; esac; shift; done
[ -e "$file" ] && ! grep -q Nonsense "$file" || {{ echo "$file: terminating, 1 bad option" >&2; exit 255; }}
echo "hostkey /etc/ssh/ssh_host_ed25519_key"
echo "authorizedkeysfile {folder}/keys"
sed -n '/^Match/q; /^Authorized/d; s/^\\([A-Za-z0-9]*\\) /\\L\\1 /p' "$file" """
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Yd5vI0mBsJ3m4vPzqTR0cA4cR6oKk0g6oJr1mC0Qx root@flash1"


def test_what_sshd_would_lose_is_refused_with_the_ways_on(tmp_path: Path) -> None:
    paths = {
        "/var/lib/hal/ssh": f"{tmp_path}/record",
        "/etc/ssh/sshd_config": f"{tmp_path}/sshd_config",
        "/var/log": str(tmp_path),
        "settings=$(sshd": f"settings=$({tmp_path}/bin/sshd",
    }
    programs = {"sshd": SSHD.format(folder=tmp_path), "journalctl": ":", "last": ":", "pgrep": "echo 7"}
    (tmp_path / "keys").write_text("# nobody's\n")
    (tmp_path / "sshd_config").write_text("UsePAM yes\n")
    run = look(tmp_path, "ssh", paths, programs)
    assert run.returncode == 0, words(run)

    (tmp_path / "sshd_config").write_text("AllowGroups hal-users\n")
    run = look(tmp_path, "ssh", paths, programs)
    assert run.returncode != 0
    assert (
        "hal05: sshd would lose what somebody set or uses: allowgroups is hal-users, would be not set. Nothing was"
        " written." in words(run)
    )
    assert look(tmp_path, "ssh", paths, programs, ssh_replace_ok=True).returncode == 0
    declared = {"ssh_settings_extra": {"AllowGroups": "hal-users"}}
    assert look(tmp_path, "ssh", paths, programs, **declared).returncode == 0

    (tmp_path / "keys").write_text(f"{KEY}\n")
    run = look(tmp_path, "ssh", paths, programs, **declared)
    assert run.returncode != 0
    assert "hal05: keys open an account that nobody declared: root: ssh-ed25519 SHA256:" in words(run)
    assert look(tmp_path, "ssh", paths, programs, **declared, ssh_authorized_keys_ok=True).returncode == 0
    allowed = {"ssh_authorized_keys_allowed": {"root": [KEY]}}
    assert look(tmp_path, "ssh", paths, programs, **declared, **allowed).returncode == 0


@pytest.mark.parametrize(
    ("file", "runs", "asked"),
    [
        ("AllowGroups hal-users\nNonsense\n", True, True),
        ("AllowGroups hal-users\nNonsense\n", False, False),
        (None, True, True),
        ('# Written by the role "ssh"; changes made here are lost.\nNonsense\n', True, False),
    ],
    ids=["somebody's", "somebody's of no sshd", "gone", "ours"],
)
def test_a_file_that_sshd_cannot_read_is_replaced_and_asked_about_where_an_sshd_runs(
    tmp_path: Path, file: str | None, runs: bool, asked: bool
) -> None:
    paths = {
        "/var/lib/hal/ssh": f"{tmp_path}/record",
        "/etc/ssh/sshd_config": f"{tmp_path}/sshd_config",
        "/var/log": str(tmp_path),
        "settings=$(sshd": f"settings=$({tmp_path}/bin/sshd",
    }
    programs = {
        "sshd": SSHD.format(folder=tmp_path), "journalctl": ":", "last": ":",
        "pgrep": "echo 7" if runs else "exit 1",
    }  # fmt: skip
    if file is not None:
        (tmp_path / "sshd_config").write_text(file)
    (tmp_path / "secure").write_text(
        "Nov  2 10:11:12 hal05 sshd[47]: Accepted password for alice from 192.0.2.7 port 1\n"
    )
    why = "sshd_config: terminating, 1 bad option" if file else "sshd_config is not there"
    run = look(tmp_path, "ssh", paths, programs)
    assert (run.returncode != 0) is asked, words(run)
    if asked:
        assert "what somebody set or uses: what it has in force, unknown here: " in words(run)
        assert "-e ssh_replace_ok=true" in words(run)
        run = look(tmp_path, "ssh", paths, programs, ssh_replace_ok=True)
        assert run.returncode == 0, words(run)
    assert why in words(run)
    assert "It is replaced." in words(run)
    if file is None:
        (tmp_path / "record").mkdir()
        (tmp_path / "record/sshd_config").write_text("UsePAM yes\n")
        assert look(tmp_path, "ssh", paths, programs).returncode == 0
