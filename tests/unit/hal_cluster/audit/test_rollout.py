"""Recording as a site sees it: what is told to whom when runs fail, are cut short, only look, or reach no node.

Of what runs there hal_cluster.audit.observer, hal_cluster.audit.plays, hal_cluster.audit.inputs and
hal_cluster.audit.sealing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.audit.inputs import inputs_hash
from hal_cluster.audit.store import Store
from tests.unit.hal_cluster.audit.conftest import PROJECT, Ran, Site
from tests.unit.interpreters import LOCAL

WRITE = {
    "name": "Write it",
    "ansible.builtin.copy": {"content": "x", "dest": "{{ node }}/{{ inventory_hostname }}", "mode": "0644"},
}
FOLDER = {"name": "Make a folder", "ansible.builtin.file": {"path": "{{ node }}/folder", "state": "directory"}}
FAIL = {"name": "Fail", "ansible.builtin.assert": {"that": "not fails | default(false)"}}
UNREACHABLE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
TASK = "sample|roles/sample/tasks/main.yml|{}".format


def mitogen() -> dict[str, str]:
    found = find_spec("ansible_mitogen")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent / "plugins" / "strategy"
    return {"ANSIBLE_STRATEGY_PLUGINS": str(folder), "ANSIBLE_STRATEGY": "mitogen_linear"}


def resources(ran: Ran, host: str) -> list[str]:
    """What a host was told of, without the folder."""
    assert host in ran.told, ran.text
    return [Path(one["resource"].split(":", 1)[1]).name for request in ran.told[host] for one in request["entries"]]


def left(site: Site) -> list[Path]:
    """The spools of a run that was ended from outside; its workers hold the folder until they are gone, too."""
    deadline = time.monotonic() + 600
    while not Store(site.state).pending("here") and time.monotonic() < deadline:
        time.sleep(0.1)
    return Store(site.state).pending("here")


@pytest.mark.parametrize("strategy", ["linear", "free", "mitogen_linear"])
def test_a_failed_host_is_told_what_it_got_and_the_others_all(tmp_path: Path, strategy: str) -> None:
    if strategy.startswith("mitogen") and find_spec("ansible_mitogen") is None:
        pytest.skip("mitogen is not installed")
    site = Site(tmp_path)
    site.inventory({"hal01": {}, "hal02": {"fails": True}, "hal03": UNREACHABLE})
    site.role(tasks=[WRITE, FAIL, FOLDER])
    run = site.run(**(mitogen() if strategy.startswith("mitogen") else {"ANSIBLE_STRATEGY": strategy}))
    assert run.status == 4  # as without recording: unreachable hosts
    assert resources(run, "hal01") == ["folder", "hal01"]
    assert resources(run, "hal02") == ["hal02"]
    assert run.told["hal02"][0]["reached"] == [TASK("Write it")]
    assert run.told["hal01"][0]["roles"]["sample"]["complete"] is True
    assert run.told["hal02"][0]["roles"]["sample"]["complete"] is False
    assert "hal03" not in run.told
    assert "Recorded 3 resources of 2 nodes (hal[01-02])" in run.text
    assert "WARNING" not in run.text.replace("[WARNING]: Using run_once", "")


def test_tags_and_start_at_task_do_not_keep_the_run_from_being_recorded(site: Site) -> None:
    site.role(tasks=[WRITE, {**FOLDER, "tags": ["late"]}])
    assert resources(site.run("--tags", "late", "--skip-tags", "always"), "here") == ["folder"]
    run = site.run("--start-at-task", "Make a folder")
    assert resources(run, "here") == ["folder"]
    # The role was loaded as a whole: tasks that were not asked for are still its tasks.
    assert run.request["roles"]["sample"]["tasks"] == [TASK("Make a folder"), TASK("Write it")]
    assert run.request["reached"] == [TASK("Make a folder")]
    assert run.request["roles"]["sample"]["complete"] is False


@pytest.mark.parametrize("words", [["--check"], ["--syntax-check"], ["--list-tasks"], ["--list-hosts"]])
def test_looking_records_nothing(site: Site, words: list[str]) -> None:
    site.role(tasks=[WRITE, {**FOLDER, "check_mode": False}])
    run = site.run(*words)
    assert (run.status, run.told) == (0, {})
    assert not site.state.exists()


def test_a_task_in_check_mode_is_not_recorded(site: Site) -> None:
    site.role(tasks=[{**WRITE, "check_mode": True}, FOLDER])
    assert resources(site.run(), "here") == ["folder"]


def test_check_mode_proposes_when_asked(site: Site) -> None:
    site.role(tasks=[WRITE, FOLDER])
    (site.node / "folder").mkdir()
    run = site.run("--check", HAL_PROVENANCE="propose")
    assert (run.status, run.told) == (0, {})
    proposal = Store(site.state).proposal("here")
    document = json.loads(proposal.read_text())
    assert [Path(one["resource"]).name for one in document["adoptable"]] == ["folder"]
    assert [Path(one["resource"]).name for one in document["differs"]] == ["here"]
    assert sorted(path.name for path in site.state.iterdir()) == ["key", "proposals"]
    assert proposal.stat().st_mode & 0o777 == 0o600


def test_what_a_node_could_not_store_is_said_once_and_told_first_the_next_time(tmp_path: Path) -> None:
    site = Site(tmp_path, ("hal01", "hal02"))
    site.role(tasks=[WRITE])
    site.requests.mkdir()
    (site.requests / "broken").touch()
    run = site.run()
    assert run.status == 0
    assert run.words.count("hal[01-02]: not recorded: no space left on the node") == 1
    assert len(Store(site.state).pending("hal01")) == 1
    (site.requests / "broken").unlink()
    run = site.run("--limit", "hal01")
    first, second = run.told["hal01"]
    assert first["run"]["id"] < second["run"]["id"]
    assert "Recorded 1 resources of 1 node (hal01)" in run.text
    assert Store(site.state).pending("hal01") == []
    assert len(Store(site.state).pending("hal02")) == 1


def test_a_killed_run_leaves_what_it_did(site: Site) -> None:
    pause = {"name": "Wait", "ansible.builtin.command": {"argv": ["sleep", "60"]}, "changed_when": False}
    site.role(tasks=[WRITE])
    site.role("second", tasks=[FOLDER, pause])
    site.run("--syntax-check", roles=["sample"])
    plays = [{"hosts": "all", "gather_facts": False, "roles": [name]} for name in ("sample", "second")]
    (site.folder / "play.yml").write_text(json.dumps(plays))
    with subprocess.Popen(
        site.words(),
        cwd=site.folder,
        env=site.environment(),
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        # What a shell starts in the background ignores it, and so would this.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    ) as process:
        deadline = time.monotonic() + 600
        while not (site.node / "folder").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
    (spool,) = left(site)
    assert [Path(one["resource"]).name for one in json.loads(spool.read_text())["entries"]] == ["here"]
    run = site.run(roles=["sample"])
    assert [one["run"]["id"] < run.told["here"][1]["run"]["id"] for one in run.told["here"]] == [True, False]


def test_a_role_that_was_interrupted_is_not_complete(site: Site) -> None:
    begun = site.node / "begun"  # then the task before it is known to have ended
    wait = ["sh", "-c", 'touch "$0" && sleep 60', "{{ node }}/begun"]
    pause = {"name": "Wait", "ansible.builtin.command": {"argv": wait}, "changed_when": False}
    site.role(tasks=[FOLDER, pause])
    (site.folder / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "roles": ["sample"]}]))
    with subprocess.Popen(
        site.words(),
        cwd=site.folder,
        env=site.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # What a shell starts in the background ignores it, and so would this.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    ) as process:
        deadline = time.monotonic() + 600
        while not begun.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
    (spool,) = left(site)
    assert json.loads(spool.read_text())["roles"]["sample"]["complete"] is False


def test_items_say_whether_they_were_changed(site: Site) -> None:
    one = {"path": "{{ node }}/{{ item }}", "state": "directory"}
    site.role(tasks=[{"name": "Make folders", "ansible.builtin.file": one, "loop": ["old", "new"]}])
    (site.node / "old").mkdir()
    changed = {Path(name).name: one["changed"] for name, one in site.run().entries.items()}
    assert changed == {"old": False, "new": True}


def test_a_failure_that_is_ignored_or_rescued_leaves_its_role_complete(site: Site) -> None:
    fail = {"name": "Fail", "ansible.builtin.command": {"argv": ["false"]}}
    rescue = {"name": "Instead", "ansible.builtin.command": {"argv": ["true"]}}
    site.role(tasks=[{**fail, "name": "Try", "ignore_errors": True}, {"block": [fail, FOLDER], "rescue": [rescue]}])
    role = site.run().request["roles"]["sample"]
    assert role["complete"] is True
    rescue["ansible.builtin.command"] = {"argv": ["false"]}
    site.role(tasks=[WRITE, {"block": [fail, FOLDER], "rescue": [rescue]}])
    assert site.run().request["roles"]["sample"]["complete"] is False


def write(name: str, content: str) -> dict[str, Any]:
    return {
        "name": f"Write {name}",
        "ansible.builtin.copy": {"content": content, "dest": "{{ node }}/" + name, "mode": "0644"},
    }


def test_secrets_are_recognised_wherever_they_come_from(site: Site) -> None:
    template = {"src": "page.j2", "dest": "{{ node }}/template", "mode": "0644"}
    echo = {"name": "Say", "ansible.builtin.command": {"argv": ["echo", "{{ token }}"]}, "register": "__said"}
    site.role(
        tasks=[
            write("open", "nothing but {{ colour }}"),
            {**write("conditional", "x"), "when": "token | length > 0"},
            write("file", "{{ token }}"),
            {"name": "Derive", "ansible.builtin.set_fact": {"derived": "{{ token }}!"}},
            {"name": "Derive again", "ansible.builtin.set_fact": {"derived_again": "{{ derived }}!"}},
            write("fact", "{{ derived_again }}"),
            {**echo, "changed_when": False},
            write("result", "{{ __said.stdout }}"),
            {"name": "Fill in", "ansible.builtin.template": template},
        ],
        templates__page_j2="the page {{ vault_word }}",
    )
    (site.folder / "password").write_text("p")
    variables = site.folder / "group_vars" / "all.yml"
    variables.parent.mkdir()
    variables.write_text("token: hidden\ncount: 3\n")
    site.vault("encrypt", "--vault-password-file", "password", str(variables))
    run = site.run("--vault-password-file", "password", "-e", "vault_word=w colour=red")
    secret = {Path(name).name for name, one in run.entries.items() if one["secret"]}
    assert secret == {"file", "fact", "result", "template"}
    assert {Path(name).name for name in run.entries} - secret == {"open", "conditional"}


def test_delegated_tasks_belong_to_no_node_and_run_once_to_one(tmp_path: Path) -> None:
    site = Site(tmp_path, ("hal01", "hal02"))
    site.role(tasks=[WRITE, {**FOLDER, "delegate_to": "localhost"}, {**FOLDER, "name": "Once", "run_once": True}])
    # localhost would use the Python of .venv, whose path may have a blank.
    run = site.run("-e", f"ansible_python_interpreter={LOCAL}")
    assert resources(run, "hal01") == ["folder", "hal01"]
    assert run.told["hal01"][0]["entries"][0]["task"] == TASK("Once")
    assert resources(run, "hal02") == ["hal02"]


def test_tasks_outside_of_roles_are_nobodys(site: Site) -> None:
    run = site.run(play=[{"hosts": "all", "gather_facts": False, "tasks": [WRITE]}])
    assert run.told == {}
    assert not site.state.exists()


def test_a_host_without_a_state_folder_is_named(site: Site) -> None:
    site.inventory({"here": {}})
    text = (site.folder / "hosts.yml").read_text().replace("hal_audit_dir", "other")
    (site.folder / "hosts.yml").write_text(text)
    site.role(tasks=[WRITE])
    run = site.run()
    assert (run.status, run.told) == (0, {})
    assert "here: not recorded: hal_audit_dir is not set" in run.words


def test_notified_handlers_tell_which_units_read_a_file(site: Site) -> None:
    (site.folder / "library/stand_in_units.py").write_text(
        "#!/usr/bin/python\nfrom ansible.module_utils.basic import AnsibleModule\n"
        "m = AnsibleModule(argument_spec={'name': {}, 'state': {}})\nm.exit_json(changed=True)\n"
    )
    restart = {"ansible.builtin.service": {"name": "{{ unit }}d", "state": "restarted", "use": "stand_in_units"}}
    reload = {"ansible.builtin.service": {"name": "b.socket", "state": "reloaded", "use": "stand_in_units"}}
    site.role(
        tasks=[{**WRITE, "notify": ["Restart it", "those who care"]}, {**FOLDER, "notify": "Restart it"}],
        handlers=[{"name": "Restart it", **restart}, {"name": "Reload", "listen": "those who care", **reload}],
        vars={"unit": "chrony"},
    )
    run = site.run()
    here, folder = run.entries[f"file:{site.node}/here"], run.entries[f"file:{site.node}/folder"]
    assert here["units"] == ["b.socket", "chronyd.service"]
    assert folder["units"] == ["chronyd.service"]
    assert sorted(run.request["handled"]) == ["b.socket", "chronyd.service"]
    # Handlers own nothing.
    assert [name for name in run.entries if name.startswith("service:")] == []


def test_commands_say_what_they_manage(site: Site) -> None:
    site.role(
        tasks=[
            {
                "name": "Make things",
                "ansible.builtin.command": {"argv": ["true"]},
                "loop": ["a", "b"],
                "vars": {"hal_manages": [{"resource": "file:/etc/{{ item }}", "declared": {"state": "{{ how }}"}}]},
            },
            {"name": "By name", "ansible.builtin.command": {"argv": ["true"]}, "vars": {"hal_manages": "{{ names }}"}},
            {"name": "Look", "ansible.builtin.command": {"argv": ["true"]}, "vars": {"hal_manages": []}},
        ],
        defaults={"how": "present", "names": ["package:x"]},
    )
    run = site.run()
    assert {name: one["declared"] for name, one in run.entries.items()} == {
        "file:/etc/a": {"state": "present"},
        "file:/etc/b": {"state": "present"},
        "package:x": {"state": "present"},
    }


def test_what_a_task_says_of_its_file_counts_more_than_its_arguments(site: Site) -> None:
    """A file with lines of others is written whole, and is theirs, too."""
    resource = f"file:{site.node}/here"
    declared = {"state": "present", "type": "file", "mode": "0644", "content": False}
    write = {"name": "Write", "ansible.builtin.copy": {"content": "x", "dest": f"{site.node}/here", "mode": "0644"}}
    site.role(tasks=[{**write, "vars": {"hal_manages": [{"resource": resource, "declared": declared}]}}])
    assert site.run().entries[resource]["declared"] == declared


CONDITIONS = [
    ("colour == 'blue'", True),  # the site declares it
    ("chosen", True),  # through a variable of the role
    ("__first is changed", False),
    ("behind", False),  # a variable that leads to a result
    ("later | default(false)", False),  # set_fact
    ("not ansible_check_mode and false", False),
    ("'/nowhere' is file", False),
]


@pytest.fixture(scope="module")
def skipped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is recorded of one run with a task for each condition, which is its name."""
    site = Site(tmp_path_factory.mktemp("skipped"))
    site.role(
        tasks=[
            {
                "name": "First",
                "ansible.builtin.command": {"argv": ["true"]},
                "register": "__first",
                "changed_when": False,
            },
            {"name": "Set", "ansible.builtin.set_fact": {"later": False}},
            *({**WRITE, "name": condition, "when": condition} for condition, _ in CONDITIONS),
            FOLDER,
        ],
        vars={"chosen": "{{ colour == 'blue' }}", "behind": "{{ __first is changed }}"},
        defaults={"colour": "red"},
    )
    return site.run().request


