"""Before the first change each node is asked to keep what its roles will replace, and nothing else and not twice."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster.audit.originals import lost_lines, plan_of
from tests.unit.hal_cluster.rollout.conftest import Site

PROJECT = Path(__file__).resolve().parents[4]
KEEP = {"name": "Keep", "hal_originals": {"state": "kept"}}
FIRST = {"hosts": "all", "gather_facts": False, "tasks": [KEEP]}
FILE: dict[str, Any] = {
    "name": "Write it",
    "ansible.builtin.copy": {"content": "{{ word }}", "dest": "{{ node }}/written", "mode": "0600"},
}


def play(*roles: str) -> dict[str, Any]:
    """A play that lists roles."""
    return {"hosts": "all", "gather_facts": False, "roles": list(roles)}


def asked(site: Site, host: str) -> list[dict[str, Any]]:
    """What a node was asked until now."""
    path = site.folder / host / "originals-asked"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def names(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and resource of what a request has, without the folder of the test."""
    return [(one["role"], one["resource"].rpartition("/")[2]) for one in request["resources"]]


def test_a_node_is_told_names_of_what_its_roles_manage_and_no_content(site: Site) -> None:
    late = {"name": "Look", "ansible.builtin.command": {"argv": ["true"]}, "register": "looked", "changed_when": False}
    unit = {
        "name": "Run it",
        "ansible.builtin.systemd_service": {
            "name": "x",
            "state": "{{ 'restarted' if looked is changed else 'started' }}",
        },
        "when": "looked is failed",
    }
    own = {
        "name": "Write several",
        "hal_files": {"files": [{"path": "{{ node }}/own", "content": "{{ looked.stdout }}", "mode": "0600"}]},
        "when": "looked is failed",
    }
    gone = {
        "name": "Remove what is there",
        "ansible.builtin.file": {"path": "{{ item }}", "state": "absent"},
        "loop": "{{ looked.stdout_lines }}",
    }
    site.role("sample", tasks=[FILE, late, unit, own, gone])
    ran = site.run("-e", "word=secret", "-v", play=[FIRST, play("sample")])
    assert ran.status == 0, ran.text
    (request,) = asked(site, "hal01")
    assert names(request) == [("sample", "written"), ("sample", "service:x.service"), ("sample", "own")]
    assert request["node"] == "hal01"
    assert "secret" not in json.dumps(request)
    assert "sample: Remove what is there (roles/sample/tasks/main.yml:" in ran.text


def test_a_node_whose_record_has_the_roles_is_asked_nothing(site: Site) -> None:
    site.role("sample", tasks=[FILE])
    site.run("-e", "word=a", play=[FIRST, play("sample")])
    assert len(asked(site, "hal01")) == 1
    assert site.run("-e", "word=a", play=[FIRST, play("sample")]).status == 0
    assert len(asked(site, "hal01")) == 1
    site.role("sample", tasks=[FILE, {**FILE, "name": "Another"}])
    site.run("-e", "word=a", play=[FIRST, play("sample")])
    assert len(asked(site, "hal01")) == 2, "its inputs are others now"
    (site.state / "records" / "hal01.json").write_text("{}")
    assert site.run("-e", "word=a", play=[FIRST, play("sample")]).status == 0
    assert len(asked(site, "hal01")) == 3, "a copy that cannot be used says nothing"


def test_only_roles_that_are_named_are_kept_for(site: Site) -> None:
    site.role("one", tasks=[FILE])
    site.role("two", tasks=[{**FILE, "ansible.builtin.copy": {"content": "", "dest": "{{ node }}/two"}}])
    named = {**FIRST, "tasks": [{"name": "Keep", "hal_originals": {"state": "kept", "roles": ["two"]}}]}
    assert site.run("-e", "word=a", play=[named, play("one", "two")]).status == 0
    assert names(asked(site, "hal01")[0]) == [("two", "two")]


def test_what_cannot_be_kept_stops_the_node_before_its_first_change(site: Site) -> None:
    site.role("sample", tasks=[FILE])
    (site.folder / "hal01" / "originals.json").write_text(json.dumps({"failed": True, "msg": "file:/x: 2 MiB: more"}))
    ran = site.run("-e", "word=a", "--limit", "hal01", play=[FIRST, play("sample")])
    assert ran.status == 2
    assert "file:/x: 2 MiB: more" in ran.words
    assert not (site.node / "written").exists()


