"""What single tasks come to without a run: loops, conditions, templates and secrets, each as Ansible would have it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.manager import VariableManager

from hal_cluster.audit.differing import Declared
from hal_cluster.audit.redeclare import Static, _play
from tests.unit.hal_cluster.audit.test_resources_files import sha1

COPY = "ansible.builtin.copy"
TEMPLATE = "ansible.builtin.template"
FOLDER = {"name": "Folder", "ansible.builtin.file": {"path": "/srv/{{ item }}", "state": "directory"}}
SEE: dict[str, Any] = {"name": "See", "ansible.builtin.command": {"argv": ["date"]}, "register": "seen"}
WRITE: dict[str, Any] = {"name": "Write", COPY: {"content": "x", "dest": "/srv/x", "mode": "0644"}}

pytestmark = pytest.mark.usefixtures("plugins_of_ansible")


class Role:
    """A role whose tasks a test gives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, content: str | bytes) -> None:
        path = self.folder / "roles" / "web" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def __call__(self, *tasks: dict[str, Any], **variables: Any) -> Declared:
        self.write("tasks/main.yml", yaml.safe_dump(list(tasks), sort_keys=False, width=9999))
        loader = DataLoader()
        loader.set_basedir(str(self.folder))
        inventory = InventoryManager(loader, sources=None, parse=False)
        inventory.add_host("n1")
        for name, value in variables.items():
            inventory.get_host("n1").set_variable(name, value)
        play = _play("web", "n1", VariableManager(loader, inventory), loader)
        return Static(play, play.roles[0], inventory.get_host("n1"), base=str(self.folder)).declared()


@pytest.fixture
def role(tmp_path: Path) -> Role:
    return Role(tmp_path)


def names(found: Declared) -> list[str]:
    return sorted(found.entries)


def reasons(found: Declared) -> dict[str, str]:
    return {task.rpartition("|")[2]: one.reason for task, one in found.undecided.items()}


def sum_of(found: Declared) -> Any:
    (entry,) = found.entries.values()
    return entry.declared.get("sha1")


def test_all_tasks_of_a_role_are_known_and_those_that_manage_something_loaded(role: Role) -> None:
    found = role({"name": "Say", "ansible.builtin.debug": {"msg": "a"}}, SEE, WRITE)
    identity = "web|roles/web/tasks/main.yml|{}".format
    assert found.tasks == {identity("Say"), identity("See"), identity("Write")}
    assert found.loaded == {identity("Write")}
    assert (names(found), found.certain) == (["file:/srv/x"], {"file:/srv/x"})


def test_a_task_for_another_host_or_that_cannot_be_told_does_not_hide_the_next(role: Role) -> None:
    broken = {"name": "Broken", COPY: {"content": "{{ nowhere }}", "dest": "/srv/b"}}
    found = role({**WRITE, "name": "There", "delegate_to": "localhost"}, broken, WRITE)
    assert names(found) == ["file:/srv/x"]
    assert found.entries["file:/srv/x"].owner.task.endswith("|Write")
    assert list(reasons(found)) == ["Broken"]


@pytest.mark.parametrize(
    ("more", "certain"),
    [
        ({}, True),
        ({"run_once": True}, False),
        ({"tags": ["never", "x"]}, False),
        ({"tags": ["x"]}, True),
        ({"when": "seen.rc == 0"}, False),
        ({"when": ["seen.rc == 0", "true"]}, False),
        ({"when": "inventory_hostname in play_hosts"}, False),
        ({"when": "ansible_facts.x is defined"}, False),
        ({"when": "not ansible_check_mode"}, True),
        ({"when": "'/' is exists"}, True),
    ],
)
def test_a_resource_is_certain_if_every_run_comes_by_its_task(role: Role, more: Any, certain: bool) -> None:
    found = role(SEE, {**WRITE, **more})
    assert (names(found), found.certain) == (["file:/srv/x"], {"file:/srv/x"} if certain else set())
    assert found.undecided == {}


