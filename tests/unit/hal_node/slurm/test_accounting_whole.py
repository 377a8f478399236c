"""Accounts, users and QOS as whole commands: each option and its spelling, what is alike, what is refused in words."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.hal_node.slurm import accounting as accounting
from ansible.module_utils.hal_node.slurm.accounting import AccountingError, State, normal, read, share, spelled, steps

EMPTY = State({}, {}, {}, {})
ROW = {"Name": "q"}


def made(state: State = EMPTY, **declared: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The commands behind their common beginning, and what is said of each."""
    found = steps("c1", declared.get("qos", []), declared.get("accounts", []), declared.get("users", []), state)
    assert all(step.argv[:2] == ["sacctmgr", "--immediate"] for step in found)
    return [(" ".join(step.argv[2:]), step.text) for step in found]


def refusal(**declared: list[dict[str, Any]]) -> str:
    with pytest.raises(AccountingError) as refused:
        made(**declared)
    return str(refused.value)


def test_four_tables_are_asked_for_with_these_columns() -> None:
    show = ["sacctmgr", "--noheader", "--parsable2", "show"]
    qos = "Name,Descr,Priority,Flags,MaxWall,MaxTRESPU,MaxTRES,MaxJobsPU,MaxSubmitPU,GrpTRES,GrpJobs,Preempt"
    assoc = "Account,User,ParentName,Share,QOS,DefaultQOS,GrpTRES,GrpJobs,MaxJobs,MaxWall"
    assert accounting.queries("c1") == [
        [*show, "qos", f"format={qos},UsageFactor"],
        [*show, "account", "format=Account,Descr,Org"],
        [*show, "user", "format=User,DefaultAccount,Admin"],
        [*show, "assoc", "where", "cluster=c1", f"format={assoc}"],
    ]


def test_tables_are_read_by_their_names() -> None:
    state = read(["q" + "|" * 12 + "\n\n", "a|d|o\nb||\n", "u|a|None\n", "a|" + "|" * 8 + "\na|u|" + "|" * 7 + "9\n"])
    assert (sorted(state.qos), state.accounts["a"]) == (["q"], {"Account": "a", "Descr": "d", "Org": "o"})
    assert (sorted(state.accounts), state.users["u"]["DefaultAccount"]) == (["a", "b"], "a")
    assert (sorted(state.associations), state.associations["a", "u"]["MaxWall"]) == ([("a", ""), ("a", "u")], "9")
    with pytest.raises(AccountingError, match=r"^3 columns asked for, sacctmgr gave 2: a\|b$"):
        accounting.table("a|b", ["x", "y", "z"])


EVERY: dict[str, Any] = {
    "description": "D", "priority": 5, "flags": ["B", "A"], "max_wall": "1:0:0",
    "max_tres_per_user": {"cpu": 1, "a": 2}, "max_tres_per_job": "cpu=3",
    "max_jobs_per_user": 4, "max_submit_jobs_per_user": 5, "grp_tres": {"mem": "1G"},
    "grp_jobs": 6, "preempt": ["x", "y"], "usage_factor": 0.5,
}  # fmt: skip


def test_every_key_of_a_qos_has_its_option() -> None:
    assert made(qos=[{"name": "q", **EVERY}]) == [
        ("add qos q set Description=D Priority=5 Flags=B,A MaxWall=1:0:0 MaxTRESPU=a=2,cpu=1 MaxTRES=cpu=3 MaxJobsPU=4"
         " MaxSubmitPU=5 GrpTRES=mem=1G GrpJobs=6 Preempt=x,y UsageFactor=0.5", "qos q added"),
    ]  # fmt: skip
    assert made(qos=[{"name": "q"}]) == [("add qos q", "qos q added")]


def test_every_key_of_an_account_and_a_user_has_its_option() -> None:
    limits = {"fairshare": 3, "qos": ["a", "b"], "default_qos": "a", "grp_tres": "cpu=1", "grp_jobs": 2, "max_jobs": 4,
              "max_wall": "5"}  # fmt: skip
    options = "Fairshare=3 QOS=a,b DefaultQOS=a GrpTRES=cpu=1 GrpJobs=2 MaxJobs=4 MaxWall=5"
    account = {"name": "a", "description": "D", "organization": "O", "parent": "p", **limits}
    user = {"name": "u", "accounts": ["a", "b"], "admin_level": "Operator", **limits}
    assert made(accounts=[account], users=[user]) == [
        (f"add account a cluster=c1 Description=D Organization=O Parent=p {options}", "account a added"),
        (f"add user u account=a cluster=c1 {options}", "user u added"),
        (f"add user u account=b cluster=c1 {options}", "user u added"),
        ("modify user where name=u set AdminLevel=Operator", "user u: admin_level None -> Operator"),
    ]


