"""Make two small data sets with their manifests below a folder, the same bytes each time; runs on their server."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

# Names and megabytes.
DIGITS = {
    **{f"train/{number:02}.bin": 1 for number in range(20)},
    "video/large.bin": 60,
    **{f"zest/{number:02}.bin": 1 for number in range(10)},
}
LETTERS = {**{f"{number:02}.txt": 0 for number in range(30)}, "größe und blank.bin": 20}


def block(words: str) -> bytes:
    return hashlib.sha256(words.encode()).digest() * 32768


def make(folder: Path, files: dict[str, int]) -> None:
    lines = []
    for name, megabytes in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = b"".join(block(f"{name} {number}") for number in range(megabytes)) or name.encode()
        path.write_bytes(content)
        lines.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
    (folder / "SHA256SUMS").write_text("".join(lines))


if __name__ == "__main__":
    make(Path(sys.argv[1]) / "digits-1.0", DIGITS)
    make(Path(sys.argv[1]) / "letters", LETTERS)
