"""Parts that import what they may not."""

from __future__ import annotations

import graphlib
from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.project import PROJECT
from tests.contract.rules import imports

NOT = "{} may not import {}: docs/design.md, who may import whom"
ONE_PLACE = "plugins/inventory/hal.py is the one place where the project is found; import by name"
NAMED = "an import of the project by its name; write 'from .': a program has no ansible.module_utils"

PLANTED = (
    Planted(
        imports.parts_import_what_they_may,
        {
            "hal_inventory/model.py": "from hal_node import lock\nfrom . import load\nimport hal_cluster.bmc\n",
            "hal_cluster/inventory/validate.py": "def run():\n    from hal_cluster.rollout import refusals\n",
            "hal_inventory/variables.py": "def run():\n    from hal_cluster.rollout import refusals\n",
            "hal_cluster/rules/cuda/table.py": "import hal_inventory.model\nfrom ...packages import declared\n",
            "hal_cluster/bmc/states.py": "from ansible.module_utils.hal_node.slurm import nodes\n",
            "hal_cluster/expect/vocabulary.py": "import json\nfrom hal_node.expect import vocabulary\n",
            "hal_node/audit/look.py": "from ..expect.values import x\nfrom .node import y\nfrom .. import storage\n",
            "hal_node/expect/values.py": "from ..lock import locked\n",
        },
        [
            "hal_cluster/bmc/states.py:1: " + NOT.format("hal_cluster.bmc", "ansible.module_utils"),
            "hal_cluster/rules/cuda/table.py:2: " + NOT.format("hal_cluster.rules", "hal_cluster.packages"),
            "hal_inventory/model.py:1: " + NOT.format("hal_inventory", "hal_node.lock"),
            "hal_inventory/model.py:3: " + NOT.format("hal_inventory", "hal_cluster.bmc"),
            "hal_inventory/variables.py:2: " + NOT.format("hal_inventory", "hal_cluster.rollout"),
            "hal_node/audit/look.py:3: " + NOT.format("hal_node.audit", "hal_node.storage"),
            "hal_node/expect/values.py:1: " + NOT.format("hal_node.expect", "hal_node.lock"),
        ],
    ),
    Planted(
        imports.nodes_code_imports_itself_relatively,
        {
            "hal_node/run_command.py": "from ansible.module_utils import basic\nfrom .lock import locked\n",
            "hal_node/a.py": "from ansible.module_utils.hal_node.a import b\nimport ansible.module_utils.hal_node\n",
            "hal_node/b.py": "import hal_node.lock\n",
            "hal_node/c.py": "from hal_node import lock\n",
        },
        [
            f"hal_node/a.py:1: {NAMED}",
            f"hal_node/a.py:2: {NAMED}",
            f"hal_node/b.py:1: {NAMED}",
            f"hal_node/c.py:1: {NAMED}",
        ],
    ),
    Planted(
        imports.the_project_is_found_in_one_place,
        {
            "hal_node/lock.py": "import sys\nprint(sys.path)\n",
            "molecule/virtual_hal/demo/run.py": "sys.path.insert(0, '.')\n",
            "plugins/filter/hal_x.py": "import hal_node\nhal_node.__path__.append('x')\n",
            "plugins/inventory/hal.py": "sys.path.insert(0, '.')\n",
            "roles/time/files/time": "spec = importlib.util.spec_from_file_location('x', 'x.py')\n",
            "roles/time/tasks/main.yml": "- command: python3 -c 'import sys; sys.path.append(1)'\n",
        },
        [
            f"hal_node/lock.py:2: sys.path: {ONE_PLACE}",
            f"plugins/filter/hal_x.py:2: __path__: {ONE_PLACE}",
            f"roles/time/files/time:1: spec_from_file_location: {ONE_PLACE}",
            f"roles/time/tasks/main.yml:1: sys.path: {ONE_PLACE}",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)


def test_the_table_has_no_line_that_nobody_needs() -> None:
    for own, others in imports.MAY.items():
        place = PROJECT / own.replace(".", "/")
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        found = {
            imports._part(name) for path in files for _, name in imports._imported(path, str(path.relative_to(PROJECT)))
        }
        assert others <= found, own


def test_no_part_of_the_controller_needs_one_that_needs_it() -> None:
    order = graphlib.TopologicalSorter(imports.MAY)
    assert list(order.static_order())  # CycleError names the parts
