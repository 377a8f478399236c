"""Scenarios that would be green having proven nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import scenarios

CONVERGE = "molecule/time/converge.yml"
TESTS = "molecule/time/tests/test_time.py"
CONFTEST = "import pytest\n\n@pytest.fixture\ndef clock(node):\n    return node('hal01')\n"
SCENARIO = {"molecule/time/molecule.yml": "---\n"}

COUNT = """
    - name: Count
      hosts: localhost
      tasks:
        - name: Count
          ansible.builtin.assert: {that: "groups['time'] | length == 4"}
    """

PLANTED = (
    Planted(
        scenarios.has_every_part,
        {**SCENARIO, "molecule/time/hal.yml": "plugin: hal\n"},
        [
            "molecule/time:1: no converge.yml; a scenario has hal.yml, converge.yml and tests/test_*.py",
            "molecule/time:1: no tests/test_*.py; a scenario without tests proves nothing",
        ],
    ),
    Planted(scenarios.converge_counts_its_hosts, {**SCENARIO, CONVERGE: COUNT}, []),
    Planted(
        scenarios.converge_counts_its_hosts,
        {
            **SCENARIO,
            "molecule/virtual_hal/count.yml": COUNT,
            CONVERGE: "- import_playbook: ../virtual_hal/count.yml\n- hosts: time\n",
        },
        [],
    ),
    Planted(
        scenarios.converge_counts_its_hosts,
        {**SCENARIO, CONVERGE: COUNT.replace("localhost", "time")},
        [f"{CONVERGE}:1: where no host matches, the assert is skipped as well; count in a first play on localhost"],
    ),
    Planted(
        scenarios.converge_counts_its_hosts,
        {**SCENARIO, CONVERGE: "- hosts: time\n  roles: [time]\n"},
        [f"{CONVERGE}:1: the first play does not assert the number of hosts; that: groups['all'] | length == N"],
    ),
    Planted(
        scenarios.networks_are_apart,
        {
            **SCENARIO,
            "molecule/ssh/molecule.yml": "---\n",
            "molecule/hosts/molecule.yml": "---\n",
            "molecule/hosts/hal.yml": "plugin: hal\n",
            "molecule/ssh/hal.yml": "plugin: hal\nnetworks:\n  management: 10.65.5.0/24\n",
            "molecule/time/hal.yml": "plugin: hal\nnetworks:\n  management: 10.65.5.0/24\n",
        },
        [
            "molecule/hosts/hal.yml:1: no networks; give each network of the model a range of its own",
            "molecule/time/hal.yml:3: 10.65.5.0/24 is also in scenario ssh; choose another",
        ],
    ),
    Planted(
        scenarios.tests_look_at_nodes,
        {
            **SCENARIO,
            TESTS: """
                def test_nothing(node):
                    node("hal01").run("date")


                def test_the_model(site):
                    assert site("nodes")
                """,
        },
        [
            f"{TESTS}:1: no test asserts on what it read from a node; ask the running system",
            f"{TESTS}:1: test_nothing asserts nothing; a test can fail",
        ],
    ),
    Planted(
        scenarios.tests_look_at_nodes,
        {
            **SCENARIO,
            "molecule/time/tests/conftest.py": CONFTEST,
            TESTS: """
                def synchronised(host):
                    assert host.check_output("chronyc tracking")


                def test_by_a_helper(clock):
                    synchronised(clock)


                def test_by_a_name(node):
                    for name in ("hal01", "hal02"):
                        output = node(name).check_output("date")
                        year = output.split()[-1]
                        assert year == "2026"
                """,
        },
        [],
    ),
    Planted(
        scenarios.playbooks_are_lists_of_plays,
        {**SCENARIO, CONVERGE: "- name: A task, not a play\n  ansible.builtin.debug: {msg: x}\n"},
        [f"{CONVERGE}:1: no play in it; it holds a list of plays with hosts"],
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
