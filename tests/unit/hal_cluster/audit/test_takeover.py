"""A look before a takeover, at the controller: what roles would manage, and how it is told to who decides."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.manager import VariableManager

from hal_cluster.audit import cli, questions, report, takeover, takeover_report
from hal_cluster.audit.cli import playbook
from hal_cluster.audit.cli import run as running
from hal_cluster.audit.document import Audit
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.examine import Examination
from hal_cluster.audit.findings import Finding, exit_status, not_managed
from hal_cluster.audit.plan import Plan, planned
from tests.unit.hal_cluster.audit.answers import PROJECT, Answer

TASKS = """
- name: Write the words
  hal_files:
    files:
      - {path: /etc/web, content: "words\\n"}
- name: Write the secret
  hal_files:
    files:
      - {path: /etc/web.secret, content: "{{ vault_web_key }}", mode: "0600"}
- name: Write a page
  ansible.builtin.copy: {content: "page\\n", dest: /etc/page, mode: "0644"}
- name: Keep the key
  hal_munge_key: {key: "{{ vault_web_munge }}"}
- name: See
  ansible.builtin.command: {argv: [date]}
  register: __web_seen
  changed_when: false
- name: After having seen
  ansible.builtin.copy: {content: y, dest: /etc/after, mode: "0644"}
  when: __web_seen.rc == 0
- name: Change something
  ansible.builtin.command: {argv: [web, --start]}
  changed_when: true
- name: Take in what fits
  ansible.builtin.include_tasks: "{{ __web_seen.stdout }}.yml"
"""
MUNGE = bytes(range(64))

pytestmark = pytest.mark.usefixtures("plugins_of_ansible")


def plan_of(folder: Path, tasks: str = TASKS, *, texts: bool = False) -> Plan:
    role = folder / "roles" / "web" / "tasks"
    role.mkdir(parents=True)
    (role / "main.yml").write_text(tasks)
    loader = DataLoader()
    loader.set_basedir(str(folder))
    inventory = InventoryManager(loader, sources=None, parse=False)
    inventory.add_host("n1")
    for name, value in {"vault_web_key": "a secret", "vault_web_munge": base64.b64encode(MUNGE).decode()}.items():
        inventory.get_host("n1").set_variable(name, value)
    task = SimpleNamespace(_variable_manager=VariableManager(loader, inventory), _loader=loader)
    return planned(task, "n1", ["web"], texts=texts)


def declared(plan: Plan) -> dict[str, dict[str, Any]]:
    return {entry["resource"]: entry["declared"] for entry in plan.entries}


def test_what_a_role_declares_is_worked_out_and_secrets_are_in_it_as_keyed_hashes_only(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, texts=True)
    found = declared(plan)
    assert found["file:/etc/web"]["sha1"] == hashlib.sha1(b"words\n").hexdigest()
    assert found["file:/etc/page"]["sha1"] == hashlib.sha1(b"page\n").hexdigest()
    for name, content in {"file:/etc/web.secret": b"a secret", "file:/etc/munge/munge.key": MUNGE}.items():
        digest = hashlib.sha1(content).hexdigest().encode()
        assert "sha1" not in found[name]
        assert found[name]["sha1_keyed"] == hmac.new(plan.key, digest, hashlib.sha256).hexdigest()
    texts = {entry["resource"]: entry["text"] for entry in plan.entries if "text" in entry}
    assert texts == {"file:/etc/web": "words\n", "file:/etc/page": "page\n", "file:/etc/after": "y"}
    sent = json.dumps(plan.arguments()["planned"])
    assert "a secret" not in sent
    assert base64.b64encode(MUNGE).decode() not in sent
    assert base64.b64decode(plan.arguments()["planned_key"]) == plan.key


def test_keys_are_of_one_call_and_texts_are_sent_for_a_diff_only(tmp_path: Path) -> None:
    one, other = plan_of(tmp_path / "a"), plan_of(tmp_path / "b")
    assert one.key != other.key
    assert not [entry for entry in one.entries if "text" in entry]
    assert Plan().arguments() == {}


def test_what_shows_in_a_run_only_is_said_with_its_task_and_why(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    said = {one.title: one.why for one in plan.undecided}
    assert said["Change something"] == "it runs a program"
    assert said["Take in what fits"] == "which tasks it takes in"
    assert set(said) == {"Change something", "Take in what fits"}
    assert "file:/etc/after" not in plan.certain
    assert "file:/etc/page" in plan.certain
    (one,) = plan.untold("n1")
    assert (one.kind, one.status, one.role) == ("undecided", "aside", "web")
    assert "Change something (" in one.summary
    assert exit_status([one], nodes=1) == 0
    broken = plan_of(tmp_path / "broken", "- no_such_module: {}\n")
    (fault,) = broken.untold("n1")
    assert (fault.status, exit_status([fault], nodes=1)) == ("unknown", 3)


class Looked(Examination):
    """An examination of node hal05 without Ansible: its groups, and what a planner says."""

    def __init__(self, folder: Path, plan: Plan, **variables: Any) -> None:
        known = {"group_names": ["time", "ssh"], "hal_audit_dir": str(folder / "audit"), **variables}
        loader = DataLoader()
        loader.set_basedir(str(PROJECT / "playbooks"))
        super().__init__("hal05", loader, known, {})
        self.asked: list[str] = []

        def planner(roles: Any) -> Plan:
            self.asked.extend(roles)
            return plan

        self.planner = planner


@pytest.fixture
def roles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roles time and ssh, which promise nothing here."""
    monkeypatch.setattr(questions.ROLES, "of", lambda groups, _loader: sorted(groups))
    monkeypatch.setattr(questions, "prepare", lambda *_: [])


