"""Machines of Slurm, as the tests of hal_node.slurm have them."""

from __future__ import annotations

from tests.unit.hal_node.slurm.conftest import patched as patched
from tests.unit.hal_node.slurm.conftest import slurmctld as slurmctld
from tests.unit.hal_node.slurm.conftest import slurmd as slurmd
from tests.unit.hal_node.slurm.conftest import slurmdbd as slurmdbd
