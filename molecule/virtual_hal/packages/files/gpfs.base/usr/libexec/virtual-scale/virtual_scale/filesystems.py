"""Commands about file systems and their disks: mmlsfs, mmchfs, mmlsnsd, mmlsmount, mmmount, mmumount."""

from __future__ import annotations

from collections.abc import Sequence

from virtual_scale import attributes, mounts, select
from virtual_scale.cluster import Cluster, FileSystem, changing, joined
from virtual_scale.options import Options
from virtual_scale.running import on_nodes
from virtual_scale.say import Failed, dated, done, heading, note, out, rows, usage

NOT_KNOWN = "File system {name} is not known to the GPFS cluster."
FORMAT = "22.00 (5.0.4.0)"
LOG_SIZES = (256 << 10, 1 << 30)


def _details(cluster: Cluster, file_system: FileSystem) -> list[tuple[str, str, object, str]]:
    """Return flag, field of -Y, value and description of what mmlsfs shows."""
    disks = ";".join(disk.name for disk in cluster.disks if disk.file_system == file_system.name)
    return [
        ("-f", "minFragmentSize", 8192, "Minimum fragment (subblock) size in bytes"),
        ("-i", "inodeSize", 4096, "Inode size in bytes"),
        ("-I", "indirectBlockSize", 32768, "Indirect block size in bytes"),
        ("-m", "defaultMetadataReplicas", 2, "Default number of metadata replicas"),
        ("-M", "maxMetadataReplicas", 2, "Maximum number of metadata replicas"),
        ("-r", "defaultDataReplicas", 1, "Default number of data replicas"),
        ("-R", "maxDataReplicas", 2, "Maximum number of data replicas"),
        ("-j", "blockAllocationType", "scatter", "Block allocation type"),
        ("-D", "fileLockingSemantics", "nfs4", "File locking semantics in effect"),
        ("-k", "ACLSemantics", "nfs4", "ACL semantics in effect"),
        ("-n", "numNodes", 100, "Estimated number of nodes that will mount file system"),
        ("-B", "blockSize", file_system.block_size, "Block size"),
        ("-Q", "quotasEnforced", "none", "Quotas enforced"),
        ("-V", "filesystemVersion", FORMAT, "Current file system version"),
        ("--create-time", "create-time", file_system.created, "File system creation time"),
        ("-z", "DMAPIEnabled", "No", "Is DMAPI enabled?"),
        ("-L", "logfileSize", file_system.log_size, "Logfile size"),
        ("-E", "exactMtime", "Yes", "Exact mtime mount option"),
        ("-S", "suppressAtime", "relatime", "Suppress atime mount option"),
        ("-K", "strictReplication", "whenpossible", "Strict replica allocation option"),
        ("--uid", "UID", file_system.uid, "File system unique ID"),
        ("-P", "storagePools", "system", "Disk storage pools in file system"),
        ("-d", "disks", disks, "Disks in file system"),
        ("-A", "automaticMountOption", file_system.automount, "Automatic mount option"),
        ("-o", "additionalMountOptions", file_system.options, "Additional mount options"),
        ("-T", "defaultMountPoint", file_system.mount, "Default mount point"),
    ]


FLAGS = (*(f"-{letter}" for letter in "fiImMrRjDknBQVzLESKPdAoT"), "--create-time", "--uid")


def _devices(cluster: Cluster, words: Sequence[str]) -> list[FileSystem]:
    if not words or words[0] in ("all", "all_local"):
        return cluster.file_systems
    if words[0] == "all_remote":
        return []
    file_systems = []
    for word in words[0].split(","):
        file_system = cluster.file_system(word) or next(
            (other for other in cluster.file_systems if other.mount == word), None
        )
        if file_system is None:
            raise Failed("{command}: " + NOT_KNOWN.format(name=word))
        file_systems.append(file_system)
    return file_systems


def mmlsfs(words: Sequence[str]) -> int:
    """Show what file systems are."""
    options = Options("mmlsfs", words, flags=(*FLAGS, "-Y"), rest=True)
    cluster, _ = joined()
    if len(options.rest) != 1:
        usage("mmlsfs", "Usage:\n  mmlsfs {Device | all | all_local | all_remote} [Attributes] [-Y]")
    chosen = _devices(cluster, options.rest)
    if not chosen:
        raise Failed("mmlsfs: No file systems were found.")
    wanted = [flag for flag in FLAGS if options.given(flag)]
    shown = {
        file_system.name: [line for line in _details(cluster, file_system) if not wanted or line[0] in wanted]
        for file_system in chosen
    }
    if options.given("-Y"):
        lines = ((name, key, value, "") for name, details in shown.items() for _, key, value, _ in details)
        rows("mmlsfs", "", ("deviceName", "fieldName", "data", "remarks"), lines, also="/")
        return 0
    for name, details in shown.items():
        if options.rest[0].startswith("all"):
            out()
            heading(f"File system attributes for /dev/{name}:", "=")
        out(f"{'flag':<20}{'value':<25}description")
        out(f"{'-' * 19} {'-' * 24} {'-' * 35}")
        for flag, _, value, description in details:
            out(f" {flag:<19}{value!s:<25}{description}")
    return 0


