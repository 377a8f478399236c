"""virtual-scale: breaks and mends the emulated file systems of this node. It is not a command of Scale's."""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Sequence
from dataclasses import asdict

from virtual_scale import daemon, mounts, place
from virtual_scale.cluster import Cluster, Member, changing, load
from virtual_scale.say import Failed, out

HELP = """Faults of the emulated Spectrum Scale (no command of IBM's, and no part of a real node)."""


def virtual_scale(words: Sequence[str]) -> int:
    """Run one of the faults."""
    parser = argparse.ArgumentParser(prog="virtual-scale", description=HELP)
    actions = parser.add_subparsers(dest="action", required=True)
    for name, text in (
        ("hang", "whoever uses the file system waits, until resume"),
        ("resume", "it answers again"),
    ):
        actions.add_parser(name, help=text).add_argument("file_system")
    actions.add_parser("die", help="kill mmfsd (-9): its mounts stay and give errors")
    actions.add_parser("forget", help="remove the cluster's configuration from this node, as a new installation does")
    actions.add_parser("arrays", help="switch the arrays off or on: without them there is no quorum").add_argument(
        "power", choices=["on", "off"]
    )
    actions.add_parser("show", help="what is there, as JSON")
    chosen = parser.parse_args(list(words))
    cluster = load()
    if chosen.action in ("hang", "resume"):
        _signal(cluster, chosen.file_system, "STOP" if chosen.action == "hang" else "CONT")
    elif chosen.action == "die":
        _die()
    elif chosen.action == "forget":
        place.MMSDRFS.unlink(missing_ok=True)
        place.NODE_DATA.unlink(missing_ok=True)
    elif chosen.action == "arrays":
        with changing() as now:
            now.arrays_on = chosen.power == "on"
    else:
        out(json.dumps(_shown(cluster, cluster.member(place.this_node())), indent=1))
    return 0


def _signal(cluster: Cluster, name: str, kind: str) -> None:
    node = cluster.member(place.this_node())
    if node is None or not mounts.alive(node, name):
        raise Failed(f"virtual-scale: {name} is not mounted here")
    mounts.kill(name, kind)


def _die() -> None:
    try:
        number = int((place.of_node(place.this_node()) / "started").read_text().split()[1])
        os.kill(number, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        raise Failed("virtual-scale: mmfsd does not run here") from None


def _shown(cluster: Cluster, node: Member | None) -> dict[str, object]:
    return {
        "cluster": cluster.name,
        "arrays_on": cluster.arrays_on,
        "node": asdict(node) if node else None,
        "state": daemon.state(cluster, node) if node else None,
        "knows_the_cluster": place.MMSDRFS.exists(),
        "mounts": {
            mount.file_system: {
                "folder": mount.folder,
                "alive": node is not None and mounts.alive(node, mount.file_system),
                "hung": mounts.hung(mount.file_system),
            }
            for mount in mounts.table()
        },
    }
