"""Files of packages that are not as their packages brought them: what rpm says, and what of that is a finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit import verify as subject

from tests.unit.hal_node.audit.conftest import ROLLED_OUT, FakeNode, entry

SINFO = "S.5......    /usr/bin/sinfo\n"


@pytest.fixture
def said(captures: Path) -> str:
    """What rpm -Va printed."""
    return (captures / "rpm_va.txt").read_text()


def verified(hal: FakeNode, out: str, *, status: int = 1, errors: str = "", deep: bool = True) -> dict[str, Any]:
    """What an audit says when rpm -Va says so."""
    hal.programs["nice"] = lambda words: (status, out, errors)
    answer: dict[str, Any] = hal.look(deep=deep)
    return answer


def paths(answer: dict[str, Any]) -> dict[str, list[str]]:
    return {one["path"]: one["differs"] for one in answer["package_files"]}


def test_every_line_of_rpm_is_understood(said: str) -> None:
    found, strange = subject.parse(said)
    assert strange == []
    assert [(one["path"], one["mark"], one["differs"]) for one in found] == [
        ("/etc/probe.conf", "c", ["content"]),
        ("/etc/probe.d/gone.conf", "c", ["missing"]),
        ("/usr/bin/probe with blank", "", ["content"]),
        ("/usr/bin/probe-gone", "", ["missing"]),
        ("/usr/bin/probe-link", "", ["target"]),
        ("/usr/bin/probe-owned", "", ["owner"]),
        ("/usr/bin/probe-replaced", "", ["content"]),
        ("/usr/bin/probe-setuid", "", ["mode"]),
        ("/usr/share/doc/probe/README", "d", ["content"]),
        ("/var/lib/probe", "", ["mode"]),
    ]


@pytest.mark.parametrize(
    ("line", "differs"),
    [
        (".......T.    /usr/bin/x", None),  # rpm 4.11 knows --nomtime; whoever runs without it has only a time
        ("..?......    /usr/bin/x", []),  # it could not be read
        ("S.?......    /usr/bin/x", ["content"]),
        ("...D.....    /dev/x", ["device"]),
        (".....UG..    /usr/bin/x", ["owner", "group"]),
        ("........P    /usr/bin/ping", ["capabilities"]),
        ("S.5....T     /usr/bin/x", ["content"]),  # before 4.7 without capabilities
        ("missing   a /usr/lib/.build-id/x", ["missing"]),  # an artifact, which rpm knows since 4.14
    ],
)
def test_letters_of_rpm(line: str, differs: list[str] | None) -> None:
    found, strange = subject.parse(line + "\n")
    assert strange == []
    assert [one["differs"] for one in found] == ([] if differs is None else [differs])


def test_what_is_no_line_of_rpm_s_is_kept_apart() -> None:
    assert subject.parse("Unsatisfied dependencies for x-1.0:\n\n") == ([], ["Unsatisfied dependencies for x-1.0:"])


def test_a_program_that_was_replaced_is_named_with_its_package_and_the_role_that_installs_it(hal: FakeNode) -> None:
    hal.packages["slurm"] = ("(none)", "22.05", "1", "x86_64", 1000)
    hal.seal(entry("package:slurm", role="slurm"))
    hal.owned.add("/usr/bin/sinfo")
    mine = "hal-package\tslurm\n", "hal-package\n"
    hal.programs["rpm"] = lambda words: (0, mine["\\t" not in words[2]], "") if words[0] == "-qf" else hal.rpm(words)
    answer = verified(hal, SINFO)
    (one,) = answer["package_files"]
    assert (one["path"], one["differs"]) == ("/usr/bin/sinfo", ["content"])
    assert (one["package"], one["role"], one["when"]) == ("slurm", "slurm", 0)
    assert one["source"] == "roles/time/tasks/configure.yml:2"
    assert answer["problems"] == []


def test_it_runs_behind_everything_else_and_only_when_asked(hal: FakeNode) -> None:
    hal.seal()
    hal.calls.clear()
    assert verified(hal, SINFO, deep=False)["package_files"] == []
    assert not any("nice" in words for words in hal.calls)
    verified(hal, "", status=0)
    (asked,) = [words for words in hal.calls if words[0] == "nice"]
    assert asked == ["nice", "-n", "19", "ionice", "-c", "3", "rpm", "-Va", "--nomtime", "--nodeps", "--noscripts"]


def test_what_others_compare_is_theirs(hal: FakeNode, said: str) -> None:
    hal.write("/etc/probe.conf", "x\n")
    hal.seal(entry("file:/usr/bin/probe-setuid"), entry("line:/usr/share/doc/probe/README#1"), roles=ROLLED_OUT)
    found = paths(verified(hal, said))
    assert "/etc/probe.conf" not in found, "the record keeps what it is"
    assert "/etc/probe.d/gone.conf" not in found, "it was gone when the record began, or with a rollout"
    assert "/usr/bin/probe-setuid" not in found
    assert "/usr/share/doc/probe/README" not in found
    assert "/var/lib/probe" not in found, "a daemon's own folder"
    assert found["/usr/bin/probe-replaced"] == ["content"]


def test_owners_and_modes_below_etc_are_compared_with_the_record(hal: FakeNode) -> None:
    hal.write("/etc/init.d/x", "x\n")
    hal.seal(roles=ROLLED_OUT)
    assert paths(verified(hal, ".M...UG..    /etc/init.d\nSM5......    /etc/init.d/x\n")) == {
        "/etc/init.d/x": ["content"]
    }


def test_a_ghost_is_no_finding_and_below_var_only_content_is(hal: FakeNode) -> None:
    hal.seal()
    lines = "S.5......  g /var/lib/x\n.M...UG..    /var/log/y\nSM5......    /var/lib/z\n"
    lines += "missing     /run/a\nmissing     /var/run/b\nSM5......    /var/lock/c\n"
    assert paths(verified(hal, lines)) == {"/var/lib/z": ["content"]}


def test_without_a_record_everything_is_told(hal: FakeNode, said: str) -> None:
    assert len(paths(verified(hal, said))) == 9


def test_what_was_not_seen_is_not_fine(hal: FakeNode) -> None:
    hal.seal()
    assert verified(hal, "..?......    /usr/bin/x\n")["problems"] == ["rpm -Va could not look at /usr/bin/x"]
    assert verified(hal, "what?\n")["problems"] == ["files of packages are not verified: rpm -Va ended with status 1: "]
    assert verified(hal, "", errors="error: rpmdb\n")["problems"] == [
        "files of packages are not verified: rpm -Va ended with status 1: error: rpmdb"
    ]
    assert verified(hal, SINFO + "what?\n")["problems"] == ["rpm -Va: what?"]
    hal.missing.add("nice")
    assert verified(hal, "")["problems"] == ["files of packages are not verified: there is no program nice"]


def test_the_list_is_bounded_and_that_is_said(hal: FakeNode) -> None:
    hal.seal()
    answer = verified(hal, "".join(f"S.5......    /usr/bin/{number:04}\n" for number in range(230)))
    assert (len(answer["package_files"]), answer["more"]["package_files"]) == (200, 30)
    answer = hal.look(deep=True, accepted=["/usr/bin/01*", "/usr/bin/00[0-4]*"])
    assert (len(answer["package_files"]), answer["more"]["package_files"]) == (80, 0)
