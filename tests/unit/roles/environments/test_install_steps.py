"""Steps of an installation one by one: what is done, in which order, with which environment, and what is told of it."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.environments.prefixes import DIGEST, NAME, prefix

Part = Callable[[str], Any]
NONE: dict[str, Any] = {name: [] for name in ("installed", "repaired", "switched", "removed", "kept", "mended")}


@pytest.fixture
def installer(part: Part, tmp_path: Path) -> Any:
    tmp_path.chmod(0o755)
    return part("install").Installer({"root": str(tmp_path), "keep": 0, "grace_hours": 0.0}, [].append)


def environment(root: Path, version: str = "1", **changes: Any) -> dict[str, Any]:
    (root / "t").mkdir(exist_ok=True)
    return {"id": f"t/{version}", "link": str(root / "t" / version), "version": version, "digest": DIGEST,
            "packages": [], "python": "", "metas": [], "channels": {}, "imports": [],
            "post_link": {"run": [], "skip": [], "environment": {"A": "1"}}} | changes  # fmt: skip


class Steps:
    """What an installer is asked to do; `fails` has what is refused, by the environment's name."""

    def __init__(self, installer: Any, monkeypatch: pytest.MonkeyPatch, problem: Any) -> None:
        self.done: list[Any] = []
        self.fails: dict[str, str] = {}
        self._problem = problem
        monkeypatch.setattr(installer, "_store", lambda: self.done.append("store"))
        monkeypatch.setattr(installer, "_old", lambda *asked: self.done.append(("old", *asked)))
        monkeypatch.setattr(installer, "_install", self._install)
        monkeypatch.setattr(installer, "_mend", lambda folder: self.done.append(("mend", folder)))

    def _install(self, env: dict[str, Any], owner: str, before: str | None) -> str:
        self.done.append((env["id"], owner, before, dict(env["post_link"]["environment"])))
        if env["id"] in self.fails:
            raise self._problem(self.fails[env["id"]])
        return "fresh"


