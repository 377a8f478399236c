# -*- coding: utf-8 -*-
"""What changes by itself below /etc and /boot. Nobody has to accept it, and nobody is told of it.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import fnmatch

__metaclass__ = type

#: (pattern, reason). Neither content nor presence is compared; type, mode and owner are. A * does not match a slash.
#: Not here: /etc/resolv.conf, which a lease writes as it was unless the servers of names are others; /etc/mtab, which
#: has been a link since CentOS 7; caches that only scripts of packages make, which come in the time of a rollout.
CHANGING = (
    ('/boot/initramfs-*kdump.img', 'kdump makes it at a boot, when kernel or hardware changed'),
    ('/etc/.pwd.lock', 'the lock of the user databases: empty, and made when it is first needed'),
    ('/etc/.updated', "systemd's stamp of the last update of /usr"),
    ('/etc/adjtime', 'how far the hardware clock goes wrong: written at each shutdown'),
    ('/etc/aliases.db', 'made when postfix starts, from /etc/aliases, which is compared'),
    ('/etc/cups/subscriptions.conf*', 'whom cupsd tells what, written each day'),
    ('/etc/group-', 'as /etc/passwd-'),
    ('/etc/gshadow-', 'as /etc/passwd-'),
    ('/etc/ld.so.cache', 'ldconfig makes it from /etc/ld.so.conf and its folder, which are compared'),
    ('/etc/lvm/archive/*', 'what LVM knew of its volumes before each change of them'),
    ('/etc/lvm/backup/*', 'what LVM knows of its volumes'),
    ('/etc/lvm/cache/.cache', 'the devices that LVM last found'),
    ('/etc/passwd-', 'as it was before the last change, which may be that of a user'),
    ('/etc/shadow-', 'as /etc/passwd-: a user may set a password'),
    ('/etc/subgid-', 'as /etc/passwd-'),
    ('/etc/subuid-', 'as /etc/passwd-'),
)


def changes_itself(path):
    # type: (str) -> bool
    """Say whether content and presence of a path are not compared. Pure."""
    return any(pattern.count('/') == path.count('/') and fnmatch.fnmatchcase(path, pattern)
               for pattern, _reason in CHANGING)
