"""A dump is what mysqldump writes; whatever the mysql client might obey is no line of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

# As mysqldump of MariaDB 10.11.19 wrote it, of tables with odd contents; the end of each kind of line is in it.
NEW = (
    "/*M!999999\\- enable the sandbox mode */ \n"
    + r"""-- MariaDB dump 10.19  Distrib 10.11.19-MariaDB, for debian-linux-gnu (x86_64)
--
-- Host: localhost    Database: acct
-- ------------------------------------------------------
-- Server version	10.11.19-MariaDB-0+deb12u1

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*M!100616 SET @OLD_NOTE_VERBOSITY=@@NOTE_VERBOSITY, NOTE_VERBOSITY=0 */;

--
-- Table structure for table `we``ird`
--

DROP TABLE IF EXISTS `we``ird`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `we``ird` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `name` tinytext NOT NULL COMMENT 'a "quoted" \\ it''s',
  `at` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
  `b` bit(1) DEFAULT b'0',
  `k` bigint(20) DEFAULT -1,
  `e` enum('a','b') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT 'a' CHECK (json_valid(`e`)),
  PRIMARY KEY (`id`),
  UNIQUE KEY `n` (`name`(10),`e`),
  CONSTRAINT `c` FOREIGN KEY (`id`) REFERENCES `t` (`id`) ON DELETE CASCADE
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='jobs; \'old\'';
/*!40101 SET character_set_client = @saved_cs_client */;
LOCK TABLES `we``ird` WRITE;
/*!40000 ALTER TABLE `we``ird` DISABLE KEYS */;
set autocommit=0;
INSERT INTO `we``ird` VALUES
(1,'plain',1.5e-30,0x00FF,0.00,-1,'a'),
(2,'it\'s \"x\" \\ \n \r \0 \Z ; -- # /* */ ` \! sh',-2,NULL,0.00,-1,_binary 'a'),
(3,'größe	',NULL,'',0.00,-1,'a');
/*!40000 ALTER TABLE `we``ird` ENABLE KEYS */;
UNLOCK TABLES;
commit;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;

