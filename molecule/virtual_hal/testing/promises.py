"""Run playbooks from a test, and ask what a role promises on a node as it is now, and what the audit finds.

For tests that plant a fault in a finished node: the promise has to notice it, and a rollout has to mend or refuse it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from running import strategy
from running.ansible_run import PROJECT, Run, of_scenario


class Rollout:
    """Ansible on the nodes of one scenario, as molecule calls it."""

    def __init__(self, scenario: Path) -> None:
        """`scenario`: the folder with hal.yml and converge.yml."""
        self._ansible = of_scenario(scenario)
        self._playbook = scenario / "converge.yml"

    def converge(self, *arguments: str, **variables: Any) -> Run:
        """Run the scenario's converge.yml."""
        return self._ansible.playbook(self._playbook, *arguments, mitogen=strategy.chosen(), **variables)

    def promises(self, role: str, node: str, **variables: Any) -> dict[str, dict[str, Any]]:
        """Return what hal_expect says of a role on a node: {id: {status, observed, expected, ...}}."""
        done = self._ansible.module(node, "hal_expect", {"role": role, "report_only": True}, **variables)
        assert done.status == 0, done.output
        return {result["id"]: result for result in done.results[node]["results"]}

    def broken_promises(self, role: str, node: str, **variables: Any) -> list[str]:
        """Ids of what does not hold on a node: fail or unknown, sorted."""
        results = self.promises(role, node, **variables)
        return sorted(name for name, result in results.items() if result["status"] in ("fail", "unknown"))

    def audited(self, *arguments: str, **variables: Any) -> list[dict[str, Any]]:
        """Return what hal-audit finds; `variables` are declared in place of the inventory's.

        Each finding has kind, resource, role, task, host.
        """
        given = ["--", "--extra-vars", json.dumps({**self._ansible.variables, **variables})]
        program = str(Path(sys.executable).with_name("hal-audit"))
        argv = [program, "run", *self._ansible.inventory, "--json", *arguments, *given]
        done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert done.stdout, done.stderr
        findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
        return findings
