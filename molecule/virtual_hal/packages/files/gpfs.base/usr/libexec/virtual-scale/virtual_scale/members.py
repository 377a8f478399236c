"""Commands about the cluster's nodes: mmlscluster, mmaddnode, mmdelnode, mmsdrrestore, licenses and node classes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from virtual_scale import daemon, place, remote, select
from virtual_scale.cluster import Cluster, Member, changing, joined, load, write_node_files
from virtual_scale.options import Options
from virtual_scale.say import Failed, dated, done, heading, note, out, propagating, rows, usage

UNLICENSED = """
===============================================================================
| Warning:                                                                    |
|   This cluster contains nodes that do not have a proper GPFS license        |
|   designation.  This violates the terms of the GPFS licensing agreement.    |
|   Use the mmchlicense command and assign the appropriate GPFS licenses      |
|   to each of the nodes in the cluster.  For more information about GPFS     |
|   license designation, see the Concepts, Planning, and Installation Guide.  |
===============================================================================
"""
LICENSES = ("client", "fpo", "server")


def mmlscluster(words: Sequence[str]) -> int:
    """Show the cluster and its nodes."""
    options = Options("mmlscluster", words, flags=("-Y",))
    cluster, _ = joined()
    arrays = [node.name for node in cluster.nodes if node.array]
    if options.given("-Y"):
        summary = ("clusterName", "clusterId", "uidDomain", "rshPath", "rshSudoWrapper", "rcpPath", "rcpSudoWrapper")
        repository = ("repositoryType", "primaryServer", "secondaryServer")
        values = (cluster.name, cluster.identity, cluster.name, "/usr/bin/ssh", "no", "/usr/bin/scp", "no", "CCR")
        rows("mmlscluster", "clusterSummary", (*summary, *repository), [(*values, *[*arrays, "", ""][:2])])
        columns = ("nodeNumber", "daemonNodeName", "ipAddress", "adminNodeName", "designation")
        others = ("otherNodeRoles", "adminLoginName", "otherNodeRolesAlias")
        nodes = (
            (member.number, member.daemon_name, member.address, member.name, member.designation)
            for member in cluster.nodes
        )
        rows("mmlscluster", "clusterNode", (*columns, *others), ((*of_node, "", "", "") for of_node in nodes))
        return 0
    if any(_short_of_license(node) for node in cluster.nodes):
        note(UNLICENSED)
    out()
    heading("GPFS cluster information", "=")
    for title, value in (
        ("GPFS cluster name:", cluster.name),
        ("GPFS cluster id:", cluster.identity),
        ("GPFS UID domain:", cluster.name),
        ("Remote shell command:", "/usr/bin/ssh"),
        ("Remote file copy command:", "/usr/bin/scp"),
        ("Repository type:", "CCR"),
    ):
        out(f"  {title:<27}{value}")
    out()
    wide = max(len("Daemon node name"), *(len(node.daemon_name) for node in cluster.nodes))
    address = max(len("IP address"), *(len(node.address) for node in cluster.nodes))
    title = f" Node  {'Daemon node name':<{wide}}  {'IP address':<{address}}  {'Admin node name':<{wide}}  Designation"
    heading(title)
    for node in cluster.nodes:
        role = "quorum-manager" if node.designation == "quorumManager" else node.designation
        names = f"{node.daemon_name:<{wide}}  {node.address:<{address}}  {node.name:<{wide}}"
        out(f"{node.number:>4}   {names}  {role}".rstrip())
    out()
    return 0


def _short_of_license(node: Member) -> bool:
    return node.license == "none" or (node.required_license == "server" and node.license != "server")


def mmaddnode(words: Sequence[str]) -> int:
    """Join nodes. Each is asked who it is, and gets its configuration files; one that does not answer is left out."""
    options = Options("mmaddnode", words, flags=("--accept",), values=("-N",), rest=True)
    described = options.value("-N") or ",".join(options.rest)
    if not described:
        usage("mmaddnode", "Missing arguments.\nUsage:\n  mmaddnode -N {NodeDesc[,NodeDesc...] | NodeFile} [--accept]")
    joined()
    failed, added = [], 0
    for description in select.words(described):
        name, role, admin = [*description.split(":"), "", ""][:3]
        dated("mmaddnode", f"Processing node {name}")
        if not _add(admin or name, role, "client" if options.given("--accept") else "none", name if admin else ""):
            failed.append(name)
            continue
        added += 1
    if failed:
        note("mmaddnode: The following nodes could not be added to the GPFS cluster:")
        for name in failed:
            note(f"\t\t{name}")
        note("   Correct the problems and use the mmaddnode command to add these nodes\n   to the cluster.")
    if not added:
        raise Failed
    out("mmaddnode: Command successfully completed")
    if any(_short_of_license(node) for node in load().nodes):
        note(
            "mmaddnode: Warning: Not all nodes have proper GPFS license designations.\n"
            "    Use the mmchlicense command to designate licenses as needed."
        )
    propagating("mmaddnode")
    return 0


def _add(name: str, role: str, license_: str, daemon_name: str) -> bool:
    """Join one node, with the name of its daemon's own interface; False, and why is said, when that cannot be."""
    try:
        who = json.loads(remote.run(name, ["identity"]).out)
    except remote.Unreachable:
        note(f"mmaddnode: {name} cannot be reached.")
        return False
    with changing() as cluster:
        if cluster.member(who["name"]):
            note(f"mmaddnode: Node {who['name']} already belongs to the GPFS cluster.")
            return False
        number = max((node.number for node in cluster.nodes), default=0) + 1
        designation = "quorumManager" if role == "quorum-manager" else role
        own = f"{daemon_name}.{who['name'].partition('.')[2]}" if daemon_name else ""
        cluster.nodes.append(Member(number, who["name"], who["address"], designation, license_, daemon=own))
    return remote.run(name, ["join"]).status == 0


