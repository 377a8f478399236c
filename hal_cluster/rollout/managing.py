"""Which roles act on which nodes (managed_roles): a play that lists a role leaves the other nodes alone.

Groups stay as they are: what is written into slurm.conf or /etc/hosts names all nodes, whoever manages them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible.errors import AnsibleError
from ansible.template import Templar
from ansible.utils.display import Display

from hal_cluster.audit.sealing import folded
from hal_inventory import managed
from hal_inventory.errors import HalError


class UnusableError(HalError, AnsibleError):  # type: ignore[misc]  # Ansible has no types
    """A value of managed_roles that cannot be used."""


class Managed:
    """What each node of an inventory says, read once a process."""

    def __init__(self) -> None:
        """Nothing read yet."""
        self._read: dict[str, frozenset[str] | None] = {}
        self._said: set[str] = set()

    def acts(self, role: str, host: Any, manager: Any, loader: Any) -> bool:
        """Tell whether a role acts on a host. A role that is not of this project always does.

        AnsibleError for a value that cannot be used.
        """
        names = self._of(host, manager, loader)
        return names is None or role in names or role not in managed.known_roles()

    def narrow(self, queue: Any, play: Any, *, holds: bool) -> bool:
        """Take out of a play the hosts on which its roles do not act; False if none is left and it must not run.

        `holds`: the play holds its hosts for a rollout, so hosts on which no role of the run acts are taken out, too.
        AnsibleError if a value cannot be used: all hosts are asked before the first play.
        """
        manager, loader = play._variable_manager, play._loader
        self._refuse_unusable(queue._inventory, manager, loader)
        roles = [role.get_name() for role in play.roles if not role._from_files.get("tasks")]
        if not roles and not holds:
            return True
        every = queue._inventory.get_hosts(play.hosts, ignore_restrictions=True)
        out = [host for host in every if not self._takes_part(host, roles, manager, loader)]
        said = out
        if not roles and (acting := self._of_the_run(queue._inventory, manager, loader)) is not None:
            # Nobody has to be told of hosts that --tags or the plays leave out.
            out = [host for host in every if host in out or host.get_name() not in acting]
        if not out:
            return True
        given = play.hosts if isinstance(play.hosts, list) else [play.hosts]
        play.hosts = [*given, *(f"!{host.get_name()}" for host in out)]
        words = f"{', '.join(roles)} not managed" if roles else "no role managed"
        if said:
            self._say(f"{folded(host.get_name() for host in said)}: {words} here ({managed.VARIABLE}), left alone")
        return bool(queue._inventory.get_hosts(play.hosts))

    def _of_the_run(self, inventory: Any, manager: Any, loader: Any) -> set[str] | None:
        """Names of the hosts on which a role of the running playbook acts, within --tags; None if it lists no role.

        None also if only the run knows the hosts of a play.
        """
        from hal_cluster.rollout import naming  # which asks this module

        roles = naming.RUNNING.listed(loader, manager)
        try:
            return (
                {
                    host.get_name()
                    for role in roles
                    if role.wanted
                    for host in role.hosts(inventory, of_every_batch=True)
                    if self.acts(role.name, host, manager, loader)
                }
                if roles
                else None
            )
        except Exception:  # a template can raise anything
            return None

    def _takes_part(self, host: Any, roles: list[str], manager: Any, loader: Any) -> bool:
        if not roles:
            return self._of(host, manager, loader) != frozenset()
        acting = [role for role in roles if self.acts(role, host, manager, loader)]
        if acting and len(acting) < len(roles):
            others = ", ".join(role for role in roles if role not in acting)
            raise AnsibleError(
                f"{host.get_name()}: this play lists {', '.join(acting)}, which is managed there, and {others}, which"
                f" is not ({managed.VARIABLE}): give each role a play of its own"
            )
        return bool(acting)

    def _refuse_unusable(self, inventory: Any, manager: Any, loader: Any) -> None:
        wrong: dict[str, list[str]] = {}
        for host in inventory.get_hosts("all", ignore_limits=True, ignore_restrictions=True):
            try:
                self._of(host, manager, loader)
            except UnusableError as error:
                wrong.setdefault(str(error), []).append(host.get_name())
        if wrong:
            raise AnsibleError("; ".join(f"{folded(hosts)}: {words}" for words, hosts in wrong.items()))

    def _of(self, host: Any, manager: Any, loader: Any) -> frozenset[str] | None:
        name = host.get_name()
        if name not in self._read:
            variables = manager.get_vars(host=host)
            value = None
            if managed.VARIABLE in variables:
                try:
                    value = Templar(loader=loader, variables=variables).template(variables[managed.VARIABLE])
                except AnsibleError as error:
                    raise UnusableError(f"{managed.VARIABLE}: {error}") from None
                if wrong := managed.problem(value):
                    raise UnusableError(wrong)
                groups = [group.get_name() for group in host.get_groups()]
                for remark in managed.lacking(value, groups):
                    self._warn(f"{remark}")
            self._read[name] = None if value is None else frozenset(value)
        return self._read[name]

    def _say(self, words: str) -> None:
        Display().display(words)

    def _warn(self, words: str) -> None:
        if words not in self._said:
            self._said.add(words)
            Display().warning(words, formatted=True)


CURRENT = Managed()


def acting(role: str, hosts: Iterable[Any], manager: Any, loader: Any) -> list[Any]:
    """Return those of the hosts on which a role acts."""
    return [host for host in hosts if CURRENT.acts(role, host, manager, loader)]
