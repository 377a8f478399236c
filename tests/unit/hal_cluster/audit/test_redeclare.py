"""What a role declares now against what was recorded: exact where it can be rendered, said where it cannot."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.manager import VariableManager

from hal_cluster.audit.differing import Declared, compare, whole_roles
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.recording import Owner
from hal_cluster.audit.redeclare import Static, _play
from tests.unit import warm
from tests.unit.interpreters import LOCAL

TASKS = """
- name: Write the page
  ansible.builtin.template: {src: page.j2, dest: "{{ web_root }}/page", mode: "0644"}
- name: Write the words
  ansible.builtin.copy: {content: "{{ web_words }}\\n", dest: "{{ web_root }}/words", mode: "0644"}
- name: Copy the logo
  ansible.builtin.copy: {src: logo, dest: "{{ web_root }}/", mode: "0644"}
- name: Make folders
  ansible.builtin.file: {path: "{{ web_root }}/{{ item }}", state: directory, mode: "0755"}
  loop: "{{ web_folders }}"
- name: Only where it is wanted
  ansible.builtin.copy: {content: x, dest: "{{ web_root }}/wanted", mode: "0644"}
  when: web_wanted
- name: Install
  ansible.builtin.package: {name: "{{ web_packages }}", state: present}
- name: Keep the key
  ansible.builtin.copy: {content: "{{ vault_web_key }}", dest: "{{ web_root }}/key", mode: "0600"}
- name: See
  ansible.builtin.command: {argv: [date]}
  register: __web_seen
  changed_when: false
- name: After having seen
  ansible.builtin.copy: {content: y, dest: "{{ web_root }}/after", mode: "0644"}
  when: __web_seen.rc == 0
- name: Try
  block:
    - name: The block
      ansible.builtin.copy: {content: z, dest: "{{ web_root }}/block", mode: "0644"}
  rescue:
    - name: When it fails
      ansible.builtin.copy: {content: z, dest: "{{ web_root }}/rescued", mode: "0644"}
