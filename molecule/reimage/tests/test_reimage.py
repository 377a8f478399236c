"""playbooks/reimage.yml on virtual nodes: what it shows, what it refuses, one node, four at once, and who gives up.

Tests are in an order: what is refused comes first, when every node is as it was rolled out.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from running.ansible_run import Run
from testing.bmc_site import SERVER
from testing.reimage_site import LIMITS, ReimageSite
from testing.waiting import wait_for

OTHERS = ("hal01", "hal02", "hal03", "hal04")


# What is shown, and what is refused


def test_the_first_call_shows_all_that_would_happen_and_changes_nothing(hal: ReimageSite) -> None:
    job = hal.submit("hal05", 600)
    try:
        before = hal.everything()
        shown = hal.plan("hal05")
        assert shown.status == 0, shown.explain()
        image = hal.on(SERVER, "ls /srv/images/www").split()
        name = next(one for one in image if one.startswith("ac922-"))
        for word in ("hal05", "S-HAL05", "0x50248414c9050001", name, job, "alice"):
            assert word in shown.words, f"{word} is not shown\n{shown.output}"
        assert shown.changes == {}
        assert hal.code("hal05") in shown.words, "the same, as long as nothing has changed"
        assert hal.code("hal05") != hal.code("hal06")
        assert hal.everything() == before
    finally:
        hal.cancel(job)
    wait_for("hal05", lambda: hal.states()["hal05"], lambda now: now == "idle", 60)


REFUSED = [
    ("", "", "an empty name"),
    ("all", "", "every node"),
    ("*", "", "a pattern"),
    ("hal77", "", "a node that nobody declared"),
    ("hal05 and login", "", "an expression of nobody"),
    ("hal-login", "", "the login node"),
    ("hal-mgmt1", "", "the management node"),
    ("hal-data", "", "the storage node"),
    ("hal05 or hal-login", "", "one that may be and one that may not"),
    ("hal05", "AAAA-AAAA", "a code that nobody has shown"),
    ("hal05", "hal06", "the code of another node"),
    ("hal[05-06]", "hal05", "the code of fewer"),
    ("hal05", "hal[05-06]", "the code of more"),
]


OPTIONS: list[tuple[str, ...]] = [
    ("--limit", "hal05"),
    ("--limit", "localhost"),
    ("--limit", "hal06"),
    ("--tags", "x"),
    ("--skip-tags", "always"),
    ("--start-at-task", "another"),
    ("-e", '{"reimage_wipe": ["scratch"]}'),
    ("-e", '{"reimage_wipe": ["system"]}'),
]


def test_what_nobody_has_confirmed_is_refused_and_nothing_changes(hal: ReimageSite) -> None:
    """Also the right code, with an option by which Ansible would leave something out, or that erases more."""
    codes = {nodes: hal.code(nodes) for nodes in {code for _, code, _ in REFUSED if code.startswith("hal")}}
    calls = [(why, nodes, codes.get(code, code), ()) for nodes, code, why in REFUSED]
    calls += [(" ".join(options), "hal05", codes["hal05"], options) for options in OPTIONS]  # type: ignore[misc]
    before = hal.everything()
    with ThreadPoolExecutor(3) as pool:
        ended = list(pool.map(lambda call: hal.confirmed(call[1], call[2], *call[3]), calls))
    assert hal.everything() == before
    for (why, *_), done in zip(calls, ended, strict=True):
        if "--start-at-task" in why:  # ansible-playbook itself: it says that there is no such task, and ends with 0
            assert "No matching task" in done.output
            continue
        assert done.status != 0, f"{why}: not refused\n{done.output[-2000:]}"
        assert "Code:" not in done.words, f"{why}: a code was shown for what is refused"


@pytest.mark.parametrize(
    ("user", "says"),
    [
        ("root", "reimage_job_user: root is root, whose job shows nothing about those of users"),
        ("nobody", "reimage_job_user: nobody has no association in Slurm, which refuses jobs without"),
    ],
)
def test_a_test_job_of_nobody_ordinary_is_refused_before_anything_is_shown(
    hal: ReimageSite, user: str, says: str
) -> None:
    done = hal.plan("hal05", reimage_job_user=user)
    assert done.status != 0
    assert says in done.words
    assert "Code:" not in done.words


def test_check_mode_shows_and_does_nothing(hal: ReimageSite) -> None:
    code = hal.code("hal05")
    before = hal.everything()
    done = hal.confirmed("hal05", code, "--check")
    assert done.status == 0, done.explain()
    assert "S-HAL05" in done.words
    assert hal.everything() == before


def test_a_machine_with_another_serial_number_is_refused(hal: ReimageSite) -> None:
    code = hal.code("hal05")
    with hal.fault("hal05", "wrong-serial", "X4711"):
        before = hal.everything()
        done = hal.confirmed("hal05", code)
        assert done.status != 0
        assert "X4711" in done.words
        after = hal.everything()
        for what in ("orders", "configurations", "BMCs", "reservations"):
            assert after[what] == before[what], what
    hal.give_back("hal05")


# One


def test_a_node_is_taken_from_serving_jobs_to_serving_jobs(hal: ReimageSite) -> None:
    before, boots, key = hal.configurations(), hal.boots(), hal.host_key("hal05")
    hal.mark("hal05")
    first = hal.submit("hal05", 20)
    other = hal.submit("hal06", 3000, user="bob")
    try:
        code = hal.code("hal05")
        with hal.watch() as seen:
            done = hal.confirmed("hal05", code)
        assert done.status == 0, done.explain()
        ended = hal.slurm(f"sacct --noheader --allocations --parsable2 --jobs={first} --format=State").strip()
        assert ended == "COMPLETED", "its job was not waited for"  # slurmctld may have forgotten it by now
        assert hal.job_state(other) == "RUNNING"
        assert hal.job_field(other, "Restarts") == "0"
        assert not hal.marked("hal05"), "the disk was not erased"
        assert "is wiped" not in hal.since_off("hal05"), "its other disk was to be kept"
        assert hal.host_key("hal05") != key
        assert seen.half_served() == []
        assert "install" in seen.steps("hal05"), seen.steps("hal05")
        assert hal.configurations() == before, "what nodes boot is as it was"
        now = hal.boots()
        assert {name for name in now if now[name] != boots[name]} == {"hal05"}
        record = hal.record("hal05")
        assert (record["state"], record["reason"]) == ("done", "")
        # The first of slurm_users; nobody named another.
        ran = hal.slurm(
            "sacct --noheader --allocations --parsable2 --allusers --name=hal-reimage-hal05 --format=User,State"
        )
        assert set(ran.split()) == {"alice|COMPLETED"}, "an ordinary user's job is what shows that users' jobs run"
        assert record["host_key"] == hal.host_key("hal05")
        mine = hal.submit("hal05", 1)
        wait_for("a job after it", lambda: hal.job_state(mine), lambda now: now == "COMPLETED", 60)
        again = hal.confirmed("hal05", code)
        assert again.status != 0, "a code is good for once"
        assert hal.record("hal05") == record
    finally:
        hal.cancel(other)


# Many


def test_four_at_once_while_a_job_on_another_runs_on(hal: ReimageSite) -> None:
    """Their other disks are wiped, too: that was asked for, shown, and confirmed."""
    done = reimage_four(hal, floor=2, reimage_wipe=["scratch"])
    for name in OTHERS:
        disk = f"0x50248414c9{name[-2:]}0002"
        assert disk in done.words, "what is erased was not shown"
        assert f"disk scratch ({disk}) is wiped" in hal.since_off(name)


@pytest.mark.slow
def test_four_take_turns_where_the_floor_leaves_two_at_a_time(hal: ReimageSite) -> None:
    reimage_four(hal, floor=4)


def reimage_four(hal: ReimageSite, floor: int, **variables: Any) -> Run:
    """Reimage four of six nodes; with a floor of 2 all four are out at once. A job on one of the others runs on."""
    keys = {name: hal.host_key(name) for name in OTHERS}
    other = hal.submit("hal06", 3000, user="bob")
    try:
        with hal.watch() as seen:
            floors = {"gpu": floor, "debug": 0}
            done = hal.reimage("hal[01-04]", reimage_max_parallel=4, reimage_keep=floors, **variables)
        assert done.status == 0, done.explain()
        assert seen.half_served() == []
        assert seen.fewest_usable([f"hal0{number}" for number in range(1, 7)]) == floor
        assert hal.job_state(other) == "RUNNING"
        assert all(hal.host_key(name) != keys[name] for name in OTHERS)
        assert {hal.record(name)["state"] for name in OTHERS} == {"done"}
        assert set(hal.states().values()) <= {"idle", "mixed", "allocated"}, hal.states()
        return done
    finally:
        hal.cancel(other)


# Giving up


def test_an_abort_from_another_terminal_leaves_a_node_drained_that_boots_its_disk(hal: ReimageSite) -> None:
    job = hal.submit("hal05", 900)
    boot = hal.boot("hal05")
    playing = hal.begin("hal05")
    try:
        hal.at("hal05", "drain")
        told = re.compile(f"hal05.*drain.*job {job} of alice", re.DOTALL)
        wait_for("status", lambda: hal.on(SERVER, "hal-reimage status"), lambda text: bool(told.search(text)))
        hal.on(SERVER, "hal-reimage abort hal05")
        ended = playing.wait()
    finally:
        playing.kill()
        hal.cancel(job)
    assert ended.status != 0
    assert hal.record("hal05")["state"] == "aborted"
    assert hal.drained("hal05"), hal.states()
    assert "hal-reimage: aborted" in hal.reason("hal05")
    assert '"armed": false' in hal.on(SERVER, "hal-provision status hal05")
    wait_for("its job", lambda: hal.job_state(job), lambda now: now == "CANCELLED", 60)
    hal.force_off("hal05")
    hal.switch_on("hal05")
    hal.until("an answer", lambda: hal.answers("hal05"), "hal05")
    assert "Booting from disk" in hal.since_off("hal05")
    assert hal.boot("hal05") != boot
    hal.give_back("hal05")


def test_an_installer_that_stops_says_why_and_is_not_waited_for(hal: ReimageSite) -> None:
    """It is the installer's own word, by the server: nobody reads the console."""
    boot = hal.boot("hal05")
    with hal.fault("hal05", "disk-missing"), hal.watch() as seen:
        done = hal.reimage("hal05")
    assert done.status != 0
    assert seen.half_served() == []
    record, why = hal.record("hal05"), "its installer stopped: disk 0x50248414c9050001 is not in this machine"
    assert (record["state"], record["step"]) == ("failed", "install")
    assert why in record["reason"]
    assert why in " ".join(hal.on(SERVER, "hal-reimage show hal05").split())
    assert "hal-reimage: failed at install" in hal.reason("hal05")
    assert record["seconds"]["install"] < LIMITS["reimage_begin_seconds"]
    hal.ssh(SERVER, "hal-reimage abort hal05")
    hal.force_off("hal05")
    hal.switch_on("hal05")
    hal.until("an answer", lambda: hal.answers("hal05"), "hal05")
    assert hal.boot("hal05") != boot
    hal.give_back("hal05")


def test_nobody_told_a_password(hal: ReimageSite) -> None:
    assert hal.seen == set(), "in the process list"
    told = "\n".join([*hal.told, hal.logs()])
    for secret in hal.secrets():
        assert secret not in told
