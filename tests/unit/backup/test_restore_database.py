"""A dump is loaded beside the database, and takes its place in one statement; the former one stays beside it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest


class MariaDB:
    """Answers what is asked as the mysql client does, and writes it down."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []
        self.tables: dict[str, list[str]] = {}
        self.answers: dict[str, str] = {}
        self.loads = ["a_job_table", "txn_table"]

    def run(self, argv: list[str], stdin: Any = None) -> str:
        assert argv[:5] == ["mysql", "--socket=" + self.socket, "--user=root", "--batch", "--skip-column-names"]
        self.told.append(tuple(argv[5:]))
        if stdin is not None:
            self.told.append((stdin.read().decode(),))
            self.tables[argv[-1]] = self.loads
        for database, names in self.tables.items():
            if f"'{database}'" in argv[5]:
                return "".join(f"{name}\n" for name in names)
        return self.answers.get(argv[5], "")

    def statements(self) -> list[str]:
        """Without those that only ask."""
        words = [" ".join(one).removeprefix("--execute=") for one in self.told]
        return [one for one in words if not one.startswith("SELECT")]

    socket = ""


@pytest.fixture
def maria(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MariaDB:
    """A MariaDB that runs and has nothing."""
    found = MariaDB()
    found.socket = str(tmp_path / "mysql.sock")
    Path(found.socket).touch()
    monkeypatch.setattr(programs.restore, "run", found.run)
    monkeypatch.setattr(programs.restore, "active", lambda unit: unit == "slurmdbd")
    return found


@pytest.fixture
def source(maria: MariaDB) -> dict[str, Any]:
    return {"name": "db", "kind": "mariadb", "database": "acct", "socket": maria.socket, "tables": 2}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """What was unpacked."""
    (tmp_path / "dump.sql").write_text("the dump")
    return str(tmp_path)


def test_tables_are_asked_for_and_sorted(programs: Any, maria: MariaDB, source: dict[str, Any]) -> None:
    maria.tables["acct"] = ["b", "a"]
    assert programs.restore.tables(source, "acct") == ["a", "b"]
    asked = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'acct'"
    assert maria.told == [("--execute=" + asked,)]


def test_the_plan_counts_jobs_and_says_when_it_changed(
    programs: Any, maria: MariaDB, source: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    maria.tables["acct"] = ["a_job_table", "b_job_table", "txn_table", "user_table"]
    for name, row in (("a_job_table", "3\t500"), ("b_job_table", "4\t900")):
        maria.answers[f"--execute=SELECT COUNT(*), COALESCE(MAX(mod_time), 0) FROM {name}"] = row + "\n"
    transactions = "--execute=SELECT COALESCE(MAX(timestamp), 0) FROM txn_table"
    look = programs.restore.look_at_mariadb
    for newest, last, newer in (("800", 900, False), ("1000", 1000, True)):
        maria.answers[transactions] = newest + "\n"
        there = f"4 tables, 7 jobs, last change {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(last))}"
        assert look(source, {"made": 1000}) == (there + ", slurmdbd runs", newer)
    assert ("--execute=SELECT COALESCE(MAX(timestamp), 0) FROM txn_table", "acct") in maria.told
    monkeypatch.setattr(programs.restore, "active", lambda unit: False)
    assert look(source, {"made": 1001}) == (there, False)


def test_a_database_without_jobs_never_changed(programs: Any, maria: MariaDB, source: dict[str, Any]) -> None:
    maria.tables["acct"] = ["user_table"]
    said = "1 tables, 0 jobs, last change never, slurmdbd runs"
    assert programs.restore.look_at_mariadb(source, {"made": 1}) == (said, False)
    maria.tables["acct"] = []
    assert programs.restore.look_at_mariadb(source, {"made": 0}) == ("no tables are there", False)
    Path(maria.socket).unlink()
    assert programs.restore.look_at_mariadb(source, {"made": 0}) == ("MariaDB does not run", False)


def test_a_dump_is_loaded_beside_the_database(
    programs: Any, maria: MariaDB, source: dict[str, Any], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(programs.restore, "need_room", lambda *words: asked.append(words))
    assert programs.restore.prepare_mariadb(source, folder) == "acct_restoring"
    assert asked == [(folder, 16, 64, "the dump of acct")]
    assert maria.statements() == [
        "DROP DATABASE IF EXISTS acct_restoring; CREATE DATABASE acct_restoring",
        "acct_restoring",
        "the dump",
    ]


def test_a_dump_that_lacks_tables_is_taken_away_again(
    programs: Any, maria: MariaDB, source: dict[str, Any], folder: str
) -> None:
    for loads in (["one"], ["one", "two", "three"]):
        maria.loads = loads
        with pytest.raises(programs.common.Problem) as lacks:
            programs.restore.prepare_mariadb(source, folder)
        assert str(lacks.value) == f"the dump gave {len(loads)} tables; there were 2"
        assert maria.statements()[-1] == "DROP DATABASE IF EXISTS acct_restoring"


def test_a_dump_is_not_loaded_where_nobody_takes_it(
    programs: Any, maria: MariaDB, source: dict[str, Any], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs.common, "free_mb", lambda path: 64)
    with pytest.raises(
        programs.common.Problem, match=r"^no room for the dump of acct in .*: 64 MB are free, it needs 1 "
    ):
        programs.restore.prepare_mariadb(source, folder)
    Path(maria.socket).unlink()
    with pytest.raises(programs.common.Problem) as down:
        programs.restore.prepare_mariadb(source, folder)
    assert str(down.value) == f"MariaDB does not run: there is no {maria.socket}"
    assert maria.told == []


def test_all_tables_change_places_at_once(programs: Any, maria: MariaDB, source: dict[str, Any]) -> None:
    maria.tables = {"acct": ["old"], "acct_restoring": ["new", "txn"]}
    said = programs.restore.replace_mariadb(source, "acct_restoring", "/aside/20261121T120000")
    assert said == "restored; what was there is database acct_before_20261121T120000"
    assert maria.statements() == [
        "CREATE DATABASE IF NOT EXISTS acct",
        "CREATE DATABASE acct_before_20261121T120000",
        "RENAME TABLE acct.old TO acct_before_20261121T120000.old,"
        " acct_restoring.new TO acct.new, acct_restoring.txn TO acct.txn",
    ]


def test_where_nothing_was_nothing_is_kept(programs: Any, maria: MariaDB, source: dict[str, Any]) -> None:
    maria.tables = {"acct": [], "acct_restoring": ["new"]}
    assert programs.restore.replace_mariadb(source, "acct_restoring", "/aside/x") == "restored"
    assert maria.statements() == [
        "CREATE DATABASE IF NOT EXISTS acct",
        "RENAME TABLE acct_restoring.new TO acct.new",
    ]


def test_what_was_prepared_is_dropped(programs: Any, maria: MariaDB, source: dict[str, Any]) -> None:
    programs.restore.forget_mariadb(source, "acct_restoring")
    assert maria.statements() == ["DROP DATABASE IF EXISTS acct_restoring"]
