"""What stands proven, and what a run that read more than its digest counts proves: nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.register import witness
from tests.register.depends import Tree
from tests.register.proofs import FOLDER, Proof, Register

PROJECT = Path(__file__).resolve().parents[4]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with three scenarios, one of which has slow tests, and a file of slow tests."""
    files = {
        "molecule/a/molecule.yml": "",
        "molecule/b/molecule.yml": "",
        "molecule/b/tests/test_b.py": "import pytest\n\n\n@pytest.mark.slow\ndef test_long(): ...\n",
        "molecule/c/molecule.yml": "",
        "tests/unit/test_long.py": "import pytest\npytestmark = pytest.mark.slow\n",
        "roles/r/tasks/main.yml": "",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def proof(register: Register, name: str, day: int) -> Proof:
    """A proof of what it is now."""
    return Proof(register.digest(name), "tree", f"2026-11-{day:02d} 08:00", 90, {"podman": "4.3.1"})


def test_a_proof_stands_for_what_was_green_and_for_nothing_else(root: Path) -> None:
    register = Register(Tree(root))
    assert register.names == ["a", "b", "c", "slow-b", "slow-unit-test_long"]
    for name, day in (("a", 3), ("b", 2)):
        register.prove(name, proof(register, name, day))
    (root / "molecule/b/molecule.yml").write_text("changed")

    later = Register(Tree(root))
    assert (later.stands("a"), later.stands("b"), later.stands("c")) == (True, False, False)
    assert later.seconds("b") == 90, "a proof of something else tells how long it takes"


def test_never_proven_comes_first_then_the_oldest(root: Path) -> None:
    register = Register(Tree(root))
    register.prove("a", proof(register, "a", 2))
    register.prove("c", proof(register, "c", 1))
    (root / "ansible.cfg").write_text("changed")
    assert Register(Tree(root)).unproven(["a", "b", "c"]) == ["b", "c", "a"]


@pytest.mark.parametrize("text", ["", "[", "digest: x\n", "- 1\n", "\x80"])
def test_a_file_that_is_no_proof_proves_nothing(root: Path, text: str) -> None:
    (root / FOLDER).mkdir(parents=True)
    (root / FOLDER / "a.yml").write_bytes(text.encode("latin-1"))
    assert not Register(Tree(root)).stands("a")


def test_what_is_withdrawn_is_to_be_proven_again_and_keeps_its_time(root: Path) -> None:
    register = Register(Tree(root))
    register.prove("a", proof(register, "a", 2))
    register.withdraw("a")
    assert not register.stands("a")
    later = Register(Tree(root))
    assert (later.stands("a"), later.seconds("a")) == (False, 90)
    assert later.unproven(["a"]) == ["a"]


def test_every_slow_proof_of_this_project_is_a_file_with_slow_tests() -> None:
    files = Register(Tree(PROJECT)).files.values()
    assert "tests/rollout/test_full.py" in files
    assert "tests/unit/tests/register/test_proofs.py" not in files, "it has the mark in a string alone"


def test_slow_tests_depend_on_what_every_run_has(root: Path) -> None:
    paths = {"tests/conftest.py", "tests/unit/conftest.py", "plugins/inventory/hal.py", "ansible.cfg"}
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")
    assert paths <= Register(Tree(root)).files_of("slow-unit-test_long")


def watched(root: Path, program: str, **more: str) -> tuple[Tree, frozenset[str]]:
    """The files that a Python program read."""
    notes = root.parent / f"{root.name}.read"
    env = {**os.environ, **witness.environment(root, notes), **more}
    subprocess.run([sys.executable, "-c", program], env=env, cwd=root, check=True)
    tree = Tree(root)
    return tree, witness.read(tree, notes)


@pytest.mark.parametrize(
    ("program", "seen"),
    [
        ("open('molecule/a/molecule.yml').read()", {"molecule/a/molecule.yml"}),
        ("import os; os.chdir('molecule'); open('../roles/r/tasks/main.yml')", {"roles/r/tasks/main.yml"}),
        (
            "from pathlib import Path; Path('molecule/a/molecule.yml').resolve().read_bytes()",
            {"molecule/a/molecule.yml"},
        ),
        ("import os\nif not os.fork(): open('molecule/a/molecule.yml')\nelse: os.wait()", {"molecule/a/molecule.yml"}),
        (
            "import subprocess as s, sys; s.check_call([sys.executable, '-c', 'open(\"molecule/a/molecule.yml\")'])",
            {"molecule/a/molecule.yml"},
        ),
        ("open(b'molecule/a/molecule.yml').read()", {"molecule/a/molecule.yml"}),
        ("import os; os.closerange(3, 99); open('molecule/a/molecule.yml')", {"molecule/a/molecule.yml"}),
        ("import os; os.listdir('molecule')", set()),
        ("open('/etc/hostname')", set()),
    ],
)
def test_a_run_is_watched(root: Path, program: str, seen: set[str]) -> None:
    always = "molecule/c/molecule.yml"
    assert watched(root, f"open({always!r})\n{program}")[1] == seen | {always}


def test_a_module_that_was_compiled_before_is_seen(root: Path) -> None:
    (root / "tool.py").write_text("x = 1\n")
    program = "import sys; sys.path.insert(0, '.'); import tool"
    env = {"PYTHONDONTWRITEBYTECODE": ""}
    watched(root, program, **env)
    assert list((root / "__pycache__").glob("tool.*.pyc"))
    (root.parent / f"{root.name}.read").unlink()
    assert "tool.py" in watched(root, program, **env)[1]


def test_what_was_read_and_does_not_count_is_named(root: Path) -> None:
    (root / "molecule/a/converge.yml").write_text("roles: [r]\n")
    (root / "plugins/filter").mkdir(parents=True)
    (root / "plugins/filter/hal_f.py").write_text("import hal_p\n")
    for path in ("hal_p/__init__.py", "roles/s/tasks/main.yml", "roles/s/defaults/main.yml"):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text("")
    tree = Tree(root)
    counted = tree.of_scenario("a")
    seen = tree.files - {"tests/unit/test_long.py"} - {name for name in tree.files if name.startswith("molecule/")}
    assert witness.uncounted(tree, seen, counted) == ["roles/s/defaults/main.yml"]


def test_who_checks_the_site_s_variables_reads_all_playbooks_for_names(root: Path) -> None:
    (root / "playbooks").mkdir()
    for name in ("validate", "power"):
        (root / f"playbooks/{name}.yml").write_text("[]\n")
    tree = Tree(root)
    seen = ["playbooks/power.yml"]
    assert witness.uncounted(tree, seen, frozenset()) == seen
    assert witness.uncounted(tree, seen, {"playbooks/validate.yml"}) == []
