#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Set attributes of a Spectrum Scale cluster and of classes of its nodes."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_scale_config
short_description: Set attributes of a Spectrum Scale cluster, by class of nodes
description:
  - Runs on a node that may change the cluster. Compares what C(mmlsconfig) shows with what is declared, class by class.
    Calls C(mmchconfig) once for each list of nodes and flag, never for what is right already.
  - Uses C(-i) for attributes that a running daemon takes over at once. The others wait for the next start of each
    node's daemon, and are returned in C(pending). No daemon is ever restarted here.
  - If somebody has set a declared attribute (of the cluster or of a class) on single nodes of a class, those nodes get
    the declared value again. Nodes of no class are left alone. So are attributes that nobody declared; C(by_hand) names
    those that nodes of a class have of their own.
  - Nodes of a class that are not in the cluster (yet) are left out, and returned in C(missing).
  - If somebody else has set a value that would be overwritten, you see it first. The module fails, in check mode as
    well, and changes nothing. The failure shows all such values and a code; I(confirm) with this code accepts exactly
    them. Values that an earlier rollout declared are ours; C(/var/lib/hal/spectrum_scale/set.json) remembers them.
  - Fails when a call of C(mmchconfig) takes too long, but does not stop it. While one runs, the module fails at once.
options:
  attributes:
    description: Attributes of the whole cluster, by name. Null sets the default again (C(DEFAULT)).
    type: dict
    default: {}
  classes:
    description: By name of the class, C(nodes) (a list of names) and their C(attributes). A node is in one class.
    type: dict
    default: {}
  addresses:
    description: By name of a node of I(classes), other addresses by which the cluster may know it.
    type: dict
    default: {}
  report_only:
    description: Classes of I(classes) that are only compared. What differs is in C(differences).
    type: list
    elements: str
    default: []
  unchecked:
    description: Attributes to set though this module does not know them.
    type: list
    elements: str
    default: []
  confirm:
    description: The code that an earlier run showed, to overwrite what it showed.
    type: str
    default: ""
  added:
    description: Whether the nodes of I(classes) were just added to the cluster. Then nobody has set anything there.
    type: bool
    default: false
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says what would be set.}
  diff_mode: {support: full, description: Shows each attribute before and after.}
"""

EXAMPLES = r"""
- name: Tune the cluster and its clients
  hal_scale_config:
    attributes: {autoload: true}
    classes:
      clients:
        nodes: [hal01, hal02]
        attributes: {pagepool: 4G, maxFilesToCache: 128K, verbsPorts: null}
"""

RETURN = r"""
changes:
  description: By class, what was set, one line each. The cluster itself is C(cluster).
  type: dict
  returned: always
pending:
  description: By class, the lines that wait for the next start of the daemon.
  type: dict
  returned: always
differences:
  description: By class of I(report_only), what is not as declared.
  type: dict
  returned: always
missing:
  description: Nodes of classes that are not in the cluster.
  type: list
  elements: str
  returned: always
by_hand:
  description: What nodes of a class have, and nobody declared.
  type: list
  elements: str
  returned: always
others:
  description: What somebody else had set and would be overwritten, or was, one line each.
  type: list
  elements: str
  returned: always
calls:
  description: The calls of mmchconfig.
  type: list
  elements: str
  returned: always
"""

import json
import os

from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.scale.ask import ScaleError, ask, change, refuse_beside
from ansible.module_utils.hal_node.scale.plan import (
    Configured, by_hand, calls, changes, declared_values, in_the_way)
from ansible.module_utils.hal_node.scale.rules import problem
from ansible.module_utils.hal_node.scale.text import ScaleTextError, classes, configured, member, members
from ansible.module_utils.hal_node.scale.values import written
from ansible.module_utils.hal_node.storage.plan import code_of

MYPY = False
if MYPY:
    from typing import Any, Iterable, Mapping  # noqa: F401  in comments

    from ansible.module_utils.hal_node.scale.plan import Change  # noqa: F401  in comments

RECORD = "/var/lib/hal/spectrum_scale/set.json"


def refuse(module):
    # type: (Any) -> None
    """End the module when something is declared that cannot be meant."""
    params = module.params
    tables = [("", params["attributes"])]
    seen = {}  # type: dict[str, str]
    for name, declared in sorted(params["classes"].items()):
        if set(declared) != {"nodes", "attributes"}:
            module.fail_json(msg="class %s: write nodes and attributes, not %s" % (name, ", ".join(sorted(declared))))
        tables.append(("class %s: " % name, declared["attributes"]))
        for node in declared["nodes"]:
            if node in seen:
                module.fail_json(msg="%s is in the classes %s and %s; leave it in one" % (node, seen[node], name))
            seen[node] = name
    wrong = [where + words for where, table in tables for attribute, value in sorted(table.items())
             for words in [problem(attribute, value, params["unchecked"])] if words]
    wrong += ["report_only: there is no class %s" % name for name in params["report_only"]
              if name not in params["classes"]]
    if wrong:
        module.fail_json(msg="; ".join(wrong))


def of_members(every, addresses, known):
    # type: (Mapping[str, dict[str, Any]], Mapping[str, Iterable[str]], dict[str, str]) -> tuple[dict[str, dict[str, Any]], list[str]]
    """Return (the classes with those nodes that are in the cluster, as it calls them, the names of the others)."""
    present, missing = {}, []
    for name, declared in every.items():
        called = {node: member(known, node, addresses.get(node, ())) for node in declared["nodes"]}
        present[name] = dict(declared, nodes=[called[node] for node in declared["nodes"] if called[node]])
        missing += [node for node in declared["nodes"] if not called[node]]
    return present, sorted(missing)


def recorded():
    # type: () -> dict[str, dict[str, str]]
    """Return what earlier rollouts have declared; nothing where that cannot be read: then everything is somebody's."""
    try:
        with open(RECORD) as stream:
            declared = json.load(stream)
    except (IOError, OSError, ValueError):
        return {}
    return declared if isinstance(declared, dict) else {}


