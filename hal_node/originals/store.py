# -*- coding: utf-8 -*-
"""What was on a node before roles changed it: kept once, in /var/lib/hal/originals, for root alone.

What a role manages is a resource (file:/etc/fstab, line:/etc/fstab#1f, mount:/home). What is kept of it is a thing:
the file in which a line is, the unit, the package, the value in force. Two roles, or two resources, may share one.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import json
import os
import stat

from ..audit import record as records
from ..audit.kinds.kind import ASIDE, kind_of, name_of
from ..audit.kinds.package import pinned
from ..audit.kinds.registry import kind_for
from ..audit.node import STATE, as_bytes, iso, shown_name, small_file
from ..audit.observe import Survey
from ..expect.process import read_guarded
from ..expect.values import Unreadable, present
from .paths import described, status_of

MYPY = False
if MYPY:
    from typing import Any, Callable, Iterable  # noqa: F401  in comments
    from ..expect.values import Reading  # noqa: F401  in comments

__metaclass__ = type

FORMAT = 1
FOLDER = 'originals'
INDEX = FOLDER + '/index.json'
CONTENT = FOLDER + '/content'
MOST_INDEX = 64 * 1024 * 1024  # bytes
MOST_TREE = 20000  # files and folders of a folder that is to go
MIB = 1024 * 1024
#: What an observation says of files, which are things of their own.
ELSEWHERE = ('drop_ins', 'fragment', 'file', 'saved')
#: These are not kept as files: the kernel makes them, or a program makes them from others.
NO_FILES = ('/sys/', '/proc/', '/etc/selinux/targeted/active/')


class OriginalsError(Exception):
    """Nothing was kept or put back; the message is what, and what to do."""


class Refused(OriginalsError):
    """It would be lost, and nobody permitted that. `lines`: what, one a line."""

    def __init__(self, lines):
        # type: (list[str]) -> None
        OriginalsError.__init__(self, '\n'.join(lines))
        self.lines = lines


# ---------------------------------------------------------------- what a resource is in
def things_of(resource, declared):
    # type: (str, dict[str, Any]) -> list[str]
    """Return the names of what has to be kept of a resource; none of our own state. Pure."""
    kind, name = kind_for(resource), name_of(resource)
    path = kind.path(name, declared)
    if not kind.of_the_node or (kind.name == 'file' and (name + '/').startswith(STATE + '/')):
        return []
    if not path:
        return [resource]
    if not kind.in_force and path.startswith(NO_FILES):
        return ['%s:%s' % (kind.name, path)]
    return ['file:' + path] + ([resource] if kind.in_force else [])


class Wanted:
    """One thing that a run will manage: for which roles, what they say of it, and whether they write what is in it."""

    def __init__(self, content=False):
        # type: (bool) -> None
        self.roles, self.declared = set(), {}  # type: set[str], dict[str, Any]
        self.content = content


def wanted_of(resources):
    # type: (Iterable[dict[str, Any]]) -> dict[str, Wanted]
    """Return {thing: Wanted} of [{resource, declared, role}]. Pure."""
    out = {}  # type: dict[str, Wanted]
    for entry in resources:
        declared = entry.get('declared') or {}
        for thing in things_of(entry['resource'], declared):
            wanted, whole = out.setdefault(thing, Wanted()), thing != entry['resource']
            wanted.roles.add(entry['role'])
            wanted.content = wanted.content or whole or declared.get('content') is not False
            if not whole:
                wanted.declared.update(declared)
    return out


def ours(record):
    # type: (dict[str, Any] | None) -> dict[str, bool]
    """Return {thing: whether its content, too} of what an earlier rollout made what it is. Pure."""
    entries = [dict(entry, role='') for entry in (record or {}).get('entries') or [] if not entry.get('orphaned')]
    return {thing: wanted.content for thing, wanted in wanted_of(entries).items()}


# ---------------------------------------------------------------- the store
def read_index(node):
    # type: (Any) -> dict[str, Any]
    """Return the index of what is kept. Raises OriginalsError for one that cannot be used."""
    path = node.state(INDEX)
    try:
        content = small_file(path, MOST_INDEX)
    except EnvironmentError as error:
        if status_of(path) is not None:
            raise OriginalsError('%s: %s' % (shown_name(path), error.strerror))
        return {'format': FORMAT, 'machine_id': node.machine_id(), 'entries': {}}
    try:
        index = json.loads((content or b'').decode('utf-8'))  # type: dict[str, Any]
        entries = index['entries']
        right = index['format'] == FORMAT and all(isinstance(entry['was'], dict) for entry in entries.values())
    except (ValueError, KeyError, TypeError, AttributeError):
        right = False
    if not right:
        raise OriginalsError('%s cannot be used. It says what was on this node before the first rollout: mend it, or '
                             'move the folder away' % shown_name(path))
    if index['machine_id'] != node.machine_id():  # copied with an image: nothing of it was ever here
        return {'format': FORMAT, 'machine_id': node.machine_id(), 'entries': {}}
    return index


def write_index(node, index):
    # type: (Any, dict[str, Any]) -> None
    """Write the index whole or not at all. Raises EnvironmentError."""
    _folders(node)
    content = json.dumps(index, sort_keys=True, ensure_ascii=True, separators=(',', ':')).encode('ascii')
    records.replace(node.state(INDEX), content)
    _sweep(node, index)


def _sweep(node, index):
    # type: (Any, dict[str, Any]) -> None
    """Remove content that nothing needs."""
    if status_of(node.state(CONTENT)) is None:
        return
    used = {as_bytes(entry['was'].get('sha256') or '') for entry in index['entries'].values()}
    for name in os.listdir(node.state(CONTENT)):
        if name not in used:
            os.unlink(os.path.join(node.state(CONTENT), name))


def _folders(node):
    # type: (Any) -> None
    for name in ('', FOLDER, CONTENT):
        path = node.state(name)
        if status_of(path) is None:
            os.mkdir(path, 0o700)
        elif stat.S_IMODE(os.lstat(path).st_mode) & 0o077:
            os.chmod(path, 0o700)


class _Content:
    """Takes a file's content in while it is read; it has its name when it is known."""

    def __init__(self, node):
        # type: (Any) -> None
        self._node, self._path = node, node.state('%s/.new-%d' % (CONTENT, os.getpid()))
        self._handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)

    def __call__(self, chunk):
        # type: (bytes) -> None
        while chunk:
            chunk = chunk[os.write(self._handle, chunk):]

    def named(self, sha256):
        # type: (str) -> None
        """Give it its name, or throw it away where it has none."""
        if sha256:
            os.fsync(self._handle)
        os.close(self._handle)
        if sha256:
            os.rename(self._path, self._node.state('%s/%s' % (CONTENT, sha256)))
        else:
            os.unlink(self._path)


