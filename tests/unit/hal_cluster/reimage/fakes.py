"""A site in this process: machines, their BMCs, Slurm, the provisioning server and rollouts, with faults and a clock.

What may never happen is Broken at once, whoever caused it. Faults are words in ``Site.faults``, by node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hal_cluster.reimage.errors import Conflict, Gone, Trouble
from hal_cluster.reimage.record import Image, Plan, Record, Run, State, Step, record_of, stamp
from hal_cluster.reimage.world import Installation, Job, SlurmNode, World

IMAGE = Image("ac922-20261122-ppc64le", "0" * 64, "ppc64le", "4.18.0-80.7.2.el7")
RUN = Run("K7QX-M2VD", "root@here", "2026-11-22T18:00:00Z")
OURS = "hal-reimage: "
HEALTH = "health: "
BEFORE_OFF = (Step.DRAIN, Step.OFF)  # a reboot by Slurm is the beginning of a reimage


def plan(node: str, **other: str) -> Plan:
    """Return a plan for a node of the site."""
    return replace(Plan(node, f"S-{node}", f"0x{node}", IMAGE), **other)  # type: ignore[arg-type]


@dataclass
class Machine:
    """A node: what it has of power, of disk, and of Slurm."""

    name: str
    serial: str = ""
    on: bool = True
    network_next: bool = False
    disk: str = "system 0"  # or "erased"
    runs: str = "system 0"  # "", "firmware", "installer", or a system
    boots: int = 1
    key: str = "key 0"
    next_key: str = ""
    # slurmctld's
    drained: bool = False
    reason: str = ""
    jobs: list[str] = field(default_factory=list)
    reboot: str = ""
    next_state: str = ""
    reserved: bool = False
    test_job: str = ""
    test_ended: str | None = None
    # whether what is on the disk may have users' jobs
    converged: bool = True
    gated: bool = True
    proven: bool = True
    resumed_by_hand: bool = False

    def drain(self, reason: str) -> None:
        """Have no new job come: who gave it back before has no say in it any more."""
        self.drained, self.reason, self.resumed_by_hand = True, reason, False

    @property
    def system(self) -> bool:
        """Whether a system runs."""
        return self.runs.startswith("system")

    @property
    def serves(self) -> bool:
        """Whether users' jobs start there."""
        return self.system and not self.drained and not self.reserved and self.reboot != "issued"


@dataclass
class Order:
    """What a node is armed with."""

    record: Record
    key: str
    until: float
    given: bool = False
    began: bool = False
    stopped: str = ""