def remember(declared, added):
    # type: (dict[str, dict[str, str]], bool) -> None
    """Write down what is declared, beside what is there for other nodes when these were just added."""
    before = recorded()
    wanted = dict(before, **{node: declared[node] for node in declared if node}) if added else declared
    if wanted == before:
        return
    if not os.path.isdir(os.path.dirname(RECORD)):
        os.makedirs(os.path.dirname(RECORD), 0o700)
    with open(RECORD + ".new", "w") as stream:
        json.dump(wanted, stream, sort_keys=True)
    os.rename(RECORD + ".new", RECORD)


def refusal(others, confirm):
    # type: (list[str], str) -> str
    """Return why nothing is overwritten, "" where the code of exactly this was given."""
    code = code_of("mmchconfig", others)
    if not others or confirm.strip().lower() == code:
        return ""
    return "\n".join(
        ["These attributes were set by somebody else than this role, and would be overwritten:"]
        + ["  " + line for line in others]
        + ["Nothing was changed. Declare the values that are there; or accept exactly these:"
           " -e spectrum_scale_attributes_confirm=%s" % code])


def lines(changed):
    # type: (Iterable[Change]) -> dict[str, list[str]]
    """Return {class: lines}."""
    by_class = {}  # type: dict[str, list[str]]
    for difference in changed:
        by_class.setdefault(difference.name or "cluster", []).append(difference.line())
    return by_class


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "attributes": {"type": "dict", "default": {}},
            "classes": {"type": "dict", "default": {}},
            "addresses": {"type": "dict", "default": {}},
            "report_only": {"type": "list", "elements": "str", "default": []},
            "unchecked": {"type": "list", "elements": "str", "default": []},
            "confirm": {"type": "str", "default": ""},
            "added": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    refuse(module)
    attributes = module.params["attributes"]

    def look():
        # type: () -> Configured
        return Configured(configured(ask(["mmlsconfig", "-Y"])), classes(ask(["mmlsnodeclass", "--all"])), known)

    done, ran = [], []  # type: list[Change], list[str]

    def make(changed):
        # type: (list[Change]) -> None
        for argv in calls(changed):
            ran.append(" ".join(argv))
            if not module.check_mode:
                change(argv)
        done.extend(changed)

    try:
        refuse_beside("mmchconfig")
        known = members(ask(["mmlscluster", "-Y"]))
        every, missing = of_members(module.params["classes"], module.params["addresses"], known)
        watched = {name: every[name] for name in module.params["report_only"]}
        managed = {name: declared for name, declared in every.items() if name not in watched}
        now = look()
        of_cluster, of_classes = changes(now, attributes, managed)
        added = module.params["added"]
        others = [] if added else in_the_way(of_cluster + of_classes, now, managed, recorded())
        refused = refusal(others, module.params["confirm"])
        if refused:
            module.fail_json(msg=refused, others=others, changes={}, calls=[])
        make(of_cluster)
        if of_cluster and not module.check_mode:
            # A new value of the cluster may have taken away those of single nodes.
            now = look()
            of_classes = changes(now, attributes, managed)[1]
        make(of_classes)
        if not module.check_mode:
            remember(declared_values(attributes, managed), added)
        differences = lines(changes(now, {}, watched)[1])
    except (ScaleError, ScaleTextError, IOError, OSError) as error:
        module.fail_json(msg="%s" % error, changes=lines(done), calls=ran)
    module.exit_json(
        changed=bool(done), changes=lines(done), pending=lines([step for step in done if step.pending]),
        differences=differences, others=others, missing=missing, by_hand=by_hand(now, attributes, every), calls=ran,
        diff={"before": shown(done, False), "after": shown(done, True)})


def shown(changed, after):
    # type: (Iterable[Change], bool) -> str
    """Return a text for the diff."""
    return "".join("%s %s = %s\n" % (step.name or "cluster", step.attribute, written(step.value) if after else
                                     " and ".join(sorted(step.before)) or "DEFAULT") for step in changed)


if __name__ == "__main__":
    main()
