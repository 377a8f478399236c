"""For all tests: a property does not fail because the machine is busy, and what needs root gets it."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.as_root import pytest_collection_modifyitems as pytest_collection_modifyitems  # hooks of pytest
from tests.as_root import pytest_pyfunc_call as pytest_pyfunc_call

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