class Site:
    """All of it. ``call`` is asked before and after each call of the engine's: a test raises there, as a killed run."""

    def __init__(self, *names: str) -> None:
        self.clock = 1_795_370_400.0
        self.machines = {name: Machine(name, f"S-{name}") for name in names}
        self.records: dict[str, dict[str, object]] = {}
        self.orders: dict[str, Order] = {}
        self.began: dict[str, str] = {}
        self.called: dict[str, str] = {}
        self.confirmed: dict[str, Plan] = {}
        self.faults: dict[str, set[str]] = defaultdict(set)
        self.rollouts: dict[tuple[str, str], float] = {}
        self.told: list[str] = []
        self.numbers = 0
        self.floor = 0
        self.unknown: set[str] = set()  # to Slurm
        self.hangs = False  # no rollout ends
        self.console = "first line\nlast line\n"
        self.call: Callable[[str, str, str], None] = lambda when, what, node: None
        self.meanwhile: Callable[[str], None] = lambda node: None  # while a system does not shut itself down

    def world(self) -> World:
        """Return it as the engine has it."""
        return World(
            *(
                Watched(self, part(self))
                for part in (FakeStore, FakeSlurm, FakeBmc, FakeProvision, FakeNodes, FakeRollout)
            )  # type: ignore[arg-type]
        )

    def now(self) -> float:
        """The clock."""
        return self.clock

    def number(self) -> int:
        """A number that nobody had."""
        self.numbers += 1
        return self.numbers

    # --- what happens by itself

    def pass_time(self, seconds: float = 30) -> None:
        """Have time pass: machines boot and install, rollouts and jobs end."""
        self.clock += seconds
        for machine in self.machines.values():
            self._boot(machine)
            if machine.reboot == "asked" and not machine.jobs:
                machine.reboot = "issued"
                self._run_reboot_program(machine)
            if machine.reserved and machine.test_job and machine.test_ended is None and machine.system:
                machine.test_ended = "FAILED 1:0" if "job" in self.faults[machine.name] else ""
                machine.proven = machine.proven or (machine.test_ended == "" and machine.gated)

    def _run_reboot_program(self, machine: Machine) -> None:
        """Switch a machine off for its reimage, where the server says that the reboot is for that; boot it else."""
        if not machine.system:
            return
        record = self.records.get(machine.name)
        silent = "server" in self.faults[machine.name] | self.faults["*"]
        kept = record_of(record) if record and not silent else None
        if kept and kept.going and kept.run.by_slurm and kept.step in BEFORE_OFF:
            machine.on, machine.runs = False, ""
        else:
            machine.runs = "firmware"

    def _boot(self, machine: Machine) -> None:
        name, faults = machine.name, self.faults[machine.name]
        if not machine.on:
            return
        if machine.runs == "firmware":
            order = self.orders.get(name)
            network = machine.network_next and "override-ignored" not in faults
            machine.network_next = False
            if network and order and not order.began and order.until > self.clock:
                order.given, order.stopped = True, ""
                machine.runs = "installer"
            else:
                self._start_disk(machine)
        elif machine.runs == "installer":
            self._install(machine)

    def _start_disk(self, machine: Machine) -> None:
        machine.boots += 1
        machine.runs = machine.disk if machine.disk != "erased" else "nothing"
        if machine.system and machine.reboot == "issued":  # slurmd registers: slurmctld does what nextstate says
            machine.reboot = ""
            if machine.next_state == "RESUME":
                machine.drained, machine.reason = False, ""

    def _install(self, machine: Machine) -> None:
        name, faults = machine.name, self.faults[machine.name]
        order = self.orders.get(name)
        if machine.disk != "erased" or (order and not order.began):
            if order is None or order.began or "disk-missing" in faults:
                machine.runs = "stopped"
                self._tell(order, faults, f"no disk 0x{name}")
                return
            assert name in self.confirmed, f"{name} was erased, and nobody confirmed it"
            assert not machine.jobs, f"{name} was erased under {machine.jobs}"
            order.began = True
            self.began[name], machine.disk = stamp(self.clock), "erased"
            self.called.pop(name, None)  # the server keeps one word of an installation, the last
            machine.converged = machine.gated = machine.proven = False
            machine.resumed_by_hand = not machine.drained
        elif order is None or faults & {"silent-install", "image-broken"}:
            machine.runs = "stopped"
            self._tell(order, faults, "the image is broken")
        else:
            machine.key = machine.next_key = order.key
            machine.disk = f"system {self.number()}"
            self.called[name] = f"{stamp(self.clock)} {self.number()}"
            self.began.pop(name, None)
            del self.orders[name]
            self._start_disk(machine)

    def _tell(self, order: Order | None, faults: set[str], why: str) -> None:
        """The installer says why it stops, where it can."""
        if order and not (faults | self.faults["*"]) & {"server", "silent-install", "untold"}:
            order.stopped = why

    # --- people

    def submit(self, name: str) -> bool:
        """Somebody's job starts on a node, where Slurm lets it."""
        machine = self.machines[name]
        if machine.serves:
            assert machine.proven or machine.resumed_by_hand, f"{name} serves, and was not proven"
            machine.jobs.append(str(self.number()))
        return machine.serves

    def resume(self, name: str) -> None:
        """An administrator gives a node back, whatever it was drained for; what serves then is on him."""
        machine = self.machines[name]
        if machine.drained and not machine.reboot:
            machine.drained, machine.reason, machine.resumed_by_hand = False, "", True

    def ask_reboot(self, name: str, next_state: str = "RESUME") -> None:
        """An administrator says ``scontrol reboot ASAP``."""
        machine = self.machines[name]
        if machine.serves:
            by_hand = machine.resumed_by_hand
            machine.drain("kernel")
            machine.reboot, machine.next_state = "asked", next_state
            machine.resumed_by_hand = by_hand  # RESUME after it is his word again

    def press_the_button(self, name: str) -> None:
        """Somebody in the machine room switches a machine on."""
        machine = self.machines[name]
        if not machine.on:
            machine.on, machine.runs = True, "firmware"

    def forget_job(self, name: str) -> None:
        """Slurm forgets a test job, as it does some minutes after its end (MinJobAge)."""
        self.machines[name].test_job = ""

    def end_jobs(self, name: str) -> None:
        """The jobs of a node end."""
        self.machines[name].jobs.clear()

    def abort(self, name: str) -> bool:
        """An administrator aborts, as hal-reimage on the server does: the record, what it boots, then Slurm."""
        found = self.records.get(name)
        if found is None or found["state"] not in ("going", "failed"):
            return False
        machine = self.machines[name]
        step = found["step"]
        found.update(
            state="aborted",
            reason=f"aborted by root at {step}",
            ended=stamp(self.clock),
            revision=found["revision"] + 1,  # type: ignore[operator]
        )
        self.disarm(name)
        if step != "waiting":
            by_hand = machine.resumed_by_hand and machine.reboot == "issued"  # which may end this drain
            machine.drain(f"{OURS}aborted by root at {step}")
            machine.resumed_by_hand = by_hand
            machine.reboot = "" if machine.reboot == "asked" else machine.reboot  # cancel_reboot: not once it is issued
        return True

    def disarm(self, name: str) -> None:
        """Take an order back."""
        self.orders.pop(name, None)

    def standing(self, other_than: str = "") -> dict[str, str]:
        """Return what each node boots as the server has it."""
        return {name: f"order {self.orders[name].key}" if name in self.orders else "disk" for name in self.machines}


