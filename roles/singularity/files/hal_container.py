# -*- coding: utf-8 -*-
"""hal-container: the images of the registry, and the ranges of users.

  list                        which images there are (anybody)
  show NAME                   where an image is from: definition, checksum, who built it (anybody)
  build NAME DEFINITION       build from a definition and publish it as NAME (root, on the node that installs software)
  retire NAME                 take an image away from users (root)
  verify                      read every image again and compare it with what was published (root)
  setup                       make the registry's folders (root)
  status                      what the audit asks, as JSON
  check-builder               whether nobody uses the account that builds images: a rollout asks before it makes it
  check-ids                   lines of /etc/subuid and /etc/subgid that touch a declared range

Exit status: 0 done, 1 refused or wrong (one line each), 2 wrong use. Python 2.7 and 3.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import signal
import sys
import time

from container_build import build, check_nobodys, end_builds, forget_stale
from container_common import Problem, check_name, in_words, read_json, text_of, write_json
from container_registry import Registry
from hal_node.lock import locked
from hal_node.printable import say, shown, write
from hal_node.subids import parse, problems, shadowed, taken_ids

CONFIG = "/etc/hal/containers.json"
LOCK = "/run/hal-container.lock"  # not in /run/lock, where all may write on some systems
FILES = {"/etc/subuid": "/etc/passwd", "/etc/subgid": "/etc/group"}
ROOTS = ("build", "retire", "verify", "setup")


def show_list(registry, _, __):
    """Print a table."""
    known = registry.versions()
    rows = [("IMAGE", "SIZE", "BUILT", "PATH")]
    for name in registry.images():
        status, version = registry.status_of(name), registry.version_of(name, known)
        if status is None:
            continue  # retired meanwhile
        built = time.strftime("%Y-%m-%d", time.gmtime(version["built_at"])) if version else "?"
        rows.append((name, in_words(status.st_size), built, registry.path(name)))
    if len(rows) == 1:
        say("no images in %s yet" % registry.root)
        return 0
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        say("  ".join([row[column].ljust(widths[column]) for column in range(3)] + [row[3]]))
    return 0


def show(registry, _, arguments):
    """Print what is known of an image."""
    name = arguments[0]
    if name not in registry.images():
        raise Problem("%s: no such image; hal-container list" % name)
    version = registry.version_of(name, registry.versions())
    if version is None:
        raise Problem("%s: nobody knows where it is from: it was not built by hal-container" % registry.path(name))
    built = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(version["built_at"]))
    say(registry.path(name))
    say("built %s by %s on %s with Singularity %s" % (
        built, version["built_by"], version["on"], version["singularity"]))
    say("sha256 %s" % version["sha256"])
    say("")
    for line in version["definition"].rstrip().split("\n"):
        write(shown(line, u"\t\\") + b"\n")
    return 0


def make(registry, settings, arguments):
    """Build and publish."""
    name, definition = arguments
    check_name(name)
    registry.setup()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, stopped)  # else what the build has started would go on
    with locked(LOCK, Problem, 0, "images"):
        path, older = build(settings, os.path.abspath(definition),
                            lambda built, version: registry.publish(name, built, version))
    say("published %s" % path)
    if older:
        say("what it was before is %s" % older)
    return 0


def stopped(number, _):
    """Leave, and clean up on the way."""
    raise Problem("stopped by signal %d" % number)


def retire(registry, _, arguments):
    """Take an image away."""
    with locked(LOCK, Problem, 0, "images"):
        say("%s is in %s now; remove it there when nobody misses it" % (arguments[0], registry.retire(arguments[0])))
    return 0


def verify(registry, settings, _):
    """Read all images, and keep what was found for `status`. Builds that were killed are cleared away, too."""
    if os.path.isdir(settings["build_dir"]):
        clear_away(settings)
    registry.check_there()
    started = int(time.time())  # what is published from now on may not have been read
    faults = registry.verify()
    write_json(settings["verified"], {"at": started, "wrong": faults}, 0o600)
    for name in sorted(faults):
        say("%s %s" % (registry.path(name), faults[name]), sys.stderr)
    return 1 if faults else 0


def clear_away(settings):
    """End and remove what killed builds left, unless a build is at work, which does that itself."""
    try:
        with locked(LOCK, Problem, 0, "images"):
            try:
                end_builds(settings)
            finally:
                forget_stale(settings["build_dir"])
    except Problem:
        return  # the next build says what it is


def setup(registry, _, __):
    """Make the folders, and say what was changed."""
    for line in registry.setup():
        say(line)
    return 0


def status(registry, settings, _):
    """Print what is wrong, as JSON: of each image as it stands there, and of its content as it was last read."""
    registry.check_there()
    known = registry.versions()
    verified = read_json(settings["verified"], {"at": 0, "wrong": {}}) if os.geteuid() == 0 else {"at": 0, "wrong": {}}
    wrong, names = {}, registry.images()
    for name, words in verified["wrong"].items():
        version = registry.version_of(name, known) if name in names else None
        if version and int(version["built_at"]) <= verified["at"]:  # not what somebody has published since
            wrong[name] = words
    for name in names:
        words = registry.wrong(name, known)
        if words:
            wrong[name] = words
    print(json.dumps({
        "images": names,
        "wrong": ["%s %s" % (registry.path(name), wrong[name]) for name in sorted(wrong)],
        "late": late(registry, known, verified["at"], int(settings["verify_max_days"])),
    }, sort_keys=True))
    return 0


def late(registry, known, verified_at, most_days):
    """Return in words that an image was not read for too long; nothing when all were. Publishing one reads it."""
    versions = [registry.version_of(name, known) for name in registry.images()]
    ages = [time.time() - max(verified_at, version["built_at"]) for version in versions if version]
    days = int(max(ages or [0]) / 86400)
    return "not read again for %d days" % days if days > most_days else ""


def check_builder(_, settings, __):
    """Refuse an account of somebody."""
    uids = [user["uid"] for user in settings["users"] if user["name"] == settings["build_user"]]
    check_nobodys(settings["build_user"], uids[0] if uids else None, settings["build_dir"])
    return 0


def check_ids(_, settings, __):
    """Print a line for each fault."""
    users, lines = settings["users"], []
    for path, accounts in sorted(FILES.items()):
        entries = parse(text_of(path))
        lines += problems(path, entries, users) + shadowed(path, entries, users)
        lines += taken_ids(accounts, text_of(accounts), users)
    for line in lines:
        say(line)
    return 0


COMMANDS = {"list": (show_list, 0), "show": (show, 1), "build": (make, 2), "retire": (retire, 1), "verify": (verify, 0),
            "setup": (setup, 0), "status": (status, 0), "check-builder": (check_builder, 0),
            "check-ids": (check_ids, 0)}


def main(arguments):
    """Run a command; return the exit status."""
    if not arguments or arguments[0] not in COMMANDS or arguments[0] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stdout if arguments[:1] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    function, wanted = COMMANDS[arguments[0]]
    if len(arguments) - 1 != wanted:
        print("hal-container %s takes %d words" % (arguments[0], wanted), file=sys.stderr)
        return 2
    try:
        if arguments[0] in ROOTS and os.geteuid() != 0:
            raise Problem("only root may do this; images of your own: singularity build --fakeroot")
        settings = read_json(CONFIG, None)
        if settings is None:
            raise Problem("%s is not there: roll the role out" % CONFIG)
        return function(Registry(settings["registry"], settings["mount"]), settings, arguments[1:])
    except Problem as problem:
        say("hal-container: %s" % problem, sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
