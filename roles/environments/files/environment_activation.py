# -*- coding: utf-8 -*-
"""What activating an environment sets, recorded once: its scripts run in a clean bash, and a modulefile does the same.

conda's own `activate` is a function of bash; what it sets is CONDA_PREFIX, CONDA_DEFAULT_ENV and PATH, then it runs
etc/conda/activate.d/*.sh (conda's documentation, "Managing environments"). A modulefile can set and prepend in every
shell, and take it back; functions and aliases of these scripts stay behind. Python 2.7 and 3.
"""

from __future__ import absolute_import, division, print_function

import os

from environment_common import Problem, hidden, inside, one_line, replace, run_theirs, save
from hal_node.text import native, text

# Lists of folders. What a script puts before or after what is there is prepended or appended, not set.
LISTS = ("PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "PYTHONPATH",
         "MANPATH", "INFOPATH", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "XDG_DATA_DIRS", "PERL5LIB", "CLASSPATH")
MARK = "/hal-environment-was-here"
# Bash's own, and conda's counters: a user's own conda would take itself for active.
IGNORED = ("_", "SHLVL", "PWD", "OLDPWD", "CONDA_SHLVL", "CONDA_PROMPT_MODIFIER", "BASH_ENV")
LIMIT_SECONDS = 120
SCRIPT = """
for file in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do
    [ -e "$file" ] || continue
    . "$file" || { echo "$file: status $?" >&2; exit 1; }
done >&2
exec env -0
"""


def record(prefix, label):
    """Write what activation sets, as activate.json and activate.lua; return it."""
    base = {"HOME": "/", "LANG": "C", "PATH": "/usr/bin:/bin"}
    own = {"CONDA_PREFIX": prefix, "CONDA_DEFAULT_ENV": label}
    marked = dict.fromkeys(LISTS, MARK)
    marked["PATH"] = base["PATH"] + ":" + MARK
    plain = _after(prefix, dict(base, **own))
    beside = _after(prefix, dict(dict(base, **own), **marked))
    changes = {"set": dict(own), "prepend": {}, "append": {}}
    for name in sorted(set(plain) | set(beside)):
        if name not in IGNORED and name not in base and name not in LISTS and plain.get(name) is not None:
            changes["set"][name] = plain[name]
    for name in LISTS:
        value = beside.get(name, "")
        parts = [part for part in value.split(":") if part]
        if MARK in parts:
            at = parts.index(MARK)
            before = [part for part in parts[:at] if part not in ("/usr/bin", "/bin")]
            if before:
                changes["prepend"][name] = before
            if parts[at + 1:]:
                changes["append"][name] = parts[at + 1:]
            if not before and not parts[at + 1:] and name != "PATH" and plain.get(name):
                changes["set"][name] = plain[name]  # only where it was not set
        elif value:
            changes["set"][name] = value
    for name, value in sorted(changes["set"].items()):
        if "\n" in value or "\0" in value:
            raise Problem("%s: activating it sets %s to several lines, which a modulefile cannot do" % (label, name))
    save(hidden(prefix, "activate.json"), changes)
    replace(hidden(prefix, "activate.lua"), lua(label, changes))
    return changes


def _after(prefix, environment):
    """Return the environment after activation, as bash has it then."""
    environment = dict(environment, PATH=os.path.join(prefix, "bin") + ":" + environment["PATH"])
    shell = ["/bin/bash", "--noprofile", "--norc", "-c", SCRIPT]
    status, output, errors = run_theirs(shell, environment, LIMIT_SECONDS)
    if status != 0:
        raise Problem("activating it failed (%s): %s" % (status, one_line(errors) or "nothing was said"))
    pairs = (native(text(part)).partition("=") for part in output.split(b"\0") if part)
    return {name: value for name, _, value in pairs}


def scripts(prefix):
    """Return the names of its activation scripts."""
    return inside(os.path.join(prefix, "etc", "conda", "activate.d"))


def lua(label, changes):
    """Return the Lua file that a modulefile reads: only calls with literal strings."""
    lines = ["-- Written by hal-environment: what activating %s sets. Changes made here are lost." % label]
    lines += ["setenv(%s, %s)" % (quoted(name), quoted(value)) for name, value in sorted(changes["set"].items())]
    for call, kind in (("prepend_path", "prepend"), ("append_path", "append")):
        for name, folders in sorted(changes[kind].items()):
            ordered = reversed(folders) if kind == "prepend" else folders
            lines += ["%s(%s, %s)" % (call, quoted(name), quoted(folder)) for folder in ordered]
    return "\n".join(lines) + "\n"


def quoted(value):
    """Return a Lua string."""
    return '"%s"' % value.replace("\\", "\\\\").replace('"', '\\"')
