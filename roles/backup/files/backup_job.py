# -*- coding: utf-8 -*-
"""The nightly job: save what is declared, encrypt it, hand it over, remember what came of it. Python 2.7 and 3.

backup_job.py CONFIG save          make an archive and send it
backup_job.py CONFIG save FILE     make an archive at this place, unsigned
backup_job.py CONFIG key           the public half of the key that signs, PEM; makes the key when there is none
backup_job.py CONFIG status        what is stored, as JSON
"""

from __future__ import absolute_import, division, print_function

import json
import os
import re
import shutil
import sys
import tempfile
import time

import backup_archive
import backup_contents
import backup_dump
import backup_sign
import backup_sources
from backup_common import (
    Problem,
    archive_name,
    configuration,
    dumped,
    load,
    locked,
    main,
    need_room,
    run,
    save,
    shown,
)
from hal_node.digest import sha256_of

NEVER = {"archive": "", "sources": [], "key_sha256": "", "at": 0, "room": 0}


def save_now(config, output=None):
    """Make one archive; nothing but the archive is left behind."""
    with locked(os.path.join(config["work"], "lock"), "another backup, or a restore, runs on %s" % config["node"]):
        sweep(config["work"])
        folder = tempfile.mkdtemp(prefix="run-", dir=config["work"])
        began = int(time.time())
        try:
            return _save(config, folder, began, output)
        finally:
            shutil.rmtree(folder)
            # The archive is named by its second: the next run gets another one.
            while int(time.time()) == began:
                time.sleep(0.05)


def sweep(work):
    """Remove what a run left that was killed."""
    for name in os.listdir(work):
        if name.startswith("run-"):
            shutil.rmtree(os.path.join(work, name))


def _save(config, folder, began, output):
    need_room(config["work"], remembered(config)["stored"].get("room", 0), config["reserve_mb"], "an archive")
    stage = os.path.join(folder, "stage")
    os.mkdir(stage)
    done, sources = [], backup_sources.declared(config["sources"])
    for source in sources:
        for path in source.get("paths", ()):
            if backup_contents.is_within(config["work"], path):
                raise Problem("%s: archives are made in %s, which is in %s" % (source["name"], config["work"], path))
        facts = backup_sources.save(source, os.path.join(stage, source["name"]))
        done.append(dict(facts, name=source["name"], kind=source["kind"]))
    plain = os.path.join(folder, "archive.tar.gz")
    manifest = {"site": config["site"], "node": config["node"], "made": began, "sources": done}
    manifest, entries = backup_archive.pack(stage, manifest, plain)
    refused = _refused(manifest, entries, sources, stage)
    room = _size(stage) + 2 * os.path.getsize(plain)
    shutil.rmtree(stage)
    name = archive_name(config["node"], began)
    sealed = os.path.join(folder, name)
    with open(config["key"], "rb") as key:
        backup_archive.encrypt(plain, sealed, key.read())
    os.unlink(plain)
    stored = {
        "archive": name,
        "at": began,
        "sha256": sha256_of(sealed),
        "size": os.path.getsize(sealed),
        "signature": "",
        "signer": "",
        "sources": [source["name"] for source in done],
        "key_sha256": sha256_of(config["key"]),
        "room": room,
        "refused": refused,
    }
    if output:
        shutil.move(sealed, output)
    else:
        words = backup_sign.statement(config["site"], config["node"], began, stored["sha256"])
        stored.update(signature=backup_sign.sign(config["signing_key"], words), signer=signer(config))
        send(config["server"], sealed, stored)
    return stored


def _refused(manifest, entries, sources, stage):
    """Why a restore would refuse the archive, known before somebody needs it; empty when it would not."""
    try:
        backup_contents.chosen(manifest, entries, sources, [])
        for source in sources:
            if source["kind"] == "mariadb":
                backup_dump.refuse_commands(os.path.join(stage, source["name"], backup_sources.DUMP))
    except Problem as error:
        return str(error)
    return ""


def _size(folder):
    return sum(os.lstat(os.path.join(where, name)).st_size for where, _, names in os.walk(folder) for name in names)


