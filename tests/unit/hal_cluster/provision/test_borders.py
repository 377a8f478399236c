"""Borders of what is refused at the controller: boot configurations, DHCP, nodes, tokens, images; and the words."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.provision import boot, dhcp, images, ipxe, petitboot, tokens
from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.nodes import boot_nodes
from tests.unit.hal_cluster.provision.conftest import node, server

KERNEL = "http://10.1.0.11/images/vmlinuz"


def refusal(function: Any, *words: Any, **more: Any) -> str:
    with pytest.raises(ProvisionError) as refused:
        function(*words, **more)
    return str(refused.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (KERNEL, None),
        ("https://host-1.example:1/a", None),
        ("http://10.1.0.11:65535/a_b/c~d+e-f.g", None),
        ("http://10.1.0.11:0/a", "port 0 is none"),
        ("http:///a", "write a whole URL"),
        ("http://10.1.0.11/a?b", "write only http://HOST/PATH"),
        ("http://10.1.0.11/a#b", "write only http://HOST/PATH"),
        ("http://@10.1.0.11/a", "write only http://HOST/PATH"),
        ("http://10.1.0.11/", "its path may have letters"),
        ("http://10.1.0.11/a//b", "its path may have letters"),
        ("http://[10.1.0.11/a", "is no URL; write http://10.64.0.11/images/vmlinuz"),
    ],
)
def test_what_a_url_may_be(url: str, said: str | None) -> None:
    found = petitboot.url_problem(url)
    assert found is None if said is None else (found or "").startswith(said)


@pytest.mark.parametrize(
    ("append", "said"),
    [
        ("quiet", None),
        (" ~", "write at least one, without blanks at the ends"),
        ("~ ~", None),
        ("x\x7f", "only printable ASCII"),
        ("x\x1fy", "only printable ASCII"),
        ("x" * 2047, None),
        ("'x", "a quote at either end is dropped"),
        ("x'", "a quote at either end is dropped"),
        ("#x", "a quote at either end is dropped, and # at the beginning makes a comment"),
        ("x#", None),
        ('x"y', None),
        ("INITRD=x", "initrd= among them"),
    ],
)
def test_what_kernel_parameters_may_be(append: str, said: str | None) -> None:
    found = petitboot.append_problem(append)
    assert found is None if said is None else (found or "").startswith(said)


def test_each_line_that_petitboot_reads_otherwise_is_named() -> None:
    text = (
        'KERNEL http://10.1.0.11/a\n\n# word\nDEFAULT\nDEFAULT one\nLABEL one\nINITRD /x\nAPPEND a "\nIPAPPEND 3\n'
        "sysappend 2\nMENU x\nLABEL ONE\nDTB /y\nFDT /z\nDEFAULT two\n"
    )
    url = "write a whole URL, http://HOST/PATH: petitboot joins a bare path to the folder of its configuration"
    known = "APPEND, DEFAULT, DTB, FDT, INITRD, IPAPPEND, KERNEL, LABEL, SYSAPPEND"
    assert petitboot.problems(text) == [
        "line 1: KERNEL above the first LABEL belongs to no entry",
        "line 4: DEFAULT without a value is passed over",
        f"line 7: /x: {url}",
        "line 8: a quote at either end is dropped, and # at the beginning makes a comment",
        "line 9: IPAPPEND 3: petitboot does 2 (BOOTIF) and nothing else",
        f"line 11: petitboot does not know MENU; it knows {known}",
        "line 12: a second entry ONE",
        f"line 13: /y: {url}",
        f"line 14: /z: {url}",
        "line 15: DEFAULT below LABEL is not looked at; write it above the first LABEL",
        "LABEL one: no KERNEL",
    ]
    assert petitboot.problems("DEFAULT b\nLABEL a\nKERNEL " + KERNEL) == ["DEFAULT b: no LABEL has this name"]
    assert petitboot.problems("LABEL a\nKERNEL " + KERNEL) == [
        "no DEFAULT above the first LABEL: entries are shown, none is booted"
    ]
    assert petitboot.problems("DEFAULT a") == ["DEFAULT a: no LABEL has this name"]


@pytest.mark.parametrize("word", ["$x", "a&b", "a|b"])
def test_what_iPXE_reads_otherwise_is_refused(word: str) -> None:
    assert refusal(ipxe.armed, "n", KERNEL, KERNEL, word) == "n: kernel parameters: $, & and | are iPXE’s own"
    assert refusal(ipxe.armed, "n", KERNEL, KERNEL, "").startswith("n: kernel parameters: write at least one")
    assert refusal(ipxe.armed, "n", "/x", KERNEL, "a").startswith("n: kernel /x: write a whole URL")
    assert refusal(ipxe.armed, "n", KERNEL, "/y", "a").startswith("n: initrd /y: write a whole URL")


@pytest.mark.parametrize(
    ("arch", "installer"),
    [
        ("x86_64", ("http://h/t/images/pxeboot/vmlinuz", "http://h/t/images/pxeboot/initrd.img")),
        ("ppc64le", ("http://h/t/ppc/ppc64/vmlinuz", "http://h/t/ppc/ppc64/initrd.img")),
    ],
)
def test_an_installer_is_where_the_media_have_it(arch: str, installer: tuple[str, str]) -> None:
    assert boot.installer_of(arch, "http://h/t/") == boot.Installer(*installer, "inst.stage2=http://h/t ip=dhcp")
    assert boot.installer_of(arch, "http://h/t", "console=hvc0").append == (
        "inst.stage2=http://h/t ip=dhcp console=hvc0"
    )


def test_only_the_rescue_mode_is_for_a_node_that_is_not_to_be_installed() -> None:
    kept, token = node(reimage="refused"), tokens.Token("w", 7.0)
    installer = boot.Installer(KERNEL, KERNEL, "inst.rescued x")
    words = (kept, "management", "x", installer, "http://s", "text", token)
    assert refusal(boot.order, *words) == "hal05: its profile ac922 says reimage: refused"
    rescue = replace(installer, append="a inst.rescue b")
    made = boot.order(kept, "management", "x", rescue, "http://s", "text", token, {"a": "b", "kickstart.cfg": "c"})
    config = made.pop("config")
    assert "APPEND a inst.rescue b inst.ks=http://s/node/hal05/kickstart.cfg" in config.splitlines()
    assert made == {
        "node": "hal05", "address": "10.1.0.105", "what": "x", "files": {"a": "b", "kickstart.cfg": "text"},
        "token_sha256": token.sha256, "expires": 7.0,
    }  # fmt: skip
    said = "hal05: say in words what it is to install; it is shown by hal-provision status"
    assert refusal(boot.order, kept, "management", "a\nb", rescue, "http://s", "", token) == said


def test_a_token_is_good_for_a_day_at_most() -> None:
    made = tokens.issue(1000.0, 86400)
    assert (made.expires, len(made.words)) == (87400.0, 43)
    assert tokens.issue(1000.0, 0.5).expires == 1000.5
    assert made.words not in repr(made)
    assert refusal(tokens.issue, 1000.0, 0) == "a token for 0 s; more than 0 and at most 86400 s"
    assert refusal(tokens.issue, 1000.0, 86401) == "a token for 86401 s; more than 0 and at most 86400 s"
    with pytest.raises(AttributeError):
        made.words = "other"  # type: ignore[misc]


# ---------------------------------------------------------------- nodes and DHCP


def test_a_node_has_what_the_model_says_and_defaults_else() -> None:
    data: dict[str, Any] = {
        "name": "n", "fqdn": "n.x", "arch": "x86_64", "macs": {"a": "02:48:41:4C:02:05"},
        "addresses": {"a": "10.1.0.1", "b": "fd00::1"},
    }  # fmt: skip
    (made,) = boot_nodes([data])
    assert (made.macs, made.addresses) == ({"a": "02:48:41:4c:02:05"}, {"a": "10.1.0.1"})
    assert (made.disk, made.kernel, made.placeholders, made.disks, made.profile) == (None, None, (), {}, "")
    assert refusal(made.check_reimage) == "n: its profile  says reimage: refused"
    assert refusal(made.mac, "b") == "n: cluster.yml has no macs.b for it"
    assert refusal(made.address, "b") == "n: cluster.yml has no addresses.b for it"
    for changes, said in (
        ({"name": "N"}, "'N' is not a name of a node: small letters, digits and -"),
        ({"arch": "arm"}, "n: nothing boots arm over the network here; ppc64le and x86_64 are known"),
        ({"macs": {"a": "02"}}, "n: macs.a is 02; write six pairs such as 02:48:41:4c:02:05"),
    ):
        assert refusal(boot_nodes, [{**data, **changes}]) == said


def test_leases_are_for_two_minutes_at_least(tmp_path: Path) -> None:
    assert "10.1.0.0,static,255.255.255.0,120" in dhcp.main_file(server(tmp_path, lease_seconds=120))
    assert refusal(dhcp.main_file, server(tmp_path, lease_seconds=119)).startswith("lease_seconds is 119; ")
    assert "10.1.0.0,static,255.255.255.0,3600" in dhcp.main_file(server(tmp_path))


def test_the_main_file_is_this(tmp_path: Path) -> None:
    one = server(tmp_path, loaders={"efi": "ipxe.efi", "bios": "undionly.kpxe"})
    lines = [line for line in dhcp.main_file(one).splitlines() if line and not line.startswith("#")]
    assert lines == [
        "port=0", "bind-dynamic", "no-hosts", "no-resolv", "log-dhcp", "dhcp-ignore=tag:!known", "dhcp-authoritative",
        "dhcp-lease-max=65536", f"dhcp-leasefile={tmp_path}/leases", f"dhcp-hostsdir={tmp_path}/hosts",
        f"dhcp-optsdir={tmp_path}/options", "domain=hal.example", "interface=eno1",
        "dhcp-range=set:net-management,10.1.0.0,static,255.255.255.0,3600",
        "dhcp-option=tag:net-management,option:router", "dhcp-match=set:opal,option:client-arch,14",
        "dhcp-match=set:bios,option:client-arch,0", "dhcp-match=set:efi,option:client-arch,7",
        "dhcp-match=set:efi,option:client-arch,9", "dhcp-match=set:ipxe,175", "enable-tftp", "tftp-no-fail",
        f"tftp-root={tmp_path}/tftp", "dhcp-boot=tag:bios,tag:!ipxe,undionly.kpxe",
        "dhcp-boot=tag:efi,tag:!ipxe,ipxe.efi",
    ]  # fmt: skip


def test_a_node_without_an_address_or_a_mac_is_left_out_of_that_network(tmp_path: Path) -> None:
    both = [dhcp.Served("management", "eno1", "10.1.0.0/24"), dhcp.Served("bmc", "eno2", "10.1.1.0/24")]
    one = server(tmp_path, networks=both)
    bmc = {"bmc": "02:48:41:4c:03:05"}
    assert dhcp.files([node(macs=bmc)], one) == {f"{tmp_path}/hosts/hal05": "02:48:41:4c:03:05,10.1.1.105,hal05-bmc\n"}
    assert dhcp.files([node(addresses={}), node("hal06", 6)], one).keys() == {
        f"{tmp_path}/{kind}/hal06" for kind in ("hosts", "options")
    }
    twin = node("hal06", 6, addresses={"bmc": "10.1.1.105"})
    assert refusal(dhcp.files, [node(), twin], one) == (
        "hal06: 10.1.1.105 is hal05's too; DHCP would answer for one of them"
    )


# ---------------------------------------------------------------- images


@pytest.fixture
def key(tmp_path: Path) -> Path:
    assert images.make_key(tmp_path / "key")
    return tmp_path / "key"


def sealed(tmp_path: Path, key: Path, root: str = "x.tar.gz", **changes: Any) -> Path:
    (tmp_path / root).write_bytes(b"root" * 1000)
    given: dict[str, Any] = {
        "name": "compute", "version": "1", "arch": "ppc64le", "kernel": "4", "packages": ["b", "a"],
        "created": datetime(2026, 11, 22, 12, tzinfo=timezone(timedelta(hours=2))),
    }  # fmt: skip
    return images.seal(tmp_path / root, tmp_path / "images", key, **{**given, **changes})


@pytest.mark.parametrize(
    ("root", "file"),
    [
        ("x.tar", "rootfs.tar"),
        ("x.tar.gz", "rootfs.tar.gz"),
        ("x.squashfs", "rootfs.squashfs"),
        ("rootfs.tar.xz", "rootfs.tar.xz"),
    ],
)
def test_an_image_is_moved_and_readable_whatever_was_left_there(
    tmp_path: Path, key: Path, root: str, file: str
) -> None:
    (tmp_path / "images" / ".compute-1-ppc64le.new" / "left").mkdir(parents=True)
    folder = sealed(tmp_path, key, root)
    assert not (tmp_path / root).exists()
    assert os.listdir(tmp_path / "images") == ["compute-1-ppc64le"]
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == {
        "manifest.json": 0o644, "manifest.json.sig": 0o644, file: 0o644
    }  # fmt: skip
    data = json.loads((folder / "manifest.json").read_text())
    assert (data["format"], data["file"], data["size"], data["packages"]) == (1, file, 4000, ["a", "b"])
    assert data["created"] == "2026-11-22T10:00:00Z"
    assert (folder / "manifest.json").read_text() == json.dumps(data, indent=1, sort_keys=True) + "\n"


def test_keys_are_for_whom_they_are(tmp_path: Path, key: Path) -> None:
    public = images.public_key(key)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {"key": 0o600, "key.pem": 0o644}
    assert public == tmp_path / "key.pem"
    key.chmod(0o610)
    assert refusal(sealed, tmp_path, key).startswith(f"{key}: others may read it")
    key.chmod(0o600)
    folder = sealed(tmp_path, key, version="2")
    public.write_text("x")
    said = f"{public}: no public key; make_key wrote one beside the private key"
    assert refusal(images.signed, folder, public) == said
    key.write_text("x")
    assert refusal(sealed, tmp_path, key, version="3") == f"{key}: no private key"
    assert refusal(images.signed, folder, tmp_path / "no.pem").endswith(
        "no.pem: cannot be read: No such file or directory"
    )
    gone = tmp_path / "gone" / "key"
    assert refusal(images.make_key, gone) == f"{gone.parent}/key.pem: cannot be written: No such file or directory"


def test_keys_of_another_kind_are_refused(tmp_path: Path, key: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    other = ed25519.Ed25519PrivateKey.generate()
    folder = sealed(tmp_path, key)
    pem, private = tmp_path / "other.pem", tmp_path / "other"
    pem.write_bytes(
        other.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    private.touch(0o600)
    private.write_bytes(
        other.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    assert refusal(images.signed, folder, pem) == f"{pem}: no key for images, which is ECDSA on P-256"
    assert refusal(sealed, tmp_path, private, version="2") == f"{private}: no key for images, which is ECDSA on P-256"


def test_what_is_no_root_is_no_image(tmp_path: Path, key: Path) -> None:
    assert refusal(sealed, tmp_path, key, "x.zip") == (
        f"{tmp_path}/x.zip: no root file system; a name that ends in .tar, .tar.gz, .tar.xz or .squashfs"
    )
    gone = tmp_path / "gone.tar"
    words = {"name": "a", "version": "1", "arch": "x86_64", "kernel": "4", "packages": ["a"]}
    said = refusal(images.seal, gone, tmp_path, key, created=datetime.now(timezone.utc), **words)
    assert said == f"{gone}: cannot be read: No such file or directory"