@pytest.fixture
def giveback(site: Site) -> Any:
    """Run giveback.yml on the nodes of the small site."""
    (play_of_ours,) = yaml.safe_load((PROJECT / "playbooks" / "giveback.yml").read_text())
    site.config.write_text(
        site.config.read_text().replace("[connection]", f"filter_plugins = {PROJECT}/plugins/filter\n[connection]")
    )

    def run(*arguments: str) -> Any:
        path = {"PATH": f"{site.folder}/bin:{os.environ['PATH']}"}
        play = {**play_of_ours, "hosts": "all", "environment": path}
        return site.run("-e", "giveback_role=time", *arguments, play=[play])

    return run


def states(site: Site, host: str) -> list[str]:
    """What a node was asked for."""
    return [one["state"] for one in asked(site, host)]


def code(text: str) -> str:
    """The code that was shown."""
    return text.partition("giveback_code=")[2][:9]


def test_giving_back_shows_the_plan_first_and_needs_its_code(site: Site, giveback: Any) -> None:
    shown = giveback()
    assert shown.status == 0, shown.text
    assert "hal[01-02]: file:/etc/x: remove" in shown.text
    assert states(site, "hal01") == ["planned"]
    other = giveback("-e", "giveback_code=AAAA-AAAA")
    assert other.status == 2
    assert "AAAA-AAAA is not the code of what would be done now" in other.words
    assert states(site, "hal01") == ["planned"] * 2
    checked = giveback("-e", f"giveback_code={code(shown.text)}", "--check")
    assert checked.status == 0, checked.text
    assert states(site, "hal01") == ["planned"] * 3
    done = giveback("-e", f"giveback_code={code(shown.text)}")
    assert done.status == 0, done.text
    assert states(site, "hal01")[-1] == "given_back"
    assert asked(site, "hal01")[-1]["fingerprint"] == "of hal01"
    assert states(site, "hal02")[-1] == "given_back"


def test_what_others_changed_is_given_back_by_permission_alone(site: Site, giveback: Any) -> None:
    (site.folder / "hal02" / "originals.json").write_text(json.dumps({"changed_since": ["file:/etc/x: changed"]}))
    refused = giveback()
    assert refused.status == 2
    assert "hal02: file:/etc/x: changed: look at it first, because it will be lost;" in refused.words
    permitted = giveback("-e", "giveback_changed_ok=true")
    assert permitted.status == 0, permitted.text
    done = giveback("-e", "giveback_changed_ok=true", "-e", f"giveback_code={code(permitted.text)}")
    assert done.status == 0, done.text
    assert asked(site, "hal02")[-1]["changed_ok"] is True


def test_what_was_left_is_a_failure(site: Site, giveback: Any) -> None:
    (site.folder / "hal01" / "originals.json").write_text(json.dumps({"left": ["package:x: needed"]}))
    done = giveback("-e", f"giveback_code={code(giveback().text)}")
    assert done.status == 2
    assert "not put back: package:x: needed. It is still kept" in done.words


# --- lines


def test_nothing_is_said_where_all_comes_back() -> None:
    said = {"kept": ["file:/etc/x"], "lost": [], "uncovered": ["time: Remove (roles/time/tasks/x.yml:1)"]}
    assert lost_lines({"hal01": said, "hal02": {}}) == []


def test_what_cannot_come_back_is_said_once_for_all_nodes() -> None:
    said = {"kept": [], "lost": ["package x 1 becomes 2: it comes back if a repository has that version"]}
    late = {**said, "uncovered": ["time: Remove (roles/time/tasks/x.yml:1)"]}
    assert lost_lines({"hal01": late, "hal02": late, "hal05": said}) == [
        "hal[01-02,05]: package x 1 becomes 2: it comes back if a repository has that version",
        "hal[01-02]: time: Remove (roles/time/tasks/x.yml:1) decides in the run what it replaces: not kept by now",
    ]


def test_check_mode_says_how_much_would_be_kept() -> None:
    assert lost_lines({"hal01": {"kept": ["a", "b"]}, "hal02": {"kept": []}}, check=True) == [
        "hal01: 2 things would be kept"
    ]


