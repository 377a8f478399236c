# -*- coding: utf-8 -*-
"""Files, folders and links: type, owner, mode, content, target, ACL.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kind import Kind, name_of
from ..files import observe_files, read_acls
from ...expect.values import Unreadable

MYPY = False
if MYPY:
    from typing import Any, Collection  # noqa: F401  in comments
    from .kind import Attributes, Difference  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type

CONTENT = ('sha256', 'keyed', 'size')


class File(Kind):
    """file:PATH."""

    words = {'mode': 'mode', 'owner': 'owner', 'group': 'owner', 'type': 'type', 'target': 'target', 'acl': 'acl',
             'immutable': 'immutable'}
    in_passing = ('acl', 'immutable')
    comes_back = True

    def observe(self, entries, survey):
        # type: (list[Attributes], Survey) -> dict[str, Attributes | Unreadable]
        requests = []  # type: list[Attributes]
        for entry in entries:
            recorded = (entry.get('observed') or {}) if survey.keep is None else {}
            requests.append({
                'path': name_of(entry['resource']), 'secret': entry.get('secret'), 'keep': survey.keep,
                'hash': 'keyed' if 'keyed' in recorded else 'sha256' if 'sha256' in recorded else None,
                'size': recorded.get('size'),
                'sha1': bool({'sha1', 'sha1_keyed'} & set(entry.get('declared') or {})),
            })
        answers = observe_files(requests, survey.node, survey.key)
        results = {'file:' + request['path']: answer if isinstance(answer, Unreadable) else answer.value
                   for request, answer in zip(requests, answers)}
        _add_acls(results, entries, survey)
        return results

    def differing(self, recorded, declared, seen):
        # type: (Attributes, Attributes, Attributes) -> list[Difference]
        wanted = declared.get('type') or recorded.get('type')
        if wanted and seen.get('type') != wanted:
            return [('type', 'type', wanted, seen.get('type'), '')]
        if recorded.get('type') and seen.get('type') != recorded['type']:
            return [('type', 'type', recorded['type'], seen.get('type'), '')]
        leave = CONTENT + ('sha1', 'sha1_keyed', 'content')  # type: tuple[str, ...]
        if 'acl' not in seen or 'acl' not in recorded:  # there is, or was, no getfacl: said once for all files
            leave += ('acl',)
        elif recorded['acl'] != seen['acl'] and _differ_in_group(recorded.get('mode'), seen['mode']):
            leave += ('mode',)  # the group's digit of a mode is the mask of an ACL
        out = self.attributes(recorded, declared, seen, leave)
        return out if declared.get('content') is False else _content(recorded, declared, seen) + out

    def older(self, name, then, is_now, changed, managed):
        # type: (str, Any, Any, bool, Collection[str]) -> Any
        if name == 'acl' and is_now is not None and (
                _unmasked(then) == _unmasked(is_now) or (changed and not is_now)):
            return is_now  # the mask is the mode's; who writes a file anew drops what it had
        return then

    def merged(self, out, seen, before, declared, changed, plain):
        # type: (Attributes, Attributes, Attributes, Attributes, bool, str | None) -> Attributes
        """Content that no task of the run wrote stays what it was."""
        if changed or {'sha1', 'sha1_keyed'} & set(declared):
            return out
        became_private = 'keyed' in seen and before.get('sha256') and before.get('sha256') == plain
        if not became_private and {'sha256', 'keyed'} & set(before):
            out = {name: value for name, value in out.items() if name not in CONTENT}
            out.update({name: before[name] for name in CONTENT if name in before})
        return out

    def path(self, name, declared):
        # type: (str, Attributes) -> str
        return name


def _add_acls(results, entries, survey):
    # type: (dict[str, Any], list[Attributes], Survey) -> None
    paths = [name_of(resource) for resource, attributes in results.items()
             if isinstance(attributes, dict) and attributes.get('type') in ('file', 'directory')]
    if not paths:
        return
    try:
        acls = read_acls(paths, survey.node)
    except Unreadable as error:
        if survey.keep is not None:
            survey.problems.append('ACLs of %d files are not recorded: %s' % (len(paths), error.reason))
            return
        known = sum(1 for entry in entries if 'acl' in (entry.get('observed') or {}))
        if known:
            survey.problems.append('ACLs of %d files cannot be compared: %s' % (known, error.reason))
        return
    for path in paths:
        results['file:' + path]['acl'] = acls.get(path, [])


def _differ_in_group(mode, other):
    # type: (Any, Any) -> bool
    try:
        return (int(mode, 8) ^ int(other, 8)) & ~0o070 == 0
    except (TypeError, ValueError):
        return False


def _content(recorded, declared, seen):
    # type: (Attributes, Attributes, Attributes) -> list[Difference]
    for name in ('sha256', 'keyed'):
        if name in recorded and name in seen and recorded[name] != seen[name]:
            return [('changed', name, recorded[name], seen[name], '')]
        if name in declared and name in seen and declared[name] != seen[name]:
            return [('changed', name, declared[name], seen[name], '')]
    if 'size' in recorded and recorded['size'] != seen.get('size'):
        return [('changed', 'size', recorded['size'], seen.get('size'), '')]
    for name in ('sha1', 'sha1_keyed'):
        if name in declared and name in seen and declared[name] != seen[name]:
            if name == 'sha1_keyed':
                return [('changed', 'keyed', '', '', 'not what its task wrote')]
            return [('changed', name, declared[name], seen[name], 'not what its task wrote')]
    if ('sha256' in recorded or 'keyed' in recorded) and seen.get('unhashed'):
        return [('unreadable', 'content', None, None, seen['unhashed'])]
    return []


def _unmasked(lines):
    # type: (list[str]) -> list[str]
    return [line for line in lines if not line.startswith('mask::')]