class Broken(BaseException):
    """What may never happen. No Exception: the engine makes a failure of the node of each that nobody foresaw."""


class Watched:
    """A part whose every call is told, before and after."""

    def __init__(self, site: Site, part: object) -> None:
        self._site, self._part = site, part

    def __getattr__(self, name: str) -> Callable[..., object]:
        asked = getattr(self._part, name)

        def call(*arguments: object) -> object:
            first = arguments[0] if arguments else "*"
            node = first.node if isinstance(first, Record) else str(first)
            what = f"{type(self._part).__name__.removeprefix('Fake').lower()}.{name}"
            self._site.call("before", what, node)
            try:
                given = asked(*arguments)
            except AssertionError as error:
                raise Broken(str(error)) from None
            self._site.told.append(f"{what} {node}")
            self._site.call("after", what, node)
            return given

        return call


class Part:
    """Something that can be out of order."""

    name = ""

    def __init__(self, site: Site) -> None:
        self.site = site

    def machine(self, node: str) -> Machine:
        """Return a machine, unless this part does not answer."""
        if self.name in self.site.faults[node] | self.site.faults["*"]:
            raise Trouble(f"{self.name} does not answer", passes=True)
        return self.site.machines[node]


class FakeStore(Part):
    name = "server"

    def driven(self, nodes: Sequence[str]) -> None:
        """Nobody asks here when that was."""

    def read(self, node: str) -> Record | None:
        self.machine(node)
        found = self.site.records.get(node)
        return record_of(found) if found else None

    def write(self, record: Record) -> Record:
        self.machine(record.node)
        kept = self.site.records.get(record.node)
        if (kept["revision"] if kept else 0) != record.revision:
            raise Conflict(record.node)
        record = replace(record, revision=record.revision + 1)
        self.site.records[record.node] = record.to_json()
        return record


class FakeSlurm(Part):
    name = "slurmctld"

    def check_floors(self) -> dict[str, tuple[int, int]]:
        return {"gpu": (self.site.floor, len(self.site.machines))}

    def check_job_user(self) -> None:
        pass

    def see(self, node: str) -> SlurmNode:
        machine = self.machine(node)
        if node in self.site.unknown:
            return SlurmNode(known=False)
        return SlurmNode(
            known=True,
            drained=machine.drained,
            ours=machine.drained and machine.reason.startswith(OURS),
            usable=machine.serves,
            maintained=machine.reserved,
            unhealthy=machine.drained and machine.reason.startswith(HEALTH),
            reason=machine.reason,
            by="root",
            jobs=tuple(Job(job, "alice", "12:00") for job in machine.jobs),
            reboot=machine.reboot,
            next_state=machine.next_state if machine.reboot else "",
        )

    def drain(self, node: str, reason: str) -> str:
        machine = self.machine(node)
        if machine.drained and not machine.reason.startswith(HEALTH):
            return ""
        if not machine.drained and self._too_few(machine):
            return "too few would be left"
        machine.drain(reason)
        return ""

    def _too_few(self, machine: Machine) -> bool:
        return sum(one.serves for one in self.site.machines.values() if one is not machine) < self.site.floor

    def reboot(self, node: str, reason: str, next_state: str) -> str:
        machine = self.machine(node)
        if machine.reboot == "":
            if self._too_few(machine):
                return "too few would be left"
            machine.drain(reason)
            machine.reboot, machine.next_state = "asked", next_state
        return ""

    def keep_drained(self, node: str, reason: str) -> None:
        machine = self.machine(node)
        machine.drain(reason)
        machine.reboot = machine.next_state = ""

    def prove(self, node: str) -> str:
        machine = self.machine(node)
        if not machine.reserved or not machine.test_job:
            machine.reserved, machine.test_job, machine.test_ended = True, f"test {self.site.number()}", None
            machine.drained, machine.reason = False, ""
        return machine.test_job

    def proven(self, node: str, job: str) -> str | None:
        machine = self.machine(node)
        if machine.test_job != job:
            raise Gone(job)
        return machine.test_ended

    def end_proof(self, node: str, reason: str) -> None:
        machine = self.machine(node)
        if reason:
            machine.drain(reason)
        machine.reserved, machine.test_job = False, ""
        if not machine.drained:
            assert machine.proven or machine.resumed_by_hand, f"{node} was given back, and is not proven"


