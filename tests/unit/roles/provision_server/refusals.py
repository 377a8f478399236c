"""What the programs on the server refuse, in their words."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

Problem: Any = importlib.import_module("provision_common").Problem


def problem(function: Any, *words: Any) -> str:
    with pytest.raises(Problem) as refused:
        function(*words)
    return str(refused.value)
