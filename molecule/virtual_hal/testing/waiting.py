"""Wait for what daemons do in their own time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_for(what: str, read: Callable[[], Any], wanted: Callable[[Any], bool], seconds: float = 120) -> Any:
    """Return what is read once it is as wanted; fail with the last value when it never is."""
    end = time.monotonic() + seconds
    while True:
        value = read()
        if wanted(value):
            return value
        assert time.monotonic() < end, f"{what}: after {seconds:.0f} s still {value!r}"
        time.sleep(0.5)
