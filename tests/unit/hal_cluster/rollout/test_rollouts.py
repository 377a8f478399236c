"""Two rollouts at once, as administrators see them: real runs of ansible-playbook on nodes that are folders here."""

from __future__ import annotations

import getpass
import json
import os
import platform
import signal

import pytest

from hal_cluster.rollout.processes import Here, started
from tests.unit.hal_cluster.audit.test_rollout import UNREACHABLE
from tests.unit.hal_cluster.rollout.conftest import WRITE, Site, forks, until

SHOW = {"name": "Show", "ansible.builtin.command": {"cmd": "cat '{{ playbook_dir }}/hal01/hal-rollout/holder.json'"}}


def test_the_second_is_refused_in_one_line_before_anything_is_changed_and_the_first_goes_on(site: Site) -> None:
    first = site.begin()
    site.role("other", tasks=[{"name": "Never", "ansible.builtin.file": {"path": "{{ node }}/n", "state": "touch"}}])
    second = site.run(roles=["other"])
    assert second.status == 2, second.text
    (line,) = [line for line in second.text.splitlines() if "hal[01-02]" in line]
    who = f"{os.environ.get('SUDO_USER') or getpass.getuser()} on {platform.node()} (process {first.pid})"
    begins = f"ERROR! hal[01-02]: {who} has held it for a rollout since 20"
    assert line.startswith(begins), line
    assert line.endswith(
        " UTC: ansible-playbook -i hosts.yml play.yml. Wait until that ends, or leave the node out by --limit."
        " Nothing was changed"
    ), line
    assert "TASK" not in second.text
    assert not (site.node / "n").exists()
    permitted = site.run("-e", "rollout_take_over=true", roles=["other"])
    assert permitted.status == 2, "a rollout that is seen to live is nobody's to take over"
    site.go()
    assert first.wait() == 0, site.said
    assert (site.node / "hal01").exists()
    assert not site.holder("hal01").exists()
    assert not site.notes
    assert site.run(roles=["other"]).status == 0


def test_rollouts_of_different_nodes_go_side_by_side(site: Site) -> None:
    first = site.begin("--limit", "hal01")
    site.role("other", tasks=[WRITE])
    second = site.run("--limit", "hal02", roles=["other"])
    assert second.status == 0, second.text
    assert (site.node / "hal02").exists()
    refused = site.run(roles=["other"])
    assert "hal01: " in refused.words
    assert not site.holder("hal02").exists(), "what it had taken before it was refused"
    site.go()
    assert first.wait() == 0


def test_a_node_is_asked_once_whatever_the_number_of_plays_and_let_go_with_the_record(site: Site) -> None:
    site.role(tasks=[WRITE])
    site.role("other", tasks=[WRITE])
    plays = [{"hosts": "all", "gather_facts": False, "roles": [role]} for role in ("sample", "other", "sample")]
    done = site.run(play=plays)
    assert done.status == 0, done.text
    assert site.asked("hal01") == site.asked("hal02") == ["held"]
    assert not site.holder("hal01").exists()
    nothing = [{**plays[0], "roles": [], "vars": {"rollout_holds": True}, "tasks": [{"ansible.builtin.ping": {}}]}]
    assert site.run("--limit", "hal01", play=nothing).status == 0
    assert site.asked("hal01")[1:] == ["held", "released"], "there was nothing to record"
    assert not site.holder("hal01").exists()


def test_a_killed_rollout_leaves_nothing_and_the_next_takes_over(site: Site) -> None:
    first = site.begin()
    (note,) = site.notes
    assert note.stat().st_mode & 0o777 == 0o600
    assert note.parent.stat().st_mode & 0o777 == 0o700
    assert len(forks(note)) == 3, "the run and a worker for each node"
    first.kill()
    first.wait()
    until(lambda: not forks(note), "workers outlive their parent")
    site.role("other", tasks=[WRITE])
    second = site.run(roles=["other"])
    assert second.status == 0, second.text
    assert "hal[01-02]: taken over from a rollout that is gone (" in second.words
    assert f"(process {first.pid})" in second.words
    assert not site.notes
    assert not site.holder("hal01").exists()


def test_what_ctrl_c_leaves_is_named(site: Site) -> None:
    first = site.begin()
    first.send_signal(signal.SIGINT)
    assert first.wait() != 0
    assert "hal[01-02]: still held by this rollout, which could not let go." in " ".join(site.said.split())
    site.go()
    assert "taken over from a rollout that is gone" in site.run().words


