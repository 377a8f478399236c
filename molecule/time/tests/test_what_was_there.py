"""What was on a node is kept by the first rollout and comes back: bytes, mode, owner, times, units, packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running.ansible_run import PROJECT, Run, of_scenario
from testinfra.host import Host
from testing.promises import Rollout

Node = Callable[[str], Host]
SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
TAKEN_OVER, FRESH = "hal01", "hal-mgmt2"
FILES = "/etc/chrony.conf /etc/sysconfig/chronyd /etc/sysconfig/chronyd.site"
# As prepare.yml planted them. A link has no mode of its own; what reads it leaves no time.
PLANTED = [
    "/etc/chrony.conf 640 root:chrony 1500000000.123456789",
    "/etc/sysconfig/chronyd 777 root:root 1500000000.123456789",
    "/etc/sysconfig/chronyd.site 644 root:root 1500000000.123456789",
]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


def originals(node: str) -> dict[str, dict[str, Any]]:
    """What hal-audit says that a node keeps, by name."""
    program = str(Path(sys.executable).with_name("hal-audit"))
    argv = [program, "originals", "-i", str(SCENARIO / "hal.yml"), "--json", node]
    argv += ["--", "--extra-vars", f"virtual_name={SCENARIO.name}"]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {one["thing"]: one for one in json.loads(done.stdout)[node]}


def give_back(node: str, **variables: Any) -> Run:
    """Run giveback.yml for the role time."""
    playbook = PROJECT / "playbooks" / "giveback.yml"
    return of_scenario(SCENARIO).playbook(playbook, giveback_role="time", giveback_nodes=node, **variables)


def code_of(shown: Run) -> str:
    """The code that a plan shows."""
    (code,) = set(re.findall(r"giveback_code=([0-9A-Z]{4}-[0-9A-Z]{4})", shown.output))
    return str(code)


def is_there(host: Host, path: str) -> bool:
    """Whether anything is at a path, a link that leads nowhere too."""
    found: bool = host.run(f"test -e {path} || test -L {path}").rc == 0
    return found


def test_the_first_rollout_kept_what_it_replaced() -> None:
    kept = originals(TAKEN_OVER)
    now = {thing: (one["was"], one["now"], one["roles"]) for thing, one in kept.items()}
    assert now["file:/etc/chrony.conf"] == ("file 0640 root:chrony, 24 bytes", "changed", ["time"])
    assert now["file:/etc/sysconfig/chronyd"] == ("link 0777 root:root", "changed", ["time"])
    assert now["service:chronyd.service"] == ("started, disabled", "changed", ["time"])
    assert now["package:chrony"][1:] == ("as it was", ["time"])
    fresh = originals(FRESH)
    assert {thing: one["was"] for thing, one in fresh.items()} == {
        "file:/etc/chrony.conf": "nothing",
        "file:/etc/sysconfig/chronyd": "nothing",
        "package:chrony": "nothing",
        "service:chronyd.service": "nothing",
    }


def test_what_is_kept_is_root_s_alone(node: Node) -> None:
    host = node(TAKEN_OVER)
    assert host.check_output("find /var/lib/hal/originals -perm /0077 -o ! -user root") == ""
    assert host.run("grep -r 192.0.2.1 /var/lib/hal/originals/content").rc == 0


def test_a_second_rollout_keeps_nothing_more_and_asks_nobody(node: Node, rollout: Rollout) -> None:
    before = node(TAKEN_OVER).check_output("stat --format=%Y:%i /var/lib/hal/originals/index.json")
    done = rollout.converge("--limit", TAKEN_OVER)
    assert done.status == 0, done.explain()
    assert not done.changes
    assert node(TAKEN_OVER).check_output("stat --format=%Y:%i /var/lib/hal/originals/index.json") == before


def test_what_was_taken_over_comes_back_as_it_was(node: Node) -> None:
    host = node(TAKEN_OVER)
    shown = give_back(TAKEN_OVER)
    assert shown.status == 0, shown.explain()
    assert "file:/etc/chrony.conf: back to file 0640 root:chrony, 24 bytes" in shown.words
    assert "service:chronyd.service: disable" in shown.words
    assert "Nothing was changed" in shown.words
    assert "192.0.2.1" not in host.file("/etc/chrony.conf").content_string
    assert "192.0.2.1" not in shown.output

    refused = give_back(TAKEN_OVER, giveback_code="AAAA-AAAA")
    assert refused.status != 0
    assert "AAAA-AAAA is not the code of what would be done now" in refused.words, refused.explain()

    host.check_output("echo '# by hand' >>/etc/chrony.conf")
    refused = give_back(TAKEN_OVER, giveback_code=code_of(shown))
    assert refused.status != 0
    assert "file:/etc/chrony.conf: sha256 changed since role time rolled it out" in refused.words, refused.explain()
    host.check_output("sed -i '/^# by hand$/d' /etc/chrony.conf")

    done = give_back(TAKEN_OVER, giveback_code=code_of(give_back(TAKEN_OVER)))
    assert done.status == 0, done.explain()
    assert host.check_output(f"stat --format='%n %a %U:%G %.9Y' {FILES}").splitlines() == PLANTED
    assert host.check_output("cat /etc/chrony.conf") == "server 192.0.2.1 iburst"
    assert host.check_output("readlink /etc/sysconfig/chronyd") == "chronyd.site"
    assert host.check_output("cat /etc/sysconfig/chronyd.site") == "OPTIONS=-x"
    assert host.service("chronyd").is_running
    assert not host.service("chronyd").is_enabled
    assert originals(TAKEN_OVER) == {}


def test_what_was_not_there_goes_again(node: Node, rollout: Rollout) -> None:
    host = node(FRESH)
    done = give_back(FRESH, giveback_code=code_of(give_back(FRESH)))
    assert done.status == 0, done.explain()
    assert host.run("rpm --query chrony").rc != 0
    assert host.run("systemctl is-active chronyd").stdout.strip() != "active"
    assert [path for path in ("/etc/chrony.conf", "/etc/sysconfig/chronyd") if is_there(host, path)] == []
    assert originals(FRESH) == {}


def test_and_a_rollout_takes_over_once_more(node: Node, rollout: Rollout) -> None:
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert originals(TAKEN_OVER)["file:/etc/chrony.conf"]["was"] == "file 0640 root:chrony, 24 bytes"
    assert originals(FRESH)["package:chrony"]["was"] == "nothing"
    assert rollout.broken_promises("time", TAKEN_OVER) == []
