"""hal-notebook starts where nobody else listens, says how to get there, and lets nobody else in."""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from tests.unit.interpreters import EVERY, interpreter

PROJECT = Path(__file__).resolve().parents[4]
FILES = PROJECT / "roles/notebooks/files"
KERNEL = FILES / "kernel.sh"


@pytest.fixture(scope="module")
def program() -> Any:
    sys.path.insert(0, str(FILES))
    return importlib.import_module("hal_notebook")


@pytest.fixture(params=EVERY)
def python(request: pytest.FixtureRequest) -> str:
    return interpreter(request.param)


def test_a_port_of_one_s_own_is_the_first_free_one_from_a_place_of_one_s_own(program: Any) -> None:
    mine = 20000 + os.getuid() % 100
    assert program.free_port(20000, 100, lambda port: False) == mine
    assert program.free_port(20000, 100, lambda port: port == mine) == 20000 + (mine + 1 - 20000) % 100
    with pytest.raises(program.Problem, match="all 100 ports from 20000 on are in use"):
        program.free_port(20000, 100, lambda port: True)


def test_a_port_that_somebody_listens_on_is_not_taken(program: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(program.Problem):
            program.free_port(port, 1)


def test_h2o_gets_two_neighbours_of_which_both_are_free(program: Any) -> None:
    """ "port+1 is also used": its usage text."""
    start = 20000 + os.getuid() % 100
    assert program.free_port(20000, 100, {start + 1}.__contains__, count=2) == start + 2
    assert program.free_port(20000, 3, {20000}.__contains__, count=2) == 20001
    with pytest.raises(program.Problem):
        program.free_port(20000, 3, {20001}.__contains__, count=2)  # 20003 is not of the range


PLACES = ("-ip", "--ip", "-ip=0.0.0.0", "-web_ip", "-network", "-baseport", "-port")
LOGINS = ("-hash_login", "--hash_login", "-login_conf", "-ldap_login", "-pam_login")


@pytest.mark.parametrize(
    ("word", "words"),
    [*((word, "say --port PORT, or --public") for word in PLACES), *((word, "leave it out") for word in LOGINS)],
)
def test_h2o_s_own_options_are_refused_where_they_would_let_in_others(
    python: str, tmp_path: Path, word: str, words: str
) -> None:
    argv = [python, "-B", str(FILES / "hal_notebook.py"), "h2o", word, "0.0.0.0"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"hal-h2o: {word} is set here")
    assert words in done.stderr


def test_h2o_s_other_options_pass(program: Any) -> None:
    assert program.refused(["-name", "mine", "-nthreads", "2", "-ice_root", "/tmp", "--port", "20005"], "h2o") == ""
    assert program.refused(["-ip"]) == "", "of H2O alone"


@pytest.mark.parametrize("terminal", [True, False])
def test_h2o_s_password_is_shown_on_a_terminal_alone(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    jar = tmp_path / "lib/python3.7/site-packages/h2o/backend/bin/h2o.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    (tmp_path / "bin").mkdir()
    for name in ("python", "java"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    user = program.pwd.getpwuid(os.getuid())
    home = program.pwd.struct_passwd((*user[:5], str(tmp_path), user[6]))
    monkeypatch.setattr(program.pwd, "getpwuid", lambda uid: home)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    settings = {"java": str(tmp_path / "bin/java"), "h2o_memory_gb": "8"}
    command = program.h2o("127.0.0.1", 20001, ["-Xmx16g", "-quiet"], {"PATH": str(tmp_path / "bin")}, settings)
    (path,) = (tmp_path / ".hal-h2o").iterdir()
    name, password = path.read_text().strip().split(": ")
    said = capsys.readouterr().out
    assert name == user.pw_name
    assert (password in said, str(path) in said) == (terminal, not terminal)
    assert path.stat().st_mode & 0o777 == 0o600
    assert password not in " ".join(command)
    assert command[1:4] == ["-Xmx8g", "-Xmx16g", "-jar"], "Java takes the last one"
    assert command[-1] == "-quiet"
    assert command[command.index("-ip") + 1] == command[command.index("-web_ip") + 1] == "127.0.0.1"


@pytest.mark.parametrize(
    "words",
    [
        ["--NotebookApp.token="],
        ["--NotebookApp.token=''"],
        ["--ServerApp.password="],
        ["--IdentityProvider.token", ""],
        ["--ip=0.0.0.0"],
        ["--ip", "0.0.0.0"],
        ["--NotebookApp.ip=*"],
        ["--host=0.0.0.0"],
        ["--bind_all"],
        ["--notebook-dir=x", "--NotebookApp.token="],
    ],
)
def test_what_would_let_in_everybody_is_refused(program: Any, words: list[str]) -> None:
    assert words[0].split("=")[0] in program.refused(words) or "token" in program.refused(words)


@pytest.mark.parametrize(
    "words", [["--NotebookApp.token=secret"], ["--notebook-dir=/home/alice"], ["x.ipynb"], ["--token", "s"]]
)
def test_other_options_pass(program: Any, words: list[str]) -> None:
    assert program.refused(words) == ""


def test_the_way_there_goes_through_the_login_node(program: Any) -> None:
    settings = {"login": "hal-login.hal.example"}
    here = program.reach("127.0.0.1", 20001, settings, "hal-login")
    assert "ssh -N -L 20001:127.0.0.1:20001" in here[1]
    assert "-J" not in here[1]
    there = program.reach("127.0.0.1", 20001, settings, "hal05.hal.example")
    assert "-J" in there[1]
    assert there[1].endswith("@hal05")
    public = program.reach("10.0.0.5", 20001, settings, "hal05")
    assert "-L 20001:10.0.0.5:20001" in public[1]


def test_places_are_the_user_s_own(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/not-there")
    given = program.environment({"kernels": "/opt/apps/jupyter"})
    home = os.path.expanduser(f"~{os.environ.get('USER', '')}") if os.environ.get("USER") else os.path.expanduser("~")
    assert given["JUPYTER_RUNTIME_DIR"].endswith("/.local/share/jupyter/runtime")
    assert given["JUPYTER_CONFIG_DIR"].startswith(home)
    assert given["JUPYTER_PATH"] == "/opt/apps/jupyter"
    assert "XDG_RUNTIME_DIR" not in given
    monkeypatch.setenv("JUPYTER_PATH", "/mine:/opt/apps/jupyter")
    assert program.environment({"kernels": "/opt/apps/jupyter"})["JUPYTER_PATH"] == "/opt/apps/jupyter:/mine"


def test_a_container_is_started_with_the_node_s_gpus(program: Any, tmp_path: Path) -> None:
    (tmp_path / "singularity").write_text("#!/bin/sh\n")
    (tmp_path / "singularity").chmod(0o755)
    given = {
        "PATH": str(tmp_path),
        "HAL_NOTEBOOK_IMAGE": "/c/jupyter.sif",
        "HAL_NOTEBOOK_PREFIX": "/home/apps/jupyter/6",
    }
    command = program.jupyter("lab", "127.0.0.1", 20001, ["x"], given)
    assert command[:5] == [
        f"{tmp_path}/singularity",
        "exec",
        "--nv",
        "/c/jupyter.sif",
        "/home/apps/jupyter/6/bin/jupyter-lab",
    ]
    assert "--ip=127.0.0.1" in command
    assert command[-1] == "x"


def test_what_is_not_loaded_is_said(program: Any) -> None:
    with pytest.raises(program.Problem, match="there is no jupyter-lab: module load jupyterlab"):
        program.jupyter("lab", "127.0.0.1", 20001, [], {"PATH": "/nowhere"})
    with pytest.raises(program.Problem, match="module load tensorboard"):
        program.tensorboard("127.0.0.1", 20001, [], {"PATH": "/nowhere"})


@pytest.mark.root  # whom it refuses
def test_root_gets_no_notebook(python: str, tmp_path: Path) -> None:
    (tmp_path / "settings").write_text(json.dumps({}))
    argv = [python, "-B", str(FILES / "hal_notebook.py"), "lab", "--settings", str(tmp_path / "settings")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "hal-lab: not as root: a notebook lets in anybody who has its token\n")


def kernel(
    tmp_path: Path, *words: str, load: str = "return 0", python: str = "exit 0"
) -> subprocess.CompletedProcess[str]:
    """Run the launcher with a command `module` and a python that are told what to do."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "python").write_text(f"#!/bin/bash\n{python}\n")
    (folder / "python").chmod(0o755)
    script = (
        f'module() {{ if [ "$1" = load ]; then {load}; fi; }}; export -f module; exec bash {quote(str(KERNEL))} "$@"'
    )
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "PYTHONPATH": "/the/notebook/s"}
    return subprocess.run(
        ["bash", "-c", script, "-", *words], capture_output=True, text=True, check=False, env=environment
    )


def test_a_kernel_runs_in_its_module_s_python_and_in_nothing_of_the_notebook(tmp_path: Path) -> None:
    done = kernel(tmp_path, "wmlce/1", "/tmp/connection", python='echo "$PYTHONPATH|$*"')
    assert done.stdout == "|-m ipykernel_launcher -f /tmp/connection\n", done.stderr


def test_a_kernel_whose_module_does_not_load_says_why(tmp_path: Path) -> None:
    load = 'printf "Lmod has detected:\\n  wmlce/9 is * retired\\n" >&2; return 1'
    done = kernel(tmp_path, "wmlce/9", "/tmp/connection", load=load)
    assert done.returncode == 1
    assert done.stderr == "Lmod has detected:\n  wmlce/9 is * retired\nkernel: module load wmlce/9 fails\n"
    said = kernel(tmp_path, "--check", "wmlce/9", load=load)
    assert (said.returncode, said.stdout) == (0, "module load wmlce/9: Lmod has detected: wmlce/9 is * retired\n")


@pytest.mark.parametrize("words", ["No module named 'ipykernel'", "stand-in of the virtual HAL, it executes nothing"])
def test_a_kernel_that_does_not_import_is_found_whatever_its_words(tmp_path: Path, words: str) -> None:
    assert kernel(tmp_path, "--check", "wmlce/1", load='echo "wmlce/1 is deprecated" >&2').stdout == ""
    python = f'printf "Traceback\\n%s\\n" "{words}" >&2; exit 1'
    assert kernel(tmp_path, "--check", "wmlce/1", python=python).stdout == f"wmlce/1: {words}\n"
    assert kernel(tmp_path, "--check", "wmlce/1", python="exit 1").stdout == (
        f"wmlce/1: {tmp_path}/bin/python ends at once\n"
    )


def test_all_kernels_are_asked_in_one_call_beside_each_other(tmp_path: Path) -> None:
    load = '[ "$2" = good/1 ] || { echo "no $2" >&2; return 1; }'
    modules = ("bad/2", "good/1", "bad/1")
    assert kernel(tmp_path, "--check", *modules, load=load).stdout == (
        "module load bad/1: no bad/1\nmodule load bad/2: no bad/2\n"
    )
    (tmp_path / "here").mkdir()
    meet = f"touch {tmp_path}/here/$$; for i in $(seq 100); do [ $(ls {tmp_path}/here | wc -l) != 3 ] || exit 0; "
    assert kernel(tmp_path, "--check", "a/1", "b/1", "c/1", python=meet + "sleep 0.1; done; exit 1").stdout == ""
    assert kernel(tmp_path, "--check").stdout == ""
