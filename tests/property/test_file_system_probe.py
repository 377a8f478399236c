"""The line of role file_system_probe is read again by InfluxDB's rules, whatever folders are called."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

for files in ("roles/file_system_probe/files", "plugins/module_utils"):  # a node has them in one folder
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / files))
probe: Any = importlib.import_module("file_system_probe")

names = st.text(st.sampled_from("ab/ ,=\\\"'ö\n\t"), min_size=1)
measured = st.none() | st.floats(0, 1e6).map(lambda value: round(value, 3))


def split(text: str, at: str) -> list[str]:
    """Split at a character that no backslash stands before (InfluxDB 1.8, line protocol reference)."""
    return re.split(rf"(?<!\\){re.escape(at)}", text)


def plain(text: str) -> str:
    return re.sub(r"\\([,= ])", r"\1", text)


@given(names, names, measured, measured, st.none() | st.integers(0, 10**7), st.integers(0, 10**6), st.booleans())
def test_a_line_is_read_as_it_was_meant(
    file_system: str, path: str, list_ms: Any, stat_ms: Any, entries: Any, hung: int, timed_out: bool
) -> None:
    state = {
        "file_system": file_system, "path": path, "list_ms": list_ms, "stat_ms": stat_ms, "entries": entries,
        "hung_seconds": hung, "timed_out": timed_out, "error": "none", "at": 1790000000.123,
    }  # fmt: skip
    line = probe.line_of(state)
    assert line.count("\n") == 1
    head, fields, stamp = split(line.rstrip("\n"), " ")
    assert stamp == "1790000000123000000"
    measurement, *tags = split(head, ",")
    assert measurement == "file_system_probe"
    read = {name: plain(value) for name, value in (split(tag, "=") for tag in tags)}
    # What the protocol cannot hold is replaced: line breaks, and a backslash at the end.
    wanted = {"file_system": file_system, "path": path}
    assert read == {name: re.sub(r"\\\Z", "/", text.replace("\n", " ")) for name, text in wanted.items()}
    found = dict(split(field, "=") for field in split(fields, ","))
    assert found.pop("timed_out") == ("true" if timed_out else "false")
    assert found.pop("hung_seconds") == f"{hung}i"
    assert found.pop("error") == '"none"'
    if entries is not None:
        assert found.pop("entries") == f"{entries}i"
    assert {name: float(value) for name, value in found.items()} == {
        name: value for name, value in (("list_ms", list_ms), ("stat_ms", stat_ms)) if value is not None
    }
