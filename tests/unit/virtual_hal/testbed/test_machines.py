"""A node as a virtual machine has the model's disks and addresses, and is a container like others."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from testbed import machines, nodes
from testbed.errors import VirtualNodesError

NODE = {
    "name": "hal01",
    "fqdn": "hal01.hal.example",
    "arch": "x86_64",
    "kernel": "3.10.0-1062.el7",
    "addresses": {"management": "10.64.0.101"},
}
DISKS = {"bay01": "0x50248414c0760001", "bay02": "0x50248414c0760002"}


def plan(**changes: Any) -> nodes.Plan:
    """A plan of one node, which is a container."""
    document = {
        "instance": "virtual",
        "image": "localhost/hal-node:x",
        "packages": "/cache/packages",
        "authorities": "/state/ca",
        "networks": {"management": {"cidr": "10.64.0.0/24"}},
        "nodes": [NODE],
    }
    return nodes.read_plan(json.dumps({**document, **changes}))


def machine(**changes: Any) -> nodes.Plan:
    """A plan whose node is a machine with two disks."""
    node = {**NODE, "disks": DISKS}
    return plan(nodes=[node], machines={"image": "localhost/hal-machine:x", "nodes": ["hal01"], **changes})


def test_a_machine_has_its_disks_and_the_networks_of_a_container() -> None:
    made = machine(disk_mb=64, memory_mb=512)
    options = nodes.container_options(made, made.nodes[0])
    assert "--env=DISKS=bay01=0x50248414c0760001 bay02=0x50248414c0760002" in options
    assert {"--env=DISK_MB=64", "--env=MEMORY_MB=512", "--device=/dev/net/tun"} <= set(options)
    as_container = nodes.container_options(plan(), plan().nodes[0])
    networks = [option for option in as_container if option.startswith("--network=")]
    assert [option for option in options if option.startswith("--network=")] == networks
    assert [option for option in options if "SYS_ADMIN" in option or option == "--systemd=always"] == []
    assert made.image_of(made.nodes[0]) == "localhost/hal-machine:x"


def test_kvm_is_handed_on_only_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for there in (True, False):
        device = tmp_path / "kvm"
        device.touch() if there else device.unlink()
        monkeypatch.setattr(machines, "KVM", device)
        assert (f"--device={device}" in machines.options(machines.Machines(), {})) is there


def test_other_disks_make_another_definition() -> None:
    node = {**NODE, "disks": {"bay01": "0x50248414c0760009"}}
    other = plan(nodes=[node], machines={"image": "localhost/hal-machine:x", "nodes": ["hal01"]})
    first = machine()
    assert nodes.definition(first, first.nodes[0]) != nodes.definition(other, other.nodes[0])


def test_a_disk_that_is_no_scsi_disk_is_refused() -> None:
    with pytest.raises(VirtualNodesError, match=r"disk nvme0: eui\.0025385a71b00001 is not a name of a SCSI disk"):
        machines.options(machines.Machines(), {"nvme0": "eui.0025385a71b00001"})


def test_its_files_travel_as_one_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """They belong into the machine, not into the container around it."""
    seen: dict[str, Any] = {}
    monkeypatch.setattr(nodes, "_files", lambda plan, node: {"etc/ssh/key": (0o600, b"secret")})
    monkeypatch.setattr(nodes, "_container", lambda name, options, files: seen.update(files))
    made = machine()
    nodes._make(made, made.nodes[0])
    assert set(seen) == {"vm/seed/files.tar"}
    with tarfile.open(fileobj=io.BytesIO(seen["vm/seed/files.tar"][1])) as tar:
        assert tar.getnames() == ["etc/hostname", "etc/ssh/key"]


def test_the_administrator_s_ssh_checks_the_host_key() -> None:
    made = machine()
    argv = nodes.ssh(made.model_copy(update={"authorities": Path("/my state/ca")}), made.nodes[0])
    # Quoted: ssh takes a path with a blank for two.
    checked = {
        '-oStrictHostKeyChecking="yes"',
        '-oHostKeyAlias="hal01"',
        '-oUserKnownHostsFile="/my state/known_hosts"',
    }
    assert checked <= set(argv)


def test_what_did_not_start_is_named_with_its_console(monkeypatch: pytest.MonkeyPatch) -> None:
    degraded = subprocess.CompletedProcess[str]([], 1, "degraded\n", "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: degraded)
    with pytest.raises(VirtualNodesError, match=r"x-hal01: not running after 0 s: 'degraded'.*console\.log"):
        machines.wait("x-hal01", ["ssh"])


def test_options_of_a_disk_name_it_as_the_model_does() -> None:
    text = (machines.RECIPE / "disk").read_text().replace("cd /vm\n", "")  # a folder of the container
    argv = ["bash", "-c", text, "disk", "options", "bay01", DISKS["bay01"]]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "wwn=0x50248414c0760001,serial=VIRTUAL-50248414c0760001" in done.stdout
    assert "file=disks/bay01" in done.stdout
