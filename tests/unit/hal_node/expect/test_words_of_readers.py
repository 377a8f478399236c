"""A reader's usual word, said or left out, is the same; what is asked comes as JSON, as it does to a node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.expect import evaluate as evaluation
from ansible.module_utils.hal_node.expect import ports as ports

from tests.unit.hal_node.expect.conftest import whole


def given(**words: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(words))
    return found


@pytest.mark.parametrize("port", [22, 6818])
def test_that_something_listens_is_what_is_read_of_a_port(tmp_path: Path, port: int) -> None:
    (tmp_path / "tcp").write_text(f"  sl  local_address rem_address   st\n0: 0100007F:{port:04X} 0:0 0A x\n")
    (tmp_path / "tcp6").write_text("head\n")
    for words in ({}, {"read": "listening"}, {"protocol": "tcp", "read": "listening"}):
        (reading,) = ports.read_ports([given(port=port, **words)], str(tmp_path))
        assert whole(reading) == {"value": True, "items": [True]}
        (reading,) = ports.read_ports([given(port=port + 1, **words)], str(tmp_path))
        assert whole(reading)["value"] is False


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ({"read": "exists"}, True),
        ({"read": "content"}, "one\ntwo\n"),
        ({"read": "lines"}, ["one", "two"]),
        ({"read": "mode"}, "0640"),
        ({"read": "type"}, "file"),
        ({"read": "size"}, 8),
        ({"read": "sha256"}, "c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"),
    ],
    ids=lambda value: value["read"] if isinstance(value, dict) else "",
)
def test_each_word_of_a_file_reads_what_it_says(tmp_path: Path, words: dict[str, str], wanted: Any) -> None:
    file = tmp_path / "file"
    file.write_text("one\ntwo\n")
    file.chmod(0o640)
    (result,) = evaluation.evaluate([given(file={"path": str(file), **words}, equal=wanted)])
    assert result["status"] == "pass", result