class FakeBmc(Part):
    name = "bmc"

    def _acts(self, node: str) -> Machine:
        self.identify(node)
        return self.machine(node)

    def identify(self, node: str) -> None:
        machine = self.machine(node)
        if machine.serial != f"S-{node}" or "swapped" in self.site.faults[node]:
            raise Trouble("it is another machine. Nothing was done to it")

    def is_on(self, node: str) -> bool:
        return self.machine(node).on

    def shut_down(self, node: str, may: Callable[[], None]) -> None:
        machine = self._acts(node)
        may()
        if "deaf" in self.site.faults[node]:  # its power is taken away, after a while
            self.site.meanwhile(node)
            may()
        if "power-ignored" in self.site.faults[node]:
            raise Trouble("it said yes, and its power is on")
        assert not machine.jobs, f"{node} lost its power under {machine.jobs}"
        assert machine.drained or node in self.site.unknown, f"{node} lost its power while jobs may start on it"
        machine.on, machine.runs = False, ""

    def network_once(self, node: str) -> None:
        self._acts(node).network_next = True

    def boot_as_set(self, node: str) -> None:
        self._acts(node).network_next = False

    def on(self, node: str, may: Callable[[], None]) -> None:
        machine = self._acts(node)
        may()
        if not machine.on and "power-ignored" not in self.site.faults[node]:
            machine.on, machine.runs = True, "firmware"

    def console(self, node: str) -> str:
        return self.site.console


class FakeProvision(Part):
    name = "server"

    def see(self, node: str) -> Installation:
        self.machine(node)
        order = self.site.orders.get(node)
        armed = order is not None and not order.began and order.until > self.site.clock
        return Installation(
            armed,
            bool(order and order.given),
            self.site.began.get(node, ""),
            self.site.called.get(node, ""),
            order.stopped if order else "",
        )

    def arm(self, record: Record) -> str:
        machine = self.machine(record.node)
        kept = self.site.records[record.node]
        if kept["revision"] != record.revision:
            raise Conflict(record.node)
        assert (kept["state"], kept["step"]) == (State.GOING.value, Step.ARM.value)
        assert self.site.confirmed.get(record.node) == record.plan, f"{record.node} was armed, and nobody confirmed it"
        assert not machine.on, f"{record.node} was armed while somebody may be on it"
        assert machine.drained or record.node in self.site.unknown, f"{record.node} was armed, and is not drained"
        key = f"key {self.site.number()}"
        self.site.orders[record.node] = Order(record, key, self.site.clock + 7200)
        return key

    def disarm(self, node: str) -> None:
        self.machine(node)
        self.site.disarm(node)


class FakeNodes(Part):
    name = "ssh"

    def host_key(self, node: str) -> str:
        machine = self.site.machines[node]
        return machine.key if machine.system and "ssh" not in self.site.faults[node] else ""

    def boot_id(self, node: str) -> str:
        machine = self.site.machines[node]
        return f"boot {machine.boots}" if machine.system and "ssh" not in self.site.faults[node] else ""


class FakeRollout(Part):
    """Ends when time passed since it was asked for."""

    name = "rollout"

    def converge(self, node: str) -> str | None:
        return self._ask(node, "converge")

    def gates(self, node: str) -> str | None:
        return self._ask(node, "gates")

    def leave(self, node: str) -> None:
        """Each node has a playbook of its own here."""

    def _ask(self, node: str, kind: str) -> str | None:
        assert not self.site.machines[node].jobs, f"{kind} of {node} under {self.site.machines[node].jobs}"
        began = self.site.rollouts.setdefault((node, kind), self.site.clock)
        if self.site.clock == began or self.site.hangs:
            return None
        del self.site.rollouts[node, kind]
        machine = self.site.machines[node]
        if not machine.system:
            return "it does not answer"
        if kind in self.site.faults[node]:
            return f"{kind} failed"
        if kind == "converge":
            machine.converged = True
        elif not machine.converged:
            return "it is not as its roles have it"
        else:
            machine.gated = True
        return ""
