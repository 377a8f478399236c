# -*- coding: utf-8 -*-
"""hal-provision: what nodes boot and get, on the machine that serves them. Python 2.7 and 3.

Exit status: 0 done, 2 refused (one line on standard error).
"""

from __future__ import absolute_import, division, print_function

import argparse
import json
import sys
import time

import provision_http
import provision_images
import provision_store as store
import reimage_store
from provision_common import Place, Problem, as_account, clean, exit_status, standard_input, tell, text

SETTINGS = "/etc/hal/provision.json"


def _parser():
    parser = argparse.ArgumentParser(
        prog="hal-provision",
        description="What nodes boot over the network, their one-time tokens and first secrets, and images. A node"
                    " that nobody armed boots from its disk.")
    parser.add_argument("--settings", default=SETTINGS, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", help="serve nodes; the unit hal-provision runs this")
    for name, words in (("arm", "have a node boot what the order on standard input says"),
                        ("spool", "put the first secrets of a node there, from standard input")):
        commands.add_parser(name, help=words).add_argument("node", metavar="NODE")
    commands.add_parser("disarm", help="have nodes boot their disks").add_argument("node", metavar="NODE", nargs="+")
    asking = commands.add_parser("status", help="what is known of nodes, as JSON")
    asking.add_argument("node", metavar="NODE", nargs="*")
    images = commands.add_parser("images", help="published images, and what is wrong with them, as JSON")
    images.add_argument("--only-wrong", action="store_true", help="exit status 2 when one may not be installed")
    publishing = commands.add_parser("publish", help="check an image and show it to nodes")
    publishing.add_argument("folder", metavar="FOLDER")
    commands.add_parser("prune", help="remove old images; what nodes are armed with stays")
    return parser


def run(place, asked):
    """Do what the command line says; return what to print."""
    if asked.command == "serve":
        with as_account(place):  # whoever starts it
            provision_http.serve(place)
    elif asked.command == "arm":
        try:
            order = json.loads(text(standard_input().read()))
        except ValueError:
            raise Problem("%s: no order on standard input; JSON, as hal_cluster.provision.boot makes it" % asked.node)
        if not isinstance(order, dict):
            raise Problem("%s: no order on standard input; JSON, as hal_cluster.provision.boot makes it" % asked.node)
        if "reimage_revision" in order:
            with reimage_store.newest(place, asked.node, order["reimage_revision"]):
                store.arm(place, asked.node, order)
        else:
            store.arm(place, asked.node, order)
        return clean("%s: armed until %s: %s" % (asked.node, store.stamp(order["expires"]), order["what"]))
    elif asked.command == "spool":
        store.spool(place, asked.node, standard_input().read())
        return "%s: its secrets wait" % asked.node
    elif asked.command == "disarm":
        return _disarm(place, asked.node)
    elif asked.command == "status":
        return json.dumps(store.status(place, asked.node), indent=1, sort_keys=True)
    elif asked.command == "images":
        wrong = provision_images.wrong(place)
        if asked.only_wrong and wrong:
            raise Problem("\n".join(sorted(wrong.values())))
        return json.dumps({"images": provision_images.published(place), "wrong": wrong}, indent=1, sort_keys=True)
    elif asked.command == "publish":
        return clean("%s: published" % provision_images.publish(place, asked.folder))
    elif asked.command == "prune":
        return "\n".join(clean("%s: removed" % name) for name in provision_images.prune(place, time.time()))
    else:
        raise Problem("say what to do; hal-provision --help")
    return ""


def _disarm(place, names):
    """Disarm all that can be; then Problem, with a line for each that could not."""
    said, wrong = [], []
    for name in names:
        try:
            said.append(clean("%s: %s" % (name, store.disarm(place, name))))
        except Problem as problem:
            wrong.append("%s" % problem)
    if wrong:
        for line in said:
            tell(line)
        raise Problem("\n".join(wrong))
    return "\n".join(said)


def main(arguments=None):
    """Run the program and return its exit status."""
    asked = _parser().parse_args(arguments)
    return exit_status("hal-provision", lambda: run(Place(asked.settings), asked))


if __name__ == "__main__":
    sys.exit(main())
