"""The role's keys: one that was revoked is made anew, a former one is kept, and what changed of either is saved."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.interpreters import LOCAL
from tests.unit.playing import ROOT, play_text

Keys = Callable[[], subprocess.CompletedProcess[str]]
PEM = "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----"


def task(name: str) -> dict[str, Any]:
    """A task of the role as it is."""
    tasks = yaml.safe_load((ROOT / "roles/backup/tasks/client.yml").read_text())
    (found,) = [one for one in tasks if one["name"] == name]
    return dict(found)


def tasks_of(text: list[Any]) -> str:
    validated = {"import_role": {"name": "backup", "tasks_from": "validate"}}
    return yaml.safe_dump([{"hosts": "all", "gather_facts": False, "connection": "local", "tasks": [validated, *text]}])


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site's state, with its authority for users."""
    (tmp_path / "ca").mkdir()
    (tmp_path / "etc").mkdir()
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "ca" / "user_ca")]
    subprocess.run(argv, check=True)
    (tmp_path / "ca" / "host_ca.pub").write_text("host_ca")
    (tmp_path / "ca" / "revoked_users").write_text("# nobody\n")
    return tmp_path


@pytest.fixture
def variables(site: Path) -> dict[str, Any]:
    return {
        "state": site,
        "backup_public_key": "-----BEGIN PGP PUBLIC KEY BLOCK-----",
        "__backup_conf_dir": str(site / "etc"),
        "__backup_written": {"changed": False},
        "__backup_signing": {"stdout": PEM},
        "ansible_python_interpreter": LOCAL,
        "ansible_become": False,
    }


@pytest.fixture
def keys(site: Path, variables: dict[str, Any], tmp_path: Path) -> Keys:
    """Return a function that gives hal-mgmt1 its key and the certificate, as a rollout does."""
    made = tasks_of(
        [task("Make the key by which the node sends"), {"import_role": {"name": "backup", "tasks_from": "certificate"}}]
    )
    return lambda: play_text(tmp_path, made, "hal-mgmt1", **variables)


def changed(run: subprocess.CompletedProcess[str]) -> int:
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr
    return int(json.loads(run.stdout)["stats"]["hal-mgmt1"]["changed"])


def names(site: Path) -> list[str]:
    """What of the node's keys is at the controller; of former ones the beginning."""
    found = sorted(path.name.partition(".pub.")[0] for path in (site / "ca" / "backup").iterdir() if path.is_file())
    return [name.replace("_10.64.0.11", "") for name in found]


@pytest.mark.root  # whose files they become
def test_a_revoked_key_is_made_anew_and_the_former_is_kept(keys: Keys, site: Path) -> None:
    """Who has the former disk has that key: the certificate for it is valid for a year."""
    own = site / "etc" / "id_ed25519.pub"
    assert changed(keys()) > 0
    former = own.read_text().split()[1]
    assert changed(keys()) == 0
    assert names(site) == ["hal-mgmt1-cert.pub", "hal-mgmt1.pub"]

    (site / "ca" / "revoked_users").write_text(f"# lost\nkey: ssh-ed25519 {former}\n")
    assert changed(keys()) > 0
    key = own.read_text().split()[1]
    assert key != former
    assert names(site) == ["hal-mgmt1", "hal-mgmt1-cert.pub", "hal-mgmt1.pub"]
    (kept,) = (site / "ca" / "backup").glob("hal-mgmt1_*.pub.*~")
    assert kept.read_text().split()[1] == former
    fingerprint = ["ssh-keygen", "-l", "-f", str(own)]
    signed = ["ssh-keygen", "-L", "-f", f"{own.with_suffix('')}-cert.pub"]
    mark = subprocess.run(fingerprint, capture_output=True, text=True, check=True).stdout.split()[1]
    assert mark in subprocess.run(signed, capture_output=True, text=True, check=True).stdout
    assert changed(keys()) == 0
    assert own.read_text().split()[1] == key


