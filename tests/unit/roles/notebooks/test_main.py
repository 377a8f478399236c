"""hal-notebook, hal-lab, hal-tensorboard and hal-h2o as users call them: the whole command, and what is said before."""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

FILES = Path(__file__).resolve().parents[4] / "roles/notebooks/files"
UID = 4321
FIRST = 20000 + UID % 100


class EndedError(Exception):
    """In place of becoming another program."""


class User:
    """A user of a node with programs, and what is started for him."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        sys.path.insert(0, str(FILES))
        self.program: Any = importlib.import_module("hal_notebook")
        self.in_use = self.program._in_use
        self.folder, self.home, self.busy = folder, folder / "home", set[int]()
        self.started: list[tuple[str, list[str]]] = []
        self._monkeypatch, self._capsys = monkeypatch, capsys
        for name in ("jupyter-notebook", "jupyter-lab", "tensorboard", "java", "python"):
            self.write(f"bin/{name}", "#!/bin/sh\n").chmod(0o755)
        self.home.mkdir()
        self.jar = self.write("lib/python3.7/site-packages/h2o/backend/bin/h2o.jar", "")
        self.settings: dict[str, Any] = {
            "first_port": "20000", "ports": "100", "login": "login.hal.example", "kernels": "/opt/kernels",
            "java": str(folder / "bin/java"), "h2o_memory_gb": "8.5", "login_node": False,
            "job_options": "--partition=gpu --time=4:00:00",
        }  # fmt: skip
        me = self.program.pwd.struct_passwd(("alice", "x", UID, 100, "", str(self.home), "/bin/sh"))
        for where, name, value in (
            (self.program.os, "getuid", lambda: UID),
            (self.program.pwd, "getpwuid", lambda _uid: me),
            (self.program.socket, "gethostname", lambda: "hal05.hal.example"),
            (self.program.socket, "gethostbyname", lambda host: {"hal05.hal.example": "10.0.0.5"}[host]),
            (self.program, "_in_use", lambda port: port in self.busy),
            (self.program.os, "execve", self.execve),
            (self.program.os, "urandom", lambda count: bytes(range(count))),
        ):
            monkeypatch.setattr(where, name, value)
        monkeypatch.setenv("PATH", f"{folder}/bin:/usr/bin:/bin")
        monkeypatch.setenv("SLURM_CPUS_ON_NODE", "16")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def execve(self, path: str, argv: list[str], environment: dict[str, str]) -> None:
        assert environment["JUPYTER_PATH"].split(":")[0] == "/opt/kernels"
        self.started.append((path, argv))
        raise EndedError

    def __call__(self, *words: str) -> tuple[list[str], list[str], str]:
        """What is started, what was said before, and what on the error output."""
        settings = self.write("settings.json", json.dumps(self.settings))
        self.started.clear()
        kind = [word for word in words[:1] if word in self.program.KINDS]
        argv = ["hal-notebook", *kind, "--settings", str(settings), *words[len(kind) :]]
        self._monkeypatch.setattr(sys, "argv", argv)
        status: Any = None
        try:
            self.program.main()
        except EndedError:
            pass
        except SystemExit as ended:
            status = ended.code
        said = self._capsys.readouterr()
        assert (status, bool(said.err)) in ((None, False), (1, True))
        path, started = self.started[0] if self.started else ("", [])
        assert path == "".join(started[:1])
        return started, said.out.splitlines(), said.err

    def said(self) -> str:
        """What was printed since the last call."""
        return self._capsys.readouterr().out


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> User:
    return User(tmp_path, monkeypatch, capsys)


def way(port: int = FIRST, there: str = "127.0.0.1") -> list[str]:
    return [
        "On your own computer:",
        f"    ssh -N -L {port}:{there}:{port} -J alice@login.hal.example alice@hal05",
        f"and open http://127.0.0.1:{port}/ there, as long as this runs.",
    ]


def jupyter(user: User, kind: str, address: str = "127.0.0.1", port: int = FIRST) -> list[str]:
    options = ["--no-browser", f"--ip={address}", f"--port={port}", "--NotebookApp.port_retries=0"]
    return [f"{user.folder}/bin/jupyter-{kind}", *options]


@pytest.mark.parametrize(("words", "kind"), [((), "notebook"), (("notebook",), "notebook"), (("lab",), "lab")])
def test_a_notebook_listens_on_this_node_alone_and_says_the_way(user: User, words: tuple[str, ...], kind: str) -> None:
    assert user(*words, "x.ipynb", "--", "-y") == ([*jupyter(user, kind), "x.ipynb", "-y"], way(), "")


def test_other_options_choose_address_and_port_and_only_show(user: User) -> None:
    user.busy = {FIRST, FIRST + 1}
    assert user("lab") == (jupyter(user, "lab", port=FIRST + 2), way(FIRST + 2), "")
    assert user("lab", "--port", "8888") == (jupyter(user, "lab", port=8888), way(8888), "")
    assert user("lab", "--public", "--port=8888") == (
        jupyter(user, "lab", "10.0.0.5", 8888), way(8888, "10.0.0.5"), "",
    )  # fmt: skip
    assert user("lab", "--show", "a") == (
        [],
        [*way(FIRST + 2), " ".join([*jupyter(user, "lab", port=FIRST + 2), "a"])],
        "",
    )


def test_tensorboard_is_started_with_logs_and_a_warning(user: User) -> None:
    warning = "TensorBoard does not ask for a password: everybody on this node can read it."
    start = [f"{user.folder}/bin/tensorboard", "--host", "127.0.0.1", "--port", str(FIRST)]
    for words in (["--logdir", "x"], ["--logdir=x"], ["--version"]):
        assert user("tensorboard", *words) == ([*start, *words], [warning, *way()], "")
    logs = "hal-tensorboard: which logs? hal-tensorboard --logdir FOLDER\n"
    assert user("tensorboard", "--logs=x") == ([], [], logs)


def test_h2o_gets_two_ports_its_memory_and_a_password_in_a_file(user: User) -> None:
    user.busy = {FIRST + 1}
    port = FIRST + 2
    argv, said, errors = user("h2o", "-quiet", "-Xss1m")
    (path,) = (user.home / ".hal-h2o").iterdir()
    assert path.name.startswith("login-")
    assert path.read_text() == "alice: 000102030405060708090a0b\n"
    assert (user.home / ".hal-h2o").stat().st_mode & 0o777 == 0o700
    assert argv == [
        f"{user.folder}/bin/java", "-Xmx8g", "-Xss1m", "-jar", str(user.jar), "-ip", "127.0.0.1", "-web_ip",
        "127.0.0.1", "-port", str(port), "-name", f"alice-{port}", "-nthreads", "16", "-hash_login", "-login_conf",
        str(path), "-quiet",
    ]  # fmt: skip
    assert said == [f"User alice, the password is in {path}, which is yours alone", *way(port)]
    assert errors == ""
    assert user("h2o")[0][:2] == argv[:2], "its folder is there by now"


def test_h2o_takes_four_cores_where_slurm_gave_none(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_CPUS_ON_NODE")
    argv = user("h2o")[0]
    assert argv[argv.index("-nthreads") + 1] == "4"


def test_what_is_not_there_is_said_with_the_program_s_name(user: User) -> None:
    user.jar.unlink()
    assert user("h2o") == ([], [], "hal-h2o: there is no H2O: module load h2o\n")
    (user.folder / "bin/python").unlink()
    user.settings["java"] = "/no/java"
    java = "hal-h2o: there is no Java at /no/java; tell the administrators\n"
    assert user("h2o") == ([], [], java)
    (user.folder / "bin/jupyter-notebook").chmod(0o644)
    words = "hal-notebook: there is no jupyter-notebook: module load jupyter\n"
    assert user() == ([], [], words)


def test_settings_that_cannot_be_used_and_what_lets_in_everybody_are_refused(user: User) -> None:
    assert user("lab", "--ip=0.0.0.0") == (
        [], [], "hal-lab: --ip=0.0.0.0: say --public to listen on the node's own address\n",
    )  # fmt: skip
    user.settings["ports"] = "many"
    assert user()[2].startswith("hal-notebook: could not convert string to float")
    del user.settings["ports"]
    assert user()[2] == "hal-notebook: 'ports'\n"


@pytest.mark.parametrize(
    ("kind", "module", "name"),
    [("notebook", "jupyter", "Jupyter"), ("lab", "jupyterlab", "JupyterLab"), ("h2o", "h2o", "H2O")],
)
def test_on_a_login_node_the_line_to_type_is_said_and_nothing_started(
    user: User, kind: str, module: str, name: str
) -> None:
    assert user(kind)[0], "in a job"
    user.settings["login_node"] = True
    started, said, errors = user(kind)
    assert (started, said) == ([], [])
    first, line, *_, last = errors.splitlines()
    assert first.startswith(f"hal-{kind}: not on the login node: ")
    assert f"{name} belongs in a job" in first
    typed = f"srun --partition=gpu --time=4:00:00 --pty bash -lc 'module load {module} && hal-{kind}'"
    assert line.strip() == typed
    assert last == f"For a small thing here: hal-{kind} --here. More: hal-{kind} --help"
    for words in (["--help"], ["-h"], ["x", "--help"]):
        started, said, errors = user(kind, *words)
        assert (started, errors) == ([], "")
        assert said[0].startswith(f"usage: hal-{kind} ")
        assert f"On a login node: {typed}" in said
        assert any(one.startswith("Exit status: 1 ") for one in said)
    started, said, errors = user(kind, "--here", "x")
    assert (started[-1], errors) == ("x", "")
    assert "--here" not in started


def test_in_a_job_it_starts_wherever_that_is(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The login node of a small site may run jobs."""
    user.settings["login_node"] = True
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert user.program.not_here("notebook", user.settings) == ""
    monkeypatch.delenv("SLURM_JOB_ID")
    assert "not on the login node" in user.program.not_here("notebook", user.settings)


