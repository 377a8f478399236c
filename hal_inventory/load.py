"""The one reader of a site: a file, or its bytes, to a checked ``Site``."""

from __future__ import annotations

import os

from hal_inventory.errors import ClusterFileError
from hal_inventory.model import Site
from hal_inventory.reader import display_name, parse, read_bytes


def load(path: str | os.PathLike[str]) -> Site:
    """Return the site that a cluster.yml declares; ClusterFileError with every finding when it cannot be used."""
    return load_bytes(read_bytes(path), display_name(path))


def load_bytes(content: bytes, file: str) -> Site:
    """Return the site that ``content`` declares; ``file`` is the name for messages."""
    from hal_inventory.shape import declarations  # pydantic is imported only when a model is read, not from a cache
    from hal_inventory.validate import build_site

    document = parse(content, file)
    cluster, left_out = declarations(document)
    site = build_site(cluster, document, left_out) if cluster is not None else None
    if site is None or document.findings:
        raise ClusterFileError(document.findings)
    return site
