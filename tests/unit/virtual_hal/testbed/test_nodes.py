"""Containers are made from the model's values, and a plan that cannot work is refused before anything is made."""

from __future__ import annotations

import io
import json
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from testbed import gpus, image, nodes, scale
from testbed.errors import VirtualNodesError
from testbed.scale import FileSystem, Scale


def document(**changes: Any) -> dict[str, Any]:
    """Return a plan of one GPU node, with changes."""
    node = {
        "name": "hal01",
        "fqdn": "hal01.hal.example",
        "profile": "ac922",
        "arch": "ppc64le",
        "kernel": "4.18.0-80.7.2.el7",
        "addresses": {"management": "10.64.0.101", "bmc": "10.64.1.101", "ipoib": "10.64.2.101"},
        "macs": {"management": "02:48:41:4c:02:01"},
        "gpus": [{"index": 0}, {"index": 1}],
    }
    return {
        "instance": "virtual",
        "image": "localhost/hal-node:x",
        "packages": "/cache/packages",
        "authorities": "/state/ca",
        "networks": {
            "management": {"cidr": "10.64.0.0/24"},
            "bmc": {"cidr": "10.64.1.0/24"},
            "ipoib": {"cidr": "10.64.2.0/24"},
        },
        "nodes": [node],
        **changes,
    }


def plan(**changes: Any) -> nodes.Plan:
    """Return the plan that the document describes."""
    return nodes.read_plan(json.dumps(document(**changes)))


def test_a_node_has_the_models_addresses_and_names() -> None:
    options = nodes.container_options(plan(), plan().nodes[0])
    assert "--name=virtual-hal01" in options
    assert "--hostname=hal01" in options
    assert [option for option in options if option.startswith("--network=")] == [
        "--network=virtual-management:ip=10.64.0.101,interface_name=eth0,mac=02:48:41:4c:02:01",
        "--network=virtual-ipoib:ip=10.64.2.101,interface_name=ib0",
    ]
    assert "--privileged" not in options


def test_a_node_knows_the_names_of_all_nodes() -> None:
    assert nodes.hosts(plan()).splitlines() == [
        "127.0.0.1 localhost",
        "::1 localhost",
        "10.64.0.101 hal01.hal.example hal01",
    ]


def test_a_container_that_was_busy_is_removed_by_another_try(monkeypatch: pytest.MonkeyPatch) -> None:
    there, asked = {"a", "b"}, []

    def capture(argv: list[str]) -> str:
        asked.append(argv)
        if len(asked) < 2:
            there.remove("a")
            raise VirtualNodesError("crun: busy")
        there.clear()
        return ""

    monkeypatch.setattr(nodes, "_containers", lambda _: {name: {"id": name} for name in sorted(there)})
    monkeypatch.setattr(nodes, "capture", capture)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    assert nodes._remove_containers("virtual") == ["a", "b"]
    assert [argv[-1] for argv in asked] == ["b", "b"]
    monkeypatch.setattr(nodes, "_containers", lambda _: {"a": {"id": "a"}})
    asked.clear()
    there.add("a")
    monkeypatch.setattr(nodes, "REMOVALS", 1)
    with pytest.raises(VirtualNodesError, match="busy"):
        nodes._remove_containers("virtual")


def test_this_machine_takes_an_address_that_no_node_has() -> None:
    taken = document()
    taken["nodes"][0]["addresses"]["management"] = "10.64.0.1"
    assert nodes.gateway(nodes.read_plan(json.dumps(taken)), "management") == "10.64.0.2"
    assert nodes.gateway(plan(), "management") == "10.64.0.1"


def test_another_image_or_address_is_another_definition() -> None:
    first = plan()
    other = document()
    other["nodes"][0]["addresses"]["ipoib"] = "10.64.2.99"
    moved = nodes.read_plan(json.dumps(other))
    again = plan(image="localhost/hal-node:y")
    assert len({nodes.definition(each, each.nodes[0]) for each in (first, moved, again)}) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": []}, "nodes: there are none, so nothing would be made"),
        (
            {"nodes": [{"name": "hal01", "fqdn": "x", "arch": "x86_64", "kernel": "3", "addresses": {}}]},
            "hal01: has no management address",
        ),
        ({"networks": {"management": {"cidr": "10.9.0.0/24"}}}, "hal01: 10.64.0.101 is not in management 10.9.0.0/24"),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
    ],
)
def test_a_plan_that_cannot_work_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(VirtualNodesError) as caught:
        plan(**change)
    assert str(caught.value) == f"plan of the nodes: {message}"


