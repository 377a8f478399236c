"""Filter of playbooks/validate.yml: secrets that are none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hal_cluster.secrets.known import problems, values_of_tests


def hal_secret_problems(values: Mapping[str, Any]) -> list[str]:
    """Return a line for each value that is a known default or a test site's; values are in no line.

    A value that is empty or short has a line, too. `values`: by variable.
    """
    return problems(values, values_of_tests(Path(__file__).resolve().parents[2]))


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"hal_secret_problems": hal_secret_problems}
