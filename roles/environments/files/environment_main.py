# -*- coding: utf-8 -*-
"""hal-environment: install, verify and look at the environments that roles declare. Python 2.7 and 3.

Exit status: 0 all is right, 1 something is wrong, or could not be done; one line says what.
"""

from __future__ import absolute_import, division, print_function

import argparse
import json
import os
import sys

from environment_common import DECLARED, LOCK, SETTINGS, Problem, declared, owners, settings, there
from hal_node.lock import locked
from hal_node.printable import say, write
from hal_node.text import native


def main(argv=None):
    """Run one command; return the exit status."""
    parser = argparse.ArgumentParser(prog="hal-environment", description=__doc__.split("\n")[0])
    parser.add_argument("--settings", default=SETTINGS, help=argparse.SUPPRESS)
    parser.add_argument("--declared", default=DECLARED, help=argparse.SUPPRESS)
    parser.add_argument("--lock", default=LOCK, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command")
    commands.required = True
    command = commands.add_parser("status", help="what a role's environments are like, as JSON")
    command.add_argument("owner", help="the role")
    commands.add_parser("list", help="every declared environment, in words")
    command = commands.add_parser("verify", help="read environments again, every file; all of them when none is named")
    command.add_argument("ids", nargs="*", metavar="NAME/VERSION")
    commands.add_parser("used", help="prefixes that processes of this node use, one a line")
    command = commands.add_parser("apply", help="for Ansible: carry out the request on standard input")
    command.add_argument("--check", action="store_true", help="only say what would be done")
    arguments = parser.parse_args(argv)
    os.umask(0o022)
    try:
        return COMMANDS[arguments.command](arguments, settings(arguments.settings))
    except Problem as problem:
        say("hal-environment: %s" % problem, sys.stderr)
        return 1


def _status(arguments, chosen):
    import environment_status
    state = environment_status.of(declared(arguments.owner, arguments.declared), chosen["verify_max_days"])
    _give(state)
    return 0


def _give(data):
    """Print a line of JSON."""
    write(json.dumps(data, sort_keys=True).encode("ascii") + b"\n")


def _all(arguments):
    return [env for owner in owners(arguments.declared) for env in declared(owner, arguments.declared)]


def _list(arguments, chosen):
    import environment_status
    code = 0
    for env in _all(arguments):
        wrong = (environment_status.wrong(env) or environment_status.verified(env)
                 or environment_status.late(env, chosen["verify_max_days"]))
        say("%-28s %s" % (env["id"], wrong or "ready"))
        code = 1 if wrong else code
    return code


def _verify(arguments, chosen):
    from environment_install import verify
    there(chosen)
    chosen_ids = set(arguments.ids)
    envs = [env for env in _all(arguments) if not chosen_ids or env["id"] in chosen_ids]
    unknown = chosen_ids - {env["id"] for env in envs}
    if unknown:
        raise Problem("%s: not declared; declared are %s"
                      % (", ".join(sorted(unknown)), ", ".join(env["id"] for env in _all(arguments)) or "none"))
    code = 0
    for env in envs:
        try:
            with locked(arguments.lock, Problem, 0, "environments"):
                words = verify(env)
        except Problem as problem:
            words = "%s" % problem
        say("%s: %s" % (env["id"], words or "every file is as it was installed"))
        code = 1 if words else code
    return code


def _used(arguments, chosen):
    from environment_status import used
    for name in used(chosen["root"]):
        say(name)
    return 0


def _apply(arguments, chosen):
    """Print lines of progress, then the result as one line of JSON; problems as {"problem": ...}."""
    from environment_install import Installer
    request = native(json.load(getattr(sys.stdin, "buffer", sys.stdin)))
    installer = Installer(chosen, lambda words: say(words, sys.stderr), arguments.check)
    try:
        there(chosen)
        with locked(arguments.lock, Problem, 0, "environments"):
            done = installer.apply(request["environments"], request["owner"], request["remove_ok"], request["used"],
                                   request["told"])
    except Problem as problem:
        done = dict(installer.done, problem="%s" % problem)
    _give(done)
    return 1 if "problem" in done else 0


COMMANDS = {"status": _status, "list": _list, "verify": _verify, "used": _used, "apply": _apply}

if __name__ == "__main__":
    sys.exit(main())
