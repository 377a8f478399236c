"""The JSON document of a capture, read and checked: what the tools of a machine, or the resources of a BMC, said."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from hal_inventory.bounded import MOST_ANSWER, BoundError, check, limited
from hal_inventory.errors import Finding, FindingsError
from hal_inventory.reader import display_name, read_bytes

STANDARD_INPUT = "-"


class CaptureFileError(FindingsError):
    """A capture that cannot be used."""


class _Read(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Output(_Read):
    """What a program said; a status of None means that there is no such program, or that it did not end."""

    argv: tuple[str, ...]
    status: int | None
    stdout: str
    stderr: str


class NodeCapture(_Read):
    """A machine, by its own tools."""

    format: Literal[1]
    kind: Literal["node"]
    host: str
    taken_at: str
    outputs: Mapping[str, Output]
    files: Mapping[str, str]


class BmcCapture(_Read):
    """A machine, by its BMC."""

    format: Literal[1]
    kind: Literal["bmc"]
    address: str
    taken_at: str
    resources: Mapping[str, Mapping[str, Any]]


class IpmiCapture(_Read):
    """A machine, by a BMC that speaks IPMI alone: what its FRU and its LAN parameters say."""

    format: Literal[1]
    kind: Literal["ipmi"]
    address: str
    taken_at: str
    serial: str | None
    model: str | None
    macs: tuple[str, ...]


Capture = NodeCapture | BmcCapture | IpmiCapture
_CAPTURE: TypeAdapter[Capture] = TypeAdapter(Annotated[Capture, Field(discriminator="kind")])


def read_capture(path: str) -> tuple[str, Capture]:
    """Return the name of a capture's file, ``-`` being standard input, and the capture; or CaptureFileError."""
    if path == STANDARD_INPUT:
        return "standard input", parse_capture(sys.stdin.buffer.read(MOST_ANSWER + 1), "standard input")
    return display_name(path), parse_capture(read_bytes(Path(path)), display_name(path))


def parse_capture(content: bytes, file: str) -> Capture:
    """Return the capture that ``content`` holds; ``file`` is the name for messages."""
    try:
        limited(content)
        data = json.loads(content.decode("utf-8-sig"))
        check(data)
    except BoundError as error:
        raise _fault(file, "", f"has {error}") from None
    except UnicodeDecodeError:
        raise _fault(file, "", "is not UTF-8 text") from None
    except (json.JSONDecodeError, RecursionError) as error:
        where = f": {error.msg} at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise _fault(file, "", f"is not the JSON of a capture{where}") from None
    if not isinstance(data, dict) or "format" not in data:
        raise _fault(file, "format", "is missing; a capture is what hal-inventory capture --script prints on a machine")
    if data["format"] != 1:
        raise _fault(file, "format", f"is {data['format']!r}; this version reads format 1")
    try:
        return _CAPTURE.validate_python(data)
    except ValidationError as error:
        findings = [
            Finding(file, 0, ".".join(str(step) for step in problem["loc"][1:]) or "kind", problem["msg"].lower())
            for problem in error.errors()
        ]
        raise CaptureFileError(findings) from None


def _fault(file: str, field: str, message: str) -> CaptureFileError:
    return CaptureFileError([Finding(file, 0, field, message)])
