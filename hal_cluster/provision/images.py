"""Images that nodes install: a root file system and its signed manifest.

An image is a folder NAME-VERSION-ARCH: the root file system (tar or squashfs, as Anaconda's ``liveimg`` takes them),
``manifest.json`` and ``manifest.json.sig``.

The signature is ECDSA on P-256 with SHA-256, because of who checks it: CentOS 7 has OpenSSL 1.0.2 (no Ed25519), OpenSSH
7.4 (no ``ssh-keygen -Y``) and no Python library for either, and ``openssl dgst -verify`` does this one. Signing is the
controller's; the private key is in the site's state folder, 0600, and is never on a node.

Checked three times: here before a node is armed with it, on the server when it is published and in every audit, and by
the node (sha256, in the kickstart's %pre) before its disk is touched.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.nodes import POWER, X86

MANIFEST, SIGNATURE = "manifest.json", "manifest.json.sig"
FILES = ("rootfs.tar.xz", "rootfs.tar.gz", "rootfs.tar", "rootfs.squashfs")
NAME = re.compile(r"[a-z0-9][a-z0-9._]{0,40}(-[a-z0-9._]+)*")
_VERSION = re.compile(r"[0-9][0-9a-z._]{0,30}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Manifest:
    """What an image is; ``size`` in bytes, ``packages`` as name-version-release.arch, ``created`` in UTC.

    ``made_from`` is for people: commit, lock file, roles of a build. Nothing is decided by it.
    """

    name: str
    version: str
    arch: str
    kernel: str
    file: str
    size: int
    sha256: str
    packages: tuple[str, ...]
    created: str
    made_from: Mapping[str, str] = field(default_factory=dict)
    format: int = 1

    @property
    def folder(self) -> str:
        """The name of the image's folder, which says which image it is."""
        return f"{self.name}-{self.version}-{self.arch}"

    def text(self) -> str:
        """The manifest, byte for byte what is signed."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


def make_key(path: Path) -> bool:
    """Make the site's key for images, and the public one beside it; return whether there was none."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    if path.exists():
        return False
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    _write(public_key(path), public, 0o644)
    _write(path, private, 0o600)
    return True


def public_key(path: Path) -> Path:
    """Return where the public part of a key is."""
    return path.with_name(f"{path.name}.pem")


def _write(path: Path, content: bytes, mode: int) -> None:
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            os.fsync(file.fileno())
        new.chmod(mode)
        new.replace(path)
    except OSError as error:
        raise ProvisionError(f"{path}: cannot be written: {error.strerror}") from None


def seal(
    root: Path,
    into: Path,
    key: Path,
    *,
    name: str,
    version: str,
    arch: str,
    kernel: str,
    packages: Sequence[str],
    created: datetime,
) -> Path:
    """Make an image of a root file system and return its folder, which appears whole. The root's file is moved."""
    file = next(
        (known for known in FILES if root.name == known or root.name.endswith(known.removeprefix("rootfs"))), None
    )
    if file is None:
        raise ProvisionError(f"{root}: no root file system; a name that ends in .tar, .tar.gz, .tar.xz or .squashfs")
    refuse_names(name, version, arch, packages)
    try:
        size = root.stat().st_size
    except OSError as error:
        raise ProvisionError(f"{root}: cannot be read: {error.strerror}") from None
    manifest = Manifest(
        name=name,
        version=version,
        arch=arch,
        kernel=kernel,
        file=file,
        size=size,
        sha256=_sha256(root),
        packages=tuple(sorted(packages)),
        created=stamp(created),
    )
    target, new = _begun(manifest, into, key)
    shutil.move(root, new / file)
    (new / file).chmod(0o644)
    new.rename(target)
    return target


def _begun(manifest: Manifest, into: Path, key: Path) -> tuple[Path, Path]:
    """Return the folder of an image, which is not there yet, and the one beside it that has what is signed."""
    target, new = into / manifest.folder, into / f".{manifest.folder}.new"
    if target.exists():
        raise ProvisionError(f"{target} is there already; a changed image is a new version")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    _write_signed(manifest, new, key)
    return target, new