def difference(role: str, name: str, kind: str = "changed", **more: Any) -> dict[str, Any]:
    task = f"{role}|roles/{role}/tasks/configure.yml|Write it"
    return {
        "resource": name,
        "kind": kind,
        "attribute": "sha1",
        "should": "a",
        "is": "b",
        "role": role,
        "task": task,
        **more,
    }


@pytest.mark.usefixtures("roles")
def test_before_a_takeover_all_roles_are_looked_at_and_nothing_is_kept(tmp_path: Path, healthy: Answer) -> None:
    one = Looked(tmp_path, Plan(certain={"file:/a"}))
    one.takeover = True
    asked = one.arguments()
    assert (one.asked, one.roles, asked["record"], asked["tree"]) == (["time", "ssh"][::-1], [], "", False)
    assert not (tmp_path / "audit").exists()
    # The node has been rolled out in part: what its record says is no matter of this.
    recorded = difference("time", "file:/recorded")
    answer = {
        **healthy,
        "differences": [recorded],
        "planned": [difference("time", "file:/a"), difference("ssh", "file:/b")],
    }
    payload = one.payload(answer)
    found = [Finding.read(each) for each in payload["findings"]]
    assert [(each.resource, each.status, each.cause, each.summary) for each in found] == [
        ("file:/a", "drift", "declaration", "the content differs"),
        ("file:/b", "drift", "declaration", "the content differs, if a run comes to it"),
    ]
    assert payload["audit_dir"] == ""
    assert payload["takeover"] is True


@pytest.mark.usefixtures("roles")
def test_a_role_that_does_not_act_is_audited_apart_and_counts_for_nothing(tmp_path: Path, healthy: Answer) -> None:
    one = Looked(tmp_path, Plan(certain={"file:/a"}), managed_roles=["ssh"])
    one.arguments()
    assert (one.asked, one.roles, one.aside) == (["time"], ["ssh"], ["time"])
    unread = difference("time", "file:/c", kind="unreadable", attribute="")
    answer = {**healthy, "planned": [difference("time", "file:/a"), unread]}
    payload = one.payload(answer)
    found = [Finding.read(each) for each in payload["findings"]]
    assert {(each.status, each.cause) for each in found} == {("aside", "not-managed")}
    assert exit_status(found, nodes=1) == 0
    mine = {**healthy, "differences": [difference("ssh", "file:/ours")], "planned": answer["planned"]}
    found = [Finding.read(each) for each in one.payload(mine)["findings"]]
    assert [each.resource for each in found if each.status == "drift"] == ["file:/ours"]
    once_ours = {**healthy, "differences": [difference("time", "file:/was ours")]}
    assert [each["status"] for each in one.payload(once_ours)["findings"]] == ["aside"]

    audit = Audit(groups={"all": ["hal05"]})
    audit.add("hal05", payload)
    document = audit.document(1.0)
    assert (document["status"], document["summary"]["aside"], document["summary"]["drift"]) == (0, 2, 0)
    text = report.text(document)
    assert "time (not managed here: managed_roles)" in text
    assert "repair" not in text
    assert text.endswith("Clean: 1 node, 12 resources, 0 expectations, 1.0 s, 2 not managed here\n")


