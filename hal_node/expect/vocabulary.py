# -*- coding: utf-8 -*-
"""The words of expect.yml, as data: what each reader takes, what each matcher takes.

One table for the node (refuses what it does not know), the controller (names the line) and the JSON Schema.
Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

__metaclass__ = type

#: What a value may be before it is templated; a string may always be a template that yields the type.
TEXT, NUMBER, FLAG, TEXTS, NUMBERS, ANY = 'text', 'number', 'flag', 'list of texts', 'list of numbers', 'any'

#: reader -> field -> (type, allowed texts or None, required)
READERS = {
    'file': {
        'path': (TEXT, None, True),
        'read': (
            TEXT, ('content', 'lines', 'exists', 'mode', 'owner', 'group', 'type', 'target', 'sha256', 'size'), False),
        'select': (TEXT, None, False),
    },
    'command': {
        'argv': (TEXTS, None, True),
        'lines': (FLAG, None, False),
        'json': (FLAG, None, False),
        'key': (TEXT, None, False),
        'exit': (FLAG, None, False),
        'accept_exit': (NUMBERS, None, False),
        'timeout_seconds': (NUMBER, None, False),
        'select': (TEXT, None, False),
    },
    'package': {
        'name': (TEXT, None, True),
        'read': (TEXT, ('version-release', 'version', 'release', 'arch', 'installed'), False),
    },
    'service': {
        'name': (TEXT, None, True),
        'read': (TEXT, None, False),
    },
    'sysctl': {
        'name': (TEXT, None, True),
    },
    'mount': {
        'path': (TEXT, None, True),
        'read': (TEXT, ('mounted', 'fstype', 'options', 'source'), False),
    },
    'kernel-module': {
        'name': (TEXT, None, True),
        'read': (TEXT, ('loaded', 'version', 'srcversion'), False),
        'parameter': (TEXT, None, False),
    },
    'port': {
        'port': (NUMBER, None, True),
        'protocol': (TEXT, ('tcp', 'tcp4', 'tcp6', 'udp', 'udp4', 'udp6'), False),
        'address': (TEXT, None, False),
        'read': (TEXT, ('listening', 'addresses'), False),
    },
}  # type: dict[str, dict[str, tuple[str, tuple[str, ...] | None, bool]]]

#: Own words for a unit's state; any other `read` is a systemd property, which starts with a capital (LimitMEMLOCK).
SERVICE_READS = ('running', 'enabled', 'masked', 'active', 'substate', 'load', 'unit_file')

#: matcher -> type of what it wants
MATCHERS = {
    'equal': ANY,
    'contain': ANY,
    'match': ANY,
    'count': ANY,
    'at_least': ANY,
    'at_most': ANY,
    'one_of': ANY,
    'absent': FLAG,
}

#: field of an entry beside its reader and matcher -> (type, allowed texts or None, required)
ENTRY_FIELDS = {
    'id': (TEXT, None, True),
    'why': (TEXT, None, True),
    'when': (ANY, None, False),
    'loop': (ANY, None, False),
    'severity': (TEXT, ('error', 'warning'), False),
    'secret': (FLAG, None, False),
    'finding': (TEXT, ('not-effective', 'hardware'), False),
    'health': (TEXT, None, False),
}  # type: dict[str, tuple[str, tuple[str, ...] | None, bool]]
