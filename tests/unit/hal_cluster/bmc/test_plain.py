"""What is said of a BMC before anybody asks it: its ports, its password; and the document of what it says."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hal_cluster.bmc import capture, many
from hal_cluster.bmc.ipmi import Ipmi
from hal_cluster.bmc.models import Target
from hal_cluster.bmc.passwords import FACTORY, LONGEST_IPMI, is_default, problem

TARGET = Target(name="hal05", kind="openbmc", address="10.0.0.5", user="root", password="none-of-yours")


def test_a_bmc_listens_where_the_standards_say() -> None:
    assert (TARGET.https_port, TARGET.ipmi_port, TARGET.console_port) == (443, 623, 2200)
    assert (TARGET.timeout_seconds, TARGET.label, LONGEST_IPMI) == (30, "hal05 (10.0.0.5)", 20)
    assert "none-of-yours" not in repr(TARGET)


def test_sixteen_are_asked_at_once_unless_somebody_says_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()

    class Pool:
        def __init__(self, max_workers: int, **_: Any) -> None:
            asked.append(max_workers)

        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def submit(self, ask: Any, target: Target) -> Any:
            return type("Future", (), {"result": lambda _: ask(target)})()

    monkeypatch.setattr(many, "ProcessPoolExecutor", Pool)
    targets = [TARGET] * 20
    assert many.ask_all(targets, lambda target: target.name) == {"hal05": "hal05"}
    many.ask_all(targets, lambda target: target.name, 3)
    many.ask_all(targets[:2], lambda target: target.name)
    assert many.ask_all([], lambda target: target.name) == {}
    assert asked == [16, 3, 2]


@pytest.mark.parametrize("password", [*sorted(FACTORY), "0penBmc", " ADMIN ", "", "  "])
def test_a_password_from_the_factory_is_none(password: str) -> None:
    assert is_default(password)
    assert problem(password) == "is a well-known default, or empty"


@pytest.mark.parametrize(
    ("password", "said"),
    [("Xk3-9a", "has fewer than 12 characters"), ("xyzzy", "has fewer than 12 characters"), ("r4nd0mEnough-Yes", "")],
)
def test_another_password_has_to_be_good(password: str, said: str) -> None:
    assert not is_default(password)
    assert problem(password) == said


class Asked:
    """A client that answers, or fails."""

    closed = 0

    def resources(self) -> Any:
        return {"/redfish/v1/": {}}

    def close(self) -> None:
        self.closed += 1


class AskedByIpmi(Ipmi):
    """A client that speaks IPMI."""

    closed = 0

    def __init__(self) -> None:  # nobody is contacted
        pass

    def identity(self) -> Any:
        return type("Seen", (), {"serial": "S1", "model": "M1", "bmc_macs": ("02:00:00:00:00:01",)})()

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("client", "says"),
    [
        (Asked(), {"kind": "bmc", "resources": {"/redfish/v1/": {}}}),
        (AskedByIpmi(), {"kind": "ipmi", "serial": "S1", "model": "M1", "macs": ["02:00:00:00:00:01"]}),
    ],
)
def test_the_document_says_who_said_it_and_the_session_ends(
    monkeypatch: pytest.MonkeyPatch, client: Any, says: dict[str, Any]
) -> None:
    monkeypatch.setattr(capture, "connect", lambda _target: client)
    found = capture.document(TARGET)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found.pop("taken_at"))
    assert found == {"format": 1, "address": "10.0.0.5", **says}
    assert client.closed == 1


def test_a_session_ends_when_the_question_fails_too(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Asked()
    monkeypatch.setattr(client, "resources", lambda: 1 // 0)
    monkeypatch.setattr(capture, "connect", lambda _target: client)
    with pytest.raises(ZeroDivisionError):
        capture.document(TARGET)
    assert client.closed == 1
