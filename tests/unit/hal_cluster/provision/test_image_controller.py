"""What a build of an image is told by the controller, and how tasks get into its root."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleError

from hal_cluster.provision import building
from hal_cluster.provision.errors import ProvisionError
from tests.unit.hal_cluster.provision.conftest import PROJECT

KERNEL = "4.18.0-80.7.2.el7"


def hal_node(name: str, **changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "name": name, "fqdn": f"{name}.hal.example", "serial": f"S-{name}", "addresses": {"management": "10.1.0.1"},
        "macs": {"management": "02:00:00:00:00:01"}, "bmc": {"kind": "openbmc"}, "services": ["x"],
        "disks": {"system": "0x1"},
        "profile": "ac922", "arch": "ppc64le", "kernel": KERNEL, "gpus": [{}], "virtual": True,
    }  # fmt: skip
    return given | changes


NODES = {name: hal_node(name) for name in ("hal01", "hal02")}
GROUPS = {"hal01": ["all", "base", "compute", "gpu"], "hal02": ["all", "base", "compute", "special"]}


def test_the_machine_of_a_profile_has_nothing_of_one_node() -> None:
    found = building.machine("ac922", NODES, GROUPS)
    assert found.groups == ("base", "compute")
    assert found.node == {"profile": "ac922", "arch": "ppc64le", "kernel": KERNEL, "gpus": [{}], "virtual": True}
    alone = building.machine("ac922", {"hal01": NODES["hal01"]}, GROUPS)
    assert alone.node == found.node  # of a profile with a single node, too


def test_the_parts_that_a_profile_has_are_those_of_the_inventory() -> None:
    """A part that the inventory adds to all machines of a profile is one of the image, unless this list forgets it."""
    from hal_inventory.compiled import inventory_of

    common = inventory_of(str(PROJECT / "inventory/hal/hal.yml"))["common"]["ac922"]
    assert set(common) == set(building.OF_ONE_PROFILE)


@pytest.mark.parametrize("changes", [{"profile": "lc922"}, {"kernel": None}])
def test_a_profile_that_no_image_can_be_for_is_refused(changes: dict[str, Any]) -> None:
    nodes = (
        {**NODES, "hal02": hal_node("hal02")}
        if "kernel" in changes
        else {**NODES, "hal02": hal_node("hal02", **changes)}
    )
    if "kernel" in changes:
        nodes = {name: node | changes for name, node in nodes.items()}
    with pytest.raises(
        ProvisionError, match=r"image_profile is ac922: (no profile of|cluster\.yml, profiles\.ac922\.kernel)"
    ):
        building.machine("ac922", nodes, GROUPS)
    with pytest.raises(ProvisionError, match="image_profile is ac922: no profile"):
        building.machine("ac922", {}, {})


def test_what_cannot_be_built_is_said_in_one_line(tmp_path: Path) -> None:
    found = building.machine("ac922", NODES, GROUPS)
    key, roles = tmp_path / "key", PROJECT / "roles"
    power, x86 = hal_node("hal-mgmt1"), hal_node("hal-mgmt2", arch="x86_64")
    parts = {"base": ["install"]}
    said = building.problem("ac922", "ac922", found, x86, key, parts, roles)
    assert said.startswith("profile ac922 is ppc64le, and hal-mgmt2 is x86_64: ")
    assert f"{key}: the key that signs images is missing" in building.problem(
        "ac922", "ac922", found, power, key, parts, roles
    )
    key.touch()
    assert building.problem("ac922", "ac922", found, power, key, parts, roles) == ""
    for name in ("Big", "a b", "../x", "", "x/y", "-x"):
        said = building.problem("ac922", name, found, power, key, parts, roles)
        assert said == f"image_name is {name}: small letters, digits, . _ and -"
    for wrong in ({"base": ["instal"]}, {"bas": ["install"]}, {"base": ["../tasks/install"]}):
        said = building.problem("ac922", "ac922", found, power, key, wrong, roles)
        assert said.startswith("image_roles.bas")
        assert "there is no roles/bas" in said
        assert "\n" not in said


def test_a_build_is_abandoned_when_its_process_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = building.owner("ac922-1-ppc64le")
    assert not building.abandoned(mine)
    other = subprocess.run(
        [sys.executable, "-c", "from hal_cluster.provision.building import owner; print(owner('x'))"],
        capture_output=True, text=True, check=True, cwd=PROJECT,
    ).stdout.strip()  # fmt: skip
    assert building.abandoned(other)
    # The same number, born at another time; another machine; what nobody of ours wrote.
    assert building.abandoned(mine.rpartition(" ")[0] + " 1")
    assert not building.abandoned(other.replace(" by ", " by not-"))
    assert not building.abandoned("somebody else's unit")
    # Tasks are templated in a process of their own: the run of Ansible is its parent.
    monkeypatch.setattr("multiprocessing.parent_process", lambda: type("Parent", (), {"pid": os.getppid()}))
    assert f"process {os.getppid()} of " in building.owner("x")


def test_secrets_leave_the_controller_as_keyed_digests_only() -> None:
    values = {
        "vault_a": "correct horse\nbattery staple\n",
        "vault_b": {"x": ["0123456789"]},
        "vault_c": "short",
        "vault_d": 12345678,
    }
    told = building.digests(values)
    assert sorted(set(told["digests"].values())) == ["vault_a", "vault_b", "vault_d"]
    text = repr(told)
    for secret in ("correct horse", "battery staple", "0123456789", "12345678"):
        assert secret not in text
        assert hashlib.sha256(secret.encode()).hexdigest() not in text  # which could be looked up
    assert building.digests(values)["key"] != told["key"]


def test_the_manifest_says_what_the_image_was_made_from(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_bytes(b"locked")
    told = building.made_from("abc", lock, {"base": ["install"], "time": ["install"]}, None)
    assert told == {"commit": "abc", "roles": "base time", "lock_sha256": hashlib.sha256(b"locked").hexdigest()}
    assert building.made_from("", tmp_path / "none", {}, None) == {"commit": "unknown", "roles": ""}


# ---------------------------------------------------------------- the way into the root


@pytest.fixture(scope="module")
def plugin() -> Any:
    """As Ansible loads it, with its options."""
    from ansible.plugins.loader import connection_loader

    connection_loader.add_directory(str(PROJECT / "plugins/connection"))
    from ansible.playbook.play_context import PlayContext

    return connection_loader.get("hal_image", PlayContext(), None)


class Sent(Exception):
    """What ssh would have sent."""


def command_of(plugin: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> str:
    def send(self: Any, cmd: str, in_data: Any = None, sudoable: bool = True) -> None:
        raise Sent(cmd)

    monkeypatch.setattr("ansible.plugins.connection.ssh.Connection.exec_command", send)
    plugin.set_options(var_options={"ansible_host": "10.1.0.11", **options})
    with pytest.raises(Sent) as sent:
        plugin.exec_command("id; echo 'x y'", sudoable=False)
    return str(sent.value)


def test_a_task_is_run_in_the_root(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    command = command_of(plugin, monkeypatch, hal_image_root="/srv/my build/root", hal_image_keeper=4711)
    words = shlex.split(command)
    assert words[:6] == ["nsenter", "--mount=/proc/4711/ns/mnt", "--", "chroot", "/srv/my build/root", "/usr/bin/env"]
    assert words[-3:] == ["/bin/sh", "-c", "id; echo 'x y'"]
    assert plugin.get_option("host") == "10.1.0.11"  # ssh's own options are there


@pytest.mark.parametrize("options", [{}, {"hal_image_root": "/r"}, {"hal_image_root": "/r", "hal_image_keeper": 0}])
def test_a_task_is_never_run_outside_of_it(
    plugin: Any, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    with pytest.raises(AnsibleError, match="no image is being built"):
        command_of(plugin, monkeypatch, **options)
    module = sys.modules[type(plugin).__module__]
    for root, keeper in (("", 4711), (None, 4711), ("root", 4711), ("/r", 1), ("/r", None), ("/r", "x; id")):
        with pytest.raises(AnsibleError, match="no image is being built"):
            module.in_root(root, keeper, "id")
    for path in ("/etc/passwd", "/run/hal-image/../x", "/run/hal-images/x"):
        with pytest.raises(AnsibleError, match="only files below /run/hal-image/"):
            plugin.put_file("/dev/null", path)
        with pytest.raises(AnsibleError, match="only files below /run/hal-image/"):
            plugin.fetch_file(path, "/dev/null")


def test_the_builder_of_images_is_no_node_of_the_record() -> None:
    """The callback that records what roles manage passes the image's root by."""
    from hal_cluster.audit.observer import Observer

    class Manager:
        def get_vars(self, host: Any) -> dict[str, Any]:
            return {"hal_audit_dir": "/nowhere", "hal_image_root": "/srv/images/build/root"}

    observer = Observer(proposing=False)
    observer.play = type("Play", (), {"_variable_manager": Manager(), "_loader": None})
    assert not observer._known_host(type("Host", (), {"get_name": lambda self: "image-ac922"})())
    assert (observer.troubles, observer.stores) == ({}, {})


def test_a_process_that_is_not_there_was_born_at_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who builds is not called abandoned when nobody knew its time of birth."""
    nobody = 2**22 + 1  # more than the kernel gives (PID_MAX_LIMIT)
    monkeypatch.setattr("multiprocessing.parent_process", lambda: type("Parent", (), {"pid": nobody}))
    unknown = building.owner("x")
    assert unknown.endswith(f" process {nobody} of 0")
    assert not building.abandoned(unknown)
    assert building.abandoned(unknown.removesuffix("0") + "1")
