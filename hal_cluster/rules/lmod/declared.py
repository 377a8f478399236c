"""What is wrong with declared modules, in one line each, before any node is asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

REQUIRED = ("name", "version", "title", "owner_role")
TEXTS = ("help", "retired", "deprecated", "family", "settings_file")
FLAGS = ("default", "hidden")
LISTS = ("conflicts", "requires", "roots", "extensions")
VARIABLES = ("set", "prepend", "append")
FIELDS = (*REQUIRED, *TEXTS, *FLAGS, *LISTS, *VARIABLES)

LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
MODULE = re.compile(rf"{LABEL.pattern}(/{LABEL.pattern})?")
ROLE = re.compile(r"[a-z][a-z0-9_]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PATH = re.compile(r"/[^:\x00-\x1f\x7f]*")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
LINE = re.compile(r"[^\x00-\x1f\x7f]+")
BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")

# Lmod's own, and what no module may set without breaking every shell or the programs of other modules.
KEPT = re.compile(
    r"MODULEPATH|LOADEDMODULES|_LMFILES_|(LMOD|_ModuleTable|__LMOD)\w*|HOME|USER|SHELL|BASH_ENV|LD_PRELOAD"
)
SEARCHED = ("PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "MANPATH", "PYTHONPATH", "PKG_CONFIG_PATH")

Module = Mapping[str, Any]


def problems(modules: Sequence[Any]) -> list[str]:
    """Return a line for each fault; none for modules that can be written and loaded.

    `modules`: those of one role, an entry for each version; docs/modules.md has the fields. A line has the module and
    what would be right.
    """
    faults: list[str] = []
    for number, module in enumerate(modules):
        if not isinstance(module, Mapping):
            faults.append(f"module {number}: not a mapping; write name, version, title, ...")
            continue
        faults += [f"module {label(module) or number}: {words}" for words in _faults(module)]
    return [BREAKS.sub("?", line) for line in faults or _together(modules)]


def label(module: Module) -> str:
    """Return what users type, NAME/VERSION; nothing if there is no name."""
    return f"{module['name']}/{module.get('version', '')}" if module.get("name") else ""


def visible(modules: Sequence[Module]) -> list[Module]:
    """Return those that `module avail` lists."""
    return [module for module in modules if not module.get("hidden") and not module.get("retired")]


def _faults(module: Module) -> Iterator[str]:
    missing = [field for field in REQUIRED if module.get(field) in (None, "")]
    if missing:
        yield f"no {', '.join(missing)}"
    for field in module:
        if field not in FIELDS:
            yield f"{field} is not a field; there are {', '.join(FIELDS)}"
    if missing:
        return
    yield from _identity(module)
    yield from _texts(module)
    yield from _lists(module)
    yield from _variables(module)


def _identity(module: Module) -> Iterator[str]:
    for field in ("name", "version"):
        value = module[field]
        if not isinstance(value, str):
            yield f"{field} is the number {value}; put it in quotes, or 1.10 is 1.1"
        elif not LABEL.fullmatch(value) or value.endswith(".lua") or value == "default":
            words = "letters, digits, . _ + -, a letter or digit first, not default, and not .lua at the end"
            yield f'{field} is "{value}"; write {words}'
    if not (isinstance(module["owner_role"], str) and ROLE.fullmatch(module["owner_role"])):
        yield f"owner_role is {module['owner_role']}; write the name of a role"
    for field in FLAGS:
        if not isinstance(module.get(field, False), bool):
            yield f"{field} is {module[field]}; write true or false"
    if module.get("default") is True and (module.get("retired") or module.get("hidden") is True):
        yield f"is {'retired' if module.get('retired') else 'hidden'} and the default; make another version the default"


def _texts(module: Module) -> Iterator[str]:
    for field in ("title", *TEXTS):
        value = module.get(field, "")
        if not isinstance(value, str):
            yield f"{field} is not text"
        elif CONTROL.search(value):
            yield f"{field} has a control character"
    if isinstance(module["title"], str) and "\n" in module["title"].strip():
        yield "title has several lines; write one, and the rest as help"
    family = module.get("family", "")
    if family and isinstance(family, str) and not VARIABLE.fullmatch(family):
        yield f'family is "{family}"; write letters, digits and _: Lmod makes the name of a variable of it'
    settings = module.get("settings_file", "")
    if settings and isinstance(settings, str) and not PATH.fullmatch(settings):
        yield f"settings_file is {settings}; write an absolute path"


def _lists(module: Module) -> Iterator[str]:
    for field, form, words in (
        ("conflicts", MODULE, "names of modules, NAME or NAME/VERSION"),
        ("requires", MODULE, "names of modules, NAME or NAME/VERSION"),
        ("roots", PATH, "absolute paths"),
        ("extensions", MODULE, "what is in it, NAME or NAME/VERSION"),
    ):
        yield from _entries(field, module.get(field, []), form, words)
    for field in ("conflicts", "requires"):
        own = (module["name"], label(module))
        if isinstance(module.get(field), (list, tuple)) and any(str(entry) in own for entry in module[field]):
            yield f"{field} names the module itself; versions of one name replace each other anyway"
    both = _texts_of(module.get("conflicts")) & _texts_of(module.get("requires"))
    if both:
        yield f"requires and conflicts with {', '.join(sorted(both))}"


def _texts_of(value: Any) -> set[str]:
    return {entry for entry in value if isinstance(entry, str)} if isinstance(value, (list, tuple)) else set()


def _entries(field: str, value: Any, form: re.Pattern[str], words: str) -> Iterator[str]:
    if not isinstance(value, (list, tuple)):
        yield f"{field} is not a list; write [{words}]"
        return
    for entry in value:
        if not (isinstance(entry, str) and form.fullmatch(entry)):
            yield f"{field} has {entry!r}; write {words}"


def _variables(module: Module) -> Iterator[str]:
    checks: dict[str, Callable[[str, Any], Iterator[str]]] = {"set": _value, "prepend": _paths, "append": _paths}
    named: list[str] = []
    for field in VARIABLES:
        declared = module.get(field, {})
        if not isinstance(declared, Mapping):
            yield f"{field} is not a mapping; write {{VARIABLE: ...}}"
            continue
        for variable, value in declared.items():
            if not (isinstance(variable, str) and VARIABLE.fullmatch(variable)):
                yield f"{field} names {variable!r}, which is not a name of a variable"
            elif KEPT.fullmatch(variable):
                yield f"{field} names {variable}, which no module may change"
            elif field == "set" and variable in SEARCHED:
                yield f"set names {variable}, in which users have more than one path; use prepend"
            else:
                named.append(f"{variable} {'is set' if field == 'set' else 'gets paths'}")
                yield from checks[field](f"{field}.{variable}", value)
    for variable in sorted({text.split()[0] for text in named}):
        if {f"{variable} is set", f"{variable} gets paths"} <= set(named):
            yield f"{variable} is in set, and in prepend or append; the one undoes the other"


def _value(field: str, value: Any) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{field} is {value!r}; write text, numbers in quotes"
    elif not LINE.fullmatch(value):
        yield f"{field} is empty or has a control character"


def _paths(field: str, value: Any) -> Iterator[str]:
    if isinstance(value, (list, tuple)) and not value:
        yield f"{field} is empty"
    yield from _entries(field, value, PATH, "absolute paths without :, one an entry")


def _together(modules: Sequence[Module]) -> Iterator[str]:
    for name, times in Counter(label(module) for module in modules).items():
        if times > 1:
            yield f"module {name} is declared {times} times"
    for name in dict.fromkeys(module["name"] for module in modules):
        ours = [module for module in modules if module["name"] == name]
        seen = visible(ours)
        defaults = [module["version"] for module in seen if module.get("default")]
        if len(defaults) > 1:
            yield f"{name} has the defaults {', '.join(defaults)}; one is right"
        elif len(seen) > 1 and not defaults:
            versions = ", ".join(module["version"] for module in seen)
            yield f"{name} has no default; write `default: true` for one of {versions}"
        roles = sorted({module["owner_role"] for module in ours})
        if len(roles) > 1:
            yield f"{name} has several roles as owner_role: {', '.join(roles)}; one owns a name"
