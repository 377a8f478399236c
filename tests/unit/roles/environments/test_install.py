"""hal-environment installs, switches, keeps, repairs: with real archives and rattler, below a folder of the test."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.unit.hal_cluster.environments.conftest import FILES, RELEASE, Site, entry
from tests.unit.interpreters import NODES, beside, interpreter

LUA = """\
-- Written by hal-environment: what activating tools/1 sets. Changes made here are lost.
setenv("CONDA_DEFAULT_ENV", "tools/1")
setenv("CONDA_PREFIX", "{prefix}")
setenv("MATHS", "a \\"quoted\\" \\\\ one")
prepend_path("LD_LIBRARY_PATH", "{prefix}/lib")
prepend_path("PATH", "{prefix}/bin")
append_path("MANPATH", "{prefix}/man")
"""


def test_an_environment_is_installed_and_used(site: Site) -> None:
    declared = site.environments()
    done = site.apply(declared)
    assert done["installed"] == ["tools/1"], done
    assert site.prefix.name == f"1.{declared[0]['digest']}"
    assert os.readlink(site.root / "tools/1") == site.prefix.name, "relative: the tree may be mounted elsewhere"
    assert subprocess.check_output([site.prefix / "bin/where"], text=True) == f"{site.prefix}\n"
    assert (site.prefix / "lib/where.binary").read_bytes().startswith(b"\0\1" + f"{site.prefix}/lib\0".encode())
    program = [site.prefix / "bin/pure"]
    there = {**os.environ, "PYTHONPATH": str(site.prefix / f"lib/python{RELEASE}/site-packages")}
    assert subprocess.check_output(program, env=there, text=True) == "pure runs\n"
    assert list(site.prefix.glob(f"lib/python{RELEASE}/site-packages/__pycache__/pure.*.pyc")), (
        "users cannot compile it"
    )
    assert site.wrong() == [""]
    assert oct((site.root / ".packages").stat().st_mode) == "0o40700"
    assert not (site.root / ".packages/unpacked").exists()


def test_what_activation_sets_is_recorded_for_every_shell(site: Site) -> None:
    site.apply(site.environments())
    assert (site.prefix / ".hal/activate.lua").read_text() == LUA.format(prefix=site.prefix)


def test_the_second_time_nothing_changes(site: Site) -> None:
    declared = site.environments()
    site.apply(declared)
    before = sorted(path.stat().st_mtime_ns for path in site.root.rglob("*"))
    done = site.apply(declared)
    assert done["changed"] is False
    assert sorted(path.stat().st_mtime_ns for path in site.root.rglob("*")) == before


def test_check_mode_says_what_would_be_done_and_does_nothing(site: Site) -> None:
    done = site.apply(site.environments(), "--check")
    assert (done["changed"], done["installed"]) == (True, ["tools/1"])
    assert not site.root.exists()


def test_another_lock_file_makes_another_prefix_and_switches(site: Site, write_lock: Callable[..., Path]) -> None:
    site.apply(site.environments())
    old = site.prefix
    write_lock("maths 1.9")
    new = site.environments()
    site.declare(new)
    assert site.wrong() == [
        f"{site.root}/tools/1 leads to {old.name}, made from another lock file: the declared one has the digest "
        f"{new[0]['digest']}"
    ]
    done = site.apply(new)
    assert done["switched"] == [f"tools/1: from {old.name} to {site.prefix.name}"]
    assert (old / "bin/where").exists(), "running jobs use it"
    assert not (site.prefix / "bin/where").exists()
    write_lock("maths", "pure")
    done = site.apply(site.environments())
    assert (site.prefix, done["installed"]) == (old, []), "the way back installs nothing"


def test_older_ones_are_kept_and_more_is_removed_with_permission_only(
    site: Site, write_lock: Callable[..., Path]
) -> None:
    prefixes = []
    for specs in (["maths"], ["maths 1.9"], ["maths", "pure"], ["pure"]):
        write_lock(*specs)
        done = site.apply(site.environments())
        prefixes.append(site.prefix)
    names = [f"tools/{path.name}" for path in prefixes]
    assert (done["removed"], {one.split(":")[0] for one in done["kept"]}) == ([], set(names[:2]))
    done = site.apply(site.environments(), remove_ok=True, used=[names[0]])
    assert (done["removed"], done["kept"]) == ([names[1]], [f"{names[0]}: processes use it"])
    assert [path.exists() for path in prefixes] == [True, False, True, True]
    done = site.apply([], remove_ok=False)
    assert done["removed"] == [], "nobody declares it any more, and nobody said that it may go"
    site.apply([], remove_ok=True, owner="somebody else")
    assert site.prefix == prefixes[3]
    done = site.apply([], remove_ok=True)
    assert not list((site.root / "tools").iterdir()), done


def test_what_is_more_than_is_kept_stays_for_a_while(site: Site, write_lock: Callable[..., Path]) -> None:
    """A job that has just loaded it may have no process yet; a version that nobody declares any more had its link."""
    site.settings.update(keep=0, grace_hours=2)
    site.apply(site.environments())
    old = site.prefix
    write_lock("maths 1.9")
    for _ in range(2):
        done = site.apply(site.environments(), remove_ok=True)
        assert done["removed"] == []
        assert done["kept"][0].startswith(f"tools/{old.name}: not before 20")
    assert done["changed"] is False, "a note is no change"
    note = old / ".hal/surplus.json"
    note.write_text(json.dumps({"since": time.time() - 7201}))
    assert site.apply([], "--check", remove_ok=True)["removed"] == [f"tools/{old.name}"]
    assert site.apply(site.environments(), remove_ok=True)["removed"] == [f"tools/{old.name}"]
    now = site.prefix
    assert site.apply([], remove_ok=True)["removed"] == [], "withdrawn in this run"
    (now / ".hal/surplus.json").write_text(json.dumps({"since": 0}))
    site.apply(site.environments())
    assert not (now / ".hal/surplus.json").exists(), "declared again: the time starts again"
    assert site.call("verify").returncode == 0


def test_what_a_process_uses_is_not_removed(site: Site, write_lock: Callable[..., Path]) -> None:
    site.settings["keep"] = 0
    site.apply(site.environments())
    old = site.prefix
    with subprocess.Popen(["/bin/sleep", "3600"], env={"CONDA_PREFIX": str(old)}) as job:
        try:
            write_lock("maths 1.9")
            done = site.apply(site.environments(), remove_ok=True)
            assert done["kept"] == [f"tools/{old.name}: processes use it"]
            assert site.call("used").stdout.split() == [f"tools/{old.name}"]
        finally:
            job.kill()
    assert site.apply(site.environments(), remove_ok=True)["removed"] == [f"tools/{old.name}"]


@pytest.mark.parametrize("path", ["lib/python@/site-packages/maths.py", ".hal/activate.lua"])
def test_a_changed_file_is_found_and_a_fresh_prefix_is_made(site: Site, path: str) -> None:
    declared = site.environments()
    site.apply(declared)
    old = site.prefix
    changed = old / path.replace("@", RELEASE)
    changed.write_text(changed.read_text() + "# by hand\n")
    assert site.wrong() == [""], "that is for the weekly verification"
    seen = site.call("verify")
    of = " of maths 1.10" if "maths" in path else ""
    words = f"1 changed{of} ({changed.relative_to(old)})"
    assert (seen.returncode, seen.stdout) == (1, f"tools/1: {words}\n")
    assert site.wrong()[0].startswith(f"{words}; seen ")
    done = site.apply(declared)
    assert done["repaired"] == [f"tools/1: {words}"]
    assert site.prefix.name == f"{old.name}.2"
    assert "# by hand" in changed.read_text(), "jobs run there"
    assert site.wrong() == [""]
    assert site.apply(declared)["changed"] is False


def test_all_kinds_of_damage_are_told_apart(site: Site) -> None:
    declared = site.environments()
    site.apply(declared)
    packages = site.prefix / f"lib/python{RELEASE}/site-packages"
    (packages / "maths.py").unlink()
    (packages / "other.py").write_text("")
    (packages / "__pycache__/other.pyc").write_text("compiled by root's own start")
    (site.prefix / "bin/where").chmod(0o700)
    assert site.call("verify", "tools/1").stdout == (
        f"tools/1: 1 missing of maths 1.10 (lib/python{RELEASE}/site-packages/maths.py); "
        f"1 extra (lib/python{RELEASE}/site-packages/other.py); 1 unlike of places 2.0 (bin/where)\n"
    )
    found = json.loads((site.prefix / ".hal/verified.json").read_text())["wrong"]
    assert found == {
        "changed": [],
        "missing": [f"lib/python{RELEASE}/site-packages/maths.py"],
        "extra": [f"lib/python{RELEASE}/site-packages/other.py"],
        "unlike": ["bin/where"],
        "writable": [],
    }


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        ("chmod 777 lib", "lib"),
        pytest.param("chown 65534 lib/where.binary", "lib/where.binary", marks=pytest.mark.root),
        ("mkdir -m 777 lib/__pycache__", "lib/__pycache__"),
        ("chmod g+w .hal/record.json", ".hal/record.json"),
        ("chmod o+w .hal", ".hal"),
        ("chmod o+w bin/where lib/where.binary", "bin/where, lib/where.binary"),
    ],
)
def test_what_others_than_root_may_write_is_found_and_a_fresh_prefix_is_made(
    site: Site, plant: str, words: str
) -> None:
    declared = site.environments()
    site.apply(declared)
    subprocess.run(["/bin/sh", "-c", plant], cwd=site.prefix, check=True)
    number = words.count(",") + 1
    of = " of places 2.0" if "where" in words else ""
    said = f"{number} that others than root may write{of} ({words})"
    assert site.call("verify").stdout == f"tools/1: {said}\n"
    assert site.apply(declared)["repaired"] == [f"tools/1: {said}"]
    assert site.wrong() == [""]
    assert site.call("verify").returncode == 0


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ("rm -rf {prefix}", "leads to {name}, which is not there"),
        ("rm {link}", "is not there: it is not installed"),
        ("ln -sfn 1.000000000000 {link}", "leads to 1.000000000000, which is not there"),
        ("rm {prefix}/.hal/record.json", "leads to {name}, whose installation was never finished"),
        ("rm {prefix}/conda-meta/maths*", "packages: maths-1.10-py"),
        ("touch {prefix}/conda-meta/mine-1-0.json", "packages: mine-1-0 is not in the lock file"),
        ("echo exit 3 >{prefix}/bin/python", "bin/python does not run"),
        ("printf '#!/bin/sh\\necho 2.7.5' >{prefix}/bin/python", "bin/python is Python 2.7.5, declared is"),
        ("rm {prefix}/.hal/activate.lua", ".hal/activate.lua is not there: the module cannot be loaded"),
        ("chmod g+w {prefix}", "can be written by others than root"),
        ("chmod o+w {prefix}/..", "can be written by others than root"),
    ],
)
def test_what_is_spoilt_is_seen_at_once_and_mended(site: Site, spoil: str, words: str) -> None:
    declared = site.environments()
    site.apply(declared)
    names = {"prefix": site.prefix, "link": site.root / "tools/1", "name": site.prefix.name}
    subprocess.run(["/bin/sh", "-c", spoil.format(**names)], check=True)
    assert words.format(**names) in site.wrong()[0]
    assert site.call("list").returncode == 1
    done = site.apply(declared)
    assert done["changed"], done
    assert site.wrong() == [""]
    assert site.apply(declared)["changed"] is False


def test_a_folder_in_the_place_of_a_link_is_left_and_named(site: Site) -> None:
    declared = site.environments()
    (site.root / "tools/1").mkdir(parents=True)
    assert "tools/1 is not a link: somebody put something else there; move it away" in site.apply(declared)["problem"]
    assert site.wrong()[0].endswith("is not a link: somebody put something else there")


def test_somebody_s_folder_with_a_prefix_s_name_is_left_and_named(site: Site) -> None:
    declared = site.environments()
    mine = site.root / "tools" / f"1.{declared[0]['digest']}"
    mine.mkdir(parents=True)
    (mine / "thesis").write_text("mine")
    assert "is not a prefix of hal-environment, and has files: move it away" in site.apply(declared)["problem"]
    assert (mine / "thesis").read_text() == "mine"


@pytest.mark.root  # to give the folder away
@pytest.mark.parametrize("place", ["", "tools"])
def test_a_folder_that_belongs_to_somebody_is_not_taken_over(site: Site, place: str) -> None:
    theirs = site.root / place
    theirs.mkdir(parents=True)
    theirs.chmod(0o775)
    os.chown(theirs, 65534, 65534)
    assert site.apply(site.environments(), "--check")["problem"].count(f"{theirs} belongs to ") == 1
    problem = site.apply(site.environments())["problem"]
    assert f"{theirs} belongs to nobody, who could change what everybody runs: choose another software_root" in problem
    found = theirs.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (65534, 65534, 0o775)
    os.chown(theirs, 0, 65534)
    assert str(theirs) in site.apply(site.environments())["mended"]
    assert theirs.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("after", [0, 1, 2, 5, 9])
def test_an_installation_that_is_killed_is_done_again(site: Site, after: int) -> None:
    """At any moment: what was in use stays, and the next run leaves nothing of it behind."""
    declared = site.environments()
    site.declare(declared)
    (site.folder / "settings.json").write_text(json.dumps(site.settings))
    wanted = {"owner": "tools", "environments": declared, "remove_ok": False, "used": [], "told": {}}
    places = ["--settings", "settings.json", "--declared", "declared", "--lock", "lock"]
    argv = [*beside(sys.executable), str(FILES / "environment_main.py"), *places, "apply"]
    with subprocess.Popen(
        argv, cwd=site.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    ) as call:  # fmt: skip
        assert call.stdin is not None
        call.stdin.write(json.dumps(wanted).encode())
        call.stdin.close()
        end = time.monotonic() + 600
        while time.monotonic() < end and call.poll() is None:
            # What is moved meanwhile is not counted; rglob would fail.
            if sum(len(files) for _, _, files in os.walk(site.root)) > after * 3:
                break
        with suppress(ProcessLookupError):  # it was through
            os.killpg(call.pid, signal.SIGKILL)
        call.wait()
    link = site.root / "tools/1"
    assert not link.is_symlink() or site.wrong() == [""]
    done = site.apply(declared)
    assert "problem" not in done, done
    assert site.wrong() == [""]
    assert [path.name for path in sorted((site.root / "tools").iterdir())] == ["1", site.prefix.name]
    assert not (site.root / ".packages/unpacked").exists()


def test_a_package_with_another_checksum_is_never_unpacked(site: Site, channels: Path) -> None:
    copy = site.folder / "mirror"
    shutil.copytree(channels, copy)
    site.settings["mirror"] = copy.as_uri()
    package = next((copy / "ibm/linux-64").glob("places-*"))
    package.write_bytes(package.read_bytes()[:-1] + b"x")
    problem = site.apply(site.environments())["problem"]
    assert problem.startswith(f"tools/1: {package.as_uri()} has sha256 ")
    assert problem.endswith(": it is not used; nothing is installed of it")
    assert not (site.root / "tools" / "1").exists()
    assert "\n" not in problem


def test_an_archive_that_was_spoilt_here_comes_again(site: Site) -> None:
    site.apply(site.environments())
    archive = next((site.root / ".packages/files").rglob("places-*"))
    archive.write_bytes(b"x" * archive.stat().st_size)
    shutil.rmtree(site.prefix)
    done = site.apply(site.environments())
    assert "fetching 1 packages" in done["said"]
    assert site.wrong() == [""]


def test_a_channel_that_cannot_be_reached_leaves_what_is_in_use(site: Site, write_lock: Callable[..., Path]) -> None:
    write_lock("maths 1.9")
    site.apply(site.environments())
    old = site.prefix
    write_lock("maths")
    site.settings["mirror"] = "http://127.0.0.1:9"
    problem = site.apply(site.environments())["problem"]
    assert problem.startswith("tools/1: http://127.0.0.1:9/ibm/linux-64/maths-1.10-")
    assert "Connection refused; what came is kept, and the next run goes on" in problem
    assert problem.endswith(f"{old.name} stays in use")
    assert site.prefix == old


def test_with_a_mirror_no_channel_is_asked(site: Site) -> None:
    """The channels' own addresses lead nowhere."""
    assert site.apply(site.environments())["installed"] == ["tools/1"]
    site.settings["mirror"] = ""
    shutil.rmtree(site.root)
    assert "https://ibm.example/conda/linux-64/" in site.apply(site.environments())["problem"]


