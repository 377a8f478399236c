"""Answers of nodes, healthy and broken, and what the controller knows beside them."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ansible.plugins.loader import init_plugin_loader
from ansible.utils.collection_loader import AnsibleCollectionConfig

PROJECT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(PROJECT))

from hal_cluster.audit.answers import of_answer  # noqa: E402
from hal_cluster.audit.document import Audit  # noqa: E402  of this checkout, whatever is installed
from hal_cluster.audit.findings import Finding  # noqa: E402

Answer = dict[str, Any]
OWNER = {
    "role": "time",
    "task": "time|roles/time/tasks/configure.yml|Write the configuration of chronyd",
    "source": "roles/time/tasks/configure.yml:2",
    "commit": "abc1234",
    "converged_at": "2026-11-20T18:02:00Z",
    "units": ["chronyd.service"],
}
HEALTHY: Answer = {
    "record": {
        "status": "ok",
        "reason": "",
        "used": "own",
        "serial": 17,
        "digest": "5e88",
        "sealed_at": "2026-11-20T18:02:00Z",
        "commit": "abc1234",
        "roles": {},
    },
    "differences": [],
    "extra": [],
    "packages": {"extra": [], "unknown": ""},
    "software": {"slurm": "22.05.9-1.el7.ppc64le"},
    "checks": [{"check": "uid_0", "status": "pass", "observed": ["root"], "expected": ["root"], "reason": ""}],
    "answers": [],
    "problems": [],
    "more": {"differences": 0, "extra": 0},
    "counts": {"resources": 12, "questions": 1, "watched_files": 30},
    "seconds": 0.2,
    "cpu_seconds": 0.1,
    "memory_mb": 20.0,
}
EXPECTATION = {
    "id": "chronyd runs",
    "role": "time",
    "status": "pass",
    "severity": "error",
    "expected": {"equal": True},
    "observed": True,
    "reason": "",
    "why": "clocks drift apart",
    "source": "roles/time/expect.yml:3",
    "finding": "",
}


@pytest.fixture(scope="module")
def plugins_of_ansible() -> None:
    """Ansible finds its plugins; it warns if it is told where a second time."""
    if AnsibleCollectionConfig.collection_finder is None:
        init_plugin_loader()


@pytest.fixture
def healthy() -> Answer:
    """The answer of a node that is as declared."""
    return copy.deepcopy(HEALTHY)


def difference(**changes: Any) -> dict[str, Any]:
    """A difference of the module's answer."""
    base = {"resource": "file:/etc/chrony.conf", "kind": "mode", "attribute": "mode", "should": "0644", "is": "0666"}
    return {**base, "note": "", **OWNER, **changes}


def expectation(**changes: Any) -> dict[str, Any]:
    """A result of hal_expect as the audit has it."""
    return {**EXPECTATION, **changes}


def findings(answer: Answer, *expectations: dict[str, Any], host: str = "hal05", **more: Any) -> list[Finding]:
    """What an answer says."""
    return of_answer(host, answer, expectations or [expectation()], **more)


@pytest.fixture
def documented() -> Callable[..., dict[str, Any]]:
    """Make the document of some findings, checked against the schema."""
    schema = json.loads((PROJECT / "hal_cluster" / "audit" / "findings.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)

    def made(found: list[Finding], **settings: Any) -> dict[str, Any]:
        hosts = settings.pop("hosts", sorted({one.host for one in found if one.host}) or ["hal05"])
        audit = Audit(expected=list(hosts), **settings)
        for host in hosts:
            node = {"roles": ["time"], "resources": 12, "expectations": 1, "watched_files": 30}
            audit.add(host, {"node": node, "findings": [one.document() for one in found if one.host == host]})
        audit.findings.extend(one for one in found if not one.host)
        document: dict[str, Any] = json.loads(json.dumps(audit.document(4.2)))
        jsonschema.validate(document, schema)
        return document

    return made
