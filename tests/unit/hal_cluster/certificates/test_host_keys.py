"""A node's host key is kept as the node says it, and revoked with the node: what is not its own is refused before."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster.certificates.authority import Authority
from hal_cluster.certificates.errors import CertificateError
from hal_cluster.certificates.keygen import public_key
from hal_cluster.certificates.node_keys import KEY, problem
from tests.unit.interpreters import LOCAL
from tests.unit.playing import ROOT, play_text

NODE, OWN = "hal-mgmt1", "hal-mgmt1_10.64.0.11"


def made(path: Path) -> str:
    """The public half of a new key."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return public_key(path.with_name(f"{path.name}.pub"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The authorities of a site."""
    ca = tmp_path / "ca"
    (ca / "hosts").mkdir(parents=True)
    for name in ("host_ca", "user_ca"):
        made(ca / name)
    Authority(ca).build()
    return ca


@pytest.fixture
def key(tmp_path: Path) -> str:
    return made(tmp_path / "key")


@pytest.mark.parametrize("name", ["{}.pub", "{}-first.pub", "{}.pub.4711.2026-11-26@08:00:00~", "{}-first.pub.0a1b~"])
def test_a_key_that_another_node_has_or_had_is_refused_and_its_own_is_not(folder: Path, key: str, name: str) -> None:
    kept = folder / "hosts" / name.format("hal06_10.64.0.106")
    kept.write_text(f"{key} hal06\n")
    assert problem(folder, "hosts", "hal06", key) == ""
    assert problem(folder, "backup", "hal05", key) == ""  # where nothing of such keys is kept
    said = problem(folder, "hosts", "hal05", key)
    assert said.startswith(
        "hal05 shows the key of hal06 as its host key: to revoke one would revoke the other. If hal06 "
    )
    assert f"If hal06 was renamed to hal05, move {kept} to another folder, and roll out again." in said
    assert (key.split()[1] in said, said.count("\n")) == (False, 0)
    kept.rename(folder / kept.name)
    assert problem(folder, "hosts", "hal05", key) == ""


def test_all_files_that_have_it_are_named(folder: Path, key: str) -> None:
    names = ["hal06_10.64.0.106-first.pub", "hal06_10.64.0.106.pub", "hal07_10.64.0.107.pub"]
    for name in names:
        (folder / "hosts" / name).write_text(f"{key}\n")
    said = problem(folder, "hosts", "hal05", key)
    assert "shows the key of hal06, hal07 as" in said
    assert ", ".join(str(folder / "hosts" / name) for name in names) in said


def test_a_node_with_another_address_is_itself_and_one_with_a_name_that_begins_alike_is_not(
    folder: Path, key: str
) -> None:
    (folder / "hosts/hal05_10.64.0.99.pub").write_text(f"{key} hal05\n")
    assert problem(folder, "hosts", "hal05", key) == ""
    assert "the key of hal05 as" in problem(folder, "hosts", "hal0", key)
    assert "the key of hal05 as" in problem(folder, "hosts", "hal055", key)


@pytest.mark.parametrize("name", ["host_ca.pub", "user_ca.pub", "admin.pub", "issued.jsonl", "allowed"])
def test_a_key_of_the_site_or_a_user_is_refused(folder: Path, key: str, name: str) -> None:
    """A node that shows the authority's would have all host certificates revoked."""
    if name != "allowed":
        (folder / name).write_text(json.dumps({"key": key}) if name == "issued.jsonl" else f"{key} site\n")
    said = problem(folder, "hosts", "hal05", key, f"root: from=10.0.0.1 {key} emergency" if name == "allowed" else "")
    assert said == (
        "hal05 shows a key of the controller, the authorities or a user as its host key: to revoke the node would lock"
        " them out. That is no accident: look who was root there, and make hal05 anew."
    )


def test_what_is_no_key_is_refused(folder: Path, key: str) -> None:
    """revoke_node would fail on the day that it is needed."""
    for text in (
        "",
        "ssh-ed25519",
        key.split()[1],
        key[:-1],
        f"{key}A",
        f"{key}\n",
        f"{key} x",
        key.replace("-ed", "-rs"),
        f"{key[:-1]}\x07",
        f"{key[:-1]}=",
        key.replace("AAAAI", "AAAAJ"),
        f" {key}",
        "ssh-rsa AAAAB3NzaC1yc2E",
    ):
        said = problem(folder, "hosts", "hal05", text)
        assert said == (
            "hal05 shows what is not an ed25519 public key as its host key, so it could not be revoked. That is no"
            " accident: look who was root there, and make hal05 anew."
        )
    assert KEY.fullmatch(key)