def test_a_long_list_is_counted() -> None:
    lines = lost_lines({"hal01": {"lost": [f"line {number}" for number in range(50)]}})
    assert len(lines) == 41
    assert lines[-1] == "and 10 more"


def test_a_plan_has_its_own_code() -> None:
    planned = {"steps": [["file:/etc/x", "remove"]], "kept": 1, "fingerprint": "a"}
    one = plan_of({"hal01": planned}, "time")
    assert one["code"] == plan_of({"hal01": planned}, "time")["code"]
    for other in (
        plan_of({"hal01": planned}, "ssh"),
        plan_of({"hal01": planned}, "time", changed_ok=True),
        plan_of({"hal01": {**planned, "fingerprint": "b"}}, "time"),
        plan_of({"hal01": planned, "hal02": planned}, "time"),
    ):
        assert other["code"] != one["code"]


def test_nothing_kept_is_no_plan() -> None:
    assert plan_of({"hal01": {"kept": 0, "fingerprint": "a"}}, "time") == {
        "text": "hal01: nothing is kept that role time replaced",
        "code": "",
        "refused": [],
    }


def test_jobs_are_no_matter_of_a_permission() -> None:
    said = {"kept": 1, "fingerprint": "a", "jobs": ["slurmd.service"], "changed_since": ["file:/x: changed"]}
    plan = plan_of({"hal01": said, "hal02": said}, "slurm", changed_ok=True)
    assert plan["refused"] == ["hal[01-02]: jobs run there, and slurmd.service would stop: drain it first"]


@pytest.mark.parametrize(
    ("queue", "why"),
    [
        ({"skipped": True}, None),
        ({"rc": 0, "stdout": ""}, None),
        ({"rc": 0, "stdout": "12\n13"}, "2 jobs run: wait until they end, or end them"),
        ({"rc": 1, "stderr": "slurm_load_jobs error: Unable to contact"}, "Slurm does not say whether jobs run"),
        ({"rc": 2, "msg": "no such program"}, "Slurm does not say whether jobs run"),
    ],
)
def test_what_jobs_of_other_nodes_need_does_not_stop(queue: dict[str, Any], why: str | None) -> None:
    said = {"kept": 1, "fingerprint": "a", "serving": ["opensm.service"]}
    refused = plan_of({"hal01": said, "hal02": {**said, "serving": []}}, "infiniband", queue=queue)["refused"]
    assert [line.partition(" (")[0] for line in refused] == (
        [f"hal01: opensm.service would stop there, and {why}"] if why else []
    )
    permitted = plan_of({"hal01": said}, "infiniband", queue=queue, unasked_ok=True)["refused"]
    assert bool(permitted) == ("jobs run:" in str(why)), "jobs are no matter of a permission"


def test_slurm_is_asked_where_something_stops_that_jobs_need(site: Site, giveback: Any) -> None:
    (site.folder / "hal02" / "originals.json").write_text(json.dumps({"serving": ["nfs-server.service"]}))
    program = site.folder / "bin" / "squeue"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\necho 4711\n")
    program.chmod(0o755)
    refused = giveback()
    assert refused.status == 2, refused.text
    assert "hal02: nfs-server.service would stop there, and job 4711 runs" in refused.words


@pytest.mark.parametrize("runs", [True, False])
def test_a_missing_squeue_is_no_answer_while_slurm_runs(site: Site, giveback: Any, runs: bool) -> None:
    """Somebody's own Slurm, in a folder that sudo does not look into."""
    (site.folder / "hal02" / "originals.json").write_text(json.dumps({"serving": ["nfs-server.service"]}))
    program = site.folder / "bin" / "pgrep"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\nexit {0 if runs else 1}\n")
    program.chmod(0o755)
    done = giveback()
    assert (done.status == 2) == runs, done.text
    assert ("Slurm does not say whether jobs run (Slurm runs, and squeue is in none of" in done.words) == runs


def test_what_a_node_says_is_one_line() -> None:
    said = {"kept": 1, "fingerprint": "a", "steps": [["file:/etc/\x1b[2J", "remove\nCode: AAAA"]]}
    assert plan_of({"hal01": said}, "time")["text"] == "hal01: file:/etc/\\x1b[2J: remove Code: AAAA"
