"""What may be restored comes from the declaration; an archive that has anything else is refused, whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.backup.archives import Member, folders, manifest, write

KEY = {"name": "key", "kind": "files", "paths": ["/etc/munge/munge.key"], "stops": ["munge"]}
WEB = {"name": "web", "kind": "files", "paths": ["/etc/web", "/srv/web/data"], "left_out": ["run"]}
STATE = {"name": "state", "kind": "slurm_state", "conf": "/etc/slurm/slurm.conf", "stops": ["slurmctld"]}
BASE = {"name": "base", "kind": "mariadb", "database": "acct", "socket": "/run/x", "stops": ["slurmdbd"]}


@pytest.fixture
def read(programs: Any, tmp_path: Path) -> Any:
    """Return a function: members of an archive -> its manifest and entries."""

    def reading(*members: Member, **more: Any) -> Any:
        names = sorted({one.name.split("/")[0] for one in members})
        return programs.archive.check(str(write(tmp_path / "x", members, manifest(*names, **more))))

    return reading


def chosen(programs: Any, archive: Any, *sources: dict[str, Any], names: tuple[str, ...] = ()) -> Any:
    return programs.contents.chosen(*archive, list(sources), list(names))


def refused(programs: Any, archive: Any, *sources: dict[str, Any], names: tuple[str, ...] = ()) -> str:
    with pytest.raises(programs.common.Problem) as problem:
        chosen(programs, archive, *sources, names=names)
    return str(problem.value)


def key(content: bytes = b"key") -> list[Member]:
    return [*folders("key/etc/munge"), Member("key/etc/munge/munge.key", content=content, mode=0o400)]


def test_a_source_is_what_is_declared_with_what_the_archive_has(programs: Any, read: Any) -> None:
    """Of the folders above a declared path the archive says nothing."""
    (source,) = chosen(programs, read(*key()), KEY)
    assert list(source["entries"]) == ["key/etc/munge/munge.key"]
    assert source["entries"]["key/etc/munge/munge.key"]["mode"] == "0400"
    assert {name: source[name] for name in KEY} == KEY


def test_a_manifest_decides_nothing(programs: Any, read: Any) -> None:
    """Archives of before this was so say all of it; those of an intruder say something else."""
    lies = {"kind": "mariadb", "stops": ["sshd"], "paths": ["/etc"], "database": "mysql", "socket": "/tmp/x"}
    archive = read(*key(), sources=[{"name": "key", **lies, "location": "/etc"}])
    (source,) = chosen(programs, archive, KEY)
    assert {name: value for name, value in source.items() if name != "entries"} == KEY


def test_each_declared_path_is_taken_with_what_is_below(programs: Any, read: Any) -> None:
    members = [
        *folders("web/etc/web/conf.d"),
        Member("web/etc/web/conf.d/a"),
        Member("web/etc/web/conf.d/b", "link", target="a"),
        Member("web/etc/web/c", "link", target="conf.d/a"),
        Member("web/etc/web/conf.d/up", "link", target="../c"),
        Member("web/etc/web/same", "link", target="/etc/web/c"),
        *folders("web/srv/web/data")[1:],
    ]
    (source,) = chosen(programs, read(*members), WEB)
    below = ("", "/c", "/conf.d", "/conf.d/a", "/conf.d/b", "/conf.d/up", "/same")
    assert sorted(source["entries"]) == [*(f"web/etc/web{name}" for name in below), "web/srv/web/data"]


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (Member("key/etc/cron.d/evil"), "/etc/cron.d/evil in the archive is not in what backup_sources declares"),
        (Member("key/etc/munge/other"), "/etc/munge/other in the archive is not in what backup_sources declares"),
        (Member("key/etc/munge/munge.key2"), "/etc/munge/munge.key2 in the archive is not in what"),
        (Member("key/etc/cron.d", "folder"), "/etc/cron.d in the archive is not in what backup_sources declares"),
        (Member("key/etc/cron.d", "link", target="munge"), "/etc/cron.d in the archive is not in what"),
        (Member("key/root\x1b[2J"), r"/root\x1b[2J in the archive is not in what backup_sources declares"),
    ],
)
def test_what_is_not_declared_is_refused(programs: Any, read: Any, member: Member, said: str) -> None:
    members = [*key(), *([Member("key/etc/cron.d", "folder")] if member.name.endswith("evil") else []), member]
    assert refused(programs, read(*members), KEY).startswith("key: " + ("/etc/cron.d in" if len(members) > 5 else said))


def test_an_entry_above_a_declared_path_is_a_folder(programs: Any, read: Any) -> None:
    for member in (Member("key/etc"), Member("key/etc", "link", target="/tmp")):
        said = refused(
            programs,
            read(
                *folders("key"),
                member,
            ),
            KEY,
        )
        assert said == "key: /etc in the archive is not in what backup_sources declares"
    assert refused(programs, read(Member("key")), KEY) == "key: / in the archive is not in what backup_sources declares"


@pytest.mark.parametrize(
    "target",
    [
        *("/etc/shadow", "/", "..", "../x", "../../etc/web2", "/etc/web2", "/etc/web/../shadow", "conf.d/../../x"),
        *("conf.d/..", "conf.d/../c", "a/", "./a", "a//b", "//etc/web/a", "/etc/web/../x", "/srv/web/data/x"),
    ],
)
def test_a_link_stays_in_what_is_declared(programs: Any, read: Any, target: str) -> None:
    """In the same path; and a/.. is elsewhere when a is a link."""
    archive = read(*folders("web/etc/web"), Member("web/etc/web/link", "link", target=target))
    assert refused(programs, archive, WEB) == f"web: /etc/web/link in the archive is a link that leads to {target}"


def test_a_declared_path_that_became_a_link_leads_nowhere_else(programs: Any, read: Any) -> None:
    archive = read(*folders("key/etc/munge"), Member("key/etc/munge/munge.key", "link", target="/home/alice/key"))
    said = "key: /etc/munge/munge.key in the archive is a link that leads to /home/alice/key"
    assert refused(programs, archive, KEY) == said


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o1644])
def test_a_file_that_would_run_as_its_owner_is_refused(programs: Any, read: Any, mode: int) -> None:
    archive = read(*folders("web/etc/web"), Member("web/etc/web/sh", mode=mode))
    said = f"web: web/etc/web/sh in the archive would run as its owner, whoever calls it (mode {mode:04o})"
    assert refused(programs, archive, WEB) == said
    chosen(programs, read(*folders("web/etc"), Member("web/etc/web", "folder", mode=0o2775)), WEB)


def test_what_is_left_out_is_not_restored(programs: Any, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is: archives of before it was left out have it."""
    monkeypatch.setattr(programs.contents, "NEVER", "/etc/web/network")
    members = [
        *folders("web/etc/web"),
        Member("web/etc/web/run", "folder"),
        Member("web/etc/web/run/link", "link", target="/run"),
        Member("web/etc/web/network", "folder"),
        Member("web/etc/web/network/rollback"),
        Member("web/etc/web/runs"),
    ]
    (source,) = chosen(programs, read(*members), WEB)
    assert sorted(source["entries"]) == ["web/etc/web", "web/etc/web/runs"]


