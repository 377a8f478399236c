"""make new-role: what it writes keeps the rules of the project, and what is left to decide is named."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.modules import PROJECT
from tools import new_role

NAME = "greeter"
LEFT = [f"roles/{NAME}:1: played by 0 plays in playbooks/layers; exactly one is right"]
# What the rules of these subjects say of a project: those that look at the files of roles and scenarios.
ASK = """
import sys
from pathlib import Path
from tests.contract import project, rules
subjects = sys.argv[1:]
for name, rule in sorted(project.RULES.items()):
    if name.split(".")[0] in subjects:
        print(*rule(project.PROJECT), sep="\\n", end="\\n")
"""
SUBJECTS = ("arguments", "faults", "layers", "role_shape", "scenarios", "tasks", "variables")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project's files in a folder, without what git does not know."""
    root = tmp_path / "a copy"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source, target = PROJECT / name, root / name
        if source.is_symlink() or source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    return root


def findings(root: Path, *subjects: str) -> list[str]:
    words = [sys.executable, "-c", ASK, *subjects]
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHONPATH": str(root), "HOME": str(root)}
    done = subprocess.run(words, cwd=root, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line]


def add(path: Path, behind: str, text: str) -> None:
    before = path.read_text()
    assert behind in before
    path.write_text(before.replace(behind, behind + text, 1))


def test_a_new_role_keeps_the_rules_once_what_is_printed_was_decided(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new_role.main([NAME], copy) == 0
    printed = capsys.readouterr().out
    assert findings(copy, "layers", "role_shape", "scenarios") == LEFT

    group, play = new_role.decisions(NAME)
    assert group in printed
    assert play in printed
    add(copy / "inventory/hal/cluster.yml", "\ngroups:\n", group.lstrip("\n"))
    layer = copy / "playbooks/layers/care.yml"
    layer.write_text(f"{layer.read_text().rstrip()}\n{play}")
    assert findings(copy, *SUBJECTS) == []


@pytest.mark.parametrize("name", ["Time", "9lives", "a-b", "a__b", "a_", "", "a/b", ".."])
def test_a_name_that_no_group_can_have_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert new_role.main([name], tmp_path) == 2
    said = f"new-role: {name!r} is not a name of a role: small letters, digits and _ between them, a letter first\n"
    assert capsys.readouterr() == ("", said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", ["roles/time", "molecule/time"])
def test_what_exists_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str], there: str) -> None:
    (tmp_path / there).mkdir(parents=True)
    assert new_role.main(["time"], tmp_path) == 2
    assert capsys.readouterr() == ("", f"new-role: {there} exists; choose another name\n")
    assert list((tmp_path / there).iterdir()) == []


def test_its_networks_are_nobody_s(tmp_path: Path) -> None:
    for number, scenario in enumerate(("a", "b", "d"), 1):
        (tmp_path / "molecule" / scenario).mkdir(parents=True)
        text = f"networks: {{management: 10.65.{number}.0/24, ipoib: 10.66.4.0/24}}\n"
        (tmp_path / "molecule" / scenario / "hal.yml").write_text(text)
    assert new_role.free_network(tmp_path) == 5


@pytest.mark.parametrize("name", ["gpu", "login", "all", "localhost"])
def test_a_name_that_nodes_have_already_is_refused(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Its play would run on all of them."""
    assert new_role.main([name], PROJECT) == 2
    said = f"{name} is a group or a node already, and a role runs on the group with its name; choose another name"
    assert capsys.readouterr() == ("", f"new-role: {said}\n")
    assert not (PROJECT / "roles" / name).exists()
