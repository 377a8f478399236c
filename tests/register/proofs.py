"""The files in tests/proofs/: what was green, with what, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import yaml

from tests.register.depends import PROOFS, Tree

FOLDER = PROOFS
HEAD = "# Written by tests/run.py after a green run. Commit it; do not edit it.\n"
WITHDRAWN = "withdrawn"
UNKNOWN_SECONDS = 300
"""What a run takes that nobody has timed."""


@dataclass(frozen=True)
class Proof:
    """One green run: of which content, in which tree, when (UTC), how long it took, with what from Debian."""

    digest: str
    tree: str
    proven: str
    seconds: int
    versions: Mapping[str, str] = field(default_factory=dict)


class Register:
    """What stands proven for the tree as it is.

    A name is a scenario's (`time`), that of its slow tests (`slow-reimage`) or of a file of slow tests
    (`slow-rollout-test_full`).
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.scenarios = tree.scenarios()
        self.slow = {f"slow-{name}": name for name in self.scenarios if tree.slow_tests(f"molecule/{name}/tests")}
        self.files = {
            f"slow-{'-'.join(Path(path).with_suffix('').parts[1:])}": path for path in tree.slow_tests("tests")
        }
        self._proofs = {name: proof for name in self.names if (proof := _load(tree.root / FOLDER / f"{name}.yml"))}
        self._digests: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        """All that can be proven."""
        return [*self.scenarios, *self.slow, *self.files]

    def files_of(self, name: str) -> frozenset[str]:
        """The files that a proof of this name is for."""
        if path := self.files.get(name):
            return self.tree.of_tests(path)
        return self.tree.of_scenario(self.slow.get(name, name))

    def digest(self, name: str) -> str:
        """The digest of what it depends on now."""
        if name not in self._digests:
            self._digests[name] = self.tree.digest(self.files_of(name))
        return self._digests[name]

    def stands(self, name: str) -> bool:
        """Whether its proof is for what it depends on now."""
        return name in self._proofs and self._proofs[name].digest == self.digest(name)

    def unproven(self, names: list[str]) -> list[str]:
        """Those of the names that do not stand proven: never proven first, then the oldest proof."""
        since = {name: self._proofs[name].proven if name in self._proofs else "" for name in names}
        return sorted((name for name in names if not self.stands(name)), key=lambda name: (since[name], name))

    def seconds(self, name: str) -> int:
        """How long it took when it was last proven."""
        return self._proofs[name].seconds if name in self._proofs else UNKNOWN_SECONDS

    def withdraw(self, name: str) -> None:
        """Take back what the proof of this name says about the tree as it is: it failed, or nobody can tell."""
        if self.stands(name):
            self.prove(name, replace(self._proofs[name], digest=WITHDRAWN))

    def prove(self, name: str, proof: Proof) -> None:
        """Keep a proof, in the tree."""
        path = self.tree.root / FOLDER / f"{name}.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + yaml.safe_dump(asdict(proof), sort_keys=False), encoding="utf-8")
        self._proofs[name] = proof


def _load(path: Path) -> Proof | None:
    """The proof in a file; None when there is none, or when it cannot be read: then it proves nothing."""
    try:
        return Proof(**yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, TypeError):
        return None