def test_what_belongs_to_no_source_is_refused(programs: Any, read: Any) -> None:
    """Whatever was asked for: such an archive is none of ours."""
    archive = read(*key(), Member("keys\n"), sources=[{"name": "key"}])
    for names in ((), ("key",)):
        said = refused(programs, archive, KEY, names=names)
        assert said == r"keys\x0a is not of a source that the archive's manifest has"


def test_a_source_that_nobody_declares_is_refused_or_left_out(programs: Any, read: Any) -> None:
    archive = read(*key(), *folders("evil/etc/cron.d"), Member("evil/etc/cron.d/evil"))
    assert refused(programs, archive, KEY, WEB) == (
        "backup_sources declares no evil for this node, so its place is not known: declare it, or choose from key "
        "by restore_sources"
    )
    assert refused(programs, archive, KEY, names=("evil",)).startswith("backup_sources declares no evil for this node")
    assert [one["name"] for one in chosen(programs, archive, KEY, names=("key",))] == ["key"]
    assert refused(programs, archive, WEB).endswith("choose from none by restore_sources")


def test_what_was_asked_for_is_chosen_in_that_order_and_once(programs: Any, read: Any) -> None:
    archive = read(*key(), *folders("web/etc/web"))
    for asked, order in ((("web", "key", "web"), ["web", "key"]), ((), ["key", "web"]), (("key",), ["key"])):
        assert [one["name"] for one in chosen(programs, archive, WEB, KEY, names=asked)] == order
    assert refused(programs, archive, WEB, KEY, names=("ldap",)) == "the archive has no ldap; it has key, web"


def state(*members: Member) -> list[Member]:
    return [*folders("state/state"), *members]


