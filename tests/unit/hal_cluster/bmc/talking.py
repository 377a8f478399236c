"""A Redfish service without a network: resources by paths behind a client's connection, and what was sent to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import sushy.exceptions

from hal_cluster.bmc.models import Target
from hal_cluster.bmc.redfish import Redfish

PINNED = Target("hal05", "openbmc", "10.0.0.5", "root", "", fingerprint="a" * 64)
NAME = "BMC of hal05 (10.0.0.5)"


class Answer:
    """As requests': a status, and a body which may be no JSON."""

    def __init__(self, body: Any = None, status: int = 200, content: bytes | None = None) -> None:
        self.status_code, self._body = status, body
        self.content = content if content is not None else b"x" if body is not None else b""

    def json(self) -> Any:
        if self._body is None:
            raise ValueError("no JSON")
        return self._body


class Service:
    """As sushy's connector: answers GET from ``resources``, everything else from ``said``, and keeps what came."""

    def __init__(self, resources: Mapping[str, Any], said: Any = None) -> None:
        self.resources, self.said, self.sent = dict(resources), said, list[tuple[Any, ...]]()

    def get(self, path: str) -> Answer:
        self.sent.append(("get", path))
        if path not in self.resources:
            raise sushy.exceptions.ResourceNotFoundError("GET", path, Answer({}, 404))
        found = self.resources[path]
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, Answer) else Answer(found)

    def __getattr__(self, method: str) -> Callable[..., Answer]:
        def send(path: str = "", data: Any = None) -> Answer:
            self.sent.append((method, path, data))
            return Answer(self.said)

        return send


def client(resources: Mapping[str, Any], said: Any = None, root: Mapping[str, Any] | None = None) -> Any:
    """Return a client that is logged in, and the service that it talks with."""
    found: Any = Redfish(PINNED)
    service = Service(resources, said)
    found.connection._connector = service
    found.connection._root = SimpleNamespace(json=links("Systems", "Managers", "Chassis") if root is None else root)
    return found, service


def link(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def links(*names: str) -> dict[str, dict[str, str]]:
    return {name: link(f"/{name}") for name in names}


def collection(*members: Mapping[str, Any]) -> dict[str, Any]:
    return {"Members": list(members)}


def member(path: str, **more: Any) -> dict[str, Any]:
    """Return a member of a collection, which has it whole."""
    return {"@odata.id": path, "Id": path.rpartition("/")[2], **more}
