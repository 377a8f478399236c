"""playbooks/audit.yml and hal-audit run, with nodes that are this machine and an answer that is made up.

Of the program hal_cluster.audit.cli.run, hal_cluster.audit.cli.show, hal_cluster.audit.cli.sources
and hal_cluster.audit.cli.playbook; of the playbook hal_cluster.audit.collect, hal_cluster.audit.examine and
hal_cluster.audit.questions.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.unit import warm
from tests.unit.hal_cluster.audit.answers import HEALTHY, PROJECT, difference
from tests.unit.interpreters import LOCAL

BIN = Path(sys.executable).parent
MODULES = Path(__file__).resolve().parent / "modules"
LONG_SECONDS = 600  # a run that has not ended by then never will
EXPECT = """
- {id: it runs, why: w, service: {name: web, read: running}, equal: "{{ web_runs }}"}
- {id: not here, why: w, file: {path: /x}, equal: a, when: false}
"""


class Site:
    """A project of one role, nodes n1 and n2, and a module that answers what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a site"
        self.write("roles/web/expect.yml", EXPECT)
        self.write("roles/web/defaults/main.yml", "web_runs: true\n")
        self.write(
            "hosts",
            f"[web]\nn1\nn2\n[all:vars]\nansible_connection=local\nansible_python_interpreter={LOCAL}\n"
            f"hal_audit_dir={json.dumps(str(self.folder / 'state'))}\n",
        )
        settings = ["inventory = hosts", "roles_path = roles", f"library = {MODULES}", "callback_result_format = yaml"]
        settings += [
            f"action_plugins = {PROJECT}/plugins/action",
            "callbacks_enabled = hal_printable, hal_audit_report",
        ]
        settings += [f"{kind}_plugins = {PROJECT}/plugins/{kind}" for kind in ("callback", "lookup")]
        connection = ["[ssh_connection]", "ssh_args = -F none"]  # whatever the user's says
        self.write("ansible.cfg", "\n".join(["[defaults]", *settings, *connection, ""]))
        for node in ("n1", "n2"):
            self.answers(node)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def answers(self, node: str, text: str | None = None, **changes: Any) -> None:
        self.write(f"answer-{node}.json", json.dumps({**HEALTHY, **changes}) if text is None else text)

    def asked(self, node: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.folder / f"asked-{node}.json").read_text())
        return document

    def environment(self) -> dict[str, str]:
        settings = {"ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
        settings |= {"ANSIBLE_LOCALHOST_WARNING": "0", "PYTHONPATH": str(PROJECT)}
        return {**os.environ, **settings, "STAND_IN_ANSWERS": str(self.folder)}

    def call(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        own = {**self.environment(), **more}
        return subprocess.run(
            command, cwd=self.folder, env=own, capture_output=True, text=True, check=False, timeout=LONG_SECONDS
        )

    def playbook(
        self, *arguments: str, book: str = str(PROJECT / "playbooks" / "audit.yml")
    ) -> subprocess.CompletedProcess[str]:
        words = [str(BIN / "ansible-playbook"), book, *arguments]
        return warm.run(words, self.environment(), LONG_SECONDS, self.folder)

    def hal_audit(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.call(sys.executable, "-m", "hal_cluster.audit", *arguments)

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.folder / "state" / "last.json").read_text())
        jsonschema.validate(
            document, json.loads((PROJECT / "hal_cluster" / "audit" / "findings.schema.json").read_text())
        )
        return document


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_clean_site(site: Site) -> None:
    done = site.playbook()
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\nClean: 2 nodes, 24 resources, 2 expectations, \S+ s\n", done.stdout)
    asked = site.asked("n1")
    assert asked["questions"] == [{"service": {"name": "web", "read": "running"}, "equal": True, "secret": False}]
    assert {"/etc/yum.repos.d", "/etc/sudoers.d"} <= {one["path"] for one in asked["watched"]}
    assert asked["checks"] == ["uid_0", "kernel", "packages", "clock"]
    last = site.folder / "state" / "last.json"
    assert site.document()["status"] == 0
    assert last.stat().st_mode & 0o777 == 0o600


def test_drift_is_a_failed_play_and_one_report(site: Site) -> None:
    for node in ("n1", "n2"):
        site.answers(node, differences=[difference()])
    done = site.playbook()
    assert done.returncode == 2
    assert done.stdout.count("1 finding, see the report below") == 2
    assert done.stdout.count("the mode differs") == 1
    assert "  n[1-2]  file /etc/chrony.conf: the mode differs" in done.stdout
    assert done.stdout.index("PLAY RECAP") < done.stdout.index("the mode differs")


BROKEN: dict[str, Callable[[Site], None]] = {
    "no JSON": lambda site: site.answers("n1", "Segmentation fault"),
    "no answer": lambda site: site.answers("n1", "{}"),
    "the wrong one": lambda site: site.answers("n1", differences="x"),
    "too few answers": lambda site: site.answers("n1", answers=[{"status": "pass"}] * 7),
    "a failure": lambda site: site.answers("n1", failed=True, msg="this node could not be audited"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_answer_is_unreadable_and_the_other_node_is_not(site: Site, broken: str) -> None:
    BROKEN[broken](site)
    done = site.playbook()
    assert "Traceback" not in done.stdout + done.stderr
    (one,) = site.document()["findings"]
    assert (one["host"], one["kind"], one["status"]) == ("n1", "unreadable", "unknown")
    assert site.document()["status"] == 3


def test_a_node_that_does_not_answer(site: Site) -> None:
    site.write(
        "hosts", (site.folder / "hosts").read_text().replace("n1\n", "n1 ansible_connection=ssh ansible_port=9\n")
    )
    done = site.playbook("-e", "ansible_host=127.0.0.1")
    assert "unreachable=1" in done.stdout
    (one,) = site.document()["findings"]
    assert (one["host"], one["kind"], one["status"]) == ("n1", "unreachable", "unknown")
    assert site.document()["status"] == 3


def test_a_node_that_is_lost_in_a_task_beside_the_audit_is_unreachable(site: Site) -> None:
    """Before its own task comes, or after: nothing else says that it is gone."""
    site.write(
        "play.yml",
        """
- hosts: all
  gather_facts: false
  tasks:
    - {name: Compare, hal_audit: {node: "{{ inventory_hostname }}"}, when: inventory_hostname == "n2"}
    - name: Lose a node
      ansible.builtin.command: {argv: ["true"]}
      vars: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 9}
      when: inventory_hostname == "n1"
""",
    )
    site.playbook(book="play.yml")
    document = site.document()
    (one,) = document["findings"]
    assert (one["host"], one["kind"], one["status"]) == ("n1", "unreachable", "unknown")
    assert "port 9" in one["summary"]
    assert document["status"] == 3


def test_a_node_that_was_lost_before_the_audit_and_is_not_audited_is_not_its_concern(site: Site) -> None:
    site.write(
        "play.yml",
        """
- hosts: all
  gather_facts: false
  tasks:
    - name: Lose a node
      ansible.builtin.command: {argv: ["true"]}
      vars: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 9}
      when: inventory_hostname == "n1"
- hosts: n2
  gather_facts: false
  tasks:
    - {name: Compare, hal_audit: {node: "{{ inventory_hostname }}"}}
""",
    )
    site.playbook(book="play.yml")
    document = site.document()
    assert (list(document["nodes"]), document["findings"], document["status"]) == (["n2"], [], 0)


def test_an_audit_that_ends_before_its_node_is_asked_says_why(site: Site) -> None:
    task = 'hal_audit: {node: "{{ nobody_knows }}"}'
    site.write("play.yml", f"- {{hosts: all, gather_facts: false, tasks: [{{{task}}}]}}\n")
    said = site.playbook(book="play.yml").stdout
    report = " ".join(said.partition("PLAY RECAP")[2].split())
    assert "nodes n[1-2] The task includes an option with an undefined variable." in report
    assert "'nobody_knows' is undefined" in report
    assert "Not everything was seen: 2 unknown on n[1-2] (2 nodes, 0 resources, 0 expectations" in report


def test_only_a_role(site: Site) -> None:
    done = site.playbook("-e", "audit_roles=web")
    assert done.returncode == 0
    asked = site.asked("n1")
    assert (asked["roles"], asked["watched"], asked["checks"]) == (["web"], [], [])
    assert len(asked["questions"]) == 1


SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"audit_accepted": [{"path": "/etc/x"}]}, "audit_accepted: each entry needs path and reason"),
    ({"audit_accepted": "/etc/x"}, "audit_accepted has to be a list"),
    ({"audit_watched_extra": [{"names": ["x"]}]}, "audit_watched_extra: each needs a path"),
]


