"""Slurm by its own commands, on the node where slurmctld runs.

What a reboot that slurmctld issued does to a drain was read in its source (slurm-22-05-8-1 and slurm-20-02-7-1:
node_mgr.c update_node and validate_node_specs, controller.c _queue_reboot_msg, proc_req.c _slurm_rpc_reboot_nodes), and
is what 22.05.8 does in the virtual HAL:

* ``reboot ASAP`` drains, and keeps the next state beside that. At the first registration after the reboot slurmctld
  takes the drain away wherever there is a next state, also when ``State=DRAIN`` was said again in between.
* ``scontrol cancel_reboot`` is refused once the reboot was issued. ``State=DOWN`` changes nothing: it is DOWN already.
* After ResumeTimeout without a registration it takes the drain away, too, and leaves the node DOWN.
* ``State=RESUME`` ends the reboot and forgets the next state. A ``State=DRAIN`` after it stays.

Between these two a node could take a job. A reservation for the test job's user alone closes that gap. The same
reservation is around a test job. It ends when it is taken away, not after some minutes: a run that was killed in
the middle must not put a node into service that nobody has seen run a job.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hal_cluster.reimage.draining import Draining, resumable
from hal_cluster.reimage.errors import Gone, ReimageError, Trouble
from hal_cluster.reimage.remote import Run
from hal_cluster.reimage.slurm_text import Listed, Ran, ending, read_listed, read_ran, read_reservations
from hal_node.slurm.drains import HEALTH, REIMAGE, away, is_by, reason_line

# Until somebody goes on with it, or takes it away (scontrol(1); slurmctld makes it a year: reservation.c, create_resv).
RESERVED = "UNLIMITED"


@dataclass(frozen=True, slots=True)
class TestJob:
    """The job that shows that a node runs jobs of users: with all GPUs of each node, within so many seconds."""

    command: str
    user: str
    gres: Mapping[str, str] = field(default_factory=dict)  # by node, as slurm.conf has it
    seconds: int = 120

    __test__ = False  # pytest takes it for a test by its name

    @property
    def minutes(self) -> int:
        """The time limit that Slurm gets: it counts in minutes."""
        return max(1, -(-self.seconds // 60))


class SlurmCommands(Draining):
    """Implements world.Slurm: what a reimage needs beside drains. ``floors``: as Draining has them."""

    def __init__(
        self,
        run: Run,
        *,
        job: TestJob,
        floors: Mapping[str, int] | None = None,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(run, REIMAGE, floors=floors)
        self._job, self._clock, self._pause = job, clock, pause
        self._waits: dict[str, float] = {}

    def check_job_user(self) -> None:
        """ReimageError unless the test job's user is an ordinary one whose jobs Slurm takes.

        Root's job says nothing of what users need on a node: their account there, their limits, their association.
        """
        user = self._job.user
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9._-]*", user):
            said = "slurm_users names nobody" if not user else f'"{user}" is not a user name'
            raise ReimageError(f"reimage_job_user: {said}; name the ordinary user who runs the test job")
        if self._ask("id", "-u", user).strip() == "0":
            raise ReimageError(
                f"reimage_job_user: {user} is root, whose job shows nothing about those of users; name an ordinary user"
            )
        if self._enforces_nothing():
            return
        associations = self._ask(
            *("sacctmgr", "--noheader", "--parsable2", "show", "associations", f"user={user}", "format=User,Account")
        )
        if not associations.strip():
            raise ReimageError(
                f"reimage_job_user: {user} has no association in Slurm, which refuses jobs without one; declare it "
                "(slurm_users), or name a user who has one"
            )

    def _enforces_nothing(self) -> bool:
        """Return whether Slurm takes jobs of users without an association."""
        shown = self._ask("scontrol", "--oneliner", "show", "config")
        matched = re.search(r"^AccountingStorageEnforce *= *(.*)$", shown, re.MULTILINE)
        if matched is None:
            raise Trouble(f"scontrol show config: no answer that can be read: {reason_line(shown)!r}", passes=True)
        return matched[1].strip() == "none"

    def reboot(self, node: str, reason: str, next_state: str) -> str:
        """Have slurmctld reboot a node when its jobs have ended. Return "" or why not now.

        A reboot that was asked for already stays as it is. A node that an administrator drained keeps its reason, and
        is DOWN after the reboot: otherwise slurmctld would end that drain. If too few are left, as drain().
        """
        with self._deciding:
            nodes = self._nodes(node)
            before = nodes[node]
            if before["reboot"]:
                return ""
            if refused := self._too_few([node], nodes):
                return refused
            if away(before) and not (is_by(before, REIMAGE) or is_by(before, HEALTH)):
                self._ask("scontrol", "reboot", "ASAP", "nextstate=DOWN", node)
            else:
                self._ask(
                    "scontrol", "reboot", "ASAP", f"nextstate={next_state}", f"reason={reason_line(reason)}", node
                )
            return self._after_all(node, reason, before)

    def keep_drained(self, node: str, reason: str) -> None:
        """Have a node drained for this reason, with no reboot that ends the drain, whether it waits or was issued.

        A node that registered with less than its line says (INVAL) cannot be resumed, so its reboot cannot be taken
        back. FAIL keeps jobs away from it, and no registration ends that.
        """
        with self._deciding:
            now = self._nodes(node)[node]
            if now["reboot"]:
                self._end_reboot(node, reason)
            elif not now["drained"] or now["reason"] != reason_line(reason):
                self._drain(node, reason)
            now = self._nodes(node)[node]
        if not now["failing"] and (not now["drained"] or now["reboot"]):
            raise Trouble(f"{node} was drained and Slurm has it as {now['state']}", passes=True)
        if all(job.ended for job in self._jobs(node)):
            self._release(node)

    def prove(self, node: str) -> str:
        """Have the test job on a node that is given back to that job alone; return its id.

        Trouble when somebody, an abort as well, drained the node meanwhile or took the reservation away: that drain
        stays. RESUME asks nobody: a drain between the last look and RESUME is lost. An abort looks once more itself
        (end_proof); the look after RESUME sees one that is through within that moment.
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
            return f"job {job} is {ran.name}, not a test job of {node}"
        if ran.ended:
            return ending(ran, node)
        if ran.state != "PENDING":
            return None
        if self._clock() - self._waits.setdefault(job, self._clock()) <= self._job.seconds:
            return None
        now = self._nodes(node)[node]
        why = f": {now['reason']}" if now["reason"] else ""
        return (
            f"test job {job} did not start within {self._job.seconds} s, Slurm says {ran.reason or 'no reason'}; "
            f"{node} is {now['state']}{why}"
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

    def _end_reboot(self, node: str, reason: str) -> None:
        """Take a reboot back and drain; FAIL if RESUME is refused. Unreserved if there can be no reservation."""
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

    def _give_to_job(self, node: str, before: Mapping[str, Any], reason: str) -> None:
        """Give a node back under its reservation; if that is not there, drain for this reason, and Trouble."""
        if not self._holds(node, self._reservation(node)):
            raise Trouble(f"the reservation {self._name(node)} was taken away before the test job could start")
        now = self._nodes(node)[node]
        if resumable(now):
            # An abort drains with our mark: we may end only the drain that was there when this began.
            if not resumable(before) or now["reason"] != before["reason"]:
                what = "somebody drained it" if away(now) else "it went down"
                raise Trouble(f"{what}: {now['reason'] or now['state']}")
            self._resume(node)
        if not self._holds(node, self._reservation(node)):
            self._drain(node, reason)
            raise Trouble(f"the reservation {self._name(node)} was taken away: {node} was drained again")

    def _reservation(self, node: str) -> dict[str, str] | None:
        text = self._ask(
            *("scontrol", "--oneliner", "show", "reservation", self._name(node)),
            fine="Reservation .* not found",
            zone="UTC",
        )
        reservations: dict[str, dict[str, str]] = read_reservations(text)
        return reservations.get(self._name(node))

    def _holds(self, node: str, reservation: Mapping[str, str] | None) -> bool:
        """Return whether a reservation keeps all others off a node now."""
        return reservation is not None and (reservation["Nodes"], reservation["Users"], reservation["State"]) == (
            node,
            self._job.user,
            "ACTIVE",
        )

    def _reserve(self, node: str) -> str:
        """Have a reservation that keeps all others off a node; return when it began."""
        reservation = self._reservation(node)
        if reservation and not self._holds(node, reservation):
            self._release(node)
            reservation = None
        if reservation:
            return reservation["StartTime"]
        self._ask(
            *("scontrol", "create", "reservation", f"ReservationName={self._name(node)}", "StartTime=now"),
            *(f"Duration={RESERVED}", f"Nodes={node}", f"Users={self._job.user}", "Flags=MAINT,IGNORE_JOBS"),
        )
        reservation = self._reservation(node)
        if reservation is None:
            raise Trouble(f"Slurm took the reservation {self._name(node)} and does not show it", passes=True)
        return reservation["StartTime"]

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
        """Return all test jobs of a node that Slurm knows. Jobs of other users do not count, whatever their names."""
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
