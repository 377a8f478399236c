"""The role on the node that serves HAL, up to the first task that contacts it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from bmc.petitboot import Disk, Lease, boot

from hal_cluster import programs
from tests.unit import authority
from tests.unit.interpreters import LOCAL
from tests.unit.playing import ROOT, play, play_text

PLAY = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: provision_server, tasks_from: validate}
    - debug:
        msg:
          main: "{{ __provision_server_main_file }}"
          leases: "{{ __provision_server_leases }}"
          nodes: "{{ __provision_server_nodes }}"
          settings: "{{ __provision_server_settings }}"
          written: "{{ __provision_server_image_key_file }}"
          authority: "{{ __provision_server_authority_text }}"
          unit: "{{ lookup('ansible.builtin.template', unit) }}"
"""


def validated(folder: Path, authority: bool = True, **variables: Any) -> subprocess.CompletedProcess[str]:
    for name in ("tls_ca", "tls_ca.pem") if authority else ():
        (folder / name).write_text("there")
    variables["unit"] = str(ROOT / "roles/provision_server/templates/hal-provision.service.j2")
    return play_text(folder, PLAY, "hal-mgmt1", sites=["hal"], provision_server_authority_dir=str(folder), **variables)


def made(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["plays"][0]["tasks"][-1]["hosts"]["hal-mgmt1"]["msg"]
    return found


def test_all_nodes_of_hal_have_a_lease_and_boot_their_disks(tmp_path: Path) -> None:
    found = made(validated(tmp_path))
    kinds = ("interface", "dhcp-range", "dhcp-ignore")
    assert {line for line in found["main"].splitlines() if line.startswith(kinds)} == {
        "interface=enP2p1s0f0",
        "dhcp-range=set:net-management,10.64.0.0,static,255.255.255.0,3600",
        "dhcp-ignore=tag:!known",
    }
    leases = {one["path"]: one["content"] for one in found["leases"]}
    assert leases["/etc/hal/dnsmasq-hosts/hal05"] == "02:48:41:4c:02:05,set:node-hal05,10.64.0.105,hal05\n"
    option = "tag:node-hal05,tag:opal,209,http://10.64.0.11:8480/boot/hal05\n"
    assert leases["/etc/hal/dnsmasq-options/hal05"] == option
    nodes = {Path(one["path"]).name: json.loads(one["content"]) for one in found["nodes"]}
    assert len(nodes) == 22
    for name in ("hal05", "hal-login", "hal-test"):
        standing = nodes[name]["standing"].encode()
        lease = Lease("02:48:41:4c:02:05", nodes[name]["address"], options={209: "http://x/y"})
        assert boot(lease, lambda url, text=standing: text).decision == Disk()  # type: ignore[misc]
    assert nodes["hal-mgmt2"]["standing"].startswith("#!ipxe")
    assert nodes["hal05"]["names"] == ["01-02-48-41-4c-02-05", "0A400069"]


def test_the_units_limits_leave_room_for_all_that_is_granted(tmp_path: Path) -> None:
    found = made(validated(tmp_path))
    of_unit = dict(line.split("=", 1) for line in found["unit"].splitlines() if "=" in line)
    granted = int(found["settings"]["connections"]) * (len(found["nodes"]) + 2)  # this machine, and all strangers
    assert granted == 192
    for name, least in (("TasksMax", granted + 4), ("LimitNOFILE", granted * 4), ("MemoryLimit", granted * 300_000)):
        assert least < int(of_unit[name]) < least * 10
    assert 0 < found["settings"]["request_seconds"] < 120


def test_every_part_of_the_programs_comes_to_the_server() -> None:
    """One that is forgotten is missed by an import only when the service starts."""
    role = ROOT / "roles/provision_server"
    query = yaml.safe_load((role / "vars/main.yml").read_text())["__provision_server_program_files"]
    entries = re.findall(r"'(\w+\.py)'", query)
    written = {name for entry in entries for name in programs.files(role / "files" / entry)}
    assert written >= {path.name for path in (role / "files").glob("*.py")}
    assert {"hal_node/lock.py", "hal_node/printable.py"} < written


def test_keys_and_certificates_are_written_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "image_key.pem").write_text("-----BEGIN\nx\n-----END\n")
    found = made(validated(tmp_path, provision_server_image_key=str(tmp_path / "image_key.pem")))
    assert found["written"] == [{"path": "/etc/hal/provision-images.pem", "content": "-----BEGIN\nx\n-----END\n"}]
    assert found["authority"] == "there\n"
    assert made(validated(tmp_path, provision_server_image_key=str(tmp_path / "none.pem")))["written"] == []


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"provision_server_network": "office"}, "provision_server_network is office"),
        ({"provision_server_interfaces": {"bmcs": "eno9"}}, "provision_server_interfaces are in bmcs"),
        (
            {"provision_server_interfaces": {"bmc": "eno9"}},
            "provision_server_network is management, provision_server_interfaces",
        ),
        ({"provision_server_network": "access"}, "and hal-mgmt1 addresses in management, bmc, ipoib"),
        ({"provision_server_search": "209"}, "search is 209; file (option 209) or prefix (option 210)"),
        ({"provision_server_lease_seconds": 5}, "lease_seconds is 5; dnsmasq gives none for less than 120"),
        ({"provision_server_port": 80}, "two between 1025 and 65535"),
        ({"provision_server_tls_port": 8480}, "two between 1025 and 65535"),
        ({"authority": False}, "tls_ca or tls_ca.pem is missing; restore it, or for a new site:"),
    ],
)
def test_what_cannot_be_served_is_refused_before_the_node_is_contacted(
    tmp_path: Path, variables: dict[str, Any], said: str
) -> None:
    done = validated(tmp_path, **variables)
    assert done.returncode != 0
    assert said in done.stdout


