"""What a template is to contain is asked of the program that reads it, where this machine has that program."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.contract.project import Finding, rule
from tests.contract.rules import daemons

# Who reads a text, by the name of its template; {} is the file.
READERS: dict[str, list[str]] = {
    r".*\.sh|hal-[\w-]+|take|hook|check": ["shellcheck", "--norc", "--severity=warning", "--format=gcc", "{}"],
    r"zshenv": ["zsh", "-n", "{}"],
}
PROGRAM = re.compile(r"[\w-]+\.j2")  # without an ending: somebody types its name
SHELL = re.compile(r"#!/bin/(ba)?sh\b")
# No program, though its name has no ending.
OTHERS = frozenset({"hosts.j2", "logrotate.j2", "sshd_config.j2", "zshenv.j2"})


@rule
def programs_can_be_started(root: Path) -> Iterator[Finding]:
    """A program that a role writes says in its first line what runs it."""
    for path, text in _texts(root):
        if PROGRAM.fullmatch(path.name) and path.name not in OTHERS and not text.startswith("#!/"):
            yield Finding(path, 1, "no #! in the first line, so it is what each caller makes of it")


@rule
def texts_can_be_read(root: Path) -> Iterator[Finding]:
    """Each text that a host gets is what its reader understands."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in _texts(root):
            name = path.name.removesuffix(".j2")
            if name.endswith(".py"):
                yield from _python(path, text)
            command = next((words for pattern, words in READERS.items() if re.fullmatch(pattern, name)), None)
            if command is None or not shutil.which(command[0]):
                continue
            if command[0] == "shellcheck" and not SHELL.match(text):
                if not name.endswith(".sh"):
                    continue
                # Every user's shell reads it: what it sets is for those that come after.
                command = [*command[:-1], "--shell=bash", "--exclude=SC2034", command[-1]]
            file = Path(folder) / name
            file.write_text(text)
            words = [word.replace("{}", str(file)) for word in command]
            asked = subprocess.run(words, capture_output=True, text=True, check=False)
            if asked.returncode:
                said = (asked.stdout + asked.stderr).strip().splitlines()
                found = said[0].replace(str(file), name) if said else f"exit status {asked.returncode}"
                yield Finding(path, 1, f"{command[0]} of what it becomes: {found}")


def _python(path: Path, text: str) -> Iterator[Finding]:
    try:
        compile(text, path.name, "exec")
    except SyntaxError as error:
        yield Finding(path, 1, f"python of what it becomes: {path.stem}:{error.lineno}: {error.msg}")


def _texts(root: Path) -> Iterator[tuple[Path, str]]:
    """(template, text) of each text that hosts get."""
    for (path, _), texts in sorted(daemons.texts_of(root).items()):
        if path.name.endswith(".j2"):
            yield from ((path, text) for text in sorted({one.text for one in texts if not one.fault}))
