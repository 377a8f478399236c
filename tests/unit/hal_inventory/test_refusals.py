"""Every fault of a model is one line that says file, line, field and what would be right.

Each case of ``data/refusals.yml`` plants one fault in ``data/small.yml``, each of the other files often several, and
compares the whole list of findings: a fault must be found, and nothing else may be.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hal_inventory.load import load_bytes
from tests.unit.hal_inventory.conftest import findings

DATA = Path(__file__).parent / "data"
REFUSALS = [
    case
    for name in ("refusals.yml", "refusals_together.yml", "refusals_shape.yml")
    for case in yaml.safe_load((DATA / name).read_text())
]


def test_the_model_that_faults_are_planted_in_is_sound(small: str) -> None:
    assert findings(small) == []


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        pytest.param([(case["replace"], case["by"]), *case.get("and", ())], case["findings"], id=case["fault"])
        for case in REFUSALS
    ],
)
def test_a_fault_is_one_line_that_says_where_and_what_is_right(
    small: str, edits: list[tuple[str, str]], expected: list[str]
) -> None:
    text = small
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    assert findings(text) == expected


def test_faults_of_every_kind_are_reported_in_one_run(small: str) -> None:
    text = small
    for old, new in (
        ("format: 1", "format: 3"),
        ("S-FRONT", "S3"),
        ("drives: 12", "drives: many"),
        ("memory_mb: 65536", "memory_gb: 64\n    memory_mb: 65536"),
        ("time_server: front", "time_server: and"),
        ("model: x86 server", 'model: "{{ x }}"'),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    assert findings(text) == [
        "cluster.yml:1: format: must be 1, not 3",
        "cluster.yml:23: profiles.server.model: a template is not evaluated here and not allowed: '{{ x }}';"
        " write the value itself",
        'cluster.yml:26: profiles.server.memory_gb: unknown field; did you mean "memory_mb"?',
        "cluster.yml:41: nodes.worker[1-4].serial: serial used twice: S3 of worker3"
        " (first by front in nodes.front.serial, line 33)",
        'cluster.yml:47: arrays.flash[1-2].drives: must be a whole number, not "many"',
        'cluster.yml:50: services.time_server: "and": a name is missing at the start',
    ]


def test_a_part_left_out_for_a_fault_causes_no_second_finding(small: str) -> None:
    text = small.replace("role: login", "role: 7", 1)
    assert findings(text) == [
        "cluster.yml:30: nodes.front.role: must be login, management, data, transfer, test or compute, not 7"
    ]


def test_groups_may_name_each_other_in_any_order(small: str) -> None:
    assert findings(small.replace("  base: all", "  early: late\n  late: compute", 1)) == []
    assert (
        findings(small.replace("  base: all", "  early: 'rack[2,1]'\n  rack1: worker1\n  rack2: worker[3,2]", 1)) == []
    )


def test_services_and_groups_may_name_each_other_in_any_order(small: str) -> None:
    text = small.replace("slurm_controller: front", "slurm_controller: time_server\n  portal: late and not compute", 1)
    site = load_bytes(
        text.replace("  base: all", "  late: all and not portal_too\n  portal_too: compute").encode(), "x"
    )
    assert (site.services["slurm_controller"], site.services["portal"]) == (("front",), ("front",))
    assert list(site.members)[-6:] == ["portal", "time_server", "late", "portal_too", "slurm_node", "slurm"]


def test_a_template_is_refused_even_where_nothing_reads_it(small: str) -> None:
    text = small.replace("    aliases: [gateway]", "    unknown: [{deep: '{% x %}'}]", 1)
    assert findings(text) == [
        "cluster.yml:36: nodes.front.unknown: unknown field; known fields: addresses, aliases, cables, disks,"
        " gpu_uuids, macs, port_guids, profile, role, serial",
        "cluster.yml:36: nodes.front.unknown[0].deep: a template is not evaluated here and not allowed: '{% x %}';"
        " write the value itself",
    ]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("10.1.0.[101-103]", "3 values for 4 nodes; write a range or a list of 4"),
        ("10.1.0.101", "1 value for 4 nodes; write a range or a list of 4"),
        ("10.1.0.[101-105]", "5 values for 4 nodes; write a range or a list of 4"),
    ],
)
def test_fewer_and_more_values_than_nodes_are_both_refused(small: str, written: str, said: str) -> None:
    found = findings(small.replace("10.1.0.[101-104]", written))
    assert found == [f"cluster.yml:42: nodes.worker[1-4].addresses.management: {said}"]


@pytest.mark.parametrize(
    ("field", "was", "least", "most"),
    [("sockets", 1, 1, 64), ("cores_per_socket", 4, 1, 1024), ("threads_per_core", 1, 1, 16)],
)
def test_numbers_of_processors_have_bounds_that_may_be_reached(
    small: str, field: str, was: int, least: int, most: int
) -> None:
    line = "    cpus: {model: Xeon, sockets: 1, cores_per_socket: 4, threads_per_core: 1}"
    assert line in small
    small = small.replace("memory_mb: 65536", "memory_mb: 1048576")  # enough for so many cores, not too much for one
    for number, sound in ((least - 1, False), (least, True), (most, True), (most + 1, False)):
        found = findings(small.replace(line, line.replace(f"{field}: {was}", f"{field}: {number}")))
        assert [one.split(": ")[1] for one in found] == ([] if sound else [f"profiles.server.cpus.{field}"])


def test_a_column_of_hundreds_is_as_long_as_its_nodes(small: str) -> None:
    text = (
        small.replace("10.1.0.", "172.16.0.").replace("172.16.0.0/24", "172.16.0.0/16").replace("10.1.1.", "172.17.0.")
    )
    for old, new in (
        ("172.17.0.0/24", "172.17.0.0/16"),
        ("worker[1-4]", "worker[1-300]"),
        ("S[1-4]", "S[1-300]"),
        ("172.16.0.[101-104]", "172.16.[4-5].[1-150]"),
        ("172.17.0.[101-104]", "172.17.[4-5].[1-150]"),
        ("02:00:00:00:01:[01-04]", "02:00:00:[10-12]:01:[00-99]"),
    ):
        assert old in text
        text = text.replace(old, new)
    assert findings(text) == []
    assert findings(text.replace("S[1-300]", "S[1-299]")) == [
        "cluster.yml:40: nodes.worker[1-300].serial: 299 values for 300 nodes; write a range or a list of 300"
    ]
