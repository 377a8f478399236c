"""Packages that OFED replaces, and repositories that would bring them back."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.rules.infiniband import not_excluded

PATTERNS = ["rdma-core*", "opensm*"]


@pytest.mark.parametrize(
    ("options", "sentences"),
    [
        ({"exclude": PATTERNS}, []),
        ({"exclude": "slurm* opensm* rdma-core*"}, []),
        ({"exclude": "opensm*,rdma-core*"}, []),  # both are yum's
        ({"exclude": "opensm*"}, ["base does not exclude rdma-core*"]),
        ({"exclude": "rdma-core"}, ["base does not exclude rdma-core* opensm*"]),  # another pattern
        ({"metadata_expire": 1}, ["base does not exclude rdma-core* opensm*"]),
        (None, ["base does not exclude rdma-core* opensm*"]),
    ],
)
def test_each_pattern_has_to_be_excluded(options: Any, sentences: list[str]) -> None:
    assert not_excluded({"base": {"options": options}, "epel": {}}, ["base"], PATTERNS) == sentences


def test_a_repository_that_is_switched_off_brings_nothing() -> None:
    assert not_excluded({"base": {"enabled": False}}, ["base"], PATTERNS) == []


def test_a_name_that_fits_nothing_is_said() -> None:
    assert not_excluded({"os": {}, "epel": {}}, ["base"], PATTERNS) == ["base is none of the repositories epel, os"]


def test_nothing_asked_is_nothing_said() -> None:
    assert not_excluded({"base": {}}, [], PATTERNS) == []
