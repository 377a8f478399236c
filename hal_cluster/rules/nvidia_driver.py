"""The driver of GPUs: rows of nvidia-smi that are not as declared, udev rules without memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hal_cluster.rules.errors import RuleError

MARK = "# nvidia_driver: "
_RULE = re.compile(r'\s*SUBSYSTEM==\s*"memory"')
_BLOCK = re.compile(r'\s*SUBSYSTEM!=\s*"memory".*GOTO="(\w+)"')


def at_least(number: int) -> str:
    """Return a regex of the whole numbers from this one on, as programs print them."""
    digits = str(number)
    larger = [
        f"{digits[:at]}[{int(digit) + 1}-9][0-9]{{{len(digits) - at - 1}}}"
        for at, digit in enumerate(digits)
        if digit != "9"
    ]
    return "|".join([digits, *larger, f"[1-9][0-9]{{{len(digits)},}}"])


def at_most(number: int) -> str:
    """Return a regex of the whole numbers up to this one, as programs print them."""
    digits = str(number)
    smaller = [
        f"{digits[:at]}[{0 if at else 1}-{int(digit) - 1}][0-9]{{{len(digits) - at - 1}}}"
        for at, digit in enumerate(digits)
        if int(digit) > (0 if at else 1)
    ]
    shorter = ["0", *(f"[1-9][0-9]{{{length}}}" for length in range(len(digits) - 1))]
    return "|".join(dict.fromkeys([digits, *smaller, *shorter]))


def rows_unlike(fields: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a regex of rows of `nvidia-smi --query-gpu=FIELDS --format=csv,noheader,nounits` that fit none of `rows`.

    A row names what some of the fields have to be: a value, a list of them, {at_least: n} or {at_most: n}.
    `fields`: those that are asked, in their order. A field that a row does not name may be anything. The regex is for a
    whole row. RuleError for a field that is not asked.
    """
    wanted = []
    for row in rows:
        unknown = [name for name in row if name not in fields]
        if unknown:
            raise RuleError(f"{unknown[0]} is not among the fields that are asked: {', '.join(fields)}")
        wanted.append(", ".join(f"(?:{_cell(row[name])})" if name in row else "[^,]*" for name in fields))
    return rf"(?!(?:{'|'.join(wanted)})$)[0-9]+, .*"


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        makers = {"at_least": at_least, "at_most": at_most}
        ((kind, number),) = value.items()
        return makers[kind](int(number))
    values = value if isinstance(value, (list, tuple)) else [value]
    return "|".join(re.escape(str(text)) for text in values)


def udev_without_memory(text: str) -> str:
    """Return a 40-redhat.rules in which the rule that brings memory on-line is a comment, and nothing else differs.

    Enterprise Linux 7.5 has one line of it; from 7.6 on it is a block that ends at the LABEL its first line jumps to.
    RuleError where it has neither, or where the block does not end: a third form is noticed.
    """
    out, until, commented = [], None, False
    for line in str(text).splitlines():
        block = _BLOCK.match(line)
        if until is None and block:
            until, commented = block[1], True
        if until is not None:
            out.append(MARK + line if line.strip() else line)
            if re.match(rf'\s*LABEL="{until}"', line):
                until = None
        elif _RULE.match(line):
            commented = True
            out.append(MARK + line)
        else:
            out.append(line)
    if until is not None:
        raise RuleError(f'40-redhat.rules: the memory rule jumps to LABEL="{until}", which does not follow')
    if not commented:
        raise RuleError(
            "40-redhat.rules has no rule for memory as Enterprise Linux 7 has it: look at the file on the node"
        )
    return "\n".join(out) + "\n"
