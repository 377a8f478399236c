"""A faulty expect.yml gives one line a fault: file, line, field, what is wrong. The schema agrees."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from hal_cluster.expect import schema
from hal_cluster.expect.files import check_file

PROJECT = Path(__file__).resolve().parents[4]
SCHEMA = PROJECT / "hal_cluster" / "expect" / "expect.schema.json"

GOOD = """\
- id: everything at once
  why: a reader with each of its fields
  when: [a is defined, b]
  loop: "{{ things }}"
  severity: warning
  secret: true
  command: {argv: [prog, "{{ item }}", 5], timeout_seconds: "30", accept_exit: [0, "{{ two }}"], select: 'a (\\d+)'}
  count: {at_least: 1, at_most: "{{ three }}"}
- {id: b, why: w, file: {path: "{{ somewhere }}", read: mode}, equal: "0644"}
- {id: c, why: w, file: {path: /etc/x, read: lines, select: x}, absent: true}
- {id: d, why: w, service: {name: slurmd, read: LimitMEMLOCK}, one_of: [infinity, 18446744073709551615]}
- {id: e, why: w, kernel-module: {name: nvidia, parameter: modeset}, equal: Y}
- {id: f, why: w, port: {port: "{{ p }}", protocol: "{{ q }}"}, equal: yes}
- {id: g, why: w, package: {name: slurm, read: version}, at_least: "22.05"}
- {id: h, why: w, mount: {path: /gpfs, read: options}, contain: [rw, noatime]}
- {id: i, why: w, sysctl: {name: vm.swappiness}, at_most: 10}
- {id: j, why: w, command: {argv: "{{ words }}", json: true, key: a.b}, match: ["a.*", "b"]}
"""

#: content -> the finding, without the path
FAULTS = [
    ("", "1: has to be a list of expectations that is not empty"),
    ("[]", "1: has to be a list of expectations that is not empty"),
    ("a: b", "1: has to be a list of expectations that is not empty"),
    ("- {id: a\n", "2: is not YAML"),
    ("- 5", "1: an entry has to be a mapping"),
    ("- {why: w, sysctl: {name: a}, equal: 1}", "1: needs id"),
    ("- {id: a, sysctl: {name: a}, equal: 1}", "1: needs why"),
    ("- {id: 5, why: w, sysctl: {name: a}, equal: 1}", "1: id: has to be a text"),
    ("- {id: '{{ a }}', why: w, sysctl: {name: a}, equal: 1}", "1: id: cannot be a template"),
    ("- {id: a, why: w, equal: 1}", "1: needs exactly one reader"),
    ("- {id: a, why: w, sysctl: {name: a}}", "1: needs exactly one matcher"),
    ("- {id: a, why: w, sysctl: {name: a}, mount: {path: /}, equal: 1}", "1: needs exactly one reader"),
    ("- {id: a, why: w, sysctl: {name: a}, equal: 1, count: 1}", "1: needs exactly one matcher"),
    ("- id: a\n  why: w\n  sysctl: {name: a}\n  equals: 1\n  equal: 1", "4: equals: is not a field, reader or matcher"),
    (
        "- id: a\n  why: w\n  sysctl:\n    nam: a\n    name: a\n  equal: 1",
        "4: sysctl.nam: is not a field of sysctl; it has name",
    ),
    ("- id: a\n  why: w\n  sysctl: {}\n  equal: 1", "3: sysctl: needs name"),
    ("- {id: a, why: w, sysctl: a, equal: 1}", "1: sysctl: has to be a mapping"),
    ("- {id: a, why: w, sysctl: {name: a}, equal: }", "1: equal: has no value"),
    (
        "- {id: a, why: w, sysctl: {name: a}, equal: 1, severity: info}",
        '1: severity: "info" has to be one of error, warning',
    ),
    ("- {id: a, why: w, sysctl: {name: a}, equal: 1, secret: perhaps}", "1: secret: has to be true or false"),
    (
        "- {id: a, why: w, sysctl: {name: a}, equal: 1, secret: true, health: a lost}",
        "1: health: a secret would be in a file on the node",
    ),
    ("- {id: a, why: w, sysctl: {name: a}, equal: 1, health: ''}", "1: health: has to be a text that is not empty"),
    ("- {id: a, why: w, file: {path: etc/x}, equal: 1}", "1: file.path: has to be an absolute path"),
    (
        "- {id: a, why: w, file: {path: /x, read: mood}, equal: 1}",
        '1: file.read: "mood" has to be one of content, lines',
    ),
    ("- {id: a, why: w, file: {path: /x, read: mode}, equal: 0644}", "1: equal: a file mode needs quotes"),
    ("- {id: a, why: w, file: {path: /x, read: mode, select: x}, equal: '0644'}", "1: file.select: keeps lines"),
    ("- {id: a, why: w, file: {path: /x, select: '('}, equal: 1}", "1: file.select: is not a regular expression"),
    ("- {id: a, why: w, command: {argv: uname}, equal: 1}", "1: command.argv: has to be a list of texts"),
    ("- {id: a, why: w, command: {argv: []}, equal: 1}", "1: command.argv: has to be a list of texts"),
    (
        "- {id: a, why: w, command: {argv: [a], json: true, exit: true}, equal: 1}",
        "1: command: takes one of lines, json",
    ),
    ("- {id: a, why: w, command: {argv: [a], accept_exit: [x]}, equal: 1}", "1: command.accept_exit: has to be a list"),
    (
        "- {id: a, why: w, command: {argv: [a], timeout_seconds: soon}, equal: 1}",
        "1: command.timeout_seconds: has to be a n",
    ),
    (
        "- {id: a, why: w, service: {name: a, read: runing}, equal: 1}",
        '1: service.read: "runing" has to be one of running',
    ),
    (
        "- {id: a, why: w, kernel-module: {name: a, read: loaded, parameter: b}, equal: 1}",
        "1: kernel-module: reads one thing",
    ),
    ("- {id: a, why: w, port: {port: ssh}, equal: 1}", "1: port.port: has to be a number"),
    ("- {id: a, why: w, sysctl: {name: a}, match: '('}", "1: match: is not a regular expression"),
    ("- {id: a, why: w, sysctl: {name: a}, match: []}", "1: match: is an empty list"),
    ("- {id: a, why: w, sysctl: {name: a}, contain: []}", "1: contain: is an empty list"),
    ("- {id: a, why: w, sysctl: {name: a}, match: 5}", "1: match: has to be a regular expression"),
    ("- {id: a, why: w, sysctl: {name: a}, one_of: 5}", "1: one_of: has to be a list"),
    ("- {id: a, why: w, sysctl: {name: a}, absent: 5}", "1: absent: has to be true or false"),
    ("- {id: a, why: w, sysctl: {name: a}, count: many}", "1: count: is a number"),
    ("- {id: a, why: w, sysctl: {name: a}, count: {more: 1}}", "1: count: is a number"),
    ("- {id: a, why: w, sysctl: {name: a}, at_least: [1]}", "1: at_least: has to be a number"),
]
#: What a JSON Schema of the parsed document cannot say.
ONLY_HERE = ("is not YAML", "is not a regular expression", "a file mode needs quotes", "absolute path", "keeps lines")


def findings(path: Path, content: str) -> list[str]:
    path.write_text(content)
    return [str(finding).removeprefix(f"{path}:") for finding in check_file(path)]


def test_a_good_file_has_no_finding(tmp_path: Path) -> None:
    assert findings(tmp_path / "expect.yml", GOOD) == []


@pytest.mark.parametrize(("content", "expected"), FAULTS)
def test_each_fault_is_one_line_that_names_it(tmp_path: Path, content: str, expected: str) -> None:
    found = findings(tmp_path / "expect.yml", content)
    assert len(found) == 1, found
    assert found[0].startswith(expected)
    assert "\n" not in found[0]


def test_many_faults_come_at_once_in_the_order_of_the_lines(tmp_path: Path) -> None:
    found = findings(
        tmp_path / "expect.yml",
        (
            "- id: a\n  why: w\n  sysctl: {name: a}\n  equal: 1\n  equal: 2\n"
            "- id: a\n  why: w\n  sysctl: {name: b, c: d}\n  count: x\n"
        ),
    )
    assert [line.split(":")[:2] for line in found] == [
        ["5", " equal"],
        ["6", " id"],
        ["8", " sysctl.c"],
        ["9", " count"],
    ]
    assert '"a" is used twice' in found[1]


@pytest.mark.parametrize(
    "make",
    [
        lambda path: None,
        lambda path: path.mkdir(),
        lambda path: path.write_bytes(b"\xff\xfe\x00"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path, make: object) -> None:
    path = tmp_path / "expect.yml"
    assert callable(make)
    make(path)
    found = check_file(path)
    assert len(found) == 1
    assert found[0].message.startswith("cannot be read: ")


def test_vaulted_values_are_not_judged(tmp_path: Path) -> None:
    content = "- {id: a, why: w, secret: true, sysctl: {name: a}, equal: !vault 'x'}"
    assert findings(tmp_path / "expect.yml", content) == []


def test_the_command_prints_findings_and_ends_with_2(tmp_path: Path) -> None:
    path = tmp_path / "expect.yml"
    path.write_text(FAULTS[5][0])

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "hal_cluster.expect", *arguments],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    assert run(str(path)) == (2, f"{path}:1: needs id\n")
    path.write_text(GOOD)
    assert run(str(path)) == (0, "")
    assert run()[0] == 2


def test_the_committed_schema_is_the_one_of_the_vocabulary() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema.text(), (
        "python -m hal_cluster.expect --schema > hal_cluster/expect/expect.schema.json"
    )
    jsonschema.Draft202012Validator.check_schema(json.loads(SCHEMA.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("content", "expected"), [(GOOD, ""), *(one for one in FAULTS if not any(words in one[1] for words in ONLY_HERE))]
)
def test_schema_and_check_agree(content: str, expected: str) -> None:
    validator = jsonschema.Draft202012Validator(schema.build())
    assert validator.is_valid(yaml.safe_load(content)) == (not expected)


@pytest.mark.parametrize("path", sorted((PROJECT / "roles").glob("*/expect.yml")), ids=lambda path: path.parent.name)
def test_the_expectations_of_every_role_are_valid(path: Path) -> None:
    assert [str(finding) for finding in check_file(path)] == []
    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), schema.build())
