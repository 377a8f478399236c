"""What a users.yml may contain: the types of its fields as written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from hal_inventory.declared import Declared, checked
from hal_inventory.users import HIGHEST_SLOT, HIGHEST_UID, LOWEST_UID, User

Name = Annotated[
    str,
    checked(
        lambda text: re.fullmatch(r"[a-z_][a-z0-9_-]{0,31}", text),
        "the name of an account; write small letters, digits, - and _, at most 32, a letter or _ first",
    ),
]


class UserEntry(Declared):
    """One account."""

    uid: Annotated[int, Field(ge=LOWEST_UID, le=HIGHEST_UID)]
    slot: Annotated[int, Field(ge=0, le=HIGHEST_SLOT)] | None = None
    fakeroot: Literal["enabled", "disabled"] | None = None
    retired: bool = False


class UsersFile(Declared):
    """A users.yml."""

    format: Literal[1]
    users: Mapping[Name, UserEntry] = {}

    def made(self) -> tuple[User, ...]:
        """Return the users in the order of the file."""
        return tuple(
            User(name, entry.uid, entry.slot, entry.fakeroot, entry.retired) for name, entry in self.users.items()
        )
