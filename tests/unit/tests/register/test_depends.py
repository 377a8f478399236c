"""What a scenario depends on: each way of naming a file, in a tree where nothing else leads to it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.register import witness
from tests.register.depends import Tree

PROJECT = Path(__file__).resolve().parents[4]
CONVERGE = "molecule/x/converge.yml"
TEST = "molecule/x/tests/test_x.py"
EMPTY = {"molecule/x/molecule.yml": "", "roles/r/tasks/main.yml": "", "roles/r/templates/a.j2": ""}


def tree(root: Path, files: Mapping[str, str]) -> Tree:
    """A checkout with these files, none of them committed."""
    for path, text in {**EMPTY, **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return Tree(root)


WHOLE_ROLE = {"roles/r/tasks/main.yml", "roles/r/templates/a.j2"}


@pytest.mark.parametrize(
    ("files", "reached"),
    [
        ({CONVERGE: "- hosts: all\n  roles:\n    - r\n"}, WHOLE_ROLE),
        ({CONVERGE: "- hosts: all\n  roles: [r]\n"}, WHOLE_ROLE),
        ({CONVERGE: "- hosts: all\n  roles:\n    - {role: r, tags: [r]}\n"}, WHOLE_ROLE),
        ({CONVERGE: "- include_role:\n    name: r\n"}, WHOLE_ROLE),
        ({CONVERGE: "- import_playbook: ../virtual_hal/x.yml", "molecule/virtual_hal/x.yml": "roles: [r]"}, WHOLE_ROLE),
        ({TEST: 'play(PROJECT / "playbooks" / "p.yml")', "playbooks/p.yml": "roles: [r]\n"}, WHOLE_ROLE),
        ({TEST: 'play("playbooks/p.yml")', "playbooks/p.yml": "roles: [r]\n"}, WHOLE_ROLE),
        ({TEST: 'x = PROJECT / "roles" / name / "templates" / "a.j2"'}, set()),
        ({TEST: 'x = PROJECT / "roles/r/templates/a.j2"'}, {"roles/r/templates/a.j2"}),
        ({CONVERGE: "roles: [s]\n", "roles/s/meta/main.yml": "dependencies: [{role: r}]\n"}, WHOLE_ROLE),
        ({CONVERGE: "- hal_m: {}\n", "plugins/modules/hal_m.py": "", "plugins/action/hal_m.py": ""},
         {"plugins/modules/hal_m.py", "plugins/action/hal_m.py"}),
        ({CONVERGE: "- hal_m: {}\n", "plugins/modules/hal_m.py": "from ansible.module_utils.hal_node.u import f",
          "hal_node/__init__.py": "", "hal_node/u.py": "from .v import w",
          "hal_node/v/__init__.py": "", "hal_node/v/w.py": ""},
         {"hal_node/__init__.py", "hal_node/u.py", "hal_node/v/__init__.py", "hal_node/v/w.py"}),
        ({CONVERGE: "x: \"{{ lookup('hal_l') }}\"", "plugins/lookup/hal_l.py": "from hal_p.a import b",
          "hal_p/__init__.py": "", "hal_p/a.py": "from . import c", "hal_p/c.py": ""},
         {"plugins/lookup/hal_l.py", "hal_p/__init__.py", "hal_p/a.py", "hal_p/c.py"}),
        ({CONVERGE: "x: '{{ y | hal_f }}'", "plugins/filter/hal_many.py": "{'hal_f': f, 'hal_g': g}"},
         {"plugins/filter/hal_many.py"}),
        ({CONVERGE: "argv: [python, -m, hal_p, lock]", "hal_p/__init__.py": "", "hal_p/deep/a.py": ""},
         {"hal_p/__init__.py", "hal_p/deep/a.py"}),
        ({TEST: "import hal_node.a", "hal_node/__init__.py": "", "hal_node/a.py": 'run(["python", "-m", "hal_node.p"])',
          "hal_node/p/__init__.py": "", "hal_node/p/__main__.py": ""}, {"hal_node/p/__main__.py"}),
        ({TEST: 'run([sys.executable, "-m", "hal_p"])', "hal_p/__init__.py": "", "hal_p/a.py": ""}, {"hal_p/a.py"}),
        ({TEST: 'program = bin / "hal-p"\n', "hal_p/__init__.py": "", "hal_p/a.py": ""}, {"hal_p/a.py"}),
        ({CONVERGE: "argv: [python, -m, hal_cluster.p, x]", "hal_cluster/p/a.py": ""}, {"hal_cluster/p/a.py"}),
        ({TEST: 'run([sys.executable, "-m", "hal_cluster.p"])', "hal_cluster/p/a.py": ""}, {"hal_cluster/p/a.py"}),
        ({TEST: 'program = bin / "hal-p"\n', "hal_cluster/p/a.py": ""}, {"hal_cluster/p/a.py"}),
        ({TEST: 'import_module("hal_p.a")', "hal_p/__init__.py": "", "hal_p/a.py": ""}, {"hal_p/a.py"}),
        ({TEST: "from beside import x", "molecule/x/tests/beside.py": "import testing.promises",
          "molecule/virtual_hal/testing/promises.py": "x = ['roles/r/templates/a.j2']"}, {"roles/r/templates/a.j2"}),
        ({CONVERGE: "src: ../../tests/unit/captures", "tests/unit/captures/a.txt": ""}, {"tests/unit/captures/a.txt"}),
        ({CONVERGE: "x: '{{ y | hal_f }}'", "plugins/filter/hal_f.py": "{'hal_f': hal_p.f}; import hal_p.a",
          "hal_p/__init__.py": "", "hal_p/a.py": "HERE.with_name('table.yml')", "hal_p/table.yml": ""},
         {"hal_p/table.yml"}),
        ({CONVERGE: "roles: [s]\n", "roles/s/vars/main.yml": "{{ q('file', role_path ~ '/../r/templates/a.j2') }}"},
         {"roles/r/templates/a.j2"}),
        ({TEST: 'play(PROJECT / "playbooks/audit.yml")', "playbooks/audit.yml": ""}, WHOLE_ROLE),
        ({TEST: "assert rollout.audited() == []", "playbooks/audit.yml": ""}, WHOLE_ROLE | {"playbooks/audit.yml"}),
        ({CONVERGE: "src: cases/*.yml", "molecule/x/cases/a.yml": "roles: [r]"}, WHOLE_ROLE),
        ({"ansible.cfg": "", "requirements.lock": "", "inventory/hal/cluster.yml": "",
          "molecule/virtual_hal/packages/r.yml": "", "plugins/callback/hal_c.py": "import hal_p",
          "hal_p/__init__.py": ""},
         {"ansible.cfg", "requirements.lock", "inventory/hal/cluster.yml", "molecule/virtual_hal/packages/r.yml",
          "plugins/callback/hal_c.py", "hal_p/__init__.py"}),
    ],
)  # fmt: skip
def test_what_is_named_counts(files: Mapping[str, str], reached: set[str], tmp_path: Path) -> None:
    assert reached <= tree(tmp_path, files).of_scenario("x")


@pytest.mark.parametrize(
    "files",
    [
        {CONVERGE: "# roles: [r]\n"},
        {TEST: '"""See roles/r/templates/a.j2."""\n'},
        {TEST: 'DOCUMENTATION = r"""\nroles/r/templates/a.j2\n"""\n'},
        {CONVERGE: "- hal_m:", "plugins/modules/hal_m.py": 'fail("playbooks/p.yml")', "playbooks/p.yml": "roles: [r]"},
        {"plugins/connection/hal_m.py": 'transport = "hal_m"',
         "plugins/lookup/hal_m.py": 'x = "roles/r/templates/a.j2"'},
        {TEST: "import hal_cluster.audit.resources.table", "hal_cluster/audit/resources/table.py": '{"hal_m": f}',
         "plugins/modules/hal_m.py": 'x = "roles/r/templates/a.j2"'},
        {"molecule/y/converge.yml": "roles: [r]\n"},
        {TEST: 'ROOT = HERE / "../.."\n', "molecule/y/converge.yml": "roles: [r]\n"},
        {"inventory/hal/group_vars/all/x.yml": "roles: [r]"},
        {TEST: "import hal_node.a", "hal_node/__init__.py": "", "hal_node/a.py": 'OWNER = "hal-p"',
         "hal_p/a.py": 'x = "roles/r/templates/a.j2"'},
        {TEST: 'sys.path.insert(0, str(HERE / "roles" / "r"))\n'},
        {TEST: 'sys.path[:0] = [str(HERE / "roles" / "r")]\n'},
        {TEST: 'PROJECT / "Makefile"', "Makefile": "test:\n\tmolecule/y/run roles/r/templates/a.j2\n"},
        {CONVERGE: "roles: [s]", "roles/s/README.md": "`roles/r/templates/a.j2`"},
    ],
)  # fmt: skip
def test_what_is_only_spoken_of_does_not(files: Mapping[str, str], tmp_path: Path) -> None:
    of_x = tree(tmp_path, files).of_scenario("x")
    assert not {name for name in of_x if name.startswith("roles/")}


def test_proofs_do_not(tmp_path: Path) -> None:
    """The test of the gate names their folder: with them, its own proof would change what it is a proof of."""
    test = "tests/rollout/test_x.py"
    here = tree(tmp_path, {test: 'PROOFS = PROJECT / "tests/proofs"\n', "tests/proofs/x.yml": ""})
    assert test in here.of_tests(test)
    assert "tests/proofs/x.yml" not in here.of_tests(test)
    assert witness.uncounted(here, [test, "tests/proofs/x.yml"], here.of_tests(test)) == []


def test_a_digest_is_of_names_contents_and_run_bits(tmp_path: Path) -> None:
    def digest() -> str:
        here = Tree(tmp_path)
        return here.digest(here.of_scenario("x"))

    tree(tmp_path, {CONVERGE: "roles: [r]\n"})
    before = digest()
    assert digest() == before
    (tmp_path / "roles/r/templates/a.j2").write_text("x")
    changed = digest()
    (tmp_path / "roles/r/templates/a.j2").chmod(0o755)
    runs = digest()
    (tmp_path / "roles/r/templates/a.j2").rename(tmp_path / "roles/r/templates/b.j2")
    assert len({before, changed, runs, digest()}) == 4


@cache
def of_project(name: str) -> frozenset[str]:
    """What a scenario of this project depends on."""
    return Tree(PROJECT).of_scenario(name)


@pytest.mark.parametrize(
    "path",
    [
        "molecule/time/tests/test_time.py",
        "molecule/time/hal.yml",
        "molecule/base.yml",
        "molecule/conftest.py",
        "molecule/virtual_hal/testing/promises.py",
        "molecule/virtual_hal/packages/recipes.yml",
        "molecule/virtual_hal/image/packages.txt",
        "molecule/virtual_hal/strategies/mitogen_linear.py",
        "roles/time/templates/chrony.conf.j2",
        "roles/time/expect.yml",
        "roles/repositories/defaults/main.yml",
        "inventory/hal/cluster.yml",
        "inventory/hal/group_vars/all/time.yml",
        "inventory/virtual/group_vars/all/connection.yml",
        "plugins/inventory/hal.py",
        "plugins/callback/hal_provenance.py",
        "plugins/action/hal_expect.py",
        "plugins/modules/hal_expect.py",
        "hal_node/expect/evaluate.py",
        "plugins/lookup/hal.py",
        "hal_inventory/derive/slices.py",
        "hal_cluster/expect/prepare.py",
        "hal_cluster/audit/sealing.py",
        "playbooks/authorities.yml",
        "ansible.cfg",
        "requirements.lock",
    ],
)
def test_scenario_time_depends_on(path: str) -> None:
    assert path in of_project("time")


def test_what_other_roles_are_does_not_concern_scenario_time() -> None:
    own = ("roles/time/", "roles/repositories/")
    others = {name for name in of_project("time") if name.startswith("roles/") and not name.startswith(own)}
    assert others == {"roles/backup/files/make_key_pair.sh"}, "it makes a key of the site's authorities"


@pytest.mark.parametrize(
    ("scenario", "path"),
    [
        ("slurm", "roles/munge/tasks/main.yml"),
        ("reimage", "playbooks/reimage.yml"),
        ("reimage", "hal_cluster/reimage/engine.py"),
        ("reimage", "molecule/virtual_hal/bmc/machine.py"),
        ("reimage", "roles/provision_server/files/provision_store.py"),
        ("node_health", "roles/infiniband/expect.yml"),
        ("python2", "plugins/modules/hal_slurm_node.py"),
        ("python2", "tests/unit/hal_node/slurm/captures"),
        ("wmlce", "hal_cluster/environments/lock.py"),
        ("mirror", "hal_cluster/packages/lock.py"),
        ("provision_server", "playbooks/image.yml"),
    ],
)
def test_what_else_scenarios_depend_on(scenario: str, path: str) -> None:
    assert any(name == path or name.startswith(f"{path}/") for name in of_project(scenario))


def test_the_roles_of_which_an_image_is_made_count_with_their_tasks() -> None:
    settings = yaml.safe_load((PROJECT / "inventory/virtual/group_vars/all/image.yml").read_text())
    assert settings["image_roles"]
    tasks = {f"roles/{role}/tasks/{part}.yml" for role, parts in settings["image_roles"].items() for part in parts}
    assert tasks <= of_project("provision_server")
