"""MUNGE's key as text."""

from __future__ import annotations

import base64

import pytest
from ansible.module_utils.hal_node.munge_key import KeyTextError, decode

KEY = bytes(range(64))


@pytest.mark.parametrize(
    "text", [KEY.hex(), KEY.hex().upper(), base64.b64encode(KEY).decode(), base64.encodebytes(KEY).decode()]
)
def test_a_key_is_read_from_both_forms(text: str) -> None:
    assert decode(text) == KEY


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "neither hexadecimal nor base64"),
        ("correct horse battery staple!", "neither hexadecimal nor base64"),
        (KEY[:31].hex(), "has 31 bytes, it needs 32 to 1024"),
        ((KEY * 17).hex(), "has 1088 bytes"),
        ("00" * 64, "not random"),
    ],
)
def test_what_is_no_key_is_refused_and_not_repeated(text: str, why: str) -> None:
    with pytest.raises(KeyTextError, match=why) as refused:
        decode(text)
    assert not text or text[:12] not in str(refused.value)