def sign(manifest: Manifest, into: Path, key: Path) -> Path:
    """Write manifest and signature of a root file system that is on another machine; return their folder.

    Size and sha256 are what that machine said. Whoever publishes the image there compares them with the file, and so
    does the node: a wrong one is refused, not installed.
    """
    refuse_names(manifest.name, manifest.version, manifest.arch, manifest.packages)
    if manifest.file not in FILES:
        raise ProvisionError(f"{manifest.folder}: {manifest.file} is none of {', '.join(FILES)}")
    if not isinstance(manifest.size, int) or manifest.size <= 0 or not _SHA256.fullmatch(manifest.sha256):
        raise ProvisionError(f"{manifest.folder}: size {manifest.size} and sha256 {manifest.sha256} are of no file")
    target, new = _begun(manifest, into, key)
    new.rename(target)
    return target


def refuse_names(name: str, version: str, arch: str, packages: Sequence[str]) -> None:
    """Raise ProvisionError for what would not be a name of an image, or an image of nothing."""
    if not NAME.fullmatch(name) or not _VERSION.fullmatch(version) or arch not in (POWER, X86):
        raise ProvisionError(
            f"{name}-{version}-{arch}: write name and version in small letters, digits, . _, and the architecture"
            f" {POWER} or {X86}"
        )
    if not packages:
        raise ProvisionError(f"{name}-{version}-{arch}: no packages; an image without any is none")


def stamp(moment: datetime) -> str:
    """Return a time as manifests have it, in UTC."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _write_signed(manifest: Manifest, folder: Path, key: Path) -> None:
    _write(folder / MANIFEST, manifest.text().encode(), 0o644)
    _write(folder / SIGNATURE, _sign(key, manifest.text().encode()), 0o644)


def check(folder: Path, key: Path, *, arch: str | None = None, kernel: str | None = None) -> Manifest:
    """Return the manifest of an image that is whole, signed, and for this machine; ProvisionError says why it is not.

    ``key`` is the public one. The manifest is not believed, nor even read as JSON, before its signature was checked.
    """
    manifest = signed(folder, key)
    name = folder.name
    if arch and manifest.arch != arch:
        raise ProvisionError(f"{name}: is for {manifest.arch}, and {arch} is needed")
    if kernel and manifest.kernel != kernel:
        raise ProvisionError(f"{name}: has kernel {manifest.kernel}, and {kernel} is declared")
    file = folder / manifest.file
    there = file.stat().st_size if file.is_file() else 0
    if there != manifest.size:
        raise ProvisionError(f"{name}: {manifest.file} has {there} bytes, and {manifest.size} were signed")
    if _sha256(file) != manifest.sha256:
        raise ProvisionError(f"{name}: {manifest.file} is damaged: its sha256 is not the signed one")
    return manifest


def signed(folder: Path, key: Path) -> Manifest:
    """Return the manifest of an image without reading its root file system; ProvisionError when it is not signed."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    name = folder.name
    raw, signature, pem = _read(folder / MANIFEST), _read(folder / SIGNATURE), _read(key)
    try:
        public = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise ProvisionError(f"{key}: no public key; make_key wrote one beside the private key") from None
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise ProvisionError(f"{key}: no key for images, which is ECDSA on P-256")
    try:
        public.verify(signature, raw, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise ProvisionError(f"{name}: the manifest is not signed by this site's key ({key})") from None
    manifest = _manifest(raw, name)
    if manifest.folder != name:
        raise ProvisionError(f"{name}: the manifest is of {manifest.folder}")
    if manifest.file not in FILES:
        raise ProvisionError(f"{name}: the manifest names {manifest.file}; one of {', '.join(FILES)} is taken")
    return manifest


def _manifest(raw: bytes, name: str) -> Manifest:
    try:
        content: Mapping[str, Any] = json.loads(raw)
        if content["format"] != 1:
            raise ProvisionError(f"{name}: the manifest has format {content['format']}; this toolkit reads 1")
        return Manifest(**{**content, "packages": tuple(content["packages"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ProvisionError(f"{name}: {MANIFEST} is signed, and no manifest of this toolkit's") from None


def _sign(key: Path, content: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    pem = _read(key)
    if key.stat().st_mode & 0o077:
        raise ProvisionError(f"{key}: others may read it; chmod 600, or make another key when they did")
    try:
        private = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        raise ProvisionError(f"{key}: no private key") from None
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ProvisionError(f"{key}: no key for images, which is ECDSA on P-256")
    return private.sign(content, ec.ECDSA(hashes.SHA256()))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ProvisionError(f"{path}: cannot be read: {error.strerror}") from None


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            digest = hashlib.sha256()
            while block := file.read(1024 * 1024):
                digest.update(block)
            return digest.hexdigest()
    except OSError as error:
        raise ProvisionError(f"{path}: cannot be read: {error.strerror}") from None
