# -*- coding: utf-8 -*-
"""Every kind of resource that this version can look at.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .account import Group, User
from .cron import Cron
from .database import Database
from .file import File
from .hostname import Hostname
from .kernel_module import KernelModule
from .kind import Kind, kind_of
from .line import Line
from .mount import Mount
from .package import Package, RpmKey
from .repository import Repository
from .selinux import Selinux
from .service import Service
from .slurm import Accounting, Reservation
from .sysctl import Sysctl

__metaclass__ = type

KINDS = (
    Cron('cron'),
    Database('database'),
    Database('database-user'),
    File('file'),
    Group('group'),
    Hostname('hostname'),
    KernelModule('kernel-module'),
    Line('line'),
    Mount('mount'),
    Package('package'),
    Repository('repository'),
    RpmKey('rpm-key'),
    Selinux('selinux'),
    Service('service'),
    Accounting('slurm-account'),
    Accounting('slurm-qos'),
    Reservation('slurm-reservation'),
    Accounting('slurm-user'),
    Sysctl('sysctl'),
    User('user'),
)  # type: tuple[Kind, ...]
_NAMED = {kind.name: kind for kind in KINDS}


def kind_named(name):
    # type: (str) -> Kind
    """Return the kind of a name; for one that nobody knows a Kind that cannot be observed."""
    return _NAMED.get(name) or Kind(name)


def kind_for(resource):
    # type: (str) -> Kind
    """Return the kind of a resource, as kind_named()."""
    return kind_named(kind_of(resource))