def test_certificates_unfinished_files_and_what_is_no_text_are_no_hindrance(folder: Path, key: str) -> None:
    for name in ("hal06_10.64.0.106-cert.pub", ".hal06_10.64.0.106-first.pub.new", "README.pub"):
        (folder / "hosts" / name).write_text(key)
    (folder / "hosts/hal06_10.64.0.106.pub").write_bytes(b"\xff\x00")  # of before keys were looked at
    assert problem(folder, "hosts", "hal05", key) == ""
    (folder / "hosts/hal07_10.64.0.107.pub").mkdir()
    with pytest.raises(CertificateError, match=r"/hosts/hal07_10\.64\.0\.107\.pub: cannot be read: Is a directory$"):
        problem(folder, "hosts", "hal05", key)


def test_the_first_keys_of_all_installations_are_revoked(folder: Path, tmp_path: Path) -> None:
    """Each was handed out with a certificate for a year, also where the first rollout never came."""
    keys = [made(tmp_path / name) for name in ("one", "two", "three")]
    authority = Authority(folder)
    for name in ("one", "two", "three"):
        authority.sign_first_host_key(tmp_path / f"{name}.pub", "hal05", "hal05.site", "10.64.0.105")
    assert (folder / "hosts/hal05_10.64.0.105-first.pub").read_text().startswith(keys[2])
    assert {path.stat().st_mode & 0o777 for path in (folder / "hosts").iterdir()} == {0o600}
    authority.revoke_node("hal05", "10.64.0.105", "disk lost")
    assert sorted(authority.hosts.keys()) == sorted(keys)


def rolled_out(folder: Path, shown: str) -> subprocess.CompletedProcess[str]:
    """A rollout of what the controller does with the key that a node shows: all but the node's file."""
    steps = yaml.safe_load((ROOT / "roles/ssh/tasks/certificate.yml").read_text())
    assert steps[-1]["name"] == "Install the host certificate"
    tasks = [{"import_role": {"name": "ssh", "tasks_from": "validate"}}, *steps[:-1]]
    text = yaml.safe_dump([{"hosts": "all", "gather_facts": False, "connection": "local", "tasks": tasks}])
    variables: dict[str, Any] = {
        "__ssh_host_keypair": {"public_key": shown},
        "ansible_python_interpreter": LOCAL,
        "ansible_become": False,
    }
    return play_text(folder.parent, text, NODE, state=folder.parent, **variables)


def test_nothing_is_kept_or_signed_for_a_key_of_another_node_or_none(folder: Path, key: str) -> None:
    theirs = folder / "hosts" / "hal06_10.64.0.106.pub"
    theirs.write_text(f"{key} hal06\n")
    for shown, said in (
        (
            key,
            f"{NODE} shows the key of hal06 as its host key: to revoke one would revoke the other. If hal06 was",
        ),
        ("ssh-ed25519", f"{NODE} shows what is not an ed25519 public key as its host key, so it could not be revoked."),
    ):
        run = rolled_out(folder, shown)
        assert run.returncode != 0
        assert said in run.stdout
        assert list((folder / "hosts").iterdir()) == [theirs]
    assert theirs.read_text() == f"{key} hal06\n"


def test_a_node_that_was_renamed_is_signed_for_when_the_file_of_its_former_name_is_away(folder: Path, key: str) -> None:
    (folder / "hosts" / "hal06_10.64.0.106.pub").write_text(f"{key} hal06\n")
    (folder / "hosts" / "hal06_10.64.0.106.pub").rename(folder / "hal06_10.64.0.106.pub")
    run = rolled_out(folder, key)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr
    assert sorted(path.name for path in (folder / "hosts").iterdir()) == [f"{OWN}-cert.pub", f"{OWN}.pub"]
    assert rolled_out(folder, key).returncode == 0  # its own key, the second time
