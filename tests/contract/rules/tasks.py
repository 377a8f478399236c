"""How tasks are written: named, in full, never from facts, never looking away from a failure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import (
    BLOCKS,
    Finding,
    Map,
    Task,
    all_tasks,
    files,
    playbooks,
    plays,
    role_tasks,
    roles,
    rule,
    strings,
    text_lines,
    text_of,
    without_comment,
)

FACTS = re.compile(
    r"\bansible_facts\b|\bansible_(?:distribution\w*|os_family|hostname|fqdn|nodename|domain|architecture|machine|system|kernel\w*"
    r"|default_ipv[46]|all_ipv[46]_addresses|interfaces|mounts|devices|memtotal_mb|memory_mb|processor\w*|pkg_mgr|service_mgr"
    r"|python_version|selinux|date_time|env|virtualization\w*|user_id|local|lsb|dns|cmdline)\b"
)
# Actions that start no Python of their own.
AT_CONTROLLER = frozenset(
    {"assert", "debug", "fail", "set_fact", "include_tasks", "import_tasks", "meta", "include_vars"}
)
OTHER_HOSTS = re.compile(r"\bhostvars\b(?!\[inventory_hostname\])")
GATHERING = ("setup", "gather_facts")
HOST_KEYS_OFF = re.compile(
    r"StrictHostKeyChecking[\"']?[=:\s]+[\"']?(?:no|off|accept-new)\b|UserKnownHostsFile[=:\s]+/dev/null"
    r"|host_key_checking[\"']?\s*[=:]\s*[\"']?(?:false|no|0)\b|accept_hostkey:\s*(?:true|yes)",
    re.IGNORECASE,
)
# What only a shell does; without any of it, command is enough.
SHELL = re.compile(r"[|&;<>$`*?\[\]~\n]|\b(?:cd|source|export|set|ulimit|umask)\b")
OR = re.compile(r"\bor\b")
CHANGED = re.compile(r"\bis changed\b|\.changed\b")
JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
# Where a directory stands at the destination, these write below it, and say "changed".
INTO_FOLDERS = frozenset({"assemble", "copy", "get_url", "template", "uri"})
# What a task registered, where somebody reads what was printed, or what each turn of a loop gave.
PRINTED = re.compile(r"\b(\w+)(?:\.|\[['\"])(?:std(?:out|err)|results)")
OF_ONE_RUN = re.compile(r"\{\{ (\w+)\.path \}\}/")


@rule
def tasks_have_names(root: Path) -> Iterator[Finding]:
    """Each task, block and handler of a role says what it achieves."""
    for role in roles(root):
        for task in role_tasks(role):
            name = task.body.get("name")
            if not isinstance(name, str) or not name.strip():
                yield task.finding("a task without a name; say what is true after it")


@rule
def modules_are_named_in_full(root: Path) -> Iterator[Finding]:
    """Modules carry their collection; our own, in plugins/, have none."""
    ours = {path.stem for kind in ("modules", "action") for path in (root / "plugins" / kind).glob("*.py")}
    for task in all_tasks(root):
        if task.module and task.module.count(".") < 2 and task.module not in ours:
            yield task.finding(
                f"{task.module}; write the module with its collection, as ansible.builtin.copy", task.module
            )
        if "action" in task.body or "local_action" in task.body:
            yield task.finding("action: hides the module; use the module's own name as the key")


@rule
def nothing_comes_from_facts(root: Path) -> Iterator[Finding]:
    """The model knows: no role or play reads what a node reports of itself, or variables of another host.

    molecule/virtual_hal makes the nodes at the controller, before anything could be limited: not meant here.
    """
    places = [
        path for role in roles(root) for path in role.rglob("*") if path.is_file() and path.suffix in (".yml", ".j2")
    ]
    places += [
        path for path in (root / "inventory").rglob("*.yml") if path.parts[-2] != "hal" or path.name != "cluster.yml"
    ]
    places += [path for path in playbooks(root) if path.parent != root / "molecule" / "virtual_hal"]
    for path in sorted(set(places)):
        for number, line in text_lines(path):
            code = without_comment(line) if path.suffix == ".yml" else line
            for hit in FACTS.findall(code):
                yield Finding(path, number, f"{hit} is a fact; use hal_node or lookup('hal', ...)")
            if OTHER_HOSTS.search(code):
                yield Finding(path, number, "hostvars needs all hosts; use lookup('hal', ...), works with --limit")


@rule
def nothing_gathers_facts(root: Path) -> Iterator[Finding]:
    """No play or task collects facts: they cost seconds a node and bless what a node came up with."""
    for path in playbooks(root):
        for play in plays(path):
            if play.get("gather_facts", False) is not False:
                yield Finding(
                    path, play.at("gather_facts"), "the play gathers facts; gather_facts: false, the model has them"
                )
    for task in all_tasks(root):
        if task.short in GATHERING:
            yield task.finding(f"{task.short} gathers facts; use hal_node or lookup('hal', ...)", task.module)


@rule
def failures_are_not_ignored(root: Path) -> Iterator[Finding]:
    """A task that may fail says which failure is meant."""
    for task in all_tasks(root):
        if task.body.get("ignore_errors"):
            yield task.finding(
                "ignore_errors hides every failure; say in failed_when which result is fine", "ignore_errors"
            )
        never = task.body.get("failed_when")
        if (never is False or never == []) and not _has_comment(task, "failed_when"):
            yield task.finding("failed_when: false without a reason; give it in a comment on this line", "failed_when")


@rule
def files_go_where_they_were_asked_to(root: Path) -> Iterator[Finding]:
    """hal_files writes them: it refuses a directory in their place.

    Where another module is needed, hal_files looks at the destination before, in the same file of tasks: `places`. In a
    folder that tempfile made there is nothing yet.
    """
    for role in roles(root):
        free: dict[Path, set[str]] = {}
        for task in role_tasks(role):
            here, arguments = free.setdefault(task.path, set()), task.arguments
            if task.short == "tempfile":
                here.add(str(task.body.get("register")))
            elif task.short == "hal_files" and isinstance(arguments, Map):
                here.update(strings(arguments.get("places")))
            elif task.short in INTO_FOLDERS:
                to = str(arguments.get("dest", "")) if isinstance(arguments, Map) else str(arguments)
                made = OF_ONE_RUN.match(to)
                if to and to not in here and not (made and made[1] in here):
                    yield task.finding(
                        f"{task.short} writes below a directory that is there; use hal_files, or have it look before:"
                        f" places: [{to}]",
                        task.module,
                    )


@rule
def a_silent_refusal_is_said_before(root: Path) -> Iterator[Finding]:
    """Nobody reads what a no_log task refuses: one before it, in the same file, looks at its `places` and speaks."""
    for role in roles(root):
        said: dict[Path, set[str]] = {}
        for task in role_tasks(role):
            if task.short != "hal_files" or not isinstance(task.arguments, Map):
                continue
            here = said.setdefault(task.path, set())
            if task.keyword("no_log") is not True:
                here.update(strings(task.arguments.get("places")))
                continue
            listed = task.arguments.get("files")
            paths = [str(one.get("path")) for one in listed] if isinstance(listed, list) else [str(listed)]
            for path in paths:
                if path not in here:
                    yield task.finding(f"nobody reads why {path} is refused; look before: places: [{path}]")


@rule
def shell_only_where_needed(root: Path) -> Iterator[Finding]:
    """A command without pipes, redirections or wildcards runs without a shell."""
    for task in all_tasks(root):
        if task.short != "shell":
            continue
        arguments = task.arguments
        text = arguments.get("cmd", "") if isinstance(arguments, Map) else arguments
        if not SHELL.search(JINJA.sub("", str(text)).strip()):
            yield task.finding("nothing here needs a shell; use ansible.builtin.command with argv", task.module)


@rule
def what_a_program_printed_is_whole(root: Path) -> Iterator[Finding]:
    """Where somebody reads what a program printed, hal_command runs it: Ansible's command and shell may lose it.

    ansible issue 51393. A scenario that reads nothing fails, so those are not asked.
    """
    folders = (root / "roles", root / "playbooks")
    pages = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".yml", ".j2")]
    read = {name for path in pages for name in PRINTED.findall(text_of(path))}
    for task in all_tasks(root):
        ours = any(folder in task.path.parents for folder in folders)
        if ours and task.short in ("command", "shell") and task.body.get("register") in read:
            yield task.finding(f"{task.short} may lose what is read of it on a busy node; use hal_command", task.module)


@rule
def the_controller_becomes_nobody_else(root: Path) -> Iterator[Finding]:
    """What a role does at localhost it does as who runs Ansible: what root makes there, its own user cannot read.

    Playbooks are not asked yet: some of their tasks lack it, and would run as root under `ansible-playbook --become`.
    """
    for role in roles(root):
        for task in role_tasks(role):
            if _at_controller(task) and task.keyword("become") is not False:
                yield task.finding("become: false is missing", "delegate_to")


def _at_controller(task: Task) -> bool:
    """Whether a module runs at localhost."""
    return bool(task.module) and task.keyword("delegate_to") == "localhost" and task.short not in AT_CONTROLLER


@rule
def one_change_is_enough(root: Path) -> Iterator[Finding]:
    """What is done because something changed is done when one thing did: nothing waits for two changes in one run."""
    for task in all_tasks(root):
        for keyword in ("when", "changed_when"):
            both = " and ".join(strings(task.body.get(keyword)))
            if any(len(CHANGED.findall(one)) > 1 for one in OR.split(both)):
                yield task.finding("it needs two changes in one run; one is enough: or", keyword)


@rule
def host_keys_are_checked(root: Path) -> Iterator[Finding]:
    """No file switches off the check of host keys; the site's CA is what makes new nodes known."""
    for path in files(root):
        if path.suffix == ".md":
            continue
        for number, line in text_lines(path):
            if HOST_KEYS_OFF.search(line):
                yield Finding(
                    path, number, "host-key checking is off; trust the site's CA (@cert-authority in known_hosts)"
                )


