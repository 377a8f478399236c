"""make secrets, with the real ansible-vault: what is made, what is never touched, and what is refused."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from hal_cluster.secrets import cli, known
from hal_cluster.secrets.declared import declared
from hal_cluster.secrets.errors import SecretError
from hal_cluster.secrets.known import problems, site_problems, values_of_tests

PROJECT = Path(__file__).resolve().parents[4]
Program = Callable[..., tuple[int, str, str]]
MUNGE = "vault_munge_key: {bytes: 128, after_rotation: all nodes at once}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "inventory" / "hal" / "group_vars" / "all").mkdir(parents=True)
    (root / "inventory" / "hal" / "cluster.yml").touch()
    role(root, "munge", "# vault_old_key\nmunge_key: '{{ vault_munge_key }}'\n", MUNGE)
    role(
        root,
        "slurm",
        "slurm_database_password: '{{ vault_slurm_database_password }}'\n",
        "vault_slurm_database_password: {characters: 32, after_rotation: roll out}\n",
    )
    (tmp_path / "password").write_text("a long password of the vault\n")
    (tmp_path / "password").chmod(0o600)
    return root


def role(root: Path, name: str, defaults: str, recipes: str) -> None:
    for part in ("defaults", "meta"):
        (root / "roles" / name / part).mkdir(parents=True, exist_ok=True)
    (root / "roles" / name / "defaults" / "main.yml").write_text(defaults)
    (root / "roles" / name / "meta" / "secrets.yml").write_text(recipes)


@pytest.fixture
def program(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(root.parent / "password"))

    def run(*arguments: str) -> tuple[int, str, str]:
        status = cli.main(["--root", str(root), "--site", "hal", *arguments])
        said = capsys.readouterr()
        assert len(said.err.splitlines()) <= 1, "errors are one line each"
        return status, said.out, said.err

    return run


def file(root: Path, name: str) -> Path:
    return root / "inventory" / "hal" / "group_vars" / "all" / f"vault_{name}.yml"


def opened(path: Path) -> dict[str, str]:
    """What ansible-vault itself shows of a file."""
    vault = Path(sys.executable).with_name("ansible-vault")
    argv = [str(vault), "view", "--vault-password-file", os.environ["ANSIBLE_VAULT_PASSWORD_FILE"], str(path)]
    found: dict[str, str] = yaml.safe_load(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    return found


def test_missing_secrets_are_made_encrypted_and_shown_by_name_only(program: Program, root: Path) -> None:
    status, out, _ = program()
    assert status == 0
    key, password = opened(file(root, "munge"))["vault_munge_key"], opened(file(root, "slurm"))
    assert len(base64.b64decode(key, validate=True)) == 128
    assert re.fullmatch(r"[A-Za-z0-9]{32}", password["vault_slurm_database_password"])
    assert "made      vault_munge_key  inventory/hal/group_vars/all/vault_munge.yml\n" in out
    for name in ("munge", "slurm"):
        assert file(root, name).read_text().startswith("$ANSIBLE_VAULT;1.2;AES256;hal\n")
        assert file(root, name).stat().st_mode & 0o777 == 0o600
        assert not any(value in out for value in opened(file(root, name)).values())


def test_what_is_refused_drives_no_terminal(program: Program) -> None:
    status, out, said = program("--rotate", "x\x1b[2J")
    assert (status, out) == (2, "")
    assert "x\\x1b[2J" in said
    assert said[:-1].isprintable()


def test_what_is_there_is_never_touched_and_only_what_is_missing_is_added(program: Program, root: Path) -> None:
    program()
    before = {name: file(root, name).read_bytes() for name in ("munge", "slurm")}
    assert "made" not in program()[1]
    assert {name: file(root, name).read_bytes() for name in before} == before

    role(
        root,
        "munge",
        "munge_key: '{{ vault_munge_key }}'\nmunge_other_key: '{{ vault_munge_other_key }}'\n",
        MUNGE + MUNGE.replace("munge_key", "munge_other_key"),
    )
    kept = opened(file(root, "munge"))["vault_munge_key"]
    assert [line.split()[1] for line in program()[1].splitlines() if line.startswith("made")] == [
        "vault_munge_other_key"
    ]
    assert opened(file(root, "munge"))["vault_munge_key"] == kept
    assert file(root, "slurm").read_bytes() == before["slurm"]


def test_one_that_an_administrator_keeps_in_another_file_counts(program: Program, root: Path) -> None:
    own = file(root, "x").with_name("vault.yml")
    own.write_text("vault_munge_key: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  00\n")
    out = program()[1]
    assert "there     vault_munge_key  inventory/hal/group_vars/all/vault.yml\n" in out
    assert not file(root, "munge").exists()
    assert program("--rotate", "vault_munge_key")[2].endswith("is left alone; change it by hand\n")
    own.write_text("vault_munge_key: by hand\n")
    assert program()[2].startswith(f"{own}: vault_munge_key is in plain text; ansible-vault encrypt")


def test_rotation_replaces_one_and_says_what_is_to_be_done(program: Program, root: Path) -> None:
    program()
    old, other = opened(file(root, "munge"))["vault_munge_key"], file(root, "slurm").read_bytes()
    status, out, _ = program("--rotate", "vault_munge_key")
    assert (status, out.splitlines()[1]) == (0, "now do:   all nodes at once")
    assert opened(file(root, "munge"))["vault_munge_key"] != old
    assert file(root, "slurm").read_bytes() == other


def test_what_somebody_has_to_give_is_named_and_the_status_says_so(program: Program, root: Path) -> None:
    role(
        root,
        "munge",
        "k: '{{ vault_munge_key }}'\n",
        "vault_munge_key: {given: ask the directory, after_rotation: x}\n",
    )
    status, out, _ = program()
    assert status == 1
    assert re.search(
        r"^missing   vault_munge_key  ansible-vault edit .*/vault_munge.yml: ask the directory$", out, re.M
    )
    assert program("--rotate", "vault_munge_key")[2] == (
        "vault_munge_key is not there yet; make secrets without ROTATE makes it\n"
    )


@pytest.mark.parametrize(
    ("name", "mode", "content", "message"),
    [
        ("none", 0o600, None, "No such file or directory; write the vault's password there, mode 0600"),
        ("open", 0o640, "a long password of the vault", "others may read the vault's password; chmod 600 it"),
        ("short", 0o600, "short", "the vault's password has fewer than 12 characters"),
        ("program", 0o722, "#!/bin/sh\n", "others may change the program that gives the vault's password"),
        ("other", 0o600, "another password of a vault", "ansible-vault decrypt: Decryption failed"),
    ],
)
def test_a_password_that_does_not_suit_is_refused(
    program: Program, root: Path, name: str, mode: int, content: str | None, message: str
) -> None:
    program()
    before = file(root, "munge").read_bytes()
    path = root.parent / name
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    status, out, err = program("--vault-password-file", str(path))
    assert (status, out) == (2, "")
    assert message in err
    assert file(root, "munge").read_bytes() == before


def test_a_program_may_give_the_password(program: Program, root: Path) -> None:
    path = root.parent / "client"
    path.write_text("#!/bin/sh\necho a long password of the vault\n")
    path.chmod(0o700)
    assert program("--vault-password-file", str(path))[0] == 0
    assert program()[0] == 0  # the same password in a file


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rotate", "vault_nothing"], "vault_nothing is not a secret of the project; there are vault_munge_key"),
        (["--site", "nowhere"], "inventory/nowhere: no site; there is no cluster.yml in it"),
        (["--site", "virtual"], "the virtual site makes its own"),
    ],
)
def test_slips_are_refused_in_one_line(program: Program, arguments: list[str], message: str) -> None:
    status, out, err = program(*arguments)
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("recipes", "message"),
    [
        (
            "",
            "roles/munge/meta/secrets.yml: no vault_munge_key, which the role's defaults use; say there how it is made",
        ),
        (
            MUNGE + "vault_gone: {bytes: 32, after_rotation: x}\n",
            "vault_gone is in no default of the role; take it away",
        ),
        ("vault_munge_key: {bytes: 8, after_rotation: x}\n", "bytes: Input should be greater than or equal to 32"),
        ("vault_munge_key: {bytes: 32}\n", "after_rotation: Field required"),
        ("vault_munge_key: {after_rotation: x}\n", "give one of bytes, characters and given"),
        ("[]\n", ""),
        ("just words\n", "is not a mapping of secrets to how they are made"),
    ],
)
def test_a_role_says_how_each_of_its_secrets_is_made(root: Path, recipes: str, message: str) -> None:
    (root / "roles" / "munge" / "meta" / "secrets.yml").write_text(recipes)
    with pytest.raises(SecretError) as error:
        declared(root)
    assert message in str(error.value)


def test_every_secret_of_this_project_has_its_recipe() -> None:
    found = {secret.name: secret.role for secret in declared(PROJECT)}
    assert found["vault_munge_key"] == "munge"
    assert found["vault_slurm_database_password"] == "slurm"
    assert found["vault_bmc_password"] == "bmc"


def test_a_secret_of_the_controller_alone_is_made_too(root: Path) -> None:
    (root / "hal_cluster" / "bmc").mkdir(parents=True)
    path = root / "hal_cluster" / "bmc" / "secrets.yml"
    path.write_text("vault_bmc_password: {characters: 16, after_rotation: at the BMCs}\n")
    assert {secret.name: secret.role for secret in declared(root)}["vault_bmc_password"] == "bmc"
    path.write_text("vault_bmc_password: {characters: 2, after_rotation: at the BMCs}\n")
    with pytest.raises(SecretError, match=r"^hal_cluster/bmc/secrets.yml: characters: "):
        declared(root)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("changeme", "is a well-known default"),
        ("Password123!", "is a well-known default"),
        ("munge", "is a well-known default"),
        ("0penBmc", "is a well-known default"),
        ("", "is empty"),
        (None, "is empty"),
        ("Xk3-9a", "has fewer than 12 characters"),
        ("abababababababab", "has fewer than 6 different characters"),
        ("ofTheVirtualSite92", "is that of a test site"),
    ],
)
def test_what_everybody_knows_is_no_secret(value: str | None, why: str) -> None:
    assert problems({"vault_a": value, "vault_b": "r4nd0mEnough-Yes"}, ["ofTheVirtualSite92"]) == [f"vault_a {why}"]


def test_the_values_of_test_sites_are_found(tmp_path: Path) -> None:
    for path, text in {
        ".state/virtual/secrets/munge_key": "0123abc salt=x\n",
        "molecule/x/group_vars/all/vault_x.yml": "vault_a: writtenDown\nvault_b: '{{ other }}'\n",
        "inventory/virtual/group_vars/all/vault_slurm.yml": "vault_c: alsoWrittenDown\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert set(values_of_tests(tmp_path)) == {"0123abc", "writtenDown", "alsoWrittenDown"}


def test_a_site_may_not_have_what_a_scenario_wrote_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "molecule").mkdir()
    (tmp_path / "molecule/vault.yml").write_text("vault_a: writtenDown\n")
    assert known.PROJECT == PROJECT
    monkeypatch.setattr(known, "PROJECT", tmp_path)
    assert site_problems({"vault_a": "writtenDown", "vault_b": "r4nd0mEnough-Yes"}) == [
        "vault_a is that of a test site"
    ]
