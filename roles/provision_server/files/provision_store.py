# -*- coding: utf-8 -*-
"""What a node boots, its tokens and its first secrets, as files: one node's, and never another's. Python 2.7 and 3.

armed/NODE            what the node is to install, until it called home or the time is over; none: it boots its disk.
                      Once its installation began it boots its disk too: what broke off is not tried again by itself
tokens/NODE.PURPOSE   sha256 of a token, the address it is good for, and until when; used, the file is gone
spool/NODE            first secrets, put there shortly before; handed out once, and gone
calls/NODE            when its last installation began and ended, and what the node said when it had been installed,
                      or why its installer stopped
"""

from __future__ import absolute_import, division, print_function

import errno
import functools
import hashlib
import os
import re
import time

import provision_trail as trail
from provision_common import (FILE, Problem, as_account, checked_name, clean, read_json, remove, replace, stamp, text,
                              write_json)

PURPOSES = ("begin", "secrets", "call-home", "stop")
REBOOT = "reboot"  # what Slurm's RebootProgram asks for; no file of an order
MOST_SECONDS = 24 * 3600
MOST_BYTES = 1024 * 1024  # of first secrets
MOST_ORDER = 128 * 1024  # letters of an order, which all who ask at once hold; a kickstart has some thousands
MOST_COUNTED = 1000
MOST_LETTERS = 500  # of what a node says
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


def same(digest, other):
    """Compare two digests without telling by the time where they differ. hmac's own came with Python 2.7.7."""
    if len(digest) != len(other):
        return False
    different = 0
    for left, right in zip(bytearray(digest.encode("ascii")), bytearray(other.encode("ascii"))):
        different |= left ^ right
    return different == 0


def _by_account(work):
    """Have root, too, do this as the service's account, whose folders these are."""
    @functools.wraps(work)
    def done(place, *words, **named):
        with as_account(place):
            return work(place, *words, **named)
    return done


# ---------------------------------------------------------------- arm, disarm
@_by_account
def arm(place, name, order, now=None):
    """Take an order of the controller's: write the node's tokens, then what it boots. No other node's files change."""
    now = time.time() if now is None else now
    known = place.node(name)
    _check(name, known, order, now)
    document = {key: order[key] for key in ("what", "config", "files", "expires")}
    document.update(node=name, armed=stamp(now), given={})
    with place.locked(name):
        _refuse_while_it_installs(place, name, now)
        trail.done(place, now, name, None, "arm", text(order["what"]))  # first: nothing is done that leaves no trail
        # Whatever was there is over before anything new is: an old token opens nothing of a new order.
        _drop(place, name)
        for purpose in PURPOSES:
            write_json(place.path("tokens", "%s.%s" % (name, purpose)),
                       {"sha256": order["token_sha256"], "address": known["address"], "expires": order["expires"]})
        write_json(place.path("armed", name), document)


def _refuse_while_it_installs(place, name, now):
    """Problem when an installation may be going on: its tokens would be worthless, and its call home be refused."""
    order = _order(place, name)
    installs = order and order.get("began") and not order.get("stopped")
    if installs and any(in_force(_token(place, name, purpose), now) for purpose in PURPOSES):
        raise Problem("%s: it installs just now: %s. If that broke off: hal-provision disarm %s, then arm it again"
                      % (name, unfinished(place, name) or "installation began at %s" % order["began"], name))


def _check(name, known, order, now):
    """Refuse an order that is not for this node, or that cannot be meant."""
    wanted = {"node": "text", "address": "text", "what": "text", "config": "text", "files": "a mapping",
              "token_sha256": "64 hexadecimal digits", "expires": "seconds"}
    for key, kind in sorted(wanted.items()):
        if key not in order:
            raise Problem("%s: the order has no %s (%s)" % (name, key, kind))
    if order["node"] != name:
        raise Problem("%s: the order is for %s" % (name, order["node"]))
    if order["address"] != known["address"]:
        raise Problem("%s: the order is for address %s, and this server knows %s: roll out provision_server first"
                      % (name, order["address"], known["address"]))
    if not _SHA256.match(text(order["token_sha256"])):
        raise Problem("%s: the order has no digest of a token" % name)
    expires = order["expires"]
    if isinstance(expires, bool) or not isinstance(expires, (int, float)) or not now < expires <= now + MOST_SECONDS:
        shown = "%d s" % (expires - now) if isinstance(expires, (int, float)) else expires
        raise Problem("%s: the order runs out in %s; more than 0 s and at most %d s from now are taken"
                      % (name, shown, MOST_SECONDS))
    for file in order["files"]:
        if not FILE.match(file) or file in PURPOSES + (REBOOT,):
            raise Problem("%s: a file of the order has a name that is not served: %s" % (name, file))
    size = sum(len(content) for content in [order["config"]] + list(order["files"].values()))
    if size > MOST_ORDER:
        raise Problem("%s: the order has %d letters; at most %d are taken" % (name, size, MOST_ORDER))


