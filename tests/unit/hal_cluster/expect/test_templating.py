"""Compiling once gives what Ansible's own Templar gives, whatever is templated before."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from hal_cluster.expect.templating import CompilingTemplar

TEXTS: list[tuple[str, dict[str, Any]]] = [
    ("{{ word }}", {}),
    ("{{ outer }} {{ number + 1 }}", {}),
    ("{% if number > 1 %}\nmany\n{% endif %}\nrest", {}),
    ("{% if number > 1 %}\nmany\n{% endif %}\nrest", {"trim_blocks": False}),
    ("  {% if number > 1 %}x{% endif %}", {"lstrip_blocks": True}),
    ("{{ word }} << word >>", {"variable_start_string": "<<", "variable_end_string": ">>"}),
    ("{{ [word] | map('upper') | list }}", {}),
]


@pytest.mark.parametrize("number", [1, 2])
def test_texts_are_what_they_are_for_ansible_with_these_variables(number: int) -> None:
    loader = DataLoader()
    variables = {"word": f"w{number}", "outer": "{{ word }}!", "number": number}
    for text, overrides in TEXTS:
        said = [
            templar.template(text, overrides=overrides, cache=False)
            for templar in (CompilingTemplar(loader, variables), Templar(loader=loader, variables=variables))
        ]
        assert said[0] == said[1], text


def test_what_is_undefined_stays_so() -> None:
    with pytest.raises(Exception, match="'nothing' is undefined"):
        CompilingTemplar(DataLoader(), {}).template("{{ nothing }}")
