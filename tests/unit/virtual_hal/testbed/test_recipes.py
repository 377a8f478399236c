"""recipes.yml is refused with file, line and field, all findings at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed import recipes
from testbed.recipes import RecipeError
from testbed.repository import RECIPES

GOOD = """\
munge:
  summary: Enables uid and gid authentication
  payload: [munge]
  users: [{name: munge, home: /run/munge}]
  folders:
    /etc/munge: {mode: "0700", owner: munge, group: munge}
  units: [munge.service]
"""


def refused(tmp_path: Path, text: str) -> list[str]:
    """Return the findings for a file with this text, without the folder's name."""
    path = tmp_path / "recipes.yml"
    path.write_text(text)
    with pytest.raises(RecipeError) as caught:
        recipes.load(path)
    return [line.replace(f"{tmp_path}/", "") for line in str(caught.value).splitlines()]


def test_the_projects_own_recipes_are_accepted() -> None:
    names = recipes.load(RECIPES / "recipes.yml")
    assert {"munge", "chrony", "slurm-slurmd", "slurm-slurmdbd", "mariadb-server", "MySQL-python"} <= set(names)


def test_a_good_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "recipes.yml"
    path.write_text(GOOD)
    recipe = recipes.load(path)["munge"]
    assert recipe.folders["/etc/munge"].mode == "0700"
    assert recipe.users[0].shell == "/sbin/nologin"


def test_an_unknown_field_is_named_with_its_line(tmp_path: Path) -> None:
    (finding,) = refused(tmp_path, GOOD.replace("folders:", "folder:"))
    assert finding.startswith("recipes.yml:5: munge.folder: unknown field; the fields are summary, arches, payload,")


def test_a_mode_that_yaml_would_read_as_a_number_is_refused(tmp_path: Path) -> None:
    (finding,) = refused(tmp_path, GOOD.replace('"0700"', "0700"))
    assert finding.startswith("recipes.yml:6: munge.folders./etc/munge.mode: ")


def test_an_owner_that_nobody_makes_is_refused(tmp_path: Path) -> None:
    (finding,) = refused(tmp_path, GOOD.replace("owner: munge", "owner: mungo"))
    assert finding == (
        "recipes.yml:6: munge.folders./etc/munge: owner 'mungo' is made by no package that this one requires"
    )


def test_a_required_package_without_recipe_is_refused(tmp_path: Path) -> None:
    (finding,) = refused(tmp_path, GOOD + "  requires: [munge-libs]\n")
    assert finding == "recipes.yml:8: munge.requires.0: no recipe makes 'munge-libs'"


def test_a_unit_without_suffix_is_refused(tmp_path: Path) -> None:
    (finding,) = refused(tmp_path, GOOD.replace("[munge.service]", "[munge]"))
    assert finding.startswith("recipes.yml:7: munge.units.0: ")


def test_a_stand_in_whose_unit_has_no_file_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "files/puppet-agent/opt/puppet"
    own.parent.mkdir(parents=True)
    own.write_text("")
    (finding,) = refused(
        tmp_path, "puppet-agent:\n  summary: x\n  stand_in: true\n  version: '6'\n  units: [puppet.service]\n"
    )
    assert finding == (
        "recipes.yml:5: puppet-agent.units.0: no file puppet.service in files/puppet-agent/usr/lib/systemd/system/"
    )


def test_a_package_without_any_file_is_refused(tmp_path: Path) -> None:
    findings = refused(tmp_path, "empty:\n  summary: x\n  version: '1'\n")
    assert findings == [
        "recipes.yml:1: empty.payload: no payload, and no files in files/empty/: the package would be empty"
    ]


def test_a_package_given_twice_is_refused(tmp_path: Path) -> None:
    (finding,) = refused(tmp_path, GOOD + GOOD)
    assert finding == "recipes.yml:8: munge: is there twice, first in line 1"


def test_all_findings_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    findings = refused(tmp_path, GOOD.replace("folders:", "folder:").replace("[munge.service]", "[munge]"))
    assert [finding.split(":")[1] for finding in findings] == ["5", "7"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: [", "recipes.yml:2: not YAML"),
        ("- a\n", "recipes.yml:1: must be a mapping"),
        ("", "recipes.yml:1: must be a mapping"),
    ],
)
def test_what_is_no_mapping_is_refused(tmp_path: Path, text: str, what: str) -> None:
    assert refused(tmp_path, text + "\n" if text else text)[0].startswith(what)


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"nothing\.yml: cannot be read: "):
        recipes.load(tmp_path / "nothing.yml")


def test_a_package_of_another_suite_has_to_be_one_of_the_recipe(tmp_path: Path) -> None:
    (finding,) = refused(tmp_path, GOOD + "  suites: {mungo: sid}\n")
    assert finding == "recipes.yml:8: munge.suites.mungo: 'mungo' is in none of payload, libraries and private"


def test_libraries_for_nobody_are_refused(tmp_path: Path) -> None:
    text = "tool:\n  summary: Words\n  version: '1'\n  stand_in: true\n  private: [libc6]\n"
    assert "recipes.yml:5: tool.private: no payload whose programs would run with them" in refused(tmp_path, text)


def test_a_suite_is_a_word(tmp_path: Path) -> None:
    (finding,) = refused(tmp_path, GOOD + "  suites: {munge: sid main}\n")
    assert finding.startswith("recipes.yml:8: munge.suites.munge: ")
