"""A manifest has every file with what it is; later each difference is told by its kind."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

KINDS = ("changed", "missing", "extra", "unlike", "writable")


@pytest.fixture
def manifest(part: Callable[[str], Any]) -> Any:
    return part("manifest")


@pytest.fixture
def prefix(tmp_path: Path, manifest: Any) -> Path:
    """A finished prefix."""
    top = tmp_path / "prefix"
    for name in (".hal", "bin", "lib/__pycache__"):
        (top / name).mkdir(parents=True)
    (top / "bin/b").write_text("b")
    (top / "lib/a.txt").write_text("a")
    (top / "lib/mod.pyc").write_text("compiled")
    (top / "lib/link").symlink_to("a b")
    (top / "lib/line\nbreak").write_text("")
    (top / ".hal/activate.json").write_text("{}")
    for path in [top, *top.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    digest = manifest.write(str(top))
    (top / ".hal/record.json").write_text(json.dumps({"manifest": digest}))
    for path in (top / ".hal").iterdir():
        path.chmod(0o644)
    return top


def wrong(**kinds: list[str]) -> dict[str, list[str]]:
    return {**{kind: [] for kind in KINDS}, **kinds}


def test_a_manifest_is_a_sorted_line_a_path_and_its_sum_is_returned(manifest: Any, prefix: Path) -> None:
    empty, small = hashlib.sha256(b"").hexdigest(), {n: hashlib.sha256(n.encode()).hexdigest() for n in ("a", "b")}
    mod, activate = hashlib.sha256(b"compiled").hexdigest(), hashlib.sha256(b"{}").hexdigest()
    assert (prefix / ".hal/manifest").read_text().splitlines() == [
        "d 0755  .hal", "d 0755  bin", "d 0755  lib", f"f 0644:{activate}  .hal/activate.json",
        f"f 0644:{small['b']}  bin/b", "d 0755  lib/__pycache__", f"f 0644:{small['a']}  lib/a.txt",
        f"f 0644:{empty}  lib/line\\nbreak", "l a\\040b  lib/link", f"f 0644:{mod}  lib/mod.pyc",
    ]  # fmt: skip
    assert manifest.write(str(prefix)) == hashlib.sha256((prefix / ".hal/manifest").read_bytes()).hexdigest()
    assert not (prefix / ".hal/manifest.new").exists()
    os.mkfifo(prefix / "pipe", 0o600)
    (prefix / "odd").symlink_to("a\nb")
    assert manifest.describe(os.fsencode(prefix / "pipe")) == b"? 0600"
    assert manifest.describe(os.fsencode(prefix / "odd")) == b"l a\\012b"


def test_what_is_as_it_was_has_no_difference_and_its_own_notes_may_change(manifest: Any, prefix: Path) -> None:
    for name in ("verified.json", "surplus.json", "building", "record.json.new", "manifest.new"):
        (prefix / ".hal" / name).write_text("{}")
    assert manifest.compare(str(prefix)) == wrong()


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        ("printf x >lib/a.txt", wrong(changed=["lib/a.txt"])),
        ("ln -sfn other lib/link", wrong(changed=["lib/link"])),
        ("rm lib/a.txt bin/b", wrong(missing=["bin/b", "lib/a.txt"])),
        ("printf x >lib/new", wrong(extra=["lib/new"])),
        ("printf x >lib/new.pyc; printf x >lib/__pycache__/new.txt", wrong()),
        ("printf x >lib/mod.pyc", wrong()),
        ("chmod 700 bin/b", wrong(unlike=["bin/b"])),
        ("chmod 600 lib/mod.pyc", wrong(unlike=["lib/mod.pyc"])),
        ("chmod 700 lib/__pycache__", wrong(unlike=["lib/__pycache__"])),
        ("rm lib/link; printf x >lib/link", wrong(unlike=["lib/link"])),
        ("rm bin/b; ln -s x bin/b", wrong(unlike=["bin/b"])),
        ("chmod 664 lib/a.txt", wrong(writable=["lib/a.txt"])),
        ("chmod 646 .hal/record.json", wrong(writable=[".hal/record.json"])),
        ("printf x >lib/a.txt; chmod 646 lib/a.txt", wrong(writable=["lib/a.txt"], changed=["lib/a.txt"])),
        ("printf x >.hal/manifest", wrong(changed=[".hal/manifest"])),
        ("rm .hal/manifest", wrong(changed=[".hal/manifest"])),
        ("rm .hal/record.json", wrong(changed=[".hal/manifest"])),
        ("printf x >.hal/activate.json", wrong(changed=[".hal/activate.json"])),
    ],
)
def test_each_difference_is_of_one_kind(manifest: Any, prefix: Path, plant: str, expected: dict[str, Any]) -> None:
    subprocess.run(["/bin/sh", "-c", plant], cwd=prefix, check=True)
    assert manifest.compare(str(prefix)) == expected


def test_a_name_that_is_no_utf_8_or_has_a_line_break_is_compared_as_it_is(manifest: Any, prefix: Path) -> None:
    (prefix / "lib/line\nbreak").unlink()
    Path(os.fsdecode(os.fsencode(prefix) + b"/lib/\xff")).touch()
    assert manifest.compare(str(prefix)) == wrong(missing=["lib/line\\nbreak"], extra=["lib/�"])


def test_a_result_is_one_line_with_packages_and_the_first_paths(manifest: Any) -> None:
    assert manifest.in_words(wrong(), {}) == ""
    found = wrong(writable=["b"], missing=["a", "c", "d", "e"], changed=["z"])
    assert manifest.in_words(found, {"a": "maths 1", "c": "maths 1", "e": "alpha 2", "x": "other 3"}) == (
        "1 changed (z); 4 missing of alpha 2, maths 1 (a, c, d and 1 more); 1 that others than root may write (b)"
    )


def test_who_brought_a_file_is_read_from_the_packages_records(manifest: Any, prefix: Path) -> None:
    assert manifest.owners(str(prefix)) == {}
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta/history").write_text("no JSON")
    (prefix / "conda-meta/a.json").write_text(json.dumps({"name": "a", "version": "1", "files": ["x", "y"]}))
    (prefix / "conda-meta/b.json").write_text(json.dumps({"name": "b", "version": "2"}))
    assert manifest.owners(str(prefix)) == {
        "conda-meta/a.json": "a 1", "x": "a 1", "y": "a 1", "conda-meta/b.json": "b 2",
    }  # fmt: skip
