"""slurm.conf and cgroup.conf: layers over each other, with the names that a release has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hal_cluster.rules.errors import RuleError

# slurm.conf parameters whose name or form depends on the release: (name, from, to, replacement in older releases).
# Sources: slurm.conf(5) and RELEASE_NOTES of 20.02, 21.08.
SINCE: dict[str, tuple[tuple[int, int], dict[str, dict[str, str]]]] = {
    # 20.02 replaced FastSchedule=2 by SlurmdParameters=config_overrides.
    "SlurmdParameters": ((20, 2), {"config_overrides": {"FastSchedule": "2"}}),
    # 21.08 replaced AccountingStoreJobComment by AccountingStoreFlags.
    "AccountingStoreFlags": ((21, 8), {"job_comment": {"AccountingStoreJobComment": "YES"}}),
}
# Flags that a release does not know yet.
FLAGS_SINCE = {("AccountingStoreFlags", "job_script"): (21, 8), ("AccountingStoreFlags", "job_env"): (21, 8)}
# cgroup.conf: CgroupPlugin came with 21.08 (cgroup.conf(5)); before that there is only cgroup v1.
CGROUP_SINCE = {"CgroupPlugin": (21, 8)}


def release(version: str) -> tuple[int, int]:
    """Return (year, month) of "22.05.8". Raises RuleError for anything else."""
    parts = str(version).split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        raise RuleError(f"slurm_version {version!r} is not year.month.patch, such as 22.05.8")
    return int(parts[0]), int(parts[1])


def text(value: Any) -> str:
    """Return a setting's value as slurm.conf has it: lists with commas, booleans as YES and NO."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, (list, tuple)):
        return ",".join(str(part) for part in value)
    return str(value)


def merged(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the layers over each other, later ones win; a null withdraws the setting. Names compare without case."""
    taken: dict[str, tuple[str, Any]] = {}
    for layer in layers:
        for name, value in layer.items():
            # The first spelling stays, so that a layer in other case does not give a second line.
            spelling = taken.get(name.lower(), (name, None))[0]
            taken[name.lower()] = (spelling, value)
    return {name: value for name, value in taken.values() if value is not None and value != []}


def settings(layers: Sequence[Mapping[str, Any]], version: str) -> list[dict[str, str]]:
    """Return [{key, value}] of slurm.conf, sorted, with the names that the release has.

    `layers`: parameters by name; later ones win and None withdraws. Lists get commas, booleans are YES and NO.
    `version`: as 20.02.7; RuleError for what is not year.month.
    """
    has = release(version)
    out: dict[str, str] = {}
    for name, value in merged(layers).items():
        since, older = SINCE.get(name, ((0, 0), {}))
        if has >= since:
            flags = value if isinstance(value, (list, tuple)) else None
            if flags is not None:
                value = [flag for flag in flags if has >= FLAGS_SINCE.get((name, str(flag)), (0, 0))]
            out[name] = text(value)
            continue
        for flag in value if isinstance(value, (list, tuple)) else str(value).split(","):
            out.update(older.get(str(flag), {}))
    return [{"key": name, "value": out[name]} for name in sorted(out, key=str.lower)]


def cgroup_settings(layers: Sequence[Mapping[str, Any]], version: str) -> list[dict[str, str]]:
    """Return [{key, value}] of cgroup.conf, sorted, without what the release does not know.

    `layers`: parameters by name; later ones win and None withdraws. Booleans are yes and no. `version`: as
    `settings` has it.
    """
    has = release(version)
    known = {name: value for name, value in merged(layers).items() if has >= CGROUP_SINCE.get(name, (0, 0))}
    return [{"key": name, "value": cgroup_text(known[name])} for name in sorted(known, key=str.lower)]


def cgroup_text(value: Any) -> str:
    """Return a cgroup.conf value: its booleans are yes and no."""
    return text(value).lower() if isinstance(value, bool) else text(value)


def shown_by_scontrol(settings: Sequence[Mapping[str, str]], names: Sequence[str]) -> list[str]:
    """Return a regex for the line of `scontrol show config` that each of the named settings has when it is in effect.

    scontrol prints some names in another case and adds "sec" to times.
    `settings`: what `settings` returned. A name that is not set gives nothing.
    """
    wanted = {name.lower() for name in names}
    return [
        rf"(?i){re.escape(setting['key'])} *= *{re.escape(setting['value'])}( sec)?"
        for setting in settings
        if setting["key"].lower() in wanted
    ]
