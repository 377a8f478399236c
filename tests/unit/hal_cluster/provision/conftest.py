"""Nodes and a server for the tests of provisioning, and a private network in which a real dnsmasq answers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[4]
for _folder in (
    PROJECT,
    PROJECT / "molecule/virtual_hal",
    PROJECT / "roles/provision_server/files",
    PROJECT / "plugins/module_utils",
):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

from hal_cluster.provision.dhcp import Served, Server  # noqa: E402  found through the lines above
from hal_cluster.provision.images import make_key  # noqa: E402
from hal_cluster.provision.nodes import BootNode, boot_node  # noqa: E402

URL = "http://10.1.0.11:8480/boot/"
START_SECONDS = 600  # for a program that serves in a second; a loaded machine is no fault


def node(name: str = "hal05", at: int = 5, **changes: Any) -> BootNode:
    data: dict[str, Any] = {
        "name": name,
        "fqdn": f"{name}.hal.example",
        "arch": "ppc64le",
        "macs": {"management": f"02:48:41:4c:02:{at:02x}", "bmc": f"02:48:41:4c:03:{at:02x}"},
        "addresses": {"management": f"10.1.0.{100 + at}", "bmc": f"10.1.1.{100 + at}", "ipoib": f"10.1.2.{100 + at}"},
        "disk": f"0x50248414c05{at:01x}0001",
        "disks": {"system": f"0x50248414c05{at:01x}0001", "scratch": f"0x50248414c05{at:01x}0002"},
        "profile": "ac922",
        "reimage": "allowed",
        "kernel": "4.18.0-80.7.2.el7",
    }
    return boot_node(data | changes)


def run_script(
    text: str, folder: Path, timeout: float | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Let a shell run a script of a kickstart file from a file, as Anaconda does: what it starts cannot read its text.

    `folder`: where it is written, and where programs are looked for first.
    """
    path = folder / "script"
    path.write_text(text)
    found = {"PATH": f"{folder}:/usr/bin:/bin", **environment}
    return subprocess.run(
        ["sh", str(path)],
        stdin=subprocess.DEVNULL,
        text=True,
        capture_output=True,
        check=False,
        env=found,
        timeout=timeout,
    )


def server(folder: Path, interface: str = "eno1", **changes: Any) -> Server:
    given: dict[str, Any] = {
        "networks": [Served("management", interface, "10.1.0.0/24")],
        "boot_network": "management",
        "domain": "hal.example",
        "url": URL,
        "hosts_dir": str(folder / "hosts"),
        "options_dir": str(folder / "options"),
        "tftp_root": str(folder / "tftp"),
        "lease_file": str(folder / "leases"),
    }
    return Server(**(given | changes))


class Wire:
    """Two network namespaces with a cable between them: dnsmasq in one, the client in the other.

    Two, because a kernel drops what comes in from an address that is its own. Who is not root is root of a user
    namespace, which both are in.
    """

    def __init__(self, root: bool) -> None:
        self._holders: dict[str, subprocess.Popen[str]] = {}
        self._user: list[str] = []
        self._servers: list[subprocess.Popen[bytes]] = []
        try:
            self._hold("server", [] if root else ["--user", "--map-root-user"])
            if not root:
                user = f"--user=/proc/{self._holders['server'].pid}/ns/user"
                self._user = ["nsenter", "--preserve-credentials", user]
            self._hold("client", [])
        except AssertionError:
            self.close()
            raise

    def _hold(self, end: str, more: list[str]) -> None:
        argv = [*self._user, "unshare", *more, "--net", "sh", "-c", "echo ready; exec sleep 3600"]
        made = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert made.stdout is not None
        assert made.stderr is not None
        self._holders[end] = made
        assert made.stdout.readline(), made.stderr.read()

    def _enter(self, end: str) -> list[str]:
        return [*(self._user or ["nsenter"]), f"--net=/proc/{self._holders[end].pid}/ns/net", "--"]

    def inside(self, end: str, *argv: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._enter(end), *argv], capture_output=True, text=True, check=False, timeout=600, **more
        )

    def lay(self) -> None:
        for end, line in (
            ("server", f"ip link add srv0 type veth peer name cli0 netns {self._holders['client'].pid}"),
            ("server", "ip address add 10.1.0.11/24 dev srv0"),
            ("server", "ip link set srv0 up"),
            ("client", "ip link set cli0 up"),
        ):
            done = self.inside(end, *line.split())
            if done.returncode:
                pytest.skip(f"no network namespace of its own here: {line}: {done.stderr.strip()}")

    def serve(self, conf: Path, log: Path) -> None:
        """Start dnsmasq and wait until it says that it serves."""
        # --no-daemon: it stays who it is, which may be nobody's root. LC_ALL: what it says is compared.
        argv = [*self._enter("server"), "dnsmasq", "--no-daemon", f"--conf-file={conf}"]
        argv += [f"--log-facility={log}", "--pid-file="]
        said = log.with_name(f"{log.name}.err")
        with said.open("w") as errors:
            started = subprocess.Popen(
                argv, stdout=subprocess.DEVNULL, stderr=errors, env={**os.environ, "LC_ALL": "C"}
            )
        self._servers.append(started)
        end = time.monotonic() + START_SECONDS
        while "DHCP, static leases only" not in (log.read_text() if log.exists() else ""):
            if started.poll() is not None:
                raise AssertionError(f"dnsmasq ended: {said.read_text()}\n{log.read_text() if log.exists() else ''}")
            if time.monotonic() > end:
                raise AssertionError(f"dnsmasq does not serve: {log.read_text() if log.exists() else 'no log'}")
            time.sleep(0.05)

    def ask(self, mac: str, *words: str) -> dict[str, Any] | None:
        """Ask as the client does; what it got, as data."""
        program = (
            "import json, sys\n"
            "from dataclasses import asdict\n"
            "from bmc.dhcp_client import ask\n"
            "mac, arch, user_class = sys.argv[1], int(sys.argv[2]), sys.argv[3]\n"
            "got = ask('cli0', mac, arch=arch, user_class=user_class, seconds=(0.7, 1.5))\n"
            "print(json.dumps(got and {**asdict(got.lease()), 'raw': sorted(got.options)}))\n"
        )
        arch, user_class = (*words, *("14", "")[len(words) :])
        environment = {**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'molecule/virtual_hal'}"}
        done = self.inside("client", sys.executable, "-c", program, mac, arch, user_class, env=environment)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] | None = json.loads(done.stdout)
        return found

    def close(self) -> None:
        running: list[subprocess.Popen[Any]] = [*self._servers, *self._holders.values()]
        for one in running:
            one.send_signal(signal.SIGTERM)
        for one in running:
            one.wait(timeout=600)


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A cable of the test's own; skipped where this machine cannot have one."""
    for program in ("dnsmasq", "unshare", "nsenter", "ip"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    try:
        made = Wire(root=os.geteuid() == 0)
    except AssertionError as error:
        pytest.skip(f"no network namespace of its own here: {error}")
    try:
        made.lay()
        yield made
    finally:
        made.close()


def write_all(files: dict[str, str], folders: Sequence[str] = ()) -> None:
    for folder in folders:
        Path(folder).mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        Path(path).write_text(text)


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The private key that images are signed with."""
    path = tmp_path_factory.mktemp("keys") / "image_key"
    assert make_key(path)
    return path
