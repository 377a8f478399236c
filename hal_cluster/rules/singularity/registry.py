"""The registry of images: names that it takes, and what somebody has where users look for it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hal_inventory.printable import printable

MOST_SHOWN = 200


def name_problem(name: str) -> str:
    """Return why this is not a name of an image in the registry; nothing when it is.

    `name` is without .sif.
    """
    if re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,62}", name) and not name.endswith((".sif", ".json")) and "--" not in name:
        return ""
    return (
        f"{name!r} is not a name of an image: small letters, digits, . _ -, at most 63, without .sif; never two dashes"
        " in a row, which stand before the date of an older one"
    )


ABSENT = "No such file or directory"
KINDS = {"d": "a folder", "f": "a file"}


def taken(seen: Mapping[str, Any], registry: str, link: str) -> str:
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
