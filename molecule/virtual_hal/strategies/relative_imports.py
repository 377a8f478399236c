"""mitogen sends a module what it imports from a package of ours beside it, too.

It looks for imports of ansible.module_utils.NAME, and passes over those that begin with a dot (0.3.54:
ansible_mitogen/module_finder.py, walk_imports): what hal_node imports from itself would not be there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from types import CodeType

import ansible_mitogen.module_finder
import mitogen.imports

_as_mitogen = ansible_mitogen.module_finder.walk_imports


def mend() -> None:
    """Have connection multiplexers that are started from now on look for both."""
    ansible_mitogen.module_finder.walk_imports = walk_imports


def walk_imports(code: CodeType, prefix: str = "") -> Iterator[str]:
    """Yield names of imports, and of the packages around them; those below `prefix` alone.

    The code's file name is its full name: so mitogen compiles it. That of a package would be one level off.
    """
    yield from _as_mitogen(code, prefix)
    for level, name, names in mitogen.imports.codeobj_imports(code):
        if not level:
            continue
        whole = ".".join(filter(None, [*code.co_filename.split(".")[:-level], name]))
        if not whole.startswith(f"{prefix}."):
            continue
        beyond = whole[len(prefix) + 1 :].split(".")
        yield from (f"{prefix}.{part}" for part in accumulate(beyond, "{}.{}".format))
        yield from (f"{whole}.{leaf}" for leaf in names)