@pytest.mark.parametrize(("condition", "reached"), CONDITIONS)
def test_why_a_task_was_skipped_decides_whether_its_old_resources_are_given_up(
    skipped: dict[str, Any], condition: str, reached: bool
) -> None:
    assert (TASK(condition) in skipped["reached"]) is reached
    assert (TASK(condition) in skipped["skipped"]) is not reached


def test_a_loop_over_what_was_found_gives_nothing_up(site: Site) -> None:
    loop = {**WRITE, "loop": "{{ __first.stdout_lines }}"}
    first = {"name": "First", "ansible.builtin.command": {"argv": ["echo", "a"]}, "register": "__first"}
    site.role(tasks=[{**first, "changed_when": False}, loop, {**FOLDER, "loop": []}])
    request = site.run().request
    assert TASK("Write it") in request["skipped"]
    assert TASK("Make a folder") in request["reached"]


def test_an_item_that_failed_leaves_the_others_recorded_and_the_task_not_reached(site: Site) -> None:
    item = {"ansible.builtin.file": {"path": "{{ item }}", "state": "directory"}, "loop": ["{{ node }}/a", "/proc/x"]}
    site.role(tasks=[{"name": "Loop", **item}])
    run = site.run()
    assert run.status == 2
    assert resources(run, "here") == ["a"]
    assert run.request["reached"] == []