def test_no_room_is_said_before_anything_is_written(site: Site) -> None:
    site.settings["reserve_gb"] = 10.0**9
    problem = site.apply(site.environments())["problem"]
    assert problem.startswith(f"tools/1: no room: below {site.root} ")
    assert not (site.root / "tools/1").exists()
    assert not list((site.root / ".packages").rglob("*.bz2*"))


def test_a_file_system_that_is_not_mounted_is_not_written_to(site: Site) -> None:
    site.settings["mount"] = str(site.folder)
    assert site.apply(site.environments())["problem"] == f"{site.folder} is not mounted: nothing is done"
    assert not site.root.exists()


def test_post_link_scripts_are_decided_about(site: Site, write_lock: Callable[..., Path]) -> None:
    write_lock("licence", "python")
    problem = site.apply(site.environments())["problem"]
    assert "licence has a post-link script, which would run as root: read bin/.licence-post-link.sh in it" in problem
    run = site.environments(entry(post_link={"run": ["licence"]}))
    assert "the post-link script of licence failed (3): not accepted" in site.apply(run)["problem"]
    assert not list((site.root / "tools").glob("1*")), "half a prefix is no prefix"
    site.apply(run, told={"ACCEPT": "yes"})
    assert (site.prefix / "accepted").is_dir()
    site.apply(site.environments(entry(post_link={"skip": ["licence"]})))
    assert not (site.prefix / "accepted").exists()


