"""The filters of the role, and the module that reads /etc/subuid."""

from __future__ import annotations

from tests.unit.roles.singularity.conftest import filters as filters
from tests.unit.roles.singularity.conftest import lines as lines
