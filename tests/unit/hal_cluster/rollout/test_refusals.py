"""What roles refuse is said before the first change: of all roles and nodes at once, and once in a run."""

from __future__ import annotations

from typing import Any

import yaml

from tests.contract.project import PROJECT
from tests.unit.hal_cluster.rollout.conftest import WRITE, Site

ASK = (yaml.safe_load((PROJECT / "roles/time/tasks/main.yml").read_text()))[0]  # as every role has it
FIRST = {
    "hosts": "all",
    "gather_facts": False,
    "tags": ["always"],
    "tasks": [{"name": "Ask", "hal_validate": None, "register": "hal_validated", "run_once": True}],
}


def refuses(that: str, words: str, **more: Any) -> dict[str, Any]:
    """A task of tasks/validate.yml."""
    return {"name": "Refuse it", "ansible.builtin.assert": {"that": that, "fail_msg": words, "quiet": True}, **more}


def play(*roles: str, hosts: str = "all", **more: Any) -> dict[str, Any]:
    """A play that lists these roles, each with its own tag and with `more`."""
    listed = [{"role": name, "tags": [name], **more} for name in roles]
    return {"hosts": hosts, "gather_facts": False, "roles": listed}


def site_of(site: Site, *validate: dict[str, Any], spec: dict[str, Any] | None = None) -> Site:
    """Two roles: the first writes a file a node, the second asks for what is given."""
    site.role("writes", tasks=[ASK, WRITE])
    options: dict[str, Any] = {"main": {"options": spec or {}}}
    site.role("asks", tasks=[ASK], tasks__validate=list(validate), meta__argument_specs={"argument_specs": options})
    return site


def written(site: Site) -> list[str]:
    """The nodes that the first role has changed."""
    return sorted(path.name for path in site.node.glob("hal*"))


def test_what_the_last_role_refuses_is_said_before_the_first_one_changes_anything(site: Site) -> None:
    site_of(site, refuses("limit | int < 5", "limit is {{ limit }}; at most 4"))
    ran = site.run("-e", "limit=9", play=[FIRST, play("writes"), play("asks")])
    assert ran.status == 2, ran.text
    assert "asks on hal[01-02]: limit is 9; at most 4 (" in ran.words, ran.text
    assert "roles/asks/tasks/validate.yml:1)" in ran.words, ran.text
    assert written(site) == []
    assert "Write it" not in ran.text
    assert '"asked"' not in ran.text, "what is refused is all that counts"
    good = site.run("-e", "limit=4", play=[FIRST, play("writes"), play("asks")])
    assert good.status == 0, good.text
    assert written(site) == ["hal01", "hal02"]


def test_nothing_is_asked_twice_in_a_run(site: Site) -> None:
    site_of(site, {"name": "Remark", "ansible.builtin.debug": {"msg": "asked"}})
    ran = site.run("-v", play=[FIRST, play("writes"), play("asks")])
    assert ran.words.count("asks on hal[01-02]: asked") == 1, ran.text
    assert "asks was asked before the first change" in ran.words, ran.text
    alone = site.run("-v", play=[play("asks")])
    assert alone.words.count("asks on hal01: asked") == alone.words.count("asks on hal02: asked") == 1, alone.text
    assert "before the first change" not in alone.words


def test_a_role_that_is_used_alone_asks_for_every_node_before_it_changes_the_first(site: Site) -> None:
    site_of(site).role("writes", tasks=[ASK, WRITE], tasks__validate=[refuses("name != 'hal02'", "not {{ name }}")])
    site.nodes({"hal01": {"name": "hal01"}, "hal02": {"name": "hal02"}})
    ran = site.run(play=[play("writes")])
    assert ran.status == 2
    assert "writes on hal02: not hal02 (" in ran.words, ran.text
    assert written(site) == []


def test_all_of_it_is_said_at_once_and_nodes_are_a_range(site: Site) -> None:
    site_of(
        site,
        refuses("false", "first, of {{ inventory_hostname }}"),
        refuses("item != 'b'", "not {{ item }}", loop=["a", "b"]),
        refuses("item != 'a'", "not {{ item }}", loop=["a", "b"], when="inventory_hostname == 'hal02'"),
    )
    ran = site.run(play=[FIRST, play("asks")])
    said = [part.split(" (")[0] for part in ran.words.split("asks on ")[1:]]
    assert said == ["hal[01-02]: first, of hal[01-02]", "hal[01-02]: not b", "hal02: not a"], ran.text


def test_tags_and_limit_say_who_is_asked(site: Site) -> None:
    site_of(site, refuses("false", "never"))
    assert site.run("--tags", "writes", play=[FIRST, play("writes"), play("asks")]).status == 0
    assert site.run("--skip-tags", "asks", play=[FIRST, play("writes"), play("asks")]).status == 0
    assert "asks on hal02: never" in site.run("--limit", "hal02", play=[FIRST, play("asks")]).words
    ran = site.run("--limit", "hal02", play=[FIRST, play("writes"), play("asks", hosts="hal01")])
    assert ran.status == 0, ran.text


def test_arguments_that_do_not_fit_their_spec_are_all_said_and_no_secret(site: Site) -> None:
    spec = {
        "asks_days": {"type": "int", "required": True},
        "asks_kind": {"type": "str", "choices": ["a", "b"]},
        "asks_key": {"type": "str", "no_log": True, "choices": ["x"]},
    }
    site_of(site, refuses("asks_days > 1", "is not reached"), spec=spec)
    values = "{asks_days: soon, asks_kind: c, asks_key: Open-Sesame}"
    ran = site.run("-e", values, play=[FIRST, play("writes"), play("asks")])
    assert ran.status == 2
    assert "asks_days" in ran.words, ran.text
    assert "value of asks_kind must be one of: a, b, got: c" in ran.words, ran.text
    assert "Open-Sesame" not in ran.text
    assert "is not reached" not in ran.words
    assert written(site) == []
    missing = site.run(play=[FIRST, play("asks")])
    assert "asks on hal[01-02]: missing required arguments: asks_days" in missing.words, missing.text


