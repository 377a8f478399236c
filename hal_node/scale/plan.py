# -*- coding: utf-8 -*-
"""Which calls of mmchconfig make a cluster's attributes the declared ones: the fewest that do.

Pure functions. Runs on nodes: Python 2.7 and 3.6 and later, standard library only.

mmlsconfig has a row for each value that an attribute has, with the nodes that have it instead of the cluster's. Nodes
are compared as sets, a whole list at once: rows of 500 attributes with the same 1,000 nodes have the same text.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .rules import MM, NOW, RESTART, applies, name_of
from .text import member, short
from .values import DEFAULT, same, written

MYPY = False
if MYPY:
    from typing import Any, Iterable, Iterator  # noqa: F401  in comments

CLUSTER = ""
# What a cluster has before anybody has set anything (IBM Docs, mmcrcluster: -A is not the default).
INITIAL = {"autoload": "no"}


class Change(object):
    """One attribute that gets another value, or its default, on some nodes or in the whole cluster."""

    def __init__(self, name, attribute, nodes, value, before):
        # type: (str, str, frozenset[str] | None, Any, Iterable[str]) -> None
        """`name`: of the class; `nodes`: None for the cluster; `before`: the values that are there now."""
        self.name, self.attribute, self.nodes, self.value, self.before = name, attribute, nodes, value, before

    def line(self):
        # type: () -> str
        """Return the change in words."""
        where = "" if self.nodes is None else " on %s" % ",".join(sorted(self.nodes))
        return "%s%s: %s instead of %s" % (
            self.attribute, where, written(self.value), " and ".join(sorted(self.before)) or "the default")

    @property
    def declared(self):
        # type: () -> str
        """The declared value, as mmchconfig takes it."""
        return written(self.value)

    @property
    def pending(self):
        # type: () -> bool
        """Whether only the next start of the daemon brings it into effect."""
        return applies(self.attribute) not in (NOW, MM)


class Configured(object):
    """What mmlsconfig shows. A node's own value counts before that of a class of Scale's, then comes the cluster's."""

    def __init__(self, rows, classes, known=None):
        # type: (Iterable[tuple[str, str, str]], dict[str, frozenset[str]], dict[str, str] | None) -> None
        """`rows`, `classes`, `known`: of configured(), classes() and members() of text.py."""
        self.cluster = {}  # type: dict[str, str]
        self.own, self.classes = {}, {}  # type: dict[str, list[Any]], dict[str, list[Any]]
        self.attributes, lists = set(), {}  # type: set[str], dict[str, tuple[frozenset[str], frozenset[str]]]
        for attribute, value, text in rows:
            attribute = attribute.lower()
            self.attributes.add(attribute)
            if not text:
                self.cluster[attribute] = value
                continue
            if text not in lists:
                lists[text] = split(text, classes, known or {})
            nodes, of_classes = lists[text]
            if nodes:
                self.own.setdefault(attribute, []).append((value, nodes))
            if of_classes:
                self.classes.setdefault(attribute, []).append((value, of_classes))

    def of_cluster(self, attribute):
        # type: (str) -> str | None
        """Return the cluster's value, None where it is the default."""
        return self.cluster.get(attribute.lower())

    def of_nodes(self, attribute):
        # type: (str) -> list[tuple[str, frozenset[str]]]
        """Return [(value, nodes)] of what nodes have of their own."""
        return self.own.get(attribute.lower(), [])

    def of_classes(self, attribute):
        # type: (str) -> list[tuple[str, frozenset[str]]]
        """Return [(value, nodes)] of what nodes have by a class of Scale's."""
        values = self.classes.get(attribute.lower())
        if not values:
            return []
        own = frozenset(node for _value, nodes in self.of_nodes(attribute) for node in nodes)
        return [(value, nodes - own) for value, nodes in values]


def split(text, classes, known):
    # type: (str, dict[str, frozenset[str]], dict[str, str]) -> tuple[frozenset[str], frozenset[str]]
    """Return (nodes, nodes of classes) of a list of nodes and classes, by the names that `known` has for them."""
    nodes, of_classes = set(), set()  # type: set[str], set[str]
    for name in text.replace(",", " ").split():
        if name in classes:
            of_classes |= classes[name]
        else:
            nodes.add(name)
    called = [frozenset(member(known, name) or short(name) for name in names) for names in (nodes, of_classes)]
    return called[0], called[1]


