"""What was revoked is refused by the running sshd, by other nodes and by the controller; what was not, is not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from running.ansible_run import Run, of_scenario
from running.ssh_config import STATE, Cluster
from testinfra.host import Host

Node = Callable[[str], Host]
Site = Callable[..., Any]
SCENARIO = Path(os.environ.get("MOLECULE_SCENARIO_DIRECTORY", Path(__file__).parents[1]))
AUTHORITY = STATE / "scenario-ssh" / "ca"


def revoke(**variables: Any) -> Run:
    return of_scenario(SCENARIO).playbook("playbooks/revoke.yml", revoke_reason="a test", **variables)


class Administrator:
    """Somebody with a key of their own and a certificate that the site issued for it."""

    def __init__(self, name: str, folder: Path, cluster: Cluster) -> None:
        self._cluster = cluster
        self.name = name
        self.key = folder / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)], check=True)

    def certificate(self, **variables: Any) -> Run:
        named = {"certificate_user": self.name, "certificate_key": f"{self.key}.pub", "certificate_principals": "root"}
        return of_scenario(SCENARIO).playbook("playbooks/certificate.yml", **{**named, **variables})

    def attempt(self, node: str, **options: str) -> subprocess.CompletedProcess[str]:
        settings = {
            "IdentityFile": f'"{self.key}"',
            "CertificateFile": f'"{self.key}-cert.pub"',
            "ControlPath": "none",
            "LogLevel": "ERROR",
            **options,
        }
        words = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        argv = ["ssh", *words, "-F", str(self._cluster.ssh_config), node, "id -un"]
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def comes_in(self, node: str) -> bool:
        done = self.attempt(node)
        assert done.stdout.strip() == "root" or "Permission denied (publickey" in done.stderr, done.stderr
        return done.returncode == 0


@pytest.fixture
def people(cluster: Cluster, tmp_path: Path) -> tuple[Administrator, Administrator]:
    carol, dave = (Administrator(name, tmp_path, cluster) for name in ("carol", "dave"))
    for one in (carol, dave):
        done = one.certificate()
        assert done.status == 0, done.explain()
    return carol, dave


@pytest.fixture
def lists_as_before() -> Iterator[None]:
    """The lists are put back, here and on the nodes."""
    names = ("revoked_users", "revoked_hosts", "revoked_keys", "revoked_samples")
    before = {name: (AUTHORITY / name).read_bytes() for name in names}
    yield
    for name, content in before.items():
        (AUTHORITY / name).write_bytes(content)
    (AUTHORITY.parent / "known_hosts").unlink()
    argv = ["python", "-m", "hal_cluster.certificates", "--authority", str(AUTHORITY), "build"]
    subprocess.run(argv, cwd=SCENARIO.parents[1], check=True, capture_output=True)
    done = of_scenario(SCENARIO).playbook(SCENARIO / "converge.yml")
    assert done.status == 0, done.explain()


def test_a_revoked_user_is_refused_by_the_running_sshd_and_another_is_not(
    node: Node, people: tuple[Administrator, Administrator], lists_as_before: None
) -> None:
    carol, dave = people
    sshd = {name: node(name).check_output("systemctl show -p ExecMainStartTimestamp sshd") for name in ("hal01",)}
    assert carol.comes_in("hal01")
    assert dave.comes_in("hal01")

    os.utime(AUTHORITY / "revoked_keys", (4e9, 4e9))  # 2096: the controller's clock was ahead once
    done = revoke(revoke_user="carol")
    assert done.status == 0, done.explain()
    assert not carol.comes_in("hal01")
    assert not carol.comes_in("hal-mgmt2")
    assert dave.comes_in("hal01")
    assert node("hal01").check_output("systemctl show -p ExecMainStartTimestamp sshd") == sshd["hal01"]

    again = revoke(revoke_user="carol")
    assert (again.status, dict(again.changes)) == (0, {}), again.explain()

    # A new certificate for the same key is a new number: it was the certificate that was revoked, not the key.
    assert carol.certificate().status == 0
    assert carol.comes_in("hal01")
    assert revoke(revoke_key=f"{carol.key}.pub").status == 0
    assert not carol.comes_in("hal01")
    refused = carol.certificate()
    assert refused.status != 0
    assert "this key is revoked; carol needs another" in refused.words
    assert node("hal01").check_output("id -un") == "root"


def test_a_node_with_an_old_list_gets_the_new_one_by_the_same_command(
    node: Node, people: tuple[Administrator, Administrator], lists_as_before: None
) -> None:
    carol, _ = people
    node("hal01").check_output("cp /etc/ssh/revoked_keys /root/old")
    assert revoke(revoke_user="carol").status == 0
    node("hal01").check_output("mv /root/old /etc/ssh/revoked_keys")
    assert carol.comes_in("hal01"), "sshd reads an old list without complaint"
    again = revoke(revoke_user="carol")
    assert (again.status, list(again.changes)) == (0, ["hal01"]), again.explain()
    assert not carol.comes_in("hal01")


def test_a_revoked_host_key_is_believed_by_no_node_and_not_by_the_controller(
    node: Node, site: Site, lists_as_before: None, cluster: Cluster, tmp_path: Path
) -> None:
    address = next(entry for entry in site("hosts") if entry["name"] == "hal01")["address"]
    ask = f"ssh -o BatchMode=yes -o HostKeyAlias=hal01 {address} true || exit 1"
    assert "Permission denied (publickey" in node("hal-mgmt2").run(ask).stderr  # it believes who answers

    done = revoke(revoke_node="hal01")
    assert done.status == 0, done.explain()
    seen = node("hal-mgmt2").run(ask).stderr
    assert "REVOKED" in seen
    assert "Host key verification failed" in seen
    # ssh's own words: under load Ansible passes on only that the pipe to ssh broke.
    known = {"UserKnownHostsFile": f'"{AUTHORITY.parent / "known_hosts"}"', "LogLevel": "INFO", "BatchMode": "yes"}
    attempt = Administrator("carol", tmp_path, cluster).attempt("hal01", **known)
    assert attempt.returncode != 0
    assert "REVOKED" in attempt.stderr
    fresh = {"ANSIBLE_SSH_ARGS": "-o ControlMaster=no -o ControlPath=none -o PreferredAuthentications=publickey"}
    here = of_scenario(SCENARIO).playbook(SCENARIO / "converge.yml", "--limit", "hal01", environment=fresh)
    assert here.recap["hal01"]["unreachable"] == 1, here.explain()


def test_a_node_that_shows_the_host_key_of_another_gets_no_certificate() -> None:
    """The other would be revoked with it."""
    (own,) = (AUTHORITY / "hosts").glob("hal01_*[0-9].pub")
    other = own.with_name("hal02_10.65.5.99.pub")
    other.write_text(own.read_text())
    try:
        done = of_scenario(SCENARIO).playbook(SCENARIO / "converge.yml", "--limit", "hal01")
    finally:
        other.unlink()
    assert done.status != 0
    assert "hal01 shows the key of hal02 as its host key: to revoke one would revoke the other." in done.words


def test_the_key_of_the_controller_itself_is_not_revoked_by_a_slip(node: Node) -> None:
    done = revoke(revoke_key=str(AUTHORITY / "admin.pub"))
    assert done.status != 0
    assert "is the key by which this controller comes in" in done.words
    assert node("hal01").check_output("id -un") == "root"
