"""Commands about daemons: mmgetstate, mmstartup, mmshutdown, mmhealth, and what they run on other nodes (mmremote)."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence

from virtual_scale import daemon, mounts, place, remote, select
from virtual_scale.cluster import Cluster, Member, joined, load, write_node_files
from virtual_scale.options import Options
from virtual_scale.say import Failed, dated, heading, note, out, rows, usage

STATE = ("nodeName", "nodeNumber", "state", "quorum", "nodesUp", "totalNodes", "remarks", "cnfsState")


def mmgetstate(words: Sequence[str]) -> int:
    """Show the state of daemons."""
    options = Options("mmgetstate", words, flags=("-a", "-L", "-s", "-v", "-Y"), values=("-N",))
    cluster, this = joined()
    argument = options.value("-N") or ("all" if options.given("-a") else None)
    chosen = select.nodes(cluster, argument) if argument else [this]
    states = {node.name: daemon.state(cluster, node) for node in cluster.nodes if node in chosen}
    up = sum(daemon.runs(cluster, node) for node in cluster.nodes)
    quorum = sum(node.quorum for node in cluster.nodes) // 2 + 1
    lines = [
        (
            node.name,
            node.number,
            states[node.name],
            quorum,
            up,
            len(cluster.nodes),
            "quorum node" if node.quorum else "",
        )
        for node in chosen
    ]
    if options.given("-Y"):
        rows("mmgetstate", "", STATE, ((*line, "(undefined)") for line in lines))
        return 0
    out()
    if options.given("-L"):
        heading(" Node number  Node name       Quorum  Nodes up  Total nodes  GPFS state  Remarks    ")
        for name, number, state, needed, nodes_up, total, remark in lines:
            short = name.partition(".")[0]
            out(
                f"{number:>8}      {short:<18}{needed:>3} {nodes_up:>8} {total:>10}       {state:<11} {remark}".rstrip()
            )
    else:
        heading(" Node number  Node name        GPFS state  ")
        for name, number, state, *_ in lines:
            out(f"{number:>8}      {name.partition('.')[0]:<16} {state}")
    if options.given("-s"):
        _summary(cluster, quorum)
    return 0


def _summary(cluster: Cluster, quorum: int) -> None:
    out()
    heading(" Summary information ")
    voters = [node for node in cluster.nodes if node.quorum]
    active = sum(daemon.runs(cluster, node) for node in cluster.nodes)
    for text, number in (
        ("Number of nodes defined in the cluster:", len(cluster.nodes)),
        ("Number of local nodes active in the cluster:", active),
        ("Number of remote nodes joined in this cluster:", 0),
        ("Number of quorum nodes defined in the cluster:", len(voters)),
        ("Number of quorum nodes active in the cluster:", sum(daemon.runs(cluster, node) for node in voters)),
    ):
        out(f"{text:<54}{number}")
    out(f"Quorum = {quorum}, Quorum {'achieved' if cluster.arrays_on else 'not achieved'}")


def _chosen(options: Options, cluster: Cluster, this: Member) -> list[Member]:
    argument = options.value("-N") or ("all" if options.given("-a") else None)
    return [node for node in (select.nodes(cluster, argument) if argument else [this]) if not node.array]


def on_nodes(nodes: Sequence[Member], words: Sequence[str]) -> int:
    """Run mmremote on nodes; return 0, or 1 when it failed on one. Lines say where they come from."""
    worst = 0
    for node in nodes:
        if node.short == place.this_node():
            worst |= mmremote(words, "" if len(nodes) == 1 else f"{node.short}:  ")
            continue
        try:
            answer = remote.run(node.short, words)
        except remote.Unreachable:
            note(f"mmdsh: {node.short} remote shell process had return code 255.")
            worst = 1
            continue
        for text, say in ((answer.out, out), (answer.err, note)):
            for line in text.splitlines():
                say(f"{node.short}:  {line}")
        worst |= answer.status
    return min(worst, 1)


def mmstartup(words: Sequence[str]) -> int:
    """Start daemons."""
    options = Options("mmstartup", words, flags=("-a",), values=("-N", "-E"))
    cluster, this = joined()
    dated("mmstartup", "Starting GPFS ...")
    if on_nodes(_chosen(options, cluster, this), ["startSubsys"]):
        raise Failed
    return 0


def mmshutdown(words: Sequence[str]) -> int:
    """Unmount everything and stop daemons."""
    options = Options("mmshutdown", words, flags=("-a", "--accept"), values=("-N", "-t"))
    cluster, this = joined()
    nodes = _chosen(options, cluster, this)
    dated("mmshutdown", "Starting force unmount of GPFS file systems")
    failed = on_nodes(nodes, ["unmountAll"])
    dated("mmshutdown", "Shutting down GPFS daemons")
    failed |= on_nodes(nodes, ["shutdownDaemon"])
    dated("mmshutdown", "Finished")
    if failed:
        raise Failed
    return 0


def mmremote(words: Sequence[str], prefix: str = "") -> int:
    """Do on this node what a command on any node wants of it."""
    if not words or words[0] not in _WORK:
        usage("mmremote", f"is called by other commands, with one of {', '.join(_WORK)}")
    try:
        return _WORK[words[0]](words[1:], prefix)
    except Failed as failure:
        if str(failure):
            note(prefix + str(failure).replace("{command}", "mmremote"))
        return failure.status


def _start(_words: Sequence[str], prefix: str) -> int:
    cluster, node = joined()
    if daemon.runs(cluster, node):
        out(f"{prefix}The GPFS subsystem is already active.")
        return 0
    gone = daemon.missing_module()
    if gone is not None:
        note(f"{prefix}mmremote: startSubsys: {daemon.no_module(gone)}")
        note(f"{prefix}mmremote: startSubsys: Unable to verify kernel/module configuration.")
        return 1
    done = subprocess.run(["systemctl", "start", daemon.UNIT], capture_output=True, text=True, check=False)
    if done.returncode:
        note(f"{prefix}{done.stderr.strip()}")
    return min(done.returncode, 1)


def _shutdown(_words: Sequence[str], prefix: str) -> int:
    cluster, node = joined()
    if daemon.runs(cluster, node):
        started = (place.of_node(node.short) / "started").read_text().split()
        out(f"{prefix}Shutting down!\n{prefix}'shutdown' command about to kill process {started[1]}")
    done = subprocess.run(["systemctl", "stop", daemon.UNIT], capture_output=True, text=True, check=False)
    return min(done.returncode, 1)


def _unmount_all(_words: Sequence[str], _prefix: str) -> int:
    """Unmount by force what this node has mounted; the unit's ExecStop does, too."""
    for mount in mounts.table():
        mounts.unmount(mount.file_system, force=True)
    return 0


