"""The keys of an image's repositories, and the package manager that fills its root. No root, no rpm, no gpg."""

from __future__ import annotations

import io
import stat
import urllib.error
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.unit.hal_node.image.image_parts import ImageError, install, write


class Ring:
    """In place of rpm and gpg: what was trusted; a key whose fingerprint is wrong is refused."""

    trusted: ClassVar[list[tuple[str, str, str, bytes]]] = []

    def __init__(self, module: str, folder: str) -> None:
        assert module == "module"
        assert (Path(folder).name, list(Path(folder).iterdir())) == ("check", [])

    def trust(self, name: str, path: str, fingerprint: str) -> None:
        self.trusted.append((name, path, fingerprint, Path(path).read_bytes()))
        if fingerprint == "wrong":
            raise install.MirrorError("it has another key")


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    Ring.trusted = []
    monkeypatch.setattr(install, "Keyring", Ring)

    def opened(url: str) -> Any:
        if "gone" in url:
            raise urllib.error.URLError("refused")
        return io.BytesIO(url.encode())

    return lambda *keys: install.bring_keys("module", str(tmp_path), list(keys), opened)


def test_keys_are_brought_from_where_they_are_and_compared(bring: Any, tmp_path: Path) -> None:
    source = write(tmp_path, "source", "of this node")
    left = write(tmp_path, "keys/left", "of an older build")
    write(tmp_path, "check/rpm/Packages")
    a, b = (str(tmp_path / "keys" / name) for name in "ab")
    made = bring(
        {"id": "a", "source": str(source), "fingerprint": "A1"},
        {"id": "b", "source": "http://keys/b", "fingerprint": "B2"},
    )
    assert made == [a, b]
    assert Ring.trusted == [("a", a, "A1", b"of this node"), ("b", b, "B2", b"http://keys/b")]
    assert not left.exists()
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("keys", "check")] == [0o700, 0o700]
    assert bring() == []
    assert list((tmp_path / "keys").iterdir()) == []


def test_a_key_that_is_not_there_or_is_another_is_refused(bring: Any) -> None:
    for source, words in (
        ("/nosuch", "[Errno 2] No such file or directory: '/nosuch'"),
        ("http://gone/", "<urlopen error refused>"),
    ):
        with pytest.raises(ImageError) as said:
            bring({"id": "a", "source": source, "fingerprint": "A1"})
        assert str(said.value) == f"key a: {source} cannot be had: {words}"
    with pytest.raises(ImageError, match=r"^it has another key$"):
        bring({"id": "a", "source": "http://keys/a", "fingerprint": "wrong"})


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of a build, in which an older run has failed; `nsenter` says what it was given."""
    program = write(tmp_path, "bin/nsenter", '#!/bin/sh\necho "$LC_ALL $*"; cat; echo "$0" >&2; exit "$STATUS"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("STATUS", "0")
    monkeypatch.setattr(install, "LOG", str(write(tmp_path, "log", "Error: an older one\n")))
    return tmp_path / "log"


def test_a_package_manager_runs_in_the_build_and_what_it_says_is_kept(log: Path) -> None:
    install.install(77, "/b", "dnf", ["bash", "vi"], "8")
    words = "--config=/b/yum.conf --installroot=/b/root --releasever=8 --assumeyes install bash vi"
    assert log.read_text() == (
        f"Error: an older one\nC --mount=/proc/77/ns/mnt -- dnf {words}\n{log.parent}/bin/nsenter\n"
    )


def test_only_what_it_said_this_time_is_the_reason(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATUS", "1")
    with pytest.raises(ImageError) as said:
        install.install(77, "/b", "yum", [], "7")
    assert str(said.value) == f"yum could not install into the root: {log.parent}/bin/nsenter. All of it is in {log}"


def test_a_manager_that_is_unknown_or_cannot_be_run_is_refused(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImageError, match=r"^apt is not a package manager that is known here; use yum or dnf$"):
        install.install(77, "/b", "apt", [], "7")
    assert log.read_text() == "Error: an older one\n"
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ImageError, match=r"^nsenter cannot be run: No such file or directory$"):
        install.install(77, "/b", "yum", [], "7")