@_by_account
def disarm(place, name, now=None, forget=True):
    """Take back what a node was to boot, its tokens and secrets; return what was done, in words.

    One that left the model is disarmed like any other; Problem for one of which there is nothing at all. That an
    installation broke off is forgotten by disarming once more: somebody has seen it. Not with `forget` false, which is
    for a node that something else is known of, and that may have been disarmed before.
    """
    now = time.time() if now is None else now
    there = any(_is_there(path) for path in _files(place, checked_name(name)))
    if not there and not (forget and unfinished(place, name)):
        if forget:
            place.node(name)
        return "was not armed"
    with place.locked(name):
        was = _drop(place, name)
        forgotten = "" if there else unfinished(place, name)
        if forgotten:
            remove(place.path("calls", name))
    trail.done(place, now, name, None, "disarm", "forgotten: %s" % forgotten if forgotten else "done")
    if forgotten:
        return "was not armed; forgotten: %s" % forgotten
    return "disarmed" if was else "was not armed"


def _is_there(path):
    """Return whether a file is there, of whatever kind; Problem when that cannot be seen."""
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return False
        raise Problem("%s: cannot be read: %s" % (path, error.strerror))
    return True


def _files(place, name):
    """Return all that an order brought: what the node boots first, and what else it can be used for."""
    tokens = [place.path("tokens", "%s.%s" % (name, purpose)) for purpose in PURPOSES]
    return [place.path("armed", name)] + tokens + [place.path("spool", name)]


def _record(path, *keys):
    """Return an order or what is known of a token, None without one; Problem names one that is damaged."""
    record = read_json(path)
    if record is not None:
        expires = record.get("expires")
        lacks = [key for key in keys if key not in record]
        if isinstance(expires, bool) or not isinstance(expires, (int, float)):
            lacks.append("expires")
        if lacks:
            raise Problem("%s: is damaged; no %s" % (path, ", ".join(lacks)))
    return record


def _order(place, name):
    return _record(place.path("armed", checked_name(name)), "what", "config", "files")


def _token(place, name, purpose):
    return _record(place.path("tokens", "%s.%s" % (checked_name(name), purpose)), "sha256", "address")


def _drop(place, name):
    # The order last: what breaks off leaves a node that is armed and may not begin, never a token that opens something.
    return [remove(path) for path in reversed(_files(place, name))][-1]


def _drop_over(place, name, now):
    """Remove what ran out: it would be good again if the clock went back. To be asked with the lock."""
    if any(record and record["expires"] <= now for record in map(_record, _files(place, name)[:-1])):
        _drop(place, name)


def in_force(record, now):
    """Return whether an order, or a token's record, is good now.

    One whose end is further away than can be asked for was given by a clock that was ahead of this one.
    """
    return bool(record) and record["expires"] - MOST_SECONDS <= now < record["expires"]


@_by_account
def armed(place, name, now):
    """Return the order that is in force for a node, None without one: an order that ran out does not count."""
    order = _order(place, name)
    return order if in_force(order, now) else None


def config(place, name, now):
    """Return the boot configuration that a node gets now. An order that ran out is removed."""
    order = _order(place, name)
    if in_force(order, now):
        return place.node(name)["standing"] if order.get("began") else order["config"]
    if order:
        with place.locked(name):
            _drop_over(place, name, now)
    return place.node(name)["standing"]


