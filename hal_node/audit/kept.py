# -*- coding: utf-8 -*-
"""Compare what is kept of /etc and /boot with what they hold, and say what to keep after a run. Pure.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .changing import changes_itself
from .databases import PASSWD, WIDTHS, differing, taken_over
from .files import group_name, user_name
from .kinds.kind import kind_of, name_of
from .kinds.registry import kind_named
from .tree import UNREAD

MYPY = False
if MYPY:
    from typing import Any, Collection, Iterator  # noqa: F401  in comments
    from .kinds.kind import Difference  # noqa: F401
    from .tree import Tree  # noqa: F401

__metaclass__ = type

UNITS = '/etc/systemd/system/'
TYPES = {'f': 'file', 'd': 'directory', 'l': 'link', 'p': 'fifo', 's': 'socket', 'b': 'block', 'c': 'char'}


class Managed:
    """What entries of the record say of paths.

    whole    paths that an entry compares, with all that is in them
    outside  paths of which an entry compares all but the content
    within   {path: [resources that are lines of it]}
    units    units, and so the links by which they are enabled, masked and called
    """

    def __init__(self, entries):
        # type: (list[dict[str, Any]]) -> None
        self.whole, self.outside = set(), set()  # type: tuple[set[str], set[str]]
        self.units, self.users = set(), set()  # type: tuple[set[str], set[str]]
        self.within = {}  # type: dict[str, list[str]]
        for entry in entries:
            kind, name = kind_of(entry['resource']), name_of(entry['resource'])
            declared = entry.get('declared') or {}
            if kind == 'file':
                (self.outside if declared.get('content') is False else self.whole).add(name)
            elif kind == 'service':
                self.units.add(name)
            elif kind == 'user':
                self.users.add(name)
            path = kind_named(kind).path(name, declared)
            if path and (kind != 'file' or name in self.outside):
                self.within.setdefault(path, []).append(entry['resource'])

    def links(self, path, line):
        # type: (str, str) -> bool
        """Say whether a path is a link of a unit that has an entry."""
        return path.startswith(UNITS) and line.startswith('l ') and path.rpartition('/')[2] in self.units


class Seen:
    """What was seen: a Tree and the databases, and whether hashes are of the key of those that are kept."""

    def __init__(self, tree, databases, same_key=True):
        # type: (Tree, dict[str, dict[str, str]], bool) -> None
        self.paths = tree.paths
        self.times = tree.times
        self.whole = tree.whole
        self.databases = databases
        self.same_key = same_key


def differences(kept, seen, managed, told=()):
    # type: (dict[str, Any], Seen, Managed, Collection[str]) -> tuple[list[dict[str, Any]], list[str]]
    """Return ([{path, kind, attribute, should, is, when, within, note}], [paths whose content cannot be compared]).

    kept   what the record keeps: {paths, databases}
    told   paths that are findings already
    when   the last change of the path; of one that is gone, of the folder in which it was
    """
    out, unread = [], []
    for path in sorted(set(kept['paths']) | set(seen.paths)):
        then, is_now = kept['paths'].get(path), seen.paths.get(path)
        if path in managed.whole or path in told or managed.links(path, is_now or then):
            continue
        if then is None:
            listed = _new(path, is_now or '')
        elif is_now is None:
            listed = _gone(path, kept['paths'], seen, managed)
        else:
            listed = _other(path, then, is_now, kept, seen, managed)
        for kind, attribute, should, are, note in listed:
            if kind == 'unreadable':
                unread.append(path)
                continue
            within = managed.within.get(path, [])
            if kind == 'missing':
                within = within + [
                    'file:' + above for above in _above(path) if above in managed.whole and above not in seen.paths]
            out.append({'path': path, 'kind': kind, 'attribute': attribute, 'should': should, 'is': are,
                        'when': int(_when(path, seen)), 'within': sorted(within), 'note': note})
    return out, unread


def _above(path):
    # type: (str) -> Iterator[str]
    """Yield the folders above a path, the nearest first."""
    while path.rpartition('/')[0]:
        path = path.rpartition('/')[0]
        yield path


def _when(path, seen):
    # type: (str, Seen) -> float
    if path in seen.times:
        return seen.times[path]
    return next((seen.times[above] for above in _above(path) if above in seen.times), 0)


def _new(path, line):
    # type: (str, str) -> list[Difference]
    """A new folder is what is in it."""
    if line.startswith('d ') or changes_itself(path):
        return []
    return [('extra', 'state', None, TYPES.get(line[0], 'unknown'), '')]


def _gone(path, kept, seen, managed):
    # type: (str, dict[str, str], Seen, Managed) -> list[Difference]
    """Of a folder that is gone with all in it only the folder is told."""
    above = [folder for folder in _above(path) if folder in kept and folder not in seen.paths]
    if not seen.whole or changes_itself(path) or any(folder not in managed.whole for folder in above):
        return []
    below = sum(1 for inner in kept if inner.startswith(path + '/')) if kept[path].startswith('d ') else 0
    return [('missing', 'state', TYPES.get(kept[path][0], 'unknown'), 'absent',
             'with %d files and folders in it' % below if below else '')]


def _other(path, then, is_now, kept, seen, managed):
    # type: (str, str, str, dict[str, Any], Seen, Managed) -> list[Difference]
    if then[0] != is_now[0]:
        return [('type', 'type', TYPES.get(then[0]), TYPES.get(is_now[0]), '')]
    if then[0] == 'l':
        before, after = then.split(' ', 2), is_now.split(' ', 2)
        out = [] if before[2] == after[2] else [('target', 'target', before[2], after[2], '')]
        return out + _owner(before[1], after[1])
    before, after = then.split(' '), is_now.split(' ')
    out = []
    if path not in managed.outside:
        if before[1] != after[1]:
            out.append(('mode', 'mode', before[1].zfill(4), after[1].zfill(4), ''))
        out += _owner(before[2], after[2])
    if path in WIDTHS and path in kept['databases'] and path in seen.databases:
        entries = [{name: words for name, words in table[path].items() if path != PASSWD or name not in managed.users}
                   for table in (kept['databases'], seen.databases)]
        should, are = differing(entries[0], entries[1], seen.same_key)
        return out + ([('changed', 'entries', should, are, '')] if should or are else [])
    if then[0] != 'f' or changes_itself(path):
        return out
    return out + _content(before, after, seen.same_key)


def _owner(then, is_now):
    # type: (str, str) -> list[Difference]
    return [] if then == is_now else [('owner', 'owner', _named(then), _named(is_now), '')]


def _named(numbers):
    # type: (str) -> str
    user, _colon, group = numbers.partition(':')
    return '%s:%s' % (user_name(int(user)), group_name(int(group)))


def _content(before, after, same_key):
    # type: (list[str], list[str], bool) -> list[Difference]
    """Compare content: fields are those of lines, [3:6] the stamps, [6] the hash."""
    if same_key and UNREAD not in (before[6], after[6]):
        return [] if before[6] == after[6] else [('changed', 'keyed', None, None, '')]
    if before[4] != '-' and before[3:6] == after[3:6]:
        return []
    if before[3] != after[3]:
        return [('changed', 'keyed', None, None, '')]
    if before[6] == UNREAD:
        return [('changed', 'keyed', None, None, 'what it held is not known any more: the key of its hash was lost')]
    return [('unreadable', '', None, None, '')]


class Run:
    """What a run did, as far as it says what it changed.

    entries   those of the run
    changes   [(begin, end)] by the node's clock in which its tasks changed something
    packages  those of them in which packages came or went; a task may change the same file, or folder, after that
    """

    def __init__(self, entries, changes, packages):
        # type: (list[dict[str, Any]], list[tuple[float, float]], list[tuple[float, float]]) -> None
        self.changes = changes
        self.packages = packages
        self.paths, self.folders, self.units = set(), set(), set()  # type: tuple[set[str], set[str], set[str]]
        self.users, self.groups = set(), set()  # type: tuple[set[str], set[str]]
        for entry in entries:
            kind, name = kind_of(entry['resource']), name_of(entry['resource'])
            if kind == 'service':
                self.units.add(name)
            if entry.get('changed') is False:
                continue
            declared = entry.get('declared') or {}
            self.paths.add(kind_named(kind).path(name, declared))
            if kind == 'file' and declared.get('state') == 'absent':
                self.folders.add(name)
            if kind in ('user', 'group'):
                (self.users if kind == 'user' else self.groups).add(name)

    def names(self, path, line):
        # type: (str, str) -> bool
        """Say whether the run says by name that it changed a path."""
        return (path in self.paths or any(above in self.folders for above in _above(path))
                or path.startswith(UNITS) and line.startswith('l ') and path.rpartition('/')[2] in self.units)

    def may_be_of_a_package(self, when):
        # type: (float) -> bool
        """Say whether a package may have made what was last changed then: it, or a task after it."""
        return bool(self.packages) and _in_time(when, self.changes)


def _in_time(when, windows):
    # type: (float, list[tuple[float, float]]) -> bool
    return any(begin <= when <= end for begin, end in windows)


def keep(kept, seen, run, owned):
    # type: (dict[str, Any], Seen, Run, Collection[str]) -> dict[str, Any]
    """Return {paths, databases} to keep after a run: what it changed as it is, all else as it was kept.

    Else a rollout would take over what somebody changed by hand, and no audit would tell any more.

    owned  paths that are gone and that an installed package has: no package took them away
    """
    paths = {}
    for path in set(kept['paths']) | set(seen.paths):
        then, is_now = kept['paths'].get(path), seen.paths.get(path)
        if is_now is None:
            if not seen.whole or not (run.names(path, then) or (
                    path not in owned and run.may_be_of_a_package(_when(path, seen)))):
                paths[path] = then
        elif (then is not None and _means(then, is_now, seen.same_key)
              or run.names(path, is_now) or _in_time(seen.times[path], run.changes)):
            paths[path] = is_now
        elif then is not None:
            paths[path] = then if seen.same_key else _without_hash(then)
    databases = {}
    for path in set(kept['databases']) | set(seen.databases):
        had, has = kept['databases'].get(path), seen.databases.get(path)
        if had is None or has is None:
            databases[path] = had or has
            continue
        if not seen.same_key:  # hashes of another key tell nothing
            should, are = differing(had, has, False)
            other = {line.partition(': ')[0] for line in should + are}
            had = dict(had, **{name: words for name, words in has.items() if name in had and name not in other})
        databases[path] = taken_over(had, has, run.users, run.groups, run.may_be_of_a_package(_when(path, seen)))
    return {'paths': paths, 'databases': databases}


def may_be_gone(kept, seen, run):
    # type: (dict[str, Any], Seen, Run) -> list[str]
    """Return the paths that may have gone with a package: who owns them decides."""
    if not seen.whole:
        return []
    return sorted(path for path, line in kept['paths'].items() if path not in seen.paths
                  and not run.names(path, line) and run.may_be_of_a_package(_when(path, seen)))


def _means(then, is_now, same_key):
    # type: (str, str, bool) -> bool
    """Say whether two lines of a path mean the same."""
    before, after = then.split(' ', 6), is_now.split(' ', 6)
    if then[0] != 'f' or is_now[0] != 'f':
        return then == is_now
    return before[:3] == after[:3] and _content(before, after, same_key) == []


def _without_hash(line):
    # type: (str) -> str
    """A line whose hash is of a key that is lost: nothing is as it says."""
    fields = line.split(' ')
    return line if fields[0] != 'f' else ' '.join(fields[:4] + ['-', fields[5], UNREAD])
