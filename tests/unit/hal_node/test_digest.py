"""SHA-256 of files, as what runs on nodes takes it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tests.unit.alike import alike

alike("hal_node.digest", but=["sha256_of_rest"])  # an open file is not carried

from ansible.module_utils.hal_node.digest import BLOCK, sha256_of, sha256_of_rest  # noqa: E402


def test_all_of_a_file_is_in_its_digest(tmp_path: Path) -> None:
    content = os.urandom(2 * BLOCK + 1)
    (tmp_path / "x").write_bytes(content)
    assert sha256_of(str(tmp_path / "x")) == hashlib.sha256(content).hexdigest()
    with open(tmp_path / "x", "rb") as source:
        source.seek(1000)
        assert sha256_of_rest(source) == hashlib.sha256(content[1000:]).hexdigest()
