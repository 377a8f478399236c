"""Lock files and specs without a channel: each finding whole, with its line; what differs; what a channel lacks."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster.environments import channel, check, cli, declared, lock, specs
from hal_cluster.environments.document import Document
from hal_cluster.environments.errors import FileError, HalEnvironmentsError
from hal_cluster.environments.lock import Lock, Package
from hal_cluster.environments.mirrored import mirrored
from tests.unit.hal_cluster.environments.conftest import asked

SUM = "a" * 64
BODY: dict[str, Any] = {
    "version": "1.0", "build": "0", "channel": "ibm", "subdir": "noarch", "file": "one-1.0-0.conda", "size": 7,
    "sha256": SUM,
}  # fmt: skip
HEAD: dict[str, Any] = {
    "format": 1, "platform": "linux-64", "channels": {"ibm": "https://ibm.example"}, "specs": ["one"],
}  # fmt: skip
AGAIN = "hal-environments lock tools-1 writes it"
ONE = Package("one", "1.0", "0", 0, "ibm", "noarch", "one-1.0-0.conda", 7, SUM, "", (), "")


def findings(path: Path, load: Any = lock.load) -> list[str]:
    """What is found, without the file's name."""
    with pytest.raises(FileError) as error:
        load(path)
    assert str(error.value) == "\n".join(error.value.findings)
    return [line.removeprefix(f"{path}:") for line in error.value.findings]


def written(folder: Path, text: str) -> Path:
    path = folder / "tools-1.lock.yml"
    path.write_text(text)
    return path


def one(folder: Path, **changes: Any) -> Path:
    """A lock file of one package, changed; `...` leaves a field out."""
    body = {key: value for key, value in {**BODY, **changes}.items() if value is not ...}
    return written(folder, yaml.safe_dump({**HEAD, "packages": {"one": body}}, sort_keys=False))


def test_what_is_left_out_of_a_lock_file_is_empty(tmp_path: Path) -> None:
    assert lock.load(one(tmp_path)).packages == {"one": ONE}
    full = {"number": 3, "license": "MIT", "depends": ["b", "a"], "noarch": "generic", "size": 1}
    expected = dataclasses.replace(ONE, number=3, license="MIT", depends=("b", "a"), noarch="generic", size=1)
    assert lock.load(one(tmp_path, **full)).packages == {"one": expected}
    assert lock.load(one(tmp_path, subdir="linux-64", file="one-1.0-0.tar.bz2")).packages["one"].subdir == "linux-64"
    text = lock.dump(
        Lock(asked(), {"b": dataclasses.replace(expected, name="b"), "a": dataclasses.replace(ONE, name="a")}), "n"
    )
    assert text.startswith("# Written by `hal-environments lock n` from n.yml. Read the difference before you commit")
    found = yaml.safe_load(text)
    assert list(found) == ["format", "platform", "virtual", "channels", "specs", "packages"]
    assert found["packages"] == {"a": BODY, "b": {**BODY, **full, "depends": ["a", "b"]}}
    assert list(found["packages"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"version": ...}, ["8: one: no version: " + AGAIN]),
        ({"build": ""}, ["10: one: no build: " + AGAIN]),
        ({"sha256": ""}, [f"15: one: no sha256: 64 hex digits, as the channel has them; {AGAIN}"]),
        ({"version": 1.5}, ["9: one: version is the number 1.5; put it in quotes"]),
        ({"sha256": "A" * 64}, [f"15: one: sha256 is {'A' * 64}; write 64 hex digits in small letters; {AGAIN}"]),
        ({"sha256": 5}, ["15: one: sha256 is the number 5; put it in quotes"]),
        ({"size": 0}, [f"14: one: size is 0; write the archive's bytes; {AGAIN}"]),
        ({"size": True}, [f"14: one: size is True; write the archive's bytes; {AGAIN}"]),
        ({"size": "7"}, [f"14: one: size is 7; write the archive's bytes; {AGAIN}"]),
        ({"size": ...}, [f"8: one: size is None; write the archive's bytes; {AGAIN}"]),
        ({"depends": "a"}, ["16: one: depends: write a list of texts"]),
        ({"depends": ["a", 1]}, ["16: one: depends: write a list of texts"]),
        ({"noarch": "java"}, ["16: one: noarch is java; write python or generic, or leave it out"]),
        ({"wish": 1}, ["16: one: wish: unknown field"]),
        ({"channel": "x", "subdir": "y", "file": "z"}, [
            "11: one: channel x is none of ibm", "12: one: subdir y is neither linux-64 nor noarch",
            "13: one: file is z; version and build make it one-1.0-0.tar.bz2",
        ]),
        ({"channel": "x", "size": 0}, [f"14: one: size is 0; write the archive's bytes; {AGAIN}"]),
    ],
)  # fmt: skip
def test_each_fault_of_a_package_is_a_line(tmp_path: Path, changes: dict[str, Any], expected: list[str]) -> None:
    assert findings(one(tmp_path, **changes)) == expected


