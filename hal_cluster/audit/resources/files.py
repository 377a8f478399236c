"""Modules that make files, links and directories."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from hal_cluster.audit.resources.model import ABSENT, PRESENT, Call, Resource, file_mode, text

SHA1 = re.compile(r"^[0-9a-f]{40}$")
SHA256 = re.compile(r"^sha256:\s*([0-9a-f]{64})$")
TYPES = {"directory": "directory", "link": "link", "file": "file", "hard": "file", "touch": "file"}


def written(call: Call) -> list[Resource]:
    """copy, template, get_url, assemble: one regular file, where it was asked for."""
    destination = _destination(call)
    if call.result.get("state") == "directory":  # copy of a folder: what is in it is not in the result
        return [_file(destination, {"type": "directory"})]
    declared = {**PRESENT, "type": "file", **attributes(call)}
    checksum = call.result.get("checksum") or call.result.get("checksum_src")
    # The checksum of what others may not read could be tried against guesses.
    if isinstance(checksum, str) and SHA1.match(checksum) and readable_by_others(call, declared):
        declared["sha1"] = checksum
    return [_file(destination, declared)]


def downloaded(call: Call) -> list[Resource]:
    """get_url: as above, and a declared sha256 is kept as it is."""
    resource = written(call)[0]
    pinned = SHA256.match(call.text("checksum"))
    return [
        Resource(resource.resource, {**resource.declared, "sha256": pinned.group(1)} if pinned else resource.declared)
    ]


def file(call: Call) -> list[Resource]:
    """file: a directory, a link, attributes of what is there, or nothing."""
    path = call.text("path", "dest", "name")
    state = call.text("state", default="file")
    if state == "absent":
        return [_file(path, ABSENT)]
    declared = {**PRESENT, **attributes(call)}
    kind = TYPES.get(state)
    # Without a state the module takes what is there: a directory stays one.
    if kind and (call.get("state") is not None or call.result.get("state") == "file"):
        declared["type"] = kind
    if state == "link":
        declared = {**PRESENT, "type": "link", "target": call.text("src")}
    if kind == "file":
        declared["content"] = False  # whatever is in it: a log file, somebody else's file
    return [_file(path, declared)]


def alternative(call: Call) -> list[Resource]:
    """alternatives: the link to what is selected; a candidate alone has no link."""
    if call.text("state", default="selected") != "selected":
        return []
    chosen = {**PRESENT, "type": "link", "target": call.text("path")}
    return [_file(f"/etc/alternatives/{call.text('name')}", chosen)]


def unpacked(call: Call) -> list[Resource]:
    """unarchive, git: the folder; what is in it belongs to the archive."""
    return [_file(call.text("dest"), {**PRESENT, "type": "directory", **attributes(call)})]


def key_pair(call: Call) -> list[Resource]:
    """openssh_keypair: a private key, which is secret, and the public one beside it."""
    path = call.text("path")
    if call.absent():
        return [_file(path, ABSENT, secret=True), _file(f"{path}.pub", ABSENT)]
    private = {**PRESENT, "type": "file", "mode": file_mode(call.get("mode")) or "0600", **_owners(call)}
    return [_file(path, private, secret=True), _file(f"{path}.pub", {**PRESENT, "type": "file"})]


def private_key(call: Call) -> list[Resource]:
    """openssl_privatekey: a secret, alone."""
    path = call.text("path")
    declared = ABSENT if call.absent() else {**PRESENT, "type": "file", "mode": file_mode(call.get("mode")) or "0600"}
    return [_file(path, {**declared, **({} if call.absent() else _owners(call))}, secret=True)]


def certificate(call: Call) -> list[Resource]:
    """openssh_cert, x509_certificate."""
    declared = ABSENT if call.absent() else {**PRESENT, "type": "file", **attributes(call)}
    return [_file(call.text("path"), declared)]


def attributes(call: Call) -> dict[str, Any]:
    """Mode, owner and group as far as the task declares them; as the node names them where the task does not."""
    declared = _owners(call)
    mode = call.get("mode")
    if mode is not None and text(mode) != "preserve":
        exact = file_mode(mode) or file_mode(call.result.get("mode"))
        if exact:
            declared["mode"] = exact
    return declared


def _owners(call: Call) -> dict[str, Any]:
    declared: dict[str, Any] = {}
    for name, value in call.given("owner", "group"):
        # A number is resolved by the node.
        named = call.result.get(name) if text(value).isdigit() else value
        if named is not None and not text(named).isdigit():
            declared[name] = text(named)
    return declared


def readable_by_others(call: Call, declared: Mapping[str, Any]) -> bool:
    """True when everybody on the node may read the file, as far as declaration and result say."""
    mode = declared.get("mode") or file_mode(call.result.get("mode"))
    return bool(mode) and bool(int(mode, 8) & 0o004)


def _destination(call: Call) -> str:
    """What was asked for. Where a module wrote elsewhere, as below a directory that is there, that is not ours.

    For a path that ends in a slash it is what the module says.
    """
    declared = call.text("dest", "path")
    if not declared.endswith("/"):
        return declared
    path = call.result.get("dest") or call.result.get("path")
    return path if isinstance(path, str) and path else os.path.join(declared, os.path.basename(call.text("src")))


def _file(path: str, declared: Mapping[str, Any], *, secret: bool = False) -> Resource:
    name = path if path == "/" else path.rstrip("/")
    return Resource(f"file:{name}", declared, secret)