# This machine stands in for the node; whoever runs the tests may be nobody.
HERE = {"ansible_python_interpreter": LOCAL, "ansible_become": False}

# ---------------------------------------------------------------- what somebody else set up

STAND_INS = {
    "ss": 'cat "$STATE/sockets"',
    "systemctl": 'cat "$STATE/units"',
}
HEAD = "State  Recv-Q Send-Q Local Address:Port Peer Address:PortProcess\n"
SOCKET = 'UNCONN 0      0            0.0.0.0:67        0.0.0.0:*    users:(("{}",pid={},fd=4))\n'
PACKAGED = (
    "# Configuration file for dnsmasq.\n\n#port=5353\nconf-dir=/etc/dnsmasq.d,.rpmnew,.rpmsave,.rpmorig\nuser=dnsmasq\n"
)


class Machine:
    """What the probe looks at: dnsmasq's files, sockets, units."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "dnsmasq.d"
        self.conf.mkdir()
        (folder / "dnsmasq.conf").write_text(PACKAGED)
        (self.conf / "hal.conf").write_text("port=0\ndhcp-range=10.64.0.0,static\n")
        (folder / "sockets").write_text(HEAD + SOCKET.format("dnsmasq", 6))
        (folder / "units").write_text(
            "Id=dhcpd.service\nUnitFileState=disabled\n\nId=dhcrelay.service\nUnitFileState=\n"
        )
        for name, words in STAND_INS.items():
            (folder / name).write_text(f"#!/bin/sh\n{words}\n")
            (folder / name).chmod(0o755)

    def probe(self) -> subprocess.CompletedProcess[str]:
        argv = ["sh", str(ROOT / "roles/provision_server/files/other_dhcp.sh"), str(self.conf / "hal.conf")]
        environment = {"PATH": f"{self.folder}:/usr/bin:/bin", "STATE": str(self.folder)}
        return subprocess.run(
            [*argv, str(self.folder / "dnsmasq.conf"), str(self.conf)],
            env=environment, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip

    def others(self) -> list[str]:
        done = self.probe()
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()


def test_a_machine_with_nothing_but_this_role_has_no_others(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    (machine.conf / "lab.conf.rpmsave").write_text("dhcp-range=10.0.0.1,10.0.0.9\n")
    (machine.conf / "notes.conf").write_text("# dhcp-range=10.0.0.1,10.0.0.9\n\n")
    assert machine.others() == []
    (tmp_path / "dnsmasq.conf").unlink()
    for path in machine.conf.iterdir():
        path.unlink()
    machine.conf.rmdir()  # a machine without dnsmasq
    assert machine.others() == []


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("dnsmasq.d/lab.conf", "# lab\ndhcp-range=10.0.0.5\n", "/dnsmasq.d/lab.conf:2:dhcp-range=10.0.0.5"),
        ("dnsmasq.d/names", "address=/x/10.0.0.1\n", "/dnsmasq.d/names:1:address=/x/10.0.0.1"),
        ("dnsmasq.conf", PACKAGED + "  dhcp-range=10.0.0.5,static\n", "/dnsmasq.conf:6:  dhcp-range=10.0.0.5,static"),
        ("sockets", HEAD + SOCKET.format("dhcpd", 812), "dhcpd,pid=812 listens on udp/67"),
        ("units", "Id=dhcpd.service\nUnitFileState=enabled\n", "dhcpd.service starts at boot"),
    ],
)  # fmt: skip
def test_what_somebody_else_set_up_is_named(tmp_path: Path, file: str, content: str, said: str) -> None:
    machine = Machine(tmp_path)
    (tmp_path / file).write_text(content)
    assert machine.others() == [f"{tmp_path}{said}" if said.startswith("/") else said]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("ss", "Cannot open netlink socket\nss (package iproute) does not say what listens on udp/67\n"),
        ("systemctl", "Cannot open netlink socket\n"),
    ],
)
def test_what_nobody_can_say_is_not_taken_for_nothing(tmp_path: Path, program: str, said: str) -> None:
    machine = Machine(tmp_path)
    (tmp_path / program).write_text("#!/bin/sh\necho Cannot open netlink socket >&2\nexit 255\n")
    done = machine.probe()
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


OTHERS = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: provision_server, tasks_from: others}
"""


