"""A controller without a network: everything comes from a wheelhouse, and only what it was made with."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]


def tree(folder: Path) -> Path:
    """A copy of what a controller has of the project."""
    folder.mkdir()
    names = [
        "hal_*",
        "inventory",
        "plugins",
        "molecule/virtual_hal",
        "tools",
        "requirements.lock",
        "pyproject.toml",
        "ansible.cfg",
    ]
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
        ["unshare", "--map-root-user", "--net", where / "tools/prepare-controller"],
        env={**environment, "HAL_SKIP_PACKAGES": "1", "HAL_WHEELHOUSE": str(wheelhouse), "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )


def wheelhouse(folder: Path) -> Path:
    """One that suits, without its packages."""
    wheels = folder / "wheels"
    wheels.mkdir()
    script = 'import sys, sysconfig; print("%d.%d" % sys.version_info[:2], sysconfig.get_platform())'
    (wheels / "made-for").write_text(
        subprocess.check_output([os.path.realpath("/usr/bin/python3"), "-c", script], text=True)
    )
    (wheels / "lock.sha256").write_bytes(
        subprocess.check_output(["sha256sum"], stdin=(PROJECT / "requirements.lock").open("rb"))
    )
    return wheels


@pytest.mark.slow
def test_a_controller_is_set_up_without_a_network_and_nothing_else_gets_in(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels with a blank"
    made = subprocess.run([PROJECT / "tools/wheelhouse", wheels], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    locked = [line for line in (PROJECT / "requirements.lock").read_text().splitlines() if line[0] not in "# "]
    assert len([*wheels.glob("*.whl"), *wheels.glob("*.tar.gz")]) == len(locked)

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
    ("lock", "message"),
    [
        (r"\g<0>", "THESE PACKAGES DO NOT MATCH THE HASHES"),
        (r"\1\n", "Hashes are required in --require-hashes mode, but they are missing"),
    ],
)
def test_a_package_that_is_not_what_was_locked_is_not_installed(tmp_path: Path, lock: str, message: str) -> None:
    """The first of all: what builds others. Nor is one that the lock has no hash of."""
    here = tree(tmp_path / "controller")
    path = here / "requirements.lock"
    found = re.compile(r"^(setuptools==(\S+))( \\\n +--hash=\S+)+\n", re.MULTILINE)
    version = found.findall(path.read_text())[0][1]
    path.write_text(found.sub(lock, path.read_text()))
    (tmp_path / f"setuptools-{version}-py3-none-any.whl").write_bytes(b"another")
    nowhere = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    refused = subprocess.run(
        [here / "tools/prepare-controller"],
        env={**os.environ, "HAL_SKIP_PACKAGES": "1", **nowhere},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode != 0
    assert message in refused.stderr
    assert "pip could not install setuptools of requirements.lock" in refused.stderr


def test_a_wheelhouse_cannot_say_itself_what_its_packages_are(tmp_path: Path) -> None:
    """Who has the stick can also write what describes its files: what counts is the lock that the controller has."""
    here, wheels = tree(tmp_path / "controller"), wheelhouse(tmp_path)
    version = re.findall(r"^setuptools==(\S+)", (here / "requirements.lock").read_text(), re.MULTILINE)[0]
    evil = wheels / f"setuptools-{version}-py3-none-any.whl"
    evil.write_bytes(b"another")
    digest = hashlib.sha256(b"another").hexdigest()
    (wheels / "requirements.txt").write_text(f"setuptools=={version} --hash=sha256:{digest}\n")
    refused = prepare(here, wheels)
    assert refused.returncode == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in refused.stderr


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("made-for", None, "is not a wheelhouse: make wheelhouse makes one where there is a network"),
        ("made-for", "3.9 linux-x86_64\n", "is for Python 3.9 linux-x86_64, this machine has 3."),
        ("lock.sha256", "0  -\n", "was made for another requirements.lock; make it again from this one"),
    ],
)
def test_a_wheelhouse_that_does_not_suit_is_refused_before_anything_is_removed(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    here, wheels = tree(tmp_path / "controller"), wheelhouse(tmp_path)
    (here / ".venv").mkdir()
    (wheels / name).unlink() if content is None else (wheels / name).write_text(content)
    done = prepare(here, wheels)
    assert done.returncode == 1
    assert message in done.stderr
    assert (here / ".venv").is_dir()
