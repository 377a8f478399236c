"""A lock file is refused with file, line and field; what is written can be read, and is the same every time."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from hal_cluster.packages.errors import LockFileError
from hal_cluster.packages.lock import Lock, dump, load

KEY = "0123456789ABCDEF0123456789ABCDEF01234567"
GOOD = f"""\
format: 1
repositories:
  base:
    x86_64:
      url: https://vault.example/7.7.1908/os/x86_64
      signed_by: {{centos: {KEY}}}
      packages:
        chrony:
          version: 0:3.4-1.el7
          arch: x86_64
          file: Packages/chrony-3.4-1.el7.x86_64.rpm
          size: 256848
          sha256: {"a" * 64}
          key: {KEY[-16:]}
      unverified: [tmux]
"""


def faults(tmp_path: Path, old: str, new: str) -> list[str]:
    assert old in GOOD
    path = tmp_path / "packages.lock.yml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(LockFileError) as raised:
        load(path)
    return [str(one).partition("packages.lock.yml:")[2] for one in raised.value.findings]


def test_a_good_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "packages.lock.yml"
    path.write_text(GOOD)
    file = load(path)
    assert file.lock.unverified() == ["base/x86_64/tmux"]
    assert file.lock.repositories["base"]["x86_64"].packages["chrony"].size == 256848
    assert file.line("repositories", "base", "x86_64", "packages", "chrony", "sha256") == 13


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("sha256: aaa", "sha256: aa", "13: repositories.base.x86_64.packages.chrony.sha256: 'a"),
        ("size: 256848", "sise: 1", "12: repositories.base.x86_64.packages.chrony.sise: unknown field"),
        ("arch: x86_64", "arch: ppc64le", "10: repositories.base.x86_64.packages.chrony.arch: ppc64le does not run on"),
        ("0:3.4-1.el7", "3.4-1.el7", "9: repositories.base.x86_64.packages.chrony.version: '3.4-1.el7' does not look"),
        (
            "0:3.4-1.el7",
            "0:3.5-1.el7",
            "11: repositories.base.x86_64.packages.chrony.file: is not the file of chrony-3",
        ),
        ("Packages/chrony", "../chrony", "11: repositories.base.x86_64.packages.chrony.file: must be the path of an"),
        (
            f"key: {KEY[-16:]}",
            f"key: {'F' * 16}",
            "14: repositories.base.x86_64.packages.chrony.key: FFFFFFFFFFFFFFFF is none",
        ),
        ("[tmux]", "[tmux, chrony]", "15: repositories.base.x86_64.unverified[1]: chrony is also under packages"),
        ("https://vault", "vault", "5: repositories.base.x86_64.url: 'vault.example/7.7.1908/os/x86_64' does not look"),
        ("format: 1", "format: 2", "1: format: input should be 1, not 2"),
    ],
)
def test_a_fault_is_named_with_its_line_and_field(tmp_path: Path, old: str, new: str, finding: str) -> None:
    found = faults(tmp_path, old, new)
    assert any(one.startswith(finding) for one in found), found


def test_a_key_given_twice_is_a_fault(tmp_path: Path) -> None:
    (found,) = faults(tmp_path, "      unverified: [tmux]", "      url: http://x")
    assert found == "15: repositories.base.x86_64.url: used twice: first at line 5"


def test_what_is_written_is_read_the_same_and_fits_the_schema() -> None:
    lock = Lock.model_validate(yaml.safe_load(GOOD))
    text = dump(lock)
    assert Lock.model_validate(yaml.safe_load(text)) == lock
    assert dump(Lock.model_validate(yaml.safe_load(text))) == text
    jsonschema.validate(yaml.safe_load(text), Lock.model_json_schema())


def test_the_digest_changes_with_what_is_published_and_with_nothing_else() -> None:
    lock = Lock.model_validate(yaml.safe_load(GOOD))
    assert lock.digest() == Lock.model_validate(yaml.safe_load(GOOD.replace("vault", "archive"))).digest()
    assert lock.digest() != Lock.model_validate(yaml.safe_load(GOOD.replace("a" * 64, "b" * 64))).digest()