@pytest.mark.parametrize(("found", "permitted", "goes_on"), [("", False, True), ("x", False, False), ("x", True, True)])
def test_it_is_not_taken_over_without_permission(tmp_path: Path, found: str, permitted: bool, goes_on: bool) -> None:
    said = ["echo", "/etc/dnsmasq.d/lab.conf:2:dhcp-range=x"] if found else ["true"]
    done = play_text(
        tmp_path, OTHERS, "hal-mgmt1", sites=["hal"],
        __provision_server_other_dhcp_argv=said, provision_server_other_dhcp_ok=permitted, **HERE,
    )  # fmt: skip
    assert (done.returncode == 0) is goes_on, done.stdout[-3000:] + done.stderr
    if not goes_on:
        assert (
            "hal-mgmt1 has a DHCP server, or a dnsmasq, that is not this role's:"
            " /etc/dnsmasq.d/lab.conf:2:dhcp-range=x. Nothing was changed." in done.stdout
        )


def test_it_is_looked_for_before_anything_is_changed() -> None:
    tasks = yaml.safe_load((ROOT / "roles/provision_server/tasks/main.yml").read_text())
    assert "hal_validate" in tasks[0]
    assert [task["ansible.builtin.import_tasks"] for task in tasks[1:3]] == ["others.yml", "install.yml"]


# ---------------------------------------------------------------- what is no longer declared


def tasks_of(*names: str) -> str:
    """A play of tasks of configure.yml, on this machine."""
    tasks = yaml.safe_load((ROOT / "roles/provision_server/tasks/configure.yml").read_text())
    wanted = [{key: value for key, value in task.items() if key != "notify"} for task in tasks if task["name"] in names]
    assert len(wanted) == len(names)
    return yaml.safe_dump([{"hosts": "all", "gather_facts": False, "connection": "local", "tasks": wanted}])


