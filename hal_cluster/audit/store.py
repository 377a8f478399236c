"""What the controller keeps for audits of a site: records, spools of runs, proposals, the key. For its owner alone."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import secrets
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hal_cluster.audit.errors import AuditError
from hal_inventory.bounded import MOST_ANSWER, BoundError, inflated, limited, parsed

KEY_BYTES = 32


class Store:
    """The folder hal_audit_dir. Files are replaced at once or not at all."""

    def __init__(self, folder: str | Path) -> None:
        """Folders and files are made at the first write."""
        self.folder = Path(folder)
        self._lock = -1

    @property
    def last(self) -> Path:
        """The results of the last audit."""
        return self.folder / "last.json"

    def record(self, host: str) -> Path:
        """The controller's copy of a node's record."""
        return self.folder / "records" / _file(host)

    def copy(self, host: str) -> bytes:
        """Return that copy, b"" without one; AuditError for one that is longer than any record may be."""
        path = self.record(host)
        return _read(path) if path.is_file() else b""

    def read_record(self, host: str) -> dict[str, Any]:
        """Return that copy as data; AuditError for one that cannot be used."""
        path = self.record(host)
        return _mapping(path, _read(path))

    def proposal(self, host: str) -> Path:
        """What a check mode run proposes as a record."""
        return self.folder / "proposals" / _file(host)

    def spool(self, run: str, host: str) -> Path:
        """What a run has noted for a host and not yet given to it."""
        return self.folder / "spool" / run / _file(host)

    def key(self) -> bytes:
        """The site's key for hashes of inputs; made at first use."""
        path = self.folder / "key"
        if not path.exists():
            _folder(self.folder)
            handle, temporary = tempfile.mkstemp(dir=self.folder)
            with os.fdopen(handle, "wb") as stream:
                stream.write(secrets.token_bytes(KEY_BYTES))
            try:
                os.link(temporary, path)  # of two that make it at once, one wins
            except FileExistsError:
                pass
            finally:
                os.unlink(temporary)
        key = path.read_bytes()
        if len(key) != KEY_BYTES:
            raise AuditError(
                f"{path} has {len(key)} bytes instead of {KEY_BYTES}: remove it; the next rollout makes another"
            )
        return key

    def begin(self, run: str) -> None:
        """Mark a run as active: others leave its spools alone until this process ends."""
        folder = self.folder / "spool" / run
        _folder(folder)
        self._lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def end(self, run: str) -> None:
        """The run is over; its folder goes unless something is left in it."""
        if self._lock >= 0:
            # Explicitly: a worker that is about to end also has the handle, and closing one of two releases nothing.
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = -1
        _remove_if_empty(self.folder / "spool" / run)

    def pending(self, host: str, run: str = "") -> list[Path]:
        """Spools of a host, oldest first: those of `run` and of runs that are over."""
        spools = sorted((self.folder / "spool").glob(f"*/{_file(host)}"))
        return [path for path in spools if path.parent.name == run or not _locked(path.parent)]

    def done(self, spool: Path) -> None:
        """The node has it: remove a spool, and its run's folder when it was the last."""
        spool.unlink(missing_ok=True)
        if not _locked(spool.parent):
            _remove_if_empty(spool.parent)

    def forget(self, host: str) -> None:
        """Remove what is kept of a node that was installed anew: its record, and what could not be told to it.

        The new system has nothing of the former one. A later rollout would take up the copy that is kept here, because
        a node without a record may have lost it. After an installation it is right that there is none.
        """
        for path in (self.record(host), *self.pending(host)):
            path.unlink(missing_ok=True)
            _remove_if_empty(path.parent)

    def keep_record(self, host: str, packed: str, digest: str) -> bytes:
        """Keep a record as the node returned it, and return it.

        AuditError, and nothing is kept, when it is not what the node hashed, is not a record, or is over a bound.
        """
        try:
            data = unpack(packed)
            if hashlib.sha256(data).hexdigest() != digest:
                raise AuditError("the record that came back is not the one that was stored")
            if not isinstance(parsed(data), dict):
                raise AuditError("the record that came back is not a mapping")
        except BoundError as error:
            raise AuditError(f"{host}: the record that came back has {error}, and not kept") from None
        except (AuditError, ValueError) as error:
            raise AuditError(f"{host}: {error}") from None
        write(self.record(host), data, durable=True)
        return data


def write_json(path: Path, document: Mapping[str, Any], *, durable: bool = False) -> None:
    """Write a document in its canonical form."""
    write(path, json.dumps(document, sort_keys=True, separators=(",", ":")).encode(), durable=durable)


def write(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Replace a file by `data`, 0600 in a folder 0700."""
    _folder(path.parent)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_json(path: Path) -> dict[str, Any]:
    """Read a document of ours; AuditError with its path for what is not one."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise AuditError(f"{path} cannot be read: {error}") from error
    return _mapping(path, data)


def _mapping(path: Path, data: bytes) -> dict[str, Any]:
    try:
        document = parsed(data, None)
    except ValueError as error:
        raise AuditError(f"{path} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise AuditError(f"{path} is not a mapping")
    return document


def _read(path: Path) -> bytes:
    """Return the bytes of a record; AuditError for more than a node may have said."""
    with path.open("rb") as stream:
        data = stream.read(MOST_ANSWER + 1)
    try:
        limited(data)
    except BoundError as error:
        raise AuditError(f"{path} has {error}. Remove it; the next rollout makes another") from None
    return data


def pack(data: bytes) -> str:
    """Bytes as text that travels in a module's arguments and results."""
    return base64.b64encode(zlib.compress(data)).decode("ascii")


def unpack(text: str) -> bytes:
    """The bytes of a packed text. BoundError for more than a record may have, AuditError for what is damaged."""
    limited(text)
    try:
        return inflated(base64.b64decode(text, validate=True))
    except BoundError:
        raise
    except (ValueError, zlib.error) as error:
        raise AuditError(f"a packed record is damaged: {error}") from error


def _file(host: str) -> str:
    return f"{quote(host, safe='')}.json"


def _folder(path: Path) -> None:
    for folder in reversed([path, *_ours(path)]):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _ours(path: Path) -> Iterator[Path]:
    """Parents up to the folder `audit`; what is above it is not ours to make private."""
    for parent in path.parents:
        if path.name == "audit" or "audit" not in parent.parts:
            return
        yield parent
        if parent.name == "audit":
            return


def _locked(folder: Path) -> bool:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two that look do not disturb each other
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return
