"""lookup('hal_node_health', 'checks'): what of the roles' promises becomes a check, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.playing import play

PROJECT = Path(__file__).resolve().parents[4]
EXPECT = """
- id: it is there
  file: {path: /etc/passwd, read: exists}
  equal: true
  why: w
- id: "part works"
  loop: "{{ parts }}"
  command: {argv: ["probe", "{{ item }}"]}
  equal: "{{ limit }}"
  health: "{{ item }} broken"
  finding: hardware
  why: jobs fail
- id: elsewhere
  when: false
  command: {argv: [probe]}
  equal: ""
  health: not here
  why: w
"""
PLAYBOOK = """
- hosts: hal01
  gather_facts: false
  tasks:
    - ansible.builtin.copy:
        content: "{{ lookup('hal_node_health', 'checks') | to_json }}"
        dest: RESULT
        mode: "0644"
      delegate_to: localhost
      connection: local
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with a playbook and a role of its own that takes the place of role time."""
    role = tmp_path / "roles" / "time"
    (role / "defaults").mkdir(parents=True)
    (role / "expect.yml").write_text(EXPECT)
    (role / "defaults" / "main.yml").write_text("parts: [gpu, link]\nlimit: '{{ hal_node.gpus | length }}'\n")
    (tmp_path / "play.yml").write_text(PLAYBOOK.replace("RESULT", str(tmp_path / "result.json")))
    return tmp_path


def test_promises_with_health_become_checks_with_the_role_s_variables(site: Path) -> None:
    done = play(site / "play.yml")
    assert done.returncode == 0, done.stdout
    checks = [check for check in json.loads((site / "result.json").read_text()) if check["role"] == "time"]
    assert [(one["id"], one["words"], one["hardware"]) for one in checks] == [
        ("part works [gpu]", "gpu broken", True),
        ("part works [link]", "link broken", True),
    ]
    assert checks[1]["question"]["command"] == {"argv": ["probe", "link"]}
    assert str(checks[1]["question"]["equal"]) == "4"


def test_a_role_can_be_left_out_and_a_role_that_is_none_cannot(site: Path) -> None:
    text = (site / "play.yml").read_text()
    (site / "play.yml").write_text(text.replace("'checks')", "'checks', left_out=['time'])"))
    assert play(site / "play.yml").returncode == 0
    checks = json.loads((site / "result.json").read_text())
    assert "time" not in {check["role"] for check in checks}
    assert checks
    (site / "play.yml").write_text(text.replace("'checks')", "'checks', left_out=['tyme'])"))
    assert "left_out: there is no role tyme" in " ".join(play(site / "play.yml").stdout.split())


def test_a_promise_of_a_role_that_does_not_act_here_is_no_check(site: Path) -> None:
    text = (site / "play.yml").read_text()
    for roles, there in ((["node_health"], False), (["node_health", "time"], True)):
        acting = f"gather_facts: false\n  vars: {{managed_roles: {roles}}}"
        (site / "play.yml").write_text(text.replace("gather_facts: false", acting))
        assert play(site / "play.yml").returncode == 0
        checks = json.loads((site / "result.json").read_text())
        assert ("time" in {check["role"] for check in checks}) == there
        assert "node_health" in {check["role"] for check in checks}


def test_a_check_that_cannot_be_templated_stops_the_rollout(site: Path) -> None:
    (site / "roles/time/defaults/main.yml").write_text("parts: [gpu]\n")
    done = play(site / "play.yml")
    assert done.returncode != 0
    words = " ".join(done.stdout.split()).replace(f"{site}/", "")
    assert "roles/time/expect.yml:6: time: part works [gpu]: equal: ''limit'' is undefined" in words
    assert not (site / "result.json").exists()


def test_a_role_whose_file_cannot_be_read_stops_the_rollout(site: Path) -> None:
    (site / "roles/time/expect.yml").write_text("- id: [\n")
    done = play(site / "play.yml")
    assert done.returncode != 0
    assert "lookup hal_node_health: roles/time/expect.yml" in " ".join(done.stdout.split()).replace(f"{site}/", "")


def test_what_starts_is_written_after_its_parts_and_what_it_reads(site: Path) -> None:
    """A prolog may start it while they are written."""
    role = PROJECT / "roles/node_health"
    for folder in ("files", "templates"):
        (site / folder).symlink_to(role / folder)
    text = (site / "play.yml").read_text().replace("lookup('hal_node_health', 'checks')", "__node_health_files")
    files = f"[{role}/defaults/main.yml, {role}/vars/main.yml]"
    (site / "play.yml").write_text(text.replace("gather_facts: false", f"gather_facts: false\n  vars_files: {files}"))
    done = play(site / "play.yml", "--extra-vars", "ansible_python_interpreter=/usr/bin/python3")
    assert done.returncode == 0, done.stdout
    names = [Path(one["path"]).name for one in json.loads((site / "result.json").read_text())]
    assert names[-1] == "node_health.py"
    assert {"node_health_alarm.py", "node_health_slow.py", "lock.py", "checks.json"} < set(names)


@pytest.mark.parametrize(
    ("variables", "settings"),
    [
        ({}, [["--reset-applications-clocks"], ["--compute-mode=DEFAULT"]]),
        ({"nvidia_driver_compute_mode": None}, [["--reset-applications-clocks"]]),
        (
            {
                "nvidia_driver_compute_mode": "EXCLUSIVE_PROCESS",
                "nvidia_driver_application_clocks": {"memory_mhz": 877, "graphics_mhz": 1530},
            },
            [["--applications-clocks=877,1530"], ["--compute-mode=EXCLUSIVE_PROCESS"]],
        ),
    ],
)
def test_a_job_s_gpus_get_the_settings_of_the_driver_s_role(site: Path, variables: object, settings: object) -> None:
    text = (site / "play.yml").read_text()
    (site / "play.yml").write_text(text.replace("'checks'", "'gpu_settings'"))
    done = play(site / "play.yml", "--extra-vars", json.dumps(variables))
    assert done.returncode == 0, done.stdout
    assert json.loads((site / "result.json").read_text()) == settings
