"""site.yml on a small virtual HAL: from bare nodes to a job on every GPU. The order of these tests is their story."""

from __future__ import annotations

import getpass
import os
import platform
import re
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from demo.mini import PROJECT, Mini
from running.ansible_run import Ansible

HOSTS = {"hal-login", "hal-mgmt1", "hal-mgmt2", "hal-data", "hal01", "hal02"}


def test_a_real_site_with_placeholders_is_refused_before_any_node_is_contacted() -> None:
    play = Ansible(["inventory/hal/hal.yml"]).playbook("playbooks/site.yml")
    assert play.status != 0
    assert "values of hal are placeholders, the first is" in play.output
    assert "UNREACHABLE" not in play.output


def test_an_inventory_that_cannot_be_read_stops_the_playbook(tmp_path: Path) -> None:
    (tmp_path / "cluster.yml").write_text("format: 1\nname: broken\nnodes: {a: [}\n")
    (tmp_path / "hal.yml").write_text("plugin: hal\ncluster: cluster.yml\n")
    play = Ansible([tmp_path / "hal.yml"]).playbook("playbooks/site.yml")
    assert play.status != 0
    assert "cluster.yml:3" in play.output
    assert "Traceback" not in play.output
    assert not play.recap


# hal02 and hal-mgmt2 are of the first two's kind.
@pytest.mark.parametrize(
    "nodes", [("hal01", "hal-mgmt1"), pytest.param(("hal-login", "hal-data"), marks=pytest.mark.slow)]
)
def test_check_mode_runs_through_on_bare_nodes(mini: Mini, nodes: tuple[str, ...]) -> None:
    play = mini.site("--check", "--limit", ",".join(nodes))
    assert play.status == 0, play.explain()
    assert set(play.recap) == set(nodes)
    for node in nodes:
        missing = mini.cluster.run(node, "rpm -q munge || true")
        assert "not installed" in missing, f"check mode installed a package on {node}"


def test_the_rollout_reaches_every_server(mini: Mini) -> None:
    play = mini.site()
    assert play.status == 0, play.explain()
    assert set(play.recap) == HOSTS


def test_a_second_rollout_changes_nothing_anywhere(mini: Mini) -> None:
    play = mini.site()
    assert play.status == 0, play.explain()
    assert set(play.recap) == HOSTS
    assert play.changes == {}, play.explain()


def test_a_second_rollout_of_a_node_is_refused_until_the_first_is_gone(mini: Mini, tmp_path: Path) -> None:
    """The first is one that waits; site.yml is refused before anything is changed, and takes over when it is killed."""
    play = {"hosts": "hal02", "gather_facts": False, "vars": {"rollout_holds": True}}
    wait = "touch /run/waits; until test -e /run/go; do sleep 0.2; done; rm -f /run/waits /run/go"
    (tmp_path / "wait.yml").write_text(yaml.safe_dump([{**play, "tasks": [{"ansible.builtin.shell": wait}]}]))
    own = {**os.environ, "ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg")}
    with subprocess.Popen(mini.ansible.command(tmp_path / "wait.yml"), cwd=PROJECT, env=own) as first:
        who = f"{os.environ.get('SUDO_USER') or getpass.getuser()} on {platform.node()} (process {first.pid})"
        try:
            while "waits" not in mini.cluster.run("hal02", "ls /run") and first.poll() is None:
                time.sleep(0.5)
            mini.cluster.run("hal02", "sed -i /hal-login/d /etc/hosts")
            words = ("--limit", "hal01,hal02", "--tags", "hosts")
            refused = mini.site(*words)
            assert refused.status == 2, refused.explain()
            assert f"ERROR! hal02: {who} has held it for a rollout since " in refused.words
            assert "Wait until that ends, or leave the node out by --limit. Nothing was changed" in refused.words
            assert "TASK [hosts" not in refused.output
            assert "hal-login" not in mini.cluster.run("hal02", "getent -s files hosts hal-login || true")
            beside = mini.site("--limit", "hal01", "--tags", "hosts")
            assert beside.status == 0, beside.explain()
        finally:
            first.kill()
            mini.cluster.run("hal02", "touch /run/go")
    over = mini.site(*words)
    assert over.status == 0, over.explain()
    assert f"hal02: taken over from a rollout that is gone ({who} has held it for a rollout since " in over.words
    assert "hal-login" in mini.cluster.run("hal02", "getent -s files hosts hal-login")
    assert "holder.json" not in mini.cluster.run("hal02", "ls /var/lib/hal/rollout")


@pytest.mark.slow
def test_what_mitogen_rolled_out_plain_ansible_finds_nothing_to_change_in(mini: Mini) -> None:
    with mini.witness("hal01") as mitogen_was_there:
        play = mini.site()
        assert play.status == 0, play.explain()
        assert mitogen_was_there()
    with mini.witness("hal01") as mitogen_was_there:
        play = mini.site(mitogen=False)
        assert play.status == 0, play.explain()
        assert play.changes == {}, play.explain()
        assert not mitogen_was_there()


def test_a_job_of_an_ordinary_user_holds_every_gpu(mini: Mini) -> None:
    srun = (
        "srun --partition=gpu --nodes=2 --ntasks-per-node=4 --gres=gpu:v100:4 --time=2"
        " sh -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES'"
    )
    output = mini.cluster.run("hal-login", f'runuser -l alice -c "{srun}"'.replace("$", "\\$"))
    assert sorted(output.split("\n")[:-1]) == ["hal01 0,1,2,3"] * 4 + ["hal02 0,1,2,3"] * 4


def test_accounting_counts_the_gpus_of_the_job(mini: Mini) -> None:
    rows: list[str] = []
    for _ in range(300):  # slurmctld tells slurmdbd later: some seconds, of a node at full speed
        rows = mini.cluster.run("hal-login", "sacct -a -X -n -P -S now-1hour -o User,State,AllocTRES").splitlines()
        if any(row.startswith("alice|COMPLETED|") and "gres/gpu=8" in row for row in rows):
            return
        time.sleep(1)
    pytest.fail(f"accounting has {rows}")


@pytest.mark.slow
def test_one_node_is_rolled_out_with_every_other_compute_node_stopped(mini: Mini) -> None:
    mini.podman("stop", "--time", "0", f"{mini.ansible.variables['virtual_name']}-hal02")
    try:
        play = mini.site("--limit", "hal01")
        assert play.status == 0, play.explain()
        assert set(play.recap) == {"hal01"}
        assert play.changes == {}, play.explain()
    finally:
        started = mini.create()
        assert started.status == 0, started.explain()


def test_a_tag_rolls_out_its_role_alone(mini: Mini) -> None:
    mini.cluster.run("hal02", "sed -i /hal-login/d /etc/hosts && sysctl -q -w net.core.somaxconn=77")
    play = mini.site("--limit", "hal02", "--tags", "hosts")
    assert play.status == 0, play.explain()
    # Ansible validates the arguments of every role, whatever the tags.
    ran = set(re.findall(r"^TASK \[(\w+) : (?!Validating arguments)", play.output, re.MULTILINE))
    assert ran == {"base", "hosts"}, ran  # base: the question for a Puppet agent, which is always asked
    assert "hal-login" in mini.cluster.run("hal02", "getent -s files hosts hal-login")
    assert mini.cluster.run("hal02", "sysctl -n net.core.somaxconn").strip() == "77", "role base ran too"


def test_a_limit_that_matches_nothing_is_an_error(mini: Mini) -> None:
    play = mini.site("--limit", "hal99")
    assert play.status != 0
    assert "Specified inventory, host pattern and/or --limit leaves us with no hosts to target" in play.output
