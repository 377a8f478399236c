"""Slurm's own commands as hal_slurm_account, hal_slurm_reservation and hal_slurm_node give them, in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.modules import Answer, Ran, as_program, loaded

Make = Callable[[str, dict[str, Answer]], Ran]
LC = {"LC_ALL": "C"}


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Make:
    """A function: module, answers by words of the command (the first that fit) -> the module, to be run."""

    def make(name: str, answers: dict[str, Answer]) -> Ran:
        def answer(argv: list[str]) -> Answer:
            return next((said for words, said in answers.items() if words in " ".join(argv)), (0, "", ""))

        return Ran(loaded(name), answer, monkeypatch, capsys)

    return make


def said(ran: Ran) -> list[str]:
    return [" ".join(argv) for argv in ran.told]


@pytest.mark.parametrize(
    ("name", "missing"),
    [("hal_slurm_account", "cluster"), ("hal_slurm_reservation", "reservations"), ("hal_slurm_node", "nodes")],
)
def test_as_a_program_it_asks_for_what_it_needs(name: str, missing: str) -> None:
    assert as_program(name) == {"failed": True, "msg": f"missing required arguments: {missing}"}


# ------------------------------------------------------------------------------------------------------------- accounts
CLUSTER = "timeout 60 sacctmgr --noheader --parsable2 show cluster format=Cluster"
READ = [f"timeout 60 sacctmgr --noheader --parsable2 show {what}" for what in ("qos", "account", "user", "assoc")]
DECLARED: dict[str, Any] = {
    "cluster": "hal",
    "qos": [{"name": "long"}],
    "accounts": [{"name": "isl"}],
    "users": [{"name": "bob", "accounts": ["isl"]}],
}
ADDED = ["qos long added", "account isl added", "user bob added"]
ADDS = [
    "timeout 60 sacctmgr --immediate add qos long",
    "timeout 60 sacctmgr --immediate add account isl cluster=hal",
    "timeout 60 sacctmgr --immediate add user bob account=isl cluster=hal",
]
REST: dict[str, list[str]] = {"qos": [], "accounts": [], "users": []}


def test_what_is_declared_is_added_to_the_database(make: Make) -> None:
    ran = make("hal_slurm_account", {"show cluster": (0, "other\nhal\n", "")})
    assert ran(**DECLARED) == {"changed": True, "steps": ADDED, "unmanaged": REST}
    told = said(ran)
    assert (told[0], [line.split(" format=")[0].split(" where")[0] for line in told[1:5]]) == (CLUSTER, READ)
    assert told[5:] == ADDS
    assert ran.environments == [LC] * 8


def test_coordinators_are_asked_for_where_they_are_declared_and_come_last(make: Make) -> None:
    shown = "timeout 60 sacctmgr --noheader --parsable2 show account withcoord format=Account,Coordinators"
    ran = make("hal_slurm_account", {"show cluster": (0, "hal\n", ""), "withcoord": (0, "isl|mallory\n", "")})
    declared = {**DECLARED, "accounts": [{"name": "isl", "coordinators": ["bob"]}]}
    assert ran(**declared)["steps"] == [
        *ADDED,
        "account isl: coordinator bob added",
        "account isl: coordinator mallory taken away",
    ]
    assert said(ran)[5:] == [
        *(shown, *ADDS),
        "timeout 60 sacctmgr --immediate add coordinator accounts=isl names=bob",
        "timeout 60 sacctmgr --immediate delete coordinator where accounts=isl names=mallory",
    ]


def test_a_cluster_that_the_database_does_not_know_is_added_first(make: Make) -> None:
    ran = make("hal_slurm_account", {"show cluster": (0, "other\n", "")})
    assert ran(cluster="hal") == {"changed": True, "steps": ["cluster hal added"], "unmanaged": REST}
    assert said(ran)[:2] == [CLUSTER, "timeout 60 sacctmgr --immediate add cluster hal"]
    assert len(ran.told) == 6


def test_a_database_that_is_as_declared_is_no_change(make: Make) -> None:
    columns = len(loaded("hal_slurm_account").queries("hal")[0][-1].split(","))
    ran = make(
        "hal_slurm_account", {"show cluster": (0, "hal\n", ""), "show qos": (0, "own" + "|" * (columns - 1), "")}
    )
    assert ran(cluster="hal") == {"changed": False, "steps": [], "unmanaged": {**REST, "qos": ["own"]}}


def test_check_mode_says_what_would_be_added_and_adds_nothing(make: Make) -> None:
    ran = make("hal_slurm_account", {"show cluster": (0, "other\n", "")})
    ran.programs = {"sacctmgr": "/usr/bin/sacctmgr"}
    assert ran(check=True, **DECLARED) == {"changed": True, "steps": ["cluster hal added", *ADDED], "unmanaged": REST}
    assert said(ran)[:2] == ["timeout 20 sacctmgr --noheader show cluster", CLUSTER]
    assert not [line for line in said(ran) if "add" in line.split()]


def test_check_mode_before_there_is_a_database_expects_all_of_it(make: Make) -> None:
    wanted = {"steps": ["slurmdbd does not answer yet: everything would be added"], "unmanaged": {}}
    ran = make("hal_slurm_account", {"show cluster": (1, "", "no route")})
    assert ran(check=True, **DECLARED) == {"changed": True, **wanted}
    assert ran.told == []
    assert ran(check=True, cluster="hal") == {"changed": False, **wanted}
    ran.programs = {"sacctmgr": "/usr/bin/sacctmgr"}
    assert ran(check=True, **DECLARED) == {"changed": True, **wanted}
    assert said(ran) == ["timeout 20 sacctmgr --noheader show cluster"]


def test_a_database_that_does_not_answer_or_refuses_is_told_with_its_last_line(make: Make) -> None:
    ran = make("hal_slurm_account", {"show cluster": (1, "on out\n", "first\nno route\n")})
    assert ran(**DECLARED) == {
        "failed": True,
        "msg": "sacctmgr --noheader --parsable2 show cluster: ['no route']",
    }
    ran = make("hal_slurm_account", {"show cluster": (0, "hal\n", ""), "add account": (1, " Nothing added\n", "")})
    assert ran(**DECLARED)["msg"] == "sacctmgr --immediate add account isl: ['Nothing added']"
    assert said(ran)[-1] == ADDS[1]


def test_a_declaration_that_cannot_be_is_told_with_what_was_done(make: Make) -> None:
    ran = make("hal_slurm_account", {"show cluster": (0, "", "")})
    assert ran(cluster="hal", users=[{"name": "bob"}]) == {
        "failed": True,
        "msg": "user bob: accounts is empty; the first is the default one",
        "steps": ["cluster hal added"],
    }


# --------------------------------------------------------------------------------------------------------- reservations
MAINT: dict[str, Any] = {"name": "maint", "nodes": "hal01", "start": "2999-01-10T08:00:00", "duration": "08:00:00"}
MAINT |= {"users": ["root"]}
SHOW = "timeout 60 scontrol --oneliner show reservation"
OTHERS = "ReservationName=b StartTime=x\nReservationName=a StartTime=x\n"
CREATE = (
    "timeout 60 scontrol create reservation ReservationName=maint StartTime=2999-01-10T08:00:00"
    " EndTime=2999-01-10T16:00:00 Nodes=hal01 Users=root"
)


def test_a_declared_reservation_is_made_and_others_are_shown(make: Make) -> None:
    ran = make("hal_slurm_reservation", {"show": (0, OTHERS, "")})
    wanted = {"changed": True, "steps": ["maint added"], "unmanaged": ["a", "b"]}
    assert ran(reservations=[MAINT]) == wanted
    assert said(ran) == [SHOW, CREATE]
    assert ran.environments == [LC, LC]
    ran.programs = {"scontrol": "/usr/bin/scontrol"}
    assert ran(check=True, reservations=[MAINT]) == wanted
    assert said(ran) == [SHOW]
    assert ran(reservations=[]) == {"changed": False, "steps": [], "unmanaged": ["a", "b"]}


def test_reservations_without_slurm_are_expected_in_check_mode_and_else_a_failure(make: Make) -> None:
    ran = make("hal_slurm_reservation", {"show": (1, "", "slurm_load_reservations error:\n Unable to contact\n")})
    for entries in ([MAINT], []):
        assert ran(check=True, reservations=entries) == {
            "changed": bool(entries), "steps": ["Slurm is not installed yet"], "unmanaged": [],
        }  # fmt: skip
        assert ran.told == []
    assert ran(reservations=[MAINT]) == {
        "failed": True,
        "msg": "scontrol show reservation: slurm_load_reservations error: Unable to contact",
    }
    ran.programs = {"scontrol": "/usr/bin/scontrol"}
    for entries in ([MAINT], []):
        assert ran(check=True, reservations=entries) == {
            "changed": bool(entries), "steps": ["slurmctld does not answer yet"], "unmanaged": [],
        }  # fmt: skip
        assert said(ran) == [SHOW]


def test_a_reservation_that_is_refused_is_told(make: Make) -> None:
    ran = make("hal_slurm_reservation", {"create": (1, "Error creating\nthe reservation\n", "")})
    assert ran(reservations=[MAINT]) == {"failed": True, "msg": "maint added: Error creating the reservation"}
    assert ran(reservations=[MAINT, MAINT]) == {"failed": True, "msg": "reservation maint is declared twice"}


# ---------------------------------------------------------------------------------------------------------------- nodes
SHOW_NODES = "timeout 30 scontrol --oneliner show node"
OURS = " Reason=hal-reboot: new kernel [root@2026-11-21T08:00:00]"
THEIRS = " Reason=broken fan [root@2026-11-21T08:00:00]"


def queue(node: str) -> str:
    states = "RUNNING,SUSPENDED,COMPLETING,CONFIGURING,STOPPED"
    return f"timeout 30 squeue --noheader --nodelist {node} --states {states} --format %A|%u|%e"


def slurm(*states: str) -> dict[str, Answer]:
    lines = [f"NodeName=hal{number:02d} State={state}\n" for number, state in enumerate(states, 1)]
    return {"show node": (0, "".join(lines), ""), "--nodelist hal01": (0, "77|alice|2026-12-01T00:00:00\n", "")}


def seen(found: dict[str, Any]) -> dict[str, Any]:
    return {name: (node["state"], node["away"], [job["id"] for job in node["jobs"]]) for name, node in found.items()}


def test_nodes_are_only_looked_at_when_nothing_is_wanted(make: Make) -> None:
    ran = make("hal_slurm_node", slurm("IDLE+DRAIN" + OURS, "IDLE+DRAIN" + THEIRS, "IDLE" + OURS))
    found = ran(nodes=["hal02", "hal01", "hal03", "hal99"])
    assert found["changed"] is False
    assert seen(found["nodes"]) == {
        "hal02": ("IDLE+DRAIN", True, []), "hal01": ("IDLE+DRAIN", True, ["77"]), "hal03": ("IDLE", False, []),
    }  # fmt: skip
    assert said(ran) == [SHOW_NODES, queue("hal02"), queue("hal01"), queue("hal03")]
    assert ran.environments == [LC] * 4


def test_fail_is_a_drain_of_whoever_said_it(make: Make) -> None:
    ran = make("hal_slurm_node", slurm("IDLE+FAIL" + THEIRS))
    found = ran(nodes=["hal01"])["nodes"]["hal01"]
    assert (found["drained"], found["away"]) == (False, True)
    assert ran(nodes=["hal01"], state="resumed", check=True)["changed"] is True


def test_nodes_that_are_away_are_resumed(make: Make) -> None:
    ran = make("hal_slurm_node", slurm("IDLE", "IDLE+DRAIN" + THEIRS, "DOWN"))
    given: dict[str, Any] = {"nodes": ["hal01", "hal02", "hal03"], "state": "resumed"}
    assert ran(**given)["changed"] is True
    resume = "timeout 30 scontrol update NodeName={} State=RESUME"
    assert said(ran)[:4] == [SHOW_NODES, resume.format("hal02"), resume.format("hal03"), SHOW_NODES]
    assert ran(**{**given, "nodes": ["hal01"]})["changed"] is False


def test_what_is_shown_is_what_slurmctld_says_afterwards(make: Make) -> None:
    ran = make("hal_slurm_node", slurm("IDLE+DRAIN" + OURS))
    before, after = ran.answer, make("hal_slurm_node", slurm("IDLE")).answer
    ran = make("hal_slurm_node", {})
    ran.answer = lambda argv: (after if any("State=RESUME" in told for told in ran.told) else before)(argv)
    assert ran(nodes=["hal01"], state="resumed")["nodes"]["hal01"]["state"] == "IDLE"


def test_slurmctld_that_does_not_answer_is_told_with_the_command(make: Make) -> None:
    ran = make("hal_slurm_node", {"show": (1, "", "first\nUnable to contact slurm controller\n")})
    assert ran(nodes=["hal01"]) == {
        "failed": True,
        "msg": "scontrol --oneliner show: Unable to contact slurm controller",
    }
    for told, words in (((124, "", " \n"), "no answer within 30 s"), ((1, "on out\n", ""), "on out")):
        ran = make("hal_slurm_node", {"show": told})
        assert ran(nodes=["hal01"])["msg"] == f"scontrol --oneliner show: {words}"


def test_a_state_that_is_none_is_refused(make: Make) -> None:
    choices = "value of state must be one of: seen, resumed, serving, got: drained"
    assert make("hal_slurm_node", {})(nodes=["hal01"], state="drained") == {"failed": True, "msg": choices}
