"""The words of expect.yml. There is one table of them, and it is shipped to the nodes, so it is loaded from there."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

PROJECT = Path(__file__).resolve().parents[2]
TABLE = PROJECT / "plugins" / "module_utils" / "hal_expect_vocabulary.py"

#: type of a field -> (in words, the Python types of it when it is no template)
Field = tuple[str, tuple[str, ...] | None, bool]


def _table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hal_expect_vocabulary", TABLE)
    if spec is None or spec.loader is None:  # cannot be: the path is a .py file
        raise ImportError(f"{TABLE} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_words = _table()
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
