"""The management node's side: records and orders, by the programs ``hal-reimage`` and ``hal-provision`` there."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hal_cluster.provision import boot, images
from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.images import Manifest
from hal_cluster.provision.kickstart import Place, Server, Source, kickstart
from hal_cluster.provision.nodes import BootNode
from hal_cluster.provision.secrets import first_secrets
from hal_cluster.provision.tokens import MOST_SECONDS, issue
from hal_cluster.reimage.errors import Conflict, ReimageError, Trouble
from hal_cluster.reimage.record import Image, Record, record_of
from hal_cluster.reimage.remote import MOST_SAID, Run
from hal_cluster.reimage.world import Installation
from hal_inventory.bounded import parsed

_CONFLICT = 3
"""Exit status of ``hal-reimage write`` for a record that somebody else wrote meanwhile."""


def _told(run: Run, argv: Sequence[str], stdin: bytes = b"") -> str:
    """Return what a program of the server prints; Trouble with its last line when it refuses."""
    done = run(argv, stdin)
    if done.status == 0:
        return done.out
    lines = (done.err or done.out).strip().splitlines()
    said = lines[-1] if lines else f"{argv[0]}: exit status {done.status}"
    if done.status == _CONFLICT and argv[0] == "hal-reimage":
        raise Conflict(said)
    if done.status == 127:
        raise Trouble(f"{argv[0]} is not on the provisioning server: roll out role provision_server")
    raise Trouble(said)


def _document(text: str, argv: Sequence[str], **parts: type) -> Mapping[str, Any]:
    """Return what a program printed; Trouble unless it has these parts."""
    try:
        answer = parsed(text, MOST_SAID)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or not all(isinstance(answer.get(name), kind) for name, kind in parts.items()):
        raise Trouble(f"{' '.join(argv[:2])} on the provisioning server printed no answer that can be read")
    return answer


class Records:
    """Implements world.Store."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def read(self, node: str) -> Record | None:
        """Return a node's record, None without one."""
        argv = ["hal-reimage", "read", node]
        answer = _document(_told(self._run, argv), argv, nodes=dict, problems=dict)
        if problem := answer["problems"].get(node):
            raise ReimageError(str(problem))
        data = answer["nodes"].get(node)
        return record_of(data) if data else None

    def driven(self, nodes: Sequence[str]) -> None:
        """Mark that these nodes are driven; hal-reimage status says when that was last.

        Trouble when the server cannot do that.
        """
        done = self._run(["hal-reimage", "driven", *nodes], b"")
        if done.status and "invalid choice" in done.err:
            raise Trouble(
                "hal-reimage on the provisioning server is of another release: roll out role provision_server"
            )
        if done.status:
            raise Trouble((done.err or done.out).strip() or f"hal-reimage driven: exit status {done.status}")

    def write(self, record: Record) -> Record:
        """Write a record over the one of its revision; Conflict when there is another."""
        argv = ["hal-reimage", "write", record.node]
        return record_of(_document(_told(self._run, argv, json.dumps(record.to_json()).encode()), argv))


def published(run: Run, folder: str, key: Path) -> list[Manifest]:
    """Return the server's images that this site's key has signed, oldest first; Trouble if it cannot be asked."""
    argv = ["hal-provision", "images"]
    # They are read below the server's folder, and written below one of ours.
    names = [name for name in map(str, _document(_told(run, argv), argv, images=list)["images"]) if _is_folder(name)]
    if not names:
        return []
    files = [f"{name}/{file}" for name in names for file in (images.MANIFEST, images.SIGNATURE)]
    # One call for all; what goes through it is text.
    text = _told(run, ["/bin/sh", "-c", 'tar -C "$0" -cf - -- "$@" | base64', folder, *files])
    manifests = []
    with tempfile.TemporaryDirectory(prefix="hal-images-") as place:
        try:
            # It is not compressed, so its files are not longer than it is; a file with holes would be.
            with tarfile.open(fileobj=io.BytesIO(base64.b64decode(text)), mode="r:") as tar:
                for member in tar:
                    if member.name not in files or not member.isreg() or member.issparse():
                        continue  # a folder may have a manifest alone
                    file = tar.extractfile(member)
                    (Path(place) / member.name).parent.mkdir(exist_ok=True)
                    (Path(place) / member.name).write_bytes(file.read() if file else b"")
        except (tarfile.TarError, ValueError):
            raise Trouble(f"images in {folder} on the provisioning server cannot be read") from None
        for name in names:
            # hal-provision images says what is wrong with one that is not signed. Nobody installs it.
            with suppress(ProvisionError):
                manifests.append(images.signed(Path(place) / name, key))
    return sorted(manifests, key=lambda manifest: manifest.created)


def _is_folder(name: str) -> bool:
    """Tell whether a name is that of one folder, and leads nowhere else."""
    return "/" not in name and "\0" not in name and name not in ("", ".", "..")


