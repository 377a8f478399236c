"""The command: which nodes, what would be done to them, and with the code that confirms it, the run.

Everything that could refuse is asked before anything is changed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from hal_cluster.reimage import show
from hal_cluster.reimage.asked import Asked, Connected
from hal_cluster.reimage.assembly import Assembly
from hal_cluster.reimage.drive import Drive
from hal_cluster.reimage.engine import Engine, refuse_other
from hal_cluster.reimage.errors import ReimageError, Trouble
from hal_cluster.reimage.record import Image, Plan, Record, Run, State, Step, code_of, stamp
from hal_cluster.reimage.rollout import Playbooks
from hal_cluster.reimage.server import published
from hal_cluster.reimage.settings import Settings, settings_of
from hal_cluster.reimage.site import Site
from hal_cluster.reimage.world import SlurmNode, World
from hal_inventory.printable import one_line

Answer = TypeVar("Answer")


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

    ``world``: the one to act on, instead of the one that Ansible connects to.
    """
    settings = settings_of(asked.settings)
    site = Site(asked.nodes, settings, connected)
    assembly = Assembly(site, connected)
    world = world or assembly.world()
    floors = _asked_for(world.slurm.check_floors)
    _asked_for(world.slurm.check_job_user)
    shown = _looked_at(site, assembly, world, asked.code)
    plans = [node.plan for node in shown]
    code = code_of(plans)
    if asked.code and asked.code != code:
        raise ReimageError(
            f"{asked.code} is not the code of what would be done now: other nodes, another image, disk or serial "
            "number, or it was used. Run the command without reimage_code, read the plan, and use the code that it "
            "shows. Nothing was changed"
        )
    for node in shown:
        if node.last and node.last.state in (State.GOING, State.FAILED):
            refuse_other(node.last, node.plan, code)
    if not asked.code or asked.check:
        how = f"Code: {code}\nNothing was changed. To do this: the same command with\n    -e reimage_code={code}"
        if asked.check:
            how = f"The code {code} is right for this. Nothing was changed: this is check mode" if asked.code else how
        return Result(show.plan_of(shown, f"{site.how(floors)}\n{how}"), code)
    connected.say(show.plan_of(shown, f"{site.how(floors)}\nConfirmed with {code}."))
    return _carried_out(asked, connected, settings, world, shown, code)


def _asked_for(ask: Callable[[], Answer]) -> Answer:
    """Return an answer; ReimageError when there is none: nothing was changed yet."""
    try:
        return ask()
    except Trouble as trouble:
        raise ReimageError(f"{trouble.reason}. Nothing was changed") from None


def _looked_at(site: Site, assembly: Assembly, world: World, code: str) -> list[show.Shown]:
    """Look at all nodes, several at a time; ReimageError with a line for each that is not as declared."""
    images = published(assembly.server, assembly.ordering.images_folder, assembly.ordering.key)

    def by_node(ask: Callable[[str], Answer]) -> dict[str, Answer]:
        def answer(name: str) -> Answer | str:
            try:
                return ask(name)
            except Trouble as trouble:
                return one_line(trouble.reason if trouble.reason.startswith(name) else f"{name}: {trouble.reason}")

        with ThreadPoolExecutor(8) as pool:
            answers = dict(zip(site.names, pool.map(answer, site.names), strict=True))
        if problems := [said for said in answers.values() if isinstance(said, str)]:
            raise ReimageError("\n".join([*problems, "Nothing was changed"]))
        return {name: said for name, said in answers.items() if not isinstance(said, str)}

    last = by_node(world.store.read)
    begun = _begun_together(last, code)

    def look(name: str) -> show.Shown:
        if name in begun.over:
            return show.Shown(begun.over[name], site.place(name), SlurmNode(False), "", last[name], over=True)
        world.bmc.identify(name)
        called = world.provision.see(name).called if last[name] is None else ""
        plan = site.plan(name, last[name], images, begun.images, called)
        return show.Shown(plan, site.place(name), world.slurm.see(name), site.bmc_words(name), last[name])

    return list(by_node(look).values())


_OVER = (State.DONE, State.ABORTED)


@dataclass(frozen=True)
class _Begun:
    """What belongs to a call that was begun and not finished: plans of nodes that are through with it, and images."""

    over: Mapping[str, Plan] = field(default_factory=dict)
    images: tuple[Image, ...] = ()


def _begun_together(last: Mapping[str, Record | None], code: str) -> _Begun:
    """Return what an earlier call with this code has done already; without a code, what the unfinished call did.

    Nodes that are done or were aborted are left out of the rest. If all are, the code was used and is worth nothing.
    """
    records = {name: record for name, record in last.items() if record is not None}
    unfinished = {record.run.code for record in records.values() if record.state in (State.GOING, State.FAILED)}
    known = code or (unfinished.pop() if len(unfinished) == 1 else "")
    of_it = {name: record for name, record in records.items() if known and record.run.code == known}
    over = {name: record.plan for name, record in of_it.items() if record.state in _OVER}
    if len(over) == len(last):
        return _Begun()
    return _Begun(over, tuple({record.plan.image: None for record in of_it.values()}))


def _carried_out(
    asked: Asked, connected: Connected, settings: Settings, world: World, shown: Sequence[show.Shown], code: str
) -> Result:
    engine = Engine(world, settings.limits)
    plans = {node.plan.node: node.plan for node in shown}
    over = {node.plan.node: node.last for node in shown if node.over and node.last}
    nodes = tuple(name for name in plans if name not in over)
    run = Run(
        code=code,
        by=asked.by,
        began=stamp(time.time()),
        by_slurm=settings.by_slurm,
        next_state=settings.next_state,
        nodes=nodes,
        call=secrets.token_hex(4),
        go_on=settings.go_on,
    )
    drive = Drive(
        engine,
        run,
        lambda record: connected.say(show.line_of(record)),
        parallel=settings.max_parallel,
        poll_seconds=settings.poll_seconds,
        go_on=run.go_on,
        # A node's record is written when its turn comes: until then it is as if nobody had asked.
        begin=lambda node: engine.confirm(plans[node], run),
        mark=world.store.driven,
        leave=world.rollout.leave,
        say=lambda line: connected.say(one_line(line)),
    )
    world.store.driven(nodes)  # a server that cannot do this says so before anything is done
    if isinstance(world.rollout, Playbooks):
        world.rollout.to_come = lambda kind: drive.to_come(Step(kind))
    records, others = drive.all(nodes)
    text = show.end_of({**over, **records}, settings.server)
    lines = [text] if text else []
    lines += [one_line(f"{name}: {why}") for name, why in others.items()]
    well = not others and all(record.state is State.DONE for record in records.values())
    return Result("\n".join(lines), code, well, True, records)