def _has_comment(task: Task, key: str) -> bool:
    lines = text_of(task.path).splitlines()
    return re.search(r"#\s*\S+", lines[task.body.at(key) - 1]) is not None


@rule
def loops_have_items(root: Path) -> Iterator[Finding]:
    """A loop's item is used in its task, and nothing outside of a loop asks for one."""
    for role in roles(root):
        for task in role_tasks(role):
            control = task.body.get("loop_control") or {}
            text = "\n".join(
                strings({key: value for key, value in task.body.items() if key not in ("name", "loop", *BLOCKS)})
            )
            used = re.search(rf"\b{control.get('loop_var', 'item')}\b", text) is not None
            retried = "until" in task.body
            if "loop" in task.body and not used and not retried:
                yield task.finding("the loop does the same each time: nothing in the task uses its item", "loop")
            if "loop" not in task.body and task.module and re.search(r"{{[^}']*\bitem\b[^}]*}}", text):
                yield task.finding("item without a loop")


@rule
def the_controller_runs_its_own_python(root: Path) -> Iterator[Finding]:
    """A role's module at localhost has the Python that runs Ansible, quoted: a node's need not be there."""
    for role in roles(root):
        for task in role_tasks(role):
            given: dict[str, object] = {}
            for body in (*task.outer, task.body):
                given.update(body.get("vars") or {})
            python = str(given.get("ansible_python_interpreter", ""))
            if _at_controller(task) and not re.search(r"ansible_playbook_python\s*\|\s*quote", python):
                yield task.finding(
                    'vars: {ansible_python_interpreter: "{{ ansible_playbook_python | quote }}"} is missing',
                    "delegate_to",
                )
