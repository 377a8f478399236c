"""Make and remove the containers of an instance of the virtual cluster.

A program instead of containers.podman modules in a loop: 22 nodes take a fifth of the time, host keys can be signed
on the way, and each step can be tested without Ansible.
"""

from __future__ import annotations

import hashlib
import io
import ipaddress
import json
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from testbed import bmcs, fabric, gpus, kernel, machines, scale
from testbed.bmcs import Bmc, Bmcs
from testbed.bridges import remove_abandoned
from testbed.cache import locked
from testbed.errors import VirtualNodesError
from testbed.fabric import Fabric
from testbed.machines import Machines
from testbed.run import PODMAN, as_root, capture, need
from testbed.scale import Machine, Scale

LABEL = "hal.virtual"
# Names are in /etc/hosts, as an installer leaves them: podman's name server stops answering for all networks whenever a
# container of one of them starts or ends (aardvark-dns issue 389).
NO_DNS = "127.0.0.1"
INTERFACES = {"management": "eth0", "ipoib": "ib0"}
# SYS_ADMIN: nodes mount file systems, those of programs through /dev/fuse. /proc/sys and /sys stay read-only.
# DAC_READ_SEARCH: an NFS server finds files by their handles.
CAPABILITIES = "DAC_READ_SEARCH,MKNOD,NET_ADMIN,NET_RAW,SYS_ADMIN,SYS_NICE,AUDIT_WRITE"
# A folder of a node that is on no overlay: an exported one has to be on a file system that knows files by handles.
DISK = "/var/lib/virtual-node/disk"
AUTOFS = Path("/dev/autofs")
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
APPARMOR = Path("/sys/module/apparmor/parameters/enabled")
OLDEST_PODMAN = 4
LEASES = Path("/run/containers/networks/ipam.db")  # which container has which address, of all podman networks
READY_SECONDS = 400  # a node that was rolled out waits for its file systems first
# Each systemd and dbus watches files; the kernel limits that per user, and its default of 128 ends at some 40 nodes.
WATCHES = Path("/proc/sys/fs/inotify/max_user_instances")
WATCHES_NEEDED = 1024
WORKERS = 4
REMOVALS = 5  # tries


class Node(BaseModel):
    """What of `hal_node` a container is made from; the rest of it is ignored here."""

    model_config = ConfigDict(frozen=True)

    name: str
    fqdn: str
    arch: str
    kernel: str
    addresses: dict[str, str]
    macs: dict[str, str] = {}
    gpus: tuple[dict[str, Any], ...] = ()
    numa: tuple[dict[str, Any], ...] = ()
    gpu_uuids: dict[str, str] = {}
    disks: dict[str, str] = {}
    serial: str | None = None  # a placeholder of the model
    model: str = ""
    memory_mb: int = 0
    cpus: dict[str, Any] = {}
    bmc: Bmc | None = None


class Network(BaseModel):
    """What of a model network is needed."""

    model_config = ConfigDict(frozen=True)

    cidr: str


