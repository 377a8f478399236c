"""The conda channels of the virtual HAL: the same bytes each time, and what packages.yml says."""

from __future__ import annotations

import bz2
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from testbed import channel
from testbed.errors import VirtualNodesError


def recipes(folder: Path, *entries: Mapping[str, object]) -> Path:
    (folder / "files/tool/bin").mkdir(parents=True)
    (folder / "files/tool/bin/tool").write_text("#!@PREFIX@/bin/sh\necho @VERSION@\n")
    (folder / "packages.yml").write_text(yaml.safe_dump(list(entries)))
    return folder


def test_the_same_recipes_give_the_same_bytes(tmp_path: Path) -> None:
    made = recipes(tmp_path / "recipes", {"channel": "a", "name": "tool", "version": "1.0"})
    for name in ("one", "two"):
        channel.make(tmp_path / name, "x86_64", made, None)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert [str(path) for path in files] == [
        "a/linux-64/repodata.json",
        "a/linux-64/tool-1.0-0.tar.bz2",
        "a/noarch/repodata.json",
    ]
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes()


def test_a_package_says_where_its_place_is_written(tmp_path: Path) -> None:
    made = recipes(tmp_path / "recipes", {"channel": "a", "name": "tool", "version": "1.0"})
    channel.make(tmp_path / "out", "ppc64le", made, None)
    packed = bz2.decompress((tmp_path / "out/a/linux-ppc64le/tool-1.0-0.tar.bz2").read_bytes())
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        stream = archive.extractfile("info/paths.json")
        assert stream
        (entry,) = json.load(stream)["paths"]
        program = archive.extractfile("bin/tool")
        assert program
        assert program.read() == f"#!{channel.PLACEHOLDER}/bin/sh\necho 1.0\n".encode()
    assert (entry["prefix_placeholder"], entry["file_mode"]) == (channel.PLACEHOLDER, "text")
    assert len(channel.PLACEHOLDER) > 200, "longer than any prefix"


def test_recipes_with_faults_are_refused_by_place(tmp_path: Path) -> None:
    made = recipes(tmp_path / "recipes", {"channel": "a", "name": "tool", "version": "1.0", "wish": 1})
    with pytest.raises(VirtualNodesError, match=r"packages\.yml: 0\.wish: Extra inputs are not permitted"):
        channel.make(tmp_path / "out", "x86_64", made, None)


def test_an_interpreter_that_cannot_be_had_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"channel": "a", "name": "python", "version": "3.7.5", "payload": {"pool/python3.7.deb": "0" * 64}}
    made = recipes(tmp_path / "recipes", entry)
    monkeypatch.setattr(channel, "ARCHIVES", ("http://127.0.0.1:9/ubuntu",))
    with pytest.raises(
        VirtualNodesError, match=r"(?s)cannot be had.*http://127\.0\.0\.1:9/ubuntu/pool/python3\.7\.deb: "
    ):
        channel.make(tmp_path / "out", "x86_64", made, tmp_path / "debs")


def test_the_virtual_hal_s_own_recipes_can_be_read() -> None:
    found = channel.load(channel.RECIPES / "packages.yml")
    assert {one.version for one in found if one.name == "python"} == {"2.7.17", "3.6.9", "3.7.5"}
    folders = {path.name for path in (channel.RECIPES / "files").iterdir()}
    names = {one.name for one in found}
    assert {one.partition("-")[0] if one not in names else one for one in folders} <= names, "files of no package"