# ---------------------------------------------------------------- what is there
def keep_path(node, path):
    # type: (Any, str) -> dict[str, Any]
    """Return what is at a path, its content stored. Raises Unreadable and EnvironmentError."""
    status = status_of(node.path(path))
    if status is None or not stat.S_ISREG(status.st_mode):
        return described(node.path(path), False)
    content = _Content(node)
    digest = ''
    try:
        was = described(node.path(path), content)
        digest = was['sha256']
    finally:
        content.named(digest)
    return was


def also(path, declared, node):
    # type: (str, dict[str, Any], Any) -> list[str]
    """Return the paths that change with a path.

    They are folders that would be made above it, what a link leads to, and what is in a folder that is to go.

    Raises EnvironmentError, and Unreadable for a folder with too much in it.
    """
    out, above = [], os.path.dirname(path)
    while above not in ('', '/') and status_of(node.path(above)) is None:
        out.append(above)
        above = os.path.dirname(above)
    status = status_of(node.path(path))
    if status is not None and stat.S_ISLNK(status.st_mode):
        real = os.path.realpath(path) if node.root == '/' else path
        if real != path and os.path.isfile(real):
            out.append(real)
    goes = declared.get('state') == 'absent' or declared.get('type') in ('file', 'link')
    if status is not None and stat.S_ISDIR(status.st_mode) and goes:
        out += _below(path, node)
    return out


def _below(path, node):
    # type: (str, Any) -> list[str]
    out = []
    for folder, folders, files in os.walk(node.path(path)):
        inner = folder[len(as_bytes(node.root.rstrip('/'))):]
        for name in folders + files:
            try:
                out.append(os.path.join(inner, name).decode('utf-8'))
            except UnicodeDecodeError:
                raise Unreadable('%s: the name of a file in it is not UTF-8' % shown_name(inner))
            if len(out) > MOST_TREE:
                raise Unreadable('%s has more than %d files in it' % (path, MOST_TREE))
    return out


