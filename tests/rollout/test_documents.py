"""Commands of the pages that no other test runs, typed as they are written on a node of the small virtual HAL."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml
from demo.mini import Mini

from tests.pages import PROJECT, Command, commands, pages

LISTED = yaml.safe_load((PROJECT / "tests" / "contract" / "commands.yml").read_text())
TYPED = [
    (entry["node"], command, "silent" in entry)
    for entry in LISTED
    if "node" in entry
    for page in pages()
    for command in commands(page)
    if re.match(entry["command"], command.typed) and command.page.startswith(entry.get("page", ""))
]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def rolled_out(mini: Mini) -> None:
    """Nodes as site.yml makes them."""
    if not mini.rolled_out:
        play = mini.site()
        assert play.status == 0, play.explain()


def test_there_is_something_to_type() -> None:
    assert len(TYPED) >= 7


@pytest.mark.parametrize(("node", "command", "silent"), TYPED, ids=lambda value: str(value))
def test_it_works_and_says_something(mini: Mini, node: str, command: Command, silent: bool) -> None:
    """An exit status of 0, and an answer: a command that says nothing would teach nobody."""
    said = mini.cluster.run(node, f"bash -lc {shlex.quote(command.typed)}")
    assert silent or said.strip(), f"{command} said nothing on {node}"
