"""Plugins find the project through inventory plugin `hal`, and a checkout runs its own code: docs/design.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
PACKAGES = ("hal_cluster", "hal_inventory", "hal_node")
INVENTORY = PROJECT / "plugins/inventory/hal.py"
# Loads files as Ansible does, and says which cannot be.
LOAD = """
import json, runpy, sys
shipped, *paths = sys.argv[1:]
import ansible.module_utils
ansible.module_utils.__path__.append(shipped)  # by the project's ansible.cfg
wrong = {}
for path in paths:
    try:
        runpy.run_path(path)
    except Exception as error:
        wrong[path] = str(error)
print(json.dumps(wrong))
"""
# Starts a program of Ansible's.
START = """
import importlib, sys
importlib.import_module("ansible.cli." + sys.argv[1]).main(sys.argv[1:])
"""


def uninstalled(
    program: str, words: Sequence[object], environment: Mapping[str, str], before: Sequence[Path] = ()
) -> subprocess.CompletedProcess[str]:
    """Return a finished program, by a Python that has all that the project needs, and not the project.

    `before`: where modules are looked for first.
    """
    places = [*map(str, before), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    first = f"import sys; sys.path[:] = [*{places}, *filter(None, sys.path)]"
    return subprocess.run(
        # -S: no .pth file of .venv, which names the project.
        [sys.executable, "-S", "-c", f"{first}\n{program}", *map(str, words)],
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        timeout=600,
    )


def other_tree(folder: Path) -> Path:
    """Return a tree whose packages are not this checkout's: each says so when it is imported."""
    for name in PACKAGES:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"raise ImportError('{name} of another tree')\n")
    return folder


def not_loaded(*paths: Path, before: Sequence[Path] = ()) -> dict[str, str]:
    done = uninstalled(LOAD, [PROJECT / "plugins/module_utils", *paths], {}, before)
    assert done.returncode == 0, done.stderr
    return {Path(path).relative_to(PROJECT).as_posix(): said for path, said in json.loads(done.stdout).items()}


def test_after_our_inventory_each_plugin_finds_this_checkout(tmp_path: Path) -> None:
    plugins = sorted(PROJECT.glob("plugins/*/*.py"))
    assert not_loaded(INVENTORY, *plugins, before=[other_tree(tmp_path)]) == {}


def test_without_it_they_do_not() -> None:
    """Each that imports the project: what the test above would miss is not among those that it asks."""
    plugins = sorted(PROJECT.glob("plugins/*/*.py"))
    imports = [path for path in plugins if any(f"\nfrom {name}" in path.read_text() for name in PACKAGES)]
    imports.remove(INVENTORY)
    wrong = not_loaded(*imports)
    assert [PROJECT / path for path in wrong] == imports
    assert all(said.startswith("No module named 'hal_") for said in wrong.values()), wrong


def test_a_program_of_ansible_runs_the_code_of_the_checkout_that_it_works_in(tmp_path: Path) -> None:
    words = ["adhoc", "hal01", "-c", "local", "-m", "debug", "-a", "msg={{ ['hal01', 'hal02'] | hal_fold }}"]
    done = uninstalled(START, words, {"ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg")}, [other_tree(tmp_path)])
    assert "msg: hal[01-02]" in done.stdout, done.stdout + done.stderr


def test_code_of_another_tree_that_is_loaded_is_refused(tmp_path: Path) -> None:
    loaded = other_tree(tmp_path) / "hal_node/__init__.py"
    loaded.write_text("")
    words = ["inventory", "--list"]
    config = {"ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg")}
    done = uninstalled(f"import hal_node\n{START}", words, config, [tmp_path])
    assert done.stderr.splitlines() == [f"ERROR! hal_node of {tmp_path} is loaded, which is not {PROJECT}"]


def test_where_nothing_has_the_project_one_line_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("hal01\n")
    config = {"ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"), "ANSIBLE_INVENTORY_ENABLED": "ini"}
    done = uninstalled(START, ["playbook", "-i", tmp_path / "hosts", PROJECT / "playbooks/site.yml"], config)
    assert " ".join(done.stderr.partition("ERROR! ")[2].split()) == (
        "No module named 'hal_inventory': name plugin hal in enable_plugins (ANSIBLE_INVENTORY_ENABLED), or use"
        " the Ansible that make setup installs into .venv"
    )
