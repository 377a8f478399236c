"""Versions of drivers and toolkits, and how a message shows what is not one."""

from __future__ import annotations

from hal_cluster.rules.cuda.versions import driver_version, shown


def test_versions_of_two_and_of_three_numbers_compare() -> None:
    assert driver_version("440.33") == driver_version("440.33.00")
    assert driver_version("440.33") < driver_version("440.33.01") < driver_version("440.100") < driver_version("450.0")


def test_a_value_is_shown_in_a_message_up_to_forty_characters() -> None:
    assert shown("x" * 40) == f'"{"x" * 40}"'
    assert shown("x" * 41) == f'"{"x" * 37}..."'
    assert shown("a\nb") == r'"a\nb"'
    assert shown(10.2) == '"10.2"'
