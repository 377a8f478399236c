"""The wheel that nodes install with: the one that is declared, or none."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import yaml

from hal_cluster.environments import cli, wheel
from tests.unit.hal_cluster.environments.conftest import PROJECT


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> str:
    """A release of a few bytes, and no index to fetch it from."""
    monkeypatch.setattr(wheel, "WHEELS", {"x86_64": ("small.whl", hashlib.sha256(b"wheel").hexdigest())})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("HAL_WHEELHOUSE", raising=False)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    return "small.whl"


def bring(folder: Path) -> int:
    return cli.main(["wheel", "--arch", "x86_64", "--to", str(folder)])


def test_what_is_there_is_checked(tmp_path: Path, small: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / small).write_bytes(b"wheel")
    assert bring(tmp_path) == 0
    assert capsys.readouterr().out == f"{tmp_path}/{small}\n"
    (tmp_path / small).write_bytes(b"another")
    assert bring(tmp_path) == 2
    assert "PyPI's is" in capsys.readouterr().err


def test_without_an_index_it_says_where_to_put_it(
    tmp_path: Path, small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bring(tmp_path) == 2
    said = capsys.readouterr().err
    assert "small.whl cannot be had: " in said
    assert f"With a network elsewhere, put it into {tmp_path}" in said


def test_a_wheelhouse_has_it(tmp_path: Path, small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "house").mkdir()
    (tmp_path / "house" / small).write_bytes(b"wheel")
    monkeypatch.setenv("HAL_WHEELHOUSE", str(tmp_path / "house"))
    assert bring(tmp_path / "to") == 0
    assert (tmp_path / "to" / small).read_bytes() == b"wheel"


def test_the_role_carries_the_same_release() -> None:
    declared = yaml.safe_load((PROJECT / "roles/environments/vars/main.yml").read_text())["__environments_wheels"]
    assert {arch: (one["file"], one["sha256"]) for arch, one in declared.items()} == wheel.WHEELS
    assert f"\npy-rattler=={wheel.VERSION} " in (PROJECT / "requirements.lock").read_text()
