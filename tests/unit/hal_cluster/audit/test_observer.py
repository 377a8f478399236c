"""What is noted of each event of a run: who owns what, what was not done, and what does not count at all."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hal_cluster.audit import observer as subject
from tests.unit.hal_cluster.audit.observing import TASK, Playing

WRITE: dict[str, Any] = {"name": "Write", "ansible.builtin.copy": {"content": "x", "dest": "/srv/x", "mode": "0644"}}
NEXT = {**WRITE, "name": "Next"}
LOOP = {**WRITE, "name": "Loop", "loop": ["a", "b"]}
FOUND = {**WRITE, "name": "Found", "loop": "{{ seen.stdout_lines }}"}
INSTALL = {"name": "Install", "ansible.builtin.package": {"name": "httpd"}}
SEE = {"name": "See", "ansible.builtin.command": {"argv": ["date"]}, "register": "seen"}
RESTART = {"name": "Restart", "ansible.builtin.service": {"name": "httpd", "state": "restarted"}}
TASKS = [WRITE, NEXT, LOOP, FOUND, INSTALL, SEE]


@pytest.fixture(autouse=True)
def _base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hal_cluster.audit.observer.constants.CONFIG_FILE", str(tmp_path / "ansible.cfg"))


@pytest.fixture
def playing(tmp_path: Path) -> Playing:
    return Playing(tmp_path, TASKS, handlers__main_yml=[RESTART])


def test_a_task_that_was_done_owns_what_it_manages(playing: Playing) -> None:
    playing.observer.ok(playing.result("Write", {"changed": True, "checksum": "0" * 40}, notify=["Restart"]))
    (entry,) = playing.host().entries.values()
    assert (entry.owner.role, entry.owner.task) == ("web", TASK("Write"))
    assert entry.owner.source == "roles/web/tasks/main.yml:1"
    assert entry.declared == {"state": "present", "type": "file", "mode": "0644", "sha1": "0" * 40}
    assert (entry.secret, entry.changed, entry.units) == (False, True, {"httpd.service"})
    assert playing.host().tasks == {TASK("Write"): True}
    playing.observer.ok(playing.result("Next", {"changed": False}, notify=["Unknown"]))
    assert playing.host().entries["file:/srv/x"].owner.task == TASK("Next")


def test_a_role_is_known_with_its_folder_and_all_its_tasks(playing: Playing) -> None:
    playing.observer.ok(playing.result("See"))
    host = playing.host()
    assert host.folders == {"web": str(playing.folder / "roles/web")}
    assert host.roles["web"].tasks == tuple(sorted(TASK(one["name"]) for one in TASKS))
    assert (host.roles["web"].whole, host.entries) == (True, {})


@pytest.mark.parametrize(
    ("event", "outcome", "counts"),
    [
        ("ok", {"changed": True}, True),
        ("ok", {"changed": False}, False),
        ("failed", {"failed": True}, True),
        ("skipped", {}, False),
    ],
)
@pytest.mark.parametrize("name", ["Write", "See", "Restart", "Loop"])
def test_when_a_task_changed_something_the_node_is_told(
    playing: Playing, monkeypatch: pytest.MonkeyPatch, name: str, event: str, outcome: dict[str, Any], counts: bool
) -> None:
    now = [100.0]
    monkeypatch.setattr(subject, "time", SimpleNamespace(time=lambda: now[0]))
    playing.observer._spooled = 100.0
    playing.observer.task_starts(playing.task(name))
    now[0] = 105.0
    getattr(playing.observer, event)(playing.result(name, outcome))
    assert playing.host().changes == ([[100.0, 105.0]] if counts else [])


def test_a_handler_owns_nothing_and_makes_units_read_their_files(playing: Playing) -> None:
    playing.observer.ok(playing.result("Restart", {"changed": False}))
    assert (playing.host().entries, list(playing.host().handled)) == ({}, [])
    playing.observer.ok(playing.result("Restart", {"changed": True}))
    assert (playing.host().entries, list(playing.host().handled)) == ({}, ["httpd.service"])


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({}, True),
        ({"delegate_to": "n1"}, True),
        ({"delegate_to": "n2"}, False),
        ({"delegate_to": "localhost"}, False),
        ({"check_mode": True}, False),
        ({"check_mode": False}, True),
    ],
)
def test_only_what_was_done_on_the_node_itself_counts(tmp_path: Path, fields: dict[str, Any], counts: bool) -> None:
    playing = Playing(tmp_path, TASKS, {"n1": {}, "n2": {}})
    playing.observer.ok(playing.result("Write", **fields))
    assert list(playing.observer.hosts) == (["n1"] if counts else [])


def test_check_mode_counts_for_a_proposal_and_an_implicit_host_never(tmp_path: Path) -> None:
    playing = Playing(tmp_path, TASKS, proposing=True)
    playing.observer.ok(playing.result("Write", check_mode=True))
    assert list(playing.host().entries) == ["file:/srv/x"]
    playing = Playing(tmp_path, TASKS)
    result = playing.result("Write")
    result._host.implicit = True
    playing.observer.ok(result)
    assert playing.observer.hosts == {}


def test_items_are_noted_one_by_one_and_the_loop_as_a_task(playing: Playing) -> None:
    playing.observer.item_ok(playing.result("Loop", args={"dest": "/srv/a"}))
    assert (list(playing.host().entries), playing.host().tasks) == (["file:/srv/a"], {})
    playing.observer.ok(playing.result("Loop", args={"dest": "/srv/b"}))
    assert (list(playing.host().entries), playing.host().tasks) == (["file:/srv/a"], {TASK("Loop"): True})


def test_a_loop_of_which_an_item_failed_was_not_done_on_that_host_alone(tmp_path: Path) -> None:
    playing = Playing(tmp_path, TASKS, {"n1": {}, "n2": {}})
    playing.observer.item_incomplete(playing.result("Loop"))
    playing.observer.ok(playing.result("Loop"))
    playing.observer.ok(playing.result("Write"))
    playing.observer.ok(playing.result("Loop", host="n2"))
    assert playing.host().tasks == {TASK("Loop"): False, TASK("Write"): True}
    assert playing.host("n2").tasks == {TASK("Loop"): True}


@pytest.mark.parametrize(("condition", "whole"), [("wanted", True), ("seen.rc == 0", False)])
def test_an_item_that_a_result_left_out_is_not_given_up(playing: Playing, condition: str, whole: bool) -> None:
    playing.observer.item_skipped(playing.result("Loop", {"false_condition": condition}))
    playing.observer.ok(playing.result("Loop"))
    assert playing.host().tasks == {TASK("Loop"): whole}


def test_a_loop_over_what_was_found_gives_nothing_up(playing: Playing) -> None:
    playing.observer.ok(playing.result("Found"))
    playing.observer.ok(playing.result("Loop"))
    assert playing.host().tasks == {TASK("Found"): False, TASK("Loop"): True}
    assert playing.host().transient == {TASK("Found")}


@pytest.mark.parametrize(("condition", "transient"), [("wanted", False), ("seen.rc == 0", True), ("x is exists", True)])
def test_a_task_is_skipped_by_the_site_or_by_this_run(playing: Playing, condition: str, transient: bool) -> None:
    playing.observer.skipped(playing.result("Write", {"false_condition": condition}))
    assert playing.host().tasks == {TASK("Write"): not transient}
    assert playing.host().transient == ({TASK("Write")} if transient else set())


@pytest.mark.parametrize("outcome", [{"censored": "hidden"}, {"skipped_reason": "No items in the list"}])
def test_a_skip_without_its_condition_is_judged_by_the_loop(playing: Playing, outcome: dict[str, Any]) -> None:
    playing.observer.skipped(playing.result("Found", outcome))
    playing.observer.skipped(playing.result("Loop", outcome))
    playing.observer.skipped(playing.result("Write"))
    assert playing.host().transient == {TASK("Found")}


def test_a_skip_without_its_condition_is_judged_by_those_of_its_task(tmp_path: Path) -> None:
    playing = Playing(tmp_path, [SEE, {**WRITE, "when": "seen.rc == 0"}, {**NEXT, "when": "wanted"}])
    for name in ("Write", "Next"):
        playing.observer.skipped(playing.result(name))
    assert playing.host().transient == {TASK("Write")}


def test_a_failure_breaks_the_role_unless_it_is_ignored(playing: Playing) -> None:
    playing.observer.failed(playing.result("Write"), ignored=True)
    assert (playing.host().tasks, playing.host().broken) == ({TASK("Write"): False}, set())
    playing.observer.failed(playing.result("Next"))
    assert playing.host().tasks == {TASK("Write"): False, TASK("Next"): False}
    assert (playing.host().broken, playing.host().entries, playing.host().windows) == ({"web"}, {}, [])


@pytest.mark.parametrize("ignored", [True, False])
def test_a_failure_that_is_rescued_asks_for_the_rescue_instead(tmp_path: Path, ignored: bool) -> None:
    playing = Playing(tmp_path, [{"block": [WRITE, SEE], "rescue": [NEXT]}])
    playing.observer.failed(playing.result("Write"), ignored=ignored)
    assert playing.host().broken == set()
    assert playing.host().replaced == (set() if ignored else {TASK("Write"), TASK("See")})
    assert playing.host().rescue == (set() if ignored else {TASK("Next")})


def test_packages_may_have_come_while_a_task_changed_or_failed(
    playing: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(subject, "time", SimpleNamespace(time=lambda: now[0]))
    playing.observer._spooled = 100.0
    playing.observer.task_starts(playing.task("Install"))
    now[0] = 105.0
    playing.observer.task_starts(playing.task("Install"))  # on the next host
    playing.observer.ok(playing.result("Install", {"changed": False}))
    playing.observer.ok(playing.result("Write", {"changed": True}))
    assert playing.host().windows == []
    playing.observer.ok(playing.result("Install", {"changed": True}))
    assert playing.host().windows == [[100.0, 105.0]]
    playing.observer.failed(playing.result("Install"))
    assert playing.host().windows == [[100.0, 105.0]] * 2
    playing.observer.lost(playing.result("Install"))
    assert playing.host().windows == [[100.0, 105.0]] * 3


def test_a_package_of_a_task_whose_begin_nobody_saw_is_of_the_run(playing: Playing) -> None:
    playing.observer.ok(playing.result("Install", {"changed": True}))
    ((begin, end),) = playing.host().windows
    assert begin == round(playing.observer.run.started, 3)
    assert begin <= end


@pytest.mark.parametrize(("ignore", "lost"), [(None, True), (False, True), (True, False)])
def test_a_host_that_does_not_answer_is_lost_and_its_role_broken(playing: Playing, ignore: Any, lost: bool) -> None:
    playing.observer.ok(playing.result("See"))
    playing.observer.lost(playing.result("Write", ignore_unreachable=ignore))
    assert playing.observer.unreachable == ({"n1"} if lost else set())
    assert playing.host().broken == ({"web"} if lost else set())
    assert len(playing.host().changes) == int(lost), "what it was about may be half done"


def test_a_host_is_lost_also_at_a_task_of_no_role(playing: Playing) -> None:
    result = playing.result("Write")
    result._task = SimpleNamespace(_uuid="another", _role=None)
    playing.observer.lost(result)
    assert (playing.observer.unreachable, playing.observer.hosts) == ({"n1"}, {})


def test_the_login_that_becomes_somebody_is_remembered(playing: Playing) -> None:
    def seen(**fields: Any) -> dict[str, Any]:
        playing.observer.ok(playing.result("See", **fields))
        return playing.observer.logins["n1"]

    assert seen(remote_user="me", become=False, port=None) == {"remote_user": "me", "become": False}
    assert seen(remote_user="other", become=False) == {"remote_user": "me", "become": False}
    assert seen(remote_user="me", become=True, become_user="root") == {
        **{"remote_user": "me", "become": True, "become_user": "root"},
    }
    assert seen(remote_user="other", become=True)["remote_user"] == "me"


def test_events_of_tasks_outside_of_roles_and_of_unknown_hosts_do_nothing(tmp_path: Path) -> None:
    playing = Playing(tmp_path, TASKS, {"n1": {"hal_audit_dir": None}, "image": {"hal_image_root": "/x"}})
    for host in ("n1", "image"):
        result = playing.result("Write", host=host)
        for event in ("item_ok", "item_skipped", "ok", "failed", "skipped", "ok"):
            getattr(playing.observer, event)(result)
    assert playing.observer.hosts == {}
    assert playing.observer.troubles == {"hal_audit_dir is not set": {"n1"}}
    playing.observer.lost(playing.result("Write", host="image"))
    assert playing.observer.unreachable == {"image"}
