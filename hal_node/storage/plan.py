# -*- coding: utf-8 -*-
"""What has to be done so that the declared sets of a node exist, and what must not without confirmation. Pure."""

from __future__ import absolute_import, division, print_function

import hashlib
import json

MYPY = False
if MYPY:
    from typing import Any, Iterable  # noqa: F401  in comments

__metaclass__ = type

REDUNDANT = ("raid1", "raid5", "raid6", "raid10")


class Refused(Exception):
    """A set cannot be made, whatever is confirmed: the message says why, and what to do."""


def is_empty(volume):
    # type: (dict[str, Any]) -> bool
    """Whether nothing at all is on a disk or an array, as far as can be seen."""
    return volume["blank"] and not volume["superblock"] and not volume["uses"] and not volume["file_system"]


def contents(volume):
    # type: (dict[str, Any]) -> str
    """Return in words what is on a volume."""
    words = list(volume["signatures"])
    block = volume["superblock"]
    if block:
        words.append("member of md array %s (%s)" % (block.get("MD_NAME") or "?", block.get("MD_UUID", "?")))
    words += ["%d partitions" % len(volume["partitions"])] if volume["partitions"] else []
    words += volume["uses"]
    return ", ".join(words) or ("empty" if volume["blank"] else "data without a signature")


def described(name, path, volume):
    # type: (str, str, dict[str, Any]) -> str
    """Return one line of what would be erased."""
    identity = "%s %s, model %s, serial %s, %.1f GB" % (
        name,
        path.rsplit("/", 1)[-1],
        volume["model"] or "?",
        volume["serial"] or "?",
        volume["size"] / 1e9,
    )
    return "%s: %s" % (identity, contents(volume))


def code_of(node, lines):
    # type: (str, Iterable[str]) -> str
    """Return the code that confirms erasing exactly this: node, disks, and what is on them."""
    text = json.dumps([node, sorted(lines)], sort_keys=True)
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return "%s-%s" % (digest[:4], digest[4:8])