def observed(things, declared, node, record_key=b''):
    # type: (Iterable[str], dict[str, Any], Any, bytes) -> dict[str, Any]
    """Return {thing: attributes or Unreadable} of what is not a path: units, packages, values in force."""
    survey = Survey(node, record_key)
    entries = [{'resource': thing, 'declared': declared.get(thing) or {}, 'secret': True} for thing in things]
    out = {}  # type: dict[str, Any]
    for thing, seen in survey.observe(entries).items():
        out[thing] = seen if isinstance(seen, Unreadable) else {
            name: value for name, value in seen.items() if name not in ASIDE + ELSEWHERE}
        unit = survey.units.get(name_of(thing)) if kind_of(thing) == 'service' else None
        if isinstance(unit, dict) and isinstance(out[thing], dict):
            out[thing]['file_state'] = unit.get('UnitFileState', '')
    return out


# ---------------------------------------------------------------- keep
def keep(request, node, check=False):
    # type: (dict[str, Any], Any, bool) -> dict[str, Any]
    """Keep what is there of everything that a run will manage, before it does.

    request  {node, resources: [{resource, declared, role}], copy, most_mib, lost_ok}
    check    keep nothing, and say what would be kept
    Returns {kept: [thing], lost: [line]}. Raises Refused, OriginalsError, and records.WriteError.
    """
    if not check:
        records.prepare(node)
        with records.locked(node):
            return _keep(request, node, check)
    return _keep(request, node, check)


def _keep(request, node, check):
    # type: (dict[str, Any], Any, bool) -> dict[str, Any]
    index = read_index(node)
    record, said = records.choose(request['node'], request.get('copy'), node)
    wanted, entries = wanted_of(request['resources']), index['entries']
    fresh, problems = _fresh(wanted, ours(record), entries, node)
    large, words = _large(fresh, int(request['most_mib']), node)
    problems += words
    answers = _read_all({thing: want for thing, want in fresh.items() if thing not in large}, node, check)
    problems += [(thing, 'it could not be read: %s' % answer.reason) for thing, answer in sorted(answers.items())
                 if isinstance(answer, Unreadable)]
    answers = {thing: answer for thing, answer in answers.items() if not isinstance(answer, Unreadable)}
    refused = ['%s: %s' % (shown_name(thing), words) for thing, words in problems]
    if refused and not request.get('lost_ok'):
        if not check:
            _sweep(node, index)
        raise Refused(refused)
    for thing, was in answers.items():
        entries[thing] = _entry(entries.get(thing), fresh[thing], was, node.now())
    for thing, want in list(wanted.items()) + list(fresh.items()):
        if thing in entries:
            entries[thing]['roles'] = sorted(set(entries[thing]['roles']) | want.roles)
    if not check:
        write_index(node, index)
    lost = [losing(thing, was, fresh[thing].declared) for thing, was in sorted(answers.items())]
    return {'kept': sorted(thing for thing, was in answers.items() if was.get('state') != 'absent'),
            'absent': sum(was.get('state') == 'absent' for was in answers.values()),
            'lost': [line for line in lost if line] + refused, 'record': said['status']}


def _fresh(wanted, mine, entries, node):
    # type: (dict[str, Wanted], dict[str, bool], dict[str, Any], Any) -> tuple[dict[str, Wanted], list[tuple[str, str]]]
    """Return ({thing: Wanted} of what is neither kept nor ours, with what changes with it; [(thing, why not)])."""
    fresh = {thing: want for thing, want in wanted.items() if not _is_kept(entries.get(thing), want)
             and not (thing in mine and (mine[thing] or not want.content))}
    paths = [thing for thing in sorted(fresh) if kind_of(thing) == 'file']
    answers = guarded(lambda thing: also(name_of(thing), fresh[thing].declared, node), paths)
    for thing, more in answers.items():
        for path in [] if isinstance(more, Unreadable) else more:
            inside = 'file:' + path
            if not mine.get(inside) and not _is_kept(entries.get(inside), Wanted(content=True)):
                fresh.setdefault(inside, Wanted()).content = True  # also of a file of which only the mode is managed
                fresh[inside].roles.update(fresh[thing].roles)
    return fresh, [(thing, answer.reason) for thing, answer in sorted(answers.items())
                   if isinstance(answer, Unreadable)]


