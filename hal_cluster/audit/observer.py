"""Follows a run of ansible-playbook and notes what its roles manage on each host."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.errors import AnsibleError
from ansible.template import Templar

from hal_cluster.audit import inputs, plays, recording
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.resources import COMMANDS, PACKAGE_MODULES, Resource, identities, units_of
from hal_cluster.audit.store import Store, write_json

PROJECT = Path(__file__).resolve().parents[2]
SECRET_NAME = "vault_"
# Modules whose result is content.
TELLING = COMMANDS | {"ansible.builtin.slurp", "ansible.builtin.uri"}
# A run that is killed loses at most the record of what it did in this time.
SPOOL_SECONDS = 15
# A condition with one of these may differ next time: files at the controller, who takes part, check mode.
OF_THE_MOMENT = frozenset(["lookup", "query", "file", "exists", "link", "hostvars", "play_hosts"])
LOGIN = ("remote_user", "become", "become_user", "become_method", "become_flags", "become_exe", "connection", "port")


class Observer:
    """One run. Methods are called as things happen; `hosts` is the outcome."""

    def __init__(self, *, proposing: bool) -> None:
        """`proposing`: this is check mode, and what it finds becomes a proposal."""
        self.proposing = proposing
        self.base = base_folder()
        self.run = recording.Run.begin(commit_of(self.base), time.time())
        self.hosts: dict[str, recording.Host] = {}
        self.stores: dict[str, Store] = {}
        self.logins: dict[str, dict[str, Any]] = {}
        self.unreachable: set[str] = set()
        self.troubles: dict[str, set[str]] = {}
        self.play: Any = None
        self._roles: dict[str, recording.LoadedRole] = {}
        self._handlers: dict[str, set[str]] = {}
        self._known: dict[str, plays.Known | None] = {}
        self._started: dict[str, float] = {}
        self._incomplete: set[tuple[str, str]] = set()
        self._variables: dict[str, inputs.Variables] = {}
        self._judged: dict[tuple[str, str, str], bool] = {}
        self._role_files = inputs.Roles()
        self._encrypted = inputs.EncryptedFiles()
        # Names that tasks made from secrets.
        self._secret_names: set[str] = set()
        self._shared: dict[str, Store] = {}
        self._inputs: dict[tuple[str, str], str] = {}
        self._begun: set[Path] = set()
        self._spooled = self.run.started
        self._process = os.getpid()
        self._ignored: set[str] = set()

    # --- what happens

    def play_starts(self, play: Any) -> None:
        """Know the roles and handlers of a play before its first task."""
        self.play = play
        self._roles = plays.loaded_roles(play, self.base)
        templar = Templar(loader=play._loader, variables=play._variable_manager.get_vars(play=play))
        self._handlers = plays.handler_units(play, templar)

    def task_starts(self, task: Any) -> None:
        """Packages that are installed from now on may be this task's."""
        now = time.time()
        self._started.setdefault(task._uuid, now)
        self._known.setdefault(task._uuid, plays.known(task, self.base))
        if now - self._spooled > SPOOL_SECONDS:
            self.spool()

    def item_ok(self, result: Any) -> None:
        """An item of a loop was done."""
        known_task = self._observed(result)
        if known_task is not None:
            self._note(known_task, result)

    def item_incomplete(self, result: Any) -> None:
        """An item of a loop failed."""
        self._incomplete.add((result._host.get_name(), result._task._uuid))

    def item_skipped(self, result: Any) -> None:
        """An item was left out. What it once managed is given up only if the site's declaration says so."""
        known_task = self._observed(result)
        if known_task is not None and self._transient(known_task, result):
            self.item_incomplete(result)

    def ok(self, result: Any) -> None:
        """A task, or the last item of its loop, was done."""
        known_task = self._observed(result)
        if known_task is None:
            return
        host = self._host(result, known_task)
        if result._result.get("changed"):
            self._at_work(result)
        self._made(known_task, result)
        if not known_task.looped:
            self._note(known_task, result)
        whole = (result._host.get_name(), result._task._uuid) not in self._incomplete
        if whole and known_task.looped and self._of_the_moment(known_task, result._host, known_task.loop):
            host.skipped(known_task.owner.task, transient=True)
        else:
            host.tried(known_task.owner.task, whole)

    def failed(self, result: Any, *, ignored: bool = False) -> None:
        """A task failed: what it manages keeps its older entry. The role goes on if that is ignored or rescued."""
        known_task = self._observed(result)
        if known_task is None:
            return
        host = self._host(result, known_task)
        self._half_done(known_task, result)
        host.tried(known_task.owner.task, complete=False)
        rescue = plays.rescue_of(result._task, self.base)
        if rescue and not ignored:
            host.rescued(*rescue)
        elif not ignored:
            host.broken.add(known_task.owner.role)

    def skipped(self, result: Any) -> None:
        """A task was left out as a whole."""
        known_task = self._observed(result)
        if known_task is not None:
            self._host(result, known_task).skipped(known_task.owner.task, self._transient(known_task, result))

    def lost(self, result: Any) -> None:
        """A host does not answer, so nothing can be stored there, unless the task says that this may happen."""
        if not result._task_fields.get("ignore_unreachable"):
            self.unreachable.add(result._host.get_name())
            known_task = self._observed(result)
            if known_task is not None:
                self.hosts[result._host.get_name()].broken.add(known_task.owner.role)
                self._half_done(known_task, result)

    # --- what is kept

    def spool(self) -> None:
        """Write what is new, so that it is not lost if the run ends here."""
        if os.getpid() != self._process:  # a worker that leaves in an unusual way
            return
        self._spooled = time.time()
        for name, host in self.hosts.items():
            if not host.dirty or not host.worth_telling:
                continue
            host.dirty = False
            try:
                self._write(name, host)
            except (OSError, AuditError) as error:
                self.troubles.setdefault(str(error), set()).add(name)

    def end(self) -> None:
        """Let go of the folders of this run."""
        for store in self._shared.values():
            store.end(self.run.id)

    def _write(self, name: str, host: recording.Host) -> None:
        store = self.stores[name]
        hashes = {role: self._inputs_hash(name, role, store) for role in {*host.folders, *host.roles}}
        if self.proposing:
            write_json(store.proposal(name), recording.proposal(name, self.run, host, hashes))
            return
        if store.folder not in self._begun:
            store.begin(self.run.id)
            self._begun.add(store.folder)
        write_json(store.spool(self.run.id, name), recording.spool(name, self.run, host, hashes))

    def _inputs_hash(self, name: str, role: str, store: Store) -> str:
        if (name, role) not in self._inputs:
            host = self.hosts[name]
            folder = host.folders.get(role) or host.roles[role].folder
            self._inputs[name, role] = inputs.inputs_hash(folder, self._variables[name], store.key(), self._role_files)
        return self._inputs[name, role]

    # --- one result

    def _observed(self, result: Any) -> plays.Known | None:
        """What is known of the task of a result; None unless it is of a role, on the node itself, not in check mode."""
        task = result._task
        if task._uuid not in self._known:
            self._known[task._uuid] = plays.known(task, self.base)
        known_task = self._known[task._uuid]
        if known_task is None or result._host.implicit:
            return None
        fields = result._task_fields
        delegated = fields.get("delegate_to")
        if delegated and delegated != result._host.get_name():
            return None
        if bool(fields.get("check_mode")) and not self.proposing:
            return None
        return known_task if self._known_host(result._host) else None

    def _known_host(self, host: Any) -> bool:
        """Read a host's variables once. A host without a state folder is not a node of the site."""
        name = host.get_name()
        if name in self.stores:
            return True
        if name in self._ignored:
            return False
        manager, loader = self.play._variable_manager, self.play._loader
        values = manager.get_vars(host=host)
        if values.get("hal_image_root") is not None:  # the root of an image that is being built, not a node
            self._ignored.add(name)
            return False
        raw = values.get("hal_audit_dir")
        if raw is None:
            self._ignored.add(name)
            self.troubles.setdefault("hal_audit_dir is not set", set()).add(name)
            return False
        if str(raw) not in self._shared:
            self._shared[str(raw)] = Store(str(Templar(loader=loader, variables=values).template(raw)))
        self.stores[name] = self._shared[str(raw)]
        self.hosts[name] = recording.Host()
        self._variables[name] = inputs.Variables(values)
        return True

    def _host(self, result: Any, known_task: plays.Known) -> recording.Host:
        name = result._host.get_name()
        host = self.hosts[name]
        host.folders.setdefault(known_task.owner.role, known_task.folder)
        if known_task.owner.role in self._roles and known_task.owner.role not in host.roles:
            host.roles[known_task.owner.role] = self._roles[known_task.owner.role]
        login = {key: result._task_fields.get(key) for key in LOGIN if result._task_fields.get(key) is not None}
        if name not in self.logins or (login.get("become") and not self.logins[name].get("become")):
            self.logins[name] = login
        return host

    def _note(self, known_task: plays.Known, result: Any) -> None:
        """Take over what a call manages; of a secret only its name."""
        host = self._host(result, known_task)
        if not known_task.records:
            return
        arguments = result._task_fields.get("args") or {}
        outcome = result._result
        units = units_of(known_task.module, arguments, outcome)
        changed = bool(outcome.get("changed"))
        if changed or units.readers:
            host.effective(units.effective)
        host.reads(units.readers)
        if known_task.handler:
            return
        secret = self._secret(known_task, result)
        resources = self._said(known_task, result) if known_task.manages is not None else []
        resources = [resource.without_content() for resource in resources] if secret else resources
        named = {resource.resource for resource in resources}  # what the task says counts more than its arguments
        managed = identities(known_task.module, arguments, outcome, secret=secret, task=known_task.owner.task)
        managed = [] if known_task.manages == [] else managed  # it says that it manages nothing that lasts
        resources += [resource for resource in managed if resource.resource not in named]
        notified = result._task_fields.get("notify") or []
        told = {unit for name in notified for unit in self._handlers.get(str(name), ())}
        host.manages(known_task.owner, resources, told, changed)
        if changed and any(resource.resource.startswith("package:") for resource in resources):
            self._window(result)

    def _window(self, result: Any) -> None:
        """Packages may have been installed since the task began."""
        begin = self._started.get(result._task._uuid, self.run.started)
        self.hosts[result._host.get_name()].window(begin, time.time())

    def _at_work(self, result: Any) -> None:
        """What appeared below /etc and /boot since the task began may be its work."""
        begin = self._started.get(result._task._uuid, self.run.started)
        self.hosts[result._host.get_name()].change(begin, time.time())

    def _half_done(self, known_task: plays.Known, result: Any) -> None:
        """A task that failed, or got no answer from its host, may have done half of its work."""
        self._at_work(result)
        if known_task.module in PACKAGE_MODULES:
            self._window(result)

    def _said(self, known_task: plays.Known, result: Any) -> list[Resource]:
        """What a task says in vars: hal_manages, rendered where it has templates."""
        said = known_task.manages
        if any("{{" in text for text in inputs.strings(said)):
            variables = self.play._variable_manager.get_vars(play=self.play, host=result._host, task=result._task)
            loop_variable = str(result._result.get("ansible_loop_var", "item"))
            if loop_variable in result._result:
                variables = {**variables, loop_variable: result._result[loop_variable]}
            try:
                said = Templar(loader=self.play._loader, variables=variables).template(said)
            except AnsibleError as error:
                name = result._host.get_name()
                self.troubles.setdefault(f"{known_task.owner.source}: hal_manages: {error}", set()).add(name)
                return []
        return [plays.said(entry) for entry in said or []]

    # --- judgements that need the variables behind a text

    def _secret(self, known_task: plays.Known, result: Any) -> bool:
        """True for no_log, and for arguments that lead to a vaulted value."""
        if result._task_fields.get("no_log") or "censored" in result._result:
            return True
        loader, arguments = self.play._loader, result._task_fields.get("args") or {}
        text = plays.template_text(known_task, arguments, loader)
        if known_task.module == "ansible.builtin.copy" and self._source_is_encrypted(known_task, arguments, loader):
            return True
        return self._leads(known_task, result._host, "secret", [known_task.written, text])

    def _source_is_encrypted(self, known_task: plays.Known, arguments: Mapping[str, Any], loader: Any) -> bool:
        source = arguments.get("src")
        if not isinstance(source, str) or arguments.get("remote_src"):
            return False
        try:
            return self._encrypted.encrypted(loader.path_dwim_relative_stack([known_task.folder], "files", source))
        except AnsibleError:
            return False

    def _made(self, known_task: plays.Known, result: Any) -> None:
        """Remember names that are made from a secret: facts, and what a command says that has one."""
        names: set[str] = set()
        if known_task.module == "ansible.builtin.set_fact":
            names.update(result._task_fields.get("args") or {})
        if known_task.module in TELLING and result._task_fields.get("register"):
            names.add(str(result._task_fields["register"]))
        if names - self._secret_names and self._secret(known_task, result):
            self._secret_names |= names
            self._judged = {asked: answer for asked, answer in self._judged.items() if answer}

    def _transient(self, known_task: plays.Known, result: Any) -> bool:
        """True when a task was skipped for a reason that the next run may not have."""
        if "censored" in result._result or result._result.get("skipped_reason"):
            return self._of_the_moment(known_task, result._host, [known_task.loop, *known_task.conditions])
        return self._of_the_moment(
            known_task, result._host, result._result.get("false_condition") or list(known_task.conditions)
        )

    def _of_the_moment(self, known_task: plays.Known, host: Any, texts: Any) -> bool:
        return self._leads(known_task, host, "moment", texts)

    def _leads(self, known_task: plays.Known, host: Any, what: str, value: Any) -> bool:
        """Whether the words of a value lead to a secret, or to what only this run knows; judged once a task."""
        texts = "\n".join(inputs.strings(value))
        asked = (f"{known_task.owner.source} {known_task.folder}", what, texts)
        if asked not in self._judged:
            variables = self._variables[host.get_name()]
            role = result_role(self.play, known_task.owner.role)
            values = {**role[0], **variables.values, **role[1], **known_task.variables}
            reached = inputs.Variables(values).reach(inputs.words(texts))
            if what == "secret":
                secret = self._secret_names | self._encrypted.names(self.play._loader)
                self._judged[asked] = any(
                    name in secret or name.startswith(SECRET_NAME) or inputs.is_vaulted(values.get(name))
                    for name in reached
                )
            else:
                made = self._role_files.made_while_running(known_task.folder)
                self._judged[asked] = any(
                    name in made or name in OF_THE_MOMENT or name.startswith("ansible_") for name in reached
                )
        return self._judged[asked]


