"""First secrets, as OpenSSH's own programs read them."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

import pytest
import yaml

from hal_cluster.certificates import cli
from hal_cluster.certificates.authority import HOST_DAYS, Authority
from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.secrets import SSHD_CONFIG, first_secrets
from tests.unit.hal_cluster.provision.conftest import PROJECT, node

HAL05 = node()
ADDRESS = "10.1.0.105"
FIRST = f"hosts/hal05_{ADDRESS}-first.pub"


def ran(*words: str | Path) -> str:
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """The authorities of a site as playbooks/authorities.yml leaves them."""
    folder = tmp_path / "state/ca"
    folder.mkdir(parents=True)
    for name in ("host_ca", "user_ca"):
        ran("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name)
    Authority(folder).build()
    return folder


def unpacked(archive: bytes, folder: Path) -> Path:
    """Unpack as %post does, with its umask; return /etc/ssh."""
    folder.mkdir()
    words = ["tar", "--extract", "--directory", str(folder), "--no-overwrite-dir", "--same-permissions"]
    subprocess.run(words, input=archive, check=True, umask=0o077)
    return folder / "etc/ssh"


def test_the_archive_has_roots_files_with_their_modes(authority: Path) -> None:
    archive, _ = first_secrets(HAL05, "management", authority)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        found = {one.name: (one.mode, one.uid, one.gid, one.uname, one.isreg()) for one in tar}
    assert found == {
        f"etc/ssh/{name}": (mode, 0, 0, "root", True)
        for name, mode in {
            "ssh_host_ed25519_key": 0o600,
            "ssh_host_ed25519_key.pub": 0o644,
            "ssh_host_ed25519_key-cert.pub": 0o644,
            "user_ca.pub": 0o644,
            "revoked_keys": 0o644,
            "principals.root": 0o644,
            "sshd_config": 0o600,
        }.items()
    }


def test_the_certificate_is_the_hosts_for_its_names_and_belongs_to_the_key(authority: Path, tmp_path: Path) -> None:
    archive, fingerprint = first_secrets(HAL05, "management", authority)
    ssh = unpacked(archive, tmp_path / "root")
    key = ssh / "ssh_host_ed25519_key"
    assert fingerprint == ran("ssh-keygen", "-l", "-f", key).split()[1]
    assert re.fullmatch(r"SHA256:[A-Za-z0-9+/]{43}", fingerprint)
    assert ran("ssh-keygen", "-y", "-f", key).split()[:2] == (ssh / f"{key.name}.pub").read_text().split()[:2]
    shown = ran("ssh-keygen", "-L", "-f", ssh / f"{key.name}-cert.pub")
    assert "Type: ssh-ed25519-cert-v01@openssh.com host certificate" in shown
    assert f"Public key: ED25519-CERT {fingerprint}" in shown
    assert f"Signing CA: ED25519 {ran('ssh-keygen', '-l', '-f', authority / 'host_ca.pub').split()[1]}" in shown
    principals = shown.split("Principals:")[1].split("Critical Options:")[0].split()
    assert principals == ["hal05", "hal05.hal.example", ADDRESS]
    start, end = re.search(r"Valid: from (\S+) to (\S+)", shown).groups()  # type: ignore[union-attr]
    of = [time.mktime(time.strptime(one, "%Y-%m-%dT%H:%M:%S")) for one in (start, end)]
    assert of[0] < time.time() - 86000, "a node whose clock is behind must not see one of tomorrow"
    assert round((of[1] - of[0]) / 86400) == HOST_DAYS + 1


def test_it_lasts_as_long_as_the_certificates_of_role_ssh() -> None:
    defaults = yaml.safe_load((PROJECT / "roles/ssh/defaults/main.yml").read_text())
    assert defaults["ssh_host_certificate_days"] == HOST_DAYS
    assert defaults["ssh_authorized_principals"] == {"root": ["root"]}, "what first_secrets takes unless it is told"


def test_each_installation_has_a_key_of_its_own_and_leaves_none_behind(
    authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    made = [first_secrets(HAL05, "management", authority) for _ in range(2)]
    assert made[0][1] != made[1][1]
    assert list(scratch.iterdir()) == []
    (former,) = (authority / "hosts").glob("*-first.pub.*~")
    there = {str(path.relative_to(authority)) for path in authority.rglob("*") if path.is_file()}
    assert there - {"host_ca", "host_ca.pub", "user_ca", "user_ca.pub"} == {
        *(".lock", "revoked_hosts", "revoked_keys", "revoked_samples", "revoked_users"),
        *(FIRST, f"hosts/{former.name}"),
    }
    private = [path for path in authority.rglob("*") if path.is_file() and b"PRIVATE KEY" in path.read_bytes()]
    assert sorted(path.name for path in private) == ["host_ca", "user_ca"]
    assert oct((authority / FIRST).stat().st_mode)[-3:] == "600"


def test_the_private_key_is_nobody_elses_while_it_is_made(
    authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    program = tmp_path / "bin/ssh-keygen"
    program.parent.mkdir()
    real = shutil.which("ssh-keygen")
    program.write_text(
        f'#!/bin/sh\nfor one; do case $one in */ssh_host_ed25519_key) stat -c %a "${{one%/*}}" >>{seen} ;; esac; done\n'
        f'exec {real} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    first_secrets(HAL05, "management", authority)
    assert seen.read_text().split() == ["700"]


def test_what_root_accepts_and_what_is_revoked_come_with_it(authority: Path, tmp_path: Path) -> None:
    ran("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "alice")
    assert cli.main(["--authority", str(authority), "issue", "alice", "--key", str(tmp_path / "alice.pub")]) == 0
    assert cli.main(["--authority", str(authority), "revoke", "--user", "alice", "--reason", "lost"]) == 0
    archive, _ = first_secrets(HAL05, "management", authority, ["root", "on-call"])
    ssh = unpacked(archive, tmp_path / "root")
    assert (ssh / "principals.root").read_text() == "root\non-call\n"
    assert (ssh / "user_ca.pub").read_bytes() == (authority / "user_ca.pub").read_bytes()
    words = ["ssh-keygen", "-Q", "-f", str(ssh / "revoked_keys"), str(tmp_path / "alice-cert.pub")]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 1, "refused"


def test_a_key_that_was_handed_out_can_be_revoked_before_the_first_rollout(
    authority: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, fingerprint = first_secrets(HAL05, "management", authority)
    key = " ".join((authority / FIRST).read_text().split()[:2])
    ran("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", authority / "former")  # of the former system
    old = " ".join((authority / "former.pub").read_text().split()[:2])
    (authority / f"hosts/hal05_{ADDRESS}.pub").write_text(f"{old} hal05\n")
    words = ["--authority", str(authority), "revoke", "--node", "hal05", "--address", ADDRESS, "--reason", "stolen"]
    assert cli.main(words) == 0
    lines = (authority / "revoked_hosts").read_text().splitlines()
    assert lines == [f"@revoked * {old} hal05: stolen", f"@revoked * {key} hal05: stolen"]
    assert fingerprint in ran("ssh-keygen", "-l", "-f", authority / FIRST)
    assert (authority.parent / "known_hosts").read_text().splitlines()[1:] == lines
    capsys.readouterr()
    assert cli.main(words) == 0
    assert capsys.readouterr().out == "", "nothing new"
    (authority / f"hosts/hal05_{ADDRESS}.pub").unlink()
    (authority / "revoked_hosts").write_text("")
    (authority.parent / "known_hosts").unlink()
    assert cli.main(words) == 0
    assert (authority / "revoked_hosts").read_text() == f"@revoked * {key} hal05: stolen\n"


@pytest.mark.parametrize("missing", ["host_ca", "host_ca.pub", "user_ca.pub", "revoked_keys"])
def test_an_authority_that_lacks_something_is_named_in_one_line(authority: Path, missing: str) -> None:
    (authority / missing).unlink()
    with pytest.raises(ProvisionError) as refused:
        first_secrets(HAL05, "management", authority)
    assert str(refused.value).startswith("hal05: no first secrets: ")
    assert missing in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("principals", [[], [""], ["root "], ["root\nalice"]])
def test_principals_that_would_be_none_or_others_are_refused(authority: Path, principals: list[str]) -> None:
    with pytest.raises(ProvisionError, match=r"^hal05: ssh_authorized_principals\.root is "):
        first_secrets(HAL05, "management", authority, principals)


def sshd(tmp_path: Path, authority: Path, *words: str) -> list[str]:
    """Ask the sshd of this machine what it makes of the configuration, with the files where they would be."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("there is no sshd on this machine")
    ssh = unpacked(first_secrets(HAL05, "management", authority)[0], tmp_path / "root")
    config = tmp_path / "sshd_config"
    config.write_text((ssh / "sshd_config").read_text().replace("/etc/ssh", str(ssh)))
    done = subprocess.run([program, *words, "-f", str(config)], capture_output=True, text=True, check=False)
    if "privilege separation" in done.stderr.lower():
        pytest.skip(f"sshd cannot check here: {done.stderr.strip()}")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.replace(str(ssh), "/etc/ssh").splitlines()


