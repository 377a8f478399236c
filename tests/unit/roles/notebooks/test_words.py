"""Pieces of hal-notebook by themselves: what is refused in which words, the way there, places, programs and ports."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

FILES = Path(__file__).resolve().parents[4] / "roles/notebooks/files"
sys.path.insert(0, str(FILES))

program: Any = importlib.import_module("hal_notebook")

LETS_IN = "%s lets in everybody who is on this node; leave it out"
LISTENS = "%s: say --public to listen on the node's own address"
H2O_PLACE = "%s is set here: say --port PORT, or --public to listen on the node's own address"
H2O_LOGIN = "%s is set here, with a password of its own for each start; leave it out"


@pytest.mark.parametrize(
    ("words", "kind", "said", "word"),
    [
        (["--NotebookApp.token="], "lab", LETS_IN, "--NotebookApp.token="),
        (["--token=''"], "notebook", LETS_IN, "--token=''"), (['--password=""'], "lab", LETS_IN, '--password=""'),
        (["a", "--token"], "lab", LETS_IN, "--token"), (["--password", ""], "lab", LETS_IN, "--password"),
        (["--token", "s", "--password"], "lab", LETS_IN, "--password"),
        (["--ServerApp.ip"], "lab", LISTENS, "--ServerApp.ip"), (["--host=x"], "tensorboard", LISTENS, "--host=x"),
        (["--bind_all"], "tensorboard", LISTENS, "--bind_all"), (["x", "--web_ip=y"], "lab", LISTENS, "--web_ip=y"),
        (["-x", "-baseport=1"], "h2o", H2O_PLACE, "-baseport=1"), (["--flatfile"], "h2o", H2O_PLACE, "--flatfile"),
        (["--ip=x"], "h2o", H2O_PLACE, "--ip=x"), (["-port=5"], "h2o", H2O_PLACE, "-port=5"),
        (["-hash_login"], "h2o", H2O_LOGIN, "-hash_login"), (["--login_conf=x"], "h2o", H2O_LOGIN, "--login_conf=x"),
        (["-kerberos_login"], "h2o", H2O_LOGIN, "-kerberos_login"), (["--token"], "h2o", LETS_IN, "--token"),
        (["--bind_all"], "h2o", LISTENS, "--bind_all"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named_with_what_to_say_instead(words: list[str], kind: str, said: str, word: str) -> None:
    assert program.refused(words, "".join(kind)) == said % word


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ([], "h2o"),
        (["--token=x"], "lab"),
        (["--token", "x"], "lab"),
        (["--password", "x", ""], "lab"),
        (["--NotebookApp.token=''x"], "lab"),
        (["token="], "lab"),
        (["--ips"], "lab"),
        (["-hash_login"], "lab"),
        (["-baseport=1"], "tensorboard"),
        (["--port=1"], "h2o"),
        (["-ports"], "h2o"),
        (["-name", "ip"], "h2o"),
    ],
)
def test_what_lets_in_nobody_passes(words: list[str], kind: str) -> None:
    assert program.refused(words, kind) == ""


def user(monkeypatch: pytest.MonkeyPatch, uid: int, home: str) -> None:
    me = program.pwd.struct_passwd(("alice", "x", uid, 100, "", home, "/bin/sh"))
    monkeypatch.setattr(program.os, "getuid", lambda: uid)
    monkeypatch.setattr(program.pwd, "getpwuid", {uid: me}.__getitem__)


@pytest.mark.parametrize(
    ("address", "host", "way"),
    [
        ("127.0.0.1", "hal05.x", "8888:127.0.0.1:8888 -J alice@login.hal alice@hal05"),
        ("10.0.0.5", "hal05.x", "8888:10.0.0.5:8888 -J alice@login.hal alice@hal05"),
        ("127.0.0.1", "login.x.y", "8888:127.0.0.1:8888 alice@login.hal"),
        ("10.0.0.1", "login", "8888:10.0.0.1:8888 alice@login.hal"),
    ],
)
def test_the_way_there_is_whole(monkeypatch: pytest.MonkeyPatch, address: str, host: str, way: str) -> None:
    user(monkeypatch, 4321, "/h")
    assert program.reach(address, 8888, {"login": "login.hal"}, host) == [
        "On your own computer:", f"    ssh -N -L {way}", "and open http://127.0.0.1:8888/ there, as long as this runs.",
    ]  # fmt: skip


def test_places_that_a_user_has_not_chosen_are_in_his_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    user(monkeypatch, 4321, "/h")
    monkeypatch.setattr(program.os, "environ", {"A": "b", "XDG_RUNTIME_DIR": str(tmp_path)})
    own = {
        "JUPYTER_CONFIG_DIR": "/h/.jupyter", "JUPYTER_DATA_DIR": "/h/.local/share/jupyter",
        "JUPYTER_RUNTIME_DIR": "/h/.local/share/jupyter/runtime",
    }  # fmt: skip
    found = program.environment({"kernels": "/k"})
    assert found == {"A": "b", "XDG_RUNTIME_DIR": str(tmp_path), "JUPYTER_PATH": "/k", **own}
    chosen = {name: f"/mine/{name}" for name in own}
    monkeypatch.setattr(program.os, "environ", {**chosen, "JUPYTER_PATH": "/a::/k:/b:/a:", "XDG_RUNTIME_DIR": "/none"})
    assert program.environment({"kernels": "/k"}) == {**chosen, "JUPYTER_PATH": "/k:/a:/b"}
    monkeypatch.setattr(program.os, "environ", {})
    assert program.environment({"kernels": "/k"}) == {"JUPYTER_PATH": "/k", **own}


def test_a_program_is_the_first_that_can_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    for name in ("b", "c"):
        (tmp_path / name / "x").touch(0o755)
    (tmp_path / "a/x").touch(0o644)
    monkeypatch.chdir(tmp_path / "b")
    path = f":{tmp_path}/a::{tmp_path}/b:{tmp_path}/c"
    assert program.find("x", path) == f"{tmp_path}/b/x"
    assert program.find("x", f":{tmp_path}/a:") == ""
    assert program.find("y", path) == ""


def test_h2o_s_archive_is_beside_the_python_of_its_environment(tmp_path: Path) -> None:
    def jar(name: str) -> str:
        path = tmp_path / "env/lib" / name / "site-packages/h2o/backend/bin/h2o.jar"
        path.parent.mkdir(parents=True)
        path.touch()
        return str(path)

    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/bin/python").touch()
    (tmp_path / "link").symlink_to("env/bin/python")
    python = str(tmp_path / "link")
    assert program._jar("") == program._jar(python) == program._jar("/nowhere/bin/python") == ""
    jar("a")
    (tmp_path / "env/lib/python2/site-packages/h2o/backend/bin/h2o.jar").mkdir(parents=True)
    assert program._jar(python) == ""
    last = jar("python3.9")
    assert program._jar(python) == last
    first = jar("python3.6")
    assert program._jar(python) == first


def test_a_port_goes_round_in_its_range(monkeypatch: pytest.MonkeyPatch) -> None:
    user(monkeypatch, 1009, "/h")
    asked: list[int] = []

    def taken(port: int) -> bool:
        asked.append(port)
        return True

    with pytest.raises(program.Problem) as refused:
        program.free_port(500, 4, taken)
    assert str(refused.value) == "all 4 ports from 500 on are in use on this node; take another node"
    assert asked == [501, 502, 503, 500]
    assert program.free_port(500, 4, {501, 502}.__contains__) == 503
    assert program.free_port(500, 4, {501}.__contains__, count=2) == 502
    with pytest.raises(program.Problem):
        program.free_port(500, 4, {501, 502}.__contains__, count=2)  # 504 is not of the range
    assert program.free_port(500, 2, lambda _: False, count=2) == 500
    with pytest.raises(program.Problem):
        program.free_port(500, 2, lambda _: False, count=3)


def test_a_program_that_is_not_loaded_is_said_with_its_module(tmp_path: Path) -> None:
    for kind, module in (("notebook", "jupyter"), ("lab", "jupyterlab")):
        with pytest.raises(program.Problem) as refused:
            program.jupyter(kind, "127.0.0.1", 1, [], {"PATH": str(tmp_path)})
        assert str(refused.value) == f"there is no jupyter-{kind}: module load {module}"
    with pytest.raises(program.Problem) as refused:
        program.tensorboard("127.0.0.1", 1, [], {"PATH": str(tmp_path)})
    assert str(refused.value) == "there is no tensorboard: module load tensorboard"
    (tmp_path / "tensorboard").touch(0o755)
    for words in (["--logdir=x"], ["--help"], ["a", "--version"]):
        found = program.tensorboard("10.0.0.1", 7, words, {"PATH": str(tmp_path)})
        assert found == [f"{tmp_path}/tensorboard", "--host", "10.0.0.1", "--port", "7", *words]
    for words in ([], ["logdir"], ["--logdirs"]):
        with pytest.raises(program.Problem, match=r"^which logs\? hal-tensorboard --logdir FOLDER$"):
            program.tensorboard("10.0.0.1", 7, words, {"PATH": str(tmp_path)})


def test_passwords_are_of_one_start_and_every_file_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    user(monkeypatch, 4321, str(tmp_path))
    java = tmp_path / "java"
    java.touch(0o755)
    monkeypatch.setattr(program, "_jar", lambda _: "/h2o.jar")
    settings = {"java": str(java), "h2o_memory_gb": 1.9}
    open_files = len(os.listdir("/proc/self/fd"))
    before = os.umask(0)
    try:
        commands = [program.h2o("127.0.0.1", 7, [], {"PATH": ""}, settings) for _ in range(2)]
    finally:
        os.umask(before)
    assert len(os.listdir("/proc/self/fd")) == open_files
    paths = [Path(command[-1]) for command in commands]
    texts = [path.read_text() for path in paths]
    assert [len(text) for text in texts] == [len("alice: \n") + 24] * 2
    assert texts[0] != texts[1]
    assert {(path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) for path in paths} == {(0o600, 0o700)}
    assert commands[0][:4] == [str(java), "-Xmx1g", "-jar", "/h2o.jar"]
    assert commands[0][commands[0].index("-nthreads") + 1] == "4"
    assert capsys.readouterr().out.splitlines() == [
        f"User alice, the password is in {path}, which is yours alone" for path in paths
    ]