@pytest.mark.usefixtures("roles")
def test_a_node_on_which_no_role_acts_needs_no_record(tmp_path: Path, healthy: Answer) -> None:
    none = {**healthy, "record": {"status": "none", "used": "none", "reason": ""}}
    one = Looked(tmp_path, Plan(), managed_roles=[])
    one.arguments()
    assert one.payload(none)["findings"] == []
    one = Looked(tmp_path, Plan(), managed_roles=["ssh"])
    one.arguments()
    assert [each["kind"] for each in one.payload(none)["findings"]] == ["no-record"]


@pytest.mark.usefixtures("roles")
def test_a_value_that_cannot_be_used_is_said_and_nobody_is_asked(tmp_path: Path) -> None:
    one = Looked(tmp_path, Plan(), managed_roles=["tiem"])
    with pytest.raises(AuditError) as error:
        one.arguments()
    assert str(error.value) == 'managed_roles: there is no role "tiem"; did you mean "time"?'


def document(*found: Finding, nodes: dict[str, Any]) -> dict[str, Any]:
    audit = Audit(groups={"all": sorted(nodes)}, takeover=True)
    for name, node in nodes.items():
        mine = [one.document() for one in found if one.host == name]
        audit.add(name, {"node": {"roles": [], **node}, "findings": mine, "takeover": True})
    return audit.document(1.0)


def would(host: str, role: str, name: str, kind: str = "changed", **more: Any) -> Finding:
    return Finding(host, kind, f"file:{name}", "drift", "declaration", "the content differs", role=role, **more)


HOSTS = ("hal05", "hal06")
DIFF = ("--- recorded", "+++ now", "@@ -1 +1 @@", "-ours", "+theirs")
LONG, RUN = "it cannot be read: " + "x" * 300, "what shows in a run only: Reload (x.yml:1: y)"
EVERY = (
    *(
        would(host, "time", "/etc/chrony.conf", diff=("--- recorded", "+++ now", "@@ -1 +1 @@", "-ours", "+theirs"))
        for host in HOSTS
    ),
    *(would(host, "time", "/etc/new/a", "missing") for host in HOSTS),
    *(would(host, "time", "/etc/new", "missing") for host in HOSTS),
    would("hal05", "slurm", "/etc/slurm/slurm.conf"),
    would("hal05", "slurm", "/etc/slurm/gres.conf"),
    would("hal05", "slurm", "/etc/slurm/cgroup.conf"),
    Finding(
        "hal05",
        "unreadable",
        "file:/etc/ssh/x",
        "unknown",
        "declaration",
        "it cannot be read: " + "x" * 300,
        role="ssh",
    ),
    Finding(
        "hal05",
        "undecided",
        "role:ssh",
        "aside",
        "declaration",
        "what shows in a run only: Reload (x.yml:1: y)",
        role="ssh",
    ),
    Finding("hal05", "expectation", "expectation:hosts: names resolve", "drift", "node", "no", role="hosts"),
    Finding("hal05", "extra", "file:/etc/cron.d/own", "drift", "node", "neither a role nor a package has it"),
)
NODES = {
    "hal05": {"planned": {"time": 5, "slurm": 4, "ssh": 2, "hosts": 1}, "in_a_run": {"ssh": 1}},
    "hal06": {"planned": {"time": 5}, "in_a_run": {}},
}


