"""Nodes of the emulated Spectrum Scale in a folder: the stand-in's files, and programs that play systemd and FUSE."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from testbed import recipes, repository, scale

PACKAGE = repository.RECIPES / "files/gpfs.base"
RECIPE = recipes.load(repository.RECIPES / "recipes.yml")["gpfs.base"]
KERNEL = "4.18.0-80.7.2.el7.ppc64le"
PLAYED = Path(__file__).parent  # systemctl, umount, uname, bindfs


class Node:
    """One node: commands of the stand-in run below its own root, with the arrays that all nodes share."""

    def __init__(self, folder: Path, arrays: Path, name: str, address: str) -> None:
        self.name, self.root, self.arrays, self.address = name, folder / name, arrays, address
        self.listener: subprocess.Popen[bytes] | None = None

    def install(self) -> None:
        """Lay the package's files down, and what a node has from its machine."""
        shutil.copytree(PACKAGE, self.root)
        for path, target in RECIPE.links.items():
            link = self.root / path.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
        for path in (*RECIPE.folders, "/proc/self", "/srv", "/usr/lpp/mmfs/src", f"/lib/modules/{KERNEL}"):
            (self.root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        (self.root / "proc/self/mounts").touch()
        (self.root / "srv/virtual-scale").symlink_to(os.path.relpath(self.arrays, self.root / "srv"))
        (self.root / "usr/libexec/virtual-scale/bindfs").symlink_to(PLAYED / "bindfs")
        identity = self.root / scale.NODE_FILE
        identity.parent.mkdir(parents=True)
        identity.write_bytes(scale.node_file(scale.Machine(name=f"{self.name}.hal.example", address=self.address)))

    def compile(self) -> None:
        """Compile its programs, for who copies it: each command is a process, and a third of it would be that."""
        programs = self.root / "usr/libexec/virtual-scale"
        python = ["/usr/bin/python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
        subprocess.run([*python, programs], check=True)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that put the commands below the root."""
        own = {"VIRTUAL_NODE_ROOT": str(self.root), "VIRTUAL_NODE_NAME": self.name, "KERNEL": KERNEL}
        return {**os.environ, **own, "PATH": f"{PLAYED}:{os.environ['PATH']}", "LC_ALL": "C"}

    def run(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Scale's."""
        program = self.root / "usr/lpp/mmfs/bin" / command
        if command == "virtual-scale":
            program = self.root / "usr/sbin/virtual-scale"
        return subprocess.run(
            [program, *words], env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )

    def ok(self, command: str, *words: str) -> str:
        """Run a command that has to succeed; return its answer."""
        done = self.run(command, *words)
        assert done.returncode == 0, f"{command} {words}: {done.stdout}{done.stderr}"
        return done.stdout

    def fails(self, command: str, *words: str) -> str:
        """Run a command that has to fail; return what it complains of."""
        done = self.run(command, *words)
        assert done.returncode != 0, f"{command} {words}: {done.stdout}"
        return done.stderr

    def table(self, command: str, *words: str, section: str = "") -> list[dict[str, str]]:
        """Return the rows of -Y by the names of their columns."""
        lines = [line.split(":") for line in self.ok(command, *words, "-Y").splitlines()]
        header = next(line for line in lines if line[1] == section and line[2] == "HEADER")
        rows = [line for line in lines if line[1] == section and line[2] != "HEADER"]
        assert all(len(row) == len(header) for row in rows)
        return [dict(zip(header[6:-1], row[6:-1], strict=True)) for row in rows]

    def listen(self) -> None:
        """Answer commands of other nodes, as its socket does."""
        address = self.root / "srv/virtual-scale/nodes" / self.name / "socket"
        address.parent.mkdir(parents=True, exist_ok=True)
        program = self.root / "usr/libexec/virtual-scale/serve"
        self.listener = subprocess.Popen([PLAYED / "listen", address, program], env=self.environment)
        end = time.monotonic() + 60
        while not address.exists():
            assert time.monotonic() < end, "no socket"
            time.sleep(0.02)

    def stop(self) -> None:
        """End every process of the node."""
        if self.listener is not None:
            self.listener.kill()
            self.listener.wait()
        subprocess.run([PLAYED / "systemctl", "kill-all"], env=self.environment, check=True)

    def mounts(self) -> list[str]:
        """The kernel's table of mounts, as the played programs keep it."""
        return (self.root / "proc/self/mounts").read_text().splitlines()


def arrays(folder: Path, mount: Path, admins: tuple[tuple[str, str], ...]) -> Path:
    """Lay the volume down that nodes share, from a model with one file system; return its folder."""
    used = {
        "kind": "spectrum_scale",
        "mount": str(mount),
        "arrays": ["flash1", "flash2"],
        "clients": [],
        "block_size_kb": 1024,
    }
    model = scale.Scale.model_validate({"file_systems": {"home": used}, "admins": [name for name, _ in admins]})
    machines = [scale.Machine(name=f"{name}.hal.example", address=address) for name, address in admins]
    addresses = scale.array_addresses(model.arrays, "10.64.0.0/24", ["10.64.0.254"])
    for path, (_, content) in scale.files(scale.cluster(model, "hal.example", addresses, machines)).items():
        target = folder / path
        if path.endswith("/"):
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.write_bytes(content)
    return folder


def settings(volume: Path) -> dict[str, dict[str, str]]:
    """Return what is set in the shared state."""
    found: dict[str, dict[str, str]] = json.loads((volume / "cluster.json").read_text())["settings"]
    return found
