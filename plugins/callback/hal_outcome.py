"""Ansible callback plugin: how a playbook ended, by host, in a file. For programs that start playbooks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

from hal_inventory.printable import one_line

DOCUMENTATION = r"""
name: hal_outcome
type: notification
short_description: How a playbook ended on each host, as JSON
description:
  - Writes the file that the environment names in E(HAL_OUTCOME), and does nothing without it.
  - >-
    By host C(well), C(tasks) (how many ended well), and C(why), the last failure with its task. What C(no_log) hides is
    not in it.
author: HAL toolkit
"""

_LONGEST = 500


class CallbackModule(CallbackBase):
    """Keeps the last failure of each host."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "hal_outcome"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._file = os.environ.get("HAL_OUTCOME", "")
        self._why: dict[str, str] = {}

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task failed."""
        if not ignore_errors:
            self._keep(result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A host could not be reached."""
        self._keep(result)

    def _keep(self, result: Any) -> None:
        said = result._result
        words = "what it says is hidden (no_log)" if result._task.no_log else _words(said)
        if not result._task.no_log and said.get("results"):  # a loop's own message says nothing
            failed = [answer for answer in said["results"] if isinstance(answer, dict) and answer.get("failed")]
            words = (_words(failed[0]) if failed else "") or words
        task = result._task.get_name().strip()
        self._why[result._host.get_name()] = f"{task}: {one_line(str(words), _LONGEST)}"

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The playbook ended."""
        if not self._file:
            return
        said = {}
        for host in stats.processed:
            of = stats.summarize(host)
            well = not (of["failures"] or of["unreachable"])
            said[host] = {"well": well, "tasks": of["ok"], "why": "" if well else self._why.get(host, "")}
        Path(self._file).write_text(json.dumps(said), encoding="utf-8")


def _words(said: dict[str, Any]) -> str:
    """Return what a task says of its failure; of a program that failed the last line that it wrote."""
    written = str(said.get("stderr") or said.get("stdout") or "").strip().splitlines()
    message = str(said.get("msg") or "")
    return written[-1] if written and message in ("", "non-zero return code") else message
