"""What is read of plays before they run: who a task is, all tasks of a role, which of them every host comes by."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.utils.context_objects import CLIArgs

from hal_cluster.audit import plays
from hal_cluster.audit.recording import LoadedRole
from hal_cluster.audit.resources import Resource
from tests.unit.hal_cluster.audit.observing import TASK, Playing


def command(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "ansible.builtin.command": {"argv": ["x"]}, **more}


def loaded(playing: Playing) -> LoadedRole:
    return plays.loaded_roles(playing.play, str(playing.folder))["web"]


def known(playing: Playing, name: str) -> plays.Known:
    one = plays.known(playing.task(name), str(playing.folder))
    assert one is not None
    return one


def test_a_task_is_known_by_its_role_its_file_and_its_name_as_written(tmp_path: Path) -> None:
    task = {
        **{"name": "Write {{ x }}", "copy": {"content": "{{ y }}", "dest": "/x"}, "when": ["a", "b"], "tags": "t"},
        **{"vars": {"v": 1, "hal_manages": []}, "notify": "n", "register": "r"},
    }
    playing = Playing(tmp_path, [command("First"), task], handlers__main_yml=[command("Restart")])
    one = plays.known(list(playing.tasks())[1], str(tmp_path))
    assert one is not None
    assert (one.owner.role, one.owner.task) == ("web", TASK("Write {{ x }}"))
    assert one.owner.source.startswith("roles/web/tasks/main.yml:")
    assert one.folder == str(tmp_path / "roles/web")
    assert (one.module, one.looped, one.handler, one.manages) == ("ansible.builtin.copy", False, False, [])
    assert one.written == [{"content": "{{ y }}", "dest": "/x"}, {"v": 1, "hal_manages": []}, "r"]
    assert one.conditions == ("a", "b")
    assert one.variables["v"] == 1
    handler = known(playing, "Restart")
    assert (handler.handler, handler.manages, handler.conditions) == (True, None, ())


@pytest.mark.parametrize(
    ("more", "looped", "loop"),
    [
        ({}, False, None),
        ({"loop": []}, True, []),
        ({"with_items": ["a"]}, True, ["a"]),
        ({"loop": "{{ x }}"}, True, "{{ x }}"),
    ],
)
def test_a_task_is_looped_however_its_loop_is_written(tmp_path: Path, more: Any, looped: bool, loop: Any) -> None:
    one = known(Playing(tmp_path, [command("x", **more)]), "x")
    assert (one.looped, one.loop) == (looped, loop)


def test_a_task_without_a_name_is_called_by_its_action_and_one_of_no_role_is_unknown(tmp_path: Path) -> None:
    playing = Playing(tmp_path, [{"ansible.builtin.command": {"argv": ["x"]}}])
    one = plays.known(next(playing.tasks()), "/elsewhere")
    assert one is not None
    assert one.owner.task == f"web|{tmp_path}/roles/web/tasks/main.yml|ansible.builtin.command"
    assert plays.known(SimpleNamespace(_role=None), "/") is None


@pytest.mark.parametrize(
    ("task", "records"),
    [
        (command("x"), False),
        (command("x", vars={"hal_manages": []}), True),
        ({"name": "x", "ansible.builtin.copy": {"content": "", "dest": "/x"}}, True),
        ({"name": "x", "ansible.builtin.service": {"name": "a"}}, True),
        ({"name": "x", "ansible.builtin.debug": {"msg": "a"}}, False),
    ],
)
def test_only_some_tasks_can_own_something(tmp_path: Path, task: dict[str, Any], records: bool) -> None:
    assert known(Playing(tmp_path, [task]), "x").records is records


@pytest.mark.parametrize(
    ("more", "looks"), [({"changed_when": False}, True), ({"changed_when": "x"}, False), ({}, False)]
)
def test_a_command_only_looks_if_it_says_so(tmp_path: Path, more: dict[str, Any], looks: bool) -> None:
    stat = {"name": "y", "ansible.builtin.stat": {"path": "/x"}, "changed_when": False}
    playing = Playing(tmp_path, [command("x", **more), stat])
    assert plays.only_looks(known(playing, "x"), playing.task("x")) is looks
    assert not plays.only_looks(known(playing, "y"), playing.task("y"))


def test_what_a_template_evaluates_is_found_beside_its_role(tmp_path: Path) -> None:
    tasks = [{"name": name, f"ansible.builtin.{name}": {"src": "a.j2", "dest": "/x"}} for name in ("template", "copy")]
    playing = Playing(tmp_path, tasks, templates__a_j2="words {{ one }}")
    loader = playing.play._loader
    assert plays.template_text(known(playing, "template"), {"src": "a.j2"}, loader) == "{{ one }}"
    assert plays.template_text(known(playing, "template"), {"src": "gone.j2"}, loader) == ""
    assert plays.template_text(known(playing, "template"), {}, loader) == ""
    assert plays.template_text(known(playing, "copy"), {"src": "a.j2"}, loader) == ""


@pytest.mark.parametrize("lookup", ["'ansible.builtin.template', 'a.j2'", '"template","a.j2"'])
def test_what_a_template_that_is_looked_up_evaluates_is_found(tmp_path: Path, lookup: str) -> None:
    listed = [{"path": "/x", "content": f"{{{{ lookup({lookup}) }}}} and {{{{ lookup('template', 'gone.j2') }}}}"}]
    playing = Playing(tmp_path, [{"name": "y", "ansible.builtin.copy": {"files": listed}}], templates__a_j2="{{ one }}")
    assert plays.template_text(known(playing, "y"), {}, playing.play._loader).split() == ["{{", "one", "}}"]


def test_what_a_task_says_it_manages_is_a_name_or_a_mapping() -> None:
    assert plays.said("file:/x") == Resource("file:/x", {"state": "present"})
    assert plays.said({"resource": "file:/x"}) == Resource("file:/x", {})
    assert plays.said({"resource": "file:/x", "declared": {"mode": "1"}}) == Resource("file:/x", {"mode": "1"})


def test_paths_are_as_somebody_would_type_them() -> None:
    assert plays.relative("/a/b/c", "/a") == "b/c"
    assert plays.relative("/a/b/c", "/d") == "/a/b/c"


BLOCK = {
    "block": [command("in"), {"block": [command("deep")], "rescue": [command("deep rescue")]}],
    "rescue": [command("rescue"), {"name": "Flush", "ansible.builtin.meta": "flush_handlers"}],
    "always": [command("always")],
}


def test_every_host_comes_by_tasks_that_give_a_result_and_are_no_rescue(tmp_path: Path) -> None:
    tasks = [
        *(BLOCK, command("once", run_once=True), command("there", delegate_to="x"), command("look", check_mode=True)),
        *({"name": "Meta", "ansible.builtin.meta": "noop"}, command("tagged", tags="t")),
    ]
    one = loaded(Playing(tmp_path, tasks))
    assert one.needed == {TASK(name) for name in ("in", "deep", "always", "tagged")}
    names = ("in", "deep", "deep rescue", "rescue", "Flush", "always", "once", "there", "look", "Meta", "tagged")
    assert one.tasks == tuple(sorted(TASK(name) for name in names))
    assert (one.folder, one.whole) == (str(tmp_path / "roles/web"), True)


@pytest.mark.parametrize(
    ("only", "skip", "whole"),
    [
        (["all"], [], True),
        (["t"], [], False),
        (["all"], ["t"], False),
        (["all"], ["other"], True),
        (["t", "u"], [], True),
    ],
)
def test_a_role_is_whole_if_tags_leave_out_none_of_its_tasks(
    tmp_path: Path, only: list[str], skip: list[str], whole: bool
) -> None:
    playing = Playing(tmp_path, [command("a", tags="t"), command("b", tags="u")])
    playing.play.only_tags, playing.play.skip_tags = set(only), set(skip)
    assert loaded(playing).whole is whole


def test_a_role_that_is_begun_in_its_midst_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    playing = Playing(tmp_path, [command("a")])
    monkeypatch.setattr("hal_cluster.audit.plays.context.CLIARGS", CLIArgs({"start_at_task": "a"}))
    assert loaded(playing).whole is False


INCLUDED = [
    {"name": "Outer", "block": [command("one")], "rescue": [command("two")], "always": [command("three")]},
    {"ansible.builtin.command": "x"},
    command("four"),
]


@pytest.mark.parametrize("include", ["ansible.builtin.include_tasks", "include_tasks", "command"])
def test_tasks_of_all_files_are_the_roles_if_it_includes_some(tmp_path: Path, include: str) -> None:
    first = command("first") if include == "command" else {"name": "first", include: "{{ which }}.yml"}
    playing = Playing(tmp_path, [first], tasks__deep__b_yml=INCLUDED, tasks__broken_yml="a: [")
    deep = "web|roles/web/tasks/deep/b.yml|{}".format
    names = {TASK("first")} | {deep(name) for name in ("Outer", "one", "two", "three", "four")}
    assert set(loaded(playing).tasks) == ({TASK("first")} if include == "command" else names)
    assert loaded(playing).needed == ({TASK("first")} if include == "command" else set())


def test_a_role_of_which_one_file_is_called_is_not_told_of(tmp_path: Path) -> None:
    playing = Playing(tmp_path, [command("a")])
    playing.play.roles[0]._from_files = {"tasks": "other"}
    assert plays.loaded_roles(playing.play, str(tmp_path)) == {}
    playing.play.roles[0]._from_files = {"vars": "other"}
    assert list(plays.loaded_roles(playing.play, str(tmp_path))) == ["web"]


def test_the_rescue_of_a_task_is_that_of_the_block_around_it(tmp_path: Path) -> None:
    playing = Playing(tmp_path, [BLOCK, command("alone")])

    def rescue(name: str) -> Any:
        return plays.rescue_of(playing.task(name), str(tmp_path))

    outer = ({TASK(name) for name in ("in", "deep", "deep rescue")}, {TASK("rescue")})
    assert rescue("in") == outer
    assert rescue("deep") == ({TASK("deep")}, {TASK("deep rescue")})
    assert rescue("deep rescue") == outer
    assert [rescue(name) for name in ("rescue", "always", "alone")] == [None] * 3


def service(name: str, unit: str, state: str = "restarted", **more: Any) -> dict[str, Any]:
    return {"name": name, "ansible.builtin.service": {"name": unit, "state": state}, **more}


def test_handlers_are_known_by_every_name_that_a_task_may_notify(tmp_path: Path) -> None:
    handlers = [
        *(command("Other"), service("Unknown", "{{ nowhere }}"), service("Stop", "a", "stopped")),
        *(service("Restart", "a"), service("Reload", "{{ unit }}", "reloaded", listen=["those", "these"])),
        *(service("Again", "c.socket", listen="those"), {"block": [service("Inner", "d")]}),
    ]
    playing = Playing(tmp_path, [command("x")], {"n1": {}}, handlers__main_yml=handlers, vars__main_yml={"unit": "b"})
    units = playing.observer._handlers
    assert {name: found for name, found in units.items() if found and " : " not in name} == {
        "Restart": {"a.service"},
        "Reload": {"b.service"},
        "those": {"b.service", "c.socket"},
        "these": {"b.service"},
        "Again": {"c.socket"},
        "Inner": {"d.service"},
    }
    assert units["web : Restart"] == {"a.service"}
    assert not {"Other", "Unknown", ""} & set(units)