def test_roles_are_in_the_order_of_how_much_would_change_with_what_already_is(tmp_path: Path) -> None:
    made = document(*EVERY, nodes=NODES)
    schema = json.loads((PROJECT / "hal_cluster" / "audit" / "findings.schema.json").read_text())
    jsonschema.validate(made, schema)
    roles = {one["role"]: one for one in made["takeover"]}
    assert list(roles) == ["hosts", "ssh", "time", "slurm"]
    counts = ("same", "new", "other", "unknown", "promises", "in_a_run")
    assert {role: tuple(one[name] for name in counts) for role, one in roles.items()} == {
        "hosts": (1, 0, 0, 0, 1, 0),
        "ssh": (1, 0, 0, 1, 0, 1),
        "time": (4, 4, 2, 0, 0, 0),
        "slurm": (1, 0, 3, 0, 0, 0),
    }
    assert roles["time"]["nodes"] == ["hal05", "hal06"]
    assert "slurm_restart_ok" in roles["slurm"]["permissions"]
    assert {"local_storage_confirm", "local_storage_scratch_confirmed"} <= set(takeover.permissions("local_storage"))
    assert made["status"] == 2
    assert takeover.permissions("no such role") == {}


def test_the_report_fits_a_terminal_and_says_what_differs_what_is_new_and_what_to_do(tmp_path: Path) -> None:
    text = takeover_report.text(document(*EVERY, nodes=NODES))
    assert max(map(len, text.splitlines())) <= 80
    words = " ".join(text.split())
    assert "time 4 4 2 0 0 0 hal[05-06]" in words
    assert "hal[05-06] file /etc/chrony.conf: the content differs" in words
    assert "declared ours found theirs" in words
    assert "new hal[05-06]: /etc/new (1 in it)" in words
    assert "unknown hal05: file /etc/ssh/x: it cannot be read" in words
    assert "in a run hal05: Reload (x.yml:1: y)" in words
    assert "not kept hal05: names resolve" in words
    assert "may need slurm_restart_ok: " in words
    assert "playbooks/site.yml --limit hal05 --tags slurm --check" in words.replace("\\ ", "")
    assert "on the nodes, and of no role" in words
    assert "/etc/cron.d/own" in words
    assert "repair" not in words
    assert words.endswith(
        "5 resources would be replaced or removed, 4 made, 7 are as declared; 1 promises do not hold;"
        " 1 unknown (2 nodes, 1.0 s)"
    )


def test_a_node_that_does_not_answer_is_unknown_and_nothing_to_change_is_said() -> None:
    lost = Finding("hal05", "unreachable", "node", "unknown", summary="Host key verification failed.")
    made = document(lost, nodes={"hal05": {}})
    assert made["status"] == 3
    text = takeover_report.text(made)
    assert "Host key verification failed." in text
    assert text.rstrip().endswith("1 unknown (1 node, 1.0 s)")
    clean = document(nodes={"hal05": {"planned": {"time": 3}}})
    assert (clean["status"], clean["takeover"][0]["same"]) == (0, 3)
    assert takeover_report.text(clean).rstrip().endswith("Nothing to change: 1 node, 1.0 s")


def test_what_is_not_managed_is_aside_whatever_it_was() -> None:
    for status in ("drift", "unknown"):
        one = not_managed(Finding("a", "changed", "file:/a", status, "node", role="time"))
        assert (one.status, one.cause) == ("aside", "not-managed")


def test_the_command_plays_the_playbook_and_prints_its_report_or_all_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = document(*EVERY, nodes=NODES)
    commands: list[list[str]] = []
    monkeypatch.setattr(playbook, "program", lambda name: f"/bin/{name}")

    def audit(command: list[str], _err: Any) -> dict[str, Any]:
        commands.append(command)
        return made

    monkeypatch.setattr(running, "audit", audit)
    chosen = ["-i", "i", "--limit", "hal05", "--role", "time", "--diff"]
    assert cli.main(["takeover", *chosen, "--", "-u", "alice", "-k"]) == 2
    assert capsys.readouterr().out == takeover_report.text(made)
    assert cli.main(["takeover", "--json"]) == 2
    assert json.loads(capsys.readouterr().out) == made
    book = str(PROJECT / "playbooks" / "takeover.yml")
    ways = ["-i", "i", "--limit", "hal05", "-u", "alice", "-k", "-e", '{"takeover_roles": ["time"]}', "--diff"]
    assert commands == [["/bin/ansible-playbook", *ways, book], ["/bin/ansible-playbook", book]]
    assert cli.main(["takeover", "--role", "tiem"]) == 1
    assert 'no role "tiem"; did you mean "time"?' in capsys.readouterr().err
