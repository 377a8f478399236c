"""What roles declare now for a host, compared with what its record says they declared: exact if it can be rendered.

Ansible itself loads the roles, as for a playbook, and nothing of them is run. What depends on how a run goes
(registered variables, include_tasks) cannot be decided here. Then the finding names the tasks.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ansible.errors import AnsibleError
from ansible.playbook.block import Block
from ansible.playbook.conditional import Conditional
from ansible.playbook.play import Play
from ansible.plugins.loader import lookup_loader
from ansible.template import generate_ansible_template_vars

from hal_cluster.audit import inputs, plays
from hal_cluster.audit.differing import Declared, Undecided, compare, whole_roles
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.observer import OF_THE_MOMENT, SECRET_NAME, base_folder
from hal_cluster.audit.recording import Host, Owner
from hal_cluster.audit.resources import MANAGING, Resource, identities
from hal_cluster.audit.resources.contents import contents
from hal_cluster.expect.templating import CompilingTemplar
from hal_inventory.errors import HalError

WRITING = {"ansible.builtin.template", "ansible.builtin.copy"}


class CannotTellError(HalError):
    """This depends on how a run goes."""


@dataclass
class Static:
    """One role of one host: what its tasks come to, without running them."""

    play: Any
    role: Any
    host: Any
    texts: inputs.Roles = field(default_factory=inputs.Roles)
    base: str = field(default_factory=base_folder)
    # The content of files by resource, secrets included. For a comparison without a record: plan.py
    contents: dict[str, bytes] = field(default_factory=dict)
    with_secrets: bool = False

    def declared(self) -> Declared:
        """Return the resources of all tasks, and the tasks whose resources cannot be told."""
        declared = Declared()
        loaded = plays.loaded_roles(self.play, self.base).get(self.role.get_name())
        declared.tasks.update(loaded.tasks if loaded else ())
        for task, always in _tasks(self.role._task_blocks):
            known_task = plays.known(task, self.base)
            if known_task is None or not (known_task.manages is not None or known_task.module in MANAGING):
                continue
            declared.loaded.add(known_task.owner.task)
            if task.delegate_to:
                continue
            gathered = Host()
            try:
                certain = self._task(task, known_task, gathered)
            except Exception as error:  # a template can raise anything; only this task is lost
                declared.undecided[known_task.owner.task] = Undecided(known_task.owner, _words(error))
                continue
            certain = certain and always and not task.run_once and "never" not in task.tags
            for resource, entry in gathered.entries.items():
                declared.add(resource, entry, certain)
        return declared

    def _task(self, task: Any, known_task: plays.Known, gathered: Host) -> bool:
        """Gather what a task manages; False if it may be left out in a run."""
        variables = self._variables(task)
        known = inputs.Variables(variables)
        certain = True
        items = self._items(task, known_task, variables, known)
        for item in items:
            here = {**variables, **item}
            applies = self._applies(task, here, inputs.Variables(here) if item else known, known_task)
            if applies is False:
                continue
            certain = certain and applies is True
            self._gather(task, known_task, here, gathered)
        return certain

    def _gather(self, task: Any, known_task: plays.Known, variables: dict[str, Any], gathered: Host) -> None:
        known = inputs.Variables(variables)
        self._decidable(known_task, known, task.args)
        templar = CompilingTemplar(self.play._loader, variables)
        arguments = templar.template(dict(task.args))
        omit = variables.get("omit")
        arguments = {name: value for name, value in arguments.items() if value != omit}
        text = plays.template_text(known_task, arguments, self.play._loader)
        secret = bool(templar.template(task.no_log)) or self._secret(known, [known_task.written, text])
        resources: list[Resource] = []
        if known_task.manages is not None:
            said = templar.template(known_task.manages) or []
            resources = [Resource(str(entry["resource"]), dict(entry.get("declared") or {})) for entry in said]
            resources = [resource.without_content() for resource in resources] if secret else resources
        if known_task.module in MANAGING:
            data = self._written(known_task, arguments, variables, known) if not secret or self.with_secrets else None
            result = {"checksum": hashlib.sha1(data).hexdigest()} if data is not None and not secret else {}
            managed = identities(known_task.module, arguments, result, secret=secret, task=known_task.owner.task)
            if not managed and known_task.manages is None and known_task.module not in WRITING:
                raise CannotTellError("only a run shows what it manages")
            said_of = {resource.resource for resource in resources}
            resources += [resource for resource in managed if resource.resource not in said_of]
            self.contents.update(contents(known_task.module, arguments))
            if data is not None and managed:
                self.contents[managed[0].resource] = data
        gathered.manages(known_task.owner, resources, (), False)

    def _written(
        self, known_task: plays.Known, arguments: Mapping[str, Any], variables: dict[str, Any], known: inputs.Variables
    ) -> bytes | None:
        """Return what `template` or `copy` would write, as it is rendered now; None of another module."""
        if known_task.module not in WRITING or arguments.get("remote_src"):
            return None
        content = arguments.get("content")
        if content is not None:
            text = content if isinstance(content, str) else json.dumps(content)
            return text.encode("utf-8", "surrogateescape")
        folder = "templates" if known_task.module.endswith("template") else "files"
        path = self._file(str(arguments["src"]), folder, known_task)
        if os.path.isdir(path):
            raise CannotTellError("it copies a folder")
        path = self.play._loader.get_real_file(path)
        with open(path, "rb") as stream:
            data = stream.read()
        if folder == "templates":
            data = self._rendered(known_task, path, data.decode("utf-8"), arguments, variables, known)
        return data

    def _file(self, name: str, folder: str, known_task: plays.Known) -> str:
        path: str = self.play._loader.path_dwim_relative_stack([known_task.folder], folder, name)
        return path

    def _rendered(
        self,
        known_task: plays.Known,
        path: str,
        text: str,
        arguments: Mapping[str, Any],
        variables: dict[str, Any],
        known: inputs.Variables,
    ) -> bytes:
        """Render as the action `template` does."""
        self._decidable(known_task, known, text)
        destination = str(arguments.get("dest"))
        here = {**variables, **generate_ansible_template_vars(str(arguments["src"]), path, destination)}
        templar = CompilingTemplar(self.play._loader, here)
        folders = [known_task.folder, os.path.dirname(path)]
        templar.environment.loader.searchpath = [
            place for folder in folders for place in (os.path.join(folder, "templates"), folder)
        ]
        sequence = {"\\n": "\n", "\\r": "\r", "\\r\\n": "\r\n"}
        newline = str(arguments.get("newline_sequence", "\n"))
        overrides = {
            "newline_sequence": sequence.get(newline, newline),
            "trim_blocks": arguments.get("trim_blocks", True) in (True, "true", "yes"),
            "lstrip_blocks": arguments.get("lstrip_blocks", False) in (True, "true", "yes"),
        }
        marks = ("block_start_string", "block_end_string", "variable_start_string", "variable_end_string")
        overrides.update({mark: arguments[mark] for mark in marks if arguments.get(mark)})
        rendered = templar.template(
            text, preserve_trailing_newlines=True, escape_backslashes=False, overrides=overrides, convert_data=False
        )
        return str(rendered).encode(str(arguments.get("output_encoding") or "utf-8"), "surrogateescape")

    def _items(
        self, task: Any, known_task: plays.Known, variables: dict[str, Any], known: inputs.Variables
    ) -> Iterable[dict[str, Any]]:
        """Return the loop's variables for each item; one empty mapping without a loop."""
        if task.loop is None and not task.loop_with:
            return [{}]
        self._decidable(known_task, known, task.loop)
        templar = CompilingTemplar(self.play._loader, variables)
        items = templar.template(task.loop, fail_on_undefined=True)
        if task.loop_with:
            plugin = lookup_loader.get(task.loop_with, loader=self.play._loader, templar=templar)
            items = plugin.run(items if isinstance(items, list) else [items], variables=variables)
        if not isinstance(items, list):
            raise CannotTellError("its loop is not a list")
        control = task.loop_control
        name = (control.loop_var if control else None) or "item"
        index = control.index_var if control else None
        return [{name: item, **({index: number} if index else {})} for number, item in enumerate(items)]

    def _applies(
        self, task: Any, variables: dict[str, Any], known: inputs.Variables, known_task: plays.Known
    ) -> bool | None:
        """Return what the conditions come to; None if only a run shows that."""
        answer: bool | None = True
        templar = CompilingTemplar(self.play._loader, variables)
        for words in task.when or []:
            try:
                self._decidable(known_task, known, str(words), conditions=True)
                conditional = Conditional(loader=self.play._loader)
                conditional.when = [words]
                if not conditional.evaluate_conditional(templar, variables):
                    return False
            except (CannotTellError, AnsibleError):
                answer = None
        return answer

    def _decidable(
        self, known_task: plays.Known, known: inputs.Variables, value: Any, *, conditions: bool = False
    ) -> None:
        """Raise CannotTellError if a value leads to something that only a run knows."""
        names = known.reach(inputs.words("\n".join(inputs.strings(value))))
        made = self.texts.made_while_running(known_task.folder) & names
        # Files at the controller say the same now as in a run; facts, and who takes part, do not.
        moment = {name for name in names if name in ("ansible_facts", "play_hosts", "hostvars")}
        if conditions:
            moment |= names & (OF_THE_MOMENT - {"lookup", "query", "file", "exists", "link"})
        if made or moment:
            raise CannotTellError(f"depends on {', '.join(sorted(made | moment))}")

    def _secret(self, known: inputs.Variables, value: Any) -> bool:
        names = known.reach(inputs.words("\n".join(inputs.strings(value))))
        encrypted = _ENCRYPTED.names(self.play._loader)
        return any(
            name in encrypted or name.startswith(SECRET_NAME) or inputs.is_vaulted(known.values.get(name))
            for name in names
        )

    def _variables(self, task: Any) -> dict[str, Any]:
        manager = self.play._variable_manager
        variables: dict[str, Any] = manager.get_vars(play=self.play, host=self.host, task=task)
        return {**variables, "ansible_check_mode": False}


