"""Users of a site and their permanent slots: which range of subordinate ids belongs to whom. Imports nothing slow.

A slot is a number that is given once and never again. Files that a user made as root of a container belong to ids of
that user's range, and whoever got the range later would own them. `singularity config fakeroot --remove` forgets a
range and gives it to the next user, so the ranges come from here and not from that command. Numbers: Singularity 3.5.3,
internal/pkg/fakeroot/fakeroot.go (first range, count, direction); SUB_UID_MAX of shadow-utils' login.defs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

from hal_inventory.reader import Document

FIRST_START = 4_294_836_224
"""First id of slot 0: 2^32 - 2^17, where Singularity begins too."""
RANGE = 65_536
"""Ids of a slot."""
SYSTEM_TOP = 600_100_000
"""SUB_UID_MAX: useradd gives ranges up to here by itself, and lower ids belong to accounts and the system."""
HIGHEST_SLOT = (FIRST_START - SYSTEM_TOP - 1) // RANGE
LOWEST_UID = 1000
"""Smaller numbers are accounts of the system."""
HIGHEST_UID = 4_294_967_293
"""The next ones are nobody's (-2) and no id at all (-1)."""


@dataclass(frozen=True, slots=True)
class User:
    """One account. ``slot`` None: no containers as root. ``fakeroot`` as written; None where nothing was."""

    name: str
    uid: int
    slot: int | None = None
    fakeroot: str | None = None
    retired: bool = False

    @property
    def start(self) -> int | None:
        """First id of the range; None without a slot."""
        return None if self.slot is None else start_of(self.slot)

    @property
    def enabled(self) -> bool:
        """Whether the user may be root in containers."""
        return self.slot is not None and not self.retired and self.fakeroot != "disabled"

    def as_dict(self) -> dict[str, Any]:
        """Return the user as plain data."""
        return {
            "uid": self.uid,
            "slot": self.slot,
            "start": self.start,
            "count": None if self.slot is None else RANGE,
            "enabled": self.enabled,
            "retired": self.retired,
        }


def start_of(slot: int) -> int:
    """Return the first id of a slot's range."""
    return FIRST_START - RANGE * slot


def check(users: tuple[User, ...], document: Document) -> tuple[User, ...]:
    """Return the users. What is wrong between them is added to the document, one finding a fault."""
    for path, *_ in document.placeholders():
        document.add(path, "is a placeholder; an account's numbers cannot be: write the real one")
    uids: dict[int, str] = {}
    slots: dict[int, str] = {}
    for user in users:
        first = uids.setdefault(user.uid, user.name)
        if first != user.name:
            where = f"users.{first}, line {document.line(('users', first, 'uid'))}"
            words = f"uid {user.uid} is {first}'s ({where}); each account has its own"
            document.add(("users", user.name, "uid"), words)
        if user.slot is None:
            if user.fakeroot is not None:
                document.add(("users", user.name, "fakeroot"), "does not go without slot; give one, or take this away")
            continue
        if user.retired and user.fakeroot is not None:
            document.add(("users", user.name, "fakeroot"), "does not go with retired: true, which disables it for ever")
        owner = slots.setdefault(user.slot, user.name)
        if owner != user.name:
            where = f"users.{owner}, line {document.line(('users', owner, 'slot'))}"
            document.add(
                ("users", user.name, "slot"),
                f"slot {user.slot} is {owner}'s ({where}) for ever; the next free one is {free_slot(users)}",
            )
    _check_ranges(slots, uids, document)
    return users


def _check_ranges(slots: dict[int, str], uids: dict[int, str], document: Document) -> None:
    """Note a fault if the number of an account lies in somebody's range: that user could become the account."""
    for uid, name in uids.items():
        slot = -(-(FIRST_START - uid) // RANGE)  # whose range would have it, given or not
        if slot in slots and start_of(slot) <= uid < start_of(slot) + RANGE:
            document.add(
                ("users", slots[slot], "slot"),
                f"slot {slot} is the ids {start_of(slot)} to {start_of(slot) + RANGE - 1}, and {uid} of them is"
                f" {name}'s uid (users.{name}, line {document.line(('users', name, 'uid'))}); take another slot",
            )


def free_slot(users: Iterable[User]) -> int:
    """Return the smallest slot that nobody has or, as far as users.yml tells, ever had."""
    taken = {user.slot for user in users}
    return next(slot for slot in count() if slot not in taken)
