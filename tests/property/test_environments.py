"""A manifest notices every change, whatever files are called; and Lua reads what a script has set."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FILES = Path(__file__).resolve().parents[2] / "roles/environments/files"
NAMES = st.binary(min_size=1, max_size=20).filter(
    lambda raw: b"\0" not in raw and b"/" not in raw and raw not in (b".", b"..")
)
TREES = st.dictionaries(NAMES, st.one_of(st.binary(max_size=20), st.just(None)), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def part() -> Any:
    sys.path.insert(0, str(FILES))
    return lambda name: importlib.import_module(f"environment_{name}")


def finished(manifest: Any, prefix: Path) -> None:
    """What an installation writes last."""
    (prefix / ".hal/record.json").write_text(json.dumps({"manifest": manifest.write(str(prefix))}))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=TREES, chosen=st.integers(min_value=0), more=st.binary(min_size=1, max_size=5))
def test_every_change_of_any_file_is_seen(part: Any, tree: dict[bytes, bytes | None], chosen: int, more: bytes) -> None:
    manifest = part("manifest")
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / ".hal").mkdir()
        raw = os.fsencode(folder)
        for name, content in tree.items():
            path = raw + b"/" + name
            if name == b".hal":
                continue
            if content is None:
                os.symlink(b"somewhere  else", path)
            else:
                Path(os.fsdecode(path)).write_bytes(content)
        finished(manifest, folder)
        nothing: dict[str, list[str]] = {"changed": [], "missing": [], "extra": [], "unlike": [], "writable": []}
        assert manifest.compare(str(folder)) == nothing
        names = [name for name in sorted(tree) if name != b".hal" and not name.endswith(b".pyc")]
        if not names:
            return
        name = names[chosen % len(names)]
        path = raw + b"/" + name
        if tree[name] is None:
            os.unlink(path)
            assert len(manifest.compare(str(folder))["missing"]) == 1
        else:
            Path(os.fsdecode(path)).write_bytes((tree[name] or b"") + more)
            assert len(manifest.compare(str(folder))["changed"]) == 1
    finally:
        shutil.rmtree(folder)


@pytest.mark.skipif(
    shutil.which("lua5.3") is None and shutil.which("lua") is None, reason="no Lua here; the nodes have one"
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.text(st.characters(exclude_characters="\n\r\0", codec="utf-8"), max_size=40))
def test_lua_reads_what_was_set(part: Any, value: str) -> None:
    quoted = part("activation").quoted(value)
    program = shutil.which("lua5.3") or "lua"
    done = subprocess.run([program, "-"], input=f"io.write({quoted})", capture_output=True, text=True, check=True)
    assert done.stdout == value