class Plan(BaseModel):
    """Everything that create needs: instance name, image, packages, the site's keys, networks and nodes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    instance: str
    image: str
    packages: Path
    authorities: Path
    networks: dict[str, Network]
    nodes: tuple[Node, ...]
    fabric: Fabric = Fabric()
    scale: Scale = Scale()
    machines: Machines = Machines()
    bmcs: Bmcs = Bmcs()

    def image_of(self, node: Node) -> str:
        """The image of the node's container."""
        return self.machines.image if node.name in self.machines.nodes else self.image

    @property
    def fabric_address(self) -> str:
        """The address, on the management network, of the container that emulates the fabric."""
        return fabric.address(self.networks["management"].cidr, (node.addresses["management"] for node in self.nodes))

    @property
    def bmc_network(self) -> str | None:
        """The network of the emulated BMCs; None when the instance has none."""
        if not self.bmcs.enabled:
            return None
        for node in self.nodes:
            for name, address in node.addresses.items():
                if node.bmc is not None and address == node.bmc.address and name in self.networks:
                    return name
        return None

    def bmc_specs(self) -> list[dict[str, Any]]:
        """Return the BMCs of the nodes, as molecule/virtual_hal/bmc/spec.py reads them."""
        return [
            {
                "name": node.name,
                "kind": node.bmc.kind,
                "address": node.bmc.address,
                "serial": node.serial or "",
                "model": node.model,
                "memory_mb": node.memory_mb,
                "cpus": node.cpus.get("total", 1),
                "gpus": len(node.gpus),
                "macs": node.macs,
                "boot": self.boot_spec(node),
            }
            for node in self.nodes
            if node.bmc is not None
        ]

    def boot_spec(self, node: Node) -> dict[str, Any] | None:
        """Return how a node boots over the network; None for one that cannot, as a virtual machine."""
        if node.name in self.machines.nodes or "management" not in self.networks or "management" not in node.macs:
            return None
        return {
            "arch": node.arch,
            "kernel": node.kernel,
            "image": self.image,
            "network": f"{self.instance}-management",
            "address": node.addresses["management"],
            "disks": node.disks,
        }

    def fabric_files(self) -> dict[str, tuple[int, bytes]]:
        """Return the files of the container that emulates the fabric."""
        return fabric.files(self.fabric, (node.name for node in self.nodes), self.fabric_address)

    def scale_cluster(self) -> dict[str, Any]:
        """Return the cluster that the arrays begin with."""
        used = [self.fabric_address, *(node.addresses["management"] for node in self.nodes)]
        addresses = scale.array_addresses(self.scale.arrays, self.networks["management"].cidr, used)
        admins = [member(node) for node in self.nodes if node.name in self.scale.admins]
        return scale.cluster(self.scale, self.nodes[0].fqdn.partition(".")[2], addresses, admins)


def member(node: Node) -> Machine:
    """Return by which name and address a node is in the cluster of Spectrum Scale."""
    return Machine(name=node.fqdn, address=node.addresses["management"])


def read_plan(text: str) -> Plan:
    """Return the plan in a JSON document; raise VirtualNodesError that names the field that is wrong."""
    try:
        plan = Plan.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"])) or "the document"
        raise VirtualNodesError(f"plan of the nodes: {where}: {problem['msg']}") from None
    if not plan.nodes:
        raise VirtualNodesError("plan of the nodes: nodes: there are none, so nothing would be made")
    for node in plan.nodes:
        if "management" not in node.addresses:
            raise VirtualNodesError(f"plan of the nodes: {node.name}: has no management address")
        for name in attached(plan, node):
            if ipaddress.ip_address(node.addresses[name]) not in ipaddress.ip_network(plan.networks[name].cidr):
                raise VirtualNodesError(
                    f"plan of the nodes: {node.name}: {node.addresses[name]} is not in {name} "
                    f"{plan.networks[name].cidr}"
                )
    if plan.bmcs.enabled and plan.bmc_network is None:
        raise VirtualNodesError("plan of the nodes: bmcs: no node has a BMC with an address in a network of the plan")
    for node in plan.nodes if plan.bmc_network else ():
        network = ipaddress.ip_network(plan.networks[str(plan.bmc_network)].cidr)
        if node.bmc is not None and ipaddress.ip_address(node.bmc.address) not in network:
            raise VirtualNodesError(
                f"plan of the nodes: {node.name}: its BMC's {node.bmc.address} is not in {plan.bmc_network} {network}"
            )
    return plan


def attached(plan: Plan, node: Node) -> list[str]:
    """Return the networks that the node's container is on, management first."""
    return [name for name in INTERFACES if name in plan.networks and name in node.addresses]


def gateway(plan: Plan, name: str) -> str:
    """Return an address of the network that no node has: this machine's own."""
    used = {node.addresses.get(name) for node in plan.nodes}
    for address in ipaddress.ip_network(plan.networks[name].cidr).hosts():
        if str(address) not in used:
            return str(address)
    raise VirtualNodesError(f"network {name}: no address is left for this machine")


