"""Run playbooks from a test, and ask what a role promises on a node as it is now.

For tests that plant a fault in a finished node: the promise has to notice it, and a rollout has to mend or refuse it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]


class Rollout:
    """Ansible on the nodes of one scenario, as molecule calls it."""

    def __init__(self, scenario: Path) -> None:
        """`scenario`: the folder with hal.yml and converge.yml."""
        self._scenario = scenario
        sources = [PROJECT / "inventory/hal/hal.yml", PROJECT / "inventory/virtual/hal.yml", scenario / "hal.yml"]
        self._inventory = [word for source in sources for word in ("-i", str(source))]

    def converge(self, *arguments: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        """Run the scenario's converge.yml; stdout has what it printed, returncode whether it worked."""
        playbook = str(self._scenario / "converge.yml")
        return self._run(["ansible-playbook", *self._inventory, *arguments, *_extra(variables), playbook], {})

    def promises(self, role: str, node: str, **variables: Any) -> dict[str, dict[str, Any]]:
        """Return what hal_expect says of a role on a node: {id: {status, observed, expected, ...}}."""
        done = self._run(
            [
                "ansible",
                node,
                *self._inventory,
                *_extra(variables),
                "-m",
                "hal_expect",
                "-a",
                json.dumps({"role": role, "report_only": True}),
            ],
            {"ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json", "ANSIBLE_LOAD_CALLBACK_PLUGINS": "true"},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        results = json.loads(done.stdout)["plays"][0]["tasks"][0]["hosts"][node]["results"]
        return {result["id"]: result for result in results}

    def broken_promises(self, role: str, node: str, **variables: Any) -> list[str]:
        """Ids of what does not hold on a node: fail or unknown, sorted."""
        results = self.promises(role, node, **variables)
        return sorted(name for name, result in results.items() if result["status"] in ("fail", "unknown"))

    def _run(self, argv: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        # MOLECULE_ and ANSIBLE_ variables of the calling molecule would turn the callback and the colours round.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        return subprocess.run(
            argv,
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={**inherited, "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", **environment},
        )


def _extra(variables: Mapping[str, Any]) -> list[str]:
    return ["--extra-vars", json.dumps(variables)] if variables else []
