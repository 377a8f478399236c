"""Templates are compiled once a run, not by each of the processes that Ansible starts: one a task and host."""

from __future__ import annotations

import hashlib
import marshal
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.template import AnsibleEnvironment
from jinja2 import nodes

from hal_cluster.expect.templating import SYNTAX, Environment

_compile = AnsibleEnvironment.compile
_known: dict[str, Any] = {}  # those of the process that it was forked from, too
_folder = ""


def share() -> None:
    """Have Ansible's environments, here and in processes that are forked from now on, share what they compile.

    In a folder of this run, which Ansible removes; what is in it nobody else can read.
    """
    global _folder
    if not _folder:
        _folder = os.path.join(constants.DEFAULT_LOCAL_TMP, "templates")
        os.mkdir(_folder, 0o700)
        AnsibleEnvironment.compile = _shared


def _shared(
    self: Any, source: Any, name: Any = None, filename: Any = None, raw: bool = False, defer_init: bool = False
) -> Any:
    """As Jinja does; files are left to it, and other environments, which may work out something else."""
    a_file = raw or defer_init or name is not None or filename is not None or not isinstance(source, str)
    if a_file or type(self) not in (AnsibleEnvironment, Environment):
        return _compile(self, source, name, filename, raw, defer_init)
    text = repr((str(source), *(getattr(self, word) for word in SYNTAX), sorted(self.extensions)))
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if key not in _known:
        path = Path(_folder, key)
        try:
            _known[key] = marshal.loads(path.read_bytes())
        except (OSError, ValueError, EOFError):
            compiled = _compile(self, source)
            if not _alike_always(self, source):
                return compiled
            _known[key] = compiled
            with suppress(OSError):  # the disk is full: it is compiled again
                new = path.with_name(f"{key}.{os.getpid()}")
                new.write_bytes(marshal.dumps(compiled))
                new.rename(path)
    return _known[key]


def _alike_always(environment: Any, source: str) -> bool:
    """Whether compiling works nothing out: of constants Jinja asks filters and tests then ("59 | random")."""
    asked = environment.parse(str(source)).find_all((nodes.Filter, nodes.Test))
    return all(call.node is None or _names(call.node) for call in asked)


def _names(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Name) or node.find(nodes.Name) is not None
