"""A node in a folder: files below a root, programs that say what a test lets them say, a clock that a test sets.

What is shipped to nodes is imported under the name it has there. What judges answers under
their Pythons, too (alike.py).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.unit.alike import alike

alike(
    "hal_node.audit.changing",
    "hal_node.audit.checks",
    "hal_node.audit.compare",
    "hal_node.audit.databases",
    "hal_node.audit.kept",
    "hal_node.audit.kinds.account",
    "hal_node.audit.kinds.cron",
    "hal_node.audit.kinds.database",
    "hal_node.audit.kinds.file",
    "hal_node.audit.kinds.hostname",
    "hal_node.audit.kinds.kernel_module",
    "hal_node.audit.kinds.kind",
    "hal_node.audit.kinds.line",
    "hal_node.audit.kinds.mount",
    "hal_node.audit.kinds.package",
    "hal_node.audit.kinds.registry",
    "hal_node.audit.kinds.repository",
    "hal_node.audit.kinds.selinux",
    "hal_node.audit.kinds.service",
    "hal_node.audit.kinds.slurm",
    "hal_node.audit.kinds.sysctl",
    "hal_node.audit.merge",
    "hal_node.audit.packages",
    "hal_node.audit.verify",
    but=["monotonic_seconds", "started_at"],  # time goes on
)

from ansible.module_utils.hal_node.audit.look import look  # noqa: E402  found through the lines above
from ansible.module_utils.hal_node.audit.node import Node  # noqa: E402
from ansible.module_utils.hal_node.audit.record import read_content  # noqa: E402
from ansible.module_utils.hal_node.audit.seal import seal  # noqa: E402
from ansible.module_utils.hal_node.expect.process import run  # noqa: E402
from ansible.module_utils.hal_node.expect.values import Unreadable  # noqa: E402

PACKAGES = {
    "chrony": ("(none)", "3.4", "1.el7", "x86_64", 1000),
    "bash": ("(none)", "4.2.46", "33.el7", "x86_64", 1000),
}


@pytest.fixture
def captures() -> Path:
    """The folder of captured output."""
    return Path(__file__).parent / "captures"


@dataclass
class FakeNode:
    """A node that a test can look into. `root` holds its files."""

    root: Path
    now: float
    packages: dict[str, tuple[str, str, str, str, int]] = field(default_factory=lambda: dict(PACKAGES))
    keys: list[str] = field(default_factory=list)
    units: dict[str, dict[str, str]] = field(default_factory=dict)
    programs: dict[str, Callable[[list[str]], tuple[int, str, str]]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    owned: set[str] = field(default_factory=set)
    calls: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for path, text in {
            "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
            "/etc/passwd": "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000::/home/alice:/bin/bash\n",
            "/etc/group": "root:x:0:\nalice:x:1000:\nwheel:x:10:alice\n",
            "/etc/hostname": "hal05\n",
            "/proc/self/mountinfo": "1 1 0:1 / / rw,relatime - ext4 /dev/sda1 rw\n",
            "/proc/sys/kernel/osrelease": "3.10.0-1062.el7.x86_64\n",
        }.items():
            self.write(path, text)

    def write(self, path: str, content: str | bytes, mode: int = 0o644) -> Path:
        """Make a file and its folders."""
        target = self.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(mode)
        return target

    def path(self, path: str) -> Path:
        """Where a path of the node is."""
        return self.root / path.lstrip("/")

    @property
    def node(self) -> Any:
        """The node as the modules get it."""
        return Node(root=str(self.root), runner=self.run, clock=lambda: self.now)

    def run(self, argv: list[Any], timeout_seconds: float = 20) -> tuple[int, str, str]:
        """Stand in for run of hal_node/expect/process.py."""
        words = [word.decode() if isinstance(word, bytes) else word for word in argv]
        self.calls.append(words)
        if words[0] in self.missing:
            raise Unreadable(f"there is no program {words[0]}")
        if words[0] in self.programs:
            return self.programs[words[0]](words[1:])
        if words[0] == "rpm":
            return self.rpm(words[1:])
        if words[0] == "systemctl":
            return 0, "\n\n".join(self.unit(name) for name in words[words.index("--") + 1 :]) + "\n", ""
        if words[0] == "getfacl" and not shutil.which("getfacl"):
            return 0, "", ""
        if words[0] == "getfacl":
            done: tuple[int, str, str] = run(argv, timeout_seconds)
            return done
        raise Unreadable(f"there is no program {words[0]}")

    def rpm(self, words: list[str]) -> tuple[int, str, str]:
        """Say what rpm says."""
        if words[0] == "-qa":
            lines = [f"hal-package\t{name}\t" + "\t".join(map(str, one)) for name, one in self.packages.items()]
            lines += [f"hal-package\tgpg-pubkey\t(none)\t{key}\t5\t(none)\t1" for key in self.keys]
            return 0, "\n".join(lines) + "\n", ""
        if words[0] == "-qf":
            out = ""
            for path in words[3:]:
                mine = path.removeprefix(str(self.root)) in self.owned
                out += "hal-package\n" if mine else f"file {path} is not owned by any package\n"
            return 1, out, ""
        return 1, f"no package provides {words[-1]}\n", ""

    def unit(self, name: str) -> str:
        """Say what systemctl show says of a unit."""
        known = self.units.get(name)
        state = {"LoadState": "not-found", "ActiveState": "inactive", "UnitFileState": "", "FragmentPath": ""}
        if known is not None:
            state = {"LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled", **known}
            state.setdefault("FragmentPath", f"/usr/lib/systemd/system/{name}")
        return "\n".join(f"{key}={value}" for key, value in {"Id": name, "DropInPaths": "", **state}.items())

    def seal(self, *entries: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Seal a run."""
        run = {"id": "run", "commit": "abc1234", "started": self.now - 60, "now": self.now}
        request = {"node": "hal05", "run": run, "entries": list(entries), **more}
        sealed: dict[str, Any] = seal(request, self.node)
        return sealed

    def look(self, **request: Any) -> dict[str, Any]:
        """Audit."""
        seen: dict[str, Any] = look({"node": "hal05", **request}, self.node)
        return seen

    def record(self) -> bytes:
        """The bytes of the record."""
        content: bytes = read_content(self.node)
        return content


@pytest.fixture
def hal(tmp_path: Path) -> FakeNode:
    """A node with a few files, two packages and a clock."""
    import time

    return FakeNode(tmp_path / "root", now=time.time())


# With a role the record begins to keep what /etc and /boot hold.
ROLLED_OUT: dict[str, Any] = {"time": {"inputs_hash": "1", "tasks": []}}


def entry(resource: str, **more: Any) -> dict[str, Any]:
    """An entry of a run."""
    task = "time|roles/time/tasks/configure.yml|Write it"
    source = "roles/time/tasks/configure.yml:2"
    return {"resource": resource, "declared": {}, "role": "time", "task": task, "source": source, **more}


def kinds(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What differs, in short."""
    return [(one["resource"], one["kind"], one["attribute"]) for one in answer["differences"]]


def refused(read: Callable[..., Any], *words: Any) -> tuple[str, str]:
    """Why something is not known, with what may quote content."""
    with pytest.raises(Unreadable) as error:
        read(*words)
    return error.value.reason, error.value.detail


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A file that everybody may read."""
    path = tmp_path / "x"
    path.write_text("text\n")
    path.chmod(0o644)
    os.utime(path, (5, 7))
    return path
