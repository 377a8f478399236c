"""The command: which nodes, what would be done to them, and with the code that confirms it, the run.

Everything that could refuse is asked before anything is changed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from hal_cluster.audit.store import Store as Audits
from hal_cluster.bmc.models import Target
from hal_cluster.bmc.operations import Limits as BmcLimits
from hal_cluster.bmc.retry import Patience
from hal_cluster.bmc.turns import Turns
from hal_cluster.provision.kickstart import Place, Server, disk_of, wipeable
from hal_cluster.provision.nodes import BootNode, boot_node
from hal_cluster.reimage import guards, show
from hal_cluster.reimage.bmc import Bmcs, Machine
from hal_cluster.reimage.drive import Drive
from hal_cluster.reimage.engine import Engine, Limits, refuse_other
from hal_cluster.reimage.errors import ReimageError, Trouble
from hal_cluster.reimage.nodes import Ssh
from hal_cluster.reimage.record import Image, Plan, Record, Run, State, Step, code_of, stamp
from hal_cluster.reimage.remote import Run as Remote
from hal_cluster.reimage.rollout import Playbook, Playbooks
from hal_cluster.reimage.server import Ordering, Provisioning, Records, image_of, published
from hal_cluster.reimage.slurm import SlurmCommands, TestJob
from hal_cluster.reimage.world import Slurm, SlurmNode, World
from hal_inventory import managed
from hal_inventory.compiled import slice_of
from hal_inventory.printable import one_line
from hal_inventory.ranges import expand_list
from hal_inventory.sources import last_source

Answer = TypeVar("Answer")

_POLL_MOST = 60
"""Longest pause between two looks in seconds: an abort is heard of with the next one."""


class RunOn(Protocol):
    """Gives what runs commands on a host."""

    def __call__(self, host: str, fresh: bool = False) -> Remote:
        """Return it; ``fresh``: by no connection that is open from before."""


@dataclass(frozen=True)
class Asked:
    """What somebody asked for. ``settings`` as playbooks/reimage.yml gives them."""

    nodes: str
    code: str
    settings: Mapping[str, Any]
    check: bool
    by: str


@dataclass(frozen=True)
class Connected:
    """What Ansible gives: inventory sources, variables of hosts, connections, and how to call ansible-playbook."""

    sources: Sequence[str]
    variable: Callable[[str, str], Any]
    run_on: RunOn
    program: Sequence[str]
    environment: Mapping[str, str]
    extra: Mapping[str, Any]
    project: Path
    say: Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """What came of it."""

    text: str
    code: str
    well: bool = True
    changed: bool = False
    records: Mapping[str, Record] = field(default_factory=dict)


def reimage(asked: Asked, connected: Connected, world: World | None = None) -> Result:
    """Show the plan, or carry it out; ReimageError for what is refused, and then nothing was changed.

    ``world``: another than the one that Ansible connects to.
    """
    site = _Site(asked, connected)
    world = world or site.world()
    floors = _asked_for(world.slurm.check_floors)
    _asked_for(world.slurm.check_job_user)
    shown = _looked_at(site, world)
    plans = [one.plan for one in shown]
    code = code_of(plans)
    if asked.code and asked.code != code:
        raise ReimageError(
            f"{asked.code} is not the code of what would be done now: other nodes, another image, disk or serial "
            "number, or it was used. Call it without reimage_code, read, and take the code that is shown then. "
            "Nothing was changed"
        )
    for one in shown:
        if one.last and one.last.state in (State.GOING, State.FAILED):
            refuse_other(one.last, one.plan, code)
    if not asked.code or asked.check:
        how = f"Code: {code}\nNothing was changed. To do this: the same command with\n    -e reimage_code={code}"
        if asked.check:
            how = f"The code {code} is right for this. Nothing was changed: this is check mode" if asked.code else how
        return Result(show.plan_of(shown, f"{site.how(floors)}\n{how}"), code)
    connected.say(show.plan_of(shown, f"{site.how(floors)}\nConfirmed with {code}."))
    return _carried_out(site, world, shown, code)


def _asked_for(ask: Callable[[], Answer]) -> Answer:
    """Return an answer; ReimageError when there is none: nothing was changed yet."""
    try:
        return ask()
    except Trouble as trouble:
        raise ReimageError(f"{trouble.reason}. Nothing was changed") from None


def _looked_at(site: _Site, world: World) -> list[show.Shown]:
    """Look at all nodes, several at a time; ReimageError with a line for each that is not as declared."""
    images = published(site.server, site.ordering.images_folder, site.ordering.key)

    def each(ask: Callable[[str], Answer]) -> dict[str, Answer]:
        def one(name: str) -> Answer | str:
            try:
                return ask(name)
            except Trouble as trouble:
                return one_line(trouble.reason if trouble.reason.startswith(name) else f"{name}: {trouble.reason}")

        with ThreadPoolExecutor(8) as pool:
            found = dict(zip(site.names, pool.map(one, site.names), strict=True))
        if problems := [said for said in found.values() if isinstance(said, str)]:
            raise ReimageError("\n".join([*problems, "Nothing was changed"]))
        return {name: said for name, said in found.items() if not isinstance(said, str)}

    last = each(world.store.read)
    begun = _begun_together(last, site.asked.code)

    def look(name: str) -> show.Shown:
        if name in begun.over:
            return show.Shown(begun.over[name], site.place(name), SlurmNode(False), "", last[name], over=True)
        world.bmc.identify(name)
        called = world.provision.see(name).called if last[name] is None else ""
        plan = site.plan(name, last[name], images, begun.images, called)
        return show.Shown(plan, site.place(name), world.slurm.see(name), site.bmc_words(name), last[name])

    return list(each(look).values())


_OVER = (State.DONE, State.ABORTED)


@dataclass(frozen=True)
class _Begun:
    """What belongs to a call that was begun and not finished: plans of nodes that are through with it, and images."""

    over: Mapping[str, Plan] = field(default_factory=dict)
    images: tuple[Image, ...] = ()


def _begun_together(last: Mapping[str, Record | None], code: str) -> _Begun:
    """Return what an earlier call with this code has done already; without a code, with that of what is not through.

    Nodes that are done or were aborted are left out of the rest. With all of them the code was used, and is worth
    nothing.
    """
    records = {name: one for name, one in last.items() if one is not None}
    unfinished = {one.run.code for one in records.values() if one.state in (State.GOING, State.FAILED)}
    known = code or (unfinished.pop() if len(unfinished) == 1 else "")
    of_it = {name: one for name, one in records.items() if known and one.run.code == known}
    over = {name: one.plan for name, one in of_it.items() if one.state in _OVER}
    if len(over) == len(last):
        return _Begun()
    return _Begun(over, tuple({one.plan.image: None for one in of_it.values()}))


def _carried_out(site: _Site, world: World, shown: Sequence[show.Shown], code: str) -> Result:
    settings, connected = site.settings, site.connected
    engine = Engine(world, site.limits())
    plans = {one.plan.node: one.plan for one in shown}
    over = {one.plan.node: one.last for one in shown if one.over and one.last}
    nodes = tuple(name for name in plans if name not in over)
    run = Run(
        code=code,
        by=site.asked.by,
        began=stamp(time.time()),
        by_slurm=bool(settings["by_slurm"]),
        next_state=settings["next_state"],
        nodes=nodes,
        call=secrets.token_hex(4),
        go_on=bool(settings["go_on"]),
    )
    drive = Drive(
        engine,
        run,
        lambda record: connected.say(show.line_of(record)),
        parallel=site.parallel,
        poll_seconds=site.poll_seconds,
        go_on=run.go_on,
        # Its record is written when its turn comes: what is not begun is as if nobody had asked.
        begin=lambda node: engine.confirm(plans[node], run),
        mark=world.store.driven,
        leave=world.rollout.leave,
        say=lambda line: connected.say(one_line(line)),
    )
    world.store.driven(nodes)  # what would never succeed is known before anything is done
    if isinstance(world.rollout, Playbooks):
        world.rollout.to_come = lambda kind: drive.to_come(Step(kind))
    records, others = drive.all(nodes)
    text = show.end_of({**over, **records}, settings["server"])
    lines = [text] if text else []
    lines += [one_line(f"{name}: {why}") for name, why in others.items()]
    well = not others and all(one.state is State.DONE for one in records.values())
    return Result("\n".join(lines), code, well, True, records)


class _Site:
    """What is known of the site and of the nodes that were asked for."""

    def __init__(self, asked: Asked, connected: Connected) -> None:
        self.asked, self.connected, self.settings = asked, connected, asked.settings
        source = last_source(connected.sources)
        if source is None:
            raise ReimageError("no source of plugin hal among the inventory sources")
        self._source = source
        expression = asked.nodes
        every = self._slice("nodes")
        refusable = not expression.strip() or set("*?") & set(expression)  # by guards.named, in better words
        found = [] if refusable else self._slice("nodes", where=expression)
        self.names = guards.named(expression, found, every)
        self.node = {name: dict(connected.variable(name, "hal_node") or {}) for name in self.names}
        boot = {str(one["name"]): one for one in self._slice("boot")}
        placeholders = {name: [str(field) for field in boot[name]["placeholders"]] for name in self.names}
        servers = {self.settings["server"], *self.settings["controllers"]}
        guards.refuse(self.node, placeholders, servers)
        guards.refuse_left_alone(
            {name: connected.variable(name, "group_names") or () for name in self.names},
            {name: connected.variable(name, managed.VARIABLE) for name in self.names},
        )
        self.boot: dict[str, BootNode] = {name: boot_node(boot[name]) for name in self.names}
        self.server = connected.run_on(self.settings["server"])
        self.ordering = self._ordering()
        if self.settings["next_state"] not in ("RESUME", "DOWN"):
            raise ReimageError(f"reimage_next_state is {self.settings['next_state']}: RESUME or DOWN")
        self.parallel = int(self._number("max_parallel", 1))
        self.poll_seconds = self._number("poll_seconds", 0, _POLL_MOST)
        wipe = self.settings["wipe"]
        if not isinstance(wipe, list) or not all(isinstance(one, str) for one in wipe):
            raise ReimageError(f'reimage_wipe is {wipe}: a list of names, \'{{"reimage_wipe": ["scratch"]}}\'')

    def _number(self, name: str, least: float, most: float = float("inf")) -> float:
        """Return a setting that is a number; ReimageError before anything is asked when it is none."""
        try:
            number = float(self.settings[name])
        except (TypeError, ValueError):
            number = least - 1
        if not least <= number <= most:
            bounds = f"{least:g} or more" if most == float("inf") else f"{least:g} to {most:g}"
            raise ReimageError(f"reimage_{name} is {self.settings[name]}: a number, {bounds}")
        return number

    def how(self, floors: Mapping[str, tuple[int, int]]) -> str:
        """Return in words how it is done, which the code does not stand for."""
        ends = "given back to Slurm" if self.settings["next_state"] == "RESUME" else "left drained"
        by = "by scontrol reboot" if self.settings["by_slurm"] else "drained"
        keep = ", ".join(f"{name} {floor} of {nodes}" for name, (floor, nodes) in sorted(floors.items()))
        return f"{self.parallel} at a time, {by}, then {ends}." + (
            f" Nodes that stay for jobs: {keep}." if keep else ""
        )

    def _slice(self, name: str, **arguments: Any) -> Any:
        return slice_of(self._source, name, arguments)

    @property
    def virtual(self) -> bool:
        """Whether the nodes are containers."""
        return bool(self._slice("site")["virtual"])

    def place(self, name: str) -> str:
        """Return where a node is, for people."""
        network = self.settings["network"]
        return f"{self.node[name]['model']}, {self.boot[name].address(network)}"

    def bmc_words(self, name: str) -> str:
        """Return what the BMC said to the question which machine it is."""
        return f"{self.node[name]['bmc']['address']} says the same"

    def plan(
        self, name: str, last: Record | None, images: Sequence[Any], begun: Sequence[Image] = (), called: str = ""
    ) -> Plan:
        """Return what would be done to a node. One that was begun keeps its image, whatever was published since.

        ``begun``: images of nodes that were begun by the same call; ``called``: when a node that has no record called
        home last, so that no code is good again when a record is lost.
        """
        node, wanted = self.boot[name], str(self.settings["image"] or "")
        disk_of(node, virtual=self.virtual)
        goes_on = last is not None and last.state in (State.GOING, State.FAILED)
        previous = (called.split() or [""])[-1]
        if last is not None:
            previous = last.plan.previous if goes_on else last.ended
        theirs = [one for one in begun if (one.arch, one.kernel) == (node.arch, node.kernel)]
        if wanted or not (goes_on or theirs):
            image = image_of(node, images, wanted)
        else:
            image = last.plan.image if last and goes_on else theirs[0]
        can = wipeable(node)
        unknown = [one for one in self.settings["wipe"] if one not in can]
        if unknown:
            raise ReimageError(
                f"{name}: reimage_wipe names {', '.join(unknown)}; "
                f"its other disks in cluster.yml: {', '.join(sorted(can)) or 'none'}"
            )
        wipe = tuple(sorted(can[one] for one in self.settings["wipe"]))
        return Plan(name, str(self.node[name]["serial"]), str(node.disk), image, wipe, previous)

    def limits(self) -> Limits:
        """Return how long steps may take."""
        given = {name: float(seconds) for name, seconds in self.settings["limits"].items() if seconds is not None}
        return Limits(**given)

    def _ordering(self) -> Ordering:
        settings, network = self.settings, self.settings["network"]
        of_network = self._slice("networks")[network]
        server = self._slice("boot")
        address = next(one["addresses"][network] for one in server if one["name"] == settings["server"])
        authority = Path(settings["authority_dir"])
        try:
            pem = (authority / "tls_ca.pem").read_text(encoding="utf-8")
        except OSError as error:
            raise ReimageError(f"{error.filename}: {error.strerror}; playbooks/authorities.yml makes it") from None
        return Ordering(
            nodes=self.boot,
            place=Place(network, str(of_network["netmask"]), of_network["gateway"]),
            url=f"http://{address}:{settings['port']}",
            images_url=f"http://{address}/images",
            images_folder=settings["images_folder"],
            secrets=Server(f"https://{address}:{settings['tls_port']}", pem),
            authority=authority,
            key=Path(settings["image_key"]),
            installers=settings["installers"],
            append=settings["append"],
            root_principals=settings["root_principals"],
            seconds=self.limits().begin + self.limits().install + 600,
            virtual=self.virtual,
        )

    def world(self) -> World:
        """Return the real one."""
        settings, connected = self.settings, self.connected
        controller = connected.run_on(settings["controllers"][0]) if settings["controllers"] else None
        gres = {name: str(line["gres"]) for line in self._slice("slurm.nodes") for name in expand_list(line["names"])}
        job = TestJob(settings["job_command"], settings["job_user"], gres, int(settings["job_run_seconds"]))
        slurm: Slurm = (
            SlurmCommands(controller, job=job, floors={name: int(n) for name, n in settings["keep"].items()})
            if controller
            else NoSlurm()
        )
        return World(
            store=Records(self.server),
            slurm=slurm,
            bmc=self._bmcs(),
            provision=Provisioning(self.server, self.ordering),
            nodes=Ssh(
                {name: one.address(settings["network"]) for name, one in self.boot.items()},
                lambda name: connected.run_on(name, fresh=True),
                settings["boot_id_command"],
            ),
            rollout=self._playbooks(),
        )

    def _bmcs(self) -> Bmcs:
        variable, settings = self.connected.variable, self.settings
        machines = {}
        for name, node in self.node.items():
            target = Target(
                name=name,
                kind=node["bmc"]["kind"],
                address=node["bmc"]["address"],
                user=str(variable(name, "bmc_user") or ""),
                password=str(variable(name, "bmc_password") or ""),
                ca_file=str(variable(name, "bmc_ca_file") or ""),
                fingerprint=str((variable(name, "bmc_fingerprints") or {}).get(name, "")),
                console_key=str((variable(name, "bmc_console_keys") or {}).get(name, "")),
            )
            machines[name] = Machine(target, str(node["serial"]))
        limits = BmcLimits(
            answers=Patience(seconds=float(settings["bmc_wait_seconds"])),
            shut_down=Patience(seconds=float(settings["shut_down_seconds"])),
        )
        turns = Turns(
            Path(settings["state_dir"]) / "power_on", int(settings["on_at_once"]), float(settings["on_pause_seconds"])
        )
        try:
            turns.check()  # now, and not when the node is off
        except ValueError as error:
            raise ReimageError(f"bmc_on_at_once, bmc_on_pause_seconds: {error}") from None
        except OSError as error:
            raise ReimageError(f"{turns.file}: {error.strerror}") from None
        return Bmcs(machines, self._slice("serials"), limits, turns)

    def _playbooks(self) -> Playbooks:
        settings, connected = self.settings, self.connected

        # A disk that was wiped is empty: the role that makes file systems makes one there only when it is told to.
        wiped = {"local_storage_create_ok": True} if settings["wipe"] else {}

        def of(path: str) -> Playbook:
            return Playbook(connected.program, Path(path), {**connected.extra, **wiped})

        return Playbooks(
            of(settings["playbook"]),
            of(settings["gates"]),
            Path(settings["state_dir"]) / "reimage",
            connected.environment,
            connected.project,
            together_seconds=float(settings["together_seconds"]),
            limit_seconds=self.limits().rollout,
            forget=Audits(settings["audit_dir"]).forget,
        )


class NoSlurm:
    """A site without Slurm: no node is known to it."""

    def see(self, node: str) -> SlurmNode:
        """Nobody."""
        return SlurmNode(known=False)

    def check_floors(self) -> dict[str, tuple[int, int]]:
        """No partitions."""
        return {}

    def check_job_user(self) -> None:
        """No test job."""

    def drain(self, node: str, reason: str) -> str:
        """Nothing to drain."""
        return ""

    def reboot(self, node: str, reason: str, next_state: str) -> str:
        """Nothing to reboot."""
        return ""

    def keep_drained(self, node: str, reason: str) -> None:
        """Nothing to keep."""

    def prove(self, node: str) -> str:
        """No job."""
        return ""

    def proven(self, node: str, job: str) -> str | None:
        """No job, which ended well."""
        return ""

    def end_proof(self, node: str, reason: str) -> None:
        """Nothing to end."""