def image_of(node: BootNode, manifests: Sequence[Manifest], wanted: str) -> Image:
    """Return the image for a node: the one of that name, or the newest for its architecture and kernel."""
    fitting = [manifest for manifest in manifests if (manifest.arch, manifest.kernel) == (node.arch, node.kernel)]
    if wanted:
        named = [manifest for manifest in manifests if manifest.folder == wanted]
        if not named:
            there = ", ".join(manifest.folder for manifest in manifests) or "none"
            raise ReimageError(
                f"reimage_image is {wanted}: not a signed image of the server; signed images there: {there}"
            )
        if named[0] not in fitting:
            manifest = named[0]
            raise ReimageError(
                f"{node.name}: {wanted} is for {manifest.arch} with kernel {manifest.kernel}, "
                f"and it is {node.arch} with kernel {node.kernel}"
            )
        fitting = named
    if not fitting:
        raise ReimageError(
            f"{node.name}: no image for {node.arch} with kernel {node.kernel} is published: "
            "playbooks/image.yml makes one (docs/provisioning.md)"
        )
    manifest = fitting[-1]
    return Image(manifest.folder, manifest.sha256, manifest.arch, manifest.kernel)


@dataclass(frozen=True)
class Ordering:
    """What orders are made of, the same for all nodes. ``images_url``: below it are images and installers."""

    nodes: Mapping[str, BootNode]
    place: Place
    url: str
    images_url: str
    images_folder: str
    secrets: Server
    authority: Path
    key: Path
    installers: Mapping[str, str]
    append: str = ""
    root_principals: Sequence[str] = ("root",)
    seconds: float = 3 * 3600
    virtual: bool = False


class Provisioning:
    """Implements world.Provision."""

    def __init__(self, run: Run, ordering: Ordering) -> None:
        self._run, self._ordering = run, ordering

    def see(self, node: str) -> Installation:
        """Return what hal-provision says of a node."""
        argv = ["hal-provision", "status", node]
        status = _document(_told(self._run, argv), argv, nodes=dict)["nodes"][node]
        called = status["called"] or {}
        # A call home is told from an earlier one by when its installation began, too.
        ended = " ".join(str(called[part]) for part in ("began", "at") if called.get(part))
        began = str(status["began"]) if status["unfinished"] else ""
        # Without an order it belongs to an earlier installation.
        stopped = str((status.get("stopped") or {}).get("why", "")) if status.get("what") else ""
        return Installation(bool(status["armed"]), bool(status["given"]), began, ended, stopped)

    def arm(self, record: Record) -> str:
        """Arm a node, bring its first secrets; return the fingerprint of its host key."""
        asked, name = self._ordering, record.node
        node = asked.nodes[name]
        token = issue(time.time(), min(asked.seconds, MOST_SECONDS))
        try:
            manifest = self._manifest(record)
            source = Source(image=manifest, image_url=f"{asked.images_url}/{manifest.folder}")
            text = kickstart(
                node,
                asked.place,
                source,
                asked.secrets,
                token,
                wipe=record.plan.wipe,
                virtual=asked.virtual,
            )
            tree = f"{asked.images_url}/{self._installer(node)}"
            installer = boot.installer_of(node.arch, tree, asked.append)
            order = boot.order(node, asked.place.network, f"image {manifest.folder}", installer, asked.url, text, token)
            secrets, fingerprint = first_secrets(node, asked.place.network, asked.authority, asked.root_principals)
        except ProvisionError as error:
            raise Trouble(str(error)) from None
        # An order that is not of the newest record is refused there: somebody may have aborted a moment ago.
        order["reimage_revision"] = record.revision
        done = self._run(["hal-provision", "arm", name], json.dumps(order).encode())
        if done.status == _CONFLICT:
            raise Conflict(name)
        if done.status != 0:
            raise Trouble((done.err or done.out).strip().splitlines()[-1] if done.err or done.out else "not armed")
        _told(self._run, ["hal-provision", "spool", name], secrets)
        return fingerprint

    def _manifest(self, record: Record) -> Manifest:
        """Return the image of the plan, as it is now; Trouble when it is not what was confirmed."""
        asked, wanted = self._ordering, record.plan.image
        for manifest in published(self._run, asked.images_folder, asked.key):
            if manifest.folder == wanted.folder:
                if manifest.sha256 != wanted.sha256:
                    raise Trouble(f"image {wanted.folder} is not the one that was confirmed")
                return manifest
        raise Trouble(f"image {wanted.folder} is not on the server any more, or not signed: hal-provision images")

    def _installer(self, node: BootNode) -> str:
        try:
            return self._ordering.installers[node.arch]
        except KeyError:
            raise Trouble(f"reimage_installers names no installer for {node.arch}") from None

    def disarm(self, node: str) -> None:
        """Have a node boot its disk."""
        _told(self._run, ["hal-provision", "disarm", node])
