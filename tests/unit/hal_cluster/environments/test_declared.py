"""What roles declare: faults in one line each, before any node is asked; modules; what a mirror is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster.environments.declared import environments
from hal_cluster.environments.mirrored import mirrored
from hal_cluster.rules import environments as rule
from hal_cluster.rules.lmod.declared import problems as module_problems
from hal_cluster.rules.lmod.files import files as module_files
from tests.unit.hal_cluster.environments.conftest import PROJECT, RELEASE, Site, entry

Write = Callable[..., Path]


def problems(site: Site, *entries: Any, **changes: Any) -> list[str]:
    words = {
        "name": "tools",
        "root": str(site.root),
        "platform": "linux-64",
        "variable": "tools_environments",
        **changes,
    }
    found = environments(list(entries), directory=site.folder / "locks", **words)
    assert not (found["problems"] and found["environments"]), "nothing is installed of half a declaration"
    return list(found["problems"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 1.1}, "version is the number 1.1; put it in quotes, or 3.10 is 3.1"),
        ({"version": ""}, "no version: write letters, digits"),
        ({"version": "../1"}, "version is '../1'; write letters"),
        ({"version": "1.0123456789ab"}, "which looks like a prefix with its digest; choose another"),
        ({"python": 3.7}, "python is the number 3.7"),
        ({"python": "three"}, "python is 'three'; write two or three numbers"),
        ({"python": "2.7"}, f"has Python {RELEASE}.0, declared is 2.7"),
        ({"lock": "a/b"}, "lock is 'a/b'; write the name of a lock file without .lock.yml"),
        ({"lock": "tools-9"}, "is not there: where its channels can be reached, run hal-environments lock tools-9"),
        ({"wish": 1}, "wish is not a field; there are version, lock, python"),
        ({"name": "Tools"}, "name is 'Tools'; write small letters"),
        ({"default": "yes"}, "default is 'yes'; write true or false"),
        ({"retired": "use 2"}, "is retired and the default; make another version the default"),
        ({"default": False}, "tools has no default; write `default: true` for one of 1"),
        ({"imports": "numpy"}, "imports is 'numpy'; write a list of Python modules"),
        ({"imports": ["os; import x"]}, "write a list of Python modules"),
        ({"post_link": ["a"]}, "post_link: write run and skip"),
        ({"post_link": {"run": ["a"], "skip": ["a"]}}, "post_link: a is in run and in skip"),
        ({"post_link": {"run": ["nothing"]}}, "has no package nothing, which post_link names"),
        ({"post_link": {"environment": {"X": True}}}, "environment is a mapping of texts; put yes and no in quotes"),
    ],
)
def test_each_fault_is_a_line_with_its_place(site: Site, change: dict[str, Any], words: str) -> None:
    found = problems(site, entry(**change))
    assert [line for line in found if words in line], found
    assert all(line.startswith("tools_environments") for line in found)


def test_what_is_right_has_no_fault(site: Site) -> None:
    assert problems(site, entry()) == []
    assert problems(site, entry(), entry("0", default=False, retired="too old", lock="gone")) == []


def test_entries_are_compared_with_each_other(site: Site) -> None:
    assert "tools_environments: tools/1 is declared 2 times" in problems(site, entry(), entry(default=False))
    assert "tools_environments: tools has the defaults 1, 2; one is right" in problems(site, entry(), entry("2"))
    assert problems(site, "wmlce")[0] == "tools_environments[0]: not a mapping; write version, lock, python"


def test_the_lock_file_s_own_faults_are_said_with_file_and_line(site: Site) -> None:
    path = site.folder / "locks" / "tools-1.lock.yml"
    path.write_text(path.read_text().replace("    sha256:", "    # sha256:", 1))
    found = problems(site, entry())
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if text == "  maths:")
    assert found[0].startswith(f"tools_environments[0] (tools/1): {path}:{line}: maths: no sha256: 64 hex digits")


def test_it_has_to_be_for_the_nodes_machine(site: Site) -> None:
    assert "is for linux-64, the nodes are linux-ppc64le" in problems(site, entry(), platform="linux-ppc64le")[0]


@pytest.mark.parametrize("root", ["apps", "/home/apps/", "/home/a b", "/" + "x" * 130])
def test_a_place_that_cannot_be_is_refused(site: Site, root: str) -> None:
    assert "has to be an absolute path" in problems(site, entry(), root=root)[0]


def test_hal_s_own_declaration_waits_for_its_lock_files(tmp_path: Path) -> None:
    """IBM's channel is not reached from here; the role says what to run, a line a version."""
    declared = yaml.safe_load((PROJECT / "roles/wmlce/defaults/main.yml").read_text())["wmlce_environments"]
    found = environments(
        declared, name="wmlce", root="/home/apps", directory=tmp_path, platform="linux-ppc64le",
        variable="wmlce_environments",
    )  # fmt: skip
    assert found["problems"] == [
        f"wmlce_environments[{at}] (wmlce/{one['version']}): {tmp_path}/{one['lock']}.lock.yml is not there: where its "
        f"channels can be reached, run hal-environments lock {one['lock']}, and commit it"
        for at, one in enumerate(declared)
    ]


