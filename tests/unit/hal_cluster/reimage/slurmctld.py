"""A slurmctld in this process that answers scontrol, squeue, sbatch and scancel as 22.05.8 does.

What a node's flags do at RESUME, DRAIN, FAIL, a reboot and a registration is as in its source (node_mgr.c, update_node
and validate_node_specs); words and lines are those of the captures.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hal_cluster.reimage.remote import Done, Run
from hal_cluster.reimage.slurm import SlurmCommands, TestJob

REASON = "hal-reimage: new image"


@dataclass
class Node:
    """A node. ``next_state`` is kept until a registration or a RESUME takes it. ``slurmd``: since when it runs."""

    name: str
    partitions: list[str]
    base: str = "IDLE"
    flags: set[str] = field(default_factory=set)
    reason: str = ""
    by: str = "root"
    next_state: str = ""
    slurmd: str = "2026-11-22T18:00:00"


@dataclass
class Job:
    """A job."""

    id: str
    name: str
    user: str
    node: str
    state: str = "PENDING"
    reason: str = "None"
    exit: str = "0:0"
    submitted: str = ""


class Slurmctld:
    """Runs commands. ``asked``: each without its settings; ``broken``: a text that a command holds, and its end."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.reservations: dict[str, dict[str, str]] = {}
        self.jobs: dict[str, Job] = {}
        self.asked: list[list[str]] = []
        self.zones: list[str] = []
        self.broken: dict[str, Done | None] = {}
        self.accounts = {"root": 0, "alice": 5001, "bob": 5002}
        self.associations = {"root": "root", "alice": "isl"}
        self.enforces = "associations,limits,qos,safe"
        self.seen: Callable[[], None] = lambda: None
        self.second = 0
        self.submitted = 0
        self._lock = threading.Lock()

    def __call__(self, argv: Sequence[str], stdin: bytes = b"", /) -> Done:
        words = list(argv)
        assert words[:2] == ["env", "LC_ALL=C"], words
        self.zones.append("UTC" if words[2:4] == ["TZ=UTC", "SLURM_TIME_FORMAT=standard"] else "")
        words = words[words.index("timeout") :]
        assert words[:2] == ["timeout", "30"], words
        words = words[2:]
        time.sleep(0)  # the others' turn
        with self._lock:
            self.asked.append(words)
            self.second += 1
            for text, end in self.broken.items():
                if end is not None and text in " ".join(words):
                    return end
            if words[0] == "runuser":
                words = words[words.index("--") + 1 :]
            done: Done = getattr(self, "_" + words[0])(words[1:])
            self.seen()
            return done

    def stamp(self) -> str:
        """Return a time after all others."""
        return f"2026-11-22T18:{self.second // 60 % 60:02d}:{self.second % 60:02d}"

    def commands(self) -> list[str]:
        """Return the commands that changed something, one line each."""
        quiet = ("scontrol --oneliner", "squeue")
        return [line for line in map(" ".join, self.asked) if not line.startswith(quiet)]

    def told(self, name: str) -> str:
        """Return a node's state as Slurm writes it."""
        node = self.nodes[name]
        order = ("DRAIN", "FAIL", "MAINTENANCE", "NOT_RESPONDING", "INVALID_REG", "REBOOT_REQUESTED", "REBOOT_ISSUED")
        reserved = any(f"-{name}" in each for each in self.reservations)
        flags = node.flags | ({"MAINTENANCE"} if reserved and node.base == "IDLE" else set())
        return "+".join([node.base, *(flag for flag in order if flag in flags)])

    def line(self, node: Node) -> str:
        """Return a node as ``scontrol --oneliner show node`` writes it."""
        after = f" NextState={node.next_state}" if node.next_state and "REBOOT" in self.told(node.name) else ""
        why = f" Reason={node.reason} [{node.by}@2026-11-22T18:05:10]" if node.reason else ""
        return (
            f"NodeName={node.name} Arch=x86_64 CoresPerSocket=20  CPUAlloc=0 CPUTot=160 CPULoad=1.00 Gres=gpu:v100:4 "
            f"Version=22.05.8 RealMemory=240000 State={self.told(node.name)} ThreadsPerCore=4{after} "
            f"Partitions={','.join(node.partitions)}  BootTime=2026-11-22T09:00:00 "
            f"SlurmdStartTime={node.slurmd} LastBusyTime=2026-11-22T18:00:00{why}"
        )

    def issue(self, name: str) -> None:
        """Tell a node that has no job left to reboot, where that was asked for."""
        node = self.nodes[name]
        if "REBOOT_REQUESTED" in node.flags:
            node.flags = node.flags - {"REBOOT_REQUESTED"} | {"REBOOT_ISSUED"}
            node.base, node.by, node.reason = "DOWN", "slurm", f"{node.reason} : reboot issued"

    def register(self, name: str) -> None:
        """Have its slurmd register after a boot."""
        node = self.nodes[name]
        node.flags -= {"NOT_RESPONDING"}
        if "INVALID_REG" in node.flags:
            return
        if node.base == "DOWN" and "REBOOT_ISSUED" in node.flags:
            node.flags -= {"REBOOT_ISSUED"}
            if node.next_state:
                node.flags -= {"DRAIN"}
            node.base = "DOWN" if node.next_state == "DOWN" else "IDLE"
            node.next_state = ""

    def forget(self, job: str) -> None:
        """Know nothing of a job that has ended, as after MinJobAge: neither scontrol nor squeue shows it."""
        assert self.jobs.pop(job).state not in ("PENDING", "RUNNING", "COMPLETING"), job

    def serving(self, name: str) -> bool:
        """Return whether anybody's job may start there."""
        return self.told(name) in ("IDLE", "MIXED")

    def _scontrol(self, words: list[str]) -> Done:
        if words[0] == "--oneliner":
            return self._show(words[2], words[3:])
        if words[0] == "update" and words[1].startswith("NodeName="):
            return self._update(words[1:])
        given = dict(word.split("=", 1) for word in words if "=" in word)
        if words[:2] == ["create", "reservation"]:
            row = {"ReservationName": given["ReservationName"], "StartTime": self.stamp(), "Nodes": given["Nodes"]}
            row.update({"Flags": given["Flags"], "Users": given["Users"], "State": "ACTIVE"})
            self.reservations[given["ReservationName"]] = row
            return Done(0, f"Reservation created: {given['ReservationName']}\n")
        if words[0] == "delete":
            if any(job.name == given["ReservationName"] and job.state == "PENDING" for job in self.jobs.values()):
                return Done(1, "", "slurm_delete_reservation error: Requested reservation is in use\n")
            self.reservations.pop(given["ReservationName"])
            return Done(0)
        assert words[:2] == ["reboot", "ASAP"], words
        node = self.nodes[words[-1]]
        node.flags |= {"DRAIN", "REBOOT_REQUESTED"}
        node.next_state, node.reason = given["nextstate"], given.get("reason", node.reason)
        return Done(0)

    def _show(self, kind: str, names: list[str]) -> Done:
        if kind == "config":
            said = f"Configuration data as of 2026-11-22T18:00:00\nAccountingStorageEnforce = {self.enforces}\n"
            return Done(0, said + "AccountingStorageType   = accounting_storage/slurmdbd\n")
        if kind == "node":
            if names and names[0] not in self.nodes:
                return Done(1, f"Node {names[0]} not found\n")
            return Done(0, "\n".join(self.line(self.nodes[name]) for name in names or self.nodes) + "\n")
        if kind == "reservation":
            rows = [row for name, row in self.reservations.items() if name in (names or self.reservations)]
            if names and not rows:
                return Done(1, f"Reservation {names[0]} not found\n")
            return Done(0, "".join(" ".join(f"{key}={value}" for key, value in row.items()) + "\n" for row in rows))
        job = self.jobs.get(names[0])
        if job is None:
            return Done(1, "", "slurm_load_jobs error: Invalid job id specified\n")
        return Done(
            0,
            f"JobId={job.id} JobName={job.name} UserId={job.user}(0) GroupId=root(0) JobState={job.state} "
            f"Reason={job.reason} Dependency=(null) ExitCode={job.exit} SubmitTime={job.submitted} "
            f"ReqNodeList={job.node} ExcNodeList=(null) NodeList={job.node} BatchHost={job.node}\n",
        )

    def _update(self, words: list[str]) -> Done:
        given = dict(word.split("=", 1) for word in words)
        node, state = self.nodes[given["NodeName"]], given["State"]
        node.reason = given.get("Reason", node.reason)
        node.by = "root" if "Reason" in given else node.by
        if state == "RESUME":
            may = node.base == "DOWN" or node.flags & {"DRAIN", "FAIL", "REBOOT_REQUESTED"}
            if "INVALID_REG" in node.flags or not may:
                return Done(1, "", "slurm_update error: Invalid node state specified\n")
            node.flags -= {"DRAIN", "FAIL", "REBOOT_REQUESTED", "REBOOT_ISSUED"}
            if node.base == "DOWN":
                node.base = "IDLE"
                node.flags |= {"NOT_RESPONDING"}
            node.reason = ""
        else:
            node.flags = node.flags - {"DRAIN", "FAIL"} | {state}
        if not node.flags & {"REBOOT_REQUESTED", "REBOOT_ISSUED"}:
            node.next_state = ""
        return Done(0)

    def _squeue(self, words: list[str]) -> Done:
        form = words[words.index("--format") + 1]
        if form == "%A|%u|%e":
            node = words[words.index("--nodelist") + 1]
            busy = ("RUNNING", "COMPLETING")
            on = [f"{each.id}|{each.user}|Unknown" for each in self.jobs.values() if each.node == node]
            return Done(0, "\n".join(row for row in on if self.jobs[row.split("|")[0]].state in busy) + "\n")
        name, user = words[words.index("--name") + 1], words[words.index("--user") + 1]
        found = [job for job in self.jobs.values() if (job.name, job.user) == (name, user)]
        return Done(0, "".join(f"{job.id}|{job.state}|{job.submitted}\n" for job in found))

    def _sbatch(self, words: list[str]) -> Done:
        given = dict(re.sub("^--", "", word).split("=", 1) for word in words if "=" in word)
        last = next(line for line in reversed(self.asked) if "sbatch" in line)
        user = last[last.index("-u") + 1]
        job = Job(str(100 + self.submitted), given["job-name"], user, given["nodelist"], submitted=self.stamp())
        self.jobs[job.id] = job
        self.submitted += 1
        return Done(0, f"{job.id}\n")

    def _id(self, words: list[str]) -> Done:
        uid = self.accounts.get(words[-1])
        return Done(1, "", f"id: '{words[-1]}': no such user\n") if uid is None else Done(0, f"{uid}\n")

    def _sacctmgr(self, words: list[str]) -> Done:
        user = next(word for word in words if word.startswith("user=")).partition("=")[2]
        return Done(0, f"{user}|{self.associations[user]}\n" if user in self.associations else "")

    def _scancel(self, words: list[str]) -> Done:
        self.jobs[words[0]].state = "CANCELLED"
        return Done(0)


def site(number: int = 4, *, partitions: str = "gpu,cpu") -> Slurmctld:
    """Return one with so many nodes, hal01 and on, each in all of the partitions."""
    return Slurmctld(*(Node(f"hal{each:02d}", partitions.split(",")) for each in range(1, number + 1)))


def slurm(site: Run, **settings: object) -> SlurmCommands:
    """Return what the engine asks it by."""
    job = TestJob("nvidia-smi -L", "alice", {f"hal{number:02d}": "gpu:v100:4" for number in range(1, 17)}, seconds=90)
    return SlurmCommands(site, **{"job": job, "pause": lambda _: None, **settings})  # type: ignore[arg-type]


def once(here: Slurmctld, after: str, does: Callable[[Slurmctld], None], *, skip: int = 0) -> None:
    """Have somebody do something right after a command that holds a text, but for the first few of them."""
    left = [skip]

    def seen() -> None:
        if after in " ".join(here.asked[-1]):
            left[0] -= 1
            if left[0] == -1:
                does(here)

    here.seen = seen
