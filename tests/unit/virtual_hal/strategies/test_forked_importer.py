"""The lab's strategies/forked_importer.py: mitogen's forks get their modules, whatever their parent waits for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mitogen.core
import mitogen.fork
import mitogen.master
import pytest
from ansible.errors import AnsibleError

sys.path.append(str(Path(__file__).resolve().parents[4] / "molecule/virtual_hal"))

from strategies import forked_importer

SECONDS = 60  # until a question counts as one without an answer; an answer takes milliseconds
ASKING = """
import os
import mitogen.core, mitogen.parent


@mitogen.core.takes_econtext
def forked(econtext):
    mitogen.parent.upgrade_router(econtext)
    importer = econtext.importer

    def ask():  # as while a child of ours waits for it, and another thread asks
        importer._lock.acquire()
        importer._callbacks["asked_for"] = []

    def have():
        importer._callbacks.pop("asked_for")
        importer._lock.release()

    os.register_at_fork(before=ask, after_in_parent=have)
    return econtext.router.fork()


def imported():
    import asked_for
    return asked_for.ANSWER
"""


@pytest.fixture
def router() -> Iterator[Any]:
    broker = mitogen.master.Broker()
    yield mitogen.master.Router(broker)
    broker.shutdown()
    broker.join()


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What contexts run, which get it from here."""
    (tmp_path / "asking.py").write_text(ASKING)
    (tmp_path / "asked_for.py").write_text("ANSWER = 42\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module("asking")


def answer(router: Any, asking: Any, seconds: float) -> Any:
    """What a fork has imported that was made while its parent waited for the same module."""
    context = router.local(python_path=sys.executable)
    fork = context.call(asking.forked)
    return fork.call_async(asking.imported).get(timeout=seconds).unpickle()


def test_a_fork_does_not_wait_for_what_its_parent_asked(router: Any, asking: Any) -> None:
    forked_importer.send(router.responder)
    assert answer(router, asking, SECONDS) == 42


def test_the_installed_mitogen_needs_that(router: Any, asking: Any) -> None:
    """Where this fails mitogen has mended it: forked_importer.py can go."""
    with pytest.raises(mitogen.core.TimeoutError):
        answer(router, asking, 3)


def test_another_mitogen_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked_importer, "AT", "        on_fork_of_another_release()\n")
    with pytest.raises(AnsibleError, match=r"mitogen forks in another way now; see forked_importer\.py"):
        forked_importer.mend()
