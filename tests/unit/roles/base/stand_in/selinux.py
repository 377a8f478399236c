"""Stand-in for libselinux-python, as far as ansible.posix.seboolean calls it."""

from __future__ import annotations

import store  # type: ignore[import-not-found]  # beside this file, on PYTHONPATH of the run


def is_selinux_enabled() -> int:
    """It is."""
    return 1


def security_get_boolean_active(name: str) -> int:
    """The value in effect."""
    value: int = store.load()["live"][name]
    return value


def security_set_boolean(name: str, value: int) -> int:
    """Change the value in effect; the real one waits for a commit."""
    values = store.load()
    values["live"][name] = value
    store.save(values)
    return 0


def security_commit_booleans() -> int:
    """Done already."""
    return 0
