"""For all tests: a property does not fail because the machine is busy, what needs root gets it, and a skip that nobody
allowed is a failure."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Of a single file, too, and for processes of multiprocessing.
if str(Path(__file__).parents[1]) not in sys.path:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import skips
from tests.as_root import pytest_collection_modifyitems as pytest_collection_modifyitems  # hooks of pytest
from tests.as_root import pytest_pyfunc_call as pytest_pyfunc_call

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


UMASK = os.umask(0)
os.umask(UMASK)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """A test leaves the umask as it was: programs set one for themselves, and others come after in this process."""
    left = os.umask(UMASK)
    if left != UMASK:
        pytest.fail(f"the umask is {left:04o} after this test, and was {UMASK:04o}", pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    """Count skips where all reports come together: not in a process that runs some of the tests for another."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(skips.Skips(skips.load()), "skips")
