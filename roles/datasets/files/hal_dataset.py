# -*- coding: utf-8 -*-
"""hal-dataset: standard data sets from their source to the users, whole and right or not at all. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import argparse
import errno
import json
import os
import sys

import dataset_page
import dataset_stage as sets
from dataset_common import NotOurs, Problem, write
from hal_node.printable import say

TABLE = "/etc/hal/datasets.json"


def _parser():
    parser = argparse.ArgumentParser(
        prog="hal-dataset",
        description="Standard data sets: brought from their source, checked, shown to users read-only. A data set is"
                    " NAME/VERSION; NAME alone is its default version. What exists is declared (datasets_standard).")
    parser.add_argument("--table", default=TABLE, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name, words, dataset=True, several=False):
        subparser = commands.add_parser(name, help=words, description=words)
        if dataset:
            subparser.add_argument("dataset", metavar="NAME[/VERSION]", nargs="*" if several else None)
        return subparser

    command("list", "what there is", dataset=False)
    staging = command("stage", "bring it, check it, publish it; if interrupted, call it again")
    staging.add_argument("--no-publish", action="store_true", help="leave it hidden")
    command("publish", "show a staged version to users")
    command("default", "have NAME/default lead to the declared version")
    command("verify", "read published versions again, all of them when none is named", several=True)
    command("retire", "take a version that is declared as retired away from users; its data stay")
    removing = command("remove", "erase what is retired or half staged; shows what, and the code that it needs")
    removing.add_argument("--confirm", default="", metavar="CODE", help="the code that was shown")
    command("status", "what is known of a version, or of all, as JSON", several=True)
    command("setup", "make the folder of data sets, and the pages for users where they differ", dataset=False)
    return parser


def run(table, asked):
    """Do what the command line says; return the exit status."""
    os.umask(0o022)
    table.need_root(make=asked.command == "setup")
    if asked.command == "list":
        write(dataset_page.listing(table))
        return 0
    if asked.command == "status":
        if asked.dataset:
            known = sets.state_of(table, table.find(asked.dataset[0]))
        else:
            known = {"sets": [sets.state_of(table, dataset) for dataset in table.sets],
                     "undeclared": sets.undeclared(table), "foreign": table.foreign()}
        write(json.dumps(known, indent=1, sort_keys=True) + "\n")
        return 0
    table.need_own()
    table.take()
    if asked.command == "setup":
        for path in dataset_page.write(table):
            say("%s is written" % path)
        return 0
    if asked.command == "verify":
        os.nice(10)
        chosen = [table.find(label) for label in asked.dataset] or [
            dataset for dataset in table.sets if not dataset["retired"]]
        status = 1 if sets.verify(table, chosen) else 0
    elif asked.command == "default":
        status = sets.default(table, asked.dataset.partition("/")[0])
    elif asked.command == "stage":
        status = sets.stage(table, table.find(asked.dataset), publish_too=not asked.no_publish)
    elif asked.command == "remove":
        if "/" not in asked.dataset:
            raise Problem("what is erased is named in full: NAME/VERSION")
        status = sets.remove(table, table.find(asked.dataset), asked.confirm)
    else:
        status = {"publish": sets.publish, "retire": sets.retire}[asked.command](table, table.find(asked.dataset))
    dataset_page.write(table)
    return status or 0


def main(arguments):
    """Run; a Problem is one line and exit status 1, somebody else's folder 3."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if not asked.command:
        parser.error("a command is missing")  # Python 3 lets it pass
    try:
        return run(sets.Table(asked.table), asked)
    except Problem as error:
        say(error.args[0], sys.stderr)
        return 3 if isinstance(error, NotOurs) else 1
    except KeyboardInterrupt:
        say("interrupted; what has come is kept, and the next call goes on", sys.stderr)
    except (IOError, OSError) as error:
        if error.errno == errno.EPIPE:
            return 0
        words = "%s: %s" % (error.filename or "hal-dataset", error.strerror)
        say(words + ("; root may do this" if error.errno in (errno.EACCES, errno.EPERM) else ""), sys.stderr)
    return 1


if __name__ == "__main__":
    _status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status)  # at once: a thread may still wait for its server