def give(place, name, file, address, now):
    """Return a file of the order that a node has yet to begin, None without one. How often it was given is kept.

    The kickstart has the token in it. Once the installation began nobody needs it any more, and nobody gets it.
    """
    with place.locked(name):
        order = armed(place, name, now)
        if not order or order.get("began") or file not in order["files"]:
            return None
        given = order.setdefault("given", {})
        times = given.get(file, 0) + 1
        if times <= MOST_COUNTED:
            if trail.worth(times) or times == 2:
                said = "given" if times == 1 else "given, %d times since it was armed" % times
                trail.done(place, now, name, address, "GET %s" % file, said)
            given[file] = times
            write_json(place.path("armed", name), order)
        return order["files"][file]


# ---------------------------------------------------------------- tokens and secrets
@_by_account
def spool(place, name, content, now=None):
    """Put the first secrets of a node that is armed there, for the one who comes with its token."""
    now = time.time() if now is None else now
    if not content or len(content) > MOST_BYTES:
        raise Problem("%s: %d bytes of secrets; 1 to %d are taken" % (name, len(content), MOST_BYTES))
    place.node(name)
    with place.locked(name):
        if armed(place, name, now) is None:
            raise Problem("%s: is not armed; arm it, then bring its secrets" % name)
        replace(place.path("spool", name), content)


def refusal(place, name, purpose, token, address, now):
    """Say why a token does not open this, None when it does. To be asked with the lock."""
    record = _token(place, name, purpose)
    if record is None:
        return "no token is out for this, or it was used"
    if record["expires"] <= now:
        return "the token ran out at %s" % stamp(record["expires"])
    if not in_force(record, now):
        return "the token is good until %s, and no order lasts so long: this server's clock went back" % (
            stamp(record["expires"]))
    # The address first: whoever is elsewhere learns nothing about the token, and does not use it up.
    if record["address"] != address:
        return "the token is for another address"
    if not same(hashlib.sha256(text(token).encode("utf-8")).hexdigest(), record["sha256"]):
        return "not the token"
    return None


def check_token(place, name, purpose, token, address, now=None):
    """Problem says why a token does not open this now. What it opens asks again: nothing is held in between."""
    now = time.time() if now is None else now
    with place.locked(name):
        why = refusal(place, name, purpose, token, address, now)
        if why:
            _drop_over(place, name, now)
    if why:
        raise Problem(why)


def begin(place, name, token, address, now=None):
    """Take note, once, that a node is about to erase its disk; Problem says why it must not.

    From now on it boots its disk, whatever becomes of the installation: only a new order has it erased again.
    """
    now = time.time() if now is None else now
    with place.locked(name):
        order = armed(place, name, now)
        why = refusal(place, name, "begin", token, address, now) or (None if order else "it is not armed")
        if why is None:
            trail.done(place, now, name, address, "begin", "installation begins")
            _note_began(place, name, order, now)
            remove(place.path("tokens", "%s.begin" % name))
        else:
            _drop_over(place, name, now)
    if why:
        raise Problem(why)


def _note_began(place, name, order, now):
    """To be asked with the lock, when the token was shown."""
    if order and not order.get("began"):
        order.pop("stopped", None)
        order["began"] = stamp(now)
        write_json(place.path("calls", name), {"node": name, "began": order["began"], "what": order["what"]})
        write_json(place.path("armed", name), order)


def redeem_secrets(place, name, token, address, now=None):
    """Return a node's first secrets, once; Problem says why not. Of two who come at once one gets them."""
    now = time.time() if now is None else now
    with place.locked(name):
        order = armed(place, name, now)
        why = refusal(place, name, "secrets", token, address, now)
        path = place.path("spool", name)
        if why is None and not os.path.exists(path):
            why = "nothing was put there for it"  # the token stays good: the play that puts it there may be late
        if why is None:
            try:
                with open(path, "rb") as file:
                    content = file.read()
            except (IOError, OSError) as error:
                raise Problem("%s: cannot be read: %s" % (path, error.strerror))
            trail.done(place, now, name, address, "secrets", "handed out")  # first: nobody gets them without a trail
            _note_began(place, name, order, now)  # whoever did not say so
            remove(place.path("tokens", "%s.secrets" % name))
            remove(path)
        else:
            _drop_over(place, name, now)
    if why:
        raise Problem(why)
    return content