def result_role(play: Any, name: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The raw defaults and vars of a role of a play."""
    for role in play.roles:
        if role.get_name() == name:
            return role.get_default_vars(), role.get_vars(include_params=False)
    return {}, {}


def base_folder() -> str:
    """The folder to which paths are relative: that of ansible.cfg, or this project."""
    return os.path.dirname(constants.CONFIG_FILE) if constants.CONFIG_FILE else str(PROJECT)


def commit_of(folder: str) -> str:
    """The commit that is rolled out, "+changes" if what is rolled out differs from it; "" outside of git."""
    try:
        commit = _git(folder, "rev-parse", "--short=12", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", *_rolled_out(folder))
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{commit}+changes" if changed else commit


def _rolled_out(folder: str) -> Iterable[str]:
    names = ("roles", "playbooks", "inventory", "plugins", "hal_cluster", "hal_inventory", "hal_node")
    return [name for name in names if os.path.isdir(os.path.join(folder, name))]


def _git(folder: str, *words: str) -> str:
    call = ["git", "-C", folder, *words]
    return subprocess.run(call, check=True, capture_output=True, text=True, timeout=20).stdout.strip()


def in_check_mode() -> bool:
    """True for ansible-playbook --check."""
    return bool(context.CLIARGS.get("check"))
