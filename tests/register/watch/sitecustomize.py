"""Every Python of a watched run loads this when it starts: it notes which files of the tree are read.

`HAL_WITNESS_TREE` is the tree, `HAL_WITNESS` the file that gets their paths, a line each. A process notes a file once.
"""

from __future__ import annotations

import contextlib
import os
import sys

_TREE, _NOTES = os.environ.get("HAL_WITNESS_TREE", ""), os.environ.get("HAL_WITNESS", "")


def _watch() -> None:
    seen = set[str]()
    notes = os.open(_NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        path = arguments[0] if event == "open" else None
        if not isinstance(path, str) or path in seen:
            return
        seen.add(path)
        whole = os.path.normpath(os.path.join(os.getcwd(), path)) if path[:1] != "/" or "/../" in path else path
        if whole.startswith(_TREE):
            with contextlib.suppress(OSError):  # a daemon closes what is not its own
                os.write(notes, os.fsencode(whole + "\n"))

    sys.addaudithook(hook)


if _TREE and _NOTES:
    _watch()
