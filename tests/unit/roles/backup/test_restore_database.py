"""A dump is loaded beside the database by an account of its own, and takes its place in one statement."""

from __future__ import annotations

import stat
import time
from pathlib import Path
from typing import Any

import pytest

DUMP = "CREATE TABLE `a` (\n  `x` int\n) ENGINE=InnoDB;\n"


class MariaDB:
    """Answers what is asked as the mysql client does, and writes it down."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []
        self.tables: dict[str, list[str]] = {}
        self.answers: dict[str, str] = {}
        self.loads = ["a_job_table", "txn_table"]
        self.account = False
        self.settings = ""
        self.fails = ""

    def run(self, argv: list[str], stdin: Any = None) -> str:
        assert argv[0] == "mysql"
        own = argv.index("--socket=" + self.socket)
        assert argv[own:][1:3] == ["--batch", "--skip-column-names"]
        self.told.append(tuple(argv[own + 3 :]))
        if argv[1] == "--user=root":
            assert own == 2
        else:
            self._load(argv[1:own], argv[own + 3], stdin.read().decode())
            return ""
        if stdin is not None:
            self.told.append((stdin.decode(),))
            self.account = "GRANT" in stdin.decode()
            return ""
        asked = argv[own + 3]
        if "mysql.user" in asked:
            return "1\n" if self.account else ""
        if "DROP USER" in asked:
            self.account = False
        for database, names in self.tables.items():
            if f"'{database}'" in asked:
                return "".join(f"{name}\n" for name in names)
        return self.answers.get(asked, "")

    def _load(self, login: list[str], database: str, dump: str) -> None:
        file, *options = login
        assert options == ["--loose-sandbox", "--init-command=SET sql_mode = ''"]
        path = Path(file.removeprefix("--defaults-file="))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        self.settings = path.read_text()
        self.told.append((dump,))
        if self.fails:
            raise self.problem(self.fails)
        self.tables[database] = self.loads

    problem: type[Exception] = Exception

    def statements(self) -> list[str]:
        """Without those that only ask."""
        words = [" ".join(one).removeprefix("--execute=") for one in self.told]
        return [one for one in words if not one.startswith("SELECT")]

    socket = ""


@pytest.fixture
def maria(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MariaDB:
    """A MariaDB that runs and has nothing."""
    found = MariaDB()
    found.socket, found.problem = str(tmp_path / "mysql.sock"), programs.common.Problem
    Path(found.socket).touch()
    monkeypatch.setattr(programs.restore_mariadb, "run", found.run)
    monkeypatch.setattr(programs.restore_mariadb, "active", lambda unit: unit == "slurmdbd")
    return found


@pytest.fixture
def source(maria: MariaDB) -> dict[str, Any]:
    return {"name": "db", "kind": "mariadb", "database": "acct", "socket": maria.socket, "tables": 2}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """What was unpacked."""
    (tmp_path / "dump.sql").write_text(DUMP)
    return str(tmp_path)


def test_tables_are_asked_for_and_sorted(programs: Any, maria: MariaDB, source: dict[str, Any]) -> None:
    maria.tables["acct"] = ["b", "a"]
    assert programs.restore_mariadb.tables(source, "acct") == ["a", "b"]
    asked = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'acct'"
    assert maria.told == [("--execute=" + asked,)]


EXCHANGED = ["2 tables of acct: exchanged at once"]


def test_the_plan_counts_jobs_and_says_when_it_changed(
    programs: Any, maria: MariaDB, source: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    maria.tables["acct"] = ["a_job_table", "b_job_table", "txn_table", "user_table"]
    for name, row in (("a_job_table", "3\t500"), ("b_job_table", "4\t900")):
        maria.answers[f"--execute=SELECT COUNT(*), COALESCE(MAX(mod_time), 0) FROM `{name}`"] = row + "\n"
    transactions = "--execute=SELECT COALESCE(MAX(timestamp), 0) FROM txn_table"
    look = programs.restore_mariadb.look
    for newest, last, newer in (("800", 900, False), ("1000", 1000, True)):
        maria.answers[transactions] = newest + "\n"
        there = f"4 tables, 7 jobs, last change {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(last))}"
        assert look(source, 1000) == (there + ", slurmdbd runs", newer, EXCHANGED)
    assert ("--execute=SELECT COALESCE(MAX(timestamp), 0) FROM txn_table", "acct") in maria.told
    monkeypatch.setattr(programs.restore_mariadb, "active", lambda unit: False)
    assert look(source, 1001) == (there, False, EXCHANGED)


@pytest.mark.parametrize(("later", "newer"), [(-1, False), (0, True), (1, True)])
def test_a_database_is_newer_from_the_second_of_the_archive_on(
    programs: Any, maria: MariaDB, source: dict[str, Any], later: int, newer: bool
) -> None:
    maria.tables["acct"] = ["txn_table"]
    maria.answers["--execute=SELECT COALESCE(MAX(timestamp), 0) FROM txn_table"] = f"{1000 + later}\n"
    assert programs.restore_mariadb.look(source, 1000)[1] is newer


def test_a_database_without_jobs_never_changed(programs: Any, maria: MariaDB, source: dict[str, Any]) -> None:
    maria.tables["acct"] = ["user_table"]
    said = "1 tables, 0 jobs, last change never, slurmdbd runs"
    assert programs.restore_mariadb.look(source, 1) == (said, False, EXCHANGED)
    maria.tables["acct"] = []
    assert programs.restore_mariadb.look(source, 0) == ("no tables are there", False, EXCHANGED)
    Path(maria.socket).unlink()
    assert programs.restore_mariadb.look(source, 0) == ("MariaDB does not run", False, EXCHANGED)


def test_a_dump_is_loaded_beside_the_database_by_who_may_do_nothing_else(
    programs: Any, maria: MariaDB, source: dict[str, Any], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(programs.restore_mariadb, "need_room", lambda *words: asked.append(words))
    assert programs.restore_mariadb.prepare(source, folder) == "acct_restoring"
    assert asked == [(folder, 2 * len(DUMP), 64, "the dump of acct")]
    client, user, password = maria.settings.splitlines()
    assert (client, user) == ("[client]", "user=hal_restoring")
    secret = password.removeprefix("password=")
    assert len(secret) == 40
    rights = "ALTER, CREATE, DROP, INDEX, INSERT, LOCK TABLES, REFERENCES, SELECT"
    assert maria.statements() == [
        "DROP DATABASE IF EXISTS `acct_restoring`",
        "",
        "CREATE DATABASE `acct_restoring`;"
        f" GRANT {rights} ON `acct\\_restoring`.* TO hal_restoring@localhost IDENTIFIED BY '{secret}';",
        "acct_restoring",
        DUMP,
    ]
    assert not any(secret in word for words in maria.told for word in words if "GRANT" not in word)
    assert sorted(path.name for path in Path(folder).iterdir()) == ["dump.sql", "mysql.sock"]
    programs.restore_mariadb.prepare(source, folder)
    assert secret not in maria.settings, "each has one of its own"


def test_a_dump_with_a_command_is_refused_before_anybody_is_told(
    programs: Any, maria: MariaDB, source: dict[str, Any], folder: str
) -> None:
    (Path(folder) / "dump.sql").write_text(DUMP + "\\! touch /tmp/x\n")
    with pytest.raises(programs.common.Problem) as refused:
        programs.restore_mariadb.prepare(source, folder)
    assert str(refused.value) == r"line 4 of the dump is not one that mysqldump writes: \\! touch /tmp/x"
    assert maria.told == []


def test_what_a_run_left_that_was_killed_is_removed_first(
    programs: Any, maria: MariaDB, source: dict[str, Any], folder: str
) -> None:
    maria.account = True
    programs.restore_mariadb.prepare(source, folder)
    assert maria.statements()[:2] == [
        "DROP DATABASE IF EXISTS `acct_restoring`",
        "DROP USER hal_restoring@localhost",
    ]


def test_a_dump_that_lacks_tables_is_taken_away_again(
    programs: Any, maria: MariaDB, source: dict[str, Any], folder: str
) -> None:
    for loads in (["one"], ["one", "two", "three"]):
        maria.loads = loads
        with pytest.raises(programs.common.Problem) as lacks:
            programs.restore_mariadb.prepare(source, folder)
        assert str(lacks.value) == f"the dump gave {len(loads)} tables; there were 2"
        gone = ["DROP DATABASE IF EXISTS `acct_restoring`", "DROP USER hal_restoring@localhost"]
        assert maria.statements()[-2:] == gone


def test_what_the_server_refuses_is_taken_away_again(
    programs: Any, maria: MariaDB, source: dict[str, Any], folder: str
) -> None:
    """The statements of the archive, by its own account: what is said is what the server said."""
    maria.fails = "mysql: ERROR 1142 (42000): DROP command denied to user 'hal_restoring'@'localhost'"
    with pytest.raises(programs.common.Problem) as refused:
        programs.restore_mariadb.prepare(source, folder)
    assert str(refused.value) == maria.fails
    assert maria.statements()[-1] == "DROP USER hal_restoring@localhost"
    assert sorted(path.name for path in Path(folder).iterdir()) == ["dump.sql", "mysql.sock"]


def test_a_dump_is_not_loaded_where_nobody_takes_it(
    programs: Any, maria: MariaDB, source: dict[str, Any], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs.common, "free_mb", lambda path: 64)
    with pytest.raises(
        programs.common.Problem, match=r"^no room for the dump of acct in .*: 64 MB are free, it needs 1 "
    ):
        programs.restore_mariadb.prepare(source, folder)
    Path(maria.socket).unlink()
    with pytest.raises(programs.common.Problem) as down:
        programs.restore_mariadb.prepare(source, folder)
    assert str(down.value) == f"MariaDB does not run: there is no {maria.socket}"
    assert maria.told == []


def test_all_tables_change_places_at_once(programs: Any, maria: MariaDB, source: dict[str, Any]) -> None:
    maria.tables = {"acct": ["old"], "acct_restoring": ["new", "txn"]}
    said = programs.restore_mariadb.replace(source, "acct_restoring", "/aside/20261121T120000")
    assert said == "restored; what was there is database acct_before_20261121T120000"
    assert maria.statements() == [
        "CREATE DATABASE IF NOT EXISTS `acct`",
        "CREATE DATABASE `acct_before_20261121T120000`",
        "RENAME TABLE `acct`.`old` TO `acct_before_20261121T120000`.`old`,"
        " `acct_restoring`.`new` TO `acct`.`new`, `acct_restoring`.`txn` TO `acct`.`txn`",
    ]


def test_a_table_named_by_sql_is_a_name(programs: Any, maria: MariaDB, source: dict[str, Any]) -> None:
    """Whoever was root of the node named it; root of MariaDB says it."""
    evil = "x` TO mysql.db; DROP DATABASE acct; -- _job_table"
    quoted = "`x`` TO mysql.db; DROP DATABASE acct; -- _job_table`"
    maria.tables = {"acct": [], "acct_restoring": [evil]}
    programs.restore_mariadb.replace(source, "acct_restoring", "/aside/x")
    assert maria.statements()[-1] == f"RENAME TABLE `acct_restoring`.{quoted} TO `acct`.{quoted}"
    maria.tables = {"acct": [evil]}
    maria.answers[f"--execute=SELECT COUNT(*), COALESCE(MAX(mod_time), 0) FROM {quoted}"] = "1\t5\n"
    assert programs.restore_mariadb.look(source, 10)[0].startswith("1 tables, 1 jobs")


def test_where_nothing_was_nothing_is_kept(programs: Any, maria: MariaDB, source: dict[str, Any]) -> None:
    maria.tables = {"acct": [], "acct_restoring": ["new"]}
    assert programs.restore_mariadb.replace(source, "acct_restoring", "/aside/x") == "restored"
    assert maria.statements() == [
        "CREATE DATABASE IF NOT EXISTS `acct`",
        "RENAME TABLE `acct_restoring`.`new` TO `acct`.`new`",
    ]
    maria.tables, maria.told = {"acct": [], "acct_restoring": []}, []
    assert programs.restore_mariadb.replace(source, "acct_restoring", "/aside/x") == "restored"
    assert maria.statements() == ["CREATE DATABASE IF NOT EXISTS `acct`"]


def test_what_was_prepared_is_dropped_with_who_loaded_it(programs: Any, maria: MariaDB, source: dict[str, Any]) -> None:
    maria.account = True
    for _ in range(2):
        programs.restore_mariadb.forget(source, "acct_restoring")
    gone = "DROP DATABASE IF EXISTS `acct_restoring`"
    assert maria.statements() == [gone, "DROP USER hal_restoring@localhost", gone]
