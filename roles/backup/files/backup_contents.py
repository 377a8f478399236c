# -*- coding: utf-8 -*-
"""What of an archive may be restored: its role's declaration says it, the archive gives data only. Python 2.7 and 3.

Root of the node has written the archive, whoever that was. So `backup_sources` at the controller says what is restored,
where, and what is stopped meanwhile; an archive that has anything else is refused before a byte is unpacked.
"""

from __future__ import absolute_import, division, print_function

import os

from backup_archive import is_number
from backup_common import Problem, shown
from backup_sources import DUMP, STATE, declared

NEVER = "/var/lib/hal/network"
"""Left as the node has it, also when an older archive has it: a network change that waits for its confirmation would be
undone by a former one's roll-back. Role network keeps it there."""
SPECIAL_BITS = 0o7000


def chosen(manifest, entries, sources, names):
    """Return the sources that are restored, each as declared and with its `entries`; a database with its `tables`.

    `manifest` and `entries`: of backup_archive.check; `sources`: what the role declares; `names`: of the sources that
    were asked for, all when empty.
    """
    have = {source["name"]: source for source in manifest["sources"]}
    known = {source["name"]: source for source in declared(sources)}
    for name in entries:
        if name.split("/")[0] not in have:
            raise Problem("%s is not of a source that the archive's manifest has" % shown(name))
    for name in names:
        if name not in have:
            raise Problem("the archive has no %s; it has %s" % (name, _listed(have)))
    wanted = [name for number, name in enumerate(names) if name not in names[:number]] or sorted(have)
    foreign = [name for name in wanted if name not in known]
    if foreign:
        raise Problem(
            "backup_sources declares no %s for this node, so its place is not known: declare it, or choose from %s "
            "by restore_sources" % (_listed(foreign), _listed(set(have) & set(known)) or "none")
        )
    return [_permitted(known[name], have[name], entries) for name in wanted]


def _listed(names):
    return ", ".join(shown(name) for name in sorted(names))


def _permitted(source, saved, entries):
    """A declared source with what the archive has for it; refused when that is more than its kind needs."""
    own = {name: entry for name, entry in entries.items() if name.split("/")[0] == source["name"]}
    for name, entry in own.items():
        if entry["type"] == "file" and int(entry["mode"], 8) & SPECIAL_BITS:
            _refuse(source, name, "would run as its owner, whoever calls it (mode %s)" % entry["mode"])
    permitted = dict(source, entries=KINDS[source["kind"]](source, own))
    if source["kind"] == "mariadb":
        permitted["tables"] = saved.get("tables")
        if not is_number(permitted["tables"]):
            raise Problem("%s: the manifest does not say how many tables there were" % source["name"])
    return permitted


def _refuse(source, name, why):
    raise Problem("%s: %s in the archive %s" % (source["name"], shown(name), why))


def left_out(source):
    """Return the paths that are not part of a source of files, though they are in its folders."""
    return [os.path.join(path, name) for path in source["paths"] for name in source.get("left_out", ())] + [NEVER]


def _files(source, entries):
    """Of kind files: what lies at or below a declared path. Folders above may be there, and say nothing."""
    out, files = left_out(source), {}
    for name, entry in entries.items():
        place = place_of(source, name)
        holds = [path for path in source["paths"] if is_within(place, path)]
        above = [path for path in source["paths"] if is_within(path, place)]
        if not holds and not (above and entry["type"] == "folder"):
            _refuse(source, place, "is not in what backup_sources declares")
        if not holds or any(is_within(place, path) for path in out):
            continue
        if entry["type"] == "link" and not any(_stays(place, entry["target"], path) for path in holds):
            _refuse(source, place, "is a link that leads to %s" % shown(entry["target"]))
        files[name] = entry
    return files


def place_of(source, name):
    """Where an entry of the archive belongs."""
    return name[len(source["name"]) :] or "/"


def _stays(place, target, folder):
    """Whether a link leads to something in the folder. `a/..` would lead elsewhere if a were a link as well."""
    leads = os.path.normpath(os.path.join(os.path.dirname(place), target))
    return os.path.normpath(target) == target and is_within(leads, folder)


def _slurm_state(source, entries):
    """Of slurmctld: files and folders of its own, below one folder."""
    top = (source["name"], source["name"] + "/" + STATE)
    for name, entry in entries.items():
        if name not in top and not is_within(name, top[1]):
            _refuse(source, name, "is not part of slurmctld's state")
        if entry["type"] == "link" or (name in top and entry["type"] != "folder"):
            _refuse(source, name, "is a %s, which slurmctld's state does not have there" % entry["type"])
    if top[1] not in entries:
        raise Problem("%s: the archive has no state of slurmctld" % source["name"])
    return entries


def _mariadb(source, entries):
    """Of a database: one dump."""
    dump = source["name"] + "/" + DUMP
    for name, entry in entries.items():
        if (name, entry["type"]) not in ((source["name"], "folder"), (dump, "file")):
            _refuse(source, name, "is not a dump of a database")
    if dump not in entries:
        raise Problem("%s: the archive has no dump" % source["name"])
    return entries


def is_within(place, folder):
    """Whether a path is the folder or below it; both are normal."""
    return (place + "/").startswith(folder.rstrip("/") + "/")


KINDS = {"files": _files, "slurm_state": _slurm_state, "mariadb": _mariadb}
