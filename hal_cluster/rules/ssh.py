"""What somebody set or uses and a new sshd_config would take away, and keys of others."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping

from hal_cluster.rules.errors import RuleError
from hal_inventory.printable import few, one_line

Settings = Mapping[str, list[str]]

METHODS = {
    "passwordauthentication": "password",
    "challengeresponseauthentication": "keyboard-interactive/pam",
    "kbdinteractiveauthentication": "keyboard-interactive/pam",
    "gssapiauthentication": "gssapi-with-mic",
    "kerberosauthentication": "password",
    "hostbasedauthentication": "hostbased",
}
"""Ways in that a new installation may have open, and what sshd calls a login by them (auth.c, auth_log)."""

NOT_COMPARED = frozenset(("hostkey", "hostcertificate", "permitrootlogin"))
"""Host keys have rules of their own. That root comes in by certificate is what the role is for."""

SHIPPED_KEYS = frozenset(f"/etc/ssh/ssh_host_{kind}_key" for kind in ("rsa", "dsa", "ecdsa", "ed25519"))
"""sshd's own, sshd_config(5): those that sshd-keygen makes on a new node."""

SECTION = re.compile(r"== (.+)")
WIDEST = 200


def losses(seen: str, kept_keys: Iterable[str], account: str, came: str = "") -> list[str]:
    """Return a sentence for each thing that sshd has and would lose, from what the scripts look.sh and came.sh printed.

    Lost is what is otherwise than before and was chosen by somebody: it differs from sshd's own default, and from the
    file that this role wrote last, or else a new installation's. What a new installation has open is lost if somebody
    other than root and `account`, by which this run comes in, has come in. A file that sshd cannot read is lost where
    an sshd runs, which has something else in force, unless the file is this role's. RuleError for an answer that
    is not whole, as that of came.sh where it decides.
    `kept_keys`: paths of host keys that stay. `came`: what came.sh printed, empty where `undecided` is false.
    """
    parts, kept = _sections(seen), set(kept_keys)
    if not _depends(parts, kept):
        return _lost(parts, kept, set())
    ways = (line.partition(" ") for line in _part(_sections(came), "came"))
    return _lost(parts, kept, {(method, who) for method, _, who in ways if who and who not in ("root", account)})


def undecided(seen: str, kept_keys: Iterable[str]) -> bool:
    """Return whether it depends on who came in what is lost, from what look.sh printed.

    Logs have to be read then, which takes time on a login node. `kept_keys`: paths of host keys that stay.
    RuleError for an answer that is not whole.
    """
    return _depends(_sections(seen), set(kept_keys))


def _depends(parts: Settings, kept: set[str]) -> bool:
    return _lost(parts, kept, set()) != _lost(parts, kept, {("session", "somebody")})


def _lost(parts: Settings, kept: set[str], people: set[tuple[str, str]]) -> list[str]:
    first = "recorded" not in parts
    lost = {
        line: None for user in ("root", "nobody") for line in _settings_lost(parts, user, people if first else set())
    }
    unread = parts.get("unread", []) if "in force" in parts else []
    return [
        *(f"what it has in force, unknown here: {keyword}" for keyword in unread),
        *lost,
        *_matches_lost(parts),
        *_keys_lost(parts, kept, people),
    ]


def foreign_keys(seen: str, allowed: Mapping[str, Iterable[str]]) -> list[str]:
    """Return for each key that opens an account and is not in `allowed` whose it is: account, fingerprint, comment.

    `seen`: what look.sh printed. `allowed`: by account, the lines that are declared. A key's options and kind are said,
    too.
    """
    parts = _sections(seen)
    return [
        f"{account}: {_described(line)}"
        for account in sorted(allowed)
        for line in parts.get(f"keys {account}", [])
        if line not in set(allowed[account])
    ]


def said(lines: Iterable[str]) -> str:
    """Return such sentences for a message: the first ones, each cut, and how many more.

    The text is one printable line.
    """
    return few(lines, 20, WIDEST)


def _settings_lost(parts: Settings, user: str, people: set[tuple[str, str]]) -> Iterator[str]:
    now, bare, base, then = (_settings(_part(parts, f"{which} {user}")) for which in ("now", "bare", "base", "then"))
    for name in sorted((now.keys() | then.keys()) - NOT_COMPARED):
        here, later = now.get(name, []), then.get(name, [])
        if here == later:
            continue
        if here not in (base.get(name, []), bare.get(name, [])):
            yield f"{name} is {_value(here)}, would be {_value(later)}"
        elif name in METHODS and here == ["yes"] and (who := _who(METHODS[name], people)):
            yield f"{name} is yes, would be {_value(later)}: {few(who, 5, 32)} came in"


def _who(method: str, people: set[tuple[str, str]]) -> list[str]:
    """Return who came in by a method, and those of whom only a session is known, which says nothing of the method."""
    explained = {who for by, who in people if by != "session"}
    return sorted({who for by, who in people if by == method or (by == "session" and who not in explained)})


def _matches_lost(parts: Settings) -> Iterator[str]:
    then, base = set(_blocks(_part(parts, "then match"))), set(_blocks(_part(parts, "base match")))
    for block, line in _blocks(_part(parts, "now match")):
        if (block, line) not in then | base:
            yield f"{block}: {line}"


def _keys_lost(parts: Settings, kept: set[str], people: set[tuple[str, str]]) -> Iterator[str]:
    ours = {*kept, "/etc/ssh/ssh_host_ed25519_key", *parts.get("recorded", [])}
    for path in _part(parts, "hostkeys"):
        if path not in ours and (path not in SHIPPED_KEYS or people or "recorded" in parts):
            yield f"host key {path}, by which clients know this node"


def _settings(lines: Iterable[str]) -> dict[str, list[str]]:
    """Return the values of each setting as `sshd -T` has them, sorted: some have a line each."""
    settings: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(" ")
        settings.setdefault(name.lower(), []).append(value)
    return {name: sorted(values) for name, values in settings.items()}


def _blocks(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (Match line, setting below it) as written, with single blanks."""
    block = ""
    for line in lines:
        words = line.partition("#")[0].split()
        if words and words[0].lower() == "match":
            block = " ".join(["Match", *words[1:]])
        elif words:
            yield block, " ".join(words)


def _value(values: list[str]) -> str:
    return one_line(" ".join(values), WIDEST // 2) or "not set"


def _described(line: str) -> str:
    """Return a key's options, kind, fingerprint (as ssh-keygen -l) and comment; a program's line as it is."""
    match = re.fullmatch(r"(?:(.*) )?((?:ssh|ecdsa|sk)-\S+) ([A-Za-z0-9+/=]+)(?: (.*))?", line)
    if not match:
        return one_line(line, WIDEST)
    options, kind, blob, comment = match.groups()
    try:
        digest = hashlib.sha256(base64.b64decode(blob, validate=True)).digest()
    except binascii.Error:
        return one_line(line, WIDEST)
    said = f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
    return one_line(" ".join(word for word in (options, kind, said, comment) if word), WIDEST)


def _sections(seen: str) -> dict[str, list[str]]:
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in seen.splitlines():
        if match := SECTION.fullmatch(line):
            lines = parts.setdefault(match[1], [])
        elif line.strip():
            lines.append(line.strip())
    return parts


def _part(parts: Settings, name: str) -> list[str]:
    if name not in parts:
        raise RuleError(f"what sshd has could not be read: no {name}")
    return parts[name]
