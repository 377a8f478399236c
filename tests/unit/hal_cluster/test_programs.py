"""hal_cluster/programs.py and lookup hal_program: a program comes to a node with all that it imports, and after it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader

from hal_cluster import programs
from tests.unit.interpreters import NODES, interpreter
from tests.unit.modules import loaded

PROJECT = Path(__file__).resolve().parents[3]
NEWER = "environments/files/environment_link.py"  # of rattler, which brings its own Python
ENTRIES = sorted(
    name
    for path in PROJECT.glob("roles/*/files/*.py")
    if "__main__" in path.read_text() and (name := str(path.relative_to(PROJECT / "roles"))) != NEWER
    if any(file.startswith(f"{programs.PACKAGE}/") for file in programs.files(path))
)


def test_imports_of_all_forms_come_along_each_before_who_needs_it(tmp_path: Path) -> None:
    texts = {
        "main.py": "import os, one\ndef go():\n    from two import x\nfrom hal_node.expect import values\n",
        "one.py": "from hal_node import printable\n",
        "two.py": "import one as first\n",
        "not_imported.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = list(programs.files(tmp_path / "main.py"))
    assert sorted(found) == [
        "hal_node/__init__.py", "hal_node/expect/__init__.py", "hal_node/expect/values.py", "hal_node/printable.py",
        "main.py", "one.py", "two.py",
    ]  # fmt: skip
    assert found[-1] == "main.py"
    assert found.index("hal_node/printable.py") < found.index("one.py") < found.index("two.py")
    assert programs.folders(found) == ["hal_node", "hal_node/expect"]


def test_who_import_each_other_come_once(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import b\n")
    (tmp_path / "b.py").write_text("import a\n")
    assert list(programs.files(tmp_path / "a.py")) == ["b.py", "a.py"]


@pytest.mark.parametrize("version", NODES)
@pytest.mark.parametrize("entry", ENTRIES)
def test_each_program_starts_under_the_pythons_of_nodes(tmp_path: Path, entry: str, version: str) -> None:
    """In its own folder and with nothing of ours elsewhere, as on a node."""
    program = PROJECT / "roles" / entry
    for name, text in programs.files(program).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    argv = [interpreter(version), "-B", "-E", str(tmp_path / program.name), "--help"]
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd="/", env=environment)
    assert not re.search(r"^(Import|ModuleNotFound|Syntax)Error", done.stderr, re.MULTILINE), done.stderr


def test_each_program_that_a_role_asks_for_was_started() -> None:
    texts = {path.parts[-3]: path.read_text() for path in PROJECT.glob("roles/*/vars/main.yml")}
    calls = {role: re.findall(r"query\('hal_program', (.*?), folder", text) for role, text in texts.items()}
    asked = {f"{role}/files/{name}" for role, found in calls.items() for name in re.findall(r"'(.*?)'", str(found))}
    assert len(asked) > 10
    assert asked - {NEWER} <= set(ENTRIES)


def test_a_program_that_needs_ansible_is_refused(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("from hal_node.judges import judge\n")
    with pytest.raises(ImportError, match=r"^hal_node/judges\.py imports ansible\..*: that is there for modules alone"):
        programs.files(tmp_path / "main.py")


def test_the_lookup_gives_files_and_folders() -> None:
    lookup = loaded("hal_program", "lookup").LookupModule(loader=DataLoader())
    lookup._load_name = "hal_program"
    lookup.set_options = lambda var_options, direct: vars(lookup).update(_asked={"directories": False, **direct})
    lookup.get_option = lambda name: lookup._asked[name]
    program = str(PROJECT / "roles/lmod/files/hal_modules.py")
    files = lookup.run([program], {}, folder="/usr/libexec/hal-modules")
    names = [one["path"].removeprefix("/usr/libexec/hal-modules/") for one in files]
    assert names == ["hal_node/__init__.py", "hal_node/lock.py", "hal_node/text.py", "hal_modules.py"]
    assert files[-1]["content"] == Path(program).read_text(encoding="utf-8")
    folders = lookup.run([program], {}, folder="/x", directories=True)
    assert folders == [{"path": "/x/hal_node", "mode": "0755"}]


def test_what_is_no_program_is_refused_by_name(tmp_path: Path) -> None:
    lookup = loaded("hal_program", "lookup").LookupModule(loader=DataLoader())
    lookup.set_options = lambda var_options, direct: None
    lookup.get_option = {"directories": False, "folder": "/x"}.get
    (tmp_path / "wrong.py").write_text("if\n")
    with pytest.raises(AnsibleError, match=r"lookup hal_program: .*/wrong\.py: invalid syntax \(wrong\.py, line 1\)"):
        lookup.run([str(tmp_path / "wrong.py")], {})
    with pytest.raises(AnsibleError, match=r"lookup hal_program: there is no nothing\.py among the role's files"):
        lookup.run(["nothing.py"], {})