def test_sshd_takes_the_configuration(authority: Path, tmp_path: Path) -> None:
    sshd(tmp_path, authority, "-t")


def test_sshd_shows_the_certificate_and_lets_in_who_the_site_signed(authority: Path, tmp_path: Path) -> None:
    found = sshd(tmp_path, authority, "-T", "-C", "user=root,host=localhost,addr=127.0.0.1")
    for line in (
        "hostkey /etc/ssh/ssh_host_ed25519_key",
        "hostcertificate /etc/ssh/ssh_host_ed25519_key-cert.pub",
        "trustedusercakeys /etc/ssh/user_ca.pub",
        "revokedkeys /etc/ssh/revoked_keys",
        "authorizedprincipalsfile /etc/ssh/principals.root",
        "permitrootlogin without-password",
        "passwordauthentication no",
        "kbdinteractiveauthentication no",
        "permitemptypasswords no",
    ):
        assert line in found


def test_it_has_no_word_that_openssh_7_4_does_not_know_and_none_of_another_path_than_role_ssh() -> None:
    ours = {line.split()[0]: line.split(None, 1)[1] for line in SSHD_CONFIG.splitlines()[1:] if line.strip()}
    template = (PROJECT / "roles/ssh/templates/sshd_config.j2").read_text()
    variables = yaml.safe_load((PROJECT / "roles/ssh/vars/main.yml").read_text())
    words = {line.split()[0] for line in template.splitlines() if line.strip() and line.split()[0].isalpha()}
    words |= set(variables["__ssh_settings_usual"])
    assert set(ours) <= words, "role ssh has been tried with them on OpenSSH 7.4"
    assert ours["HostKey"] == variables["__ssh_host_key"]
    assert ours["HostCertificate"] == f"{ours['HostKey']}-cert.pub"
    assert ours["TrustedUserCAKeys"] == variables["__ssh_user_ca"]
    assert ours["RevokedKeys"] == variables["__ssh_revoked_keys"]
    assert ours["AuthorizedPrincipalsFile"] == f"{variables['__ssh_principals_prefix']}root"