def mmdelnode(words: Sequence[str]) -> int:
    """Take nodes out of the cluster; their daemon has to be down."""
    options = Options("mmdelnode", words, flags=("-a", "-f"), values=("-N",), rest=True)
    joined()
    out("Verifying GPFS is stopped on all affected nodes ...")
    with changing() as cluster:
        chosen = select.nodes(cluster, options.value("-N") or ",".join(options.rest))
        if any(node.array for node in chosen):
            raise Failed("mmdelnode: The arrays serve file systems and cannot be deleted.")
        up = [node.name for node in chosen if daemon.runs(cluster, node)]
        if up:
            raise Failed(f"mmdelnode: GPFS is still active on {','.join(up)}.")
        cluster.nodes = [node for node in cluster.nodes if node not in chosen]
        gone = {node.name for node in chosen}
        cluster.classes = {
            name: [member for member in of if member not in gone] for name, of in cluster.classes.items()
        }
        for values in cluster.settings.values():
            for node in chosen:
                values.pop(node.short, None)
    for node in chosen:
        try:
            remote.run(node.short, ["leave"])
        except remote.Unreachable:
            note(f"mmdelnode: {node.name} cannot be reached.")
    done("mmdelnode")
    return 0


def mmsdrrestore(words: Sequence[str]) -> int:
    """Give this node (or those of -N) the cluster's configuration again, from a node that has it."""
    options = Options("mmsdrrestore", words, flags=("-a",), values=("-p", "-F", "-R", "-N"))
    cluster = load()
    source = options.value("-p")
    if source is None and not place.MMSDRFS.exists():
        raise Failed(
            "mmsdrrestore: File /var/mmfs/gen/mmsdrfs is missing; use the -p option to name a node that has it."
        )
    if source is not None and not _has_configuration(cluster, source):
        raise Failed(f"mmsdrrestore: Unable to retrieve GPFS cluster files from node {source}.")
    chosen = options.value("-N") or ("all" if options.given("-a") else place.this_node())
    status = 0
    for node in select.nodes(cluster, chosen):
        if node.array:
            continue
        dated("mmsdrrestore", f"Processing node {node.name}")
        try:
            answer = remote.run(node.short, ["join"]) if node.short != place.this_node() else None
        except remote.Unreachable:
            note(f"mmsdrrestore: {node.name} cannot be reached.")
            status = 1
            continue
        if answer is None:
            write_node_files(cluster, node)
        out(f"mmsdrrestore: Node {node.name} successfully restored.")
    if status:
        raise Failed
    return 0


def _has_configuration(cluster: Cluster, name: str) -> bool:
    node = cluster.member(name.partition(".")[0])
    if node is None:
        return False
    if node.array:
        return cluster.arrays_on
    try:
        return remote.run(node.short, ["has-configuration"]).status == 0
    except remote.Unreachable:
        return False


def mmchlicense(words: Sequence[str]) -> int:
    """Designate licenses."""
    options = Options("mmchlicense", words, flags=("--accept",), values=("-N",), rest=True)
    if len(options.rest) != 1 or options.rest[0] not in LICENSES or options.value("-N") is None:
        usage(
            "mmchlicense",
            "Usage:\n  mmchlicense {client|fpo|server} [--accept] -N {Node[,Node...] | NodeFile | NodeClass}",
        )
    joined()
    with changing() as cluster:
        chosen = select.nodes(cluster, options.value("-N") or "")
        out(f"\nThe following nodes will be designated as possessing {options.rest[0]} licenses:")
        for node in chosen:
            out(f"\t{node.name}")
        if not options.given("--accept"):
            raise Failed("mmchlicense: The license was not accepted; use --accept.")
        for node in chosen:
            node.license = options.rest[0]
    done("mmchlicense")
    return 0


