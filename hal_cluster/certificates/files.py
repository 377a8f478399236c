"""Files of the authorities: read as text, put in place as a whole."""

from __future__ import annotations

import os
from pathlib import Path

from hal_cluster.certificates.errors import CertificateError


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file, none where it is not there; CertificateError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise CertificateError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def refuse_missing(path: Path) -> None:
    """CertificateError when a file is not there that every site has."""
    if not path.is_file():
        raise CertificateError(f"{path} is missing; restore it, or for a new site: playbooks/authorities.yml")


def write(path: Path, content: bytes, mode: int) -> None:
    """Replace a file as a whole: sshd may read it at any moment. After a loss of power it is the old one or the new."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)  # not by name: a certificate's folder may be another user's
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)  # the name is the folder's
        finally:
            os.close(folder)
    except OSError as error:
        raise CertificateError(f"{path}: cannot be written: {error.strerror}") from None
