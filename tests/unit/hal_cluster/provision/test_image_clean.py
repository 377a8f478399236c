"""What does not belong into an image goes, or the image is refused."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.provision import building
from tests.unit.hal_node.image.image_parts import PRIVATE, SHADOW, ImageError, cleaning, write


def test_what_belongs_to_one_machine_goes_and_the_rest_stays(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", write(tmp_path, "outside/file")
    gone = [
        *[
            "etc/ssh/ssh_host_rsa_key",
            "etc/ssh/ssh_host_rsa_key.pub",
            "etc/hostname",
            "etc/resolv.conf",
            "root/.ssh/id",
        ],
        *["root/.bash_history", "var/lib/hal/record.json", "var/lib/systemd/random-seed", "var/cache/dnf/x/y", "tmp/a"],
        *["tmp/.b/c", "var/tmp/a", "etc/sysconfig/network-scripts/ifcfg-eth0", "var/log/journal/1/system.journal"],
        "var/lib/rpm/__db.001",
    ]
    kept = [
        *["etc/ssh/sshd_config", "etc/hosts", "root/.bashrc", "var/lib/rpm/Packages", "var/log/yum.log"],
        *["etc/sysconfig/network-scripts/ifcfg-lo", "etc/sysconfig/network-scripts/ifup-eth", "usr/share/tmp/a"],
    ]
    for name in gone + kept:
        write(root, name)
    write(root, "etc/machine-id", "0123\n").chmod(0o444)
    (root / "var/spool").mkdir()
    (root / "var/cache/link").symlink_to(outside.parent)
    (root / "etc/lvm").symlink_to(outside.parent)
    cleaning.clean(str(root))
    assert [name for name in gone if (root / name).exists()] == []
    assert [name for name in kept if not (root / name).exists()] == []
    assert (root / "etc/machine-id").read_text() == ""
    assert (root / "var/log/yum.log").read_text() == ""  # the file stays
    assert outside.read_text() == "x"
    assert (root / "tmp").is_dir()
    assert (root / "var/cache/dnf").is_dir()


def faults(root: Path, **values: Any) -> list[str]:
    told = building.digests(values)
    found: list[str] = cleaning.faults(str(root), told["digests"], told["key"])
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    write(root, "etc/shadow", SHADOW)
    write(root, "etc/gshadow", "root:::\nwheel:!::\n")
    write(root, "usr/share/doc/example.pem", PRIVATE.format("RSA "))
    write(root, "etc/ssl/cert.pem", "-----BEGIN CERTIFICATE-----\n")
    return root


def test_an_image_without_secrets_is_not_refused(root: Path) -> None:
    assert faults(root, vault_password="correct-horse-battery") == []
    cleaning.refuse([])


@pytest.mark.parametrize("form", [bytes.hex, lambda key: base64.b64encode(key).decode()])
def test_a_key_is_found_by_its_bytes_though_the_vault_has_it_as_text(root: Path, form: Callable[[bytes], str]) -> None:
    key = bytes(range(200, 248))
    write(root, "etc/munge/munge.key", "").write_bytes(key)
    assert faults(root, vault_munge_key=form(key)) == ["/etc/munge/munge.key has the secret vault_munge_key"]


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_a_private_key_is_found(root: Path, kind: str) -> None:
    write(root, "etc/pki/tls/private/x.key", "# key\n" + PRIVATE.format(kind))
    assert faults(root) == ["/etc/pki/tls/private/x.key is a private key"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("alice:$6$salt$hash:18000::::::", "/etc/shadow has a password of alice"),
        ("alice:!!$6$salt$hash:18000::::::", "/etc/shadow has a password of alice"),
        ("alice::18000::::::", "/etc/shadow lets alice in without a password"),
    ],
)
def test_a_password_is_found(root: Path, line: str, said: str) -> None:
    write(root, "etc/shadow", SHADOW + line + "\n")
    assert faults(root) == [said]


@pytest.mark.parametrize(
    "content",
    [
        "correct-horse-battery",
        "correct-horse-battery\n",
        "StoragePass=correct-horse-battery\n",
        '{"password": "correct-horse-battery"}',
        "url=mysql://slurm:correct-horse-battery@host/db\n",
        "# first\nx y correct-horse-battery z\n",
    ],
)
def test_a_secret_of_the_site_is_found_wherever_it_stands(root: Path, content: str) -> None:
    write(root, "etc/slurm/slurmdbd.conf", content)
    said = ["/etc/slurm/slurmdbd.conf has the secret vault_password"]
    assert faults(root, vault_password="correct-horse-battery") == said
    assert faults(root, vault_password="correct-horse-batter") == []


def test_a_secret_of_several_words_is_found_as_a_line(root: Path) -> None:
    write(root, "var/lib/x", "key = a secret: of words\n")
    assert faults(root, vault_words="a secret: of words") == ["/var/lib/x has the secret vault_words"]


def test_a_refusal_names_files_and_no_secret() -> None:
    with pytest.raises(ImageError) as refused:
        cleaning.refuse([f"/etc/{name} is a private key" for name in "abcde"])
    assert str(refused.value) == (
        "the image would hold a secret: /etc/a is a private key; /etc/b is a private key; /etc/c is a private key"
        " and 2 more. Nothing was published"
    )
