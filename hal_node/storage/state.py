# -*- coding: utf-8 -*-
"""What the drives of a node are, what is on them, and which md arrays run. Python 2.7 and 3; reads only.

Also a program, for the expectations of the role local_storage: what is not as declared is printed, a
line each.
"""

from __future__ import absolute_import, division, print_function

import io
import json
import os
import re
import subprocess
import sys

MYPY = False
if MYPY:
    from typing import Any, Callable, Collection, Iterable  # noqa: F401  in comments

__metaclass__ = type

MIB = 1024 * 1024
SECONDS = "20"
PAIR = re.compile(r'([A-Z0-9:%-]+)="((?:[^"\\]|\\.)*)"')
# Whole disks by the names that the model has them by.
STABLE = re.compile(r"^(?:wwn-0x[0-9a-f]+|nvme-(?:eui|uuid|nvme)\..*)$")
RUNS = ("clean", "active", "active-idle", "write-pending", "readonly", "read-auto")


class CannotRead(Exception):
    """A program did not answer, or a device could not be read: what is on it is not known."""


# ------------------------------------------------------------------------------------------------ parsers
def parse_export(text):
    # type: (str) -> dict[str, str]
    """Return KEY=value lines as a dict: mdadm --export, blkid -o export."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def parse_lsblk(text):
    # type: (str) -> list[dict[str, str]]
    """Return a dict for each line of lsblk -P."""
    return [{key: value.strip() for key, value in PAIR.findall(line)} for line in text.splitlines() if line]


def parse_wipefs(text):
    # type: (str) -> list[str]
    """Return the kinds of the signatures that wipefs -p lists, with their label where they have one."""
    kinds = []
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) < 4 or line.startswith("#"):
            continue
        label = fields[2].strip()
        kinds.append(fields[3].strip() + (" (%s)" % label if label else ""))
    return sorted(set(kinds))


def parse_xfs_info(text):
    # type: (str) -> dict[str, int] | None
    """Return the stripe of a file system as xfs_info shows it, in KiB: {su_kb, sw}, or None where it has none."""
    data = [line for line in text.splitlines() if line.startswith("data ")]
    unit = re.search(r"bsize=(\d+)", data[0]) if data else None
    after = text[text.index(data[0]):] if data else ""
    stripe = re.search(r"sunit=(\d+)\s+swidth=(\d+) blks", after)
    if not unit or not stripe:
        raise CannotRead("xfs_info says nothing about the data's stripe")
    sunit, swidth = int(stripe.group(1)), int(stripe.group(2))
    if not sunit:
        return None
    return {"su_kb": sunit * int(unit.group(1)) // 1024, "sw": swidth // sunit}


def other_arrays(text, arrays):
    # type: (str, list[dict[str, Any]]) -> list[str]
    """Return the ARRAY lines of an mdadm.conf that are for other arrays: without its line an array may not come up.

    A line with the name of one of these and another UUID is for an earlier array that was made anew. mdadm.conf(5):
    keywords may be short, in any case; a line that begins with a blank continues the line before it.
    """
    lines = []  # type: list[str]
    for line in (re.sub(r"(^|\s)#.*", "", raw).rstrip() for raw in text.splitlines()):
        if line[:1].isspace() and lines:
            lines[-1] += line
        elif line:
            lines.append(line)
    names = {array["name"] for array in arrays}
    uuids = {hexadecimal(array["uuid"]) for array in arrays}
    return [
        " ".join(words)
        for words in (line.split() for line in lines)
        if len(words[0]) > 2 and "ARRAY".startswith(words[0].upper())
        and re.sub("^/dev/md/", "", "".join(words[1:2])) not in names
        and not uuids.intersection(hexadecimal(word[5:]) for word in words if word.upper().startswith("UUID="))
    ]


def hexadecimal(uuid):
    # type: (str) -> str
    """Return a UUID without what may be between its digits."""
    return re.sub("[^0-9a-f]", "", uuid.lower())


def parse_mounts(text):
    # type: (str) -> dict[str, list[str]]
    """Return the mount points of /proc/self/mountinfo by the number of the device, as "8:16"."""
    points = {}  # type: dict[str, list[str]]
    for line in text.splitlines():
        fields = line.split()
        if len(fields) > 4:
            points.setdefault(fields[2], []).append(fields[4])
    return points


# ------------------------------------------------------------------------------------------------ the node
class Node(object):
    """The node, by its programs and /sys. `call` runs a program: (status, output, errors)."""

    def __init__(self, call=None, sys_block="/sys/class/block", by_id="/dev/disk/by-id"):
        # type: (Callable[[list[str]], tuple[int, str, str]] | None, str, str) -> None
        self.call = call or run
        self.sys_block, self.by_id = sys_block, by_id
        self.labels = None  # type: dict[str, dict[str, str]] | None

    def ask(self, argv, accept=(0,)):
        # type: (list[str], Collection[int]) -> str
        """Return what a program prints. CannotRead when it fails or does not answer."""
        status, out, err = self.call(["timeout", SECONDS] + argv)
        if status not in accept:
            said = (err or out).strip().splitlines()
            raise CannotRead("%s: %s" % (" ".join(argv), said[-1] if said else "status %d" % status))
        return out

    def text(self, *parts):
        # type: (*str) -> str
        """Return a file of /sys/class/block, "" when it is not there."""
        try:
            with io.open(os.path.join(self.sys_block, *parts)) as stream:
                return stream.read().strip()
        except (IOError, OSError):
            return ""

    def names(self, *parts):
        # type: (*str) -> list[str]
        """Return what is in a folder of /sys/class/block."""
        try:
            return sorted(os.listdir(os.path.join(self.sys_block, *parts)))
        except OSError:
            return []

    def kernel_name(self, path):
        # type: (str) -> str | None
        """Return the kernel's name of a device (sdb, md127), None when it is not there."""
        name = os.path.basename(os.path.realpath(path))
        return name if os.path.exists(path) and os.path.isdir(os.path.join(self.sys_block, name)) else None

    def partitions(self, name):
        # type: (str) -> list[str]
        """Return the partitions of a device."""
        return [part for part in self.names(name) if self.text(name, part, "partition")]

    def links(self):
        # type: () -> dict[str, list[str]]
        """Return the stable names of whole disks: {kernel's name: [path]}."""
        by_kernel = {}  # type: dict[str, list[str]]
        names = os.listdir(self.by_id) if os.path.isdir(self.by_id) else []
        for link in sorted(names):
            if STABLE.match(link) and "-part" not in link:
                path = os.path.join(self.by_id, link)
                by_kernel.setdefault(os.path.basename(os.path.realpath(path)), []).append(path)
        return by_kernel

    # -------------------------------------------------------------------------------------------- arrays
    def arrays(self):
        # type: () -> dict[str, dict[str, Any]]
        """Return the md arrays that run or are being assembled, by the kernel's name."""
        # "clear": a number without an array, as after mdadm --stop.
        return {n: self.array(n) for n in self.names() if self.text(n, "md", "array_state") not in ("", "clear")}

    def array(self, name):
        # type: (str) -> dict[str, Any]
        """Return one array; members by the kernel's name of the disk, with slot and state."""
        # Not of --detail alone: mdadm 4.1 calls a failed disk "spare" there.
        shown = parse_export(self.ask(["mdadm", "--detail", "--export", "/dev/" + name], accept=(0, 1, 4)))
        members = {}
        for entry in self.names(name, "md"):
            if entry.startswith("dev-"):
                members[entry[4:]] = {
                    "slot": self.text(name, "md", entry, "slot"),
                    "state": self.text(name, "md", entry, "state"),
                }
        chunk = self.text(name, "md", "chunk_size")
        return {
            "name": shown.get("MD_NAME", ""),
            "uuid": shown.get("MD_UUID", ""),
            "level": self.text(name, "md", "level"),
            "chunk_kb": int(chunk) // 1024 if chunk.isdigit() else 0,
            "raid_disks": int((self.text(name, "md", "raid_disks").split() or ["0"])[0]),
            "degraded": int(self.text(name, "md", "degraded") or 0),
            "state": self.text(name, "md", "array_state"),
            "action": self.text(name, "md", "sync_action"),
            "done": self.text(name, "md", "sync_completed"),
            "members": members,
            "uses": self.uses(name),
        }

    # -------------------------------------------------------------------------------------------- volumes
    def shown(self):
        # type: () -> dict[str, dict[str, str]]
        """Return what is written on the labels of all disks, by the kernel's name."""
        if self.labels is None:
            lines = parse_lsblk(self.ask(["lsblk", "-d", "-n", "-P", "-o", "NAME,MODEL,SERIAL"]))
            self.labels = {line.get("NAME", ""): line for line in lines}
        return self.labels

    def uses(self, name):
        # type: (str) -> list[str]
        """Return what uses a device or its partitions: mount points, swap, holders."""
        # A user's mount may have a name that is not text.
        with io.open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as stream:
            mounts = parse_mounts(stream.read())
        with io.open("/proc/swaps") as stream:
            swaps = {os.path.basename(os.path.realpath(line.split()[0])) for line in stream.readlines()[1:]}
        uses = []
        for device in [name] + self.partitions(name):
            uses += ["mounted at %s" % point for point in mounts.get(self.text(device, "dev"), [])]
            uses += ["swap"] if device in swaps else []
            uses += ["held by %s" % holder for holder in self.names(device, "holders")]
        return uses

    def volume(self, path):
        # type: (str) -> dict[str, Any] | None
        """Return what a disk or an array is and what is on it; None when it is not there."""
        name = self.kernel_name(path)
        if name is None:
            return None
        size = int(self.text(name, "size") or 0) * 512
        device = "/dev/" + name
        parts = self.partitions(name)
        signatures = []
        for part in [name] + parts:
            where = "" if part == name else "%s: " % part
            signatures += [where + kind for kind in parse_wipefs(self.ask(["wipefs", "-p", "/dev/" + part]))]
        examined = probed = ""
        if "linux_raid_member" in " ".join(signatures):
            examined = self.ask(["mdadm", "--examine", "--export", device], accept=(0, 1, 2))
        elif signatures:
            probed = self.ask(["blkid", "-p", "-o", "export", device], accept=(0, 2, 8))
        shown = self.shown().get(name, {})
        return {
            "device": device,
            "size": size,
            "model": shown.get("MODEL", ""),
            "serial": shown.get("SERIAL", ""),
            "partitions": ["/dev/" + part for part in parts],
            "signatures": signatures,
            "superblock": parse_export(examined) if "MD_UUID=" in examined else {},
            "file_system": parse_export(probed),
            "uses": self.uses(name),
            "blank": not signatures and not parts and is_blank(device, size),
        }


