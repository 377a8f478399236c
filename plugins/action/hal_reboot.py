"""Drain a node for its reboot, see its slurmd register, give it back: the steps of hal_cluster.reimage.reboot."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from hal_cluster.reimage.draining import Draining
from hal_cluster.reimage.errors import Trouble
from hal_cluster.reimage.reboot import Reboot, end_of, plan_of
from hal_cluster.reimage.record import Record, State, record_of
from hal_cluster.reimage.remote import Done, done_of
from hal_inventory.errors import HalError
from hal_inventory.printable import lines
from hal_node.slurm.drains import REBOOT

ARGUMENTS = {
    "step": {"type": "str", "choices": ["plan", "drain", "start", "return"], "required": True},
    "nodes": {"type": "list", "elements": "str", "default": []},
    "in_slurm": {"type": "list", "elements": "str", "default": []},
    "record": {"type": "dict"},
    "reason": {"type": "str", "default": "playbooks/reboot.yml"},
    "keep": {"type": "int", "default": 0},
    "wait_seconds": {"type": "float", "default": 172800.0},
    "poll_seconds": {"type": "float", "default": 20.0},
}


class ActionModule(ActionBase):
    """What hal_cluster.reimage.reboot needs of Ansible: its connection to where slurmctld runs."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what was shown or done; failed with one line for what was refused, or waited for in vain."""
        variables = task_vars or {}
        result: dict[str, Any] = super().run(tmp, variables)
        _valid, options = self.validate_argument_spec(argument_spec=ARGUMENTS)
        step, record = options["step"], record_of(options["record"]) if options["record"] else None
        if step in ("start", "return") and (record is None or record.step.value != step):
            before = "drain" if step == "start" else "start"
            return result | {"failed": True, "msg": f"step {step} takes the record that step {before} returned"}
        if step != "plan" and self._task.check_mode:
            return result | {"skipped": True, "msg": "a reboot is only planned in check mode"}
        slurm = Draining(self._on_controller, REBOOT, site=options["keep"])
        try:
            if step == "plan":
                return result | self._planned(slurm, options)
            return result | self._through(slurm, options, record or str(variables["inventory_hostname"]))
        except HalError as error:
            if isinstance(error.__cause__, AnsibleConnectionFailure):
                raise error.__cause__ from None
            return result | {"failed": True, "changed": False, "msg": lines(f"{error}. Nothing was changed.")}

    def _planned(self, slurm: Draining, options: dict[str, Any]) -> dict[str, Any]:
        text, refusal = plan_of(slurm, options["nodes"], options["in_slurm"])
        return {
            "failed": bool(refusal) and not self._task.check_mode,
            "changed": False,
            "msg": lines(f"{text}\n{refusal}" if refusal else text, None),
            "_ansible_verbose_always": True,  # without -v, too: to show it is what it is for
        }

    def _through(self, slurm: Draining, options: dict[str, Any], at: Record | str) -> dict[str, Any]:
        """Bring a node through a step: from its record on, or from its name."""
        display = Display()
        reboot = Reboot(
            slurm,
            options["reason"],
            wait_seconds=options["wait_seconds"],
            poll_seconds=options["poll_seconds"],
            say=lambda line: display.display(lines(line)),
        )
        record = reboot.through(reboot.begun(at) if isinstance(at, str) else at)
        if record.going:
            return {"changed": True, "record": record.to_json()}
        failed = record.state is State.FAILED
        return {"failed": failed, "changed": not failed, "msg": lines(end_of(record)), "_ansible_verbose_always": True}

    def _on_controller(self, argv: Sequence[str], stdin: bytes = b"", /) -> Done:
        """Run a command where slurmctld runs, as whoever the play is there."""
        try:
            # With something to read ssh makes no terminal, which would bring both outputs in one.
            done = self._low_level_execute_command(shlex.join(argv), in_data=stdin or b"\n")
        except AnsibleConnectionFailure as error:
            raise Trouble(str(error.message).strip().splitlines()[-1], passes=True) from error
        return done_of("slurmctld", int(done["rc"]), done["stdout"], done["stderr"])
