"""The Pythons of nodes on this machine are real and whole."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from testbed import channel, pythons
from testbed.errors import VirtualNodesError
from testbed.wheels import File

from tests.unit.interpreters import NODES, interpreter

# A Python 2 takes both for one, whatever it says of its version.
ASK = "import sys; print('%d.%d %d %s' % (sys.version_info[:2] + (len({b'x', u'x'}), sys.prefix)))"


@pytest.mark.parametrize("version", NODES)
def test_each_is_what_its_name_says_with_nothing_set(version: str) -> None:
    done = subprocess.run(
        [interpreter(version), "-c", "import ctypes, ssl, _hashlib\n" + ASK],
        capture_output=True, text=True, check=True, env={},
    )  # fmt: skip
    prefix = Path(interpreter(version)).parents[1]
    assert done.stdout == f"{version} {1 if version == '2.7' else 2} {prefix}\n"


def planted(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Every interpreter is this script, in a cache of its own."""
    monkeypatch.setenv("HAL_CACHE_DIR", str(folder))

    def stub(recipe: channel.Recipe, _debs: Path | None) -> dict[str, File]:
        release = ".".join(recipe.version.split(".")[:2])
        library = {f"lib/python{release}/sitecustomize.py": File(b"")}
        return {f"bin/python{release}": File(script.encode(), True), **library}

    monkeypatch.setattr(channel, "interpreter", stub)
    monkeypatch.setattr(channel, "libraries", lambda _recipe, _debs: ())


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("#!/bin/sh\nexit 1\n", "it is another version"),
        ('#!/bin/sh\nexec python3 "$@"\n', "it is another version"),
        ("#!/bin/sh\necho 'libssl.so.1.1: cannot open' >&2; exit 1\n", "libssl.so.1.1: cannot open"),
    ],
)
def test_one_that_is_not_real_or_not_whole_is_refused_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    planted(tmp_path, monkeypatch, script)
    for _ in range(2):
        with pytest.raises(VirtualNodesError, match=f"Python 2.7 of nodes does not run on this machine: {why}"):
            pythons.build()


def test_what_is_built_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(tmp_path, monkeypatch, "#!/bin/sh\n")
    built = pythons.build()
    assert built.parent == tmp_path / "pythons"
    monkeypatch.setattr(channel, "interpreter", None)
    assert pythons.build() == built
    assert pythons.program("3.6") == built / "3.6/bin/python3.6"
