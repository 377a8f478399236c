"""The one reader of a site: files, or their bytes, to a checked ``Site``."""

from __future__ import annotations

import os
from dataclasses import replace

from hal_inventory.errors import ClusterFileError, Finding, FindingsError, UsersFileError
from hal_inventory.model import Site
from hal_inventory.ranges import MAX_VALUES, sizes
from hal_inventory.reader import Document, display_name, parse, read_bytes
from hal_inventory.users import User, check


def load(path: str | os.PathLike[str]) -> Site:
    """Return the site that a cluster.yml declares; ClusterFileError with every finding when it cannot be used."""
    return load_bytes(read_bytes(path), display_name(path))


def load_bytes(content: bytes, file: str) -> Site:
    """Return the site that ``content`` declares; ``file`` is the name for messages."""
    from hal_inventory.shape import declarations  # pydantic is imported only when a model is read, not from a cache
    from hal_inventory.validate import build_site

    document = parse(content, file)
    _bounded(document)
    cluster, left_out = declarations(document)
    site = build_site(cluster, document, left_out) if cluster is not None else None
    if site is None or document.findings:
        raise ClusterFileError(document.findings)
    return site


def _bounded(document: Document) -> None:
    """Raise ClusterFileError for ranges that are sound one by one, but together more than a machine can hold."""
    number = 0
    for path, text in document.texts():
        number += sizes(text.text)
        if number > MAX_VALUES:
            document.add(
                path, f"with this one the file's ranges stand for more than {MAX_VALUES} values; that is a slip"
            )
            raise ClusterFileError(document.findings)


def load_users(path: str | os.PathLike[str]) -> tuple[User, ...]:
    """Return the users that a users.yml declares; UsersFileError with every finding when it cannot be used."""
    return users_bytes(read_bytes(path), display_name(path))


def users_bytes(content: bytes, file: str) -> tuple[User, ...]:
    """Return the users that ``content`` declares, in its order; ``file`` is the name for messages."""
    from hal_inventory.declared_users import UsersFile
    from hal_inventory.shape import shaped

    try:
        document = parse(content, file)
    except ClusterFileError as error:
        raise UsersFileError(error.findings) from None
    declared, _ = shaped(UsersFile, {"format": 1}, document)
    users = check(declared.made(), document) if declared is not None else ()
    if declared is None or document.findings:
        raise UsersFileError(document.findings)
    return users


def load_both(content: bytes, file: str, users: tuple[bytes | None, str] | None) -> Site:
    """Return the site with its users; FindingsError with the findings of both files.

    ``users``: content of a users.yml and its name for messages.
    """
    made: tuple[User, ...] = ()
    findings: list[Finding] = []
    if users is not None:
        try:
            made = users_bytes(users[0] or b"", users[1])
        except UsersFileError as error:
            findings.extend(error.findings)
    try:
        site = load_bytes(content, file)
    except ClusterFileError as error:
        if not findings:
            raise
        raise FindingsError([*error.findings, *findings]) from None
    if findings:
        raise UsersFileError(findings)
    return replace(site, users=made)
