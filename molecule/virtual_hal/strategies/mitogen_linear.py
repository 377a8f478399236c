"""mitogen's strategy of that name, without four of the costs on a small machine, and without a deadlock.

With two processors mitogen binds Ansible, its workers and what they start to one of them, of every run on the machine
to the same one (ansible_mitogen/affinity.py, FixedPolicy): two runs beside each other get half of it each.
And it looks through all collections in each process that calls a module of one (ansible_mitogen/planner.py,
_load_collections), which Ansible starts for each task on each host: what was loaded before those is there in each.
Ansible starts such a process also where a condition is false, to find that out. Here that is found out before.
And each such process compiles the templates that it uses, which others have compiled: see shared_templates.py.
It hangs now and then, where two modules of ours begin on a node at once: see forked_importer.py. And it does not send
along what hal_node imports from itself: see relative_imports.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ansible_mitogen.affinity
import ansible_mitogen.loaders
import ansible_mitogen.strategy
from ansible.collections.list import list_collection_dirs
from ansible.template import Templar

LAB = str(Path(__file__).resolve().parents[1])
if LAB not in sys.path:
    sys.path.append(LAB)

from strategies import forked_importer, relative_imports, shared_templates  # noqa: E402  found through the lines above

ansible_mitogen.affinity.policy = ansible_mitogen.affinity.Policy()  # which leaves it to the kernel
forked_importer.mend()
relative_imports.mend()

Base: Any = ansible_mitogen.loaders.strategy_loader.get("linear", class_only=True)


class StrategyModule(ansible_mitogen.strategy.StrategyMixin, Base):  # type: ignore[misc]  # they have no types
    """Ansible's linear strategy, through mitogen."""

    def run(self, *arguments: Any, **named: Any) -> Any:
        """As mitogen's, with all collections loaded."""
        list(list_collection_dirs())
        shared_templates.share()
        return super().run(*arguments, **named)

    def _queue_task(self, host: Any, task: Any, task_vars: Any, play_context: Any) -> None:
        """As Ansible's, but a task whose condition is false for this host is answered here as its worker would."""
        skipped = self._skipped(task, task_vars)
        if skipped is None:
            super()._queue_task(host, task, task_vars, play_context)
            return
        self._queued_task_cache[(host.name, task._uuid)] = {
            "host": host,
            "task": task,
            "task_vars": task_vars,
            "play_context": play_context,
        }
        self._tqm.send_callback("v2_runner_on_start", host, task)
        self._final_q.send_task_result(host.name, task._uuid, skipped, task_fields=task.dump_attrs())
        self._pending_results += 1

    def _skipped(self, task: Any, task_vars: Any) -> dict[str, Any] | None:
        """Return the result of a task that is skipped; None for one that runs, or of which a worker has to say it.

        As ansible/executor/task_executor.py, TaskExecutor._execute. A loop's condition is asked for each of its items.
        """
        of_items = task.loop is not None or task.loop_with is not None
        if not task.when or of_items or any(isinstance(word, str) for word in (task.no_log, task.delegate_to)):
            return None
        try:
            holds, condition = task.evaluate_conditional_with_result(Templar(self._loader, task_vars), task_vars)
        except Exception:  # whatever a condition raises, its worker raises too, and makes it that task's failure
            return None
        if holds:
            return None
        return {
            "changed": False,
            "skipped": True,
            "skip_reason": "Conditional result was False",
            "false_condition": condition,
            "_ansible_no_log": bool(task.no_log),
        }
