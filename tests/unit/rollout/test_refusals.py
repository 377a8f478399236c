"""What roles refuse is said before the first change: of all roles and nodes at once, and once in a run."""

from __future__ import annotations

from typing import Any

from tests.unit.rollout.conftest import WRITE, Site

ASK = {"name": "Validate", "hal_validate": None, "run_once": True}
FIRST = {"hosts": "all", "gather_facts": False, "tasks": [ASK]}


def refuses(that: str, words: str, **more: Any) -> dict[str, Any]:
    """A task of tasks/validate.yml."""
    return {"name": "Refuse it", "ansible.builtin.assert": {"that": that, "fail_msg": words, "quiet": True}, **more}


def play(*roles: str, hosts: str = "all") -> dict[str, Any]:
    """A play that lists these roles, each with its own tag."""
    return {"hosts": hosts, "gather_facts": False, "roles": [{"role": name, "tags": [name]} for name in roles]}


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
    good = site.run("-e", "limit=4", play=[FIRST, play("writes"), play("asks")])
    assert good.status == 0, good.text
    assert written(site) == ["hal01", "hal02"]


def test_nothing_is_asked_twice_in_a_run(site: Site) -> None:
    site_of(site, {"name": "Remark", "ansible.builtin.debug": {"msg": "asked"}})
    ran = site.run("-v", play=[FIRST, play("writes"), play("asks")])
    assert ran.words.count("asks on hal[01-02]: asked") == 1, ran.text
    assert "asks was asked before the first change" in ran.words, ran.text
    alone = site.run("-v", play=[play("asks")])
    assert alone.words.count("asks on hal[01-02]: asked") == 1, alone.text
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
    first = {**FIRST, "tags": ["always"]}
    assert site.run("--tags", "writes", play=[first, play("writes"), play("asks")]).status == 0
    assert site.run("--skip-tags", "asks", play=[first, play("writes"), play("asks")]).status == 0
    assert "asks on hal02: never" in site.run("--limit", "hal02", play=[first, play("asks")]).words
    ran = site.run("--limit", "hal02", play=[first, play("writes"), play("asks", hosts="hal01")])
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
