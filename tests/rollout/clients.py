"""Other people's programs on the small virtual HAL: where they are, how they are called, what they are told."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from demo.mini import PROJECT, SOURCES, Mini

from tests.rollout.login_user import User

LONGEST_SECONDS = 3600  # for what hangs
ENVIRONMENT = PROJECT / ".state" / "clients"
SETTINGS = ("ANSIBLE_", "HAL_", "PYTHON")  # of whoever runs the tests


@dataclass(frozen=True)
class Done:
    """What a client came to."""

    status: int
    output: str

    @property
    def words(self) -> str:
        """What it printed with single blanks: programs break lines where they like."""
        return " ".join(self.output.split())


class Clients:
    """Calls them as an administrator does."""

    def __init__(self, mini: Mini, folder: Path) -> None:
        """`folder`: for what they write."""
        self.mini, self.folder = mini, folder
        self.sources = [word for source in SOURCES for word in ("-i", str(source))]
        self.ssh = folder / "ssh_config"
        written = self.call("hal-inventory", *self.sources, "ssh-config", "--write", str(self.ssh))
        assert written.status == 0, written.output

    def call(self, *argv: str, cwd: Path = PROJECT, said: str = "", environment: dict[str, str] | None = None) -> Done:
        """Run a program of the project's or of the clients' environment; `said` is its input."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
        path = os.pathsep.join([str(Path(sys.executable).parent), str(ENVIRONMENT / "bin"), os.environ["PATH"]])
        done = subprocess.run(
            argv,
            cwd=cwd,
            env={**own, "PATH": path, "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8", **(environment or {})},
            input=said,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LONGEST_SECONDS,
        )
        return Done(done.returncode, done.stdout)

    def runner(self, name: str, playbook: str, words: Sequence[str]) -> tuple[Done, str]:
        """Run a playbook by ansible-runner; also return the status that it keeps, which is what AWX shows."""
        private = self.folder / name
        (private / "env").mkdir(parents=True)
        (private / "env" / "cmdline").write_text(shlex.join([*self.sources, *words]))
        done = self.call(
            "ansible-runner",
            "run",
            str(private),
            "--project-dir",
            str(PROJECT),
            "-i",
            "it",
            "-p",
            f"playbooks/{playbook}",
        )
        return done, (private / "artifacts" / "it" / "status").read_text()

    def give(self, folder: Path, node: str, to: str, user: User | None = None) -> None:
        """Copy what is in a folder to a node: as a user into their home, or as administrator, and then it is root's."""
        ssh = ["ssh", "-F", str(self.ssh)]
        if user:
            ssh += ["-o", f"User={user.name}", "-o", f"IdentityFile={user.key}"]
        words = ["--recursive", "--links", "--perms", "--omit-dir-times", "-e", shlex.join(ssh)]
        done = self.call("rsync", *words, f"{folder}/", f"{node}:{to}/")
        assert done.status == 0, done.output
