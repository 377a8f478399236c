"""However many nodes are drained at once, and whoever gives some back meanwhile: no partition falls below its floor."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis import strategies as st

from hal_cluster.reimage.slurm import SlurmCommands, TestJob
from hal_node.slurm import drains
from tests.unit.hal_cluster.reimage.slurmctld import Node, Slurmctld

NAMES = [f"hal{number:02d}" for number in range(1, 7)]
PARTITIONS = ["gpu", "cpu", "debug"]
SITES = st.fixed_dictionaries(
    {name: st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=3, unique=True) for name in NAMES}
)
FLOORS = st.dictionaries(st.sampled_from(PARTITIONS), st.integers(0, 6))
STEPS = st.lists(
    st.tuples(st.sampled_from(["drain", "reboot", "prove", "end", "resume"]), st.sampled_from(NAMES)), max_size=8
)


@settings(max_examples=60)
@given(SITES, FLOORS, st.lists(STEPS, min_size=2, max_size=4))
def test_no_partition_falls_below_its_floor(
    site: dict[str, list[str]], floors: dict[str, int], threads: list[list[tuple[str, str]]]
) -> None:
    here = Slurmctld(*(Node(name, partitions) for name, partitions in site.items()))
    serving = set(NAMES)
    wrong: list[str] = []

    def look() -> None:
        """Whoever was just taken away left enough behind."""
        nonlocal serving
        now = {name for name in NAMES if here.serving(name)}
        for name in serving - now:
            for partition in site[name]:
                members = [one for one in NAMES if partition in site[one]]
                left = len(now.intersection(members))
                if left < floors.get(partition, len(members) // 2):
                    wrong.append(f"{here.asked[-1]}: {partition} has {left} of {len(members)}")
        serving = now

    here.seen = look
    asking = SlurmCommands(here, job=TestJob("true", "alice"), floors=floors, pause=lambda _: None)

    def do(number: int) -> None:
        for step, name in threads[number]:
            # As in the engine, each node is one thread's. Administrators come at any time.
            if step != "resume" and NAMES.index(name) % len(threads) != number:
                continue
            if step == "drain":
                asking.drain(name, "hal-reimage: x")
            elif step == "reboot":
                asking.reboot(name, "hal-reimage: x", "RESUME")
            elif step == "prove" and not here.serving(name):
                asking.prove(name)
            elif step == "end" and f"hal-reimage-{name}" in here.reservations:
                asking.end_proof(name, "")
            elif step == "resume":
                here(["env", "LC_ALL=C", "timeout", "30", "scontrol", "update", f"NodeName={name}", "State=RESUME"])

    with ThreadPoolExecutor(len(threads)) as pool:
        for future in [pool.submit(do, number) for number in range(len(threads))]:
            future.result()
    assert wrong == []


@given(SITES, FLOORS, st.none() | st.integers(0, 6), st.sets(st.sampled_from(NAMES)), st.data())
def test_nodes_that_may_leave_together_may_leave_one_after_the_other(
    site: dict[str, list[str]], floors: dict[str, int], whole: int | None, names: set[str], data: st.DataObject
) -> None:
    """A reboot drains all of its nodes or none, a reimage one by one: both decide the same, in whatever order."""
    states = st.tuples(st.booleans(), st.booleans())
    nodes = {}
    for name, partitions in site.items():
        usable, maintained = data.draw(states)
        nodes[name] = {"usable": usable, "maintained": maintained, "partitions": partitions}
    together = drains.too_few(names, nodes, floors, (), whole)
    refused = ""
    for name in data.draw(st.permutations(sorted(names))):
        refused = refused or drains.too_few([name], nodes, floors, (), whole)
        nodes[name] = {**nodes[name], "usable": False}
    assert bool(together) == bool(refused)