@pytest.mark.parametrize(("settings", "words"), SETTINGS)
def test_settings_that_cannot_be_used_are_said(site: Site, settings: dict[str, Any], words: str) -> None:
    site.playbook("-e", json.dumps(settings))
    assert {one["kind"] for one in site.document()["findings"]} == {"unreadable"}
    assert words in site.document()["findings"][0]["summary"]


def test_settings_reach_the_node(site: Site) -> None:
    settings = {
        "audit_accepted": [{"path": "/etc/cron.d/{{ inventory_hostname }}", "reason": "r"}],
        "audit_watched_extra": [{"path": "/opt/site", "what": "programs"}],
        "audit_checks_left_out": ["clock"],
    }
    site.playbook("-e", json.dumps(settings))
    asked = site.asked("n2")
    assert all("/etc/cron.d/n2" in one["accepted"] for one in asked["watched"])
    assert asked["watched"][-1]["path"] == "/opt/site"
    assert asked["checks"] == ["uid_0", "kernel", "packages"]


def test_an_expectation_that_fails(site: Site) -> None:
    site.answers("n1", answers=[{"status": "fail", "observed": False, "reason": "it is masked"}])
    site.playbook()
    (one,) = site.document()["findings"]
    assert (one["resource"], one["should"], one["is"]) == ("expectation:web: it runs", {"equal": True}, False)


