"""For tests of the register: the lab's modules can be imported."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "molecule" / "virtual_hal"))