def container_options(plan: Plan, node: Node) -> list[str]:
    """Return the options of `podman create` for a node."""
    options = [
        f"--name={plan.instance}-{node.name}",
        f"--hostname={node.name}",
        "--no-hosts",
        f"--label={LABEL}={plan.instance}",
        f"--label=hal.node={node.name}",
        f"--mount=type=bind,source={plan.packages},destination=/srv/hal-packages,ro=true",
        f"--dns={NO_DNS}",
        f"--dns-search={node.fqdn.partition('.')[2] or '.'}",
    ]
    machine = node.name in plan.machines.nodes
    options += machines.options(plan.machines, node.disks) if machine else _container_devices(node)
    if APPARMOR.exists() and APPARMOR.read_text().strip() == "Y":
        options.append("--security-opt=apparmor=unconfined")  # its profile for containers forbids writing /proc/sys/net
    if plan.scale.reaches(node.name):
        options.append(f"--volume={scale.volume(plan.instance)}:{scale.FOLDER}")
    for name in attached(plan, node):
        parts = [f"ip={node.addresses[name]}", f"interface_name={INTERFACES[name]}"]
        if name in node.macs:
            parts.append(f"mac={node.macs[name]}")
        options.append(f"--network={plan.instance}-{name}:{','.join(parts)}")
    return options


def _container_devices(node: Node) -> list[str]:
    """Return the options that make a container do for a machine: systemd, capabilities, devices."""
    return [
        "--systemd=always",
        "--tmpfs=/run:mode=755,nosuid,nodev",  # as systemd has it; podman's own is for all to write to
        f"--cap-add={CAPABILITIES}",
        "--device=/dev/fuse",
        *([f"--device={AUTOFS}"] if AUTOFS.exists() else []),  # systemd's automounts
        f"--volume={DISK}",
        # Each container sees its own network settings here, and may change them; the rest of /proc/sys is the host's.
        "--volume=/proc/sys/net:/proc/sys/net",
        # Programs may open the node's GPUs, each by a rule of its own: Slurm takes single ones away from jobs.
        *(f"--device-cgroup-rule=c {gpus.MAJOR}:{minor} rwm" for minor in gpus.minors(len(node.gpus))),
    ]


