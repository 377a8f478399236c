"""Who may import whom: docs/design.md has the table, with its reasons; here it is asked of every file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.contract.project import Finding, files, rule, text_lines, text_of

PACKAGES = ("hal_inventory", "hal_cluster", "hal_node")
MODULE_UTILS = "ansible.module_utils."
MAY: Mapping[str, frozenset[str]] = {
    "hal_cluster.audit": frozenset(
        {
            "hal_inventory",
            "hal_cluster.aside",
            "hal_cluster.completion",
            "hal_cluster.confirmation",
            "hal_cluster.expect",
            "hal_cluster.lock",
        }
    ),
    "hal_cluster.bmc": frozenset(
        {"hal_inventory", "hal_cluster.certificates", "hal_cluster.lock", "hal_cluster.secrets"}
    ),
    "hal_cluster.certificates": frozenset({"hal_inventory", "hal_cluster.lock"}),
    "hal_cluster.completion": frozenset({"hal_inventory"}),
    "hal_cluster.environments": frozenset({"hal_inventory", "hal_cluster.completion"}),
    "hal_cluster.expect": frozenset({"hal_inventory", "hal_node.expect"}),
    "hal_cluster.filters": frozenset({"hal_inventory"}),
    "hal_cluster.inventory": frozenset(
        {"hal_inventory", "hal_cluster.bmc", "hal_cluster.completion", "hal_cluster.rollout"}
    ),
    "hal_cluster.lock": frozenset({"hal_node.lock"}),
    "hal_cluster.packages": frozenset({"hal_inventory", "hal_cluster.completion", "hal_cluster.expect"}),
    "hal_cluster.programs": frozenset(),
    "hal_cluster.provision": frozenset({"hal_inventory", "hal_cluster.certificates"}),
    "hal_cluster.reimage": frozenset(
        {
            "hal_inventory",
            "hal_cluster.audit",
            "hal_cluster.bmc",
            "hal_cluster.certificates",
            "hal_cluster.confirmation",
            "hal_cluster.provision",
            "hal_node.slurm",
        }
    ),
    "hal_cluster.rollout": frozenset({"hal_inventory", "hal_cluster.aside", "hal_cluster.audit", "hal_cluster.expect"}),
    "hal_cluster.rules": frozenset(
        {"hal_inventory", "hal_cluster.lock", "hal_node.munge_key", "hal_node.scale", "hal_node.slurm"}
    ),
    "hal_cluster.secrets": frozenset({"hal_inventory"}),
    "hal_node.audit": frozenset({"hal_node.expect", "hal_node.run_command", "hal_node.slurm"}),
    "hal_node.image": frozenset({"hal_node.mirror"}),
    "hal_node.judges": frozenset({"hal_node.printable"}),
    "hal_node.mirror": frozenset({"hal_node.digest"}),
    "hal_node.network": frozenset({"hal_node.files"}),
    "hal_node.originals": frozenset({"hal_node.audit", "hal_node.expect", "hal_node.slurm"}),
    "hal_node.rollout_lock": frozenset({"hal_node.lock"}),
    "hal_node.slurm": frozenset({"hal_node.files"}),
}
"""Part -> the parts that it may import. One that is not here imports none."""
FOUND_BY = "plugins/inventory/hal.py"
TOLD = "plugins/modules/hal_bmc.py"  # a module of the controller: it runs in a process of its own, or in mitogen's
SEARCHES = re.compile(r"\bsys\.path\b|\b__path__\b|\bspec_from_file_location\b")
PRODUCT = ("playbooks", "plugins", "roles")


@rule
def parts_import_what_they_may(root: Path) -> Iterator[Finding]:
    """A part imports what the table lets it, and hal_node by the name that it has outside of modules."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            here = str(path.relative_to(root))
            own = _part(here.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
            for number, name in _imported(path, here):
                other = _part(name)
                if other in (own, package) or other in MAY.get(own, ()):
                    continue
                yield Finding(path, number, f"{own} may not import {other}: docs/design.md, who may import whom")


@rule
def nodes_code_imports_itself_relatively(root: Path) -> Iterator[Finding]:
    """hal_node has two names, and is found under both: as a program's, and as a module's."""
    for path in sorted((root / "hal_node").rglob("*.py")):
        for node in ast.walk(ast.parse(text_of(path))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [f"{node.module}.{one.name}" for one in node.names]
            if any(f"{name}.".removeprefix(MODULE_UTILS).startswith("hal_") for name in names):
                words = "an import of the project by its name; write 'from .': a program has no ansible.module_utils"
                yield Finding(path, node.lineno, words)  # type: ignore[attr-defined]  # imports have a line


@rule
def the_project_is_found_in_one_place(root: Path) -> Iterator[Finding]:
    """No file but one says where Python looks for modules: docs/design.md, how plugins find the project."""
    for path in files(root):
        here = path.relative_to(root)
        if here.parts[0] not in (*PACKAGES, *PRODUCT) or here.as_posix() in (FOUND_BY, TOLD):
            continue
        for number, line in text_lines(path):
            if found := SEARCHES.search(line):
                words = f"{found[0]}: {FOUND_BY} is the one place where the project is found; import by name"
                yield Finding(path, number, words)


def _part(dotted: str) -> str:
    """A package of the controller is one part; of the two others' parts each is."""
    parts = dotted.split(".")
    return parts[0] if parts[0] == "hal_inventory" else ".".join(parts[:2])


def _imported(path: Path, here: str) -> Iterator[tuple[int, str]]:
    """Lines, and full names of what of the project is imported there."""
    package = here.split("/")[:-1]
    for node in ast.walk(ast.parse(text_of(path))):
        if isinstance(node, ast.Import):
            found = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            whole = ".".join([*above, *filter(None, [node.module])])
            # `from hal_node import lock`: a part, or a name of the package itself
            found = [f"{whole}.{one.name}" for one in node.names] if whole in PACKAGES else [whole]
        else:
            continue
        yield from ((node.lineno, name) for name in found if name.removeprefix(MODULE_UTILS).split(".")[0] in PACKAGES)
