"""The variables that a role's promises are worked out with: where they come from, and which of several holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader

from hal_cluster.expect.errors import ExpectationsError
from hal_cluster.expect.roles import find_role, layers, variables_in

LAYERS = ("defaults", "outer", "vars", "own", "extra")


@pytest.fixture
def roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of roles of its own."""
    monkeypatch.setattr("ansible.constants.DEFAULT_ROLES_PATH", [str(tmp_path / "roles")])
    monkeypatch.setattr("hal_cluster.expect.roles.load_extra_vars", lambda _loader: {"extra": "extra"})
    return tmp_path / "roles"


def role(roles: Path, name: str, **files: Any) -> str:
    """Write a role; `meta` are its dependencies."""
    (roles / name).mkdir(parents=True)
    for folder, content in files.items():
        path = roles / name / folder / "main.yml"
        path.parent.mkdir()
        content = {"dependencies": content} if folder == "meta" else content
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(roles / name)


def named(first: str, *others: str) -> dict[str, str]:
    """A layer that says itself for its own variable and for each that an upper layer has, too."""
    return dict.fromkeys((first, *others), first)


def test_of_several_values_the_upper_layers_holds(roles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hal_cluster.expect.roles.load_extra_vars", lambda _loader: named("extra", "role_name"))
    above = {name: LAYERS[at:] for at, name in enumerate(LAYERS)}
    given = {name: named(name, *above[name], "role_name") for name in LAYERS}
    path = role(roles, "demo", defaults=given["defaults"], vars=given["vars"])
    found = variables_in(path, DataLoader(), given["outer"], given["own"])
    assert {name: found[name] for name in LAYERS} == {name: name for name in LAYERS}
    assert (found["role_name"], found["ansible_role_name"], found["role_path"]) == ("demo", "demo", path)


def test_extra_variables_of_the_command_line_are_there(roles: Path) -> None:
    found = variables_in(role(roles, "demo"), DataLoader(), {"extra": "host"}, {"extra": "task"})
    assert found["extra"] == "extra"


def test_a_role_has_those_of_its_dependencies_below_its_own(roles: Path) -> None:
    for name in ("first", "second"):
        role(roles, name, defaults=named(name, "both", "all"), vars={f"{name}_fixed": name, "fixed": name, "set": name})
    path = role(
        roles, "demo", meta=["first", {"role": "second"}], defaults={"all": "demo"}, vars={"set": "demo"},
    )  # fmt: skip
    found = layers(path, DataLoader())
    assert found.defaults == {"first": "first", "second": "second", "both": "second", "all": "demo"}
    fixed = {"first_fixed": "first", "second_fixed": "second", "fixed": "second", "set": "demo"}
    assert found.fixed == fixed
    assert found.folder == path


def test_a_dependency_of_a_dependency_counts_and_a_circle_ends(roles: Path) -> None:
    role(roles, "third", meta=[{"name": "demo"}], defaults={"third": 3})
    role(roles, "second", meta=[{"role": "third", "when": "x"}], defaults={"second": 2})
    path = role(roles, "demo", meta=["second"], defaults={"demo": 1})
    assert layers(path, DataLoader()).defaults == {"third": 3, "second": 2, "demo": 1}


@pytest.mark.parametrize("meta", ["", "[]", "galaxy_info: {}", "dependencies:", "dependencies: [{tags: [x]}, '']"])
def test_a_role_need_not_depend_on_any(meta: str, roles: Path) -> None:
    path = role(roles, "demo", defaults={"a": 1})
    (roles / "demo/meta").mkdir()
    (roles / "demo/meta/main.yml").write_text(meta)
    found = layers(path, DataLoader())
    assert (found.defaults, found.fixed) == ({"a": 1}, {})


def test_a_dependency_that_is_nowhere_is_named(roles: Path) -> None:
    with pytest.raises(ExpectationsError, match="there is no role nowhere in "):
        layers(role(roles, "demo", meta=["nowhere"]), DataLoader())


def test_defaults_may_be_a_folder_of_files(roles: Path) -> None:
    path = role(roles, "demo")
    for name in ("a", "b"):
        file = roles / "demo/defaults/main" / f"{name}.yml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{name}: 1\n")
    assert layers(path, DataLoader()).defaults == {"a": 1, "b": 1}


@pytest.mark.parametrize("folder", ["defaults", "vars"])
@pytest.mark.parametrize(("text", "words"), [("[a]", "has to be a mapping of variables"), ("{", "cannot be loaded: ")])
def test_what_cannot_be_variables_is_an_error_with_its_place(folder: str, text: str, words: str, roles: Path) -> None:
    path = role(roles, "demo", **{folder: text})
    with pytest.raises(ExpectationsError) as refused:
        layers(path, DataLoader())
    assert str(refused.value).startswith(f"{path}/{folder} {words}")


def test_a_role_is_looked_for_beside_the_playbook_then_in_the_path_then_beside_its_caller(
    roles: Path, tmp_path: Path
) -> None:
    loader = DataLoader()
    loader.set_basedir(str(tmp_path / "book"))
    caller = tmp_path / "others/caller"
    folders = [tmp_path / "book/roles", roles, tmp_path / "others"]
    with pytest.raises(ExpectationsError) as refused:
        find_role("demo", loader, str(caller))
    assert str(refused.value) == f"there is no role demo in {', '.join(map(str, folders))}"
    for folder in reversed(folders):
        path = role(folder, "demo")
        assert find_role("demo", loader, str(caller)) == path
    with pytest.raises(ExpectationsError, match=r"there is no role other in \S+book/roles, \S+roles$"):
        find_role("other", loader, None)
