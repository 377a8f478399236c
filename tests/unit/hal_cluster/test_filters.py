"""An error of ours is a sentence of Ansible's, whichever filter it comes from."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from hal_cluster.filters import worded
from hal_inventory.errors import HalError


def refuse(node: str, *, why: str = "") -> str:
    """Refuse a node, or give it back."""
    if why:
        raise HalError(f"{node}: {why}")
    return node


def test_a_filter_answers_as_its_function() -> None:
    filters = worded({"hal_refused": refuse})
    assert filters["hal_refused"]("hal05") == "hal05"
    assert filters["hal_refused"].__doc__ == refuse.__doc__


def test_an_error_of_ours_has_the_same_words_and_any_other_stays() -> None:
    refused = worded({"hal_refused": refuse})["hal_refused"]
    with pytest.raises(AnsibleFilterError, match=r"^hal05: it is busy$") as caught:
        refused("hal05", why="it is busy")
    assert caught.value.__suppress_context__
    with pytest.raises(TypeError):
        refused()
