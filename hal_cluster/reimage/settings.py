"""How nodes are to be reimaged, as playbooks/reimage.yml gives it: typed, and refused before anything is asked.

Defaults are in the playbook, and those of limits in stepping.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from hal_cluster.reimage.errors import ReimageError
from hal_cluster.reimage.stepping import Limits

_POLL_MOST = 60
"""Longest pause between two looks, in seconds: the next look sees an abort."""


@dataclass(frozen=True)
class Settings:
    """The settings of playbooks/reimage.yml, which explains them. ``keep``: floors of partitions. Times in seconds."""

    image: str
    wipe: tuple[str, ...]
    max_parallel: int
    keep: Mapping[str, int]
    go_on: bool
    by_slurm: bool
    next_state: str
    playbook: str
    gates: str
    poll_seconds: float
    together_seconds: float
    limits: Limits
    job_command: str
    job_user: str
    job_run_seconds: int
    server: str
    controllers: tuple[str, ...]
    network: str
    port: int
    tls_port: int
    images_folder: str
    image_key: str
    installers: Mapping[str, str]
    append: str
    authority_dir: str
    root_principals: tuple[str, ...]
    boot_id_command: str
    state_dir: str
    audit_dir: str
    bmc_wait_seconds: float
    shut_down_seconds: float
    on_at_once: int
    on_pause_seconds: float


def settings_of(given: Mapping[str, Any]) -> Settings:
    """Return the settings; ReimageError for one that is missing or that nobody can mean.

    What comes from Jinja may be text.
    """
    if missing := [setting.name for setting in fields(Settings) if setting.name not in given]:
        raise ReimageError(f"settings lack {', '.join(missing)}; give all that playbooks/reimage.yml gives")
    if given["next_state"] not in ("RESUME", "DOWN"):
        raise ReimageError(f"reimage_next_state is {given['next_state']}: RESUME or DOWN")
    wipe = _names("reimage_wipe", given["wipe"])
    limits = {
        name: _number(f"{name}_seconds", seconds, 0) for name, seconds in given["limits"].items() if seconds is not None
    }
    typed: dict[str, Any] = {name: kind(given[name]) for name, kind in _KINDS.items()}
    return Settings(
        **typed,
        image=str(given["image"] or ""),
        wipe=wipe,
        controllers=_names("slurm.controllers", given["controllers"]),
        root_principals=_names("ssh_authorized_principals.root", given["root_principals"]),
        max_parallel=int(_number("max_parallel", given["max_parallel"], 1)),
        keep=_floors(given["keep"]),
        poll_seconds=_number("poll_seconds", given["poll_seconds"], 0, _POLL_MOST),
        job_run_seconds=int(_number("job_run_seconds", given["job_run_seconds"], 0)),
        limits=Limits(**limits),
    )


def _names(setting: str, given: Any) -> tuple[str, ...]:
    """Return a setting that is a list of names; a text would be a list of letters."""
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise ReimageError(f'{setting} is {given}: a list of names, such as ["scratch"]')
    return tuple(given)


def _floors(given: Any) -> dict[str, int]:
    try:
        return {str(name): int(floor) for name, floor in given.items()}
    except (AttributeError, TypeError, ValueError):
        raise ReimageError(
            f'reimage_keep is {given}: numbers by partition, \'{{"reimage_keep": {{"gpu": 12}}}}\''
        ) from None


def _number(name: str, given: Any, least: float, most: float = float("inf")) -> float:
    """Return a setting that is a number within bounds."""
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = least - 1
    if not least <= number <= most:
        bounds = f"{least:g} or more" if most == float("inf") else f"{least:g} to {most:g}"
        raise ReimageError(f"reimage_{name} is {given}: a number, {bounds}")
    return number


_KINDS: Mapping[str, Callable[[Any], object]] = {
    **dict.fromkeys(("next_state", "playbook", "gates", "job_command", "job_user", "server", "network"), str),
    **dict.fromkeys(("images_folder", "image_key", "append", "authority_dir", "boot_id_command"), str),
    **dict.fromkeys(("state_dir", "audit_dir"), str),
    **dict.fromkeys(("go_on", "by_slurm"), bool),
    **dict.fromkeys(("port", "tls_port", "on_at_once"), int),
    **dict.fromkeys(("together_seconds", "bmc_wait_seconds", "shut_down_seconds", "on_pause_seconds"), float),
    "installers": dict,
}
"""What each of the other settings is converted by."""
