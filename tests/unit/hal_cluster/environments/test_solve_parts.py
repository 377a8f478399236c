"""Between rattler and lock files: what a solver is asked, what is refused of its answer, and what the linker gets."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rattler

from hal_cluster.environments import channel, solve, wheel
from hal_cluster.environments.errors import HalEnvironmentsError
from hal_cluster.environments.lock import Lock, Package
from tests.unit.hal_cluster.environments.conftest import FILES, asked

SHA256 = "ab" * 32
MATHS = Package(
    "maths", "1.10", "py_0", 3, "ibm", "linux-64", "maths-1.10-py_0.tar.bz2", 77, SHA256, "MIT", ("places",), "",
)  # fmt: skip


def answer(**changes: Any) -> Any:
    """A package as a solver returns it."""
    values = {
        "name": SimpleNamespace(normalized="maths"), "version": "1.10", "build": "py_0", "build_number": 3,
        "url": "https://ibm.example/conda/linux-64/maths-1.10-py_0.tar.bz2", "subdir": "linux-64",
        "file_name": "maths-1.10-py_0.tar.bz2", "size": 77, "sha256": bytes.fromhex(SHA256), "license": "MIT",
        "depends": ["z", "a"], "noarch": SimpleNamespace(python=False, generic=False),
    }  # fmt: skip
    return SimpleNamespace(**{**values, **changes})


READ_AT = {"main": "https://ibm.example/con", "ibm": "https://ibm.example/conda"}


def test_an_answer_becomes_a_package_of_its_channel() -> None:
    expected = replace(MATHS, depends=("a", "z"))
    assert solve._package(answer(), READ_AT) == expected
    assert solve._package(answer(license=None), READ_AT) == replace(expected, license="")
    below = {"ibm": "https://ibm.example/conda", "top": "https://ibm.example"}
    assert solve._package(answer(), below) == expected, "an address that is below another one"
    for python, generic, kind in ((True, False, "python"), (False, True, "generic")):
        noarch = SimpleNamespace(python=python, generic=generic)
        assert solve._package(answer(noarch=noarch), READ_AT) == replace(expected, noarch=kind)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sha256": None}, "maths: u has no sha256 or no size in its channel's index; ask its maker"),
        ({"size": 0}, "maths: u has no sha256 or no size in its channel's index; ask its maker"),
        ({"size": None}, "maths: u has no sha256 or no size in its channel's index; ask its maker"),
        ({}, "maths: u is below none of the declared channels"),
    ],
)
def test_an_answer_that_cannot_be_checked_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(HalEnvironmentsError) as refused:
        solve._package(answer(url="u", **changes), READ_AT)
    assert str(refused.value) == words


@pytest.mark.parametrize(
    ("read_at", "url"),
    [
        ({"x": "https://x/x", "ibm": "https://i/i"}, "https://i/i"),
        ({"x": "https://x/x", "y": "https://y/y"}, "https://x/x"),
        ({"ibm": "file:///channels/ibm"}, "file:///channels/ibm"),
    ],
)
def test_what_should_stay_is_where_its_channel_is_read(read_at: Mapping[str, str], url: str) -> None:
    found = solve.record_of(MATHS, read_at)
    assert (found.url, found.channel, found.file_name) == (f"{url}/linux-64/{MATHS.file}", url, MATHS.file)
    assert (found.name.normalized, str(found.version), found.build, found.build_number, found.subdir) == (
        "maths", "1.10", "py_0", 3, "linux-64",
    )  # fmt: skip
    assert (found.depends, found.sha256, found.size) == (["places"], bytes.fromhex(SHA256), 77)


def test_everything_that_nothing_locked_satisfies_is_told() -> None:
    """Of packages and of specs, all of each; a virtual package is there, and a word that is no spec is told as such."""
    places = replace(
        MATHS,
        name="places",
        version="2.0",
        build="0",
        depends=("__glibc[build_number=0]", "__glibc 2.17 0", "__glibc >=2.18"),
    )
    maths = replace(MATHS, depends=("none 1", "places >=2", "places >=3", "=", "maths 1.10 py_1"))
    found = solve.unsatisfied(Lock(asked("maths 1.9", "maths", "gone"), {"maths": maths, "places": places}))
    broken = [words for _, words in found if "which is not a spec: " in words]
    assert [one for one in found if one[1] not in broken] == [
        ("maths", "needs none 1: nothing is locked of that name"),
        ("maths", "needs places >=3: locked is 2.0 0"),
        ("maths", "needs maths 1.10 py_1: locked is 1.10 py_0"),
        ("places", "needs __glibc >=2.18: locked is 2.17 0"),
        ("", "spec maths 1.9: locked is 1.10 py_0"),
        ("", "spec gone: nothing is locked of that name"),
    ]
    assert len(broken) == 1
    assert broken[0].startswith("needs =, which is not a spec: ")


def test_a_solver_is_asked_about_both_folders_of_each_channel_where_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched: list[tuple[str, str]] = []
    solved: list[dict[str, Any]] = []

    def fetch(url: str, subdir: str) -> bytes:
        fetched.append((url, subdir))
        return b"{}"

    async def solver(**words: Any) -> list[Any]:
        solved.append(words)
        return [answer()]

    class Data:
        def __init__(self, read: Any, subdir: str, path: Path) -> None:
            self.seen = (read.base_url, subdir, Path(path).name, Path(path).read_bytes())

    monkeypatch.setattr(channel, "fetch", fetch)
    monkeypatch.setattr(rattler, "solve_with_sparse_repodata", solver)
    monkeypatch.setattr(rattler, "SparseRepoData", Data)
    wanted = asked("maths >=1")
    places = {"ibm": "https://mirror/ibm/", "other": "https://other"}
    found = solve.lock(wanted, {**places, "ibm": "https://ibm.example/conda/"})
    assert found == Lock(wanted, {"maths": replace(MATHS, depends=("a", "z"))})
    urls = ["https://ibm.example/conda", "https://main.example/conda"]
    assert fetched == [(url, subdir) for url in urls for subdir in ("linux-64", "noarch")]
    assert [one.seen for one in solved[0]["sparse_repodata"]] == [
        (f"{url}/", subdir, f"{alias}-{subdir}.json", b"{}")
        for alias, url in zip(("ibm", "main"), urls, strict=True)
        for subdir in ("linux-64", "noarch")
    ]
    assert [str(one) for one in solved[0]["specs"]] == ["maths >=1"]
    assert [(one.name.normalized, str(one.version)) for one in solved[0]["virtual_packages"]] == [("__glibc", "2.17")]
    assert solved[0]["channel_priority"] == rattler.ChannelPriority.Strict
    assert solved[0]["locked_packages"] is None
    solve.lock(wanted, {}, kept=Lock(wanted, {"maths": MATHS}))
    assert [one.url for one in solved[1]["locked_packages"]] == [f"{urls[0]}/linux-64/{MATHS.file}"]


def test_a_linker_gets_each_package_with_the_place_of_its_archive(
    part: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    link, installed = part("link"), list[Any]()

    async def install(records: list[Any], prefix: str, **words: Any) -> None:
        installed.append((records, prefix, words))

    package = {
        "name": "maths", "version": "1.10", "build": "py_0", "build_number": 3, "subdir": "linux-64",
        "sha256": SHA256, "size": 77, "depends": ["places"], "license": "MIT", "noarch": "",
        "file": "m-1-0.conda", "archive": "/a/m-1-0.conda", "channel": "https://c/c",
    }  # fmt: skip
    pure = {**package, "name": "pure", "license": "", "noarch": "python"}
    request = {"prefix": "/p", "cache": "/c", "platform": "linux-64", "packages": [package, pure]}
    monkeypatch.setattr(link, "install", install)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(request).encode())))
    assert link.main() == 0
    [(records, prefix, words)] = installed
    assert (prefix, str(words.pop("platform"))) == ("/p", "linux-64")
    assert words == {
        "cache_dir": "/c", "show_progress": False, "installed_packages": [], "execute_link_scripts": False,
    }  # fmt: skip
    assert [
        (one.name.normalized, str(one.version), one.build, one.build_number, one.subdir, one.sha256.hex(), one.size)
        for one in records
    ] == [(name, "1.10", "py_0", 3, "linux-64", SHA256, 77) for name in ("maths", "pure")]
    assert [(one.depends, one.license, one.file_name, one.url, one.channel) for one in records] == [
        (["places"], licence, "m-1-0.conda", "file:///a/m-1-0.conda", "https://c/c") for licence in ("MIT", None)
    ]
    assert [(one.noarch.python, one.noarch.generic) for one in records] == [(False, False), (True, False)]


def test_a_linker_without_rattler_says_so_and_one_that_fails_says_why(
    part: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    link = part("link")
    monkeypatch.setattr(link, "MISSING", "ImportError: no")
    assert link.main() == 1
    version = sys.version.split()[0]
    assert capsys.readouterr().err == f"{sys.executable} (Python {version}) has no py-rattler: ImportError: no\n"
    program = [sys.executable, "-B", str(FILES / "environment_link.py")]
    done = subprocess.run(program, input="{}", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "'packages'\n")


@pytest.mark.parametrize(
    ("code", "errors", "brings", "why"),
    [
        (1, "a\nno way\n", True, "no way"), (0, "", False, "nothing was said"), (1, " \n", False, "nothing was said"),
        (0, "a warning\n", True, ""),
    ],
)  # fmt: skip
def test_pip_is_asked_for_the_wheel_of_nodes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, errors: str, brings: bool, why: str
) -> None:
    name, digest = "small.whl", "1bb21a2b2d3e93b2a1f0f9fdd9ea8c9ac8d0ee0f1ae1a7d4f4e0ed8d1e0a6aee"
    folder = tmp_path / "deep" / "er"
    calls: list[tuple[list[str], dict[str, Any]]] = []

    def run(words: list[str], **how: Any) -> Any:
        calls.append((words, how))
        if brings:
            (folder / name).write_bytes(b"wheel")
        return subprocess.CompletedProcess(words, code, "", errors)

    monkeypatch.delenv("HAL_WHEELHOUSE", raising=False)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(wheel, "WHEELS", {"ppc64le": (name, digest)})
    with pytest.raises(HalEnvironmentsError) as refused:
        wheel.bring("ppc64le", folder)
    path = folder / name
    found = hashlib.sha256(b"wheel").hexdigest()
    assert str(refused.value) == (
        f"{name} cannot be had: {why}. With a network elsewhere, put it into {folder}"
        if why
        else f"{path}: has sha256 {found}, PyPI's is {digest}: remove it"
    )
    assert calls == [(
        [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
            "--only-binary=:all:", "--platform=manylinux_2_17_ppc64le", "--python-version=3.8", "--abi=abi3",
            "--implementation=cp", f"--dest={folder}", f"py-rattler=={wheel.VERSION}",
        ],
        {"capture_output": True, "text": True, "check": False},
    )]  # fmt: skip
    if why:
        path.unlink(missing_ok=True)
    else:
        monkeypatch.setattr(wheel, "WHEELS", {"ppc64le": (name, found)})
        assert wheel.bring("ppc64le", folder) == path
        assert len(calls) == 1, "it is there"
