"""Commands about attributes: mmlsconfig, mmchconfig, and mmdiag, which shows what the daemon of this node runs with."""

from __future__ import annotations

import time
from collections.abc import Sequence

from virtual_scale import VERSION, attributes, daemon, mounts, place, select
from virtual_scale.cluster import EVERY_NODE, Cluster, Member, changing, joined
from virtual_scale.options import Options
from virtual_scale.say import Failed, done, heading, out, rows, usage

BUILT = ("Jan 20 2020", "12:00:00")


def mmlsconfig(words: Sequence[str]) -> int:
    """Show the values that were set, or those of the attributes named."""
    options = Options("mmlsconfig", words, flags=("-Y",), rest=True)
    cluster, _ = joined()
    chosen = [name for word in options.rest for name in word.split(",")]
    lines = [line for name in chosen for line in _of(cluster, name)] if chosen else _all(cluster)
    if options.given("-Y"):
        rows("mmlsconfig", "", ("configParameter", "value", "nodeList"), lines)
        return 0
    if chosen:
        for name, value, target in lines:
            out(f"{name} {value or '(undefined)'}" + (f" [{target}]" if target else ""))
        return 0
    heading(f"Configuration data for cluster {cluster.name}:")
    section = EVERY_NODE
    for name, value, target in lines:
        if target != section:
            out(f"[{target or 'common'}]")
            section = target
        out(f"{name} {value}")
    out()
    heading(f"File systems in cluster {cluster.name}:")
    for file_system in cluster.file_systems:
        out(f"/dev/{file_system.name}")
    return 0


def _fixed(cluster: Cluster) -> dict[str, str]:
    values = (cluster.name, cluster.identity, cluster.release)
    return dict(zip(attributes.FIXED, values, strict=True))


def _all(cluster: Cluster) -> list[tuple[str, str, str]]:
    """Return name, value and target of what is set: for everybody, then by target; adminMode comes last."""
    lines = [(name, value, "") for name, value in _fixed(cluster).items()]
    own = {target for values in cluster.settings.values() for target in values} - {EVERY_NODE}
    for target in (EVERY_NODE, *sorted(own)):
        for name, values in cluster.settings.items():
            if target in values and name != "adminMode":
                lines.append((attributes.shown(name), values[target], target))
    last = cluster.settings.get("adminMode", {}).get(EVERY_NODE)
    return [*lines, ("adminMode", last, "")] if last else lines


def _of(cluster: Cluster, name: str) -> list[tuple[str, str, str]]:
    fixed = {key.lower(): (key, value) for key, value in _fixed(cluster).items()}
    if name.lower() in fixed:
        return [(*fixed[name.lower()], "")]
    attribute = attributes.named(name)
    values = cluster.settings.get(attribute.name, {})
    common = values.get(EVERY_NODE, attribute.default or "")
    others = ((attributes.shown(attribute.name), value, target) for target, value in values.items() if target)
    return [(attributes.shown(attribute.name), common, ""), *others]


def mmchconfig(words: Sequence[str]) -> int:
    """Set attributes for all nodes or some; -i at once too, -I only at once."""
    options = Options("mmchconfig", words, flags=("-i", "-I", "--force"), values=("-N",), rest=True)
    if len(options.rest) != 1:
        usage(
            "mmchconfig",
            "Usage:\n  mmchconfig Attribute=value[,Attribute=value...] [-i | -I] [-N {Node[,Node...] | Class}]",
        )
    joined()
    if options.rest[0].lower() == "release=latest":
        done("mmchconfig")
        return 0
    wanted = _assignments(options.rest[0])
    at_once = options.given("-i") or options.given("-I")
    for attribute, value in wanted:
        if at_once and not attribute.at_once:
            raise Failed(f"mmchconfig: Attribute {attribute.name} cannot be changed with the -i or -I option.")
        if value is not None:
            attribute.check(value)
    with changing() as cluster:
        chosen = select.nodes(cluster, options.value("-N") or "all")
        if not options.given("-I"):
            for attribute, value in wanted:
                _set(cluster, attribute.name, value, _targets(cluster, options.value("-N"), chosen))
        if at_once:
            _at_once(cluster, chosen, wanted)
    done("mmchconfig")
    return 0


def _assignments(text: str) -> list[tuple[attributes.Attribute, str | None]]:
    """Return attributes and values; a value of None removes what was set. Values of lists have no comma."""
    assigned = []
    for word in text.split(","):
        name, equals, value = word.partition("=")
        if not equals:
            usage("mmchconfig", f"Incorrect option: {word}")
        assigned.append((attributes.named(name.strip()), None if value in ("", "DEFAULT") else value))
    return assigned


