"""singularity.conf: types and words of the real file, and a text that its parser reads back as declared."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.rules.singularity.conf import DIRECTIVES, VERSIONS, problems, settings, text


def as_singularity_reads(file: str) -> dict[str, list[str]]:
    """Its parser: lines `key = value` by this expression; values of a key collected and split at commas."""
    found: dict[str, list[str]] = {}
    for key, value in re.findall(r"(?m)^\s*([a-zA-Z _]+)\s*=\s*(.*)$", file):
        if value.strip():
            found.setdefault(key.strip(), []).extend(one.strip() for one in value.strip().split(","))
    return found


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (
            {"mount hostf": True},
            'singularity_conf: mount hostf: no such directive; did you mean "mount hostfs"?',
        ),
        ({"mount_home": True}, 'singularity_conf: mount_home: no such directive; did you mean "mount home"?'),
        ({"allow setuid": "yes"}, "singularity_conf: allow setuid: must be true or false, not 'yes'"),
        ({"allow setuid": 1}, "singularity_conf: allow setuid: must be true or false, not 1"),
        ({"mount dev": True}, "singularity_conf: mount dev: must be one of yes, no, minimal (in quotes), not True"),
        ({"enable overlay": "driver"}, "must be one of yes, no, try (in quotes), not 'driver'"),
        (
            {"max loop devices": "256"},
            "singularity_conf: max loop devices: must be a whole number, 1 or more, not '256'",
        ),
        ({"sessiondir max size": 0}, "singularity_conf: sessiondir max size: must be a whole number, 1 or more, not 0"),
        ({"sessiondir max size": True}, "must be a whole number, 1 or more, not True"),
        ({"bind path": "/scratch"}, "must be a list of source[:destination[:ro|rw]], not '/scratch'"),
        ({"bind path": ["scratch"]}, "'scratch' is none of source[:destination[:ro|rw]]"),
        ({"bind path": ["/a:/b:rx"]}, "'/a:/b:rx' is none of"),
        ({"bind path": ["/a,/etc/shadow"]}, "'/a,/etc/shadow' is none of"),
        ({"bind path": ["/a\n allow setuid = yes"]}, "is none of"),
        ({"bind path": []}, "an empty list means the program's own (/etc/localtime, /etc/hosts)"),
        ({"limit container owners": ["root user"]}, "'root user' is none of names or numbers of accounts"),
        ({"limit container paths": ["home/apps"]}, "'home/apps' is none of absolute paths without commas"),
        ({"cni plugin path": "bin"}, "cni plugin path: must be an absolute path, or empty for the program's own"),
        ({"memory fs type": "xfs"}, "must be one of tmpfs, ramfs (in quotes), not 'xfs'"),
        ({"mksquashfs procs": 2}, "mksquashfs procs: Singularity 3.5 does not know it (it came with 3.6)"),
        ({"allow net users": ["alice"]}, "allow net users: Singularity 3.5 does not know it (it came with 3.8)"),
    ],
)
def test_a_fault_is_named(declared: dict[str, Any], said: str) -> None:
    (found,) = problems(declared, "3.5")
    assert said in found


def test_all_faults_are_named_at_once() -> None:
    assert len(problems({"allow setuid": "no", "nothing": 1, "mount dev": "some"}, "3.5")) == 3
    assert problems({}, "4.0") == ["singularity_version is '4.0': one of 3.5, 3.6, 3.7, 3.8 (in quotes)"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_default_is_a_value_that_may_be_declared(version: str) -> None:
    own = settings({}, version)
    assert problems(own, version) == []
    assert text(own, version) == text({}, version)


def test_the_file_has_every_directive_with_its_value() -> None:
    """36 directives: the struct of 3.5.3. What the program reads back is what was declared, or its own default."""
    read = as_singularity_reads(text({"mount hostfs": True, "bind path": ["/etc/hosts", "/scratch:/tmp:rw"]}, "3.5"))
    assert len(settings({}, "3.5")) == 36
    assert read["mount hostfs"] == ["yes"]
    assert read["bind path"] == ["/etc/hosts", "/scratch:/tmp:rw"]
    assert read["allow setuid"] == ["yes"]
    assert read["sessiondir max size"] == ["16"]
    assert "limit container owners" not in read
    assert set(read) <= set(DIRECTIVES)


def test_null_is_the_programs_own_value() -> None:
    assert text({"always use nv": True}, "3.5") != text({"always use nv": None}, "3.5") == text({}, "3.5")


@given(
    st.dictionaries(
        st.sampled_from(sorted(DIRECTIVES)), st.one_of(st.booleans(), st.integers(), st.text(), st.lists(st.text()))
    )
)
def test_what_is_accepted_is_read_back_as_declared(declared: dict[str, Any]) -> None:
    if problems(declared, "3.8"):
        return
    read = as_singularity_reads(text(declared, "3.8"))
    for name, value in declared.items():
        shown = (
            ("yes" if value else "no",)
            if isinstance(value, bool)
            else tuple(map(str, value))
            if isinstance(value, list)
            else (str(value),)
        )
        assert tuple(read.get(name, [])) == (() if value in ("", []) else shown)


def test_every_directive_that_nobody_declares_is_as_in_the_programs_own_file() -> None:
    """The values of 3.5.3: what is switched off there, and what is neither on nor off."""
    read = as_singularity_reads(text({}, "3.5"))
    other = {
        "max loop devices": ["256"], "mount dev": ["yes"], "bind path": ["/etc/localtime", "/etc/hosts"],
        "enable overlay": ["try"], "sessiondir max size": ["16"], "root default capabilities": ["full"],
        "memory fs type": ["tmpfs"],
    }  # fmt: skip
    off = ("mount hostfs", "always use nv", "always use rocm", "shared loop devices")
    on = (
        "allow setuid", "allow pid ns", "config passwd", "config group", "config resolv_conf", "mount proc",
        "mount sys", "mount devpts", "mount home", "mount tmp", "user bind control", "enable fusemount",
        "enable underlay", "mount slave", "allow container squashfs", "allow container extfs",
        "allow container dir", "allow container encrypted",
    )  # fmt: skip
    assert read == {**other, **{name: ["no"] for name in off}, **{name: ["yes"] for name in on}}