def run(argv):
    # type: (list[str]) -> tuple[int, str, str]
    """Run a program with nothing to read: (status, output, errors)."""
    environment = dict(os.environ, LC_ALL="C", PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    with open(os.devnull) as nothing:
        try:
            process = subprocess.Popen(
                argv, stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
            )
        except OSError as error:
            return 127, "", "%s: %s" % (argv[0], error)
        out, err = process.communicate()
    return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def is_blank(device, size):
    # type: (str, int) -> bool
    """Whether the first and the last MiB of a device are all zero. CannotRead when it cannot be read."""
    try:
        with io.open(device, "rb", buffering=0) as stream:
            for offset in (0, max(0, size - MIB)):
                stream.seek(offset)
                if stream.read(MIB).strip(b"\0"):
                    return False
    except (IOError, OSError) as error:
        raise CannotRead("%s: %s" % (device, error))
    return True


class Volumes(object):
    """The volumes of a node by path, each read when it is asked for: disks of an array that runs are left in peace."""

    def __init__(self, node):
        # type: (Node) -> None
        self.node = node
        self.seen = {}  # type: dict[str, dict[str, Any] | None]

    def get(self, path):
        # type: (str) -> dict[str, Any] | None
        """Return a volume, None when it is not there."""
        if path not in self.seen:
            self.seen[path] = self.node.volume(path)
        return self.seen[path]


def state_of(node, sets):
    # type: (Node, list[dict[str, Any]]) -> dict[str, Any]
    """Return what the planner looks at: volumes by path (disks and arrays of these sets), and all arrays."""
    paths = set()  # type: set[str]
    for disk_set in sets:
        paths.update(disk["path"] for disk in disk_set["disks"])
        paths.update(array["path"] for array in disk_set["arrays"])
    return {
        "volumes": Volumes(node),
        "kernel_names": {path: node.kernel_name(path) for path in sorted(paths)},
        "arrays": node.arrays(),
    }


# ----------------------------------------------------------------------------------------- what is not as declared
def called(disk):
    # type: (dict[str, Any]) -> str
    """Return the name of a disk as an administrator finds it: that of the model, and what is on its label."""
    return "%s (%s)" % (disk["name"], os.path.basename(disk["path"]))


def set_differences(node, declared, disk_set, arrays):
    # type: (Node, Iterable[str], dict[str, Any], dict[str, dict[str, Any]]) -> list[str]
    """Return a line for each difference of one set: disks, arrays, members."""
    kernel_names = [(node.kernel_name(disk["path"]), disk) for disk in disk_set["disks"]]
    names = {name: disk for name, disk in kernel_names if name is not None}
    lines = [
        "%s: disk %s is not in the machine%s" % (disk_set["name"], called(disk), instead(node, declared))
        for name, disk in kernel_names
        if name is None
    ]
    if not disk_set["arrays"]:
        for array in sorted(arrays):
            if any(disk_of(node, member) in names for member in arrays[array]["members"]):
                lines += array_state("%s: %s" % (disk_set["name"], array), arrays[array], names, node)
        return lines
    for wanted in disk_set["arrays"]:
        running = arrays.get(node.kernel_name(wanted["path"]) or "")
        what = wanted["name"] if wanted["name"] == disk_set["name"] else "%s: %s" % (disk_set["name"], wanted["name"])
        if running is None:
            lines.append("%s does not run" % what)
            continue
        for field, have, want in (
            ("level", running["level"], wanted["level"]),
            ("chunk", running["chunk_kb"], wanted["chunk_kb"] or running["chunk_kb"]),
            ("number of disks", running["raid_disks"], len(wanted["members"])),
        ):
            if have != want:
                lines.append("%s: %s is %s, declared %s" % (what, field, have, want))
        lines += array_state(what, running, names, node)
        inner = {node.kernel_name(member["path"]): member for member in wanted["members"]}
        for kernel, member in sorted(inner.items(), key=lambda pair: pair[1]["name"]):
            if kernel is not None and kernel not in running["members"]:
                lines.append("%s: %s is not a member" % (what, called(member)))
        for kernel in sorted(running["members"]):
            if kernel not in inner:
                lines.append("%s: %s is a member, and not declared" % (what, unknown(node, kernel)))
    return lines


def array_state(what, array, names, node):
    # type: (str, dict[str, Any], dict[str, dict[str, Any]], Node) -> list[str]
    """Return a line for what is wrong with an array that runs, and one for each member that does not work."""
    lines = []
    for kernel in sorted(array["members"]):
        member = array["members"][kernel]
        words = member["state"].split(",")
        disk = names.get(disk_of(node, kernel))
        name = called(disk) if disk else unknown(node, kernel)
        if "faulty" in words:
            lines.append("%s: %s has failed" % (what, name))
        elif "in_sync" not in words:
            lines.append("%s: %s is %s" % (what, name, "being rebuilt" if member["slot"].isdigit() else "a spare"))
    if array["degraded"]:
        lines.append("%s lacks %d of %d disks" % (what, array["degraded"], array["raid_disks"]) + progress(array))
    if array["state"] not in RUNS:
        lines.append("%s is %s" % (what, array["state"]))
    return lines


def progress(array):
    # type: (dict[str, Any]) -> str
    """Return how far a rebuild is."""
    done = [word for word in array["done"].split() if word.isdigit()]
    if array["action"] != "recover":
        return ", and nothing is being rebuilt"
    share = "" if len(done) != 2 else ", %d %% done" % (100 * int(done[0]) // max(1, int(done[1])))
    return ", one is being rebuilt" + share


def disk_of(node, kernel):
    # type: (Node, str) -> str
    """Return the disk that a member is on: itself, or that of the partition."""
    if not node.text(kernel, "partition"):
        return kernel
    return os.path.basename(os.path.dirname(os.path.realpath(os.path.join(node.sys_block, kernel))))


def unknown(node, kernel):
    # type: (Node, str) -> str
    """Return the name of a disk that is not declared here."""
    links = node.links().get(disk_of(node, kernel), [])
    return "%s (%s)" % (kernel, os.path.basename(links[0])) if links else kernel


def instead(node, declared):
    # type: (Node, Iterable[str]) -> str
    """Return the disks that the model does not have: one of them is in the place of the one that is missing."""
    strangers = []
    for kernel, paths in sorted(node.links().items()):
        if set(paths) & set(declared):
            continue
        serial = node.shown().get(kernel, {}).get("SERIAL") or "?"
        strangers.append("%s (%s, serial %s)" % (kernel, os.path.basename(paths[0]), serial))
    return "; there is %s, which the model does not have" % " and ".join(strangers) if strangers else ""


def stripe_differences(node, disk_set):
    # type: (Node, dict[str, Any]) -> list[str]
    """Return a line when the file system of a set has another stripe than declared."""
    have = parse_xfs_info(node.ask(["xfs_info", disk_set["mount"]]))
    if have == disk_set["stripe"]:
        return []
    return ["%s: stripe is %s, declared %s" % (disk_set["name"], stripe_words(have), stripe_words(disk_set["stripe"]))]


def stripe_words(stripe):
    # type: (dict[str, int] | None) -> str
    """Return a stripe in mkfs.xfs's words."""
    return "su=%(su_kb)dk,sw=%(sw)d" % stripe if stripe else "none"


def main(argv):
    # type: (list[str]) -> int
    """`sets` or `stripe`, then what is declared: {sets, disks: paths of all disks of the node}."""
    what, declared = argv[0], json.loads(argv[1])
    node = Node()
    try:
        if what == "stripe":
            lines = [line for disk_set in declared["sets"] if disk_set["mount"]
                     for line in stripe_differences(node, disk_set)]
        else:
            arrays = node.arrays()
            lines = [line for disk_set in declared["sets"]
                     for line in set_differences(node, declared["disks"], disk_set, arrays)]
    except CannotRead as error:
        print(error, file=sys.stderr)
        return 3
    for line in lines:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