def test_a_lock_file_without_packages_says_what_makes_them(tmp_path: Path) -> None:
    for more, line in (({}, 1), ({"packages": {}}, 7), ({"packages": []}, 7)):
        path = written(tmp_path, yaml.safe_dump({**HEAD, **more}, sort_keys=False))
        assert findings(path) == [f"{line}: packages: none; run hal-environments lock tools-1"]
    path = written(tmp_path, yaml.safe_dump({**HEAD, "packages": {"one": 1}}, sort_keys=False))
    assert findings(path) == ["8: one: not a mapping of version, build, ..."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: [\n", "3: not YAML: "),
        ("- a\n", "1: not a mapping of fields"),
        ("", "1: not a mapping of fields"),
        ("text\n", "1: not a mapping of fields"),
    ],
)
def test_what_is_no_mapping_is_refused_at_its_line(tmp_path: Path, text: str, expected: str) -> None:
    (found,) = findings(written(tmp_path, text), Document)
    assert found.startswith(expected)


def test_what_cannot_be_read_and_what_is_there_twice(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=f"^{tmp_path}/none: cannot be read: .*No such file"):
        Document(tmp_path / "none")
    (tmp_path / "raw").write_bytes(b"a: \xff\n")
    with pytest.raises(FileError, match=f"^{tmp_path}/raw: cannot be read: 'utf-8'"):
        Document(tmp_path / "raw")
    path = written(tmp_path, "a:\n  b: 1\n  c:\n  - d: 2\n    d: 3\n    f: 1\n  b: 4\ne: 1\n")
    document = Document(path)
    document.finding("deep", "a", "c", 0, "d")
    document.finding("behind", "a", "c", 0, "f")
    document.finding("near", "a", "c", 0, "x", "y")
    document.finding("none", "z")
    document.finding("all")
    with pytest.raises(FileError) as error:
        document.refuse()
    assert [line.removeprefix(f"{path}:") for line in error.value.findings] == [
        "5: a.c.0.d is there twice, first in line 4: keep one", "7: a.b is there twice, first in line 2: keep one",
        "4: deep", "6: behind", "4: near", "1: none", "1: all",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"format": "1"}, ["format is '1', this version reads 1"]),
        ({"format": ...}, ["format is None, this version reads 1"]),
        ({"platform": ...}, ["platform is None; write one of linux-ppc64le, linux-64"]),
        ({"virtual": {"__a": "1", "b": "2", "__c": 3}}, [
            "virtual: __c is 3; write a text, a number in quotes",
            "virtual: b is not a virtual package; they begin with two underscores",
        ]),
        ({"virtual": []}, []), ({"virtual": ["a"]}, ["virtual: write a mapping"]),
        ({"channels": {}}, ["channels: write a mapping"]), ({"channels": ...}, ["channels: write a mapping"]),
        ({"channels": {"a": "file://x"}}, ["channels: a is file://x; write https://..., http://... or file:///..."]),
        ({"channels": {"a": "file:///x", "b": "http://y/@z", "c": "https://z"}}, []),
        ({"channels": {"a": "http://m@y/"}}, ["channels: a has a name or password in it, which is for no file"]),
        ({"channels": {"A": "ftp://m@y/"}}, ["channels: A is not an alias; write small letters, digits, - and _"]),
        ({"specs": "a"}, ["specs: write a list of what is asked for, such as [python 3.7.*, powerai 1.7.0.*]"]),
        ({"specs": ["a", " "]}, ["specs: write a list of what is asked for, such as [python 3.7.*, powerai 1.7.0.*]"]),
        ({"specs": ["a", 1]}, ["specs: write a list of what is asked for, such as [python 3.7.*, powerai 1.7.0.*]"]),
        ({"packages": {}}, ["packages: unknown field; there are format, platform, virtual, channels, specs"]),
    ],
)  # fmt: skip
def test_each_fault_of_specs_is_a_line(tmp_path: Path, changes: dict[str, Any], expected: list[str]) -> None:
    content = {key: value for key, value in {**HEAD, **changes}.items() if value is not ...}
    path = written(tmp_path, yaml.safe_dump(content, sort_keys=False))
    if not expected:
        assert specs.load(path).specs == ("one",)
        return
    assert [line.split(": ", 1)[1] for line in findings(path, specs.load)] == expected


