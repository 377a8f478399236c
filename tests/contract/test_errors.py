"""Errors that nobody catches at the edge."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import errors

LOST = "{} does not derive from HalError: nobody catches it at the edge"

PLANTED = (
    Planted(
        errors.errors_have_one_root,
        {
            "hal_inventory/errors.py": "class HalError(Exception):\n    pass\nclass Good(HalError):\n    pass\n",
            "hal_cluster/bmc/errors.py": "class Better(errors.Good, OSError): ...\nclass Bad(ValueError): ...\n",
            "plugins/lookup/hal_x.py": "class Worse(AnsibleError): ...\nclass Same(Bad): ...\nclass Plain(dict): ...\n",
            "plugins/modules/hal_y.py": "class OfNodes(Exception): ...\n",
            "hal_node/z.py": "class OfNodes(Exception): ...\n",
        },
        [
            f"hal_cluster/bmc/errors.py:2: {LOST.format('Bad')}",
            f"plugins/lookup/hal_x.py:1: {LOST.format('Worse')}",
            f"plugins/lookup/hal_x.py:2: {LOST.format('Same')}",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
