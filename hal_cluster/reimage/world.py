"""What the engine acts on, as it sees it: records, Slurm, BMCs, the provisioning server, nodes, and rollouts.

Every function may be called again after a run was killed, so each either looks or brings about a state. Trouble says
in words what did not work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hal_cluster.reimage.record import Record


@dataclass(frozen=True, slots=True)
class Job:
    """A job that is on a node; ``end`` as Slurm writes it."""

    id: str
    user: str
    end: str


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """What slurmctld says of a node.

    ``known``: it is in Slurm at all. ``drained``: no new job comes. ``ours``: by us, as the reason says. ``reboot``:
    "" or "asked" (``scontrol reboot ASAP``, jobs still on it) or "issued" (its RebootProgram was started).
    ``next_state``: what that reboot is to end in, "RESUME" or "DOWN", "" when nobody said. ``usable``: jobs may start.
    ``maintained``: but no jobs of users, because of a reservation. ``unhealthy``: drained by the health check.
    ``started``: when its slurmd did, as Slurm writes it. ``answers``: slurmctld hears from its slurmd.
    """

    known: bool
    drained: bool = False
    ours: bool = False
    usable: bool = False
    maintained: bool = False
    unhealthy: bool = False
    reason: str = ""
    by: str = ""
    started: str = ""
    answers: bool = False
    jobs: tuple[Job, ...] = ()
    reboot: str = ""
    next_state: str = ""


@dataclass(frozen=True, slots=True)
class Installation:
    """What the provisioning server says of a node: stamps as it writes them, "" for what was not.

    ``stopped``: why its installer stopped, as that told the server.
    """

    armed: bool
    given: bool = False
    began: str = ""
    called: str = ""
    stopped: str = ""


class Store(Protocol):
    """Records on the management node."""

    def read(self, node: str) -> Record | None:
        """Return a node's record, None without one."""

    def driven(self, nodes: Sequence[str]) -> None:
        """Mark that these nodes are driven."""

    def write(self, record: Record) -> Record:
        """Write a record over the one of its revision, and return it with the next; Conflict if another is there."""


class Drains(Protocol):
    """slurmctld, as far as nodes are looked at and drained."""

    def see(self, node: str) -> SlurmNode:
        """Return what it says."""

    def drain(self, node: str, reason: str) -> str:
        """Drain a node for us; return "", or why not now: too few would be left. Its jobs go on."""


class Slurm(Drains, Protocol):
    """slurmctld."""

    def reboot(self, node: str, reason: str, next_state: str) -> str:
        """``scontrol reboot ASAP`` a node; return "" or why not now. Its jobs go on."""

    def check_floors(self) -> Mapping[str, tuple[int, int]]:
        """Return how many nodes each partition keeps for jobs, of how many; ReimageError for floors that cannot be."""

    def check_job_user(self) -> None:
        """ReimageError unless the test job's user is an ordinary one whose jobs Slurm takes."""

    def keep_drained(self, node: str, reason: str) -> None:
        """Have a node drained with this reason, whatever its state: also after a reboot that slurmctld issued."""

    def prove(self, node: str) -> str:
        """Have a test job run on a drained node, with no other job; return its id. One that runs is found again."""

    def proven(self, node: str, job: str) -> str | None:
        """Return "" when the test job ended well, None when it has not ended, or how it ended.

        Gone when Slurm does not know it any more, as it forgets jobs some minutes after their end (MinJobAge).
        """

    def end_proof(self, node: str, reason: str) -> None:
        """End a test job and what kept others away. The node is drained for this reason before; "": it serves then."""


class Bmc(Protocol):
    """BMCs. Whatever acts asks first whether it is the declared machine."""

    def identify(self, node: str) -> None:
        """Trouble unless the BMC's machine has the declared serial number."""

    def is_on(self, node: str) -> bool:
        """Return whether a machine has power, or is just getting it."""

    def shut_down(self, node: str, may: Callable[[], None]) -> None:
        """Have the system shut itself down, take the power away when it does not, and see that it is gone.

        That takes a while: ``may`` is asked directly before each command, and raises if it is no longer allowed.
        """

    def network_once(self, node: str) -> None:
        """Have the next start, and only that one, go to the network."""

    def boot_as_set(self, node: str) -> None:
        """Take that back."""

    def on(self, node: str, may: Callable[[], None]) -> None:
        """Switch on, after ``may`` was asked as above."""

    def console(self, node: str) -> str:
        """Return the last lines of the console, "" where they cannot be had. Never Trouble."""


class Provision(Protocol):
    """The provisioning server."""

    def see(self, node: str) -> Installation:
        """Return what it says."""

    def arm(self, record: Record) -> str:
        """Arm a node with what its record says, put first secrets there; return the fingerprint of its new host key.

        Conflict when the record is not the newest: nobody who aborted meanwhile finds the node armed.
        """

    def disarm(self, node: str) -> None:
        """Have a node boot its disk; what was made for it is worth nothing any more."""


class Nodes(Protocol):
    """Nodes by ssh."""

    def host_key(self, node: str) -> str:
        """Return the fingerprint of the host key that a node shows, "" when nobody answers."""

    def boot_id(self, node: str) -> str:
        """Return what differs from boot to boot, "" when it does not let us in."""


class Rollout(Protocol):
    """Playbooks against nodes. They run beside the engine, several nodes in one where that suits."""

    def converge(self, node: str) -> str | None:
        """Roll the site out to a node: "" when that went well, None while it goes on, or why not. Starts it."""

    def gates(self, node: str) -> str | None:
        """Check a node: "" when it keeps all that is promised, None when that goes on, or what it does not keep."""

    def leave(self, node: str) -> None:
        """Have no playbook begin on a node any more: its reimage ended. One that runs on it goes on."""


@dataclass(frozen=True)
class World:
    """All of it. ``now`` in seconds since 1970."""

    store: Store
    slurm: Slurm
    bmc: Bmc
    provision: Provision
    nodes: Nodes
    rollout: Rollout
