"""What is said of a rollout's command: no extra variable, however it was spelled."""

from __future__ import annotations

from itertools import chain

import pytest
from ansible.cli.playbook import PlaybookCLI

from hal_cluster.rollout.words import VALUED, command_line

SECRET = "pw=hunter"
LONG = ["--extra-vars"[:end] for end in range(len("--e"), len("--extra-vars") + 1)]
SPELLED: dict[tuple[str, ...], str] = {
    **{(name, SECRET): f"{name} ..." for name in LONG},
    **{(f"{name}={SECRET}",): f"{name}=..." for name in LONG},
    ("-e", SECRET): "-e ...",
    ("-e" + SECRET,): "-e...",
    ("-e=" + SECRET,): "-e=...",
    ("-ve", SECRET): "-ve ...",
    ("-vvbCDe" + SECRET,): "-vvbCDe...",
    ("-ve=" + SECRET,): "-ve=...",
}


@pytest.mark.parametrize("typed", SPELLED)
def test_extra_variables_are_hidden_however_ansible_lets_them_be_spelled(typed: tuple[str, ...]) -> None:
    words = ["/usr/bin/ansible-playbook", "-l", "hal01", *typed, "--diff", "site.yml"]
    cli = PlaybookCLI(words)
    cli.init_parser()
    read = cli.parser.parse_args(words[1:])
    (value,) = read.extra_vars
    assert value.lstrip("=") == SECRET  # behind other flags "-ve=" is one more sign of the value in some Pythons
    assert command_line(words) == f"ansible-playbook -l hal01 {SPELLED[typed]} --diff site.yml"


@pytest.mark.parametrize("typed", ["-lhaleel", "-tefficient", "-vi site/e", "--limit=--e", "--", "--f 9", "-", "-v -C"])
def test_what_is_no_extra_variable_is_shown(typed: str) -> None:
    assert command_line(["ansible-playbook", *typed.split(), "site.yml"]) == f"ansible-playbook {typed} site.yml"


def test_every_short_option_that_takes_a_value_is_known() -> None:
    cli = PlaybookCLI(["ansible-playbook"])
    cli.init_parser()
    takers = [action.option_strings for action in cli.parser._actions if action.nargs is None]
    assert {name[1] for name in chain(*takers) if len(name) == 2} == {*VALUED, "e"}