def _lost(_words: Sequence[str], _prefix: str) -> int:
    """End what served the mounts of a daemon that is gone: users get errors from then on."""
    cluster, node = joined()
    for name in daemon.mounted_anywhere(cluster, node):
        mounts.kill(name, "KILL")
    return 0


def _mount_automatic(_words: Sequence[str], _prefix: str) -> int:
    cluster, node = joined()
    for file_system in cluster.file_systems:
        if file_system.automount == "yes" and not place.IGNORE_STARTUP_MOUNT.exists():
            mounts.mount(node, file_system, None, None, wait=False)
    return 0


def _mount(words: Sequence[str], _prefix: str) -> int:
    cluster, node = joined()
    name, folder, options = (*words, "", "")[:3]
    file_system = cluster.file_system(name)
    if file_system is None:
        raise Failed(f"File system {name} is not known to the GPFS cluster.")
    daemon.require(cluster, node)
    mounts.mount(node, file_system, folder or None, options or None)
    return 0


def _unmount(words: Sequence[str], _prefix: str) -> int:
    name, how = (*words, "")[:2]
    if not any(mount.file_system == name for mount in mounts.table()):
        raise Failed(f"umount: {name}: not mounted")
    mounts.unmount(name, force=how == "force")
    return 0


def _serve_mount(words: Sequence[str], _prefix: str) -> int:
    cluster, node = joined()
    daemon.require(cluster, node)
    mounts.become(node, words[0])
    return 1


def _identity(_words: Sequence[str], _prefix: str) -> int:
    out(place.IDENTITY.read_text().strip())
    return 0


