"""What the roles of this project open on HAL's nodes: read by plugins/lookup/hal_firewall.py, as a rollout does."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_cluster.rules.firewall.openings import FirewallError, check_fields, parse_ports
from tests.unit.playing import play, play_text

ROOT = Path(__file__).resolve().parents[5]
FILES = sorted(ROOT.glob("roles/*/firewall.yml"))
PLAY = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: firewall, tasks_from: validate}
    - debug: {var: __firewall_open}
"""


def validated(folder: Path, limit: str, **variables: Any) -> subprocess.CompletedProcess[str]:
    """What comes before the first task that contacts a node."""
    return play_text(folder, PLAY, limit, **variables)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    """By node of the virtual HAL, the lines that its running firewall has to show."""
    done = validated(tmp_path_factory.mktemp("play"), "hal-login,hal-mgmt1,hal-mgmt2,hal-data,hal05")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    tasks: list[Any] = json.loads(done.stdout)["plays"][0]["tasks"]
    return {host: result["__firewall_open"] for host, result in tasks[-1]["hosts"].items()}


def ports(lines: list[str], zone: str) -> set[str]:
    return {line.rpartition(" ")[2] for line in lines if line.startswith(f"{zone} port ")}


def test_wherever_httpd_is_reached_an_address_has_its_share() -> None:
    """Two roles may serve on one node; each is rolled out without the other at some site."""
    entries = {path.parent.name: yaml.safe_load(path.read_text()) for path in FILES}
    served = {name: [one for one in found if "80/tcp" in one["ports"]] for name, found in entries.items()}
    del served["firewall"]  # of sites that have set up such a server by hand
    limits = {name: [one.get("each") for one in found] for name, found in served.items() if found}
    assert limits == {"mirror": [8], "provision_server": [8]}


def test_each_node_opens_what_its_services_need_and_nothing_else(opened: Mapping[str, list[str]]) -> None:
    everywhere = {"22/tcp"}
    slurm = {"61001-63000/tcp"}
    scale = {"1191/tcp", "60000-61000/tcp"}
    assert {"hal-login", "hal-mgmt1", "hal-mgmt2", "hal-data", "hal05"} == set(opened)
    assert everywhere | slurm | scale | {"6817/tcp"} == ports(opened["hal-login"], "management")
    assert everywhere | slurm | scale | {"6818/tcp"} == ports(opened["hal05"], "management")
    assert everywhere | scale | {"2049/tcp"} == ports(opened["hal-data"], "management")
    direct = {name: [line for line in lines if line.startswith("direct rule ")] for name, lines in opened.items()}
    assert {name for name, lines in direct.items() if lines} == {"hal-mgmt1"}
    for port, each in ((80, 8), (8480, 16), (8481, 16)):
        rule = f" --dport {port} -m connlimit --connlimit-above {each} "
        assert [line.split()[2] for line in direct["hal-mgmt1"] if rule in line] == ["ipv4", "ipv6"]
    assert len(direct["hal-mgmt1"]) == 6
    management = ports(opened["hal-mgmt1"], "management")
    assert {"6819/tcp", "123/udp", "67/udp", "69/udp", "80/tcp", "8086/tcp"} <= management
    assert not {"6817/tcp", "6818/tcp", "3306/tcp"} & management


def test_what_was_set_up_by_hand_to_serve_images_is_served(tmp_path: Path) -> None:
    """A site that has the service and not the group: nobody who rolls out the firewall loses its DHCP."""
    shutil.copytree(ROOT / "inventory", tmp_path / "inventory")
    model = tmp_path / "inventory/hal/cluster.yml"
    line = "  provision_server: image_server\n"
    assert line in model.read_text()
    model.write_text(model.read_text().replace(line, ""))
    (tmp_path / "play.yml").write_text(PLAY)
    sources = [word for name in ("hal", "virtual") for word in ("-i", str(tmp_path / "inventory" / name / "hal.yml"))]
    done = play(
        tmp_path / "play.yml", *sources, "--limit=hal-mgmt1", sites=(), ANSIBLE_STDOUT_CALLBACK="ansible.posix.json"
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    lines = json.loads(done.stdout)["plays"][0]["tasks"][-1]["hosts"]["hal-mgmt1"]["__firewall_open"]
    assert {"67/udp", "69/udp", "80/tcp"} <= ports(lines, "management")
    assert "8480/tcp" not in ports(lines, "management")


def test_no_node_opens_the_database_of_accounting(opened: Mapping[str, list[str]]) -> None:
    assert [host for host, lines in opened.items() if any("3306" in line for line in lines)] == []


def test_processes_of_jobs_come_from_nodes_of_jobs_alone(opened: Mapping[str, list[str]]) -> None:
    rules = [line for line in opened["hal05"] if "1024-65535" in line and line.startswith("management rule ")]
    sources = {rule.split('address="')[1].split('"')[0] for rule in rules}
    # The 16 nodes and the one for tests, in as few networks as cover exactly them.
    assert sources == {"10.64.0.15", "10.64.0.101", "10.64.0.102/31", "10.64.0.104/29", "10.64.0.112/30", "10.64.0.116"}


def test_the_portal_reaches_programs_of_jobs_and_nothing_else(opened: Mapping[str, list[str]], tmp_path: Path) -> None:
    by_portal = 'management rule rule family="ipv4" source address="10.64.0.12" port port="{}" protocol="tcp" accept'
    lines = {host: [line for line in found if '"10.64.0.12"' in line] for host, found in opened.items()}
    assert {host: found for host, found in lines.items() if found} == {"hal05": [by_portal.format("2000-65535")]}
    done = validated(tmp_path, "hal05", firewall_portal_ports=["20000-23999/tcp"])
    assert by_portal.format("20000-23999").replace('"', '\\"') in done.stdout
    done = validated(tmp_path, "hal05", firewall_portal_ports=[])
    assert done.returncode == 0
    assert "10.64.0.12" not in done.stdout


def test_data_nodes_limit_nobody(opened: Mapping[str, list[str]]) -> None:
    assert [line for line in opened["hal-data"] if " rule " in line] == []


def test_an_unnamed_interface_lets_in_ssh_alone(opened: Mapping[str, list[str]]) -> None:
    for lines in opened.values():
        assert ports(lines, "other") == {"22/tcp"}


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"ansible_port": 2222}, "Nothing would be let in on port 2222 in zone management"),
        (
            {"firewall_interfaces": {"management": {"name": "eth0"}}},
            "hal05 is in ipoib, and the model does not say by which interface",
        ),
    ],
)
def test_a_firewall_that_would_shut_out_is_refused(tmp_path: Path, variables: dict[str, Any], message: str) -> None:
    done = validated(tmp_path, "hal05", **variables)
    assert done.returncode != 0
    assert message in done.stdout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_every_file_is_well_formed(path: Path) -> None:
    entries = yaml.safe_load(path.read_text())
    assert entries
    for entry in entries:
        check_fields(entry)
        for port in [entry["ports"]] if isinstance(entry["ports"], str) else entry["ports"]:
            assert "{{" in port or parse_ports(port)
    assert len({entry["id"] for entry in entries}) == len(entries)


def test_a_slip_in_a_file_would_be_found() -> None:
    with pytest.raises(FirewallError, match="unknown field prots"):
        check_fields({"id": "x", "prots": ["1/tcp"], "ports": ["1/tcp"], "why": "x"})
