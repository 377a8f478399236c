"""managed_roles in real runs of ansible-playbook: a play that lists a role acts where the role is managed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.hal_cluster.rollout.conftest import WRITE, Site

TIME = [
    {
        "name": "Set the time",
        "ansible.builtin.copy": {"content": "x", "dest": "{{ node }}/time-{{ inventory_hostname }}"},
    }
]


def plays(*roles: str, **more: Any) -> list[dict[str, Any]]:
    return [{"hosts": "all", "gather_facts": False, "roles": [role], **more} for role in roles]


@pytest.fixture
def two_roles(site: Site) -> Site:
    """A site with the roles time and hosts, which are names of this project's, on hal01 and hal02."""
    site.role("time", tasks=TIME)
    site.role("hosts", tasks=[WRITE])
    return site


@pytest.mark.parametrize("check", [False, True])
def test_without_the_variable_every_role_acts_and_with_it_those_of_the_list(two_roles: Site, check: bool) -> None:
    arguments = ["--check"] if check else []
    done = two_roles.run(*arguments, play=plays("time", "hosts"))
    assert done.status == 0, done.text
    assert "left alone" not in done.text
    two_roles.nodes({"hal01": {"managed_roles": ["hosts"]}})
    done = two_roles.run(*arguments, play=plays("time", "hosts"))
    assert done.status == 0, done.text
    assert "hal01: time not managed here (managed_roles), left alone" in done.text
    assert "changed: [hal02] => (item" not in done.text
    assert done.text.count("left alone") == 1


def test_what_is_not_managed_is_not_touched_and_not_even_held(two_roles: Site) -> None:
    two_roles.nodes({"hal01": {"managed_roles": ["hosts"]}, "hal02": {"managed_roles": []}})
    done = two_roles.run(play=plays("time", "hosts"))
    assert done.status == 0, done.text
    assert "hal[01-02]: time not managed here" in done.text
    assert "PLAY [time]" not in done.text
    assert not list(two_roles.node.glob("time-*"))
    assert (two_roles.node / "hal01").exists()
    assert not (two_roles.node / "hal02").exists()
    assert not (two_roles.folder / "hal02" / "asked").exists()


def test_a_failure_counts_though_the_last_play_is_left_out(two_roles: Site) -> None:
    broken = {"name": "Break", "ansible.builtin.fail": {"msg": "broken"}, "when": "inventory_hostname == 'hal01'"}
    two_roles.role("hosts", tasks=[broken])
    two_roles.nodes({name: {"managed_roles": ["hosts"]} for name in ("hal01", "hal02")})
    done = two_roles.run(play=plays("hosts", "time"))
    assert "hal[01-02]: time not managed here" in done.text
    assert done.status == 2, done.text


def test_plays_in_batches_leave_out_the_same_hosts_in_each(two_roles: Site) -> None:
    two_roles.nodes({"hal01": {"managed_roles": ["hosts"]}})
    done = two_roles.run(play=plays("time", serial=1))
    assert done.status == 0, done.text
    assert [path.name for path in two_roles.node.glob("time-*")] == ["time-hal02"]


def test_a_role_of_the_site_itself_acts_whatever_is_managed(site: Site) -> None:
    site.role(tasks=[WRITE])
    site.nodes({"hal01": {"managed_roles": []}})
    assert site.run(roles=["sample"]).status == 0
    assert (site.node / "hal01").exists()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["tiem"], 'hal02: managed_roles: there is no role "tiem"; did you mean "time"?'),
        ("time", "hal02: managed_roles has to be a list of names of roles"),
        ([1], "hal02: managed_roles has to be a list of names of roles"),
    ],
)
def test_a_value_that_cannot_be_used_ends_the_run_before_the_first_play(
    two_roles: Site, value: Any, words: str
) -> None:
    two_roles.nodes({"hal02": {"managed_roles": value}})
    done = two_roles.run("--limit", "hal01", play=plays("hosts", "time"))
    assert done.status != 0
    assert words in " ".join(done.text.split())
    assert "PLAY [" not in done.text
    assert not (two_roles.node / "hal01").exists()


def test_a_play_of_two_roles_of_which_one_acts_is_refused(two_roles: Site) -> None:
    two_roles.nodes({"hal01": {"managed_roles": ["hosts"]}})
    done = two_roles.run(play=[{"hosts": "all", "gather_facts": False, "roles": ["time", "hosts"]}])
    assert done.status != 0
    words = "hal01: this play lists hosts, which is managed there, and time, which is not (managed_roles)"
    assert words in " ".join(done.text.split())
    assert not (two_roles.node / "hal01").exists()


# As playbooks/validate.yml has it: before the first change, on all nodes.
EARLY = {
    "hosts": "all",
    "gather_facts": False,
    "tags": ["always"],
    "vars": {"rollout_holds": True},
    "tasks": [{"name": "Ask early", "ansible.builtin.ping": {}}],
}


def test_what_is_asked_early_is_asked_where_a_role_of_the_run_acts_whichever_it_is(two_roles: Site) -> None:
    time, hosts = plays("time", tags=["time"])[0], plays("hosts", tags=["hosts"])[0]
    two_roles.nodes({"hal01": {"managed_roles": ["hosts"]}})
    both = two_roles.run(play=[EARLY, time, hosts])
    assert both.status == 0, both.text
    assert both.text.count("ok: [hal01]") == both.text.count("ok: [hal02]") == 1
    one = two_roles.run("--tags", "time", play=[EARLY, {**time, "serial": 1}, hosts])
    assert one.status == 0, one.text
    assert "ok: [hal01]" not in one.text
    assert "ok: [hal02]" in one.text
    assert one.text.count("hal01: time not managed here") == 1
    assert "no role managed here" not in one.text
    # Of a play that names no node of the group there is none either.
    assert "ok: [hal02]" not in two_roles.run(play=[EARLY, {**hosts, "hosts": "hal01"}]).text
    two_roles.nodes({"hal01": {"managed_roles": []}, "hal02": {"managed_roles": []}})
    assert "PLAY [" not in two_roles.run(play=[EARLY, time, hosts]).text


def test_a_play_may_hold_every_host_whatever_is_managed(two_roles: Site) -> None:
    """As giveback.yml: a role comes off the list before or after it is given back."""
    two_roles.nodes({name: {"managed_roles": []} for name in ("hal01", "hal02")})
    play = {"hosts": "all", "gather_facts": False, "vars": {"rollout_holds": "every host"}, "tasks": [WRITE]}
    done = two_roles.run(play=[play])
    assert done.status == 0, done.text
    assert {path.name for path in two_roles.node.glob("hal0*")} == {"hal01", "hal02"}
    assert two_roles.asked("hal01"), "it was held"


def test_a_play_that_holds_and_lists_no_roles_takes_all_that_are_managed(two_roles: Site) -> None:
    two_roles.nodes({"hal01": {"managed_roles": []}})
    done = two_roles.run(play=[EARLY])
    assert "ok: [hal02]" in done.text
    assert "hal01: no role managed here (managed_roles), left alone" in done.text