def _is_kept(entry, wanted):
    # type: (dict[str, Any] | None, Wanted) -> bool
    """Say whether an entry has all that is wanted: what only had its mode managed may be written now."""
    return entry is not None and (entry['content'] or not wanted.content)


def _entry(old, wanted, was, now):
    # type: (dict[str, Any] | None, Wanted, dict[str, Any], Any) -> dict[str, Any]
    """Return the entry of a thing: its mode and owner as they were when they were kept first."""
    if old and was['state'] == old['was']['state'] == 'present':
        kept = ('mode', 'uid', 'gid', 'owner', 'group', 'attributes')
        was = dict(was, **{name: old['was'][name] for name in kept})
    elif old:
        was = old['was']
    return dict(old or {'kept_at': iso(now), 'roles': []}, was=was, content=wanted.content)


def _large(fresh, most_mib, node):
    # type: (dict[str, Wanted], int, Any) -> tuple[list[str], list[tuple[str, str]]]
    """Return (the things that are not kept, [(thing, why)]), the largest first, so that the others fit."""
    paths = [thing for thing in sorted(fresh) if kind_of(thing) == 'file' and fresh[thing].content]
    sizes = guarded(lambda thing: _size(node.path(name_of(thing))), paths)
    sizes = {thing: size for thing, size in sizes.items() if not isinstance(size, Unreadable)}  # reading it fails, too
    return _too_large(sizes, most_mib * MIB), [
        (thing, '%d MiB: more than originals_most_mib (%d) has room for' % (-(-sizes[thing] // MIB), most_mib))
        for thing in _too_large(sizes, most_mib * MIB)]


def _size(path):
    # type: (bytes) -> int
    status = status_of(path)
    return status.st_size if status is not None and stat.S_ISREG(status.st_mode) else 0


def guarded(read, things):
    # type: (Callable[[str], Any], list[str]) -> dict[str, Any]
    """Return {thing: what `read` gives of it, or Unreadable}; a file system that hangs costs one of them."""
    def caught(thing):
        # type: (str) -> Reading
        try:
            return present(read(thing))
        except EnvironmentError as error:
            raise Unreadable(os.strerror(error.errno) if error.errno else '%s' % error)

    answers = read_guarded(caught, things, most_hangs=3)
    return {thing: answer if isinstance(answer, Unreadable) else answer.value for thing, answer in zip(things, answers)}


def _read_all(fresh, node, check):
    # type: (dict[str, Wanted], Any, bool) -> dict[str, Any]
    """Return {thing: what is there, or Unreadable}; contents are stored, not so in check mode."""
    paths = [thing for thing in sorted(fresh) if kind_of(thing) == 'file']
    if not check:
        _folders(node)
    answers = guarded(lambda thing: keep_path(node, name_of(thing)) if fresh[thing].content and not check
                      else described(node.path(name_of(thing)), False), paths)
    declared = {thing: want.declared for thing, want in fresh.items() if kind_of(thing) != 'file'}
    answers.update(observed(sorted(declared), declared, node))
    return answers


def _too_large(sizes, most):
    # type: (dict[str, int], int) -> list[str]
    """Return the things, the largest first, without which the others fit. Pure."""
    left, out = sum(sizes.values()), []
    for thing in sorted(sizes, key=lambda name: (-sizes[name], name)):
        if left <= most:
            break
        out.append(thing)
        left -= sizes[thing]
    return out


def losing(thing, was, declared):
    # type: (str, dict[str, Any], dict[str, Any]) -> str
    """Return in one line what a rollout changes there that giveback does not put back, '' for nothing. Pure.

    What was not there cannot be lost, and what is as declared is not changed.
    """
    kind, name = kind_of(thing), name_of(thing)
    if was.get('state') == 'absent':
        return ''
    if kind == 'package':
        versions = was.get('version') or []
        wanted = declared.get('version') or []
        if declared.get('state') == 'absent':
            return 'package %s %s goes: it comes back if a repository has that version' % (name, ' '.join(versions))
        if wanted and not all(pinned(version, versions) for version in wanted):
            return 'package %s %s becomes %s: it comes back if a repository has that version' % (
                name, ' '.join(versions), ' '.join(wanted))
        return ''
    if kind_for(thing).comes_back:
        return ''
    differing = ['%s %s' % (key, was[key]) for key in sorted(declared) if key in was and was[key] != declared[key]]
    if not differing:
        return ''
    return '%s: %s is changed, and not put back: note it' % (thing, ', '.join(differing))
