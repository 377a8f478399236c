"""What a check leaves open is said at its end, by role, with the number of steps; and nothing where nothing follows."""

from __future__ import annotations

from typing import Any

from tests.unit.hal_cluster.rollout.conftest import Site

PENDING = {"__time_pending": "{{ ansible_check_mode and __time_package is changed }}"}
FOLLOWS = "Will follow, but cannot be predicted: these steps need what a check leaves out."


def copy(name: str, **more: Any) -> dict[str, Any]:
    """A task that writes a file of this name into the node's folder."""
    return {"name": f"Write {name}", "ansible.builtin.copy": {"content": "x", "dest": "{{ node }}/" + name}, **more}


def run(name: str, **more: Any) -> dict[str, Any]:
    """A task whose module a check cannot try."""
    return {"name": f"Run {name}", "ansible.builtin.command": {"argv": ["touch", "{{ node }}/" + name]}, **more}


def check(site: Site, *tasks: dict[str, Any], check: bool = True) -> list[str]:
    """The lines about what follows, of a role `time` with these tasks."""
    site.role("time", tasks=list(tasks), vars=PENDING)
    play = {"hosts": "all", "gather_facts": False, "roles": ["time"]}
    ran = site.run(*(["--check"] if check else []), play=[play])
    assert ran.status == 0, ran.text
    _, said, after = ran.text.partition(FOLLOWS)
    return [said, *[line.rstrip() for line in after.splitlines() if line.startswith("  ")]] if said else []


def test_what_needs_an_earlier_step_is_counted(site: Site) -> None:
    tasks = [
        copy("package", register="__time_package"),
        copy("unit", when="not __time_pending"),
        copy("never", when="not __time_pending and false"),
        copy("other", when=["inventory_hostname == 'hal02'", "not __time_pending"]),
        run("command"),
    ]
    assert check(site, *tasks) == [FOLLOWS, "  time    3 steps on hal[01-02]"]


def test_where_nothing_would_change_nothing_follows(site: Site) -> None:
    tasks = [
        copy("package", register="__time_package"),
        copy("unit", when="not __time_pending"),
        run("command", args={"creates": "{{ node }}/command"}),
        run("gate", when="not ansible_check_mode"),
    ]
    assert check(site, *tasks, check=False) == []
    assert check(site, *tasks) == []


def test_what_reads_the_answer_of_a_step_that_was_left_out_is_open_too(site: Site) -> None:
    tasks = [
        copy("package", register="__time_package"),
        run("command", register="__time_answer", changed_when=False),
        copy("after", when="__time_answer is changed"),
        copy("both", when="__time_answer.stdout is match('x')", loop=[1, 2]),
    ]
    assert check(site, *tasks) == [FOLLOWS, "  time    2 steps on hal[01-02]"]


def test_items_of_a_loop_are_one_step_each_with_its_own_condition(site: Site) -> None:
    tasks = [
        copy("package", register="__time_package"),
        copy("{{ item }}", loop=["a", "b"], when=["not __time_pending", "item == 'b'"]),
        copy("c{{ one }}", loop=["a"], loop_control={"loop_var": "one"}, when=["not __time_pending", "one == 'b'"]),
    ]
    assert check(site, *tasks) == [FOLLOWS, "  time    1 step  on hal[01-02]"]


def test_a_secret_s_task_is_counted_as_well(site: Site) -> None:
    tasks = [
        copy("package", register="__time_package"),
        copy("key", no_log=True, when="not __time_pending"),
        copy("never", no_log=True, when="not __time_pending and false"),
    ]
    assert check(site, *tasks) == [FOLLOWS, "  time    1 step  on hal[01-02]"]