-- Dump completed on 2026-11-25 23:51:17
"""
)
# MariaDB 5.5 writes all rows in a line, numbers as text, and which columns it means when some are computed.
OLD = r"""-- MySQL dump 10.14  Distrib 5.5.64-MariaDB, for Linux (ppc64le)
/*!40101 SET NAMES utf8 */;
/*!40101 SET character_set_client = utf8 */;
CREATE TABLE `txn_table` (
  `id` int(11) NOT NULL DEFAULT '0'
) ENGINE=InnoDB DEFAULT CHARSET=latin1;
INSERT INTO `txn_table` VALUES (1,'a\\'),(2,'(\');--');
INSERT INTO `txn_table` (`id`, `name`) VALUES (1,'a');
-- Dump completed on 2019-09-30 12:00:00
"""


def refused(programs: Any, tmp_path: Path, dump: bytes) -> str:
    (tmp_path / "dump").write_bytes(dump)
    with pytest.raises(programs.common.Problem) as problem:
        programs.dump.refuse_commands(str(tmp_path / "dump"))
    assert "\n" not in str(problem.value)
    return str(problem.value)


@pytest.mark.parametrize("dump", [NEW, OLD, ""])
def test_what_mysqldump_writes_is_taken(programs: Any, tmp_path: Path, dump: str) -> None:
    (tmp_path / "dump").write_text(dump)
    programs.dump.refuse_commands(str(tmp_path / "dump"))


# Those with a mark ran the program when the mysql client of MariaDB 10.11.19 read them.
COMMANDS = [
    r"\! touch /tmp/x",  # ran
    "system touch /tmp/x",  # ran
    "system touch /tmp/x;",
    r"INSERT INTO t VALUES (1) /* ' */ \! touch /tmp/x ;# ';",  # ran: a quote in a comment begins no string
    "INSERT INTO t VALUES (1); system touch /tmp/x",
    r"INSERT INTO t VALUES ('a') \! touch /tmp/x",
    r"INSERT INTO `a\`'`\! touch /tmp/x ;' VALUES (1);",  # older clients: it does
    r"INSERT INTO `a\` \! touch /tmp/x ` VALUES (1);",  # ran: a backslash in a name escapes nothing
    r'INSERT INTO t VALUES ("\! touch /tmp/x");',
    r"--\! touch /tmp/x",
    r"-- ' \! touch /tmp/x",
    r"-- \! touch /tmp/x",
    r"# \! touch /tmp/x",
    r"/* x */ \! touch /tmp/x",
    r"/*!40101 SET @OLD_X=@@X */; \! touch /tmp/x",
    "/*!40101 SET NAMES utf8 */ /*",
    "source /etc/passwd",
    r"\. /etc/passwd",
    "tee /etc/cron.d/x",
    "delimiter x",
    "DELIMITER ;;",
    "pager sh",
    "use mysql",
    "USE `mysql`;",
    r"INSERT INTO t VALUES ('a') \g",
    " INSERT INTO t VALUES (1);",
    "INSERT INTO t VALUES ('a'",
    "INSERT INTO t VALUES ('a);",
    "INSERT INTO `t` VALUES (sleep(99999));",
    "INSERT INTO `t` VALUES (1),(2,sleep(99999)),(3);",
    "INSERT INTO `t` VALUES (1,(SELECT a FROM b));",
    "INSERT INTO `t` VALUES 1;",
]
# What changes how the client or the server reads the next line; or would be somewhere else than in the new database.
STATEMENTS = [
    "SET SQL_MODE='NO_BACKSLASH_ESCAPES';",  # the shell of the next line ran
    "SET @OLD_SQL_MODE=@@max_allowed_packet;",  # which is 1048576, the number of NO_BACKSLASH_ESCAPES
    "/*!40101 SET @OLD_SQL_MODE=@@max_allowed_packet */;",
    "/*!40101 SET SQL_MODE='NO_BACKSLASH_ESCAPES' */;",
    "/*!40101 SET SQL_MODE=1048576 */;",
    "/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE=1 */;",
    "/*!40101 SET @OLD_SQL_MODE='ANSI_QUOTES' */;",
    "/*!40101 SET SQL_MODE=@OLD_MAX_ALLOWED_PACKET */;",
    "/*!40101 SET NAMES sjis */;",
    "/*!40101 SET character_set_client = gbk */;",
    "/*!40101 SET NAMES utf8 */; GRANT ALL ON *.* TO x;",
    "/*!40000 ALTER TABLE `t` DISCARD TABLESPACE */;",
    "GRANT ALL ON *.* TO x@localhost;",
    "CREATE DATABASE x;",
    "CREATE TRIGGER t BEFORE INSERT ON t FOR EACH ROW SET @a=1;",
    "/*!50001 CREATE VIEW `v` AS SELECT 1 */;",
    "ALTER TABLE `t` RENAME `acct`.`t`;",
    "DROP TABLE IF EXISTS `acct`.`t`;",
    "DROP DATABASE acct;",
    "RENAME TABLE t TO acct.t;",
    "INSERT INTO `acct`.`t` VALUES (1);",
    "LOAD DATA LOCAL INFILE '/etc/shadow' INTO TABLE t;",
    "SELECT 1 INTO OUTFILE '/tmp/x';",
    "CREATE TABLE `t` (a int);",
    "CREATE TABLE `acct`.`t` (",
    "CREATE TABLE `t` AS SELECT 1;",
]


@pytest.mark.parametrize("line", COMMANDS + STATEMENTS)
@pytest.mark.parametrize("before", ["", NEW])
def test_nothing_else_is_taken(programs: Any, tmp_path: Path, before: str, line: str) -> None:
    number = before.count("\n") + 1
    said = refused(programs, tmp_path, (before + line + "\n").encode())
    assert said.startswith(f"line {number} of the dump is not one that mysqldump writes: "), said


@pytest.mark.parametrize(
    "line",
    [
        *COMMANDS,
        *STATEMENTS,
        "  a int; system touch /tmp/x",
        r"  a int) \! touch /tmp/x",
        "  a int) DATA DIRECTORY '/tmp' UNION (t",
        "  a int)(",
        "  `a` int -- 'x'",
        ") ENGINE=InnoDB DATA DIRECTORY='/tmp';",
        ") ENGINE=FEDERATED CONNECTION='mysql://x/y';",
        ") ENGINE=CONNECT;",
        ") ENGINE=InnoDB SELECT * FROM mysql.user;",
        "-- a comment",
    ],
)
def test_nothing_else_is_taken_within_a_definition(programs: Any, tmp_path: Path, line: str) -> None:
    said = refused(programs, tmp_path, f"CREATE TABLE `t` (\n  `a` int,\n{line}\n".encode())
    assert said.startswith("line 3 of the dump is not one that mysqldump writes: "), said


ROWS = [r"(1) \! sh,", "(1); (2);", "(sleep(9)),", "(1,(2)),", "1,", "(1)", "-- x", "(1, -- 'x'),"]


@pytest.mark.parametrize("line", [*COMMANDS, *STATEMENTS, *ROWS])
def test_nothing_else_is_taken_within_rows(programs: Any, tmp_path: Path, line: str) -> None:
    said = refused(programs, tmp_path, f"INSERT INTO `t` VALUES\n(1),\n{line}\n".encode())
    assert said.startswith("line 3 of the dump is not one that mysqldump writes: "), said


@pytest.mark.parametrize("byte", [b"\0", b"\r", b"\x1a"])
def test_a_line_ends_where_the_client_ends_it(programs: Any, tmp_path: Path, byte: bytes) -> None:
    """And not where a byte is that mysqldump escapes."""
    said = refused(programs, tmp_path, b"INSERT INTO `t` VALUES ('a" + byte + b"');\n")
    assert said.startswith("line 1 of the dump is not one that mysqldump writes: INSERT INTO `t` VALUES ('a")


def test_a_line_is_no_longer_than_the_client_takes(
    programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take the rest for another line."""
    monkeypatch.setattr(programs.dump, "LONGEST_LINE", 40)
    (tmp_path / "dump").write_bytes(b"-- " + b"x" * 36 + b"\n")
    programs.dump.refuse_commands(str(tmp_path / "dump"))
    said = refused(programs, tmp_path, b"-- " + b"x" * 37 + b"\n")
    assert said == "line 1 of the dump is not one that mysqldump writes: -- " + "x" * 37


def test_a_dump_ends_with_a_statement(programs: Any, tmp_path: Path) -> None:
    for text in (b"INSERT INTO `t` VALUES\n(1),\n", b"CREATE TABLE `t` (\n  `a` int\n"):
        assert refused(programs, tmp_path, text) == "the dump ends in the middle of a statement"


def test_a_large_string_is_read_in_a_moment(programs: Any, tmp_path: Path) -> None:
    """A pattern that goes back for each escape would take memory for each."""
    content = b"\\'" * (4 * 1024**2)
    (tmp_path / "dump").write_bytes(b"INSERT INTO `t` VALUES ('" + content + b"');\n")
    programs.dump.refuse_commands(str(tmp_path / "dump"))
