"""Packages, ports, services and matchers: what is refused, and the borders of what is accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.expect import packages as packages
from ansible.module_utils.hal_node.expect import ports as ports
from ansible.module_utils.hal_node.expect import services as services
from ansible.module_utils.hal_node.expect.evaluate import evaluate
from ansible.module_utils.hal_node.expect.matchers import judge, regex
from ansible.module_utils.hal_node.expect.values import Reading, Unreadable, missing, present, shown, to_text
from ansible.module_utils.hal_node.expect.vocabulary import MATCHERS, READERS

from tests.unit.hal_node.expect.conftest import refusal, whole


def test_packages_are_asked_for_together_and_what_rpm_complains_of_is_a_detail(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[str], float]] = []

    def answer(argv: list[str], timeout: float) -> tuple[int, str, str]:
        asked.append((argv, timeout))
        line = "hal-package\t{}\t1.0\t2.el7\tx86_64\n"
        return 1, line.format("a") + "hal-package\tshort\n" + "package b is not installed\n", " e" * 300

    monkeypatch.setattr(packages, "run", answer)
    names = ["b", "a", "-x", "a", "c"]
    readings = packages.read_packages([{"name": name, "read": "version"} for name in names])
    assert asked == [(["rpm", "-q", "--qf", packages.QUERY, "a", "b", "c"], 60)]
    version = {"value": "1.0", "items": ["1.0"], "scale": "version"}
    gone = {"exists": False, "has_value": False, "note": "package b is not installed"}
    assert [whole(one) for one in readings if isinstance(one, Reading)] == [gone, version, version]
    assert refusal(readings[2]) == ('not a package name: "-x"', "")
    assert refusal(readings[4]) == ("rpm said nothing about c", ("e " * 300)[:200])
    (reading,) = packages.read_packages([{"name": "a", "read": "vendor"}])
    assert refusal(reading) == ('a package has no "vendor" to read', "")
    (reading,) = packages.read_packages([{"name": "a", "read": "release"}])
    assert whole(reading) == {"value": "2.el7", "items": ["2.el7"]}
    asked.clear()
    packages.read_packages([{"name": "-x"}])
    assert asked == []


@pytest.mark.parametrize("port", [0, 65536, 22.5, "x", None, True])
def test_a_port_is_a_number_that_a_port_can_have(tmp_path: Path, port: Any) -> None:
    (reading,) = ports.read_ports([{"port": port}], str(tmp_path))
    assert refusal(reading) == ("port has to be a number from 1 to 65535", "")


def test_the_lowest_and_the_highest_port(tmp_path: Path) -> None:
    head = "  sl  local_address rem_address   st\n"
    (tmp_path / "tcp").write_text(head + "0: 0100007F:0001 0:0 0A x\n1: 0100007F:FFFF 0:0 0A\n2: short\n")
    for port in (1, 65535):
        (reading,) = ports.read_ports([{"port": port, "read": "addresses"}], str(tmp_path))
        assert whole(reading) == {"value": ["127.0.0.1"], "items": ["127.0.0.1"]}


def test_what_else_cannot_be_asked_of_a_port(tmp_path: Path) -> None:
    for name in ("tcp", "tcp6"):
        (tmp_path / name).write_text("head\n")
    (reading,) = ports.read_ports([{"port": 1, "protocol": "sctp"}], str(tmp_path))
    assert refusal(reading) == ("protocol has to be one of tcp, tcp4, tcp6, udp, udp4, udp6", "")
    (reading,) = ports.read_ports([{"port": 1, "read": "owner"}], str(tmp_path))
    assert refusal(reading) == ('a port has no "owner" to read', "")
    (reading,) = ports.read_ports([{"port": 1, "address": "::1"}], str(tmp_path))
    assert whole(reading) == {
        **{"exists": False, "value": False, "items": [False], "note": "nothing listens on tcp port 1 at ::1"},
    }


def test_tables_of_ports_are_read_once_and_a_missing_one_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (reading,) = ports.read_ports([{"port": 1, "protocol": "udp4"}], str(tmp_path))
    assert refusal(reading) == (f"{tmp_path}/udp: No such file or directory", "")
    (tmp_path / "udp6").symlink_to("udp6")
    (reading,) = ports.read_ports([{"port": 1, "protocol": "udp6"}], str(tmp_path))
    assert refusal(reading) == (f"{tmp_path}/udp6: Too many levels of symbolic links", "")
    read: list[str] = []

    def table(_folder: str, name: str) -> list[Any]:
        read.append(name)
        return []

    monkeypatch.setattr(ports, "_table", table)
    ports.read_ports([{"port": 1}, {"port": 2}, {"port": 2, "protocol": "tcp4"}], str(tmp_path))
    assert read == ["tcp", "tcp6"]


def test_without_systemctl_every_unit_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_argv: list[str], timeout: float) -> tuple[int, str, str]:
        assert timeout == 30
        raise Unreadable("there is no program systemctl")

    monkeypatch.setattr(services, "run", refuse)
    readings = services.read_services([{"name": "a"}, {"name": "b", "read": "enabled"}])
    assert [refusal(one) for one in readings] == [("there is no program systemctl", "")] * 2


def test_units_are_asked_for_once_with_the_properties_that_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def answer(argv: list[str], _timeout: float) -> tuple[int, str, str]:
        asked.append(argv)
        return 1, "LoadState=loaded\n", "a \n" + "b" * 300

    monkeypatch.setattr(services, "run", answer)
    requests = [{"name": "b", "read": "LimitNOFILE"}, {"name": "a.socket"}, {"name": "b"}, {"name": "-x"}]
    readings = services.read_services(requests)
    properties = "ActiveState,Id,LimitNOFILE,LoadState,SubState,UnitFileState"
    assert asked == [["systemctl", "show", "--property", properties, "--", "a.socket", "b.service"]]
    assert [refusal(one) for one in readings] == [
        *[("systemctl shows no units (status 1)", "a " + "b" * 198)] * 3,
        ('not a unit name: "-x"', ""),
    ]
    asked.clear()
    services.read_services([{"name": "-x"}])
    assert asked == []


@pytest.mark.parametrize(
    ("what", "state", "expected"),
    [
        ("running", {"ActiveState": "active"}, {"value": True, "items": [True]}),
        (
            "running",
            {"ActiveState": "activating", "SubState": "start"},
            {"value": False, "items": [False], "note": "a is activating (start)"},
        ),
        *(("enabled", {"UnitFileState": word}, {"value": True, "items": [True]}) for word in services.ENABLED),
        (
            "enabled",
            {},
            {"value": False, "items": [False], "note": "the unit file of a is not of a kind that can be enabled"},
        ),
        ("masked", {}, {"value": False, "items": [False]}),
        ("load", {}, {"value": "loaded", "items": ["loaded"]}),
        ("NRestarts", {"NRestarts": "0"}, {"value": "0", "items": ["0"]}),
    ],
)
def test_what_a_unit_says(what: str, state: dict[str, str], expected: dict[str, Any]) -> None:
    assert whole(services.reading_of("a", what, {"LoadState": "loaded", **state})) == expected


def test_a_unit_that_is_not_there_is_neither_running_nor_enabled_nor_masked() -> None:
    gone = {"LoadState": "not-found", "ActiveState": "inactive"}
    nothing = {"exists": False, "note": "there is no unit a"}
    for what in ("running", "enabled", "masked"):
        assert whole(services.reading_of("a", what, gone)) == {**nothing, "value": False, "items": [False]}
    assert whole(services.reading_of("a", "active", gone)) == {**nothing, "has_value": False}
    # Its file was removed while it ran.
    assert services.reading_of("a", "running", {**gone, "ActiveState": "active"}).value is True
    with pytest.raises(Unreadable, match=r"^systemctl did not tell the state of a$"):
        services.reading_of("a", "running", {"LoadState": ""})
    with pytest.raises(Unreadable, match=r"^systemd has no property NoSuch for a$"):
        services.reading_of("a", "NoSuch", {"LoadState": "loaded"})
    with pytest.raises(Unreadable, match=r"^reason$"):
        services.reading_of("a", "running", Unreadable("reason"))


@pytest.mark.parametrize("suffix", ["service", "socket", "target", "timer", "mount", "automount", "path", "slice"])
def test_a_name_with_a_suffix_is_whole(suffix: str) -> None:
    assert services.unit_name(f"a.{suffix}") == f"a.{suffix}"
    assert services.unit_name(f"a.{suffix}x") == f"a.{suffix}x.service"


def test_readings_in_short() -> None:
    assert whole(present("a")) == {"value": "a", "items": ["a"]}
    assert whole(present(["a"], scale="version")) == {"value": ["a"], "items": ["a"], "scale": "version"}
    assert whole(present("a", [])) == {"value": "a", "items": []}
    assert whole(missing("x")) == {"exists": False, "has_value": False, "note": "x"}
    assert to_text({b"a": [b"\xff", (b"b", 1)]}) == {"a": ["\ufffd", ["b", 1]]}


def test_a_report_shows_as_much_as_it_can_carry_and_no_word_more() -> None:
    assert shown("x" * 400) == "x" * 400
    assert shown(list(range(20))) == list(range(20))
    assert shown(["x" * 401]) == ["x" * 400 + "... 1 characters more"]
    numbers = {f"{number:02}": number for number in range(21)}
    assert shown(numbers) == {**{f"{number:02}": number for number in range(20)}, "...": "1 more"}
    assert shown(list(range(21))) == [*range(20), "... 1 more"]
    assert shown({"a": "x" * 401})["a"].endswith("... 1 characters more")


@pytest.mark.parametrize(
    ("reading", "matcher", "wanted", "complaint"),
    [
        (present([], scale="version"), "at_least", "1", "there is nothing to compare"),
        (present([1, 5]), "at_least", 1, ""),
        (present([0, 5]), "at_least", 1, "is less"),
        (present("1.0-1", scale="version"), "at_least", "1.0", ""),
        (present("1.0", scale="version"), "at_least", "1.0-1", "is less"),
        (present("1.0", scale="version"), "at_most", "1.0-1", ""),
        (present("1.0-9", scale="version"), "at_most", "1.0-10", ""),
        (present(True), "match", "true", ""),
        (present(False), "match", "false", ""),
        (present(5), "match", "5", ""),
        (present(" x "), "match", "x", ""),
        (present("x"), "contain", list("abcde"), 'lacks "a", "b", "c", "d", "e"'),
        (present("x"), "contain", list("abcdef"), 'lacks "a", "b", "c", "d", "e" and 1 more'),
        (present("x"), "match", ["a", "x", "b"], 'nothing matches "a", "b"'),
        (present("x"), "contain", [True, 5], 'lacks "true", "5"'),
        (present("x"), "count", {"at_most": 0}, "there are 1"),
        (present("x"), "count", {"at_most": 1, "at_least": 1}, ""),
        (present("x"), "count", {"at_least": 2}, "there are 1"),
        (present(False, note="it is off"), "equal", True, "it is off"),
        (present(False, note="it is off"), "equal", False, ""),
        (Reading(note="no items"), "count", 0, "no items"),
        (missing(""), "absent", False, "is not there"),
        (present(["a"]), "equal", ["a"], ""),
        (present(["a"]), "equal", {"a": 1}, "differs"),
        (present("0100", scale="mode"), "equal", "00100", ""),
    ],
)
def test_what_matchers_say_at_their_borders(reading: Reading, matcher: str, wanted: Any, complaint: str) -> None:
    assert judge(reading, matcher, wanted) == complaint


@pytest.mark.parametrize("wanted", ["64", "000644", "0648", "u+x"])
def test_a_mode_has_three_to_five_octal_digits(wanted: str) -> None:
    with pytest.raises(Unreadable, match=r"^a file mode is three or four octal digits in quotes"):
        judge(present("0644", scale="mode"), "equal", wanted)


def test_a_pattern_matches_whole_lines_and_keeps_its_flags() -> None:
    assert regex("(?i)a|b").match("B")
    assert not regex("a|b").match("ab")
    assert not regex("a").match("a\n")
    with pytest.raises(Unreadable, match=r"^a regular expression has to be a text$"):
        regex(5)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (
            {"file": {"path": "/"}, "port": {"port": 1}, "equal": 1},
            f"an entry has exactly one reader ({', '.join(sorted(READERS))}), this one has file and port",
        ),
        ({"equal": 1}, f"an entry has exactly one reader ({', '.join(sorted(READERS))}), this one has none"),
        (
            {"sysctl": {"name": "kernel.ostype"}},
            f"an entry has exactly one matcher ({', '.join(sorted(MATCHERS))}), this one has none",
        ),
        (
            {"sysctl": {"name": "kernel.ostype"}, "match": "a", "equal": "a"},
            f"an entry has exactly one matcher ({', '.join(sorted(MATCHERS))}), this one has equal and match",
        ),
        ({"sysctl": ["a"], "equal": 1}, "sysctl has to be a mapping"),
        ({"sysctl": {"name": "a", "x": 1, "b": 1}, "equal": 1}, 'sysctl has no field "b"; it has name'),
        ({"sysctl": {"name": None}, "equal": 1}, "sysctl needs name"),
        ({"mount": {"path": "/", "read": None}, "equal": 1}, "mount needs read"),
        ({"sysctl": {"name": 5}, "equal": 1}, "sysctl: name has to be a text"),
        ({"command": {"argv": ["x"], "json": 1}, "equal": 1}, "command: json has to be true or false"),
        (
            {"mount": {"path": "/", "read": "x"}, "equal": 1},
            "mount: read has to be one of mounted, fstype, options, source",
        ),
        ({"command": {"argv": ["sh", "-c", "echo x; false"]}, "equal": 1}, "sh ended with status 1: x"),
    ],
)
def test_why_an_entry_is_unknown(entry: dict[str, Any], reason: str) -> None:
    (result,) = evaluate([entry])
    assert (result["status"], result["reason"]) == ("unknown", reason)


def test_of_a_thing_without_a_value_its_items_are_observed() -> None:
    none, no_items = evaluate(
        [
            {"command": {"argv": ["echo", "a"], "select": "b"}, "count": 0},
            {"file": {"path": "/no/such"}, "absent": True},
        ]
    )
    assert none == {"status": "pass", "observed": None, "reason": ""}
    assert no_items == {"status": "pass", "observed": None, "reason": ""}