def send(server, path, stored):
    """Hand an archive over; the server answers when it has read it again from its disk."""
    argv = ["ssh", "-F", "/dev/null", "-T", "-i", server["identity"], "-l", server["user"]]
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": "20",
        "GlobalKnownHostsFile": "/etc/ssh/ssh_known_hosts",
        "HostKeyAlias": server["name"],
        "IdentitiesOnly": "yes",
        "ServerAliveInterval": "30",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": "none",
    }
    for name in sorted(options):
        argv += ["-o", "%s=%s" % (name, options[name])]
    argv += [server["address"], "put %(archive)s %(size)d %(sha256)s signature=%(signature)s" % stored]
    try:
        with open(path, "rb") as archive:
            answer = run(argv, stdin=archive).split()
    except Problem as error:
        raise Problem("%s did not take the archive: %s" % (server["name"], error))
    if answer != ["stored", stored["archive"], stored["sha256"]]:
        said = shown(" ".join(answer))[:200] or "no answer"
        raise Problem("%s did not say that it stored the archive: %s" % (server["name"], said))


def remembered(config):
    """What the runs before left: `last`, the result of the last run, and `stored`, the last archive the server took."""
    path = os.path.join(config["work"], "status.json")
    return load(path) if os.path.exists(path) else {"last": {}, "stored": dict(NEVER)}


def remember(config, error, stored):
    """Keep the result of a run."""
    status = remembered(config)
    status["last"] = {"at": int(time.time()), "error": error}
    status["stored"] = stored or status["stored"]
    save(os.path.join(config["work"], "status.json"), status)


def due(config, stored, age_hours):
    """Why an archive has to be made now and not at night; empty when none has to."""
    reasons = []
    if not stored["archive"]:
        return ["none was ever stored"]
    if age_hours > config["max_age_hours"]:
        reasons.append("the last one stored is %.0f hours old" % age_hours)
    if stored["sources"] != [source["name"] for source in config["sources"]]:
        reasons.append("other sources are declared than it has")
    if stored["key_sha256"] != sha256_of(config["key"]):
        reasons.append("it was encrypted for another key")
    if stored.get("signer") != signer(config):
        reasons.append("it was not signed by the key of this node")
    return reasons


def days_left(certificate):
    """For how many days the certificate is still valid; -1 when there is none."""
    if not os.path.exists(certificate):
        return -1
    match = re.search(r"Valid: from \S+ to (\S+)", run(["ssh-keygen", "-L", "-f", certificate]))
    if not match:
        return -1
    return int((time.mktime(time.strptime(match.group(1), "%Y-%m-%dT%H:%M:%S")) - time.time()) // 86400)


def status(config):
    """Return what expectations and administrators ask for."""
    seen = remembered(config)
    stored = seen["stored"]
    age_hours = round((time.time() - stored["at"]) / 3600.0, 1)
    return {
        "age_hours": age_hours,
        "archive": stored["archive"],
        "certificate_days_left": days_left(config["server"]["identity"] + "-cert.pub"),
        "due": due(config, stored, age_hours),
        "error": seen["last"].get("error", ""),
        "signer": signer(config),
        "sources": stored["sources"],
    }


def signer(config):
    """The name that the controller gives to the key by which this node signs; empty when there is none."""
    if not os.path.exists(config["signing_key"]):
        return ""
    return backup_sign.name_of(backup_sign.public(config["signing_key"]))


def command(arguments):
    """Do what the command line says."""
    config = configuration(arguments[0])
    if arguments[1:] == ["status"]:
        sys.stdout.write(dumped(status(config)) + "\n")
        return 0
    if arguments[1:] == ["key"]:
        backup_sign.make_key(config["signing_key"])
        sys.stdout.write(backup_sign.public(config["signing_key"]))
        return 0
    if arguments[1:2] != ["save"] or len(arguments) > 3:
        raise Problem("save, save FILE, key or status, not %s" % " ".join(arguments[1:]))
    if len(arguments) == 3:
        print(json.dumps(save_now(config, arguments[2])))
        return 0
    try:
        stored = save_now(config)
    except Exception as error:
        remember(config, str(error) or error.__class__.__name__, None)
        raise
    refused = stored["refused"] and "%(archive)s is stored, and a restore would refuse it: %(refused)s" % stored
    remember(config, refused, stored)
    if refused:
        raise Problem(refused)
    print("%(archive)s is stored, %(size)d bytes" % stored)
    return 0


if __name__ == "__main__":
    main(command)
