"""Specifications that say something else than the defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import arguments

SPECS = "roles/time/meta/argument_specs.yml"
SITE = "inventory/hal/group_vars/all/time.yml"
DEFAULTS = "roles/time/defaults/main.yml"


def specs(options: str) -> str:
    """A specification with these options, one a line."""
    lines = "\n".join(f"      {line.strip()}" for line in options.strip().splitlines())
    return f"argument_specs:\n  main:\n    options:\n{lines}\n"


PLANTED = (
    Planted(
        arguments.every_argument_is_described,
        {
            SPECS: specs(
                """
                time_servers: {type: list, elements: dict, description: x, options: {name: {type: str}}}
                time_zone: {description: x}
                """
            )
        },
        [
            f"{SPECS}:4: time_servers.name has no description; say what it may be and what it means",
            f"{SPECS}:5: time_zone has no type; say what it may be and what it means",
        ],
    ),
    Planted(
        arguments.defaults_are_in_the_specification,
        {
            DEFAULTS: "time_zone: UTC\ntime_retries: 3\ntime_step: 1\ntime_new: x\ntime_none:\n",
            SPECS: specs(
                """
                time_zone: {type: str, description: x, default: CET}
                time_retries: {type: int, description: x}
                time_step: {type: bool, description: x, default: true}
                time_none: {type: str, description: x}
                """
            ),
        },
        [
            f"{DEFAULTS}:1: time_zone: 'UTC' here, 'CET' in meta/argument_specs.yml; make them equal",
            f"{DEFAULTS}:2: time_retries: meta/argument_specs.yml has no default, here is 3",
            f"{DEFAULTS}:3: time_step: 1 here, True in meta/argument_specs.yml; make them equal",
            f"{DEFAULTS}:4: time_new is not in meta/argument_specs.yml; add it with this default",
        ],
    ),
    Planted(
        arguments.defaults_are_in_the_specification,
        {
            DEFAULTS: "# a\n---\ntime_list: [a, {b: 1}]\ntime_model: \"{{ lookup('hal', 'site').name }}\"\n",
            SPECS: specs(
                """
                time_list: {type: list, description: x, default: [a, {b: 1}]}
                time_model: {type: str, description: x, default: "{{ lookup('hal', 'site').name }}"}
                """
            ),
        },
        [],
    ),
    Planted(
        arguments.values_are_of_their_type,
        {
            DEFAULTS: "time_zone: 1\ntime_retries: true\ntime_step: [a, 1]\ntime_any: {a: 1}\ntime_limit: '{{ 1 }}'\n",
            SITE: "time_servers:\n  - {name: [x]}\n  - {name: y}\nothers: 1\n",
            SPECS: specs(
                """
                time_zone: {type: str, description: x}
                time_retries: {type: int, description: x}
                time_step: {type: list, elements: str, description: x}
                time_any: {type: raw, description: x}
                time_limit: {type: int, description: x}
                time_servers: {type: list, elements: dict, description: x, options: {name: {type: str, description: x}}}
                """
            ),
        },
        [
            f"{SITE}:1: time_servers[0].name is ['x'], and str in meta/argument_specs.yml; make them agree",
            f"{DEFAULTS}:1: time_zone is 1, and str in meta/argument_specs.yml; make them agree",
            f"{DEFAULTS}:2: time_retries is True, and int in meta/argument_specs.yml; make them agree",
            f"{DEFAULTS}:3: time_step[1] is 1, and str in meta/argument_specs.yml; make them agree",
        ],
    ),
    Planted(
        arguments.null_is_let_through,
        {
            SPECS: specs(
                """
                time_mode: {type: str, description: x; null leaves it alone, default: y, choices: [y, z]}
                time_step: {type: str, description: x; null leaves it alone, choices: [y, null]}
                time_yum: {type: dict, description: x; null removes one, default: {}}
                """
            )
        },
        [
            f"{SPECS}:4: time_mode can be null, not one of its choices; add null there",
            f"{SPECS}:4: time_mode can be null, refused beside a default; leave the default out",
        ],
    ),
    Planted(
        arguments.the_specification_is_in_the_defaults,
        {
            DEFAULTS: "time_both: 1\n",
            SPECS: specs(
                """
                time_key: {type: str, description: x, required: true}
                time_gone: {type: str, description: x, default: y}
                time_both: {type: int, description: x, required: true}
                """
            ),
        },
        [
            f"{SPECS}:5: time_gone is not in defaults/main.yml; give it a default or required: true",
            f"{SPECS}:6: time_both is required and has a default in defaults/main.yml; keep one of the two",
        ],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
