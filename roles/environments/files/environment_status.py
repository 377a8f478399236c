# -*- coding: utf-8 -*-
"""What an environment is like, seen from any node, and what its last verification said. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import os
import stat
import time

from environment_common import Problem, hidden, inside, link_of, load, one_line, record_of, run_theirs, some
from hal_node.text import native, text

DAY = 86400
ASK = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
LIMIT_SECONDS = 30


def wrong(env):
    """Return in words why the declared environment is not what users get here; "" when it is."""
    link = env["link"]
    if not os.path.lexists(link):
        return "%s is not there: it is not installed" % link
    target = link_of(link)
    if target is None:
        return "%s is not a link: somebody put something else there" % link
    prefix = os.path.join(os.path.dirname(link), target)
    if not os.path.isdir(prefix):
        return "%s leads to %s, which is not there" % (link, target)
    record = record_of(prefix)
    if record is None:
        return "%s leads to %s, whose installation was never finished" % (link, target)
    if record["digest"] != env["digest"]:
        return ("%s leads to %s, made from another lock file: the declared one has the digest %s"
                % (link, target, env["digest"]))
    return loose(os.path.dirname(prefix)) or unloadable(prefix) or faults(env, prefix)


def faults(env, prefix):
    """Return in words what is wrong with a prefix that is finished; "" when nothing is."""
    return loose(prefix) or loose(os.path.join(prefix, "bin")) or _packages(env, prefix) or python(env, prefix)


def unloadable(prefix):
    """Return in words why no module of it can be loaded; "" when it can."""
    path = hidden(prefix, "activate.lua")
    return "" if os.path.isfile(path) else "%s is not there: the module cannot be loaded" % path


def loose(path):
    """Return in words that others than root may write to a folder; "" when they may not."""
    try:
        status = os.stat(path)
    except (IOError, OSError) as error:
        return "%s cannot be read: %s" % (path, error.strerror)
    if status.st_uid not in (0, os.getuid()) or stat.S_IMODE(status.st_mode) & 0o022:
        return "%s can be written by others than root" % path
    return ""


def _packages(env, prefix):
    there = {name for name in inside(os.path.join(prefix, "conda-meta")) if name.endswith(".json")}
    locked = set(env["metas"])
    parts = ["%s %s" % (some([name[:-5] for name in sorted(names)]), words)
             for words, names in (("is missing", locked - there), ("is not in the lock file", there - locked)) if names]
    return "packages: " + "; ".join(parts) if parts else ""


def python(env, prefix):
    """Return in words why its Python does not answer as declared; "" when it does."""
    if not env["python"]:
        return ""
    program = os.path.join(prefix, "bin", "python")
    status, output, errors = run_theirs([program, "-B", "-E", "-S", "-c", ASK],
                                        {"PATH": "/usr/bin:/bin", "LANG": "C"}, LIMIT_SECONDS)
    said = native(text(output)).strip()
    if status != 0:
        return "%s does not run (%s): %s" % (program, status, one_line(errors, 200) or "nothing was said")
    if said != env["python"] and not said.startswith(env["python"] + "."):
        return "%s is Python %s, declared is %s" % (program, said, env["python"])
    return ""


def current(env):
    """Return the prefix that users get; None when there is none."""
    target = link_of(env["link"])
    prefix = os.path.join(os.path.dirname(env["link"]), target) if target else ""
    return prefix if target and os.path.isdir(prefix) else None


def verified(env):
    """Return in words what the last full verification found; "" when all was right."""
    prefix = current(env)
    if prefix is None:
        return "there is nothing to verify"
    noted = load(hidden(prefix, "verified.json"))
    return "%s; seen %s" % (noted["words"], noted["at"]) if noted and noted["words"] else ""


def late(env, max_days, now=None):
    """Return in words since when nothing was verified, if that is long ago; "" when it was lately."""
    prefix = current(env)
    noted = load(hidden(prefix, "verified.json")) if prefix else {"time": now or time.time()}
    # A time to come says nothing: a clock was wrong.
    days = ((now or time.time()) - noted["time"]) / DAY if noted else None
    if days is not None and -1 < days <= max_days:
        return ""
    since = "not since %s" % noted["at"] if noted else "never"
    return "%s: systemctl start hal-environment-verify.service, on the node that installs" % since


def of(declared, max_days):
    """Return {environments: [{id, wrong, verified, late}], at their places in the role's list}."""
    size = 1 + max([env["at"] for env in declared] or [-1])
    listed = [None] * size
    for env in declared:
        listed[env["at"]] = {"id": env["id"], "wrong": _said(wrong, env), "verified": _said(verified, env),
                            "late": _said(late, env, max_days)}
    return {"environments": listed}


def _said(ask, *arguments):
    try:
        return ask(*arguments)
    except Problem as problem:
        return "%s" % problem


def used(root, proc="/proc"):
    """Return the prefixes below root that processes of this node use: by their program, folder, or CONDA_PREFIX."""
    prefixes = set()
    # The kernel tells where links lead, CONDA_PREFIX tells the path as it was typed.
    starts = (root.rstrip("/") + "/", os.path.realpath(root).rstrip("/") + "/")
    for number in inside(proc):
        if not number.isdigit():
            continue
        words = []
        for name in ("exe", "cwd"):
            try:
                words.append(os.readlink(os.path.join(proc, number, name)))
            except (IOError, OSError):  # a kernel thread, or ended meanwhile
                pass
        try:
            with open(os.path.join(proc, number, "environ"), "rb") as stream:
                parts = stream.read().split(b"\0")
            words += [native(text(part))[len("CONDA_PREFIX="):] for part in parts if part.startswith(b"CONDA_PREFIX=")]
        except (IOError, OSError):
            pass
        for path in words:
            if path.startswith(starts):
                prefixes.add("/".join(os.path.realpath(path)[len(os.path.realpath(root)) + 1:].split("/")[:2]))
    return sorted(name for name in prefixes if name.count("/") == 1 and not name.startswith("."))