def test_every_kind_of_difference_is_said(tmp_path: Path) -> None:
    def of(**packages: Any) -> Lock:
        return Lock(asked(), {name: dataclasses.replace(ONE, name=name, **more) for name, more in packages.items()})

    old = of(a={}, b={}, c={}, d={}, e={}, f={}, g={})
    new = of(
        a={}, c={"version": "2"}, d={"build": "1", "channel": "main"}, e={"sha256": "b" * 64, "size": 8},
        f={"size": 8}, g={"channel": "main"}, z={"channel": "main"},
    )  # fmt: skip
    assert list(lock.difference(old, new)) == [
        "- b 1.0 0 (ibm)",
        "~ c 1.0 0 -> 2 0",
        "~ d 1.0 0 -> 1.0 1 (main, was ibm)",
        f"! e 1.0 0: same version and build, another archive: sha256 {'b' * 64}",
        "~ f 1.0 0: channel, size or dependencies are written otherwise",
        "~ g 1.0 0: channel, size or dependencies are written otherwise",
        "+ z 1.0 0 (main)",
    ]
    assert list(lock.difference(old, old)) == []


def test_what_a_channel_lacks_or_has_otherwise_is_said(tmp_path: Path) -> None:
    index = {"packages": {"one-1.0-0.conda": {"sha256": SUM, "size": 8}}, "packages.conda": {"three": {"size": 7}}}
    (tmp_path / "noarch").mkdir()
    (tmp_path / "noarch/repodata.json").write_text(json.dumps(index))
    (tmp_path / "linux-64").mkdir()
    (tmp_path / "linux-64/repodata.json").write_text(json.dumps({"packages": {"four": {"sha256": "b" * 64}}}))
    packages = {
        "four": dataclasses.replace(ONE, name="four", file="four", subdir="linux-64"),
        "two": dataclasses.replace(ONE, name="two", file="two"), "one": ONE,
        "three": dataclasses.replace(ONE, name="three", file="three"),
    }  # fmt: skip
    locked = Lock(asked(), packages)
    assert channel.unlike(locked, {"ibm": f"{tmp_path.as_uri()}/"}) == [
        f"four: ibm has sha256 {'b' * 64}, locked is {SUM}",
        "two: ibm has no noarch/two",
        "one: ibm has size 8, locked is 7",
    ]
    for text in ("{", "[]"):
        (tmp_path / "noarch/repodata.json").write_text(text)
        with pytest.raises(HalEnvironmentsError, match=f"^{tmp_path.as_uri()}/noarch: its index cannot be read: "):
            channel.index(tmp_path.as_uri(), "noarch")
    for place in ("nonsense", f"{tmp_path.as_uri()}/none"):
        with pytest.raises(HalEnvironmentsError, match=f"^{place}/noarch/repodata.json cannot be read: "):
            channel.fetch(place, "noarch")


@pytest.mark.parametrize(("length", "fits"), [(119, True), (120, False)])
def test_a_place_fits_into_the_first_line_of_a_program(tmp_path: Path, length: int, fits: bool) -> None:
    found = declared.environments(
        [], name="t", root="/" + "x" * (length - 1), directory=tmp_path, platform="linux-64", variable="v"
    )
    words = f"v: the place '/{'x' * (length - 1)}' has to be an absolute path of up to 120 letters, digits, . _ + -"
    assert found == {"problems": [] if fits else [words], "environments": []}


