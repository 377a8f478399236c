"""Which of our callbacks take part in this run of Ansible. Of one that is missing Ansible only warns."""

from __future__ import annotations

WITHOUT = {
    "hal_printable": "what nodes say would drive your terminal",
    "hal_provenance": "what this run does would not be recorded",
    "hal_rollout": "two rollouts could change a node at once",
    "hal_audit_report": "the audit would end without a verdict",
}
EVERY = ("hal_printable",)
NEEDED = {
    "controller": EVERY,
    "audit": (*EVERY, "hal_audit_report"),
    "rollout": (*EVERY, "hal_provenance", "hal_rollout"),
}
"""What a run is -> the callbacks it needs. A rollout in check mode changes nothing, and needs only the first."""
KINDS = {
    "audit.yml": "audit",
    "takeover.yml": "audit",
    "authorities.yml": "controller",
    "certificate.yml": "controller",
}
"""Those of our playbooks that are not a rollout: an audit changes nothing, the others have no node."""
_taking_part: set[str] = set()


def takes_part(name: str) -> None:
    """Say that a callback was loaded by this process, whose workers are forks of it."""
    _taking_part.add(name)


def problem(*names: str) -> str:
    """Return why a run without these callbacks of `WITHOUT` must not begin, and what to set; "" if all take part."""
    missing = [name for name in names if name not in _taking_part]
    if not missing:
        return ""
    which = f"callback {missing[0]} is" if len(missing) == 1 else f"callbacks {_listed(missing)} are"
    what = "it" if len(missing) == 1 else "them"
    return (
        f"the {which} not loaded, so {_listed([WITHOUT[name] for name in missing])}: name {what} in callbacks_enabled"
        f" (ANSIBLE_CALLBACKS_ENABLED), or use this project's ansible.cfg: see docs/clients.md"
    )


def run_problem(kind: str, *, check: bool) -> str:
    """Return the same of a run of a kind of `NEEDED`, in check mode or not."""
    return problem(*(EVERY if check and kind == "rollout" else NEEDED[kind]))


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
