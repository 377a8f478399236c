"""Packages that OFED replaces and a repository would bring back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def not_excluded(repositories: Mapping[str, Any], ids: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return a sentence for each of these repositories that does not exclude all patterns.

    `repositories` is in the form of repositories_enabled. One that is not declared is a sentence, too: a name that fits
    nothing would ask for nothing.
    A repository that is not enabled is left out. `ids`: the repositories that have such packages. `patterns`: what each
    has to exclude, in these words.
    """
    wanted, sentences = list(patterns), []
    for name in ids:
        if name not in repositories:
            sentences.append(f"{name} is none of the repositories {', '.join(sorted(repositories))}")
            continue
        repository = repositories[name]
        if not repository.get("enabled", True):
            continue
        missing = [pattern for pattern in wanted if pattern not in _excluded(repository)]
        if missing:
            sentences.append(f"{name} does not exclude {' '.join(missing)}")
    return sentences


def _excluded(repository: Mapping[str, Any]) -> list[str]:
    """The patterns of a repository's `exclude`: a list, or words with blanks or commas between (yum.conf(5))."""
    value = (repository.get("options") or {}).get("exclude", [])
    return value.replace(",", " ").split() if isinstance(value, str) else [str(pattern) for pattern in value]