def test_what_has_to_import_and_does_not_is_refused(site: Site) -> None:
    good = site.apply(site.environments(entry(imports=["json"])))
    assert good["installed"] == ["tools/1"]
    shutil.rmtree(site.root)
    problem = site.apply(site.environments(entry(imports=["json", "no_such_module"])))["problem"]
    assert "import json; import no_such_module failed (1): " in problem
    assert "No module named 'no_such_module'" in problem


def test_one_call_at_a_time(site: Site) -> None:
    with (site.folder / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        problem = site.apply(site.environments())["problem"]
    assert problem.startswith(f"environments: process {os.getpid()} (")
    assert problem.endswith(" holds the lock lock. Wait until it ends, or end it; then run this again")


def test_one_that_fails_does_not_keep_the_others(site: Site, write_lock: Callable[..., Path]) -> None:
    write_lock("licence", "python", name="other")
    declared = site.environments(entry(), entry("2", lock="other", default=False))
    done = site.apply(declared)
    assert done["installed"] == ["tools/1"]
    assert done["problem"].startswith("tools/2: licence has a post-link script")
    assert site.wrong()[0] == ""


def test_old_verifications_are_reported(site: Site, part: Callable[[str], Any]) -> None:
    declared = site.environments()
    site.apply(declared)
    status = part("status")
    assert status.verified(declared[0]) == status.late(declared[0], 15) == ""
    assert status.late(declared[0], 15, time.time() + 16 * 86400).startswith("not since ")
    assert status.late(declared[0], 15, time.time() - 2 * 86400).startswith("not since "), "a time to come says nothing"
    (site.prefix / ".hal/verified.json").unlink()
    assert status.late(declared[0], 15).startswith("never: systemctl start hal-environment-verify.service")


@pytest.mark.parametrize("version", NODES)
def test_under_the_pythons_of_nodes(site: Site, version: str) -> None:
    """All but the linking, which rattler's Python does."""
    site.python = interpreter(version)
    declared = site.environments()
    assert site.apply(declared)["installed"] == ["tools/1"]
    assert site.call("verify").stdout == "tools/1: every file is as it was installed\n"
    assert site.wrong() == [""]
    assert site.apply(declared)["changed"] is False


def test_a_python_without_rattler_is_named(site: Site) -> None:
    site.settings["library"] = "/nowhere"
    site.settings["python"] = "/usr/bin/env"
    problem = site.apply(site.environments())["problem"]
    assert "linking it failed" in problem
    done = subprocess.run(
        ["/usr/bin/python3", "-I", str(FILES / "environment_link.py")], capture_output=True, text=True, check=False
    )
    assert "has no py-rattler" in done.stderr


def test_a_disk_that_fills_on_the_way_leaves_what_is_in_use(site: Site, write_lock: Callable[..., Path]) -> None:
    """rattler's words for it, as it has them on a full tmpfs."""
    write_lock("maths 1.9")
    site.apply(site.environments())
    old = site.prefix
    write_lock("maths")
    linker = site.folder / "linker"
    linker.write_text("#!/bin/sh\necho 'failed to unpack: No space left on device (os error 28)' >&2; exit 1\n")
    linker.chmod(0o755)
    site.settings["python"] = str(linker)
    done = site.apply(site.environments())
    assert done["problem"] == (
        "tools/1: there was no room on the way; what was half made is removed, what was fetched is kept; "
        f"{old.name} stays in use"
    )
    assert [path.name for path in sorted((site.root / "tools").iterdir())] == ["1", old.name]
    assert site.prefix == old


def test_py_rattler_is_unpacked_once_from_the_declared_wheel_alone(tmp_path: Path, part: Callable[[str], Any]) -> None:
    wheel, folder = tmp_path / "rattler.whl", tmp_path / "library"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("rattler/__init__.py", "good = True\n")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    settings: dict[str, Any] = {"root": "", "library": str(folder), "wheel": {"path": str(wheel), "sha256": digest}}
    install, problem = part("install"), part("common").Problem

    def library() -> str:
        found: str = install.Installer(settings, print)._library()
        return found

    whole = wheel.read_bytes()
    wheel.write_bytes(whole + b"more")
    other = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with pytest.raises(problem) as refused:
        library()
    assert str(refused.value) == f"{wheel} has sha256 {other}, declared is {digest}: it is not used"
    assert not folder.exists()
    wheel.write_bytes(whole)
    left = folder / f"{digest[:12]}.new/rattler/left.py"
    left.parent.mkdir(parents=True)
    left.touch()
    assert library() == str(folder / digest[:12])
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["__init__.py"], "an older try is gone"
    wheel.unlink()
    assert library() == str(folder / digest[:12]), "unpacked before"
    shutil.rmtree(folder)
    with pytest.raises(problem, match=rf"^{wheel} is not there: roll out the role environments$"):
        library()
    settings["wheel"] = None
    assert library() == str(folder)