def changes(configured, attributes, classes):
    # type: (Configured, dict[str, Any], dict[str, dict[str, Any]]) -> tuple[list[Change], list[Change]]
    """Return (changes of the cluster, changes of classes) that are needed.

    `attributes`: the cluster's; `classes`: {class: {"nodes": [...], "attributes": {...}}}; null is the default. An
    attribute of the cluster that somebody set on nodes of a class is withdrawn there; on other nodes it is left alone.
    """
    cluster = []
    for attribute in sorted(attributes):
        value, now = attributes[attribute], configured.of_cluster(attribute)
        if now is None and value is not None or now is not None and (value is None or not same(value, now)):
            cluster.append(Change(CLUSTER, attribute, None, value, [] if now is None else [now]))
    of_classes = []
    for name in sorted(classes):
        nodes = frozenset(classes[name]["nodes"])
        own = classes[name]["attributes"]
        for attribute in sorted(own):
            of_classes.extend(of_class(configured, name, nodes, attribute, own[attribute]))
        declared = {other.lower() for other in own}
        for attribute in sorted(attributes):
            if attribute.lower() not in declared:
                of_classes.extend(of_class(configured, name, nodes, attribute, None))
    return cluster, of_classes


def of_class(configured, name, nodes, attribute, value):
    # type: (Configured, str, frozenset[str], str, Any) -> list[Change]
    """Return the changes of one attribute on the nodes of a class: at most one.

    What nodes have by a class of Scale's is theirs as well; it cannot be withdrawn from them, only be overruled.
    """
    wrong, before, right = set(), set(), set()  # type: set[str], set[str], set[str]
    for now, where in configured.of_nodes(attribute) + (configured.of_classes(attribute) if value is not None else []):
        hit = nodes if where == nodes else nodes & where
        if not hit:
            continue
        if value is not None and same(value, now):
            right |= hit
        else:
            wrong |= hit
            before.add(now)
    if value is not None:
        unset = nodes - right - wrong
        if unset:
            wrong |= unset
            before.add(configured.of_cluster(attribute) or DEFAULT)
    return [Change(name, attribute, frozenset(wrong), value, before)] if wrong else []


def declared_values(attributes, classes):
    # type: (dict[str, Any], dict[str, dict[str, Any]]) -> dict[str, dict[str, str]]
    """Return {node: {attribute in lower case: declared value}} of all that is set; the cluster is ""."""
    values = {CLUSTER: {name.lower(): written(attributes[name]) for name in attributes}}
    for node_class in classes.values():
        own = {name.lower(): written(node_class["attributes"][name]) for name in node_class["attributes"]}
        values.update((node, own) for node in node_class["nodes"])
    return values


def in_the_way(changed, configured, classes, record):
    # type: (Iterable[Change], Configured, dict[str, dict[str, Any]], dict[str, dict[str, str]]) -> list[str]
    """Return a line for each value that would be overwritten and that somebody else has set.

    `record`: declared_values() of an earlier rollout; a value of these is ours, and so is what nobody has set. A value
    of the cluster counts where nodes of a class would get another one, and values of nodes in no class where the
    cluster would: mmchconfig without nodes may take those away.
    """
    lines = []
    for change in changed:
        by_value = {}  # type: dict[str, set[str]]
        for node, value in values_of_others(change, configured, classes, record):
            by_value.setdefault(value, set()).add(node)
        lines += ["%s%s: %s instead of %s" % (
            change.attribute, on(nodes), written(change.value), value) for value, nodes in by_value.items()]
    return sorted(lines)


def on(nodes):
    # type: (set[str]) -> str
    """Return nodes in words, "" for the cluster."""
    return "" if nodes == {CLUSTER} else " on %s" % ",".join(sorted(node or "the cluster" for node in nodes))


