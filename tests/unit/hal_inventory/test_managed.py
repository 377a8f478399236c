"""managed_roles: which values can be used, and what a list leaves without what it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hal_inventory import managed, variables


def test_every_name_that_a_role_needs_is_a_role() -> None:
    named = {*managed.NEEDS, *(need for needs in managed.NEEDS.values() for need in needs)}
    assert named <= set(managed.known_roles())
    assert "time" in managed.known_roles()


@pytest.mark.parametrize("value", [[], ["time"], ["time", "hosts"], ("ssh",)])
def test_a_list_of_roles_can_be_used(value: Any) -> None:
    assert managed.problem(value) == ""


@pytest.mark.parametrize("value", [None, "time", {"time": True}, [None], [["time"]], True])
def test_anything_else_cannot(value: Any) -> None:
    assert managed.problem(value) == "managed_roles has to be a list of names of roles, such as [time, hosts]"


def test_a_name_that_is_no_role_is_said_with_the_one_that_was_meant() -> None:
    assert managed.problem(["time", "slrum"]) == 'managed_roles: there is no role "slrum"; did you mean "slurm"?'


def test_a_role_without_what_it_needs_is_said_where_the_node_has_both() -> None:
    (remark,) = managed.lacking(["slurm", "hosts"], ["slurm", "hosts", "munge", "compute"])
    assert remark.startswith("slurm is managed and munge, which it needs, is not (")
    assert managed.lacking(["slurm", "hosts", "munge"], ["slurm", "hosts", "munge"]) == []
    assert managed.lacking(["slurm", "hosts"], ["slurm", "hosts"]) == [], "the node has no munge of ours at all"
    assert managed.lacking(["slurm"], ["time"]) == [], "the node has no slurm"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("managed_roles: [time, slrum]\n", 'there is no role "slrum"; did you mean "slurm"?'),
        ("managed_roles: time\n", "has to be a list of names of roles, such as [time, hosts]"),
        ("managed_roles: {time: true}\n", "has to be a list of names of roles, such as [time, hosts]"),
        ("managed_roles: [time, [ssh]]\n", "has to be a list of names of roles, such as [time, hosts]"),
        ("managed_roles: [time]\n", ""),
        ("managed_roles: []\n", ""),
        ("managed_roles: \"{{ ['time'] }}\"\n", ""),
    ],
)
def test_files_of_variables_are_read_before_anybody_is_contacted(tmp_path: Path, text: str, words: str) -> None:
    folder = tmp_path / "group_vars"
    folder.mkdir()
    (folder / "all.yml").write_text(f"---\n{text}")
    read = variables.check([tmp_path], {"managed_roles"})
    assert [one.message for one in read.findings] == ([words] if words else [])
