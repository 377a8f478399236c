"""What Slurm's accounting, its reservations and databases say of a node's resources, and when it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible.module_utils.hal_node.audit.kinds.database import Databases
from ansible.module_utils.hal_node.audit.kinds.slurm import RECURRING, Slurm, compared, is_over, same_field
from ansible.module_utils.hal_node.expect.values import Unreadable
from ansible.module_utils.hal_node.slurm import accounting as accounting
from ansible.module_utils.hal_node.slurm.accounting import columns

from tests.unit.hal_node.audit.conftest import FakeNode, entry, kinds

NAMES = {
    "qos": columns(accounting.QOS, ["Name"]),
    "account": columns(accounting.ACCOUNT, ["Account"]),
    "user": columns(accounting.USER, ["User"]),
    "assoc": columns(accounting.ASSOCIATION, ["Account", "User"]),
}
ROWS: dict[str, list[dict[str, str]]] = {
    "qos": [{"Name": "normal", "Priority": "0"}, {"Name": "long", "Priority": "10", "MaxWall": "1-00:00:00"}],
    "account": [{"Account": "root", "Descr": "default"}, {"Account": "vision", "Descr": "cameras", "Org": "lab"}],
    "user": [{"User": "bob"}, {"User": "alice", "DefaultAccount": "vision", "Admin": "None"}],
    "assoc": [
        {"Account": "root", "Share": "9"},
        {"Account": "vision", "ParentName": "root", "Share": "4", "QOS": "long,normal"},
        {"Account": "vision", "User": "alice", "Share": "2", "MaxJobs": "5"},
        {"Account": "speech", "User": "alice", "Share": "3", "GrpJobs": "7", "ParentName": "x"},
        {"Account": "speech", "User": "bob", "Share": "8"},
    ],
}
RESERVATIONS = (
    "ReservationName=course StartTime=2027-01-10T08:00:00 EndTime=2027-01-10T18:00:00 Duration=10:00:00"
    " Nodes=hal[01-02] NodeCnt=2 CoreCnt=128 Features=(null) PartitionName=gpu"
    " Flags=SPEC_NODES,IGNORE_JOBS,FLEX Users=bob,alice Accounts=vision,speech State=INACTIVE\n"
    "ReservationName=weekly StartTime=2027-01-11T06:00:00 EndTime=2027-01-11T07:00:00 Nodes=hal03 NodeCnt=1"
    " PartitionName=(null) Flags=ALL_NODES,WEEKLY Users=root Accounts=(null) State=INACTIVE\n"
    "ReservationName=plain EndTime=2027-01-12T07:00:00 Nodes=hal04 Flags=SPEC_NODES Users=(null)\n"
)


@pytest.fixture
def cluster(hal: FakeNode) -> FakeNode:
    """A node that may ask the daemons of Slurm."""

    def sacctmgr(words: list[str]) -> tuple[int, str, str]:
        what = words[words.index("show") + 1]
        if "withcoord" in words:
            return 0, "root|carol\nspeech|\nvision|bob,alice,carol\n", ""
        names = words[-1].removeprefix("format=").split(",")
        assert words == ["--noheader", "--parsable2", "show", what, "format=" + ",".join(NAMES[what])]
        return 0, "".join("|".join(row.get(name, "") for name in names) + "\n" for row in ROWS[what]), ""

    hal.programs["sacctmgr"] = sacctmgr
    hal.programs["scontrol"] = lambda words: (0, RESERVATIONS, "")
    return hal


def test_a_qos_has_the_keys_of_its_declaration(cluster: FakeNode) -> None:
    slurm = Slurm(cluster.node)
    assert slurm.qos("long") == {"state": "present", "priority": "10", "max_wall": "1-00:00:00"}
    assert slurm.qos("short") == {"state": "absent"}


def test_an_account_has_the_limits_of_its_own_association(cluster: FakeNode) -> None:
    slurm = Slurm(cluster.node)
    assert slurm.account("vision") == {
        **{"state": "present", "description": "cameras", "organization": "lab", "parent": "root"},
        **{"fairshare": "4", "qos": "long,normal"},
    }
    assert slurm.account("root") == {"state": "present", "description": "default", "fairshare": "9"}
    assert slurm.account("speech") == {"state": "absent"}


def test_a_user_has_all_accounts_and_the_limits_of_the_first(cluster: FakeNode) -> None:
    slurm = Slurm(cluster.node)
    assert slurm.user("alice") == {
        **{"state": "present", "default_account": "vision", "admin_level": "None", "accounts": ["speech", "vision"]},
        **{"fairshare": "2", "max_jobs": "5", "grp_jobs": "7"},
    }
    assert slurm.user("bob") == {"state": "present", "accounts": ["speech"], "fairshare": "8"}
    assert slurm.user("carol") == {"state": "absent"}


def test_a_limit_that_was_changed_in_one_of_a_user_s_accounts_is_seen(cluster: FakeNode) -> None:
    slurm = Slurm(cluster.node)
    assert "max_jobs" not in slurm.user("alice", {"max_jobs": 5}), "of speech it was taken away"
    assert slurm.user("alice", {"max_jobs": None})["max_jobs"] == "5"
    assert slurm.user("alice", {"fairshare": 2})["fairshare"] == "3"
    assert slurm.user("alice", {"fairshare": 3})["fairshare"] == "2"
    assert slurm.user("alice", {"fairshare": "odd"})["fairshare"] == "2"


def test_coordinators_are_compared_where_they_are_declared_and_asked_for_only_then(cluster: FakeNode) -> None:
    slurm = Slurm(cluster.node)
    assert "coordinators" not in slurm.account("vision", {"description": "cameras"})
    assert not any("withcoord" in call for call in cluster.calls)
    declared = {"coordinators": ["alice", "bob"]}
    assert slurm.account("vision", declared)["coordinators"] == ["alice", "bob"]
    assert slurm.account("root", declared)["coordinators"] == ["carol"], "of those below it, too, as Slurm shows"
    assert len([call for call in cluster.calls if "withcoord" in call]) == 1
    cluster.seal(entry("slurm-account:vision", declared={"state": "present", **declared}))
    assert kinds(cluster.look()) == []
    cluster.seal(entry("slurm-account:vision", declared={"state": "present", "coordinators": ["alice"]}))
    assert kinds(cluster.look()) == [("slurm-account:vision", "changed", "coordinators")]


@pytest.mark.parametrize("answer", [(1, "", "no route"), (0, "vision|a|b\n", "")])
def test_coordinators_that_cannot_be_read_are_not_fine(cluster: FakeNode, answer: tuple[int, str, str]) -> None:
    before = cluster.programs["sacctmgr"]
    cluster.programs["sacctmgr"] = lambda words: answer if "withcoord" in words else before(words)
    slurm = Slurm(cluster.node)
    for _ in range(2):
        with pytest.raises(Unreadable):
            slurm.account("vision", {"coordinators": []})


def test_a_reservation_has_what_was_declared_and_not_what_slurm_adds(cluster: FakeNode) -> None:
    slurm = Slurm(cluster.node)
    assert slurm.reservation("course") == {
        **{"state": "present", "nodes": "hal[01-02]", "node_count": "2", "partition": "gpu"},
        **{"users": ["alice", "bob"], "accounts": ["speech", "vision"], "flags": ["FLEX", "IGNORE_JOBS"]},
        "end": "2027-01-10T18:00:00",
    }
    # The end of one that comes again moves with each time.
    assert slurm.reservation("weekly") == {
        **{"state": "present", "nodes": "hal03", "node_count": "1", "users": ["root"], "flags": ["WEEKLY"]},
    }
    assert slurm.reservation("plain") == {
        "state": "present",
        "nodes": "hal04",
        "flags": [],
        "end": "2027-01-12T07:00:00",
    }
    assert slurm.reservation("gone") == {"state": "absent"}


@pytest.mark.parametrize("flag", sorted(RECURRING))
def test_every_flag_of_what_comes_again_hides_the_end(hal: FakeNode, flag: str) -> None:
    text = f"ReservationName=r EndTime=2027-01-12T07:00:00 Nodes=hal04 Flags={flag} Users=root\n"
    hal.programs["scontrol"] = lambda words: (0, text, "")
    assert "end" not in Slurm(hal.node).reservation("r")


def test_each_table_of_slurm_is_asked_once(cluster: FakeNode) -> None:
    slurm = Slurm(cluster.node)
    for _ in range(2):
        slurm.qos("long")
        slurm.account("vision")
        slurm.user("alice")
        slurm.reservation("course")
    asked = [" ".join(call[:5]) for call in cluster.calls]
    show = "sacctmgr --noheader --parsable2 show "
    assert asked == [show + "qos", show + "account", show + "assoc", show + "user", RESERVATION_CALL]


RESERVATION_CALL = "scontrol show reservation --oneliner"


@pytest.mark.parametrize("status", [1, 127, -15])
def test_a_program_that_failed_says_nothing_and_is_not_asked_again(hal: FakeNode, status: int) -> None:
    for name in ("sacctmgr", "scontrol", "mysql"):
        hal.programs[name] = lambda words: (status, "out  of\nit\n", "")
    slurm, databases = Slurm(hal.node), Databases(hal.node)
    reads: list[tuple[Callable[[], Any], str]] = [
        (lambda: slurm.qos("long"), "sacctmgr"),
        (lambda: slurm.account("vision"), "sacctmgr"),
        (lambda: slurm.user("alice"), "sacctmgr"),
        (lambda: slurm.reservation("course"), "scontrol"),
        (lambda: databases.observe("database", "slurm", {}), "mysql"),
    ]
    for _ in range(2):
        for read, program in reads:
            with pytest.raises(Unreadable) as error:
                read()
            assert error.value.reason == f"{program} ended with status {status}"
            assert error.value.detail == "out of it"
    assert [call[0] for call in hal.calls] == ["sacctmgr"] * 3 + ["scontrol", "mysql"]


def test_what_a_program_complains_of_counts_more_than_its_output_and_is_cut(hal: FakeNode) -> None:
    hal.programs["sacctmgr"] = lambda words: (1, "out", "slurmdbd: " + "x" * 300)
    with pytest.raises(Unreadable) as error:
        Slurm(hal.node).qos("long")
    assert error.value.detail == "slurmdbd: " + "x" * 190


def test_rows_of_another_slurm_are_unreadable(hal: FakeNode) -> None:
    hal.programs["sacctmgr"] = lambda words: (0, "long|10\n", "")
    slurm = Slurm(hal.node)
    for _ in range(2):
        with pytest.raises(Unreadable, match=r"^13 columns asked for, sacctmgr gave 2: long\|10$"):
            slurm.qos("long")
    assert len(hal.calls) == 1


def test_the_daemons_get_half_a_minute(hal: FakeNode) -> None:
    waited: list[tuple[str, float]] = []

    class Node:
        def run(self, argv: list[str], timeout_seconds: float) -> tuple[int, str, str]:
            waited.append((argv[0], timeout_seconds))
            return 0, "", ""

    Slurm(Node()).qos("long")
    Databases(Node()).observe("database", "slurm", {})
    assert waited == [("sacctmgr", 30), ("mysql", 30)]


@pytest.mark.parametrize(
    ("kind", "key", "wanted", "seen", "equal"),
    [
        ("slurm-account", "accounts", "b,a", ["a", "b"], True),
        ("slurm-account", "accounts", [], "", True),
        ("slurm-user", "accounts", ["a"], None, False),
        ("slurm-reservation", "nodes", "hal[01-02]", None, False),
        ("slurm-reservation", "nodes", "hal[01-02]", "hal[01-03]", False),
        ("slurm-reservation", "nodes", "hal[01-02]", "ALL[", False),
        ("slurm-reservation", "nodes", "ALL[", "ALL[", True),
        ("slurm-reservation", "accounts", ["b", "a"], ["a", "b"], True),
        ("slurm-reservation", "flags", ["FLEX"], ["FLEX"], True),
        ("slurm-reservation", "flags", ["FLEX"], [], False),
        ("slurm-reservation", "end", "2027-01-10T08:00:00", "2027-01-10T09:00:00", False),
        ("slurm-reservation", "node_count", 2, "2", True),
        ("slurm-reservation", "node_count", 2, "3", False),
        ("slurm-reservation", "partition", "gpu", "gpu", True),
        ("slurm-reservation", "partition", "gpu", None, False),
        ("slurm-qos", "priority", 10, "11", False),
    ],
)
def test_every_field_of_slurm_has_a_comparison(kind: str, key: str, wanted: Any, seen: Any, equal: bool) -> None:
    assert same_field(kind, key, wanted, seen) is equal


def test_what_cannot_be_compared_is_left_out() -> None:
    reservation = {"nodes", "node_count", "partition", "users", "accounts", "flags", "end"}
    assert compared("slurm-reservation") == reservation
    assert {"accounts", "priority", "parent", "description", "admin_level"} < compared("slurm-user")
    assert not {"state", "duration", "start"} & (compared("slurm-user") | reservation)


def test_a_reservation_is_over_from_its_last_second_on() -> None:
    import time

    end = time.mktime(time.strptime("2027-01-10 08:00:00", "%Y-%m-%d %H:%M:%S"))
    for text in ("2027-01-10T08:00:00", "2027-01-10 08:00:00"):
        assert [is_over({"end": text}, now) for now in (end - 1, end, end + 1)] == [False, True, True]
    assert is_over({"end": "soon"}, end) is False


def test_a_declared_reservation_that_slurm_forgot_is_missing_until_it_is_over(cluster: FakeNode) -> None:
    declared = {"state": "present", "nodes": "hal[01-02]", "users": ["alice", "bob"], "end": "2027-01-10 18:00:00"}
    cluster.seal(entry("slurm-reservation:course", declared=declared))
    assert cluster.look()["differences"] == []
    cluster.programs["scontrol"] = lambda words: (0, RESERVATIONS.replace("bob,alice", "bob"), "")
    assert kinds(cluster.look()) == [("slurm-reservation:course", "changed", "users")]
    cluster.programs["scontrol"] = lambda words: (0, "No reservations in the system\n", "")
    assert kinds(cluster.look()) == [("slurm-reservation:course", "missing", "state")]
    cluster.now += 400 * 86400
    assert cluster.look()["differences"] == []


def test_users_and_accounts_of_slurm_are_observed_by_their_kinds(cluster: FakeNode) -> None:
    cluster.seal(
        entry("slurm-account:vision", declared={"state": "present", "fairshare": 4, "parent": "root"}),
        entry("slurm-user:alice", declared={"state": "present", "accounts": ["vision"], "fairshare": "odd"}),
        entry("slurm-license:x"),
    )
    found = cluster.look()["differences"]
    assert [(one["resource"], one["kind"], one["attribute"], one["note"]) for one in found] == [
        ("slurm-license:x", "unreadable", "", 'this version cannot look at resources of kind "slurm-license"'),
        ("slurm-user:alice", "changed", "accounts", ""),
        ("slurm-user:alice", "unreadable", "fairshare", "'odd' is neither a number nor parent"),
    ]


def test_databases_are_asked_once_a_socket_and_a_kind(hal: FakeNode) -> None:
    said = {"SHOW DATABASES": "slurm\nmysql\n", Databases.QUERIES["database-user"]: "slurm@localhost\n"}
    hal.programs["mysql"] = lambda words: (0, said[words[-1].removeprefix("--execute=")], "")
    databases = Databases(hal.node)
    socket = {"socket": "/run/mysql.sock"}
    for _ in range(2):
        assert databases.observe("database", "slurm", {}) == {"state": "present"}
        assert databases.observe("database", "slur", {}) == {"state": "absent"}
        assert databases.observe("database", "slurm", socket) == {"state": "present"}
        assert databases.observe("database-user", "slurm@localhost", socket) == {"state": "present"}
        assert databases.observe("database-user", "slurm@%", socket) == {"state": "absent"}
    words = ["mysql", "--batch", "--skip-column-names", "--connect-timeout=10"]
    assert hal.calls == [
        [*words, "--execute=SHOW DATABASES"],
        [*words, "--socket=/run/mysql.sock", "--execute=SHOW DATABASES"],
        [*words, "--socket=/run/mysql.sock", "--execute=SELECT CONCAT(User, '@', Host) FROM mysql.user"],
    ]
