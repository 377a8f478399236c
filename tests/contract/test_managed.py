"""Every play of site.yml that lists a role leaves a node alone on which the role is not managed, and that node only."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from hal_cluster.rollout.managing import Managed
from hal_inventory import managed
from tests.contract import declared
from tests.contract.project import PROJECT


@pytest.fixture(scope="module")
def site() -> Iterator[Any]:
    """The project's own site: loader, inventory and variables."""
    with declared._site(PROJECT) as found:
        yield found


@pytest.fixture(scope="module")
def plays(site: Any) -> list[Any]:
    """The plays of site.yml that list roles, on the project's own site."""
    from ansible.playbook import Playbook

    loader, _inventory, manager = site
    every = Playbook.load(str(PROJECT / "playbooks" / "site.yml"), manager, loader).get_plays()
    # A role of which one file is called (tasks_from) is not rolled out.
    return [play for play in every if any(not role._from_files.get("tasks") for role in play.roles)]


def test_every_role_has_a_play_here(plays: list[Any]) -> None:
    assert sorted(role.get_name() for play in plays for role in play.roles) == list(managed.known_roles())


def test_a_play_leaves_out_the_node_on_which_its_role_does_not_act(plays: list[Any]) -> None:
    for play in plays:
        (role,) = [one.get_name() for one in play.roles]
        inventory = play._variable_manager._inventory
        hosts = [host.get_name() for host in inventory.get_hosts(play.hosts)]
        assert hosts, f"{role}: a node of the group {role}"
        others = [name for name in managed.known_roles() if name != role]
        left = hosts[0]
        one = Managed()
        one._read = {host.get_name(): None for host in inventory.get_hosts("all")} | {left: frozenset(others)}
        went_on = one.narrow(SimpleNamespace(_inventory=inventory), play, holds=False)
        assert [host.get_name() for host in inventory.get_hosts(play.hosts)] == hosts[1:], role
        assert went_on == bool(hosts[1:]), f"{role}: a play without hosts is not run"
        assert inventory.get_groups_dict()[role] == hosts, "what is written for all nodes names this one as well"


def test_a_second_manager_is_looked_for_wherever_a_role_acts_and_before_the_first_that_does(site: Any) -> None:
    from ansible.playbook import Playbook

    loader, _inventory, manager = site
    every = Playbook.load(str(PROJECT / "playbooks" / "site.yml"), manager, loader).get_plays()
    first = next(number for number, play in enumerate(every) if any(not role.from_include for role in play.roles))
    (asks,) = [play for play in every[:first] if play.vars.get("rollout_holds")]
    assert asks.tags == ["always"]
    # hal_rollout leaves out nodes on which nothing of the run acts: tests/unit/hal_cluster/rollout/test_managing.py
    assert asks.hosts in ("all", ["all"])