def declared_now(task: Any, host: str) -> Callable[..., Iterator[Finding]]:
    """Return the function that compares declarations with a record. `task` knows the inventory."""

    def findings(
        examination: Any,
        changed: Sequence[str],
        every: Sequence[str],
        recorded: Mapping[str, Any],
        entries: Sequence[Mapping[str, Any]],
    ) -> Iterator[Finding]:
        @cache
        def declared(name: str) -> Declared:
            manager = task._variable_manager
            try:
                play = _play(name, host, manager, examination.loader)
                return Static(play, play.roles[0], manager._inventory.get_host(host), _TEXTS).declared()
            except (AnsibleError, OSError) as error:
                return Declared(fault=_words(error))

        def owner_of(resource: str) -> Owner | None:
            names = [*changed, *(name for name in every if name not in changed)]
            owners = (declared(name).entries.get(resource) for name in names)
            return next((entry.owner for entry in owners if entry), None)

        partial = bool(examination.only)
        yield from whole_roles(host, examination.roles, every, recorded, entries, partial=partial, owner_of=owner_of)
        for name in changed:
            commit = str(recorded[name].get("commit") or "")
            yield from compare(host, name, declared(name), entries, commit, owner_of)

    return findings


_TEXTS = inputs.Roles()
_ENCRYPTED = inputs.EncryptedFiles()


def _play(role: str, host: str, manager: Any, loader: Any) -> Any:
    content = {"name": f"What {role} declares", "hosts": host, "gather_facts": "no", "roles": [role]}
    return Play.load(content, variable_manager=manager, loader=loader)


def _tasks(blocks: Iterable[Any], always: bool = True) -> Iterator[tuple[Any, bool]]:
    """Every task, and whether a run without a failure reaches it: it does not reach a rescue."""
    for part in blocks:
        if not isinstance(part, Block):
            yield part, always
            continue
        yield from _tasks(part.block, always)
        yield from _tasks(part.rescue, False)
        yield from _tasks(part.always, always)


def _words(error: Exception) -> str:
    text = str(getattr(error, "message", None) or error).split(" The error appears to be in ")[0]
    return " ".join(text.split())[:200]
