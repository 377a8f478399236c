# -*- coding: utf-8 -*-
"""Restore of a database: its dump is loaded beside it, and all tables change places at once. Python 2.7 and 3.

A dump is a program, and the archive's. What the client would obey is refused (backup_dump.py), and the server is given
it by an account that may use nothing but the new database.
"""

from __future__ import absolute_import, division, print_function

import binascii
import os
import tempfile

from backup_common import Problem, clock, need_room, run
from backup_dump import refuse_commands
from backup_sources import DUMP
from restore_common import RESERVE_MB, active, is_newer

ACCOUNT = "hal_restoring"
PLAIN = "--init-command=SET sql_mode = ''"
"""For the client: whatever mode the server has, a backslash escapes a quote, as backup_dump.py takes it."""
RIGHTS = "ALTER, CREATE, DROP, INDEX, INSERT, LOCK TABLES, REFERENCES, SELECT"


def sql(source, statement, database="", stdin=None, login=("--user=root",)):
    """Return the rows that MariaDB answers, as lists of text. `login`: first on the command line."""
    argv = ["mysql"] + list(login) + ["--socket=" + source["socket"], "--batch", "--skip-column-names"]
    rows = run(argv + (["--execute=" + statement] if statement else []) + ([database] if database else []), stdin=stdin)
    return [line.split("\t") for line in rows.splitlines()]


def quoted(name):
    """Return a name as SQL has it: who was root of the node chose the names of its tables."""
    return "`%s`" % name.replace("`", "``")


def tables(source, database):
    """Return the names of a database's tables."""
    rows = sql(source, "SELECT table_name FROM information_schema.tables WHERE table_schema = '%s'" % database)
    return sorted(row[0] for row in rows)


def look(source, made):
    """How many jobs slurmdbd's database has, when it changed last, and what happens to it."""
    lines = ["%d tables of %s: exchanged at once" % (source["tables"], source["database"])]
    if not os.path.exists(source["socket"]):
        return "MariaDB does not run", False, lines
    names = tables(source, source["database"])
    if not names:
        return "no tables are there", False, lines
    times, jobs = [0], 0
    for name in names:
        if name.endswith("_job_table"):
            ask = "SELECT COUNT(*), COALESCE(MAX(mod_time), 0) FROM %s" % quoted(name)
            count, newest = sql(source, ask, source["database"])[0]
            jobs += int(count)
            times.append(int(newest))
        elif name == "txn_table":
            ask = "SELECT COALESCE(MAX(timestamp), 0) FROM txn_table"
            times.append(int(sql(source, ask, source["database"])[0][0]))
    there = "%d tables, %d jobs, last change %s" % (len(names), jobs, clock(max(times)) if max(times) else "never")
    if active("slurmdbd"):
        there += ", slurmdbd runs"
    return there, is_newer(max(times), made), lines


def prepare(source, folder):
    """Load the dump into a database of its own."""
    if not os.path.exists(source["socket"]):
        raise Problem("MariaDB does not run: there is no %s" % source["socket"])
    dump = os.path.join(folder, DUMP)
    refuse_commands(dump)
    need_room(
        os.path.dirname(source["socket"]), 2 * os.path.getsize(dump), RESERVE_MB, "the dump of " + source["database"]
    )
    beside = source["database"] + "_restoring"
    forget(source, beside)  # of a run that was killed
    try:
        _load(source, beside, dump)
        loaded = len(tables(source, beside))
        if loaded != source["tables"]:
            raise Problem("the dump gave %d tables; there were %d" % (loaded, source["tables"]))
    except Exception:
        forget(source, beside)
        raise
    return beside


def _load(source, beside, dump):
    """Give the dump to an account that is made for it; its password is in a file for the client, and nowhere else."""
    password = binascii.hexlify(os.urandom(20)).decode("ascii")
    only = quoted(beside).replace("_", "\\_")  # in a GRANT _ stands for any character
    make = "CREATE DATABASE {0}; GRANT {1} ON {2}.* TO {3}@localhost IDENTIFIED BY '{4}';"
    sql(source, "", stdin=make.format(quoted(beside), RIGHTS, only, ACCOUNT, password).encode("ascii"))
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(dump)) as settings, open(dump, "rb") as statements:
        settings.write("[client]\nuser=%s\npassword=%s\n" % (ACCOUNT, password))
        settings.flush()
        # A client of today then obeys no command at all; an older one says that it does not know the option.
        login = ("--defaults-file=" + settings.name, "--loose-sandbox", PLAIN)
        sql(source, "", beside, stdin=statements, login=login)


def replace(source, beside, aside):
    """Exchange all tables in one statement, which MariaDB does wholly or not at all."""
    database, former = source["database"], "%s_before_%s" % (source["database"], os.path.basename(aside))
    sql(source, "CREATE DATABASE IF NOT EXISTS %s" % quoted(database))
    present = tables(source, database)
    moves = [(database, former, name) for name in present]
    moves += [(beside, database, name) for name in tables(source, beside)]
    if present:
        sql(source, "CREATE DATABASE %s" % quoted(former))
    renames = ["%s.%s TO %s.%s" % tuple(map(quoted, (old, name, new, name))) for old, new, name in moves]
    if renames:
        sql(source, "RENAME TABLE " + ", ".join(renames))
    return "restored; what was there is database %s" % former if present else "restored"


def forget(source, beside):
    """Remove what was prepared, and the account that loaded it; once it is in its place there is nothing."""
    sql(source, "DROP DATABASE IF EXISTS %s" % quoted(beside))
    # MariaDB 5.5 has no DROP USER IF EXISTS.
    if sql(source, "SELECT 1 FROM mysql.user WHERE user = '%s' AND host = 'localhost'" % ACCOUNT):
        sql(source, "DROP USER %s@localhost" % ACCOUNT)