@pytest.mark.parametrize(("settings", "status"), [("", 0), (", kind: hardware", 2)])
def test_a_warning_fails_the_play_only_if_it_counts(site: Site, settings: str, status: int) -> None:
    expect = "- {id: it runs, why: w, service: {name: web, read: running}, equal: true, severity: warning%s}"
    site.write("roles/web/expect.yml", expect % settings.replace("kind", "finding"))
    site.answers("n1", answers=[{"status": "fail", "observed": False, "reason": "it is masked"}])
    assert (site.playbook().returncode, site.document()["status"]) == (status, status)


def test_a_broken_expectation_file_is_unknown(site: Site) -> None:
    site.write("roles/web/expect.yml", "- [")
    site.playbook()
    assert {(one["kind"], one["status"]) for one in site.document()["findings"]} == {("expectation", "unknown")}


def test_the_program_prints_and_ends_as_said(site: Site) -> None:
    assert site.hal_audit("run").returncode == 0
    site.answers("n1", problems=["rpm hangs"])
    done = site.hal_audit("run")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines()[0] == "nodes"
    site.answers("n2", differences=[difference()])
    done = site.hal_audit("run", "--json")
    assert done.returncode == 2
    document = json.loads(done.stdout)
    assert [one["host"] for one in document["findings"]] == ["n2", "n1"]
    assert document == site.document()
    assert site.hal_audit("run", "--limit", "n1").returncode == 3


ERRORS = [
    (["run", "--nonsense"], "unrecognized arguments: --nonsense"),
    (["run", "--forks", "x"], "invalid int value"),
    (["run", "-i", "nowhere.yml", "--", "-e", "ANSIBLE_INVENTORY_UNPARSED_FAILED=1"], "nowhere.yml"),
    (["run", "--limit", "nobody"], "no hosts to target"),
    (["run", "--role", "tyme"], 'no role "tyme"; did you mean "time"?'),
    (["show", "n9"], 'no node "n9"'),
    (["show", "n1"], "n1 has no record here"),
    (["adopt", "--accept"], "nothing was proposed"),
    (["nonsense"], "invalid choice"),
]


@pytest.mark.parametrize(("arguments", "words"), ERRORS, ids=lambda one: " ".join(one) if isinstance(one, list) else "")
def test_errors_are_one_line_and_exit_status_1(site: Site, arguments: list[str], words: str) -> None:
    done = site.call(
        sys.executable, "-m", "hal_cluster.audit", *arguments, ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED="1"
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_record_is_shown(site: Site) -> None:
    entry = {"resource": "file:/x", "role": "web", "task": "web|roles/web/tasks/main.yml|Write x", "commit": "abc"}
    entry |= {"source": "roles/web/tasks/main.yml:2", "converged_at": "2026-11-20T18:02:00Z"}
    record = {
        "format": 1,
        "node": "n1",
        "serial": 3,
        "sealed_at": "s",
        "commit": "abc",
        "roles": {},
        "entries": [entry],
    }
    site.write("state/records/n1.json", json.dumps(record))
    text = site.hal_audit("show", "n1").stdout
    assert re.search(r"file:/x +web +abc +2026-11-20T18:02:00Z +roles/web/tasks/main.yml:2 +Write x", text)
    assert json.loads(site.hal_audit("show", "n1", "--json").stdout) == record
    assert "file:/x" not in site.hal_audit("show", "n1", "--role", "time").stdout
