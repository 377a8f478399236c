"""Ansible's programs without their start: a process has imported Ansible and the model, and each run is a fork of it.

Half of a short run is imports. Arguments, environment, output and exit status are a run's own, and its faults end with
it. Modules are packed once for all runs: a test that changes one in between needs a process of its own, and one that
makes a module gives it a name that no other has. Sites whose ansible.cfg are alike share a process: of those, each has
its own roles and inventory, and paths of plugins are absolute.

Modules import from the archive that they come in, and the Python here compiles it each time; _compiled/sitecustomize.py
keeps what was compiled.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ("ANSIBLE_", "HOME", "LANG", "LC_")
"""What Ansible reads of the environment when it is imported: runs with other values need another process."""
LATER = {
    "ANSIBLE_CALLBACKS_ENABLED": "CALLBACKS_ENABLED",
    "ANSIBLE_INVENTORY": "DEFAULT_HOST_LIST",
    "ANSIBLE_INVENTORY_ENABLED": "INVENTORY_ENABLED",
    "ANSIBLE_ROLES_PATH": "DEFAULT_ROLES_PATH",
    "ANSIBLE_STDOUT_CALLBACK": "DEFAULT_STDOUT_CALLBACK",
}
"""What it reads when it runs, and the constant that it looks at: these are each run's own."""
MOST = 4  # processes that wait for more to do: each has some 100 MB
COMPILED = Path(__file__).resolve().parent / "_compiled"


class Warm:
    """One such process. It ends with the one that began it, whose pipe it reads."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", "tests.unit.warm"]
        own = {**environment, "PYTHONPATH": str(ROOT)}
        self.unfinished = False  # what it was asked for: what it says next would be taken for another's answer
        self._compiled = tempfile.TemporaryDirectory(prefix="compiled-")
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    def close(self) -> None:
        """End it, and a run that was left by who asked for it."""
        assert self._process.stdin is not None
        if self.unfinished:
            self._process.send_signal(signal.SIGSTOP)  # it begins no other one
            # Which run it is may not have been read: it is the only child.
            for run in _children(self._process.pid):
                for kill in (os.kill, os.killpg):  # it may have no group yet
                    with contextlib.suppress(ProcessLookupError):
                        kill(run, signal.SIGKILL)
            self._process.kill()
        self._process.stdin.close()
        self._process.wait()
        self._compiled.cleanup()

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], timeout: float, folder: Path = ROOT
    ) -> subprocess.CompletedProcess[str]:
        """Return a finished run; TimeoutExpired after its end."""
        found = os.pathsep.join([str(COMPILED), *filter(None, [environment.get("PYTHONPATH")])])
        own = {**environment, "PYTHONPATH": found, "TESTS_COMPILED": self._compiled.name}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            places = [f"/proc/{os.getpid()}/fd/{stream.fileno()}" for stream in (out, err)]
            asked = {"words": list(words), "environment": own, "streams": places, "folder": str(folder)}
            assert self._process.stdin is not None
            self.unfinished = True
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            end = time.monotonic() + timeout
            run = self._answer(end)  # which includes the imports, the first time
            try:
                status = self._answer(end)
            except TimeoutError:
                os.killpg(run, signal.SIGKILL)
                self._answer(time.monotonic() + 600)
                self.unfinished = False
                raise subprocess.TimeoutExpired(list(words), timeout) from None
            self.unfinished = False
            for stream in (out, err):
                stream.seek(0)
            return subprocess.CompletedProcess(list(words), status, out.read().decode(), err.read().decode())

    def _answer(self, end: float) -> int:
        stream = self._process.stdout
        assert stream is not None
        said = b""
        while not said.endswith(b"\n"):
            if not select.select([stream], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError
            part = os.read(stream.fileno(), 1)
            if not part:
                raise RuntimeError(f"{Path(__file__).name} has ended, with {self._process.wait()}")
            said += part
        return int(said)


def _children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in parentheses, may have blanks; then state and parent (proc(5)).
            if int(path.read_text(errors="replace").rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


_running: dict[tuple[tuple[str, str], ...], Warm] = {}  # the last one asked last


@atexit.register
def _end() -> None:
    while _running:
        _running.popitem()[1].close()


def run(
    words: Sequence[str], environment: Mapping[str, str], timeout: float, folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Return a finished program of Ansible's in this folder, by the process that fits its environment."""
    settings = {name: text for name, text in environment.items() if name.startswith(SETTINGS) and name not in LATER}
    if "ANSIBLE_CONFIG" in settings:
        settings["ANSIBLE_CONFIG"] = Path(settings["ANSIBLE_CONFIG"]).read_text()
    key = tuple(sorted(settings.items()))
    if key not in _running:
        if len(_running) == MOST:
            _running.pop(next(iter(_running))).close()  # the one that was not asked for longest
        _running[key] = Warm(environment)
    asked = _running[key] = _running.pop(key)
    try:
        return asked.run(words, environment, timeout, folder)
    finally:
        if asked.unfinished:  # a test's time limit ends it anywhere
            del _running[key]
            asked.close()


# --- the process


def serve() -> None:
    """Run what is asked for, one at a time, until nobody asks any more."""
    _import()
    for asked in map(json.loads, iter(sys.stdin.buffer.readline, b"")):
        run = os.fork()
        if run == 0:
            _play(asked)
        _tell(run)
        _tell(os.waitstatus_to_exitcode(os.waitpid(run, 0)[1]))


def _import() -> None:
    """Import what every run needs."""
    from importlib import import_module

    from ansible.plugins.loader import init_plugin_loader
    from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder

    for name in (
        "ansible.cli.playbook",
        "hal_inventory.compiled",
        "hal_inventory.declared",
        "hal_inventory.derive.inventory",
    ):
        import_module(name)
    init_plugin_loader()
    import_module("ansible_collections.ansible.builtin")  # says what was moved where, in thousands of lines of YAML
    _AnsibleCollectionFinder._remove()  # each run makes its own
    gc.freeze()  # what every run has is not looked through by each of their processes, which would copy it
    sys.path[:] = [place for place in sys.path if place not in ("", str(ROOT))]  # as ansible-playbook is started


def _tell(number: int) -> None:
    os.write(1, b"%d\n" % number)


def _play(asked: dict[str, Any]) -> None:
    """Be the program that the first word names; never returns."""
    from importlib import import_module

    from ansible import constants

    status = 250
    try:
        os.setsid()
        for number, place in enumerate(["/dev/null", *asked["streams"]]):
            stream = os.open(place, os.O_RDWR)
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        if config := asked["environment"].get("ANSIBLE_CONFIG"):
            constants.CONFIG_FILE = constants.config._config_file = config
        for name in LATER.values():
            setattr(constants, name, constants.config.get_config_value(name))
        sys.argv = asked["words"]
        name = Path(asked["words"][0]).name.partition("-")[2] or "adhoc"
        import_module(f"ansible.cli.{name}").main(asked["words"])
        status = 0
    except SystemExit as said:
        status = said.code if isinstance(said.code, int) else int(bool(said.code))
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)  # what is to be cleaned up at the end is the other process's


if __name__ == "__main__":
    serve()