@pytest.mark.root  # whose files they become
def test_nothing_is_signed_for_a_node_whose_key_was_revoked(keys: Keys, site: Path) -> None:
    changed(keys())
    (signer,) = (site / "ca" / "backup" / "signers" / "hal-mgmt1").iterdir()
    signer.rename(f"{signer}.revoked")
    (site / "etc" / "id_ed25519").unlink()  # a new one, which somebody may have made who was root there
    before = (site / "ca" / "backup").glob("*.pub")
    content = {path: path.read_bytes() for path in before}
    run = keys()
    assert run.returncode != 0
    assert (
        "The key by which hal-mgmt1 signs archives was revoked. If somebody broke into the node, make it" in run.stdout
    )
    assert {path: path.read_bytes() for path in content} == content
    assert not signer.exists()


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHNvbWVib2R5IGVsc2UncyBrZXksIG9mIDMyIGJ5dGVz"


def certified(variables: dict[str, Any], tmp_path: Path, **more: Any) -> str:
    """What is said when hal-mgmt1 gets its certificate, which fails."""
    made = tasks_of([{"import_role": {"name": "backup", "tasks_from": "certificate"}}])
    run = play_text(tmp_path, made, "hal-mgmt1", **{**variables, "__backup_keypair": {"public_key": KEY}, **more})
    assert run.returncode != 0
    return run.stdout


@pytest.mark.parametrize(
    ("name", "text"), [("admin.pub", "{}"), ("user_ca.pub", "{}"), ("issued.jsonl", '{{"key": "{}"}}\n'), ("", "")]
)
def test_a_node_that_shows_somebody_else_s_key_gets_no_certificate(
    variables: dict[str, Any], site: Path, tmp_path: Path, name: str, text: str
) -> None:
    """By revoke_node the controller would lock itself out of all nodes, or the emergency key would open none."""
    if name:
        (site / "ca" / name).write_text(text.format(KEY))
    else:
        variables["ssh_authorized_keys_allowed"] = {"root": [f'from="10.0.0.1" {KEY} emergency']}
    said = certified(variables, tmp_path)
    assert "hal-mgmt1 shows a key of the controller, the authorities or a user as the key by which it sends" in said
    assert not (site / "ca" / "backup").exists()


@pytest.mark.parametrize("key", ["", "ssh-ed25519", "ssh-ed25519 AAAA", f"{KEY[:-1]}", KEY.replace("ed25519", "rsa")])
def test_a_node_that_shows_what_is_no_key_gets_no_certificate(
    variables: dict[str, Any], site: Path, tmp_path: Path, key: str
) -> None:
    """It would be kept, and OpenSSH could not read it on the day that somebody revokes the node."""
    said = certified(variables, tmp_path, __backup_keypair={"public_key": key})
    assert "hal-mgmt1 shows what is not an ed25519 public key as the key by which it sends archives, so it" in said
    assert not (site / "ca" / "backup").exists()


def test_a_node_that_shows_another_s_key_gets_no_certificate(
    variables: dict[str, Any], site: Path, tmp_path: Path
) -> None:
    """The other's backups would be refused when this node is revoked."""
    (site / "ca" / "backup").mkdir()
    theirs = site / "ca" / "backup" / "hal-data_10.64.0.13.pub"
    theirs.write_text(f"{KEY} backup\n")
    said = certified(variables, tmp_path)
    assert "hal-mgmt1 shows the key of hal-data as the key by which it sends archives: to revoke one would" in said
    assert list((site / "ca" / "backup").iterdir()) == [theirs]


def test_what_was_revoked_is_saved_with_the_authorities(site: Path, variables: dict[str, Any], tmp_path: Path) -> None:
    """Otherwise a controller that is restored believes it again, and nobody is told."""
    asks = tasks_of([{"debug": {"msg": "{{ __backup_authorities }}"}}])

    def word() -> str:
        run = play_text(tmp_path, asks, "hal-data", **variables)
        assert run.returncode == 0, run.stdout[-3000:] + run.stderr
        return str(json.loads(run.stdout)["plays"][0]["tasks"][-1]["hosts"]["hal-data"]["msg"])

    words = [word(), word()]
    assert words[0] == words[1]
    for name in ("revoked_users", "revoked_hosts"):
        (site / "ca" / name).write_text("more\n")
        words.append(word())
    assert len(set(words)) == 3
