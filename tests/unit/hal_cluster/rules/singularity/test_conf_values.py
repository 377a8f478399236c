"""singularity.conf: which values each kind of directive takes, what later releases add, the file to the last line."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.rules.singularity import conf
from hal_cluster.rules.singularity.conf import HEAD, lines, problems, settings, text


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("mksquashfs mem", ["", "1", "10K", "1M", "12G"], ["0", "01G", "1T", "G", "1 G", 1]),
        ("mksquashfs procs", [0, 1, 64], [-1, "1", True, 0.5]),
        ("max loop devices", [1, 256], [0, -1, None.__class__]),
        ("image driver", ["", "a b"], [" a", "a,b", "a\n", 5, []]),
        ("mksquashfs path", ["", "/", "/usr/bin/x"], ["x", "/a b", "/a:b", "/a,b", " /a"]),
        ("enable overlay", ["yes", "no", "try", "driver"], [True, "maybe", ""]),
        ("root default capabilities", ["full", "file", "no"], ["yes"]),
        ("limit container owners", [[], ["root"], ["0", "_a-b.c"], ["a" * 32]],
         [["a" * 33], ["1" * 11], ["-a"], "root", [5]]),
        ("bind path", [["/a"], ["/a:/b"], ["/a:/b:ro", "/c:/d:rw"]],
         [["/a:b"], ["/a:/b:rx"], ["/a:/b:ro:x"], [":/a"], ["a"], ["/a", ""], "/a", [5]]),
        ("allow net networks", [["bridge"]], [["a b"]]),
    ],
)  # fmt: skip
def test_which_values_a_directive_takes(name: str, good: list[Any], bad: list[Any]) -> None:
    assert [problems({name: value}, "3.8") for value in good] == [[]] * len(good)
    assert [len(problems({name: value}, "3.8")) for value in bad] == [1] * len(bad)


def test_what_a_value_must_be_is_said() -> None:
    declared = {"mksquashfs mem": "1T", "mksquashfs procs": -1, "limit container owners": "x", "image driver": 5,
                "allow net groups": ["x", "a b"], "enable overlay": 1}  # fmt: skip
    assert problems(declared, "3.8") == [
        "singularity_conf: mksquashfs mem: must be a size such as 1G, or empty for the program's own, not '1T'",
        "singularity_conf: mksquashfs procs: must be a whole number, 0 or more, not -1",
        "singularity_conf: limit container owners: must be a list of names or numbers of accounts, not 'x'",
        "singularity_conf: image driver: must be the name of a plugin, or empty for the program's own, not 5",
        "singularity_conf: allow net groups: must be 'a b' is none of names or numbers of accounts, not ['x', 'a b']",
        "singularity_conf: enable overlay: must be one of yes, no, try, driver (in quotes), not 1",
    ]


def test_one_value_that_is_left_out_does_not_hide_the_next() -> None:
    assert len(problems({"mount dev": None, "x": 1, "allow setuid": 5}, "3.5")) == 2


def test_what_later_releases_add() -> None:
    sets = {version: settings({}, version) for version in conf.VERSIONS}
    first = {"mksquashfs procs": 0, "mksquashfs mem": "", "image driver": ""}
    nets: dict[str, Any] = {"allow net users": [], "allow net groups": [], "allow net networks": []}
    assert {name: value for name, value in sets["3.6"].items() if name not in sets["3.5"]} == first
    assert sets["3.7"] == sets["3.6"]
    assert {name: value for name, value in sets["3.8"].items() if name not in sets["3.7"]} == nets
    assert problems({"enable overlay": "driver"}, "3.6") == []
    assert len(problems({"enable overlay": "driver"}, "3.5")) == 1


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("a", True, ["a = yes"]), ("a", False, ["a = no"]), ("a", 0, ["a = 0"]), ("a", "", []), ("a", [], []),
        ("a", ["x", "y"], ["a = x, y"]), ("bind path", ["/x", "/y"], ["bind path = /x", "bind path = /y"]),
        ("a", "x", ["a = x"]),
    ],
)  # fmt: skip
def test_the_lines_of_a_value(name: str, value: Any, shown: list[str]) -> None:
    assert lines(name, value) == shown


def test_the_file_begins_with_whose_it_is() -> None:
    assert text({}, "3.5").startswith(HEAD + "allow setuid = yes\nmax loop devices = 256\n")
    assert text({}, "3.5").endswith("shared loop devices = no\n")
