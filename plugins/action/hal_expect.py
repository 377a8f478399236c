"""Check what roles promise: template their expectations here, evaluate all of them in one call on the node."""

from __future__ import annotations

import os
from typing import Any

from ansible.errors import AnsibleError
from ansible.utils.unsafe_proxy import wrap_var

from hal_cluster.expect import promises
from hal_cluster.expect.answers import BoundedAction
from hal_cluster.expect.errors import ExpectationsError
from hal_cluster.expect.prepare import Preparation, Prepared
from hal_cluster.expect.roles import find_role, templar_in, variables_in
from hal_cluster.expect.verdict import is_named, title, verdict
from hal_inventory.errors import HalError

ARGUMENTS = {
    "role": {"type": "str"},
    "roles": {"type": "list", "elements": "str"},
    "file": {"type": "path"},
    "limit_ids": {"type": "list", "elements": "str"},
    "severity": {"type": "str", "choices": ["error", "warning"], "default": "error"},
    "report_only": {"type": "bool", "default": False},
    "allow_all_skipped": {"type": "bool", "default": False},
}


class ActionModule(BoundedAction):
    """Never changes anything, so it does the same in check mode."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return results and summary; failed with one line a result that is not as expected."""
        variables = task_vars or {}
        result: dict[str, Any] = super().run(tmp, variables)
        _valid, options = self.validate_argument_spec(
            argument_spec=ARGUMENTS, mutually_exclusive=[["role", "roles", "file"]]
        )
        prepared: list[Prepared] = []
        faults: list[Prepared] = []
        for role, path in self._targets(options, variables):
            try:
                prepared.extend(self._prepare(role, path, variables))
            except (HalError, AnsibleError) as error:
                faults.append(promises.fault(role, promises.place(path), str(error)))
        limit = options["limit_ids"]
        if limit is not None:
            faults.extend(
                promises.fault("", "limit_ids", f'no expectation has the id "{name}"')
                for name in limit
                if not any(is_named(promise, name) for promise in prepared)
            )
            prepared = [promise for promise in prepared if any(is_named(promise, name) for name in limit)]
        if not prepared and not faults:
            faults = [promises.fault("", "hal_expect", "nothing was checked: no role or id was named")]
        results = [fault.result() for fault in faults] + self._evaluate(prepared, variables)
        host = str(variables.get("inventory_hostname", ""))
        return wrap_var({**result, **verdict(results, options, title(options, prepared), host)})  # type: ignore[no-any-return]

    def _targets(self, options: dict[str, Any], variables: dict[str, Any]) -> list[tuple[str, str | None]]:
        """Return [(role, path of its expect.yml or None if the role is not found)]."""
        own = self._task._role
        own_path = own.get_role_path() if own else None
        if options["file"]:
            return [("", self._file(options["file"], own_path))]
        names = options["roles"] if options["roles"] is not None else [options["role"]] if options["role"] else None
        if names is None:
            if own_path is None:
                raise AnsibleError("hal_expect needs role, roles or file: this task is in no role")
            return [(own.get_name(), os.path.join(own_path, "expect.yml"))]
        return [(name, self._role_file(name, own_path)) for name in dict.fromkeys(names)]

    def _file(self, name: str, own_path: str | None) -> str:
        folders = [own_path, self._loader.get_basedir(), os.getcwd()]
        paths = [os.path.join(folder, os.path.expanduser(name)) for folder in folders if folder]
        return next((path for path in paths if os.path.isfile(path)), paths[0])

    def _role_file(self, name: str, own_path: str | None) -> str | None:
        try:
            return os.path.join(find_role(name, self._loader, own_path), "expect.yml")
        except ExpectationsError:
            return None

    def _prepare(self, role: str, path: str | None, task_vars: dict[str, Any]) -> list[Prepared]:
        own = self._task._role
        own_path = own.get_role_path() if own else None
        if path is None:
            find_role(role, self._loader, own_path)  # says where it looked
            return []
        entries = promises.read(path, self._loader, role)
        folder = os.path.dirname(path)
        variables = task_vars
        if role and folder != own_path:
            variables = variables_in(folder, self._loader, task_vars, self._task.get_vars())
        # A Templar of its own: in a copy of the task's, lookup() goes on with the variables of the task.
        templar = templar_in(folder, self._loader, variables)
        preparation = Preparation(templar, self._loader, variables, role)
        return list(promises.prepare(entries, path, preparation, role))

    def _evaluate(self, prepared: list[Prepared], task_vars: dict[str, Any]) -> list[dict[str, Any]]:
        """Ask the node about everything there is a question for, in one call; none if there is no question."""
        questions = [promise.question for promise in prepared if promise.question is not None]
        if not questions:
            return promises.results(prepared, [])
        reply = self._execute_module(module_name="hal_expect", module_args={"entries": questions}, task_vars=task_vars)
        answers = reply.get("evaluated")
        if not isinstance(answers, list) or len(answers) != len(questions):
            answers = [{"status": "unknown", "observed": None, "reason": promises.no_answer(reply)}] * len(questions)
        return promises.results(prepared, answers)