def definition(plan: Plan, node: Node) -> str:
    """Return a hash that changes when the container would be made differently."""
    in_fabric = fabric.node_file(plan.fabric, node.name, plan.fabric_address)
    hardware = [
        list(node.gpus),
        node.kernel,
        node.arch,
        in_fabric,
        node.fqdn if plan.scale.reaches(node.name) else None,
    ]
    text = json.dumps([plan.image_of(node), hardware, container_options(plan, node)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def create(plan: Plan) -> list[str]:
    """Make and start what is not there yet; return the names of the containers made. All answer on SSH at return."""
    need("ssh-keygen", "openssh-client")
    need("ip", "iproute2")
    _check_podman()
    if int(WATCHES.read_text()) < WATCHES_NEEDED:
        capture(as_root(["sh", "-c", f"echo {WATCHES_NEEDED} > {WATCHES}"]))
    with locked("nodes"):
        forwarding = FORWARDING.read_text().strip()
        try:
            return _create(plan)
        finally:
            # netavark switches routing on, which nothing here needs: the networks are internal.
            if forwarding == "0" and FORWARDING.read_text().strip() != "0":
                capture(as_root(["sh", "-c", f"echo 0 > {FORWARDING}"]))


def _create(plan: Plan) -> list[str]:
    present = _containers(plan.instance)
    for node in plan.nodes:
        known = present.get(node.name)
        if known and known["definition"] != definition(plan, node):
            raise VirtualNodesError(
                f"{plan.instance}-{node.name} was made from another image, repository or model: "
                "destroy the virtual nodes first"
            )
    if not capture([PODMAN, "ps", "--quiet"]).strip():
        # podman gives back an address when a container stops; those of a killed run would be taken until the next boot.
        capture(as_root(["rm", "-f", str(LEASES)]))
    for name in plan.networks:
        if name in INTERFACES:
            _network(plan, name)
    started = _fabric(plan, present.get(fabric.NAME))
    _scale(plan)
    missing = [node for node in plan.nodes if node.name not in present]
    stopped = [node.name for node in plan.nodes if node.name in present and present[node.name]["state"] != "running"]
    off = bmcs.kept_off(plan.instance, stopped)
    stopped = [name for name in stopped if name not in off]
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        list(pool.map(lambda node: _make(plan, node), missing))
    start = [f"{plan.instance}-{name}" for name in [*stopped, *(node.name for node in missing)]]
    if start:
        capture([PODMAN, "start", *start])
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        begun = [node for node in plan.nodes if f"{plan.instance}-{node.name}" in start]
        list(pool.map(lambda node: _wait(plan, node), begun))
    started += _bmcs(plan, present.get(bmcs.NAME))
    return [*started, *(f"{plan.instance}-{node.name}" for node in missing)]


def _fabric(plan: Plan, known: Mapping[str, str] | None) -> list[str]:
    """Make and start the container that emulates the fabric, where the model has one; return its name when made."""
    if not plan.fabric.cables:
        return []
    name = f"{plan.instance}-{fabric.NAME}"
    options = fabric.options(plan.instance, LABEL, str(plan.packages), plan.fabric_address)
    files = plan.fabric_files()
    parts = [plan.image, *options, *(content.hex() for _, content in files.values())]
    made_from = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    if known is not None and known["definition"] != made_from:
        # A node more, say. It keeps nothing that would be lost; an opensm that runs has to be started again.
        capture([PODMAN, "rm", "--force", "--time=0", "--volumes", name])
        known = None
    if known is None:
        _container(name, [*options, f"--label=hal.definition={made_from}", plan.image, *fabric.COMMAND], files)
    if known is None or known["state"] != "running":
        capture([PODMAN, "start", name])
    return [] if known else [name]


def _bmcs(plan: Plan, known: Mapping[str, str] | None) -> list[str]:
    """Make and start the container that owns the BMCs' addresses, and serve them; return its name when made."""
    network, specs = plan.bmc_network, plan.bmc_specs()
    if network is None:
        return []
    _network(plan, network)
    name, cidr = f"{plan.instance}-{bmcs.NAME}", plan.networks[network].cidr
    addresses = [spec["address"] for spec in specs]
    own = bmcs.address(cidr, [*addresses, gateway(plan, network)])
    options = bmcs.options(plan.instance, LABEL, network, own)
    told = bmcs.fleet(plan.instance, specs)
    made_from = hashlib.sha256(json.dumps([plan.image, options, told]).encode()).hexdigest()[:16]
    if known is not None and (known["definition"] != made_from or known["state"] != "running"):
        # As when a node was added. What the BMCs remember stays.
        capture([PODMAN, "rm", "--force", "--time=0", name])
        known = None
    if known is None:
        bmcs.wait_for_end(plan.instance)  # who served in a container that was removed, by whomever
        capture([PODMAN, "create", *options, f"--label=hal.definition={made_from}", plan.image, *bmcs.COMMAND])
        capture([PODMAN, "start", name])
    if known is None or not bmcs.serving(plan.instance):
        pid = int(capture([PODMAN, "ps", f"--filter=name=^{name}$", "--format={{.Pid}}"]))
        bmcs.start(plan.instance, pid, addresses, cidr, told)
    return [] if known else [name]


def _scale(plan: Plan) -> None:
    """Make the volume that is the arrays of Spectrum Scale, where a node of the instance reaches them."""
    if not any(plan.scale.reaches(node.name) for node in plan.nodes):
        return
    name, cluster = scale.volume(plan.instance), plan.scale_cluster()
    made_from = hashlib.sha256(json.dumps(cluster).encode()).hexdigest()[:16]
    known = json.loads(capture([PODMAN, "volume", "ls", f"--filter=name=^{name}$", "--format=json"]) or "[]") or []
    if known:
        if known[0]["Labels"].get("hal.definition") != made_from:
            raise VirtualNodesError(f"{name} was made from another model: destroy the virtual nodes first")
        return
    capture(
        [PODMAN, "volume", "create", f"--label={LABEL}={plan.instance}", f"--label=hal.definition={made_from}", name]
    )
    try:
        homes, owners = scale.homes(plan.scale)
        files = {**scale.files(cluster), **homes}
        capture([PODMAN, "volume", "import", name, "-"], stdin=_archive(files, owners))
    except BaseException:
        subprocess.run([PODMAN, "volume", "rm", name], capture_output=True, check=False)
        raise


def _check_podman() -> None:
    """Raise VirtualNodesError when podman is too old for an address on each network, or cannot set networks up."""
    version = capture([PODMAN, "--version"]).split()[-1]
    if int(version.partition(".")[0]) < OLDEST_PODMAN:
        raise VirtualNodesError(f"podman {version} is too old: {OLDEST_PODMAN}.0 or later (Debian 12, Ubuntu 24.04)")
    if not any(
        Path(folder, "iptables").exists() or Path(folder, "nft").exists()
        for folder in ("/usr/sbin", "/sbin", "/usr/bin")
    ):
        raise VirtualNodesError("podman's networks need iptables: apt install iptables")


def _containers(instance: str) -> dict[str, dict[str, str]]:
    """Return state and definition of an instance's containers by node name."""
    text = capture([PODMAN, "ps", "--all", f"--filter=label={LABEL}={instance}", "--format=json"])
    listed = json.loads(text or "[]") or []
    return {
        entry["Labels"]["hal.node"]: {
            "state": entry["State"],
            "id": entry["Id"],
            "definition": entry["Labels"].get("hal.definition", ""),
        }
        for entry in listed
        if "hal.node" in entry["Labels"]
    }


def _network(plan: Plan, name: str) -> None:
    full = f"{plan.instance}-{name}"
    if subprocess.run([PODMAN, "network", "exists", full], check=False).returncode == 0:
        return
    remove_abandoned(plan.networks[name].cidr)
    capture(
        [
            PODMAN,
            "network",
            "create",
            "--internal",
            "--disable-dns",
            f"--label={LABEL}={plan.instance}",
            f"--subnet={plan.networks[name].cidr}",
            f"--gateway={gateway(plan, name)}",
            full,
        ]
    )


def _make(plan: Plan, node: Node) -> None:
    """Make one container with its host key and certificate in it, as an installer would leave them."""
    options = [*container_options(plan, node), f"--label=hal.definition={definition(plan, node)}", plan.image_of(node)]
    files = _files(plan, node)
    if node.name in plan.machines.nodes:
        # Into the machine, when it first starts.
        files = {"vm/seed/files.tar": (0o600, _archive({"etc/hostname": (0o644, f"{node.name}\n".encode()), **files}))}
    _container(f"{plan.instance}-{node.name}", options, files)


def _container(name: str, options: Sequence[str], files: Mapping[str, tuple[int, bytes]]) -> None:
    """Make a container with these files in it, or leave none behind."""
    capture([PODMAN, "create", *options])
    try:
        capture([PODMAN, "cp", "-", f"{name}:/"], stdin=_archive(files))
    except BaseException:
        # Without its keys a node would start, and then be refused by ssh: the next create must make it again.
        subprocess.run([PODMAN, "rm", "--force", "--volumes", name], capture_output=True, check=False)
        raise


def _files(plan: Plan, node: Node) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of the files an installed node has and the image does not, by path."""
    with tempfile.TemporaryDirectory(prefix="hal-host-key-") as folder:
        key = Path(folder) / "ssh_host_ed25519_key"
        capture(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", node.name, "-f", key])
        principals = ",".join([node.name, node.fqdn, node.addresses["management"]])
        capture(
            [
                "ssh-keygen",
                "-q",
                "-s",
                plan.authorities / "host_ca",
                "-I",
                node.fqdn,
                "-h",
                "-n",
                principals,
                f"{key}.pub",
            ]
        )
        files = {
            "etc/ssh/ssh_host_ed25519_key": (0o600, key.read_bytes()),
            "etc/ssh/ssh_host_ed25519_key.pub": (0o644, key.with_suffix(".pub").read_bytes()),
            "etc/ssh/ssh_host_ed25519_key-cert.pub": (0o644, Path(f"{key}-cert.pub").read_bytes()),
        }
    files["etc/hosts"] = (0o644, hosts(plan).encode())
    files |= kernel.files(node.kernel, node.arch)
    files["etc/ssh/user_ca.pub"] = (0o644, (plan.authorities / "user_ca.pub").read_bytes())
    files["etc/ssh/sshd_config"] = (0o600, sshd_config().encode())
    files |= gpus.files(_gpus(node), node.arch)
    if plan.bmcs.enabled and node.bmc is not None:
        files |= bmcs.node_files()
    if in_fabric := fabric.node_file(plan.fabric, node.name, plan.fabric_address):
        files[fabric.NODE_FILE] = (0o644, in_fabric.encode())
    if plan.scale.reaches(node.name):
        files[scale.NODE_FILE] = (0o644, scale.node_file(member(node)))
    return files


def hosts(plan: Plan) -> str:
    """Return the /etc/hosts of an installed node: the names of all nodes."""
    nodes = (f"{node.addresses['management']} {node.fqdn} {node.name}\n" for node in plan.nodes)
    return "".join(["127.0.0.1 localhost\n", "::1 localhost\n", *nodes])


def _gpus(node: Node) -> list[dict[str, Any]]:
    """Return what the node's GPUs are, as its state file has them; the driver's package makes their devices."""
    return gpus.hardware(node.name, node.arch, node.gpus, node.numa, node.gpu_uuids)


def sshd_config() -> str:
    """Return the image's sshd_config with the lines of an installed node: host certificate and user authority."""
    base = (Path(__file__).parent.parent / "image/files/etc/ssh/sshd_config").read_text()
    return base + "HostCertificate /etc/ssh/ssh_host_ed25519_key-cert.pub\nTrustedUserCAKeys /etc/ssh/user_ca.pub\n"


def _archive(files: Mapping[str, tuple[int, bytes]], owners: Mapping[str, tuple[int, int]] | None = None) -> bytes:
    """Return a tar of files; a path that ends in / is a folder, units in it are switched on.

    They belong to root, but for those in ``owners``: numbers of user and group.
    """
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, (mode, content) in files.items():
            entry = tarfile.TarInfo(path)
            entry.mode, entry.size, entry.mtime = mode, len(content), int(time.time())
            entry.type = tarfile.DIRTYPE if path.endswith("/") else tarfile.REGTYPE
            entry.uid, entry.gid = (owners or {}).get(path, (0, 0))
            tar.addfile(entry, io.BytesIO(content))
            if path.startswith("usr/lib/systemd/system/"):
                link = tarfile.TarInfo(f"etc/systemd/system/sysinit.target.wants/{Path(path).name}")
                link.type, link.linkname = tarfile.SYMTYPE, f"/{path}"
                tar.addfile(link)
    return out.getvalue()


def _wait(plan: Plan, node: Node) -> None:
    """Return when sshd answers and systemd has reached its target; raise VirtualNodesError when that takes too long."""
    address, end = node.addresses["management"], time.monotonic() + READY_SECONDS
    if node.name in plan.machines.nodes:
        machines.wait(f"{plan.instance}-{node.name}", ssh(plan, node))
        return
    while True:
        try:
            with socket.create_connection((address, 22), timeout=2) as connection:
                if connection.recv(8).startswith(b"SSH-"):
                    break
        except OSError:
            pass
        if time.monotonic() > end:
            name = f"{plan.instance}-{node.name}"
            raise VirtualNodesError(
                f"{name}: no SSH answer from {address} within {READY_SECONDS} s; "
                f"see: {PODMAN} exec {name} journalctl -b"
            )
        time.sleep(0.2)
    name = f"{plan.instance}-{node.name}"
    asked = ["timeout", str(READY_SECONDS), "/usr/bin/systemctl", "is-system-running", "--wait"]
    done = subprocess.run([PODMAN, "exec", name, *asked], capture_output=True, text=True, check=False)
    if done.stdout.strip() != "running":
        raise VirtualNodesError(
            f"{name}: systemd says {done.stdout.strip() or done.stderr.strip()!r}, not running; "
            f"see: {PODMAN} exec {name} systemctl --failed"
        )


def ssh(plan: Plan, node: Node) -> list[str]:
    """Return how the administrator reaches a node, whose host key the site's authority has to have signed."""
    options = {
        "UserKnownHostsFile": plan.authorities.parent / "known_hosts",
        "GlobalKnownHostsFile": "none",
        "StrictHostKeyChecking": "yes",
        "HostKeyAlias": node.name,
        "IdentitiesOnly": "yes",
        "BatchMode": "yes",
        "ConnectTimeout": 5,
        "LogLevel": "ERROR",
    }
    # In quotes: ssh takes a path with a blank for two.
    settings = [f'-o{name}="{value}"' for name, value in options.items()]
    return ["ssh", "-Fnone", *settings, "-i", str(plan.authorities / "admin"), f"root@{node.addresses['management']}"]


def destroy(instance: str) -> list[str]:
    """Remove the instance's containers, their volumes and its networks; return what was removed."""
    with locked("nodes"):
        ids = _remove_containers(instance)
        if bmcs.folder(instance).exists():
            bmcs.wait_for_end(instance)
            ids += _remove_containers(instance)  # firmware that was just being started
        volumes = capture([PODMAN, "volume", "ls", "--quiet", f"--filter=label={LABEL}={instance}"]).split()
        if volumes:
            capture([PODMAN, "volume", "rm", *volumes])
        names = capture([PODMAN, "network", "ls", f"--filter=label={LABEL}={instance}", "--format={{.Name}}"]).split()
        if names:
            capture([PODMAN, "network", "rm", *names])
        states = bmcs.remove(instance)
    return [*ids, *volumes, *names, *states]


def _remove_containers(instance: str) -> list[str]:
    """Remove them; return their ids. Podman 4 and crun fail at times while a container's mounts or cgroup are busy.

    Source: podman issues 9026 and 10454.
    """
    removed: list[str] = []
    for left in reversed(range(REMOVALS)):
        ids = [entry["id"] for entry in _containers(instance).values()]
        removed += [container for container in ids if container not in removed]
        try:
            if ids:
                capture([PODMAN, "rm", "--force", "--time=0", "--volumes", *ids])
            break
        except VirtualNodesError:
            if not left:
                raise
        time.sleep(1)
    return removed


def in_fabric(instance: str, words: Sequence[str]) -> int:
    """Run a command of the emulated fabric; return its exit status."""
    name = f"{instance}-{fabric.NAME}"
    return subprocess.run([PODMAN, "exec", name, "virtual-fabric", *words], check=False).returncode


def instances() -> Sequence[str]:
    """Return the names of all instances that have containers or networks on this machine."""
    label = f'{{{{index .Labels "{LABEL}"}}}}'
    listed = capture([PODMAN, "ps", "--all", f"--filter=label={LABEL}", f"--format={label}"]).split()
    text = capture([PODMAN, "network", "ls", f"--filter=label={LABEL}", "--format=json"])
    listed += [entry["labels"][LABEL] for entry in json.loads(text or "[]") or []]
    listed += capture([PODMAN, "volume", "ls", f"--filter=label={LABEL}", f"--format={label}"]).split()
    return sorted(set(listed))