@pytest.mark.parametrize("when", ["false", ["seen.rc == 0", "false"], ["false", "seen.rc == 0"], "wanted"])
def test_what_the_site_does_not_want_is_not_declared(role: Role, when: Any) -> None:
    found = role(SEE, {**WRITE, "when": when}, wanted=False)
    assert (names(found), found.undecided) == ([], {})


def test_only_a_rescue_is_uncertain_in_a_block(role: Role) -> None:
    def write(name: str) -> dict[str, Any]:
        return {"name": name, COPY: {"content": "x", "dest": f"/srv/{name}"}}

    inner = {"block": [write("a")], "always": [write("b")]}
    outer = {"block": [inner, write("c")], "rescue": [inner | {"block": [write("d")], "always": [write("e")]}]}
    found = role(outer | {"always": [write("f")]})
    assert names(found) == [f"file:/srv/{name}" for name in "abcdef"]
    assert sorted(found.certain) == [f"file:/srv/{name}" for name in "abcf"]


def test_items_are_judged_one_by_one(role: Role) -> None:
    found = role({**FOLDER, "loop": ["a", "b", "c"], "when": "item != skipped"}, skipped="a")
    assert names(found) == ["file:/srv/b", "file:/srv/c"]
    assert found.certain == {"file:/srv/b", "file:/srv/c"}
    assert names(role({**FOLDER, "loop": "{{ folders }}", "when": "item != 'b'"}, folders=["a", "b"])) == [
        "file:/srv/a"
    ]


def test_a_loop_may_have_another_variable_and_a_number(role: Role) -> None:
    task = {"name": "F", "ansible.builtin.file": {"path": "/srv/{{ one }}{{ number }}", "state": "directory"}}
    control = {"loop_control": {"loop_var": "one", "index_var": "number"}}
    assert names(role({**task, "loop": ["a", "b"], **control})) == ["file:/srv/a0", "file:/srv/b1"]
    assert names(role({**FOLDER, "with_items": [["a"], "b"]})) == ["file:/srv/a", "file:/srv/b"]
    assert names(role({**FOLDER, "with_items": "{{ one }}"}, one="c")) == ["file:/srv/c"]
    assert names(role({**FOLDER, "loop": []})) == []


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("{{ seen.stdout_lines }}", "depends on seen"),
        ("{{ ansible_facts.mounts }}", "depends on ansible_facts"),
        ("{{ hostvars }}", "depends on hostvars"),
        ("{{ play_hosts + seen }}", "depends on play_hosts, seen"),
        ("{{ folders }}", "its loop is not a list"),
    ],
)
def test_a_loop_that_a_run_alone_knows_is_undecided(role: Role, loop: str, reason: str) -> None:
    found = role(SEE, {**FOLDER, "loop": loop}, folders={"a": 1})
    assert (names(found), reasons(found)) == ([], {"Folder": reason})


def test_a_loop_over_nothing_known_is_undecided_and_said_in_one_short_line(role: Role) -> None:
    assert "undefined" in reasons(role({**FOLDER, "loop": "{{ nowhere }}"}))["Folder"]
    fail = {"name": "Fail", COPY: {"content": "{{ lookup('file', missing) }}", "dest": "/srv/x", "mode": "0644"}}
    (reason,) = reasons(role(fail, missing="no\n" * 200)).values()
    assert (len(reason), "\n" in reason) == (200, False)


def test_a_file_is_taken_as_it_is_and_a_template_with_its_values(role: Role) -> None:
    role.write("files/page", "{{ word }} \\n\n")
    role.write("templates/page", "{% include 'part' %}{{ word }} {{ 'a\\\\b' }}\n\n")
    role.write("templates/part", "part of {{ word }}")
    assert sum_of(role({"name": "W", COPY: {"src": "page", "dest": "/srv/x", "mode": "0644"}}, word="w")) == sha1(
        "{{ word }} \\n\n"
    )
    found = role({"name": "W", TEMPLATE: {"src": "page", "dest": "/srv/x", "mode": "0644"}}, word="w")
    assert (sum_of(found), found.undecided) == (sha1("part of ww a\\b\n\n"), {})


