"""Accounts, users and QOS: what is declared against what sacctmgr prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.slurm.accounting import (
    ASSOCIATION,
    AccountingError,
    State,
    columns,
    coordinator_steps,
    coordinators,
    coordinators_query,
    queries,
    read,
    seconds,
    steps,
    table,
    unmanaged,
)

QOS: list[dict[str, Any]] = [
    {
        "name": "prolonged",
        "description": "Long exclusive",
        "flags": ["PartitionTimeLimit", "DenyOnLimit"],
        "max_wall": "168:00:00",
        "max_tres_per_user": {"gres/gpu": 16},
        "priority": 10,
    }
]
ACCOUNTS: list[dict[str, Any]] = [
    {"name": "vision", "parent": "isl", "fairshare": 10, "grp_tres": {"gres/gpu": 32}},
    {"name": "isl", "description": "Innovative Systems Lab", "organization": "ncsa"},
]
USERS: list[dict[str, Any]] = [
    {"name": "alice", "accounts": ["vision"], "qos": ["prolonged", "normal"], "default_qos": "normal"},
    {"name": "bob", "accounts": ["isl"], "admin_level": "None"},
]


@pytest.fixture
def state(captures: Path) -> State:
    """What a real database held."""
    return read([(captures / f"{name}.txt").read_text() for name in ("qos", "account", "user", "assoc")])


def argv(state: State, **declared: list[dict[str, Any]]) -> list[str]:
    found = steps("hal", declared.get("qos", []), declared.get("accounts", []), declared.get("users", []), state)
    return [" ".join(step.argv[2:]) for step in found]


EMPTY = State({}, {}, {}, {})


def test_the_captures_are_of_the_queries_that_are_made(captures: Path) -> None:
    page = (captures / "README.md").read_text()
    for query in queries("hal"):
        assert " ".join(query).replace("--noheader --parsable2", "-nP") in page


def test_a_database_that_is_as_declared_gets_no_command(state: State) -> None:
    assert argv(state, qos=QOS, accounts=ACCOUNTS, users=USERS) == []


def test_an_empty_database_gets_everything_parents_first(state: State) -> None:
    got = argv(EMPTY, qos=QOS, accounts=ACCOUNTS, users=USERS)
    assert [line.split()[:3] for line in got] == [
        ["add", "qos", "prolonged"],
        ["add", "account", "isl"],
        ["add", "account", "vision"],
        ["add", "user", "alice"],
        ["add", "user", "bob"],
    ]
    assert "Flags=PartitionTimeLimit,DenyOnLimit" in got[0]
    assert "MaxTRESPU=gres/gpu=16" in got[0]


def test_only_the_difference_is_changed(state: State) -> None:
    assert argv(state, qos=[{**QOS[0], "max_wall": "14-0"}]) == ["modify qos where name=prolonged set MaxWall=14-0"]


def test_a_null_clears_each_resource_by_its_name(state: State) -> None:
    assert argv(state, qos=[{**QOS[0], "max_tres_per_user": None, "max_wall": None}]) == [
        "modify qos where name=prolonged set MaxWall=-1 MaxTRESPU=gres/gpu=-1"
    ]


def test_an_account_or_user_may_share_as_its_parent_does(state: State) -> None:
    """sacctmgr(1) Fairshare: a number, or "parent". It shows the word, too; a cleared one is 1."""
    parent = [{"name": "vision", "fairshare": "parent"}]
    user = [{"name": "bob", "accounts": ["isl"], "fairshare": "parent"}]
    assert argv(state, accounts=parent, users=user) == [
        "modify account where name=vision cluster=hal set Fairshare=parent",
        "modify user where name=bob account=isl cluster=hal set Fairshare=parent",
    ]
    key, row = ("vision", ""), {**state.associations["vision", ""], "Share": "parent"}
    sharing = state._replace(associations={**state.associations, key: row})
    assert argv(sharing, accounts=parent) == []
    assert argv(sharing, accounts=[{"name": "vision", "fairshare": 10}]) == [
        "modify account where name=vision cluster=hal set Fairshare=10"
    ]
    cleared = [{"name": "vision", "fairshare": None}]
    assert argv(sharing, accounts=cleared) == ["modify account where name=vision cluster=hal set Fairshare=1"]
    assert argv(state, accounts=[{"name": "isl", "fairshare": None}]) == []


def test_what_a_qos_withdraws_goes_back_to_slurms_default_once(state: State) -> None:
    """sacctmgr shows 0 and 1.000000 for a priority and a usage factor that were never set."""
    withdrawn = [{"name": "prolonged", "priority": None, "usage_factor": None}]
    assert argv(state, qos=withdrawn) == ["modify qos where name=prolonged set Priority=0"]
    cleared = state._replace(qos={"prolonged": {**state.qos["prolonged"], "Priority": "0"}})
    assert argv(cleared, qos=withdrawn) == []


def test_what_an_entry_does_not_say_is_left_alone(state: State) -> None:
    assert argv(state, qos=[{"name": "prolonged"}], accounts=[{"name": "vision"}]) == []


def test_a_user_gets_the_first_account_as_default_and_loses_others(state: State) -> None:
    got = argv(state, users=[{"name": "alice", "accounts": ["isl"]}])
    assert got == [
        "add user alice account=isl cluster=hal",
        "modify user where name=alice set DefaultAccount=isl",
        "delete user where name=alice account=vision cluster=hal",
    ]


def test_absent_deletes_what_is_there_users_first(state: State) -> None:
    gone = {"state": "absent"}
    got = argv(
        state,
        qos=[{"name": "prolonged", **gone}, {"name": "never", **gone}],
        accounts=[{"name": "vision", **gone}],
        users=[{"name": "alice", **gone}],
    )
    assert got == [
        "delete user where name=alice",
        "delete account where name=vision",
        "delete qos where name=prolonged",
    ]


def test_what_nobody_declared_is_shown(state: State) -> None:
    assert unmanaged(QOS, [], USERS[:1], state) == {"qos": [], "accounts": ["isl", "vision"], "users": ["bob"]}


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"qos": [{"name": "a", "max_wal": 1}]}, "QOS a: unknown key max_wal; known are .*max_wall"),
        ({"qos": [{"name": "a"}, {"name": "a"}]}, "QOS a is declared twice"),
        ({"qos": [{"max_wall": "1:0:0"}]}, "QOS without a name"),
        ({"qos": [{"name": "a", "max_wall": "a week"}]}, "a: max_wall: 'a week' is not a time"),
        ({"users": [{"name": "u"}]}, "user u: accounts is empty"),
        ({"accounts": [{"name": "a", "fairshare": "much"}]}, "a: fairshare: 'much' is neither a number nor parent"),
        ({"accounts": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]}, "each other's parents: a, b"),
        ({"accounts": [{"name": "a", "state": "gone"}]}, "account a: state is present or absent"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused_with_its_place(
    declared: dict[str, list[dict[str, Any]]], message: str
) -> None:
    with pytest.raises(AccountingError, match=message):
        argv(EMPTY, **declared)


def test_a_row_of_another_length_is_refused() -> None:
    """A description with a bar in it would shift the columns."""
    with pytest.raises(AccountingError, match="2 columns asked for, sacctmgr gave 3"):
        table("a|b|c\n", ["Name", "Descr"])


@pytest.mark.parametrize(
    ("text", "value"),
    [("90", 5400), ("1:30", 90), ("24:00:00", 86400), ("7-0", 604800), ("7-00:00:00", 604800), ("1-2:3", 93780)],
)
def test_times_have_slurms_meanings(text: str, value: int) -> None:
    assert seconds(text) == value


def test_coordinators_of_an_account_that_declares_them_are_added_and_taken_away() -> None:
    shown = {"isl": ["bob"], "root": [], "vision": ["bob", "mallory"]}
    accounts: list[dict[str, Any]] = [
        {"name": "isl"},
        {"name": "vision", "coordinators": ["alice", "bob"]},
        {"name": "root", "coordinators": None},
        {"name": "old", "state": "absent", "coordinators": ["bob"]},
        {"name": "new", "coordinators": ["bob"]},
    ]
    found = coordinator_steps(accounts, shown)
    assert [" ".join(step.argv) for step in found] == [
        "sacctmgr --immediate add coordinator accounts=vision names=alice",
        "sacctmgr --immediate delete coordinator where accounts=vision names=mallory",
        "sacctmgr --immediate add coordinator accounts=new names=bob",
    ]
    assert found[1].text == "account vision: coordinator mallory taken away"
    accounts[1]["coordinators"] = ["bob", "mallory"]
    assert coordinator_steps(accounts[:3], shown) == []
    assert steps("hal", [], accounts[:2], [], EMPTY), "the key is known"


def test_who_coordinates_an_account_is_not_taken_for_a_coordinator_of_those_below_it(captures: Path) -> None:
    """Else each rollout would take alice away from cameras, and find her there again."""
    shown = (captures / "coordinators.txt").read_text()
    assert "vision|alice,alice,bob" in shown
    rows = table((captures / "coordinators_assoc.txt").read_text(), columns(ASSOCIATION, ["Account", "User"]))
    found = coordinators(shown, rows)
    assert found == {"cameras": [], "isl": [], "lab": ["alice"], "root": [], "vision": ["alice", "bob"]}
    accounts = [{"name": name, "coordinators": names} for name, names in found.items()]
    assert coordinator_steps(accounts, found) == []


def test_coordinators_are_asked_with_the_option_that_fills_their_column() -> None:
    assert " ".join(coordinators_query()).endswith("show account withcoord format=Account,Coordinators")
    with pytest.raises(AccountingError, match="2 columns asked for"):
        coordinators("isl\n", [])
