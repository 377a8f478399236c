"""One word, five places: group, role, scenario, tag and vars file have the role's name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import Finding, Map, load, load_map, plays, roles, rule

MODEL = "inventory/hal/cluster.yml"


def _layers(root: Path) -> list[Path]:
    return sorted((root / "playbooks" / "layers").glob("*.yml"))


def _played(play: Map) -> list[str]:
    return [str(entry.get("role") if isinstance(entry, Map) else entry) for entry in play.get("roles") or []]


@rule
def plays_are_one_word(root: Path) -> Iterator[Finding]:
    """Each play of a layer runs one role, on the group of its name, under the tag of its name."""
    groups = load_map(root / MODEL).get("groups") or {}
    existing = {role.name for role in roles(root)}
    for path in _layers(root):
        for play in plays(path):
            hosts, played = play["hosts"], _played(play)
            if len(played) != 1:
                yield Finding(path, play.line, f"{len(played)} roles in one play; one play has one role")
                continue
            name = played[0]
            if hosts != name:
                yield Finding(
                    path, play.at("hosts"), f"hosts is {hosts}, the role is {name}; the group has the role's name"
                )
            entry = play["roles"][0]
            tags = entry.get("tags") if isinstance(entry, Map) else None
            if tags not in (name, [name]):
                yield Finding(
                    path,
                    entry.line if isinstance(entry, Map) else play.at("roles"),
                    f"tags of {name} are {tags}; tags: [{name}]",
                )
            if name not in groups:
                yield Finding(
                    path, play.at("hosts"), f"{name} is not under groups in {MODEL}; say there which nodes get it"
                )
            if name not in existing:
                yield Finding(path, play.at("roles"), f"roles/{name} does not exist; write it or take the play away")
            for part in ("tasks", "pre_tasks", "post_tasks"):
                if play.get(part):
                    yield Finding(path, play.at(part), f"{part} in a layer; a layer chooses, a role does")


@rule
def every_role_has_its_play(root: Path) -> Iterator[Finding]:
    """Each role is played by exactly one play of one layer."""
    played = [name for path in _layers(root) for play in plays(path) for name in _played(play)]
    for role in roles(root):
        if played.count(role.name) != 1:
            yield Finding(
                role, 1, f"played by {played.count(role.name)} plays in playbooks/layers; exactly one is right"
            )


@rule
def every_layer_is_in_site(root: Path) -> Iterator[Finding]:
    """site.yml imports every layer once and holds nothing else."""
    path = root / "playbooks" / "site.yml"
    entries = load(path) or []
    imports = [entry["import_playbook"] for entry in entries if "import_playbook" in entry]
    for entry in entries:
        if "import_playbook" not in entry:
            yield Finding(path, entry.line, "a play in the contents page; move it to a layer")
        else:
            name = entry["import_playbook"]
            if not (path.parent / name).is_file():
                yield Finding(
                    path, entry.at("import_playbook"), f"{name} does not exist; write it or take the import away"
                )
    for layer in _layers(root):
        name = f"layers/{layer.name}"
        if imports.count(name) != 1:
            yield Finding(layer, 1, f"imported {imports.count(name)} times by playbooks/site.yml; once is right")


@rule
def vars_files_belong_to_groups(root: Path) -> Iterator[Finding]:
    """A file or folder in group_vars/ has the name of a group of the model, or is all."""
    groups = known_groups(root)
    folders = [*(root / "inventory").glob("*/group_vars"), *(root / "molecule").glob("*/group_vars")]
    for folder in sorted(folders):
        for path in sorted(folder.iterdir()):
            name = path.stem if path.is_file() else path.name
            if groups and name not in groups:
                yield Finding(path, 1, f"{name} is no group of {MODEL}, so nobody gets these variables; rename it")


def known_groups(root: Path) -> set[str]:
    """The groups of the model: groups, services, profiles, roles of nodes, architectures; empty without a model."""
    model = load_map(root / MODEL)
    if not model:
        return set()
    found = {"all", "gpu", *(model.get("groups") or {}), *(model.get("services") or {}), *(model.get("profiles") or {})}
    found |= {str(profile.get("arch")) for profile in (model.get("profiles") or {}).values()}
    return found | {str(node.get("role")) for node in (model.get("nodes") or {}).values()}
