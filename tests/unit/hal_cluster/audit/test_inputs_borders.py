"""Which words, files and names count as inputs of a role, one by one: each that is missed makes an audit blind."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hal_cluster.audit import inputs
from hal_cluster.audit.inputs import EncryptedFiles, Roles, Variables, expressions, inputs_hash, made_names, strings

KEY = b"k" * 32


class Vaulted:
    """A value as Ansible has it before it is decrypted."""

    def __init__(self, ciphertext: str | bytes) -> None:
        self._ciphertext = ciphertext


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def counts(role: Path, name: str) -> bool:
    """Whether a variable is an input of a role."""
    return inputs_hash(str(role), {name: 1}, KEY) != inputs_hash(str(role), {name: 2}, KEY)


FOLDERS = ["defaults", "files", "handlers", "library", "tasks", "templates", "vars"]


@pytest.mark.parametrize("file", [*(f"{folder}/deep/er.txt" for folder in FOLDERS), "meta/main.yml", "meta/main.yaml"])
def test_each_file_that_makes_the_node_counts_with_its_words(tmp_path: Path, file: str) -> None:
    role = write(tmp_path / "roles" / "paint", {file: "{{ colour }}"})
    assert counts(role, "colour")
    assert not counts(role, "shade")


@pytest.mark.parametrize("file", ["README.md", "meta/argument_specs.yml", "tests/a.yml", "files/__pycache__/a.pyc"])
def test_what_makes_nothing_on_the_node_does_not_count(tmp_path: Path, file: str) -> None:
    role = write(tmp_path / "roles" / "paint", {"tasks/main.yml": "[]"})
    before = inputs_hash(str(role), {"colour": 1}, KEY)
    write(role, {file: "{{ colour }}"})
    assert inputs_hash(str(role), {"colour": 1}, KEY) == before
    assert not counts(role, "colour")


def test_a_file_counts_by_its_content_and_by_its_name(tmp_path: Path) -> None:
    hashes = {
        inputs_hash(str(write(tmp_path / str(number) / "paint", files)), {}, KEY)
        for number, files in enumerate(
            [
                {"files/a": "x"},
                {"files/a": "y"},
                {"files/b": "x"},
                {"templates/a": "x"},
                {"files/a": "x", "files/b": "x"},
            ]
        )
    }
    assert len(hashes) == 5


@pytest.mark.parametrize(("before", "binary"), [(0, True), (8191, True), (8192, False)])
def test_words_are_not_looked_for_in_a_binary_file(tmp_path: Path, before: int, binary: bool) -> None:
    content = b" " * before + b"\0 colour"
    role = write(tmp_path / "roles" / "paint", {"files/logo": content})
    assert counts(role, "colour") is not binary
    other = write(tmp_path / "other" / "paint", {"files/logo": content + b"!"})
    assert inputs_hash(str(role), {}, KEY) != inputs_hash(str(other), {}, KEY)


@pytest.mark.parametrize("file", ["tasks/main.yml", "tasks/deep/er.yml", "handlers/main.yml"])
def test_what_a_role_beside_it_makes_while_running_is_no_input(tmp_path: Path, file: str) -> None:
    role = write(tmp_path / "roles" / "paint", {"tasks/main.yml": "- copy: {content: '{{ kept }}'}"})
    assert counts(role, "kept")
    write(tmp_path / "roles" / "other", {file: "- command: x\n  register: kept\n"})
    assert not counts(role, "kept")
    assert Roles().made_while_running(str(role)) == {"kept"}


def test_roles_are_read_once(tmp_path: Path) -> None:
    role = write(tmp_path / "roles" / "paint", {"tasks/main.yml": "- command: x\n  register: one\n"})
    roles = Roles()
    text, made = roles.text(str(role)), roles.made_while_running(str(role))
    assert made == {"one"}
    assert {"command", "register", "one"} <= text.names
    write(role, {"tasks/main.yml": "- command: x\n  register: two\n"})
    assert (roles.text(str(role)), roles.made_while_running(str(role))) == (text, made)
    assert roles.text(str(write(tmp_path / "roles" / "other", {"vars/main.yml": "a: 1"}))) != text


def test_variables_lead_to_others_round_about_but_not_through_facts() -> None:
    values = {"a": ["{{ b }}"], "b": {"{{ c }}": "{{ a }}"}, "c": 1, "ansible_host": "d", "groups": "e", "made": "f"}
    variables = Variables(values)
    assert variables.reach(["a"]) == {"a", "b", "c"}
    assert variables.reach(["a", "x"], frozenset(["b"])) == {"a", "x"}
    assert variables.reach(["made"], frozenset(["made"])) == set()
    assert variables.reach(["ansible_host", "groups"]) == {"ansible_host", "groups"}
    assert variables.words("b") == {"a", "c"}
    assert variables.canonical("a") == '["{{ b }}"]'
    values["b"] = "z"
    assert variables.words("b") == {"a", "c"}
    assert variables.canonical("b") == '{"{{ c }}": "{{ a }}"}'


@pytest.mark.parametrize("name", ["ansible_host", "ansible_", "hostvars", "item", "vars", "omit", "role_path"])
def test_what_ansible_sets_for_a_run_is_no_input(tmp_path: Path, name: str) -> None:
    role = write(tmp_path / "roles" / "paint", {"tasks/main.yml": f"{name} colour my_{name}"})
    assert not counts(role, name)
    assert counts(role, f"my_{name}")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("- command: x\n  register: one\n- register: 'two'\n  command: x\n", ["one", "two"]),
        ("- set_fact: {one: 1, two: '{{ x }}'}\n", ["one", "two"]),
        ("- set_fact:\n    one:\n      inner: 1\n    two: 2\n  when: three\n", ["one", "two"]),
        ("- name: x\n  ansible.builtin.set_fact:\n\n    'one': 1\n\n    two: 2\n", ["one", "two"]),
        ("- set_fact:\n    one: 1\n- set_fact:\n    two: 2\n- copy:\n    dest: x\n", ["one", "two"]),
        ("- block:\n    - set_fact:\n        one: 1\n      when: x\n      vars:\n        two: 2\n", ["one"]),
        ("- set_fact:\n      one: 1\n    two: 2\n  tags: x\n", ["one"]),
        ("- set_fact: {one: 1}\n- set_fact:  # why\n    two: 2\n", ["one", "two"]),
        ("- set_fact:\n    - one\n    two: 2\n", ["two"]),
        ("- copy:\n    content: x\n", []),
    ],
)
def test_names_that_tasks_register_or_set(text: str, names: list[str]) -> None:
    assert list(made_names(text)) == names


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((plain, json.dumps(plain)) for plain in (None, True, 0, 1.5, "a", ["a", 1], [])),
        (("a", ("b",)), '["a", ["b"]]'),
        ({"b": 1, 2: "a", "a": None}, '{"2": "a", "a": null, "b": 1}'),
        ({"b", "a"}, '["\\"a\\"", "\\"b\\""]'),
        (frozenset([2, 1]), '["1", "2"]'),
        (datetime.date(2020, 1, 1), '"2020-01-01"'),
        ([Vaulted("$ANSIBLE_VAULT;1")], '[{"!vault": "$ANSIBLE_VAULT;1"}]'),
        ({"a": Vaulted(b"$ANSIBLE_VAULT;1")}, '{"a": {"!vault": "$ANSIBLE_VAULT;1"}}'),
    ],
)
def test_a_value_has_one_text_wherever_it_was_read(value: Any, text: str) -> None:
    assert inputs.canonical(value) == text


@pytest.mark.parametrize(
    ("value", "vaulted"),
    [
        (Vaulted("x"), True),
        ({"a": 1, "b": [{"c": ("d", Vaulted(b"x"))}]}, True),
        ([Vaulted("x"), "a"], True),
        ("x", False),
        (None, False),
        ({"a": ["b"]}, False),
        ([], False),
    ],
)
def test_a_value_is_vaulted_if_any_part_of_it_is(value: Any, vaulted: bool) -> None:
    assert inputs.is_vaulted(value) is vaulted


def test_texts_of_a_value_are_all_but_those_that_are_encrypted() -> None:
    value = {"a": ["b", ("c", 1)], 2: Vaulted("d"), "e": {"f": None}}
    assert list(strings(value)) == ["a", "b", "c", "e", "f"]
    assert list(strings(Vaulted("d"))) == []


def test_names_of_encrypted_files_are_those_of_files_that_ansible_has_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "secret.yml": b"$ANSIBLE_VAULT;1.1;AES256\n",
            "list.yml": b"$ANSIBLE_VAULT;1.1",
            "open.yml": "a: 1",
            "s": "$AN",
        },
    )
    read: dict[str, Any] = {
        str(tmp_path / "secret.yml"): {"token": "t", 5: "five"},
        str(tmp_path / "list.yml"): ["other"],
        str(tmp_path / "open.yml"): {"colour": "red"},
        str(tmp_path / "gone.yml"): {"gone": 1},
        str(tmp_path): {"folder": 1},
    }
    files = EncryptedFiles()
    assert files.names(SimpleNamespace(_FILE_CACHE=read)) == {"token", "5"}
    assert files.names(SimpleNamespace()) == set()
    (tmp_path / "secret.yml").write_text("open now")
    assert files.encrypted(str(tmp_path / "secret.yml"))
    assert [files.encrypted(str(tmp_path / name)) for name in ("list.yml", "open.yml", "s")] == [True, False, False]


def test_what_a_template_includes_is_looked_for_beside_it_and_beside_the_first(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "main.j2": "{% include 'deep/part.j2' %}{% extends \"base.j2\" %}{{ last }}",
            "deep/part.j2": "prose {% import 'near.j2' as a %} {% from 'far.j2' import b %}",
            "deep/near.j2": "{{ near }}",
            "far.j2": "{{\n  far\n}} far",
            "base.j2": "{{ base }} prose",
            "other.j2": "{{ other }}",
        },
    )
    found = expressions(tmp_path / "main.j2")
    for text in ("{{ last }}", "{{ near }}", "{{\n  far\n}}", "{{ base }}"):
        assert found.count(text) == 1
    assert "other" not in found
    assert "prose" not in found
    assert expressions(tmp_path) == ""