def call_home(place, name, token, address, said, now=None):
    """Take note that a node has been installed: its order is over. Problem says why not."""
    now = time.time() if now is None else now
    with place.locked(name):
        why = refusal(place, name, "call-home", token, address, now)
        if why is None:
            trail.done(place, now, name, address, "call-home", "installed")
            came = {"node": name, "at": stamp(now), "address": address, "said": _said(said, token)}
            began = (read_json(place.path("calls", name)) or {}).get("began") if unfinished(place, name) else None
            write_json(place.path("calls", name), dict(came, began=began) if began else came)
            _drop(place, name)
        else:
            _drop_over(place, name, now)
    if why:
        raise Problem(why)


def stop(place, name, token, address, said, now=None):
    """Take note why a node's installer stopped, in place of an earlier reason; Problem says why it is not believed.

    Nothing else changes: before it began, the next boot tries again, as the order says; after it, no boot does.
    """
    now = time.time() if now is None else now
    with place.locked(name):
        order = armed(place, name, now)
        why = refusal(place, name, "stop", token, address, now) or (None if order else "it is not armed")
        if why is None:
            stopped = {"at": stamp(now), "why": _said(said, token) or u"it gave no reason"}
            order["stops"] = order.get("stops", 0) + 1
            if trail.worth(order["stops"]):
                trail.done(place, now, name, address, "stop", stopped["why"])
            if order.get("began"):
                write_json(place.path("calls", name),
                           dict(read_json(place.path("calls", name)) or {}, stopped=stopped))
            order["stopped"] = stopped
            write_json(place.path("armed", name), order)
        else:
            _drop_over(place, name, now)
    if why:
        raise Problem(why)


def _said(words, token):
    """Return what a node said as one short line. It has the token, and may send it: not into a log."""
    return clean(text(words).replace(text(token), u"[token]"))[:MOST_LETTERS]


# ---------------------------------------------------------------- what is known
@_by_account
def unfinished(place, name):
    """Return in words that an installation began and did not call home, "" where none did."""
    called = read_json(place.path("calls", name)) or {}
    if "began" not in called or "at" in called:
        return ""
    said = "installation began at %s, did not call home: %s" % (called["began"], called["what"])
    return u"%s; %s" % (said, stopped_words(called["stopped"])) if "stopped" in called else said


def stopped_words(stopped):
    """Return in words when and why an installer stopped."""
    return u"its installer stopped at %s: %s" % (stopped["at"], stopped["why"])


@_by_account
def status(place, names=(), now=None):
    """Return what is known of nodes: armed until when, what broke off, tokens that are out, the last call home.

    Of a node whose file is damaged there is the `problem` and nothing else.
    """
    now = time.time() if now is None else now
    known = {}
    for name in names or place.names():
        try:
            known[name] = _status(place, name, now)
        except Problem as problem:
            if names:
                raise
            known[name] = {"armed": False, "unfinished": "", "problem": "%s" % problem}
    return {"nodes": known, "armed": sorted(name for name, state in known.items() if state["armed"]),
            "unfinished": sorted(name for name, state in known.items() if state["unfinished"]),
            "unknown": strangers(place)}


def _status(place, name, now):
    standing = place.node(name)
    order = _order(place, name)
    called = read_json(place.path("calls", name))
    return {
        "address": standing["address"],
        "armed": in_force(order, now) and not order.get("began"),
        "what": order["what"] if order else "",
        "until": stamp(order["expires"]) if order else "",
        "ran_out": bool(order and order["expires"] <= now),
        "given": order.get("given", {}) if order else {},
        # Of the installation that was ordered last: an order that was not followed yet has none.
        "began": (order if order else called or {}).get("began", ""),
        "unfinished": unfinished(place, name),
        # Why the installer stopped, of the order that is out, or of the installation that broke off.
        "stopped": (order if order else called or {}).get("stopped"),
        "tokens": [purpose for purpose in PURPOSES if in_force(_token(place, name, purpose), now)],
        "secrets_wait": os.path.exists(place.path("spool", name)),
        "called": called if called and "at" in called else None,
    }


def strangers(place):
    """Return files of nodes that this server does not have: somebody else's, or left from a former model."""
    nodes = set(place.names())
    strays = []
    for kind in ("armed", "spool"):
        for name in sorted(os.listdir(os.path.join(place.state, kind))):
            if name not in nodes and not name.startswith(".new-"):
                strays.append("%s/%s" % (kind, name))
    return strays
