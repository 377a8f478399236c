"""A module of ours, run in this process: AnsibleModule reads its arguments and answers, and commands answer as told."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import ansible.module_utils
import pytest
from ansible.module_utils import basic
from ansible.module_utils.common import warnings

from tests.unit.alike import ANSIBLE, module_utils

PROJECT = Path(__file__).resolve().parents[2]
SHIPPED = str(PROJECT / "plugins/module_utils")
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)

Answer = tuple[int, str, str]
# Arguments come on its input when there are none in argv.
AS_PROGRAM = ANSIBLE + "import runpy; path = sys.argv[3]; del sys.argv[1:]; runpy.run_path(path, run_name='__main__')"


def loaded(name: str, kind: Literal["module", "action", "lookup"] = "module") -> ModuleType:
    """A plugin's own code, by its name; a fresh one each time."""
    folder = "modules" if kind == "module" else kind
    return by_path(PROJECT / "plugins" / folder / f"{name}.py", f"{name}_{kind}")


def by_path(path: Path, name: str) -> ModuleType:
    """The code of a file that no import finds, as Ansible loads its plugins; a fresh one each time."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Ran:
    """A module whose commands are answered by `answer`; `told` are those that it ran, `environments` what each got."""

    def __init__(
        self,
        module: ModuleType,
        answer: Callable[[list[str]], Answer],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.module, self.answer = module, answer
        self.told: list[list[str]] = []
        self.environments: list[dict[str, str]] = []
        self.programs: dict[str, str] = {}
        self._monkeypatch, self._capsys = monkeypatch, capsys
        # It is called by ours, which reads all that a program prints: hal_node/run_command.py.
        monkeypatch.setattr(
            basic.AnsibleModule,
            "run_command",
            lambda _, argv, before_communicate_callback, **words: self.command(argv, **words),
        )
        monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda _, name: self.programs.get(name))
        monkeypatch.setattr(basic.AnsibleModule, "log", lambda *_words, **_more: None)

    def command(
        self,
        argv: list[str],
        environ_update: dict[str, str] | None = None,
        data: str | None = None,
        handle_exceptions: bool = True,
        cwd: str | None = None,
        encoding: str | None = "utf-8",
    ) -> Answer:
        """Answer a command, in bytes where the module asks for no encoding.

        `answer` raises what the module handles itself only where it says so.
        """
        assert isinstance(handle_exceptions, bool)
        assert cwd is None or Path(cwd).is_dir()
        assert data in (None, ""), "a command reads nothing"
        self.told.append(list(argv))
        self.environments.append(dict(environ_update or {}))
        answer = self.answer(list(argv))
        assert isinstance(answer[1], bytes) is (encoding is None)
        return answer

    def __call__(self, check: bool = False, **arguments: Any) -> dict[str, Any]:
        """Run it once more with these arguments; what it returned, without what it was asked."""
        self.told.clear()
        self.environments.clear()
        given = {"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_check_mode": check}}
        self._monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps(given).encode())
        self._monkeypatch.setattr(warnings, "_global_warnings", [])  # of all modules that ran in this process
        with pytest.raises(SystemExit) as ended:
            self.module.main()
        answer: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        assert ended.value.code == (1 if answer.get("failed") else 0)
        answer.pop("invocation", None)
        return answer


def as_program(name: str) -> dict[str, Any]:
    """What a module says as the program that it is on a node, which got no arguments."""
    argv = [sys.executable, "-c", AS_PROGRAM, *module_utils(), str(PROJECT / "plugins/modules" / f"{name}.py")]
    given = json.dumps({"ANSIBLE_MODULE_ARGS": {}})
    done = subprocess.run(argv, input=given, capture_output=True, text=True, check=False)
    answer: dict[str, Any] = json.loads(done.stdout)
    answer.pop("invocation", None)
    return answer
