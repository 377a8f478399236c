"""README's picture is what an audit found, as hal-audit shows it."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from tests import picture

DOCUMENT = json.loads((picture.FOLDER / "audit.json").read_text(encoding="utf-8"))


def test_the_picture_is_drawn_from_the_document_that_is_beside_it() -> None:
    drawn = (picture.FOLDER / "audit.svg").read_text(encoding="utf-8")
    assert drawn == picture.draw(DOCUMENT), "python -m tests.picture draws it anew"
    text = " ".join(ElementTree.fromstring(drawn).itertext()).replace("\xa0", " ")
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    for words in ("declared", "found", "repair:", "Drift: "):
        assert words in text


def test_the_document_is_of_an_audit_that_found_drift() -> None:
    assert DOCUMENT["status"] == 2
    assert {one["cause"] for one in DOCUMENT["findings"] if one["status"] == "drift"} == {"node"}
    assert DOCUMENT["summary"]["nodes"] == len(DOCUMENT["nodes"]) >= 6


@pytest.mark.parametrize("secret", ["BEGIN OPENSSH", "vault_"])
def test_no_secret_is_in_the_document(secret: str) -> None:
    assert secret not in json.dumps(DOCUMENT)
