"""What a node followed before this role is shown before it is replaced. Nothing is left behind here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from testinfra.host import Host
from testing.promises import Rollout

NODE = "hal01"
FILES = "/etc/chrony.conf /etc/ntp.conf"
Node = Callable[[str], Host]


def test_servers_of_before_are_shown_and_then_replaced(node: Node) -> None:
    """By hand, as on a cluster in production: chrony with the campus' servers, and ntpd's file of years ago."""
    host, rollout = node(NODE), Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))
    ours = host.file("/etc/chrony.conf").content_string
    host.check_output("printf 'server ntp.campus.example.edu iburst\\nallow 10.0.0.0/8\\n' >/etc/chrony.conf")
    host.check_output("printf 'server 192.0.2.7\\n' >/etc/ntp.conf")
    before = host.check_output(f"cksum {FILES}")
    said = (
        "hal01: /etc/chrony.conf has server ntp.campus.example.edu iburst; allow 10.0.0.0/8. /etc/ntp.conf has server"
        " 192.0.2.7. hal01 asks 10."
    )
    seen = rollout.converge("--check", "--limit", NODE)
    assert seen.status == 0, seen.explain()
    assert said in seen.words
    assert host.check_output(f"cksum {FILES}") == before

    done = rollout.converge("--limit", NODE)
    assert done.status == 0, done.explain()
    assert said in done.words
    assert host.file("/etc/chrony.conf").content_string == ours

    again = rollout.converge("--limit", NODE)
    assert again.status == 0, again.explain()
    assert "192.0.2.7" not in again.words
    host.check_output("rm /etc/ntp.conf")


def test_a_real_site_without_upstream_servers_is_refused_before_anything_is_asked(node: Node) -> None:
    rollout = Rollout(Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]))
    before = node(NODE).check_output("cksum /etc/chrony.conf")
    profile = {"time_upstream": [], "time_own_clock_ok": False}
    done = rollout.converge("--limit", NODE, hal_node={"name": NODE, "virtual": False}, **profile)
    assert done.status != 0
    assert "time_upstream is empty: a rollout would take the servers away that the site has today" in done.words
    assert node(NODE).check_output("cksum /etc/chrony.conf") == before