@pytest.mark.parametrize("declared", [True, False])
def test_a_key_that_is_no_longer_declared_is_withdrawn(tmp_path: Path, declared: bool) -> None:
    key = tmp_path / "provision-images.pem"
    key.write_text("a key")
    if declared:
        (tmp_path / "image_key.pem").write_text("a key")
    done = play_text(
        tmp_path, tasks_of("Withdraw a key that is no longer declared"), "hal-mgmt1", sites=["hal"],
        __provision_server_key=str(key), provision_server_image_key=str(tmp_path / "image_key.pem"), **HERE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert key.exists() is declared


def test_whatever_is_in_the_folders_of_nodes_and_is_no_nodes_goes(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("nodes", "hosts", "options")}
    for folder in folders.values():
        (folder / "stray" / "in it").mkdir(parents=True)
        (folder / "hal05").write_text("of the role")
        (folder / ".hidden").write_text("")
        (folder / "link").symlink_to(tmp_path)
    done = play_text(
        tmp_path, tasks_of("Look for files of nodes that are no more", "Remove files of nodes that are no more"),
        "hal-mgmt1", sites=["hal"], __provision_server_node_files=[str(one / "hal05") for one in folders.values()],
        **{f"__provision_server_{name}_dir": str(folder) for name, folder in folders.items()}, **HERE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    for folder in folders.values():
        assert [path.name for path in folder.iterdir()] == ["hal05"]


# ---------------------------------------------------------------- the certificate, which is made at the controller

CERTIFY = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: provision_server, tasks_from: certificate}
"""


def certified(folder: Path, **variables: Any) -> int:
    """Make the certificate; return how many tasks changed something."""
    done = play_text(
        folder, CERTIFY, "hal-mgmt1", sites=["hal"], provision_server_authority_dir=str(folder), **variables
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return int(json.loads(done.stdout)["stats"]["hal-mgmt1"]["changed"])


def test_the_servers_certificate_is_the_authoritys_and_made_anew_before_it_ends(tmp_path: Path) -> None:
    authority.make(tmp_path)
    assert certified(tmp_path) > 0
    certificate, key = (tmp_path / f"tls/hal-mgmt1_10.64.0.11.{end}" for end in ("pem", "key"))
    verify = ["openssl", "verify", "-CAfile", str(tmp_path / "tls_ca.pem"), "-purpose", "sslserver"]
    for name in (["-verify_ip", "10.64.0.11"], ["-verify_hostname", "hal-mgmt1.hal.example"]):
        done = subprocess.run([*verify, *name, str(certificate)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert key.stat().st_mode & 0o777 == 0o600
    first = certificate.read_bytes()
    assert certified(tmp_path) == 0
    assert certificate.read_bytes() == first
    assert certified(tmp_path, provision_server_certificate_renew_days=824) == 0
    assert certified(tmp_path, provision_server_certificate_renew_days=826) == 1
    assert certificate.read_bytes() != first


# ---------------------------------------------------------------- check mode on a new site


def checked(folder: Path, text: str, **variables: Any) -> subprocess.CompletedProcess[str]:
    (folder / "play.yml").write_text(text)
    words = ("--check", "--limit", "hal-mgmt1", "--extra-vars", json.dumps(variables))
    return play(folder / "play.yml", *words, sites=["hal"], ANSIBLE_STDOUT_CALLBACK="ansible.posix.json")


@pytest.mark.parametrize("there", [False, True])
def test_check_mode_needs_neither_the_folder_of_certificates_nor_a_key(tmp_path: Path, there: bool) -> None:
    authority.make(tmp_path)
    if there:
        (tmp_path / "tls").mkdir()
    done = checked(tmp_path, CERTIFY, provision_server_authority_dir=str(tmp_path))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert list(tmp_path.glob("tls/*")) == []


@pytest.mark.parametrize(("written", "started"), [(True, 0), (False, 1)])
def test_check_mode_does_not_ask_for_a_unit_that_was_not_written_yet(
    tmp_path: Path, written: bool, started: int
) -> None:
    role = ROOT / "roles/provision_server"
    tasks = [
        *yaml.safe_load((role / "tasks/configure.yml").read_text()),
        *yaml.safe_load((role / "handlers/main.yml").read_text()),
    ]
    units = [
        {"debug": {"msg": "asked"}, "when": task["when"], "loop": task.get("loop", ["hal-provision.service"])}
        for task in tasks
        if "hal-provision.service" in str(task.get("loop", "")) + str(task.get("ansible.builtin.systemd_service", ""))
    ]
    assert len(units) == 2
    text = yaml.safe_dump([{"hosts": "all", "gather_facts": False, "connection": "local", "tasks": units}])
    done = checked(
        tmp_path, text, __provision_server_packages_pending=False, __provision_server_written={"changed": written}
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    for task in json.loads(done.stdout)["plays"][0]["tasks"]:
        results = task["hosts"]["hal-mgmt1"]["results"]
        assert sum(one["item"] == "hal-provision.service" and "msg" in one for one in results) == started
