"""The booleans of SELinux, with stand-ins for the libraries of its policy: no kernel of a container has SELinux."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit import warm
from tests.unit.interpreters import LOCAL

PROJECT = Path(__file__).resolve().parents[4]
STAND_IN = Path(__file__).resolve().parent / "stand_in"
POLICY = {"httpd_can_network_connect": 0, "use_nfs_home_dirs": 0, "nis_enabled": 1}

GETSEBOOL = """
import sys, store
values = store.load()["live"]
if sys.argv[1] not in values:
    sys.exit("Error getting active value for %s" % sys.argv[1])
print("%s --> %s" % (sys.argv[1], "on" if values[sys.argv[1]] else "off"))
"""
# As policycoreutils 2.5 prints them: name, value in effect, value after a reboot, what it is for.
SEMANAGE = """
import sys, store
assert sys.argv[1:] == ["boolean", "--list", "--noheading"], sys.argv
values = store.load()
word = {0: "off", 1: "on"}
for name, default in sorted(values["policy"].items()):
    print("%-30s (%-5s,%5s)  Allow it" % (name, word[values["live"][name]], word[values["local"].get(name, default)]))
"""
GETENFORCE = """
import os
print(os.environ.get("SELINUX_MODE", "Enforcing"))
"""


class Node:
    """This machine with a policy of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "policy.json"
        self.keep(policy=POLICY, local={}, live=POLICY)
        for name, program in (("getsebool", GETSEBOOL), ("semanage", SEMANAGE), ("getenforce", GETENFORCE)):
            (folder / "bin").mkdir(exist_ok=True)
            path = folder / "bin" / name
            path.write_text(f"#!{LOCAL}\n{program}")
            path.chmod(0o755)

    def keep(self, **values: dict[str, int]) -> None:
        """Plant values."""
        self.store.write_text(json.dumps(values))

    def values(self, kind: str) -> dict[str, int]:
        """What is there now."""
        found: dict[str, int] = json.loads(self.store.read_text())[kind]
        return found

    def run(
        self, booleans: dict[str, Any], *, mode: str = "enforcing", live: str = "Enforcing", apply: bool = True
    ) -> dict[str, Any]:
        """Run the role's tasks for the booleans, and ask what it promises of them: {changed, results}."""
        said = self.folder / "said.json"
        tasks: list[dict[str, Any]] = [
            {
                "hal_expect": {"role": "base", "limit_ids": ["SELinux boolean"], "report_only": True},
                "register": "seen",
            },
            {"keep": {"value": "{{ seen.results }}", "path": str(said)}},
        ]
        if apply:
            tasks.insert(0, {"ansible.builtin.import_role": {"name": "base", "tasks_from": "selinux_booleans"}})
        variables = {"base_selinux_booleans": booleans, "base_selinux_mode": mode, "hal_node": {"arch": "x86_64"}}
        play = {"hosts": "all", "gather_facts": False, "vars": variables, "tasks": tasks}
        (self.folder / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False))
        (self.folder / "hosts").write_text(f"here ansible_connection=local ansible_python_interpreter={LOCAL}\n")
        said.unlink(missing_ok=True)
        words = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(self.folder / "hosts")]
        environment = {
            **os.environ,
            "ANSIBLE_ACTION_PLUGINS": f"{PROJECT}/plugins/action:{PROJECT}/tests/unit/plugins/action",
            "ANSIBLE_CALLBACKS_ENABLED": "",
            "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"),
            "ANSIBLE_INVENTORY_ENABLED": "hal,ansible.builtin.ini",
            "ANSIBLE_ROLES_PATH": str(PROJECT / "roles"),
            "PATH": f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(STAND_IN),
            "SELINUX_MODE": live,
            "SELINUX_STAND_IN": str(self.store),
        }
        done = warm.run([*words, str(self.folder / "play.yml")], environment, 300, self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        changed = [line.partition("(")[2].strip() for line in done.stdout.splitlines() if line.startswith("changed:")]
        return {"changed": changed, "results": json.loads(said.read_text())}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def seen(result: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """What was observed of each boolean."""
    return {one["id"]: (one["status"], one["observed"]) for one in result["results"]}


def test_a_boolean_is_set_now_and_for_the_next_boot_and_then_left(node: Node) -> None:
    wanted = {"httpd_can_network_connect": True, "nis_enabled": True}
    first = node.run(wanted)
    assert node.values("local") == {"httpd_can_network_connect": 1}, "what the policy says anyway is not set"
    assert node.values("live") == {**POLICY, "httpd_can_network_connect": 1}
    assert first["changed"] == ["item=httpd_can_network_connect = True)"]
    assert set(seen(first).values()) == {("pass", "on, on after a reboot")}
    assert node.run(wanted)["changed"] == []


def test_a_value_that_somebody_changed_until_the_next_boot_is_reported_and_put_right(node: Node) -> None:
    """setsebool without -P: the module for the saved value does not look at the one in effect."""
    node.keep(policy=POLICY, local={"use_nfs_home_dirs": 1}, live={**POLICY, "use_nfs_home_dirs": 0})
    result = node.run({"use_nfs_home_dirs": True})
    assert node.values("live")["use_nfs_home_dirs"] == 1
    assert result["changed"] == ["item=use_nfs_home_dirs = True)"]


@pytest.mark.parametrize(
    ("local", "live", "observed"),
    [({}, 1, "on, off after a reboot"), ({"use_nfs_home_dirs": 1}, 0, "off, on after a reboot")],
)
def test_an_audit_finds_that_one_of_the_two_values_is_wrong(
    node: Node, local: dict[str, int], live: int, observed: str
) -> None:
    node.keep(policy=POLICY, local=local, live={**POLICY, "use_nfs_home_dirs": live})
    result = node.run({"use_nfs_home_dirs": True}, apply=False)
    assert seen(result) == {"SELinux boolean [use_nfs_home_dirs]": ("fail", observed)}


def test_where_selinux_waits_for_a_reboot_booleans_wait_too(node: Node) -> None:
    result = node.run({"use_nfs_home_dirs": True}, apply=False, live="Disabled")
    assert seen(result) == {"SELinux boolean [use_nfs_home_dirs]": ("pass", "pending reboot")}


def test_what_was_withdrawn_is_the_policy_s_again_and_what_others_set_stays(node: Node) -> None:
    node.keep(
        policy=POLICY,
        local={"use_nfs_home_dirs": 1, "nis_enabled": 0},
        live={**POLICY, "use_nfs_home_dirs": 1, "nis_enabled": 0},
    )
    first = node.run({"use_nfs_home_dirs": None, "httpd_can_network_connect": None})
    assert node.values("local") == {"nis_enabled": 0}
    assert node.values("live")["use_nfs_home_dirs"] == 1, "until the next boot"
    assert first["changed"] == ["item=use_nfs_home_dirs)"]
    assert node.run({"use_nfs_home_dirs": None})["changed"] == []


def test_nothing_is_done_where_selinux_is_left_alone(node: Node) -> None:
    result = node.run({"use_nfs_home_dirs": True}, mode="unmanaged")
    assert result["changed"] == []
    assert [one["status"] for one in result["results"]] == ["skipped"]
    assert node.values("local") == {}