def test_what_differs_is_said_with_before_and_after() -> None:
    state = State({"q": {**ROW, "Priority": "3", "Flags": "a,b", "Descr": "d"}}, {}, {}, {})
    entry = {"name": "q", "priority": 4, "flags": ["B", "A"], "description": "D", "max_wall": "9", "grp_jobs": None}
    words = "qos q: priority 3 -> 4, max_wall (none) -> 9"
    assert made(state, qos=[entry]) == [("modify qos where name=q set Priority=4 MaxWall=9", words)]
    assert made(state, qos=[{"name": "q", "description": None, "flags": []}]) == [
        ("modify qos where name=q set Description= Flags=-1", "qos q: description d -> (none), flags a,b -> -1")
    ]
    assert made(qos=[{"name": "q", "grp_jobs": None, "priority": 1}])[0][0] == "add qos q set Priority=1"


@pytest.mark.parametrize(
    ("one", "other", "kind", "alike"),
    [
        (None, "", "text", True), ([], "", "list", True), ("", None, "number", True), (5, "5", "number", True),
        (5, "6", "number", False), ("Abc", "aBC", "text", True), (None, "0", "priority", True),
        ("", "1.000000", "factor", True), (None, "1", "share", True), ("Parent", "parent", "share", True),
        (2, "2", "share", True), ("60", "1:00:00", "time", True), (60, "61", "time", False),
        ({"CPU": 1, "mem": "2g"}, "mem=2G,cpu=1", "tres", True), ({"cpu": 1}, "cpu=2", "tres", False),
        ("b,A", ["a", "B"], "flags", True), (("a",), "a", "list", True), (["a"], "a,b", "list", False),
        (0, None, "number", False), (0.5, "0.500000", "factor", True),
    ],
)  # fmt: skip
def test_values_that_mean_the_same(one: Any, other: Any, kind: str, *, alike: bool) -> None:
    assert (normal(one, kind) == normal(other, kind)) is alike


@pytest.mark.parametrize(
    ("value", "kind", "found", "text"),
    [
        (None, "share", "3", "1"), (None, "priority", "3", "0"), ([], "factor", "3", "1"),
        (None, "tres", "cpu=1,gres/gpu=2", "cpu=-1,gres/gpu=-1"), (None, "tres", None, ""), (None, "number", "1", "-1"),
        (None, "time", "1", "-1"), ([], "flags", "a", "-1"), (None, "list", "a", ""), (None, "text", "a", ""),
        ({"b": 1, "a": 2}, "tres", "", "a=2,b=1"), (["b", 1], "list", "", "b,1"), (("x",), "flags", "", "x"),
        (5, "number", "", "5"), (0, "number", "", "0"),
    ],
)  # fmt: skip
def test_how_a_value_is_spelled(value: Any, kind: str, found: Any, text: str) -> None:
    assert spelled(value, kind, found) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("2", 120), ("2:3", 123), ("1:2:3", 3723), ("1-0", 86400), ("1-2", 93600), ("1-2:3", 93780),
        ("1-2:3:4", 93784), (7, 420), ("10-23:59:59", 950399),
    ],
)  # fmt: skip
def test_a_time_is_minutes_or_has_its_parts(text: Any, value: int) -> None:
    assert accounting.seconds(text) == value


@pytest.mark.parametrize("text", ["", "a", "1:", "1:2:3:4", "-1", "1-", " 1", None])
def test_what_is_no_time_is_said(text: Any) -> None:
    with pytest.raises(AccountingError) as refused:
        accounting.seconds(text)
    assert str(refused.value) == f"'{text}' is not a time such as 24:00:00 or 7-00:00:00"


def test_a_share_is_a_number_or_its_parent_s() -> None:
    assert [share(value) for value in (3, "4", "PARENT")] == [3.0, 4.0, "parent"]
    with pytest.raises(AccountingError, match=r"^'much' is neither a number nor parent$"):
        share("much")


def test_parents_come_before_children_over_generations_and_from_elsewhere() -> None:
    names = [("c", "b"), ("x", "elsewhere"), ("b", "a"), ("a", None), ("d", "b")]
    accounts = [{"name": name, **({"parent": parent} if parent else {})} for name, parent in names]
    assert [text.split()[1] for _, text in made(accounts=accounts)] == ["x", "a", "b", "c", "d"]


