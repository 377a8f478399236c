"""Which of our callbacks take part in this run of Ansible. One that was not found is only warned about by Ansible."""

from __future__ import annotations

WITHOUT = {
    "hal_provenance": "what this run does would not be recorded",
    "hal_audit_report": "the audit would end without a verdict",
}
_taking_part: set[str] = set()


def takes_part(name: str) -> None:
    """Say that a callback was loaded by this process, whose workers are forks of it."""
    _taking_part.add(name)


def problem(name: str) -> str:
    """Return why a run without this callback of `WITHOUT` must not begin, and what to set; "" where it takes part."""
    if name in _taking_part:
        return ""
    return (
        f"the callback {name} is not loaded, so {WITHOUT[name]}: name it in callbacks_enabled"
        f" (ANSIBLE_CALLBACKS_ENABLED), or use this project's ansible.cfg. docs/clients.md"
    )
