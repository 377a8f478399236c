"""``ssh-config --write FILE``: into a file that only its owner reads."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hal_inventory.errors import HalInventoryError


def write(path: str, text: str) -> None:
    """Write the file with mode 0600, whole or not at all; HalInventoryError when it cannot be written.

    An existing file that this program did not write is left alone.
    """
    target = Path(path)
    try:
        if target.exists() and not _ours(target):
            raise HalInventoryError(f"{path} is not a file that hal-inventory ssh-config wrote: name another one")
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")  # 0600
        try:
            with open(handle, "w", encoding="utf-8") as stream:
                stream.write(MARK + text)
            os.replace(temporary, target)
        except OSError:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise HalInventoryError(f"{path}: {error.strerror}") from None


MARK = "# Written by hal-inventory ssh-config; changes made here are lost.\n"


def _ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(MARK)) == MARK.encode()
