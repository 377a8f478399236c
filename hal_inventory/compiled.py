"""Results, computed once: the inventory and the slices of a source, kept in a cache by content.

The key is a hash over the content of cluster.yml and users.yml, the view that the source asks for, and this package's
own code. So a result in the cache is the one that would be computed, and nothing ever has to be invalidated. Imports
nothing slow.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from hal_inventory import cache
from hal_inventory.errors import Finding, FindingsError, HalInventoryError, RenumberError, SourceFileError
from hal_inventory.packed import Packed
from hal_inventory.reader import Path_, display_name, parse, read_bytes
from hal_inventory.sources import Source, read_source

if TYPE_CHECKING:
    from hal_inventory.model import Site


class Compiled:
    """The site as one source shows it. Reads the source at once, the model only when a result is not in the cache."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.source: Source = read_source(path)
        self._content: bytes = read_bytes(self.source.cluster)
        self._users: bytes | None = read_bytes(self.source.users_file) if self.source.users_file else None
        self._site: Site | None = None

    def inventory(self) -> Packed:
        """Return the packed inventory."""

        def compute() -> Any:
            from hal_inventory.derive.inventory import pack

            return pack(self.site())

        return cast(Packed, self._cached("inventory", {}, compute))

    def slice(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return a slice as plain data."""

        def compute() -> Any:
            from hal_inventory.derive.slices import derive

            return derive(self.site(), name, arguments)

        return self._cached(f"slice {name}", arguments, compute)

    def site(self) -> Site:
        """Return the site itself; reads and checks the model and the users, and says what is wrong with either."""
        if self._site is None:
            from hal_inventory.load import load_both

            users = (self._users, display_name(self.source.users_file)) if self.source.users_file else None
            self._site = _viewed(load_both(self._content, display_name(self.source.cluster), users), self.source)
        return self._site

    def _cached(self, what: str, arguments: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        try:
            view = json.dumps([what, dict(arguments), self.source.view()], sort_keys=True)
        except TypeError:
            return compute()  # which refuses such an argument
        return cache.cached((view.encode(), self._content, self._users or b""), compute)


def _viewed(site: Site, source: Source) -> Site:
    """Return the part of a site that a source asks for, on the networks it asks for."""
    from dataclasses import replace

    from hal_inventory.restrict import only, renumber

    findings: list[Finding] = []

    def fault(field: Path_, error: HalInventoryError) -> None:
        path = source.said[str(field[0])]
        document = parse(read_bytes(path), display_name(path))
        document.add(field, str(error))
        findings.extend(document.findings)

    try:
        site = renumber(site, source.networks)
    except RenumberError as error:
        fault(("networks", error.network), error)
    if source.only is not None:
        try:
            site = only(site, source.only)
        except HalInventoryError as error:
            fault(("only",), error)
    if findings:
        raise SourceFileError(findings)
    return replace(site, virtual=source.virtual)


def inventory_of(path: str | os.PathLike[str]) -> Packed:
    """Return the packed inventory of a source; a FindingsError says what is wrong with the source or its model."""
    return Compiled(path).inventory()


def slice_of(path: str | os.PathLike[str], name: str, arguments: Mapping[str, Any]) -> Any:
    """Return one slice of a source's site."""
    return Compiled(path).slice(name, arguments)


__all__ = ["Compiled", "FindingsError", "inventory_of", "slice_of"]