def test_an_account_without_its_association_is_added_with_what_it_lacks() -> None:
    there = {("a", ""): {"Share": "1", "GrpJobs": "5"}}
    state = State({}, {"a": {"Account": "a", "Descr": "d", "Org": "o"}}, {}, there)
    entry = {"name": "a", "description": "d", "organization": "n", "fairshare": 2}
    words = "account a: organization o -> n, fairshare 1 -> 2"
    assert made(state, accounts=[entry]) == [
        ("modify account where name=a cluster=c1 set Organization=n Fairshare=2", words)
    ]
    assert made(state, accounts=[{"name": "a", "description": "D"}]) == []
    assert made(state._replace(associations={}), accounts=[entry]) == [
        ("add account a cluster=c1 Organization=n Fairshare=2", "account a added")
    ]


def test_a_user_is_changed_in_each_account_and_taken_out_of_the_others() -> None:
    row = {"Share": "1", "MaxJobs": "3"}
    state = State(
        {}, {}, {"u": {"User": "u", "DefaultAccount": "b", "Admin": "None"}},
        {("a", "u"): row, ("b", "u"): {**row, "MaxJobs": "4"}, ("z", "u"): row, ("c", "u"): row, ("c", "v"): row,
         ("c", ""): row},
    )  # fmt: skip
    assert made(state, users=[{"name": "u", "accounts": ["a", "b"], "max_jobs": 4}]) == [
        ("modify user where name=u account=a cluster=c1 set MaxJobs=4", "user u: max_jobs 3 -> 4"),
        ("modify user where name=u set DefaultAccount=a", "user u: default_account b -> a"),
        ("delete user where name=u account=c cluster=c1", "user u: taken out of account c"),
        ("delete user where name=u account=z cluster=c1", "user u: taken out of account z"),
    ]


def test_what_is_absent_is_deleted_after_all_else_if_it_is_there() -> None:
    gone = {"state": "absent"}
    state = State({"q": {}, "r": {}}, {"a": {}}, {"u": {}}, {})
    assert made(
        state,
        qos=[{"name": "q", **gone}, {"name": "n"}, {"name": "r", **gone}, {"name": "s", **gone}],
        accounts=[{"name": "a", **gone}, {"name": "b", **gone}],
        users=[{"name": "u", **gone}, {"name": "v", **gone}],
    ) == [
        ("add qos n", "qos n added"), ("delete user where name=u", "user u deleted"),
        ("delete account where name=a", "account a deleted"), ("delete qos where name=q", "qos q deleted"),
        ("delete qos where name=r", "qos r deleted"),
    ]  # fmt: skip


def test_what_is_slurm_s_own_or_declared_is_not_unmanaged() -> None:
    state = State({"normal": {}, "q": {}, "p": {}}, {"b": {}, "a": {}, "root": {}}, {"root": {}}, {})
    found = accounting.unmanaged([{"name": "q"}], [{"name": "x"}], [], state)
    assert found == {"qos": ["p"], "accounts": ["a", "b"], "users": []}
    state = State({"root": {}}, {"normal": {}}, {"normal": {}, "u": {}}, {})
    found = accounting.unmanaged([], [], [{"name": "u"}], state)
    assert found == {"qos": ["root"], "accounts": ["normal"], "users": ["normal"]}


def test_what_cannot_be_is_refused_in_words() -> None:
    keys = "admin_level, default_account, default_qos, fairshare, grp_jobs, grp_tres, max_jobs, max_wall, name, parent,"
    assert refusal(users=[{"name": "u", "x": 1, "b": 2, "accounts": ["a"]}]) == (
        f"user u: unknown key b, x; known are accounts, {keys} qos, state"
    )
    assert refusal(qos=[{"b": 1, "a": 2}]) == 'QOS without a name: {"a": 2, "b": 1}'
    assert refusal(accounts=[{"name": "a"}, {"name": "b"}, {"name": "a"}]) == "account a is declared twice"
    assert refusal(users=[{"name": "u", "state": ""}]) == "user u: state is present or absent"
    assert refusal(users=[{"name": "u", "accounts": []}]) == "user u: accounts is empty; the first is the default one"
    assert refusal(qos=[{"name": "q", "max_wall": "x"}]).startswith("q: max_wall: 'x' is not a time")
    circle = [{"name": "c"}, {"name": "b", "parent": "a"}, {"name": "a", "parent": "b"}]
    assert refusal(accounts=circle) == "accounts that are each other's parents: a, b"
