"""Node ranges in Ansible's patterns, as people write them; what is Ansible's own stays as it is."""

from __future__ import annotations

import pytest

from hal_inventory.errors import RangeError
from hal_inventory.patterns import split
from tests.unit.hal_inventory.conftest import Folder

HOSTS = ("front", "worker1", "worker2", "worker3", "worker4", "n08", "n09", "n10", "n11", "a1b", "a2b")
GROUPS = ("all", "compute", "n")


def parts(pattern: str) -> list[str]:
    return split(pattern, HOSTS, GROUPS, lambda text: [f"<{text}>"])


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("worker[1-2]", ["~(?:worker1|worker2)$"]),
        ("worker[1,3-4]", ["~(?:worker1|worker3|worker4)$"]),
        ("worker[3:4]", ["~(?:worker3|worker4)$"]),
        ("n0[8-9]", ["~(?:n08|n09)$"]),
        ("front, worker[1-2] ,compute", ["<front>", "~(?:worker1|worker2)$", "<compute>"]),
        (
            "compute:!worker[1,2]:&worker[1-3]",
            ["<compute>", "!~(?:worker1|worker2)$", "&~(?:worker1|worker2|worker3)$"],
        ),
        ("compute[0:1],worker[1-2]", ["<compute[0:1]>", "~(?:worker1|worker2)$"]),
        ("n[08-09]", ["~(?:n08|n09)$"]),
        # Ansible's own.
        ("compute[0:1]", ["<compute[0:1]>"]),
        ("compute[0]", ["<compute[0]>"]),
        ("compute[-1],!all[-1]", ["<compute[-1]>", "<!all[-1]>"]),
        ("n[8:9]", ["<n[8:9]>"]),
        ("worker1[0]", ["<worker1[0]>"]),
        ("a[12]b", ["<a[12]b>"]),
        ("*[0:3]", ["<*[0:3]>"]),
        ("~worker[12]", ["<~worker[12]>"]),
        ("!~worker(1:[12])", ["<!~worker(1:[12])>"]),
        ("fe80::1", ["<fe80::1>"]),
        ("a:b,c", ["<a:b,c>"]),
    ],
)
def test_a_range_becomes_its_nodes(pattern: str, expected: list[str]) -> None:
    assert parts(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (
            "worker[3-6]",
            '"worker[3-6]": not in this inventory: worker[5-6]; its nodes are a[1-2]b,front,n[08-11],worker[1-4]',
        ),
        ("n[1-2]", '"n[1-2]": not in this inventory: n[1-2]; its nodes are a[1-2]b,front,n[08-11],worker[1-4]'),
        ("x[1-2]", '"x[1-2]": not in this inventory: x[1-2]; its nodes are a[1-2]b,front,n[08-11],worker[1-4]'),
        ("compute:!worker[4-3]", '"worker[4-3]": [4-3] expands to nothing; write the smaller number first'),
    ],
)
def test_a_range_that_is_not_of_nodes_is_refused_in_one_line(pattern: str, message: str) -> None:
    with pytest.raises(RangeError) as caught:
        parts(pattern)
    assert str(caught.value) == message


def test_ansible_takes_ranges_as_limit_and_as_pattern(folder: Folder) -> None:
    source = folder.site()
    by_limit = folder.ansible("ansible", "all", "-i", source, "--list-hosts", "--limit", "worker[1-2,4]")
    by_pattern = folder.ansible("ansible", "compute:!worker[3-3]", "-i", source, "--list-hosts")
    assert by_limit.stderr == ""
    assert by_limit.stdout.split() == ["hosts", "(3):", "worker1", "worker2", "worker4"]
    assert by_pattern.stdout == by_limit.stdout
    last = folder.ansible("ansible", "compute[-1]", "-i", source, "--list-hosts")
    assert last.stdout.split() == ["hosts", "(1):", "worker4"]
    folder.write("lines", "worker[1-2,4]\nfront,compute[-1]\n\n~worker(3|4)\n!worker4:!worker1\n")
    by_file = folder.ansible("ansible", "all", "-i", source, "--list-hosts", "--limit", "@lines")
    assert (by_file.stderr, by_file.stdout.split()) == ("", ["hosts", "(3):", "front", "worker2", "worker3"])
    folder.write("lines", "worker[4-9]\nfront\n")
    refused = folder.ansible("ansible", "all", "-i", source, "--list-hosts", "--limit", "@lines")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert '"worker[4-9]": not in this inventory: worker[5-9]' in refused.stderr
    refused = folder.ansible("ansible", "all", "-i", source, "--list-hosts", "--limit", "worker[4-9]")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        'ERROR! "worker[4-9]": not in this inventory: worker[5-9]; its nodes are front,worker[1-4]\n'
    )
