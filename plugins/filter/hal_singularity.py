"""Filters of the role singularity. What they mean is decided in hal_cluster.rules.singularity."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules.singularity import conf, ledger
from hal_inventory.printable import printable

MOST_SHOWN = 200


def hal_singularity_conf_problems(settings: Mapping[str, Any], version: str) -> list[str]:
    """Return a sentence for each setting that singularity.conf of this release cannot have.

    That is a directive that the release does not know, or a value that it would misread. `settings`: by directive.
    `version`: 3.5 to 3.8, as a text.
    """
    return conf.problems(settings, version)


def hal_singularity_conf(settings: Mapping[str, Any], version: str) -> str:
    """Return the text of singularity.conf.

    It has every directive of the release, `version`; one that `settings` leaves out has the program's own value.
    """
    return conf.text(settings, version)


def hal_slot_problems(users: Mapping[str, Mapping[str, Any]], path: str) -> list[str]:
    """Return a sentence for each slot that the ledger at the controller has for somebody else than users.yml.

    `users`: lookup('hal', 'users'). `path`: the ledger; without a file nothing was given yet. A ledger that cannot be
    used is a sentence, too.
    """
    try:
        return ledger.problems(ledger.read(Path(path)), users, Path(path))
    except ledger.LedgerError as error:
        return str(error).split("\n")


def hal_slots(users: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the users of lookup('hal', 'users') as a list, with their names."""
    return [{"name": name, **user} for name, user in users.items()]


def hal_slots_new(users: Mapping[str, Mapping[str, Any]], path: str) -> bool:
    """Return whether users.yml gives a slot that this checkout never gave, so that another one may have.

    `users`: lookup('hal', 'users'). `path`: the ledger; without a file nothing was given yet. LedgerError for one that
    cannot be used.
    """
    return ledger.unknown(Path(path), users)


def hal_subid_line(user: Mapping[str, Any]) -> str:
    """Return the line of a user in /etc/subuid and /etc/subgid.

    It is UID:FIRST:NUMBER, with an exclamation mark before it for a user who may not use them. `user`: of hal_slots,
    with a slot.
    """
    return f"{'' if user['enabled'] else '!'}{user['uid']}:{user['start']}:{user['count']}"


def hal_container_problem(name: str) -> str:
    """Return why this is no name of an image in the registry; nothing when it is.

    `name` is without .sif.
    """
    if re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,62}", name) and not name.endswith((".sif", ".json")) and "--" not in name:
        return ""
    return (
        f"{name!r} is no name of an image: small letters, digits, . _ -, at most 63, without .sif; not two dashes one"
        " after the other, which stand before the date of an older one"
    )


ABSENT = "No such file or directory"
KINDS = {"d": "a folder", "f": "a file"}


def hal_registry_taken(seen: Mapping[str, Any], registry: str, link: str) -> str:
    """Return what somebody has at the path that users know, in words; empty when it may become a link to the registry.

    `seen`: where anything is there, a line of find, "TYPE-BEHIND-LINKS TYPE TARGET"; then this role's settings of
    before. A link to nothing, to the registry, and one that this role has made before, wherever it leads by now, are
    nobody's.
    `seen` is a result with stdout and stderr_lines. What cannot be looked at is said, too. `registry`: the folder of
    images. `link`: the path that users know.
    """
    wrong = [text for text in seen["stderr_lines"] if ABSENT not in text]
    line, _, rest = seen["stdout"].partition("\n")
    if line.startswith("{") or not seen["stdout"]:
        line, rest = "", seen["stdout"]
    try:
        mine = json.loads(rest).get("link") == link if rest else False
    except (ValueError, AttributeError):
        wrong.append("the settings of an earlier rollout cannot be read")
    if wrong:
        return f"cannot be looked at: {printable(wrong[0], MOST_SHOWN)}"
    behind, kind, target = [*line.split(" ", 2), "", "", ""][:3]
    if not line or behind == "N" or (kind == "l" and (mine or target == registry)):
        return ""
    if kind == "l":
        return f"leads to {printable(target, MOST_SHOWN)}, which is not the registry"
    return f"is there and is {KINDS.get(kind, 'something else')}"


class FilterModule:
    """Make the filters known to Ansible."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "hal_container_problem": hal_container_problem,
            "hal_registry_taken": hal_registry_taken,
            "hal_singularity_conf": hal_singularity_conf,
            "hal_singularity_conf_problems": hal_singularity_conf_problems,
            "hal_slot_problems": hal_slot_problems,
            "hal_slots": hal_slots,
            "hal_slots_new": worded(hal_slots_new),
            "hal_subid_line": hal_subid_line,
        }
