"""Which roles act on a node: the variable managed_roles. Knows names and lists, nothing of Ansible."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any

from hal_inventory.settings import PROJECT
from hal_inventory.suggest import did_you_mean

VARIABLE = "managed_roles"
"""Without it all roles of a node's groups act there. With it only those that it lists; the others are only audited."""

NEEDS: Mapping[str, Mapping[str, str]] = {
    "cuda": {"nvidia_driver": "programs of CUDA find no driver without it"},
    "environments": {"lmod": "users load environments as modules"},
    "node_health": {"slurm": "its checks drain nodes of Slurm"},
    "notebooks": {"environments": "notebooks run in them"},
    "slurm": {"munge": "its daemons know each other by the key", "hosts": "its daemons find each other by name"},
    "spectrum_scale": {"hosts": "its nodes find each other by name", "ssh": "mmcommands reach other nodes as root"},
    "wmlce": {"environments": "its programs install and verify it"},
}


@cache
def known_roles() -> tuple[str, ...]:
    """Return the names of the project's roles, sorted."""
    return tuple(sorted(path.parent.name for path in PROJECT.glob("roles/*/expect.yml")))


def problem(value: Any) -> str:
    """Return why a value of the variable cannot be used, in one line; "" if it is a list of names of roles."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        return f"{VARIABLE} has to be a list of names of roles, such as [time, hosts]"
    unknown = [name for name in value if name not in known_roles()]
    if unknown:
        return f'{VARIABLE}: there is no role "{unknown[0]}"{did_you_mean(unknown[0], known_roles(), kind="roles")}'
    return ""


def lacking(managed: Collection[str], having: Iterable[str]) -> list[str]:
    """Return a remark for each role that acts on a node and needs another of its roles (`having`) that does not act."""
    present = set(having)
    return [
        f"{role} is managed and {need}, which it needs, is not ({why}): whoever manages {need} has to see to that"
        for role in sorted(set(managed) & present)
        for need, why in sorted(NEEDS.get(role, {}).items())
        if need in present and need not in managed
    ]