def test_what_cannot_be_worked_out_is_refused_in_one_line(site: Site) -> None:
    site_of(site, refuses("nobody_knows_it | int > 1", "no"), refuses("nor_this", "no"))
    ran = site.run(play=[FIRST, play("writes"), play("asks")])
    assert ran.status == 2
    (said,) = ran.words.split("asks on ")[1:]
    assert said.startswith("hal[01-02]: The conditional check 'nobody_knows_it | int > 1' failed."), ran.text
    assert "Traceback" not in ran.text
    assert written(site) == []


def test_a_task_that_does_something_is_refused(site: Site) -> None:
    site_of(site, {"name": "Do", "ansible.builtin.command": "true"})
    ran = site.run(play=[FIRST, play("asks")])
    assert ran.status == 2
    assert "ansible.builtin.command in validate.yml: it asserts and remarks, nothing else" in ran.words, ran.text


def test_the_condition_of_a_role_is_each_node_s_own(site: Site) -> None:
    """The first node decides a task that runs once, and it need not be one that has the role."""
    site_of(site, refuses("false", "never"))
    known = site.run(play=[FIRST, play("writes"), play("asks", when="inventory_hostname == 'hal02'")])
    assert known.status == 2
    assert "asks on hal02: never" in known.words, known.text
    assert "hal01: never" not in known.words
    assert written(site) == []
    later = {"name": "Find out", "ansible.builtin.set_fact": {"found": "{{ inventory_hostname == 'hal02' }}"}}
    middle = {"hosts": "all", "gather_facts": False, "tasks": [later]}
    for condition in ("found | bool", "found | default(false) | bool"):
        unknown = site.run(play=[FIRST, middle, play("asks", when=condition)])
        assert unknown.status == 2, unknown.text
        assert "asks on hal02: never" in unknown.words, unknown.text
        assert "hal01: never" not in unknown.words
    neither = "found | bool and inventory_hostname == 'hal01'"
    assert site.run(play=[FIRST, middle, play("asks", when=neither)]).status == 0


def test_hosts_of_a_play_that_are_given_on_the_command_line_are_asked(site: Site) -> None:
    site_of(site, refuses("inventory_hostname != 'hal02'", "not here"))
    plays = [FIRST, play("writes"), play("asks", hosts="{{ wanted }}")]
    ran = site.run("-e", "wanted=hal02", play=plays)
    assert "asks on hal02: not here" in ran.words, ran.text
    assert written(site) == []
    assert site.run("-e", "wanted=hal01", play=plays).status == 0


def test_nodes_that_come_into_a_run_later_are_asked_then(site: Site) -> None:
    site_of(site, refuses("inventory_hostname != 'hal02'", "not here"))
    grow = {"name": "Add", "ansible.builtin.group_by": {"key": "found"}}
    middle = {"hosts": "all", "gather_facts": False, "tasks": [grow]}
    ran = site.run(play=[FIRST, middle, play("asks", hosts="found")])
    assert ran.status == 2
    assert "asks on hal02: not here" in ran.words, ran.text


def test_a_role_that_is_called_with_variables_of_its_own_is_asked_with_them(site: Site) -> None:
    site_of(site, refuses("limit | int < 5", "limit is {{ limit }}"))
    call = {"name": "Call", "ansible.builtin.import_role": {"name": "asks"}}
    block = {"name": "Set", "vars": {"limit": 7}, "block": [call]}
    middle = {"hosts": "all", "gather_facts": False, "tasks": [block]}
    ran = site.run("-v", play=[FIRST, play("asks", vars={"limit": 3}), middle])
    assert ran.status == 2
    assert "asks was asked before the first change" in ran.words, ran.text
    assert "asks on hal[01-02]: limit is 7" in ran.words, ran.text


def test_a_role_that_is_listed_twice_is_asked_for_both(site: Site) -> None:
    site_of(site, refuses("limit | int < 5", "limit is {{ limit }}"))
    both = {**play("asks", vars={"limit": 3}), "serial": 1}
    both["roles"].append({"role": "asks", "vars": {"limit": 8}})
    ran = site.run(play=[FIRST, play("writes"), both])
    assert ran.status == 2
    assert "asks on hal[01-02]: limit is 8" in ran.words, ran.text
    assert written(site) == []
    both["roles"][1]["vars"]["limit"] = 4
    assert site.run(play=[FIRST, play("writes"), both]).status == 0


def test_arguments_of_a_role_that_tags_leave_out_are_asked_because_ansible_checks_them(site: Site) -> None:
    site_of(site, refuses("false", "never"), spec={"asks_days": {"type": "int"}})
    ran = site.run("--tags", "writes", "-e", "asks_days=soon", play=[FIRST, play("writes"), play("asks")])
    assert ran.status == 2
    assert "asks on hal[01-02]: argument 'asks_days' is of type" in ran.words, ran.text
    assert "never" not in ran.words
    assert written(site) == []


def test_a_playbook_that_lists_no_role_is_not_taken_for_the_site(site: Site) -> None:
    site_of(site, refuses("false", "never"))
    call = {"name": "Call", "ansible.builtin.include_role": {"name": "asks"}, "when": "inventory_hostname == 'hal02'"}
    ran = site.run(play=[FIRST, {"hosts": "all", "gather_facts": False, "tasks": [call]}])
    assert ran.status == 2
    said = [part.split(" (")[0] for part in ran.words.split("asks on ")[1:]]
    assert set(said) == {"hal02: never"}, ran.text