def _join(_words: Sequence[str], _prefix: str) -> int:
    cluster = load()
    node = cluster.member(place.this_node())
    if node is None:
        raise Failed(f"Node {place.this_node()} does not belong to the GPFS cluster.")
    write_node_files(cluster, node)
    return 0


def _leave(_words: Sequence[str], _prefix: str) -> int:
    for path in (place.MMSDRFS, place.NODE_DATA):
        path.unlink(missing_ok=True)
    return 0


def _has_configuration(_words: Sequence[str], _prefix: str) -> int:
    return 0 if place.MMSDRFS.exists() else 1


_WORK: dict[str, Callable[[Sequence[str], str], int]] = {
    "startSubsys": _start,
    "shutdownDaemon": _shutdown,
    "unmountAll": _unmount_all,
    "mount": _mount,
    "unmount": _unmount,
    "lostDaemon": _lost,
    "mountAutomatic": _mount_automatic,
    "serveMount": _serve_mount,
    "identity": _identity,
    "join": _join,
    "leave": _leave,
    "has-configuration": _has_configuration,
}


def mmfsd(_words: Sequence[str]) -> int:
    """Be the daemon."""
    cluster, node = joined()
    mounts.clear(node)
    daemon.become(cluster, node)
    return 1


def mmautoload(_words: Sequence[str]) -> int:
    """Start the daemon at boot where autoload says so."""
    if not place.MMSDRFS.exists():
        return 0
    cluster, node = joined()
    if cluster.effective(node).get("autoload", "no").lower() == "yes":
        return subprocess.run(["systemctl", "start", "--no-block", daemon.UNIT], check=False).returncode
    return 0


HEALTH = ("node", "component", "entityname", "entitytype", "status", "laststatuschange")
EVENTS = (
    "node",
    "component",
    "entityname",
    "entitytype",
    "event",
    "arguments",
    "activesince",
    "identifier",
    "ishidden",
)


def mmhealth(words: Sequence[str]) -> int:
    """Show whether daemon and file systems of this node are well: `mmhealth node show`."""
    options = Options("mmhealth", words, flags=("-Y",), rest=True)
    if options.rest[:2] != ["node", "show"]:
        usage("mmhealth", "Usage:\n  mmhealth node show [-Y]")
    cluster, node = joined()
    states = _health(cluster, node)
    overall = "FAILED" if any(state == "FAILED" for _, _, _, state, _ in states) else "HEALTHY"
    states.insert(0, ("NODE", node.name, "NODE", overall, ""))
    now = time.strftime("%Y-%m-%d %H:%M:%S.000000 %Z")
    if options.given("-Y"):
        events = ((node.name, *where, event, "", now, "", "no") for *where, _, event in states if event)
        rows("mmhealth", "Event", EVENTS, events)
        rows("mmhealth", "State", HEALTH, ((node.name, *state[:4], now) for state in states))
        return 0
    out(f"\nNode name:      {node.name}\nNode status:    {overall}\nStatus Change:  {now}\n")
    heading(f"{'Component':<16}{'Status':<14}{'Status Change':<18}Reasons")
    for component, name, kind, state, event in states[1:]:
        shown = component if kind == "NODE" else f"  {name}"
        out(f"{shown:<16}{state:<14}{'Now':<18}{event or '-'}")
    return 0


def _health(cluster: Cluster, node: Member) -> list[tuple[str, str, str, str, str]]:
    up = daemon.runs(cluster, node)
    states = [("GPFS", node.name, "NODE", "HEALTHY" if up else "FAILED", "" if up else "gpfs_down")]
    stale = {mount.file_system for mount in mounts.table() if not mounts.alive(node, mount.file_system)}
    stale |= {mount.file_system for mount in mounts.table() if mounts.hung(mount.file_system)}
    file_systems = [
        ("FILESYSTEM", file_system.name, "FILESYSTEM", "FAILED", "stale_mount")
        if file_system.name in stale
        else ("FILESYSTEM", file_system.name, "FILESYSTEM", "HEALTHY", "")
        for file_system in cluster.file_systems
    ]
    return [*states, ("FILESYSTEM", node.name, "NODE", "FAILED" if stale else "HEALTHY", ""), *file_systems]
