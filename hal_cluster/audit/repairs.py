"""The command that repairs a finding, or what there is to do."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

from hal_cluster.audit import roles
from hal_cluster.audit.findings import Finding, quoted
from hal_cluster.audit.resources.system import UNIT_TYPES

BACKSLASH = "\\"
# Names of units: VALID_CHARS of systemd's unit-name.c, at most 255 of them, with a type that can be restarted.
UNIT = re.compile(rf"[A-Za-z0-9:_.\\@-]{{1,245}}(?:{'|'.join(map(re.escape, UNIT_TYPES))})")
_NOBODYS = dict.fromkeys(
    ("changed", "missing", "owner", "mode", "type", "target"),
    "put it back, let a role declare it, or say in audit_accepted why it is right: hal-audit accept",
)
_ADVICE = {
    "extra": "remove it, let a role declare it, or say in audit_accepted why it is right: hal-audit accept",
    "package-file": "find out who did it, then on the node: yum reinstall its package",
    "package-extra": "remove it, let a role declare it, or say in audit_packages_accepted why it is right",
    "uid-0": "take the uid away from every user but root",
    "kernel": "reboot the node when its jobs allow it",
    "clock": "run chronyc tracking on the node",
    "hardware": "have a look at the node; no rollout repairs this",
    "orphaned": "nobody manages it: remove it from the node, or declare it again",
    "out-of-step": "declare one version for both, and roll it out",
}


def with_repair(finding: Finding, limit: str, options: str) -> Finding:
    """Return the finding with the command that repairs it, or what there is to do."""
    return replace(finding, repair=repair(finding, limit, options))


def repair(finding: Finding, limit: str, options: str) -> str:
    """Return a command if there is one: a rollout of the role, or a restart. `options` name the inventory."""
    limited = f" --limit {shlex.quote(limit)}" if limit != "all" else ""
    site = f"ansible-playbook {options}playbooks/site.yml{limited}"
    if finding.kind == "not-effective" and finding.units:
        return _restart(finding.units[0], limit, options)
    if finding.kind in ("no-record", "nothing-checked"):
        return site
    if finding.kind in _ADVICE:
        return _ADVICE[finding.kind]
    if finding.role and not is_known(finding.role):
        return f"no rollout repairs it: this project has no role {quoted(finding.role)}"
    if not finding.role and finding.resource.startswith("file:"):
        return _NOBODYS.get(finding.kind, "")
    return f"{site} --tags {finding.role}" if finding.role else ""


def is_known(role: str) -> bool:
    """Tell whether this project has the role. A name that only a record knows must not become a word of a command."""
    return role in roles.names()


def _restart(unit: str, limit: str, options: str) -> str:
    if not UNIT.fullmatch(unit):
        return f"restart what reads it: {quoted(unit)} is not the name of a unit"
    # Ansible undoes backslashes in such a value, and systemd's names of devices have them.
    arguments = f"name={unit.replace(BACKSLASH, BACKSLASH * 2)} state=restarted"
    asked = f"ansible {options}--become -m ansible.builtin.systemd_service"
    return f"{asked} -a {shlex.quote(arguments)} {shlex.quote(limit)}"
