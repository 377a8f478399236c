"""The words of expect.yml. There is one table of them, and it is shipped to the nodes."""

from __future__ import annotations

from hal_node.expect import vocabulary as _words

#: (kind of value, allowed values or None, whether it is required)
Field = tuple[str, tuple[str, ...] | None, bool]

TEXT: str = _words.TEXT
NUMBER: str = _words.NUMBER
FLAG: str = _words.FLAG
TEXTS: str = _words.TEXTS
NUMBERS: str = _words.NUMBERS
ANY: str = _words.ANY
READERS: dict[str, dict[str, Field]] = _words.READERS
MATCHERS: dict[str, str] = _words.MATCHERS
ENTRY_FIELDS: dict[str, Field] = _words.ENTRY_FIELDS
SERVICE_READS: tuple[str, ...] = _words.SERVICE_READS

#: What a flag or a number may be written as, beside YAML's own: a template's result is text.
FLAG_WORDS = ("true", "false", "yes", "no", "on", "off")
NUMBER_TEXT = r"[+-]?\d+(\.\d+)?"
