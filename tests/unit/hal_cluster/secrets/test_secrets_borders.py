"""Secrets: the last value that is refused and the first that is taken, and files that are none."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest
import yaml

from hal_cluster.secrets.declared import Recipe, declared
from hal_cluster.secrets.errors import SecretError
from hal_cluster.secrets.known import problems, values_of_tests
from hal_cluster.secrets.site import Site
from hal_cluster.secrets.vault import Vault


@pytest.mark.parametrize(("field", "least"), [("bytes", 32), ("characters", 16)])
def test_a_secret_is_made_as_long_as_its_recipe_says_and_not_too_short(field: str, least: int) -> None:
    made = Recipe.model_validate({field: least, "after_rotation": "x"}).make()
    assert (len(base64.b64decode(made)) if field == "bytes" else len(made)) == least
    assert made != Recipe.model_validate({field: least, "after_rotation": "x"}).make()
    with pytest.raises(ValueError, match=f"greater than or equal to {least}"):
        Recipe.model_validate({field: least - 1, "after_rotation": "x"})


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ({"bytes": 32, "characters": 16, "after_rotation": "x"}, "give one of bytes, characters and given"),
        ({"bytes": 32, "given": "ask", "after_rotation": "x"}, "give one of bytes, characters and given"),
        ({"bytes": 32, "after_rotation": ""}, "at least 1 character"),
        ({"bytes": 32, "after_rotation": "x", "byte": 1}, "Extra inputs are not permitted"),
    ],
)
def test_a_recipe_is_one_way_and_has_nothing_else(recipe: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Recipe.model_validate(recipe)


def test_what_is_given_is_not_made_and_no_recipe_changes() -> None:
    recipe = Recipe(given="ask the directory", after_rotation="x")
    with pytest.raises(SecretError, match=r"^it is not made here: ask the directory$"):
        recipe.make()
    with pytest.raises(ValueError, match="frozen"):
        recipe.__setattr__("given", "other")


def project(root: Path, **roles: tuple[str, str]) -> None:
    for name, (defaults, recipes) in roles.items():
        for path, text in (("defaults/main.yml", defaults), ("meta/secrets.yml", recipes)):
            (root / "roles" / name / path).parent.mkdir(parents=True, exist_ok=True)
            (root / "roles" / name / path).write_text(text)


def test_secrets_come_in_order_each_once_and_comments_name_none(tmp_path: Path) -> None:
    recipe = "{bytes: 32, after_rotation: x}"
    project(
        tmp_path,
        b=("k: '{{ vault_z }} {{ vault_a }} {{ vault_a }}' # vault_c\n# vault_d\nl: x#vault_e\n",
           f"vault_a: {recipe}\nvault_z: {recipe}\nvault_e: {recipe}\n"),
        a=("k: 1\n", ""),
    )  # fmt: skip
    (tmp_path / "roles" / "file.txt").write_text("vault_f")
    (tmp_path / "hal_cluster" / "x").mkdir(parents=True)
    (tmp_path / "hal_cluster" / "x" / "secrets.yml").write_text(f"vault_y: {recipe}\nvault_b: {recipe}\n")
    found = declared(tmp_path)
    assert [(one.role, one.name) for one in found] == [
        ("b", "vault_a"), ("b", "vault_e"), ("b", "vault_z"), ("x", "vault_b"), ("x", "vault_y")
    ]  # fmt: skip
    with pytest.raises(ValueError, match="frozen"):
        found[0].__setattr__("name", "other")


@pytest.mark.parametrize(
    ("recipes", "said"),
    [
        ("a: [", "roles/a/meta/secrets.yml: is not a mapping of secrets to how they are made"),
        ("just words", "roles/a/meta/secrets.yml: is not a mapping of secrets to how they are made"),
        ("vault_b: {bytes: 32, after_rotation: x}\nvault_c: {bytes: 32, after_rotation: x}\n"
         "vault_k: {bytes: 32, after_rotation: x}\n",
         "roles/a/meta/secrets.yml: vault_b is in no default of the role; take it away"),
        ("vault_k: {after_rotation: x}",
         "roles/a/meta/secrets.yml: Value error, give one of bytes, characters and given"),
        ("vault_k: {bytes: 31, after_rotation: x}",
         "roles/a/meta/secrets.yml: bytes: Input should be greater than or equal to 32"),
    ],
)  # fmt: skip
def test_recipes_that_are_none_are_named_with_their_file(tmp_path: Path, recipes: str, said: str) -> None:
    project(tmp_path, a=("k: '{{ vault_k }}'\n", recipes))
    with pytest.raises(SecretError) as caught:
        declared(tmp_path)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("abcdefghijk", "has fewer than 12 characters"),
        ("abcdefghijkl", ""),
        ("abcdeabcdeabcde", "has fewer than 6 different characters"),
        ("abcdefabcdefabc", ""),
        (" padded-to-more ", ""),
        ("  abcdefghijk  ", "has fewer than 12 characters"),
        ("change_me", "is a well-known default"),
        (12345678901234, "is empty"),
        ("   ", "is empty"),
    ],
)
def test_the_border_of_a_secret(value: object, why: str) -> None:
    assert problems({"vault_a": value}, []) == ([f"vault_a {why}"] if why else [])


def test_each_secret_that_is_none_is_named_in_order() -> None:
    values = {"vault_b": "", "vault_a": "of-a-test-site", "vault_c": "4nother-l0ng-one"}
    assert problems(values, ["of-a-test-site\n"]) == [
        "vault_a is that of a test site", "vault_b is empty"
    ]  # fmt: skip


def test_a_file_of_a_test_site_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "molecule" / "x"
    folder.mkdir(parents=True)
    for name, text in {"a": "$ANSIBLE_VAULT;1.1\n", "b": "a: [", "c": "", "d": "k: found\nn: 3\n"}.items():
        (folder / f"vault_{name}.yml").write_text(text)
    assert list(values_of_tests(tmp_path)) == ["found"]


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """A vault with a password of just enough characters."""
    (tmp_path / "password").write_text("twelve chars\n")
    (tmp_path / "password").chmod(0o600)
    return Vault(tmp_path / "password")


def test_eleven_characters_are_too_few_for_the_vault(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(" eleven char\n")
    (tmp_path / "password").chmod(0o600)
    with pytest.raises(SecretError) as caught:
        Vault(tmp_path / "password")
    assert str(caught.value) == f"{tmp_path / 'password'}: the vault's password has fewer than 12 characters"


@pytest.mark.parametrize(("mode", "taken"), [(0o600, True), (0o400, True), (0o604, False), (0o620, False)])
def test_nobody_else_reads_the_password(tmp_path: Path, mode: int, taken: bool) -> None:
    (tmp_path / "password").write_text("twelve chars\n")
    (tmp_path / "password").chmod(mode)
    if taken:
        Vault(tmp_path / "password")
        return
    with pytest.raises(SecretError, match=r"others may read the vault's password; chmod 600 it$"):
        Vault(tmp_path / "password")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "it is no YAML"),
        ("[a]", "it is not a mapping of variables"),
        ("a: plain\n", "a is in plain text; ansible-vault encrypt {path}"),
    ],
)
def test_a_file_of_secrets_that_is_none_is_refused(tmp_path: Path, vault: Vault, text: str, said: str) -> None:
    path = tmp_path / "vault_x.yml"
    path.write_text(text)
    with pytest.raises(SecretError) as caught:
        vault.read(path)
    assert str(caught.value) == f"{path}: {said.format(path=path)}"


def test_what_is_no_secret_text_may_stand_in_plain(tmp_path: Path, vault: Vault) -> None:
    path = tmp_path / "vault_x.yml"
    path.write_text("a: '{{ other }}'\nb: 3\nc: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  00\n")
    assert vault.read(path) == {"a": "{{ other }}", "b": 3, "c": None}
    path.write_text("")
    assert vault.read(path) == {}
    with pytest.raises(SecretError) as caught:
        vault.write(path, {"a": "b"})
    assert str(caught.value) == f"{path} is not encrypted as a whole, so it is left alone; change it by hand"


def test_a_file_is_written_encrypted_for_its_user_alone(tmp_path: Path, vault: Vault) -> None:
    path = tmp_path / "new" / "below" / "vault_x.yml"
    path.parent.mkdir(parents=True)
    path.with_name(".vault_x.yml.new").write_text("of a run that was ended")
    values = {"b": "x" * 500, "a": "y"}
    vault.write(path, dict(values))
    assert path.read_text().startswith("$ANSIBLE_VAULT;1.2;AES256;hal\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]
    assert vault.read(path) == values
    plain = vault._run("decrypt", path.read_text(), str(path))
    assert plain.splitlines()[1:] == ["---", "a: y", f"b: {'x' * 500}"]
    assert yaml.safe_load(plain) == values


def test_a_site_is_a_folder_with_a_model(tmp_path: Path, vault: Vault) -> None:
    with pytest.raises(SecretError) as caught:
        Site(tmp_path, vault)
    assert str(caught.value) == f"{tmp_path}: no site; there is no cluster.yml in it"