def test_another_controller_s_is_refused_until_somebody_says_that_it_is_gone(site: Site) -> None:
    said = site.hold("hal01")
    site.role(tasks=[WRITE])
    refused = site.run()
    assert refused.status == 2
    assert (
        "hal01: alice on ctl9 (process 4711) has held it for a rollout since 2026-11-21 04:00 UTC: ansible-playbook."
        " Wait until that ends, or leave the node out by --limit. If that controller is gone, say so:"
        " -e rollout_take_over=true. Nothing was changed"
    ) in refused.words, refused.text
    assert json.loads(site.holder("hal01").read_text()) == said
    assert list(site.node.iterdir()) == []
    permitted = site.run("-e", "rollout_take_over=true")
    assert permitted.status == 0, permitted.text
    assert "hal01: taken over as rollout_take_over permits (alice on ctl9 (process 4711)" in permitted.words


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 5000, '{"run": "' + "x" * 9000, "\x1b[2J"])
def test_what_cannot_be_read_is_not_free(site: Site, text: str) -> None:
    site.hold("hal01")
    site.holder("hal01").write_text(text)
    site.role(tasks=[WRITE])
    refused = site.run()
    assert refused.status == 2, refused.text
    assert "hal01: somebody rolls it out, and what the node says of that cannot be read. If" in refused.words
    assert site.run("-e", "rollout_take_over=true").status == 0


def test_a_node_s_words_drive_no_terminal_and_fill_no_screen(site: Site) -> None:
    hostile = "\x1b[2J\u202e\n" + "y" * 1500
    site.hold("hal01", user=hostile, host=[hostile], pid={"a": hostile}, since=hostile, command=hostile)
    site.role(tasks=[WRITE])
    refused = site.run()
    assert refused.status == 2, refused.text
    (line,) = [line for line in refused.text.splitlines() if "hal01:" in line]
    assert "\x1b[2J" not in line
    assert "\u202e" not in line
    assert len(line) < 1000


def test_a_node_that_lies_about_a_process_of_ours_is_only_compared(site: Site) -> None:
    here, pid = Here.look(), os.getpid()
    site.role(tasks=[WRITE])
    site.hold("hal01", **vars(here), pid=pid, start=started(pid))
    assert f"(process {pid}) has held it" in site.run("-e", "rollout_take_over=true").words
    site.hold("hal01", **vars(here), pid=pid, start=1)  # the number was used again
    assert site.run().status == 0


@pytest.mark.parametrize("words", [("--start-at-task", "Show"), ("--tags", "late", "--skip-tags", "always")])
def test_it_is_held_wherever_the_run_begins(site: Site, words: tuple[str, ...]) -> None:
    site.role(tasks=[WRITE, {**SHOW, "tags": ["late"]}])
    done = site.run("-v", *words)
    assert done.status == 0, done.text
    assert '"command": "ansible-playbook' in done.text.replace("\\", "")
    assert not (site.node / "hal01").exists(), "it began at the beginning"
    assert not site.holder("hal01").exists()


def test_check_mode_and_plays_without_roles_neither_hold_nor_are_refused(site: Site) -> None:
    site.hold("hal01")
    site.role(tasks=[WRITE])
    assert site.run("--check").status == 0
    look = [{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.ping": {}}]}]
    assert site.run(play=look).status == 0
    assert site.run(play=[{**look[0], "vars": {"rollout_holds": True}}]).status == 2


def test_a_node_that_is_away_is_unreachable_once_and_the_others_go_on(site: Site) -> None:
    site.nodes({"hal02": UNREACHABLE})
    site.role(tasks=[WRITE])
    done = site.run()
    assert done.status == 4, done.text
    assert done.text.count("UNREACHABLE!") == 1
    assert (site.node / "hal01").exists()
    assert "still held" not in done.text


def test_a_node_that_goes_away_stays_held_and_is_named(site: Site) -> None:
    gone = {"name": "Go away", "ansible.builtin.ping": {}, "vars": {**UNREACHABLE, "ansible_timeout": 5}}
    site.role(tasks=[WRITE, {**gone, "when": "inventory_hostname == 'hal02'"}])
    done = site.run()
    assert done.status == 4, done.text
    assert "hal02: still held by this rollout, which could not let go. The next rollout" in done.words
    assert site.holder("hal02").exists()
    assert not site.holder("hal01").exists()


def test_a_node_that_cannot_keep_it_fails_alone(site: Site) -> None:
    (site.folder / "hal02" / "hal-rollout").write_text("in the way")
    site.role(tasks=[WRITE])
    done = site.run()
    assert done.status == 2
    assert "ERROR! hal02: " in done.words
    assert (site.node / "hal01").exists()
    assert not (site.node / "hal02").exists()


def test_secrets_of_the_command_line_are_told_to_nobody(site: Site) -> None:
    site.role(tasks=[SHOW])
    done = site.run("-v", "-e", "word=hunter1", "-eword2=hunter2", "--extra-vars=word3=hunter3", "--limit", "hal01")
    assert done.status == 0, done.text
    assert "--limit hal01" in done.text
    assert "hunter" not in done.text
