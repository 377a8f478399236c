"""A Templar that compiles no text twice in a process: Ansible's own compiles every text at every use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible import constants
from ansible.template import AnsibleEnvironment, Templar

# What decides how a text is compiled, beside the text.
SYNTAX = (
    *("block_start_string", "block_end_string", "variable_start_string", "variable_end_string"),
    *("comment_start_string", "comment_end_string", "line_statement_prefix", "line_comment_prefix"),
    *("trim_blocks", "lstrip_blocks", "newline_sequence", "keep_trailing_newline"),
)
_compiled: dict[tuple[Any, ...], Any] = {}
# Filters and tests are found once, not once for each environment.
_plugins: list[Any] = []


class Environment(AnsibleEnvironment):  # type: ignore[misc]  # Ansible has no types
    """Keeps what it has compiled, for all environments of this process and of those that are forked from it."""

    def compile(
        self, source: Any, name: Any = None, filename: Any = None, raw: bool = False, defer_init: bool = False
    ) -> Any:
        """As Jinja does; files are left to it."""
        if raw or defer_init or name is not None or filename is not None or not isinstance(source, str):
            return super().compile(source, name, filename, raw, defer_init)
        key = (str(source), *(getattr(self, word) for word in SYNTAX))
        if key not in _compiled:
            _compiled[key] = super().compile(source, name, filename, raw, defer_init)
        return _compiled[key]


class CompilingTemplar(Templar):  # type: ignore[misc]  # Ansible has no types
    """Gives what Templar gives, and works variables out at each use, as Templar does.

    What Jinja works out at compile time stays as it was: filters and tests of constants ("'/etc' is directory").
    """

    def __init__(self, loader: Any, variables: Mapping[str, Any]) -> None:
        """As Templar."""
        self.environment: Any
        super().__init__(loader=loader, variables=variables)
        if not constants.DEFAULT_JINJA2_NATIVE:
            searchpath = self.environment.loader.searchpath
            quick = object.__new__(Environment)
            quick.__dict__.update(self.environment.__dict__)
            self.environment = quick
            if not _plugins:
                _plugins.extend([quick.filters, quick.tests])
            quick.filters, quick.tests = _plugins
            self.environment.loader.searchpath = searchpath
