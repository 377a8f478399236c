# -*- coding: utf-8 -*-
"""What a kind of resource is: how it is observed, how it is compared, and what else depends on the kind.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from ...expect.values import Unreadable, same, to_text

MYPY = False
if MYPY:
    from typing import Any, Collection, Dict, Tuple  # noqa: F401  in comments
    from ..observe import Survey  # noqa: F401
    #: What is declared, recorded or seen of a resource; also an entry of the record, which has these.
    Attributes = Dict[str, Any]
    #: What it is called, attribute, should, is, note.
    Difference = Tuple[str, str, Any, Any, str]

__metaclass__ = type

#: What an observation says beside attributes: never part of a record.
ASIDE = ('since', 'content', 'unhashed', 'near', 'sha1', 'sha1_keyed', 'public', 'plain')


def kind_of(resource):
    # type: (str) -> str
    return resource.partition(':')[0]


def name_of(resource):
    # type: (str) -> str
    return resource.partition(':')[2]


class Kind:
    """A kind of resource. A name that no other class has stands for one that nobody can look at."""

    #: What a difference of an attribute is called, if not `changed`.
    words = {}  # type: dict[str, str]
    #: Attributes that are compared only where they are declared.
    only_declared = ()  # type: tuple[str, ...]
    #: Attributes that a task does not put right in passing: they stay what they were even if it changed something.
    in_passing = ()  # type: tuple[str, ...]
    #: Whether a record keeps what is there, whatever was there before: only what is declared is compared, or a rollout
    #: accepts what it finds.
    as_seen = False
    #: Whether `state` says if it is there. Else it is another thing, and `absent` one more value of it.
    state_is_presence = True
    #: Whether it is the node's. What is in a database of the cluster is not: role `backup` saves it.
    of_the_node = True
    #: Whether there is more to it than the file in which it is: a value in force.
    in_force = False
    #: Whether giving a role back puts it back. Of all else what was there is shown, and put back by hand.
    comes_back = False

    def __init__(self, name):
        # type: (str) -> None
        self.name = name

    # ------------------------------------------------------------ observe
    def observe(self, entries, survey):
        # type: (list[Attributes], Survey) -> dict[str, Attributes | Unreadable]
        """Return {resource: {attributes} or Unreadable} of entries of this kind. Raises Unreadable for all of them."""
        return {entry['resource']: self._caught(entry, survey) for entry in entries}

    def _caught(self, entry, survey):
        # type: (Attributes, Survey) -> Attributes | Unreadable
        try:
            return self.read(name_of(entry['resource']), entry, survey)
        except Unreadable as error:
            return error

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        """Return the attributes of one. Raises Unreadable."""
        raise Unreadable('this version cannot look at resources of kind "%s"' % self.name)

    # ------------------------------------------------------------ compare
    def compare(self, recorded, declared, seen, epoch):
        # type: (Attributes, Attributes, Attributes, float) -> list[Difference]
        """Return [(what it is called, attribute, should, is, note)] of one. `epoch`: the node's clock. Pure."""
        gone = self.presence(recorded, declared, seen)
        return self.differing(recorded, declared, seen) if gone is None else gone

    def presence(self, recorded, declared, seen):
        # type: (Attributes, Attributes, Attributes) -> list[Difference] | None
        """Return the difference if one is gone, or should be; None if there is more to compare."""
        wanted, then, state = declared.get('state'), recorded.get('state'), seen.get('state')
        if not self.state_is_presence:
            wanted, then = 'present', 'absent' if then == 'absent' else 'present'
            state = 'absent' if state == 'absent' else 'present'
            if not recorded and not declared:
                wanted = None
        unwanted = wanted == 'absent' or (wanted is None and then == 'absent')
        if state == 'absent':
            return [] if unwanted else [('missing', 'state', 'present', 'absent', '')]
        return [('present', 'state', 'absent', 'present', '')] if unwanted else None

    def differing(self, recorded, declared, seen):
        # type: (Attributes, Attributes, Attributes) -> list[Difference]
        """Return the differences of one that is there."""
        return self.attributes(recorded, declared, seen)

    def attributes(self, recorded, declared, seen, leave=()):
        # type: (Attributes, Attributes, Attributes, Collection[str]) -> list[Difference]
        """Return differences of every attribute: as declared, else as recorded."""
        out = []
        for name in sorted((set(recorded) | set(seen) | set(declared)) - set(ASIDE) - {'state', 'file'} - set(leave)):
            if name in self.only_declared and name not in declared:
                continue
            is_now, word = seen.get(name), self.words.get(name, 'changed')
            known = name in seen or name in recorded or self.may_lack(name)
            if name in declared and known and not self.as_declared(name, declared[name], is_now):
                out.append((word, name, declared[name], is_now, ''))
            elif recorded.get('state') != 'absent' and recorded and not _as_recorded(recorded.get(name), is_now):
                out.append((word, name, recorded.get(name), is_now, ''))
        return out

    def as_declared(self, name, wanted, is_now):
        # type: (str, Any, Any) -> bool
        """Say whether an attribute is as declared."""
        return same(wanted, is_now)

    def may_lack(self, name):
        # type: (str) -> bool
        """Say whether an observation leaves out an attribute because the node has none: if declared, it is missing."""
        return False

    # ------------------------------------------------------------ record
    def lacked(self, name):
        # type: (str) -> bool
        """Say whether a record keeps that an attribute was missing."""
        return False

    def older(self, name, then, is_now, changed, managed):
        # type: (str, Any, Any, bool, Collection[str]) -> Any
        """Return the value to record of an attribute that was recorded before and is not declared.

        changed  whether the run changed it
        managed  every resource that is recorded, was, or is of the run
        """
        return then

    def merged(self, out, seen, before, declared, changed, plain):
        # type: (Attributes, Attributes, Attributes, Attributes, bool, str | None) -> Attributes
        """Return what to record: `out`, unless this kind has more to say of it.

        out      what is seen, with what was before of all that the run did not put right
        changed  whether the run changed it
        plain    the sha256 of a file that has a keyed hash
        """
        return out

    # ------------------------------------------------------------ where it is
    def path(self, name, declared):
        # type: (str, Attributes) -> str
        """Return the path of the file in which one is, '' for none."""
        return ''


def _as_recorded(then, is_now):
    # type: (Any, Any) -> bool
    """Say whether an attribute is exactly what it was; both are of one observer, so there is one spelling."""
    if isinstance(then, bool) or isinstance(is_now, bool):
        return then is is_now
    return bool(to_text(then) == to_text(is_now))
