"""Channels, and the program on them, as the tests of its package have them."""

from __future__ import annotations

from tests.unit.hal_cluster.environments.conftest import channels as channels
from tests.unit.hal_cluster.environments.conftest import install as install
from tests.unit.hal_cluster.environments.conftest import installer as installer
from tests.unit.hal_cluster.environments.conftest import part as part
from tests.unit.hal_cluster.environments.conftest import problem as problem
from tests.unit.hal_cluster.environments.conftest import said as said
from tests.unit.hal_cluster.environments.conftest import site as site
from tests.unit.hal_cluster.environments.conftest import write_lock as write_lock
