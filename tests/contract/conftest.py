"""Makes `tests.contract` importable, whatever folder pytest was started in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
# Some rules ask Ansible, which reads its settings when it is first imported.
os.environ.setdefault("ANSIBLE_CONFIG", str(Path(__file__).resolve().parents[2] / "ansible.cfg"))
# A planted violation that was not found shows both lists.
pytest.register_assert_rewrite("tests.contract.planting")
