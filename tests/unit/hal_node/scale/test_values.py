"""When two values are the same, and how one is written."""

from __future__ import annotations

import pytest
from ansible.module_utils.hal_node.scale.values import number, plain, same, written


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("128K", 131072),
        ("128k", "131072"),
        ("4G", "4294967296"),
        ("3500m", 3500 * 1024 * 1024),
        (True, "yes"),
        ("yes", "1"),
        ("no", "0"),
        ("enable", "1"),
        (False, "no"),
        ("mlx5_0/1 mlx5_3/1", ["mlx5_0/1", "mlx5_3/1"]),
        ("mlx5_0/1,mlx5_3/1", "mlx5_0/1  mlx5_3/1"),
        ("allToAll", "alltoall"),
    ],
)
def test_these_mean_the_same(one: object, other: object) -> None:
    assert same(one, other)
    assert same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("128K", "128M"),
        ("yes", "no"),
        ("yes", "2"),
        ("1", "0"),
        ("enable", "disable"),
        ("mlx5_0/1 mlx5_3/1", "mlx5_3/1 mlx5_0/1"),
        ("5.0.4", "5.0.40"),
        ("1048576", "10485760"),
        ("", "0"),
    ],
)
def test_these_do_not(one: object, other: object) -> None:
    assert not same(one, other)
    assert not same(other, one)


def test_numbers_have_binary_units() -> None:
    assert [number(text) for text in ("7", "4K", "1 M", "2g", "-1", "4X", "", "50%")] == [
        *(7, 4096, 1 << 20, 2 << 30, -1),
        *(None, None, None),
    ]
    assert number(True) is None


def test_values_are_written_for_mmchconfig() -> None:
    assert [written(value) for value in (None, True, False, 7, ["a/1", "b/1"], " 4G ")] == [
        *("DEFAULT", "yes", "no", "7", "a/1 b/1", "4G"),
    ]
    assert plain("A  b,C") == "a b c"
