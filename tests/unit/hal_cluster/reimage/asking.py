"""hal_cluster.reimage.command asked as playbooks/reimage.yml asks: HAL's model, images in a folder, a site in memory.

What the server keeps of images is read by its real program; machines, Slurm and records are of ``fakes``.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hal_cluster.reimage.asked import Asked, Connected
from hal_cluster.reimage.command import Result, reimage
from hal_cluster.reimage.record import record_of
from hal_cluster.reimage.remote import Done
from hal_cluster.reimage.world import World
from hal_inventory.compiled import Compiled
from hal_inventory.packed import host_vars
from tests.unit.hal_cluster.reimage.fakes import Site
from tests.unit.interpreters import beside

ROOT = Path(__file__).resolve().parents[4]
FILES = ROOT / "roles/provision_server/files"
PROGRAMS = {"hal-provision": "provision_cli.py", "hal-reimage": "reimage_cli.py"}
LOOKS = {
    "store.read",
    "slurm.see",
    "slurm.check_floors",
    "slurm.check_job_user",
    "bmc.identify",
    "bmc.is_on",
    "provision.see",
}
"""Calls of the engine's parts that change nothing."""


class Server:
    """Runs commands where the server's programs are, with a folder of a test's."""

    def __init__(self, settings: Path) -> None:
        self.settings, self.asked = settings, list[tuple[str, ...]]()
        self.says: dict[tuple[str, ...], Done] = {}

    def __call__(self, argv: Sequence[str], stdin: bytes = b"", /) -> Done:
        self.asked.append(tuple(argv))
        for words, answer in self.says.items():
            if tuple(argv[: len(words)]) == words:
                return answer
        if argv[0] in PROGRAMS:
            program = [*beside(sys.executable), str(FILES / PROGRAMS[argv[0]])]
            argv = [*program, "--settings", str(self.settings), *argv[1:]]
        done = subprocess.run(argv, input=stdin, capture_output=True, check=False, timeout=600)
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


class OneAtATime:
    """A part of a world, which several threads ask."""

    def __init__(self, part: object, lock: threading.RLock) -> None:
        self._part, self._lock = part, lock

    def __getattr__(self, name: str) -> Callable[..., object]:
        asked = getattr(self._part, name)

        def call(*arguments: object) -> object:
            with self._lock:
                return asked(*arguments)

        return call


def one_at_a_time(world: World) -> World:
    """Return a world whose parts may be asked by several threads."""
    lock = threading.RLock()
    parts = (world.store, world.slurm, world.bmc, world.provision, world.nodes, world.rollout)
    return World(*(OneAtATime(part, lock) for part in parts))  # type: ignore[arg-type]


class Desk:
    """Where an administrator asks. ``server``: the site's, with its images; ``said``: what was shown meanwhile."""

    def __init__(self, folder: Path, server: Server, authority: Path, key: Path, *names: str) -> None:
        self.folder, self.server, self.authority, self.key = folder, server, authority, key
        self.site = Site(*names)
        self.site.call = self._passes
        self.said: list[str] = []
        # None: what Ansible connects to.
        self.world: Callable[[], World | None] = lambda: one_at_a_time(self.site.world())
        self.model()

    def _passes(self, when: str, what: str, node: str) -> None:
        """Time passes with each look at a record, and what a first record says was confirmed."""
        if (when, what) == ("before", "store.read"):
            self.site.pass_time(60)
        if (when, what) == ("after", "store.write") and self.site.records[node]["step"] == "waiting":
            self.site.confirmed[node] = record_of(self.site.records[node]).plan

    def model(self, *changes: tuple[str, str], virtual: bool = True) -> None:
        """Have HAL's model, changed."""
        text = (ROOT / "inventory/hal/cluster.yml").read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (self.folder / "cluster.yml").write_text(text)
        (self.folder / "hal.yml").write_text(f"plugin: hal\ncluster: cluster.yml\nvirtual: {str(virtual).lower()}\n")

    def ask(self, nodes: str, code: str = "", *, check: bool = False, **settings: Any) -> Result:
        """Ask for a reimage; ``settings`` other than playbooks/reimage.yml's own."""
        source = self.folder / "hal.yml"
        variables = host_vars(Compiled(source).inventory())
        asked = Asked(nodes, code, self.settings() | settings, check, "root@here")
        connected = Connected(
            sources=[str(source)],
            variable=lambda host, name: variables.get(host, {}).get(name),
            run_on=lambda host, fresh=False: self.server,
            program=["ansible-playbook"],
            environment={},
            extra={},
            project=ROOT,
            say=self.said.append,
        )
        return reimage(asked, connected, self.world())

    def settings(self) -> dict[str, Any]:
        """Return settings as the playbook gives them: what came from Jinja may be text."""
        return {
            "image": "", "wipe": [], "max_parallel": "1", "keep": {}, "go_on": False, "by_slurm": False,
            "next_state": "RESUME", "playbook": "site.yml", "gates": "gates.yml", "poll_seconds": "0.001",
            "together_seconds": "0", "limits": {"drain": "172800", "begin": "1800", "install": "3600"},
            "job_command": "true", "job_user": "alice", "job_run_seconds": "300", "server": "hal-mgmt1",
            "controllers": ["hal-login"], "network": "management", "port": 8480, "tls_port": 8481,
            "images_folder": str(self.folder / "images"), "image_key": str(self.key),
            "installers": {"ppc64le": "centos-7.7-power9"}, "append": "", "authority_dir": str(self.authority),
            "root_principals": ["root"], "boot_id_command": "true", "state_dir": str(self.folder / "state"),
            "audit_dir": str(self.folder / "audits"),
            "bmc_wait_seconds": 60, "shut_down_seconds": 600, "on_at_once": 4, "on_pause_seconds": 1,
        }  # fmt: skip

    def changed(self) -> list[str]:
        """Return the calls that were more than a look."""
        return [one for one in self.site.told if one.split()[0] not in LOOKS]