def test_a_part_of_a_role_says_nothing_about_the_rest(site: Site) -> None:
    site.role(tasks=[WRITE], tasks__part=[FOLDER])
    part = {"name": "Part", "ansible.builtin.import_role": {"name": "sample", "tasks_from": "part"}}
    run = site.run(play=[{"hosts": "all", "gather_facts": False, "tasks": [part]}])
    assert resources(run, "here") == ["folder"]
    assert run.request["roles"] == {}


def test_included_tasks_are_tasks_of_the_role(site: Site) -> None:
    site.role(
        tasks=[{"name": "Include", "ansible.builtin.include_tasks": "{{ which }}.yml"}],
        tasks__one=[WRITE],
        tasks__two=[{"name": "Block", "block": [FOLDER]}],
        defaults={"which": "one"},
    )
    request = site.run().request
    assert {one["source"] for one in request["entries"]} == {"roles/sample/tasks/one.yml:1"}
    ids = {f"sample|roles/sample/tasks/{name}" for name in ("one.yml|Write it", "two.yml|Make a folder")}
    assert ids <= set(request["roles"]["sample"]["tasks"])


def test_inputs_hash_alike_at_converge_and_in_a_task(site: Site) -> None:
    """The record has the hash from a host's variables; an audit makes it from those of its task."""
    (site.folder / "action_plugins").mkdir()  # Ansible looks beside the playbook, too
    (site.folder / "action_plugins/hash_inputs.py").write_text(
        f"""
import sys
sys.path.append({str(PROJECT)!r})
from ansible.plugins.action import ActionBase
from hal_cluster.audit.inputs import inputs_hash
from hal_cluster.audit.store import Store
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        path = {str(site.folder / "roles/sample")!r}
        key = Store(task_vars["hal_audit_dir"]).key()
        return {{"changed": False, "msg": "hash=" + inputs_hash(path, task_vars, key)}}
"""
    )
    (site.folder / "library/hash_inputs.py").write_text("")
    role = site.role(
        tasks=[
            {"name": "Set", "ansible.builtin.set_fact": {"made": 1}},
            {**WRITE, "register": "__kept", "vars": {"x": "{{ colour }} {{ made }} {{ group_names }} {{ word }}"}},
        ],
        defaults={"colour": "{{ shade }}", "extra": "{{ given }}"},
    )
    (site.folder / "password").write_text("p\n")
    vault = site.vault("encrypt_string", "w", "--vault-password-file", "password")
    (site.folder / "group_vars").mkdir()
    (site.folder / "group_vars/all.yml").write_text(
        f"shade: {{deep: [1, '{{{{ far }}}}'], 2: 2020-01-01}}\nfar: away\nword: {vault}\n"
    )
    extra = ["--vault-password-file", "password", "-e", '{"given": {"a": 1}}']
    recorded = site.run(*extra).request["roles"]["sample"]["inputs_hash"]
    tasks = [{"name": "Hash", "hash_inputs": {}}]
    play: list[dict[str, Any]] = [{"hosts": "all", "gather_facts": False, "vars": {"other": 1}, "tasks": tasks}]
    assert f"hash={recorded}" in site.run("-v", *extra, play=play).text
    # And it is not blind: what the role leads to counts.
    assert recorded != inputs_hash(str(role), {}, Store(site.state).key())
    group = site.folder / "group_vars/all.yml"
    group.write_text(group.read_text().replace("away", "near"))
    assert site.run(*extra).request["roles"]["sample"]["inputs_hash"] != recorded


def test_the_commit_is_that_of_the_site(site: Site) -> None:
    site.role(tasks=[WRITE])
    assert site.run().request["run"]["commit"] == ""
    git = ["git", "-C", str(site.folder), "-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "roles"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    commit = subprocess.run(
        [*git, "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True, text=True
    ).stdout
    assert site.run().request["run"]["commit"] == commit.strip()
    site.role(tasks=[WRITE, FOLDER])
    assert site.run().request["run"]["commit"] == f"{commit.strip()}+changes"
