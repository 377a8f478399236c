"""What a part of the benchmark is: a function that measures, prints its table and returns what it found."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.instance import Instance

from running.stages import Runner  # isort: skip  # tests.bench.instance has made it findable


class NotMeasured(Exception):
    """Something needed for a measurement failed, so there is no number; the message says what."""


@dataclass(frozen=True)
class Goal:
    """What a number is meant to be. A goal that is missed is said, and fails nothing."""

    what: str
    value: float | None
    limit: float
    at_least: bool = False
    unit: str = ""

    @property
    def met(self) -> bool | None:
        """None without a number: not measured is not fine."""
        if self.value is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        """One line: met or not, the number, the goal."""
        word = {True: "met", False: "NOT MET", None: "unknown"}[self.met]
        found = "not measured" if self.value is None else f"{self.value:.4g}{self.unit}"
        bound = "at least" if self.at_least else "at most"
        return f"  goal {word:<8} {self.what}: {found}, wanted {bound} {self.limit:g}{self.unit}"


@dataclass(frozen=True)
class Measured:
    """What a part found: numbers for --json, the goals they are held against, and what failed, if anything did."""

    numbers: Mapping[Any, Any]
    goals: Sequence[Goal] = ()
    failed: str = ""


@dataclass
class Session:
    """What parts share: the options, and virtual nodes that are made when a part first asks for them."""

    options: argparse.Namespace
    state: Path
    _instance: Instance | None = None
    _rolled_out: bool = False

    def bare(self) -> Instance:
        """The nodes, not yet made: for the part that measures how they come up. To be asked first."""
        if self._instance is None:
            self._instance = Instance(self.options.nodes, self.state)
            self._instance.destroy()
        self._rolled_out = True
        return self._instance

    def rolled_out(self) -> Instance:
        """The nodes with site.yml rolled out. NotMeasured when that fails."""
        already, instance = self._rolled_out, self.bare()
        if not already and not instance.bring_up(Runner("bench")):
            raise NotMeasured("the nodes could not be rolled out")
        return instance

    def close(self) -> None:
        """Remove the nodes, unless --keep says otherwise."""
        if self._instance is not None and not self.options.keep:
            self._instance.destroy()


Part = Callable[[Session], Measured]
