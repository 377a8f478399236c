"""Slurm by its own commands, on the node where slurmctld runs.

What a reboot that slurmctld issued does to a drain was read in its source (slurm-22-05-8-1 and slurm-20-02-7-1:
node_mgr.c update_node and validate_node_specs, controller.c _queue_reboot_msg, proc_req.c _slurm_rpc_reboot_nodes), and
is what 22.05.8 does in the virtual HAL:

* ``reboot ASAP`` drains, and keeps the next state beside that. At the first registration after the reboot slurmctld
  takes the drain away wherever there is a next state, also when ``State=DRAIN`` was said again in between.
* ``scontrol cancel_reboot`` is refused once the reboot was issued. ``State=DOWN`` changes nothing: it is DOWN already.
* After ResumeTimeout without a registration it takes the drain away, too, and leaves the node DOWN.
* ``State=RESUME`` ends the reboot and forgets the next state. A ``State=DRAIN`` after it stays.

Between these two a node could take a job. A reservation that is nobody's but the test job's user's closes that gap. The
same reservation is around a test job. It ends when it is taken away, not after some minutes: a run that was killed in
the middle must not put a node into service that nobody has seen run a job.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hal_cluster.reimage.errors import Gone, ReimageError, Trouble
from hal_cluster.reimage.remote import Run
from hal_cluster.reimage.slurm_text import (
    Listed,
    Ran,
    ending,
    impossible,
    may_pass,
    read_jobs,
    read_listed,
    read_node,
    read_nodes,
    read_ran,
    read_reservations,
)
from hal_cluster.reimage.world import Job, SlurmNode
from hal_node.slurm.drains import BUSY, HEALTH, REIMAGE, away, floors_of, is_by, proving, reason_line, too_few

SECONDS = 30  # for one command
# Until somebody goes on with it, or takes it away (scontrol(1); slurmctld makes it a year: reservation.c, create_resv).
RESERVED = "UNLIMITED"


@dataclass(frozen=True, slots=True)
class TestJob:
    """The job that shows that a node runs jobs of users: with all GPUs of each node, within so many seconds."""

    command: str
    user: str
    gres: Mapping[str, str] = field(default_factory=dict)  # by node, as slurm.conf has it
    seconds: int = 120

    __test__ = False  # its name is no test's

    @property
    def minutes(self) -> int:
        """The time limit that Slurm gets: it counts in minutes."""
        return max(1, -(-self.seconds // 60))


class SlurmCommands:
    """Implements world.Slurm. One for all nodes of a run: drains are decided one after the other.

    ``floors``: how many nodes a partition keeps for jobs; half of its nodes where it is not named.
    """

    def __init__(
        self,
        run: Run,
        *,
        job: TestJob,
        floors: Mapping[str, int] | None = None,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._run, self._job = run, job
        self._floors = dict(floors or {})
        self._clock, self._pause = clock, pause
        self._deciding = threading.Lock()
        self._waits: dict[str, float] = {}

    def see(self, node: str) -> SlurmNode:
        """Return what slurmctld says of a node."""
        found = self._node(node)
        if found is None:
            return SlurmNode(known=False)
        on = self._ask("squeue", "--noheader", "--all", "--nodelist", node, "--states", BUSY, "--format", "%A|%u|%e")
        return SlurmNode(
            known=True,
            drained=away(found),
            ours=is_by(found, REIMAGE),
            usable=found["usable"],
            maintained=found["maintained"],
            unhealthy=is_by(found, HEALTH),
            reason=found["reason"],
            by=found["by"],
            jobs=tuple(Job(one["id"], one["user"], one["end"]) for one in read_jobs(on)),
            reboot=found["reboot"],
            next_state=found["next_state"] if found["next_state"] in ("RESUME", "DOWN") else "",
        )

    def check_floors(self) -> dict[str, tuple[int, int]]:
        """Return {partition: (how many nodes it keeps for jobs, how many it has)} of all partitions.

        ReimageError, a line for each mistake, when there is no such partition, or it has fewer nodes than it keeps.
        """
        nodes = self._all()
        if wrong := impossible(nodes, self._floors):
            raise ReimageError("\n".join(wrong))
        found: dict[str, tuple[int, int]] = floors_of(nodes, self._floors)
        return found

    def check_job_user(self) -> None:
        """ReimageError unless the test job's user is an ordinary one whose jobs Slurm takes.

        Root's job says nothing of what users need on a node: their account there, their limits, their association.
        """
        user = self._job.user
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9._-]*", user):
            said = "slurm_users names none" if not user else f'"{user}" is no name of one'
            raise ReimageError(f"reimage_job_user: {said}; name the ordinary user who has the test job")
        if self._ask("id", "-u", user).strip() == "0":
            raise ReimageError(
                f"reimage_job_user: {user} is root, whose job shows nothing about those of users; name an ordinary user"
            )
        if self._enforces_nothing():
            return
        found = self._ask(
            *("sacctmgr", "--noheader", "--parsable2", "show", "associations", f"user={user}", "format=User,Account")
        )
        if not found.strip():
            raise ReimageError(
                f"reimage_job_user: {user} has no association in Slurm, which refuses jobs without; declare one "
                "(slurm_users), or name a user who has"
            )

    def _enforces_nothing(self) -> bool:
        """Return whether Slurm takes jobs of users without an association."""
        shown = self._ask("scontrol", "--oneliner", "show", "config")
        found = re.search(r"^AccountingStorageEnforce *= *(.*)$", shown, re.MULTILINE)
        if found is None:
            raise Trouble(f"scontrol show config: no answer that can be read: {reason_line(shown)!r}", passes=True)
        return found[1].strip() == "none"

    def drain(self, node: str, reason: str) -> str:
        """Drain a node, unless it is; a drain of the health check becomes ours. Return "" or why not now.

        Another controller may have drained at the same moment: when too few are left then, it is taken back.
        """
        with self._deciding:
            nodes = self._nodes(node)
            found = nodes[node]
            if away(found) and not is_by(found, HEALTH):
                return ""
            if refused := self._too_few(node, nodes):
                return refused
            self._drain(node, reason)
            return self._after_all(node, reason, found)

    def reboot(self, node: str, reason: str, next_state: str) -> str:
        """Have slurmctld reboot a node when its jobs have ended. Return "" or why not now.

        One that was asked for already stays as it is. A node that an administrator drained keeps his reason, and is
        DOWN after it: slurmctld would end his drain otherwise. Too few are left: as drain().
        """
        with self._deciding:
            nodes = self._nodes(node)
            found = nodes[node]
            if found["reboot"]:
                return ""
            if refused := self._too_few(node, nodes):
                return refused
            if away(found) and not (is_by(found, REIMAGE) or is_by(found, HEALTH)):
                self._ask("scontrol", "reboot", "ASAP", "nextstate=DOWN", node)
            else:
                self._ask(
                    "scontrol", "reboot", "ASAP", f"nextstate={next_state}", f"reason={reason_line(reason)}", node
                )
            return self._after_all(node, reason, found)

    def keep_drained(self, node: str, reason: str) -> None:
        """Have a node drained for this reason, with no reboot that ends the drain, whether it waits or was issued.

        A node that registered with less than its line says (INVAL) cannot be resumed, so its reboot cannot be taken
        back. FAIL keeps jobs away from it, and no registration ends that.
        """
        with self._deciding:
            found = self._nodes(node)[node]
            if found["reboot"]:
                self._end_reboot(node, reason)
            elif not found["drained"] or found["reason"] != reason_line(reason):
                self._drain(node, reason)
            found = self._nodes(node)[node]
        if not found["failing"] and (not found["drained"] or found["reboot"]):
            raise Trouble(f"{node} was drained and Slurm has it as {found['state']}", passes=True)
        if all(job.ended for job in self._jobs(node)):
            self._release(node)

    def prove(self, node: str) -> str:
        """Have the test job on a node that is given back to that job alone; return its id.

        Trouble when somebody drained the node meanwhile, an abort as well, or took the reservation away: his drain
        stays. RESUME asks nobody: a drain that comes between the last look and it is lost. An abort looks once more
        itself (end_proof); one that is through within that moment is seen with the look after RESUME.
        """
        before = self._nodes(node)[node]
        reason = before["reason"] or f"{REIMAGE}: the test job could not be started"
        since = self._reserve(node)
        try:
            job = self._submitted(node, since)
            if job is None or job.state == "PENDING":
                self._give_to_job(node, before, reason)
            return job.id if job else self._submit(node, before["partitions"])
        except Trouble:
            self._stay_away(node, reason)
            raise

    def proven(self, node: str, job: str) -> str | None:
        """Return "" when the test job ended well, None when it goes on, or what was wrong. Gone: Slurm forgot it.

        slurmctld forgets a job MinJobAge seconds after its end (300, slurm.conf), so prove() does not find it either.
        """
        ran = self._ran(job)
        if ran is None:
            raise Gone(f"test job {job} is not known to Slurm any more: it was taken away, or it ended long ago")
        if ran.name != self._name(node):
            return f"job {job} is {ran.name}, no test job of {node}"
        if ran.ended:
            return ending(ran, node)
        if ran.state != "PENDING":
            return None
        if self._clock() - self._waits.setdefault(job, self._clock()) <= self._job.seconds:
            return None
        found = self._nodes(node)[node]
        why = f": {found['reason']}" if found["reason"] else ""
        return (
            f"test job {job} did not start within {self._job.seconds} s, Slurm says {ran.reason or 'no reason'}; "
            f"{node} is {found['state']}{why}"
        )

    def end_proof(self, node: str, reason: str) -> None:
        """End the test job and its reservation. With a reason the node is drained first; without one it serves then.

        Another run that was about to start the test job may give the node back after that drain: it is drained again.
        """
        if reason:
            self._drain(node, reason)
        for job in self._jobs(node):
            if not job.ended:
                self._ask("scancel", job.id, fine="already completing or completed|Invalid job id")
        if reason:
            self._stay_away(node, reason)
        try:
            self._release(node)
        finally:
            if reason:
                self._stay_away(node, reason)

    def _name(self, node: str) -> str:
        """The name of a node's reservation and of its test job."""
        return f"{REIMAGE}-{node}"

    def _ask(self, *argv: str, fine: str = "", zone: str = "") -> str:
        """Return what a command prints; Trouble with its last line when it fails, but for words that are fine."""
        settings = ["LC_ALL=C", *([f"TZ={zone}", "SLURM_TIME_FORMAT=standard"] if zone else [])]
        done = self._run(["env", *settings, "timeout", str(SECONDS), *argv])
        said = (done.err or done.out).strip().splitlines()
        if done.status == 0 or (fine and re.search(fine, f"{done.out}\n{done.err}")):
            return done.out
        program = list(argv[argv.index("--") + 1 :] if "--" in argv else argv)
        asked = " ".join([word for word in program if not word.startswith("-")][:3])
        if done.status == 124:  # timeout's own
            raise Trouble(f"{asked}: no answer within {SECONDS} s", passes=True)
        words = said[-1] if said else f"exit status {done.status}"
        raise Trouble(f"{asked}: {words}", passes=may_pass(words))

    def _node(self, node: str) -> dict[str, Any] | None:
        """Return what is known of one node, None when Slurm does not know it."""
        # "all" is every node to scontrol, and a list is several.
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9.-]*", node) or node.lower() == "all":
            raise Trouble(f'"{node}" is no name of one node')
        text = self._ask("scontrol", "--oneliner", "show", "node", node, fine="Node .* not found")
        found = [one for one in map(read_node, text.splitlines()) if one and one["name"] == node]
        if not found and "not found" not in text:  # what is no answer does not say that there are no jobs
            raise Trouble(f"scontrol show node {node}: no answer that can be read: {reason_line(text)!r}", passes=True)
        return found[0] if found else None

    def _nodes(self, node: str) -> dict[str, dict[str, Any]]:
        """Return what is known of all nodes, this one among them."""
        found = self._all()
        if node not in found:
            raise Trouble(f"Slurm does not know {node}")
        return found

    def _all(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = read_nodes(self._ask("scontrol", "--oneliner", "show", "node"))
        return found

    def _after_all(self, node: str, reason: str, before: dict[str, Any]) -> str:
        """Look once more whether a node may be away that was just drained; return why not, and give it back.

        It stays away when its reboot was issued, it is down, or the drain is somebody's by now.
        """
        refused = self._too_few(node, {**self._nodes(node), node: before})
        if refused:
            found = self._nodes(node)[node]
            ours = found["drained"] and found["reason"] == reason_line(reason)
            if ours and found["reboot"] != "issued" and not found["down"]:
                self._resume(node)
        return refused

    def _too_few(self, node: str, nodes: Mapping[str, Mapping[str, Any]]) -> str:
        reservations = self._ask("scontrol", "--oneliner", "show", "reservation")
        return str(too_few([node], nodes, self._floors, proving(reservations)))

    def _drain(self, node: str, reason: str, *, state: str = "DRAIN") -> None:
        self._ask("scontrol", "update", f"NodeName={node}", f"State={state}", f"Reason={reason_line(reason)}")

    def _end_reboot(self, node: str, reason: str) -> None:
        """Take a reboot back and drain, or FAIL where RESUME is refused; unreserved where no reservation can be had."""
        try:
            self._reserve(node)
        except Trouble as trouble:
            if trouble.passes:
                raise
        try:
            self._ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
            self._drain(node, reason)
        except Trouble as trouble:
            if trouble.passes:
                raise
            self._drain(node, reason, state="FAIL")

    def _stay_away(self, node: str, reason: str) -> None:
        """Drain a node that takes jobs; who drained it already keeps his reason."""
        if not away(self._nodes(node)[node]):
            self._drain(node, reason)

    def _give_to_job(self, node: str, before: Mapping[str, Any], reason: str) -> None:
        """Give a node back under its reservation; drained for this reason, and Trouble, when that is not there."""
        if not self._holds(node, self._reservation(node)):
            raise Trouble(f"the reservation {self._name(node)} was taken away before the test job could start")
        found = self._nodes(node)[node]
        if _resumable(found):
            # An abort drains with our mark: only what it was when this began is ours to end.
            if not _resumable(before) or found["reason"] != before["reason"]:
                what = "somebody drained it" if away(found) else "it went down"
                raise Trouble(f"{what}: {found['reason'] or found['state']}")
            self._resume(node)
        if not self._holds(node, self._reservation(node)):
            self._drain(node, reason)
            raise Trouble(f"the reservation {self._name(node)} was taken away: {node} was drained again")

    def _resume(self, node: str) -> None:
        try:
            self._ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
        except Trouble:
            if _resumable(self._nodes(node)[node]):  # else somebody else gave it back just now
                raise

    def _reservation(self, node: str) -> dict[str, str] | None:
        text = self._ask(
            *("scontrol", "--oneliner", "show", "reservation", self._name(node)),
            fine="Reservation .* not found",
            zone="UTC",
        )
        found: dict[str, dict[str, str]] = read_reservations(text)
        return found.get(self._name(node))

    def _holds(self, node: str, found: Mapping[str, str] | None) -> bool:
        """Return whether a reservation keeps all others off a node now."""
        return found is not None and (found["Nodes"], found["Users"], found["State"]) == (
            node,
            self._job.user,
            "ACTIVE",
        )

    def _reserve(self, node: str) -> str:
        """Have a reservation that keeps all others off a node; return since when."""
        found = self._reservation(node)
        if found and not self._holds(node, found):
            self._release(node)
            found = None
        if found:
            return found["StartTime"]
        self._ask(
            *("scontrol", "create", "reservation", f"ReservationName={self._name(node)}", "StartTime=now"),
            *(f"Duration={RESERVED}", f"Nodes={node}", f"Users={self._job.user}", "Flags=MAINT,IGNORE_JOBS"),
        )
        found = self._reservation(node)
        if found is None:
            raise Trouble(f"Slurm took the reservation {self._name(node)} and does not show it", passes=True)
        return found["StartTime"]

    def _release(self, node: str) -> None:
        """Take the reservation away. A job that was cancelled a moment ago keeps it for as long as it takes to end."""
        for _ in range(20):
            if self._reservation(node) is None:
                return
            self._ask("scontrol", "delete", f"ReservationName={self._name(node)}", fine="in use|invalid")
            if self._reservation(node) is None:
                return
            self._pause(0.5)
        raise Trouble(f"the reservation {self._name(node)} is still in use", passes=True)

    def _jobs(self, node: str) -> list[Listed]:
        """Return all test jobs of a node that Slurm knows. Other users' are none, whatever they call them."""
        printed = self._ask(
            *("squeue", "--noheader", "--all", "--name", self._name(node), "--user", self._job.user, "--states=all"),
            *("--format", "%A|%T|%V"),
            zone="UTC",
        )
        return read_listed(printed)

    def _submitted(self, node: str, since: str) -> Listed | None:
        """Return the last test job that goes on, or that was submitted since this reservation."""
        ours = [job for job in self._jobs(node) if not job.ended or job.submitted >= since]
        return max(ours, key=lambda job: int(job.id), default=None)

    def _submit(self, node: str, partitions: list[str]) -> str:
        gres = self._job.gres.get(node)
        printed = self._ask(
            *("runuser", "-u", self._job.user, "--"),
            *("sbatch", "--parsable", f"--reservation={self._name(node)}", f"--nodelist={node}"),
            *(f"--job-name={self._name(node)}", "--nodes=1", "--ntasks=1"),
            *([f"--partition={partitions[0]}"] if partitions else []),
            *([f"--gres={gres}"] if gres else []),
            *(f"--time={self._job.minutes}", "--no-requeue", "--chdir=/", "--output=/dev/null"),
            f"--wrap={self._job.command}",
        )
        job = printed.strip().split(";")[0]
        if not job.isdigit():
            raise Trouble(f"sbatch gave no id of the test job: {reason_line(printed)}")
        return job

    def _ran(self, job: str) -> Ran | None:
        return read_ran(self._ask("scontrol", "--oneliner", "show", "job", job, fine="Invalid job id"))


def _resumable(found: Mapping[str, Any]) -> bool:
    """Return whether State=RESUME gives a node back."""
    return away(found) or bool(found["down"])