def _targets(cluster: Cluster, argument: str | None, chosen: Sequence[Member]) -> list[str]:
    """Return under which names a value is kept: everybody's, a class's, or each node's."""
    if argument is None or argument.lower() == "all" or len(chosen) == len(cluster.nodes):
        return [EVERY_NODE]
    named = select.words(argument)
    if all(name in cluster.classes for name in named):
        return named
    return [node.short for node in chosen]


def _set(cluster: Cluster, name: str, value: str | None, targets: Sequence[str]) -> None:
    values = cluster.settings.setdefault(name, {})
    if list(targets) == [EVERY_NODE]:
        values.clear()  # a value for all nodes replaces those of single ones
    for target in targets:
        if value is None:
            values.pop(target, None)
        else:
            values[target] = value
    if not values:
        del cluster.settings[name]


def _at_once(
    cluster: Cluster, chosen: Sequence[Member], wanted: Sequence[tuple[attributes.Attribute, str | None]]
) -> None:
    for node in chosen:
        if node.array or not daemon.runs(cluster, node):
            continue
        for attribute, value in wanted:
            now = attributes.number(daemon.running(node)[attribute.name]["value"])
            size = attributes.number(value or attribute.default or "")
            if attribute.name == "worker1Threads" and now is not None and size is not None and size > now:
                continue  # only downwards
            daemon.change_running(node, attribute.name, value if value is not None else attribute.default or "")


def mmdiag(words: Sequence[str]) -> int:
    """Show what this node's daemon knows."""
    kinds = ("--config", "--version", "--waiters")
    options = Options("mmdiag", words, flags=(*kinds, "-Y"))
    cluster, node = joined()
    chosen = [kind for kind in kinds if options.given(kind)]
    if not chosen:
        usage("mmdiag", f"Usage:\n  mmdiag {{{' | '.join(kinds)}}} [-Y]")
    for kind in chosen:
        if kind != "--version":
            daemon.require(cluster, node)
        {"--config": _config, "--version": _version, "--waiters": _waiters}[kind](cluster, node, options.given("-Y"))
    return 0


def _config(cluster: Cluster, node: Member, for_programs: bool) -> None:
    values = daemon.running(node)
    if for_programs:
        lines = ((name, setting["value"], setting["changed"]) for name, setting in values.items())
        rows("mmdiag", "config", ("name", "value", "changed"), lines)
        return
    out("\n=== mmdiag: config ===")
    marks = {"": " ", "static": "!", "dynamic": "*"}
    for name, setting in values.items():
        out(f" {marks[setting['changed']]} {name} {setting['value']}")


def _version(cluster: Cluster, node: Member, for_programs: bool) -> None:
    since = 0
    if daemon.runs(cluster, node) and not node.array:
        since, number = map(int, (place.of_node(node.short) / "started").read_text().split())
    if for_programs:
        rows("mmdiag", "version", ("buildBranch", "buildDate", "buildTime"), [(VERSION, *BUILT)])
        return
    out(f'\n=== mmdiag: version ===\nCurrent GPFS build: "{VERSION} ".\nBuilt on {BUILT[0]} at {BUILT[1]}')
    if since:
        seconds = int(time.time()) - since
        hours, minutes = seconds // 3600, seconds % 3600 // 60
        out(f"Running {hours} hours {minutes} minutes {seconds % 60} secs, pid {number}")


WAITERS = (
    *("threadId", "threadAddr", "threadName", "waitStartTime", "waitTime", "isMonitored", "condVarAddr", "condVarName"),
    *("condVarReason", "mutexAddr", "mutexName", "auxReason", "delayTime", "delayReason"),
)


def _waiters(cluster: Cluster, node: Member, for_programs: bool) -> None:
    """Show a thread that waits for each file system that does not answer."""
    hung = [file_system.name for file_system in cluster.file_systems if mounts.hung(file_system.name)]
    since = time.strftime("%Y-%m-%d_%H:%M:%S%z")
    array = next((member.address for member in cluster.nodes if member.array), "")
    reason = f"reason 'RPC wait' for NSD I/O completion on node {array} <c0n0>"
    if for_programs:
        lines = ((at, f"{at:016X}", "NSDIOWorkerThread", since, "60.0000", "monitored", "", "MsgRecordCondvar", reason,
                  "", "", "", "", "") for at, _ in enumerate(hung, 4711))  # fmt: skip
        rows("mmdiag", "waiters", WAITERS, lines)
        return
    out("\n=== mmdiag: waiters ===")
    for at, _ in enumerate(hung, 4711):
        thread = f"thread {at} NSDIOWorkerThread: on ThCond 0x{at:X} (MsgRecordCondvar)"
        out(f"Waiting 60.0000 sec since {since}, monitored, {thread}, {reason}")