@pytest.mark.parametrize(
    ("more", "rendered"),
    [
        ({}, "  a\nü b\n"),
        ({"trim_blocks": False}, "  \na\n\nü b\n"),
        ({"trim_blocks": "yes"}, "  a\nü b\n"),
        ({"lstrip_blocks": True}, "a\nü b\n"),
        ({"lstrip_blocks": "no"}, "  a\nü b\n"),
        ({"newline_sequence": "\\r\\n"}, "  a\r\nü b\r\n"),
        ({"output_encoding": "latin-1"}, "  a\nü b\n"),
        ({"variable_start_string": "<<", "variable_end_string": ">>"}, "  a\nü {{ word }}\n"),
    ],
)
def test_a_template_is_rendered_as_its_task_says(role: Role, more: dict[str, Any], rendered: str) -> None:
    role.write("templates/page", "  {% if true %}\na\n{% endif %}\nü {{ word }}\n")
    task = {"name": "W", TEMPLATE: {"src": "page", "dest": "/srv/x", "mode": "0644", **more}}
    content = rendered.encode(more.get("output_encoding", "utf-8"))
    assert sum_of(role(task, word="b")) == hashlib.sha1(content).hexdigest()


def test_content_that_is_no_text_is_written_as_json(role: Role) -> None:
    assert sum_of(role({"name": "W", COPY: {"content": {"a": [1]}, "dest": "/srv/x", "mode": "0644"}})) == sha1(
        '{"a": [1]}'
    )
    assert sum_of(role({"name": "W", COPY: {"content": "", "dest": "/srv/x", "mode": "0644"}})) == sha1("")


def test_what_is_copied_on_the_node_or_is_a_folder_has_no_sum(role: Role) -> None:
    role.write("files/tree/a", "a")
    here = {"name": "W", COPY: {"src": "/tmp/x", "dest": "/srv/x", "mode": "0644", "remote_src": True}}
    assert sum_of(role(here)) is None
    assert reasons(role({"name": "W", COPY: {"src": "tree", "dest": "/srv"}})) == {"W": "it copies a folder"}


@pytest.mark.parametrize("more", [{"no_log": True}, {"no_log": "{{ hidden }}"}, {COPY: None}])
def test_of_a_secret_no_sum_is_kept(role: Role, more: Any) -> None:
    task = {**WRITE, **more}
    if task[COPY] is None:
        task[COPY] = {"content": "{{ word }}", "dest": "/srv/x", "mode": "0644"}
    found = role(task, hidden=True, word="{{ vault_word }}", vault_word="w")
    (entry,) = found.entries.values()
    assert (entry.secret, entry.declared) == (True, {"state": "present", "type": "file", "mode": "0644"})
    (entry,) = role(WRITE | {"no_log": "{{ hidden }}"}, hidden=False).entries.values()
    assert (entry.secret, entry.declared["sha1"]) == (False, sha1("x"))


@pytest.mark.parametrize("secret", [True, False])
def test_what_a_task_says_it_manages_counts_more_than_its_arguments(role: Role, secret: bool) -> None:
    said = [{"resource": "file:/srv/x", "declared": {"sha1": "{{ word }}", "mode": "0600"}}, {"resource": "package:a"}]
    found = role({**WRITE, "no_log": secret, "vars": {"hal_manages": said}}, word="w")
    assert names(found) == ["file:/srv/x", "package:a"]
    assert found.entries["file:/srv/x"].declared == ({"mode": "0600"} if secret else {"sha1": "w", "mode": "0600"})
    assert {one.secret for one in found.entries.values()} == {secret}
    command = {**SEE, "vars": {"hal_manages": "{{ nothing }}"}}
    assert (names(role(command, nothing=[])), role(command, nothing=[]).undecided) == ([], {})


def test_a_module_whose_result_alone_has_names_is_undecided(role: Role) -> None:
    found = role({"name": "Network", "hal_network": {"files": {}}})
    assert reasons(found) == {"Network": "only a run shows what it manages"}


def test_an_argument_that_is_left_out_is_none(role: Role) -> None:
    found = role({**WRITE, COPY: {**WRITE[COPY], "owner": "{{ owner | default(omit) }}"}})
    (entry,) = found.entries.values()
    assert entry.declared == {"state": "present", "type": "file", "mode": "0644", "sha1": sha1("x")}
