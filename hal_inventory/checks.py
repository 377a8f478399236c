"""The notebook of the checks: where findings go, and how a use of an expression or a range becomes one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hal_inventory.errors import ExpressionError, RangeError
from hal_inventory.expressions import Names, evaluate
from hal_inventory.ranges import expand_list
from hal_inventory.reader import Document, Path_, field_name
from hal_inventory.shape import LeftOut
from hal_inventory.suggest import did_you_mean


@dataclass
class Checks:
    """Collects findings. What was left out for a fault of its own causes no others."""

    document: Document
    left_out: LeftOut = field(default_factory=LeftOut)
    _first: dict[tuple[str, str], tuple[Path_, str]] = field(default_factory=dict)
    _again: dict[tuple[str, Path_], list[str]] = field(default_factory=dict)

    def fault(self, path: Path_, message: str) -> None:
        """Note a fault."""
        self.document.add(path, message)

    @property
    def complete(self) -> bool:
        """Whether nothing was left out: only then does an empty selection mean something."""
        return self.left_out.nothing

    def unknown(self, path: Path_, what: str, name: str, known: Iterable[str], kind: str) -> None:
        """Note a name that does not exist, with the nearest one that does."""
        if not self.left_out.sections and name not in self.left_out.names:
            self.fault(path, f'{what} "{name}"{did_you_mean(name, known, kind=kind)}')

    def range(self, path: Path_, text: str) -> list[str]:
        """Return what a range stands for; a fault and nothing when it is none."""
        try:
            return expand_list(text)
        except RangeError as error:
            self.fault(path, str(error))
            return []

    def select(self, path: Path_, expression: str, names: Names) -> frozenset[str] | None:
        """Return the nodes an expression selects; a fault and None when it is none."""
        try:
            return evaluate(expression, names)
        except ExpressionError as error:
            if not self.left_out.sections or not str(error).startswith("unknown name"):
                self.fault(path, str(error))
            return None

    def once(self, kind: str, value: str, path: Path_, owner: str) -> None:
        """Note a fault when a value of this kind (address, MAC, serial) was used before."""
        first = self._first.setdefault((kind, value), (path, owner))
        if first != (path, owner):
            self._again.setdefault((kind, path), []).append(value)

    def close(self) -> None:
        """Write the faults about repeated values: one a field, however many nodes it has."""
        for (kind, path), values in self._again.items():
            first, owner = self._first[(kind, values[0])]
            more = f", and {len(values) - 1} more of this field" if len(values) > 1 else ""
            where = f"{field_name(first)}, line {self.document.line(first)}"
            by = f" by {owner}" if owner else ""
            self.fault(path, f"{kind} used twice: {values[0]} (first{by} in {where}){more}")