def test_modules_of_environments_can_be_written(site: Site) -> None:
    declared = [entry(), entry("0", default=False, retired="use 1"), entry("2", default=False, hidden=True)]
    found = site.environments(*declared)
    modules = rule.modules(found, owner_role="tools", family="python_environment", help="more")
    modules += rule.retired(
        declared, name="tools", owner_role="tools", root=str(site.root), family="python_environment"
    )
    assert module_problems(modules) == []
    written = {one["path"]: one["content"] for one in module_files(modules, "/modules")}
    assert f'"{site.root}/tools/1/.hal/activate.lua"' in written["/modules/tools/1.lua"]
    retired = written["/modules/tools/0.lua"]
    assert "tools/0 is retired: use 1" in retired
    assert f'"{site.root}/tools/0/.hal/activate.lua"' in retired, "who has it loaded can unload it"
    assert 'family("python_environment")' in retired
    assert 'module_version("tools/1", "default")' in written["/modules/tools/.modulerc.lua"]
    assert 'hide_version("tools/2")' in written["/modules/tools/.modulerc.lua"]


def test_a_module_names_python_and_what_needs_it_by_conda_s_names(site: Site) -> None:
    (one,) = site.environments()
    python = ("python >=3.7,<3.8.0a0",)
    packages = [
        ("pytorch", "1.3.1", ("numpy", *python)), ("six", "1.14.0", ("python",)), ("python", "3.7.5", ("openssl",)),
        ("openssl", "1.1.1d", ()), ("python-dateutil", "1!2.8", python), ("_select", "2", python),
        ("zlib", "1", ("pythonx",)),
    ]  # fmt: skip
    locked = [{"name": name, "version": version, "depends": depends} for name, version, depends in packages]
    (module,) = rule.modules([{**one, "packages": locked}], owner_role="tools")
    assert module["extensions"] == ["python-dateutil/2.8", "python/3.7.5", "pytorch/1.3.1", "six/1.14.0"]


def test_nodes_are_told_what_they_compare(site: Site) -> None:
    found = rule.declared(site.environments())
    assert set(found[0]) == {"id", "at", "name", "version", "link", "prefix", "digest", "python", "metas"}
    assert "places-2.0-0.json" in found[0]["metas"]


def test_a_mirror_gets_each_package_once(write_lock: Write) -> None:
    paths = [write_lock("maths", name="one"), write_lock("maths", "pure", name="two")]
    found = mirrored(paths)
    assert found["problems"] == []
    names = [f"{one['channel']}/{one['subdir']}/{one['file']}" for one in found["packages"]]
    assert names == sorted(set(names))
    assert len(names) == 4
    assert found["packages"][0]["url"].startswith("https://ibm.example/conda/linux-64/maths-1.10-")
    assert mirrored(paths, {"ibm": "file:///media/ibm/"})["packages"][0]["url"].startswith(
        "file:///media/ibm/linux-64/"
    )


def test_two_lock_files_that_disagree_are_named(write_lock: Write) -> None:
    one, two = write_lock("maths", name="one"), write_lock("maths", name="two")
    text = two.read_text()
    at = text.index("sha256: ") + 8
    two.write_text(text[:at] + "a" * 64 + text[at + 64 :])
    assert "has another checksum or size in another lock file" in mirrored([one, two])["problems"][0]
