"""A picture of an audit has what hal-audit shows, and asks nobody for anything."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from hal_cluster.audit.document import Audit
from hal_cluster.audit.findings import Finding
from tests import picture

PICTURES = Path(__file__).resolve().parents[4] / "docs" / "pictures"


def test_readmes_picture_is_drawn_from_the_document_beside_it() -> None:
    document = json.loads((PICTURES / "audit.json").read_text(encoding="utf-8"))
    assert (PICTURES / "audit.svg").read_text(encoding="utf-8") == picture.draw(document), picture.__doc__
    assert document["status"] == 2
    assert {one["role"] for one in document["findings"]} == {"node_health", "nvidia_driver", "time"}


def test_the_picture_has_the_report_and_no_address() -> None:
    audit = Audit(expected=["hal05"], groups={"all": ["hal05"]})
    diff = ("--- recorded", "+++ now", "@@ -1 +1 @@", "-server a", "+server <b>")
    one = Finding(
        "hal05", "changed", "file:/etc/chrony.conf", "drift", "node", "the content differs", role="time", diff=diff
    )
    audit.add("hal05", {"node": {"resources": 3}, "findings": [one.document()]})
    drawn = picture.draw(audit.document(1.0))
    text = " ".join(ElementTree.fromstring(drawn).itertext()).replace("\xa0", " ")
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    for words in ("$ hal-audit run", "declared", "server <b>", "repair:", "Drift: 1 difference on hal05"):
        assert words in text
