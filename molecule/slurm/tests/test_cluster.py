"""What the declared cluster looks like from outside. Nothing here reads roles/slurm/expect.yml."""

from __future__ import annotations

import pytest
from testinfra.host import Host
from testing.slurm_cluster import Node


def test_sinfo_is_exactly_the_declared_partitions(login: Host) -> None:
    shown = login.check_output("sinfo --all --noheader --format '%P|%a|%l|%L|%D|%T|%N'").splitlines()
    assert shown == [
        "gpu*|up|1-00:00:00|4:00:00|2|idle|hal[01-02]",
        "cpu|up|1-00:00:00|4:00:00|2|idle|hal[01-02]",
        "debug|up|4:00:00|4:00:00|2|idle|hal[01-02]",
    ]


def test_a_node_is_the_declared_machine(login: Host) -> None:
    words = login.check_output("scontrol --oneliner show node hal01").split()
    shown = dict(word.split("=", 1) for word in words if "=" in word)
    assert {key: shown[key] for key in ("CPUTot", "Sockets", "CoresPerSocket", "ThreadsPerCore", "RealMemory")} == {
        "CPUTot": "160",
        "Sockets": "2",
        "CoresPerSocket": "20",
        "ThreadsPerCore": "4",
        "RealMemory": "240000",
    }
    assert shown["Gres"] == "gpu:v100:4(S:0-1)", "GPUs 0 and 1 are at socket 0, 2 and 3 at socket 1"
    assert shown["NodeAddr"] == "10.65.7.101"


def test_the_management_node_asks_the_same_controller(node: Node) -> None:
    assert "hal-login is UP" in node("hal-mgmt1").check_output("scontrol ping")


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("hal-login", {"slurmctld"}),
        ("hal-mgmt1", {"slurmdbd", "mariadb"}),
        ("hal01", {"slurmd"}),
        ("hal02", {"slurmd"}),
    ],
)
def test_each_node_runs_its_daemons_and_no_others(node: Node, name: str, units: set[str]) -> None:
    host = node(name)
    running = {unit for unit in ("slurmctld", "slurmdbd", "slurmd", "mariadb") if host.service(unit).is_running}
    assert running == units
    assert all(host.service(unit).is_enabled for unit in units)


def test_slurm_has_the_same_number_everywhere(node: Node) -> None:
    numbers = {name: node(name).check_output("id -u slurm") for name in ("hal-login", "hal-mgmt1", "hal01", "hal02")}
    assert set(numbers.values()) == {"450"}, numbers


def test_the_database_password_is_read_by_slurm_alone(node: Node) -> None:
    conf = node("hal-mgmt1").file("/etc/slurm/slurmdbd.conf")
    assert (conf.user, conf.group, conf.mode) == ("slurm", "slurm", 0o600)
    for name in ("hal-login", "hal01"):
        assert not node(name).file("/etc/slurm/slurmdbd.conf").exists


def test_the_database_listens_to_its_own_node_only(node: Node) -> None:
    listening = node("hal-mgmt1").check_output("ss --listening --tcp --numeric --no-header | awk '{print $4}'").split()
    assert [address for address in listening if address.endswith(":3306")] == ["127.0.0.1:3306"]


def test_slurmd_may_lock_memory(node: Node) -> None:
    # The process itself cannot have more than the container, so systemd is asked what it gives.
    assert node("hal01").check_output("systemctl show --property LimitMEMLOCK slurmd") == "LimitMEMLOCK=infinity"


def test_qos_and_reservation_are_there(login: Host) -> None:
    qos = login.check_output("sacctmgr -nP show qos prolonged format=Flags,MaxWall,MaxJobsPU")
    assert qos == "DenyOnLimit,PartitionTimeLimit|7-00:00:00|2"
    reservation = login.check_output("scontrol --oneliner show reservation maintenance").split()
    assert {"StartTime=2036-01-10T08:00:00", "EndTime=2036-01-10T16:00:00", "Nodes=hal02", "Users=root"} <= set(
        reservation
    )


def test_users_share_as_declared(login: Host) -> None:
    rows = login.check_output("sacctmgr -nP show assoc where account=isl format=User,Share").splitlines()
    assert sorted(rows) == ["alice|5", "bob|parent", "|1"]


def test_logs_can_be_rotated(login: Host) -> None:
    """The daemon goes on, and writes to the new file."""
    before = login.check_output("systemctl show --property MainPID slurmctld")
    assert login.run("logrotate --force /etc/logrotate.d/hal-slurm").rc == 0
    login.check_output("scontrol setdebug verbose && scontrol setdebug info")
    assert "Set debug level" in login.check_output("cat /var/log/slurm/slurmctld.log")
    assert login.check_output("systemctl show --property MainPID slurmctld") == before
