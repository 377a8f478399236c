"""Which slot this checkout has given to whom: a file at the controller that only grows.

users.yml, committed, says who has which slot. This notices at once, before any node is asked, when an edit of it would
give one to somebody else. It knows nothing of other checkouts: a slot that is new to it is first written on one node
of the site, which keeps what everybody gave (``first`` in plugins/modules/hal_subids.py). Imports nothing slow.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hal_cluster.lock import locked
from hal_cluster.rules.errors import RuleError

FORMAT = 1


class LedgerError(RuleError):
    """The ledger cannot be used, or users.yml contradicts it; the text has one line a fault."""


def read(path: Path) -> dict[int, dict[str, Any]]:
    """Return name and uid by slot; nothing where there is no file. LedgerError when it is damaged or not ours alone."""
    try:
        with path.open(encoding="utf-8") as stream:
            status = os.fstat(stream.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & 0o077:
                raise LedgerError(
                    f"{path}: belongs to uid {status.st_uid} with mode {status.st_mode & 0o777:04o}; it has"
                    " to be yours, with 0600: others could give slots away"
                )
            document = json.load(stream)
        if document["format"] != FORMAT:
            raise LedgerError(f"{path}: format {document['format']!r} is not {FORMAT}: written by another release")
        return {
            int(slot): {"name": str(owner["name"]), "uid": int(owner["uid"])}
            for slot, owner in document["slots"].items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerError(
            f"{path}: is damaged ({error}); bring it back from a backup, or remove it: the nodes' /etc/subuid is"
            " compared too"
        ) from None


def problems(given: Mapping[int, Mapping[str, Any]], users: Mapping[str, Mapping[str, Any]], path: Path) -> list[str]:
    """Return a sentence for each slot that was given to somebody and is no longer declared for that user.

    ``users`` as lookup('hal', 'users') has them. A user may be renamed: the number counts.
    """
    declared = {user["uid"]: (name, user) for name, user in users.items()}
    holders = {user["slot"]: (name, user) for name, user in users.items() if user["slot"] is not None}
    lines = []
    for slot, owner in sorted(given.items()):
        holder = holders.get(slot)
        if holder is not None and holder[1]["uid"] == owner["uid"]:
            continue
        who = f"{owner['name']} (uid {owner['uid']})"
        if holder is not None:
            lines.append(
                f"users.yml: slot {slot} was given to {who} and is never given again; {holder[0]} needs another"
            )
        if owner["uid"] not in declared:
            lines.append(
                f"users.yml: {who} had slot {slot} and is not there any more; write "
                f"{owner['name']}: {{uid: {owner['uid']}, slot: {slot}, retired: true}}"
            )
        else:
            name, user = declared[owner["uid"]]
            now = "none" if user["slot"] is None else f"slot {user['slot']}"
            lines.append(
                f"users.yml: {name} has had slot {slot}, and now {now}; a slot is for ever: give it back"
                " (fakeroot: disabled takes the permission away)"
            )
    return [f"{line} (remembered in {path})" for line in lines]


def remember(path: Path, users: Mapping[str, Mapping[str, Any]], *, dry: bool = False) -> bool:
    """Add what is declared; return whether that was anything. ``dry``: only compare.

    LedgerError, and nothing is written, when users.yml contradicts it.
    """
    if dry:
        given = read(path)
        _refuse(problems(given, users, path))
        return bool(_new(given, users))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.with_suffix(".lock"), LedgerError, "the slots of users"):  # every fork of a rollout comes here
        given = read(path)
        _refuse(problems(given, users, path))
        new = _new(given, users)
        if new:
            _write(path, {**given, **new})
        return bool(new)


def slots_new(users: Mapping[str, Mapping[str, Any]], path: str) -> bool:
    """Return whether users.yml gives a slot that this checkout never gave, so that another one may have.

    `users`: lookup('hal', 'users'). `path`: the ledger; without a file nothing was given yet. LedgerError for one that
    cannot be used.
    """
    return bool(_new(read(Path(path)), users))


def slot_problems(users: Mapping[str, Mapping[str, Any]], path: str) -> list[str]:
    """Return a sentence for each slot that the ledger at the controller has for somebody else than users.yml.

    `users`: lookup('hal', 'users'). `path`: the ledger; without a file nothing was given yet. A ledger that cannot be
    used is a sentence, too.
    """
    try:
        return problems(read(Path(path)), users, Path(path))
    except LedgerError as error:
        return str(error).split("\n")


def slots(users: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the users of lookup('hal', 'users') as a list, with their names."""
    return [{"name": name, **user} for name, user in users.items()]


def subid_line(user: Mapping[str, Any]) -> str:
    """Return the line of a user in /etc/subuid and /etc/subgid.

    It is UID:FIRST:NUMBER, with an exclamation mark before it for a user who may not use them. `user`: of `slots`, with
    a slot.
    """
    return f"{'' if user['enabled'] else '!'}{user['uid']}:{user['start']}:{user['count']}"


def _new(given: Mapping[int, Any], users: Mapping[str, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    return {
        user["slot"]: {"name": name, "uid": user["uid"]}
        for name, user in users.items()
        if user["slot"] is not None and user["slot"] not in given
    }


def _refuse(lines: Iterable[str]) -> None:
    text = "\n".join(lines)
    if text:
        raise LedgerError(text)


def _write(path: Path, slots: Mapping[int, Mapping[str, Any]]) -> None:
    document = {"format": FORMAT, "slots": {str(slot): dict(slots[slot]) for slot in sorted(slots)}}
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".slots-")  # 0600
    try:
        with open(handle, "w", encoding="utf-8") as stream:
            json.dump(document, stream, indent=1)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