def mmlslicense(words: Sequence[str]) -> int:
    """Show which node has which license."""
    options = Options("mmlslicense", words, flags=("-L", "-Y"))
    cluster, _ = joined()
    count = {kind: sum(node.license == kind for node in cluster.nodes) for kind in LICENSES}
    short = {
        kind: sum(node.required_license == kind and _short_of_license(node) for node in cluster.nodes)
        for kind in LICENSES
    }
    if options.given("-Y"):
        columns = (
            "nodeName",
            "requiredLicense",
            "designatedLicense",
            "totalNodes",
            "licensedServers",
            "licensedClients",
        )
        more = ("unlicensedServers", "unlicensedClients", "licensedFpo")
        totals = (len(cluster.nodes), count["server"], count["client"], short["server"], short["client"], count["fpo"])
        nodes = ((member.name, member.required_license, member.license, *totals) for member in cluster.nodes)
        rows("mmlslicense", "", (*columns, *more), nodes)
        return 0
    if options.given("-L"):
        heading(f"{' Node name':<32}Required license   Designated license")
        for node in cluster.nodes:
            mark = " *" if _short_of_license(node) else ""
            out(f"{node.name:<34}{node.required_license:<20}{node.license}{mark}")
        out()
    heading(" Summary information ")
    for text, number in (
        ("Number of nodes defined in the cluster:", len(cluster.nodes)),
        ("Number of nodes with server license designation:", count["server"]),
        ("Number of nodes with FPO license designation:", count["fpo"]),
        ("Number of nodes with client license designation:", count["client"]),
        ("Number of nodes still requiring server license designation:", short["server"]),
        ("Number of nodes still requiring client license designation:", short["client"]),
    ):
        out(f"{text:<60}{number:>6}")
    return 0


def mmlsnodeclass(words: Sequence[str]) -> int:
    """Show the node classes that were made here, or those that every cluster has, or both."""
    options = Options("mmlsnodeclass", words, flags=("--all", "--system", "--user", "-Y"), rest=True)
    cluster, _ = joined()
    own = {} if options.given("--system") else cluster.classes
    if options.given("--system") or options.given("--all"):
        of_scale = {name: select.of_system_class(cluster, name) for name in select.SHOWN_CLASSES}
        own = own | {name: [node.name for node in nodes] for name, nodes in of_scale.items()}
    chosen = [name for word in options.rest for name in word.split(",")]
    unknown = [name for name in chosen if name not in cluster.classes]
    if unknown:
        raise Failed(f"mmlsnodeclass: Node class {unknown[0]} does not exist.")
    shown = {name: members for name, members in own.items() if not chosen or name in chosen}
    if options.given("-Y"):
        columns = ("nodeClassName", "memberClasses", "memberNodes", "allMembers")
        lines = ((name, "", ",".join(members), ",".join(members)) for name, members in shown.items())
        rows("mmlsnodeclass", "nodeClasses", columns, lines)
        return 0
    out(f"{'Node Class Name':<22}Members")
    out(f"{'-' * 21} {'-' * 59}")
    for name, members in shown.items():
        out(f"{name:<22}{','.join(members)}")
    return 0


def mmcrnodeclass(words: Sequence[str]) -> int:
    """Make a node class."""
    options = Options("mmcrnodeclass", words, values=("-N",), rest=True)
    if len(options.rest) != 1 or options.value("-N") is None:
        usage("mmcrnodeclass", "Usage:\n  mmcrnodeclass ClassName -N {Node[,Node...] | NodeFile | NodeClass}")
    joined()
    (name,) = options.rest
    with changing() as cluster:
        if name.lower() in (*select.SYSTEM_CLASSES, *(known.lower() for known in cluster.classes)):
            raise Failed(f"mmcrnodeclass: Node class {name} already exists.")
        cluster.classes[name] = [node.name for node in select.nodes(cluster, options.value("-N") or "")]
    done("mmcrnodeclass")
    return 0


def mmchnodeclass(words: Sequence[str]) -> int:
    """Change who is in a node class."""
    options = Options("mmchnodeclass", words, values=("-N",), rest=True)
    if len(options.rest) != 2 or options.rest[1] not in ("add", "delete", "replace") or options.value("-N") is None:
        usage(
            "mmchnodeclass",
            "Usage:\n  mmchnodeclass ClassName {add | delete | replace} -N {Node[,Node...] | NodeFile | NodeClass}",
        )
    joined()
    name, action = options.rest
    with changing() as cluster:
        if name not in cluster.classes:
            raise Failed(f"mmchnodeclass: Node class {name} does not exist.")
        given = {node.name for node in select.nodes(cluster, options.value("-N") or "")}
        before = set(cluster.classes[name])
        after = {"add": before | given, "delete": before - given, "replace": given}[action]
        cluster.classes[name] = [node.name for node in cluster.nodes if node.name in after]
    done("mmchnodeclass")
    return 0


def mmdelnodeclass(words: Sequence[str]) -> int:
    """Delete node classes, and the values that were set for them."""
    options = Options("mmdelnodeclass", words, rest=True)
    joined()
    with changing() as cluster:
        for name in [name for word in options.rest for name in word.split(",")]:
            if cluster.classes.pop(name, None) is None:
                raise Failed(f"mmdelnodeclass: Node class {name} does not exist.")
            for values in cluster.settings.values():
                values.pop(name, None)
    done("mmdelnodeclass")
    return 0