@pytest.fixture
def steps(installer: Any, part: Part, monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(installer, monkeypatch, part("common").Problem)


def test_every_environment_is_tried_then_older_ones_are_looked_at(installer: Any, steps: Steps, tmp_path: Path) -> None:
    envs = [environment(tmp_path), environment(tmp_path, "2")]
    done = installer.apply(envs, "tools", True, ["t/x"], {"B": "2"})
    mend = ("mend", str(tmp_path / "t"))
    told = {"A": "1", "B": "2"}
    assert steps.done == [
        "store", mend, ("t/1", "tools", None, told), mend, ("t/2", "tools", None, told),
        ("old", envs, "tools", True, ["t/x"]),
    ]  # fmt: skip
    assert done == NONE | {
        "installed": ["t/1", "t/2"], "changed": True,
        "switched": ["t/1: from nothing to fresh", "t/2: from nothing to fresh"],
    }  # fmt: skip
    assert [os.readlink(tmp_path / "t" / version) for version in ("1", "2")] == ["fresh", "fresh"]


def test_what_fails_is_told_of_each_and_nothing_older_is_touched(
    installer: Any, part: Part, steps: Steps, tmp_path: Path
) -> None:
    envs = [environment(tmp_path, version) for version in ("1", "2", "3")]
    (tmp_path / "t/2").symlink_to("2.old")
    steps.fails = {"t/1": "no room", "t/2": "no way"}
    with pytest.raises(part("common").Problem) as refused:
        installer.apply(envs, "tools", True, [])
    assert str(refused.value) == "t/1: no room; nothing is installed of it\nt/2: no way; 2.old stays in use"
    assert [one[0] for one in steps.done if one != "store" and one[0] != "mend"] == ["t/1", "t/2", "t/3"]
    assert installer.done == NONE | {"installed": ["t/3"], "switched": ["t/3: from nothing to fresh"], "changed": True}
    assert [os.path.lexists(tmp_path / "t/1"), os.readlink(tmp_path / "t/2")] == [False, "2.old"]


@pytest.mark.parametrize("name", ["installed", "repaired", "switched", "removed", "mended", "kept"])
def test_each_of_what_is_done_is_a_change_and_what_is_kept_is_none(installer: Any, steps: Steps, name: str) -> None:
    installer.done[name].append("x")
    assert installer.apply([], "tools", False, [])["changed"] is (name != "kept")
    assert steps.done == [("old", [], "tools", False, [])], "no folder of archives for nothing"


def test_checking_makes_no_folder_of_archives_and_no_link(installer: Any, steps: Steps, tmp_path: Path) -> None:
    installer.checking = True
    done = installer.apply([environment(tmp_path)], "tools", False, [])
    assert done == NONE | {"installed": ["t/1"], "switched": [f"t/1: from nothing to {NAME}"], "changed": True}
    assert (steps.done[0], list((tmp_path / "t").iterdir())) == (("mend", str(tmp_path / "t")), [])


@pytest.mark.parametrize(
    ("before", "kind", "why"),
    [
        (NAME, "repaired", ": 1 changed (a)"), (f"{NAME}.2", "repaired", ": 1 changed (a)"),
        ("1.ffffffffffff", "installed", ""),
    ],
)  # fmt: skip
def test_a_prefix_of_the_same_lock_file_is_repaired_another_one_installed(
    installer: Any, steps: Steps, tmp_path: Path, before: str, kind: str, why: str
) -> None:
    env = environment(tmp_path)
    used = prefix(env, before, digest=before[2:14], time=1)
    (used / ".hal/verified.json").write_text('{"words": "1 changed (a)"}')
    Path(env["link"]).symlink_to(before)
    installer._one(env, "tools")
    assert installer.done == NONE | {
        kind: [f"t/1{why}"], "switched": [f"t/1: from {before} to fresh"], "changed": False,
    }  # fmt: skip


def test_a_prefix_that_is_right_is_switched_to_and_left_when_it_is_in_use(
    installer: Any, steps: Steps, tmp_path: Path
) -> None:
    env = environment(tmp_path)
    prefix(env, NAME, digest=DIGEST, time=1)
    installer._one(env, "tools")
    assert installer.done == NONE | {"switched": [f"t/1: from nothing to {NAME}"], "changed": False}
    inode = os.lstat(env["link"]).st_ino
    installer._one(env, "tools")
    assert len(installer.done["switched"]) == 1
    assert os.lstat(env["link"]).st_ino == inode
    assert [one[0] for one in steps.done] == ["mend", "mend"]


@pytest.fixture
def ran(part: Part, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was run, each time with success."""
    calls: list[Any] = []

    def run(argv: list[str], environment: dict[str, str], *more: Any, **named: Any) -> Any:
        calls.append((argv, environment, *more, *named.items()))
        return 0, b"", b""

    for name in ("run", "run_theirs"):
        monkeypatch.setattr(part("install"), name, run)
    return calls


def test_declared_scripts_run_with_what_conda_gives_them_in_the_order_of_names(
    installer: Any, tmp_path: Path, ran: list[Any]
) -> None:
    env = environment(tmp_path, post_link={"run": ["z", "b", "none"], "skip": ["c"], "environment": {"A": "1"}})
    path = prefix(env, NAME)
    (path / "conda-meta").mkdir()
    (path / "conda-meta/history").write_text("no JSON")
    for name, files in (("b", ["x", "bin/.b-post-link.sh"]), ("c", ["bin/.c-post-link.sh"]), ("d", ["bin/d"]),
                        ("z", ["bin/.z-post-link.sh"])):  # fmt: skip
        meta = {"name": name, "version": f"{name}.0", "build_number": 3, "files": files}
        (path / f"conda-meta/{name}.json").write_text(json.dumps(meta))
    installer._post_link(env, str(path))
    assert ran == [
        (
            ["/bin/bash", f"{path}/bin/.{name}-post-link.sh"],
            {"A": "1", "PREFIX": str(path), "PKG_NAME": name, "PKG_VERSION": f"{name}.0", "PKG_BUILDNUM": "3",
             "HOME": "/", "LANG": "C", "PATH": f"{path}/bin:/usr/bin:/bin"},
            ("limit_seconds", 600),
        )
        for name in ("b", "z")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("output", "errors", "said"),
    [(b"out", b"err", "err"), (b"out\n", b"", "out"), (b"", b"", "nothing was said")],
)
def test_a_script_that_fails_is_named_with_its_words(
    installer: Any, part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: bytes, errors: bytes, said: str
) -> None:
    env = environment(tmp_path, post_link={"run": ["b"], "skip": [], "environment": {}})
    path = prefix(env, NAME)
    (path / "conda-meta").mkdir()
    meta = {"name": "b", "version": "1", "build_number": 0, "files": ["bin/.b-post-link.sh"]}
    (path / "conda-meta/b.json").write_text(json.dumps(meta))
    monkeypatch.setattr(part("install"), "run", lambda *_, **__: (7, output, errors))
    with pytest.raises(part("common").Problem) as refused:
        installer._post_link(env, str(path))
    assert str(refused.value) == f"the post-link script of b failed (7): {said}"


def test_what_is_imported_has_what_activation_sets(
    installer: Any, part: Part, tmp_path: Path, ran: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    env = environment(tmp_path)
    path = prefix(env, NAME)
    installer._imports(env, str(path))
    assert ran == []
    found = {"set": {"X": "y", "LANG": "de"}, "prepend": {"PATH": ["/p/bin", "/q"], "MANPATH": ["/m", "/n"]}}
    (path / ".hal/activate.json").write_text(json.dumps(found))
    env["imports"] = ["json", "os.path"]
    installer._imports(env, str(path))
    assert ran == [(
        [f"{path}/bin/python", "-B", "-s", "-c", "import json; import os.path"],
        {"PATH": "/p/bin:/q:/usr/bin:/bin", "LANG": "de", "HOME": "/", "X": "y", "MANPATH": "/m:/n"}, 600,
    )]  # fmt: skip
    monkeypatch.setattr(part("install"), "run_theirs", lambda *_: (9, b"", b"x" * 201))
    with pytest.raises(part("common").Problem) as refused:
        installer._imports(env, str(path))
    assert str(refused.value) == "import json; import os.path failed (9): ... " + "x" * 200


def test_what_noarch_packages_brought_is_compiled_for_each_python(
    installer: Any, tmp_path: Path, ran: list[Any]
) -> None:
    for name in ("python2.7", "python3.6", "other", "libpython3.so"):
        (tmp_path / "p/lib" / name).mkdir(parents=True)
    installer._compile(str(tmp_path / "p"))
    words = [f"{tmp_path}/p/bin/python", "-E", "-S", "-s", "-m", "compileall", "-q"]
    assert ran == [
        ([*words, f"{tmp_path}/p/lib/{name}/site-packages"], {"PATH": "/usr/bin:/bin", "LANG": "C"})
        for name in ("python2.7", "python3.6")
    ]


@pytest.mark.parametrize(
    ("python", "faults", "order"),
    [
        ("", ["", ""], "tighten faults record imports write"),
        ("3.6", ["", ""], "tighten python compile faults record imports write"),
        ("3.6", ["old", ""], "tighten python"),
        ("3.6", ["", "a package"], "tighten python compile faults"),
    ],
)
def test_a_prefix_is_finished_when_all_is_right(
    installer: Any, part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    python: str, faults: list[str], order: str,
) -> None:  # fmt: skip
    install, done = part("install"), list[str]()
    env = environment(tmp_path, python=python)
    path = prefix(env, NAME)
    (path / ".hal/building").touch()

    def notes(name: str, result: Any) -> Callable[..., Any]:
        def step(*asked: Any) -> Any:
            assert str(path) in asked
            done.append(name)
            return result

        return step

    monkeypatch.setattr(install, "tighten", notes("tighten", None))
    monkeypatch.setattr(install.status, "python", notes("python", faults[0]))
    monkeypatch.setattr(install.status, "faults", notes("faults", faults[1]))
    monkeypatch.setattr(install.activation, "record", notes("record", None))
    monkeypatch.setattr(install.manifest, "write", notes("write", "1234"))
    monkeypatch.setattr(installer, "_compile", notes("compile", None))
    monkeypatch.setattr(installer, "_imports", notes("imports", None))
    monkeypatch.setattr(install.time, "time", lambda: 7.5)
    monkeypatch.setattr(install.time, "strftime", lambda form: f"at {form}")
    if any(faults):
        with pytest.raises(part("common").Problem, match=f"^{''.join(faults)}$"):
            installer._finish(env, str(path), "tools")
        assert [file.name for file in (path / ".hal").iterdir()] == ["building"]
    else:
        installer._finish(env, str(path), "tools")
        at = "at %Y-%m-%d %H:%M:%S"
        assert {file.name: json.loads(file.read_text()) for file in (path / ".hal").iterdir()} == {
            "record.json": {"id": "t/1", "owner": "tools", "digest": DIGEST, "python": python, "manifest": "1234",
                            "time": 7.5, "made": at},
            "verified.json": {"words": "", "time": 7.5, "at": at},
        }  # fmt: skip
    assert done == order.split()


@pytest.fixture
def old(installer: Any, part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function: what is used by this node and by others, whether it may go -> (removed, kept, what is there)."""
    folder = tmp_path / "t"

    def look(environments: list[Any], here: list[str], elsewhere: list[str], remove_ok: bool) -> Any:
        monkeypatch.setattr(part("status"), "used", lambda root: here if root == str(tmp_path) else None)
        installer.done.update(removed=[], kept=[])
        installer._old(environments, "tools", remove_ok, elsewhere)
        there = sorted(path.name for path in folder.iterdir())
        return installer.done["removed"], installer.done["kept"], there

    return look


def test_of_older_ones_only_what_nobody_needs_goes(installer: Any, old: Callable[..., Any], tmp_path: Path) -> None:
    env = environment(tmp_path)
    names = [f"{NAME}.{number}" for number in range(2, 6)]
    for number, name in enumerate([NAME, *names]):
        path = prefix(env, name, digest=DIGEST, owner="tools", time=number)
        (path / ".hal/surplus.json").write_text('{"since": 0}')
    Path(env["link"]).symlink_to(NAME)
    prefix(env, f"{NAME}.6", digest=DIGEST, owner="other", time=0)
    (tmp_path / "t/file").touch()
    (tmp_path / "t/link").symlink_to(names[0])
    unpacked = tmp_path / ".packages/unpacked/x"
    unpacked.mkdir(parents=True)
    later = time.time() + 9999
    (tmp_path / "t" / names[2] / ".hal/surplus.json").write_text(json.dumps({"since": later}))
    others = ["1", NAME, f"{NAME}.6", "file", "link"]
    used = [f"t/{names[0]}"], [f"t/{names[1]}"]
    until = time.strftime("%Y-%m-%d %H:%M", time.localtime(later))
    kept = [f"t/{names[0]}: processes use it", f"t/{names[1]}: processes use it", f"t/{names[2]}: not before {until}"]

    installer.checking = True
    assert old([env], *used, True) == ([f"t/{names[3]}"], kept, sorted([*others, *names]))
    assert unpacked.exists()
    installer.checking = False
    assert old([env], *used, False) == ([], [*kept, f"t/{names[3]}"], sorted([*others, *names]))
    assert not unpacked.parent.exists()
    assert old([env], *used, True) == ([f"t/{names[3]}"], kept, sorted([*others, *names[:3]]))
    assert not (tmp_path / "t" / NAME / ".hal/surplus.json").exists(), "in use: the time starts again"


def test_what_nobody_declares_any_more_loses_its_link_first(
    installer: Any, old: Callable[..., Any], tmp_path: Path
) -> None:
    env = environment(tmp_path)
    for name in (NAME, f"{NAME}.2"):
        path = prefix(env, name, digest=DIGEST, owner="tools", time=1)
        (path / ".hal/surplus.json").write_text('{"since": 0}')
    Path(env["link"]).symlink_to(f"{NAME}.2")
    (tmp_path / "t" / f"{NAME}.2/.hal/surplus.json").write_text(json.dumps({"since": time.time() + 9999}))
    removed, kept, there = old([], [], [], True)
    assert (removed, len(kept), there) == ([f"t/{NAME}"], 1, ["1", f"{NAME}.2"]), "the link is another one's"
    (tmp_path / "t" / f"{NAME}.2/.hal/surplus.json").write_text('{"since": 0}')
    assert old([], [], [], True) == ([f"t/{NAME}.2"], [], [])


def test_a_prefix_is_out_of_the_way_before_it_is_taken_apart(
    installer: Any, part: Part, old: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = environment(tmp_path)
    path = prefix(env, NAME, digest=DIGEST, owner="tools", time=1)
    (path / ".hal/surplus.json").write_text('{"since": 0}')
    gone: list[str] = []
    monkeypatch.setattr(part("install").shutil, "rmtree", lambda name, **_: gone.append(name))
    assert old([], [], [], True) == ([f"t/{NAME}"], [], [f"{NAME}.removed"])
    assert gone == [f"{path}.removed", f"{tmp_path}/.packages/unpacked"]
    assert stat.S_ISDIR((tmp_path / "t" / f"{NAME}.removed").stat().st_mode)


@pytest.mark.root  # who alone gives files away
@pytest.mark.parametrize("name", [".packages", ".packages/files", ".packages/unpacked"])
def test_a_folder_of_archives_that_somebody_made_is_not_used(
    installer: Any, part: Part, tmp_path: Path, name: str
) -> None:
    (tmp_path / ".packages/files").mkdir(parents=True)
    (tmp_path / ".packages/unpacked").mkdir()
    installer._store()
    os.chown(tmp_path / name, 4711, 0)
    with pytest.raises(part("common").Problem) as refused:
        installer._store()
    assert str(refused.value) == f"{tmp_path}/{name} is a link, or not root's: somebody put it there; move it away"


@pytest.mark.root  # who alone gives files away
def test_what_packages_brought_becomes_root_s(part: Part, tmp_path: Path) -> None:
    (tmp_path / "top/sub").mkdir(parents=True)
    (tmp_path / "top/sub/file").touch()
    (tmp_path / "top/sub/link").symlink_to("file")
    paths = [tmp_path / name for name in ("top", "top/sub", "top/sub/file", "top/sub/link")]
    for path in paths:
        os.lchown(path, 4711, 4712)
    part("install").tighten(str(tmp_path / "top"))
    root = (os.getuid(), os.getgid())
    assert [(path.lstat().st_uid, path.lstat().st_gid) for path in paths] == [root, root, root, (4711, 4712)]