class Planner(object):
    """The plan of one node. `granted` are disks whose erasing was confirmed earlier in this run."""

    def __init__(self, node, sets, state, create_ok=False, confirm="", granted=()):
        # type: (str, list[dict[str, Any]], dict[str, Any], bool, str | None, Iterable[str]) -> None
        self.node, self.sets, self.state, self.create_ok = node, sets, state, create_ok
        self.confirm = (confirm or "").strip().lower()
        self.granted = set(granted)
        self.steps = []  # type: list[dict[str, Any]]
        self.refused, self.erased, self.waiting = [], [], []  # type: list[str], list[str], list[str]
        self.file_systems = {}  # type: dict[str, str]

    # ---------------------------------------------------------------------------------------------- result
    def plan(self):
        # type: () -> dict[str, Any]
        """Return steps, and why others are left out."""
        wanted = [disk_set for disk_set in self.sets if disk_set["mount"]]
        pending = []
        for disk_set in wanted:
            try:
                pending += self.set_steps(disk_set)
            except Refused as refused:
                self.refused.append("%s: %s" % (disk_set["name"], refused))
        # One code for a set as it is: where a part of it needs one, its empty disks are in the list, too.
        coded = {item["set"] for item in pending if item["needs"] == "code"}
        for item in pending:
            if item["set"] in coded and item["needs"] == "create":
                item["needs"] = "code"
            if item["needs"] == "code":
                self.erased += item["shown"]
        code = code_of(self.node, self.erased) if self.erased else ""
        confirmed = bool(code) and self.confirm == code
        if code and self.confirm and not confirmed:
            self.refused.append("the code %s does not fit what is on these disks now" % self.confirm)
        for item in pending:
            if item["needs"] == "code" and not confirmed:
                continue
            if item["needs"] == "create" and not self.create_ok:
                self.waiting.append(item["set"])
                continue
            if item["needs"] == "code":
                self.granted.update(item["disks"])
            self.steps += item["steps"]
        return {
            "steps": self.steps,
            "refused": self.refused,
            "erased": self.erased,
            "code": code,
            "confirmed": confirmed,
            "waiting": sorted(set(self.waiting)),
            "granted": sorted(self.granted),
            "file_systems": self.file_systems,
        }

    # ---------------------------------------------------------------------------------------------- sets
    def set_steps(self, disk_set):
        # type: (dict[str, Any]) -> list[dict[str, Any]]
        """Return what is next for a set: dicts with set, disks, shown, steps, and needs: nothing, create or code."""
        disks = [disk["path"] for disk in disk_set["disks"]]
        plans = []
        whole = True
        for array in disk_set["arrays"]:
            if self.runs(array):
                continue
            whole = False
            if any(self.state["volumes"].get(member["path"]) is None and member["path"] not in disks
                   for member in array["members"]):
                continue  # made of arrays that do not run yet: their turn is next
            plans.append(self.array_steps(disk_set, array))
        if whole:
            plans += self.file_system_steps(disk_set)
        return plans

    def full_name(self, array):
        # type: (dict[str, Any]) -> str
        """Return the name that is written on the members: a set of the same name of another node is another set."""
        return "%s:%s" % (self.node, array["name"])

    def runs(self, array):
        # type: (dict[str, Any]) -> bool
        """Whether an array runs. Refused when what runs there is something else."""
        running = self.state["arrays"].get(self.state["kernel_names"].get(array["path"]))
        if running is None:
            for kernel, other in sorted(self.state["arrays"].items()):
                if other["name"] == self.full_name(array):
                    state = "is not started: too few disks" if other["state"] == "inactive" else "runs"
                    raise Refused("%s %s as /dev/%s, see docs/local-storage.md" % (array["name"], state, kernel))
            return False
        have = (running["level"], running["raid_disks"])
        want = (array["level"], len(array["members"]))
        if have != want or running["name"] != self.full_name(array):
            raise Refused(
                "%s is %s of %d disks and called %s; declared is %s of %d, called %s"
                % ((array["path"],) + have + (running["name"] or "?",) + want + (self.full_name(array),))
            )
        return True

    def belongs(self, array, volume):
        # type: (dict[str, Any], dict[str, Any]) -> bool
        """Whether a volume says that it is a member of this array."""
        block = volume["superblock"]
        return bool(
            block.get("MD_NAME") == self.full_name(array)
            and block.get("MD_LEVEL") == array["level"]
            and block.get("MD_DEVICES") == str(len(array["members"]))
        )

    def array_steps(self, disk_set, array):
        # type: (dict[str, Any], dict[str, Any]) -> dict[str, Any]
        """Return the steps for an array that does not run: assemble it, or make it of what is empty or given up."""
        volumes = [(member, self.state["volumes"].get(member["path"])) for member in array["members"]]
        members = [(member, volume) for member, volume in volumes if volume and self.belongs(array, volume)]
        if members:
            ids = sorted({volume["superblock"]["MD_UUID"] for _, volume in members})
            if len(ids) > 1:
                raise Refused("its disks are of %d arrays called %s: %s" % (len(ids), array["name"], ", ".join(ids)))
            step = self.assemble(array, ids[0], [member["path"] for member, _ in members])
            return {"set": disk_set["name"], "disks": set(), "shown": [], "steps": [step], "needs": "nothing"}
        for member, volume in volumes:
            if volume and volume["superblock"].get("MD_NAME") == self.full_name(array):
                block = volume["superblock"]
                raise Refused(
                    "%s is of an array %s that is %s of %s disks; declared is %s of %d, see docs/local-storage.md"
                    % (member["name"], self.full_name(array), block.get("MD_LEVEL"), block.get("MD_DEVICES"),
                       array["level"], len(array["members"]))
                )
        missing = [
            "%s (%s)" % (member["name"], member["path"].rsplit("/", 1)[-1]) for member, volume in volumes if not volume
        ]
        if missing:
            raise Refused("%s cannot be made: not in the machine: %s" % (array["name"], ", ".join(missing)))
        return self.make_room(disk_set, volumes, self.create(array))

    def file_system_steps(self, disk_set):
        # type: (dict[str, Any]) -> list[dict[str, Any]]
        """Return the steps that make the file system of a set whose arrays run."""
        volume = self.state["volumes"].get(disk_set["device"])
        if volume is None:
            raise Refused("%s is not in the machine" % disk_set["device"])
        existing = volume["file_system"]
        if existing.get("TYPE") == "xfs" and existing.get("LABEL") == disk_set["label"]:
            self.file_systems[disk_set["name"]] = existing.get("UUID", "")
            return []
        if existing.get("TYPE") == "xfs" and volume["uses"]:
            label = existing.get("LABEL") or "?"
            raise Refused("an XFS called %s is in use there; declared is %s" % (label, disk_set["label"]))
        name = disk_set["disks"][0]["name"] if not disk_set["arrays"] else disk_set["name"]
        volumes = [({"name": name, "path": disk_set["device"]}, volume)]
        return [self.make_room(disk_set, volumes, self.make_file_system(disk_set))]

    def disks_of(self, disk_set, path):
        # type: (dict[str, Any], str) -> set[str]
        """Return the disks that a volume of a set is made of."""
        for array in disk_set["arrays"]:
            if array["path"] == path:
                return {disk for member in array["members"] for disk in self.disks_of(disk_set, member["path"])}
        return {path}

    def make_room(self, disk_set, volumes, last):
        # type: (dict[str, Any], list[tuple[dict[str, Any], dict[str, Any]]], dict[str, Any]) -> dict[str, Any]
        """Return the steps that empty these volumes and then make something of them, and what that needs."""
        full = [(member, volume) for member, volume in volumes if not is_empty(volume)]
        disks = {disk for member, _ in volumes for disk in self.disks_of(disk_set, member["path"])}
        granted = disks <= self.granted
        steps = self.stops(volumes, {self.kernel(volume) for _, volume in volumes})
        steps += [self.erase(member["path"], volume) for member, volume in full]
        return {
            "set": disk_set["name"],
            "disks": disks,
            "shown": [
                "%s: %s" % (disk_set["name"], described(member["name"], member["path"], volume))
                for member, volume in volumes
            ],
            "steps": steps + [last],
            "needs": "nothing" if granted else "code" if full else "create",
        }

    def stops(self, volumes, own):
        # type: (list[tuple[dict[str, Any], dict[str, Any]]], set[str]) -> list[dict[str, Any]]
        """Return the steps that stop arrays of others on these volumes. Refused when one is in use in another way."""
        stops = []
        for member, volume in volumes:
            for use in volume["uses"]:
                holder = use[8:] if use.startswith("held by ") else ""
                array = self.state["arrays"].get(holder)
                if array is None or not set(array["members"]) <= own or array["uses"]:
                    more = ", ".join([use] + (array["uses"] if array else []))
                    raise Refused("%s is in use (%s): end that first" % (member["name"], more))
                step = {"what": "stop the array %s" % holder, "argv": ["mdadm", "--stop", "/dev/" + holder],
                        "volumes": [], "erases": True}
                if step not in stops:
                    stops.append(step)
        return stops

    @staticmethod
    def kernel(volume):
        # type: (dict[str, Any]) -> str
        """Return the kernel's name of a volume."""
        return str(volume["device"].rsplit("/", 1)[-1])

    # ---------------------------------------------------------------------------------------------- steps
    @staticmethod
    def assemble(array, uuid, paths):
        # type: (dict[str, Any], str, list[str]) -> dict[str, Any]
        """Start an array that exists."""
        argv = ["mdadm", "--assemble", array["path"], "--uuid=" + uuid] + paths
        return {"what": "assemble %s" % array["name"], "argv": argv, "volumes": paths, "erases": False}

    @staticmethod
    def erase(path, volume):
        # type: (str, dict[str, Any]) -> dict[str, Any]
        """Empty a volume: signatures of its partitions and itself; then its first and last MiB."""
        argv = ["wipefs", "--all"] + volume["partitions"] + [path]
        return {"what": "erase %s" % path, "argv": argv, "volumes": [path], "erases": True, "zero": path}

    def create(self, array):
        # type: (dict[str, Any]) -> dict[str, Any]
        """Make an array. Without --run mdadm asks when it sees anything on a member, and gets no answer."""
        argv = ["mdadm", "--create", array["path"], "--metadata=1.2"]
        argv += ["--homehost=" + self.node, "--name=" + array["name"]]
        argv += ["--level=" + array["level"], "--raid-devices=%d" % len(array["members"])]
        argv += ["--chunk=%d" % array["chunk_kb"]] if array["chunk_kb"] else []
        argv += ["--bitmap=internal"] if array["level"] in REDUNDANT else []
        argv += ["--force"] if len(array["members"]) == 1 else []
        paths = [member["path"] for member in array["members"]]
        return {"what": "make %s" % array["name"], "argv": argv + paths, "volumes": paths,
                "erases": False, "makes": True}

    @staticmethod
    def make_file_system(disk_set):
        # type: (dict[str, Any]) -> dict[str, Any]
        """Make the file system, with the declared stripe and not one that mkfs would have to guess of nested arrays."""
        argv = ["mkfs.xfs", "-L", disk_set["label"]]
        if disk_set["stripe"]:
            argv += ["-d", "su=%(su_kb)dk,sw=%(sw)d" % disk_set["stripe"]]
        return {"what": "make the file system of %s" % disk_set["name"], "argv": argv + [disk_set["device"]],
                "volumes": [disk_set["device"]], "erases": False, "makes": True}