def mmchfs(words: Sequence[str]) -> int:
    """Change the size of the log, the mount point or when it is mounted."""
    options = Options("mmchfs", words, values=("-L", "-T", "-A"), rest=True)
    joined()
    if len(options.rest) != 1 or not any(options.value(flag) for flag in ("-L", "-T", "-A")):
        usage("mmchfs", "Usage:\n  mmchfs Device [-A {yes | no}] [-L LogFileSize] [-T Mountpoint]")
    size = options.value("-L")
    with changing() as cluster:
        (file_system,) = _devices(cluster, options.rest)
        if options.value("-A") not in (None, "yes", "no"):
            raise Failed(f"mmchfs: Incorrect value {options.value('-A')} specified for option -A.")
        in_use = mounts.of_all_nodes(cluster, file_system.name)
        if options.value("-T") and in_use:
            raise Failed(f"mmchfs: File system {file_system.name} is still mounted on {len(in_use)} node(s).")
        if size is not None:
            file_system.log_size = _log_size(size, file_system)
        file_system.mount = options.value("-T") or file_system.mount
        file_system.automount = options.value("-A") or file_system.automount
    if size is not None:
        note(
            "mmchfs: Attention: You must restart the GPFS daemons before the new log file\n"
            "size takes effect. The GPFS daemons can be restarted one node at a time.\n"
            "When the GPFS daemon is restarted on the last node in the cluster, the new\n"
            "log size becomes effective."
        )
    done("mmchfs")
    return 0


def _log_size(text: str, file_system: FileSystem) -> int:
    size = attributes.number(text)
    low, high = LOG_SIZES
    if size is None or not low <= size <= high or (size > file_system.block_size and size % file_system.block_size):
        raise Failed(f"mmchfs: Incorrect value {text} specified for option -L: {low} through {high}, whole blocks.")
    return size


def mmlsnsd(words: Sequence[str]) -> int:
    """Show the disks."""
    options = Options("mmlsnsd", words, flags=("-a", "-F", "-L", "-m", "-Y"), values=("-f", "-d"))
    cluster, _ = joined()
    device = options.value("-f")
    disks = [disk for disk in cluster.disks if device in (None, disk.file_system) and not options.given("-F")]
    if options.given("-Y"):
        columns = ("fileSystem", "diskName", "volumeId", "serverList", "thinDisk")
        rows(
            "mmlsnsd",
            "nsd",
            columns,
            ((disk.file_system, disk.name, disk.volume, ",".join(disk.servers), "") for disk in disks),
        )
        return 0
    out("\n File system   Disk name    NSD servers                                    ")
    out("-" * 75)
    for disk in disks:
        out(f" {disk.file_system:<13} {disk.name:<12} {','.join(server.partition('.')[0] for server in disk.servers)}")
    out()
    return 0


MOUNTED = ("localDevName", "realDevName", "owningCluster", "totalNodes", "nodeIP", "nodeName", "clusterName", "mode")


def mmlsmount(words: Sequence[str]) -> int:
    """Show who has a file system mounted."""
    options = Options("mmlsmount", words, flags=("-L", "-Y"), values=("-C",), rest=True)
    cluster, _ = joined()
    if len(options.rest) != 1:
        usage("mmlsmount", "Usage:\n  mmlsmount {Device | all | all_local | all_remote} [-L] [-Y]")
    used = {
        file_system.name: mounts.of_all_nodes(cluster, file_system.name)
        for file_system in _devices(cluster, options.rest)
    }
    if options.given("-Y"):
        lines: list[tuple[object, ...]] = []
        for name, nodes in used.items():
            head = (name, name, cluster.name, len(nodes))
            lines += [(*head, node.address, node.short, cluster.name, "RW") for node in nodes] or [
                (*head, "", "", "", "")
            ]
        rows("mmlsmount", "", MOUNTED, lines)
        return 0
    for name, nodes in used.items():
        if not nodes:
            out(f"File system {name} is not mounted.")
            continue
        if not options.given("-L"):
            out(f"File system {name} is mounted on {len(nodes)} nodes.")
            continue
        out(f"\nFile system {name} is mounted on {len(nodes)} nodes:")
        for node in nodes:
            out(f"  {node.address:<15} {node.short:<25} {cluster.name}")
    return 0


def mmmount(words: Sequence[str]) -> int:
    """Mount file systems."""
    options = Options("mmmount", words, flags=("-a",), values=("-N", "-o"), rest=True)
    cluster, this = joined()
    if not 1 <= len(options.rest) <= 2:
        usage(
            "mmmount",
            "Usage:\n  mmmount {Device | DefaultMountPoint | all} [MountPoint] [-o MountOptions] [-a | -N Node,...]",
        )
    chosen = _devices(cluster, options.rest[:1])
    dated("mmmount", "Mounting file systems ...")
    argument = options.value("-N") or ("all" if options.given("-a") else None)
    nodes = [node for node in (select.nodes(cluster, argument) if argument else [this]) if not node.array]
    folder = options.rest[1] if len(options.rest) == 2 else ""
    failed = [on_nodes(nodes, ["mount", file_system.name, folder, options.value("-o") or ""]) for file_system in chosen]
    if any(failed):
        raise Failed
    return 0


def mmumount(words: Sequence[str]) -> int:
    """Unmount file systems."""
    options = Options("mmumount", words, flags=("-a", "-f"), values=("-N",), rest=True)
    cluster, this = joined()
    if len(options.rest) != 1:
        usage("mmumount", "Usage:\n  mmumount {Device | MountPoint | all} [-f] [-a | -N Node[,Node...]]")
    chosen = _devices(cluster, options.rest)
    dated("mmumount", "Unmounting file systems ...")
    argument = options.value("-N") or ("all" if options.given("-a") else None)
    nodes = [node for node in (select.nodes(cluster, argument) if argument else [this]) if not node.array]
    force = "force" if options.given("-f") else ""
    if argument or options.rest[0].startswith("all"):  # where it is mounted
        todo = [
            (file_system, [node for node in nodes if node in mounts.of_all_nodes(cluster, file_system.name)])
            for file_system in chosen
        ]
    else:
        todo = [(file_system, nodes) for file_system in chosen]
    failed = [on_nodes(where, ["unmount", file_system.name, force]) for file_system, where in todo]
    if any(failed):
        raise Failed
    return 0