def test_a_nodes_gpus_are_those_of_its_model_and_their_numbers_are_its_own() -> None:
    model = [
        {"index": 0, "model": "Tesla V100-SXM2-16GB", "memory_mb": 16384, "socket": 0, "link": "nvlink2"},
        {"index": 1, "model": "Tesla V100-SXM2-16GB", "memory_mb": 16384, "socket": 1, "link": "nvlink2"},
    ]
    numa = [{"id": 0, "socket": 0, "cpus": "0-79"}, {"id": 8, "socket": 1, "cpus": "80-159"}]
    made = gpus.hardware("hal01", "ppc64le", model, numa, {"1": "GPU-declared"})
    assert [(gpu["bus_id"], gpu["cpus"], gpu["memory_mib"]) for gpu in made] == [
        ("00000004:04:00.0", "0-79", 16130),
        ("00000035:03:00.0", "80-159", 16130),
    ]
    assert made[1]["uuid"] == "GPU-declared"
    assert made[0]["uuid"] != gpus.hardware("hal02", "ppc64le", model, numa, {})[0]["uuid"]
    assert gpus.files([], "ppc64le") == {}
    assert "var/lib/virtual-node/gpus.json" in gpus.files(made, "ppc64le")


def test_files_of_a_node_belong_to_root_and_its_units_are_switched_on() -> None:
    content = nodes._archive({"etc/ssh/key": (0o600, b"secret"), "usr/lib/systemd/system/x.service": (0o644, b"")})
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        members = {member.name: member for member in tar}
    assert (members["etc/ssh/key"].mode, members["etc/ssh/key"].uid) == (0o600, 0)
    assert members["etc/systemd/system/sysinit.target.wants/x.service"].linkname == "/usr/lib/systemd/system/x.service"


def test_the_image_has_no_key_and_no_name_of_its_own() -> None:
    names = [path.name for path in (image.RECIPE / "files").rglob("*")]
    assert not [name for name in names if name.startswith("ssh_host_") or name in ("machine-id", "hostname")]


def test_the_images_name_follows_its_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HAL_NODE_IMAGE", raising=False)
    normal, python2 = image.reference(), image.reference(variant="python2")
    assert normal != python2
    assert normal == image.reference()
    for path in image.RECIPE.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(image, "RECIPE", tmp_path)
    (tmp_path / "packages.txt").write_text("systemd\n")
    assert image.reference() != normal


def test_the_real_image_is_one_variable_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAL_NODE_IMAGE", "registry.example/centos:7")
    assert image.reference() == "registry.example/centos:7"


@pytest.mark.parametrize(("arch", "variant"), [("s390x", "normal"), ("x86_64", "python3")])
def test_an_image_that_does_not_exist_is_refused(arch: str, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HAL_NODE_IMAGE", raising=False)
    with pytest.raises(VirtualNodesError, match=r"^no node image "):
        image.reference(arch, variant)


def test_users_find_their_homes_on_the_arrays_and_own_them() -> None:
    home, work = (FileSystem(kind="spectrum_scale", mount=mount, arrays=("flash1",)) for mount in ("/home", "/work"))
    declared = Scale(file_systems={"home": home, "work": work})
    homes, owners = scale.homes(declared)
    # Where what is mounted there is served from.
    assert "file systems/home/" in scale.files(scale.cluster(declared, "", {"flash1": "10.64.0.2"}, ()))
    content = nodes._archive(homes, owners)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert [(one.name, one.isdir(), one.mode, one.uid, one.gid) for one in tar] == [
            entry
            for user, uid in (("alice", 5001), ("bob", 5002))
            for entry in (
                (f"file systems/home/{user}", True, 0o700, uid, 5000),
                (f"file systems/home/{user}/.bash_profile", False, 0o644, uid, 5000),
                (f"file systems/home/{user}/.bashrc", False, 0o644, uid, 5000),
            )
        ]
        shell = tar.extractfile("file systems/home/bob/.bashrc")
        assert shell
        assert b". /etc/bashrc" in shell.read()
