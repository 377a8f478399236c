"""A controller without a network: everything comes from a wheelhouse, and only what it was made with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]


def tree(folder: Path) -> Path:
    """A copy of what a controller has of the project."""
    folder.mkdir()
    names = ["hal_*", "inventory", "plugins", "molecule/shared", "requirements.lock", "pyproject.toml", "ansible.cfg"]
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *names]
    files = subprocess.run(listed, cwd=PROJECT, check=True, capture_output=True).stdout
    argv = ["tar", "--create", "--null", "--files-from=-", "--ignore-failed-read"]
    packed = subprocess.run(argv, cwd=PROJECT, input=files, check=True, capture_output=True).stdout
    subprocess.run(["tar", "--extract"], cwd=folder, input=packed, check=True)
    return folder


def prepare(where: Path, wheelhouse: Path) -> subprocess.CompletedProcess[str]:
    """make setup WHEELHOUSE=..., in a network namespace that has no way out."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "VIRTUAL_ENV"))}
    return subprocess.run(
        ["unshare", "--map-root-user", "--net", where / "molecule/shared/prepare-controller"],
        env={**environment, "HAL_SKIP_PACKAGES": "1", "HAL_WHEELHOUSE": str(wheelhouse), "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_controller_is_set_up_without_a_network_and_nothing_else_gets_in(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels with a blank"
    made = subprocess.run([PROJECT / "molecule/shared/wheelhouse", wheels], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    locked = [line for line in (PROJECT / "requirements.lock").read_text().splitlines() if line and line[0] != "#"]
    assert len(list(wheels.glob("*.whl"))) == len(locked) + 1  # setuptools

    here = tree(tmp_path / "controller")
    done = prepare(here, wheels)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run(
        [here / ".venv/bin/hal-inventory", "show"], cwd=here, capture_output=True, text=True, check=False
    )
    assert shown.stdout.startswith("site"), shown.stderr
    ansible = subprocess.run([here / ".venv/bin/ansible-doc", "ansible.posix.mount"], capture_output=True, check=False)
    assert ansible.returncode == 0

    wheel = next(wheels.glob("ansible_core-*.whl"))
    wheel.write_bytes(wheel.read_bytes() + b"x")
    (here / ".venv/locked").unlink()
    refused = prepare(here, wheels)
    assert refused.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in refused.stderr


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("requirements.txt", None, "is no wheelhouse: make wheelhouse makes one where there is a network"),
        ("made-for", "3.9 linux-x86_64\n", "is for Python 3.9 linux-x86_64, this machine has 3."),
        ("lock.sha256", "0  -\n", "was made for another requirements.lock; make it again from this one"),
    ],
)
def test_a_wheelhouse_that_does_not_suit_is_refused_before_anything_is_removed(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    here, wheels = tree(tmp_path / "controller"), tmp_path / "wheels"
    wheels.mkdir()
    (here / ".venv").mkdir()
    script = 'import sys, sysconfig; print("%d.%d" % sys.version_info[:2], sysconfig.get_platform())'
    (wheels / "made-for").write_text(
        subprocess.check_output([os.path.realpath("/usr/bin/python3"), "-c", script], text=True)
    )
    (wheels / "lock.sha256").write_bytes(
        subprocess.check_output(["sha256sum"], stdin=(here / "requirements.lock").open("rb"))
    )
    (wheels / "requirements.txt").touch()
    (wheels / name).unlink() if content is None else (wheels / name).write_text(content)
    done = prepare(here, wheels)
    assert done.returncode == 1
    assert message in done.stderr
    assert (here / ".venv").is_dir()