def test_entries_that_are_wrong_together_are_told_by_their_names(tmp_path: Path) -> None:
    plain = {"version": "1", "lock": "l", "python": "3.7", "retired": "gone"}
    found = declared.environments(
        [
            plain, 5, {**plain, "name": "other", "version": "2"}, {**plain, "lock": None, "python": ""},
            {**plain, "title": 1},
        ],
        name="t", root="/r", directory=tmp_path, platform="linux-64", variable="v",
    )  # fmt: skip
    assert found["problems"] == [
        "v[1]: not a mapping; write version, lock, python",
        "v[3] (t/1): no lock: write the name of a lock file without .lock.yml",
        "v[3] (t/1): no python: write two or three numbers, in quotes, such as '3.7'",
        "v[4] (t/1): title is not text",
        "v: t/1 is declared 3 times",
    ]


def test_a_lock_is_compared_with_the_specs_beside_it(tmp_path: Path) -> None:
    path, beside = tmp_path / "tools-1.lock.yml", tmp_path / "tools-1.yml"
    locked = Lock(asked("one", virtual={}, channels={"ibm": "https://ibm.example"}), {})
    beside.write_text(yaml.safe_dump(HEAD))
    assert check.against_specs(locked, path, beside) == []
    other = {"platform": "linux-ppc64le", "virtual": {"__a": "1"}, "channels": {"b": "https://b"}, "specs": ["two"]}
    beside.write_text(yaml.safe_dump({**HEAD, **other}))
    assert check.against_specs(locked, path, beside) == [
        f"{path}: {field} is not that of tools-1.yml: run hal-environments lock tools-1" for field in other
    ]
    beside.write_text("[]")
    assert check.against_specs(locked, path, beside) == [f"{beside}:1: not a mapping of fields"]


def test_a_mirror_names_each_disagreement_and_goes_on(tmp_path: Path) -> None:
    paths = []
    for name, changes in (("a", {}), ("b", {"size": 8}), ("c", {"channels": "https://other"}), ("d", {"format": 2})):
        (tmp_path / name).mkdir()
        head = {**HEAD, **{key: {"ibm": value} if key == "channels" else value for key, value in changes.items()
                           if key != "size"}}  # fmt: skip
        body = {**BODY, "size": changes.get("size", 7)}
        paths.append(written(tmp_path / name, yaml.safe_dump({**head, "packages": {"one": body}}, sort_keys=False)))
    found = mirrored([paths[3], *paths[:3]])
    assert found["problems"] == [
        f"{paths[3]}:1: format is 2, this version reads 1",
        f"{paths[1]}: one: one-1.0-0.conda of ibm has another checksum or size in another lock file",
        f"{paths[2]}: one: one-1.0-0.conda of ibm has another address in another lock file",
    ]
    entry = {key: BODY[key] for key in ("channel", "subdir", "file", "size", "sha256")}
    assert found["packages"] == [{**entry, "url": "https://ibm.example/noarch/one-1.0-0.conda"}]


def test_the_program_says_what_it_checked_and_refuses_what_it_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ["--folder", str(tmp_path)]
    assert cli.main(["check", *folder]) == 2
    assert capsys.readouterr().err == f"{tmp_path}: no lock file: run hal-environments lock NAME\n"
    path = one(tmp_path)
    assert cli.main(["check", *folder]) == 0
    told = f"{path}: 1 packages for linux-64, complete"
    assert capsys.readouterr().out == f"{told}; not compared with channels (--fetch)\n"
    assert cli.main(["check", *folder, "--from", f"ib={tmp_path}"]) == 2
    assert capsys.readouterr().err == "--from ib: the channels are ibm\n"
    assert cli.main(["diff", str(path), str(path)]) == 0
    assert capsys.readouterr().out == "nothing changes\n"
    monkeypatch.setattr(channel, "fetch", lambda url, subdir: json.dumps({"packages": {ONE.file: {}}}).encode())
    assert cli.main(["check", *folder, "--fetch"]) == 0
    assert capsys.readouterr().out == f"{told}\n"
    for words in ("ibm", "ibm=", "=x"):
        with pytest.raises(SystemExit):
            cli.main(["check", *folder, "--from", words])
        assert f"{words!r} is not CHANNEL=PLACE" in capsys.readouterr().err

    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "check", interrupted)
    assert cli.main(["check", *folder]) == 130
