"""Errors that nobody catches at the edge."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import errors

LOST = "{} does not derive from HalError: nobody catches it at the edge"
ROOT = {"hal_inventory/errors.py": "class HalError(Exception):\n    pass\nclass Good(HalError):\n    pass\n"}

PLANTED = (
    Planted(
        errors.errors_have_one_root,
        {
            **ROOT,
            "hal_cluster/bmc/errors.py": """
                from hal_inventory import errors
                class Better(errors.Good, OSError): ...
                class Bad(ValueError): ...
                """,
            "plugins/lookup/hal_x.py": """
                from ansible.errors import AnsibleError
                from hal_cluster.bmc.errors import Bad
                class Worse(AnsibleError): ...
                class Same(Bad): ...
                class Plain(dict): ...
                """,
            "plugins/modules/hal_y.py": "class OfNodes(Exception): ...\n",
            "hal_node/z.py": "class OfNodes(Exception): ...\n",
        },
        [
            f"hal_cluster/bmc/errors.py:3: {LOST.format('Bad')}",
            f"plugins/lookup/hal_x.py:3: {LOST.format('Worse')}",
            f"plugins/lookup/hal_x.py:4: {LOST.format('Same')}",
        ],
    ),
    Planted(  # one of two that have one name
        errors.errors_have_one_root,
        {
            **ROOT,
            "hal_cluster/a.py": "class Twin(ValueError): ...\nclass Child(Twin): ...\n",
            "hal_cluster/b.py": """
                from hal_inventory.errors import HalError
                class Twin(HalError): ...
                class Child(Twin): ...
                """,
            "hal_cluster/c.py": "class HalError(Exception): ...\n",
        },
        [
            f"hal_cluster/a.py:1: {LOST.format('Twin')}",
            f"hal_cluster/a.py:2: {LOST.format('Child')}",
            f"hal_cluster/c.py:1: {LOST.format('HalError')}",
        ],
    ),
    Planted(  # whatever an error from outside is called, and by whatever way it comes
        errors.errors_have_one_root,
        {
            **ROOT,
            "hal_cluster/bmc/__init__.py": "from .parts import Gone as Away\n",
            "hal_cluster/bmc/parts.py": "import http.client as web\nclass Gone(web.HTTPException): ...\n",
            "hal_cluster/queues.py": """
                import queue
                import string
                from collections.abc import Mapping
                from hal_cluster import bmc
                from .bmc import Away as Elsewhere
                class Late(queue.Empty): ...
                class Later(bmc.Away): ...
                class Last(Elsewhere): ...
                class Text(string.Template): ...
                class Table(Mapping[str, int]): ...
                class Outer(queue.Queue[str]):
                    class Inner(KeyboardInterrupt): ...
                    class Deep(Inner): ...
                def made():
                    class Local(queue.Full): ...
                """,
        },
        [
            f"hal_cluster/bmc/parts.py:2: {LOST.format('Gone')}",
            f"hal_cluster/queues.py:6: {LOST.format('Late')}",
            f"hal_cluster/queues.py:7: {LOST.format('Later')}",
            f"hal_cluster/queues.py:8: {LOST.format('Last')}",
            f"hal_cluster/queues.py:12: {LOST.format('Outer.Inner')}",
            f"hal_cluster/queues.py:13: {LOST.format('Outer.Deep')}",
            f"hal_cluster/queues.py:15: {LOST.format('made.Local')}",
        ],
    ),
    Planted(  # what nobody can tell
        errors.errors_have_one_root,
        {
            **ROOT,
            "hal_cluster/a.py": """
                from hal_cluster.nowhere import Base
                class Odd(Base): ...
                class Undefined(Missing): ...
                """,
        },
        [
            "hal_cluster/a.py:2: Odd: its base hal_cluster.nowhere.Base cannot be found: import it by name",
            "hal_cluster/a.py:3: Undefined: its base builtins.Missing cannot be found: import it by name",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
