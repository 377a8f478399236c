"""A site whose nodes boot by emulated BMCs: playbooks, faults, consoles, orders, images, and who tells passwords."""

from __future__ import annotations

import hashlib
import json
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bmc.control import SOCKET
from running import ansible_run
from running.ssh_config import STATE, Cluster
from testbed import kernel, nodes
from testbed.bmcs import folder
from testbed.run import PODMAN, as_root, capture

from hal_cluster.provision import boot, images
from hal_cluster.provision.kickstart import Place, Server, Source, kickstart
from hal_cluster.provision.nodes import BootNode, boot_node
from hal_cluster.provision.secrets import first_secrets
from hal_cluster.provision.tokens import Token, issue

PROJECT = ansible_run.PROJECT
SETUP = PROJECT / "molecule/virtual_hal/setup"
SERVER = "hal-mgmt1"
DELIVERED = {"openbmc": "0penBmc", "supermicro": "ADMIN", "ipmi": "ADMIN"}
USERS = {"openbmc": "root", "supermicro": "ADMIN", "ipmi": "ADMIN"}
LONG_SECONDS = 400  # a condition that is not met by then never will be


class BmcSite:
    """The scenario's site."""

    def __init__(self, scenario: Path, cluster: Cluster, work: Path) -> None:
        self.scenario, self.cluster, self.work = scenario, cluster, work
        self.instance = scenario.name
        self.image_key = STATE / "images" / self.instance / "image_key"
        self.ansible = ansible_run.of_scenario(scenario)
        self.told: list[str] = []  # all that any command printed
        self.seen: set[str] = set()  # command lines of processes with a password in them
        self.password = (STATE / "secrets/bmc_password").read_text().strip() if self._has_password() else ""

    @staticmethod
    def _has_password() -> bool:
        return (STATE / "secrets/bmc_password").exists()

    # BMCs

    def bmc(self, name: str) -> tuple[str, str]:
        """Return kind and address of a node's BMC."""
        bmc = self.cluster.node(name)["bmc"]
        return bmc["kind"], bmc["address"]

    def play(self, playbook: str, *arguments: str, **variables: Any) -> ansible_run.Run:
        """Run a playbook of the toolkit."""
        done = self.ansible.playbook(PROJECT / "playbooks" / playbook, *arguments, **variables)
        self.told.append(done.output)
        return done

    def power(self, names: str, action: str, **variables: Any) -> ansible_run.Run:
        """Run power.yml; nobody's jobs are in this site, and roles are permitted."""
        more = {"power_jobs_ok": True, "power_roles_ok": ["management"], **variables}
        return self.play("power.yml", power_nodes=names, power_action=action, **more)

    def chassis(self, name: str, *words: str) -> str:
        """Ask the BMCs' process as ipmi_sim does: quicker than a playbook, where power is not what is tested."""
        client = SETUP.parent / "bmc/chassis.py"
        return capture(as_root([sys.executable, str(client), str(folder(self.instance) / SOCKET), name, *words]))

    def force_off(self, name: str) -> None:
        """Take a machine's power away, and wait until it is gone."""
        self.chassis(name, "set", "power", "0")
        self.until("power off", lambda: self.chassis(name, "get", "power") == "power:0\n", name)

    def switch_on(self, name: str, *, network: bool = False) -> None:
        """Switch a machine on; from the network once, where that is asked for."""
        if network:
            self.chassis(name, "set", "boot", "pxe")
        self.chassis(name, "set", "power", "1")

    def setup(self, *words: str) -> str:
        """Run `setup bmc`."""
        command = [sys.executable, str(SETUP), "bmc", "--instance", self.instance, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        self.told.append(done.stdout + done.stderr)
        return done.stdout

    def console(self, name: str) -> str:
        """Return what a node printed."""
        return self.setup("console", name)

    @contextmanager
    def fault(self, name: str, *words: str) -> Iterator[None]:
        """Have a BMC with a fault as long as the block lasts."""
        self.setup("fault", name, *words)
        try:
            yield
        finally:
            self.setup("fault", name, "repair")

    def fingerprints(self, names: Iterable[str]) -> dict[str, str]:
        """Return by what BMCs are known that came from the factory: of their certificates."""
        fingerprints = {}
        for name in names:
            kind, address = self.bmc(name)
            if kind != "ipmi":
                certificate = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((address, 443)))
                fingerprints[name] = "sha256:" + hashlib.sha256(certificate).hexdigest()
        return fingerprints

    def write_fingerprints(self) -> None:
        """Write them down for all BMCs, where the scenario's inventory reads them."""
        fingerprints = self.fingerprints(self.cluster.slice("nodes"))
        (STATE / f"bmc-{self.instance}-fingerprints.json").write_text(json.dumps(fingerprints))

    def login(self, name: str, password: str) -> bool:
        """Return whether a BMC lets its user in by IPMI; the password is in the environment."""
        kind, address = self.bmc(name)
        command = ["ipmitool", "-I", "lanplus", "-C", "3", "-H", address, "-U", USERS[kind], "-E", "-N", "2", "-R", "2"]
        environment = {**os.environ, "IPMI_PASSWORD": password}
        done = subprocess.run([*command, "mc", "info"], capture_output=True, text=True, check=False, env=environment)
        return done.returncode == 0

    # Who tells passwords

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at the process list until the block ends."""
        ended = threading.Event()
        thread = threading.Thread(target=self._watch, args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def secrets(self) -> list[str]:
        """Return words that nobody may see. ADMIN is a user's name too."""
        return [
            password
            for password in (self.password or _read(STATE / "secrets/bmc_password"), DELIVERED["openbmc"])
            if password
        ]

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(0.3):
            secrets = self.secrets()
            for entry in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    words = entry.read_bytes().decode(errors="replace")
                except OSError:
                    continue
                if any(secret in words for secret in secrets):
                    self.seen.add(words.replace("\0", " ")[:80])

    def former_passwords(self) -> Path:
        """Return a file of variables with the passwords that BMCs came with."""
        former = self.work / "former.yml"
        words = json.dumps(DELIVERED).replace('"', "'")
        former.write_text('bmc_former_password: "{{ ' + words + '[hal_node.bmc.kind] }}"\n')
        former.chmod(0o600)
        return former

    def logs(self) -> str:
        """Return what the BMCs' process wrote."""
        return capture(as_root(["cat", str(folder(self.instance) / "log")]))

    # Nodes

    def ssh(self, name: str, command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a command on a node, whose host key the site's authority has signed."""
        # No shared connection: the node at its end is switched off in these tests.
        options = ["-oControlPath=none", "-oConnectTimeout=10", "-oServerAliveInterval=10"]
        words = ["ssh", "-F", str(self.cluster.ssh_config), *options, name, command]
        return subprocess.run(words, input=stdin, capture_output=True, check=False)

    def on(self, name: str, command: str, stdin: bytes = b"") -> str:
        """Return what a command on a node prints; it has to work."""
        done = self.ssh(name, command, stdin)
        assert done.returncode == 0, f"{name}: {command[:200]}: {done.stderr.decode()}"
        return done.stdout.decode()

    def until(self, what: str, condition: Callable[[], Any], name: str = "") -> Any:
        """Return what the condition gives as soon as it is something; the console is shown when it never is."""
        end = time.monotonic() + LONG_SECONDS
        while not (value := condition()):
            assert time.monotonic() < end, f"{what} never happened\n{self.console(name) if name else ''}"
            time.sleep(0.5)
        return value

    def answers(self, name: str) -> bool:
        """Return whether a node answers by ssh, with a certificate of the site, and has come up."""
        done = self.ssh(name, "systemctl is-system-running")
        return done.stdout.strip() in (b"running", b"degraded")

    def since_off(self, name: str) -> str:
        """Return what a node printed since it was last switched off."""
        return self.console(name).rpartition("[firmware] off (")[2]

    def says(self, name: str, text: str) -> None:
        """Wait for a line on a node's console, of those it printed since it was last switched off."""
        self.until(f"{text!r} on the console", lambda: text in self.since_off(name), name)

    # What is installed

    def boot_node(self, name: str) -> BootNode:
        """Return a node as provisioning sees it."""
        return boot_node(next(entry for entry in self.cluster.slice("boot") if entry["name"] == name))

    @property
    def server_address(self) -> str:
        """The server's address on the management network."""
        return str(self.cluster.node(SERVER)["addresses"]["management"])

    def installer(self, name: str) -> boot.Installer:
        """Return the installer of the server: files that stand for it."""
        tree = f"http://{self.server_address}/images/tree"
        return boot.Installer(f"{tree}/vmlinuz", f"{tree}/initrd.img", f"inst.stage2={tree} ip=dhcp console=hvc0")

    def serve_installer(self) -> None:
        """Lay down what stands for kernel, initrd, second stage and iPXE."""
        tree = "/srv/images/www/tree"
        self.on(
            SERVER,
            f"set -e; mkdir -p {tree}/LiveOS {tree}/images/pxeboot {tree}/ppc/ppc64; cd {tree}; "
            "for file in vmlinuz initrd.img images/pxeboot/vmlinuz images/pxeboot/initrd.img ppc/ppc64/vmlinuz "
            "ppc/ppc64/initrd.img LiveOS/squashfs.img; do echo 'stands for the installer' >$file; done; "
            "echo 'stands for iPXE' >/var/lib/tftpboot/undionly.kpxe",
        )

    def kickstart(self, name: str, source: Source, token: Token) -> str:
        """Return the kickstart file of a node."""
        server = Server(f"https://{self.server_address}:8481", (STATE / "ca/tls_ca.pem").read_text())
        place = Place("management", "255.255.255.0")
        return kickstart(self.boot_node(name), place, source, server, token, virtual=True)

    def arm(self, name: str, source: Source, what: str) -> Token:
        """Arm a node; its order goes through a pipe."""
        token = issue(time.time(), 3600)
        server = f"http://{self.server_address}:8480"
        text = self.kickstart(name, source, token)
        order = boot.order(self.boot_node(name), "management", what, self.installer(name), server, text, token)
        assert "armed until" in self.on(SERVER, f"hal-provision arm {name}", json.dumps(order).encode())
        return token

    def spool(self, name: str) -> str:
        """Put a node's first secrets there: a new host key with its certificate. Return the key's fingerprint."""
        archive, fingerprint = first_secrets(self.boot_node(name), "management", STATE / "ca")
        assert "its secrets wait" in self.on(SERVER, f"hal-provision spool {name}", archive)
        return fingerprint

    def host_key(self, name: str) -> str:
        """Return the fingerprint of the host key that a node shows."""
        address = self.cluster.node(name)["addresses"]["management"]
        scanned = capture(["ssh-keyscan", "-t", "ed25519", address])
        return capture(["ssh-keygen", "-l", "-f", "-"], stdin=scanned.encode()).split()[1]

    def root_tar(self, name: str) -> Path:
        """Return a tar of the node's image with the kernel that the model declares for it."""
        node = self.boot_node(name)
        made = self.work / "root.tar"
        mine = f"--filter=name=^{self.instance}-{name}$"
        image = capture([PODMAN, "ps", "--all", mine, "--format={{.Image}}"]).strip()
        # What podman mounts in a container does not belong to the image.
        places = ("dev", "proc", "run/*", "sys", "tmp/*", "etc/hostname", "etc/hosts", "etc/resolv.conf")
        leave = " ".join(f"--exclude='./{place}'" for place in places)
        script = (
            "cat >/tmp/kernel.rpm; rpm --install --force-debian --nosignature /tmp/kernel.rpm >&2; "
            f"exec tar --one-file-system --anchored {leave} --numeric-owner --acls --xattrs -C / -cf - ."
        )
        label = f"--label={nodes.LABEL}={self.instance}"
        command = [str(PODMAN), "run", "--rm", "--interactive", "--network=none", label, image, "sh", "-ec", script]
        with made.open("wb") as out:
            rpm = kernel.package(str(node.kernel), node.arch)
            done = subprocess.run(command, input=rpm, stdout=out, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return made

    def seal(self, name: str, version: str) -> Path:
        """Return the folder of a signed image, made by the program."""
        node = self.boot_node(name)
        packages = self.work / "packages.txt"
        packages.write_text("bash-4.2\n")
        command = [
            sys.executable,
            "-m",
            "hal_cluster.provision",
            "seal",
            str(self.root_tar(name)),
            "--into",
            str(self.work),
        ]
        command += ["--key", str(self.image_key), "--name", "compute", "--version", version]
        command += ["--arch", node.arch, "--kernel", str(node.kernel), "--packages", str(packages)]
        return Path(capture(command).strip())

    def bring(self, image: Path, name: str = "") -> str:
        """Bring an image's folder to the server, beside the published ones; return where it is."""
        incoming = f"/srv/images/www/.incoming/{name or image.name}"
        self.on(SERVER, f"rm -rf {incoming}; mkdir -p {incoming}")
        capture([PODMAN, "cp", f"{image}/.", f"{self.instance}-{SERVER}:{incoming}"])
        self.on(SERVER, f"chown -R root:root {incoming}")
        return incoming

    def source(self, image: Path) -> Source:
        """Return an image as a kickstart file names it."""
        signed = images.signed(image, self.image_key.with_suffix(".pem"))
        return Source(image=signed, image_url=f"http://{self.server_address}/images/{image.name}")

    def configurations(self) -> str:
        """Return what the server has of all nodes: leases, options, and what they boot as a rule."""
        return self.on(SERVER, "cd /etc/hal && sha256sum provision-nodes/* dnsmasq-hosts/* dnsmasq-options/*")


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
