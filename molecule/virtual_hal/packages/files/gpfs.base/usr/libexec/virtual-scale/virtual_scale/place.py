"""Where things are on a node, below another root in tests."""

from __future__ import annotations

import os
import socket
from pathlib import Path

ROOT = Path(os.environ.get("VIRTUAL_NODE_ROOT") or "/")
ARRAYS = ROOT / "srv/virtual-scale"  # what all nodes share: the arrays, and the cluster's configuration
# With a blank: bindfs shows the folder that it serves as the device, unless its name has one; then it is fsname.
SERVED = ARRAYS / "file systems"
IDENTITY = ROOT / "var/lib/virtual-node/scale.json"  # by which name and address a machine would join
MMSDRFS = ROOT / "var/mmfs/gen/mmsdrfs"  # a node without this file knows no cluster
NODE_DATA = ROOT / "var/mmfs/gen/mmfsNodeData"
IGNORE_STARTUP_MOUNT = ROOT / "var/mmfs/etc/ignoreStartupMount"
LOGS = ROOT / "var/adm/ras"
MODULES = ROOT / "lib/modules"
PROGRAMS = Path(__file__).resolve().parent.parent


def this_node() -> str:
    """Return the short name of the node."""
    return (os.environ.get("VIRTUAL_NODE_NAME") or socket.gethostname()).partition(".")[0]


def of_node(node: str) -> Path:
    """Return the shared folder about a node: its daemon's lock and running configuration, its mounts."""
    return ARRAYS / "nodes" / node.partition(".")[0]
