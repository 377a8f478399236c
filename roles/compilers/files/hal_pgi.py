# -*- coding: utf-8 -*-
"""hal-pgi: PGI's compilers from their licensed archive to the shared tree, whole or not at all. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import argparse
import json
import os
import sys

import pgi_install
from hal_node.lock import locked
from pgi_tree import Problem, Table, undeclared

TABLE = "/etc/hal/compilers.json"


def _parser():
    parser = argparse.ArgumentParser(
        prog="hal-pgi",
        description="PGI's compilers in the shared tree. What exists is declared (compilers_pgi).")
    parser.add_argument("--table", default=TABLE, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, words in (
            ("status", "what is declared, and what is quickly seen to be wrong with it, as JSON"),
            ("verify", "read every file of what is declared again, and note what was found; minutes for each version"),
            ("install", "install what is declared and not there, and what is damaged; on the installer alone"),
            ("localrc", "have the compilers know this node's gcc"),
            ("prune", "erase what was installed and is not declared any more; on the installer alone")):
        subparser = commands.add_parser(name, help=words, description=words)
        if name not in ("status", "verify"):
            subparser.add_argument("--check", action="store_true", help="only say what would be done")
    return parser


def status(table):
    """Return what is known of each declared version, in its order, and what is there beside them."""
    return {
        "versions": [
            {"label": version.label, "wrong": version.wrong(), "verified": version.verified(), "late": version.late(),
             "repair": version.repair(), "localrc": version.localrc_wrong(), "place": version.place(version.current),
             "archive": version.archive,
             "missing_archive": bool(pgi_install.refusals(version)) and version.record() is None}
            for version in table.versions],
        "undeclared": undeclared(table),
    }


def run(table, asked):
    """Do what the command line says; return the exit status: 0, or 1 when something could not be done."""
    os.umask(0o022)
    if asked.command == "status":
        sys.stdout.write(json.dumps(status(table), indent=1, sort_keys=True) + "\n")
        return 0
    if asked.command in ("install", "prune", "verify") and not table.installer:
        raise Problem("this node does not install to the shared tree (service software_installer in the model)")
    if asked.command == "verify":
        return _verify(table)
    failed = []
    if asked.command == "install":
        for version in [version for version in table.versions if version.repair()]:
            if asked.check:
                why = pgi_install.refusals(version)
                _say("%s: would be installed, for %s%s" % (
                    version.label, version.repair(), "; but " + why if why else ""))
                continue
            failed += _try(pgi_install.install, version)
    elif asked.command == "localrc":
        for version in [version for version in table.versions
                        if version.localrc_wrong() and version.record() is not None]:
            if asked.check:
                _say("%s: would be told of this node, for %s" % (version.label, version.localrc_wrong()))
                continue
            failed += _try(pgi_install.localrc, version)
    else:
        for path in undeclared(table):
            if asked.check:
                _say("%s: would be removed" % path)
            else:
                pgi_install.remove(path, _say)
    for words in failed:
        sys.stderr.write("hal-pgi: %s\n" % words)
    return 1 if failed else 0


def _verify(table):
    code = 0
    if table.versions:
        table.need_mount()
    for version in table.versions:
        try:
            words = pgi_install.verify(version)
        except Problem as problem:
            words = str(problem)
        _say("%s: %s" % (version.label, words or "every file is as it was installed"))
        code = 1 if words else code
    return code


def _try(does, version):
    """One version's fault does not keep the others from being installed."""
    try:
        does(version, _say)
    except Problem as error:
        return [str(error)]
    return []


def _say(words):
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def main():
    """Run the program."""
    parser = _parser()
    asked = parser.parse_args()
    if not asked.command:
        parser.error("which command?")
    try:
        table = Table(asked.table)
        # verify reads what never changes; a rollout need not wait for it.
        if asked.command in ("status", "verify", "localrc") or asked.check:
            sys.exit(run(table, asked))
        # Two at once on this node: the second waits as long as an installer may take. Beside the table, which every
        # rollout may replace.
        with locked(asked.table + ".lock", Problem, table.timeout, "PGI"):
            sys.exit(run(table, asked))
    except (Problem, OSError, IOError) as error:
        sys.stderr.write("hal-pgi: %s\n" % error)
        sys.exit(1)


if __name__ == "__main__":
    main()
