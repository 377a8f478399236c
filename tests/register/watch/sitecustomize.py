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

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        path = arguments[0] if event == "open" else None
        if isinstance(path, bytes):  # so Ansible opens tasks, variables and templates
            path = os.fsdecode(path)
        if not isinstance(path, str) or path in seen:
            return
        seen.add(path)
        whole = os.path.normpath(os.path.join(os.getcwd(), path)) if path[:1] != "/" or "/../" in path else path
        if whole.startswith(_TREE):
            # Opened each time: a descriptor that is kept may be another file's after a program has closed all.
            notes = os.open(_NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with contextlib.suppress(OSError):
                os.write(notes, os.fsencode(whole + "\n"))
            os.close(notes)

    sys.addaudithook(hook)


if _TREE and _NOTES:
    _watch()
