"""From entries as written to entries a node can evaluate: `when`, `loop` and templates, entry by entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible.errors import AnsibleError, AnsibleUndefinedVariable
from ansible.playbook.conditional import Conditional

from hal_cluster.expect.check import problems_of_entry
from hal_cluster.expect.vocabulary import MATCHERS, READERS

SECRET = "(secret)"
#: Fields of a loop's item that make a good name for it, best first.
NAMING_FIELDS = ("id", "name", "key", "path")


@dataclass(frozen=True)
class Prepared:
    """One expectation of one host. `question` is what the node is asked; without one, `status` says what it is."""

    id: str
    role: str
    source: str
    why: str
    severity: str
    secret: bool
    expected: dict[str, Any] | str | None = None
    question: dict[str, Any] | None = None
    status: str = "unknown"
    reason: str = ""
    finding: str = ""
    health: str = ""

    def result(self, answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the result as callers get it; `answer` is the node's {status, observed, reason}."""
        answer = answer or {"status": self.status, "observed": None, "reason": self.reason}
        return {
            "id": self.id,
            "role": self.role,
            "status": answer["status"],
            "severity": self.severity,
            "expected": self.expected,
            "observed": answer["observed"],
            "reason": answer["reason"],
            "why": self.why,
            "source": self.source,
        }


class Preparation:
    """Templates the entries of one file with one set of variables."""

    def __init__(self, templar: Any, loader: Any, variables: dict[str, Any], role: str) -> None:
        self._templar = templar
        self._loader = loader
        self._variables = variables
        self._role = role

    def prepare(self, entry: Any, source: str) -> list[Prepared]:
        """Return the entry as one expectation, or several if it has a loop. Whatever fails makes it unknown."""
        base = self._identity(entry, source)
        faults = problems_of_entry(entry)
        if faults:
            words = [": ".join([*([".".join(map(str, where))] if where else []), what]) for where, what in faults]
            return [Prepared(**base, reason="; ".join(words))]
        if "loop" not in entry:
            return [self._expectation(entry, base, self._variables)]
        try:
            items = self._template(entry["loop"], self._variables)
            if not isinstance(items, list):
                raise AnsibleError("has to be a list")
        except Exception as error:  # templates can raise anything; only this entry is lost
            return [self._when_skips(entry, base, f"loop: {_words(error, base['secret'])}")]
        if not items:
            return [Prepared(**base, status="skipped", reason="its loop is empty")]
        return list(self._of_loop(entry, base, items))

    def _when_skips(self, entry: Any, base: dict[str, Any], fault: str) -> Prepared:
        """An entry whose loop cannot be evaluated is unknown, unless it does not apply on this host at all."""
        try:
            skipped = not self._applies(entry.get("when"), self._variables)
        except Exception:  # `when` may need the item
            skipped = False
        return Prepared(**base, status="skipped", reason="when") if skipped else Prepared(**base, reason=fault)

    def _of_loop(self, entry: Any, base: dict[str, Any], items: Sequence[Any]) -> Iterator[Prepared]:
        names: dict[str, int] = {}
        for item in items:
            name = f"{base['id']} [{_name_of(item)}]" if not base["secret"] else f"{base['id']} [{len(names)}]"
            names[name] = names.get(name, 0) + 1
            if names[name] > 1:  # ids stay unique, whatever the items are
                name = f"{name[:-1]} #{names[name]}]"
            yield self._expectation(entry, {**base, "id": name}, {**self._variables, "item": item})

    def _identity(self, entry: Any, source: str) -> dict[str, Any]:
        given = entry if isinstance(entry, Mapping) else {}
        severity = given.get("severity", "error")
        return {
            "id": str(given.get("id") or f"(entry without id at {source})"),
            "role": self._role,
            "source": source,
            "why": str(given.get("why") or ""),
            "severity": severity if severity in ("error", "warning") else "error",
            "secret": str(given.get("secret", False)).lower() not in ("false", "no", "off"),
            "finding": str(given.get("finding") or ""),
            "health": str(given.get("health") or ""),
        }

    def _expectation(self, entry: Any, base: dict[str, Any], variables: dict[str, Any]) -> Prepared:
        reader = next(name for name in entry if name in READERS)
        matcher = next(name for name in entry if name in MATCHERS)
        secret = base["secret"]
        part = "when"
        try:
            if not self._applies(entry.get("when"), variables):
                return Prepared(**base, status="skipped", reason="when")
            part = reader
            request = self._template(entry[reader], variables)
            if isinstance(request, dict):
                request = {name: value for name, value in request.items() if value != variables.get("omit", object())}
            part = matcher
            wanted = self._template(entry[matcher], variables)
            part = "health"
            health = str(self._template(entry.get("health") or "", variables))
        except Exception as error:  # templates can raise anything; only this entry is lost
            shown = SECRET if secret else {matcher: entry[matcher]}
            return Prepared(**base, expected=_plain(shown), reason=f"{part}: {_words(error, secret)}")
        if matcher == "absent" and wanted is None:
            wanted = ""
        return Prepared(
            **{**base, "health": health},
            expected=SECRET if secret else {matcher: wanted},
            question={reader: request, matcher: wanted, "secret": secret},
        )

    def _applies(self, when: Any, variables: dict[str, Any]) -> bool:
        conditions = when if isinstance(when, list) else [when]
        conditional = Conditional(loader=self._loader)
        conditional.when = [True if condition is None else condition for condition in conditions]
        return bool(conditional.evaluate_conditional(self._templar, variables))

    def _template(self, value: Any, variables: dict[str, Any]) -> Any:
        self._templar.available_variables = variables
        return _plain(self._templar.template(value, fail_on_undefined=True))


def _plain(value: Any) -> Any:
    """Return Ansible's tagged types as plain ones: they must survive JSON, and a vaulted text becomes plain text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)


def _name_of(item: Any) -> str:
    if isinstance(item, Mapping):
        for field in NAMING_FIELDS:
            if field in item:
                return str(item[field])
    return str(item)


def _words(error: Exception, secret: bool) -> str:
    """Return an error as one line. Errors quote templates, and those of a secret must not be in the report."""
    if secret and not isinstance(error, AnsibleUndefinedVariable):
        return f"cannot be evaluated ({type(error).__name__}; the text is kept out of sight, as the entry is secret)"
    text = str(getattr(error, "message", None) or error)
    words = " ".join(text.split(" The error appears to be in ")[0].split())
    first, _dot, rest = words.partition(". ")  # Ansible says an undefined variable twice
    return first if rest.rstrip(".") == first.rstrip(".") else words