def test_tensorboard_may_run_on_a_login_node_and_help_needs_no_settings(user: User) -> None:
    user.settings["login_node"] = True
    assert user("tensorboard", "--logdir=x")[0]
    assert "--here" in "".join(user("tensorboard", "-h")[1])
    user.program.main.__globals__["sys"].argv = ["hal-notebook", "lab", "--help", "--settings", "/nowhere"]
    user.program.main()
    assert "On a login node" not in user.said()


def test_a_container_needs_a_program_that_runs_it(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAL_NOTEBOOK_IMAGE", "/c/j.sif")
    monkeypatch.setenv("HAL_NOTEBOOK_PREFIX", "/p")
    monkeypatch.setenv("PATH", str(user.folder / "bin"))
    assert user() == ([], [], "hal-notebook: there is no singularity on this node\n")
    for name in ("apptainer", "singularity"):
        user.write(f"bin/{name}", "#!/bin/sh\n").chmod(0o755)
        runner = f"{user.folder}/bin/{name}"
        image = [runner, "exec", "--nv", "/c/j.sif", "/p/bin/jupyter-notebook"]
        assert user("a")[0] == [*image, *jupyter(user, "notebook")[1:], "a"]


def test_a_port_in_use_is_seen_on_either_address_and_every_probe_is_closed(user: User) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for address in ("127.0.0.1", "127.0.0.2"):
        with socket.socket() as taken:
            taken.bind((address, 0))
            taken.listen()
            port = taken.getsockname()[1]
            assert user.in_use(port)
        assert not user.in_use(port)
    assert len(os.listdir("/proc/self/fd")) == before
