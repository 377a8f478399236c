"""What a run read of the tree, and whether its digest counts that: no proof without it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from tests.register.depends import PROOFS, Tree

WATCH = Path(__file__).with_name("watch")
_COMPILED = re.compile(r"__pycache__/([^/]+?)\.cpython-[^/]*\.pyc.*$")
FILTERS = "plugins/filter"
"""Ansible loads each of these until it has found a filter's name."""
FOR_NAMES = re.compile(r"roles/[^/]+/(?:tasks|handlers)/")
"""hal_cluster.audit reads these of every role, for the names that tasks register. Of a used role Ansible reads more:
its defaults, its meta."""
ALL_PLAYBOOKS = "playbooks/validate.yml"
"""Reads every playbook, for the names of variables that somebody reads."""


def environment(root: Path, notes: Path) -> Mapping[str, str]:
    """Variables for a run whose Pythons are to note in `notes` what they read below `root`."""
    return {"PYTHONPATH": str(WATCH), "HAL_WITNESS_TREE": f"{root}/", "HAL_WITNESS": str(notes)}


def read(tree: Tree, notes: Path) -> frozenset[str]:
    """The files of the tree that a run noted; raise FileNotFoundError when nobody noted anything."""
    prefix = f"{tree.root}/"
    lines = notes.read_text(encoding="utf-8", errors="replace").splitlines()
    named = {_COMPILED.sub(r"\1.py", line.removeprefix(prefix)) for line in lines}
    # Through a link, as modules find hal_node, it is the same file.
    named |= {os.path.realpath(tree.root / name).removeprefix(f"{os.path.realpath(tree.root)}/") for name in named}
    return tree.files & named


def uncounted(tree: Tree, seen: Iterable[str], counted: Collection[str]) -> list[str]:
    """What was read and is not counted, sorted: what it says may have changed the outcome."""
    missed = set(seen) - set(counted) - tree.closure(tree.below(FILTERS))
    missed -= {*tree.below("tests/register"), *tree.below(PROOFS)}
    if ALL_PLAYBOOKS in counted:
        missed -= set(tree.below("playbooks"))
    return sorted(file for file in missed if not FOR_NAMES.match(file))
