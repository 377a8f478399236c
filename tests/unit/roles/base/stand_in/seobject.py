"""Stand-in for seobject of policycoreutils-python 2.5: booleanRecords.get_all and .delete."""

from __future__ import annotations

import store  # type: ignore[import-not-found]  # beside this file, on PYTHONPATH of the run


class booleanRecords:  # its name there
    """The booleans of the policy."""

    def get_all(self, locallist: int = 0) -> dict[str, list[int]]:
        """Those that the site has set, or all."""
        values = store.load()
        wanted = values["local"] if locallist else {**values["policy"], **values["local"]}
        return {name: [value] * 3 for name, value in wanted.items()}

    def delete(self, name: str) -> None:
        """Forget what the site has set; what is in effect stays until the next boot."""
        values = store.load()
        del values["local"][name]
        store.save(values)
