"""What cannot be carried out is refused with its place and what would be right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster.rules import datasets

ROOT = Path(__file__).resolve().parents[4]
GOOD = {
    "name": "digits", "version": "1.0", "title": "Digits", "owner": "isl", "licence": "CC BY", "size_gb": 1,
    "source": "https://data.example.edu/digits", "manifest_sha256": "0" * 64, "default": True,
}  # fmt: skip


def test_what_is_right_has_no_problem() -> None:
    older = GOOD | {"version": "0.9", "default": False, "access": "group", "source": "/mnt/import disk"}
    inline = {key: value for key, value in GOOD.items() if key != "manifest_sha256"}
    inline |= {"name": "one", "checksums": f"{'0' * 64}  a b\n\n\\{'1' * 64} *a\\nb\n", "source": "rsync://h/m"}
    gone = GOOD | {"name": "gone", "default": False, "retired": "use digits"}
    assert datasets.problems([GOOD, older, inline, gone]) == []
    assert datasets.problems([]) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"licence": ""}, "no licence"),
        ({"colour": "red"}, "colour is not a field; there are name, version"),
        ({"version": 1.1}, "version is the number 1.1; put it in quotes, or 1.10 is 1.1"),
        ({"version": "default"}, 'version is "default"; write letters'),
        ({"name": "../etc"}, 'name is "../etc"; write small letters'),
        ({"name": ".hal"}, 'name is ".hal"; write small letters'),
        ({"version": "1.retired.txt"}, 'version is "1.retired.txt"'),
        ({"manifest_sha256": ""}, "neither of manifest_sha256 and checksums; write one"),
        ({"checksums": f"{'0' * 64}  a"}, "both of manifest_sha256 and checksums; write one"),
        ({"manifest_sha256": "abc"}, "manifest_sha256 is abc; write 64 digits"),
        ({"manifest_sha256": "", "checksums": "abc  a"}, 'checksums has the line "abc  a"; write lines as sha256sum'),
        ({"manifest": "../SUMS"}, "manifest is ../SUMS; write its name below the source"),
        ({"source": "ftp://h/x"}, "source is ftp://h/x; write https://"),
        ({"source": "relative/folder"}, "source is relative/folder; write https://"),
        ({"source": "https://me:secret@h/x"}, "source has a name or password in it, which users would read"),
        ({"size_gb": 0}, "size_gb is 0; write a number above 0"),
        ({"size_gb": None}, "no size_gb"),
        ({"size_gb": "140"}, "size_gb is 140; write a number above 0"),
        ({"size_gb": -1}, "size_gb is -1; write a number above 0"),
        ({"access": "some"}, "access is some; write all or group"),
        ({"access": "group", "owner": "Jane Doe"}, "owner has to be the name of one, and Jane Doe is none"),
        ({"default": "yes"}, "default is yes; write true or false"),
        ({"retired": "use 2"}, "is retired and the default; make another version the default"),
        ({"retired": True, "default": False}, "retired is not text; write what users should use instead"),
    ],
)
def test_a_fault_is_named_with_its_place(change: dict[str, Any], words: str) -> None:
    found = datasets.problems([GOOD | {"name": "other"}, GOOD | change])
    assert any(line.startswith("datasets_standard[1] (") and words in line for line in found), found
    assert not any("secret@" in line for line in found), "a password is in no message"


def test_versions_have_to_fit_together() -> None:
    assert datasets.problems([GOOD, GOOD]) == [
        "digits/1.0 is declared 2 times",
        "digits has the defaults 1.0, 1.0; one is right",
    ]
    without = {**GOOD, "default": False}
    assert datasets.problems([without, without | {"version": "2"}]) == [
        "digits has no default; write `default: true` for one of 1.0, 2"
    ]
    assert datasets.problems(["digits"]) == ["datasets_standard[0]: not a mapping; write name, version, ..."]


def test_the_table_has_every_field() -> None:
    (first, second) = datasets.table([GOOD, GOOD | {"version": "2", "note": "x"}])
    assert (first["id"], first["at"], first["access"], first["manifest"]) == ("digits/1.0", 0, "all", "SHA256SUMS")
    assert (second["id"], second["at"], second["note"]) == ("digits/2", 1, "x")


def test_the_examples_of_the_documentation_are_right() -> None:
    text = (ROOT / "docs/datasets.md").read_text()
    block = text.split("```yaml\n", 1)[1].split("```", 1)[0]
    assert datasets.problems(yaml.safe_load(block)["datasets_standard"]) == []
    lines = (ROOT / "roles/datasets/defaults/main.yml").read_text().splitlines()
    example = "\n".join(line[2:] for line in lines if line.startswith("#   "))
    assert datasets.problems(yaml.safe_load(example)) == []
