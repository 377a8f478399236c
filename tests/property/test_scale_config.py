"""Whatever a cluster of Spectrum Scale has configured, one run makes it as declared, the next one does nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.alike import alike

alike("hal_node.scale.plan", "hal_node.scale.text", "hal_node.scale.values")

from ansible.module_utils.hal_node.scale.plan import Configured, calls, changes  # noqa: E402  found only now
from ansible.module_utils.hal_node.scale.text import configured  # noqa: E402
from ansible.module_utils.hal_node.scale.values import same  # noqa: E402

NODES = ["hal01", "hal02", "hal03", "hal04"]
NAMES = ["pagepool", "maxFilesToCache", "workerThreads"]
WRITTEN = st.sampled_from(["1G", "1073741824", "4G", "4096", "4K"])
Settings = dict[str, dict[str, str]]


def rows(cluster: Settings) -> str:
    """mmlsconfig -Y of a cluster: by attribute, values of everybody ("") and of nodes; equal ones are one row."""
    lines = ["mmlsconfig::HEADER:version:reserved:reserved:configParameter:value:nodeList:"]
    for name, values in cluster.items():
        folded: dict[str, list[str]] = {}
        for node, value in values.items():
            folded.setdefault(value if node else f"{value}\0", []).append(node)
        lines += [f"mmlsconfig::0:1:::{name}:{value.rstrip(chr(0))}:{','.join(of)}:" for value, of in folded.items()]
    return "\n".join(lines) + "\n"


def apply(cluster: Settings, argv: list[str]) -> None:
    """What mmchconfig does: without -N a value replaces those of nodes; DEFAULT takes one away."""
    nodes = argv[argv.index("-N") + 1].split(",") if "-N" in argv else [""]
    for pair in argv[1].split(","):
        name, value = pair.split("=")
        values = cluster.setdefault(name, {})
        if nodes == [""]:
            values.clear()
        for node in nodes:
            values.pop(node, None)
            if value != "DEFAULT":
                values[node] = value


CLUSTERS = st.dictionaries(
    st.sampled_from(NAMES), st.dictionaries(st.sampled_from(["", *NODES]), WRITTEN, max_size=5), max_size=3
)
DECLARED = st.dictionaries(st.sampled_from(NAMES), st.one_of(st.none(), WRITTEN), max_size=3)


@given(cluster=CLUSTERS, attributes=DECLARED, own=DECLARED)
def test_one_run_is_enough_and_the_next_one_does_nothing(
    cluster: Settings, attributes: dict[str, Any], own: dict[str, Any]
) -> None:
    classes = {"clients": {"nodes": NODES[:2], "attributes": own}, "others": {"nodes": NODES[2:3], "attributes": {}}}
    of_cluster, _ = changes(Configured(configured(rows(cluster)), {}), attributes, classes)
    for argv in calls(of_cluster):
        apply(cluster, argv)
    before = {name: values.get(NODES[3]) for name, values in cluster.items()}
    _, of_classes = changes(Configured(configured(rows(cluster)), {}), attributes, classes)
    for argv in calls(of_classes):
        apply(cluster, argv)
    assert changes(Configured(configured(rows(cluster)), {}), attributes, classes) == ([], [])

    for name, value in own.items():
        for node in NODES[:2]:
            now = cluster.get(name, {}).get(node, cluster.get(name, {}).get(""))
            if value is not None:
                assert now is not None
                assert same(now, value)
            else:
                assert node not in cluster.get(name, {})
    assert {name: values.get(NODES[3]) for name, values in cluster.items() if name in before} == before


@given(cluster=CLUSTERS, own=DECLARED)
def test_no_list_of_nodes_and_flag_is_called_twice(cluster: Settings, own: dict[str, Any]) -> None:
    classes = {"clients": {"nodes": NODES, "attributes": own}}
    made = calls(changes(Configured(configured(rows(cluster)), {}), {}, classes)[1])
    keys = [("-i" in argv, argv[-1]) for argv in made]
    assert len(keys) == len(set(keys))
