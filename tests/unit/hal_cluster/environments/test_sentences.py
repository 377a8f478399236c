"""Faults of declared environments, lock files and specs in whole sentences, several at once; differences of locks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster.environments import specs
from hal_cluster.environments.declared import FIELDS, environments
from hal_cluster.environments.errors import FileError
from hal_cluster.environments.lock import Lock, Package, difference, digest, dump, load
from hal_cluster.environments.mirrored import mirrored
from tests.unit.hal_cluster.environments.conftest import RELEASE, Site, asked, entry
from tests.unit.hal_cluster.environments.test_declared import problems

VERSION = "write letters, digits, . _ + -, in quotes"
NAME = "write the name of a lock file without .lock.yml"
PYTHON = "write two or three numbers, in quotes, such as '3.7'"
AGAIN = "hal-environments lock x writes it"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": None, "lock": "", "python": 3}, [
            f"no version: {VERSION}", f"no lock: {NAME}", "python is the number 3; put it in quotes, or 3.10 is 3.1"]),
        ({"version": "a b", "lock": "-", "python": "3"}, [
            f"version is 'a b'; {VERSION}", f"lock is '-'; {NAME}", f"python is '3'; {PYTHON}"]),
        ({"version": "1.0123456789ab.2"}, [
            "version is '1.0123456789ab.2', which looks like a prefix with its digest; choose another"]),
        ({"a": 1, "b": 2}, [f"{name} is not a field; there are {', '.join(FIELDS)}" for name in "ab"]),
        ({"name": 3, "default": 1, "hidden": "no"}, [
            "name is 3; write small letters, digits, _ and -", "default is 1; write true or false",
            "hidden is 'no'; write true or false"]),
        ({"title": 1, "retired": ["x"], "deprecated": {}, "default": False}, [
            f"{name} is not text" for name in ("title", "retired", "deprecated")]),
        ({"retired": "x"}, ["is retired and the default; make another version the default"]),
        ({"imports": {"a": 1}}, ["imports is {'a': 1}; write a list of Python modules"]),
        ({"imports": ["a.b", "a."]}, ["imports is ['a.b', 'a.']; write a list of Python modules"]),
        ({"post_link": {"run": [], "x": 1}}, [
            "post_link: write run and skip, lists of packages, and environment, a mapping"]),
        ({"post_link": {"skip": "a"}}, ["post_link: run and skip are lists of packages"]),
        ({"post_link": {"run": {"a": 1}, "environment": []}}, [
            "post_link: run and skip are lists of packages",
            "post_link: environment is a mapping of texts; put yes and no in quotes"]),
        ({"post_link": {"run": ["b", "a", "c"], "skip": ["a", "b"]}}, ["post_link: a, b is in run and in skip"]),
    ],
)  # fmt: skip
def test_each_fault_of_an_entry_is_told_whole(site: Site, change: dict[str, Any], words: list[str]) -> None:
    label = f"tools_environments[1] ({change.get('name') or 'tools'}/{change.get('version', '1')})"
    found = problems(site, entry("0", name="other"), entry(**change))
    assert [line for line in found if line.startswith("tools_environments[")] == [f"{label}: {line}" for line in words]


def test_faults_with_a_lock_file_and_of_the_list_are_told(site: Site) -> None:
    path = f"{site.folder}/locks/tools-1.lock.yml"
    where = "tools_environments[0] (tools/1)"
    wrong = entry(python="2.7", post_link={"run": ["x"], "skip": ["python", "y"]})
    assert problems(site, wrong, platform="linux-ppc64le") == [
        f"{where}: {path}: is for linux-64, the nodes are linux-ppc64le",
        f"{where}: {path}: has Python {RELEASE}.0, declared is 2.7",
        f"{where}: {path}: has no package x, which post_link names",
        f"{where}: {path}: has no package y, which post_link names",
    ]
    assert problems(site, entry(python=f"{RELEASE}.0")) == []
    several = [entry(), entry(), entry("2"), entry("3", default=False), entry("4", retired="x", default=False),
               entry("1", name="a", default=False), entry("2", name="a", default=False)]  # fmt: skip
    assert problems(site, 7, *several, "x") == [
        *(f"tools_environments[{at}]: not a mapping; write version, lock, python" for at in (0, 8)),
        "tools_environments: tools/1 is declared 2 times",
        "tools_environments: tools has the defaults 1, 1, 2; one is right",
        "tools_environments: a has no default; write `default: true` for one of 1, 2",
    ]
    for length, refused in ((119, False), (120, True)):
        root = "/" + "x" * (length - 1)
        words = "has to be an absolute path of up to 120 letters, digits, . _ + -"
        assert problems(site, entry(), root=root) == (
            [f"tools_environments: the place {root!r} {words}"] if refused else []
        )


def test_an_entry_is_whole(site: Site) -> None:
    retired = entry("0", default=False, retired="x")
    post_link = {"run": [], "skip": ["places"], "environment": {"A": "b"}}
    declared = entry(title="T", hidden=True, deprecated="soon", imports=("os",), post_link=post_link)
    named = entry("2", name="other", default=True)
    found = environments(
        [retired, declared, named], name="tools", root="/r", directory=site.folder / "locks", platform="linux-64",
        variable="v",
    )  # fmt: skip
    lock = load(site.folder / "locks/tools-1.lock.yml")
    mine = digest(lock, [], ["places"])
    one, other = found["environments"]
    assert {key: one[key] for key in one if key not in ("packages", "metas")} == {
        "id": "tools/1", "at": 1, "name": "tools", "version": "1", "title": "T", "default": True, "hidden": True,
        "deprecated": "soon", "link": "/r/tools/1", "prefix": f"/r/tools/1.{mine}", "digest": mine, "python": RELEASE,
        "imports": ["os"], "post_link": post_link, "platform": "linux-64", "channels": dict(lock.asked.channels),
    }  # fmt: skip
    assert (other["id"], other["at"], other["digest"] == mine) == ("other/2", 2, False)
    assert other["post_link"] == {"run": [], "skip": [], "environment": {}}
    assert one["metas"] == sorted(f"{p.name}-{p.version}-{p.build}.json" for p in lock.packages.values())
    maths = lock.packages["maths"]
    (listed,) = [package for package in one["packages"] if package["name"] == "maths"]
    assert listed == {
        "name": "maths", "version": "1.10", "build": maths.build, "build_number": maths.number, "channel": "ibm",
        "subdir": "linux-64", "file": maths.file, "size": maths.size, "sha256": maths.sha256, "license": maths.license,
        "depends": list(maths.depends), "noarch": "",
    }  # fmt: skip


BODY: dict[str, Any] = {
    "version": "1", "build": "0", "channel": "c", "subdir": "noarch", "file": "p-1-0.conda", "size": 1,
    "sha256": "a" * 64,
}  # fmt: skip
HEAD: dict[str, Any] = {"format": 1, "platform": "linux-64", "channels": {"c": "https://c"}, "specs": ["p"]}


def refused(path: Path, read: Callable[[Path], Any], content: Any) -> list[str]:
    """What a reader finds in a file, without its name and lines."""
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    with pytest.raises(FileError) as found:
        read(path)
    return [line.removeprefix(f"{path}:").partition(": ")[2] for line in found.value.findings]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": 1, "y": 2}, ["x: unknown field", "y: unknown field"]),
        ({"version": "", "build": None, "sha256": ""}, [
            f"no version: {AGAIN}", f"no build: {AGAIN}",
            f"no sha256: 64 hex digits, as the channel has them; {AGAIN}"]),
        ({"version": 1.1, "build": 0}, [f"{name} is the number {value}; put it in quotes"
                                        for name, value in (("version", 1.1), ("build", 0))]),
        ({"sha256": "A" * 64}, [f"sha256 is {'A' * 64}; write 64 hex digits in small letters; {AGAIN}"]),
        *(({"size": size}, [f"size is {size}; write the archive's bytes; {AGAIN}"]) for size in (0, -1, True, "7")),
        ({"depends": "a"}, ["depends: write a list of texts"]), ({"depends": [1]}, ["depends: write a list of texts"]),
        ({"noarch": "any"}, ["noarch is any; write python or generic, or leave it out"]),
        ({"channel": "d", "subdir": "linux-32", "file": "p-1-0.zip"}, [
            "channel d is none of c", "subdir linux-32 is neither linux-64 nor noarch",
            "file is p-1-0.zip; version and build make it p-1-0.tar.bz2"]),
    ],
)  # fmt: skip
def test_each_fault_of_a_locked_package_is_told(tmp_path: Path, change: dict[str, Any], words: list[str]) -> None:
    content = {**HEAD, "packages": {"p": {**BODY, **change}}}
    assert refused(tmp_path / "x.lock.yml", load, content) == [f"p: {line}" for line in words]


def test_a_smallest_lock_file_is_read_and_what_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.lock.yml"
    path.write_text(yaml.safe_dump({**HEAD, "packages": {"p": BODY}}))
    package = Package("p", "1", "0", 0, "c", "noarch", "p-1-0.conda", 1, "a" * 64, "", (), "")
    asked_for = specs.Specs("linux-64", {}, {"c": "https://c"}, ("p",))
    assert load(path) == Lock(asked_for, {"p": package})
    assert load(path).packages["p"].label == "p 1 0"
    listed: list[Any] = [None, {}, ["p"]]
    for packages in listed:
        words = ["packages: none; run hal-environments lock x"]
        assert refused(path, load, {**HEAD, "packages": packages}) == words
    assert refused(path, load, {**HEAD, "a": 1, "packages": {"p": "1", "q": 2}}) == [
        "a: unknown field; there are format, platform, virtual, channels, specs, packages",
        "p: not a mapping of version, build, ...", "q: not a mapping of version, build, ...",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"a": 1, "b": 2}, [f"{name}: unknown field; there are format, platform, virtual, channels, specs"
                            for name in "ab"]),
        ({"format": "1", "platform": None}, [
            "format is '1', this version reads 1", "platform is None; write one of linux-ppc64le, linux-64"]),
        ({"virtual": ["x"]}, ["virtual: write a mapping"]), ({"channels": {}}, ["channels: write a mapping"]),
        ({"virtual": {"__a": 1, "b": "2", "__c": 3}}, [
            "virtual: __a is 1; write a text, a number in quotes",
            "virtual: __c is 3; write a text, a number in quotes",
            "virtual: b is not a virtual package; they begin with two underscores"]),
        ({"channels": {"A": "https://a", "b": "file://b", "c": "https://me@c/", "d": "https://d/@x",
                       "e": "file:///e"}}, [
            "channels: A is not an alias; write small letters, digits, - and _",
            "channels: b is file://b; write https://..., http://... or file:///...",
            "channels: c has a name or password in it, which is for no file"]),
        *(({"specs": given}, ["specs: write a list of what is asked for, such as [python 3.7.*, powerai 1.7.0.*]"])
          for given in ("p", [], [" "], ["p", 1])),
    ],
)  # fmt: skip
def test_each_fault_of_specs_is_told(tmp_path: Path, change: dict[str, Any], words: list[str]) -> None:
    assert refused(tmp_path / "x.yml", specs.load, {**HEAD, **change}) == words


def test_what_changes_is_told_a_line_a_package() -> None:
    def lock(*packages: Package) -> Lock:
        return Lock(asked("p"), {one.name: one for one in packages})

    one = Package("p", "1", "0", 0, "c", "noarch", "p-1-0.conda", 1, "a" * 64, "", ("a",), "")
    gone, new = replace(one, name="a"), replace(one, name="z", channel="d")
    for other, words in (
        (one, []), (replace(one, version="2"), ["~ p 1 0 -> 2 0"]),
        (replace(one, build="1", channel="d"), ["~ p 1 0 -> 1 1 (d, was c)"]),
        (replace(one, sha256="b" * 64), [f"! p 1 0: same version and build, another archive: sha256 {'b' * 64}"]),
        (replace(one, channel="d"), ["~ p 1 0: channel, size or dependencies are written otherwise"]),
    ):  # fmt: skip
        assert list(difference(lock(one, gone), lock(other, new))) == ["- a 1 0 (c)", *words, "+ z 1 0 (d)"]
    first = digest(lock(one))
    assert len(first) == 12
    for same in (replace(one, channel="d"), replace(one, size=2), replace(one, license="x", depends=(), number=1)):
        assert digest(lock(same)) == first
    for other in (replace(one, name="q"), replace(one, version="2"), replace(one, build="1"),
                  replace(one, subdir="x"), replace(one, sha256="b" * 64)):  # fmt: skip
        assert digest(lock(other)) != first
    assert digest(Lock(asked("p", platform="linux-ppc64le"), {"p": one})) != first
    assert digest(lock(one), ["a"]) != digest(lock(one), ["b"])


def test_a_lock_file_is_written_sorted_and_without_what_is_usual() -> None:
    one = Package("q", "1", "0", 0, "c", "noarch", "q-1-0.conda", 1, "a" * 64, "", (), "")
    two = Package("p", "1.10", "0", 2, "c", "noarch", "p-1.10-0.conda", 7, "b" * 64, "größe", ("z", "a"), "python")
    wanted = asked("q", "p", virtual={"__z": "1", "__a": "2"})
    text = dump(Lock(wanted, {"q": one, "p": two}), "x")
    assert text.startswith(
        "# Written by `hal-environments lock x` from x.yml. Read the difference before you commit it.\n"
    )
    found = yaml.safe_load(text)
    assert list(found) == ["format", "platform", "virtual", "channels", "specs", "packages"]
    assert list(found["virtual"].items()) == [("__a", "2"), ("__z", "1")]
    assert (found["format"], found["platform"], found["specs"]) == (1, "linux-64", ["q", "p"])
    assert list(found["packages"]) == ["p", "q"]
    assert found["packages"] == {
        "p": {"version": "1.10", "build": "0", "number": 2, "channel": "c", "subdir": "noarch", "file": two.file,
              "size": 7, "sha256": "b" * 64, "license": "größe", "depends": ["a", "z"], "noarch": "python"},
        "q": {"version": "1", "build": "0", "channel": "c", "subdir": "noarch", "file": one.file, "size": 1,
              "sha256": "a" * 64},
    }  # fmt: skip
    assert "größe" in text


def test_a_mirror_is_told_what_disagrees(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.lock.yml" for name in "abcd"]
    for path, head, body in (
        (paths[0], {}, {}), (paths[1], {"channels": {"c": "https://d/"}}, {}), (paths[2], {}, {"size": 2}),
        (paths[3], {"specs": []}, {}),
    ):  # fmt: skip
        path.write_text(yaml.safe_dump({**HEAD, **head, "packages": {"p": {**BODY, **body}}}))
    found = mirrored(paths)
    words = "p: p-1-0.conda of c has another"
    assert found["problems"][:2] == [
        f"{paths[1]}: {words} address in another lock file",
        f"{paths[2]}: {words} checksum or size in another lock file",
    ]  # fmt: skip
    assert len(found["problems"]) == 3
    assert found["packages"] == [{
        "channel": "c", "subdir": "noarch", "file": "p-1-0.conda", "url": "https://c/noarch/p-1-0.conda", "size": 1,
        "sha256": "a" * 64,
    }]  # fmt: skip
    assert mirrored(paths[:2], {"c": "file:///m/"})["problems"] == []
