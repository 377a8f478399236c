"""A configuration for an instance that touches nothing of the running one, and is otherwise the same."""

from __future__ import annotations

import pytest
from ansible.module_utils.hal_node.slurm.conf import expand, parse
from ansible.module_utils.hal_node.slurm.private import cgroup_conf, setting, slurm_conf

CONF = """# Ansible managed.
SlurmctldHost=hal-login(10.64.0.10)
ControlMachine=old
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=10.64.0.11
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations,limits
AuthAltTypes=auth/jwt
CommunicationParameters=block_null_hash
JobCompType=jobcomp/mysql
JobCompPass=secret
KillWait=30
Prolog=/usr/libexec/begin
healthcheckprogram=/usr/libexec/check
MailProg=/usr/bin/mail
SlurmctldDebug=quiet
SlurmdDebug=loud
SlurmctldPort=6817-6820
SlurmUser=slurm
StateSaveLocation=/var/spool/slurmctld

NodeName=DEFAULT Port=7000
NodeName=hal[01-16] NodeAddr=10.64.0.[101-116] CPUs=160 Port=[7001-7016] BcastAddr=b Gres=gpu:v100:4 State=UNKNOWN
NodeName=hal-test NodeAddr=10.64.0.15 CPUs=128
PartitionName=gpu Nodes=hal[01-16] TRESBillingWeights="CPU=1.0,GRES/gpu=2.0" MaxTime=1-0 QOS=prolonged
"""
OWN = slurm_conf(CONF, "node7", "/tmp/x", [41, 42])


def test_only_what_touches_something_is_another() -> None:
    parameters = {key: value for key, (_name, value) in parse(OWN).parameters.items()}
    assert parameters == {
        "slurmctldhost": "node7(127.0.0.1)",
        "slurmctldport": "41",
        "slurmdport": "42",
        "communicationparameters": "block_null_hash,NoCtldInAddrAny",
        "statesavelocation": "/tmp/x/state",
        "slurmdspooldir": "/tmp/x/spool",
        "slurmctldpidfile": "/tmp/x/slurmctld.pid",
        "slurmdpidfile": "/tmp/x/slurmd.pid",
        "slurmctldlogfile": "/tmp/x/slurmctld.log",
        "slurmdlogfile": "/tmp/x/slurmd.log",
        "slurmctldsyslogdebug": "quiet",
        "slurmdsyslogdebug": "quiet",
        "accountingstoragetype": "accounting_storage/none",
        "accountingstorageenforce": "associations,limits",
        "jobcomptype": "jobcomp/none",
        "mailprog": "/bin/true",
        "killwait": "30",
        "slurmctlddebug": "info",
        "slurmddebug": "loud",
        "slurmuser": "slurm",
    }
    partition = parse(OWN).partitions["gpu"]
    assert partition == {"nodes": "hal[01-16]", "maxtime": "1-0", "qos": "prolonged"}


def test_nodes_are_at_this_machine_and_as_many_as_before() -> None:
    nodes = parse(OWN).nodes
    assert nodes["hal01"] == {"nodeaddr": "127.0.0.1", "cpus": "160", "gres": "gpu:v100:4", "state": "UNKNOWN"}
    assert nodes["hal16"]["nodeaddr"] == "127.0.0.16"
    assert nodes["hal-test"]["nodeaddr"] == "127.0.0.1"


@pytest.mark.parametrize("count", [1, 2, 254, 255, 600])
def test_many_nodes_have_addresses_of_loopback_too(count: int) -> None:
    text = slurm_conf(f"NodeName=n[1-{count}] NodeAddr=a[1-{count}]\n", "node7", "/tmp/x", [1, 2])
    addresses = expand(text.splitlines()[0].split("NodeAddr=")[1])
    assert len(set(addresses)) == count
    assert all(one.startswith("127.0.") and 1 <= int(one.rsplit(".", 1)[1]) <= 254 for one in addresses)


def test_every_line_keeps_its_number() -> None:
    before, after = CONF.splitlines(), OWN.splitlines()
    assert [line.split("=")[0] for line in after[: len(before)] if line.startswith(("Kill", "Node", "Part"))] == [
        line.split("=")[0] for line in before if line.startswith(("Kill", "Node", "Part"))
    ]
    assert after.index("KillWait=30") == before.index("KillWait=30")
    assert after[len(before) - 1].startswith("PartitionName=gpu")


def test_a_plugin_that_makes_cgroups_is_not_loaded_where_there_is_a_choice() -> None:
    text = "CgroupPlugin=cgroup/v2\nConstrainCores=yes\n"
    assert cgroup_conf(text, (22, 5)) == "\nConstrainCores=yes\nCgroupPlugin=cgroup/v1\n"
    assert cgroup_conf(text, (21, 8)) != text
    assert cgroup_conf(text, (20, 2)) == text


def test_the_last_value_of_a_parameter_counts() -> None:
    assert setting('SlurmUser=a\n#SlurmUser=c\nslurmuser="b"\n', "SlurmUser") == "b"
    assert setting(CONF, "Nothing") == ""