"""
DEFAULTS = {
    "web_words": "hello",
    "web_folders": ["a", "b"],
    "web_wanted": True,
    "web_packages": ["httpd"],
    "vault_web_key": "secret",
}
PAGE = """{# page #}
{% for one in web_folders %}
  {{ one }}: {{ web_words }}
{% endfor %}
\\1 {{ ansible_managed }} {{ 'a\\\\b' }}

"""

pytestmark = pytest.mark.usefixtures("plugins_of_ansible")


class Role:
    """A role in a folder, as it is now."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.variables: dict[str, Any] = {"web_root": str(self.root)}
        self.write("tasks/main.yml", "- ansible.builtin.import_tasks: web.yml\n")
        self.write("tasks/web.yml", TASKS)
        self.write("defaults/main.yml", yaml.safe_dump(DEFAULTS))
        self.write("templates/page.j2", PAGE)
        self.write("files/logo", "a logo")

    def write(self, name: str, text: str) -> None:
        path = self.folder / "roles" / "web" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def tasks(self, change: Callable[[str], str]) -> None:
        changed = change(TASKS)
        assert changed != TASKS
        self.write("tasks/web.yml", changed)

    def without(self, *names: str) -> None:
        document = [one for one in yaml.safe_load(TASKS) if one["name"] not in names]
        self.write("tasks/web.yml", yaml.safe_dump(document, sort_keys=False))

    def declared(self) -> Declared:
        loader = DataLoader()
        loader.set_basedir(str(self.folder))
        inventory = InventoryManager(loader, sources=None, parse=False)
        inventory.add_host("n1")
        for name, value in self.variables.items():
            inventory.get_host("n1").set_variable(name, value)
        manager = VariableManager(loader, inventory)
        play = _play("web", "n1", manager, loader)
        return Static(play, play.roles[0], inventory.get_host("n1"), base=str(self.folder)).declared()

    def record(self) -> list[dict[str, Any]]:
        """What a run would have recorded; what depends on it came to be."""
        return [
            {
                "resource": resource,
                "declared": dict(entry.declared),
                "role": "web",
                "task": entry.owner.task,
                "source": entry.owner.source,
                "secret": entry.secret,
                "commit": "abc1234",
                "converged_at": "2026-11-20T18:02:00Z",
            }
            for resource, entry in self.declared().entries.items()
            if "rescued" not in resource
        ]

    def found(self, entries: list[dict[str, Any]]) -> list[Finding]:
        return list(compare("n1", "web", self.declared(), entries, "abc1234"))

    def short(self, entries: list[dict[str, Any]]) -> set[tuple[str, str]]:
        """(kind, last part of the resource) of what could be decided."""
        return {(one.kind, one.resource.rpartition("/")[2]) for one in self.found(entries) if one.status == "drift"}


@pytest.fixture
def role(tmp_path: Path) -> Role:
    return Role(tmp_path)


def test_nothing_new_says_nothing_but_what_it_cannot_know(role: Role) -> None:
    (one,) = role.found(role.record())
    assert (one.kind, one.status, one.cause) == ("inputs-changed", "unknown", "declaration")
    assert "Keep the key" in one.summary
    assert "When it fails" in one.summary
    assert "After having seen" not in one.summary


def test_a_role_that_can_be_rendered_and_is_the_same_says_nothing(role: Role) -> None:
    role.without("Keep the key", "Try")
    entries = role.record()
    role.write("templates/page.j2", PAGE.replace("# page #", "# another comment #"))
    assert role.found(entries) == []


def test_checksums_are_those_of_a_run(role: Role) -> None:
    variables = "\n".join(f"{name}={value}" for name, value in role.variables.items())
    (role.folder / "hosts").write_text(f"n1 ansible_connection=local\n[all:vars]\n{variables}\n")
    (role.folder / "play.yml").write_text(
        yaml.safe_dump([{"hosts": "all", "gather_facts": False, "roles": [{"role": "web"}]}])
    )
    role.without("Install")
    role.root.mkdir()
    (role.folder / "ansible.cfg").write_text("[defaults]\n")
    own = {"ANSIBLE_CONFIG": str(role.folder / "ansible.cfg"), "ANSIBLE_PYTHON_INTERPRETER": LOCAL}
    words = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts", "play.yml"]
    done = warm.run(words, {**os.environ, **own}, 300, role.folder)
    assert done.returncode == 0, done.stdout
    sums = {
        resource.removeprefix("file:"): entry.declared["sha1"]
        for resource, entry in role.declared().entries.items()
        if "sha1" in entry.declared
    }
    assert {"page", "words", "logo", "wanted", "block"} <= {Path(path).name for path in sums}
    for path, checksum in sums.items():
        if "rescued" not in path:
            assert hashlib.sha1(Path(path).read_bytes()).hexdigest() == checksum, path


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"web_words": "bye"}, {("declared-differently", "page"), ("declared-differently", "words")}),
        ({"web_folders": ["a"]}, {("declared-differently", "page"), ("orphaned", "b")}),
        ({"web_folders": ["a", "b", "c"]}, {("declared-differently", "page"), ("not-rolled-out", "c")}),
        ({"web_wanted": False}, {("orphaned", "wanted")}),
        (
            {"web_packages": ["nginx"]},
            {("not-rolled-out", "package:nginx"), ("orphaned", "package:httpd")},
        ),
    ],
)
def test_changed_variables_show_what_they_change(
    role: Role, variables: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    entries = role.record()
    role.variables.update(variables)
    assert role.short(entries) == expected


def test_changed_roles_show_what_they_change(role: Role) -> None:
    entries = role.record()
    role.tasks(lambda text: text.replace('page", mode: "0644"', 'page", mode: "0600"'))
    (one,) = [one for one in role.found(entries) if one.kind == "declared-differently"]
    assert (one.attribute, one.should, one.is_, one.task) == ("mode", "0600", "0644", "Write the page")
    assert (one.cause, one.commit, one.source) == ("declaration", "abc1234", "roles/web/tasks/web.yml:2")
    role.write("files/logo", "another logo")
    role.write("tasks/web.yml", TASKS)
    assert role.short(entries) == {("declared-differently", "logo")}


def test_a_task_that_is_gone_leaves_orphans(role: Role) -> None:
    entries = role.record()
    role.without("Install", "Make folders")
    found = [one for one in role.found(entries) if one.kind == "orphaned"]
    assert {one.resource.rpartition("/")[2] for one in found} == {"package:httpd", "a", "b"}
    assert {one.summary for one in found} == {"no task manages it any more: its task is gone"}


def test_what_another_role_has_taken_over_is_no_orphan(role: Role) -> None:
    entries = role.record()
    role.without("Install")
    new = Owner("other", "other|roles/other/tasks/main.yml|Install", "roles/other/tasks/main.yml:1")
    owners = {"package:httpd": new}
    found = list(compare("n1", "web", role.declared(), entries, "abc1234", owners.get))
    (one,) = [one for one in found if one.resource == "package:httpd"]
    assert (one.kind, one.should, one.is_, one.role) == ("declared-differently", "other", "web", "other")
    (gone,) = whole_roles("n1", [], [], {}, [entries[0]], partial=False, owner_of=lambda _resource: new)
    assert gone.kind == "declared-differently"


@pytest.mark.parametrize(
    ("loop", "control", "path"),
    [
        ({"loop": ["a", "b"]}, {"loop_var": "__web_one"}, "{{ __web_one }}"),
        ({"loop": ["a", "b"]}, {"loop_var": "__web_one", "index_var": "__web_at"}, "{{ __web_at }}{{ __web_one }}"),
        ({"loop": ["a", "b"]}, {"index_var": "__web_at"}, "{{ __web_at }}{{ item }}"),
        ({"with_items": ["a", ["b"]]}, {"loop_var": "__web_one"}, "{{ __web_one }}"),
        ({"with_dict": {"a": 1, "b": 2}}, {}, "{{ item.key }}"),
    ],
)
def test_a_loop_has_the_variables_that_its_control_names(
    role: Role, loop: dict[str, Any], control: dict[str, str], path: str
) -> None:
    make = {"path": "{{ web_root }}/" + path, "state": "directory", "mode": "0755"}
    task = {"name": "Loop", "ansible.builtin.file": make, **loop, "loop_control": control}
    role.write("tasks/web.yml", yaml.safe_dump([task], sort_keys=False))
    names = ["0a", "1b"] if "__web_at" in path else ["a", "b"]
    declared = role.declared()
    assert sorted(declared.entries) == [f"file:{role.root}/{name}" for name in names]
    assert declared.undecided == {}


def test_a_template_with_a_secret_is_secret(role: Role) -> None:
    role.write("templates/page.j2", "{{ vault_web_key }}")
    (entry,) = [one for name, one in role.declared().entries.items() if name.endswith("page")]
    assert entry.secret
    assert "sha1" not in entry.declared


def test_what_a_run_decides_is_said_to_be_so(role: Role) -> None:
    entries = [one for one in role.record() if not one["resource"].endswith("after")]
    (one,) = [one for one in role.found(entries) if one.kind == "inputs-changed"]
    assert "After having seen" in one.summary


def test_a_default_for_what_a_run_registers_decides_nothing(role: Role) -> None:
    entries = role.record()
    role.tasks(lambda text: text.replace("__web_seen.rc == 0", "(__web_seen | default(dict(rc=1))).rc == 0"))
    assert role.short(entries) == set()


def test_a_broken_template_costs_its_task_only(role: Role) -> None:
    entries = role.record()
    role.tasks(lambda text: text.replace("{{ web_words }}", "{{ nobody_knows }}"))
    found = role.found(entries)
    assert [one.status for one in found] == ["unknown"]
    assert "Write the words" in found[0].summary


def test_secrets_are_not_compared_and_not_shown(role: Role) -> None:
    entries = role.record()
    role.variables["vault_web_key"] = "another"
    text = repr(role.found(entries))
    assert "another" not in text
    assert "the content of" in text


def test_a_file_of_which_only_lines_are_declared_is_decided(role: Role) -> None:
    """Its task says so, and that counts more than its arguments."""
    said = {"state": "present", "type": "file", "mode": "0644", "content": False}
    write = {
        "name": "Write lines",
        "ansible.builtin.copy": {"content": "{{ web_words }}", "dest": "{{ web_root }}/lines", "mode": "0644"},
        "vars": {"hal_manages": [{"resource": "file:{{ web_root }}/lines", "declared": said}]},
    }
    role.write("tasks/web.yml", yaml.safe_dump([write], sort_keys=False))
    entries = role.record()
    assert [one["declared"] for one in entries] == [said]
    role.variables["web_words"] = "other"
    assert role.found(entries) == []


def test_whole_roles() -> None:
    entries = [{"resource": "file:/old", "role": "old", "task": "old|x|y"}]
    new, gone = whole_roles("n1", ["web"], ["web"], {"old": {}}, entries, partial=False)
    assert (new.kind, new.role) == ("not-rolled-out", "web")
    assert (gone.kind, gone.resource, gone.role) == ("orphaned", "file:/old", "old")
    assert len(list(whole_roles("n1", ["web"], ["web"], {"old": {}}, entries, partial=True))) == 1
