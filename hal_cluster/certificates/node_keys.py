"""What a node shows as its public key: only what revoke_node can take back, and nobody else's with it, is kept."""

from __future__ import annotations

import re
from pathlib import Path

from hal_cluster.certificates.errors import CertificateError

SHOWN_AS = {"hosts": "its host key", "backup": "the key by which it sends archives"}
"""What a node's key is, by the folder of the authorities that keeps it."""

KEY = re.compile(r"ssh-ed25519 (AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43})")
"""ed25519: the type and 32 bytes, each with its length before it, are 68 letters of base64 (RFC 8709, section 4)."""

NOT_OF_NODES = ("host_ca.pub", "user_ca.pub", "admin.pub", "issued.jsonl")
"""Who revokes the authority's, the controller's or a user's own key locks out more than a node."""


def problem(folder: Path, kind: str, node: str, key: str, allowed: str = "") -> str:
    """Return why a key is not this node's, as one line without the key; empty for a key that is.

    ``folder``: of the authorities. ``kind``: in SHOWN_AS. ``key``: as the node says it, so it may be any text.
    ``allowed``: text with keys that open accounts without a certificate. A node that changed its address is the same
    node. CertificateError when a file of the authorities cannot be read.
    """
    shown = f"{node} shows %s as {SHOWN_AS[kind]}"
    made = KEY.fullmatch(key)
    if not made:
        return f"{shown % 'what is not an ed25519 public key'}, so it could not be revoked. {_intruder(node)}"
    if made[1] in allowed or is_of_no_node(folder, key):
        whose = "a key of the controller, the authorities or a user"
        return f"{shown % whose}: to revoke the node would lock them out. {_intruder(node)}"
    if others := [path for path in _kept(folder, kind, key) if _owner(path) != node]:
        names, files = (", ".join(dict.fromkeys(words)) for words in (map(_owner, others), map(str, others)))
        return (
            f"{shown % f'the key of {names}'}: to revoke one would revoke the other. If {names} was renamed to {node},"
            f" move {files} to another folder, and roll out again. If not, root of one of them shows the other's key:"
            f" compare them at their consoles, make that node anew, and if it is {names}, move the same away."
        )
    return ""


def nodes_with(folder: Path, key: str) -> list[str]:
    """Return the nodes that have, or had, a key, "type base64"."""
    return list(dict.fromkeys(_owner(path) for kind in SHOWN_AS for path in _kept(folder, kind, key)))


def _kept(folder: Path, kind: str, key: str) -> list[Path]:
    """The files of a kind that have a key."""
    kept = [path for path in sorted((folder / kind).glob("[!.]*_*.pub*")) if not path.name.endswith("-cert.pub")]
    return [path for path in kept if _has(path, key.split()[1])]


def is_of_no_node(folder: Path, key: str) -> bool:
    """Whether a key, "type base64", is one of the authorities, of the controller or of a user."""
    return any(_has(folder / name, key.split()[1]) for name in NOT_OF_NODES)


def _intruder(node: str) -> str:
    return f"That is no accident: look who was root there, and make {node} anew."


def _owner(path: Path) -> str:
    """The node of a file NODE_ADDRESS.pub, NODE_ADDRESS-first.pub, or a former one: no name or address has a "_"."""
    return path.name.rpartition("_")[0]


def _has(path: Path, key: str) -> bool:
    """Whether a file has a key. As bytes: a node may have said anything before keys were looked at."""
    try:
        return key.encode() in path.read_bytes()
    except FileNotFoundError:
        return False  # not every site has each; a former key gets its other name while this looks
    except OSError as error:
        raise CertificateError(f"{path}: cannot be read: {error.strerror}") from None