def values_of_others(change, configured, classes, record):
    # type: (Change, Configured, dict[str, dict[str, Any]], dict[str, dict[str, str]]) -> Iterator[tuple[str, str]]
    """Yield (node or CLUSTER, value) of what a change overwrites and somebody else has set."""
    attribute = change.attribute.lower()
    cluster = configured.of_cluster(attribute) or DEFAULT
    is_theirs = not same(INITIAL.get(attribute, DEFAULT), cluster) and not ours(record, CLUSTER, attribute, cluster)
    own = {node: value for value, nodes in configured.of_classes(attribute) + configured.of_nodes(attribute)
           for node in nodes}
    if change.nodes is None:
        of_classes = {node for node_class in classes.values() for node in node_class["nodes"]}
        overwritten = {node: own[node] for node in own if node not in of_classes and not same(own[node], change.value)}
        if is_theirs:
            overwritten[CLUSTER] = cluster
    else:
        overwritten = {node: own.get(node, cluster) for node in change.nodes if node in own or is_theirs}
    for node, value in overwritten.items():
        if value != DEFAULT and not ours(record, node, attribute, value):
            yield node, value


def ours(record, node, attribute, value):
    # type: (dict[str, dict[str, str]], str, str, str) -> bool
    """Return whether an earlier rollout has set this."""
    return attribute in record.get(node, {}) and same(record[node][attribute], value)


def calls(changed):
    # type: (Iterable[Change]) -> list[list[str]]
    """Return the argument lists of mmchconfig, one for each list of nodes and flag."""
    folded = {}  # type: dict[tuple[frozenset[str] | None, bool], dict[str, str]]
    for change in changed:
        key = (change.nodes, applies(change.attribute) == NOW)
        folded.setdefault(key, {})[change.attribute] = written(change.value)
    argvs = []
    for (nodes, at_once), settings in sorted(folded.items(), key=lambda pair: (sorted(pair[0][0] or ()), pair[0][1])):
        argv = ["mmchconfig", ",".join("%s=%s" % pair for pair in sorted(settings.items()))]
        argv += ["-i"] if at_once else []
        argv += ["-N", ",".join(sorted(nodes))] if nodes is not None else []
        argvs.append(argv)
    return argvs


def by_hand(configured, attributes, classes):
    # type: (Configured, Iterable[str], dict[str, dict[str, Any]]) -> list[str]
    """Return a line for each attribute that nobody declared and that nodes of a class have of their own."""
    known = frozenset(node for node_class in classes.values() for node in node_class["nodes"])
    declared = {name.lower() for name in attributes}
    for node_class in classes.values():
        declared |= {name.lower() for name in node_class["attributes"]}
    lines = []
    for attribute in sorted(configured.attributes - declared):
        for value, nodes in configured.of_nodes(attribute):
            if nodes & known:
                lines.append("%s is %s on %s, which nobody declared" % (
                    name_of(attribute) or attribute, value, ",".join(sorted(nodes & known))))
    return lines


def for_node(configured, node, nodes):
    # type: (Configured, str, frozenset[str]) -> dict[str, list[str]]
    """Return {attribute in lower case: values one of which this node should run with}; `nodes`: all of the cluster.

    A row may name a class that mmlsnodeclass does not list, one of Scale's built-in ones: then its value is as good as
    the cluster's.
    """
    wanted = {}
    for attribute in configured.attributes:
        own = configured.of_nodes(attribute)
        values = [value for value, where in own if node in where]
        values = values or [value for value, where in configured.of_classes(attribute) if node in where]
        if not values:
            values = [value for value, where in own if where - nodes]
            if attribute in configured.cluster:
                values.append(configured.cluster[attribute])
        if values:
            wanted[attribute] = values
    return wanted


def not_effective(configured, running, node, nodes, declared):
    # type: (Configured, dict[str, str], str, frozenset[str], Iterable[str]) -> dict[str, str]
    """Return {"NAME: configured VALUE": value that runs} for declared attributes that this node's daemon has otherwise.

    What nobody declared is left alone: the daemon adjusts some attributes by itself.
    """
    differing, wanted = {}, for_node(configured, node, nodes)
    for name in declared:
        values, value = wanted.get(name.lower(), []), running.get(name.lower())
        if values and value is not None and applies(name) != MM and not any(same(right, value) for right in values):
            differing["%s: configured %s" % (name, " or ".join(sorted(values)))] = value
    return differing


def needs_restart(line):
    # type: (str) -> bool
    """Return whether a restart of the daemon is what a line of not_effective() waits for."""
    return applies(line.split(":")[0]) == RESTART
