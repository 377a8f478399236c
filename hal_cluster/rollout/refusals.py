"""What roles refuse for nodes: argument specs and tasks/validate.yml, worked out at the controller without any node.

A rollout asks every role about every node before it changes the first one. `hal-inventory validate` asks the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.playbook import Playbook
from ansible.playbook.conditional import Conditional
from ansible.playbook.helpers import load_list_of_tasks

from hal_cluster.audit import plays
from hal_cluster.audit.resources import module_name
from hal_cluster.expect.templating import CompilingTemplar
from hal_cluster.rollout import managing
from hal_inventory.ranges import fold

ENTRY = "validate"
"""The file of a role's tasks that says what the role refuses. It asserts, remarks (debug), and touches no node."""

NODE = "\0"
"""Stands for the name of a host where texts are compared."""


@dataclass(frozen=True)
class Said:
    """What a role says of a host: a refusal, or a remark. `task` is file and line of the task or spec."""

    role: str
    host: str
    text: str
    task: str
    refused: bool = True
    item: str = ""
    condition: str = ""


@dataclass
class Role:
    """One role of a play, and what it refuses. `task`: the task that asks, if a run has reached it."""

    play: Any
    role: Any
    task: Any = None

    @property
    def name(self) -> str:
        """The name of the role."""
        return str(self.role.get_name())

    @property
    def wanted(self) -> bool:
        """Whether --tags and --skip-tags let any task of the role run. Ansible's own check of arguments always does."""
        tasks = (task for block in self.role._task_blocks for task in plays.tasks_of(block))
        own = (task for task in tasks if module_name(task.action) != "ansible.builtin.validate_argument_spec")
        return any(task.evaluate_tags(self.play.only_tags, self.play.skip_tags, all_vars={}) for task in own)

    def hosts(self, inventory: Any, *, of_every_batch: bool = False) -> list[Any]:
        """The hosts of its play, within --limit. An error of Ansible if only a run knows them."""
        variables = self.play._variable_manager.get_vars(play=self.play)
        pattern = CompilingTemplar(self.role._loader, variables).template(self.play.hosts)
        return list(inventory.get_hosts(pattern, ignore_restrictions=of_every_batch))

    def applies(self, host: Any) -> bool:
        """Whether the condition of the role itself holds for a host. An error of Ansible if only a run knows it."""
        if not self.role.when:
            return True
        variables, templar = self._around(host, {})
        return holds(self.role.when, templar, variables)

    @cached_property
    def tasks(self) -> list[Any]:
        """The tasks of tasks/validate.yml; AnsibleError if they cannot be read."""
        if not Path(self.role._role_path, "tasks", f"{ENTRY}.yml").is_file():
            return []
        data = self.role._load_role_yaml("tasks", main=ENTRY) or []
        manager, loader = self.play._variable_manager, self.role._loader
        loaded = load_list_of_tasks(data, play=self.play, role=self.role, variable_manager=manager, loader=loader)
        return list(loaded)

    @cached_property
    def options(self) -> dict[str, Any]:
        """The options of the entry point main, as meta/argument_specs.yml has them."""
        return dict((self.role._get_role_argspecs().get("main") or {}).get("options") or {})

    def says(self, host: Any) -> list[Said]:
        """Return what the role says of a host. If its arguments do not fit their spec, it says only that.

        Ansible also checks the arguments of a role that --tags leave out. Nothing else is asked of such a role.
        """
        variables, templar = self._around(host, {})
        spec = f"{self.role._role_path}/meta/argument_specs.yml"
        misfits = [Said(self.name, host.get_name(), text, spec) for text in self._misfits(templar, variables)]
        return misfits or (list(self.asserts(host)) if self.wanted else [])

    def asserts(self, host: Any, given: Mapping[str, Any] = MappingProxyType({})) -> Iterator[Said]:
        """Return what tasks/validate.yml says of a host. `given` is above all variables, as on a command line.

        What cannot be worked out is refused, too, unless something was refused before: then that is the cause.
        """
        variables, templar = self._around(host, given)
        refused = False
        for task in self.tasks:
            try:
                said = list(self._of(task, templar, variables, given, host.get_name()))
            except Exception as error:  # a template can raise anything
                said = [] if refused else [Said(self.name, host.get_name(), words(error), task.get_path())]
            refused = refused or any(statement.refused for statement in said)
            yield from said

    def _around(self, host: Any, given: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """The variables that a task of the role sees on a host, and a templar that finds the role's templates."""
        manager = self.play._variable_manager
        task = self.task or next(iter(self.tasks), None)
        variables = {**manager.get_vars(play=self.play, host=host, task=task), **given}
        variables["ansible_search_path"] = [self.role._role_path, *variables.get("ansible_search_path", ())]
        return variables, CompilingTemplar(self.role._loader, variables)

    def _misfits(self, templar: Any, variables: Mapping[str, Any]) -> list[str]:
        """What the argument spec refuses, as Ansible's own validate_argument_spec does, without secrets."""
        given: dict[str, Any] = {}
        unknown: list[str] = []
        for option in self.options:
            if option in variables:
                try:
                    given[option] = templar.template(variables[option])
                except Exception as error:  # a template can raise anything
                    unknown.append(f"{option}: {words(error)}")
        options = {name: spec for name, spec in self.options.items() if name in given or not unknown}
        checked = ArgumentSpecValidator(options).validate(given)
        return unknown + [_text(remove_values(text, checked._no_log_values)) for text in checked.error_messages]

    def _of(
        self, task: Any, templar: Any, variables: Mapping[str, Any], given: Mapping[str, Any], host: str
    ) -> Iterator[Said]:
        own = {**variables, **task.get_vars(), **given}
        templar.available_variables = own
        loop = str(task.loop_control.loop_var if task.loop_control else "item")
        kind = task.action.rpartition(".")[2]
        if kind not in ("assert", "debug"):
            raise AnsibleError(f"{task.action} in {ENTRY}.yml: it asserts and remarks, nothing else")
        for item in templar.template(task.loop) if task.loop is not None else [None]:
            here = {**own, loop: item}
            templar.available_variables = here
            if not holds(task.when, templar, here):
                continue
            shown = "" if item is None else str(item)
            if kind == "debug":
                yield Said(self.name, host, _text(templar.template(task.args["msg"])), task.get_path(), False, shown)
                continue
            that = task.args["that"]
            for condition in that if isinstance(that, list) else [that]:
                if not holds([condition], templar, here):
                    templar.available_variables = here
                    text = _text(templar.template(task.args.get("fail_msg", f"{condition} does not hold")))
                    yield Said(self.name, host, text, task.get_path(), True, shown, str(condition))
                    break  # as assert does: the next condition may need this one


def roles_of(paths: Iterable[str], loader: Any, manager: Any) -> list[Role]:
    """Return the roles that plays of these playbooks list under `roles`, in their order.

    A role that tasks import or include is asked when the run reaches it: these tasks may give it other variables.
    AnsibleError if a playbook cannot be read.
    """
    every = [play for path in paths for play in Playbook.load(path, manager, loader).get_plays()]
    return [Role(play, role) for play in every for role in play.roles if not role.from_include]


def ask(roles: Iterable[Role], inventory: Any) -> tuple[list[Said], dict[str, list[str]]]:
    """Return what roles say of the hosts of their plays, and for each role the hosts that need not be asked again.

    What only a run knows is left to the role, which asks again when the run reaches it. A role is not asked about nodes
    on which it does not act (managed_roles); AnsibleError if that cannot be read.
    """
    said: list[Said] = []
    asked: dict[str, list[str]] = {}
    again: set[str] = set()
    for role in roles:
        try:
            hosts = [host for host in role.hosts(inventory) if role.applies(host)]
        except Exception:  # a template can raise anything
            again.add(role.name)
            continue
        hosts = managing.acting(role.name, hosts, role.play._variable_manager, role.play._loader)
        said += [statement for host in hosts for statement in role.says(host)]
        asked.setdefault(role.name, []).extend(host.get_name() for host in hosts)
        again.update({role.name} if role.wanted and role.role.when else ())
    return said, {name: hosts for name, hosts in asked.items() if name not in again}


def lines(said: Iterable[Said], base: Path) -> list[str]:
    """Return a line for each text: role, range of hosts, the text, and file and line.

    Texts that differ only in the name of their host become one.
    """
    same: dict[tuple[str, str, str], list[str]] = {}
    for statement in said:
        same.setdefault((statement.role, statement.task, statement.text), []).append(statement.host)
    alike: dict[tuple[str, str, str], list[str]] = {}
    for (role, task, text), hosts in same.items():
        pattern = text if len(set(hosts)) > 1 else text.replace(hosts[0], NODE)
        alike.setdefault((role, task, pattern), []).extend(hosts)
    made = []
    for (role, task, text), hosts in alike.items():
        nodes = fold(dict.fromkeys(hosts))
        made.append(f"{role} on {nodes}: {text.replace(NODE, nodes)} ({_below(task, base)})")
    return made


def holds(conditions: Any, templar: Any, variables: Mapping[str, Any]) -> bool:
    conditional = Conditional(loader=templar._loader)
    conditional.when = list(conditions or [])
    templar.available_variables = variables
    return bool(conditional.evaluate_conditional(templar, variables))


def _text(value: Any) -> str:
    return " ".join(str(value).split())


def words(error: Exception) -> str:
    """What went wrong, said once, without what Ansible puts around it."""
    text = _text(getattr(error, "message", None) or error).split(" The error appears to be in ")[0]
    text = text.rpartition("original message: ")[2].removesuffix(", use -vvvvv to see paths searched")
    half, _, again = text.partition(". ")
    return half if half == again.rstrip(".") else text


def _below(path: str, base: Path) -> str:
    try:
        return str(Path(path).relative_to(base))
    except ValueError:
        return path
