"""The action of this name, at the ports of the tests' BMCs: the model has none, and the usual ones are root's."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

_REAL = Path(__file__).resolve().parents[5] / "plugins" / "action" / "hal_bmc.py"
_spec = importlib.util.spec_from_file_location("real_hal_bmc", _REAL)
assert _spec is not None
assert _spec.loader is not None
_real = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_real)


class ActionModule(_real.ActionModule):  # type: ignore[misc,name-defined]  # loaded by its path
    """The real one, with the ports of TEST_BMC_PORTS."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the real one does."""
        self._task.args = {**self._task.args, **json.loads(os.environ["TEST_BMC_PORTS"])}
        said: dict[str, Any] = super().run(tmp, task_vars)
        return said