def test_a_state_is_files_and_folders_of_its_own(programs: Any, read: Any) -> None:
    archive = read(*state(Member("state/state/hash.1", "folder"), Member("state/state/hash.1/script")))
    (source,) = chosen(programs, archive, STATE)
    assert sorted(source["entries"]) == ["state", "state/state", "state/state/hash.1", "state/state/hash.1/script"]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (state(Member("state/cron")), "state: state/cron in the archive is not part of slurmctld's state"),
        (state(Member("state/state2")), "state: state/state2 in the archive is not part of slurmctld's state"),
        (
            state(Member("state/state/job_state", "link", target="clustername")),
            "state: state/state/job_state in the archive is a link, which slurmctld's state does not have there",
        ),
        (
            [*folders("state"), Member("state/state", "link", target="/etc")],
            "state: state/state in the archive is a link, which slurmctld's state does not have there",
        ),
        (
            [*folders("state"), Member("state/state")],
            "state: state/state in the archive is a file, which slurmctld's state does not have there",
        ),
        (folders("state"), "state: the archive has no state of slurmctld"),
    ],
)
def test_a_state_is_nothing_else(programs: Any, read: Any, members: list[Member], said: str) -> None:
    assert refused(programs, read(*members), STATE) == said


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([Member("base/x")], "base: base/x in the archive is not a dump of a database"),
        ([Member("base/dump.sql", "folder")], "base: base/dump.sql in the archive is not a dump of a database"),
        (
            [Member("base/dump.sql", "link", target="x")],
            "base: base/dump.sql in the archive is not a dump of a database",
        ),
        ([], "base: the archive has no dump"),
    ],
)
def test_a_database_is_one_dump(programs: Any, read: Any, members: list[Member], said: str) -> None:
    archive = read(*folders("base"), *members, sources=[{"name": "base", "tables": 1}])
    assert refused(programs, archive, BASE) == said


@pytest.mark.parametrize("tables", [None, True, "3", -1, 2.0, 2**62, [3]])
def test_a_dump_says_how_many_tables_it_has(programs: Any, read: Any, tables: Any) -> None:
    members = [*folders("base"), Member("base/dump.sql", content=b"x")]
    archive = read(*members, sources=[{"name": "base", "tables": tables}])
    assert refused(programs, archive, BASE) == "base: the manifest does not say how many tables there were"
    (source,) = chosen(programs, read(*members, sources=[{"name": "base", "tables": 3}]), BASE)
    assert (source["tables"], source["database"]) == (3, "acct")


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ([{**KEY, "paths": ["/"]}], "backup_sources: / of key has to begin with / and be below it, without .."),
        ([{**KEY, "paths": ["//."]}], "backup_sources: //. of key has to begin with / and be below it, without .."),
        ([{**KEY, "paths": ["etc"]}], "backup_sources: etc of key has to begin with / and be below it, without .."),
        ([{**KEY, "paths": [None]}], "backup_sources: None of key has to begin with / and be below it, without .."),
        ([{**KEY, "paths": ["/a/.."]}], "backup_sources: /a/.. of key has to begin with / and be below it, without .."),
        ([{**KEY, "paths": []}], "backup_sources: key of kind files does not say its paths"),
        ([{"name": "key", "kind": "files"}], "backup_sources: key of kind files does not say its paths"),
        ([{**KEY, "paths": "/etc"}], "backup_sources: paths of key has to be a list, not /etc"),
        ([{**KEY, "stops": "munge"}], "backup_sources: stops of key has to be a list, not munge"),
        ([{**BASE, "socket": ""}], "backup_sources: base of kind mariadb does not say its socket"),
        ([{**BASE, "kind": "ldap"}], "backup_sources: base of kind ldap; kinds are files, mariadb, slurm_state"),
        ([{**BASE, "name": "../x"}], "backup_sources: ../x of kind mariadb; kinds are files, mariadb, slurm_state"),
        ([KEY, {**KEY, "stops": []}], "backup_sources declares key twice for this node, and not alike"),
    ],
)
def test_a_declaration_says_all_that_its_kind_needs(
    programs: Any, read: Any, sources: list[dict[str, Any]], said: str
) -> None:
    assert refused(programs, read(*key()), *sources) == said


def test_a_declared_path_may_be_written_otherwise(programs: Any, read: Any) -> None:
    for path in ("/etc/munge/munge.key/", "//etc//munge/munge.key", "/etc/./munge/munge.key"):
        (source,) = chosen(programs, read(*key()), {**KEY, "paths": [path]})
        assert (source["paths"], list(source["entries"])) == (["/etc/munge/munge.key"], ["key/etc/munge/munge.key"])
