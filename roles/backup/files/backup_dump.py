# -*- coding: utf-8 -*-
"""A dump has to be what mysqldump writes, line by line, before the mysql client may read it. Python 2.7 and 3.

A dump is a program for two interpreters. The client obeys commands that it finds between the statements (a backslash
and `! sh`), and it does not see strings where the server does: in some SQL modes a backslash does not escape a quote,
and in a comment a quote does not begin a string. A search for commands would miss one. So each line has to be one that
mysqldump of MariaDB 5.5 to 10.11 writes with the options of backup_sources, and no line may change how the client reads
the next.
"""

from __future__ import absolute_import, division, print_function

import re

from backup_common import MEGABYTE, Problem, shown

LONGEST_LINE = 16 * MEGABYTE
"""What the client takes (max_allowed_packet), in bytes with its end."""
# mysqldump escapes them, and the client ends a line at them.
UNREADABLE = re.compile(br"[\0\r\x1a]")
COMMENT = re.compile(br"--(?: [^\n'\"\\;]*)?\n?\Z")
# Of MariaDB's own client, which then obeys no command: https://mariadb.org/mariadb-dump-file-compatibility-change/
SANDBOX = re.compile(br"/\*M!999999\\- enable the sandbox mode \*/ *\n?\Z")
# No value comes from elsewhere: SQL_MODE says what a backslash is, the character set what a quote is.
SETTING = re.compile(
    br"/\*M?![0-9]{5,6} SET (?:"
    br"@OLD_(\w+)=@@\1(?:, \1=(?:0|'NO_AUTO_VALUE_ON_ZERO'))?|(\w+)=@OLD_\2|TIME_ZONE='\+00:00'|NAMES utf8(?:mb[34])?"
    br"|@saved_cs_client     = @@character_set_client|character_set_client = (?:utf8(?:mb[34])?|@saved_cs_client)"
    br") \*/;\n?\Z"
)
# Everything else is looked at with its strings as 0 and its names as x; no quote, backslash or comment is left then.
ESCAPED = re.compile(br"\\.")
QUOTED = re.compile(br"'[^']*'|`[^`\\]+`")
WORDS = br"[\w.,() +:-]*"
BLANK = br""
STATEMENT = br"DROP TABLE IF EXISTS x+;|LOCK TABLES x+ WRITE;|UNLOCK TABLES;|set autocommit=0;|commit;"
KEYS = br"/\*!40000 ALTER TABLE x+ (?:DIS|EN)ABLE KEYS \*/;"
INSERT = br"INSERT INTO x+(?: \(x[x, ]*\))? VALUES"
FIRST = re.compile(br"(?:" + br"|".join((BLANK, STATEMENT, KEYS)) + br")\Z")
INSERTED = re.compile(INSERT + br" (" + WORDS + br");\Z")
ROWS = re.compile(br"\(" + WORDS + br"\)[,;]\Z")
COLUMN = re.compile(br"  " + WORDS + br"\Z")
# No file or server that the table would be in.
OPTIONS = (
    br"AUTO_INCREMENT|AVG_ROW_LENGTH|CHECKSUM|COLLATE|COMMENT|DEFAULT CHARSET|DELAY_KEY_WRITE|KEY_BLOCK_SIZE|MAX_ROWS"
    br"|MIN_ROWS|PACK_KEYS|PAGE_CHECKSUM|ROW_FORMAT|STATS_AUTO_RECALC|STATS_PERSISTENT|STATS_SAMPLE_PAGES|TRANSACTIONAL"
)
LAST_COLUMN = re.compile(br"\) ENGINE=(?:Aria|InnoDB|MyISAM)(?: (?:" + OPTIONS + br")=\w+)*;\Z")


def _is_first(bare):
    """Whether it is a whole statement."""
    match = INSERTED.match(bare)
    return _are_values(match.group(1)) if match else bool(FIRST.match(bare))


def _are_rows(bare):
    """Whether it is a line of an INSERT."""
    return bool(ROWS.match(bare)) and _are_values(bare)


def _are_values(rows):
    """Whether no bracket is one of a function or a query: sleep() would keep the restore for ever."""
    return rows.count(b"(") == 1 + rows.count(b"),(")


def _is_column(bare):
    """Whether it is a line of a table's definition; what closes a bracket that another line opened ends the table."""
    if LAST_COLUMN.match(bare):
        return True
    depths = [0]
    for bracket in re.findall(br"[()]", bare):
        depths.append(depths[-1] + (1 if bracket == b"(" else -1))
    return bool(COLUMN.match(bare)) and min(depths) == depths[-1] == 0


MORE = ((re.compile(INSERT + br"\Z"), _are_rows), (re.compile(br"CREATE TABLE x+ \(\Z"), _is_column))
"""Lines that begin a statement of several, and what says whether a further line is one of it; the last ends with ;."""


def refuse_commands(path):
    """Refuse a file that is not what mysqldump writes."""
    with open(path, "rb") as dump:
        further, number = None, 0
        for line in iter(lambda: dump.readline(LONGEST_LINE), b""):
            number += 1
            if UNREADABLE.search(line) or (len(line) == LONGEST_LINE and not line.endswith(b"\n")):
                _refuse(number, line)
            if further is None and (COMMENT.match(line) or SANDBOX.match(line) or SETTING.match(line)):
                continue
            bare = QUOTED.sub(_kind, ESCAPED.sub(br"\\", line)).rstrip(b"\n")
            begun = [fits for first, fits in MORE if first.match(bare)] if further is None else []
            if b"--" in bare or not (begun or (further or _is_first)(bare)):
                _refuse(number, line)
            if begun:
                further = begun[0]
            elif bare.endswith(b";"):
                further = None
    if further is not None:
        raise Problem("the dump ends in the middle of a statement")


def _kind(match):
    return b"0" if match.group().startswith(b"'") else b"x"


def _refuse(number, line):
    raise Problem("line %d of the dump is not one that mysqldump writes: %s" % (number, shown(line[:60].rstrip())))
