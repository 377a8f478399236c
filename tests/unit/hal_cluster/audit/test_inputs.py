"""What a declaration is made from: the role's files and the variables they lead to, nothing that only a run knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.vault import VaultLib, VaultSecret
from ansible.parsing.yaml.objects import AnsibleVaultEncryptedUnicode

from hal_cluster.audit.inputs import Roles, Variables, expressions, inputs_hash, made_names

KEY = b"k" * 32


@pytest.fixture
def role(tmp_path: Path) -> Path:
    """A role that uses `colour`, which leads to `shade`; `other_done` is set by the role beside it."""
    root = tmp_path / "roles" / "paint"
    for name, text in {
        "tasks/main.yml": "- copy: {content: '{{ colour }} {{ other_done }}'}\n  register: __paint\n",
        "defaults/main.yml": "colour: red\n",
        "README.md": "words\n",
        "../other/tasks/main.yml": "- ansible.builtin.set_fact:\n    other_done: true\n    __more: 1\n  when: x\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def hashed(role: Path, **variables: Any) -> str:
    return inputs_hash(str(role), variables, KEY)


def test_a_variable_counts_if_the_role_leads_to_it(role: Path) -> None:
    base = hashed(role, colour="{{ shade }}", shade="dark", unused=1)
    assert base == hashed(role, colour="{{ shade }}", shade="dark", unused=2)
    assert base != hashed(role, colour="{{ shade }}", shade="light", unused=1)
    assert base != hashed(role, colour="blue", shade="dark", unused=1)


def test_what_the_run_made_and_facts_do_not_count(role: Path) -> None:
    base = hashed(role, colour="{{ ansible_host }}")
    more = {"other_done": True, "__paint": {"changed": True}, "ansible_host": "10.0.0.1", "hostvars": {}, "vars": {}}
    assert base == hashed(role, colour="{{ ansible_host }}", **more)


def test_who_was_asked_in_a_run_does_not_count(role: Path) -> None:
    """Each role reads it, a rollout has it, and an audit has not: all would be "inputs changed"."""
    (role / "tasks/main.yml").write_text("- hal_validate:\n  run_once: '{{ x in hal_validated.asked }}'\n")
    assert hashed(role) == hashed(role, hal_validated={"asked": {"paint": ["hal01"]}})


def test_a_code_that_fits_one_run_does_not_count(role: Path) -> None:
    """It was given by -e: without it an audit would say "inputs changed" from then on."""
    (role / "tasks/main.yml").write_text("- debug: {msg: '{{ paint_confirm }} {{ paint_ok }}'}\n")
    assert hashed(role, paint_ok=True) == hashed(role, paint_ok=True, paint_confirm="4829-1f62")
    assert hashed(role, paint_ok=True) != hashed(role, paint_ok=False)


def test_a_name_after_a_line_break_is_found(role: Path) -> None:
    assert hashed(role, colour="a\nshade", shade="1") != hashed(role, colour="a\nshade", shade="2")


def test_files_count_documentation_does_not(role: Path) -> None:
    base = hashed(role)
    (role / "README.md").write_text("other words\n")
    assert hashed(role) == base
    (role / "templates").mkdir()
    (role / "templates" / "x.j2").write_bytes(b"\xff\xfe")
    assert hashed(role) != base


def test_the_key_counts(role: Path) -> None:
    assert inputs_hash(str(role), {}, b"other") != hashed(role)


def test_a_vaulted_value_counts_by_its_ciphertext(role: Path) -> None:
    def vaulted(text: str) -> Any:
        return AnsibleVaultEncryptedUnicode(text)

    opened = vaulted("$ANSIBLE_VAULT;1")
    opened.vault = VaultLib([("default", VaultSecret(b"hunter2"))])  # the controller of an audit may have no password
    assert hashed(role, colour=opened) == hashed(role, colour=vaulted("$ANSIBLE_VAULT;1"))
    assert hashed(role, colour=vaulted("$ANSIBLE_VAULT;1")) != hashed(role, colour=vaulted("$ANSIBLE_VAULT;2"))
    assert hashed(role, colour={"a": [vaulted("$ANSIBLE_VAULT;1")]}) != hashed(role, colour={"a": ["$ANSIBLE_VAULT;1"]})


def test_the_order_of_keys_does_not_count(role: Path) -> None:
    assert hashed(role, colour={"a": 1, 2: "b"}) == hashed(role, colour={2: "b", "a": 1})


def test_one_reading_serves_many_hosts(role: Path) -> None:
    roles = Roles()
    one = inputs_hash(str(role), Variables({"colour": 1}), KEY, roles)
    (role / "tasks/main.yml").write_text("[]\n")
    assert inputs_hash(str(role), {"colour": 1}, KEY, roles) == one


def test_names_that_tasks_make() -> None:
    text = """
- name: One
  ansible.builtin.set_fact:
    # why
    first: 1
    second:
      inner: 2
  when: third
- set_fact: {fourth: 1, fifth: "{{ x }}"}
- command: x
  register: "sixth"
"""
    assert set(made_names(text)) == {"first", "second", "fourth", "fifth", "sixth"}


def test_what_a_template_evaluates_is_not_its_prose(tmp_path: Path) -> None:
    (tmp_path / "a.j2").write_text("prose {{ one }}\n{% include 'b.j2' %}\n")
    (tmp_path / "b.j2").write_text("{% if two %}words{% endif %}{% include 'a.j2' %}")
    assert (
        expressions(tmp_path / "a.j2")
        == "{{ one }}\n{% include 'b.j2' %}\n{% if two %}\n{% endif %}\n{% include 'a.j2' %}"
    )
    assert expressions(tmp_path / "missing.j2") == ""
