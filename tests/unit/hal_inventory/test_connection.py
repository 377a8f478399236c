"""How nodes are reached: plain values, which ssh and testinfra take as they are, also where a path has a blank."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.inventory.data import InventoryData

from hal_inventory.ansible_inventory import fill
from hal_inventory.compiled import Compiled
from hal_inventory.connection import MOVED, Connection, connection
from hal_inventory.errors import SourceFileError
from hal_inventory.sources import read_source
from tests.unit.hal_inventory.conftest import Folder

Run = Callable[..., subprocess.CompletedProcess[str]]
START = "plugin: hal\ncluster: cluster.yml\n"
# What testinfra makes of an inventory, by itself.
TESTINFRA = """
import json, sys
from testinfra.utils.ansible_runner import AnsibleRunner
runner = AnsibleRunner(sys.argv[1])
print(json.dumps({name: runner.get_host(name).run("true").stdout for name in runner.get_hosts("compute")}))
"""


def asked(text: str) -> dict[str, str]:
    """Return what ssh -G prints, by keyword; of several the first."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        keyword, _, value = line.partition(" ")
        found.setdefault(keyword, value)
    return found


def test_without_a_word_the_state_is_beside_ansible_cfg(
    folder: Folder, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = read_source(folder.site())
    state = root / ".state/small"
    assert connection(source, "small") == Connection(state, "root", state / "ca/admin")
    assert connection(source, "small").known_hosts == state / "known_hosts"
    monkeypatch.setenv("HOME", str(folder.path / "home"))
    monkeypatch.chdir(folder.path)
    folder.write("ansible.cfg", "[defaults]\ninventory_plugins = plugins\n[inventory]\nenable_plugins = ini\n")
    assert connection(source, "small").state == state, "it is for something else"
    ours = "[inventory]\nenable_plugins = ini, hal\n"
    folder.write("home/.ansible.cfg", ours)
    assert connection(source, "small").state == folder.path / "home/.state/small"
    folder.write("plugins/hal.py", "")
    assert connection(source, "small").state == folder.path / ".state/small"
    folder.path.chmod(0o777)
    assert connection(source, "small").state == folder.path / "home/.state/small", "Ansible reads none there"
    folder.path.chmod(0o755)
    folder.write("ansible.cfg", ours)
    assert connection(source, "small").state == folder.path / ".state/small"
    monkeypatch.setenv("ANSIBLE_CONFIG", str(folder.write("named/any.cfg", "")))
    assert connection(source, "small").state == folder.path / "named/.state/small"


def test_in_ansible_the_state_is_beside_the_configuration_that_it_read(folder: Folder, root: Path) -> None:
    source = folder.site()
    folder.write("ansible.cfg", "")
    own = {"ANSIBLE_INVENTORY_PLUGINS": str(root / "plugins/inventory"), "ANSIBLE_INVENTORY_ENABLED": "hal"}
    environment = folder.environment(own)
    del environment["ANSIBLE_CONFIG"]
    words = [str(Path(sys.executable).with_name("ansible-inventory")), "-i", str(source), "--host", "front"]
    done = subprocess.run(words, cwd=folder.path, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["hal_state_dir"] == str(folder.path / ".state/small")


def test_a_source_says_where_and_its_paths_are_its_own(folder: Folder) -> None:
    folder.write("a/hal.yml", START + "state: ../kept\nssh: {user: admin, key: ../key}\n")
    part = folder.write("b/hal.yml", "plugin: hal\nbase: ../a/hal.yml\nonly: front\n")
    found = connection(read_source(part), "small")
    path = folder.path
    assert found == Connection(path / "kept", "admin", path / "key")
    other = folder.write("c/hal.yml", "plugin: hal\nbase: ../a/hal.yml\nstate: own\nssh: {user: root}\n")
    state = path / "c/own"
    assert connection(read_source(other), "small") == Connection(state, "root", state / "ca/admin")


def test_a_home_is_no_folder_of_the_source(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    source = read_source(folder.site(source=START + "state: ~/kept\nssh: {key: ~/.ssh/hal}\n"))
    assert connection(source, "small") == Connection(Path("/home/me/kept"), "root", Path("/home/me/.ssh/hal"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("state: 5\n", "hal.yml:3: state: must be the path of a folder"),
        ("ssh: root\n", "hal.yml:3: ssh: must be a mapping such as {user: root, key: FILE}"),
        # Revocations are written into the one in state.
        ("ssh: {known_hosts: x}\n", "hal.yml:3: ssh.known_hosts: unknown field; known fields: key, user"),
        ("ssh:\n  usr: root\n", 'hal.yml:4: ssh.usr: unknown field; did you mean "user"?'),
        ("ssh: {user: 5}\n", "hal.yml:3: ssh.user: must be a name"),
        ("ssh: {user: -oProxyCommand=x}\n", 'hal.yml:3: ssh.user: "-oProxyCommand=x" is not the name of a user'),
        ("ssh: {key: ''}\n", "hal.yml:3: ssh.key: must be the path of a file"),
        ("ssh: {key: 'a\"b'}\n", "hal.yml:3: ssh.key: has a quotation mark, which ssh takes for the end of a path"),
        ("state: 'a\"b'\n", "hal.yml:3: state: has a quotation mark, which ssh takes for the end of a path"),
        (
            "state: ~no-body/x\n",
            "hal.yml:3: state: ~no-body is nobody's home here; a folder of that name is ./~...",
        ),
    ],
)
def test_what_is_no_way_in_is_a_finding(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    folder.site(source=START + text)
    monkeypatch.chdir(folder.path)
    with pytest.raises(SourceFileError) as caught:
        read_source("hal.yml")
    assert str(caught.value) == expected


def test_ansible_has_plain_values(folder: Folder) -> None:
    compiled = Compiled(folder.site(source=START + "state: kept\n"))
    data: Any = InventoryData()
    packed = compiled.inventory()
    fill(data, packed, connection(compiled.source, packed["site"]))
    everywhere = data.groups["all"].vars
    assert everywhere["hal_state_dir"] == str(folder.path / "kept")
    assert (everywhere["ansible_user"], everywhere["hal_ssh_user"]) == ("root", "root")
    for name, host in data.hosts.items():
        assert host.vars["ansible_ssh_common_args"].endswith(
            f" -o StrictHostKeyChecking=yes -o HostKeyAlias={name} -o IdentitiesOnly=yes -o PasswordAuthentication=no"
        )
    assert "{{" not in json.dumps([everywhere, *(host.vars for host in data.hosts.values())])


def test_testinfra_reaches_nodes_by_the_inventory_alone(folder: Folder, tmp_path: Path) -> None:
    """Its own reading of ours, of a source with a base, below a folder with blanks.

    Of a path with two blanks ssh would make two files, and print them with one.
    """
    folder.site(source=START + "state: kept  here\n")
    folder.write("kept  here/ca/admin", "")  # ssh passes over a key that is not there
    source = folder.write("virtual/hal.yml", "plugin: hal\nbase: ../hal.yml\nvirtual: true\nonly: compute\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -G "$@"\n')
    (programs / "ssh").chmod(0o755)
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = folder.run(sys.executable, "-c", TESTINFRA, source, PATH=path)
    assert done.returncode == 0, done.stderr
    hosts = {name: asked(text) for name, text in json.loads(done.stdout).items()}
    assert sorted(hosts) == [f"worker{at}" for at in range(1, 5)]
    kept = folder.path / "kept  here"
    for at, (name, values) in enumerate(sorted(hosts.items()), 1):
        assert (values["user"], values["hostname"]) == ("root", f"10.1.0.{100 + at}")
        assert (values["hostkeyalias"], values["stricthostkeychecking"]) == (name, "true")
        assert values["identityfile"] == str(kept / "ca/admin")
        assert values["userknownhostsfile"] == str(kept / "known_hosts")


@pytest.mark.parametrize("name", sorted(MOVED))
@pytest.mark.parametrize("where", ["group_vars/all/connection.yml", "base/host_vars/front.yml"])
def test_what_the_source_decides_is_refused_elsewhere(folder: Folder, name: str, where: str) -> None:
    folder.write("sites/base/cluster.yml", (Path(__file__).parent / "data/small.yml").read_text())
    folder.write("sites/base/hal.yml", START)
    source = folder.write("sites/hal.yml", "plugin: hal\nbase: base/hal.yml\n")
    folder.write(f"sites/{where}", f"{name}: x\n")
    done = folder.ansible("ansible-inventory", "--list", "-i", source)
    assert done.returncode != 0
    assert (
        f"{name} in group_vars or host_vars does not count for all that uses it: take it away, and write"
        f" {MOVED[name]} into the source, hal.yml, where the default is not right"
    ) in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("given", ["{name}=x", '{{"{name}": "x"}}', "@{folder}/more.yml"])
@pytest.mark.parametrize("name", ["ansible_ssh_common_args", "hal_state_dir"])
def test_what_the_source_decides_is_refused_on_the_command_line(folder: Folder, name: str, given: str) -> None:
    """Where a certificate is signed, and by what ssh believes a host, is one folder."""
    source = folder.site()
    folder.write("more.yml", f"{name}: x\n")
    extra = given.format(name=name, folder=folder.path)
    done = folder.ansible("ansible", "all", "-i", source, "--list-hosts", "-e", extra)
    assert done.returncode != 0
    assert (
        f"{name} as an extra variable (-e) does not count for all that uses it: leave it away, and write {MOVED[name]}"
        " into the source, hal.yml, where the default is not right"
    ) in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stdout + done.stderr


def test_ssh_takes_the_configuration(folder: Folder, hal_inventory: Run) -> None:
    source = folder.site(source=START + "state: kept 100%h\n")
    done = hal_inventory("-i", source, "ssh-config")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"{folder.path}/kept 100%h/ca/admin: no such key; playbooks/authorities.yml makes that of a new site; if"
        f" another one counts, write state: FOLDER or ssh: {{key: FILE}} into {source}\n",
    )
    folder.write("kept 100%h/ca/admin.pub", "")
    done = hal_inventory("-i", source, "ssh-config", "worker[1-2]", "--write", "config")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    config = folder.path / "config"
    assert config.stat().st_mode & 0o777 == 0o600
    for name in ("worker1", "worker1.small.example"):
        values = asked(folder.run("ssh", "-G", "-F", config, name).stdout)
        assert (values["user"], values["hostname"], values["hostkeyalias"]) == ("root", "10.1.0.101", "worker1")
        assert values["stricthostkeychecking"] == "true"
        assert values["identityfile"].replace("%%", "%") == str(folder.path / "kept 100%h/ca/admin")
        # ssh finds that of the key by itself. Were one named, -i with another key would find none (ssh.c).
        assert "certificatefile" not in values
    assert "hostkeyalias" not in asked(folder.run("ssh", "-G", "-F", config, "worker3").stdout)
    assert hal_inventory("-i", source, "ssh-config", "worker[1-2]").stdout == config.read_text().partition("\n")[2]
    assert hal_inventory("-i", source, "ssh-config", "--write", "config").returncode == 0
    assert "Host front " in config.read_text()


def test_a_file_of_somebody_else_is_not_overwritten(folder: Folder, hal_inventory: Run) -> None:
    source = folder.site(source=START + "state: kept\n")
    folder.write("kept/ca/admin", "")
    before = source.read_text()
    done = hal_inventory("-i", source, "ssh-config", "--write", "hal.yml")
    said = "hal.yml is not a file that hal-inventory ssh-config wrote: name another one\n"
    assert (done.returncode, done.stderr, source.read_text()) == (2, said, before)
    done = hal_inventory("-i", source, "ssh-config", "--write", "nowhere/config")
    assert (done.returncode, done.stderr) == (2, "nowhere/config: No such file or directory\n")
    done = hal_inventory("-i", source, "ssh-config", "data")
    assert (done.returncode, done.stderr) == (2, '"data" selects no node of small\n')
