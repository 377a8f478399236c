"""The notebook of the checks: where findings go, and how a use of an expression or a range becomes one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hal_inventory.errors import ExpressionError, RangeError
from hal_inventory.expressions import Names, evaluate
from hal_inventory.ranges import expand_list, fold_in_order
from hal_inventory.reader import Document, Path_, field_name
from hal_inventory.shape import LeftOut
from hal_inventory.suggest import did_you_mean

Value = TypeVar("Value")


def those(names: Sequence[str], single: str, many: str) -> str:
    """Return names folded, with the verb that goes with them: ``hal01 is``, ``hal[01-16] are``."""
    return f"{fold_in_order(names)} {single if len(names) == 1 else many}"


@dataclass
class Checks:
    """Collects findings. What was left out for its own fault does not cause others."""

    document: Document
    left_out: LeftOut = field(default_factory=LeftOut)
    _first: dict[tuple[str, str], tuple[Path_, str]] = field(default_factory=dict)
    _again: dict[tuple[str, Path_], list[tuple[str, str]]] = field(default_factory=dict)

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
        """Return what a range stands for; a fault and nothing if it is not a range."""
        try:
            return expand_list(text)
        except RangeError as error:
            self.fault(path, str(error))
            return []

    def select(self, path: Path_, expression: str, names: Names) -> frozenset[str] | None:
        """Return the nodes that an expression selects; a fault and None if it is not an expression."""
        try:
            return evaluate(expression, names)
        except ExpressionError as error:
            if not self.left_out.sections or not str(error).startswith("unknown name"):
                self.fault(path, str(error))
            return None

    def column(self, path: Path_, owners: Sequence[str], values: Sequence[Value], why: Callable[[Value], str]) -> bool:
        """Tell whether ``why`` accepts ("") each value of a column, which has one for each owner.

        A fault for each reason that it gives: with the first value, its owner, and the owners of the others.
        """
        met: dict[str, list[int]] = {}
        for at, value in enumerate(values):
            if reason := why(value):
                met.setdefault(reason, []).append(at)
        for reason, (first, *more) in met.items():
            shown = f'"{values[first]}"' if isinstance(values[first], str) else str(values[first])
            of = f" of {owners[first]}" if len(owners) > 1 else ""
            also = f" (and those of {fold_in_order([owners[at] for at in more])})" if more else ""
            self.fault(path, f"{shown}{of}{also} {reason}")
        return not met

    def identities(
        self, kind: str, path: Path_, owners: Sequence[str], values: Sequence[str], why: Callable[[str], str]
    ) -> bool:
        """Tell whether ``why`` accepts a column of identities. Identities that were used before are faults, too."""
        for owner, value in zip(owners, values, strict=True):
            if not why(value):
                self.once(kind, value, path, owner)
        return self.column(path, owners, values, why)

    def once(self, kind: str, value: str, path: Path_, owner: str) -> None:
        """Note a fault when a value of this kind (address, MAC, serial) was used before, whatever its case."""
        first = self._first.setdefault((kind, value.lower()), (path, owner))
        if first != (path, owner):
            self._again.setdefault((kind, path), []).append((value, owner))

    def distinct(self, path: Path_, names: Sequence[str]) -> bool:
        """Tell whether an entry has each of its names once; a fault names those that it has more often."""
        again = [name for name, number in Counter(names).items() if number > 1]
        if again:
            self.fault(path, f"has {fold_in_order(again)} twice")
        return not again

    def declare(self, path: Path_, names: Iterable[str], entries: dict[str, Path_]) -> None:
        """Note which entry declares these names; faults for those that another one declares, too."""
        again: dict[Path_, list[str]] = {}
        for name in names:
            if entries.setdefault(name, path) != path:
                again.setdefault(entries[name], []).append(name)
        for first, listed in again.items():
            where = f"{field_name(first)}, line {self.document.line(first)}"
            self.fault(path, f"{fold_in_order(listed)} declared twice: first in {where}")

    def close(self) -> None:
        """Write the faults about repeated values: one a field, with all of its nodes that have one."""
        for (kind, path), ((value, owner), *others) in self._again.items():
            where, first = self._first[(kind, value.lower())]
            of = f" of {owner}" if owner and owner not in (value, *path) else ""
            by = f" by {first}" if first not in ("", value) else ""
            place = f" in {field_name(where)}, line {self.document.line(where)}" if where != path else ""
            more = f", and those of {fold_in_order(list(dict.fromkeys(name for _, name in others)))}" if others else ""
            self.fault(path, f"{kind} used twice: {value}{of} (first{by}{place}){more}")
